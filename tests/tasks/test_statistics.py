"""What the database knows of its tables: kept up to date by a job."""

import pytest
from django.db import connection
from django_q.models import Schedule

from tasks.database import statistics
from tests.factories import create_project, create_task


def test_the_job_lets_sqlite_learn_the_sizes_of_its_tables(db: None) -> None:
    if connection.vendor != "sqlite":
        assert statistics.refresh() == "not needed"
        return
    project = create_project()
    for _ in range(60):
        create_task(project)

    assert statistics.refresh() == "looked"
    with connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM sqlite_stat1 WHERE tbl = 'tasks_task'")
        assert cursor.fetchone()[0] > 0


@pytest.mark.django_db
def test_the_job_is_scheduled() -> None:
    assert Schedule.objects.filter(func="tasks.database.statistics.refresh", repeats=-1).count() == 1
