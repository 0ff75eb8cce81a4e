import re
from typing import Any

from django.db import migrations
from django.db.models import Q

KEYS = ("records_branch", "todo_branch")
NAME = r"(?!HEAD$|@$|-|refs/|/)(?!.*(\.\.|//|/\.|@\{|\.lock(/|$)))(?!\.)[^\x00-\x20\x7f~^:?*\[\\]+(?<![/.])"


def forget_what_is_no_branch(apps: Any, schema_editor: Any) -> None:
    """Take away names that git refuses, so never worked; settings that hold one are refused from now on."""
    Project = apps.get_model("tasks", "Project")
    named = Q(settings__has_key=KEYS[0]) | Q(settings__has_key=KEYS[1])
    for project in Project.objects.filter(named):
        kept = {
            key: value for key, value in project.settings.items()
            if key not in KEYS or not str(value).strip() or re.fullmatch(NAME, str(value).strip())
        }  # fmt: skip
        if kept != project.settings:
            Project.objects.filter(pk=project.pk).update(settings=kept)


class Migration(migrations.Migration):

    dependencies = [
        ('tasks', '0004_task_startable'),
    ]

    operations = [
        migrations.RunPython(forget_what_is_no_branch, migrations.RunPython.noop),
    ]
