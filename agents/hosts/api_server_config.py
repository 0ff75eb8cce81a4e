"""gunicorn's configuration: threads for pages and hand-ins, no control socket in a home folder.

A host's API server ends when nobody has renewed its lease for a while.
"""

import os
import signal
import threading
import time

worker_class = "gthread"
threads = 4
preload_app = True
control_socket_disable = True
graceful_timeout = 5
timeout = 60
loglevel = "warning"
limit_request_line = 8190  # the most that gunicorn takes; what is longer gets a bare page of its own


def _lease_is_old() -> bool:
    try:
        with open(os.environ["STEROIDS_API_SERVER_LEASE"]) as file:
            renewed = float(file.read())
    except (OSError, ValueError):
        renewed = 0.0
    return time.clock_gettime(time.CLOCK_BOOTTIME) - renewed > float(os.environ["STEROIDS_API_SERVER_IDLE"])


def _watch() -> None:
    idle = float(os.environ["STEROIDS_API_SERVER_IDLE"])
    while True:
        time.sleep(min(idle, 5.0))
        if _lease_is_old():
            os.kill(os.getpid(), signal.SIGTERM)
            return


def when_ready(server: object) -> None:
    if "STEROIDS_API_SERVER_LEASE" in os.environ:
        threading.Thread(target=_watch, name="api-server-lease", daemon=True).start()
