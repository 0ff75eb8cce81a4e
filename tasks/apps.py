from django.apps import AppConfig
from django.db.models import AutoField, BigAutoField
from django.db.models.signals import post_migrate, pre_migrate


class TasksConfig(AppConfig):
    name = "tasks"
    verbose_name = "Tasks"

    def ready(self) -> None:
        from tasks.database.triggers import install_triggers, remove_triggers
        from tasks.models.keys import KeyIn

        for field in (AutoField, BigAutoField):
            field.register_lookup(KeyIn)
        pre_migrate.connect(remove_triggers)
        post_migrate.connect(install_triggers)
