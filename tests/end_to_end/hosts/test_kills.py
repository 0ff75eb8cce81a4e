"""SIGKILLs in the middle of the demo, then a restart: it ends as if nothing had happened."""

from collections.abc import Callable

import pytest

from agents.hosts import processes
from tests.end_to_end.installation import PATIENCE, Installation, kill, wait_for

pytestmark = pytest.mark.slow

END = {
    "Accept weeks": "completed",
    "Add up a time sheet": "completed",
    "Name your own units": "disputed",
    "Print a report": "pending",
    "Read clock times": "completed",
    "Read negative spans": "completed",
    "Round to the nearest minute": "disputed",
    "Shorten long spans": "completed",
}


def handed_in(demo: Installation, at_least: int) -> bool:
    if not (demo.home / "steroids.sqlite3").exists():
        return False
    try:
        return int(demo.value("SELECT count(*) FROM tasks_submission")) >= at_least
    except demo.errors:
        return False


def supervisor(demo: Installation, begun: int) -> list[processes.Identity]:
    return [processes.identity(begun)]


def server(name: str) -> Callable[[Installation, int], list[processes.Identity]]:
    def find(demo: Installation, begun: int) -> list[processes.Identity]:
        return demo.server(name)

    return find


def a_shim(demo: Installation) -> list[processes.Identity]:
    """The shim of a coder that works."""
    working = "SELECT id FROM agents_run WHERE role = 'coder' AND status = 'running'"
    shims = [processes.read_identity(demo.home / "runs" / str(pk) / "pid") for (pk,) in demo.rows(working)]
    return [who for who in shims if who and processes.is_alive(who)][:1]


# One after the other, in the middle of the same demo; the last one takes everything with it.
VICTIMS = {
    "the web server": server("web"),
    "the cluster": server("cluster"),
    "the loop": server("loop"),
    "the supervisor": supervisor,
}


def strike(demo: Installation, begun: int, victim: str) -> None:
    """SIGKILL, once the victim is there; returns when the loss was noticed and made good."""
    victims = wait_for(lambda: VICTIMS[victim](demo, begun), victim)
    for who in victims:
        kill(who)
    if victim != "the supervisor":
        wait_for(
            lambda: set(VICTIMS[victim](demo, begun)) - set(victims), f"another one in place of {victim}"
        )


def strike_a_shim(demo: Installation) -> None:
    """SIGKILL to shims of coders until one had not handed in yet: its run is lost, and not counted."""
    lost = "SELECT count(*) FROM agents_run WHERE outcome = 'lost' AND NOT is_counted"

    def killed() -> bool:
        for who in a_shim(demo):
            kill(who)
        return bool(demo.value(lost))

    wait_for(killed, "a lost run")


def test_it_ends_the_same_after_kills(installation: Installation) -> None:
    """A second start beside the first one says where that one answers."""
    demo = installation
    begun = demo.begin("run_orchestrator", "--demo", "--until-idle")
    answering = demo.home / "host" / "web.url"
    wait_for(lambda: answering.exists() and answering.read_text(), "the web server")
    second = demo.manage("run_orchestrator", "--demo")
    assert second.returncode == 0
    assert f"Steroids Web answers on {answering.read_text()}" in second.stdout
    wait_for(lambda: handed_in(demo, 1), "the first hand-in")
    strike_a_shim(demo)
    for victim in VICTIMS:
        strike(demo, begun.pid, victim)
    begun.wait(PATIENCE)
    begun = demo.begin("run_orchestrator", "--until-idle")
    assert begun.wait(PATIENCE) == 0, demo.log()
    assert demo.statuses() == END
    landed = demo.rows("SELECT landed_sha FROM tasks_task WHERE landed_sha <> ''")
    on_main = demo.git("rev-list", "main").split()
    assert all(on_main.count(sha) == 1 for (sha,) in landed)
    assert demo.value("SELECT count(*) FROM disputes_conflict WHERE status = 'open' AND kind != 'alert'") == 2
    wait_for(lambda: not demo.processes(), "the end of every process")
