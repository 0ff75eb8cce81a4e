"""Install the four real commands below var/agents, from the package registry that npm is set up for.

`python -m tests.real_agents.install`; what is there already is not fetched again. Where a pinned version
can't be had, the newest one is taken, and said so.
"""

import json
import subprocess
import sys
import time

from tests.real_agents.commands import INSTALLED, ROOT

PINNED = {
    "@anthropic-ai/claude-code": "2.1.332",
    "@openai/codex": "0.171.0",
    "@google/gemini-cli": "0.61.0",
    "opencode-ai": "1.18.33",
}
FOLDER = ROOT / "var" / "agents"
QUIET = ("--no-audit", "--no-fund", "--loglevel=error")
TRIES = 3


def installed(package: str) -> str:
    """The version that is there; empty for none."""
    try:
        text = (FOLDER / "node_modules" / package / "package.json").read_text()
    except OSError:
        return ""
    return str(json.loads(text)["version"])


def install(*wanted: str) -> bool:
    """Whether npm could install these, tried a few times."""
    for left in reversed(range(TRIES)):
        done = subprocess.run(["npm", "install", "--prefix", str(FOLDER), *QUIET, *wanted], check=False)
        if done.returncode == 0:
            return True
        print(f"npm could not install {' '.join(wanted)} ({left} tries left)", file=sys.stderr)
        time.sleep(2 if left else 0)
    return False


def main() -> int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    missing = {package: pin for package, pin in PINNED.items() if installed(package) != pin}
    if missing and not install(*(f"{package}@{pin}" for package, pin in missing.items())):
        for package, pin in missing.items():
            if not install(f"{package}@{pin}") and not install(package):
                return 1
    # Runs in the sandbox have users of their own, and whoever installs may close files to all others.
    subprocess.run(["chmod", "-R", "go=u-w", str(FOLDER)], check=True)
    print(f"The real commands, in {INSTALLED.relative_to(ROOT)}:")
    for package, pin in PINNED.items():
        version = installed(package)
        print(f"  {package} {version}" + ("" if version == pin else f" (pinned: {pin})"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
