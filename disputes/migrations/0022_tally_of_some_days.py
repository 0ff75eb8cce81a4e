from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("disputes", "0021_marks_of_tallies")]

    operations = [
        migrations.AlterField(
            model_name="tally",
            name="span",
            field=models.PositiveSmallIntegerField(default=1, help_text="How many days."),
        ),
        migrations.AddConstraint(
            model_name="tally",
            constraint=models.CheckConstraint(condition=Q(span__gte=1), name="tally_of_some_days"),
        ),
    ]
