"""What gunicorn serves."""

import gc
import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

from tasks.text.regex import compile_all

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "steroidsweb.settings")
application = get_wsgi_application()

# With every page imported before they are forked, the workers share that memory.
list(get_resolver().url_patterns)
compile_all()
gc.freeze()
