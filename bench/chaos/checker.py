"""What must hold when the work is done: the rows, the branch and what was acknowledged must agree."""

import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from http.client import HTTPException
from typing import Any

from agents.hosts import processes
from bench.chaos.faults import Fault
from bench.chaos.site import Batch, Site, wait_for_none, words_of
from tests.end_to_end.loop import git

# The doctor's checks; left out is what is chosen for a disturbed installation, or depends on the machine.
DOCTOR = [f"I{number}" for number in range(1, 15)] + ["mirrors", "database", "hosts"]
SUBJECT = re.compile(r"(small-\d+) (\d)")
TOKENS = 6  # tokens of ended runs that are tried
ENDED_FOR = 20.0  # seconds after which nothing of a run may be alive
UNPLANNED = ("alert", "help", "silence")
DOCTOR_PATIENCE = 50.0  # seconds; nothing may stand for sixty after the end of a fault
OF_THE_WORK = ("rate", "divergence", "stall")  # warnings that so much disagreement causes, whatever the fault


class Checker:
    """Reports each finding once, after the fault at which it was first seen."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.known: set[str] = set()
        self.seen_runs = 0
        self.tried_tokens = 0

    def findings(self, batch: Batch, fault: Fault | None) -> list[str]:
        found = [*self._ends(batch), *self._branch(), *self._acknowledged(), *self._counts(batch, fault)]
        found += [*self._runs(fault), *self._cards(fault), *self._doctor(), *self._processes()]
        found += [*self._tokens(), *self.site.remarks]
        self.site.remarks = []
        new = [each for each in dict.fromkeys(found) if each not in self.known]
        self.known.update(new)
        return new

    # --- Tasks and the branch ---------------------------------------------------------------------------

    def _ends(self, batch: Batch) -> Iterator[str]:
        rows = self.site.rows("SELECT number, title, status, landed_sha FROM tasks_task ORDER BY number")
        for number, title, status, sha in rows:
            if title in batch.titles and (status != "completed" or not sha):
                yield f"stuck: small-{number} ({title}) is {status}{'' if sha else ' and has not landed'}"

    def _branch(self) -> Iterator[str]:
        """Check that each task's lines are there once, in a commit of its own, and no others."""
        remote = self.site.remote
        log = git(remote, "log", "--format=%H %s", f"{self.site.begun_at}..main").splitlines()
        commits = [line.split(" ", 1) for line in log]
        there = {sha for sha, _ in commits}
        said = Counter(subject for _, subject in commits if SUBJECT.fullmatch(subject))
        yield from (f"doubled: {n} commits on main say {subject}" for subject, n in said.items() if n > 1)
        tasks = self.site.rows("SELECT number, title, landed_sha FROM tasks_task ORDER BY number")
        landed = {f"small-{number}" for number, _, sha in tasks if sha}
        for subject in said:
            if (ref := subject.split()[0]) not in landed:
                yield f"unknown: main holds {subject}, and {ref} has not landed"
        dropped = {title for batch in self.site.batches for title in batch.dropped}
        plans = {title: batch.plan_of(title) for batch in self.site.batches for title in batch.titles}
        for number, title, sha in tasks:
            if not sha or title not in plans:
                continue
            if title in dropped:
                if sha in there:
                    yield f"brought back: {sha[:12]} of small-{number}, which was dropped by force"
                continue
            if sha not in there:
                yield f"lost: {sha[:12]} of small-{number} counts as landed and is not on main"
                continue
            want = [f"small-{number} {line}" for line in range(1, plans[title][2] + 1)]
            is_there = self._file(f"work/small-{number}.txt")
            if is_there != want:
                yield f"wrong: work/small-{number}.txt on main is {is_there}, not {want}"

    def _file(self, name: str) -> list[str]:
        try:
            return git(self.site.remote, "show", f"main:{name}").splitlines()
        except subprocess.CalledProcessError:
            return []

    # --- What somebody was told -------------------------------------------------------------------------

    def _acknowledged(self) -> Iterator[str]:
        """Check that everything that was acknowledged is in the rows, once."""
        site = self.site
        ledger = site.ledger()
        handed_in = Counter(site.rows("SELECT r.id, s.sha FROM agents_run r"
                                      " JOIN tasks_submission s ON s.id = r.submission_id"
                                      " WHERE r.role = 'coder'"))  # fmt: skip
        reviewed = set(site.numbers("SELECT id FROM agents_run WHERE review_id IS NOT NULL"))
        for one in ledger:
            what = f"{one['kind']} by run {one['run']} of {one['task']}"
            is_submit, is_review = one["kind"] == "submit", one["kind"] in {"approve", "reject"}
            is_there = handed_in[one["run"], one["sha"]] if is_submit else one["run"] in reviewed
            if (is_submit or is_review) and not is_there:
                yield f"lost: the {what} was acknowledged, and no row has it"
            if one["kind"] == "refused":
                yield f"refused: a hand-in by run {one['run']} of {one['task']}: {one['said'][-200:]}"
            elif one["kind"] == "twice":
                yield f"doubled: two agents were at {one['task']} as {one['role']} at the same time"
        comments = Counter(body for (body,) in site.rows("SELECT body FROM tasks_comment"))
        rulings = Counter(site.numbers(
            "SELECT c.dispute_id FROM disputes_decision d JOIN disputes_conflict c ON c.id = d.conflict_id"
            " WHERE d.revoked_at IS NULL AND d.archived_by_id IS NULL"
        ))  # fmt: skip
        for kind, what in list(site.said):
            there = comments[what] if kind == "comment" else rulings[int(what)]
            if there != 1:
                yield f"{'lost' if not there else 'doubled'}: an acknowledged {kind} ({what}), {there} rows"

    def _counts(self, batch: Batch, fault: Fault | None) -> Iterator[str]:
        """Check that no work was done again that was handed in before."""
        if fault and fault.again:
            return
        rows = self.site.rows(
            "SELECT t.number, t.title,"
            " (SELECT count(*) FROM tasks_submission s WHERE s.task_id = t.id AND s.kind = 'commits'),"
            " (SELECT count(*) FROM tasks_review v JOIN tasks_submission s ON s.id = v.submission_id"
            "  WHERE s.task_id = t.id) FROM tasks_task t"
        )
        for number, title, *counts in rows:
            if title not in batch.titles:
                continue
            for what, want, count in zip(("hand-ins", "reviews"), batch.plan_of(title), counts, strict=False):
                if count > want:
                    yield f"doubled: small-{number} ({title}) has {count} {what}, not {want}"

    # --- Runs, cards, processes -------------------------------------------------------------------------

    def _runs(self, fault: Fault | None) -> Iterator[str]:
        rows = self.site.rows(
            f"SELECT id, outcome, role, reason FROM agents_run WHERE id > {self.seen_runs} ORDER BY id"
        )
        self.seen_runs = max((pk for pk, *_ in rows), default=self.seen_runs)
        most = {"lost": fault.lost if fault else 0}
        bad = [row for row in rows if row[1] not in {"handed_in", "stopped"}]
        count: Counter[Any] = Counter("lost" if outcome == "lost" else "failed" for _, outcome, *_ in bad)
        most["failed"] = fault.failed if fault else 0
        for kind, limit in most.items():
            if count[kind] > limit:
                named = [f"{pk} ({role}, {outcome}: {why})" for pk, outcome, role, why in bad
                         if (outcome == "lost") == (kind == "lost")]  # fmt: skip
                yield f"{kind}: {count[kind]} runs, at most {limit} expected: {'; '.join(named)[:400]}"

    def _cards(self, fault: Fault | None) -> Iterator[str]:
        kinds = ", ".join(f"'{kind}'" for kind in UNPLANNED)
        rows = self.site.rows(
            f"SELECT id, kind, origin, question FROM disputes_conflict WHERE kind IN ({kinds}) ORDER BY id"
        )
        origins = {origin for _, _, origin, _ in rows}
        for pk, kind, origin, question in rows:
            expected = (*OF_THE_WORK, *(fault.cards if fault else ()))
            if origin not in expected and f"card {pk}" not in self.known:
                yield f"asked: people are asked ({kind}, {origin}) {question}"
            self.known.add(f"card {pk}")
        for origin in fault.cards if fault else ():
            if origin not in origins:
                yield f"untold: no card of the kind {origin} tells people"

    def _doctor(self) -> list[str]:
        """Return what the doctor keeps saying: after a step of the clock, its first messages come late."""
        until = time.monotonic() + DOCTOR_PATIENCE
        while (found := self._examined()) and time.monotonic() < until:
            time.sleep(2)
        return found

    def _examined(self) -> list[str]:
        dropped = any(batch.dropped for batch in self.site.batches)
        return [
            f"doctor {check}: {says}"
            for check, says in self.site.steward("doctor", *DOCTOR)
            if not (dropped and check == "mirrors" and "no longer on" in says)
        ]

    def _processes(self) -> Iterator[str]:
        ended = set(self.site.numbers("SELECT id FROM agents_run WHERE status = 'ended'"))

        def left() -> list[processes.Identity]:
            return [who for number, who in processes.of_runs(self.site.home / "runs") if number in ended]

        for who in wait_for_none(left, 5.0):
            yield f"left: a process of an ended run lives: {words_of(who)[:100]}"

    def _tokens(self) -> Iterator[str]:
        """Check that the tokens of ended runs no longer open anything."""
        begun = [one for one in self.site.ledger() if one["kind"] == "begun"][self.tried_tokens :]
        self.tried_tokens += len(begun)
        for one in begun[-TOKENS:]:
            try:
                status, _ = self.site.ask("GET", "/me/", token=one["token"])
            except (OSError, HTTPException):
                continue
            if status < 400:
                yield f"open: the token of run {one['run']}, which has ended, is answered with {status}"
