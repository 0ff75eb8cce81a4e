from django.conf import settings
from django.db import migrations, models

from disputes import db_triggers
from tasks import append_only

AS_BEFORE = ("conflict_id", "option", "text", "rationale", "constraints_text", "expects_change", "user_id", "at")
FIXED = (*AS_BEFORE, "authority", "policy_set_by_id")
ONE_WAY = ("used_at", "revoked_at", "archived_by_id")


def guard(apps, schema_editor):
    """SQLite makes the table anew for a constraint, and its triggers go with the old one."""
    append_only.remove(schema_editor, "disputes_decision", verbs=("CHANGE",))
    append_only.install_fixed(schema_editor, "disputes_decision", FIXED, ONE_WAY)
    db_triggers.install(schema_editor)


def guard_as_before(apps, schema_editor):
    append_only.remove(schema_editor, "disputes_decision", verbs=("CHANGE",))
    append_only.install_fixed(schema_editor, "disputes_decision", AS_BEFORE, ONE_WAY)


def unguard(apps, schema_editor):
    db_triggers.remove(schema_editor)


class Migration(migrations.Migration):
    dependencies = [
        ("disputes", "0009_opinions"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunPython(migrations.RunPython.noop, guard_as_before),
        migrations.AddConstraint(
            model_name="decision",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("authority", "policy"), _negated=True),
                    models.Q(("policy_set_by__isnull", False), ("user__isnull", True)),
                    _connector="OR",
                ),
                name="decision_policy_is_somebodys",
            ),
        ),
        migrations.RunPython(guard, unguard),
    ]
