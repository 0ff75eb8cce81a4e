"""What an address in the environment becomes."""

import os
import pwd
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from steroidsweb import checks
from steroidsweb.env import (
    GONE,
    Forms,
    data_folder,
    database,
    env_address,
    env_bool,
    env_choice,
    env_int,
    env_list,
    env_number,
    env_paths,
    env_rate,
    env_str,
    env_time_zone,
    redis,
    single_sign_on,
)
from tasks.models import Task


def test_a_connection_whose_packets_vanish_has_an_end_on_both_sides() -> None:
    """As they ship, the locks of a host that lost power are held for two hours."""
    here: Any = database("postgres://ann:pw@db.example.org/steroids")["OPTIONS"]
    there = dict(word.split("=") for word in here["options"].split() if word != "-c")
    for side, prefix in ((here, ""), (there, "tcp_")):
        idle, interval, count = (int(side[f"{prefix}keepalives_{word}"]) for word in
                                 ("idle", "interval", "count"))  # fmt: skip
        assert idle + interval * count == GONE
        assert int(side["tcp_user_timeout"]) == GONE * 1000
    assert int(here["connect_timeout"]) < GONE


def test_what_the_address_says_comes_first() -> None:
    asked: Any = database("postgres://ann@/steroids?host=/run/pg&tcp_user_timeout=0&options=&sslmode=require")
    assert asked["HOST"] == "/run/pg"
    assert {name: asked["OPTIONS"][name] for name in ("tcp_user_timeout", "options", "sslmode")} == {
        "tcp_user_timeout": "0", "options": "", "sslmode": "require",
    }  # fmt: skip


def test_a_pooler_that_knows_no_prepared_statements_is_given_none() -> None:
    asked: Any = database("postgres://ann@/steroids?prepare_threshold=")["OPTIONS"]
    assert not {"prepare_threshold", "server_side_binding"} & set(asked)
    with pytest.raises(ImproperlyConfigured, match="prepare_threshold=often"):
        database("postgres://ann@/steroids?prepare_threshold=often")


@pytest.mark.django_db
def test_what_a_connection_asks_often_postgresql_plans_no_more() -> None:
    for number in range(6):
        assert not Task.objects.filter(number=number).exists()
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT statement FROM pg_prepared_statements")
            assert any('"tasks_task"."number" = $' in statement for (statement,) in cursor.fetchall())


def test_a_number_that_is_none_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for word in ("nan", "inf", "-inf", "many", "-1"):
        monkeypatch.setenv("STEROIDS_HOST_SLOTS", word)
        for read in (env_int, env_number):
            with pytest.raises(ImproperlyConfigured, match=f"STEROIDS_HOST_SLOTS='?{word}"):
                read("STEROIDS_HOST_SLOTS", 4)


def test_a_value_that_no_setting_can_have_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    cases: list[tuple[Callable[[str], Any], str, str]] = [
        (lambda name: env_rate(name, ""), "60/min", "often"),
        (lambda name: env_rate(name, ""), "5/sec", "5"),
        (env_time_zone, "Europe/Berlin", "Foo/Bar"), (env_time_zone, "UTC", "/etc/passwd"),
        (env_address, "https://a.example/b", "a.example"), (env_address, "", "ftp://a.example"),
        (lambda name: env_choice(name, "one", ("one", "two")), "two", "three"),
        (lambda name: str(env_int(name, 0, maximum=65_535)), "65535", "65536"),
        (lambda name: str(env_int(name, 0)), "7", "1e300"),
        (lambda name: str(env_number(name, 0)), "0.5", "1e9"),
        (lambda name: env_str(name, "", Forms.LABEL), "host-1.local", "my host"),
        (lambda name: env_str(name, "", Forms.LABEL), "h", "h" * 121),
        (lambda name: env_str(name, "", Forms.SECRET), "a-Token_9=", "two words"),
        *((lambda name, form=form: ",".join(env_list(name, [], form)), good, bad) for form, good, bad in (
            (Forms.OWN_NAME, "a.example,[::1],*,.b.example", "a.example,https://b.example"),
            (Forms.OWN_NAME, "127.0.0.1", "a.example:8000"), (Forms.DOMAIN, "a.example", "a.example,@"),
            (Forms.PROTOCOL, "https,ssh", "https,ext"), (Forms.HOST, "10.0.0.8:8443,*.a.example", "http://a"),
            (Forms.VARIABLE, "PIP_INDEX_URL", "PIP_INDEX_URL=x"), (Forms.LABEL, "gpu,x86_64", "gpu,big one"),
        )),
        (lambda name: ",".join(env_paths(name)), "/tmp,/usr", "/tmp,usr"),
        (lambda name: ",".join(env_paths(name)), "/usr", "/srv/nothing-is-there"),
    ]  # fmt: skip
    for read, good, bad in cases:
        monkeypatch.setenv("NAMED", good)
        assert read("NAMED") == good
        monkeypatch.setenv("NAMED", bad)
        with pytest.raises(ImproperlyConfigured, match="^NAMED(=| holds | is not a token)") as refused:
            read("NAMED")
        assert "two words" not in str(refused.value)  # a secret is not shown
    with pytest.raises(ImproperlyConfigured, match="^REDIS_URL begins with redis://"):
        redis("10.0.0.1:6379")


def test_an_empty_value_counts_as_none_and_any_value_may_be_in_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cases: list[tuple[Callable[[str], Any], Any, str, Any]] = [
        (lambda name: env_str(name, "there"), "there", "here", "here"),
        (lambda name: env_bool(name, True), True, "0", False), (lambda name: env_int(name, 4), 4, "5", 5),
        (lambda name: env_list(name, ["a"]), ["a"], "b, c", ["b", "c"]),
        (lambda name: env_choice(name, "one", ("one", "two")), "one", "two", "two"),
    ]  # fmt: skip
    for read, default, word, value in cases:
        monkeypatch.delenv("NAMED_FILE", raising=False)
        for empty in ("", " "):
            monkeypatch.setenv("NAMED", empty)
            assert read("NAMED") == default
        (tmp_path / "value").write_text(f"{word}\n")
        monkeypatch.setenv("NAMED_FILE", str(tmp_path / "value"))
        assert read("NAMED") == value


def test_a_group_of_a_provider_may_have_commas_and_equals_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ISSUER", "CLIENT_ID", "CLIENT_SECRET"):
        monkeypatch.setenv(f"STEROIDS_OIDC_{name}", "https://id.example")
    monkeypatch.setenv("STEROIDS_OIDC_GROUPS", r"CN=ops\,OU=team=ledger:triager, all=*:viewer")
    provider = single_sign_on()
    assert provider is not None
    assert provider.groups == (("CN=ops,OU=team", "ledger", "triager"), ("all", "*", "viewer"))
    monkeypatch.setenv("STEROIDS_OIDC_GROUPS", "CN=ops,OU=team=ledger:triager")
    with pytest.raises(ImproperlyConfigured, match=r"'CN=ops' is not .* A comma of a group's own is written"):
        single_sign_on()


def test_a_file_that_is_no_database_is_refused_in_a_sentence(tmp_path: Path) -> None:
    made, text, new = tmp_path / "made", tmp_path / "text", tmp_path / "new"
    text.write_text("What I have to buy\n")
    with closing(sqlite3.connect(made)) as rows:
        rows.execute("CREATE TABLE books (title text)")
    for path in (made, new):
        assert database(f"sqlite:///{path}")["NAME"] == str(path)
    for path, why in (
        (text, "is no database of SQLite"), (tmp_path, "is a folder"), (new / "x", "lies in a folder that"),
    ):  # fmt: skip
        with pytest.raises(ImproperlyConfigured, match=f"^DATABASE_URL: {path} {why}"):
            database(f"sqlite:///{path}")


def test_a_data_folder_of_another_user_or_none_is_refused_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert data_folder(tmp_path / "new" / "home").stat().st_mode & 0o777 == 0o700
    (tmp_path / "file").write_text("")
    with pytest.raises(ImproperlyConfigured, match="file cannot be used: File exists"):
        data_folder(tmp_path / "file")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    for owner, name in ((os.getuid(), pwd.getpwuid(os.getuid()).pw_name), (4_000_000, "'#4000000'")):
        monkeypatch.setattr(
            Path, "stat", lambda path, owner=owner: SimpleNamespace(st_uid=owner, st_mode=0o40700)
        )
        with pytest.raises(ImproperlyConfigured, match=f"as that user \\(sudo -u {name} ...\\)"):
            data_folder(tmp_path)


@pytest.mark.parametrize(
    "rest", ["u:p#w@h/x", "u:p/w@h/x", "u:p?w@h/x", "u:p[w@h/x", "u:pw@h:port/x", "u:pw@h"]
)
def test_an_address_of_a_database_that_reads_as_another_is_refused_without_its_password(rest: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="In user and password, write %23 for #") as refused:
        database(f"postgres://{rest}")
    assert rest not in str(refused.value)


def test_a_data_folder_on_a_network_disk_is_told_also_where_it_is_the_mount_point(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mounts = f"rootfs / ext4 rw 0 0\nserver:/share {tmp_path}/data nfs4 rw 0 0\n"
    monkeypatch.setattr(Path, "read_text", lambda path, *more, **words: mounts)
    below = ("data", "data/home", "data-2", "")
    assert [checks._filesystem(tmp_path / name) for name in below] == ["nfs4", "nfs4", "ext4", "ext4"]
