#!/usr/bin/env python
"""Django's command line for Steroids Web."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "steroidsweb.settings")
    import django
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        django.setup()  # here, so that what is wrong is said in a sentence
    except ImproperlyConfigured as error:
        sys.exit(f"Wrong settings: {error}")
    from steroidsweb.earlier_version import refusal

    if refused := refusal():
        sys.exit(refused)
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
