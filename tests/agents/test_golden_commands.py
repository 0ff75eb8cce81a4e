"""The designs' examples word for word: the `steroids` command against the real server.

tests/data/golden holds one dialogue per file: `who$ steroids ...`, and below it what the command says, on
stdout and then on stderr. With STEROIDS_WRITE_GOLDEN=1 the dialogues are written anew; read them before you
commit them.
"""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents.models import Run, new_token, token_hash
from disputes import opening
from disputes.models import Conflict, Dispute
from disputes.protocol.rulings.synthesis import Synthesis
from tasks.models import Project, Submission, Task
from tests.agents.command import called
from tests.factories import (
    BASE,
    create_agent,
    create_finding,
    create_project,
    create_review,
    create_run,
    create_section,
    create_submission,
    create_task,
    create_token,
    sha,
)

GOLDEN = Path(__file__).resolve().parents[1] / "data" / "golden"
PROMPT = re.compile(r"^(?P<who>[a-z]+)\$ steroids (?P<words>.+)$")
TIME = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00| UTC)"
    r"|\d{1,2} [A-Z][a-z]{2} \d{4} at \d\d:\d\d UTC"  # as pages say it
    r"|\d\d:\d\d \(\d+ [sm]\)"  # or a while ago
)
COMMIT = sha("c")
JWT = "JWT tokens are stateless and scale better."
COOKIES = "Session cookies are more secure."

RESPONSE = """\
| Issue | Status | What was done |
|---|---|---|
| ISSUE-R1-002 | addressed | The limit has a name. |

## DISAGREE: ISSUE-R1-001

**Reviewer Concern:**
> Failed calls are retried at once

**Rationale:** The server asks for it.
"""
REVIEW = """\
## Verdict

NEEDS_REVISION

- [MUST] src/calls.py:12 Failed calls are retried at once
- [SHOULD] Name the limit
"""


class Desk:
    """A folder that holds a git repository, and who calls the command from there."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        self.repository = folder / "repository"
        self.repository.mkdir()
        self.callers: dict[str, dict[str, str]] = {}

    def seat_person(self, name: str, user: User) -> None:
        """A personal token in a file."""
        path = self.folder / f"{name}.token"
        path.write_text(create_token(user, "laptop")[1] + "\n")
        self.callers[name] = {"STEROIDS_URL": self.url, "STEROIDS_TOKEN_FILE": str(path)}

    def seat_run(self, name: str, task: Task, role: str = "coder") -> Run:
        """A live run and its context, as its host writes it."""
        secret = new_token()
        last = task.last_submission()
        run = create_run(
            task,
            role,
            agent=create_agent(role, name=f"{role}-{Run.objects.count() + 1}"),
            agent_label=f"{role}-1 (claude-{'opus' if role == 'reviewer' else 'sonnet'}-4)",
            base_sha=BASE,
            sha=last.sha if last and role == "reviewer" else "",
            token_hash=token_hash(secret),
            spent_hash=token_hash(secret),
        )
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps({"url": self.url, "token": secret, "task": task.ref}))
        self.callers[name] = {"STEROIDS_CONTEXT": str(path)}
        return run

    def commit(self) -> None:
        """The same commit, and so the same name, wherever the tests run."""
        (self.repository / "calls.py").write_text("def call(): ...\n")
        for words in (["init", "-q"], ["add", "calls.py"], ["commit", "-q", "-m", "Wait between tries"]):
            self.git(*words)

    def git(self, *words: str) -> None:
        who = {"NAME": "Coder", "EMAIL": "coder@example.org", "DATE": "2026-01-02T03:04:05+00:00"}
        roles = ("AUTHOR", "COMMITTER")
        env = {f"GIT_{role}_{name}": value for role in roles for name, value in who.items()}
        env |= {"PATH": os.environ["PATH"], "HOME": str(self.folder), "GIT_CONFIG_NOSYSTEM": "1"}
        subprocess.run(["git", *words], cwd=self.repository, env=env, check=True, capture_output=True)

    def call(self, who: str, words: str) -> str:
        """What the command says; an exit code that is not 0 is named."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), **self.callers[who]}
        done = called(shlex.split(words), self.repository, environment)
        said = TIME.sub("<time>", done.stdout + done.stderr)
        return said + (f"[exit {done.returncode}]\n" if done.returncode else "")

    def play(self, dialogue: str) -> str:
        """The dialogue with what the command says now."""
        lines = []
        for line in dialogue.splitlines():
            if prompt := PROMPT.match(line):
                lines.append(f"{line}\n{self.call(prompt['who'], prompt['words'])}")
        return "\n".join(lines)


@pytest.fixture
def desk(tmp_path: Path, live_server: Any, lea: User, tom: User, vera: User) -> Desk:
    """Lea, Tom and Vera have a token."""
    made = Desk(tmp_path, live_server.url)
    for name, user in (("lea", lea), ("tom", tom), ("vera", vera)):
        made.seat_person(name, user)
    return made


@pytest.fixture
def web(lea: User, tom: User, vera: User) -> Project:
    members = {lea: "maintainer", tom: "triager", vera: "viewer"}
    project = create_project("web", name="Web shop", members=members)
    create_section(project, "Login")
    return project


# --- What there is, before each dialogue ------------------------------------------------------------------


def create_login(project: Project, **kwargs: Any) -> Task:
    """The task of the designs' examples."""
    kwargs = {"number": 1, "title": "Fix login bug", "source": "docs/SPEC.md#login"} | kwargs
    return create_task(project, **kwargs)


def create_reviewable(project: Project, **kwargs: Any) -> Task:
    task = create_login(project, **{"status": "review", "round": 1} | kwargs)
    create_submission(task, sha=COMMIT)
    return task


def open_dispute(task: Task, days: int = 0, **kwargs: Any) -> Conflict:
    kwargs = {
        "kind": "disagreement",
        "origin": "cli",
        "opened_as": "reviewer",
        "question": f"{task.title}: which way?",
        "reason": "architecture_disagreement",
        "submission": task.last_submission(),
        "reviewer_position": COOKIES,
        "reviewer_label": "reviewer-1 (claude-opus-4)",
        "coder_position": JWT,
        "coder_label": "coder-1 (claude-sonnet-4)",
    } | kwargs
    conflict = opening.open_conflict(task, **kwargs)
    opened = timezone.now() - timedelta(days=days, hours=1)
    Dispute.objects.filter(pk=conflict.dispute_id).update(opened_at=opened)
    return conflict


def create_disputed(project: Project, number: int, title: str, **kwargs: Any) -> Task:
    task = create_task(project, number=number, title=title, status="disputed", round=1, **kwargs)
    create_review(create_submission(task, sha=COMMIT), verdict="APPROVED")
    return task


def tasks(desk: Desk, web: Project) -> None:
    login = create_login(web, status="in_progress", round=2, severity="high", body="Sessions end\ntoo early.")
    review = create_review(create_submission(login, round=1))
    create_finding(review, code="ISSUE-R1-001")
    create_finding(review, code="ISSUE-R1-002", severity="low", mandatory=False, title="Name the limit")
    create_task(web, number=2, title="Add caching layer", status="review", round=1)
    create_task(web, number=3, title="Add OAuth")


def update(desk: Desk, web: Project) -> None:
    desk.commit()
    desk.seat_run("coder", create_login(web, status="in_progress", round=1))


def answers(desk: Desk, web: Project) -> None:
    desk.commit()
    task = create_login(web, status="in_progress", round=2)
    review = create_review(create_submission(task, round=1), by_agent="reviewer-1 (claude-opus-4)")
    create_finding(review, code="ISSUE-R1-001")
    create_finding(review, code="ISSUE-R1-002", title="Name the limit")
    (desk.repository / "response.md").write_text(RESPONSE)
    (desk.repository / "broken.md").write_text(RESPONSE.replace("**Rationale:**", "**Because:**"))
    desk.seat_run("coder", task)


def status(desk: Desk, web: Project) -> None:
    create_login(web)
    create_task(web, number=2, title="Add caching layer")


def approve(desk: Desk, web: Project) -> None:
    desk.seat_run("reviewer", create_reviewable(web), "reviewer")


def reject(desk: Desk, web: Project) -> None:
    (desk.repository / "review.md").write_text(REVIEW)
    for number, name in ((1, "reviewer"), (2, "other")):
        desk.seat_run(name, create_reviewable(web, number=number), "reviewer")


def create(desk: Desk, web: Project) -> None:
    desk.seat_run("reviewer", create_reviewable(web, number=1), "reviewer")
    desk.seat_run("coder", create_reviewable(web, number=2, status="in_progress", round=2))
    desk.seat_run("other", create_reviewable(web, number=3), "reviewer")


def log(desk: Desk, web: Project) -> None:
    desk.seat_run("coder", create_login(web, status="in_progress", round=1))


def disputes(desk: Desk, web: Project) -> None:
    """The two of the designs: one open, one resolved."""
    open_dispute(create_disputed(web, 1, "Fix login bug"))
    caching = open_dispute(
        create_disputed(web, 2, "Add caching layer"),
        reason="specification_ambiguity",
        reviewer_position="A cache in the process will do.",
        coder_position="Redis serves all processes.",
    )
    desk.call(
        "lea", f"dispute resolve {caching.ref} --decision coder --notes 'Redis is right for our scale.'"
    )


def stale(desk: Desk, web: Project) -> None:
    open_dispute(create_disputed(web, 1, "Fix login bug"), days=12)
    open_dispute(create_disputed(web, 2, "Add OAuth"), days=9)
    open_dispute(create_disputed(web, 3, "Add caching layer"), days=6)


def resolve(desk: Desk, web: Project) -> None:
    for number, title in ((1, "Fix login bug"), (2, "Add caching layer"), (3, "Add OAuth")):
        open_dispute(create_disputed(web, number, title))
    desk.seat_run("coder", Task.objects.get(number=1))


def several(desk: Desk, web: Project) -> None:
    for number in (1, 2):
        task = create_disputed(web, number, "Fix login bug")
        review = Submission.objects.get(task=task).reviews.get()
        finding = create_finding(review, code="ISSUE-R1-001")
        open_dispute(task, finding=finding, question=finding.title)
        open_dispute(task)


def present(desk: Desk, web: Project) -> None:
    """The examples of the design: declined openly with a middle ground, silently, and a card for hands."""
    task = create_disputed(web, 1, "Retry calls")
    finding = create_finding(Submission.objects.get(task=task).reviews.get(), code="ISSUE-R1-001")
    conflict = open_dispute(
        task,
        finding=finding,
        question=finding.title,
        origin="disagree",
        reviewer_position="Implement 1s, 2s, 4s delays between retries.",
        coder_position="Keep instant retries.\n\n- Files answer at once.\n- Delays only slow the work.",
        coder_rationale="The target is the local disk, and a pause adds complexity.",
        alternative="A note for remote calls.",
    )
    middle = Synthesis(
        "Instant for files, with a pause for servers.", "Two ways to document.", covers_both=True
    )
    conflict.propose(middle, "complexity")
    other = create_disputed(web, 2, "Read settings")
    review = Submission.objects.get(task=other).reviews.get()
    finding = create_finding(
        review, code="ISSUE-R1-001", severity="critical", title="Unknown fields are let through",
        impact="Data is lost silently.", suggestion="Fail on unexpected keys.",
    )  # fmt: skip
    open_dispute(
        other,
        finding=finding,
        question=finding.title,
        origin="converted",
        opened_as="system",
        reviewer_position=finding.suggestion,
        coder_position="",
        evidence=["No reference to ISSUE-R1-001 in round 2.", "The section is unchanged."],
    )
    opening.stop_for_help(
        create_task(web, number=3, title="Deploy", status="in_progress", round=1),
        "blocked", "Deploy: who has the key?", detail="The vault is closed.\n### Conflict: none",
    )  # fmt: skip


def cards(desk: Desk, web: Project) -> None:
    """A finding without an answer, and a coder that declines too much: the other kinds of cards."""
    for number in (1, 2):
        task = create_disputed(web, number, "Retry calls", severity="high")
        finding = create_finding(Submission.objects.get(task=task).reviews.get(), code="ISSUE-R1-001")
        open_dispute(
            task, kind="silence", origin="flagged", opened_as="system", finding=finding, effect="hold",
            question=finding.title, reviewer_position="", coder_position="", evidence=["Nothing was said."],
        )  # fmt: skip
    open_dispute(
        create_disputed(web, 3, "Add OAuth"), kind="alert", origin="rate", opened_as="system", effect="hold",
        question="The coder declines too much", severity="high", reviewer_position="", coder_position="",
    )  # fmt: skip


def words(desk: Desk, web: Project) -> None:
    """Comments, blocked, who am I."""
    desk.seat_run("coder", create_login(web, status="in_progress", round=1))


def unanswered(desk: Desk, web: Project) -> None:
    answers(desk, web)


def projects(desk: Desk, web: Project) -> None:
    """Two of Lea's, one of which waits for its repository; a third is nobody's here."""
    Project.objects.filter(pk=web.pk).update(repo_url="https://bot:hunter2@example.org/web.git")
    create_login(web, status="in_progress", round=1)
    create_task(web, number=2, title="Add caching layer")
    till = create_project("till", members={User.objects.get(username="lea"): "maintainer"}, status="paused")
    Project.objects.filter(pk=till.pk).update(repo_url="git@example.org:till.git", trouble="no route to host")
    create_project("secret")


SCENES: dict[str, Callable[[Desk, Project], None]] = {
    "tasks": tasks,
    "update": update,
    "answers": answers,
    "unanswered": unanswered,
    "status": status,
    "approve": approve,
    "reject": reject,
    "create": create,
    "log": log,
    "disputes": disputes,
    "stale": stale,
    "resolve": resolve,
    "projects": projects,
    "several": several,
    "present": present,
    "cards": cards,
    "words": words,
}


# Numbers begin at 1 in every dialogue, and the server's threads see the rows.
@pytest.mark.django_db(transaction=True, reset_sequences=True)
@pytest.mark.parametrize("name", sorted(SCENES))
def test_the_command_says_what_the_designs_say(desk: Desk, web: Project, name: str) -> None:
    SCENES[name](desk, web)
    path = GOLDEN / f"{name}.txt"
    dialogue = path.read_text()
    said = desk.play(dialogue)
    if os.environ.get("STEROIDS_WRITE_GOLDEN"):
        path.write_text(said)
    assert said == dialogue


@pytest.mark.django_db(transaction=True, reset_sequences=True)
def test_no_column_of_the_findings_is_empty(desk: Desk, web: Project) -> None:
    tasks(desk, web)
    heading, first, *_ = desk.call("lea", "tasks show web-1").partition("Findings:\n")[2].splitlines()
    assert heading.split() == ["CODE", "SEVERITY", "TITLE"]
    assert "-" not in first.split()


@pytest.mark.django_db(transaction=True, reset_sequences=True)
def test_a_position_is_shown_with_its_rationale(desk: Desk, web: Project) -> None:
    open_dispute(create_disputed(web, 1, "Fix login bug"), coder_rationale="The spec says 'stateless'.")
    assert "The spec says 'stateless'." in desk.call("lea", "dispute show D-1")


def test_every_dialogue_is_played() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(SCENES)


def test_the_tables_are_those_of_the_designs() -> None:
    disputes, stale = ((GOLDEN / f"{name}.txt").read_text() for name in ("disputes", "stale"))
    assert re.search(r"^ID +TASK +STATUS +REASON$", disputes, re.MULTILINE)
    assert re.search(r"^D-1 +Fix login bug +open +architecture$", disputes, re.MULTILINE)
    assert re.search(r"^D-2 +Add caching layer +resolved +specification$", disputes, re.MULTILINE)
    assert "\nWARNING: 2 disputes have been open for > 7 days\n\n" in stale
    assert re.search(r"^ID +TASK +DAYS OPEN$", stale, re.MULTILINE)
    assert "\n\nRun `steroids dispute show <id>` for details.\n" in stale
