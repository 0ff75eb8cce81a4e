"""What run_orchestrator says on the terminal while it works."""

import pytest

from agents.setup import event_lines
from agents.setup.event_lines import EventLines
from tasks.events import Actor
from tasks.models import Event, Project
from tasks.models.event import record
from tests.factories import create_task

pytestmark = pytest.mark.django_db


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def news(said: list[str], ledger: Project) -> EventLines:
    record(ledger, "long_ago")
    return EventLines(said.append)


def test_each_event_is_said_once_and_those_before_the_start_are_not(
    news: EventLines, said: list[str], ledger: Project
) -> None:
    task = create_task(ledger, number=7)
    for _ in range(2):
        news()
    record(
        ledger,
        "submit",
        task=task,
        actor=Actor("run", "coder-1"),
        old="in_progress",
        new="review",
        note="done",
    )
    record(ledger, "checkpoint")
    for _ in range(2):
        news()
    assert [line.split("  ", 1)[1] for line in said] == [
        "ledger-7  submit: in progress → review, coder-1: done",
        "ledger  checkpoint, System",
    ]


def test_a_hostile_text_stays_one_short_line(news: EventLines, said: list[str], ledger: Project) -> None:
    note = "fine\r\n10:00:00  ledger-1  ruled, Lea\x1b[2J\x1b]0;owned\x07\u202e" + "x" * 5000
    record(ledger, "blocked", actor=Actor("run", "coder\x1b[1A"), note=note)
    news()
    [line] = said
    assert line.isprintable()
    assert len(line) == event_lines.LINE_MAX
    assert "ledger  blocked, coder: fine 10:00:00 ledger-1 ruled, Lea" in line


def test_a_flood_is_said_over_several_turns_and_a_late_number_is_not_lost(
    news: EventLines, said: list[str], ledger: Project, django_assert_num_queries: object
) -> None:
    late = record(ledger, "late")
    rows = [Event(project=ledger, kind="more", actor_kind="system", label="System") for _ in range(70)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(event_lines, "AT_ONCE", 30)
        news.said.add(late.pk)  # as if it were not committed yet
        Event.objects.bulk_create(rows)
        counts = []
        for _ in range(4):
            with django_assert_num_queries(1):  # type: ignore[operator]
                news()
            counts.append(len(said))
    assert counts == [30, 60, 70, 70]
    news.said.discard(late.pk)
    news()
    assert said[-1].endswith("late, System")


def test_a_terminal_that_went_away_ends_nothing(ledger: Project) -> None:
    def broken(text: str) -> None:
        raise BrokenPipeError

    news = EventLines(broken)
    record(ledger, "one")
    record(ledger, "two")
    news()
    news()
