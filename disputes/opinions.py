"""What judges and mediators are asked about conflicts, and what follows from their answers (ARB-5 to ARB-8).

An opinion is never a ruling. If a project's settings let the judge rule without asking people first, the
program makes the decision, by the policy and in the name of the person who set it, but never on a critical
conflict. An opinion that comes after the conflict was settled is kept and has no effect.
"""

import contextlib
import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, QuerySet, Subquery

from disputes import hooks, precedents, rulings
from disputes.models import NOT_STATED, Conflict, Decision, Opinion
from disputes.protocol.rulings import arbitration
from disputes.protocol.rulings.arbitration import DisputeFacts, FirstStep
from disputes.protocol.rulings.options import Option
from disputes.protocol.rulings.recommendations import PRECEDENTS, settles_itself
from disputes.protocol.rulings.synthesis import Source
from disputes.protocol.text.quotes import plain
from disputes.rulings.offers import is_of_security
from tasks.access import MAINTAIN, RULE, may, require
from tasks.configuration.policy import in_words
from tasks.database.clock import estimated_time
from tasks.errors import Invalid, Refused
from tasks.events import SYSTEM, Actor
from tasks.models import Event, Project, StaleTask
from tasks.models.event import record
from tasks.models.task import locked_task
from tasks.states import IllegalMove, Severity

log = logging.getLogger(__name__)

REASONS_MAX = 20_000  # characters, of reasons and of a proposal
WHY_MAX = 600  # characters of the reasons in a ruling by policy, which a coder's prompt contains
POLICY_KEYS, MEDIATOR_KEYS = frozenset({"on_dispute", "prompt_user"}), frozenset({"mediator"})
TRUST_KEYS = frozenset({"judge_trust"})
LOW_KEYS = frozenset({"low_auto_resolve"})
ALIKE_MAX = 20  # how many rulings on similar conflicts are looked at, most similar first
VERDICTS = {
    Opinion.Kind.JUDGE: (Opinion.Verdict.ENFORCE, Opinion.Verdict.DISMISS, Opinion.Verdict.ESCALATE),
    Opinion.Kind.MEDIATOR: (Opinion.Verdict.PROPOSE, Opinion.Verdict.NONE),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reach:
    """Whether a judge or mediator can be asked, and if not, what a person would have to do about it."""

    is_possible: bool
    hint: str = ""
    waits: str = ""  # why nobody could begin at present
    is_assigned: bool = True  # whether anybody has that role in the project at all


@dataclass(frozen=True, slots=True)
class Said:
    """An agent's opinion as handed in, with the agent's name, model and vendor."""

    verdict: str
    reasons: str = ""
    text: str = ""
    trade_off: str = ""
    agent: str = ""
    model: str = ""
    vendor: str = ""


def subject_of(conflict: Conflict) -> DisputeFacts:
    """Return the facts of the conflict that the project's policy looks at."""
    sides = {conflict.reviewer_position.strip(), conflict.coder_position.strip()}
    return DisputeFacts(
        conflict.kind, conflict.severity, conflict.opened_as, conflict.reason,
        is_heard=not sides & {"", NOT_STATED},
    )  # fmt: skip


# --- Asking -----------------------------------------------------------------------------------------------


def ask(conflict: Conflict, kind: str, *, user: Any = None) -> Opinion:
    """Ask a judge or a mediator about an open disagreement; `user` is None if the project's policy asks.

    Raises Refused: "no_right", "nothing_to_judge", "not_open", "already_decided", "already_asked",
    "nobody_to_ask", "has_synthesis".
    """
    if user is not None:
        require(user, conflict.dispute.project, RULE, "rule")
    if conflict.kind != Conflict.Kind.DISAGREEMENT or conflict.dispute.task is None:
        raise Invalid(
            "nothing_to_judge", f"On {conflict.ref} no two sides disagree.", "Choose one of its options."
        )
    reach = hooks.reach_of(conflict)[kind]
    if not reach.is_possible:
        raise Refused("nobody_to_ask", f"There is no {kind} to ask about {conflict.ref}.", reach.hint)
    try:
        with transaction.atomic():
            locked_task(conflict.task.pk)
            conflict.refresh_from_db()
            if not conflict.is_open:
                raise rulings.refuse_second(conflict)
            if kind == Opinion.Kind.MEDIATOR and conflict.proposal_id:
                raise Refused(
                    "has_synthesis", f"{conflict.ref} has an option C already.", "Propose another yourself."
                )
            opinion = Opinion.objects.create(conflict=conflict, kind=kind, asked_by=user)
            by = Actor.person(user) if user else Actor("policy", "The project's policy")
            told = {"opinion": opinion.pk, "kind": kind}
            conflict.record_event("opinion_asked", actor=by, note=conflict.question, **told)
    except IntegrityError:
        raise Refused(
            "already_asked", f"A {kind} has been asked about {conflict.ref}.", "Wait for the answer."
        ) from None
    return opinion


# --- Giving -----------------------------------------------------------------------------------------------


@transaction.atomic
def give(opinion: Opinion, said: Said, *, actor: Actor) -> Opinion:
    """Take the answer of a judge or mediator, once, and do what follows from it.

    If the conflict was settled meanwhile, the opinion is late: it is kept and has no effect. Raises Refused:
    "wrong_verdict", "reasons_missing", "text_missing", "too_long", "already_given".
    """
    _check(opinion, said)
    conflict = Conflict.objects.select_related("dispute__task__project", "dispute__project").get(
        pk=opinion.conflict_id
    )
    locked_task(conflict.task.pk)
    conflict.refresh_from_db()
    is_late = not conflict.is_open
    given = Opinion.objects.asked().filter(pk=opinion.pk).update(
        state=Opinion.State.LATE if is_late else Opinion.State.GIVEN,
        verdict=said.verdict, reasons=plain(said.reasons).strip(), text=plain(said.text).strip(),
        trade_off=plain(said.trade_off).strip(), by_agent=said.agent[:120], by_model=said.model[:120],
        by_vendor=said.vendor[:60], given_at=estimated_time(),
    )  # fmt: skip
    if not given:
        raise Refused("already_given", f"An opinion on {conflict.ref} was given already.", "End your work.")
    opinion.refresh_from_db()
    about = {"opinion": opinion.pk, "kind": opinion.kind, "verdict": said.verdict}
    note = f"{opinion.get_verdict_display()} on {conflict.ref}"
    if said.verdict == Opinion.Verdict.ESCALATE:
        about["to"] = conflict.dispute.project.config.judge_escalate_to
        note += f"; it waits for a {about['to']}"
    conflict.record_event("opinion_late" if is_late else "opinion_given", actor=actor, note=note, **about)
    if not is_late:
        _follow(opinion, conflict, actor)
        opinion.refresh_from_db()
    return opinion


def _check(opinion: Opinion, said: Said) -> None:
    offered = VERDICTS[Opinion.Kind(opinion.kind)]
    if said.verdict not in offered:
        words = ", ".join(verdict.value.upper() for verdict in offered)
        raise Invalid(
            "wrong_verdict", f"{said.verdict or 'Nothing'} is no verdict of a {opinion.kind}.",
            f"Say one of {words}.",
        )  # fmt: skip
    if opinion.kind == Opinion.Kind.JUDGE and not plain(said.reasons).strip():
        raise Invalid("reasons_missing", "A verdict without reasons helps nobody.", "Add --reasons.")
    if said.verdict == Opinion.Verdict.PROPOSE and not plain(said.text).strip():
        raise Invalid("text_missing", "The proposal has no words.", "Add --proposal.")
    if max(len(said.reasons), len(said.text), len(said.trade_off)) > REASONS_MAX:
        raise Invalid("too_long", f"It is longer than {REASONS_MAX} characters.", "Say it shorter.")


def _follow(opinion: Opinion, conflict: Conflict, actor: Actor) -> None:
    """Set a mediator's option C, or make the policy's ruling if the judge may rule (ARB-7)."""
    if opinion.verdict == Opinion.Verdict.PROPOSE:
        if conflict.proposal_id is None:
            rulings.propose_synthesis(
                conflict, opinion.text, by=Source.MEDIATOR, actor=actor, trade_off=opinion.trade_off
            )
        return
    option = arbitration.option_of(opinion.verdict) if opinion.kind == Opinion.Kind.JUDGE else None
    if option is None or opinion.asked_by_id is not None:
        return  # a person who asks gets an opinion, not a ruling
    policy = policy_of(conflict.dispute.project)
    if not arbitration.may_be_ruled(subject_of(conflict)):
        return
    why = f"The judge {opinion.by_agent}: {' '.join(opinion.reasons.split())}"[:WHY_MAX]
    if policy.lets_the_judge_rule:
        _rule(conflict, option, policy.set_by, why=why, by=opinion.by_agent)
    elif earned := _earned(conflict):
        person = _set_by(conflict.dispute.project, TRUST_KEYS)[0]
        why = f"{why} (People ruled as it had said on {earned} of those of severity {conflict.severity}.)"
        _rule(conflict, option, person, why=why, by=opinion.by_agent)


def record_of(project: Project, severity: str) -> arbitration.Agreement:
    """Return how often people ruled as a judge had said, on this severity's newest conflicts (ARB-10)."""
    sides = [Opinion.Verdict.ENFORCE, Opinion.Verdict.DISMISS]
    said_before = Opinion.objects.judge_before_ruling().filter(verdict__in=sides)
    of_people = Decision.objects.standing().filter(
        authority=Decision.Authority.PERSON, conflict__kind=Conflict.Kind.DISAGREEMENT,
        conflict__severity=severity, conflict__dispute__project=project,
    )  # fmt: skip
    told = of_people.annotate(said=Subquery(said_before.values("verdict")[:1])).exclude(said=None)
    pairs = list(told.order_by("-pk").values_list("option", "said")[: arbitration.NEWEST])
    agreed = sum(arbitration.option_of(said) == option for option, said in pairs)
    return arbitration.Agreement(agreed, len(pairs))


def is_for_people(conflict: Conflict) -> bool:
    """Whether the conflict is critical or about security, so that no record lets a judge rule alone on it."""
    return conflict.severity == Severity.CRITICAL or is_of_security(conflict)


def _earned(conflict: Conflict) -> arbitration.Agreement | None:
    """Return the judge's record if it is good enough to rule alone; None if not, or if people have to rule.

    That is the case for what is critical or about security, and for a sample of the rest.
    """
    project = conflict.dispute.project
    record_ = record_of(project, conflict.severity)
    if not record_.reaches(project.config.judge_trust) or is_for_people(conflict):
        return None
    if arbitration.is_sampled(conflict.pk, settings.SECRET_KEY):
        every = arbitration.AUDIT_EVERY
        note = f"{conflict.ref} waits for people although the judge might rule: one in {every} does."
        record(project, "judge_sampled", actor=SYSTEM, task=conflict.task, note=note)
        return None
    return record_


def fail(opinion: Opinion, why: str) -> bool:
    """Record that nobody will give the opinion. Return False if it was already given or given up."""
    with transaction.atomic():
        asked = Opinion.objects.asked().filter(pk=opinion.pk)
        failed = asked.update(state=Opinion.State.FAILED, reasons=why[:500])
        if failed:
            about = {"opinion": opinion.pk, "kind": opinion.kind}
            opinion.conflict.record_event("opinion_failed", note=why, **about)
    return bool(failed)


# --- The project's policy ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Policy:
    """What the project lets the program do with disputes, since when, and who said so."""

    on_dispute: str
    prompt_user: bool
    mediator: bool
    set_by: Any = None  # a person; None if nobody is known
    since: datetime | None = None

    @property
    def lets_the_judge_rule(self) -> bool:
        return self.on_dispute == "judge" and not self.prompt_user

    @property
    def discards(self) -> bool:
        return self.on_dispute == "discard" and not self.prompt_user

    @property
    def is_unsigned(self) -> bool:
        """Whether the policy should rule by itself but cannot, because no person is known in whose name."""
        return (self.lets_the_judge_rule or self.discards) and self.set_by is None


def policy_of(project: Project) -> Policy:
    """Return the present policy. It was set by whoever last changed on_dispute or prompt_user."""
    config = project.config
    policy = Policy(config.on_dispute, config.prompt_user, config.mediator)
    if not (policy.lets_the_judge_rule or policy.discards):
        return policy
    person, since = _set_by(project, POLICY_KEYS)
    return replace(policy, set_by=person, since=since)


def _set_by(project: Project, keys: frozenset[str]) -> tuple[Any, datetime | None]:
    """Return the person who last set one of these, or None if they may not set it any more, and when."""
    user, since = _last_change(project, keys)
    person = get_user_model().objects.filter(pk=user).first() if user else None
    return person if person and may(person, project, MAINTAIN) else None, since


def _last_change(project: Project, keys: frozenset[str]) -> tuple[int | None, datetime | None]:
    """Return who last changed one of these settings, and when; both None if no event says so."""
    configured = Event.objects.filter(project=project, kind="project_configured").order_by("-pk")
    for user, at, data in configured.values_list("user", "at", "data").iterator(chunk_size=50):
        if keys & set(data.get("settings", {})):
            return user, at
    return None, None


def sign(project: Project, keys: Iterable[str], *, actor: Actor) -> list[str]:
    """Put the settings that no known person has set in the actor's name, and return a line for each.

    Only those among `keys` that let the program rule by itself are taken on.
    """
    config = project.config
    rules = {
        POLICY_KEYS: policy_of(project).is_unsigned,
        TRUST_KEYS: config.judge_trust > 0 and _set_by(project, TRUST_KEYS)[0] is None,
        LOW_KEYS: config.low_auto_resolve and _set_by(project, LOW_KEYS)[0] is None,
    }
    taken = sorted({key for group, is_unsigned in rules.items() if is_unsigned for key in group} & {*keys})
    if not taken or actor.user_id is None:
        return []
    values = config.to_json()
    told = {key: [in_words(key, values[key])] * 2 for key in taken}
    note = f"Taken on as set: {', '.join(taken)}."
    record(project, "project_configured", actor=actor, note=note, data={"settings": told})
    return [f"{key}: {told[key][0]}, in the name of {actor.label} from now on" for key in taken]


def apply_policy(project: Project) -> int:
    """Do what the project's settings say with each new disagreement. Return how many were dealt with.

    The loop runs this. It works from rows alone, so it may run late or twice. Conflicts that were ever ruled
    on, even if the ruling was taken back, and those opened before the policy was set are left to people.
    """
    done = _settle_low(project)
    policy = policy_of(project)
    asks_judge = policy.lets_the_judge_rule or project.config.judge_trust > 0
    if not (policy.mediator or asks_judge or policy.discards):
        return done
    fresh = _unruled(project)
    if policy.mediator:
        since = _last_change(project, MEDIATOR_KEYS)[1]
        without = (
            _opened_since(fresh, since)
            .filter(proposal__isnull=True)
            .exclude(Exists(_asked(Opinion.Kind.MEDIATOR)))
        )
        done += _ask_each(without, Opinion.Kind.MEDIATOR)
    if asks_judge and not policy.lets_the_judge_rule:
        trusted_since = _last_change(project, TRUST_KEYS)[1]
        done += _ask_each(
            [
                conflict
                for conflict in _opened_since(fresh, trusted_since).exclude(
                    Exists(_asked(Opinion.Kind.JUDGE))
                )
                if arbitration.first_step("judge", prompt_user=False, subject=subject_of(conflict))
                is FirstStep.ASK
            ],
            Opinion.Kind.JUDGE,
        )
    if policy.lets_the_judge_rule:
        fresh = fresh.exclude(Exists(_asked(Opinion.Kind.JUDGE)))
    elif policy.set_by is None:
        return done  # no person is known in whose name anything could be discarded
    steps: dict[FirstStep, list[Conflict]] = {step: [] for step in FirstStep}
    for conflict in _opened_since(fresh, policy.since):
        step = arbitration.first_step(
            policy.on_dispute, prompt_user=policy.prompt_user, subject=subject_of(conflict)
        )
        steps[step].append(conflict)
    why = f"{rulings.DISCARDED}: the project's policy."
    for conflict in steps[FirstStep.DISCARD]:
        done += _rule(conflict, Option.UPHOLD_CODER, policy.set_by, why=why, by="System")
    return done + _ask_each(steps[FirstStep.ASK], Opinion.Kind.JUDGE)


def _opened_since(conflicts: QuerySet[Conflict], since: datetime | None) -> QuerySet[Conflict]:
    return conflicts.filter(opened_at__gte=since) if since else conflicts


def _asked(kind: str) -> QuerySet[Opinion]:
    return Opinion.objects.filter(conflict=OuterRef("pk"), kind=kind)


def _ask_each(conflicts: Iterable[Conflict], kind: str) -> int:
    """Ask about each conflict if possible, and return how many were asked about; the others wait."""
    done = 0
    for conflict in conflicts:
        reach = hooks.reach_of(conflict)[kind]
        if not reach.is_assigned:
            break  # there is nobody for the others either
        with contextlib.suppress(Refused):
            ask(conflict, kind)
            done += 1
    return done


def _unruled(project: Project) -> QuerySet[Conflict]:
    """Return the open disagreements on which nothing was ever ruled, not even a ruling taken back since."""
    return (
        Conflict.objects.open()
        .disagreements()
        .filter(dispute__project=project, dispute__task__isnull=False)
        .exclude(Exists(Decision.objects.filter(conflict=OuterRef("pk"))))
        .select_related("dispute__task__project", "dispute__project", "submission", "finding")
        .order_by("pk")
    )  # fmt: skip


def _settle_low(project: Project) -> int:
    """Rule for the coder on low disagreements if people did so on similar earlier ones. Return how many.

    Like every policy, it rules in the name of the person who set `low_auto_resolve`, and only on what came up
    since.
    """
    if not project.config.low_auto_resolve:
        return 0
    person, since = _set_by(project, LOW_KEYS)
    low = list(_opened_since(_unruled(project).filter(severity=Severity.LOW), since)) if person else []
    alike = precedents.for_conflicts(low, ALIKE_MAX)
    done = 0
    for conflict in low:
        by_people = [each.decision for each in alike[conflict.pk] if each.is_close and _is_of_people(each)]
        by_people.sort(key=lambda decision: decision.pk)
        step = arbitration.first_step("discard", prompt_user=False, subject=subject_of(conflict))
        options = [decision.option for decision in by_people]
        if step is FirstStep.DISCARD and settles_itself(conflict.severity, options):
            names = ", ".join(decision.conflict.ref for decision in by_people[-PRECEDENTS:])
            why = f"Low, and people ruled for the coder on {names}, which read alike."
            cites = by_people[-1].conflict.ref
            done += _rule(conflict, Option.UPHOLD_CODER, person, why=why, by="System", cites=cites)
    return done


def _is_of_people(precedent: precedents.Suggestion) -> bool:
    is_low = precedent.conflict.severity == Severity.LOW
    return is_low and precedent.decision.authority == Decision.Authority.PERSON


def _rule(conflict: Conflict, option: str, set_by: Any, *, why: str, by: str, cites: str = "") -> int:
    """Rule in the name of whoever set the policy. Return 1, or 0 if the conflict has to wait for people."""
    if set_by is None:
        note = f"{conflict.ref} waits for people: nobody is known who set the policy."
        record(conflict.dispute.project, "policy_unsigned", actor=SYSTEM, task=conflict.task, note=note)
        return 0
    try:
        with transaction.atomic():
            rulings.decide_by_policy(conflict, option, set_by=set_by, rationale=why, by=by, cites=cites)
    except (Refused, IllegalMove, StaleTask):
        log.exception("The policy could not rule on %s; it waits for people.", conflict.ref)
        return 0
    return 1
