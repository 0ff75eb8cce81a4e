"""Refused hand-ins: what the refusals said is kept, told to the next run, and counted.

A refusal alone is no retry, since the run goes on and may correct it; a run that ends with nothing but
refusals is one (VAL-11). After the first and `max_retries` more of them a person is asked (VAL-8).
"""

from collections.abc import Iterable
from typing import Any

from django.db.models import F, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from rest_framework.exceptions import ValidationError

from agents.models import Run
from disputes.protocol.rounds import retries, validation
from disputes.protocol.rounds.retries import Due
from disputes.protocol.text.documents import DocumentError
from disputes.sessions import examples, gaps
from tasks.errors import Invalid
from tasks.models import Task

# The verbs that would end the run. The next run need not know of a refused comment.
FINAL = frozenset({"submit", "approve", "reject", "dispute", "blocked", "escalate", "opinion"})
KEPT_MAX = 50  # reasons of one refusal
REASON_MAX = 500  # characters of a reason; they may quote what the agent wrote

COMMANDS = {
    Run.Role.CODER: "steroids tasks update {ref} --status review --response FILE",
    Run.Role.REVIEWER: "steroids tasks reject {ref} --file REVIEW",
}
# After an approval that left something open.
APPROVE = "steroids tasks approve {ref} --file REVIEW"
EITHER = f"{APPROVE}` or, if anything is left to change, `{COMMANDS[Run.Role.REVIEWER]}"
ROUND_FORMS = {Run.Role.CODER: validation.Form.PROPOSAL, Run.Role.REVIEWER: validation.Form.REVIEW}
FORMS = {Run.Role.CODER: validation.Form.HAND_IN, Run.Role.REVIEWER: validation.Form.REJECTION}


# --- Keeping what was refused -------------------------------------------------------------------------------


def note(run: Run, verb: str, error: Exception) -> None:
    """Count the refusal of a hand-in for its content, and keep its reasons in place of the earlier ones."""
    reasons = list(_reasons(error))
    if verb in FINAL and reasons:
        kept = [
            {"verb": verb, "line": line, "reason": reason[:REASON_MAX], **more}
            for line, reason, more in reasons[:KEPT_MAX]
        ]
        live = Run.objects.live().filter(pk=run.pk, fence=run.fence)
        live.update(refusals=F("refusals") + 1, refusal=kept)


def _reasons(error: Exception) -> Iterable[tuple[int, str, dict[str, Any]]]:
    """Yield line, reason and details of each fault; nothing if the text itself was not at fault.

    The details are the type of failure and what it is about, as far as the gate of documents says so.
    """
    match error:
        case Invalid():
            if not error.details:
                yield 0, f"{error.message} {error.hint}".strip(), {}
            for each in error.details:
                about = each if isinstance(each, dict) else {"reason": str(each)}
                if about.get("is_reading"):
                    continue  # how it was understood is no fault
                more = {key: about[key] for key in ("type", "refs") if key in about}
                yield int(about.get("line") or 0), str(about.get("reason", "")), more
        case DocumentError():
            for problem in error.problems:
                yield problem.line, problem.reason, {}
            if not error.problems:
                yield 0, str(error), {}
        case ValidationError(detail=dict() as fields):
            for field, reasons in fields.items():
                told = " ".join(map(str, reasons)) if isinstance(reasons, list) else reasons
                yield 0, f"{field}: {told}", {}


# --- Telling the next run -----------------------------------------------------------------------------------


def result_of(run: Run) -> validation.Validation:
    """Return the result of the ended run in terms of the protocol."""
    if any("type" in each for each in run.refusal):
        return validation.verdict_of(
            validation.Failure(
                validation.FailureType(each["type"]),
                each["reason"],
                each["line"],
                tuple(each.get("refs", ())),
            )
            for each in run.refusal
            if "type" in each
        )
    if run.refusals:
        return validation.refused([validation.Refusal(each["reason"], each["line"]) for each in run.refusal])
    return validation.nothing_handed_in()


def said(run: Run) -> str:
    """Say in one sentence why nothing of the run was taken; empty if nothing was refused."""
    if not run.refusals:
        return ""
    often = "once" if run.refusals == 1 else f"{run.refusals} times"
    return f"It handed in {often}, and was refused: {result_of(run).message}"


def to_mend(earlier: QuerySet[Run]) -> Run | None:
    """Return the newest of these ended runs, since the last hand-in, that its agent can correct, or None.

    That is a run that handed in nothing, or nothing that was taken.
    """
    handed_in = earlier.filter(outcome=Run.Outcome.HANDED_IN).order_by("-pk").values("pk")
    mendable = Q(outcome=Run.Outcome.NOTHING) | Q(refusals__gt=0)
    since = earlier.filter(mendable, pk__gt=Coalesce(Subquery(handed_in[:1]), 0))
    return since.select_related("task__project").order_by("-pk").first()


def told(earlier: Run | None) -> dict[str, str]:
    """Return the parts of the next run's prompt about a refusal: notice, example and demand (EX-7).

    Empty if there is no earlier run to learn from.
    """
    if earlier is None or earlier.role not in FORMS:
        return {}
    result = result_of(earlier)
    settings, session = earlier.task.project.config, earlier.task if earlier.task.is_session else None
    due = _due(earlier)
    shown = examples.earlier(session, due.form) if session else ()
    example = retries.example_for(result, due, shown, settings)
    return {
        "retry": "\n".join(retries.notice(result, due)),
        "example": retries.example_lines(example) if example else "",
        "example_source": str(example.source) if example else "",
        "demand": retries.demand(result, due),
    }


def _due(run: Run) -> Due:
    """Return what the run had to deliver."""
    role, task = Run.Role(run.role), run.task
    approved = any(each.get("verb") == "approve" for each in run.refusal)
    place = (EITHER if approved else COMMANDS[role]).format(ref=task.ref)
    if not task.is_session:
        return Due(FORMS[role], place)
    given = gaps.assigned(task) if role == Run.Role.CODER else gaps.under_review(task)
    return Due(
        ROUND_FORMS[role], place, tuple(gap.gap for gap in given), tuple(gaps.by_code(task.project)),
        task.project.config.thin_content_chars,
    )  # fmt: skip


# --- Counting -----------------------------------------------------------------------------------------------


# Failures of a document after which there is one more run, however many retries the settings allow (PART-3).
ONCE_MORE = (validation.FailureType.UNCERTAIN, validation.FailureType.NO_GAPS_ADDRESSED)


def exhausted(task: Task, runs: Iterable[Run]) -> str:
    """Say that these runs used up the retries, with the last failure, or return "" (VAL-7, VAL-8, PART-3).

    The runs come oldest first. Only those count whose every hand-in was refused: other failures have a
    count of their own, and trouble with a provider never counts (VAL-9).
    """
    results = [result_of(run) for run in runs if run.outcome == Run.Outcome.NOT_TAKEN]
    kinds = [each.failure_type for each in results[-2:]]
    is_bound_reached = task.is_session and len(kinds) == 2 and kinds[0] == kinds[1] in ONCE_MORE
    if is_bound_reached or len(results) > task.project.config.max_retries:
        return f"MAX_RETRIES_EXHAUSTED: no retry is left; last: {results[-1].message}"
    return ""
