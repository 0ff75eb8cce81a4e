from django.db import migrations

from tasks import append_only


def install(apps, schema_editor):
    append_only.install(schema_editor, "tasks_event")


def remove(apps, schema_editor):
    append_only.remove(schema_editor, "tasks_event")


class Migration(migrations.Migration):
    dependencies = [("tasks", "0001_first")]
    operations = [migrations.RunPython(install, remove)]
