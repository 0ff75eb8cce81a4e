"""Work that only a dead host has: nobody waits for it for ever, it is done again."""

from django.db import transaction
from django.db.models import Q

from agents.hosts import submissions
from agents.loop import run_ends
from agents.models import Host
from tasks.locking import locked, repeated
from tasks.models import Landing, StaleTask, Submission, Task
from tasks.states import IllegalMove


def give_up() -> int:
    """Send back what was handed in on a host that is gone. Returns how many submissions."""
    gone = set(Host.objects.given_up().values_list("name", flat=True))
    if not gone:
        return 0
    unfetched = Q(state=Submission.State.RECEIVED, run__is_pulled=False, run__host__name__in=gone)
    kept = Q(state__in=[Submission.State.KEPT, Submission.State.VERIFIED], only_on__in=gone)
    found = Submission.objects.filter(unfetched | kept, task__landed_at__isnull=True)
    rows = list(found.select_related("run__host", "task"))
    for submission in rows:
        holder = submission.only_on or submission.run.host.name
        why = f"Host {holder}, which alone had the commit {submission.sha[:12]}, is gone; do the work again."
        if submission.state == Submission.State.RECEIVED:
            submissions.send_back(submission, why)
        else:
            _lose(submission, why)
    return len(rows)


@repeated
def _lose(submission: Submission, why: str) -> None:
    """It was kept, and perhaps approved, but was too large for a bundle."""
    with transaction.atomic():
        task = locked(Task.objects).select_related("project", "section").get(pk=submission.task_id)
        mine = Submission.objects.filter(pk=submission.pk, state=submission.state)
        if not mine.update(state=Submission.State.LOST, problem=why[:500]):
            return
        landings = submission.landings.filter(status__in=Landing.LIVE)
        over = {"status": Landing.Status.CONFLICT, "problem": why[:500], "claimed_until": None}
        landings.update(**over)
        try:
            if task.accepted_id == submission.pk:
                task.clash(note=why)
            elif task.last_submission() == submission:
                run_ends.bounce(task, why)
        except (StaleTask, IllegalMove):
            pass  # people have it; whoever begins again begins without it
