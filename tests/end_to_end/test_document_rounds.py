"""Rounds about documents by real agents, processes and git: from the first gap to the end of the session."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from agents.models import Prompt, Run
from disputes import rulings
from disputes.completion import endings, exits, rollbacks
from disputes.importing.folder import read_folder
from disputes.importing.plan import ReviewDocument, plan_session
from disputes.importing.rows import import_session
from disputes.models import Conflict, Flag
from disputes.protocol.reviews.review import Verdict
from disputes.protocol.rounds.proposals import mentioned_gaps
from disputes.protocol.text.documents import scan
from disputes.sessions import gaps
from disputes.sessions.documents import Folder
from tasks.events import SYSTEM
from tasks.models import Answer, Project, Review, Task
from tasks.todo.importing import import_todo
from tests.end_to_end.loop import Loop, bare_remote, command_agent, git, script
from tests.factories import create_section, create_user

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

# What both sides know of their prompt, and how they write.
BOTH = """
    import pathlib, re, subprocess, sys, tempfile
    prompt = sys.stdin.read()
    head = re.search(r"^# (?:Review of )?spec-\\d+, round (\\d+)", prompt, re.M)
    number = int(head[1]) if head else 0
    gaps = re.findall(r"^### (GAP-[A-Z]+-\\d{3}) \\([A-Z]+\\)$", prompt, re.M)
    findings = re.findall(r"^### \\d+\\. (ISSUE-R\\d+-\\d+) ", prompt, re.M)
    is_retry = "## Your last run was not accepted" in prompt
    is_back = "## Rounds were taken back" in prompt
    is_final = "# Final review" in prompt

    def run(*words):
        return subprocess.run(words).returncode

    def file(text):
        path = pathlib.Path(tempfile.mkdtemp()) / "document.md"
        path.write_text(text)
        return str(path)

    SECTION = '''## Gap Resolution: %(gap)s

    **Confidence:** HIGH

    ### Proposed Solution

    In round %(number)d the limit of %(gap)s is 30 seconds, and 12 hours at most. A request beyond it gets
    status 401 with the code session_ended; the page keeps what was typed until its user sends it again.

    ### Examples

    **Example 1: it goes on.** At 10:00 and at 10:29 it is alive.

    **Example 2: the edge.** At 10:31 it gets 401.

    ### Trade-offs

    - Pro: one rule.
    - Pro: it is safe.
    - Con: some type again.
    - Con: one more write.
    '''.replace("\\n    ", "\\n")

    def proposal(gaps, answers=(), more="", new="None"):
        parts = ["# Round %d" % number]
        if answers:
            rows = ["| %s | addressed | It says so now, with a value. |" % code for code in answers]
            table = ["| Finding | Answer | What was done |", "|---|---|---|", *rows]
            parts += ["## Response to the review", "\\n".join(table)]
        parts += [SECTION % {"gap": gap, "number": number} for gap in gaps]
        return "\\n\\n".join([*parts, "### New Gaps Introduced", new, more, ""])

    def write(gaps):
        for gap in gaps:
            pathlib.Path(gap + ".md").write_text("Decided in round %d.\\n" % number)
        run("git", "add", "-A")
        run("git", "commit", "-q", "-m", "docs: round %d" % number)

    def submit(text):
        return run("steroids", "tasks", "update", "--status", "review", "--response", file(text))

    def review(verb, found):
        parts = ["## Review: " + ", ".join(gaps), "### High Priority"]
        for place, (gap, title) in enumerate(found, 1):
            parts.append(
                "- **ISSUE-R%d-%03d**: %s\\n  - **Gap:** %s\\n  - **Location:** Proposed Solution\\n"
                "  - **Impact:** What is built stops in the night.\\n  - **Suggestion:** Name the hour."
                % (number, place, title, gap)
            )
        back = {gap for gap, _ in found}
        rows = ["| %s | %s |" % (gap, "NEEDS_REVISION" if gap in back else "APPROVED") for gap in gaps]
        parts += [] if found else ["None."]
        parts += ["## The gaps", "\\n".join(["| Gap | Verdict |", "|---|---|", *rows])]
        parts.append("## Verdict: " + ("NEEDS_REVISION" if verb == "reject" else "APPROVED"))
        return run("steroids", "tasks", verb, "--file", file("\\n\\n".join(parts) + "\\n"))
"""
READY = "## Review: the whole\\n\\nREADY_FOR_TERMINATION. All is settled.\\n\\n## Verdict: APPROVED\\n"
DILIGENT = (
    BOTH
    + """
    write(gaps)
    sys.exit(submit(proposal(gaps, findings)))
"""
)
STRICT_ONCE = (
    BOTH
    + f"""
    if is_final:
        sys.exit(run("steroids", "tasks", "approve", "--file", file("{READY}")))
    if number == 1:
        sys.exit(review("reject", [(gaps[0], "Nobody says what happens at midnight")]))
    sys.exit(review("approve", []))
"""
)
TODO = """\
# Spec

## Sign in

- [ ] When does a session end?
  severity: high

- [ ] Who may sign in twice?

- [ ] GAP-MAIL-007: Which mails are sent?
  severity: low
"""


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return bare_remote(tmp_path, {"README.md": "A specification.\n"})


def documents(remote: Path, todo: str, **settings: Any) -> Project:
    project = Project.objects.create(
        slug="spec", name="Spec", repo_url=str(remote), kind=Project.Kind.DOCUMENTS,
        brief="How people sign in.", settings={"detect_commands": False, "undo_seconds": 0} | settings,
    )  # fmt: skip
    create_section(project, "Tasks")
    import_todo(project, todo, actor=SYSTEM)
    return project


def agents(folder: Path, engineer: str, reviewer: str) -> None:
    command_agent("coder", script(folder, "engineer", engineer), name="engineer")
    command_agent("reviewer", script(folder, "reviewer", reviewer), name="examiner")


def states(project: Project) -> dict[str, str]:
    rows = gaps.with_facts(project.tasks.gaps()).order_by("rank")
    return {gap.gap: str(gaps.state_of(gap)) for gap in rows}


def session_in(project: Project) -> Task:
    found = gaps.session_of(project)
    assert found is not None
    found.refresh_from_db()
    return found


def told(role: str, round_: int) -> list[str]:
    runs = Run.objects.filter(role=role, round=round_).order_by("pk")
    return [Prompt.objects.get(run=run).text for run in runs]


def test_gaps_are_closed_in_rounds_and_land_after_a_final_review(
    loop: Loop, remote: Path, tmp_path: Path
) -> None:
    project = documents(remote, TODO, gaps_per_round=2)
    agents(tmp_path, DILIGENT, STRICT_ONCE)

    loop.until_idle()

    session = session_in(project)
    assert states(project) == {
        "GAP-SIGNIN-001": "RESOLVED", "GAP-SIGNIN-002": "RESOLVED", "GAP-MAIL-007": "RESOLVED",
    }  # fmt: skip
    assert session.landed_sha == git(remote, "rev-parse", "main")
    assert git(remote, "ls-tree", "--name-only", "main").split() == [
        "GAP-MAIL-007.md", "GAP-SIGNIN-001.md", "GAP-SIGNIN-002.md", "README.md",
    ]  # fmt: skip
    first, second = told("coder", 1)[0], told("coder", 2)[0]
    assert "How people sign in." in first
    assert "### GAP-SIGNIN-001 (HIGH)" in first
    assert "GAP-MAIL-007 (LOW, OPEN)" in first  # the other gaps are named
    assert "## Gap Resolution: GAP-AUTH-001" in first  # the form, by an example
    assert "Nobody says what happens at midnight" in second  # the last review, and the finding to answer
    assert "### 1. ISSUE-R1-001 (HIGH, mandatory)" in second
    assert "Proposed in round 1:" in second
    assert [event.data["final"] for event in session.events.filter(kind="review_rest")] == [True]
    assert "# Final review of" in told("reviewer", 2)[-1]
    assert [*Folder(session).files] == [
        "round_001/engineer.md", "round_001/reviewer.md", "round_002/engineer.md", "round_002/reviewer.md",
        "round_002/reviewer_v2.md",
    ]  # fmt: skip


def import_again(folder: Path) -> Project:
    """A project that knows the session from its folder alone."""
    project = Project.objects.create(slug="again", name="Again", repo_url="/nowhere")
    for found in read_folder(folder):
        import_session(project, found, actor=SYSTEM)
    return project


def figures(project: Project) -> dict[str, Any]:
    """What the documents of a project's rounds say, by gap: proposals, findings, answers and acceptance."""
    session = gaps.session_of(project)
    found: dict[str, Any] = {}
    for gap in project.tasks.gaps():
        code = gap.gap or gap.source.partition("#")[2]
        raised = session.findings.standing().filter(gap=gap) if session else gap.findings.all()
        proposals = gap.submissions.standing().filter(kind="document").order_by("round")
        found[code] = {
            "proposals": [row.round for row in proposals if row.response],
            "findings": sorted((row.raw_code, row.severity, row.title) for row in raised),
            "answers": sorted(
                (row.finding.raw_code, row.kind)
                for row in Answer.objects.standing().given().filter(finding__in=raised)
            ),
            "accepted": gap.status == "completed",
        }
    return {code: said for code, said in found.items() if said["proposals"] or said["findings"]}


# --- A long session, with agents of different temper --------------------------------------------------------

# Diligent in most rounds; it disagrees in the second, has no form in the third, does a part of the fourth,
# and is silent in the fifth until that is taken back.
ENGINEER = (
    BOTH
    + """
    BLOCK = '''## DISAGREE: %s

    **Reviewer Concern:**
    > Name the hour.

    **Engineer Position:**
    No hour is named.

    **Rationale:**
    The law that the brief names forbids an hour.
    '''.replace("\\n    ", "\\n")
    if number == 3 and not is_retry:
        submit("Hello. I did as you said.")
        sys.exit(0)
    if number == 4:
        write(gaps[:1])
        sys.exit(submit(proposal(gaps[:1], more="BLOCKED_NEEDS_INPUT: %s the contract" % gaps[2])))
    write(gaps)
    if number == 2:
        sys.exit(submit(proposal(gaps, more=BLOCK % findings[0])))
    if number == 3:
        new = "- **GAP-SPEC-090** (LOW): What does a guest see?"
        sys.exit(submit(proposal(gaps, findings, new=new)))
    if number == 5 and not is_back:
        sys.exit(submit(proposal(gaps)))
    sys.exit(submit(proposal(gaps, findings)))
"""
)
REVIEWER = (
    BOTH
    + """
    TITLES = {
        1: "Nobody says what happens at midnight",
        4: "The order of the steps of %s is not defined",
        5: "An unknown country breaks %s",
    }
    if number == 1:
        sys.exit(review("reject", [(gaps[0], TITLES[1])]))
    if number == 4 or (number == 5 and ": addressed." not in prompt):
        sys.exit(review("reject", [(gap, TITLES[number] % gap) for gap in gaps]))
    sys.exit(review("approve", []))
"""
)
GAPS = "# Spec\n\n## Spec\n" + "".join(
    f"\n- [ ] Question {number}: what holds at the edge?\n  severity: {severity}\n"
    for number, severity in enumerate(["high"] * 7 + ["medium"] * 5, 1)
)


def name(number: int) -> str:
    return f"GAP-SPEC-{number:03d}"


def check_pages(project: Project, user: User, folder: Path) -> None:
    """Every figure of the pages, out of the documents and the list of gaps alone."""
    weights = {"high": 4, "medium": 2, "low": 1}
    severity = {name(number): "high" if number <= 7 else "medium" for number in range(1, 13)}
    settled: dict[int, list[str]] = {}
    new: dict[int, list[str]] = {}
    for number in range(1, 7):
        reviewed = folder / f"round_{number:03d}" / "reviewer.md"
        rows = re.findall(r"\| (GAP-\S+) \| APPROVED \|", reviewed.read_text() if reviewed.exists() else "")
        settled[number] = sorted(rows)
        written = (folder / f"round_{number:03d}" / "engineer.md").read_text()
        found = re.findall(r"- \*\*(GAP-\S+)\*\* \((\w+)\)", written.partition("### New Gaps")[2])
        new[number] = [code for code, _ in found]
        severity |= {code: word.lower() for code, word in found}
    client = Client()
    client.force_login(user)
    shown = client.get(f"/projects/{project.slug}/rounds/").content.decode()
    gap_states = dict(re.findall(r'data-gap="(\S+)" data-state="(\S+)"', shown))
    accepted = {code for codes in settled.values() for code in codes}
    assert {code for code, state in gap_states.items() if state == "ACCEPTED"} == accepted
    assert set(gap_states) == set(severity)
    assert gap_states[name(10)] == "BLOCKED_EXTERNAL"
    assert (
        re.search(r'data-figure="open">([^<]+)<', shown)[1] == "0.25 of 13"
    )  # what is blocked counts a quarter
    rows = re.findall(r'data-checkpoint="(\d+)"><th[^>]*>\d+</th>' + r"<td>(-?\d+)</td>" * 4, shown)
    assert [tuple(map(int, row)) for row in rows] == [
        (
            number, len(settled[number]), len(new[number]), len(settled[number]) - len(new[number]),
            sum(weights[severity[code]] for code in settled[number])
            - sum(weights[severity[code]] for code in new[number]),
        )
        for number in range(1, len(rows) + 1)
    ]  # fmt: skip
    assert len(rows) in {5, 6}  # the sixth is open while something waits for people
    rounds = re.findall(r'data-round="(\d+)"( data-back)?', shown)
    begun = ("6", " data-back")  # where the engineer was quicker than the warning about the fifth
    assert [each for each in rounds if each != begun] == [
        ("6", ""), ("5", ""), ("5", " data-back"), ("4", ""), ("3", ""), ("2", ""), ("1", ""),
    ]  # fmt: skip
    assert re.findall(r'data-retries="(\d+)"', shown) == ["1"]
    assert re.search(r'class="gap depth-1" data-gap="GAP-SPEC-090"', shown)
    third = client.get(f"/projects/{project.slug}/rounds/3/").content.decode()
    assert re.findall(r'data-result="(\S+)"', third) == ["WRONG_FORMAT", "OK", "OK"]
    assert "notice on WRONG_FORMAT" in third
    assert "GAP-SPEC-006.md" in third  # the change of the round
    assert "What does a guest see?" in third
    assert client.get(f"/projects/{project.slug}/rounds/7/").status_code == 404
    conflict = Conflict.objects.get(origin="disagree", dispute__project=project)
    card = client.get(reverse("dispute", args=[conflict.dispute_id])).content.decode()
    assert "In round 1 the limit of GAP-SPEC-001 is 30 seconds" in card  # the section in question


@pytest.fixture
def lea() -> User:
    return create_user("lea", is_superuser=True)


def test_a_session_with_every_turn_that_a_session_takes(
    loop: Loop, remote: Path, tmp_path: Path, lea: User
) -> None:
    project = documents(
        remote, GAPS, gaps_per_round=3, stall_threshold=2, records_branch="records", records_path="docs"
    )
    agents(tmp_path, ENGINEER, REVIEWER)

    # The second round ends with a disagreement that a person rules on.
    loop.until_so(lambda: (s := gaps.session_of(project)) and s.status == "disputed")
    loop.until_idle()
    session = session_in(project)
    assert session.round == 2
    conflict = Conflict.objects.get(status=Conflict.Status.OPEN)
    assert (conflict.origin, conflict.severity, conflict.finding.gap.gap) == ("disagree", "high", name(1))
    assert states(project)[name(2)] == "ACCEPTED"
    assert states(project)[name(1)] == "PROPOSED"
    rulings.decide(conflict, "uphold_reviewer", user=lea, rationale="The law allows it.")

    # The third is tried again, the fourth is partial, the fifth says nothing: the session makes no progress.
    loop.until_so(lambda: Conflict.objects.filter(origin=Conflict.Origin.STALL).exists())
    third = told("coder", 3)
    assert len(third) == 2
    assert third[0].startswith("## Decided since your last run. Honour it.")
    assert "## Your last run was not accepted" in third[1]
    assert "### WRONG_FORMAT" in third[1]
    assert "no heading `## Gap Resolution:`" in third[1]
    assert "`**Confidence:** HIGH, MEDIUM or LOW`" in third[1]
    assert "## An example: round 2 of this project" in third[1] or "the program's own example" in third[1]
    session = session_in(project)
    partial = session.events.get(kind="round_proposed", data__round=4).data
    assert partial["addressed"] == [name(8)]
    assert partial["missing"] == [name(9)]
    assert partial["blocked"] == [name(10)]
    assert (partial["missing"], partial["blocked"]) != ([], [])
    assert states(project)[name(10)] == "BLOCKED_EXTERNAL"
    born = project.tasks.get(gap="GAP-SPEC-090")
    assert (born.parent.gap, born.severity, born.title) == (
        name(7), "low", "GAP-SPEC-090: What does a guest see?",
    )  # fmt: skip
    flagged = Flag.objects.filter(submission__round=5, submission__task=session)
    assert [flag.finding.code for flag in flagged] == ["ISSUE-R4-001"]

    # A person answers the stall, and takes the silent round back.
    stall = Conflict.objects.get(origin=Conflict.Origin.STALL)
    rulings.decide(stall, "accept", user=lea, rationale="It is a hard question.")
    rollbacks.roll_back(session_in(project), 4, user=lea, reason="Nothing was answered in it.")
    assert [states(project)[name(number)] for number in (8, 9, 11)] == [
        "NEEDS_REVISION", "IN_PROGRESS", "OPEN"
    ]  # fmt: skip
    assert not Flag.objects.standing().filter(submission__round=5, status=Flag.Status.OPEN).exists()

    loop.until_idle()

    again = told("coder", 5)[-1]
    assert "## Rounds were taken back" in again
    assert "Nothing was answered in it." in again
    end = states(project)
    assert {code for code, state in end.items() if state == "ACCEPTED"} == {*end} - {name(10)}
    standing = exits.standing_of(project)
    offered = {offer.exit: offer.why_not for offer in exits.offers(project, standing)}
    assert offered["good_enough"] == ""
    assert offered["complete"]

    # The folder of the rounds lies on its branch, and says what the rows say.
    session = session_in(project)
    names = git(remote, "ls-tree", "-r", "--name-only", "records").split()
    assert [path for path in names if path.startswith("docs/")] == [
        "docs/decisions.md", "docs/dispute.md", "docs/session/decisions.md",
        *sorted(f"docs/session/{path}" for path in Folder(session).files if path != "decisions.md"),
    ]  # fmt: skip
    assert "round_002/reviewer.md" not in Folder(session).files  # nobody reviewed what was in dispute
    assert "Written by Steroids Web" in git(remote, "log", "-1", "--format=%b", "records")
    assert git(remote, "log", "-1", "--format=%an", "records") == "Steroids"
    folder = tmp_path / "records"
    git(tmp_path, "clone", "-q", "-b", "records", str(remote), str(folder))
    again = import_again(folder / "docs" / "session")
    assert figures(again) == figures(project)
    assert import_session(again, read_folder(folder / "docs" / "session")[0], actor=SYSTEM).counts == {}

    check_pages(project, lea, folder / "docs" / "session")

    # It ends with an acknowledgement of what is left.
    left = f"spec-{project.tasks.get(gap=name(10)).number}"
    said = endings.EndRequest("good_enough", confirmed=[left], reason="The bank is slow.")
    endings.end_project(project, said, user=lea)
    project.refresh_from_db()
    assert project.exit_type == "good_enough"
    assert [each["code"] for each in project.exit_summary["limitations"]] == [left]


# --- Real documents, handed in one after the other ----------------------------------------------------------

ROOT = Path(__file__).resolve().parents[2]
CORPUS = next(
    (place / "shared" / "corpus" for place in ROOT.parents if (place / "shared" / "corpus").is_dir()),
    ROOT / "no corpus",
)
MENDING = "**Confidence:** HIGH\n\n"
PLAYER = """
    import json, pathlib, re, subprocess, sys, tempfile
    prompt = sys.stdin.read()
    number = int((re.search(r"^# (?:Review of )?real-\\d+, round (\\d+)", prompt, re.M) or [0, 0])[1])
    paper = pathlib.Path({papers!r}) / ("{role}-%02d.md" % number)
    if not number or not paper.exists():
        words = ["blocked", "--reason", "There are no more documents."]
        if {role!r} == "reviewer":
            words = ["dispute", "create", "--reason", "other", "--position", "There are no more documents."]
        sys.exit(subprocess.run(["steroids", *words]).returncode)
    if {role!r} == "reviewer":
        verb = "reject" if pathlib.Path(str(paper) + ".back").exists() else "approve"
        sys.exit(subprocess.run(["steroids", "tasks", verb, "--file", str(paper)]).returncode)
    words = ["steroids", "tasks", "update", "--status", "review", "--response"]
    if subprocess.run([*words, str(paper)]).returncode:
        mended = pathlib.Path(tempfile.mkdtemp()) / "mended.md"
        gap = re.search(r"^### (GAP-[A-Z]+-\\d+) ", prompt, re.M)[1]
        heading = "" if "Gap Resolution" in paper.read_text() else "\\n## Gap Resolution: " + gap + "\\n"
        mended.write_text({mending!r} + paper.read_text() + heading)
        sys.exit(subprocess.run([*words, str(mended)]).returncode)
"""


def answers_of(tasks: Any) -> set[tuple[str, str, str]]:
    """Every answer that was given, by the words of its finding."""
    rows = Answer.objects.standing().given().filter(submission__task__in=tasks).select_related("finding")
    return {(row.finding.raw_code, row.finding.title, row.kind) for row in rows}


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real documents is not here")
@pytest.mark.parametrize("name_", ["spec_refinement_workflow", "jobs_redesign", "ai_wizards"])
def test_real_documents_are_played_as_rounds_and_read_as_labelled(
    loop: Loop, remote: Path, tmp_path: Path, name_: str
) -> None:
    found = next(each for each in read_folder(CORPUS / "rounds") if each.name == name_)
    plan = plan_session(found)
    labels = json.loads((CORPUS / "labels.json").read_text())
    papers = tmp_path / "papers"
    papers.mkdir()
    numbers = {"engineer": 0, "reviewer": 0}
    files: list[str] = []
    for document, step in zip(found.documents, plan.steps, strict=True):
        numbers[document.role] += 1
        path = papers / f"{document.role}-{numbers[document.role]:02d}.md"
        path.write_text(document.text)
        if isinstance(step, ReviewDocument):
            files.append(document.path)
            if step.read.verdict is Verdict.NEEDS_REVISION:
                Path(f"{path}.back").touch()
    known = {gap: "" for document in found.documents for gap in mentioned_gaps(scan(document.text))}
    todo = "# Real\n\n## Gaps\n" + "".join(f"\n- [ ] {plan.titles.get(gap) or gap}\n" for gap in known)
    project = documents(
        remote, todo, gaps_per_round=100, records_branch="records", rounds_to_human=100, critical_block=100,
        pattern_threshold=100, policy={"high": "log", "medium": "log", "low": "log"}, rejections_max=1000,
    )  # fmt: skip
    Project.objects.filter(pk=project.pk).update(slug="real")
    for role in ("coder", "reviewer"):
        kind = "engineer" if role == "coder" else "reviewer"
        player = PLAYER.format(papers=str(papers), role=kind, mending=MENDING)
        command_agent(role, script(tmp_path, kind, player), name=kind)

    loop.until_idle(seconds=500)

    session = session_in(project)
    assert session.submissions.standing().count() == numbers["engineer"]
    reviews = list(Review.objects.standing().filter(submission__task=session).order_by("pk"))
    assert len(reviews) == numbers["reviewer"]
    found_in_all = labelled = right = 0
    for review, file_ in zip(reviews, files, strict=True):
        label = next(each for each in labels["reviewers"] if each["file"].endswith(file_))
        issues = [each for each in label["issues"] if each["kind"] == "issue"]
        mine, theirs = review.findings.count(), len(issues)
        found_in_all, labelled, right = found_in_all + mine, labelled + theirs, right + min(mine, theirs)
        severities = [each["severity"] for each in issues]
        grave = "CRITICAL" in severities or "HIGH" in severities
        said = {each["normalized"] for each in label["verdicts"]}
        if grave or "NEEDS_REVISION" in said:  # no approval that its labels do not bear out
            assert review.verdict == Review.Verdict.NEEDS_REVISION, file_
    assert 2 * right / (found_in_all + labelled) >= 0.95
    # The folder says the same as the rows, to the importer as well, and again.
    folder = tmp_path / "records"
    git(tmp_path, "clone", "-q", "-b", "records", str(remote), str(folder))
    again = import_again(folder / "session")
    live, read = figures(project), figures(again)
    assert {gap: said | {"accepted": 0} for gap, said in live.items()} == {
        gap: said | {"accepted": 0} for gap, said in read.items() if gap in live
    }
    accepted = [{gap for gap, said in each.items() if said["accepted"]} for each in (live, read)]
    assert accepted[0] == accepted[1]
    flagged = [
        {
            (flag.finding.raw_code, flag.finding.title)
            for flag in Flag.objects.standing().filter(finding__task__in=tasks)
        }
        for tasks in ([session], again.tasks.all())
    ]
    assert flagged[0] == flagged[1]
    for one in read_folder(folder / "session"):
        assert import_session(again, one, actor=SYSTEM).counts == {}
    # And what was played is what the real files say by themselves: the same answers to the same findings.
    files_say = Project.objects.create(slug="files", name="Files", repo_url="/nowhere")
    import_session(files_say, found, actor=SYSTEM)
    assert answers_of([session]) == answers_of(files_say.tasks.all())
