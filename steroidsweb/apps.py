from django.apps import AppConfig


class SiteConfig(AppConfig):
    name = "steroidsweb"
    verbose_name = "Steroids Web"

    def ready(self) -> None:
        from steroidsweb import checks, wiring  # noqa: F401  (checks registers the system checks)

        wiring.fill_slots()
