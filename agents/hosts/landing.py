"""Bring an approved commit onto the target branch of the remote: exactly that commit, never forced.

A Landing is a claim with a fence, and each step can be repeated: whoever takes it over after a crash asks the
remote first. Doubt is settled by a fetch and `merge-base --is-ancestor`, nothing else.
"""

import logging
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Exists, Expression, F, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from agents.hosts import paths, submissions
from agents.hosts.git.commands import GitError
from agents.hosts.git.mirror import Mirror
from agents.hosts.git.remotes import Interrupted, Unreachable
from agents.loop import candidates
from agents.models import Host, Run
from agents.verification import commands, heads, nothing, verdicts
from agents.verification.unreachable import pause_after
from disputes import opening
from disputes.models import Conflict, Decision
from disputes.models.conflict import ConflictQuerySet
from tasks.database.clock import database_time, estimated_time
from tasks.database.locking import repeated
from tasks.database.prepared import Prepared, PreparedUpdate
from tasks.events import SYSTEM
from tasks.log_lines import about
from tasks.models import Landing, Project, StaleTask, Submission, Task, Verification
from tasks.models.event import record
from tasks.models.task import locked_task
from tasks.states import MOVES, IllegalMove, Status

log = logging.getLogger(__name__)


def due(host: str = "") -> list[Landing]:
    """Return the landings that nobody holds and whose turn it is: the first in each branch's queue.

    Each landing moves the target branch, so rebasing and testing one before its turn would be wasted work. If
    only one host has the commits, that host lands them: `host` leaves out the landings of other hosts. A
    landing that `host` itself holds is due to it, because each step has ended or broken off before the next
    begins. Claims and rests go by the database's clock, since the clocks of hosts differ.
    """
    queue = _live.found(host)
    there = {"", host}
    if any(landing.only_on not in there for landing in queue):
        there |= {*Host.objects.alive().values_list("name", flat=True)}
    first: dict[tuple[int, str], Landing] = {}
    for landing in queue:
        if landing.only_on in there and not _gives_way(landing):
            first.setdefault((landing.project_id, landing.target), landing)
    return [
        landing
        for landing in queue
        if (landing.status == Landing.Status.PUSHING or landing in first.values())
        and not landing.is_claimed
        and not landing.is_resting
        and (not host or landing.only_on in {"", host})
    ]


def is_any_due(until: datetime) -> bool:
    """Whether anything is to land by then that does not wait for people.

    What was rebased is built and tested only while the branch is fit, and what is behind it waits as well. So
    does all of a paused project, and what the remote has refused for so long that it is rarely tried.
    """
    rebased = Landing.objects.filter(project=OuterRef("pk"), status=Landing.Status.CHECKING)
    waiting = Project.objects.exclude(base_state__in=Project.FIT).filter(Exists(rebased))
    active = Project.objects.filter(status=Project.Status.ACTIVE).exclude(pk__in=waiting.values("pk"))
    live = Landing.objects.filter(status__in=Landing.LIVE, project__in=active)
    return (
        candidates.to_land(until).filter(project__in=active).exists()
        or live.filter(Q(not_before__isnull=True) | Q(not_before__lte=until)).exists()
    )


def _in_turn(host: Expression) -> QuerySet[Landing]:
    tried = Run.objects.filter(task=OuterRef("task"), sha=OuterRef("sha"), role=Run.Role.VERIFIER)
    failed = tried.filter(status=Run.Status.ENDED).exclude(outcome=Run.Outcome.HANDED_IN)
    known = Verification.objects.filter(
        project=OuterRef("project"), sha=OuterRef("sha"), at__gte=OuterRef("checked_at")
    )
    return (
        Landing.objects.filter(project__status=Project.Status.ACTIVE, status__in=Landing.LIVE)
        .annotate(is_in_trouble=Exists(failed) & ~Exists(known), only_on=F("submission__only_on"))
        .annotate(is_claimed=Q(claimed_until__gte=Now()) & (Q(claimed_by="") | ~Q(claimed_by=host)))
        .annotate(is_resting=Q(not_before__gt=Now()))
        .only("project", "target", "status", "problem", "fence")
        .order_by("at", "pk")
    )


def _with_its_task(pk: Expression) -> QuerySet[Landing]:
    rows = Landing.objects.select_related("project", "task__project", "task__section", "submission")
    return rows.filter(pk=pk).order_by()


_live, _whole = Prepared(_in_turn), Prepared(_with_its_task)


def _gives_way(landing: Any) -> bool:
    """Whether the next landing may go first: this one rests after trouble, or could not be verified."""
    if landing.status == Landing.Status.CHECKING and landing.is_in_trouble:
        return True
    return bool(landing.problem and landing.is_resting)


def claim(landing: Landing, host: str) -> bool:
    """Claim the landing for a while by compare-and-set; return False if somebody else was faster."""
    claiming = _claiming(settings.DURATIONS["landing_claim"])
    won = claiming.write(landing.pk, landing.fence, claimed_by=host)
    landing.fence += 1
    return bool(won)


@lru_cache(maxsize=8)
def _claiming(seconds: float) -> PreparedUpdate:
    return PreparedUpdate(
        lambda pk, fence: Landing.objects.filter(pk=pk, fence=fence, status__in=Landing.LIVE), "claimed_by",
        fence=F("fence") + 1, claimed_until=Now() + timedelta(seconds=seconds),
    )  # fmt: skip


@lru_cache(maxsize=32)
def _held_row(*changed: str) -> PreparedUpdate:
    return PreparedUpdate(lambda pk, fence: Landing.objects.filter(pk=pk, fence=fence), *changed)


def _write(landing: Landing, **values: Any) -> bool:
    """Update the landing's row if we still hold it; return whether we do."""
    changed = _held_row(*values).write(landing.pk, landing.fence, **values)
    for name, value in values.items():
        setattr(landing, name, value)
    return bool(changed)


def _release(landing: Landing, seconds: float = 0, **values: Any) -> None:
    later = database_time() + timedelta(seconds=seconds) if seconds else None
    _write(landing, claimed_until=None, not_before=later, **values)


def advance(landing: Landing, host: str) -> bool:
    """Take one step of one landing, and return whether it has landed.

    Problems become columns, pauses or cards; no error of git is raised.
    """
    known, landing = landing, _whole.first(landing.pk)
    if landing is None or landing.fence != known.fence or not claim(landing, host):
        return False
    try:
        with about(task=landing.task.ref, landing=landing.pk), paths.mirror(landing.project).mended():
            _advance(landing)
    except Interrupted:
        _release(landing)
    except Unreachable as error:
        attempts = landing.attempts + 1
        problem = f"The remote {error.blame}: {error}"[:500]
        _release(landing, pause_after(attempts), attempts=attempts, problem=problem)
    except GitError as error:
        _stick(landing, str(error))
    return landing.status == Landing.Status.LANDED


def _advance(landing: Landing) -> None:
    mirror = paths.mirror(landing.project)
    head = mirror.target(settings.DURATIONS["fresh"])
    heads.note(landing.project, mirror, head)
    if mirror.contains(head, landing.sha):
        _landed(landing)
        return
    task = landing.task
    if task.accepted_id != landing.submission_id:
        _release(landing, status=Landing.Status.SUPERSEDED)
        return
    submissions.bring_here(landing.submission, mirror)
    stands = mirror.contains(landing.sha, head) and not _carries(landing, mirror, head)
    if not stands and (not _rebase(landing, mirror, head) or nothing.is_to_be_run(task)):
        return
    landing.seen_head = head
    if (landing.rebased_from or _is_outdated(landing, mirror)) and not _is_green(landing, mirror):
        return
    if _is_to_be_reviewed(landing):
        _review_again(landing, mirror)
        return
    _push(landing, mirror)


def _base_of(submission: Submission) -> str:
    """Return the commit of the target branch that the approved commits were based on; empty if unknown."""
    return str(submission.diff_stat.get("fork") or "")


def _carries(landing: Landing, mirror: Mirror, head: str) -> bool:
    """Whether a push would bring back commits removed from the branch, because the landing contains them."""
    base = landing.seen_head if landing.rebased_from else _base_of(landing.submission)
    return bool(base) and not mirror.contains(head, base)


def _rebase(landing: Landing, mirror: Mirror, head: str) -> bool:
    """Rebase the approved commits onto the target branch, which has moved on; return whether that worked.

    The approval is for a patch, and carries over if the patch is the same after the rebase; otherwise the
    landing clashes. If the rebased commit has to be built and tested first, the claim is released.
    """
    sha, before = landing.submission.sha, landing.sha
    try:
        with paths.mirror(landing.project).mended():
            rebased = _rebased(landing, mirror, head)
    except Unreachable:
        raise
    except GitError as error:
        _clash(landing, f"The approved commits do not apply to {head[:12]} any more. {error.text}")
        return False
    fork = _dropped_base(landing.submission, mirror, head) or mirror.merge_base(head, sha)
    if rebased == head or not _is_as_approved(landing, mirror, (fork, sha), (head, rebased)):
        _clash(landing, f"After a rebase onto {head[:12]} the change is another one than was approved.")
        return False
    write = _release if nothing.is_to_be_run(landing.task) else _write
    write(landing, sha=rebased, rebased_from=sha, status=Landing.Status.CHECKING, problem="", seen_head=head)
    if rebased != before:  # else another host did it first
        record(landing.project, "rebased", task=landing.task, data={"from": sha, "to": rebased, "onto": head})
    return True


def _is_as_approved(
    landing: Landing, mirror: Mirror, before: tuple[str, str], after: tuple[str, str]
) -> bool:
    """Whether the change between the commits `after` the rebase is the approved one, from `before` it.

    No test tells whether the words of an amendment fit where they stand, so what stands around them counts.
    """
    if landing.task.origin == Task.Origin.AMENDMENT:
        return len({mirror.patch_id(*each, where_it_stands=True) for each in (before, after)}) == 1
    was_read = before[0] == _base_of(landing.submission)
    approved = (landing.submission.patch_id if was_read else "") or mirror.patch_id(*before)
    return mirror.patch_id(*after) == approved


def _dropped_base(submission: Submission, mirror: Mirror, head: str) -> str:
    """Return the base of the approved commits if a rewrite removed it from the branch, otherwise ""."""
    base = _base_of(submission)
    is_gone = base and not mirror.contains(head, base) and mirror.has(base)
    return base if is_gone else ""


def _rebased(landing: Landing, mirror: Mirror, onto: str) -> str:
    """Rebase the approved commits in the mirror and return the new head, which is the same on every host."""
    sha, ref = landing.submission.sha, f"refs/steroids/landings/{landing.pk}"
    return mirror.rebase(sha, onto, ref, since=_dropped_base(landing.submission, mirror, onto))


def bring_rebased(run: Run, mirror: Mirror) -> None:
    """Rebase the commit that a run is to build and test if another host made it. Raises GitError."""
    checked = run.task.landings.filter(sha=run.sha, status=Landing.Status.CHECKING)
    for landing in checked.select_related("submission"):
        submissions.bring_here(landing.submission, mirror)
        if landing.rebased_from:
            _rebased(landing, mirror, landing.seen_head)


def _is_outdated(landing: Landing, mirror: Mirror) -> bool:
    """Whether the commit was built and tested by commands that were changed since."""
    tried = {*landing.project.verifications.filter(sha=landing.sha).values_list("commands_hash", flat=True)}
    known = commands.commands_of(landing.project, mirror, landing.sha, landing.task)
    return bool(tried - {commands.commands_hash(known)})


def _is_green(landing: Landing, mirror: Mirror) -> bool:
    """Whether the commit may go on. Red sends the task back; without a result, ask for one."""
    known = commands.commands_of(landing.project, mirror, landing.sha, landing.task)
    if not nothing.is_to_be_run(landing.task):
        nothing.note(landing.project, landing.sha)
        return True
    done = Verification.objects.filter(
        project=landing.project, sha=landing.sha, commands_hash=commands.commands_hash(known), fault=""
    ).first()
    if done is None:
        _ask_for_verification(landing)
        return False
    if not done.green and not verdicts.is_only_told(landing.project, done.step):
        said = done.problem or f"{done.step} is red"
        how = "Rebased onto the target branch" if landing.rebased_from else "By the commands as they are now"
        _clash(landing, f"{how}, {said}.\n{done.tail[-1500:]}")
        return False
    return True


def _is_to_be_reviewed(landing: Landing) -> bool:
    """Whether the rebased commit is reviewed first: once per submission, however often the branch moves."""
    is_rebased = landing.rebased_from and not landing.submission.rebased_from
    return bool(is_rebased and landing.project.config.review_after_rebase)


@repeated
def _review_again(landing: Landing, mirror: Mirror) -> None:
    """Let the rebased commit, which is green, stand for the submission, and send the task back to review."""
    content = submissions.content_of_rebased(landing, mirror)
    with transaction.atomic():
        task = _task_of(landing)
        if not _write(landing, status=Landing.Status.SUPERSEDED, problem="", claimed_until=None):
            return
        if task.accepted_id == landing.submission_id and task.status in MOVES["review_again"].sources:
            submissions.write(landing.submission, content)
            onto = landing.seen_head[:12]
            task.review_again(note=f"Rebased onto {onto} as {landing.sha[:12]}; it is reviewed once more.")


def _ask_for_verification(landing: Landing) -> None:
    """Release the landing until its verifier has run; a result of outdated commands does not count."""
    stale = Verification.objects.filter(
        project=landing.project, sha=landing.sha, at__gte=landing.checked_at
    ).exists()
    changes = {"checked_at": estimated_time()} if stale else {}
    _release(landing, settings.DURATIONS["loop"], status=Landing.Status.CHECKING, **changes)


def _push(landing: Landing, mirror: Mirror) -> None:
    try:
        with transaction.atomic():
            is_wanted = _task_to_push.write(landing.task_id, landing.submission_id, not_before=None)
            if is_wanted and not _write(landing, status=Landing.Status.PUSHING, seen_head=landing.seen_head):
                transaction.set_rollback(True)
                return
            if is_wanted and _unused.rows(landing.task_id):
                Decision.objects.of(landing.task).standing().unused().update(used_at=Now())
    except IntegrityError:  # another landing of this branch is pushing
        _release(landing, settings.DURATIONS["loop"])
        return
    if not is_wanted:
        _release(landing, status=Landing.Status.SUPERSEDED)
        return
    try:
        mirror.push(landing.sha)
    except Unreachable as error:
        _doubt(landing, mirror, error)
        return
    heads.note_own(landing.project, mirror, landing.sha)
    _landed(landing)


def _to_push(task: Expression, submission: Expression) -> QuerySet[Task]:
    return Task.objects.filter(pk=task, accepted=submission)


def _rulings_to_use(task: Expression) -> QuerySet[Decision]:
    return Decision.objects.of(task).standing().unused().order_by().values_list("pk")[:1]


_task_to_push, _unused = PreparedUpdate(_to_push, "not_before"), Prepared(_rulings_to_use)


def _doubt(landing: Landing, mirror: Mirror, error: Unreachable) -> None:
    """Ask the remote's branch what became of a push that failed or gave no answer, and act on it.

    A push that is refused again and again asks people, once, and goes on being tried: the remote may be
    mended without anybody answering here.
    """
    head = mirror.fetch_target()
    if mirror.is_ancestor(landing.sha, head):
        _landed(landing)
        return
    attempts = landing.attempts + 1
    moved = head != landing.seen_head
    pause, problem = (0.0, "") if moved else (pause_after(attempts), str(error))
    _release(landing, pause, status=Landing.Status.QUEUED, attempts=attempts, problem=problem[:500])
    if attempts >= settings.LANDING_ATTEMPTS_MAX and not moved:
        _ask(landing, problem)


def _task_of(landing: Landing) -> Task:
    """Return the landing's task, locked; the order of locks wants it locked before its landing."""
    return locked_task(landing.task_id)


@repeated
def _landed(landing: Landing) -> None:
    """Record that the landing's commit is on the target branch, which has been proven."""
    with transaction.atomic():
        task = _task_of(landing)
        done = {"status": Landing.Status.LANDED, "landed_at": _moment(landing)}
        if not _write(landing, problem="", claimed_until=None, **done):
            return
        if task.accepted_id == landing.submission_id and task.status in {Status.COMPLETED, Status.DISPUTED}:
            if task.status == Status.DISPUTED:
                _withdraw_card(landing, task)
            task.landed(landing.sha)
        else:
            record(
                landing.project, "landed_late", task=task, data={"sha": landing.sha},
                note="It was pushed before the task moved on; the next round builds on it.",
            )  # fmt: skip


def _moment(landing: Landing) -> datetime:
    """Return the present time, or just after the branch's last landing if the clock has stepped back.

    The order of landings on a branch counts.
    """
    now, last = database_time(), _last_landed.first(landing.project_id, landing.target)
    return max(now, last + timedelta(microseconds=1)) if last else now


def _landed_on(project: Expression, target: Expression) -> QuerySet[Any, Any]:
    of_branch = Landing.objects.filter(project=project, target=target, landed_at__isnull=False)
    return of_branch.order_by("-landed_at").values_list("landed_at", flat=True)[:1]


_last_landed = Prepared(_landed_on)


@repeated
def _clash(landing: Landing, note: str) -> None:
    with transaction.atomic():
        task = _task_of(landing)
        if not _write(landing, status=Landing.Status.CONFLICT, problem=note[:500], claimed_until=None):
            return
        failed = task.landings.filter(status=Landing.Status.CONFLICT)
        if task.counts_since:
            failed = failed.filter(at__gt=task.counts_since)
        clashes = failed.count()
        try:
            if clashes > 2 and task.status != Status.DISPUTED and not _is_overtaken(landing):
                question = f"Landing failed {clashes} times: {task.title}"
                opening.stop_for_help(task, Conflict.Origin.LANDING, question, detail=note)
            else:
                task.cannot_land(note=note)
        except (StaleTask, IllegalMove):
            log.info("Landing %s clashed, but %s has moved on.", landing.pk, task.ref)


def _is_overtaken(landing: Landing) -> bool:
    """Whether another task landed since the coder began, so that the clash is nobody's fault."""
    coders = Run.objects.filter(submission=landing.submission)
    began = coders.values_list("queued_at", flat=True).first() or landing.submission.at
    landed = landing.project.landings.filter(status=Landing.Status.LANDED, target=landing.target)
    return landed.filter(landed_at__gt=began).exists()


@repeated
def _stick(landing: Landing, problem: str) -> None:
    """Give up the landing and ask a person, because trying again would change nothing."""
    with transaction.atomic():
        task = _task_of(landing)
        if not _write(landing, status=Landing.Status.STUCK, problem=problem[:500], claimed_until=None):
            return
        if task.status == Status.DISPUTED:
            task.unaccept()
        _ask_about(task, f"Landing is stuck: {task.title}", problem)


@repeated
def _ask(landing: Landing, problem: str) -> None:
    """Ask a person about a push that the remote refuses, unless a card does, while it goes on being tried.

    A card about another landing will do if the remote says the same of it. Once that is answered, the next
    refusal asks.
    """
    with transaction.atomic():
        task = _task_of(landing)
        if task.accepted_id == landing.submission_id and not (
            _cards(task).exists() or _is_said(landing, problem)
        ):
            _ask_about(task, f"The remote refuses the push: {task.title}", problem, is_tried_on=True)


def _is_said(landing: Landing, problem: str) -> bool:
    """Whether a card asks about another landing of the branch that is refused in the same words."""
    asked = Conflict.objects.of(OuterRef("task")).open().filter(origin=Conflict.Origin.LANDING)
    others = landing.project.landings.filter(Exists(asked), target=landing.target, status__in=Landing.LIVE)
    told = problem[:500].replace(landing.sha, "")
    return any(other.problem.replace(other.sha, "") == told for other in others)


def _cards(task: Task) -> ConflictQuerySet:
    return Conflict.objects.of(task).open().filter(origin=Conflict.Origin.LANDING)


def _withdraw_card(landing: Landing, task: Task) -> None:
    """Drop the card that asks about the landing, if there is one: the remote has taken it meanwhile."""
    cards, why = _cards(task).select_related("dispute__project", "dispute__task"), "the remote has taken it"
    for card in cards:
        card.drop(why)
        opening.refresh(card.dispute, moot=why)
    if cards and not opening.open_conflicts(task):
        task.rule_accept(landing.submission, actor=SYSTEM, note=f"{cards[0].ref}: {why}.")


def _ask_about(task: Task, question: str, detail: str, *, is_tried_on: bool = False) -> None:
    ask = opening.ask_for_help if task.status == Status.DISPUTED else opening.stop_for_help
    accepted = task.accepted
    try:
        ask(task, Conflict.Origin.LANDING, question, detail=detail)
    except (StaleTask, IllegalMove):
        log.info("The landing of %s is stuck, but it has moved on.", task.ref)
        return
    if is_tried_on:
        Task.objects.filter(pk=task.pk).update(accepted=accepted)
