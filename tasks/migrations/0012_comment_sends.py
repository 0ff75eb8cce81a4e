from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tasks", "0011_reviews_of_a_turn"),
    ]

    operations = [
        migrations.AddField(
            model_name="comment",
            name="sends",
            field=models.CharField(
                blank=True,
                choices=[("back", "Sent back"), ("forward", "Disagreed")],
                help_text="How the task moved with it.",
                max_length=7,
            ),
        ),
    ]
