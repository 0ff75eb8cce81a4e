from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0006_pull_bundles"),
        ("disputes", "0011_raise_a_cap"),
        ("tasks", "0010_a_team"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("cost__isnull", False)),
                fields=["project", "cost"],
                name="run_cost_by_project",
            ),
        ),
    ]
