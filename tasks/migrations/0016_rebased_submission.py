from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tasks", "0015_default_branch")]

    operations = [
        migrations.AddField(
            "submission",
            "rebased_from",
            models.CharField(
                blank=True,
                help_text="The commit that was handed in and approved, before its rebase.",
                max_length=64,
            ),
        ),
    ]
