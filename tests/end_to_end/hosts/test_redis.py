"""Redis stops in the middle of the work and comes back: nobody is refused anything, and the loop goes on."""

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from agents.hosts import api_server, processes
from tests.end_to_end.installation import PATIENCE, Installation, wait_for

pytestmark = pytest.mark.slow


@contextmanager
def redis(folder: Path, port: int) -> Iterator[None]:
    """A server of its own on loopback, which keeps nothing."""
    with (folder / "redis.log").open("ab") as output:
        server = subprocess.Popen(
            ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--dir", str(folder)],
            stdout=output, stderr=output,
        )  # fmt: skip
    try:
        wait_for(lambda: "eady to accept" in (folder / "redis.log").read_text()[-200:], "Redis")
        yield
    finally:
        server.terminate()
        server.wait(PATIENCE)


def write(url: str, token: str, number: int) -> int:
    """A person comments over REST. The status."""
    request = Request(
        f"{url}/api/v1/tasks/demo-{number}/comment/", json.dumps({"body": "Mind the gap."}).encode(),
        {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )  # fmt: skip
    with urlopen(request, timeout=PATIENCE) as reply:
        return int(reply.status)


# Somebody is to be told, so that events ask for jobs; of what never happens here, so that nothing is sent.
CHANNEL = """
from disputes.models import Channel
from disputes.notifications.sealing import seal
from tasks.models import Project
Channel.objects.create(
    project=Project.objects.first(), name="Ops", service="example", sealed_address=seal("json://127.0.0.1:9"),
    wants=["stale"])
"""


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="there is no redis-server")
def test_the_loop_and_every_hand_in_outlive_redis(installation: Installation, tmp_path: Path) -> None:
    demo, port = installation, api_server.free_port()
    demo.environment["STEROIDS_LOG_FORMAT"] = "json"
    demo.environment["REDIS_URL"] = f"redis://127.0.0.1:{port}/0"
    handed_in = "SELECT count(*) FROM tasks_submission"
    jobs = "SELECT count(*) FROM django_q_task WHERE func = 'agents.jobs.tick' AND success"

    def servers() -> set[processes.Identity]:
        return {*demo.server("web")}

    with redis(tmp_path, port):
        begun = demo.begin("run_orchestrator", "--demo")
        address = demo.home / "host" / "web.url"
        wait_for(address.exists, "the web server")
        demo.mint_token()
        made = demo.manage("shell", "--no-imports", "-c", CHANNEL)
        assert made.returncode == 0, made.stderr
        token = (demo.home / "token").read_text()
        wait_for(lambda: demo.value(handed_in), "the first hand-in")
        wait_for(lambda: demo.value(jobs), "a job of the cluster")
        web = servers()
    url, before = address.read_text(), demo.value(handed_in)
    assert write(url, token, 1) == 201
    wait_for(lambda: demo.value(handed_in) > before, "a hand-in while Redis is away")
    assert write(url, token, 2) == 201
    with urlopen(f"{url}/healthz", timeout=PATIENCE) as reply:
        assert reply.status == 200
    assert begun.poll() is None, demo.log()
    done = demo.value(jobs)
    with redis(tmp_path, port):
        wait_for(lambda: demo.value(jobs) > done, "a job of the cluster once Redis is back")
        assert begun.poll() is None, demo.log()
        assert servers() >= web
        begun.terminate()
        assert begun.wait(PATIENCE) == 0, demo.log()
    assert demo.value("SELECT count(*) FROM agents_run WHERE outcome IN ('crash', 'nothing')") == 0
    logs = [demo.home / "begun.log", *(demo.home / "log").glob("*.log")]
    lines = [line for file in logs for line in file.read_text().splitlines() if "The broker is away" in line]
    said_by = Counter(json.loads(line)["process"] for line in lines)
    assert said_by, "a process that asks for jobs says so"
    assert set(said_by.values()) == {1}, "once, however often it asked"
