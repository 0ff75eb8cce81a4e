"""`python -m tests.real_repositories [PART OF A NAME ...]` tries some packages, or all."""

import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django.setup()

from tests.real_repositories.running import main  # noqa: E402  the models need the line above

sys.exit(main(sys.argv[1:]))
