from django.apps import AppConfig


class SiteConfig(AppConfig):
    name = "steroidsweb"
    verbose_name = "Steroids Web"

    def ready(self) -> None:
        from steroidsweb import checks  # noqa: F401  (registers the system checks)
