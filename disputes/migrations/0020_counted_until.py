import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Up to which day a project is counted is said in a table of its own, no longer by a sum of no days."""

    dependencies = [("disputes", "0019_only_proposals"), ("tasks", "0015_default_branch")]

    operations = [
        migrations.CreateModel(
            name="CountedUntil",
            fields=[
                (
                    "project",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="counted_until",
                        serialize=False,
                        to="tasks.project",
                    ),
                ),
                ("day", models.DateField(help_text="In UTC.")),
            ],
            options={"verbose_name_plural": "counted until"},
        ),
    ]
