"""Prepares a pulled run: where it begins, what its agent is told, and the commits that the agent lacks."""

from agents.hosts import paths, starting
from agents.hosts.git.mirror import Mirror
from agents.models import PullBundle, Run
from agents.pull import leases
from agents.verification import commands
from tasks.database.clock import database_time


def prepare(run: Run) -> None:
    """Prepare the run's work and let the run begin; from then on no host holds it.

    Raises Unreachable for the remote, GitError, BaseNotFit, CannotStart, and StaleTask if the task moved
    on.
    """
    if run.agent is None:
        raise starting.CannotStart("The agent of this run was deleted.")
    mirror = paths.mirror(run.project)
    base = starting.fetch_base(run, mirror)
    starting.check_base(run, mirror, base)
    known = commands.commands_of(run.project, mirror, base, run.task)
    bundle = _bundle_of(run, mirror, base)
    Run.objects.filter(pk=run.pk).update(base_sha=base)
    run.base_sha = base
    PullBundle.objects.update_or_create(run=run, defaults={"base": bundle})
    now = database_time()
    starting.tell(
        run, starting.draft(run, mirror, known), status=Run.Status.RUNNING, host=None, started_at=now,
        lease_until=now + leases.lease(),
    )  # fmt: skip


def _bundle_of(run: Run, mirror: Mirror, base: str) -> bytes | None:
    """Return the commits up to the base that the remote's target branch lacks, or None if it has them all.

    Raises CannotStart if they are too large to send.
    """
    head = mirror.resolve(mirror.target_ref)
    if mirror.is_ancestor(base, head):
        return None
    name = leases.base_ref(run.pk)
    mirror.keep(base, name)
    data = mirror.bundle(base, name, mirror.merge_base(head, base), leases.BUNDLE_MAX)
    if data is None:
        raise starting.CannotStart(
            f"The commits up to {base[:12]} are more than the {leases.BUNDLE_MAX} bytes that an agent "
            "elsewhere is sent. Let an agent of a host take this task."
        )
    return data
