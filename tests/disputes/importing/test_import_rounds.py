"""Importing rounds from a folder: tasks, findings, answers, disputes; once, again, changed and broken."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from agents.hosts.starting import base_of
from disputes import rulings
from disputes.importing.folder import FolderError, read_folder
from disputes.importing.plan import plan_session
from disputes.models import Conflict, Dispute, Flag
from disputes.protocol.rounds.linking import Links
from disputes.protocol.text.documents import MAX_BYTES, scan
from tasks.events import Actor
from tasks.models import Answer, Comment, Event, Finding, Project, Review, Submission, Task
from tests.factories import create_run

PROPOSAL = """\
# Round 1

## Gap Resolution: GAP-NET-001

**Gap:** Calls are retried without a pause
**Confidence:** HIGH

Every call is tried three times.

## Gap Resolution: GAP-LOG-002

**Confidence:** HIGH

One line for each call.
"""
REVIEW = """\
# Review of round 1

## Review: GAP-NET-001

### Critical Issues

None.

### High Priority

- **ISSUE-R1-001**: A dead server is hammered
  - Location: Retries
  - Impact: The server never comes back.
  - Suggestion: Wait twice as long each time.
- **ISSUE-R1-002**: The number of tries is fixed
  - Location: Retries
  - Impact: Slow networks fail.
  - Suggestion: Make it a setting.

**Verdict:** NEEDS_REVISION

## Review: GAP-LOG-002

### Low Priority

- **ISSUE-R1-003**: The line has no time
  - Location: Log
  - Impact: Nobody can order lines.
  - Suggestion: Begin with the time.

**Verdict:** APPROVED
"""
REVISION = """\
# Round 2

## Gap Resolution: GAP-NET-001 (Revised)

**Confidence:** HIGH

Tries wait 1, 2 and 4 seconds.

### Response to Round 1 Issues

| Issue | Status | What was done |
|---|---|---|
| ISSUE-R1-001 | addressed | The pause doubles. |

## DISAGREE: ISSUE-R1-002

**Reviewer Concern:**
> The number of tries is fixed

**Engineer Position:**
Three tries are enough.

**Rationale:**
More tries only hide that a network is down.
"""
APPROVAL = """\
# Review of round 2

## Review: GAP-NET-001

### Low Priority

None.

**Verdict:** APPROVED
"""


def write(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    """A session of two rounds over two gaps."""
    return write(
        tmp_path / "calls",
        {
            "round_001/engineer.md": PROPOSAL,
            "round_001/reviewer.md": REVIEW,
            "round_002/engineer.md": REVISION,
            "round_002/reviewer.md": APPROVAL,
        },
    )


@pytest.fixture
def run(ledger: Project, calls: Path, capsys: Any) -> Any:
    """Import the session (or another folder) and give back what the command says."""

    def call(folder: Path = calls) -> str:
        call_command("import_rounds", str(folder), project=ledger.slug)
        return capsys.readouterr().out

    return call


def counts() -> dict[str, int]:
    models = (Task, Submission, Review, Finding, Answer, Flag, Conflict, Dispute, Comment, Event)
    return {model.__name__: model.objects.count() for model in models}


def task(gap: str) -> Task:
    return Task.objects.get(source=f"calls#{gap}")


# --- What becomes of the documents ------------------------------------------------------------------------


def test_each_gap_becomes_a_task_that_nothing_starts(run: Any) -> None:
    """IMP-1: imported tasks are deferred."""
    run()
    net = task("GAP-NET-001")
    assert net.title == "GAP-NET-001: Calls are retried without a pause"
    assert (net.status, net.origin, net.round, net.severity) == ("deferred", "import", 2, "high")
    assert (net.accepted, net.landed_sha, net.section.title) == (None, "", "calls")
    assert not Task.objects.startable().exists()
    assert not Task.objects.to_land().exists()


def test_a_gap_that_was_approved_is_completed_as_a_record_only(run: Any) -> None:
    """IMP-1: completed without a commit and without a landing."""
    run()
    log = task("GAP-LOG-002")
    assert (log.status, log.finished_by, log.accepted) == ("completed", "import", None)


def test_submissions_are_documents_without_a_commit(run: Any) -> None:
    run()
    rows = Submission.objects.filter(task=task("GAP-NET-001"))
    assert [(row.kind, row.round, row.attempt, row.sha, row.state) for row in rows] == [
        ("document", 1, 1, "", "received"), ("document", 2, 1, "", "received"),
    ]  # fmt: skip
    assert "Every call is tried three times." in rows[0].response
    assert "One line for each call." not in rows[0].response


def test_findings_hang_on_the_task_of_their_gap(run: Any) -> None:
    """FND-5: the gap of a finding is that of the heading around it."""
    run()
    found = Finding.objects.filter(task=task("GAP-NET-001"))
    assert [(each.code, each.severity, each.mandatory) for each in found] == [
        ("ISSUE-R1-001", "high", True), ("ISSUE-R1-002", "high", True),
    ]  # fmt: skip
    assert found[0].suggestion == "Wait twice as long each time."
    assert task("GAP-LOG-002").findings.get().code == "ISSUE-R1-003"


def test_each_gap_has_its_own_verdict(run: Any) -> None:
    """Several verdicts in a file are normal."""
    run()
    verdicts = Review.objects.filter(submission__round=1).order_by("submission__task__number")
    assert [(each.verdict, each.origin_path) for each in verdicts] == [
        ("NEEDS_REVISION", "round_001/reviewer.md"), ("APPROVED_WITH_CONDITIONS", "round_001/reviewer.md"),
    ]  # fmt: skip
    assert all(len(each.content_sha256) == 64 for each in verdicts)


def test_answers_name_the_finding_and_what_was_done(run: Any) -> None:
    run()
    answers = Answer.objects.order_by("finding__code")
    assert [(each.finding.code, each.kind, each.submission.round) for each in answers] == [
        ("ISSUE-R1-001", "addressed", 2), ("ISSUE-R1-002", "declined", 2),
    ]  # fmt: skip


def test_a_declined_mandatory_finding_is_a_conflict(run: Any) -> None:
    """ARB-5; the task does not move by it."""
    run()
    conflict = Conflict.objects.get(origin="disagree")
    assert (conflict.name, conflict.coder_position) == ("ISSUE-R1-002", "Three tries are enough.")
    assert conflict.reviewer_position == "Make it a setting."
    assert conflict.dispute.task == task("GAP-NET-001")
    assert task("GAP-NET-001").status == "deferred"


def test_what_names_no_gap_is_about_the_session(ledger: Project, tmp_path: Path, run: Any) -> None:
    folder = write(
        tmp_path / "plain",
        {
            "round_001/engineer.md": "# Notes\n\nEverything is new.\n",
            "round_001/reviewer.md": "### High Priority\n\n- **ISSUE-R1-001**: Nothing is said\n\n"
            "**Verdict:** NEEDS_REVISION\n",
        },
    )
    said = run(folder)
    whole = Task.objects.get(source="plain#session")
    assert whole.title == "plain: the session as a whole"
    assert whole.findings.get().code == "ISSUE-R1-001"
    assert "round_001/engineer.md: no section proposes a gap" in said


def test_a_second_version_stands_in_the_same_round(tmp_path: Path, run: Any) -> None:
    folder = write(
        tmp_path / "calls",
        {"round_001/engineer_v2.md": REVISION, "round_001/reviewer_v2.md": APPROVAL},
    )
    run(folder)
    rows = task("GAP-NET-001").submissions.order_by("round", "attempt")
    assert [(row.round, row.attempt) for row in rows] == [(1, 1), (1, 2), (2, 1)]


def test_several_sessions_may_lie_below_the_folder(tmp_path: Path, calls: Path, run: Any) -> None:
    write(tmp_path / "other", {"round_001/engineer.md": PROPOSAL})
    said = run(tmp_path)
    assert {source.partition("#")[0] for source in Task.objects.values_list("source", flat=True)} == {
        "calls", "other",
    }  # fmt: skip
    assert said.index("calls: 4 documents") < said.index("other: 1 document")


def test_recorded_decisions_become_comments(calls: Path, run: Any) -> None:
    write(calls, {"decisions.md": "### ISSUE-R1-002: Tries\n\n**Choice:** Three\n**Rationale:** Enough.\n"})
    run()
    run()
    comment = Comment.objects.get()
    assert (comment.task, comment.target) == (task("GAP-NET-001"), "ISSUE-R1-002")
    assert comment.body == "Tries\n\nThree\n\nEnough."


def test_an_import_is_an_event(ledger: Project, run: Any) -> None:
    run()
    event = Event.objects.get(kind="rounds_imported")
    assert event.note.startswith("calls: 2 tasks, ")
    assert event.label == "import_rounds"


# --- What nobody answered ---------------------------------------------------------------------------------

SILENT = REVISION[: REVISION.index("### Response")]


def test_a_grave_finding_that_the_next_document_leaves_out_is_flagged(calls: Path, run: Any) -> None:
    """H1: the document is about its gap and says nothing of it; two of them ask a human."""
    write(calls, {"round_002/engineer.md": SILENT, "round_002/reviewer.md": REVIEW[:300]})
    said = run()
    assert "2 flags" in said
    flags = Flag.objects.order_by("finding__code")
    assert [(each.finding.code, each.level, each.submission.round) for each in flags] == [
        ("ISSUE-R1-001", "warn", 2), ("ISSUE-R1-002", "warn", 2),
    ]  # fmt: skip
    assert all("H1" in each.heuristics for each in flags)
    cards = Conflict.objects.filter(kind="silence", status="open")
    assert {card.name for card in cards} == {"ISSUE-R1-001", "ISSUE-R1-002"}


def test_a_finding_whose_gap_the_next_document_is_not_about_is_not_flagged(calls: Path, run: Any) -> None:
    """SIL-6: it is pending until its gap is worked on."""
    other = "# Round 2\n\n## Gap Resolution: GAP-LOG-002\n\n**Confidence:** HIGH\n\nWith the time.\n"
    write(calls, {"round_002/engineer.md": other, "round_002/reviewer.md": "**Verdict:** NEEDS_REVISION\n"})
    said = run()
    assert not Flag.objects.exists()
    assert "Never answered, 3:" in said


def test_an_approval_makes_what_was_never_answered_due(calls: Path, run: Any) -> None:
    """SIL-7: before its gap is accepted."""
    other = "# Round 2\n\n## Gap Resolution: GAP-LOG-002\n\n**Confidence:** HIGH\n\nWith the time.\n"
    write(calls, {"round_002/engineer.md": other})
    run()
    assert set(Flag.objects.values_list("finding__code", flat=True)) == {"ISSUE-R1-001", "ISSUE-R1-002"}
    assert task("GAP-NET-001").status == "deferred"


def test_a_later_answer_closes_the_card(calls: Path, run: Any) -> None:
    late = REVISION.replace("## DISAGREE: ISSUE-R1-002", "## Addressing ISSUE-R1-002")
    write(calls, {"round_002/engineer.md": SILENT, "round_002/reviewer.md": "**Verdict:** NEEDS_REVISION\n"})
    run()
    write(calls, {"round_003/engineer.md": late})
    run()
    assert set(Flag.objects.values_list("status", flat=True)) == {"answered"}
    assert not Conflict.objects.filter(kind="silence", status="open").exists()


def test_the_sweep_lists_what_was_never_answered_the_gravest_first(calls: Path, run: Any) -> None:
    write(calls, {"round_002/engineer.md": SILENT, "round_002/reviewer.md": "**Verdict:** NEEDS_REVISION\n"})
    listed = run().partition("Never answered, 3:\n")[2].splitlines()
    assert [line.split()[:2] for line in listed] == [
        ["HIGH", "ISSUE-R1-001"], ["HIGH", "ISSUE-R1-002"], ["LOW", "ISSUE-R1-003"],
    ]  # fmt: skip
    assert listed[0] == (
        "    HIGH ISSUE-R1-001 (GAP-NET-001): A dead server is hammered [round_001/reviewer.md]"
    )


def test_a_decided_finding_is_not_swept(calls: Path, run: Any) -> None:
    write(
        calls,
        {
            "round_002/engineer.md": SILENT,
            "round_002/reviewer.md": "**Verdict:** NEEDS_REVISION\n",
            "decisions.md": "### ISSUE-R1-001 and ISSUE-R1-002: Tries\n\n**Choice:** As it is\n",
        },
    )
    assert "Never answered, 1:\n    LOW ISSUE-R1-003" in run()


# --- Taken up again ---------------------------------------------------------------------------------------


def test_a_ruling_for_the_coder_on_a_document_sends_the_task_to_work(run: Any, lea: User) -> None:
    """A document names no commit, so nothing may land for it."""
    run()
    net = task("GAP-NET-001")
    net.resume(actor=Actor.person(lea))
    assert net.status == "disputed"
    rulings.decide(Conflict.objects.get(origin="disagree"), "uphold_coder", user=lea)
    net.refresh_from_db()
    assert (net.status, net.accepted) == ("in_progress", None)


def test_a_task_taken_up_again_starts_from_the_target_branch(run: Any, lea: User) -> None:
    run()
    mirror = SimpleNamespace(target=lambda seconds: "e" * 40)
    coder = create_run(task("GAP-NET-001"))
    assert base_of(coder, mirror) == "e" * 40


def test_the_page_of_a_document_shows_no_commit(client: Client, run: Any, lea: User) -> None:
    run()
    client.force_login(lea)
    page = client.get(f"/queue/{Dispute.objects.get().ref}/").content.decode()
    assert "of an imported document" in page
    assert "data-diff" not in page


# --- Again, and changed -----------------------------------------------------------------------------------


def test_importing_again_writes_nothing(run: Any) -> None:
    first = run()
    before = counts()
    assert "New: 2 tasks, 3 submissions, 3 reviews, 3 findings, 2 answers, 1 conflict." in first
    assert "Nothing is new." in run()
    assert counts() == before


def test_a_known_task_keeps_its_status(run: Any, lea: User) -> None:
    """Statuses of known tasks are never read from a file."""
    run()
    Task.objects.filter(pk=task("GAP-NET-001").pk).update(status="cancelled", title="Ours")
    run()
    assert (task("GAP-NET-001").status, task("GAP-NET-001").title) == ("cancelled", "Ours")


def test_a_changed_review_is_a_new_version(calls: Path, run: Any) -> None:
    run()
    write(calls, {"round_001/reviewer.md": REVIEW.replace("Wait twice as long each time.", "Wait a minute.")})
    said = run()
    old, new = Review.objects.filter(submission__task=task("GAP-NET-001"), submission__round=1).order_by(
        "version"
    )
    assert (old.version, new.version, old.superseded_by) == (1, 2, new)
    assert "round_001/reviewer.md has changed: it is version 2 for ledger-1." in said
    found = Finding.objects.get(code="ISSUE-R1-001")
    assert (found.review, found.suggestion) == (new, "Wait a minute.")
    assert Finding.objects.count() == 3


def test_a_finding_without_its_code_is_known_by_its_words(calls: Path, run: Any) -> None:
    """Else the same place and words that are alike."""
    run()
    changed = REVIEW.replace("**ISSUE-R1-001**: A dead server", "**ISSUE-R1-009**: A dead server")
    write(calls, {"round_001/reviewer.md": changed})
    run()
    found = Finding.objects.get(task=task("GAP-NET-001"), title__startswith="A dead server")
    assert (found.code, found.raw_code) == ("ISSUE-R1-001", "ISSUE-R1-009")


def test_how_alike_those_words_are_is_the_projects_setting(calls: Path, run: Any, ledger: Project) -> None:
    Project.objects.update(settings={"same_finding_minimum": 1})
    run()
    changed = REVIEW.replace("**ISSUE-R1-001**: A dead server", "**ISSUE-R1-009**: Any server")
    write(calls, {"round_001/reviewer.md": changed})
    run()
    found = Finding.objects.get(task=task("GAP-NET-001"), title__startswith="Any server")
    assert found.code != "ISSUE-R1-001"


def test_rulings_stay_with_their_findings(calls: Path, run: Any, lea: User) -> None:
    run()
    ruling = rulings.decide(Conflict.objects.get(origin="disagree"), "uphold_coder", user=lea)
    write(calls, {"round_001/reviewer.md": REVIEW.replace("Make it a setting.", "Make it an option.")})
    run()
    ruling.conflict.refresh_from_db()
    assert (ruling.conflict.finding.code, ruling.conflict.status) == ("ISSUE-R1-002", "decided")
    assert Conflict.objects.filter(origin="disagree").count() == 1


def test_a_vanished_finding_is_withdrawn_and_the_report_says_so(calls: Path, run: Any) -> None:
    run()
    shorter = REVIEW[: REVIEW.index("- **ISSUE-R1-002**")] + REVIEW[REVIEW.index("**Verdict:** NEEDS") :]
    write(calls, {"round_001/reviewer.md": shorter})
    said = run()
    assert "no longer holds ISSUE-R1-002: The number of tries is fixed. It is withdrawn." in said
    assert Finding.objects.get(code="ISSUE-R1-002").is_withdrawn


def test_a_gap_that_vanishes_from_a_review_takes_its_findings_along(calls: Path, run: Any) -> None:
    run()
    write(calls, {"round_001/reviewer.md": REVIEW[: REVIEW.index("## Review: GAP-LOG-002")]})
    said = run()
    assert "no longer holds ISSUE-R1-003" in said
    assert Finding.objects.get(code="ISSUE-R1-003").is_withdrawn
    assert "Nothing is new." in run()


def test_a_severity_that_a_person_lowered_stays(calls: Path, run: Any, lea: User) -> None:
    """SEV-7: a person's override is final."""
    run()
    found = Finding.objects.filter(code="ISSUE-R1-001")
    found.update(severity="low", mandatory=False, first_severity="high", lowered_by=lea)
    write(calls, {"round_001/reviewer.md": REVIEW.replace("Wait twice", "Wait thrice")})
    run()
    assert found.values_list("severity", "mandatory", "suggestion").get() == (
        "low", False, "Wait thrice as long each time.",
    )  # fmt: skip


def test_a_changed_answer_replaces_the_old_one(calls: Path, run: Any) -> None:
    run()
    other = REVISION.replace("| ISSUE-R1-001 | addressed | The pause doubles. |", "| - | - | - |")
    write(calls, {"round_002/engineer.md": other})
    said = run()
    assert "round_002/engineer.md has changed: ledger-1 has its new text." in said
    assert "round_002/engineer.md no longer answers ISSUE-R1-001." in said
    assert list(Answer.objects.values_list("finding__code", flat=True)) == ["ISSUE-R1-002"]


def test_a_round_that_comes_later_is_added(calls: Path, run: Any) -> None:
    run()
    write(calls, {"round_003/engineer.md": REVISION.replace("# Round 2", "# Round 3")})
    run()
    assert task("GAP-NET-001").submissions.filter(round=3).count() == 1
    assert Conflict.objects.filter(origin="disagree").count() == 1


# --- What cannot be read ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("round_002/reviewer.md", b"\xff\xfe\x00", "it is not UTF-8: invalid start byte at byte 0"),
        ("round_002/reviewer.md", b"a\x00b", "it is empty, or no text"),
        ("decisions.md", b"## ISSUE-R1-001\n\na\x00b", "it is empty, or no text"),
        ("round_002/reviewer.md", b" \n", "it is empty, or no text"),
        ("round_002/reviewer.md", b"x" * 300 * 1024, f"it has 307200 bytes; {MAX_BYTES} are the limit"),
        ("round_02/reviewer.md", APPROVAL, "round_002/reviewer.md stands for the same part of the round"),
        ("round_001/coder.md", PROPOSAL, "round_001/coder.md stands for the same part of the round"),
    ],
    ids=["no UTF-8", "NUL", "NUL in what was ruled", "empty", "too large", "round twice", "role twice"],
)
def test_a_session_with_an_unreadable_file_is_not_imported_at_all(
    calls: Path, ledger: Project, capsys: Any, name: str, content: Any, reason: str
) -> None:
    write(calls, {name: content})
    before = counts()
    with pytest.raises(CommandError, match=r"Not imported: calls\. Nothing of it was written"):
        call_command("import_rounds", str(calls), project="ledger")
    said = capsys.readouterr().out
    assert "cannot be read" in said
    assert reason in said
    assert counts() == before


def test_other_sessions_are_imported_all_the_same(tmp_path: Path, calls: Path, ledger: Project) -> None:
    write(tmp_path / "broken", {"round_001/engineer.md": b"\xff"})
    with pytest.raises(CommandError, match="Not imported: broken"):
        call_command("import_rounds", str(tmp_path), project="ledger")
    assert {source.partition("#")[0] for source in Task.objects.values_list("source", flat=True)} == {"calls"}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("round_001/notes.md", "it is neither engineer.md nor reviewer.md"),
        ("round_001/reviewer_final.md", "it is neither engineer.md nor reviewer.md"),
        ("round_one/reviewer.md", "it is neither engineer.md nor reviewer.md of a round"),
        ("round_000/reviewer.md", "rounds are numbered from 1 to 999"),
        ("README.md", "it is neither engineer.md nor reviewer.md of a round"),
        ("round_001/reviewer_v0.md", "versions go from 1 to 99"),
    ],
)
def test_wrong_names_are_passed_over_and_named(calls: Path, run: Any, name: str, reason: str) -> None:
    write(calls, {name: REVIEW})
    said = run()
    assert f"{name if 'round_0' in name else name.split('/')[0]}: passed over" in said
    assert reason in said
    assert Task.objects.count() == 2


def test_a_link_is_not_followed(calls: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text(REVIEW)
    (calls / "round_003").mkdir()
    os.symlink(secret, calls / "round_003" / "reviewer.md")
    [session] = read_folder(calls)
    assert [(each.path, each.reason) for each in session.unreadable] == [
        ("round_003/reviewer.md", "it is no plain file")
    ]


def test_a_folder_without_rounds_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="holds no folder round_001"):
        read_folder(tmp_path)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path, ledger: Project) -> None:
    with pytest.raises(CommandError, match=r"is not a folder\. Nothing was imported\."):
        call_command("import_rounds", str(tmp_path / "nowhere"), project="ledger")


@pytest.mark.django_db
def test_a_project_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"There is no project nowhere\."):
        call_command("import_rounds", str(tmp_path), project="nowhere")


def test_a_review_that_cannot_be_read_is_no_approval(tmp_path: Path, run: Any) -> None:
    """Nothing that fails to parse is ever an approval."""
    folder = write(
        tmp_path / "calls", {"round_003/engineer.md": PROPOSAL, "round_003/reviewer.md": "Lovely weather.\n"}
    )
    said = run(folder)
    assert "round_003/reviewer.md: no verdict could be read; it counts as no approval." in said
    assert set(Review.objects.filter(submission__round=3).values_list("verdict", flat=True)) == {
        "NEEDS_REVISION"
    }
    assert task("GAP-LOG-002").status == "deferred"


# --- Which gap a finding is about (FND-5) -----------------------------------------------------------------


def gap_of(block: str, *, above: str = "", proposed: tuple[str, ...] = ()) -> str:
    text = f"{above}\n{block}"
    return Links(scan(text), proposed).gap_of(scan(block), above.count("\n") + 2)


def test_an_explicit_gap_counts_before_all_others() -> None:
    block = "- **ISSUE-R1-001**: As in GAP-LOG-002\n  - **Gap:** GAP-NET-001"
    assert gap_of(block, above="## Review: GAP-LOG-002", proposed=("GAP-LOG-002",)) == "GAP-NET-001"


def test_the_nearest_heading_that_names_one_gap_counts() -> None:
    above = "# Review: GAP-NET-001\n\n## Consistency of GAP-NET-001 and GAP-LOG-002\n\n### High Priority"
    assert gap_of("- **ISSUE-R1-001**: x", above=above) == "GAP-NET-001"


def test_the_only_gap_that_was_proposed_counts() -> None:
    assert gap_of("- **ISSUE-R1-001**: x", proposed=("GAP-NET-001",)) == "GAP-NET-001"


def test_a_mentioned_gap_counts_where_nothing_else_tells() -> None:
    proposed = ("GAP-NET-001", "GAP-LOG-002")
    assert gap_of("- **ISSUE-R1-001**: as GAP-UI-003 says", proposed=proposed) == "GAP-UI-003"
    assert gap_of("- **ISSUE-R1-001**: x", proposed=proposed) == ""


def test_a_gap_in_a_fence_is_an_example() -> None:
    """ID-3."""
    assert gap_of("- **ISSUE-R1-001**: x\n```\nGap: GAP-NET-001\n```") == ""


def test_the_plan_needs_no_database(calls: Path) -> None:
    [session] = read_folder(calls)
    plan = plan_session(session)
    assert list(plan.titles) == ["GAP-NET-001", "GAP-LOG-002"]
    assert [step.document.path for step in plan.steps] == [
        "round_001/engineer.md", "round_001/reviewer.md", "round_002/engineer.md", "round_002/reviewer.md",
    ]  # fmt: skip
