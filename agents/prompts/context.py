"""What coder and reviewer are told besides the task: rulings, findings, what came back, the change.

Only plain values and sections leave this module, so that no template sees a database row.
"""

import copy
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from django.db.models import Expression, QuerySet

from agents.crew import refusals
from agents.models import Run
from agents.prompts.sections import Section, one_line
from disputes import intake, rulings
from disputes.models import Decision, Guideline
from disputes.protocol.reviews.severity import read_severity
from disputes.protocol.rulings.options import NOT_FOR_THE_CODER, Option
from disputes.protocol.rulings.prompt_lines import Ruling, ruling_lines
from tasks.database.prepared import Prepared
from tasks.models import Answer, Event, Finding, Landing, Rollback, Submission, Task, Verification
from tasks.states import Severity
from tasks.text.counting import enumerated
from tasks.text.fences import open_fence

GUIDELINES_MAX, GUIDELINES_NAMED = 16 * 1024, 50
RULINGS_MAX = 48 * 1024
FINDINGS_MAX = 32 * 1024
FINDINGS_NAMED = 150  # shown with their text; the others only by their code
CODES_MAX = 1000
SETTLED_MAX = 32 * 1024
DIFF_MAX = 120 * 1024
SAME_FILES = "Nothing: this commit has the same files as the target branch."
RESPONSE_MAX = 16 * 1024
REASON_MAX = 16 * 1024
PROBLEM_MAX = 4 * 1024
TAIL_MAX = 6 * 1024
NAMES_MAX = 4 * 1024
CLARIFIED_MAX = 24 * 1024
EXAMPLE_MAX = 48 * 1024
NOTICE_MAX = 16 * 1024


def _guidelines(project: Expression) -> QuerySet[Guideline]:
    return Guideline.objects.filter(project=project).order_by().values_list("pk")[:1]


def _rollbacks(task: Expression) -> QuerySet[Rollback]:
    return Rollback.objects.filter(task=task).order_by("-pk")[:1]


def _coders(task: Expression, round_: Expression) -> QuerySet[Run]:
    ended = Run.objects.filter(role=Run.Role.CODER, status=Run.Status.ENDED)
    return ended.filter(task=task, round=round_).order_by().values_list("pk")[:1]


def _reviewers(task: Expression, sha: Expression) -> QuerySet[Run]:
    ended = Run.objects.filter(role=Run.Role.REVIEWER, status=Run.Status.ENDED)
    return ended.filter(task=task, sha=sha).order_by().values_list("pk")[:1]


def _submissions(task: Expression, sha: Expression) -> QuerySet[Submission]:
    return Submission.objects.standing().filter(task=task, sha=sha).order_by("-pk")[:1]


def _verifications(project: Expression, sha: Expression) -> QuerySet[Verification]:
    return Verification.objects.filter(project=project, sha=sha).order_by("-at")[:1]


def _edits(task: Expression, since: Expression) -> QuerySet[Event, Any]:
    """Return the data of the edits, which name the fields: those of pages, and those of a TODO.md."""
    edits = Event.objects.filter(task=task, kind__in=("task_edited", "edited"), at__gt=since)
    return edits.order_by().values_list("data", flat=True)


def _clashes(task: Expression) -> QuerySet[Landing]:
    clashed = Landing.objects.filter(task=task, status=Landing.Status.CONFLICT)
    return clashed.select_related("submission").order_by("-pk")[:1]


_last_clash, _edited = Prepared(_clashes), Prepared(_edits)
_answers = Prepared(lambda submission: Answer.objects.filter(submission=submission).select_related("finding"))
_any_guideline, _last_rollback = Prepared(_guidelines), Prepared(_rollbacks)
_ended_coder, _ended_reviewer = Prepared(_coders), Prepared(_reviewers)
_under_review, _verification = Prepared(_submissions), Prepared(_verifications)


def guidelines_of(task: Task) -> Section:
    """Return the standing guidelines of the project that apply to the task."""
    found: Iterable[Guideline] = ()
    if _any_guideline.rows(task.project_id):
        holding = Guideline.objects.for_task(task).select_related("decision__conflict")
        found = holding[:GUIDELINES_NAMED]
    lines = [
        f"- {one_line(each.text)}" + (f" (ruled on {each.source})" if each.source else "") for each in found
    ]
    return Section("standing guidelines", "\n".join(lines), GUIDELINES_MAX, is_fenced=False)


def for_coder(run: Run, decisions: list[Decision]) -> dict[str, Any]:
    """Return the values for the first and the last part of a coder's prompt (ARB-4)."""
    task = run.task
    last = task.last_submission()
    back = _last_rollback.first(task.pk)
    in_vain = to_mend = None
    if _ended_coder.rows(task.pk, run.round):
        earlier = Run.objects.filter(task=task, role=Run.Role.CODER, round=run.round, status=Run.Status.ENDED)
        if back:
            earlier = earlier.filter(queued_at__gt=back.at)
        in_vain = earlier.exclude(outcome=Run.Outcome.HANDED_IN).order_by("-pk").first()
        to_mend = refusals.to_mend(earlier)
    return {
        "decisions": [each for each in decisions if each.option not in NOT_FOR_THE_CODER],
        "guidelines": guidelines_of(task),
        **_rolled_back(back, last),
        "reworded": _reworded(task, last),
        **_red(task, last),
        **_clash(task, last),
        **_resumed(in_vain, last),
        **_findings(intake.findings_to_answer(task), task.ref),
        **retry_of(to_mend),
    }


def _rolled_back(back: Rollback | None, last: Submission | None) -> dict[str, Any]:
    """Return that and why a person took rounds back, as long as nothing has been handed in since."""
    if back is None:
        return {"back": None, "back_reason": ""}
    is_news = last is None or back.at > last.at
    return {
        "back": {"to_round": back.to_round} if is_news else None,
        "back_reason": Section("reason of the rollback", back.reason, REASON_MAX),
    }


def _reworded(task: Task, last: Submission | None) -> dict[str, str] | None:
    """Return what of the task's words was changed since its last submission, or None if nothing was."""
    if last is None:
        return None
    fields = {name for edit in _edited.found(task.pk, last.at) for name in edit["fields"]}
    changed = [words for name, words in Task.ASKED_FOR.items() if name in fields]
    return {"what": enumerated(changed, "and"), "sha": last.sha[:12]} if changed else None


def _red(task: Task, last: Submission | None) -> dict[str, Any]:
    """Return why the last attempt of this round came back: what failed, and the end of the log.

    The tests that failed are listed only if the reason does not name each of them.
    """
    if last is None or last.round != task.round or last.state not in Submission.UNTAKEN:
        return {"red": None, "red_problem": "", "red_tests": "", "red_tail": ""}
    is_red = last.state == Submission.State.RED
    results = Verification.objects.filter(project=task.project, sha=last.sha).order_by("-at")
    result = results.first() if is_red else None
    names = (result.newly_red or result.failed) if result else []
    tests = Section("tests that failed", "\n".join(map(one_line, names)), NAMES_MAX)
    return {
        "red": {"sha": last.sha[:12], "is_red": is_red},
        "red_problem": Section("problem", one_line(last.problem), PROBLEM_MAX),
        "red_tests": tests if any(name not in last.problem for name in names) else "",
        "red_tail": Section("end of the log", result.tail if result else "", TAIL_MAX, keeps_end=True),
    }


def _clash(task: Task, last: Submission | None) -> dict[str, Any]:
    """Return the clash if the last submission was approved but does not fit onto the target branch."""
    clash = _last_clash.first(task.pk) if last else None
    if clash is None or last is None or clash.submission_id != last.pk:
        return {"clash": "", "clash_problem": ""}
    return {
        "clash": clash.submission.sha[:12],
        "clash_problem": Section("problem", clash.problem, PROBLEM_MAX),
    }


def _resumed(run: Run | None, last: Submission | None) -> dict[str, Any]:
    """Return how an earlier run of this round ended without a hand-in, if nothing was handed in since."""
    if run is None or (last and run.queued_at <= last.at):
        return {"resumed": "", "resumed_reason": ""}
    return {
        "resumed": run.get_outcome_display(),
        "resumed_reason": Section("reason", run.reason, PROBLEM_MAX),
    }


def _findings(findings: Sequence[Finding], ref: str) -> dict[str, Any]:
    """Return the findings to answer; those beyond the first FINDINGS_NAMED appear only by their code."""
    named, others = findings[:FINDINGS_NAMED], findings[FINDINGS_NAMED:]
    codes = [finding.code for finding in others[:CODES_MAX]]
    if len(others) > CODES_MAX:
        codes.append(f"and {len(others) - CODES_MAX} more")
    where = f"steroids tasks show {ref}"
    return {
        "findings": [
            {
                "code": finding.code, "severity": finding.severity.upper(), "mandatory": finding.mandatory,
                "text": Section(finding.code, _text_of(finding), FINDINGS_MAX // len(named), where=where),
            }
            for finding in named
        ],
        "finding_count": len(findings),
        "more_findings": ", ".join(codes),
        "more_count": len(others),
    }  # fmt: skip


def _text_of(finding: Finding) -> str:
    parts = [finding.title]
    names = getattr(finding, "raised_by", [])
    if len(names) > 1:
        parts.append(f"Raised by: {', '.join(names)}")
    if finding.gap:
        parts.append(f"Gap: {finding.gap.gap}")
    for label, value in (
        ("Location", finding.location), ("Impact", finding.impact), ("Suggestion", finding.suggestion),
    ):  # fmt: skip
        if value:
            parts.append(f"{label}: {value}")
    in_full = finding.text.strip()
    if not (finding.impact and finding.suggestion) and in_full != finding.title:
        parts.append(f"As its reviewer wrote it:\n{in_full}")  # text without a label is in no other field
    return "\n".join(parts)


def retry_of(earlier: Run | None) -> dict[str, Any]:
    """Return notice, example and demand after a refused hand-in; the demand is never cut (EX-7)."""
    told = refusals.told(earlier)
    if not told:
        return {"retry": "", "example": "", "example_source": "", "demand": ""}
    limits = {"retry": NOTICE_MAX, "example": EXAMPLE_MAX}
    names = {"retry": "why the last hand-in was refused", "example": "example"}
    return {
        name: Section(names[name], text, limits[name], is_fenced=False) if name in limits else text
        for name, text in told.items()
    }


def under_review(run: Run) -> Submission | None:
    """Return the submission whose commit the run looks at; None if there is none."""
    return _under_review.first(run.task_id, run.sha) if run.sha else None


def for_reviewer(run: Run, decisions: list[Decision]) -> dict[str, Any]:
    """Return what a reviewer is told of the rulings, of the coder's answers and of the change."""
    task = run.task
    submission = under_review(run)
    result = _verification.first(task.project_id, run.sha)
    clarified = [decision.text for decision in decisions if decision.option == Option.CLARIFY]
    to_mend = None
    if _ended_reviewer.rows(task.pk, run.sha):
        earlier = Run.objects.filter(task=task, role=Run.Role.REVIEWER, sha=run.sha, status=Run.Status.ENDED)
        to_mend = refusals.to_mend(earlier)
    return {
        "sha": run.sha,
        "focus": one_line(run.agent.focus) if run.agent else "",
        "must_settle": _must_settle(task),
        "guidelines": guidelines_of(task),
        "settled": Section("settled points", "\n".join(rulings.settled_lines(task)), SETTLED_MAX),
        "decisions": [decision for decision in decisions if decision.expects_change],
        "clarified": Section(
            "what was clarified", "\n\n".join(clarified), CLARIFIED_MAX, is_fenced=False
        ),
        **_verified(result),
        **(change_of(submission) if submission else NO_CHANGE),
        **retry_of(to_mend),
    }  # fmt: skip


def _must_settle(task: Task) -> str:
    """Name the severities and tags that the project does not let pass; empty if it lets all pass.

    For example: "CRITICAL, HIGH and remarks tagged [SHOULD]".
    """
    config = task.project.config
    named = [each.upper() for each in Severity if each in config.mandatory]
    tags = [tag for tag in config.mandatory_opinions if read_severity(tag) not in config.mandatory]
    named += [f"remarks tagged [{tag.upper()}]" for tag in tags]
    return enumerated(named)


def _verified(result: Verification | None) -> dict[str, Any]:
    """Return how build and tests ended for the commit; nothing is said where there were none."""
    if result is None or result.ran_nothing:
        return {"is_verified": False, "is_green": False, "red_tests": "", "seconds": ""}
    return {
        "is_verified": True,
        "is_green": result.green,
        "red_tests": one_line(result.problem or result.step),
        "seconds": f"{result.seconds:.1f}",
    }


NO_CHANGE = {"diff": "", "response": "", "answers": "", "rebased": None, "again": False}


def change_of(submission: Submission) -> dict[str, Any]:
    """Return what was handed in, and whether it was rebased or reviewed before."""
    answers = [
        f"{answer.finding.code}: {answer.kind}. {one_line(answer.text)}"
        for answer in _answers.found(submission.pk)
    ]
    base = str(submission.diff_stat.get("fork", ""))[:12] or "its base"
    where = f"`git diff` and `git log` against {base} in the clone"
    is_rebased = bool(submission.rebased_from)
    return {
        "diff": Section("diff", submission.diff, DIFF_MAX, "diff", where=where, instead=SAME_FILES),
        "response": Section("response", submission.response, RESPONSE_MAX),
        "answers": Section("answers", "\n".join(answers), RESPONSE_MAX),
        "rebased": {"from": submission.rebased_from[:12], "onto": base} if is_rebased else None,
        "again": not is_rebased and submission.reviews.exists(),
    }


# --- Rulings ----------------------------------------------------------------------------------------------


def rulings_text(decisions: Sequence[Decision], share: float, cuts: list[str]) -> str:
    """Return all rulings in the words of the prompt.

    If they exceed the budget, each gets an equal part of it. Only the words of a ruling that is longer than
    its part are cut, and a line in `cuts` says so.
    """
    if not decisions:
        return ""
    text = _worded(decisions)
    most = int(RULINGS_MAX * share)
    if len(text) <= most:
        return text
    each = max(most // len(decisions) // 4, 0)
    cuts.append(f"rulings ({each:,} characters of each of its texts): `steroids dispute show` tells all")
    return _worded([_shortened(decision, each) for decision in decisions])


def _worded(decisions: Sequence[Decision]) -> str:
    told = (rulings.ruling_of(decision) for decision in decisions)
    return "\n".join(ruling_lines(_without_open_fences(ruling) for ruling in told)[2:])


def _without_open_fences(ruling: Ruling) -> Ruling:
    """Return the ruling with every fence closed.

    A ruling may quote an agent, and a fence that it never closes must not swallow the ruling after it.
    """
    names = ("text", "rationale", "constraints")
    return replace(ruling, **{name: _closed(getattr(ruling, name)) for name in names})


def _closed(text: str) -> str:
    below = [f"   {line}" for line in text.strip().splitlines()[1:]]  # the first line follows its label
    fence = open_fence("\n".join(below))
    return f"{text.rstrip()}\n{fence}" if fence else text


def _shortened(decision: Decision, limit: int) -> Decision:
    """Return a copy, never to be saved, whose texts have at most `limit` characters."""
    short, conflict = copy.copy(decision), copy.copy(decision.conflict)
    for name in ("text", "rationale", "constraints_text"):
        setattr(short, name, _brief(getattr(decision, name), limit))
    conflict.question = _brief(one_line(conflict.question), limit)
    short.conflict = conflict
    return short


def _brief(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit].rstrip()} [cut]"
