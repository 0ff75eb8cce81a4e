"""The project's settings as the tests run them: a folder of their own, every duration at a twentieth."""

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

from tests.durations import ENVIRONMENT


def _remove(folder: str, maker: int) -> None:
    if os.getpid() == maker:  # and not what a test forked from it
        shutil.rmtree(folder, ignore_errors=True)


if not os.environ.get("STEROIDS_TEST_HOME"):  # whoever makes the folder ends last
    os.environ["STEROIDS_TEST_HOME"] = tempfile.mkdtemp(prefix="steroids-tests-")
    atexit.register(_remove, os.environ["STEROIDS_TEST_HOME"], os.getpid())
_home = Path(os.environ["STEROIDS_TEST_HOME"])
_home /= os.environ.get("PYTEST_XDIST_WORKER", "main")  # two workers share no file
_home.mkdir(parents=True, exist_ok=True, mode=0o700)
os.environ["STEROIDS_HOME"] = str(_home)
# Python itself, and not a version manager's script that looks for it: that takes ten times as long each time.
os.environ["PATH"] = f"{sys.base_exec_prefix}/bin:{os.environ['PATH']}"
os.environ["SECRET_KEY"] = "only-for-tests-" + "x" * 40
os.environ.update(ENVIRONMENT)
os.environ["STEROIDS_HOST_NAME"] = "test-host"
os.environ["STEROIDS_SANDBOX"] = "off"  # what encloses is tried by tests of its own, and end to end
os.environ["STEROIDS_RUN_RATE"] = os.environ["STEROIDS_UNKNOWN_TOKEN_RATE"] = "10000/min"
os.environ.setdefault("LOG_LEVEL", "WARNING")

from steroidsweb.settings import *  # noqa: E402, F403
from steroidsweb.settings import DATABASES, INSTALLED_APPS  # noqa: E402

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
WHITENOISE_AUTOREFRESH = True  # every client of a test would list all files anew
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # A file, so that the processes which the tests start see the same rows.
    DATABASES["default"]["TEST"] = {"NAME": str(_home / "tests.sqlite3")}
if not os.environ.get("STEROIDS_TEST_BELL"):
    INSTALLED_APPS = [*INSTALLED_APPS, "tests.bell.Silence"]
