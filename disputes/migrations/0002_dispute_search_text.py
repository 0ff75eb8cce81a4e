from typing import Any

from django.db import migrations, models

AT_ONCE = 500


def fill(apps: Any, schema_editor: Any) -> None:
    """For the disputes that are there already; the program writes those of others as it goes."""
    Dispute = apps.get_model("disputes", "Dispute")
    keys = list(Dispute.objects.order_by("pk").values_list("pk", flat=True))
    for start in range(0, len(keys), AT_ONCE):
        some = Dispute.objects.filter(pk__in=keys[start : start + AT_ONCE])
        rows = list(some.select_related("task").prefetch_related("conflicts__finding"))
        for dispute in rows:
            lines = [dispute.question, dispute.task.title if dispute.task else ""]
            for conflict in dispute.conflicts.all():
                lines.append(conflict.question)
                if conflict.finding:
                    lines += [conflict.finding.code, conflict.finding.path]
            dispute.search_text = "\n".join(dict.fromkeys(line.casefold() for line in lines if line))
        Dispute.objects.bulk_update(rows, ["search_text"])


class Migration(migrations.Migration):

    dependencies = [
        ('disputes', '0001_first'),
    ]

    operations = [
        migrations.AddField(
            model_name='dispute',
            name='search_text',
            field=models.TextField(blank=True, default='', editable=False, help_text='What a search of the queue reads.'),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
