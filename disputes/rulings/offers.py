"""What may be chosen on a conflict, and what the person sees before choosing."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from django.db.models import Q

from disputes import precedents
from disputes.models import NOT_STATED, Conflict, Decision, Opinion
from disputes.opening import is_about_security
from disputes.protocol.rulings import options
from disputes.protocol.rulings.options import Option
from disputes.protocol.rulings.prompt_lines import Ruling, ruling_lines
from disputes.protocol.rulings.recommendations import (
    Judged,
    JudgeVerdict,
    Recommendation,
    recommend,
    trade_off,
)
from disputes.protocol.rulings.synthesis import Source, Synthesis, Views
from disputes.rulings.blocking import blockers_of
from tasks import base
from tasks.models import Submission

TEXT_MAX = 20_000
SHOWN = ("dispute__task",)  # what `shown_hash` reads besides the conflict
FINDING = (
    "code", "severity", "title", "impact", "suggestion", "text", "path", "line", "excerpt", "is_withdrawn",
)  # fmt: skip
# How the rationale begins if a finding was dropped, not ruled on its merits; that counts for the coder.
DISCARDED = "Discarded"


@dataclass(frozen=True, slots=True)
class OptionView:
    """One option as the dispute page shows it, as a button."""

    letter: str
    option: str
    title: str
    text: str
    consequence: str
    expects_change: bool
    needs_text: bool
    hint: str = ""
    trade_off: str = ""
    recommended: str = ""  # why it is recommended, in a sentence; empty if it is not


def text_of(conflict: Conflict, option: str) -> str:
    """Return the words that an option starts with, which a human may edit."""
    match Option(option):
        case Option.UPHOLD_REVIEWER:
            return heard(conflict.reviewer_position)
        case Option.UPHOLD_CODER:
            return heard(conflict.coder_position)
        case Option.COMPROMISE:
            return conflict.proposal.text if conflict.proposal else ""
    return ""


def heard(position: str) -> str:
    """What a side said; empty where it said nothing, and then its option offers no words either."""
    return "" if position == NOT_STATED else position


def options_of(conflict: Conflict, blockers: dict[int, set[int] | None] | None = None) -> list[OptionView]:
    """Return what may be chosen on this conflict, with the consequences in words.

    For a list of conflicts, `blockers` remembers what `blockers_of` said about each submission.
    """
    known: dict[int, set[int] | None] = {} if blockers is None else blockers
    if conflict.submission and conflict.submission_id not in known:
        known[conflict.submission.pk] = blockers_of(conflict.submission)
    found = known.get(conflict.submission_id or 0)
    clean = found is not None and found <= {conflict.finding_id}
    advised = recommendation_of(conflict)
    coder = conflict.dispute.project.coder_word
    return [
        OptionView(
            letter=choice.letter,
            option=choice.option,
            title=options.in_role_words(choice.title, coder),
            text=text_of(conflict, choice.option),
            consequence=consequence_of(conflict, choice, was_reviewed_green=clean),
            expects_change=choice.expects_change,
            needs_text=choice.needs_text,
            hint=options.in_role_words(choice.hint, coder),
            trade_off=trade_off_of(conflict, choice.option),
            recommended=advised.why if advised and advised.option == choice.option else "",
        )
        for choice in conflict.choices
        if not is_in_vain(conflict, choice.option)
    ]


def is_in_vain(conflict: Conflict, option: str) -> bool:
    """Whether the option makes no sense in the present state, so that it is not offered.

    Somebody who chooses it anyway is told why it is refused.
    """
    return option == Option.ACCEPT_BASE and not base.may_be_accepted(conflict.dispute.project)


def consequence_of(conflict: Conflict, choice: options.Choice, *, was_reviewed_green: bool) -> str:
    """Return what happens to the conflict's task if this is chosen, in one sentence."""
    task = conflict.dispute.task
    following = task.next_stage() if task and was_reviewed_green else None
    return options.consequence(
        choice,
        next_round=task.round + 1 if task else 1,
        dependants=conflict.dispute.blocks,
        was_reviewed_green=was_reviewed_green,
        next_stage=following.name if following else "",
        has_gaps=bool(task and was_reviewed_green and task.is_session and task.open_gaps().exists()),
        has_landed=bool(task and task.landed_at),
        coder=conflict.dispute.project.coder_word,
        earlier=conflict.stage,
        later=conflict.thread.stage if conflict.thread else "",
    )


def synthesis_of(conflict: Conflict) -> Synthesis | None:
    """Return option C, as a rule found it or somebody handed it in; None if there is none."""
    made = conflict.proposal
    return Synthesis(made.text, made.trade_off, made.covers_both, Source(made.source)) if made else None


def recommendation_of(conflict: Conflict) -> Recommendation | None:
    """Return what is recommended on a disagreement, with the reason (OPT-4)."""
    if conflict.kind != Conflict.Kind.DISAGREEMENT:
        return None
    return recommend(
        conflict.severity, synthesis_of(conflict), _judged(conflict), is_security=is_of_security(conflict)
    )


def is_of_security(conflict: Conflict) -> bool:
    """Whether the card is about security, by its reason or the words of its finding; if in doubt, it is."""
    if conflict.reason == Conflict.Reason.SECURITY:
        return True
    return is_about_security(
        conflict.question, conflict.reviewer_position, conflict.finding, conflict.raised_as
    )


def last_judged(conflict: Conflict) -> Opinion | None:
    """Return the last opinion that a judge gave in time, from prefetched opinions if there are any."""
    given = [
        opinion
        for opinion in conflict.opinions.all()
        if opinion.kind == Opinion.Kind.JUDGE and opinion.state == Opinion.State.GIVEN
    ]
    return max(given, key=lambda opinion: opinion.pk, default=None)


def _judged(conflict: Conflict) -> Judged | None:
    last = last_judged(conflict)
    return Judged(JudgeVerdict(last.verdict), last.reasons) if last else None


def trade_off_of(conflict: Conflict, option: str) -> str:
    """Return what is given up with this option."""
    views = Views(
        conflict.question, conflict.reviewer_position,
        heard(conflict.coder_position), conflict.coder_rationale,
    )  # fmt: skip
    impact = conflict.shown_finding.impact if conflict.shown_finding else ""
    return trade_off(Option(option), views, impact, synthesis_of(conflict))


def shown_hash(conflict: Conflict, code: Iterable[Submission] | None = None) -> str:
    """Return a hash of what the person sees: both sides, the finding, the code. It detects outdated pages.

    `code` is the disputed submission and the newest one of its task, by their keys; None looks them up.
    """
    task, finding = conflict.dispute.task, conflict.shown_finding
    shown = [
        conflict.pk, conflict.reviewer_position, conflict.coder_position, conflict.coder_rationale,
        conflict.alternative, conflict.proposal_id, conflict.question, conflict.severity, conflict.evidence,
        (task.title, task.body) if task else "",
        [getattr(finding, name) for name in FINDING] if finding else "",
        [
            [each.pk, each.sha, each.patch_id, each.problem]
            for each in (_code_now(conflict) if code is None else code)
        ],
    ]  # fmt: skip
    return sha256(json.dumps(shown).encode()).hexdigest()


def _code_now(conflict: Conflict) -> list[Submission]:
    task = conflict.dispute.task
    if task is None:
        return []
    newest = task.submissions.standing().newest_first().values("pk")[:1]
    rows = task.submissions.filter(Q(pk=conflict.submission_id) | Q(pk__in=newest))
    return list(rows.only("pk", "sha", "patch_id", "problem").order_by("pk"))


def _place_of(conflict: Conflict) -> str:
    """Return where the ruling is carried out: the finding's place, or an objection's target and stage."""
    if conflict.thread:
        return f"{' '.join(conflict.thread.target.split())}, the work of stage {conflict.stage}"
    return conflict.shown_finding.location if conflict.shown_finding else ""


def ruling_of(decision: Decision) -> Ruling:
    """Return the decision in the form that prompts and the preview put into words."""
    conflict = decision.conflict
    return Ruling(
        name=conflict.name,
        severity=conflict.severity,
        title=conflict.question,
        option=decision.option,
        text=decision.text,
        rationale=decision.rationale,
        constraints=decision.constraints_text,
        place=_place_of(conflict),
        expects_change=decision.expects_change,
        letter=decision.letter,
        citation=decision.citation,
    )


def preview(conflict: Conflict, option: str, **words: Any) -> list[str]:
    """Return exactly the lines with which the next coder's prompt would begin if this were the ruling.

    `words` are those of `draft`. Raises Refused("no_precedent").
    """
    return ruling_lines([ruling_of(draft(conflict, option, **words))])


def draft(
    conflict: Conflict,
    option: str,
    *,
    text: str = "",
    rationale: str = "",
    constraints: str = "",
    expects_change: bool | None = None,
    cites: str = "",
) -> Decision:
    """Return the decision as it would be stored; an empty text becomes the side's own.

    A and C always change code, B never; for own words the person says so. `cites` names precedents. Raises
    Refused: "no_precedent", "too_many".
    """
    choice = conflict.choice(option)
    changes = bool(choice and choice.expects_change)
    if option == Option.OTHER and expects_change is not None:
        changes = expects_change
    decision = Decision(
        conflict=conflict,
        option=option,
        text=text.strip()[:TEXT_MAX] or text_of(conflict, option),
        rationale=rationale.strip()[:TEXT_MAX],
        constraints_text=constraints.strip()[:TEXT_MAX],
        expects_change=changes,
    )
    decision.drafted_cites = precedents.cited(conflict, cites)
    return decision
