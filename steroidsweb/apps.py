from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.contrib.admin.apps import SimpleAdminConfig
from django.contrib.admin.checks import check_admin_app, check_dependencies
from django.core.checks import CheckMessage, Tags, register
from django.urls import get_resolver


def check_pages(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """Run Django's check of the admins, which exist only once the URLs are loaded."""
    _ = get_resolver().url_patterns
    return list(check_admin_app(app_configs, **kwargs))


class PagesConfig(SimpleAdminConfig):
    """The admin in unfold's look, loaded with the URLs, since the loop and the commands do not need it."""

    default_site = "steroidsweb.admin_site.AdminSite"

    def ready(self) -> None:
        register(check_dependencies, Tags.admin)
        register(check_pages, Tags.admin)


class SiteConfig(AppConfig):
    default = True
    name = "steroidsweb"
    verbose_name = "Steroids Web"

    def ready(self) -> None:
        from steroidsweb import audit, checks, wiring  # noqa: F401  (two of them register what they hold)

        wiring.fill_slots()
        if settings.MFA != "off":
            from steroidsweb.accounts import second_factor  # noqa: F401  (writes into the audit)
