from django.db import migrations, models
from django.db.models import Q

# SQLite makes the table anew for a constraint, and refuses while a trigger of another one names it.
DROP = "DROP TRIGGER IF EXISTS disputes_decision_policy"
CREATE = """
CREATE TRIGGER disputes_decision_policy BEFORE INSERT ON disputes_decision
WHEN NEW.authority = 'policy'
    AND EXISTS (SELECT 1 FROM disputes_conflict WHERE id = NEW.conflict_id AND severity = 'critical')
BEGIN SELECT RAISE(ABORT, 'no policy rules on a critical conflict'); END
"""


def without_trigger(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute(DROP, params=None)


def with_trigger(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute(CREATE, params=None)


class Migration(migrations.Migration):
    """The columns of option C go; and what became of a ruling is said of decided conflicts only."""

    dependencies = [("disputes", "0018_proposals_of_conflicts")]

    operations = [
        migrations.RunPython(without_trigger, with_trigger),
        migrations.RemoveField("conflict", "synthesis"),
        migrations.RemoveField("conflict", "synthesis_by"),
        migrations.RemoveField("conflict", "synthesis_trade_off"),
        migrations.RemoveField("conflict", "synthesis_covers_both"),
        migrations.AddConstraint(
            "conflict",
            models.CheckConstraint(
                condition=Q(
                    status="decided",
                    followed__in=["waiting", "applied", "not_honoured", "cannot_tell", "reopened"],
                )
                | (~Q(status="decided") & Q(followed="")),
                name="conflict_followed_once_decided",
            ),
        ),
        migrations.RunPython(with_trigger, without_trigger),
    ]
