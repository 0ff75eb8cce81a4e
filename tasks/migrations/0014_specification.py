from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tasks", "0013_base_branch"),
    ]

    operations = [
        migrations.AddField(
            model_name="submission",
            name="specification",
            field=models.TextField(
                blank=True, help_text="What the task names as its source, as it is in this commit."
            ),
        ),
    ]
