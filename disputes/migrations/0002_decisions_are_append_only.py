from django.db import migrations

from tasks import append_only

FIXED = ("conflict_id", "option", "text", "rationale", "constraints_text", "expects_change", "user_id", "at")
ONE_WAY = ("used_at", "revoked_at")


def install(apps, schema_editor):
    append_only.install_fixed(schema_editor, "disputes_decision", FIXED, ONE_WAY)


def remove(apps, schema_editor):
    append_only.remove(schema_editor, "disputes_decision", verbs=("CHANGE",))


class Migration(migrations.Migration):
    dependencies = [("disputes", "0001_first"), ("tasks", "0002_events_are_append_only")]
    operations = [migrations.RunPython(install, remove)]
