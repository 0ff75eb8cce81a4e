#!/usr/bin/env python
"""Django's command line for Steroids Web."""

import gc
import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "steroidsweb.settings")
    import django
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    gc.disable()  # what is loaded stays: to look for garbage in it takes a tenth of the start
    try:
        django.setup()  # here, so that what is wrong is said in a sentence
    except ImproperlyConfigured as error:
        sys.exit(f"Wrong settings: {error}")
    gc.freeze()
    gc.enable()
    from steroidsweb.earlier_version import refusal

    if refused := refusal():
        sys.exit(refused)
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
