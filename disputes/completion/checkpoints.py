"""A project's checkpoints, and whether it comes to an end (CONV-6). No task is moved here."""

from collections.abc import Iterable

from django.db import transaction
from django.db.models import Exists, Expression, OuterRef, Q, QuerySet

from disputes import alerts
from disputes.models import Conflict
from disputes.protocol.completion import convergence
from disputes.protocol.completion.termination import max_rounds
from disputes.protocol.reviews.severity import total_weight
from tasks.database.clock import estimated_time
from tasks.database.prepared import Prepared, PreparedInsert, PreparedUpdate
from tasks.models import Checkpoint, Event, Project, Task
from tasks.models.event import record
from tasks.models.project import locked_project
from tasks.states import MEANINGS, Status
from tasks.text.counting import counted

UNDER_WAY = (Status.IN_PROGRESS, Status.REVIEW)
SETTLED = tuple(status for status, meaning in MEANINGS.items() if meaning.finished)
SHOWN = 8  # how many tasks a card names
FEW = 3  # a project that began with at most this many tasks gets no warnings of stalls


def last_checkpoint(project: Project) -> Checkpoint | None:
    """Return the newest checkpoint; its number says how many checkpoints the project has had."""
    return _newest.first(project.pk)


def take_checkpoint(pk: int) -> Checkpoint | None:
    """Close the checkpoint that is due, if there is one, and return it. Idempotent; the loop calls it freely.

    The first, number 0, records where the project began. A later one is due once every task that was under
    way at the last one has finished a round or left; then its figures are written, and a warning opens a
    card.
    """
    if not _is_due(_newest.first(pk), _under_way(pk)):
        return None
    with transaction.atomic():
        project = locked_project(pk)
        last, under_way = _newest.first(pk), _under_way(pk)
        if project is None or not _is_due(last, under_way):
            return None
        if last is None:
            return _begin(project, under_way)
        if not last.under_way:
            _going_on.write(last.pk, under_way=under_way)
            return None
        return _close(project, last, under_way)


def _is_due(last: Checkpoint | None, now: dict[str, int]) -> bool:
    if last is None or not last.under_way:
        return bool(now)
    return not any(now.get(task) == round_ for task, round_ in last.under_way.items())


def _standing(project: Expression) -> QuerySet[Checkpoint]:
    return Checkpoint.objects.standing().filter(project=project).order_by("-number")[:1]


def _beating(project: Expression) -> QuerySet[Task]:
    """Return the tasks whose rounds count for checkpoints: those in progress or in review.

    In a project of documents that is its session alone, even while it waits for people: a round is over when
    the next one begins.
    """
    of_documents = Q(project__kind=Project.Kind.DOCUMENTS)
    beats = of_documents & Q(origin=Task.Origin.ROUNDS) | ~of_documents & Q(status__in=UNDER_WAY)
    tasks = Task.objects.filter(project=project, status__in=(*UNDER_WAY, Status.DISPUTED, Status.FAILED))
    return tasks.filter(beats).order_by().values_list("pk", "round")


def _first(project: Expression) -> QuerySet[Checkpoint]:
    return Checkpoint.objects.standing().filter(project=project, number=0).order_by().values_list("opened")


_newest, _beats, _opened_first = Prepared(_standing), Prepared(_beating), Prepared(_first)
_going_on = PreparedUpdate(lambda pk: Checkpoint.objects.filter(pk=pk), "under_way")
_new_checkpoints = PreparedInsert(Checkpoint)


def _under_way(pk: int) -> dict[str, int]:
    """Return the tasks that count for checkpoints in the project with that key, each with its round."""
    return {str(task): round_ for task, round_ in _beats.rows(pk)}


def _begin(project: Project, under_way: dict[str, int]) -> Checkpoint:
    """Create checkpoint 0, which records what there was to do when the first task was begun."""
    now = estimated_time()
    severities = _severities(_counted(project).exclude(status__in=SETTLED))
    weight = total_weight(severities, project.config.severity_weights)
    return Checkpoint.objects.create(
        project=project, number=0, opened=len(severities), opened_weight=weight, net=-len(severities),
        weighted_net=-weight, under_way=under_way, at=now,
    )  # fmt: skip


def _counted(project: Project | Expression) -> QuerySet[Task]:
    """Return the tasks that count as work to do: a session does not count beside its gaps."""
    return Task.objects.filter(project=project).exclude(origin=Task.Origin.ROUNDS)


def _severities(tasks: Iterable[Task]) -> list[str]:
    return [task.severity for task in tasks]


def _close(project: Project, last: Checkpoint, under_way: dict[str, int]) -> Checkpoint:
    limits, now = limits_of(project), estimated_time()
    new = _opened_since.found(project.pk, last.at)
    for task in new:
        task.project = project
    resolved = [severity for (severity,) in _resolved_since.rows(project.pk, last.at)]
    result = convergence.after_round(
        resolved, _severities(new), _flat(project, last), limits,
        is_counted=_tells_of_a_stall(project, last.under_way, under_way),
    )  # fmt: skip
    weights = limits.severity_weights
    checkpoint = Checkpoint(
        project=project, number=last.number + 1, opened=len(new), resolved=len(resolved),
        opened_weight=total_weight(_severities(new), weights),
        resolved_weight=total_weight(resolved, weights), net=result.net, weighted_net=result.weighted_net,
        state=result.state, flat=result.flat, under_way=under_way, at=now,
    )  # fmt: skip
    _new_checkpoints.insert(checkpoint)
    record(
        project, "checkpoint", note=convergence.said(result, limits),
        data={"number": checkpoint.number, "state": result.state, "weighted_net": result.weighted_net},
    )  # fmt: skip
    if checkpoint.number == rounds_allowed(project):
        record(project, "round_limit", note="People choose: extend it, accept what there is, or abandon it.")
    waits_for_people = result.stalled and not checkpoint.under_way  # and their cards already ask
    if result.state is convergence.State.DIVERGENCE_WARNING and not waits_for_people:
        _warn(project, checkpoint, result, limits, new)
    elif result.state is convergence.State.CONVERGING:
        alerts.close_alerts(project, "converging again")
    return checkpoint


def _opened(project: Expression, since: Expression) -> QuerySet[Task]:
    return _counted(project).filter(created_at__gt=since).order_by("rank")


def _resolved(project: Expression, since: Expression) -> QuerySet[Task]:
    """Return the severities of tasks settled since then, each task once in its life (CNT-1, CNT-2)."""
    before = Event.objects.filter(task=OuterRef("pk"), to_status__in=SETTLED, at__lte=since).exclude(
        from_status__in=SETTLED
    )
    settled = _counted(project).filter(status__in=SETTLED, status_at__gt=since)
    return settled.exclude(Exists(before)).order_by().values_list("severity")


_opened_since, _resolved_since = Prepared(_opened), Prepared(_resolved)


def limits_of(project: Project) -> convergence.ConvergenceSettings:
    """Return the thresholds from the project's settings, or those for its size if it sets none (CONV-5)."""
    config, apt = project.config, convergence.preset(initial_tasks(project))
    stall, divergence = config.stall_threshold, config.divergence_threshold
    return convergence.ConvergenceSettings(
        stall_threshold=apt.stall_threshold if stall is None else stall,
        divergence_threshold=apt.divergence_threshold if divergence is None else divergence,
        critical_override=config.critical_override,
        severity_weights=config.severity_weights,
    )


def initial_tasks(project: Project) -> int:
    """Return how many tasks there were to do when the project began, or are now if it has not begun."""
    begun = _opened_first.rows(project.pk)
    return begun[0][0] if begun else _counted(project).exclude(status__in=SETTLED).count()


def rounds_allowed(project: Project) -> int:
    """Return how many checkpoints the project may take before people have to extend it or end it (END-4)."""
    return max_rounds(initial_tasks(project), project.config)


def _tells_of_a_stall(project: Project, before: dict[str, int], now: dict[str, int]) -> bool:
    """Whether work was repeated in vain, in a project large enough for warnings of stalls.

    A first review that sends a task back, or a task that waits for people, is normal and no stall. In a small
    project each task's own limits (too many rejections, circles) suffice, unless the project sets a threshold
    for stalls.
    """
    if project.config.stall_threshold is None and initial_tasks(project) <= FEW:
        return False
    if project.kind == Project.Kind.DOCUMENTS:  # every round of a session could have settled something
        return bool(before)
    return any(now.get(pk, 0) > round_ > 1 for pk, round_ in before.items())


def _flat(project: Project, last: Checkpoint) -> int:
    """Return the number of checkpoints in a row without progress; some of people's answers reset it to 0."""
    return 0 if _answers.rows(project.pk, last.at) else last.flat


def _answered(project: Expression, since: Expression) -> QuerySet[Event]:
    answers = Event.objects.filter(project=project, kind__in=alerts.BEGIN_ANEW, at__gte=since)
    return answers.order_by().values_list("pk")[:1]


_answers = Prepared(_answered)


def is_diverging(project: Project) -> bool:
    """Whether a warning about the project is waiting for an answer."""
    return bool(alerts.open_alerts(project).exists())


def _warn(
    project: Project,
    checkpoint: Checkpoint,
    result: convergence.RoundResult,
    limits: convergence.ConvergenceSettings,
    new: list[Task],
) -> None:
    """Ask people what to do about the warning, on the one card that the project has for this."""
    lines = [
        convergence.said(result, limits),
        f"Since the checkpoint before: {checkpoint.resolved} resolved (weight {checkpoint.resolved_weight}), "
        f"{checkpoint.opened} came up (weight {checkpoint.opened_weight}).",
        *_named(new),
    ]
    stalled = result.stalled
    question = (
        f"{project.name} makes no progress: {counted(checkpoint.flat, 'checkpoint')} without any."
        if stalled
        else f"{project.name} diverges: {convergence.said(result, limits)}"
    )
    origin = Conflict.Origin.STALL if stalled else Conflict.Origin.DIVERGENCE
    alerts.open_alert(project, origin=origin, question=question, evidence=lines)


def _named(new: list[Task]) -> list[str]:
    ordered = sorted(new, key=lambda task: total_weight([task.severity]), reverse=True)
    lines = [f"New: {task.ref} {task.title} ({task.severity})" for task in ordered[:SHOWN]]
    return [*lines, f"And {len(new) - SHOWN} more."] if len(new) > SHOWN else lines
