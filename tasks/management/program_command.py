"""What all commands of `manage.py` of ours have in common."""

from django.core.management.base import BaseCommand


class ProgramCommand(BaseCommand):
    """Before it begins, the program's own checks are asked; Django's would load every page first."""

    requires_system_checks = ("steroids",)
