"""The daily sums of the insights: counted once, counted again, and never wrong in between."""

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django_q.models import Schedule

from disputes import tallies
from disputes.models import Conflict, Dispute, Tally
from disputes.models.insights import DAY
from disputes.protocol.rulings.figures import Sums
from tasks.models import Project
from tests.cases import for_each
from tests.disputes.ruled_work import create_day, create_ruling
from tests.factories import create_project

NOW = datetime(2026, 11, 20, 14, 30, tzinfo=UTC)  # a Friday
TODAY = NOW.date()

Row = tuple[int, int, date, str, str, int]


class Clock:
    """The day on which the tallies are asked."""

    day = TODAY


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(tallies, "_today", lambda: clock.day)
    return clock


def days_ago(days: int, hour: int = 12) -> datetime:
    return datetime(NOW.year, NOW.month, NOW.day, hour, tzinfo=UTC) - timedelta(days=days)


def rows() -> Counter[Row]:
    columns = ("project", "span", "day", "measure", "key", "n")
    return Counter(Tally.objects.values_list(*columns))


def counted_in(period: int, *projects: Project) -> Sums:
    return tallies.look([project.pk for project in projects], period).sums


@pytest.fixture
def year(ledger: Project, tom: User) -> Project:
    """Work of today, of this week, of a month ago and of last year."""
    for days in (0, 1, 2, 6, 7, 29, 30, 89, 90, 300):
        create_day(ledger, tom, days_ago(days))
    return ledger


def test_deleting_the_tallies_and_counting_again_gives_the_same(year: Project, tom: User) -> None:
    create_day(create_project("other"), tom, days_ago(3))
    tallies.rebuild()
    before = rows()
    Tally.objects.all().delete()
    tallies.rebuild()

    assert rows() == before
    assert {span for _, span, *_ in before} == {DAY, *tallies.PERIODS}


def test_counting_twice_writes_nothing_the_second_time(year: Project) -> None:
    assert tallies.rebuild() > 0
    assert tallies.rebuild() == 0


def test_counting_from_a_day_on_gives_what_counting_everything_gives(year: Project, tom: User) -> None:
    tallies.rebuild()
    create_ruling(year, tom, days_ago(4))
    tallies.rebuild(since=TODAY - timedelta(days=5))
    some = rows()
    Tally.objects.all().delete()
    tallies.rebuild()

    assert rows() == some


def test_days_that_were_missed_are_counted_too_wherever_one_begins(year: Project, clock: Clock) -> None:
    clock.day = TODAY - timedelta(days=20)
    tallies.rebuild()
    clock.day = TODAY
    tallies.rebuild(since=TODAY - timedelta(days=1))
    after = rows()
    Tally.objects.all().delete()
    tallies.rebuild()

    assert after == rows()


def test_what_is_undone_or_followed_later_changes_its_day(year: Project, tom: User) -> None:
    ruling = create_ruling(year, tom, days_ago(2), followed="waiting")
    tallies.rebuild()
    Conflict.objects.filter(pk=ruling.conflict_id).update(followed="not_honoured")
    tallies.rebuild(since=TODAY - timedelta(days=90))

    assert counted_in(7, year)["followed"]["not_honoured"] == 1
    assert counted_in(7, year)["followed"]["waiting"] == 0


def test_only_rulings_of_people_that_stand_are_counted(ledger: Project, tom: User) -> None:
    kept = create_ruling(ledger, tom, days_ago(1))
    undone = create_ruling(ledger, tom, days_ago(1))
    undone.revoked_at, undone.revoked_by = NOW, tom
    undone.save()
    create_ruling(ledger, tom, days_ago(1), policy_of=tom)
    tallies.rebuild()

    assert counted_in(7, ledger)["ruler"] == {str(kept.user_id): 1}


@for_each("period", tallies.PERIODS)
@for_each("is_counted", [True, False])
def test_a_period_holds_its_days_and_today_whether_counted_before_or_not(
    year: Project, period: int, is_counted: bool
) -> None:
    if is_counted:
        tallies.rebuild()
    found = tallies.look([year.pk], period)

    expected = sum(days < period for days in (0, 1, 2, 6, 7, 29, 30, 89, 90, 300))
    for measure in ("pace", "opened", "answers", "flagged", "rejections", "runs", "trend_opened"):
        assert sum(found.sums[measure].values()) == expected, measure
    assert sum(found.sums["flags"].values()) == 2 * expected
    assert (found.first, found.last) == (TODAY - timedelta(days=period - 1), TODAY)


def test_what_happens_after_the_count_is_seen_at_once(year: Project, tom: User) -> None:
    tallies.rebuild()
    before = counted_in(30, year)["side_coder"].copy()
    create_ruling(year, tom, NOW, option="uphold_coder")

    assert counted_in(30, year)["side_coder"] - before == {"coder|coder-1": 1}


def test_a_project_that_nobody_counted_yet_is_counted_beside_one_that_was(year: Project, tom: User) -> None:
    tallies.rebuild()
    new = create_project("new")
    create_day(new, tom, days_ago(40))
    both = counted_in(90, year, new)

    assert both["pace"].total() == counted_in(90, year)["pace"].total() + 1
    assert counted_in(30, new) == {}


def test_another_projects_rows_are_not_in_the_sums(year: Project, tom: User) -> None:
    other = create_project("other")
    create_day(other, tom, NOW)
    tallies.rebuild()

    assert counted_in(7, other)["pace"].total() == 1
    assert counted_in(7) == {}


def test_days_begin_at_midnight_utc(ledger: Project, tom: User, settings: Any) -> None:
    settings.TIME_ZONE = "Asia/Tokyo"
    create_day(ledger, tom, datetime(2026, 11, 18, 23, 59, 59, tzinfo=UTC))
    create_day(ledger, tom, datetime(2026, 11, 19, 0, 0, 0, tzinfo=UTC))
    tallies.rebuild()

    for measure in ("pace", "flagged", "runs", "rejections"):
        of_days = Tally.objects.filter(span=DAY, measure=measure).values_list("day", "n")
        assert sorted(of_days) == [(date(2026, 11, 18), 1), (date(2026, 11, 19), 1)], measure


def test_the_points_of_a_long_chart_are_weeks_from_monday(year: Project) -> None:
    assert tallies.step_of(TODAY, 90) == date(2026, 11, 16)
    assert tallies.step_of(TODAY, 30) == TODAY
    assert counted_in(90, year)["trend_opened"]["2026-11-16"] == 3


def test_where_counting_stopped_the_period_says_from_when_it_is(year: Project, clock: Clock) -> None:
    clock.day = TODAY - timedelta(days=3)
    tallies.rebuild()
    clock.day = TODAY

    assert tallies.look([year.pk], 30).first == TODAY - timedelta(days=29 + 3)


def test_the_job_counts_what_is_due_and_then_nothing(year: Project, clock: Clock) -> None:
    create_project("other")

    assert tallies.count_days() == "counted 2 projects"
    assert tallies.count_days() == "counted 0 projects"
    clock.day += timedelta(days=1)
    assert tallies.count_days() == "counted 2 projects"


def test_the_job_leaves_for_later_what_it_has_no_time_for(
    year: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_project("other")
    monkeypatch.setattr(tallies, "BUDGET", -1)

    assert tallies.count_days() == "counted 1 project"
    assert tallies.count_days() == "counted 1 project"
    assert tallies.due(TODAY) == []


def test_the_job_is_scheduled(db: None) -> None:
    assert Schedule.objects.filter(func="disputes.tallies.count_days", repeats=-1).count() == 1


def test_the_command_counts_one_project_or_all(year: Project, tom: User, capsys: Any) -> None:
    other = create_project("other")
    create_day(other, tom, days_ago(3))
    call_command("rebuild_tallies", "--project", "ledger", "--since", "2026-11-01")

    assert set(Tally.objects.values_list("project", flat=True)) == {year.pk}
    assert "sums written" in capsys.readouterr().out
    call_command("rebuild_tallies")
    assert set(Tally.objects.values_list("project", flat=True)) == {year.pk, other.pk}


def test_the_command_knows_no_project_of_another_name(db: None) -> None:
    with pytest.raises(CommandError, match="no project nowhere"):
        call_command("rebuild_tallies", "--project", "nowhere")


def test_a_logged_disagreement_is_no_opened_dispute(ledger: Project, tom: User) -> None:
    create_ruling(ledger, tom, days_ago(1))
    Dispute.objects.update(closed_reason="logged")

    assert "opened" not in counted_in(7, ledger)
