from django.db import migrations


def move_marks(apps, schema_editor):
    CountedUntil, Tally = apps.get_model("disputes", "CountedUntil"), apps.get_model("disputes", "Tally")
    marks = Tally.objects.filter(span=0)
    days = marks.order_by("day").values_list("project", "day")
    CountedUntil.objects.bulk_create(
        CountedUntil(project_id=project, day=day) for project, day in dict(days).items()
    )
    marks.delete()


class Migration(migrations.Migration):
    dependencies = [("disputes", "0020_counted_until")]

    operations = [migrations.RunPython(move_marks, migrations.RunPython.noop)]
