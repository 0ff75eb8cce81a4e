from django.apps import AppConfig


class SiteConfig(AppConfig):
    name = "steroidsweb"
    verbose_name = "Steroids Web"

    def ready(self) -> None:
        from steroidsweb import audit, checks, wiring  # noqa: F401  (two of them register what they hold)

        wiring.fill_slots()
