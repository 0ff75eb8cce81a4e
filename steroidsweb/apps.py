from django.apps import AppConfig
from django.conf import settings


class SiteConfig(AppConfig):
    name = "steroidsweb"
    verbose_name = "Steroids Web"

    def ready(self) -> None:
        from steroidsweb import audit, checks, wiring  # noqa: F401  (two of them register what they hold)

        wiring.fill_slots()
        if settings.MFA != "off":
            from steroidsweb.accounts import second_factor  # noqa: F401  (writes into the audit)
