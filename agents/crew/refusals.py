"""Runs whose hand-ins were refused: what the refusals said is kept, told to the next run, and counted.

A refusal alone is no retry, for the run goes on and may mend it; a run that ends with nothing but refusals is
one (VAL-11). After the first and `max_retries` more of them a human is asked (VAL-8).
"""

from collections.abc import Iterable

from django.db.models import F, Q, QuerySet
from rest_framework.exceptions import ValidationError

from agents.models import Run
from disputes.protocol.rounds import retries
from disputes.protocol.rounds.retries import Due, RetrySettings
from disputes.protocol.rounds.validation import Form, Refusal, Validation, refused, validate_hand_in
from disputes.protocol.text.documents import DocumentError
from tasks.errors import Refused
from tasks.models import Task

# The verbs that would end the run; a refused comment is nothing that the next run must know.
FINAL = frozenset({"submit", "approve", "reject", "dispute", "blocked", "escalate", "opinion"})
KEPT_MAX = 50  # reasons of one refusal
REASON_MAX = 500  # characters of a reason; they may quote what the agent wrote

COMMANDS = {
    Run.Role.CODER: "steroids tasks update {ref} --status review --response FILE",
    Run.Role.REVIEWER: "steroids tasks reject {ref} --file REVIEW",
}
FORMS = {Run.Role.CODER: Form.HAND_IN, Run.Role.REVIEWER: Form.REJECTION}


# --- Keeping what was refused -------------------------------------------------------------------------------


def note(run: Run, verb: str, error: Exception) -> None:
    """Count the refusal of a hand-in for what it says, and keep its reasons in place of the one before."""
    reasons = list(_reasons(error))
    if verb in FINAL and reasons:
        kept = [{"line": line, "reason": reason[:REASON_MAX]} for line, reason in reasons[:KEPT_MAX]]
        live = Run.objects.live().filter(pk=run.pk, fence=run.fence)
        live.update(refusals=F("refusals") + 1, refusal=kept)


def _reasons(error: Exception) -> Iterable[tuple[int, str]]:
    """Lines and reasons; none where the text was not what was wrong."""
    match error:
        case Refused(status=422):
            if not error.details:
                yield 0, f"{error.message} {error.hint}".strip()
            for each in error.details:
                about = each if isinstance(each, dict) else {"reason": str(each)}
                yield int(about.get("line") or 0), str(about.get("reason", ""))
        case DocumentError():
            for problem in error.problems:
                yield problem.line, problem.reason
            if not error.problems:
                yield 0, str(error)
        case ValidationError(detail=dict() as fields):
            for field, reasons in fields.items():
                yield 0, f"{field}: {' '.join(map(str, reasons)) if isinstance(reasons, list) else reasons}"


# --- Telling the next run -----------------------------------------------------------------------------------


def result_of(run: Run) -> Validation:
    """The ended run as the protocol sees it."""
    if run.refusals:
        return refused([Refusal(each["reason"], each["line"]) for each in run.refusal])
    return validate_hand_in(None, (), ())


def said(run: Run) -> str:
    """In one sentence why nothing of the run was taken; empty where nothing was refused."""
    if not run.refusals:
        return ""
    often = "once" if run.refusals == 1 else f"{run.refusals} times"
    return f"It handed in {often}, and was refused: {result_of(run).message}"


def to_mend(earlier: QuerySet[Run]) -> Run | None:
    """The newest of these ended runs that its agent can mend: it handed in nothing, or nothing was taken."""
    handed_in = earlier.filter(outcome=Run.Outcome.HANDED_IN).order_by("-pk").values_list("pk", flat=True)
    mendable = Q(outcome=Run.Outcome.NOTHING) | Q(refusals__gt=0)
    since = earlier.filter(mendable, pk__gt=handed_in.first() or 0)
    return since.select_related("task__project").order_by("-pk").first()


def told(earlier: Run | None) -> dict[str, str]:
    """For the next run's prompt: the notice before it, the example and the demand behind it (EX-7)."""
    if earlier is None or earlier.role not in FORMS:
        return {}
    result = result_of(earlier)
    due = Due(FORMS[Run.Role(earlier.role)], COMMANDS[Run.Role(earlier.role)].format(ref=earlier.task.ref))
    settings = retry_settings(earlier.task)
    example = retries.example_for(result, due, (), settings)
    return {
        "retry": "\n".join(retries.notice(result, due)),
        "example": retries.example_lines(example) if example else "",
        "demand": retries.demand(result, due),
    }


# --- Counting -----------------------------------------------------------------------------------------------


def retry_settings(task: Task) -> RetrySettings:
    config = task.project.config
    return RetrySettings(config.max_retries, config.retry_example_tokens)


def exhausted(task: Task, runs: Iterable[Run]) -> Validation | None:
    """MAX_RETRIES_EXHAUSTED with the last failure (VAL-7) where these runs, oldest first, used them up.

    Only those count whose every hand-in was refused: what failed in another way has a count of its own.
    """
    results = [result_of(run) for run in runs if run.outcome == Run.Outcome.NOT_TAKEN]
    step = retries.next_step(results, retry_settings(task))
    return step.result if step.action is retries.RetryAction.ASK else None
