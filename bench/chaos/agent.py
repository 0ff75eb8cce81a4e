"""The coder and the reviewer of the work that is disturbed: `agent.py PROMPT FOLDER`.

The title of its task decides what the agent does, so that it is known how each task has to end. In FOLDER it
keeps a ledger of what the server acknowledged, one line of JSON each, whatever becomes of the rows.
"""

import fcntl
import http.client
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

THINKS = 0.3  # seconds
WISH = """### High Priority

- **ISSUE-R1-001**: Say it twice
  - **Location:** work/{ref}.txt:1
  - **Impact:** Once is not enough.

## Verdict: NEEDS_REVISION
"""
REFUSAL = """## DISAGREE: ISSUE-R1-001

**Reviewer Concern:**
> Say it twice

**Engineer Position:**
Once will do.

**Rationale:**
It is short.
"""
ANSWER = "Said twice.\n\n| ISSUE-R1-001 | addressed | done |\n"


class Work:
    """The work of one run."""

    def __init__(self, prompt: str, folder: Path) -> None:
        self.prompt, self.folder = prompt, folder
        context = json.loads(Path(os.environ["STEROIDS_CONTEXT"]).read_text())
        self.ref, self.run, self.role, self.token = (context[key] for key in ("task", "run", "role", "token"))
        titles = re.search(r"^# (?:Task|Review) [^:]*: (.*)$", prompt, re.MULTILINE)
        self.kind = titles[1].partition(" ")[0] if titles else ""

    def note(self, kind: str, **values: Any) -> None:
        """Append one line to the ledger, whole or not at all."""
        line = {"kind": kind, "task": self.ref, "run": self.run, "role": self.role, "at": time.monotonic()}
        ledger = os.open(self.folder / "ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(ledger, (json.dumps(line | values) + "\n").encode())
        os.close(ledger)

    def take_seat(self) -> Any:
        """Take a lock that ends with this process, and note if somebody else is at the same work."""
        seat = (self.folder / f"{self.ref}-{self.role}.seat").open("w")
        try:
            fcntl.flock(seat, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.note("twice")
        return seat

    def work(self) -> int:
        self.note("begun", token=self.token)
        # A process that an agent leaves behind, which must not outlive the run.
        subprocess.Popen(["sleep", "600"], start_new_session=True, stdout=subprocess.DEVNULL)
        return self.code() if self.role == "coder" else self.review()

    def code(self) -> int:
        is_asked = "ISSUE-R1-001" in self.prompt
        is_ruled = "Decided since your last run" in self.prompt
        declines = is_asked and self.kind in {"Disputed", "Ruled"} and not is_ruled
        lines = 2 if is_asked and not declines else 1
        file = Path("work", f"{self.ref}.txt")
        if not file.exists() or len(file.read_text().splitlines()) < lines:
            file.write_text("".join(f"{self.ref} {number}\n" for number in range(1, lines + 1)))
            git("add", "--all")
            git("commit", "--quiet", "--message", f"{self.ref} {lines}")
        time.sleep(THINKS)
        words = ["tasks", "update", "--status", "review"]
        if is_asked:
            response = Path(os.environ["TMPDIR"], "response.md")
            response.write_text(REFUSAL if declines else ANSWER)
            words += ["--response", str(response)]
        return self.say("submit", words, git("rev-parse", "HEAD"))

    def review(self) -> int:
        time.sleep(THINKS)
        there = Path("work", f"{self.ref}.txt").read_text().splitlines()
        sha = git("rev-parse", "HEAD")
        if self.kind == "Plain" or len(there) == 2 or self.is_settled():
            return self.say("approve", ["tasks", "approve", "--notes", "Fine."], sha)
        review = Path(os.environ["TMPDIR"], "review.md")
        review.write_text(WISH.format(ref=self.ref))
        return self.say("reject", ["tasks", "reject", "--file", str(review)], sha)

    def is_settled(self) -> bool:
        """Whether the reviewer is told that people have decided."""
        return "Do not raise again" in self.prompt or "points that a human has settled" in self.prompt

    def say(self, verb: str, words: list[str], sha: str) -> int:
        """Hand in with the command, or send it twice with one key if the first answer is to be lost."""
        if verb in {"submit", "approve"} and (self.folder / "lose-answers").exists():
            return self.say_twice(verb, sha)
        done = subprocess.run(["steroids", *words], capture_output=True, text=True, check=False)
        print(done.stdout, done.stderr, flush=True)
        self.note(verb if done.returncode == 0 else "refused", sha=sha, said=done.stderr[-300:])
        return done.returncode

    def say_twice(self, verb: str, sha: str) -> int:
        self.note("answer lost")
        key, body = f"{self.run}-{verb}", {"sha": sha} if verb == "submit" else {"notes": "Fine."}
        self.post(verb, body, key, reads=False)
        time.sleep(THINKS)
        status, said = self.post(verb, body, key)
        self.note(verb if status == 201 else "refused", sha=sha, said=f"{status} {said[:300]}")
        return 0 if status == 201 else 1

    def post(self, verb: str, body: Any, key: str, *, reads: bool = True) -> tuple[int, str]:
        """Send a request without the command; if not `reads`, send it and never see the answer."""
        context = json.loads(Path(os.environ["STEROIDS_CONTEXT"]).read_text())
        url = urlsplit(context["url"])
        connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=60)
        headers = {"Authorization": f"Bearer {context['token']}", "Content-Type": "application/json"}
        path = f"/api/v1/tasks/{self.ref}/{verb}/"
        connection.request("POST", path, json.dumps(body), headers | {"Idempotency-Key": key})
        if not reads:
            connection.close()
            return 0, ""
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")


def git(*words: str) -> str:
    done = subprocess.run(["git", *words], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def main() -> int:
    work = Work(Path(sys.argv[1]).read_text(), Path(sys.argv[2]))
    if not work.kind:
        print("READY")
        return 0
    seat = work.take_seat()
    try:
        return work.work()
    finally:
        seat.close()


if __name__ == "__main__":
    sys.exit(main())
