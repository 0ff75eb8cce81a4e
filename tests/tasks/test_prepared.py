"""Queries whose text is built once."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.core.exceptions import ObjectDoesNotExist
from django.db import IntegrityError, connection, transaction
from django.db.models import BinaryField, Count, Expression, F, Model, QuerySet, Value
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from disputes.models import Decision
from tasks.database.prepared import Prepared, PreparedForKeys, PreparedInsert, PreparedUpdate, refresh
from tasks.models import Project, Task
from tests.factories import create_project, create_section, create_task, create_user
from tests.filling import fill


def test_it_holds_only_constants_of_the_program(db: None) -> None:
    project = create_project(name="It's 100 % mine")
    found = Prepared(lambda: Project.objects.filter(name="It's 100 % mine").values_list("pk"))
    assert found.rows() == found.rows() == [(project.pk,)]
    with pytest.raises(TypeError, match="no constant"):
        Prepared(lambda: Project.objects.values_list(Value(b"1", BinaryField()))).rows()


def test_it_finds_what_its_query_set_finds_for_whatever_values_are_given(db: None) -> None:
    one, two = create_project(name="One 100 %"), create_project(name="It's two")
    tasks = [
        create_task(one, title="First"),
        create_task(one, title="50 % of it"),
        create_task(two, title="'"),
    ]

    def of(project: Expression, title: Expression) -> QuerySet[Task]:
        wanted = Task.objects.filter(project=project).exclude(title=title).exclude(title="100 %")
        return wanted.select_related("project").prefetch_related("comments").order_by("-pk")

    def counted(status: Expression) -> QuerySet[Task]:
        rows = Task.objects.filter(status=status).order_by("project").values_list("project")
        return rows.annotate(number=Count("pk"), name=F("project__name"))

    question, numbers = Prepared(of), Prepared(counted)
    for project, title in [(one, "First"), (one, "50 % of it"), (two, "First"), (two, "'"), (one, "'")]:
        expected = list(of(Value(project.pk), Value(title)))
        with CaptureQueriesContext(connection) as asked:
            found = question.found(project.pk, title)
            assert [(task, task.project.name, task.title) for task in found] == [
                (task, project.name, task.title) for task in expected
            ]
            assert [len(task.comments.all()) for task in found] == [0] * len(expected)
        assert len(asked) == (2 if expected else 1)
    assert numbers.found("pending") == [(one.pk, 2, one.name), (two.pk, 1, two.name)]
    assert numbers.found("failed") == []
    assert {task.pk for task in tasks} == set(Task.objects.values_list("pk", flat=True))


def test_its_instances_are_those_of_its_query_set(db: None) -> None:
    fill(create_project(), 1, create_user())
    create_task(parent=Task.objects.earliest("pk"))
    questions = [model._base_manager.order_by("pk") for model in apps.get_models()]
    questions += [
        Task.objects.select_related("project", "parent__section").annotate(twice=F("rank") * 2),
        Task.objects.only("title", "project").order_by("-pk"),
        Decision.objects.select_related("conflict__dispute__task"),
    ]
    for rows in questions:
        for made, expected in zip(Prepared(lambda rows=rows: rows, 0).found(), rows, strict=True):
            assert _held(made) == _held(expected)
            assert (made._state.db, made._state.adding) == (expected._state.db, False)
            assert made.get_deferred_fields() == expected.get_deferred_fields()
    with pytest.raises(TypeError, match="no items of ValuesIterable"):
        Prepared(lambda: Task.objects.values("pk")).found()


def _held(row: Any) -> Any:
    """Return the values that an instance holds, with those of the rows that were loaded with it."""
    if not isinstance(row, Model):
        return row
    loaded = {name: _held(value) for name, value in row._state.fields_cache.items()}
    return type(row), {name: value for name, value in vars(row).items() if name != "_state"}, loaded


def test_it_finds_the_rows_of_any_number_of_keys_and_of_a_day(db: None) -> None:
    tasks = [create_task(title=f"Task {number}") for number in range(4)]
    today = timezone.now().date()

    def of(keys: Sequence[Any], title: Any, day: Any) -> QuerySet[Task, Any]:
        found = Task.objects.filter(pk__in=keys, created_at__date__lte=day).exclude(title=title)
        return found.order_by("pk").values_list("pk", flat=True)

    few = PreparedForKeys(of, 3)
    for number in range(5):
        keys = [task.pk for task in tasks[:number]]
        with CaptureQueriesContext(connection) as asked:
            assert few.found(keys, "Task 0", today) == keys[1:]
            assert few.found(keys, "Task 0", today - timedelta(days=2)) == []
        assert len(asked) == (2 if keys else 0)


def test_it_writes_what_an_update_writes_and_only_where_the_rows_are_as_expected(db: None) -> None:
    one, two = create_task(title="First", status="pending"), create_task(title="Second", status="pending")
    later = timezone.now()

    def of(pk: Expression, title: Expression) -> QuerySet[Task]:
        return Task.objects.filter(pk=pk, title=title, status="pending")

    update = PreparedUpdate(
        of, "tags", "not_before", "parent", "section_id", rank=F("rank") + 1, body="100 % of it's done",
        status_at=Now() + timedelta(days=2, milliseconds=500),
    )  # fmt: skip
    for values in (
        {"tags": ["50 %"], "not_before": later, "parent": two, "section_id": two.section_id},
        {"tags": [], "not_before": None, "parent": None, "section_id": one.section_id},
    ):
        rank = Task.objects.get(pk=one.pk).rank
        with CaptureQueriesContext(connection) as asked:
            assert update.write(one.pk, "First", **values) == 1
        assert len(asked) == 1
        kept = Task.objects.get(pk=one.pk)
        assert {name: getattr(kept, name) for name in values} == values
        assert (kept.rank, kept.body) == (rank + 1, "100 % of it's done")
        assert timedelta(days=1) < kept.status_at - later < timedelta(days=3)
        assert update.write(one.pk, "Second", **values) == 0
    with pytest.raises(KeyError):
        update.write(one.pk, "First", tags=[])
    assert Task.objects.get(pk=two.pk).body == ""


def test_it_inserts_what_a_save_inserts(db: None) -> None:
    project = create_project()
    section = create_section(project)
    new = PreparedInsert(Task)
    for number, told in enumerate(
        ({"title": "50 % of it's done", "tags": ["%s"]}, {"body": "x", "round": 3}), 1
    ):
        row, saved = (
            Task(project=project, section=section, number=number + more, rank=number, **told)  # type: ignore[misc]
            for more in (0, 10)
        )
        with CaptureQueriesContext(connection) as asked:
            new.insert(row)
        assert len(asked) == 1
        saved.save()
        assert not row._state.adding
        kept, expected = (Task.objects.filter(pk=each.pk).values().get() for each in (row, saved))
        differing = {name for name, value in kept.items() if value != expected[name]}
        assert differing <= {"id", "number", "created_at", "status_at"}, differing
    with pytest.raises(IntegrityError), transaction.atomic():
        new.insert(Task(project=project, section=section, number=1, rank=1))


def test_it_reads_a_row_anew_and_keeps_what_the_row_still_refers_to(db: None) -> None:
    task, elsewhere = create_task(), create_section()
    known, project = Task.objects.select_related("project", "section").get(pk=task.pk), task.project
    now = timezone.now()
    Task.objects.update(title="Another", status_at=now, tags=["a"], section=elsewhere)
    with CaptureQueriesContext(connection) as asked:
        refresh(known)
        assert (known.title, known.status_at, known.tags) == ("Another", now, ["a"])
        assert known.project == project
    assert len(asked) == 1
    assert known.section == elsewhere
    Task.objects.all().delete()
    with pytest.raises(ObjectDoesNotExist):
        refresh(known)
