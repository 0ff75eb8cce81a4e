"""The table of all checks, and how they are run."""

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from agents.doctor import audit, machine, record, runs
from agents.doctor.checks import Check, Finding

AGAIN_AFTER = 2.0  # seconds

CHECKS = [
    Check("I1", "A task stands where its last event says; no change lacks an event.", record.statuses),
    Check("I2", "A task has one live run at most in each seat.", runs.seats),
    Check("I3", "Nothing is taken from a run after its end.", runs.late_writes),
    Check("I4", "A settled conflict has one standing ruling, by a person or a policy that an event names.",
          record.rulings),
    Check("I5", "What landed was green, and approved by another or settled by people.", record.landed_work),
    Check("I6", "An approved commit lands once, and the record says so.", record.ends_of_landings),
    Check("I7", "A token dies with its run, and stands nowhere in clear.", runs.tokens, runs.end_tokens),
    Check("I8", "No process outlives its run on this host.", runs.strays, runs.end_strays),
    Check("I9", "What is to be done is done soon, or somebody can see why not.", runs.stuck),
    Check("I10", "Logs keep within their limits.", machine.caps, machine.cut_logs),
    Check("I11", "What belongs to one project leads to no other.", record.one_project),
    Check("I12", "The database refuses what nobody may change, and nobody has.", audit.record,
          audit.put_guards_back),
    Check("I13", "No clone is left a day after its run.", machine.orphans, machine.remove_orphans),
    Check("I14", "Nothing is missing, and counts are right.", record.counts, record.count_anew),
    Check("mirrors", "The mirrors are whole, and what landed is on the target branch.", machine.mirrors,
          machine.mend_mirrors),
    Check("disk", "The disk has room.", machine.disk),
    Check("sandbox", "Runs of this host are sandboxed, unless that was switched off.", machine.sandboxed),
    Check("surroundings", "git, Python, SQLite, settings and the rights of files are as they must be.",
          machine.surroundings, machine.close_folder),
    Check("database", "The database is whole, and of this version of the program.", machine.database),
    Check("hosts", "All hosts at work have the same version.", machine.hosts),
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Found:
    """A finding, and the check that found it."""

    check: Check
    finding: Finding


def examine(only: Collection[str] = ()) -> list[Found]:
    """Return all findings, or those of the checks with these ids.

    Each check with findings is run again a moment later, and only what is found both times counts: the rest
    was work under way, since rows are read one after the other while the program runs.
    """
    chosen = [check for check in CHECKS if not only or check.id in only]
    first = [(check, set(check.find())) for check in chosen]
    doubtful = [(check, found) for check, found in first if found]
    if doubtful:
        time.sleep(AGAIN_AFTER)
    return [Found(check, each) for check, found in doubtful for each in check.find() if each in found]


def repair(found: Collection[Found]) -> Iterator[str]:
    """Mend what can be mended of these findings, and yield a line for each thing done."""
    for check in CHECKS:
        if check.repair and any(each.check is check for each in found):
            yield from check.repair()
