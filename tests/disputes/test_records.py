"""dispute.md and decisions.md: their text, their rows, the command and the downloads."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from disputes import opening, rulings
from disputes.models import Conflict
from disputes.protocol.rulings import records
from disputes.protocol.rulings.decision_files import Decided, read_decisions
from disputes.protocol.rulings.options import Option
from disputes.protocol.rulings.records import (
    DisputeEntry,
    Statement,
    decisions_record,
    dispute_record,
)
from disputes.protocol.text.documents import scan
from disputes.protocol.text.quotes import inert, one_line, quoted, readable, unquoted
from disputes.records import decisions_text, disputes_text
from tasks.models import Project, Task
from tests.cases import for_each
from tests.disputes.protocol.rulings.test_decided import HOSTILE, decision
from tests.factories import create_finding, create_review, create_submission, create_task


def dispute(**kwargs: Any) -> DisputeEntry:
    values: dict[str, Any] = {
        "ref": "D-7, C-9", "status": "open", "task_ref": "web-1", "task": "Fix login bug",
        "question": "Which way?", "reason": "Architecture disagreement", "severity": "high",
        "created": "2024-01-15 14:30 UTC", "files": ("src/auth/jwt.ts", "src/auth/middleware.ts"),
        "sides": (
            Statement("Coder Position", "claude-sonnet-4", "JWT tokens are stateless.", "The spec says so."),
            Statement("Reviewer Position", "claude-opus-4", "Session cookies are safer."),
        ),
        "resolved_on": "2024-01-16",
    }  # fmt: skip
    return DisputeEntry(**(values | kwargs))


def headings(text: str) -> list[tuple[int, str]]:
    return [line.heading for line in scan(text) if line.heading]


# --- Quoting ----------------------------------------------------------------------------------------------


def test_a_quote_gives_back_what_it_was_given() -> None:
    text = "# A heading\n\n    code\n> quoted already\n- a point"
    assert unquoted(quoted(text, 1_000)) == text


def test_nothing_in_a_quote_begins_a_line_of_its_own() -> None:
    assert all(line.startswith(">") for line in quoted(HOSTILE, 10_000))


def test_a_quote_says_how_much_it_leaves_out() -> None:
    assert quoted("x" * 30, 10) == [f"> {'x' * 10} [… 20 more characters]"]


def test_a_blank_text_is_no_quote() -> None:
    assert quoted(" \n\t\n", 100) == []


@for_each("text", ["a <b> & </b>", "&lt;b>", "&amp;lt;", "List<String>", "1 < 2", "<!--", "<?x"])
def test_inert_text_holds_no_tag_and_can_be_read_back(text: str) -> None:
    assert not re.search(r"<[A-Za-z/!?]", inert(text))
    assert readable(inert(text)) == text


def test_comparisons_stay_as_they_are() -> None:
    assert inert("1 < 2 && a <= b") == "1 < 2 && a <= b"


def test_one_line_has_no_line_end_of_any_kind() -> None:
    assert one_line("a\r\nb\x0bc\u2028d\x85e\tf").split() == one_line("a\r\nb\x0bc\u2028d\x85e\tf").split(" ")
    assert "\u202e" not in one_line("\u202eabc")


# --- dispute.md -------------------------------------------------------------------------------------------


def test_an_open_dispute_reads_as_in_the_design() -> None:
    assert dispute_record([dispute()]) == (
        "# Active Disputes\n"
        "\n"
        "## Dispute: D-7, C-9 (OPEN)\n"
        "\n"
        "**Task:** Fix login bug (web-1)\n"
        "**Question:** Which way?\n"
        "**Reason:** Architecture disagreement\n"
        "**Severity:** HIGH\n"
        "**Created:** 2024-01-15 14:30 UTC\n"
        "**Files:** src/auth/jwt.ts, src/auth/middleware.ts\n"
        "\n"
        "### Coder Position (claude-sonnet-4)\n"
        "\n"
        "> JWT tokens are stateless.\n"
        "\n"
        "**Rationale:**\n"
        "\n"
        "> The spec says so.\n"
        "\n"
        "### Reviewer Position (claude-opus-4)\n"
        "\n"
        "> Session cookies are safer.\n"
        "\n"
        "### Status\n"
        "\n"
        "AWAITING HUMAN DECISION\n"
        "\n"
        "---\n"
    )


def test_a_resolved_dispute_reads_as_in_the_design() -> None:
    text = dispute_record([dispute(status="resolved", option="uphold_coder", notes="Right for our scale.")])
    assert (
        "## Dispute: D-7, C-9 (RESOLVED)\n\n**Task:** Fix login bug (web-1)\n**Question:** Which way?\n"
        "**Resolution:** CODER (2024-01-16)\n**Notes:** Right for our scale.\n"
    ) in text
    assert "AWAITING" not in text


@for_each(
    ("option", "word"),
    [
        ("uphold_reviewer", "REVIEWER"), ("uphold_coder", "CODER"), ("compromise", "COMPROMISE"),
        ("other", "CUSTOM"), ("retry", "RETRY"), ("defer", "DEFER"), ("cancel", "CANCEL"),
    ],
)  # fmt: skip
def test_the_resolution_is_the_word_that_the_command_takes(option: str, word: str) -> None:
    assert f"**Resolution:** {word} (" in dispute_record([dispute(status="resolved", option=option)])


def test_what_became_moot_says_so() -> None:
    assert "**Resolution:** MOOT (2024-01-16)" in dispute_record([dispute(status="resolved", outcome="Moot")])


def test_minor_disputes_are_listed_last() -> None:
    text = dispute_record([dispute(ref="D-1", status="minor", notes="Taste."), dispute(ref="D-2")])
    assert text.index("D-2 (OPEN)") < text.index("# Minor Disputes") < text.index("D-1 (LOGGED)")
    assert "**Notes:** Taste." in text


def test_open_disputes_stand_before_resolved_ones() -> None:
    text = dispute_record([dispute(ref="D-1", status="resolved", option="other"), dispute(ref="D-2")])
    assert text.index("D-2 (OPEN)") < text.index("D-1 (RESOLVED)")


def test_a_record_without_disputes_says_so() -> None:
    assert dispute_record([]) == "# Active Disputes\n\nNone.\n"


def test_the_record_says_how_many_settled_ones_it_leaves_out() -> None:
    assert "Settled and not listed here: 12 older disputes." in dispute_record([dispute()], 12)


def test_a_side_that_said_nothing_is_named_as_such() -> None:
    assert "### Coder Position\n\nNot stated.\n" in dispute_record(
        [dispute(sides=(Statement("Coder Position", "", " "),))]
    )


def test_a_long_list_of_files_is_cut() -> None:
    text = dispute_record([dispute(files=tuple(f"src/{number}.py" for number in range(25)))])
    assert "src/19.py and 5 more\n" in text
    assert "src/20.py" not in text


def test_no_file_is_none() -> None:
    assert "**Files:** none\n" in dispute_record([dispute(files=())])


def test_hostile_text_cannot_leave_its_place() -> None:
    """Only our headings are headings, only our labels are labels, and no HTML is left."""
    sides = (Statement("Coder Position", HOSTILE, HOSTILE, HOSTILE, HOSTILE),)
    text = dispute_record([dispute(sides=sides, task=HOSTILE, question=HOSTILE, files=(HOSTILE,))])
    assert [title for _, title in headings(text)][:2] == ["Active Disputes", "Dispute: D-7, C-9 (OPEN)"]
    assert [title.split()[0] for _, title in headings(text)] == ["Active", "Dispute:", "Coder", "Status"]
    assert "\n**Resolution:**" not in text
    assert not re.search(r"<[A-Za-z/!?]", text)
    assert "\x1b" not in text


def test_hostile_notes_cannot_end_a_resolved_entry() -> None:
    text = dispute_record([dispute(status="resolved", option="other", ruling=HOSTILE, notes=HOSTILE)])
    assert [title.split()[0] for _, title in headings(text)] == ["Active", "Dispute:"]


def test_a_position_is_bounded() -> None:
    text = dispute_record([dispute(sides=(Statement("Coder Position", "", "x" * 200_000),))])
    assert len(text) < records.POSITION_MAX + 1_000
    assert "more characters]" in text


# --- decisions.md -----------------------------------------------------------------------------------------


def test_a_decision_reads_as_in_the_design() -> None:
    assert decisions_record([decision()]) == (
        "# Decisions\n"
        "\n"
        "## Round 6 Conflict Resolutions (web-1)\n"
        "\n"
        "### ISSUE-R5-003: Retry timing\n"
        "\n"
        "**Conflict Type:** Explicit DISAGREE\n"
        "**Gap Affected:** web-1 Call politely\n"
        "**Severity:** HIGH\n"
        "\n"
        "**Positions:**\n"
        "- Reviewer: Back off for all retries.\n"
        "- Engineer: Retry at once for files.\n"
        "\n"
        "**Resolution:**\n"
        "- **Chosen Option:** C (Synthesis)\n"
        "- **Decision:** Files at once, servers with a pause.\n"
        "- **Rationale:** Both are right.\n"
        "- **Constraints:** None\n"
        "\n"
        "**Action Required:**\n"
        "- For Engineer: Change src/calls.py:12.\n"
        "- For Gap: web-1 goes back to the coder.\n"
        "\n"
        "**Decided By:** Lea Lindt\n"
        "**Timestamp:** 2026-01-12T15:30:00Z\n"
    )


def test_decisions_of_one_round_share_a_heading() -> None:
    text = decisions_record([decision(), decision(code="ISSUE-R5-004"), decision(round=7)])
    assert [title for level, title in headings(text) if level == 2] == [
        "Round 6 Conflict Resolutions (web-1)", "Round 7 Conflict Resolutions (web-1)",
    ]  # fmt: skip


def test_a_project_without_decisions_says_so() -> None:
    assert decisions_record([]) == "# Decisions\n\nNone.\n"


@for_each(
    ("option", "words"),
    [
        ("uphold_reviewer", "A (Reviewer)"), ("uphold_coder", "B (Engineer)"),
        ("compromise", "C (Synthesis)"), ("other", "D (User specifies)"), ("retry", "Retry"),
    ],
)  # fmt: skip
def test_the_option_has_its_letter(option: str, words: str) -> None:
    assert f"- **Chosen Option:** {words}\n" in decisions_record([decision(option=option)])


@for_each("action", records.WHAT_CAME)
def test_the_task_is_told_what_the_ruling_did(action: str) -> None:
    assert f"- For Gap: {records.WHAT_CAME[action].format(task='web-1')}\n" in decisions_record(
        [decision(action=action)]
    )


def test_the_words_for_every_option_are_known() -> None:
    assert all(records.chosen(option) for option in Option)


# --- Rows -------------------------------------------------------------------------------------------------


@pytest.fixture
def task(ledger: Project) -> Task:
    return create_task(ledger, number=1, title="Call politely", status="in_progress", round=2)


def the_decision(text: str) -> Decided:
    [one] = read_decisions(text).decisions
    return one


def open_on(task: Task, **kwargs: Any) -> Conflict:
    submission = create_submission(task, diff_stat={"since_base": ["src/calls.py"]})
    finding = create_finding(create_review(submission))
    values = {
        "kind": "disagreement", "origin": "disagree", "opened_as": "coder", "question": finding.title,
        "finding": finding, "submission": submission, "reviewer_position": "Wait between tries.",
        "reviewer_label": "reviewer-1", "coder_position": "The server asks for it.",
        "coder_rationale": "It says so in its reply.", "coder_label": "coder-1",
    }  # fmt: skip
    return opening.open_conflict(task, **(values | kwargs))


def test_an_open_conflict_awaits_a_human(task: Task) -> None:
    conflict = open_on(task)
    text = disputes_text(task.project)
    assert f"## Dispute: {conflict.dispute.ref}, {conflict.ref} (OPEN)" in text
    assert "**Reason:** Coder declined" in text
    assert "**Files:** src/calls.py" in text
    assert (
        "### Coder Position (coder-1)\n\n> The server asks for it.\n\n**Rationale:**\n\n> It says so" in text
    )
    assert "AWAITING HUMAN DECISION" in text
    assert decisions_text(task.project) == "# Decisions\n\nNone.\n"


def test_a_ruling_moves_from_one_file_to_the_other(task: Task, lea: User) -> None:
    conflict = open_on(task)
    rulings.decide(conflict, "other", user=lea, text="Twice, then give up.", rationale="Kind and quick.")
    text = disputes_text(task.project)
    assert "**Resolution:** CUSTOM (" in text
    assert "**Ruling:** Twice, then give up.\n**Notes:** Kind and quick." in text
    read = the_decision(decisions_text(task.project))
    assert (read.codes, read.option) == ((conflict.name,), Option.OTHER)
    assert (read.text, read.rationale, read.by) == ("Twice, then give up.", "Kind and quick.", "Lea Lindt")
    assert (read.conflict_type, read.state) == ("Explicit DISAGREE", "Waiting")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", read.at)


def test_an_undone_ruling_is_in_neither(task: Task, lea: User) -> None:
    decided = rulings.decide(open_on(task), "uphold_coder", user=lea)
    rulings.undo(decided, user=lea)
    assert "AWAITING HUMAN DECISION" in disputes_text(task.project)
    assert read_decisions(decisions_text(task.project)).decisions == ()


def test_a_minor_dispute_is_listed_and_waits_for_nobody(task: Task) -> None:
    open_on(task, origin="minor", effect="log", reviewer_position="", coder_rationale="")
    text = disputes_text(task.project)
    assert "# Minor Disputes" in text
    assert "(LOGGED)" in text
    assert "**Notes:** The server asks for it." in text
    assert "AWAITING" not in text


def test_what_somebody_opened_is_explicit_though_a_side_was_not_heard(task: Task, lea: User) -> None:
    conflict = open_on(task, origin="cli", opened_as="reviewer", coder_position="")
    assert "### Coder Position (coder-1)\n\nNot stated." in disputes_text(task.project)
    rulings.decide(conflict, "uphold_reviewer", user=lea)
    assert the_decision(decisions_text(task.project)).conflict_type == "Explicit"


def test_what_the_program_opened_over_an_unanswered_point_is_implicit(task: Task, lea: User) -> None:
    conflict = open_on(task, origin="rounds", opened_as="system", coder_position="")
    rulings.decide(conflict, "uphold_reviewer", user=lea)
    assert the_decision(decisions_text(task.project)).conflict_type == "Implicit (converted)"


def test_a_card_that_asks_for_help_tells_what_happened(task: Task, lea: User) -> None:
    conflict = opening.stop_for_help(task, "blocked", "Who has the key?", detail="The vault is closed.")
    assert "### What Happened\n\n> The vault is closed." in disputes_text(task.project)
    rulings.decide(conflict, "retry", user=lea, text="It is open now.")
    assert the_decision(decisions_text(task.project)).option == Option.RETRY


def test_a_flag_at_silence_lists_what_speaks_for_it(task: Task) -> None:
    open_on(task, kind="silence", origin="flagged", coder_position="not stated", evidence=["No reference."])
    text = disputes_text(task.project)
    assert "### What Happened\n\n> No reference.\n\n### Reviewer Position (reviewer-1)\n\n> Wait" in text


def test_the_files_of_one_dispute_hold_no_other(task: Task, lea: User) -> None:
    first = open_on(task)
    second = open_on(create_task(task.project, number=2, status="in_progress", round=1))
    for conflict in (first, second):
        rulings.decide(conflict, "uphold_reviewer", user=lea)
    assert second.ref not in disputes_text(task.project, first.dispute)
    assert the_decision(decisions_text(task.project, second.dispute)).gap.startswith("ledger-2 ")


def queries(project: Project) -> int:
    with CaptureQueriesContext(connection) as asked:
        disputes_text(project)
        decisions_text(project)
    return len(asked)


def test_many_conflicts_cost_as_many_queries_as_few(ledger: Project, lea: User) -> None:
    def fill(numbers: range) -> None:
        for number in numbers:
            one = open_on(create_task(ledger, number=number, status="in_progress", round=1))
            if number % 2:
                rulings.decide(one, "other", user=lea, text="So.")

    fill(range(1, 3))
    few = queries(ledger)
    fill(range(3, 12))
    assert queries(ledger) == few
    assert few == 9


# --- The command ------------------------------------------------------------------------------------------


def test_export_records_writes_both_files(task: Task, tmp_path: Path, capsys: Any) -> None:
    open_on(task)
    call_command("export_records", project="ledger", to=str(tmp_path / "new" / "folder"))
    folder = tmp_path / "new" / "folder"
    assert sorted(path.name for path in folder.iterdir()) == ["decisions.md", "dispute.md"]
    assert (folder / "dispute.md").read_text(encoding="utf-8") == disputes_text(task.project)
    assert "dispute.md written." in capsys.readouterr().out


def test_export_records_writes_below_the_data_folder(task: Task, settings: Any) -> None:
    call_command("export_records", project="ledger", verbosity=0)
    assert (settings.HOME / "records" / "ledger" / "decisions.md").is_file()


@pytest.mark.django_db
def test_export_records_names_a_project_that_is_not_there() -> None:
    with pytest.raises(CommandError, match=r"There is no project nowhere\."):
        call_command("export_records", project="nowhere")


def test_export_records_says_where_it_cannot_write(ledger: Project, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandError, match="cannot be written"):
        call_command("export_records", project="ledger", to=str(tmp_path / "file"))


# --- Downloads --------------------------------------------------------------------------------------------


@pytest.fixture
def conflict(task: Task) -> Conflict:
    return open_on(task)


FILES = [("dispute.md", "AWAITING HUMAN DECISION"), ("decisions.md", "# Decisions")]


@for_each(("file", "holds"), FILES)
def test_whoever_may_read_a_project_may_download_its_records(
    client: Client, vera: User, conflict: Conflict, file: str, holds: str
) -> None:
    client.force_login(vera)
    for path, name in (
        (f"/queue/records/ledger/{file}", f"ledger-{file}"),
        (f"/queue/{conflict.dispute.ref}/{file}", f"{conflict.dispute.ref}-{file}"),
    ):
        answer = client.get(path)
        assert (answer.status_code, answer["Content-Type"]) == (200, "text/markdown; charset=utf-8")
        assert answer["Content-Disposition"] == f'attachment; filename="{name}"'
        assert holds in answer.content.decode()


@for_each(("file", "holds"), FILES)
def test_an_outsider_learns_nothing(
    client: Client, otto: User, conflict: Conflict, file: str, holds: str
) -> None:
    client.force_login(otto)
    assert client.get(f"/queue/records/ledger/{file}").status_code == 404
    assert client.get(f"/queue/{conflict.dispute.ref}/{file}").status_code == 404


def test_nobody_downloads_without_signing_in(client: Client, conflict: Conflict) -> None:
    assert client.get("/queue/records/ledger/dispute.md").status_code == 302


def test_a_download_changes_nothing(client: Client, vera: User, conflict: Conflict) -> None:
    client.force_login(vera)
    assert client.post("/queue/records/ledger/dispute.md").status_code == 405


def test_the_disputes_page_links_to_its_files(client: Client, vera: User, conflict: Conflict) -> None:
    client.force_login(vera)
    page = client.get(f"/queue/{conflict.dispute.ref}/").content.decode()
    for file in ("dispute.md", "decisions.md"):
        assert f'href="/queue/{conflict.dispute.ref}/{file}"' in page


def test_the_projects_page_links_to_its_files(client: Client, vera: User, ledger: Project) -> None:
    client.force_login(vera)
    page = client.get(f"/admin/tasks/project/{ledger.pk}/change/").content.decode()
    for words in ("dispute-record", "decisions-record"):
        assert words in page
        answer = client.get(f"/admin/tasks/project/{ledger.pk}/{words}/")
        assert answer.status_code == 302
        assert answer["Location"] == f"/queue/records/ledger/{words.removesuffix('-record')}.md"


def test_the_projects_page_leads_an_outsider_nowhere(client: Client, otto: User, ledger: Project) -> None:
    client.force_login(otto)
    assert client.get(f"/admin/tasks/project/{ledger.pk}/dispute-record/").status_code == 404
