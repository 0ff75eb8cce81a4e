import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("disputes", "0011_raise_a_cap"),
        ("tasks", "0012_comment_sends"),
    ]

    operations = [
        migrations.AddField(
            model_name="conflict",
            name="thread",
            field=models.ForeignKey(
                blank=True,
                help_text="The comment that began it, where two stages disagree.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="conflicts",
                to="tasks.comment",
            ),
        ),
    ]
