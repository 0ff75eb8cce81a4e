from django.db import migrations, models
from django.db.models import Case, Q, Value, When

OVER_ALL = ["-severity_rank", "-blocks", "opened_at", "id"]
INDEXES = [
    models.Index(fields=OVER_ALL, name="dispute_open_in_order", condition=Q(status="open")),
    models.Index(fields=OVER_ALL, name="dispute_ruled_in_order", condition=Q(status="ruled")),
    models.Index(fields=["project", *OVER_ALL], name="dispute_queue", condition=Q(status="open")),
    models.Index(fields=["project", *OVER_ALL], name="dispute_ruled", condition=Q(status="ruled")),
]


class Migration(migrations.Migration):
    """The database itself ranks a dispute by its severity, whoever writes that."""

    dependencies = [("disputes", "0014_drop_missed")]

    operations = [
        *(migrations.RemoveIndex("dispute", index.name) for index in INDEXES),
        migrations.RemoveField("dispute", "severity_rank"),
        migrations.AddField(
            "dispute",
            "severity_rank",
            models.GeneratedField(
                db_persist=True,
                expression=Case(
                    When(severity="critical", then=Value(3)),
                    When(severity="high", then=Value(2)),
                    When(severity="medium", then=Value(1)),
                    When(severity="low", then=Value(0)),
                    default=Value(1),
                ),
                output_field=models.PositiveSmallIntegerField(),
            ),
        ),
        *(migrations.AddIndex("dispute", index) for index in INDEXES),
    ]
