from django.db import migrations

RENAMED = {"accepted_id": "accepted_submission", "landed_sha": "landed_commit"}


def rename(names, apps):
    Decision = apps.get_model("disputes", "Decision")
    for decision in Decision.objects.filter(before__isnull=False).only("before").iterator():
        decision.before = {names.get(name, name): value for name, value in decision.before.items()}
        decision.save(update_fields=["before"])


def forwards(apps, schema_editor):
    rename(RENAMED, apps)


def backwards(apps, schema_editor):
    rename({new: old for old, new in RENAMED.items()}, apps)


class Migration(migrations.Migration):
    """What undo puts back is stored under names of its own, not under those of the task's columns."""

    dependencies = [("disputes", "0015_rank_of_a_severity")]

    operations = [migrations.RunPython(forwards, backwards)]
