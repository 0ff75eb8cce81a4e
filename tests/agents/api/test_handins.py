"""Hand-ins over REST: what each verb does, who may use it, and that it counts once."""

import json
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from rest_framework.response import Response
from rest_framework.test import APIClient

from agents.api import handins
from agents.loop.orchestrator import tick
from agents.models import Agent, Run, Token, new_token, token_hash
from disputes.completion.stuck import look_again
from disputes.models import Conflict, Decision, Dispute
from disputes.protocol.silence.suspicion import Suspicion
from disputes.rulings import decide
from disputes.silence.flags import raise_flags
from tasks import idempotency
from tasks.events import SYSTEM
from tasks.models import (
    Answer,
    Comment,
    Dependency,
    Event,
    Finding,
    Idempotency,
    Landing,
    Project,
    Review,
    Section,
    Submission,
    Task,
)
from tasks.states import Severity
from tests.asking import client_with, every_row, kinds
from tests.cases import for_each, rows_put_back
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

pytestmark = pytest.mark.django_db

ROUNDS = Path(__file__).parents[2] / "data" / "rounds"
COMMIT, NEXT_COMMIT = sha("c"), sha("d")
LIVE = {Run.Status.STARTING, Run.Status.RUNNING}

DISAGREE = """\
## DISAGREE: ISSUE-R1-001

**Reviewer Concern:**
> Failed calls are retried at once

**Engineer Position:** The server asks for it.

**Rationale:** Its documentation says that a second try may follow at once.

**Alternative Approach (if any):** One pause before the third try.
"""
REVIEW = """\
# Review

## Verdict

NEEDS_REVISION

## High

### ISSUE-R1-001: Failed calls are retried at once

- **Location:** src/calls.py:12
- **Impact:** A dead server is hammered.
- **Suggestion:** Wait between tries.

## Low

### ISSUE-R1-002: A name is vague
"""


# --- Rows and callers -------------------------------------------------------------------------------------


def live_run(task: Task, role: str = "coder", **kwargs: Any) -> tuple[Run, str]:
    """A run as its host starts it, and its token in clear."""
    secret = new_token()
    if role in Agent.Role.values and "agent" not in kwargs:
        kwargs["agent"] = create_agent(role)
    last = task.last_submission()
    kwargs = {
        "token_hash": token_hash(secret),
        "spent_hash": token_hash(secret),
        "base_sha": BASE,
        "sha": last.sha if last and role != "coder" else "",
    } | kwargs
    return create_run(task, role, **kwargs), secret


def dead_run(task: Task, role: str = "coder") -> str:
    """The token of a run that ended without a hand-in."""
    over = {"status": "ended", "outcome": "nothing", "ended_at": timezone.now(), "token_hash": None}
    return live_run(task, role, seat="earlier", **over)[1]


def person(user: User) -> str:
    """A personal token in clear."""
    return create_token(user, "laptop")[1]


def hand_in(secret: str, task: Task | str, verb: str, *, key: str = "", **body: Any) -> Response:
    """One call of a verb, as the command sends it."""
    headers = {"Idempotency-Key": key} if key else {}
    path = f"/api/v1/tasks/{task if isinstance(task, str) else task.ref}/{verb}/"
    return client_with(secret).post(path, body, format="json", headers=headers)


def submit(secret: str, task: Task, commit: str = COMMIT, **body: Any) -> Response:
    return hand_in(secret, task, "submit", sha=commit, **body)


def refused(response: Response, status: int, code: str) -> dict[str, Any]:
    """The body of a refusal, which always has a sentence."""
    body = response.json()
    assert (response.status_code, body.get("code")) == (status, code), body
    assert body["message"]
    return body


def accepted(response: Response) -> dict[str, Any]:
    assert response.status_code == 201, response.json()
    return response.json()


def rows() -> dict[str, list[Any]]:
    """Every row of ours but the tokens, which remember when they were used, and what runs were refused."""
    found = every_row("tasks", "disputes", "agents", without="refusal")
    del found["Token"]
    return found


def event(task: Task, kind: str) -> Event:
    return Event.objects.filter(task=task, kind=kind).get()


def assert_ended(run: Run) -> None:
    run.refresh_from_db()
    assert (run.status, run.token_hash) == (Run.Status.CLOSING, None)


def assert_live(run: Run) -> None:
    run.refresh_from_db()
    assert run.status in LIVE
    assert run.token_hash


@pytest.fixture
def working(ledger: Project) -> Task:
    """A task in the coder's first round."""
    return create_task(ledger, number=1, title="Retry failed calls", status="in_progress", round=1)


@pytest.fixture
def reviewed(ledger: Project) -> Task:
    """A task whose first submission is green and waits for its review."""
    task = create_task(ledger, number=2, title="Retry failed calls", status="review", round=1)
    create_submission(task, sha=COMMIT)
    return task


@pytest.fixture
def rejected(ledger: Project) -> Task:
    """A task in its second round; ISSUE-R1-001 of the first is mandatory."""
    task = create_task(ledger, number=3, status="in_progress", round=2, rejections=1)
    create_finding(create_review(create_submission(task, round=1)), code="ISSUE-R1-001")
    return task


def verify(task: Task) -> Submission:
    """Build and tests of the last submission are green."""
    last = task.last_submission()
    assert last is not None
    Submission.objects.filter(pk=last.pk).update(state="verified")
    return last


def declined(task: Task, code: str = "ISSUE-R1-001") -> str:
    return DISAGREE.replace("ISSUE-R1-001", code)


# --- Who may do what --------------------------------------------------------------------------------------

ANSWERS = {
    "yes": (201, ""),
    "role": (403, "wrong_role"),
    "task": (403, "other_task"),
    "over": (401, "run_over"),
    "gone": (409, "handed_in"),
    "right": (403, "no_right"),
    "none": (404, "not_found"),
    "login": (401, "not_signed_in"),
}
MATRIX = """
          coder reviewer verifier dead closing other maintainer triager viewer outsider nobody
submit    yes   role     role     over gone    task  yes        right   right  none     login
approve   role  yes      role     over gone    task  yes        right   right  none     login
reject    role  yes      role     over gone    task  yes        right   right  none     login
dispute   yes   yes      role     over gone    task  yes        yes     right  none     login
log       yes   yes      role     over gone    task  yes        yes     right  none     login
blocked   yes   role     role     over gone    task  yes        yes     right  none     login
escalate  yes   role     role     over gone    task  yes        yes     right  none     login
comment   yes   yes      role     over gone    task  yes        yes     right  none     login
"""
BODIES: dict[str, dict[str, Any]] = {
    "submit": {"sha": COMMIT},
    "approve": {},
    "reject": {"notes": "The retries have no pause."},
    "dispute": {"reason": "scope_disagreement", "position": "Pauses are not asked for."},
    "log": {"notes": "A shorter name would do.", "minor": True},
    "blocked": {"reason": "The server's address is unknown."},
    "escalate": {"reason": "concurrency", "notes": "Two writers race, and I cannot see where."},
    "comment": {"body": "I look at the pauses first."},
}
HEADER, *LINES = [line.split() for line in MATRIX.strip().splitlines()]
CELLS = [
    (verb, identity, answer)
    for verb, *answers in LINES
    for identity, answer in zip(HEADER, answers, strict=True)
]


def token_of(identity: str, task: Task, cast: dict[str, User]) -> str:
    """A token of that sort of caller."""
    match identity:
        case "coder" | "reviewer" | "verifier":
            return live_run(task, identity)[1]
        case "dead":
            return dead_run(task)
        case "closing":
            return live_run(task, status="closing", token_hash=None)[1]
        case "other":
            return live_run(create_task(task.project, status="in_progress", round=1))[1]
        case "nobody":
            return ""
    return person(cast[identity])


@pytest.fixture
def cast(lea: User, tom: User, vera: User, otto: User) -> dict[str, User]:
    return {"maintainer": lea, "triager": tom, "viewer": vera, "outsider": otto}


@for_each(("verb", "identity", "answer"), CELLS)
def test_each_verb_takes_its_callers_only(
    ledger: Project, cast: dict[str, User], verb: str, identity: str, answer: str
) -> None:
    status = "review" if verb in {"approve", "reject"} else "in_progress"
    task = create_task(ledger, status=status, round=1)
    if status == "review":
        create_submission(task)
    secret = token_of(identity, task, cast)
    before = rows()
    response = hand_in(secret, task, verb, key="once", **BODIES[verb])
    expected, code = ANSWERS[answer]
    assert response.status_code == expected
    assert response.json().get("code", "") == code
    assert (rows() == before) == (answer != "yes")


def test_a_run_whose_project_was_renamed_names_its_task_as_it_was_told(ledger: Project) -> None:
    other = create_task(create_project("shop"), number=7, status="in_progress", round=1)
    task = create_task(ledger, number=7, status="in_progress", round=1)
    secret = live_run(task, "coder")[1]
    client = client_with(secret)
    Project.objects.filter(pk=ledger.pk).update(slug="accounts")
    assert client.get("/api/v1/tasks/ledger-7/").json()["ref"] == "accounts-7"
    assert client.get("/api/v1/tasks/?project=accounts").json()["count"] == 1
    accepted(client.post("/api/v1/tasks/ledger-7/comment/", BODIES["comment"], format="json"))
    for name in (other.ref, "ledger-8", "ledger"):
        assert client.get(f"/api/v1/tasks/{name}/").status_code == 404
        refused(client.post(f"/api/v1/tasks/{name}/log/", BODIES["log"], format="json"), 403, "other_task")
    told = accepted(client.post("/api/v1/tasks/ledger-7/dispute/", BODIES["dispute"], format="json"))
    assert told["task"] == "accounts-7"


def test_the_matrix_names_every_verb() -> None:
    assert {verb for verb, *_ in LINES} == set(BODIES)


@for_each("role", ["coder", "reviewer", "verifier"])
def test_no_run_rules_on_a_dispute(reviewed: Task, tom: User, role: str) -> None:
    opened = accepted(hand_in(person(tom), reviewed, "dispute", **BODIES["dispute"]))["conflicts"]
    reviewed.refresh_from_db()
    secret = live_run(reviewed, role)[1]
    before = rows()
    reply = client_with(secret).post(
        f"/api/v1/disputes/{opened[0]}/resolve/", {"decision": "coder"}, format="json"
    )
    assert rows() == before
    refused(reply, 403, "wrong_role")


@for_each("role", ["coder", "reviewer", "verifier"])
@for_each("status", ["deferred", "cancelled", "completed"])
def test_no_run_changes_a_status(working: Task, role: str, status: str) -> None:
    secret = live_run(working, role)[1]
    before = rows()
    path = f"/api/v1/tasks/{working.ref}/status/"
    reply = client_with(secret).post(path, {"status": status}, format="json")
    assert rows() == before
    assert reply.status_code == 403


def test_the_token_says_who_hands_in_and_the_model_is_a_label(working: Task) -> None:
    run, secret = live_run(working, agent_label="coder-9")
    refused(submit(secret, working, by_agent="lea", agent="lea"), 422, "invalid")
    accepted(submit(secret, working, model="somebody-else"))
    made = Submission.objects.get()
    assert (made.by_agent, made.by_model, made.by_user) == ("coder-9", "somebody-else", None)
    assert (event(working, "submit").label, event(working, "submit").run_number) == ("coder-9", run.pk)


def test_a_person_is_named_in_full(working: Task, lea: User) -> None:
    accepted(submit(person(lea), working))
    made = Submission.objects.get()
    assert (made.by_agent, made.by_user) == ("Lea Lindt", lea)
    assert (event(working, "submit").actor_kind, event(working, "submit").user) == ("person", lea)


@for_each("change", ["expired", "inactive", "withdrawn"])
def test_a_personal_token_can_be_taken_away(working: Task, lea: User, change: str) -> None:
    token, secret = create_token(lea, "old laptop")
    match change:
        case "expired":
            Token.objects.update(expires_at=timezone.now())
        case "inactive":
            User.objects.filter(pk=lea.pk).update(is_active=False)
        case "withdrawn":
            token.delete()
    before = rows()
    reply = submit(secret, working)
    assert rows() == before
    refused(reply, 401, "bad_token")


def test_a_superuser_needs_no_membership(working: Task, otto: User) -> None:
    User.objects.filter(pk=otto.pk).update(is_superuser=True)
    accepted(submit(person(otto), working))
    working.refresh_from_db()
    assert working.status == "review"


# --- Submissions ------------------------------------------------------------------------------------------


def test_a_submission_waits_to_be_fetched(working: Task) -> None:
    run, secret = live_run(working, agent_label="coder-1")
    reply = submit(secret, working, notes="Pauses are in.")
    made = Submission.objects.get()
    assert (made.sha, made.base_sha, made.round, made.attempt) == (COMMIT, BASE, 1, 1)
    assert (made.state, made.response, made.by_agent) == ("received", "Pauses are in.", "coder-1")
    working.refresh_from_db()
    assert (working.status, working.version) == ("review", 1)
    moved = event(working, "submit")
    assert (moved.from_status, moved.to_status, moved.actor_kind) == ("in_progress", "review", "run")
    body = accepted(reply)
    assert {name: body[name] for name in ("task", "status", "round", "conflicts")} == {
        "task": "ledger-1",
        "status": "review",
        "round": 1,
        "conflicts": [],
    }
    run.refresh_from_db()
    assert run.submission == made


def test_a_first_hand_in_asks_little_of_the_database(
    working: Task, django_assert_max_num_queries: Any
) -> None:
    _, secret = live_run(working)
    with django_assert_max_num_queries(15):
        assert submit(secret, working, key="once").status_code == 201


def test_the_clock_of_a_web_server_does_not_say_when_work_was_handed_in(
    working: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, secret = live_run(working)
    true_time = datetime.now(UTC)

    class Behind(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime.now(tz) - timedelta(minutes=5)

    monkeypatch.setattr(timezone, "datetime", Behind)
    accepted(submit(secret, working))
    assert abs(working.submissions.get().at - true_time) < timedelta(minutes=1)


def test_a_first_hand_in_without_a_commit_is_asked_back_once_unless_an_earlier_run_did_the_work(
    working: Task,
) -> None:
    """ANS-10"""
    run, secret = live_run(working)
    body = refused(submit(secret, working, BASE, response="Done."), 422, "asked_back")
    assert "nothing is committed since you began" in body["message"]
    assert "`git add` for new files" in body["hint"]
    assert_live(run)
    accepted(submit(secret, working, BASE, response="It is so already."))
    saved = create_task(working.project, number=9, status="in_progress", round=1)
    create_run(saved, role="coder", status="ended", ended_at=timezone.now(), salvage_sha=BASE)
    accepted(submit(live_run(saved)[1], saved, BASE))


def test_a_second_try_in_a_round_is_its_next_attempt(working: Task) -> None:
    create_submission(working, state="red")
    accepted(submit(live_run(working)[1], working))
    assert working.submissions.values_list("attempt", "sha").last() == (2, COMMIT)


@for_each("commit", ["HEAD", "c0ffee", COMMIT.upper(), COMMIT + "0", "", "-x"])
def test_a_commit_is_named_in_full(working: Task, commit: str) -> None:
    run, secret = live_run(working)
    before = rows()
    body = refused(submit(secret, working, commit), 422, "invalid")
    assert rows() == before
    assert body["details"][0]["field"] == "sha"
    assert_live(run)


@for_each(
    "response",
    [
        "| ISSUE | status | what |\n|---|---|---|\n| ISSUE-R1-001 | addressed | It waits now. |\n",
        "- ISSUE-R1-001: fixed, It waits now.\n",
        {"answers": [{"finding": "issue-r1-001", "kind": "addressed", "text": "It waits now."}]},
    ],
)
def test_answers_become_rows(rejected: Task, response: Any) -> None:
    accepted(submit(live_run(rejected)[1], rejected, response=response))
    answer = Answer.objects.get()
    assert (answer.finding.code, answer.kind) == ("ISSUE-R1-001", "addressed")
    assert "It waits now." in answer.text


def test_an_optional_finding_may_be_passed_over_in_silence(rejected: Task) -> None:
    Finding.objects.update(mandatory=False, severity="low")
    accepted(submit(live_run(rejected)[1], rejected))
    assert Answer.objects.get().kind == "silent"


def test_a_mandatory_finding_must_be_answered(rejected: Task) -> None:
    run, secret = live_run(rejected)
    before = rows()
    body = refused(submit(secret, rejected), 422, "unanswered_findings")
    assert rows() == before
    assert "ISSUE-R1-001" in body["details"][0]["reason"]
    assert_live(run)


def test_a_response_names_findings_that_exist(rejected: Task) -> None:
    run, secret = live_run(rejected)
    before = rows()
    reply = submit(secret, rejected, response="Done.\n\n- ISSUE-R1-001: fixed\n- ISSUE-R7-001: fixed\n")
    body = refused(reply, 422, "unknown_finding")
    assert rows() == before
    assert [(problem["line"], problem["reason"]) for problem in body["details"]] == [
        (4, f"ISSUE-R7-001 is not a finding of {rejected.ref}")
    ]
    assert_live(run)


MALFORMED_RESPONSES = {
    "a block without a rationale": (DISAGREE.replace("**Rationale:**", "**Because:**"), 1),
    "a block without the concern": (DISAGREE.replace("**Reviewer Concern:**", "**Concern:**"), 1),
    "a block about nothing": ("Well.\n\n## DISAGREE\n", 3),
    "a decline without a block": ("| ISSUE-R1-001 | declined | No. |\n", 1),
    "answers that are no list": ({"answers": "ISSUE-R1-001: fixed"}, 0),
    "an answer of no kind": ({"answers": [{"finding": "ISSUE-R1-001", "kind": "maybe"}]}, 1),
    "a structured decline without a rationale": (
        {"answers": [{"finding": "ISSUE-R1-001", "kind": "declined", "text": "No."}]},
        1,
    ),
}


@for_each("name", MALFORMED_RESPONSES)
def test_a_malformed_response_is_refused_and_the_run_goes_on(rejected: Task, name: str) -> None:
    response, line = MALFORMED_RESPONSES[name]
    run, secret = live_run(rejected)
    before = rows()
    body = refused(
        hand_in(secret, rejected, "submit", key="k", sha=COMMIT, response=response), 422, "malformed_response"
    )
    assert rows() == before
    assert body["details"][0]["line"] == line
    assert body["details"][0]["reason"]
    assert_live(run)
    accepted(hand_in(secret, rejected, "submit", key="k", sha=COMMIT, response="- ISSUE-R1-001: fixed\n"))
    assert_ended(run)


@for_each("response", [7, ["ISSUE-R1-001"], True, "x" * (256 * 1024 + 1)])
def test_a_response_is_a_text_or_an_object_of_bounded_size(rejected: Task, response: Any) -> None:
    before = rows()
    body = refused(submit(live_run(rejected)[1], rejected, response=response), 422, "invalid")
    assert rows()["Submission"] == before["Submission"]
    assert body["details"][0]["field"] == "response"


@for_each("response", [r'"\ud800"', r'{"text": "\ud800"}'])
def test_a_text_that_no_database_takes_is_no_fault_of_ours(working: Task, response: str) -> None:
    client = APIClient(raise_request_exception=False)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {live_run(working)[1]}")
    raw = f'{{"sha": "{COMMIT}", "response": {response}}}'
    reply = client.post(f"/api/v1/tasks/{working.ref}/submit/", raw, content_type="application/json")
    assert reply.status_code < 500


def test_no_nul_reaches_a_row(reviewed: Task) -> None:
    review = {"findings": [{"title": "A\0B", "severity": "high", "text": "C\0D"}]}
    accepted(hand_in(live_run(reviewed, "reviewer")[1], reviewed, "reject", review=review))
    finding = Finding.objects.get()
    assert "\0" not in finding.title + finding.text


def test_data_that_spells_no_text_is_taken_as_far_as_it_is_one(reviewed: Task) -> None:
    """Models cut characters of two halves in two, and JSON and YAML can spell the halves, and NUL."""
    for review in (
        r'{"findings": [{"title": "Cut \ud83d\ude00 \ud83d\u0000", "severity": "high"}]}',
        '---\nfindings:\n- title: "Cut \\uD83D\\uDE00 \\ud83d\\0"\n  severity: high\n---\n',
    ):
        with rows_put_back():
            reply = accepted(hand_in(live_run(reviewed, "reviewer")[1], reviewed, "reject", review=review))
            assert reply["findings"][0]["title"] == Finding.objects.get().title == "Cut 😀 \ufffd", review


def test_a_strange_number_is_no_task(working: Task, lea: User) -> None:
    client = APIClient(raise_request_exception=False)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {person(lea)}")
    reply = client.post("/api/v1/tasks/ledger-²/comment/", BODIES["comment"], format="json")
    assert reply.status_code == 404


# --- Disagreement -----------------------------------------------------------------------------------------


def test_disagreeing_with_a_high_finding_holds_the_task_at_once(rejected: Task) -> None:
    run, secret = live_run(rejected, agent_label="coder-1")
    reply = submit(secret, rejected, response=DISAGREE)
    conflict = Conflict.objects.get()
    assert (conflict.kind, conflict.origin, conflict.opened_as) == ("disagreement", "disagree", "coder")
    assert (conflict.effect, conflict.severity, conflict.status) == ("hold", "high", "open")
    assert conflict.reviewer_position == "Wait between tries, twice as long each time."
    assert conflict.coder_position == "The server asks for it."
    assert conflict.coder_rationale == "Its documentation says that a second try may follow at once."
    assert conflict.alternative == "One pause before the third try."
    assert (conflict.reviewer_label, conflict.coder_label) == ("reviewer-1", "coder-1")
    assert conflict.finding == Finding.objects.get()
    assert conflict.submission == Submission.objects.get(sha=COMMIT)
    rejected.refresh_from_db()
    assert (rejected.status, rejected.accepted) == ("disputed", None)
    assert kinds(rejected) == ["submit", "conflict_opened", "hold"]
    assert conflict.ref in event(rejected, "hold").note
    body = accepted(reply)
    assert (body["status"], body["conflicts"]) == ("disputed", [conflict.ref])
    assert body["message"].endswith("It waits for a human's ruling.")
    assert_ended(run)


def test_a_structured_decline_is_a_conflict_too(rejected: Task) -> None:
    answer = {"finding": "ISSUE-R1-001", "kind": "declined", "text": "No.", "rationale": "It is documented."}
    accepted(submit(live_run(rejected)[1], rejected, response={"answers": [answer]}))
    conflict = Conflict.objects.get()
    assert (conflict.coder_position, conflict.coder_rationale) == ("No.", "It is documented.")


def test_declining_an_optional_finding_opens_nothing(rejected: Task) -> None:
    Finding.objects.update(mandatory=False, severity="low")
    body = accepted(submit(live_run(rejected)[1], rejected, response=DISAGREE))
    assert Answer.objects.get().kind == "declined"
    assert not Conflict.objects.exists()
    assert (body["status"], body["conflicts"]) == ("review", [])


def test_a_declined_optional_finding_that_comes_back_as_mandatory_is_a_conflict(rejected: Task) -> None:
    Finding.objects.update(mandatory=False, severity="low")
    accepted(submit(live_run(rejected)[1], rejected, response=DISAGREE))
    verify(rejected)
    rejected.refresh_from_db()
    review = {"findings": [{"code": "ISSUE-R1-001", "title": "Still at once", "severity": "high"}]}
    body = accepted(hand_in(live_run(rejected, "reviewer")[1], rejected, "reject", review=review))
    conflict = Conflict.objects.get()
    assert (conflict.origin, conflict.opened_as, conflict.effect) == ("repeated", "reviewer", "hold")
    assert conflict.finding == Finding.objects.get(code="ISSUE-R1-001")
    assert body["status"] == "disputed"


def test_it_holds_whatever_its_severity(rejected: Task) -> None:
    take_all(rejected, "medium")
    Finding.objects.update(mandatory=False)
    accepted(submit(live_run(rejected)[1], rejected, response=DISAGREE))
    verify(rejected)
    rejected.refresh_from_db()
    review = {"findings": [{"code": "ISSUE-R1-001", "title": "Still at once", "severity": "medium"}]}
    body = accepted(hand_in(live_run(rejected, "reviewer")[1], rejected, "reject", review=review))
    assert (Conflict.objects.get().effect, body["status"]) == ("hold", "disputed")


def take_all(task: Task, severity: str) -> None:
    """Make each severity mandatory, and the task's finding one of that severity."""
    Project.objects.update(settings={"mandatory": ["critical", "high", "medium", "low"]})
    Finding.objects.filter(task=task).update(severity=severity)
    task.refresh_from_db()


def test_a_medium_conflict_is_shipped_once_the_rest_is_approved(rejected: Task) -> None:
    take_all(rejected, "medium")
    body = accepted(submit(live_run(rejected)[1], rejected, response=DISAGREE))
    assert (Conflict.objects.get().effect, body["status"]) == ("ship", "review")
    submission = verify(rejected)
    rejected.refresh_from_db()
    accepted(hand_in(live_run(rejected, "reviewer")[1], rejected, "approve"))
    rejected.refresh_from_db()
    assert (rejected.status, rejected.accepted) == ("disputed", submission)
    assert kinds(rejected)[-1] == "ship"
    assert Dispute.objects.get().status == "open"


def test_a_reviewer_goes_on_where_its_dispute_holds_nothing(rejected: Task) -> None:
    Project.objects.update(settings={"disputed_work": {"medium": "land"}})
    accepted(submit(live_run(rejected)[1], rejected, response="- ISSUE-R1-001: addressed"))
    submission = verify(rejected)
    rejected.refresh_from_db()
    token = live_run(rejected, "reviewer")[1]
    body = accepted(hand_in(token, rejected, "dispute", **BODIES["dispute"]))
    assert (body["status"], "your review of the rest" in body["message"]) == ("review", True)
    accepted(hand_in(token, rejected, "approve"))
    rejected.refresh_from_db()
    assert (rejected.status, rejected.accepted) == ("disputed", submission)
    assert (Dispute.objects.get().status, Conflict.objects.get().opened_as) == ("open", "reviewer")


def test_a_shipped_conflict_is_not_settled_by_naming_it_again(rejected: Task) -> None:
    take_all(rejected, "medium")
    accepted(submit(live_run(rejected)[1], rejected, response=DISAGREE))
    submission = verify(rejected)
    rejected.refresh_from_db()
    review = {"findings": [{"code": "ISSUE-R1-001", "title": "Still at once", "severity": "medium"}]}
    accepted(hand_in(live_run(rejected, "reviewer")[1], rejected, "approve", review=review))
    rejected.refresh_from_db()
    assert (rejected.status, rejected.accepted) == ("disputed", submission)
    assert Conflict.objects.get().status == "open"


def test_a_shipped_conflict_is_no_way_round_another_finding(rejected: Task) -> None:
    take_all(rejected, "medium")
    accepted(submit(live_run(rejected)[1], rejected, response=DISAGREE))
    verify(rejected)
    rejected.refresh_from_db()
    review = {"findings": [{"title": "The tests wait for seconds", "severity": "high"}]}
    accepted(hand_in(live_run(rejected, "reviewer")[1], rejected, "reject", review=review))
    rejected.refresh_from_db()
    assert (rejected.status, rejected.round, rejected.accepted) == ("in_progress", 3, None)


def test_a_low_conflict_is_recorded_and_the_coders_way_stands(rejected: Task) -> None:
    take_all(rejected, "low")
    body = accepted(submit(live_run(rejected)[1], rejected, response=DISAGREE))
    conflict = Conflict.objects.get()
    assert (conflict.effect, conflict.status, conflict.dispute.status) == ("log", "logged", "closed")
    assert kinds(rejected) == ["submit", "conflict_logged"]
    assert (body["status"], body["conflicts"]) == ("review", [])


def test_a_critical_conflict_always_holds(rejected: Task) -> None:
    take_all(rejected, "critical")
    assert accepted(submit(live_run(rejected)[1], rejected, response=DISAGREE))["status"] == "disputed"


def rule(task: Task, user: User, decision: str) -> None:
    """The human rules on all that is open."""
    path = f"/api/v1/disputes/{task.ref}/resolve/"
    body = {"decision": decision, "notes": "So be it.", "all": True}
    assert client_with(person(user)).post(path, body, format="json").status_code == 200
    task.refresh_from_db()


@pytest.fixture
def overruled(rejected: Task, tom: User) -> Task:
    """The human ruled for the coder; the submission is green and goes to the reviewer again."""
    accepted(submit(live_run(rejected)[1], rejected, response=DISAGREE))
    verify(rejected)
    rule(rejected, tom, "coder")
    assert rejected.status == "review"
    return rejected


def test_a_finding_that_a_human_decided_is_not_argued_again(rejected: Task, tom: User) -> None:
    accepted(submit(live_run(rejected)[1], rejected, response=DISAGREE))
    rule(rejected, tom, "reviewer")
    run, secret = live_run(rejected)
    before = rows()
    body = refused(submit(secret, rejected, NEXT_COMMIT, response=DISAGREE), 422, "RE_ARGUED_CONFLICT")
    assert rows() == before
    assert body["details"] == [{"line": 1, "reason": "ISSUE-R1-001 is decided"}]
    assert_live(run)
    accepted(submit(secret, rejected, NEXT_COMMIT))


@for_each("role", ["coder", "reviewer"])
def test_nor_by_the_verb_dispute(overruled: Task, role: str) -> None:
    Task.objects.filter(pk=overruled.pk).update(status="in_progress" if role == "coder" else "review")
    overruled.refresh_from_db()
    secret = live_run(overruled, role)[1]
    reply = hand_in(secret, overruled, "dispute", finding="ISSUE-R1-001", **BODIES["dispute"])
    assert not Conflict.objects.filter(status="open").exists()
    refused(reply, 422, "RE_ARGUED_CONFLICT")


def test_a_reviewer_does_not_raise_a_settled_finding_again(overruled: Task) -> None:
    review = {
        "findings": [
            {"code": "ISSUE-R1-001", "title": "Still at once", "severity": "high"},
            {"title": "The tests wait for seconds", "severity": "high"},
        ]
    }
    body = accepted(hand_in(live_run(overruled, "reviewer")[1], overruled, "reject", review=review))
    assert Finding.objects.filter(round=2).get().title == "The tests wait for seconds"
    assert event(overruled, "findings_dropped").note == "ISSUE-R1-001"
    assert body["dropped"] == ["ISSUE-R1-001"]
    assert body["status"] == "in_progress"


def test_an_approval_with_only_settled_points_is_one(overruled: Task) -> None:
    review = {"findings": [{"code": "ISSUE-R1-001", "title": "Still at once", "severity": "high"}]}
    body = accepted(hand_in(live_run(overruled, "reviewer")[1], overruled, "approve", review=review))
    assert (body["status"], body["dropped"]) == ("completed", ["ISSUE-R1-001"])


def test_a_rejection_with_only_settled_points_goes_back_once_and_then_to_a_human(overruled: Task) -> None:
    review = {"findings": [{"code": "ISSUE-R1-001", "title": "Still at once", "severity": "high"}]}
    run, secret = live_run(overruled, "reviewer", agent_label="reviewer-1")
    first = accepted(hand_in(secret, overruled, "reject", review=review))
    overruled.refresh_from_db()
    assert (overruled.status, overruled.round, overruled.rejections) == ("review", 2, 1)
    assert event(overruled, "review_void").run_number == run.pk
    assert (first["status"], first["dropped"]) == ("review", ["ISSUE-R1-001"])
    Run.objects.filter(pk=run.pk).update(status="ended", outcome="handed_in", ended_at=timezone.now())
    secret = live_run(overruled, "reviewer", agent_label="reviewer-1")[1]
    second = accepted(hand_in(secret, overruled, "reject", review=review))
    card = Conflict.objects.get(status="open")
    assert (card.kind, card.origin) == ("help", "review")
    assert second["status"] == "disputed"
    assert kinds(overruled)[-2:] == ["stop_for_help", "conflict_opened"]


# --- Reviews ----------------------------------------------------------------------------------------------


def test_an_approval_accepts_the_commit_for_landing(reviewed: Task) -> None:
    run, secret = live_run(reviewed, "reviewer", agent_label="reviewer-1")
    reply = hand_in(secret, reviewed, "approve", model="some-model")
    review = Review.objects.get()
    assert (review.verdict, review.by_agent, review.by_model) == ("APPROVED", "reviewer-1", "some-model")
    reviewed.refresh_from_db()
    assert (reviewed.status, reviewed.accepted) == ("completed", review.submission)
    moved = event(reviewed, "approve")
    assert (moved.from_status, moved.to_status, moved.data["sha"]) == ("review", "completed", COMMIT)
    assert moved.run_number == run.pk
    assert accepted(reply)["status"] == "completed"
    assert_ended(run)
    assert run.review == review


def test_the_notes_of_an_approval_are_kept(reviewed: Task) -> None:
    body = accepted(
        hand_in(live_run(reviewed, "reviewer")[1], reviewed, "approve", notes="Minor: prefer a timeout.")
    )
    assert (Review.objects.get().text, Review.objects.get().verdict) == (
        "Minor: prefer a timeout.",
        "APPROVED",
    )
    assert (body["status"], body["findings"]) == ("completed", [])


def test_an_approval_with_an_optional_finding_has_a_condition(reviewed: Task) -> None:
    body = accepted(
        hand_in(live_run(reviewed, "reviewer")[1], reviewed, "approve", notes="[SHOULD] Name the limit.")
    )
    assert Review.objects.get().verdict == "APPROVED_WITH_CONDITIONS"
    assert (Finding.objects.get().severity, Finding.objects.get().mandatory) == ("medium", False)
    assert body["status"] == "completed"


@for_each(
    "review",
    [
        "## Verdict\n\nAPPROVED\n\n- [MUST] Wait between tries.\n",
        {"verdict": "APPROVED", "findings": [{"title": "Wait between tries.", "severity": "critical"}]},
        {"findings": [{"title": "Wait between tries.", "severity": "high"}]},
    ],
)
def test_an_approval_with_a_mandatory_finding_is_none(reviewed: Task, review: Any) -> None:
    """ARB-3"""
    body = accepted(hand_in(live_run(reviewed, "reviewer")[1], reviewed, "approve", review=review))
    assert Review.objects.get().verdict == "NEEDS_REVISION"
    reviewed.refresh_from_db()
    assert (reviewed.status, reviewed.round, reviewed.accepted) == ("in_progress", 2, None)
    assert kinds(reviewed) == ["reject"]
    assert body["status"] == "in_progress"


def test_the_worse_of_verb_and_document_counts(reviewed: Task) -> None:
    review = {"verdict": "NEEDS_REVISION", "findings": [{"title": "Name the limit", "severity": "low"}]}
    body = accepted(hand_in(live_run(reviewed, "reviewer")[1], reviewed, "approve", review=review))
    assert Review.objects.get().verdict == "NEEDS_REVISION"
    assert kinds(reviewed) == ["reject"]
    assert body["status"] == "in_progress"


def test_an_approval_whose_document_rejects_is_a_rejection(reviewed: Task) -> None:
    review = "## Verdict\n\nNEEDS_REVISION\n\nThe tries have no pause.\n"
    accepted(hand_in(live_run(reviewed, "reviewer")[1], reviewed, "approve", review=review))
    reviewed.refresh_from_db()
    assert kinds(reviewed) == ["reject"]
    assert (reviewed.status, Finding.objects.count()) == ("in_progress", 1)


def test_a_rejection_in_plain_words_is_one_finding(reviewed: Task) -> None:
    run, secret = live_run(reviewed, "reviewer")
    reply = hand_in(secret, reviewed, "reject", notes="The tries have no pause.\nWait between them.")
    finding = Finding.objects.get()
    assert (finding.code, finding.severity, finding.mandatory) == ("ISSUE-R1-001", "high", True)
    assert (finding.title, finding.suggestion) == ("The tries have no pause.", "Wait between them.")
    reviewed.refresh_from_db()
    assert (reviewed.status, reviewed.round, reviewed.rejections) == ("in_progress", 2, 1)
    moved = event(reviewed, "reject")
    assert (moved.from_status, moved.to_status, moved.data["round"]) == ("review", "in_progress", 2)
    assert moved.note == "Needs Revision, 1 finding"
    assert accepted(reply)["findings"] == [
        {"code": "ISSUE-R1-001", "severity": "high", "mandatory": True, "title": "The tries have no pause."}
    ]
    assert_ended(run)


def test_the_finding_of_such_a_rejection_is_called_by_its_first_line_that_says_something(
    reviewed: Task,
) -> None:
    text = "Verdict: **REJECTED**\n\n## 总结\n\nThe **tries** have no pause.\nWait between them."
    secret = live_run(reviewed, "reviewer")[1]
    accepted(hand_in(secret, reviewed, "reject", review=text, confirm=True))
    finding = Finding.objects.get()
    assert (finding.title, finding.suggestion) == ("The tries have no pause.", "Wait between them.")


def test_a_markdown_review_becomes_findings(reviewed: Task) -> None:
    body = accepted(hand_in(live_run(reviewed, "reviewer")[1], reviewed, "reject", review=REVIEW))
    first, second = Finding.objects.all()
    assert (first.code, first.severity, first.mandatory) == ("ISSUE-R1-001", "high", True)
    assert (first.path, first.line, first.impact) == ("src/calls.py", 12, "A dead server is hammered.")
    assert (second.code, second.severity, second.mandatory) == ("ISSUE-R1-002", "low", False)
    assert (Review.objects.get().raw_verdict, Review.objects.get().text) == ("NEEDS_REVISION", REVIEW)
    assert [finding["code"] for finding in body["findings"]] == ["ISSUE-R1-001", "ISSUE-R1-002"]


def test_a_structured_review_becomes_findings(reviewed: Task) -> None:
    review = {
        "verdict": "Needs work",
        "text": "See below.",
        "findings": [
            {"title": "No pause", "severity": "MAJOR", "location": "src/calls.py:12", "suggestion": "Wait."},
            {"title": "A name", "severity": "nit", "code": "ISSUE-R1-007"},
        ],
    }
    accepted(hand_in(live_run(reviewed, "reviewer")[1], reviewed, "reject", review=review))
    first, second = Finding.objects.all()
    assert (first.code, first.severity, first.raw_severity) == ("ISSUE-R1-001", "high", "MAJOR")
    assert (first.path, first.line, first.suggestion) == ("src/calls.py", 12, "Wait.")
    assert (second.code, second.severity) == ("ISSUE-R1-007", "low")
    assert (Review.objects.get().raw_verdict, Review.objects.get().text) == ("Needs work", "See below.")


def test_a_rejection_with_optional_findings_only_sends_the_task_back(reviewed: Task) -> None:
    body = accepted(
        hand_in(live_run(reviewed, "reviewer")[1], reviewed, "reject", notes="[SHOULD] Name the limit.")
    )
    assert Review.objects.get().verdict == "NEEDS_REVISION"
    assert (body["status"], body["round"]) == ("in_progress", 2)


def test_the_same_point_keeps_its_identity_over_the_rounds(rejected: Task) -> None:
    accepted(submit(live_run(rejected)[1], rejected, response="- ISSUE-R1-001: fixed\n"))
    verify(rejected)
    rejected.refresh_from_db()
    review = {"findings": [{"code": "ISSUE-R1-001", "title": "Still at once", "severity": "high"}]}
    accepted(hand_in(live_run(rejected, "reviewer")[1], rejected, "reject", review=review))
    again = Finding.objects.get(round=2)
    assert (again.code, again.raw_code) == ("ISSUE-R2-001", "ISSUE-R1-001")
    assert again.first == Finding.objects.get(round=1)


def test_notes_beside_a_markdown_review_are_kept(reviewed: Task) -> None:
    secret = live_run(reviewed, "reviewer")[1]
    accepted(hand_in(secret, reviewed, "reject", review=REVIEW, notes="I ran it twice."))
    assert "I ran it twice." in Review.objects.get().text


def test_notes_beside_a_structured_review_are_kept(reviewed: Task) -> None:
    review = {"findings": [{"title": "No pause", "severity": "high"}]}
    secret = live_run(reviewed, "reviewer")[1]
    accepted(hand_in(secret, reviewed, "reject", review=review, notes="I ran it twice."))
    assert "I ran it twice." in Review.objects.get().text


MALFORMED_REVIEWS = {
    "a finding without a title": ({"findings": [{"severity": "high"}]}, 1),
    "a finding without a severity": (
        {"findings": [{"title": "A", "severity": "high"}, {"title": "B"}]},
        2,
    ),
    "findings that are no list": ({"findings": "many"}, 0),
    "an unknown verdict": ({"verdict": "perhaps", "findings": []}, 0),
}


@for_each("verb", ["approve", "reject"])
@for_each("name", MALFORMED_REVIEWS)
def test_a_malformed_review_is_refused_and_the_run_goes_on(reviewed: Task, verb: str, name: str) -> None:
    review, line = MALFORMED_REVIEWS[name]
    run, secret = live_run(reviewed, "reviewer")
    before = rows()
    body = refused(hand_in(secret, reviewed, verb, review=review), 422, "malformed_review")
    assert rows() == before
    assert body["details"][0]["line"] == line
    assert body["details"][0]["reason"]
    assert_live(run)
    accepted(hand_in(secret, reviewed, verb, notes="The tries have a pause."))
    assert_ended(run)


def test_a_rejection_says_why(reviewed: Task) -> None:
    run, secret = live_run(reviewed, "reviewer")
    before = rows()
    # what stands in a field that nobody reads is no approval, either
    body = refused(hand_in(secret, reviewed, "approve", body="Fix the lock first."), 422, "invalid")
    assert [(each["field"], "review" in each["reason"]) for each in body["details"]] == [("body", True)]
    refused(hand_in(secret, reviewed, "reject"), 422, "malformed_review")
    assert rows() == before
    assert_live(run)


@for_each("review", [{"verdict": "NEEDS_REVISION"}, {"findings": []}, "  \n"])
def test_a_document_without_a_word_is_no_rejection(reviewed: Task, review: Any) -> None:
    run, secret = live_run(reviewed, "reviewer")
    before = rows()
    reply = hand_in(secret, reviewed, "reject", review=review)
    assert rows() == before
    refused(reply, 422, "malformed_review")
    assert_live(run)


@for_each("state", ["received", "kept", "red", "lost"])
@for_each("verb", ["approve", "reject"])
def test_only_a_verified_submission_is_reviewed(reviewed: Task, lea: User, state: str, verb: str) -> None:
    Submission.objects.update(state=state)
    for secret in (live_run(reviewed, "reviewer")[1], person(lea)):
        before = rows()
        refused(hand_in(secret, reviewed, verb, notes="Looked at it."), 409, "not_verified")
        assert rows() == before


@for_each("verb", ["approve", "reject"])
def test_an_agent_does_not_review_its_own_submission(reviewed: Task, verb: str) -> None:
    agent = create_agent("coder")
    over = {"status": "ended", "outcome": "handed_in", "ended_at": timezone.now(), "token_hash": None}
    live_run(reviewed, agent=agent, submission=reviewed.last_submission(), **over)
    run, secret = live_run(reviewed, "reviewer", agent=agent)
    before = rows()
    refused(hand_in(secret, reviewed, verb, notes="Looked at it."), 403, "self_review")
    assert rows() == before
    assert_live(run)


def test_two_agents_that_were_deleted_are_not_the_same(reviewed: Task) -> None:
    over = {"status": "ended", "outcome": "handed_in", "ended_at": timezone.now(), "token_hash": None}
    live_run(reviewed, agent=None, submission=reviewed.last_submission(), **over)
    accepted(hand_in(live_run(reviewed, "reviewer", agent=None)[1], reviewed, "approve"))


def test_a_person_reviews_under_the_own_name(reviewed: Task, lea: User) -> None:
    accepted(hand_in(person(lea), reviewed, "approve"))
    assert (Review.objects.get().by_agent, Review.objects.get().by_user) == ("Lea Lindt", lea)
    assert event(reviewed, "approve").user == lea


# --- How a review is read ---------------------------------------------------------------------------------

UNSURE = """\
## Review

### High Priority

- **ISSUE-R1-001**: [LOW] The delay is unbounded
  - **Location:** api.py:41
- **ISSUE-R1-002**: No test
"""


def test_a_review_is_read_back_without_being_handed_in(reviewed: Task) -> None:
    run, secret = live_run(reviewed, "reviewer")
    body = accepted(hand_in(secret, reviewed, "reject", review=UNSURE, check=True))
    assert body["message"].startswith("Nothing is handed in yet.")
    assert body["read_as"][0] == "Handed in as a rejection; verdict in the text: none that can be read."
    assert body["read_as"][1:3] == [
        "1. HIGH: The delay is unbounded at api.py:41", "2. HIGH: No test, at no place",
    ]  # fmt: skip
    assert body["read_as"][3].startswith("Unsure: line 5: the severities of ISSUE-R1-001 disagree")
    bare = (
        "## Review\n\n- **ISSUE-R1-001**: The delay is unbounded\n\nISSUE-R1-002: withdrawn, it is tested.\n"
    )
    body = accepted(hand_in(secret, reviewed, "reject", review=bare, check=True))
    assert body["read_as"][1:3] == [
        "1. MEDIUM, as none is stated: The delay is unbounded, at no place",
        "2. MEDIUM, as none is stated, withdrawn: withdrawn, it is tested., at no place",
    ]
    run.refresh_from_db()
    assert (run.status, Review.objects.count()) == ("running", 0)
    accepted(hand_in(secret, reviewed, "reject", review=f"{bare}\n## Verdict: NEEDS_REVISION\n"))


def test_what_the_reader_is_unsure_of_is_asked_back_once(reviewed: Task) -> None:
    run, secret = live_run(reviewed, "reviewer")
    asked = hand_in(secret, reviewed, "reject", review=UNSURE)
    assert (asked.status_code, asked.json()["code"]) == (422, "asked_back")
    told = [each["reason"] for each in asked.json()["details"]]
    assert "the severities of ISSUE-R1-001 disagree" in told[0]
    assert "1. HIGH: The delay is unbounded at api.py:41" in told
    run.refresh_from_db()
    assert (run.status, run.refusals, Review.objects.count()) == ("running", 1, 0)
    # Whoever does not know how to confirm is taken at its word.
    accepted(hand_in(secret, reviewed, "reject", review=UNSURE))
    assert Review.objects.get().findings.count() == 2


def test_an_answer_that_does_not_say_what_was_done_is_asked_back_once_for_each_finding(
    rejected: Task,
) -> None:
    """ANS-7"""
    create_finding(rejected.findings.get().review, code="ISSUE-R1-002")
    run, secret = live_run(rejected)
    argues = "- ISSUE-R1-00{}: the caller holds the lock\n"
    asked = submit(secret, rejected, response=f"- ISSUE-R1-001: fixed\n{argues.format(2)}")
    body = refused(asked, 422, "asked_back")
    assert [each["line"] for each in body["details"]] == [2]
    assert "ISSUE-R1-002 does not say what was done" in body["message"]
    assert "DISAGREE" in body["hint"]
    assert_live(run)
    both = argues.format(1) + argues.format(2)
    assert len(refused(submit(secret, rejected, response=both), 422, "asked_back")["details"]) == 2
    # Whoever cannot say it in other words is taken at its word.
    accepted(submit(secret, rejected, response=both))
    assert set(Answer.objects.values_list("kind", flat=True)) == {"addressed"}


def test_a_rejection_in_which_nothing_can_be_read_is_asked_back_and_may_be_given_as_front_matter(
    reviewed: Task,
) -> None:
    prose = (ROUNDS / "072" / "review.md").read_text()
    secret = live_run(reviewed, "reviewer")[1]
    asked = hand_in(secret, reviewed, "reject", review=prose)
    assert (asked.status_code, asked.json()["code"]) == (422, "asked_back")
    assert "no finding can be read" in asked.json()["details"][0]["reason"]
    front = "---\nverdict: NEEDS_REVISION\nfindings:\n- {severity: high, title: Cells are dropped}\n"
    wrong = hand_in(secret, reviewed, "reject", review=f"{front}- {{servity: low, title: x}}\n---\n{prose}")
    assert (wrong.status_code, wrong.json()["details"][0]["line"]) == (422, 5)
    accepted(hand_in(secret, reviewed, "reject", review=f"{front}---\n{prose}"))
    finding = Finding.objects.get()
    assert (finding.title, finding.severity) == ("Cells are dropped", "high")
    assert Review.objects.get().text.startswith("Hi Mira")


def test_an_approval_that_still_demands_something_is_asked_back(reviewed: Task) -> None:
    but = "LGTM overall!\n\nOnly the lock must be released before merging, though."
    secret = live_run(reviewed, "reviewer")[1]
    asked = hand_in(secret, reviewed, "approve", review=but)
    assert (asked.status_code, asked.json()["code"]) == (422, "asked_back")
    assert asked.json()["details"][0]["line"] == 3
    assert Review.objects.count() == 0
    accepted(hand_in(secret, reviewed, "approve", review=but, confirm=True))


def test_a_review_that_approves_says_that_nothing_is_left_to_change(reviewed: Task) -> None:
    said = "LGTM, once the lock is given back."
    secret = live_run(reviewed, "reviewer")[1]
    asked = hand_in(secret, reviewed, "approve", review=said)
    assert (asked.status_code, asked.json()["code"]) == (422, "asked_back")
    assert "NO_ISSUES_FOUND" in asked.json()["message"]
    accepted(hand_in(secret, reviewed, "approve", review=f"{said} It is, now. NO_ISSUES_FOUND"))


def test_who_confirms_or_hands_in_data_is_not_asked(reviewed: Task) -> None:
    data = {"verdict": "NEEDS_REVISION", "findings": [{"severity": "low", "title": "No test"}]}
    secret = live_run(reviewed, "reviewer")[1]
    body = accepted(hand_in(secret, reviewed, "reject", review=data, check=True))
    assert body["read_as"][1:] == ["1. LOW: No test, at no place"]
    accepted(hand_in(secret, reviewed, "reject", review=UNSURE, confirm=True))
    assert Review.objects.count() == 1


# --- Too many rejections ----------------------------------------------------------------------------------


def reject_as_the_last(project: Project, **settings: Any) -> Task:
    """The second rejection of two that are allowed."""
    Project.objects.filter(pk=project.pk).update(settings={"rejections_max": 2, **settings})
    project.refresh_from_db()
    create_section(project, "Elsewhere")
    section = create_section(project, "Here")
    task = create_task(project, section=section, title="Retry", status="review", round=2, rejections=1)
    create_submission(task)
    accepted(hand_in(live_run(task, "reviewer")[1], task, "reject", notes="Still no pause."))
    task.refresh_from_db()
    return task


def test_the_last_rejection_fails_the_task_and_asks_for_help(ledger: Project) -> None:
    task = reject_as_the_last(ledger)
    assert (task.status, task.rejections) == ("failed", 2)
    assert event(task, "exhaust").note == "Exceeded 2 rejections"
    card = Conflict.objects.get()
    assert (card.kind, card.origin, card.opened_as) == ("help", "rejections", "system")
    assert (card.severity, card.effect, card.dispute.status) == ("high", "hold", "open")


def test_the_card_of_the_last_rejection_tells_every_round_and_completes_the_task_by_hand(
    ledger: Project, lea: User
) -> None:
    Project.objects.filter(pk=ledger.pk).update(settings={"rejections_max": 3})
    task = create_task(ledger, status="review", round=1, title="Retry")
    waits = create_task(ledger)
    Dependency.objects.create(task=waits, on=task)
    for number, words in enumerate(("Still no pause.", "It pauses twice.", "It never ends."), start=1):
        Task.objects.filter(pk=task.pk).update(status="review", round=number)
        task.refresh_from_db()
        create_submission(task, round=number, by_agent="coder-1")
        accepted(hand_in(live_run(task, "reviewer")[1], task, "reject", notes=words))
    card = Conflict.objects.get(origin="rejections")
    assert [line.partition(":")[0] for line in card.evidence] == ["Round 1", "Round 2", "Round 3"]
    assert all("coder-1" in line for line in card.evidence)
    assert "It pauses twice" in card.evidence[1]
    browser = Client()
    browser.force_login(lea)
    page = browser.get(f"/queue/{card.dispute.ref}/").content.decode()
    assert "It pauses twice" in page
    assert "Complete by hand" in page
    assert "Not stated" not in page
    shown = browser.get(f"/api/v1/disputes/{card.dispute.ref}/").json()
    assert "Nothing more is known" not in json.dumps(shown)
    decide(card, "finish", user=lea, rationale="Merged by hand.", undo_seconds=0)
    task.refresh_from_db()
    assert (task.status, task.finished_by) == ("completed", "hand")
    card.refresh_from_db()
    assert (card.decisions.get().action, card.followed) == ("finish", "applied")


def test_one_rejection_less_goes_on(ledger: Project) -> None:
    Project.objects.filter(pk=ledger.pk).update(settings={"rejections_max": 3})
    task = create_task(ledger, status="review", round=2, rejections=1)
    create_submission(task)
    body = accepted(hand_in(live_run(task, "reviewer")[1], task, "reject", notes="Still no pause."))
    assert (body["status"], body["round"]) == ("in_progress", 3)
    assert not Conflict.objects.exists()


@for_each(
    ("on_failed", "stopped"), [("section", ["Here"]), ("project", ["Elsewhere", "Here"]), ("continue", [])]
)
def test_a_failed_task_stops_what_the_project_says(
    ledger: Project, on_failed: str, stopped: list[str]
) -> None:
    reject_as_the_last(ledger, on_failed=on_failed)
    found = Section.objects.filter(is_stopped=True).order_by("title").values_list("title", flat=True)
    assert list(found) == stopped


# --- Disputes ---------------------------------------------------------------------------------------------


def test_a_coder_puts_its_task_before_a_human(working: Task) -> None:
    run, secret = live_run(working, agent_label="coder-1")
    reply = hand_in(
        secret,
        working,
        "dispute",
        reason="specification_interpretation",
        position="Spec says 'stateless auth' which implies JWT. So be it.",
    )
    conflict = Conflict.objects.get()
    assert (conflict.origin, conflict.opened_as) == ("cli", "coder")
    assert (conflict.reason, conflict.severity, conflict.effect) == (
        "specification_ambiguity",
        "high",
        "hold",
    )
    assert conflict.question == "Specification: Spec says 'stateless auth' which implies JWT."
    assert conflict.coder_position.endswith("So be it.")
    assert (conflict.reviewer_position, conflict.coder_label) == ("not stated", "coder-1")
    working.refresh_from_db()
    assert working.status == "disputed"
    assert kinds(working) == ["conflict_opened", "hold"]
    assert event(working, "conflict_opened").run_number == run.pk
    body = accepted(reply)
    assert (body["status"], body["conflicts"]) == ("disputed", [conflict.ref])
    assert_ended(run)


@for_each("severity", ["low", "medium", "high"])
def test_a_reviewers_dispute_holds_whatever_it_is_called(reviewed: Task, severity: str) -> None:
    body = BODIES["dispute"] | {"severity": severity}
    accepted(
        hand_in(live_run(reviewed, "reviewer", agent_label="reviewer-1")[1], reviewed, "dispute", **body)
    )
    conflict = Conflict.objects.get()
    assert (conflict.opened_as, conflict.effect, conflict.status) == ("reviewer", "hold", "open")
    assert (conflict.reviewer_position, conflict.reviewer_label) == (
        "Pauses are not asked for.",
        "reviewer-1",
    )
    assert conflict.coder_position == "not stated"
    reviewed.refresh_from_db()
    assert (reviewed.status, reviewed.accepted) == ("disputed", None)


def test_a_security_reason_holds_and_counts_as_high(rejected: Task) -> None:
    Finding.objects.update(severity="medium")
    body = {"reason": "security_concern", "position": "The pause leaks time.", "finding": "issue-r1-001"}
    accepted(hand_in(live_run(rejected)[1], rejected, "dispute", severity="low", **body))
    conflict = Conflict.objects.get()
    assert (conflict.reason, conflict.severity, conflict.effect) == ("security_concern", "high", "hold")
    assert conflict.dispute.severity == "high"


def test_a_security_reason_holds_where_the_project_ships(rejected: Task) -> None:
    Project.objects.update(settings={"policy": {"high": "ship"}})
    rejected.refresh_from_db()
    body = {"reason": "security_concern", "position": "The pause leaks time.", "finding": "ISSUE-R1-001"}
    accepted(hand_in(live_run(rejected)[1], rejected, "dispute", **body))
    assert Conflict.objects.get().effect == "hold"


@for_each(
    ("reason", "read", "severity"),
    [
        ("architecture_disagreement", "architecture_disagreement", "high"),
        ("Architecture disagreement", "architecture_disagreement", "high"),
        ("guideline-conflict", "guideline_conflict", "high"),
        ("security_concern", "security_concern", "high"),
        ("scope_disagreement", "scope_disagreement", "medium"),
        ("a matter of taste", "other", "medium"),
    ],
)
def test_the_reason_gives_the_severity(working: Task, reason: str, read: str, severity: str) -> None:
    accepted(hand_in(live_run(working)[1], working, "dispute", reason=reason))
    conflict = Conflict.objects.get()
    assert (conflict.reason, conflict.severity, conflict.coder_position) == (read, severity, reason)
    assert conflict.effect == "hold"  # the reviewer was not heard


def test_the_words_of_an_unknown_reason_are_kept(working: Task) -> None:
    body = {"reason": "a matter of taste", "position": "Snake case reads better."}
    accepted(hand_in(live_run(working)[1], working, "dispute", **body))
    conflict = Conflict.objects.get()
    told = (conflict.question, conflict.coder_position, conflict.coder_rationale, event(working, "hold").note)
    assert "a matter of taste" in " ".join(told)


def test_a_dispute_on_a_finding_has_both_positions(rejected: Task) -> None:
    body = BODIES["dispute"] | {"finding": "ISSUE-R1-001"}
    accepted(hand_in(live_run(rejected)[1], rejected, "dispute", **body))
    conflict = Conflict.objects.get()
    assert conflict.finding == Finding.objects.get()
    assert conflict.question == "Failed calls are retried at once"
    assert conflict.reviewer_position == "Wait between tries, twice as long each time."
    assert conflict.coder_position == "Pauses are not asked for."


def test_a_dispute_names_a_finding_that_exists(rejected: Task) -> None:
    run, secret = live_run(rejected)
    before = rows()
    body = refused(
        hand_in(secret, rejected, "dispute", finding="ISSUE-R9-001", **BODIES["dispute"]),
        422,
        "unknown_finding",
    )
    assert rows() == before
    assert "ISSUE-R1-001" in body["hint"]
    assert_live(run)


def test_a_finding_is_in_dispute_once(rejected: Task, tom: User) -> None:
    body = BODIES["dispute"] | {"finding": "ISSUE-R1-001"}
    accepted(hand_in(person(tom), rejected, "dispute", **body))
    before = rows()
    refused(hand_in(person(tom), rejected, "dispute", **body), 409, "already_open")
    assert rows() == before


def flagged(task: Task, level: str = "warn") -> Conflict:
    """The program suspects that nothing was done about the finding."""
    submission = task.last_submission()
    finding = Finding.objects.get(task=task)
    assert submission is not None
    found = Suspicion(finding.code, 1, Severity.HIGH, ("H4",), "medium", level, ("its place is unchanged",))
    raise_flags(submission, [(finding, found)])
    return Conflict.objects.get(kind="silence")


def test_a_flag_at_silence_keeps_nobody_from_disagreeing_openly(rejected: Task) -> None:
    card = flagged(rejected)
    body = BODIES["dispute"] | {"finding": "ISSUE-R1-001"}
    accepted(hand_in(live_run(rejected)[1], rejected, "dispute", **body))
    card.refresh_from_db()
    assert (card.status, Conflict.objects.get(status="open").kind) == ("moot", "disagreement")


@for_each("then", ["coder", "reviewer"])
def test_a_coder_that_is_asked_whether_it_disagrees_may_say_so_by_the_verb(
    rejected: Task, tom: User, then: str
) -> None:
    """It has answered: whatever is ruled on that, nobody waits for another answer."""
    card = flagged(rejected)
    decide(card, "ask_disagree", user=tom, undo_seconds=0)
    rejected.refresh_from_db()
    body = BODIES["dispute"] | {"finding": "ISSUE-R1-001"}
    accepted(hand_in(live_run(rejected)[1], rejected, "dispute", **body))
    card.refresh_from_db()
    assert (card.status, card.followed) == ("decided", "applied")
    rule(rejected, tom, then)
    assert rejected.status == ("completed" if then == "coder" else "in_progress")


def test_what_was_waived_is_not_argued_again(rejected: Task, tom: User) -> None:
    """DEC-2"""
    decide(flagged(rejected), "waive", user=tom, text="It is ours.", undo_seconds=0)
    body = BODIES["dispute"] | {"finding": "ISSUE-R1-001"}
    refused(hand_in(live_run(rejected)[1], rejected, "dispute", **body), 422, "RE_ARGUED_CONFLICT")


LACKS = {"finding": "ISSUE-R1-001", "kind": "partly", "text": "I have no access to the staging server."}


def test_a_hand_in_that_says_what_is_lacking_asks_for_help(rejected: Task) -> None:
    run, secret = live_run(rejected)
    body = accepted(submit(secret, rejected, response={"answers": [LACKS]}))
    assert (body["status"], Conflict.objects.get().kind) == ("disputed", "help")
    assert_ended(run)


def test_a_disagreement_in_it_is_asked_about_too(rejected: Task) -> None:
    create_finding(Finding.objects.get().review, code="ISSUE-R1-002")
    declined = {"finding": "ISSUE-R1-002", "kind": "declined", "text": "No.", "rationale": "Documented."}
    body = accepted(submit(live_run(rejected)[1], rejected, response={"answers": [LACKS, declined]}))
    assert body["status"] == "disputed"
    assert sorted(Conflict.objects.values_list("kind", flat=True)) == ["disagreement", "help"]


def test_a_response_may_be_given_as_front_matter(rejected: Task) -> None:
    run, secret = live_run(rejected)
    top = "---\nanswers:\n- {finding: ISSUE-R1-001, kind: declined, concern: It grows."
    wrong = refused(submit(secret, rejected, response=f"{top}}}\n---\n"), 422, "malformed_response")
    as_json = {"answers": [{"finding": "ISSUE-R1-001", "kind": "declined", "concern": "It grows."}]}
    assert wrong == refused(submit(secret, rejected, response=as_json), 422, "malformed_response")
    assert_live(run)
    good = f"{top} rationale: It is bounded.}}\n---\nThe rest is done.\n"
    accepted(submit(secret, rejected, response=good.replace("grows. ", "grows., ")))
    conflict = Conflict.objects.get()
    assert (conflict.coder_rationale, conflict.opened_as) == ("It is bounded.", "coder")


def test_too_many_disagreements_do_not_end_the_run(rejected: Task) -> None:
    """RL-1: the coder justifies them, or withdraws"""
    Project.objects.update(settings={"disagree_absolute": 0})
    run, secret = live_run(rejected)
    before = rows()
    body = refused(submit(secret, rejected, response=DISAGREE), 422, "too_many_disagreements")
    assert body["details"] == [
        {"line": 1, "reason": "ISSUE-R1-001: withdraw the disagreement, or justify it"}
    ]
    assert rows() == before
    assert_live(run)
    justified = f"{DISAGREE}\n## Justification\n\nThe specification says so.\n"
    assert accepted(submit(secret, rejected, response=justified))["status"] == "disputed"
    assert Conflict.objects.get(kind="alert").effect == "hold"


def test_a_run_has_nothing_to_hand_in_once_its_task_is_found_to_go_in_circles(rejected: Task) -> None:
    """A-B-A, seen when the host has read the code, while the next run is at work"""
    first = Finding.objects.get()
    Task.objects.filter(pk=rejected.pk).update(round=4)
    reviews = [create_review(create_submission(rejected, round=number)) for number in (2, 3)]
    for review, excerpt in zip(reviews, ("b", "a"), strict=True):
        create_finding(review, first=first, excerpt=excerpt)
    Finding.objects.filter(pk=first.pk).update(excerpt="a")
    rejected.refresh_from_db()
    secret = live_run(rejected)[1]
    look_again(reviews[-1])
    body = refused(submit(secret, rejected, response="- ISSUE-R3-003: done"), 409, "wrong_status")
    assert body["status_now"] == "disputed"


def test_further_conflicts_join_the_tasks_dispute(rejected: Task, tom: User) -> None:
    accepted(hand_in(person(tom), rejected, "dispute", finding="ISSUE-R1-001", **BODIES["dispute"]))
    accepted(hand_in(person(tom), rejected, "dispute", **BODIES["dispute"]))
    assert Dispute.objects.get().conflicts.count() == 2


def test_a_held_task_always_has_a_card(rejected: Task) -> None:
    Finding.objects.update(severity="low", mandatory=False)
    body = BODIES["dispute"] | {"finding": "ISSUE-R1-001"}
    accepted(hand_in(live_run(rejected)[1], rejected, "dispute", **body))
    rejected.refresh_from_db()
    asked = Conflict.objects.filter(status="open").exists()
    assert asked == (rejected.status == "disputed")


def test_a_label_is_no_way_round_a_mandatory_finding(rejected: Task) -> None:
    """DIS-3"""
    body = BODIES["dispute"] | {"finding": "ISSUE-R1-001", "severity": "low"}
    accepted(hand_in(live_run(rejected)[1], rejected, "dispute", **body))
    conflict = Conflict.objects.get()
    assert (conflict.severity, conflict.effect, conflict.status) == ("high", "hold", "open")


def test_a_commit_in_dispute_does_not_land(reviewed: Task, tom: User) -> None:
    """The tick never picks a task with an open blocking item, whatever its status (DESIGN 4)."""
    accepted(hand_in(live_run(reviewed, "reviewer")[1], reviewed, "approve"))
    accepted(hand_in(person(tom), reviewed, "dispute", reason="security_concern", position="It leaks."))
    assert Conflict.objects.get().effect == "hold"
    tick()
    assert not Landing.objects.exists()


def test_a_persons_disagreement_is_recorded_as_the_persons(rejected: Task, lea: User) -> None:
    accepted(submit(person(lea), rejected, response=DISAGREE))
    opened = event(rejected, "conflict_opened")
    assert (opened.actor_kind, opened.user) == ("person", lea)


def test_a_minor_disagreement_is_recorded_and_nothing_waits(working: Task) -> None:
    run, secret = live_run(working)
    reply = hand_in(secret, working, "log", notes="Camel case was preferred. Snake case stays.", minor=True)
    conflict = Conflict.objects.get()
    assert (conflict.origin, conflict.opened_as, conflict.status) == ("minor", "coder", "logged")
    assert (conflict.severity, conflict.effect) == ("low", "log")
    assert conflict.question == "Camel case was preferred."
    assert (conflict.dispute.status, conflict.dispute.closed_reason) == ("closed", "logged")
    working.refresh_from_db()
    assert (working.status, working.version) == ("in_progress", 0)
    assert kinds(working) == ["conflict_logged"]
    assert accepted(reply)["message"].endswith("nothing waits for it.")
    assert_live(run)


def test_only_minor_disagreements_are_logged(working: Task) -> None:
    run, secret = live_run(working)
    before = rows()
    refused(hand_in(secret, working, "log", notes="A serious matter.", minor=False), 422, "not_minor")
    assert rows() == before
    assert_live(run)


# --- Blocked, comments ------------------------------------------------------------------------------------


def test_a_blocked_coder_asks_for_help(working: Task) -> None:
    run, secret = live_run(working)
    reply = hand_in(secret, working, "blocked", reason="No access to the server. Its token is missing.")
    card = Conflict.objects.get()
    assert (card.kind, card.origin, card.effect) == ("help", "blocked", "hold")
    assert card.question == "The coder is blocked: No access to the server."
    assert card.coder_position == "No access to the server. Its token is missing."
    working.refresh_from_db()
    assert working.status == "disputed"
    assert kinds(working) == ["stop_for_help", "conflict_opened"]
    assert event(working, "stop_for_help").run_number == run.pk
    assert accepted(reply)["conflicts"] == [card.ref]
    assert_ended(run)


def test_a_comment_does_not_end_the_run(working: Task) -> None:
    run, secret = live_run(working, agent_label="coder-1")
    reply = hand_in(
        secret, working, "comment", body="The pause comes from the server.", target="src/calls.py"
    )
    said = Comment.objects.get()
    assert (said.body, said.target) == ("The pause comes from the server.", "src/calls.py")
    assert (said.by_label, said.by_kind, said.by_user) == ("coder-1", "run", None)
    assert event(working, "commented").data == {"comment": said.pk}
    assert accepted(reply)["status"] == "in_progress"
    assert_live(run)


def test_a_comment_answers_one_of_the_same_task(working: Task, reviewed: Task, tom: User) -> None:
    secret = person(tom)
    accepted(hand_in(secret, working, "comment", body="Which server?"))
    asked = Comment.objects.get()
    accepted(hand_in(secret, working, "comment", body="The first one.", parent=asked.pk))
    assert asked.replies.get().body == "The first one."
    before = rows()
    refused(hand_in(secret, reviewed, "comment", body="Here too.", parent=asked.pk), 404, "not_found")
    assert rows() == before


# --- Once, and in its turn --------------------------------------------------------------------------------

FINAL = ["submit", "approve", "reject", "dispute", "blocked", "escalate"]


def task_for(verb: str, project: Project) -> tuple[Task, Run, str]:
    """A task in the status that the verb needs, with the run that may use it."""
    if verb in {"approve", "reject"}:
        task = create_task(project, status="review", round=1)
        create_submission(task)
        return task, *live_run(task, "reviewer")
    task = create_task(project, status="in_progress", round=1)
    return task, *live_run(task)


@for_each("verb", FINAL)
def test_a_final_hand_in_ends_the_run(ledger: Project, verb: str) -> None:
    task, run, secret = task_for(verb, ledger)
    accepted(hand_in(secret, task, verb, **BODIES[verb]))
    assert_ended(run)
    before = rows()
    for again in FINAL:
        body = refused(hand_in(secret, task, again, **BODIES[again]), 409, "handed_in")
        assert str(run.pk) in body["message"]
    assert rows() == before


@for_each("verb", ["log", "comment"])
def test_nor_does_a_run_say_more_afterwards(ledger: Project, verb: str) -> None:
    task, _, secret = task_for("submit", ledger)
    accepted(submit(secret, task))
    before = rows()
    refused(hand_in(secret, task, verb, **BODIES[verb]), 409, "handed_in")
    assert rows() == before


def test_a_run_that_only_starts_may_hand_in(working: Task) -> None:
    run, secret = live_run(working, status="starting")
    accepted(submit(secret, working))
    assert_ended(run)


def test_a_run_whose_claim_is_older_does_not_hand_in(working: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another host claimed it between the look at its token and the hand-in: the fence is higher."""
    run, secret = live_run(working)
    take = handins.caller_of

    def claimed(*args: Any) -> Any:
        found = take(*args)
        Run.objects.filter(pk=run.pk).update(fence=1)
        return found

    monkeypatch.setattr("agents.api.handins.caller.caller_of", claimed)
    before = rows()["Submission"]
    refused(submit(secret, working), 409, "handed_in")
    assert rows()["Submission"] == before


@for_each("verb", [*FINAL, "log", "comment"])
def test_the_same_key_is_the_same_reply_and_one_effect(ledger: Project, verb: str) -> None:
    task, _, secret = task_for(verb, ledger)
    first = accepted(hand_in(secret, task, verb, key="4f5b", **BODIES[verb]))
    before = rows()
    again = accepted(hand_in(secret, task, verb, key="4f5b", **BODIES[verb]))
    assert rows() == before
    assert again == first


@for_each("verb", [*FINAL, "log", "comment"])
def test_a_key_of_another_request_is_refused(ledger: Project, verb: str) -> None:
    task, _, secret = task_for(verb, ledger)
    accepted(hand_in(secret, task, verb, key="4f5b", **BODIES[verb]))
    before = rows()
    refused(hand_in(secret, task, verb, key="4f5b", **BODIES[verb], model="other"), 422, "key_reused")
    refused(hand_in(secret, task, "comment", key="4f5b", body="Other."), 422, "key_reused")
    assert rows() == before


def test_a_person_may_comment_twice_with_two_keys_or_none(working: Task, tom: User) -> None:
    secret = person(tom)
    for key in ("a", "b", "", ""):
        accepted(hand_in(secret, working, "comment", key=key, body="Again."))
    assert Comment.objects.count() == 4


def test_a_key_belongs_to_its_address(working: Task, reviewed: Task, tom: User) -> None:
    secret = person(tom)
    accepted(hand_in(secret, working, "comment", key="a", body="Mine."))
    before = rows()
    refused(hand_in(secret, reviewed, "comment", key="a", body="Mine."), 422, "key_reused")
    assert rows() == before


def test_keys_of_two_callers_are_two_keys(working: Task, tom: User, lea: User) -> None:
    first = accepted(hand_in(person(tom), working, "comment", key="a", body="Mine."))
    second = accepted(hand_in(person(lea), working, "comment", key="a", body="Mine."))
    assert first != second
    assert set(Comment.objects.values_list("by_label", flat=True)) == {"Tom Tran", "Lea Lindt"}


def test_keys_of_two_runs_are_two_keys_whatever_blank_is_before_the_token(ledger: Project) -> None:
    for blank in (" ", "  ", "\t"):
        for _ in range(2):
            task, _run, secret = task_for("comment", ledger)
            path, headers = f"/api/v1/tasks/{task.ref}/comment/", {"authorization": f"Bearer{blank}{secret}"}
            reply = APIClient().post(
                path, {"body": "Mine."}, format="json", headers=headers | {"idempotency-key": "a"}
            )
            assert accepted(reply)["message"], blank


def test_a_refusal_does_not_use_up_the_key(rejected: Task) -> None:
    secret = live_run(rejected)[1]
    refused(hand_in(secret, rejected, "submit", key="a", sha=COMMIT), 422, "unanswered_findings")
    assert not Idempotency.objects.exists()
    accepted(hand_in(secret, rejected, "submit", key="a", sha=COMMIT, response="- ISSUE-R1-001: fixed\n"))


def overtake(monkeypatch: pytest.MonkeyPatch, first: Any) -> None:
    """The first try of a request commits right after its second try has looked for its reply."""
    look = idempotency.earlier_reply
    looks: list[Any] = []

    def late(request: Any) -> Any:
        looks.append(request)
        if len(looks) > 1:
            return look(request)
        monkeypatch.setattr(idempotency, "earlier_reply", look)
        first()
        monkeypatch.setattr(idempotency, "earlier_reply", late)
        return None

    monkeypatch.setattr(idempotency, "earlier_reply", late)


def test_two_tries_at_once_have_one_effect(working: Task, tom: User, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = person(tom)
    replies: list[Any] = []
    overtake(monkeypatch, lambda: replies.append(hand_in(secret, working, "comment", key="a", body="Once.")))
    second = accepted(hand_in(secret, working, "comment", key="a", body="Once."))
    assert Comment.objects.count() == 1
    assert second == accepted(replies[0])


def test_two_tries_at_once_of_a_final_hand_in_have_one_reply(
    working: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C18: the command sends a try again when its connection was cut."""
    secret = live_run(working)[1]
    replies: list[Any] = []
    overtake(monkeypatch, lambda: replies.append(hand_in(secret, working, "submit", key="a", sha=COMMIT)))
    second = hand_in(secret, working, "submit", key="a", sha=COMMIT)
    assert Submission.objects.count() == 1
    assert accepted(second) == accepted(replies[0])


@for_each("verb", ["submit", "dispute", "blocked", "escalate"])
def test_a_coder_whose_turn_is_over_is_told_so(working: Task, verb: str) -> None:
    run, secret = live_run(working)
    working.submit(actor=SYSTEM)
    working.send_back(note="red")
    before = rows()
    body = refused(hand_in(secret, working, verb, **BODIES[verb]), 409, "stale_turn")
    assert rows() == before
    assert body["status_now"] == "in_progress"
    assert_live(run)


@for_each("verb", ["approve", "reject"])
def test_a_reviewer_of_an_older_submission_is_told_so(reviewed: Task, verb: str) -> None:
    secret = live_run(reviewed, "reviewer")[1]
    reviewed.send_back(note="red")
    reviewed.submit(actor=SYSTEM)
    create_submission(reviewed)
    before = rows()
    refused(hand_in(secret, reviewed, verb, **BODIES[verb]), 409, "stale_turn")
    assert rows() == before


@for_each("verb", ["approve", "reject"])
def test_a_reviewer_whose_turn_is_over_is_told_so(reviewed: Task, verb: str) -> None:
    secret = live_run(reviewed, "reviewer")[1]
    Task.objects.filter(pk=reviewed.pk).update(version=5)
    before = rows()
    refused(hand_in(secret, reviewed, verb, **BODIES[verb]), 409, "stale_turn")
    assert rows() == before


WRONG = {
    "submit": ["pending", "review", "disputed", "deferred", "cancelled"],
    "approve": ["in_progress", "disputed", "failed"],
    "reject": ["in_progress", "disputed", "deferred"],
    "dispute": ["pending", "failed", "deferred", "cancelled"],
    "blocked": ["pending", "review", "disputed"],
    "escalate": ["pending", "review", "disputed", "deferred"],
}


@for_each(("verb", "status"), [(verb, status) for verb in WRONG for status in WRONG[verb]])
def test_a_verb_needs_its_status(ledger: Project, lea: User, verb: str, status: str) -> None:
    task = create_task(ledger, status=status, round=1)
    create_submission(task)
    before = rows()
    body = refused(hand_in(person(lea), task, verb, **BODIES[verb]), 409, "wrong_status")
    assert rows() == before
    assert status in body["message"]


def test_a_ruling_meanwhile_costs_the_late_hand_in_and_nothing_else(rejected: Task, tom: User) -> None:
    """The coder of the second round is still at work when a human disputes and rules."""
    run, secret = live_run(rejected)
    accepted(hand_in(person(tom), rejected, "dispute", finding="ISSUE-R1-001", **BODIES["dispute"]))
    rule(rejected, tom, "reviewer")
    before = rows()
    refused(submit(secret, rejected, response="- ISSUE-R1-001: fixed\n"), 409, "stale_turn")
    assert rows() == before
    assert Decision.objects.count() == 1
    assert_live(run)


def test_a_run_reads_who_it_is(working: Task, lea: User) -> None:
    secret = live_run(working, agent_label="coder-1")[1]
    assert client_with(secret).get("/api/v1/me/").json() == {
        "kind": "run",
        "name": "coder-1",
        "role": "coder",
        "task": "ledger-1",
    }
    assert client_with(person(lea)).get("/api/v1/me/").json() == {
        "kind": "person",
        "name": "lea",
        "role": "",
        "task": "",
    }


def test_a_run_of_a_project_reads_nothing_of_another(working: Task) -> None:
    other = create_task(create_project("other"), number=1)
    client = client_with(live_run(working)[1])
    assert client.get("/api/v1/tasks/").json()["count"] == 1
    assert client.get(f"/api/v1/tasks/{other.ref}/").status_code == 404
