"""What the stub's model does with a task: shell commands, taken from the prompt alone.

The stub keeps nothing between two requests: each of them carries all that was said, so the next step is the
one after as many results as follow the prompt.
"""

import re
from collections.abc import Callable

from tests.real_agents.wires import Answer, Asked, Say, Shell

HEADING = re.compile(r"^# (?P<what>Task|Review) (?P<ref>[A-Za-z0-9._-]+-\d+): (?P<title>.*)$", re.MULTILINE)
LAST_WORDS = "That is done."

Script = Callable[[str], list[str]]


def work(prompt: str) -> list[str]:
    """A coder edits, commits and hands in; a reviewer reads and approves. Without a task: nothing."""
    found = HEADING.search(prompt)
    if not found:
        return []
    ref = found["ref"]
    if found["what"] == "Review":
        return ["git show --stat HEAD && cat hello.txt", f"steroids tasks approve {ref} --notes Fine."]
    return [*coding(ref), hand_in(ref)]


def coding(ref: str) -> list[str]:
    return [f"echo 'hello from {ref}' > hello.txt && git add -A && git commit -q -m 'feat: say hello'"]


def hand_in(ref: str) -> str:
    return (
        'printf "Said hello.\\n" > "$TMPDIR/response.md" && '
        f'steroids tasks update {ref} --status review --response "$TMPDIR/response.md"'
    )


def reject_once(prompt: str) -> list[str]:
    """The first review rejects with one finding; the coder answers it; the second review approves."""
    found = HEADING.search(prompt)
    if not found:
        return []
    ref = found["ref"]
    if found["what"] == "Review" and "Round 1." in prompt:
        review = (
            "### High Priority\\n\\n- **ISSUE-R1-001**: Say it louder\\n  - **Location:** hello.txt:1\\n\\n"
            "## Verdict: NEEDS_REVISION\\n"
        )
        file = '"$TMPDIR/review.md"'
        return [f"printf '{review}' > {file} && steroids tasks reject {ref} --file {file}"]
    if found["what"] == "Task" and "ISSUE-R1-001" in prompt:
        table = (
            "| Finding | Answer | What was done |\\n|---|---|---|\\n| ISSUE-R1-001 | addressed | Louder. |\\n"
        )
        file = '"$TMPDIR/response.md"'
        return [
            "echo 'HELLO' > hello.txt && git add -A && git commit -q -m 'fix: say it louder'",
            f"printf '{table}' > {file} && steroids tasks update {ref} --status review --response {file}",
        ]
    return work(prompt)


def nothing(prompt: str) -> list[str]:
    """Talks, and does nothing."""
    return []


def edits_only(prompt: str) -> list[str]:
    """Commits and ends without handing in."""
    return work(prompt)[:1]


def never_ends(prompt: str) -> list[str]:
    """A command that outlives every limit, with a child of its own."""
    return ["python3 -c 'import time; time.sleep(3600)' & python3 -c 'import time; time.sleep(3600)'"]


SCRIPTS: dict[str, Script] = {
    one.__name__: one for one in (work, reject_once, nothing, edits_only, never_ends)
}


def next_step(script: Script, asked: Asked) -> Answer:
    """What the model answers to all that was said so far."""
    users = [place for place, (who, _) in enumerate(asked.said) if who == "user"]
    prompts = [place for place in users if HEADING.search(asked.said[place][1])] or users[-1:]
    if not asked.tools or not prompts:
        return Say("A small task")
    steps = script(asked.said[prompts[-1]][1])
    done = sum(who == "tool" for who, _ in asked.said[prompts[-1] :])
    return Shell(steps[done], done + 1) if done < len(steps) else Say(LAST_WORDS)
