"""The admin's look and its sidebar."""

from typing import Any

from django.urls import reverse_lazy

MEMBER = "steroidsweb.sidebar.has_project"
SUPERUSER = "steroidsweb.sidebar.is_superuser"


def _item(title: str, icon: str, view: str, permission: str = MEMBER) -> dict[str, Any]:
    return {"title": title, "icon": icon, "link": reverse_lazy(f"admin:{view}"), "permission": permission}


GROUPS: list[dict[str, Any]] = [
    {
        "title": "Work",
        "items": [
            {"title": "Dashboard", "icon": "space_dashboard", "link": reverse_lazy("admin:index")},
            {
                "title": "Queue",
                "icon": "gavel",
                "link": "/queue/",
                "badge": "steroidsweb.sidebar.queue_badge",
                "badge_variant": "primary",
                "badge_style": "solid",
            },
            _item("Runs", "smart_toy", "agents_run_changelist"),
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
            _item("Hints", "hearing", "disputes_flag_changelist"),
            _item("Events", "history", "tasks_event_changelist"),
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
            {"title": "Tokens", "icon": "key", "link": reverse_lazy("admin:agents_token_changelist")},
            {
                "title": "Background jobs",
                "icon": "schedule",
                "link": reverse_lazy("admin:app_list", args=["django_q"]),
                "permission": SUPERUSER,
            },
        ],
    },
]

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Steroids Web",
    "SITE_HEADER": "Steroids Web",
    "SITE_SYMBOL": "balance",
    "SITE_URL": None,
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": "steroidsweb.sidebar.favicon"}],
    "DASHBOARD_CALLBACK": "agents.pages.dashboard.dashboard",
    "STYLES": ["steroidsweb.sidebar.steroids_css", "steroidsweb.sidebar.dashboard_css"],
    "SIDEBAR": {
        "show_search": True,
        "command_search": True,
        "navigation": "steroidsweb.sidebar.navigation",
    },
    "COLORS": {
        "primary": {
            "50": "oklch(97% .014 254.604)",
            "100": "oklch(93.2% .032 255.585)",
            "200": "oklch(88.2% .059 254.128)",
            "300": "oklch(80.9% .105 251.813)",
            "400": "oklch(70.7% .165 254.624)",
            "500": "oklch(62.3% .214 259.815)",
            "600": "oklch(54.6% .245 262.881)",
            "700": "oklch(48.8% .243 264.376)",
            "800": "oklch(42.4% .199 265.638)",
            "900": "oklch(37.9% .146 265.522)",
            "950": "oklch(28.2% .091 267.935)",
        },
    },
}
