from django.db import migrations, models


def by_a_coder(apps, schema_editor):
    """That a disagreement is minor says its origin; coders are who log one."""
    apps.get_model("disputes", "Conflict").objects.filter(opened_as="minor").update(opened_as="coder")


class Migration(migrations.Migration):
    dependencies = [("disputes", "0022_tally_of_some_days")]

    operations = [
        migrations.RunPython(by_a_coder, migrations.RunPython.noop),
        migrations.AlterField(
            model_name="conflict",
            name="opened_as",
            field=models.CharField(
                choices=[
                    ("coder", "Coder"),
                    ("reviewer", "Reviewer"),
                    ("system", "System"),
                    ("human", "Human"),
                ],
                max_length=8,
            ),
        ),
    ]
