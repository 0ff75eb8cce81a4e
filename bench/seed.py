"""Fill an empty database with invented work of realistic size: what a busy team leaves behind in a year.

    DATABASE_URL=sqlite:////tmp/big.sqlite3 python bench/seed.py
    DATABASE_URL=postgres://user@host/big python bench/seed.py --disputes 1000 --events 10000

The same arguments make the same rows except for the times, which end at `--until` (today). Projects differ in
size: the first three have half of everything. A tenth of the disputes is open, and each project has a backlog
of the same size, so that the pages show equally much however many disputes there are. Two users can be signed
in: bench-root, a superuser, and bench-member, a triager of the three largest projects.
"""

import argparse
import json
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

ROOT_USER, MEMBER = "bench-root", "bench-member"
MEMBER_PROJECTS = 3
DAYS = 365
CHUNK = 2_000  # disputes in a transaction
PEOPLE, CODERS, REVIEWERS = 30, 6, 4
MODELS = ["small-1", "medium-2", "large-3", "other-4"]
SEVERITIES = ["critical", "high", "medium", "low"]
REASONS = [
    "architecture_disagreement", "specification_ambiguity", "guideline_conflict", "security_concern",
    "scope_disagreement", "other",
]  # fmt: skip
ANSWERS = ["addressed", "addressed", "partly", "silent"]
AREAS = ["claims", "invoices", "payments", "retries", "exports", "mail", "login", "search", "ledger", "sync"]
VERBS = ["retried", "locked", "cached", "parsed", "escaped", "logged", "sorted", "checked", "closed", "split"]
THINGS = ["row", "lease", "token", "batch", "request", "cursor", "amount", "header", "page", "event"]
FAULTS = [
    "without a pause", "outside the transaction", "before the status is compared", "twice after a crash",
    "although the list may be empty", "with the clock of the client", "and the error is swallowed",
]  # fmt: skip
SENTENCE = (
    "Where two workers ask at the same moment both may get it, because the status is read before the row "
    "is locked; compare and set instead, and let the loser look for the next one. "
)


def set_up() -> None:
    """Start Django on the database that DATABASE_URL names."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "steroidsweb.settings")
    os.environ.setdefault("SECRET_KEY", secrets.token_urlsafe(50))
    os.environ.setdefault("STEROIDS_HOME", tempfile.mkdtemp(prefix="steroids-bench-"))
    import django

    django.setup()


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--disputes", type=int, default=100_000)
    parser.add_argument("--events", type=int, default=0, help="default: ten for each dispute")
    parser.add_argument("--projects", type=int, default=20)
    parser.add_argument("--until", type=date.fromisoformat, default=datetime.now(UTC).date())
    parser.add_argument(
        "--if-empty", action="store_true", help="leave a database that holds projects as it is"
    )
    asked = parser.parse_args()
    if not os.environ.get("DATABASE_URL"):
        parser.error("DATABASE_URL names the database to fill; an empty one is needed.")
    set_up()
    from django.core.management import call_command

    from tasks.models import Project

    call_command("migrate", verbosity=0)
    if Project.objects.exists() and asked.if_empty:
        return 0
    if Project.objects.exists():
        print("This database holds projects already; nothing was written.", file=sys.stderr)
        return 1
    started = time.monotonic()
    fill(asked.disputes, asked.events or asked.disputes * 10, asked.projects, asked.until)
    print(f"{asked.disputes:,} disputes in {time.monotonic() - started:.0f} s")
    return 0


# --- Writing rows -----------------------------------------------------------------------------------------


class Table:
    """Rows of one model on their way into the database, in large batches and past the ORM."""

    def __init__(self, model: Any) -> None:
        from django.db import connection, models

        self.model, self.rows, self.numbers = model, [], count(1)
        fields = [field for field in model._meta.concrete_fields if not field.generated]
        self.columns = [field.column for field in fields]
        self.places = {field.attname: place for place, field in enumerate(fields)}
        self.json = {n for n, field in enumerate(fields) if isinstance(field, models.JSONField)}
        self.blank = [
            json.dumps(field.get_default())
            if n in self.json and field.has_default()
            else field.get_db_prep_save(field.get_default(), connection)
            for n, field in enumerate(fields)
        ]
        self.is_postgres = connection.vendor == "postgresql"

    def add(self, **values: Any) -> int:
        """Add a row and return its key; a column that is not named gets its default."""
        row = self.blank.copy()
        for name, value in values.items():
            place = self.places[name]
            if place in self.json:
                value = json.dumps(value)
            elif not self.is_postgres and isinstance(value, datetime):
                value = str(value.replace(tzinfo=None))
            row[place] = value
        key = values.get("id") or next(self.numbers)
        if "id" in self.places:
            row[self.places["id"]] = key
        self.rows.append(row)
        return key

    def write(self) -> None:
        from django.db import connection

        name = connection.ops.quote_name
        columns = ", ".join(map(name, self.columns))
        with connection.cursor() as cursor:
            if self.is_postgres:
                with cursor.copy(f"COPY {name(self.model._meta.db_table)} ({columns}) FROM STDIN") as copy:
                    for row in self.rows:
                        copy.write_row(row)
            else:
                marks = ", ".join(["%s"] * len(self.columns))
                into = f"INSERT INTO {name(self.model._meta.db_table)} ({columns}) VALUES ({marks})"
                cursor.executemany(into, self.rows)
        self.rows.clear()


def fill(disputes: int, events: int, projects: int, until: date) -> None:
    """Write everything, then bring sequences, statistics and daily sums up to date."""
    from django.core.management.color import no_style
    from django.db import connection, transaction

    year = Year(disputes, events, projects, until)
    for chunk in year.chunks():
        with transaction.atomic():
            for table in chunk:
                table.write()
    with connection.cursor() as cursor:
        for sql in connection.ops.sequence_reset_sql(no_style(), [table.model for table in year.tables]):
            cursor.execute(sql)
        cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")
    count_days()


def count_days() -> None:
    """Compute the daily sums of the insights page."""
    from disputes import tallies

    tallies.rebuild()


# --- A year of work ---------------------------------------------------------------------------------------


class Year:
    """Tasks, what was handed in and said about them, and what people ruled, oldest first."""

    def __init__(self, disputes: int, events: int, projects: int, until: date) -> None:
        from agents.models import Agent, Host, Output, Run
        from disputes.models import Conflict, Decision, Dispute, Flag, Follow
        from tasks.models import Answer, Comment, Event, Finding, Review, Submission, Task

        self.count, self.projects = disputes, projects
        self.events_each, self.events_left = max(events // disputes - 1, 1), events
        self.until = datetime(until.year, until.month, until.day, tzinfo=UTC)
        self.begin = self.until - timedelta(days=DAYS)
        self.chance = Random(disputes)
        self.weights = [1 / (n + 1) for n in range(projects)]
        self.task, self.submission, self.review = Table(Task), Table(Submission), Table(Review)
        self.finding, self.answer, self.comment = Table(Finding), Table(Answer), Table(Comment)
        self.dispute, self.conflict, self.decision = Table(Dispute), Table(Conflict), Table(Decision)
        self.flag, self.follow, self.event = Table(Flag), Table(Follow), Table(Event)
        self.run, self.output = Table(Run), Table(Output)
        self.agent, self.host = Table(Agent), Table(Host)
        self.tables = [table for table in vars(self).values() if isinstance(table, Table)]
        self.numbers = [count(1) for _ in range(projects)]

    def chunks(self) -> Iterator[list[Table]]:
        self._people_and_projects()
        self._agents()
        yield self.tables
        for number in range(self.count):
            self._disputed_task(number)
            if number % 5 == 0:
                self._quiet_task(number)
            if number % CHUNK == CHUNK - 1:
                yield self.tables
        self._live_runs()
        self._backlog()
        while self.events_left > 0:
            self._event(self.events_left % self.projects, None, "tick", self.until)
        yield self.tables

    # --- People, projects, agents ---

    def _people_and_projects(self) -> None:
        from django.contrib.auth.models import User

        from tasks.models import Membership, Project, Section

        self.user_ids = [
            User.objects.create(
                username=name, first_name=name.title(), is_staff=True, is_superuser=name == ROOT_USER,
                email=f"{name}@example.org",
            ).pk
            for name in [ROOT_USER, MEMBER, *(f"person-{n}" for n in range(1, PEOPLE + 1))]
        ]  # fmt: skip
        self.project_ids, self.section_ids, members = [], [], []
        for n in range(self.projects):
            slug = f"{AREAS[n % len(AREAS)]}{n // len(AREAS) or ''}"
            project = Project.objects.create(
                slug=slug, name=slug.capitalize(), repo_url=f"https://git.example.org/{slug}.git"
            )
            self.project_ids.append(project.pk)
            sections = [Section(project=project, title=f"Part {i + 1}", rank=i) for i in range(8)]
            self.section_ids.append([section.pk for section in Section.objects.bulk_create(sections)])
            people = {self.user_ids[2 + (n * 3 + i) % PEOPLE] for i in range(5)}
            people |= {self.user_ids[1]} if n < MEMBER_PROJECTS else set()
            members += [Membership(project=project, user_id=key, role="triager") for key in sorted(people)]
        Membership.objects.bulk_create(members)

    def _agents(self) -> None:
        self.host_id = self.host.add(name="bench-host", slots=16, seen_at=self.until)
        for role, number in (("coder", CODERS), ("reviewer", REVIEWERS)):
            for n in range(number):
                self.agent.add(
                    name=f"{role}-{n + 1}", role=role, provider="command", model=MODELS[n % len(MODELS)],
                    settings={"argv": ["true"]}, slots=4,
                )  # fmt: skip

    # --- Tasks ---

    def _quiet_task(self, number: int) -> None:
        """Add a task that nobody disputes: landed, under way, or not begun."""
        at = self._at(number)
        status = self.chance.choices(["completed", "pending", "review", "in_progress"], [80, 14, 3, 3])[0]
        project, task = self._task(at, status, rounds=1 if status in {"completed", "review"} else 0)
        if status in {"completed", "review"}:
            handed_in = self._submission(task, 1, at, "quiet")
            self._run(project, task, "coder", 1, at, submission_id=handed_in)
            if status == "completed":
                self._land(handed_in, at)
        self._events(project, task, at, 1)

    def _task(
        self, at: datetime, status: str, *, rounds: int, rejections: int = 0, project: int | None = None
    ) -> tuple[int, int]:
        """Add a task; return the index of its project and its key."""
        if project is None:
            project = self.chance.choices(range(self.projects), self.weights)[0]
        number = next(self.numbers[project])
        task = self.task.add(
            project_id=self.project_ids[project], section_id=self.chance.choice(self.section_ids[project]),
            number=number, rank=number * 1024, title=f"{self._claim()} ({number})", body=SENTENCE * 3,
            severity=self.chance.choice(SEVERITIES), status=status, round=rounds, rejections=rejections,
            created_at=at - timedelta(days=2), status_at=at, version=rounds * 4, stage="dev",
            origin="todo", finished_by="hand" if status == "completed" else "",
        )  # fmt: skip
        return project, task

    def _land(self, submission: int, at: datetime) -> None:
        """Mark the task that was added last as accepted and landed."""
        row, places = self.task.rows[-1], self.task.places
        landed_at = at + timedelta(hours=1)
        row[places["accepted_id"]] = submission
        row[places["landed_sha"]] = f"{submission:040x}"
        row[places["landed_at"]] = landed_at if self.task.is_postgres else str(landed_at.replace(tzinfo=None))

    def _disputed_task(self, number: int) -> None:
        """Add a task with a dispute and two rounds, or six in every tenth one that is still open."""
        at, chance = self._at(number), self.chance
        late = number > self.count * 0.8
        status = chance.choices(["open", "ruled", "closed"], [40, 20, 40] if late else [2.5, 2.5, 95])[0]
        is_rich = status == "open" and number % 10 == 0
        rounds = 6 if is_rich else 2
        task_status = {"open": "disputed", "ruled": "in_progress", "closed": "completed"}[status]
        project, task = self._task(at, task_status, rounds=rounds, rejections=chance.randrange(rounds + 2))
        severity = chance.choices(SEVERITIES, [3, 42, 40, 15])[0]
        coder, reviewer = chance.randrange(CODERS), chance.randrange(REVIEWERS)
        findings: list[int] = []
        submission = 0
        title = self._claim()
        for round_ in range(1, rounds + 1):
            then = at - timedelta(hours=(rounds - round_) * 3 + 2)
            submission = self._submission(task, round_, then, status, coder, chance.randrange(len(MODELS)))
            self._run(project, task, "coder", round_, then, submission_id=submission)
            review, raised = self._review(task, submission, round_, then, severity, title, reviewer, findings)
            self._run(project, task, "reviewer", round_, then + timedelta(minutes=20), review_id=review)
            for place, finding in enumerate(findings[-3:]):
                kind = "declined" if place == 0 and chance.random() < 0.6 else chance.choice(ANSWERS)
                self.answer.add(submission_id=submission, finding_id=finding, kind=kind, text=SENTENCE)
            findings += raised
        if status == "closed":
            self._land(submission, at)
        self._dispute(project, task, status, severity, title, at, findings, submission, coder, reviewer)
        self._events(project, task, at, 60 if is_rich else self.events_each)
        for n in range(20 if is_rich else number % 3 == 0):
            self.comment.add(
                project_id=self.project_ids[project], task_id=task, body=SENTENCE, by_label="Person",
                by_kind="person", by_user_id=chance.choice(self.user_ids), at=at + timedelta(minutes=n),
            )  # fmt: skip

    # --- Rounds ---

    def _submission(
        self, task: int, round_: int, at: datetime, status: str, coder: int = 0, model: int = 0
    ) -> int:
        number = next(self.submission.numbers)
        return self.submission.add(
            id=number, task_id=task, round=round_, attempt=1, sha=f"{number:040x}",
            base_sha=f"{number + 1:040x}", response=SENTENCE * 4, by_agent=f"coder-{coder + 1}",
            by_model=MODELS[model], state="verified", at=at, patch_id=f"{number:040x}",
            diff=_diff(120 if status in {"open", "ruled"} else 20),
            diff_stat={"files": [["src/jobs.py", 12, 4], ["tests/test_jobs.py", 30, 0]]},
        )  # fmt: skip

    def _review(
        self, task: int, submission: int, round_: int, at: datetime, severity: str, title: str,
        reviewer: int, before: list[int],
    ) -> tuple[int, list[int]]:  # fmt: skip
        """Add three findings; from the second round on, the first of them was raised before."""
        reviewed_at = at + timedelta(minutes=30)
        review = self.review.add(
            submission_id=submission, verdict="NEEDS_REVISION", text=SENTENCE * 6, at=reviewed_at,
            by_agent=f"reviewer-{reviewer + 1}", by_model=MODELS[reviewer],
        )  # fmt: skip
        raised = []
        for n in range(3):
            raised.append(
                self.finding.add(
                    review_id=review, task_id=task, ordinal=n + 1, round=round_,
                    code=f"ISSUE-R{round_}-{n + 1:03d}",
                    severity=severity if n == 0 else self.chance.choice(SEVERITIES),
                    mandatory=n < 2, title=title if n == 0 else self._claim(), path="src/jobs.py",
                    line=14 + n, impact=SENTENCE, suggestion=SENTENCE, text=SENTENCE * 3,
                    excerpt="".join(f"    line_{i} = claim(row, {i})\n" for i in range(15)),
                    excerpt_start=7, first_id=before[0] if before and n == 0 else None,
                )
            )  # fmt: skip
        return review, raised

    def _run(self, project: int, task: int, role: str, round_: int, at: datetime, **result: int) -> None:
        outcome = self.chance.choices(["handed_in", "nothing", "silent", "wall", "crash"], [90, 4, 2, 2, 2])
        number = next(self.run.numbers)
        if outcome[0] != "handed_in":  # one that came to nothing, before the one that handed in
            self._ended(number, project, task, role, round_, at - timedelta(minutes=40), outcome[0])
            number = next(self.run.numbers)
        self._ended(number, project, task, role, round_, at, "handed_in", **result)
        if number % 10 == 0:
            self.output.add(run_id=number, seq=1, text=SENTENCE * 8)

    def _ended(
        self, number: int, project: int, task: int, role: str, round_: int, at: datetime, outcome: str,
        **result: int,
    ) -> None:  # fmt: skip
        self.run.add(
            id=number, task_id=task, project_id=self.project_ids[project], role=role, seat=role,
            round=round_, agent_label=f"{role}-{number % 4 + 1}", model=MODELS[number % len(MODELS)],
            host_id=self.host_id, status="ended", outcome=outcome, task_version=round_,
            queued_at=at - timedelta(minutes=31), started_at=at - timedelta(minutes=30), ended_at=at,
            last_output_at=at, **result,
        )  # fmt: skip

    def _live_runs(self) -> None:
        """Add a dozen agents at work, each with a log."""
        for n in range(12):
            project, task = self._task(self.until, "in_progress", rounds=1)
            number = next(self.run.numbers)
            self.run.add(
                id=number, task_id=task, project_id=self.project_ids[project], role="coder", seat="coder",
                round=1, agent_label=f"coder-{n % CODERS + 1}", model=MODELS[0], host_id=self.host_id,
                status="running", task_version=1, queued_at=self.until, started_at=self.until,
                last_output_at=self.until,
            )  # fmt: skip
            for seq in range(1, 31):
                self.output.add(run_id=number, seq=seq, text=SENTENCE * 8)

    def _backlog(self) -> None:
        """Add what is still to be done in every project, however much was done before."""
        for project in range(self.projects):
            for status in ["pending"] * 40 + ["review"] * 15 + ["in_progress"] * 15:
                rounds = 0 if status == "pending" else 1
                _, task = self._task(self.until, status, rounds=rounds, project=project)
                if status == "review":
                    self._submission(task, 1, self.until, "quiet")

    # --- Disputes ---

    def _dispute(
        self, project: int, task: int, status: str, severity: str, title: str, at: datetime,
        findings: list[int], submission: int, coder: int, reviewer: int,
    ) -> None:  # fmt: skip
        chance = self.chance
        waited = timedelta(minutes=chance.lognormvariate(3.5, 1.2))
        is_moot = status == "closed" and chance.random() < 0.1
        closed_at = at + waited + timedelta(hours=5) if status == "closed" else None
        dispute = self.dispute.add(
            project_id=self.project_ids[project], task_id=task, status=status, severity=severity,
            blocks=chance.choice([0, 0, 0, 1, 2, 5]), opened_at=at,
            question=title, search_text=self._search_text(title), closed_at=closed_at,
            closed_reason="" if closed_at is None else "moot" if is_moot else "followed",
        )  # fmt: skip
        if status == "open" and chance.random() < 0.1:
            self.follow.add(dispute_id=dispute, user_id=chance.choice(self.user_ids), at=at)
        for n in range(2 if chance.random() < 0.1 else 1):
            kind = chance.choices(["disagreement", "silence", "help", "alert"], [80, 12, 5, 3])[0]
            conflict = self._conflict(
                dispute, kind, status, severity, title, at, findings, submission, coder, reviewer, is_moot, n
            )
            if status != "open" and not is_moot:
                self._ruling(conflict, kind, status, at + waited)

    def _search_text(self, title: str) -> str:
        """Return the search text of a dispute over the task that was added last."""
        row, places = self.task.rows[-1], self.task.places
        return f"{title}\n{row[places['title']]}\nISSUE-R1-001\nsrc/jobs.py".casefold()

    def _conflict(
        self, dispute: int, kind: str, status: str, severity: str, title: str, at: datetime,
        findings: list[int], submission: int, coder: int, reviewer: int, is_moot: bool, place: int,
    ) -> int:  # fmt: skip
        finding = findings[place] if kind in {"disagreement", "silence"} else None
        origin = {"disagreement": "disagree", "silence": "flagged", "help": "rejections", "alert": "rounds"}
        followed = {"open": "", "ruled": "waiting", "closed": ""}[status]
        if status == "closed" and not is_moot:
            followed = self.chance.choices(["applied", "not_honoured", "cannot_tell"], [88, 6, 6])[0]
        conflict = self.conflict.add(
            dispute_id=dispute, kind=kind, origin=origin[kind], opened_at=at, severity=severity,
            opened_as="coder" if kind == "disagreement" else "system", effect="hold",
            reason=self.chance.choice(REASONS), finding_id=finding, submission_id=submission,
            question=title, reviewer_position=SENTENCE * 2, reviewer_label=f"reviewer-{reviewer + 1}",
            coder_position=SENTENCE, coder_rationale=SENTENCE, coder_label=f"coder-{coder + 1}",
            alternative=SENTENCE, evidence=["Not named in the response.", "The place did not change."],
            status="open" if status == "open" else "moot" if is_moot else "decided", followed=followed,
        )  # fmt: skip
        if kind == "silence":
            settled = self.chance.choice(["converted", "false_positive", "waived", "asked"])
            self.flag.add(
                finding_id=finding, submission_id=submission, conflict_id=conflict, confidence="high",
                heuristics=self.chance.choice([["H1"], ["H1", "H4"], ["H4"], ["H5"], ["H3"]]), at=at,
                level="warn", status="open" if status == "open" else "moot" if is_moot else settled,
            )  # fmt: skip
        return conflict

    def _ruling(self, conflict: int, kind: str, status: str, at: datetime) -> None:
        options = {
            "disagreement": ["uphold_reviewer", "uphold_coder", "compromise", "other"],
            "silence": ["convert", "ask", "waive", "false_positive"],
            "help": ["retry", "defer"],
            "alert": ["accept", "clarify"],
        }[kind]
        weights = [50, 30, 12, 8][: len(options)]
        self.decision.add(
            conflict_id=conflict, option=self.chance.choices(options, weights)[0], text=SENTENCE,
            rationale=SENTENCE, action="revise", expects_change=True, authority="person", at=at,
            user_id=self.chance.choice(self.user_ids), effective_at=at, before={"status": "disputed"},
            used_at=at + timedelta(hours=1) if status == "closed" else None, shown_hash="0" * 64,
            seconds=self.chance.lognormvariate(3.2, 1.0),
        )  # fmt: skip

    # --- Events ---

    def _events(self, project: int, task: int, at: datetime, number: int) -> None:
        kinds = ["start", "submit", "reject", "start", "submit", "conflict_opened", "hold", "decided"]
        for n in range(number):
            self._event(project, task, kinds[n % len(kinds)], at + timedelta(minutes=n - number))

    def _event(self, project: int, task: int | None, kind: str, at: datetime) -> None:
        self.events_left -= 1
        self.event.add(
            project_id=self.project_ids[project], task_id=task, kind=kind, actor_kind="run",
            from_status="in_progress", to_status="review", label="coder-1", note=SENTENCE, at=at,
        )  # fmt: skip

    # --- Small things ---

    def _at(self, number: int) -> datetime:
        """Return when the dispute was opened: evenly over the year, the last one at its end."""
        return self.begin + timedelta(days=DAYS) * ((number + 1) / self.count) - timedelta(minutes=5)

    def _claim(self) -> str:
        chance = self.chance
        thing, area = chance.choice(THINGS), chance.choice(AREAS)
        return f"The {thing} of {area} is {chance.choice(VERBS)} {chance.choice(FAULTS)}"


def _diff(lines: int) -> str:
    """Return a diff of one file with so many lines."""
    body = "".join(f"{'+- '[n % 3]}    line_{n} = claim(row, {n})\n" for n in range(lines))
    head = "diff --git a/src/jobs.py b/src/jobs.py\n--- a/src/jobs.py\n+++ b/src/jobs.py\n"
    return f"{head}@@ -1,{lines} +1,{lines} @@\n{body}"


if __name__ == "__main__":
    raise SystemExit(main())
