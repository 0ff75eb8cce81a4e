#!/usr/bin/env python
"""Django's command line for Steroids Web."""

import gc
import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "steroidsweb.settings")
    if "DATABASE_URL_FILE" not in os.environ and "postgres" not in os.environ.get("DATABASE_URL", ""):
        sys.modules["psycopg"] = None  # type: ignore[assignment]  # else it is loaded for nothing: 9 MB
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
    from django.db import DatabaseError, InterfaceError, connection

    from steroidsweb.earlier_version import refusal
    from tasks.database.locking import is_damaged, is_passing, why_not

    if refused := refusal():
        sys.exit(refused)
    try:
        execute_from_command_line(sys.argv)
    except (DatabaseError, InterfaceError) as error:
        name, words = connection.settings_dict["NAME"], " ".join(str(error).split())
        if is_damaged(error):
            sys.exit(f"The database {name} is damaged: {words}. Move it away and restore a backup.")
        if not is_passing(error):
            raise
        sys.exit(f"The database {name} cannot do this at the moment: {why_not(error)}. {words}")


if __name__ == "__main__":
    main()
