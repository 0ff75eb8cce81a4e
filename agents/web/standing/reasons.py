"""Why a task is not moving: the first reason that holds, in the order in which they have to go away."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

from agents.models import Run
from agents.money import caps
from agents.web.log import silence_of
from agents.web.standing.facts import NAMED, Asked, Facts
from tasks import base
from tasks.database.clock import estimated_time
from tasks.models import Landing, Project, Submission, Task
from tasks.spans import clock, duration, since
from tasks.states import Severity, Status
from tasks.text.counting import some_of

HUMAN, WORK, WAIT, DONE, WRONG = "human", "work", "wait", "done", "wrong"


@dataclass(frozen=True, slots=True)
class Standing:
    """One line that says whose turn it is, and why."""

    turn: str  # human, work, wait, done; wrong if rows contradict each other or nobody is there to act
    line: str
    dispute: int | None = None
    run: int | None = None
    blocker: str = ""  # the first task that it waits for
    setup: str = ""  # the project whose set-up page says more

    @property
    def is_wrong(self) -> bool:
        return self.turn == WRONG


def standing_of(task: Task, facts: Facts) -> Standing:
    """Return the task's line; `task.project` and `task.section` must be loaded."""
    asked = facts.asked[task.pk]
    for reason in (
        _over,
        _ended,
        _people,
        _under_way,
        _project,
        _branch,
        _refused,
        _stopped,
        _gap,
        _session,
        _amendment,
        _resting,
        _behind,
        _spent,
        _next,
    ):
        if found := reason(task, asked, facts):
            return found
    raise AssertionError(f"{task.ref} has no standing.")  # the last reason always holds


# --- It is over, or a person's turn -----------------------------------------------------------------------


def _over(task: Task, asked: Asked, facts: Facts) -> Standing | None:
    if task.landed_at and task.status != Status.DISPUTED:
        return Standing(DONE, f"Landed as {task.landed_sha[:12]}.")
    match Status(task.status):
        case Status.CANCELLED:
            return Standing(DONE, "Cancelled.")
        case Status.COMPLETED if task.finished_by == "review":
            return Standing(DONE, "Accepted by its review; it lands with its session.")
        case Status.COMPLETED if task.finished_by:
            return Standing(DONE, "Finished outside the program.")
        case Status.COMPLETED if task.accepted_id is None:
            return Standing(WRONG, "Completed, but no submission is there to land; reopen it.")
        case Status.DEFERRED:
            begun = since(task.status_at, facts.now)
            return Standing(WAIT, f"Deferred since {begun}, until somebody resumes it.")
    return None


def _ended(task: Task, asked: Asked, facts: Facts) -> Standing | None:
    is_over = task.project.status == Project.Status.FINISHED
    return Standing(WAIT, of_project(task.project, facts.now)) if is_over else None


def _people(task: Task, asked: Asked, facts: Facts) -> Standing | None:
    """Return that a card asks for a person, or that it should."""
    if asked.dispute and (asked.is_held or task.status in {Status.DISPUTED, Status.FAILED}):
        words = {
            Status.FAILED: "Failed after too many rejections; ",
            Status.COMPLETED: "Approved, but its landing is held: ",
        }.get(Status(task.status), "")
        landed = f" Landed as {task.landed_sha[:12]} meanwhile." if task.landed_at else ""
        line = f"{words}{_waits_for_people(asked, facts)}.{landed}"
        return Standing(HUMAN, line, dispute=asked.dispute)
    if task.status in {Status.DISPUTED, Status.FAILED}:
        if asked.ruling_at:
            return Standing(WAIT, _ruling_line(asked.ruling_at, asked.now))
        word = "Disputed" if task.status == Status.DISPUTED else "Failed"
        return Standing(WRONG, f"{word}, but no open card asks anybody; defer and resume it, and it goes on.")
    return None


def _waits_for_people(asked: Asked, facts: Facts) -> str:
    whom = f"for {asked.dispute_for}" if asked.dispute_for else "for a human to rule"
    begun = since(asked.dispute_since, facts.now) if asked.dispute_since else ""
    return f"D-{asked.dispute} has waited {whom} since {begun}"


# --- Agents are at work -----------------------------------------------------------------------------------


def _under_way(task: Task, asked: Asked, facts: Facts) -> Standing | None:
    run = facts.runs.get(task.pk)
    if run is None or run.status == Run.Status.CLOSING:
        return None  # a run that has handed in holds nothing up
    who = run.agent_label or run.role
    if run.status == Run.Status.QUEUED:
        why = _no_host(task, asked, facts)
        turn = WRONG if why and not facts.hosts else WORK
        return Standing(
            turn, f"A run of {who} is queued since {since(run.queued_at, facts.now)}{why}.", run=run.pk
        )
    begun = since(run.started_at or run.queued_at, facts.now)
    if run.stop_requested:
        return Standing(WORK, f"{who} is being stopped; at work since {begun}.", run=run.pk)
    return Standing(WORK, f"{who} is at work since {begun}{_output(run, facts.now)}.", run=run.pk)


def _no_host(task: Task, asked: Asked, facts: Facts) -> str:
    if not facts.hosts:
        return ": no host is alive to start it"
    if not any(host.may_run(task.project) for host in facts.hosts):
        return f": no host that is alive has the label {task.project.config.host_label}"
    if asked.only_on and (away := _away(asked.only_on, facts)):
        return f": only the host {asked.only_on} has its commits, {away}"
    if all(host.is_draining for host in facts.hosts):
        return ": every host is draining and takes no new runs"
    if not any(host.has_room for host in facts.hosts):
        return ": no host that is alive has room on its disk"
    return "" if facts.has_free_slot() else ": all slots of the hosts are taken"


def _output(run: Run, now: datetime) -> str:
    last = run.last_output_at or run.started_at
    if last is None:
        return ""
    if silence := silence_of(run, now):
        return f", {silence}"
    seconds = (now - last).total_seconds()
    return f", last output {duration(seconds)} ago" if run.last_output_at else ", no output yet"


# --- Something around it holds it -------------------------------------------------------------------------


def of_project(project: Project, now: datetime) -> str:
    """Return why nothing is started in the project as a whole; empty if something may be."""
    if project.status == Project.Status.FINISHED:
        how = f" as {project.get_exit_type_display().lower()}" if project.exit_type else ""
        return f"{project.name} has ended{how}; nothing is started in it."
    if faults := project.setting_faults:
        return f"{project.name} waits until its settings are mended: {faults[0]}"
    if project.status == Project.Status.PAUSED:
        return f"{project.name} is paused; nothing is started in it."
    if project.trouble:
        again = project.trouble_until
        when = f"; tried again at {clock(again, now)}" if again and again > now else ""
        return f"Waits for the repository{when}: {project.trouble}"
    return ""


def held(project: Project, refused: Mapping[int, Landing]) -> str:
    """Return what keeps coders from beginning in the project until it is mended; empty if nothing does.

    `refused` is what the remotes do not take, from `outlook.refused_in`.
    """
    if why := of_project(project, estimated_time()):
        return why
    if project.base_state in {base.Base.RED, base.Base.BROKEN}:
        return base.said(project)
    landing = refused.get(project.pk)
    return refusal(landing, estimated_time()) if landing else ""


def _project(task: Task, asked: Asked, facts: Facts) -> Standing | None:
    why = of_project(task.project, facts.now)
    return Standing(WAIT, why) if why else None


def _branch(task: Task, asked: Asked, facts: Facts) -> Standing | None:
    """Return the reason in the branch: coders begin only on a target branch that is known to be fit."""
    project, base = task.project, Project.Base
    if project.base_state in Project.FIT or task.origin == Task.Origin.SETUP:
        return None
    if task.status == Status.REVIEW:
        if asked.submission == Submission.State.VERIFIED or project.base_state == base.RED:
            return None
    elif task.status not in {Status.PENDING, Status.IN_PROGRESS}:
        return None
    branch, problem = project.branch, project.base_problem
    if project.base_state == base.RED:
        line = f"{branch} is red, and nobody begins on it: {problem}"
    elif project.base_state == base.BROKEN:
        line = f"{branch} cannot be built and tested here, and nobody begins on it: {problem}"
    else:
        return Standing(WAIT, f"{branch} is tried before anybody works on it.", setup=project.slug)
    return Standing(HUMAN, line, setup=project.slug)


def refusal(landing: Landing, now: datetime) -> str:
    """Return that the remote does not take what is approved, and what follows."""
    again = landing.not_before
    when = f"tried again at {clock(again, now)}" if again and again > now else "tried again now"
    return f"Nobody begins, because what is approved cannot be pushed ({when}): {landing.problem}"


def _refused(task: Task, asked: Asked, facts: Facts) -> Standing | None:
    """Return that new work waits, because it would not land either."""
    if task.status != Status.PENDING or not asked.is_refused or task.project_id not in facts.refused:
        return None
    return Standing(WAIT, refusal(facts.refused[task.project_id], asked.now), setup=task.project.slug)


def _stopped(task: Task, asked: Asked, facts: Facts) -> Standing | None:
    if not task.section.is_stopped or task.status == Status.COMPLETED:
        return None
    failed = facts.failed_in(task)
    if failed is None:
        return Standing(
            WRONG, f"The section {task.section.title} is marked as stopped, but nothing in it has failed; "
            "take the mark away.",
        )  # fmt: skip
    ref = f"{task.project.slug}-{failed}"
    return Standing(WAIT, f"The section {task.section.title} is stopped because {ref} failed.", blocker=ref)


def _gap(task: Task, asked: Asked, facts: Facts) -> Standing | None:
    """Return where a gap is in its session: the loop works on the session, and its gaps follow."""
    if not task.is_gap or (task.status == Status.PENDING and task.waits_for):
        return None
    if task.status == Status.PENDING:
        return Standing(WAIT, "Waits to be given out in a round of its session.")
    session = facts.sessions.get(task.project_id)
    if task.status not in {Status.IN_PROGRESS, Status.REVIEW} or session is None:
        return None
    is_proposed = task.status == Status.REVIEW
    here = f"Proposed in round {task.round}" if is_proposed else "With the engineer"
    if session.dispute and (session.status == Status.DISPUTED or session.is_idle):
        return Standing(WAIT, f"{here}; its session waits for D-{session.dispute}.", dispute=session.dispute)
    if is_proposed and session.status == Status.REVIEW:
        return Standing(WORK, f"{here}: its review is still to come.")
    if is_proposed or session.status == Status.IN_PROGRESS:
        return Standing(WORK, f"{here}: round {session.round} of its session is under way.")
    return Standing(WORK, f"{here}: the review of round {session.round} comes first.")


def _session(task: Task, asked: Asked, facts: Facts) -> Standing | None:
    """Return what a session waits for that has given out no gap, so that no engineer is started."""
    if task.pk not in facts.idle_sessions:
        return None
    if not asked.dispute:
        return Standing(WAIT, "Nothing is left to write: what is open waits for people or for other gaps.")
    return Standing(
        HUMAN, f"Nothing is left to write; {_waits_for_people(asked, facts)}.", dispute=asked.dispute
    )


def _amendment(task: Task, asked: Asked, facts: Facts) -> Standing | None:
    """Return where an amendment is: a person has approved it, so no coder or reviewer works on it."""
    if task.origin != Task.Origin.AMENDMENT:
        return None
    if task.status == Status.IN_PROGRESS:
        return Standing(WORK, "It did not fit or was red; its amendment is drafted again for approval.")
    if task.status == Status.REVIEW and asked.submission == Submission.State.VERIFIED:
        return Standing(WORK, "Green and approved; it goes on to its landing.")
    return None


def _resting(task: Task, asked: Asked, facts: Facts) -> Standing | None:
    if not task.not_before or task.not_before <= asked.now:
        return None
    if asked.ruling_at:
        return Standing(WAIT, _ruling_line(asked.ruling_at, asked.now))
    if task.status == Status.REVIEW and asked.submission == Submission.State.RECEIVED:
        return None  # to fetch it failed a moment ago; that is said as long as it lasts
    when = clock(task.not_before, asked.now)
    if (task.not_before - asked.now).total_seconds() < 60:
        when = f"{duration((task.not_before - asked.now).total_seconds())} from now"
    if failures := facts.failures.get(task.pk):
        runs = "an empty run" if failures == 1 else f"{failures} empty runs"
        return Standing(WAIT, f"Not before {when}, after {runs}.")
    if asked.submission == Submission.State.RED:
        return Standing(WAIT, f"Not before {when}, after red build or tests: {asked.problem}")
    return Standing(WAIT, f"Not before {when}.")


def _ruling_line(moment: datetime, now: datetime) -> str:
    return f"Ruled; the ruling takes effect in {duration((moment - now).total_seconds())}."


def _behind(task: Task, asked: Asked, facts: Facts) -> Standing | None:
    """Return what new work waits for; the loop decides by the counter, so that is checked here."""
    if task.status != Status.PENDING:
        return None
    unmet, sections = facts.unmet.get(task.pk, []), facts.unmet_sections(task.section_id)
    count = len(unmet) + len(sections)
    if count != task.waits_for:
        return Standing(
            WRONG, f"Its counter is wrong: it says {task.waits_for} to wait for, the facts say {count}"
            f"{_named(task, unmet, sections, ' (', ')')}. Save the task once more to have them counted.",
        )  # fmt: skip
    if not count:
        return None
    blocker = f"{task.project.slug}-{unmet[0][0]}" if unmet else ""
    if unmet:
        return Standing(WAIT, f"Waits for {_named(task, unmet, sections)} to land.", blocker=blocker)
    return Standing(WAIT, f"Waits for the section {_named(task, [], sections)} to land.")


def _spent(task: Task, asked: Asked, facts: Facts) -> Standing | None:
    """Return that a cap is reached, so no agent starts; build and tests go on, since they cost nothing."""
    in_review = task.status == Status.REVIEW and asked.submission == Submission.State.VERIFIED
    if not in_review and task.status not in {Status.PENDING, Status.IN_PROGRESS}:
        return None
    if (reached := facts.closed.get(task.project_id)) is None:
        return None
    turn = HUMAN if reached.cap.whose == "project" else WAIT
    return Standing(turn, caps.closed_line(reached, facts.now))


def _named(
    task: Task, unmet: list[tuple[int, str]], sections: list[str], before: str = "", after: str = ""
) -> str:
    """Return the first few names of what the task waits for; empty if there is nothing."""
    names = [f"{task.project.slug}-{number} {title}" for number, title in unmet]
    names += [f"section {title}" if unmet else title for title in sections]
    return f"{before}{some_of(names, NAMED)}{after}" if names else ""


# --- It is the task's turn --------------------------------------------------------------------------------


def _next(task: Task, asked: Asked, facts: Facts) -> Standing:
    if asked.only_on and task.status != Status.PENDING and (away := _away(asked.only_on, facts)):
        return Standing(WAIT, f"Only the host {asked.only_on} has its commits, {away}.")
    if first := facts.contested.get(task.pk):
        what = "Approved; lands" if task.accepted_id else f"The {task.project.coder_word} begins again"
        line = f"{what} after {first.ref}, which changes the same files and goes first."
        return Standing(WAIT, line, blocker=first.ref)
    if task.status == Status.COMPLETED:
        return _landing(task, facts)
    if task.status == Status.REVIEW:
        if not asked.submission:
            return Standing(WRONG, "In review, but nothing was handed in; defer and resume it.")
        if asked.submission == Submission.State.RECEIVED:
            return _handed_in(asked, facts)
        if asked.submission in Submission.UNTAKEN:
            return Standing(WORK, f"Goes back to the {task.project.coder_word}: {asked.problem}")
    is_put_behind = task.project.focus and task.severity != Severity.CRITICAL
    if task.status == Status.PENDING and is_put_behind and facts.has_critical_to_start(task.project):
        return Standing(WAIT, f"Only critical tasks are begun in {task.project.name} now.")
    return _seat(task, asked, facts)


def _handed_in(asked: Asked, facts: Facts) -> Standing:
    """Return who fetches the hand-in next; what was made on a host is fetched by that host alone."""
    if not facts.hosts:
        return Standing(WRONG, "Handed in; no host is alive to fetch it.")
    if asked.made_on and (away := _away(asked.made_on, facts)):
        return Standing(WAIT, f"Handed in on the host {asked.made_on}, {away}.")
    if not any(host.has_room for host in facts.hosts if asked.made_on in {"", host.name}):
        who = f"the host {asked.made_on} has no" if asked.made_on else "no host that is alive has"
        return Standing(WAIT, f"Handed in; {who} room on its disk to fetch it.")
    return Standing(WORK, f"Handed in; {asked.made_on or 'a host'} fetches it next.")


def _away(name: str, facts: Facts) -> str:
    """Return what to say of a host that a task waits for; empty if it is alive."""
    if any(host.name == name for host in facts.hosts):
        return ""
    seen = facts.seen.get(name)
    if seen is None:
        return "which is gone: its coder begins again"
    until = seen + timedelta(seconds=settings.DURATIONS["abandon"])
    return (
        f"which was last seen {clock(seen, facts.now)}; unless it comes back by {clock(until, facts.now)}, "
        "its coder begins again"
    )


def _role(task: Task, asked: Asked) -> str:
    if task.status != Status.REVIEW:
        return Run.Role.CODER
    return Run.Role.VERIFIER if asked.submission == Submission.State.KEPT else Run.Role.REVIEWER


TURNS = {
    Run.Role.CODER: "The coder's turn",
    Run.Role.REVIEWER: "The reviewer's turn",
    Run.Role.VERIFIER: "Build and tests are next",
}


def _seat(task: Task, asked: Asked, facts: Facts) -> Standing:
    """Return which seat the task waits for, and why it is not taken."""
    role, project = _role(task, asked), task.project
    turn = TURNS[Run.Role(role)].replace("coder", project.coder_word)
    if task.status == Status.IN_PROGRESS and asked.submission == Submission.State.RED:
        turn = f"Build or tests are red ({asked.problem.rstrip('.')}); the {project.coder_word}'s turn"
    if role != Run.Role.VERIFIER:
        next_turn = facts.roster.turn_of(task)
        if next_turn.is_wrong:
            return Standing(WRONG, f"{turn}, but {next_turn.why}.")
        if next_turn.why and not next_turn.escalates:
            return Standing(WAIT, f"{turn}; {next_turn.why}.")
        if next_turn.escalates:
            turn = "Its ladder of models has come to its end; specialists or a human are next"
    if facts.seated[project.pk] >= project.max_parallel:
        seats = "the only seat" if project.max_parallel == 1 else f"all {project.max_parallel} seats"
        return Standing(
            WAIT, f"{turn}; {seats} of {project.name} {'is' if seats[0] == 't' else 'are'} taken."
        )
    return _at_the_next_turn(turn, facts)


def _at_the_next_turn(turn: str, facts: Facts) -> Standing:
    if not facts.loop_turns():
        when = f"since {since(facts.last_tick, facts.now)}" if facts.last_tick else "yet"
        return Standing(
            WRONG, f"{turn}, but the loop has not turned {when}: start `manage.py run_orchestrator`."
        )
    return Standing(WORK, f"{turn}; it begins when the loop turns next.")


def _landing(task: Task, facts: Facts) -> Standing:
    """Return where the landing of an approved submission is."""
    branch, states = task.project.target_branch, Landing.Status
    unfit = base.unfit(task.project)
    match facts.landings.get(task.accepted_id or 0):
        case Landing(status=states.STUCK | states.CONFLICT, problem=problem):
            return Standing(WRONG, f"Approved, but landing is stuck: {problem}")
        case Landing(status=states.CHECKING) if unfit:
            return Standing(WAIT, f"Approved; waits to land, since {unfit}.", setup=task.project.slug)
        case Landing(status=states.CHECKING, rebased_from=""):
            return Standing(WORK, "Approved; the commands were changed, so build and tests run again.")
        case Landing(status=states.CHECKING):
            return Standing(WORK, f"Approved; rebased onto {branch}, its build and tests run again.")
        case Landing(status=states.PUSHING):
            return Standing(WORK, f"Approved; pushed to {branch} just now.")
        case Landing(status=states.QUEUED, problem=problem, not_before=again) if again and again > facts.now:
            when = clock(again, facts.now)
            return Standing(WAIT, f"Approved; landing is tried again at {when}: {problem}")
        case Landing(status=states.QUEUED):
            if not facts.hosts:
                return Standing(WRONG, "Approved; waits to land, but no host is alive to push it.")
            return Standing(WORK, f"Approved; waits to land on {branch}.")
    return _at_the_next_turn(f"Approved; its landing on {branch} is next", facts)
