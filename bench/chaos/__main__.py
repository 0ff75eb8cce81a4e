"""Faults, one after the other, in the middle of real work: is anything lost, doubled or stuck?

    python -m bench.chaos [--seed N] [--tasks 3] [--only NAME ...] [--on sqlite|servers] [--json FILE]
    python -m bench.chaos --planted [--only WORDS]
    [--empty FILE]: an SQLite database with every table and no row, to begin with instead of migrating

Each fault strikes while a batch of tasks is under way in one long-lived installation with real processes,
real git and real HTTP; first with SQLite, then with PostgreSQL and Redis of its own. The seed decides the
order, the moments and the victims, but how the processes then interleave is up to the machine. The exit
status is 1 if anything was found. docs/chaos.md explains the table.
"""

import argparse
import os
import secrets
import signal
import sys
import tempfile


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, help="to repeat the schedule of an earlier run")
    parser.add_argument("--tasks", type=int, default=3, help="in a batch")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="only these faults")
    parser.add_argument("--on", choices=("sqlite", "servers"), help="only this database")
    parser.add_argument("--patience", type=float, default=60.0, help="seconds until work counts as stuck")
    parser.add_argument("--undisturbed", type=int, default=3, help="batches to compare with")
    parser.add_argument("--json", metavar="FILE", help="write what was measured")
    parser.add_argument("--planted", action="store_true", help="show that planted bugs are caught")
    parser.add_argument("--empty", metavar="FILE", help="an SQLite database with every table and no row")
    parser.add_argument("--keep", action="store_true", help="leave the folder where something was found")
    options = parser.parse_args()
    options.seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))  # whatever was begun is ended
    with tempfile.TemporaryDirectory(prefix="steroids-chaos-") as home:
        os.environ |= {
            "STEROIDS_HOME": home,
            "SECRET_KEY": "x" * 40,
            "DJANGO_SETTINGS_MODULE": "steroidsweb.settings",
        }
        import django

        django.setup()
        from bench.chaos import planted, schedule

        return planted.run(options.only, options.empty) if options.planted else schedule.run(options)


if __name__ == "__main__":
    sys.exit(main())
