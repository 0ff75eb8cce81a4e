"""Queries whose text is built once."""

import pytest
from django.db import connection
from django.db.models import BinaryField, Count, Expression, F, QuerySet, Value
from django.test.utils import CaptureQueriesContext

from tasks.models import Project, Task
from tasks.models.prepared import Prepared
from tests.factories import create_project, create_task


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
