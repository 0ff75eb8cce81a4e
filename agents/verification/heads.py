"""The head of the target branch: notices that it moved, and what is known of the new commit."""

from agents.hosts import rewrites
from agents.hosts.git.mirror import Mirror
from agents.verification import commands, verdicts
from tasks import base
from tasks.database.prepared import refresh
from tasks.models import Project, Verification

Base = Project.Base


def note(project: Project, mirror: Mirror, head: str) -> bool:
    """Note where the branch is, and return whether a coder may begin there.

    A commit that was verified before it was pushed is known; any other one is tried first. Raises GitError,
    Unreachable.
    """
    refresh(project)
    if project.base_sha == head:
        return project.base_state in Project.FIT
    rewrites.look(project, mirror, head)
    return _note_another(project, mirror, head)


def note_own(project: Project, mirror: Mirror, head: str) -> None:
    """Note a head that this host has just pushed onto the last one: it can have lost nothing."""
    refresh(project)
    if project.base_sha != head:
        _note_another(project, mirror, head)


def _note_another(project: Project, mirror: Mirror, head: str) -> bool:
    if project.base_state in {Base.UNKNOWN, Base.TRYING}:
        return False
    recipe = commands.commands_of(project, mirror, head)
    if not any(recipe.commands) and not project.config.detect_commands:
        base.set_base(project, Base.NOTHING, sha=head)
        return True
    known = Verification.objects.filter(
        project=project, sha=head, commands_hash=commands.commands_hash(recipe), fault=""
    ).first()
    is_ours = project.landings.filter(sha=head).exists()
    if known is not None and any(recipe.commands):
        if known.green:
            _known_green(project, head, known)
            return True
        if verdicts.is_only_told(project, known.step):
            base.set_base(
                project, Base.ACCEPTED, sha=head, problem=known.problem, base_known=verdicts.red_of(known)
            )
            return True
    if project.base_state == Base.NOTHING and is_ours:  # it was reviewed, and there was nothing to run
        base.set_base(project, Base.NOTHING, sha=head)
        return True
    base.try_again(project, why=f"{mirror.branch} moved on to {head[:12]}.")
    return False


def _known_green(project: Project, head: str, known: Verification) -> None:
    """Mark the branch as green and forget what was accepted; if tests still fail, keep it accepted."""
    if known.failed and project.base_known:
        base.set_base(project, Base.ACCEPTED, sha=head, problem=project.base_problem)
    else:
        base.set_base(project, Base.GREEN, sha=head, base_red={}, base_known={})
