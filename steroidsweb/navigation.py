"""The look of the admin, and its sidebar."""

from collections.abc import Callable
from typing import Any

from django.templatetags.static import static

MEMBER, SUPERUSER = "member", "superuser"  # who sees an entry; without either word, everybody does


def _item(title: str, icon: str, to: str, permission: str | None = MEMBER, **more: Any) -> dict[str, Any]:
    """Return an entry that leads to an address, or to a page of the admin by its view."""
    target = {"link": to} if to.startswith("/") else {"view": [f"admin:{to}"]}
    return {"title": title, "icon": icon, "permission": permission, **target, **more}


def _file(name: str) -> Callable[[Any], str]:
    """Return a function that gives the URL of a static file, which is known only once the program runs."""
    return lambda request: static(f"steroids/{name}")


# An entry has a link, or a view with its arguments, whose URL is known only once the program runs. One
# with an app is shown only if the app is installed.
GROUPS: list[dict[str, Any]] = [
    {
        "title": "Work",
        "items": [
            _item("Dashboard", "space_dashboard", "index", None),
            _item("Queue", "gavel", "/queue/", None, badge="queue"),
            _item("Board", "view_kanban", "/board/"),
            _item("Runs", "smart_toy", "/runs/", badge="runs"),
            _item("Insights", "insights", "/insights/"),
        ],
    },
    {
        "title": "Records",
        "separator": True,
        "items": [
            _item("Projects", "folder_open", "tasks_project_changelist"),
            _item("Sections", "segment", "tasks_section_changelist"),
            _item("Tasks", "task_alt", "tasks_task_changelist"),
            _item("Submissions", "commit", "tasks_submission_changelist"),
            _item("Reviews", "rate_review", "tasks_review_changelist"),
            _item("Findings", "flag", "tasks_finding_changelist"),
            _item("Disputes", "forum", "disputes_dispute_changelist"),
            _item("Decisions", "done_all", "disputes_decision_changelist"),
            _item("Precedents", "menu_book", "disputes_precedent_changelist"),
            _item("Amendments", "post_add", "disputes_amendment_changelist"),
            _item("Guidelines", "gavel", "disputes_guideline_changelist"),
            _item("On-call rota", "support_agent", "disputes_oncall_changelist"),
            _item("Flags", "hearing", "disputes_flag_changelist"),
            _item("Opinions", "balance", "disputes_opinion_changelist"),
            _item("Events", "history", "tasks_event_changelist"),
            _item("Prompt texts", "edit_note", "agents_prompttext_changelist"),
            _item("Agents", "groups", "agents_agent_changelist", SUPERUSER),
        ],
    },
    {
        "title": "System",
        "separator": True,
        "collapsible": True,
        "items": [
            _item("Hosts", "dns", "agents_host_changelist", SUPERUSER),
            _item("Users", "person", "auth_user_changelist", SUPERUSER),
            _item("Invitations", "person_add", "steroidsweb_invitation_changelist", SUPERUSER),
            _item(
                "Authenticators", "phonelink_lock", "mfa_authenticator_changelist", SUPERUSER,
                app="allauth.mfa",
            ),
            _item("Notifications", "notifications", "/notifications/", None),
            _item("Audit", "policy", "steroidsweb_auditentry_changelist", SUPERUSER),
            _item("Sessions", "devices", "/sessions/", None),
            _item("Tokens", "key", "agents_token_changelist", None),
            _item("REST API", "api", "/api/docs/", None),
            _item("Background jobs", "schedule", "", SUPERUSER, view=["admin:app_list", "django_q"]),
        ],
    },
]  # fmt: skip

SCRIPTS = ("htmx", "count", "select2", "focus", "icons", "scrolling", "sent", "printing", "telling")
UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Steroids Web",
    "SITE_HEADER": "Steroids Web",
    "SITE_SYMBOL": "balance",
    "SITE_URL": None,
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": _file("favicon.svg")}],
    "DASHBOARD_CALLBACK": "agents.web.dashboard.dashboard",
    "STYLES": [_file("colours.css"), _file("steroids.css"), _file("dashboard.css")],
    "SCRIPTS": [_file(f"{name}.js") for name in SCRIPTS],
    "LOGIN": {"form": "steroidsweb.accounts.sign_in.SignInForm"},
    "GLOBAL_CALLBACK": "steroidsweb.sidebar.no_inline_colours",
    "SIDEBAR": {
        "show_search": True,
        "command_search": True,
    },
}
