"""The site: settings, URLs, admin, the root of the API, system checks."""

import sys

try:  # If its wheel is installed, it is a newer SQLite than the one that Python was linked against.
    import pysqlite3
except ImportError:
    pass
else:
    sys.modules["sqlite3"] = pysqlite3
    sys.modules["sqlite3.dbapi2"] = pysqlite3.dbapi2
