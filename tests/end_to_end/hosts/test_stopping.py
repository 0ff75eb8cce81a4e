"""Ctrl+C: in order within ten seconds, whatever hangs, and at once the second time."""

import signal
import time

import pytest

from agents.hosts import processes
from tests.end_to_end.installation import Installation, wait_for

pytestmark = pytest.mark.slow
TICKED = "SELECT count(ticked_at) FROM agents_host"


def test_ctrl_c_ends_within_ten_seconds_and_the_second_one_at_once(installation: Installation) -> None:
    def cluster() -> list[processes.Identity]:
        return installation.server("cluster")

    for times, code, longest in ((1, 0, 10.5), (2, 130, 2.0)):
        begun = installation.begin("run_orchestrator", "--no-web")
        wait_for(lambda: installation.value(TICKED) and len(cluster()) >= 3, "a cluster")
        processes.signal_all(cluster(), signal.SIGSTOP)  # it hears nothing
        asked = time.monotonic()
        for _ in range(times):
            begun.send_signal(signal.SIGINT)
            time.sleep(0.5)
        assert begun.wait(60) == code, installation.log()
        assert time.monotonic() - asked < longest, installation.log()
        processes.signal_all(cluster(), signal.SIGCONT)
        wait_for(lambda: not cluster(), "the end of the cluster, which is not to be taken for the next one")
