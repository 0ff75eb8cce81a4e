"""The cast: Lea leads, Tom triages, Vera views, Otto is an outsider."""

import fcntl
import gc
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import hypothesis
import pytest
from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.management.color import no_style
from django.db import connection, connections, transaction
from django.test import TransactionTestCase

from tasks.database.triggers import no_deletion
from tasks.models import Project
from tests.factories import create_project, create_user

# The same examples everywhere, and no clock: what passes here passes on a loaded machine as well.
# `--hypothesis-profile default` looks for new ones.
hypothesis.settings.register_profile(
    "steady",
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("steady")

# The collected tests and the program are half a million objects that are never garbage. To look through them
# again and again took a third of the collection and a tenth of the run.
gc.set_threshold(100_000, 50, 100)

# Transactional tests empty every table; their rows would not go. Tests of the record put these back.
TAKEN_AWAY = tuple(
    no_deletion(table) for table in ("tasks_event", "steroidsweb_auditentry", "disputes_decision_cites")
)
EMPTY = settings.HOME / "empty.sqlite3"  # every migration, and no row
SKIPPED = 9  # the exit status where tests were skipped that may not be; none of pytest's own


# Files that take long, with their seconds on a busy machine: they begin first, and none of them is left over.
SLOW = {
    "tests/browser/test_axe.py": 155,
    "tests/end_to_end/test_document_rounds.py": 125,
    "tests/end_to_end/hosts/test_zoo.py": 110,
    "tests/end_to_end/hosts/test_chaos.py": 105,
    "tests/end_to_end/hosts/test_partition.py": 95,
    "tests/end_to_end/test_backup.py": 90,
    "tests/end_to_end/test_start.py": 80,
    "tests/steroidsweb/test_access_matrix.py": 75,
    "tests/steroidsweb/test_api_schema_fuzz.py": 75,
    "tests/disputes/test_walks.py": 70,
    "tests/end_to_end/test_published_package.py": 70,
    "tests/end_to_end/test_team_sign_in.py": 70,
    "tests/end_to_end/test_demo.py": 65,
    "tests/agents/providers/test_demo_cassettes.py": 60,
    "tests/end_to_end/test_base_walks.py": 60,
    "tests/browser/test_first_hour.py": 45,
    "tests/browser/test_ruling.py": 45,
    "tests/end_to_end/hosts/test_stopping.py": 45,
    "tests/agents/test_mcp_server.py": 40,
    "tests/browser/test_costs.py": 40,
    "tests/disputes/protocol/test_fuzz_series.py": 40,
    "tests/end_to_end/test_command_agents.py": 40,
    "tests/end_to_end/test_own_project.py": 40,
    "tests/end_to_end/test_provider_trouble.py": 40,
    "tests/browser/test_dispute.py": 35,
    "tests/browser/test_queue.py": 35,
    "tests/end_to_end/hosts/test_redis.py": 35,
    "tests/end_to_end/test_arbitration.py": 35,
    "tests/end_to_end/test_races_over_http.py": 35,
    "tests/steroidsweb/test_admin.py": 35,
    "tests/agents/api/test_handins.py": 30,
    "tests/disputes/test_stage_walks.py": 30,
    "tests/end_to_end/hosts/test_kills.py": 30,
    "tests/end_to_end/test_ladder_walk.py": 30,
    "tests/end_to_end/test_pull_agents.py": 30,
    "tests/browser/test_document_pages.py": 25,
    "tests/browser/test_flags_and_alerts.py": 25,
    "tests/browser/test_precedents.py": 25,
    "tests/browser/test_signed_out.py": 25,
    "tests/browser/test_work.py": 25,
    "tests/end_to_end/test_earlier_version.py": 25,
    "tests/steroidsweb/test_hostile_pages.py": 25,
    "tests/disputes/protocol/test_parser_growth.py": 22,
    "tests/browser/test_notifications.py": 20,
    "tests/browser/test_setup.py": 20,
    "tests/disputes/intake/test_intake.py": 20,
    "tests/disputes/silence/test_silences.py": 20,
    "tests/end_to_end/hosts/test_cluster_alone.py": 20,
    "tests/end_to_end/hosts/test_supervisor.py": 20,
    "tests/agents/hosts/test_landing.py": 18,
    "tests/disputes/completion/test_going_in_circles.py": 18,
    "tests/agents/pull/test_pulling.py": 16,
    "tests/disputes/completion/test_rollbacks.py": 16,
    "tests/disputes/completion/test_rate_alerts.py": 15,
    "tests/disputes/rulings/test_rulings.py": 15,
    "tests/end_to_end/test_stages.py": 15,
    "tests/steroidsweb/test_links.py": 15,
    "tests/test_house.py": 15,
    "tests/disputes/test_disagreement_walkthrough.py": 13,
    "tests/agents/hosts/test_host.py": 12,
    "tests/steroidsweb/test_security.py": 12,
    "tests/test_steady.py": 12,
    "tests/agents/doctor/test_doctor.py": 11,
    "tests/agents/test_way_of_a_hand_in.py": 10,
    "tests/end_to_end/test_caps.py": 10,
    "tests/test_conventions.py": 10,
}
BROWSER = 15  # of each other file of them


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--database-only", action="store_true", help="only tests that depend on the database")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Whoever wants what is marked only need not load files in which no mark is given.

    And whoever wants nothing that is marked need not load files that are marked as a whole.
    """
    if not collection_path.match("test_*.py"):
        return None
    words = config.option.markexpr
    wanted, unwanted = words.split(" or "), words.removeprefix("not ").split(" and not ")
    text = collection_path.read_text(encoding="utf-8")
    if all(map(str.isidentifier, wanted)):
        return None if any(f"mark.{mark}" in text for mark in wanted) else True
    if words.startswith("not ") and all(map(str.isidentifier, unwanted)):
        return True if re.search(rf"^pytestmark = .*\bmark\.({'|'.join(unwanted)})\b", text, re.M) else None
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("database_only"):
        without = [item for item in items if not uses_database(item)]
        config.hook.pytest_deselected(items=without)
        items[:] = [item for item in items if uses_database(item)]

    def weight(item: pytest.Item) -> int:
        path = item.nodeid.partition("::")[0]
        return SLOW.get(path, BROWSER if path.startswith("tests/browser/") else 0)

    items.sort(key=weight, reverse=True)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


def uses_database(item: pytest.Item) -> bool:
    fixtures = getattr(item, "fixturenames", ())
    return (
        item.get_closest_marker("django_db") is not None or "db" in fixtures or "transactional_db" in fixtures
    )


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Where nothing may be missing, a skipped test is a failure of the machine."""
    skipped = terminalreporter.stats.get("skipped", [])
    if skipped and os.environ.get("STEROIDS_NO_SKIPS"):
        terminalreporter.write_line(f"{len(skipped)} tests were skipped, and none may be here.", red=True)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and reporter.stats.get("skipped") and os.environ.get("STEROIDS_NO_SKIPS"):
        session.exitstatus = SKIPPED


def pytest_make_parametrize_id(val: Any) -> str | None:
    """A set has no order of its own; all workers must find the same tests."""
    return "+".join(sorted(map(str, val))) if isinstance(val, set | frozenset) else None


WRITTEN_BY_MIGRATE = {"auth_permission", "django_content_type", "django_migrations", "django_q_schedule"}


def empty_tables(case: TransactionTestCase) -> None:
    """Do what `flush` does after a test that committed, but keep the rows that `migrate` itself writes."""
    for alias in case._databases_names(include_mirrors=False):
        used = connections[alias]
        tables = [name for name in used.introspection.table_names() if name not in WRITTEN_BY_MIGRATE]
        with used.constraint_checks_disabled(), transaction.atomic(using=alias), used.cursor() as cursor:
            if used.vendor == "sqlite":
                for name in tables:
                    cursor.execute(f'DELETE FROM "{name}"')
            else:
                cursor.execute(
                    " UNION ALL ".join(
                        f"SELECT '{name}' WHERE EXISTS (SELECT FROM \"{name}\")" for name in tables
                    )
                )
                # To truncate makes new files, which takes twenty times as long where there are few rows.
                emptied = "".join(f'DELETE FROM "{name}";' for (name,) in cursor.fetchall())
                cursor.execute(f"SET LOCAL session_replication_role = replica; {emptied}")
                kept = [model for model in apps.get_models() if model._meta.db_table in WRITTEN_BY_MIGRATE]
                for counted in used.ops.sequence_reset_sql(no_style(), kept):  # a test may have begun anew
                    cursor.execute(counted)


TransactionTestCase._fixture_teardown = empty_tables  # type: ignore[method-assign]


@dataclass
class Migrated:
    """Where the first of several workers leaves its migrated database; the others wait for it and copy it.

    On PostgreSQL the file only says that there is a template, which has the file's name.
    """

    file: Path
    lock: IO[str]
    is_first: bool

    def leave(self, empty: Path) -> None:
        """Let the next worker go on."""
        if self.is_first and connection.vendor == "sqlite":
            shutil.copyfile(empty, self.file)
        elif self.is_first:
            self._run('CREATE DATABASE "{}" TEMPLATE "{}"', self.file.stem, connection.settings_dict["NAME"])
            self.file.touch()
        fcntl.flock(self.lock, fcntl.LOCK_UN)

    def remove(self) -> None:
        """Whoever still begins then migrates a database of its own."""
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.file.unlink()
        if connection.vendor == "postgresql":
            self._run('DROP DATABASE "{}"', self.file.stem)

    def _run(self, statement: str, *names: str) -> None:
        connection.close()  # nobody may be connected to what is copied
        with connection._nodb_cursor() as cursor:
            cursor.execute(statement.format(*names))


@pytest.fixture(scope="session")
def migrated(django_db_modify_db_settings: None) -> Iterator[Migrated | None]:
    """To migrate takes seconds, so one worker of a run does it. One after the other gets ready."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if not run:
        yield None
        return
    made = settings.HOME.parent / f"migrated-{run}.sqlite3"
    with made.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        is_first = not made.exists()
        if not is_first:
            if connection.vendor == "sqlite":
                shutil.copyfile(made, connection.settings_dict["TEST"]["NAME"])
            else:
                connection.settings_dict["TEST"]["TEMPLATE"] = made.stem
        yield Migrated(made, lock, is_first)


@pytest.fixture(scope="session")
def django_db_keepdb(migrated: Migrated | None) -> bool:
    return connection.vendor == "sqlite" and migrated is not None and not migrated.is_first


@pytest.fixture(scope="session")
def django_db_setup(
    django_db_setup: None, django_db_blocker: Any, migrated: Migrated | None
) -> Iterator[None]:
    """Keep a copy of the empty database, which installations begin with instead of migrating."""
    if connection.vendor == "sqlite":
        with django_db_blocker.unblock():
            EMPTY.unlink(missing_ok=True)
            with connection.cursor() as cursor:
                cursor.execute("VACUUM INTO %s", [str(EMPTY)])
            for trigger in TAKEN_AWAY:
                trigger.remove(connection)
    if migrated:
        with django_db_blocker.unblock():
            migrated.leave(EMPTY)
    yield
    if migrated and migrated.is_first:
        with django_db_blocker.unblock():
            migrated.remove()
    if connection.vendor == "postgresql":  # threads of a live server may still be at it, and hold it up
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )


@pytest.fixture(autouse=True)
def _empty_cache() -> None:
    """What one test left in this process's cache is nothing to the next one."""
    cache.clear()


@pytest.fixture
def as_migrated(db: None) -> Iterator[None]:
    """With every trigger."""
    for trigger in TAKEN_AWAY:
        trigger.install(connection)
    yield
    if connection.vendor == "sqlite":
        for trigger in TAKEN_AWAY:
            trigger.remove(connection)


@pytest.fixture
def lea(db: Any) -> User:
    return create_user("lea", first_name="Lea", last_name="Lindt")


@pytest.fixture
def tom(db: Any) -> User:
    return create_user("tom", first_name="Tom", last_name="Tran")


@pytest.fixture
def vera(db: Any) -> User:
    return create_user("vera")


@pytest.fixture
def otto(db: Any) -> User:
    return create_user("otto")


@pytest.fixture
def ledger(lea: User, tom: User, vera: User) -> Project:
    """A project in which everybody of the cast but Otto has a part."""
    return create_project("ledger", members={lea: "maintainer", tom: "triager", vera: "viewer"})
