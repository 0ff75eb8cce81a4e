"""Disagreement from the first document to the last: what the designs' conflict resolution walks through.

Real documents are handed in over REST or imported, people rule on pages and with scripts, and what is looked
at is what they see: the conflict as it is presented, decisions.md, the next prompt, the refusal of an old
argument. Codes of findings come from the review before; A is the reviewer.
"""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db.models.functions import Now
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from agents.models import Run, new_token, token_hash
from agents.prompts import compose
from disputes import rulings
from disputes.models import Conflict, Decision, Dispute, Flag
from disputes.silence.detection import look_for_silence
from tasks.events import Actor
from tasks.models import Answer, Event, Project, Submission, Task
from tests.cases import rows_put_back
from tests.factories import BASE, create_agent, create_run, create_task, create_token, sha

pytestmark = pytest.mark.django_db


# --- The two sides ----------------------------------------------------------------------------------------


def live_run(task: Task, role: str = "coder") -> tuple[Run, str]:
    """A run as its host starts it, and its token in clear."""
    task.refresh_from_db()
    last = task.last_submission()
    secret = new_token()
    run = create_run(
        task, role, agent=create_agent(role), token_hash=token_hash(secret), spent_hash=token_hash(secret),
        base_sha=BASE, sha=last.sha if last and role == "reviewer" else "", seat=role,
    )  # fmt: skip
    return run, secret


def ended(run: Run) -> None:
    """The host has seen that the run is over."""
    over = {"status": Run.Status.ENDED, "outcome": Run.Outcome.HANDED_IN, "ended_at": timezone.now()}
    Run.objects.filter(pk=run.pk).update(token_hash=None, **over)


def call(secret: str, path: str, **body: Any) -> Any:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return client.post(f"/api/v1/{path}/", body, format="json")


def code(task: Task, response: str = "") -> Any:
    """A coder hands in a commit with its response."""
    run, secret = live_run(task)
    commit = sha(Submission.objects.count() + 1)
    reply = call(secret, f"tasks/{task.ref}/submit", sha=commit, response=response)
    ended(run)
    task.refresh_from_db()
    return reply


def review(task: Task, document: str = "", verb: str = "reject") -> None:
    """Build and tests are green; a reviewer hands in its review."""
    task.submissions.update(state="verified")
    run, secret = live_run(task, "reviewer")
    reply = call(secret, f"tasks/{task.ref}/{verb}", review=document)
    ended(run)
    assert reply.status_code == 201, reply.json()
    task.refresh_from_db()


def keep(task: Task, changed: str) -> list[Flag]:
    """The host fetches the commit and sees which lines of which file changed since the round before."""
    submission = task.last_submission()
    assert submission is not None
    submission.since_last_round = (
        f"diff --git a/{changed} b/{changed}\n--- a/{changed}\n+++ b/{changed}\n"
        "@@ -12 +12,9 @@\n-line\n" + "+new line\n" * 9
    )
    submission.diff_stat = {"files": [[changed, 9, 1]], "since_base": [changed]}
    submission.save()
    found = look_for_silence(submission)
    task.refresh_from_db()
    return found


def refused(reply: Any, code_: str) -> dict[str, Any]:
    body = reply.json()
    assert (reply.status_code, body["code"]) == (422, code_), body
    return dict(body)


def next_prompt(task: Task) -> str:
    """What the next coder is told; from then on the rulings are used."""
    task.refresh_from_db()
    assert task.status == "in_progress"
    over = {"status": Run.Status.ENDED, "outcome": Run.Outcome.HANDED_IN, "ended_at": timezone.now()}
    run = create_run(task, agent=create_agent(), round=task.round, **over)
    decisions = rulings.rulings_for_prompt(task)
    text = compose.compose(run, compose.Material(), decisions).text
    rulings.mark_used(decisions, run.pk)
    return text


def begin(project: Project, document: str) -> Task:
    """A task whose first round was reviewed like this."""
    task = create_task(project, number=7, title="Keep the state safe", status="in_progress", round=1)
    assert code(task).status_code == 201
    review(task, document)
    assert (task.status, task.round) == ("in_progress", 2)
    return task


# --- The person -------------------------------------------------------------------------------------------


class Person:
    """Somebody who rules: with the pages of the queue, and with a script."""

    def __init__(self, user: User) -> None:
        self.user, self.client = user, Client()
        self.client.force_login(user)
        self.secret = create_token(user, "script")[1]

    def page(self, conflict: Conflict) -> str:
        return self.client.get(self._url(conflict), {"conflict": conflict.ref}).content.decode()

    def first(self, dispute: Dispute) -> Conflict:
        """The conflict that the dispute's page opens with."""
        found: Conflict = self.client.get(f"/queue/{dispute.ref}/").context["conflict"]
        return found

    def rule(self, conflict: Conflict, option: str, **words: str) -> Decision:
        """As the form sends it; it takes effect once it can no longer be undone."""
        self.client.get(self._url(conflict, "diff/"), {"conflict": conflict.ref})  # opens it
        form = {"conflict": conflict.ref, "option": option, "shown": rulings.shown_hash(conflict)} | words
        reply = self.client.post(self._url(conflict, "decide/"), form)
        assert reply.status_code == 302, reply.content.decode()
        Decision.objects.update(effective_at=Now())
        return Decision.objects.get(conflict=conflict, revoked_at=None)

    def change_severity(self, conflict: Conflict, severity: str, reason: str) -> None:
        assert conflict.finding is not None
        form = {
            "conflict": conflict.ref, "finding": conflict.finding.code, "severity": severity, "reason": reason
        }  # fmt: skip
        assert self.client.post(self._url(conflict, "severity/"), form).status_code == 302

    def shown(self, dispute: Dispute) -> list[dict[str, Any]]:
        """The conflicts as `steroids dispute show` gets them."""
        client = APIClient()
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {self.secret}")
        return list(client.get(f"/api/v1/disputes/{dispute.ref}/").json()["conflicts"])

    def presented(self, conflict: Conflict) -> str:
        return next(
            str(one["presentation"]) for one in self.shown(conflict.dispute) if one["ref"] == conflict.ref
        )

    def propose(self, conflict: Conflict, text: str, **more: Any) -> None:
        reply = call(self.secret, f"disputes/{conflict.ref}/synthesis", text=text, **more)
        assert reply.status_code == 200, reply.json()
        conflict.refresh_from_db()

    def decisions(self, dispute: Dispute) -> str:
        """decisions.md, as it is downloaded."""
        return self.client.get(f"/queue/{dispute.ref}/decisions.md").content.decode()

    def _url(self, conflict: Conflict, what: str = "") -> str:
        return f"/queue/{conflict.dispute.ref}/{what}"


@pytest.fixture
def person(tom: User) -> Person:
    return Person(tom)


def on(code_: str, **about: Any) -> Conflict:
    """The conflict on a finding."""
    return Conflict.objects.select_related("dispute__task__project", "finding").get(
        finding__code=code_, **about
    )


def in_order(text: str, *parts: str) -> None:
    """Each part stands in the text, behind the one before."""
    at = 0
    for part in parts:
        found = text.find(part, at)
        assert found >= 0, f"{part!r} is not behind the part before it in:\n{text}"
        at = found + len(part)


# --- The walk-through -------------------------------------------------------------------------------------

TWO_FINDINGS = """\
## Review: Keep the state safe

### Critical Issues

- **ISSUE-R1-002**: Copies of the state can contradict each other
  - **Location:** src/copies.py:12
  - **Impact:** After a crash nobody knows which copy is true.
  - **Suggestion:** Keep the last three copies.

### High Priority

- **ISSUE-R1-001**: The state is written in place
  - **Location:** src/state.py:40
  - **Impact:** Half a file is left behind.
  - **Suggestion:** Write beside it, then rename.

## Verdict: NEEDS_REVISION
"""
ONE_DECLINED = """\
| Finding | Answer | What was done |
|---|---|---|
| ISSUE-R1-002 | addressed | See there. |

## DISAGREE: ISSUE-R1-001

**Reviewer Concern:**
> The state is written in place

**Engineer Position:**
The database below it writes whole pages or none.

**Rationale:**
Its journal is on; tests/test_crash.py pulls the plug 200 times.
"""
ARGUED_AGAIN = """\
## DISAGREE: ISSUE-R1-002

**Reviewer Concern:**
> Copies of the state can contradict each other

**Engineer Position:**
One copy can contradict nobody.

**Rationale:**
A setting is one more thing to get wrong.
"""
CARRIED_OUT = """\
| Finding | Answer | What was done |
|---|---|---|
| ISSUE-R1-002 | addressed | A setting says how many copies are kept, three by default. |
"""


@pytest.fixture
def walked(ledger: Project) -> Task:
    """The first phase: one finding is declined aloud, the other only said to be done."""
    task = begin(ledger, TWO_FINDINGS)
    reply = code(task, ONE_DECLINED)
    assert reply.status_code == 201, reply.json()
    return task


def test_both_ways_of_disagreeing_are_found_and_a_place_that_was_changed_is_no_silence(
    walked: Task, person: Person
) -> None:
    """Phase 1: a DISAGREE block is a conflict; a place that nobody touched is a flag, and asks."""
    explicit = on("ISSUE-R1-001")
    assert (explicit.kind, explicit.origin, explicit.severity) == ("disagreement", "disagree", "high")
    assert explicit.coder_position == "The database below it writes whole pages or none."
    assert walked.status == "disputed"
    with rows_put_back():
        assert keep(walked, "src/copies.py") == []
        assert not Flag.objects.exists()
    [flag] = keep(walked, "src/state.py")
    assert (flag.finding.code, flag.level) == ("ISSUE-R1-002", "warn")
    assert "H4" in flag.heuristics
    card = on("ISSUE-R1-002")
    assert (card.kind, card.origin) == ("silence", "flagged")
    assert card.evidence
    html = person.page(card)
    for words in (
        "Ask to address",
        "Ask whether it disagrees",
        "Convert to a conflict",
        "Waive",
        "False alarm",
    ):
        assert words in html


@pytest.fixture
def converted(walked: Task, person: Person) -> Task:
    """The flag was converted."""
    keep(walked, "src/state.py")
    person.rule(on("ISSUE-R1-002"), "convert")
    return walked


def test_two_conflicts_of_two_findings_are_a_warning_and_the_critical_one_comes_first(
    converted: Task, person: Person
) -> None:
    """Phases 2 and 3: a converted flag counts from its conversion; the warning itself holds nothing."""
    implicit, dispute = on("ISSUE-R1-002", kind="disagreement"), converted.disputes.get()
    assert (implicit.origin, implicit.coder_position) == ("converted", "not stated")
    alert = Conflict.objects.get(origin="rate")
    assert (alert.kind, alert.effect, alert.status) == ("alert", "log", "open")
    assert "2 of 2 critical and high findings of this round (100%)" in alert.question
    html = person.page(alert)
    for words in ("Accept, rule on each", "Ask to reduce", "Check the review", "Clarify the scope"):
        assert words in html

    with rows_put_back():  # taken back, the conversion takes its warning along: one of two is half
        rulings.undo(Decision.objects.get(option="convert"), user=person.user)
        assert Conflict.objects.get(origin="rate").status == "moot"
        assert on("ISSUE-R1-002", kind="silence").status == "open"

    person.rule(alert, "accept")
    alert.refresh_from_db()
    assert (alert.status, alert.followed) == ("decided", "applied")
    assert Conflict.objects.filter(kind="disagreement", status="open").count() == 2
    assert (dispute.severity, person.first(dispute).name) == ("critical", "ISSUE-R1-002")
    disagreements = [one["code"] for one in person.shown(dispute) if one["kind"] == "disagreement"]
    assert disagreements == ["ISSUE-R1-002", "ISSUE-R1-001"]
    person.rule(implicit, "uphold_reviewer", rationale="It must survive.")
    assert person.first(dispute).name == "ISSUE-R1-001"


SETTING = "How many copies are kept is a setting; its default is three."


def test_the_presentation_has_four_options_and_whose_idea_c_is(converted: Task, person: Person) -> None:
    """Phase 3: no rule finds a middle way in these words, so somebody hands it in."""
    conflict = on("ISSUE-R1-002", kind="disagreement")
    assert conflict.proposal is None
    assert "Synthesized Option" not in person.presented(conflict)
    person.propose(conflict, SETTING, trade_off="One more setting to explain.", covers_both=True)
    in_order(
        person.presented(conflict),
        "### Conflict: ISSUE-R1-002",
        "**Subject:** Copies of the state can contradict each other",
        "**Severity:** CRITICAL",
        "**Gap Affected:** ledger-7 Keep the state safe",
        "**Reviewer Position (Option A):** [RECOMMENDED]",
        "> Keep the last three copies.",
        "**Impact if ignored:** After a crash nobody knows which copy is true.",
        "**Engineer Position (Option B):**",
        "Not explicitly stated.",
        "NOTE: This conflict was detected automatically",
        "**Synthesized Option (Option C):**",
        f"> {SETTING}",
        "**Proposed by:** human Tom Tran",
        "**Trade-off:** One more setting to explain.",
        "| A | Reviewer |",
        "| B | Engineer |",
        "| C | Synthesis | One more setting to explain.",
        "| D | User specifies |",
    )


@pytest.fixture
def ruled(converted: Task, person: Person) -> Task:
    """C for the critical finding, B for the other."""
    person.rule(Conflict.objects.get(origin="rate"), "accept")
    conflict = on("ISSUE-R1-002", kind="disagreement")
    person.propose(conflict, SETTING)
    person.rule(conflict, "compromise", rationale="Both are half right.", constraints="Never below one.")
    person.rule(on("ISSUE-R1-001"), "uphold_coder", rationale="The test shows it.")
    converted.refresh_from_db()
    return converted


def test_the_ruling_is_recorded_and_the_next_prompt_begins_with_it(ruled: Task, person: Person) -> None:
    """Phases 4 and 5 (DEC-1)"""
    assert (ruled.status, ruled.round) == ("in_progress", 3)
    record = person.decisions(ruled.disputes.get())
    in_order(
        record,
        "# Decisions",
        "## Round 2 Conflict Resolutions (ledger-7)",
        "### ISSUE-R1-002: Copies of the state can contradict each other",
        "**Conflict Type:** Implicit (converted)",
        "**Severity:** CRITICAL",
        "- Reviewer: Keep the last three copies.",
        "- Engineer: not stated",
        "- **Chosen Option:** C (Synthesis)",
        f"- **Decision:** {SETTING}",
        "- **Rationale:** Both are half right.",
        "- **Constraints:** Never below one.",
        "- For Engineer: Change src/copies.py:12.",
        "**Decided By:** Tom Tran",
        "**Timestamp:** 20",
    )
    in_order(
        record,
        "### ISSUE-R1-001: The state is written in place",
        "**Conflict Type:** Explicit DISAGREE",
        "- **Chosen Option:** B (Engineer)",
        "- For Gap: ledger-7 goes back to the coder.",
    )
    prompt = next_prompt(ruled)
    assert prompt.startswith("## Decided since your last run. Honour it.\n")
    in_order(
        prompt,
        "ISSUE-R1-002 (CRITICAL): C, compromise",
        "   About: Copies of the state can contradict each other",
        f"   Ruling: {SETTING}",
        "   Why: Both are half right.",
        "   Constraints: Never below one.",
        "   Do: Change src/copies.py:12. Do not argue it again; trouble that it causes is a new finding.",
        "# Task ledger-7: Keep the state safe",
    )
    assert "ISSUE-R1-001 (HIGH): B, uphold_coder" in prompt
    assert "Findings to answer" not in prompt


def test_the_decided_conflict_is_not_argued_again_and_leaves_the_prompts_once_it_is_carried_out(
    ruled: Task, person: Person
) -> None:
    """DEC-3, DEC-6: the run goes on and may hand in something else, with an example of a block in it."""
    next_prompt(ruled)
    for finding in ("ISSUE-R1-001", "ISSUE-R1-002"):
        with rows_put_back():
            before = Submission.objects.count(), Conflict.objects.count()
            argued = ARGUED_AGAIN.replace("ISSUE-R1-002", finding)
            told = refused(code(ruled, argued), "RE_ARGUED_CONFLICT")
            assert finding in told["message"]
            assert told["details"][0]["line"] == 1
            assert (Submission.objects.count(), Conflict.objects.count()) == before, finding
            assert code(ruled, CARRIED_OUT).status_code == 201, finding

    # DEC-5, DEC-13: carried out, it leaves the prompts once the review has seen it. Otherwise it comes back.
    assert code(ruled, f"{CARRIED_OUT}\n```\n{ARGUED_AGAIN}```\n").status_code == 201
    with rows_put_back():
        assert keep(ruled, "src/copies.py") == []
        review(ruled, verb="approve")
        conflict = on("ISSUE-R1-002", kind="disagreement")
        assert (ruled.status, conflict.followed) == ("completed", "applied")
        assert "**State:** Applied" in person.decisions(ruled.disputes.get())
        assert rulings.rulings_for_prompt(ruled) == []

    keep(ruled, "src/other.py")  # the place is untouched
    review(ruled, verb="approve")
    again = on("ISSUE-R1-002", origin="not_honoured")
    assert (again.status, again.previous, ruled.status) == (
        "open", on("ISSUE-R1-002", origin="converted"), "disputed"
    )  # fmt: skip
    assert SETTING in person.presented(again)


# --- Example 1: said aloud, and settled between the two ---------------------------------------------------

NO_PAUSE = """\
## Review: Keep the state safe

### High Priority

- **ISSUE-R1-001**: Failed steps are tried again at once
  - **Location:** src/steps.py:12
  - **Impact:** A service that fails is buried under calls.
  - **Suggestion:** Wait 1, 2 and 4 seconds between tries.

## Verdict: NEEDS_REVISION
"""
AT_ONCE = """\
## DISAGREE: ISSUE-R1-001

**Reviewer Concern:**
> Failed steps are tried again at once. Wait 1, 2 and 4 seconds between tries.

**Engineer Position:**
Waiting longer each time is complexity that buys little here.

**Rationale:**
What is tried again is the check of a file on this machine. It works or fails within 100 ms.

**Alternative Approach (if any):**
Files at once; calls to services wait, once there are any.

**Request:** Escalate to user for resolution
"""


@pytest.fixture
def argued(ledger: Project) -> Conflict:
    task = begin(ledger, NO_PAUSE)
    reply = code(task, AT_ONCE)
    assert reply.status_code == 201, reply.json()
    assert reply.json()["message"].endswith("It waits for a human's ruling.")
    return on("ISSUE-R1-001")


def test_example_1_both_positions_are_quoted_and_a_rule_proposes_c(argued: Conflict, person: Person) -> None:
    """OPT-2 reads "complexity"."""
    assert (argued.origin, argued.proposal.by) == ("disagree", "rule on complexity")
    in_order(
        person.presented(argued),
        "### Conflict: ISSUE-R1-001",
        "**Severity:** HIGH",
        "**Reviewer Position (Option A):**",
        "> Wait 1, 2 and 4 seconds between tries.",
        "**Impact if ignored:** A service that fails is buried under calls.",
        "**Engineer Position (Option B):**",
        "> Waiting longer each time is complexity that buys little here.",
        "**Rationale:** What is tried again is the check of a file on this machine.",
        "**Alternative:** Files at once; calls to services wait, once there are any.",
        "**Synthesized Option (Option C):** [RECOMMENDED]",
        "> Implement this as optional or configurable",
        "**Proposed by:** rule on complexity",
    )
    assert "NOTE:" not in person.presented(argued)


def test_example_1_a_person_rules_c_in_other_words(argued: Conflict, person: Person) -> None:
    words = "Files are tried again at once. Calls to services will wait, twice as long each time."
    person.rule(
        argued, "compromise", text=words, rationale="Both are right where they look.",
        constraints="Say at each place which of the two it is.",
    )  # fmt: skip
    in_order(
        person.decisions(argued.dispute),
        "### ISSUE-R1-001: Failed steps are tried again at once",
        "**Conflict Type:** Explicit DISAGREE",
        "**Gap Affected:** ledger-7 Keep the state safe",
        "**Severity:** HIGH",
        "- Reviewer: Wait 1, 2 and 4 seconds between tries.",
        "- Engineer: Waiting longer each time is complexity that buys little here.",
        "- **Chosen Option:** C (Synthesis)",
        f"- **Decision:** {words}",
        "- **Rationale:** Both are right where they look.",
        "- **Constraints:** Say at each place which of the two it is.",
        "- For Gap: ledger-7 goes back to the coder.",
    )
    prompt = next_prompt(argued.task)
    in_order(
        prompt,
        "1. ISSUE-R1-001 (HIGH): C, compromise",
        f"   Ruling: {words}",
        "   Do: Change src/steps.py:12.",
    )
    refused(code(argued.task, AT_ONCE), "RE_ARGUED_CONFLICT")


# --- Example 2: passed over, converted, settled for the reviewer ------------------------------------------

PROPOSED = """\
# Round 1

## Gap Resolution: GAP-COMM-004

**Gap:** Messages are read without a schema
**Confidence:** HIGH

### Schema

Each message is an object. Known fields are read, others are passed over.

### Trade-offs

Old readers go on working.
"""
UNKNOWN_FIELDS = """\
# Review of round 1

## Review: GAP-COMM-004

### Critical Issues

- **ISSUE-R1-001**: Unknown fields of a message are accepted
  - **Location:** Schema
  - **Impact:** Data in unexpected fields is lost in silence.
  - **Suggestion:** Validate strictly and fail on every unexpected field.

### Medium Priority

- **ISSUE-R1-002**: No example is given
  - **Location:** Trade-offs
  - **Impact:** Readers guess.
  - **Suggestion:** Give one.

**Verdict:** NEEDS_REVISION
"""
ONLY_THE_EXAMPLE = (
    PROPOSED.replace("# Round 1", "# Round 2")
    + """
### Example

`{"kind": "call"}` is a message.

### Response to Round 1 Issues

| Issue | Status | What was done |
|---|---|---|
| ISSUE-R1-002 | addressed | An example is there. |
"""
)
STRICT = """\
## DISAGREE: ISSUE-R1-001

**Reviewer Concern:**
> Unknown fields of a message are accepted

**Engineer Position:**
Old readers would break.

**Rationale:**
They send fields that nobody knows.
"""


@pytest.fixture
def imported(ledger: Project, tmp_path: Path) -> Task:
    """Two rounds that were written elsewhere; the second says nothing of the critical finding."""
    for name, text in {
        "round_001/engineer.md": PROPOSED,
        "round_001/reviewer.md": UNKNOWN_FIELDS,
        "round_002/engineer.md": ONLY_THE_EXAMPLE,
    }.items():
        path = tmp_path / "session" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    call_command("import_rounds", str(tmp_path / "session"), project=ledger.slug, stdout=StringIO())
    return Task.objects.get()


def test_example_2_the_flag_says_what_speaks_for_it(imported: Task, person: Person) -> None:
    flag = Flag.objects.get()
    assert (flag.finding.code, flag.confidence, flag.level) == ("ISSUE-R1-001", "high", "warn")
    assert {"H1", "H4"} <= {*flag.heuristics}
    card = on("ISSUE-R1-001")
    html = person.page(card)
    assert "Evidence" in html
    evidence = "\n".join(card.evidence)
    assert "ISSUE-R1-001" in evidence
    for words in (
        "names it", "1 of 1 other findings are answered", "is unchanged", "forgot?", "avoided?",
    ):  # fmt: skip
        assert words in evidence
    assert not Answer.objects.filter(finding=card.finding).exists()


def test_example_2_converted_a_is_recommended_because_it_is_critical(imported: Task, person: Person) -> None:
    person.rule(on("ISSUE-R1-001"), "convert")
    conflict = on("ISSUE-R1-001", kind="disagreement")
    assert (conflict.origin, conflict.coder_position) == ("converted", "not stated")
    flag = Flag.objects.get()
    assert flag.status == "converted"
    text = person.presented(conflict)
    in_order(
        text,
        "**Severity:** CRITICAL",
        "**Reviewer Position (Option A):** [RECOMMENDED]",
        "> Validate strictly and fail on every unexpected field.",
        "**Impact if ignored:** Data in unexpected fields is lost in silence.",
        "**Engineer Position (Option B):**",
        "Not explicitly stated.",
        "NOTE: This conflict was detected automatically",
        "**Evidence:**",
        "| D | User specifies |",
        "For CRITICAL severity, Option A (Reviewer) is recommended",
    )
    person.propose(conflict, "Strictness is a switch; its default is strict.", covers_both=True)
    assert text.count("[RECOMMENDED]") == person.presented(conflict).count("[RECOMMENDED]") == 1


def test_example_2_ruled_for_the_reviewer_it_is_not_argued_again(
    imported: Task, person: Person, lea: User
) -> None:
    person.rule(on("ISSUE-R1-001"), "convert")
    imported.resume(actor=Actor.person(lea))
    assert imported.status == "disputed"
    conflict = on("ISSUE-R1-001", kind="disagreement")
    person.rule(conflict, "uphold_reviewer", rationale="Data must not be lost in silence.")
    in_order(
        person.decisions(conflict.dispute),
        "### ISSUE-R1-001: Unknown fields of a message are accepted",
        "**Conflict Type:** Implicit (converted)",
        "**Severity:** CRITICAL",
        "- **Chosen Option:** A (Reviewer)",
        "- **Decision:** Validate strictly and fail on every unexpected field.",
        "- **Rationale:** Data must not be lost in silence.",
        "- **Constraints:** None",
        "**Decided By:** Tom Tran",
    )
    prompt = next_prompt(imported)
    assert prompt.startswith("## Decided since your last run. Honour it.")
    in_order(
        prompt,
        "1. ISSUE-R1-001 (CRITICAL): A, uphold_reviewer",
        "   Ruling: Validate strictly and fail on every unexpected field.",
        "Do not argue it again",
    )
    refused(code(imported, STRICT), "RE_ARGUED_CONFLICT")
    assert code(imported, "- ISSUE-R1-001: fixed, unknown fields fail now.\n").status_code == 201


# --- Example 3: too much is declined ----------------------------------------------------------------------

SIX = ["Times have two formats", "Errors tell too little", "A check never ends", "Recovered data is not kept",
       "Names are not quoted", "A lock is never freed"]  # fmt: skip


def six_findings() -> str:
    """A review with one critical and five high findings."""
    blocks = [
        f"- **ISSUE-R1-{number:03d}**: {title}\n  - **Location:** src/part{number}.py:3\n"
        f"  - **Impact:** It hurts.\n  - **Suggestion:** Change it.\n"
        for number, title in enumerate(SIX, start=1)
    ]
    return (
        "## Review: Keep the state safe\n\n### High Priority\n\n" + "".join(blocks[:3] + blocks[4:])
        + "\n### Critical Issues\n\n" + blocks[3] + "\n## Verdict: NEEDS_REVISION\n"
    )  # fmt: skip


def six_blocks(declined: int = 6) -> str:
    """So many of them are declined, the rest done."""
    blocks = [
        f"## DISAGREE: ISSUE-R1-{number:03d}\n\n**Reviewer Concern:**\n> {title}\n\n"
        f"**Engineer Position:**\nIt is meant so.\n\n**Rationale:**\nThe specification says so.\n\n"
        for number, title in enumerate(SIX[:declined], start=1)
    ]
    rest = [f"- ISSUE-R1-{number:03d}: fixed, done.\n" for number in range(declined + 1, 7)]
    return "".join(rest) + "\n" + "".join(blocks)


JUSTIFICATION = "## Justification\n\nThe specification names each of these, in chapters 2 and 3.\n"


@pytest.fixture
def six(ledger: Project) -> Task:
    return begin(ledger, six_findings())


@pytest.fixture
def alert(six: Task) -> Conflict:
    """All six were declined, with a justification."""
    reply = code(six, six_blocks() + JUSTIFICATION)
    assert reply.status_code == 201, reply.json()
    return Conflict.objects.get(origin="rate")


def test_example_3_six_are_refused_until_they_are_justified(six: Task) -> None:
    """RL-1: one more chance to withdraw or to justify each."""
    told = refused(code(six, six_blocks()), "too_many_disagreements")
    assert "6 findings in one round (limit: 5)" in told["message"]
    assert len(told["details"]) == 6
    assert not Conflict.objects.exists()
    assert code(six, six_blocks(declined=3)).status_code == 201


def test_example_3_then_people_are_asked(alert: Conflict, six: Task, person: Person) -> None:
    """Every limit is looked at, the worst counts; the card says all of it."""
    assert (alert.kind, alert.effect, six.status) == ("alert", "hold", "disputed")
    html = person.page(alert)
    for words in (
        "6 findings in one round (limit: 5)", "6 of 6 critical and high findings of this round (100%)",
        "ISSUE-R1-004 (CRITICAL): Recovered data is not kept", "asks for too much", "avoids work",
        "task differently", "Accept, rule on each", "Ask to reduce", "Check the review", "Clarify the scope",
    ):  # fmt: skip
        assert words in html


def test_example_3_reduced_all_of_it_is_open_again(alert: Conflict, six: Task, person: Person) -> None:
    person.rule(alert, "reduce", text="Keep what breaks the specification, do the rest.")
    assert not Conflict.objects.filter(kind="disagreement", status="open").exists()
    prompt = next_prompt(six)
    in_order(
        prompt,
        "Task ledger-7 (HIGH): 2, reduce",
        "   Ruling: Keep what breaks the specification, do the rest.",
        "   Do: Answer each finding again: withdraw what is mere taste, give evidence for the rest.",
        "## Findings to answer",
        *(f"### {number}. ISSUE-R1-{number:03d} (" for number in (1, 2, 3)),
    )
    refused(code(six, "- ISSUE-R1-001: fixed\n"), "unanswered_findings")
    reply = code(six, six_blocks(declined=1))
    assert reply.status_code == 201, reply.json()
    assert on("ISSUE-R1-001", status="open").origin == "disagree"
    assert not Conflict.objects.filter(origin="rate", status="open").exists()


def test_example_3_a_review_that_asks_for_too_much_is_lowered(
    alert: Conflict, six: Task, person: Person
) -> None:
    """The third way: below HIGH this card closes by itself, the others are ruled on."""
    person.rule(alert, "check_review")
    for finding in ("ISSUE-R1-001", "ISSUE-R1-002"):
        person.change_severity(on(finding), "low", "A suggestion, not a demand.")
    six.refresh_from_db()
    assert six.status == "disputed"
    left = Conflict.objects.filter(kind="disagreement", status="open").order_by("pk")
    assert [conflict.name for conflict in left] == [f"ISSUE-R1-{number:03d}" for number in (3, 4, 5, 6)]
    assert Event.objects.filter(kind="severity_changed").count() == 2
    for conflict in left:
        person.rule(conflict, "uphold_reviewer", rationale="It is right.")
    prompt = next_prompt(six)
    assert prompt.count("A, uphold_reviewer") == 4
    assert "ISSUE-R1-001 (HIGH)" not in prompt
