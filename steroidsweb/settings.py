"""Django's settings, read from environment variables. docs/settings.md explains each of them."""

import os
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from steroidsweb import navigation
from steroidsweb.env import (
    Forms,
    data_folder,
    database,
    env_address,
    env_addresses,
    env_bool,
    env_choice,
    env_int,
    env_list,
    env_networks,
    env_number,
    env_paths,
    env_rate,
    env_str,
    env_time_zone,
    is_behind_proxy,
    redis,
    single_sign_on,
)

BASE_DIR = Path(__file__).resolve().parent.parent
os.umask(0o077)  # only its own user can read what the program writes
HOME = data_folder(Path(env_str("STEROIDS_HOME", str(BASE_DIR / "var"))).resolve())
DEBUG = env_bool("DEBUG", False)


def _secret_key() -> str:
    """Return the key from SECRET_KEY or SECRET_KEY_FILE, or else from the file that `make setup` wrote."""
    key = env_str("SECRET_KEY")
    if not key and (HOME / "secret-key").exists():
        key = (HOME / "secret-key").read_text().strip()
    if len(key) < 32:
        raise ImproperlyConfigured(
            f"There is no SECRET_KEY of at least 32 characters. Run `make setup`, which writes "
            f"{HOME / 'secret-key'}, or set SECRET_KEY or SECRET_KEY_FILE."
        )
    return key


SECRET_KEY = _secret_key()
# Earlier keys: sessions and sealed addresses made with them are still read, and sealed anew overnight.
SECRET_KEY_FALLBACKS = env_list("SECRET_KEY_FALLBACKS", [])
ALLOWED_HOSTS = env_list("ALLOWED_HOSTS", ["127.0.0.1", "localhost", "[::1]"], Forms.OWN_NAME)
CSRF_TRUSTED_ORIGINS = env_addresses("CSRF_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "unfold.apps.BasicAppConfig",
    "unfold.contrib.filters",
    "unfold.contrib.forms",
    "steroidsweb.apps.PagesConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "tasks",
    "disputes",
    "agents",
    "steroidsweb",
    "django_q",  # after steroidsweb, whose command `qcluster` replaces its own
]
MIDDLEWARE = [
    "tasks.log_lines.of_a_request",
    "steroidsweb.security.tls",
    "django.middleware.security.SecurityMiddleware",
    "steroidsweb.security.headers",
    "steroidsweb.security.methods",
    "steroidsweb.security.sizes",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "steroidsweb.twice.once",
    "steroidsweb.error_pages.methods_in_words",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "steroidsweb.errors.read_again",
]
ROOT_URLCONF = "steroidsweb.urls"
WSGI_APPLICATION = "steroidsweb.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DATABASES = {"default": database(env_str("DATABASE_URL", f"sqlite:///{HOME / 'steroids.sqlite3'}"))}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
REDIS_URL = redis(env_str("REDIS_URL"))
CACHES: dict[str, dict[str, object]] = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    # Shared by all processes of a host: the cluster's statistics and the doorbell's "already rung" mark.
    "q2": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}
    if REDIS_URL
    else {"BACKEND": "django.core.cache.backends.filebased.FileBasedCache", "LOCATION": HOME / "cache"},
}
Q_CLUSTER: dict[str, object] = {
    "name": "steroids",
    "workers": 2,
    "queue_limit": 2,
    "bulk": 1,
    "poll": env_number("STEROIDS_QUEUE_POLL", 0.25, minimum=0.01, maximum=60),
    "guard_cycle": 5,  # seconds between looks at its processes; a job's own time limit is the worker's alarm
    "timeout": 50,
    "retry": 900,  # longer than any job may take, a tick included
    "max_attempts": 1,
    "ack_failures": True,
    "catch_up": False,
    "save_limit": 100,
    "recycle": 500,
    "max_rss": 300_000,
    "cache": "q2",
    "label": "Background jobs",
}
Q_CLUSTER |= (
    {"redis": REDIS_URL} if REDIS_URL else {"orm": "default", "broker_class": "tasks.job_queue.JobQueue"}
)

AUTHENTICATION_BACKENDS = ["steroidsweb.accounts.sign_in.OpenAccounts"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
CSRF_FAILURE_VIEW = "steroidsweb.error_pages.form_expired"
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"
SESSION_COOKIE_AGE = 12 * 60 * 60
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = env_bool("SECURE_COOKIES", False)
SECURE_HSTS_SECONDS = env_int("HSTS_SECONDS", 0)
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
FILE_UPLOAD_HANDLERS: list[str] = []  # no form of this program sends files

LANGUAGE_CODE = "en"
USE_I18N = False  # the pages have one language; to look each word up took a sixth of a page's time
FORMAT_MODULE_PATH = ["steroidsweb.formats"]
TIME_ZONE = env_time_zone("TIME_ZONE")
USE_TZ = True
STATIC_URL = "static/"
WHITENOISE_USE_FINDERS = True  # files are served from their packages, so `collectstatic` is not needed

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "agents.api.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "steroidsweb.negotiation.Formats",
    "DEFAULT_METADATA_CLASS": None,  # OPTIONS must not reveal what exists
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_FILTER_BACKENDS": ["tasks.filtering.ListFilter"],
    "DEFAULT_PAGINATION_CLASS": "rest_framework.pagination.PageNumberPagination",
    "PAGE_SIZE": 50,
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "steroidsweb.errors.exception_handler",
    "DEFAULT_THROTTLE_CLASSES": ["agents.api.throttling.RunThrottle"],
    "DEFAULT_THROTTLE_RATES": {
        "run": env_rate("STEROIDS_RUN_RATE", "60/min"),
        "unknown_token": env_rate("STEROIDS_UNKNOWN_TOKEN_RATE", "60/min"),
    },
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Steroids Web",
    "DESCRIPTION": "Tasks, hand-ins of agents, disputes and rulings.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "steroidsweb.schema.refusals",
    ],
    "ENUM_NAME_OVERRIDES": {
        "TaskStatusEnum": "tasks.models.STATUS_CHOICES",
        "SeverityEnum": "tasks.models.SEVERITY_CHOICES",
        "RunRoleEnum": "agents.models.Run.Role",
        "AgentRoleEnum": "agents.models.Agent.Role",
        "AmendmentStateEnum": "disputes.models.Amendment.State",
        "OpinionStateEnum": "disputes.models.Opinion.State",
        "ProjectKindEnum": "tasks.models.Project.Kind",
    },
}

LOG_FORMAT = env_choice("STEROIDS_LOG_FORMAT", "line", ("line", "json"))
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "tasks.log_lines.PlainLines",
            "format": "{asctime} {levelname} {name}: {message}",
            "style": "{",
        },
        "json": {"()": "tasks.log_lines.JSONLines"},
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT}},
    "root": {"handlers": ["stderr"], "level": env_choice("LOG_LEVEL", "INFO", LOG_LEVELS)},
    "loggers": {"django-q": {"level": "WARNING"}, "django.request": {"level": "ERROR"}},
}

# --- Our own options ------------------------------------------------------------------------------------

# The URL at which people reach the pages, with which links in messages begin. Empty: API_URL.
URL = env_address("STEROIDS_URL")
# Whether messages may go to this host and to private networks, such as a mail server of one's own.
TELL_PRIVATE = env_bool("STEROIDS_TELL_PRIVATE", False)
# The name under which this machine takes runs. Two machines must not share one.
HOST_NAME = env_str("STEROIDS_HOST_NAME", "", Forms.LABEL)
HOST_SLOTS = env_int("STEROIDS_HOST_SLOTS", 4, maximum=1000)
# What this host has that others lack, such as gpu: projects and agents may ask for one of these words.
HOST_LABELS = env_list("STEROIDS_HOST_LABELS", [], Forms.LABEL)
# Where agents of this host reach the API. Empty: the host starts an API server of its own on loopback.
API_URL = env_address("STEROIDS_API_URL")
PORT = env_int("PORT", 0, maximum=65_535)
# Variables of the server's environment that build and test commands may see (a proxy, a package index).
PASS_TO_BUILDS = env_list("STEROIDS_PASS_TO_BUILDS", [], Forms.VARIABLE)
# Reverse proxies whose X-Forwarded-For is believed; without them every request counts for its peer.
TRUSTED_PROXIES = env_networks("STEROIDS_TRUSTED_PROXIES")
# The web server listens on loopback only: whoever reaches it by another name comes through a proxy.
BEHIND_PROXY = is_behind_proxy(ALLOWED_HOSTS, CSRF_TRUSTED_ORIGINS, TRUSTED_PROXIES)
# The operator's own prices of models, asked before agents/prices.yaml; the file need not be there.
PRICES = Path(env_str("STEROIDS_PRICES", str(HOME / "prices.yaml")))
# Requests with this token may read /metrics; if it is empty, only this machine may.
METRICS_TOKEN = env_str("STEROIDS_METRICS_TOKEN", "", Forms.SECRET)
# Schemes git may use. `file` covers repositories on this machine.
GIT_PROTOCOLS = env_list("STEROIDS_GIT_PROTOCOLS", ["https", "ssh", "file"], Forms.PROTOCOL)

# Every duration in seconds is multiplied by TIME_SCALE; the tests run at a twentieth.
TIME_SCALE = env_number("STEROIDS_TIME_SCALE", 1.0, minimum=0.001, maximum=1.0)
DURATIONS = {
    name: env_number(f"STEROIDS_{name.upper()}", default, minimum=0.01) * TIME_SCALE
    for name, default in {
        "loop": 1.0,  # the resident loop looks at its runs this often, rung or not
        "reap": 5.0,  # and looks this often for leases that are over, and for branches that nobody works on
        "beat": 10.0,  # it prolongs the leases of its runs
        "lease": 60.0,  # a run whose lease is older is lost
        "pull_lease": 180.0,  # the same for the run of an agent elsewhere
        "abandon": 900.0,  # a host that is silent for so long is not waited for; its work is done again
        "orphan": 45.0,  # a shim that saw no lease for so long ends its agent
        "silence": 900.0,  # no output
        "wall": 7200.0,  # one run in all
        "command": 600.0,  # one build or test command
        "check": 300.0,  # trying an agent
        "trial": 3600.0,  # one command that is tried on the untouched target branch
        "base_poll": 60.0,  # how often a branch that is not fit is looked at
        "base_retry": 900.0,  # one that cannot be built and tested here is tried again
        "grace": 10.0,  # between TERM and KILL
        "closing": 10.0,  # after the hand-in
        "starting": 60.0,  # a claimed run that never wrote its pid
        "backoff_first": 2.0,  # a run without result; doubles
        "backoff_max": 600.0,
        "away": 3600.0,  # nobody waits for a reviewer whose account is in trouble for longer
        "remote_retry": 1.0,  # a remote that failed; a third longer each time, the first time too
        "landing_claim": 180.0,
        "git_network": 120.0,
        "fresh": 2.0,  # what is known of a remote's branch is good for so long; a push asks it anyway
        "api_server_idle": 60.0,
        "idle": 60.0,  # --until-idle waits for what is due within
        "stuck": 600.0,  # what was to be done longer ago is a finding of `manage.py doctor`
        "watchdog": 150.0,  # no tick from the cluster for so long: restart it
        "records": 30.0,  # records are written, and a followed TODO.md is looked at, at most so often
        "meter": 1.0,  # how often a live run's output is read for what it costs
        "output_copy": 2.0,  # how often the log of a live run is copied into its rows
    }.items()
}
# How many days these are kept; 0 is for ever. Events, reviews and rulings are always kept.
KEEP_DAYS = {
    name: env_number(f"STEROIDS_KEEP_{name.upper()}_DAYS", default, maximum=36_500)
    for name, default in {
        "logs": 90.0,
        "prompts": 90.0,
        "bundles": 30.0,
        "run_folders": 7.0,
        "caches": 30.0,
    }.items()  # fmt: skip
}
OUTPUT_MAX_BYTES = env_int("STEROIDS_OUTPUT_MAX_BYTES", 16 * 1024 * 1024, minimum=1024)
# Whether runs are in a sandbox: required, wanted (if it works) or off. docs/safety.md explains each.
SANDBOX = env_choice("STEROIDS_SANDBOX", "wanted", ("required", "wanted", "off"))
# What runs may read on this host besides the system and the toolchains that were found.
SANDBOX_PATHS = env_paths("STEROIDS_SANDBOX_PATHS")
# Hosts that every run may reach from its sandbox, even private ones, such as a package index of your own.
SANDBOX_HOSTS = env_list("STEROIDS_SANDBOX_HOSTS", [], Forms.HOST)
# What one run may use of its host.
RUN_PROCESSES_MAX = env_int("STEROIDS_RUN_PROCESSES_MAX", 1000, minimum=10)
RUN_MEMORY_MAX_BYTES = env_int("STEROIDS_RUN_MEMORY_MAX_BYTES", 8 * 1024**3, minimum=64 * 1024**2)
RUN_DISK_MAX_BYTES = env_int("STEROIDS_RUN_DISK_MAX_BYTES", 10 * 1024**3, minimum=1024**2)
RUN_FILES_MAX = env_int("STEROIDS_RUN_FILES_MAX", 500_000, minimum=1000)
EMPTY_RUNS_MAX = env_int("STEROIDS_EMPTY_RUNS_MAX", 6, minimum=1)
LANDING_ATTEMPTS_MAX = env_int("STEROIDS_LANDING_ATTEMPTS_MAX", 14, minimum=1)

UNFOLD = navigation.UNFOLD

# --- Sign-in for teams: django-allauth, which is not even imported while both are off -------------------

MFA = env_choice("STEROIDS_MFA", "off", ("off", "allowed", "required"))
OIDC = single_sign_on()
if MFA != "off" or OIDC:
    sign_in_apps = ["allauth", "allauth.account"]
    sign_in_apps += (
        ["allauth.socialaccount", "allauth.socialaccount.providers.openid_connect"] if OIDC else []
    )
    sign_in_apps += ["allauth.mfa"] if MFA != "off" else []
    INSTALLED_APPS[INSTALLED_APPS.index("tasks") : INSTALLED_APPS.index("tasks")] = sign_in_apps
    after = MIDDLEWARE.index("django.contrib.messages.middleware.MessageMiddleware") + 1
    MIDDLEWARE[after:after] = ["allauth.account.middleware.AccountMiddleware"]
    MIDDLEWARE += ["steroidsweb.accounts.second_factor.required"] if MFA == "required" else []
    TEMPLATES[0]["OPTIONS"]["context_processors"].append("steroidsweb.accounts.adapters.frame")  # type: ignore[index]
    ACCOUNT_ADAPTER = "steroidsweb.accounts.adapters.Accounts"
    ACCOUNT_EMAIL_VERIFICATION = SOCIALACCOUNT_EMAIL_VERIFICATION = "none"
    ACCOUNT_UNIQUE_EMAIL = False
    ACCOUNT_RATE_LIMITS = False  # our own brake says how long to wait, and then keeps its word
    if MFA != "off":
        ACCOUNT_FORMS = {"reauthenticate": "steroidsweb.accounts.second_factor.PasswordAgainForm"}
    ACCOUNT_DEFAULT_HTTP_PROTOCOL = URL.partition(":")[0] or "http"
    SOCIALACCOUNT_ADAPTER = "steroidsweb.accounts.single_sign_on.SingleSignOn"
    SOCIALACCOUNT_LOGIN_ON_GET = True  # `form-action` would refuse a form that leads to another host
    SOCIALACCOUNT_OPENID_CONNECT_URL_PREFIX = ""
    SOCIALACCOUNT_PROVIDERS = {
        "openid_connect": {"OAUTH_PKCE_ENABLED": True, "APPS": OIDC.apps if OIDC else []}
    }
    MFA_ADAPTER = "steroidsweb.accounts.second_factor.SecondFactors"
    MFA_ALLOW_UNVERIFIED_EMAIL = True  # nobody makes an account here by themselves
    MFA_FORMS = {
        "activate_totp": "steroidsweb.accounts.second_factor.SetUpForm",
        "authenticate": "steroidsweb.accounts.second_factor.CodeForm",
        "reauthenticate": "steroidsweb.accounts.second_factor.CodeAgainForm",
    }
    MFA_TOTP_ISSUER = "Steroids Web"
    MFA_TOTP_PERIOD = 30  # seconds
    MFA_TOTP_TOLERANCE = 1  # periods before and after
