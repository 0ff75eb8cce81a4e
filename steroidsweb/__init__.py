"""The site: settings, addresses, admin, API root, system checks."""

import sys

try:  # A newer SQLite than the one Python was linked against, where its wheel installs.
    import pysqlite3
except ImportError:
    pass
else:
    sys.modules["sqlite3"] = pysqlite3
    sys.modules["sqlite3.dbapi2"] = pysqlite3.dbapi2
