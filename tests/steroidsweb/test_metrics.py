"""/metrics and the lines of the log: what machines read of the installation."""

import json
import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from agents.models import Run, token_hash
from disputes.models import Dispute
from steroidsweb.env import is_behind_proxy
from tasks.log_lines import JSONLines, PlainLines, about
from tasks.models import Project
from tests.factories import create_host, create_project, create_run, create_task

TOKEN = "t" * 40


def figures() -> dict[tuple[str, ...], float]:
    reply = Client().get("/metrics", headers={"authorization": f"Bearer {TOKEN}"})
    assert reply.status_code == 200, reply.content
    assert reply["Content-Type"].startswith("text/plain")
    return {
        (sample.name.removeprefix("steroids_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(reply.content.decode())
        for sample in family.samples
    }


@pytest.mark.django_db
def test_the_figures_are_counted_from_the_rows(
    ledger: Project, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.METRICS_TOKEN = TOKEN
    create_task(ledger)
    worked_on = create_task(ledger, status="in_progress")
    host = create_host(slots=3, seen_at=timezone.now())
    create_run(worked_on, host=host)
    create_run(create_task(ledger, status="review"), "reviewer", status="queued")
    for hours in (0, 5, 500):
        Dispute.objects.create(
            project=create_project(), severity="high", question="Which?",
            opened_at=timezone.now() - timedelta(hours=hours),
        )  # fmt: skip
    ticked = datetime.fromtimestamp(1234.5, UTC)
    monkeypatch.setattr("steroidsweb.metrics.health", lambda: {"last_tick": ticked})
    seen = figures()
    assert seen["tasks", "pending"] == seen["tasks", "in_progress"] == seen["tasks", "review"] == 1
    assert (seen["runs_live", "coder"], seen["runs_queued",]) == (1, 1)
    assert [seen["cards_open", age] for age in ("3600", "86400", "604800", "+Inf")] == [1, 2, 2, 3]
    assert seen["card_oldest_seconds",] == pytest.approx(500 * 3600, abs=60)
    assert (seen["host_slots", "test-host"], seen["tick_timestamp_seconds",]) == (3, 1234.5)
    assert seen["host_seen_timestamp_seconds", "test-host"] == pytest.approx(
        timezone.now().timestamp(), abs=60
    )
    assert "jobs_waiting" in {name for name, *_ in seen}
    with CaptureQueriesContext(connection) as few:
        figures()
    for number in range(5):
        create_run(create_task(create_project()), host=create_host(f"host-{number}"))
    with CaptureQueriesContext(connection) as many:
        figures()
    assert len(many) == len(few)


@pytest.mark.django_db
def test_the_figures_are_for_this_machine_or_for_a_token(settings: Any) -> None:
    def status(address: str, **headers: str) -> int:
        return (
            Client(REMOTE_ADDR=address).get("/metrics", headers={"host": "localhost"} | headers).status_code
        )

    assert status("127.0.0.1") == status("::1") == 200
    assert status("192.0.2.7") == 403
    for name in (
        "x_forwarded_for",
        "x_forwarded_proto",
        "x_real_ip",
        "via",
    ):  # a proxy's, for another machine
        assert status("127.0.0.1", **{name: "192.0.2.7"}) == 403
    own = ["localhost", "127.0.0.1", "[::1]"]
    for names, more, behind in (
        (own, [], False), ([*own, "steroids.example.org"], [], True), (own, ["https://a.example"], True)
    ):  # fmt: skip
        settings.BEHIND_PROXY = is_behind_proxy(names, more, [])
        assert status("127.0.0.1") == (403 if behind else 200)  # perhaps of a proxy that says nothing
    settings.METRICS_TOKEN = TOKEN
    assert status("127.0.0.1") == status("192.0.2.7", authorization="Bearer ü") == 403
    assert status("192.0.2.7", authorization=f"Bearer {TOKEN}") == 200


def test_a_line_of_the_log_is_one_object_with_run_and_task() -> None:
    formatter = JSONLines()
    record = logging.LogRecord("agents", logging.WARNING, "", 0, "two\nlines of %s", ("it",), None)
    with about(run=7), about(task="ledger-3"):
        line = formatter.format(record)
    assert "\n" not in line
    assert json.loads(line) | {"time": "", "process": 0} == {
        "time": "", "level": "WARNING", "logger": "agents", "message": "two\nlines of it", "run": 7,
        "task": "ledger-3", "process": 0,
    }  # fmt: skip
    assert "run" not in json.loads(formatter.format(record))
    record.args = ("it\n11:35:02  ledger-3  landed\x1b[2J\u202e",)
    plain = PlainLines("{levelname} {message}", style="{").format(record)
    assert (
        plain
        == "WARNING two / lines of it / 11:35:02  ledger-3  landed\u27e8U+001B\u27e9[2J\u27e8U+202E\u27e9"
    )


@pytest.mark.django_db
def test_what_the_log_says_of_a_request_names_its_run(
    ledger: Project, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = create_run(create_task(ledger, status="in_progress"), token_hash=token_hash("stx_x"))
    monkeypatch.setattr("agents.api.handins.caller.caller_of", lambda *given: 1 / 0)
    lines: list[dict[str, Any]] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(json.loads(JSONLines().format(record)))

    handler = Keep()
    logging.getLogger("steroidsweb.errors").addHandler(handler)
    try:
        reply = Client(headers={"authorization": "Bearer stx_x"}).post(
            f"/api/v1/tasks/{run.task.ref}/comment/", {"body": "x"}, content_type="application/json"
        )
    finally:
        logging.getLogger("steroidsweb.errors").removeHandler(handler)
    assert reply.status_code == 500
    assert [(line["run"], line["task"]) for line in lines] == [(run.pk, run.task.ref)]
    assert "ZeroDivisionError" in lines[0]["traceback"]
    assert Run.objects.count() == 1
