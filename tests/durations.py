"""Durations of the program under test: a twentieth, but hung work gets the time of a loaded machine.

Nor is anything looked at twenty times as often: the bell wakes the loop, and to look costs processor time.
"""

SCALE = 0.05
LIMITS = {  # seconds
    "lease": 60,
    "orphan": 45,
    "silence": 300,
    "command": 300,
    "closing": 10,
    "starting": 30,
    "git_network": 120,
    "trial": 300,
    "watchdog": 60,
    "stuck": 600,
    "api_server_idle": 30,
    "loop": 0.5,
    "reap": 1,
    "meter": 0.5,
    "output_copy": 0.5,
}
ENVIRONMENT = {"STEROIDS_TIME_SCALE": str(SCALE)} | {
    f"STEROIDS_{name.upper()}": f"{seconds / SCALE:g}" for name, seconds in LIMITS.items()
}
