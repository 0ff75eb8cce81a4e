from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tasks", "0016_rebased_submission")]

    operations = [
        migrations.AddField(
            "answer",
            "place",
            models.CharField(
                blank=True,
                help_text="Where in the response it stands: a row, a block, a sentence.",
                max_length=20,
            ),
        ),
    ]
