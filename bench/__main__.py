"""All figures in one go, within ten minutes on two cores: `python -m bench [--json] [--against CHECKOUT]`.

Each part says what it measures and what is wanted; see docs/performance.md. The machine has to be quiet. With
CHECKOUT, another version of the program is measured too, by the parts that can. The exit status is 1 if a
wanted figure was not reached; the last lines name it.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PARTS = {
    "loop": ["--tasks", "8", "--rounds", "5", "--parallel", "1", "4", "8"],
    "latency": ["--tasks", "15"],
    "turns": ["--tasks", "1", "30"],
    "intake": [],
    "cli": ["40"],
    "startup": [],
    "idle": ["--seconds", "25", "--agents", "10"],
    "races": ["--hand-ins", "600", "--clients", "16", "--races", "50"],
}
COMPARES = {"loop"}
SPEAKS_JSON = {"loop", "latency", "turns", "intake", "startup", "idle"}


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0], prog="python -m bench")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--against", metavar="CHECKOUT")
    parser.add_argument("--json", action="store_true", help="a document instead of tables")
    given = parser.parse_args()
    missed, found = [], {}
    for name in given.only:
        words = [sys.executable, str(ROOT / "bench" / f"{name}.py"), *PARTS[name]]
        words += ["--against", given.against] if given.against and name in COMPARES else []
        words += ["--json"] if given.json and name in SPEAKS_JSON else []
        begun = time.monotonic()
        if not given.json:
            print(f"\n--- {name}: {' '.join(PARTS[name])}", flush=True)
        done = subprocess.run(words, cwd=ROOT, text=True, stdout=subprocess.PIPE if given.json else None)
        missed += [name] if done.returncode else []
        if given.json:
            text = done.stdout.strip()
            found[name] = json.loads(text) if name in SPEAKS_JSON and text else text.splitlines()
        else:
            print(f"({time.monotonic() - begun:.0f} s)", flush=True)
    if given.json:
        print(json.dumps({"figures": found, "missed": missed}))
    else:
        print(f"\nNot reached: {', '.join(missed) or 'nothing'}.")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
