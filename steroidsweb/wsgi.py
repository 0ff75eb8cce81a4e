"""The application that gunicorn serves."""

import os

from django.core.wsgi import get_wsgi_application

from steroidsweb.preloading import load_everything

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "steroidsweb.settings")
application = get_wsgi_application()
load_everything()
