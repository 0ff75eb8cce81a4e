"""gunicorn's configuration for the door: it ends when nobody has renewed its lease for a while."""

import os
import signal
import threading
import time


def _lease_is_old() -> bool:
    try:
        with open(os.environ["STEROIDS_DOOR_LEASE"]) as file:
            renewed = float(file.read())
    except (OSError, ValueError):
        renewed = 0.0
    return time.clock_gettime(time.CLOCK_BOOTTIME) - renewed > float(os.environ["STEROIDS_DOOR_IDLE"])


def _watch() -> None:
    idle = float(os.environ["STEROIDS_DOOR_IDLE"])
    while True:
        time.sleep(min(idle, 5.0))
        if _lease_is_old():
            os.kill(os.getpid(), signal.SIGTERM)
            return


def when_ready(server: object) -> None:
    threading.Thread(target=_watch, name="door-lease", daemon=True).start()
