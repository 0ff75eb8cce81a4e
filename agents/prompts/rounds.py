"""What the engineer and the examiner of a round about documents are told besides the rulings.

Every text has its budget, and whatever did not fit is named (see `agents.prompts.sections`).
"""

from collections.abc import Iterable, Sequence
from typing import Any

from agents.crew import refusals
from agents.hosts.git.mirror import Mirror
from agents.models import Run
from agents.prompts import context, specifications
from agents.prompts.sections import Section, one_line
from agents.prompts.specifications import SOURCE_MAX
from disputes import rulings
from disputes.models import Decision
from disputes.protocol.rounds.gaps import GapState
from disputes.protocol.rounds.partial import automatic_checks
from disputes.protocol.rounds.retries import example_lines
from disputes.protocol.rounds.validation import Form
from disputes.protocol.text.quotes import fenced
from disputes.sessions import examples, findings, gaps, repair
from tasks.models import Submission, Task

BRIEF_MAX = 16 * 1024
GAPS_MAX = 32 * 1024
GAP_MAX = 6 * 1024
OTHERS_MAX = 12 * 1024
DOCUMENTS_MAX = 64 * 1024
REVIEW_MAX = 24 * 1024
PROPOSAL_MAX = 64 * 1024
EARLIER_MAX = 16 * 1024
EXAMPLE_MAX = 24 * 1024
LISTED = 400  # files of the commit that are searched for documents if no gap says which one it is about
ROLES = {Run.Role.CODER: "engineer", Run.Role.REVIEWER: "examiner"}


def is_round(run: Run) -> bool:
    """Whether the run belongs to a round about documents, and so is told of gaps."""
    return run.task.is_session and run.role in ROLES


def documents_of(run: Run, mirror: Mirror) -> list[tuple[str, str]]:
    """Return (name, text) of each document that the gaps in question name, as of the run's base commit.

    If the gaps name none, return one pair of an empty name and the names of the documents among the first
    LISTED files, or nothing if there are none.
    """
    found: dict[str, str] = {}
    for gap in _in_question(run):
        if gap.source and gap.source not in found:
            found[gap.source] = specifications.read(mirror, run.base_sha, gap.source)[:SOURCE_MAX]
    if not found:
        names = [
            name
            for name in mirror.tree(run.base_sha, LISTED)
            if name.lower().endswith((".md", ".rst", ".txt"))
        ]
        return [("", "\n".join(names))] if names else []
    return list(found.items())


def _in_question(run: Run) -> list[Task]:
    if run.role == Run.Role.CODER:
        return gaps.assigned(run.task)
    return gaps.under_review(run.task)


# --- The engineer -------------------------------------------------------------------------------------------


def for_engineer(run: Run, decisions: list[Decision], documents: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the gaps the engineer is given, what was said about them, and the form that is due."""
    session = run.task
    given = gaps.assigned(session)
    last = session.last_submission()
    review = last.reviews.order_by("-pk").first() if last else None
    told = context.for_coder(run, decisions)
    return told | {
        **_common(run, given),
        "documents": _documents(documents),
        "last_review": Section("the last review", review.text if review else "", REVIEW_MAX),
        "waiting_findings": one_line(
            ", ".join(
                f"{row.code} ({row.gap.gap if row.gap else 'no gap'})" for row in findings.waiting(session)
            )
        )[:2000],
        "least_chars": session.project.config.thin_content_chars,
        "adjustments": repair.adjustments_for(session),
        **_example(told, session, Form.PROPOSAL),
    }


def _example(told: dict[str, Any], session: Task, form: Form) -> dict[str, Any]:
    """Return the example of the form, unless the run is told of a refused hand-in with one of its own."""
    example = None if told["example"] else examples.first(session, form)
    if example is None:
        return {name: told[name] for name in ("example", "example_source")}
    shown = Section("example", example_lines(example), EXAMPLE_MAX, is_fenced=False)
    return {"example": shown, "example_source": str(example.source)}


def _common(run: Run, gaps_in_question: Sequence[Task]) -> dict[str, Any]:
    project = run.project
    named = {gap.gap for gap in gaps_in_question}
    others = [gap for gap in gaps.with_facts(project.tasks.gaps()).order_by("rank") if gap.gap not in named]
    return {
        "brief": Section("the brief", project.brief, BRIEF_MAX, where="steroids projects"),
        "gaps": Section(
            "your gaps", "\n\n".join(_told(gap) for gap in gaps_in_question), GAPS_MAX, is_fenced=False
        ),
        "other_gaps": Section("the other gaps", "\n".join(_line(gap) for gap in others), OTHERS_MAX),
    }


def _told(gap: Task) -> str:
    """Return one gap with its description and the last proposal for it."""
    lines = [f"### {gap.gap} ({gap.severity.upper()})", "", one_line(gap.title)]
    if gap.parent:
        lines.append(f"It came up in the work on {gap.parent.gap}.")
    if gap.source:
        lines.append(f"It is about `{one_line(gap.source)}`.")
    if gap.body.strip():
        lines += ["", fenced(gap.body[:GAP_MAX])]
    before = gaps.documents_of(gap).first()
    if before and before.response.strip():
        lines += ["", f"Proposed in round {before.round}:", "", fenced(before.response[:GAP_MAX], "markdown")]
    return "\n".join(lines)


def _line(gap: Task) -> str:
    state = gaps.state_of(gap)
    children = " (see its parts)" if state is GapState.SUPERSEDED else ""
    return f"- {gap.gap} ({gap.severity.upper()}, {state}){children}: {one_line(gap.title)[:160]}"


def _documents(documents: Sequence[tuple[str, str]]) -> Section:
    """Return the documents as one section, each fenced under its name."""
    whole = [name for name, _ in documents if name]
    if not whole:
        text = documents[0][1] if documents else ""
        return Section("names of documents", text, OTHERS_MAX, where="read them in the clone")
    parts = [f"### {one_line(name)}\n\n{fenced(text, 'markdown')}" for name, text in documents]
    return Section(
        "documents in question", "\n\n".join(parts), DOCUMENTS_MAX, where="read them in the clone",
        is_fenced=False,
    )  # fmt: skip


# --- The reviewer -------------------------------------------------------------------------------------------


def for_examiner(run: Run, decisions: list[Decision]) -> dict[str, Any]:
    """Return the proposals to examine, the earlier findings, and the form that is due."""
    session = run.task
    is_final = not session.open_gaps().exists()
    rows = (
        list(session.project.tasks.gaps().exclude(gap="").order_by("rank"))
        if is_final
        else gaps.under_review(session)
    )
    submission = session.submissions.standing().filter(sha=run.sha).order_by("-pk").first()
    earlier = Run.objects.filter(task=session, role=run.role, sha=run.sha, status=Run.Status.ENDED)
    change = context.change_of(submission) if submission else dict(context.NO_CHANGE)
    told = context.retry_of(refusals.to_mend(earlier))
    return {
        **_common(run, [] if is_final else rows),
        **_all_gaps(session, is_final),
        "sha": run.sha,
        "final": is_final,
        "focus": one_line(run.agent.focus) if run.agent else "",
        "settled": Section("settled points", "\n".join(rulings.settled_lines(session)), context.SETTLED_MAX),
        "decisions": [decision for decision in decisions if decision.expects_change],
        "clarified": "",
        "proposal": Section("the proposal", submission.response if submission else "", PROPOSAL_MAX),
        "answers": change["answers"],
        "diff": change["diff"],
        "earlier_findings": Section("earlier findings", "\n".join(_earlier(session, rows)), EARLIER_MAX),
        "checks": "\n".join(_checks(session, submission)),
        **told,
        **_example(told, session, Form.REVIEW),
    }  # fmt: skip


def _all_gaps(session: Task, is_final: bool) -> dict[str, Any]:
    if not is_final:
        return {}
    rows = gaps.with_facts(session.project.tasks.gaps()).order_by("rank")
    return {"gaps": Section("all gaps", "\n".join(_line(gap) for gap in rows), GAPS_MAX)}


def _earlier(session: Task, rows: Iterable[Task]) -> Iterable[str]:
    keys = {gap.pk for gap in rows}
    raised = (
        session.findings.standing().filter(is_withdrawn=False, gap__in=keys).select_related("gap", "first")
    )
    newest = {finding.origin.pk: finding for finding in raised.order_by("pk")}
    for finding in newest.values():
        code = finding.gap.gap if finding.gap else ""
        yield f"- {finding.code} ({finding.severity.upper()}, {code}): {one_line(finding.title)[:300]}"


def _checks(session: Task, submission: Submission | None) -> Iterable[str]:
    """Yield the results of the checks that the program makes, so that the reviewer need not (PART-1)."""
    if submission is None or not submission.response.strip():
        return
    known = list(gaps.by_code(session.project))
    found = automatic_checks(submission.response, known, session.project.config.thin_content_chars)
    for check, passed in found.items():
        yield f"- {check}: {'pass' if passed else 'fail'}"
