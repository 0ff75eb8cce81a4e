"""Every address, asked in every way by every kind of caller, gets what access.txt says and nothing else."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from agents.models import Agent, Host, Prompt, ProviderPause, Run, Token, new_token, token_hash
from disputes.models import Amendment, Bulk, Channel, Decision, Delivery, Dispute, Opinion, SavedView
from steroidsweb.accounts import invitations
from steroidsweb.models import Invitation, SignedIn
from tasks.models import Comment, Project, Section, Submission, Task
from tests.factories import create_agent, create_project, create_run, create_task, create_token, create_user
from tests.filling import fill
from tests.hostile import Filler
from tests.steroidsweb.silence import Frames, framed, silent

pytestmark = pytest.mark.django_db

TABLE = Path(__file__).with_name("access.txt")
CALLERS = (
    "nobody", "outsider", "viewer", "triager", "maintainer", "superuser",
    "token", "coder", "reviewer", "judge", "mediator", "agent", "pulled", "dead",
)  # fmt: skip
SESSIONS = {"outsider": "otto", "viewer": "vera", "triager": "tom", "maintainer": "lea", "superuser": "root"}
# The roles of runs that get a token, and the one that gets none: a verifier runs the project's commands only.
RUNS_WITH_TOKEN, RUNS_WITHOUT = {"coder", "reviewer", "judge", "mediator"}, {"verifier"}
PAGE_METHODS, API_METHODS = ("GET", "POST"), ("GET", "POST", "PUT", "PATCH", "DELETE")
REFUSALS = {401: "401", 403: "403", 404: "404", 405: "-"}


# --- The table ----------------------------------------------------------------------------------------------


@dataclass
class Table:
    """access.txt: what each caller gets by a rule, and by which rule each address answers."""

    rules: dict[str, dict[str, str]] = field(default_factory=dict)
    models: dict[str, dict[str, str]] = field(default_factory=dict)
    routes: dict[str, dict[str, str]] = field(default_factory=dict)

    def expected(self) -> dict[str, dict[str, str]]:
        """The rule of each address by its method; those of the admin's models written out."""
        found = dict(self.routes)
        for label, rule in self.models.items():
            base, row = f"admin/{label.replace('.', '/')}/", "<path:object_id>/"
            found[base] = {"GET": rule["list"], "POST": rule["list"]}
            found[f"{base}add/"] = {"GET": rule["add"], "POST": rule["add"]}
            found[f"{base}{row}change/"] = {"GET": rule["page"], "POST": rule["save"]}
            found[f"{base}{row}delete/"] = {"GET": rule["delete"], "POST": rule["delete"]}
            found[f"{base}{row}history/"] = {"GET": rule["page"], "POST": rule["page"]}
            found[f"{base}{row}"] = {"GET": "staff", "POST": "staff"}  # goes on to the page, which then asks
        return found


def read_table() -> Table:
    table, part = Table(), ""
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        words = line.partition("#")[0].replace("|", " ").split()
        if not words:
            continue
        if words[0].startswith("["):
            part = words[0].strip("[]")
        elif part == "rules":
            table.rules[words[0]] = dict(zip(CALLERS, words[1:], strict=True))
        elif part == "admin":
            table.models[words[0]] = dict(
                zip(("list", "add", "page", "save", "delete"), words[1:], strict=True)
            )
        else:
            methods = zip(API_METHODS if len(words) > 3 else PAGE_METHODS, words[1:], strict=True)
            table.routes["" if words[0] == "(empty)" else words[0]] = dict(methods)
    return table


# --- The site -----------------------------------------------------------------------------------------------


def routes(resolver: URLResolver, prefix: str = "") -> Iterator[str]:
    """The addresses of the site as its URLconf writes them; what a group takes is shortened to `…`."""
    for pattern in resolver.url_patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLPattern):
            yield re.sub(r"(\(\?P<\w+>)(?!\.\*)[^)]*\)", r"\1…)", path)
        else:
            yield from routes(pattern, path)


@dataclass
class Scene:
    """One project with a row of everything, and those who ask."""

    task: Task
    dispute: Dispute
    tokens: dict[str, str]

    def address(self, route: str) -> str:
        """The route with the names of rows that exist."""
        path = route.replace("^", "").replace("$", "").replace("/(?P<url>.*)", "/nothing/")
        path = path.replace("<path:content_type_id>/<path:object_id>", "1/1").replace(
            "<path:path>", "nothing/"
        )
        named = {"app_label": "tasks", "slug": self.task.project.slug, "ref": self.task.ref, "number": "1"}
        named["name"] = Host.objects.latest("pk").name
        named["signed"] = invitations.link(Invitation.objects.latest("pk"), "").split("/")[-2]
        if path.startswith("api/v1/disputes/"):
            named["ref"] = self.dispute.ref
        if row := self.row(path):
            named |= {"pk": str(row.pk), "object_id": str(row.pk), "id": str(row.pk)}
        return "/" + re.sub(r"<(?:\w+:)?(\w+)>|\(\?P<(\w+)>…\)", lambda word: named[word[1] or word[2]], path)

    def row(self, path: str) -> Any:
        """Which row a number in the address means: the admin's models have their own, else see ROWS."""
        if model := re.match(r"admin/(\w+)/(\w+)/<", path):
            return apps.get_model(model[1], model[2])._default_manager.order_by("pk").first()
        if path.startswith("api/v1/pull/"):
            return Run.objects.live().filter(is_pulled=True).first()
        if path.startswith("api/v1/runs/"):
            return Run.objects.order_by("pk").first()
        if path.startswith("api/v1/amendments/"):
            return Amendment.objects.order_by("pk").first()
        if path.startswith("api/v1/disputed-work/"):
            return Submission.objects.exclude(aside_branch="").first()
        before = re.match(r"(.*?)-?/?<int:pk>", path)
        return ROWS[before[1]].objects.order_by("pk").first() if before else None


ROWS: dict[str, Any] = {
    "queue/D": Dispute, "queue/d": Dispute, "queue/decisions": Decision, "queue/amendments": Amendment,
    "queue/views": SavedView, "queue/bulk": Bulk,
    "tasks/<str:ref>/rulings": Decision, "runs": Run, "comments": Comment, "accounts": ProviderPause,
    "notifications": Channel, "notifications/deliveries": Delivery, "sessions": SignedIn,
}  # fmt: skip


@pytest.fixture
def scene(ledger: Project, lea: User, tom: User, otto: User) -> Scene:
    create_user("root", is_superuser=True)
    Client().force_login(tom)
    fill(ledger, 1, tom)
    create_task(create_project("other", members={otto: "maintainer"}))
    dispute = Dispute.objects.get()
    coder = Agent.objects.create(name="paused-coder", role="coder", provider="codex")
    coder.projects.set([ledger])
    ProviderPause.objects.all().delete()
    ProviderPause.objects.create(name="codex", kind="quota", until=timezone.now() + timedelta(hours=1))
    dead = {"status": Run.Status.ENDED, "ended_at": timezone.now()}
    Run.objects.update(**dead)
    tokens = {name: new_token() for name in ("dead", *sorted(RUNS_WITH_TOKEN))}
    create_run(dispute.task, "coder", spent_hash=token_hash(tokens["dead"]), **dead)
    for role in RUNS_WITH_TOKEN:
        run = create_run(dispute.task, role, token_hash=token_hash(tokens[role]))
        if role in Run.OPINION_ROLES:
            run.opinion = Opinion.objects.create(conflict=dispute.conflicts.first(), kind=role)
            run.save(update_fields=["opinion"])
    elsewhere = create_agent("coder", provider="pull", settings={})
    tokens |= {"token": create_token(tom, "laptop")[1], "agent": Token.mint_for(elsewhere, "far")[1]}
    tokens["pulled"] = new_token()
    pulled = create_run(
        dispute.task,
        "coder",
        seat="coder, elsewhere",
        is_pulled=True,
        token_hash=token_hash(tokens["pulled"]),
    )
    Prompt.objects.create(run=pulled, text="Round up.")
    return Scene(dispute.task, dispute, tokens)


class Caller:
    """One of CALLERS."""

    def __init__(self, scene: Scene, name: str) -> None:
        self.client = Client(raise_request_exception=False)
        if name in SESSIONS:
            self.client.force_login(User.objects.get(username=SESSIONS[name]))
        elif name in scene.tokens:
            self.client.defaults["HTTP_AUTHORIZATION"] = f"Bearer {scene.tokens[name]}"
        self.cookies = {key: morsel.value for key, morsel in self.client.cookies.items()}

    def asks(self, method: str, path: str) -> str:
        """What the caller gets, in the words of the table. Whatever it changed is taken back."""
        with transaction.atomic():
            got = self.gets(method, path)
            transaction.set_rollback(True)
        return got

    def gets(self, method: str, path: str) -> str:
        """What the caller gets where nothing can be changed."""
        self.client.cookies = SimpleCookie(self.cookies)  # the last answer may have ended the session
        form = {"content_type": "application/json"} if path.startswith("/api/") else {}
        ask = self.client.post if method == "POST" else partial(self.client.generic, method)
        response = ask(path, **form)
        if response.status_code in {301, 302} and response["Location"].startswith("/admin/login/"):
            return "login"
        status = response.status_code
        return REFUSALS.get(status, "in" if status < 500 else f"an error {status}")


# --- The tests ----------------------------------------------------------------------------------------------


def test_every_address_is_listed_and_nothing_else_is() -> None:
    site, table = set(routes(get_resolver())), set(read_table().expected())

    assert sorted(site - table) == [], "not in access.txt: say who may open it"
    assert sorted(table - site) == [], "in access.txt, but not of the site"


def test_every_model_of_the_admin_is_listed() -> None:
    assert {model._meta.label_lower for model in admin.site._registry} == set(read_table().models)


def test_no_kind_of_token_is_left_out() -> None:
    assert set(Run.Role.values) == RUNS_WITH_TOKEN | RUNS_WITHOUT
    keepers = {
        model.__name__
        for model in apps.get_models()
        if {"token_hash", "hash"} & {column.name for column in model._meta.concrete_fields}
    }
    keepers.remove("PromptText")  # the hash of a text
    assert keepers == {"Run", "Token"}, "another kind of token: give it a column in access.txt"


@pytest.fixture(name="silent")
def make_silent() -> Iterator[Frames]:
    with silent() as frames:
        yield frames


@pytest.fixture
def frames() -> Iterator[Frames]:
    with framed() as frames:
        yield frames


# Kinds of tokens differ only where tokens are taken, and pages take none: two of them have to try.
TRY_PAGES = {"token", "coder"}


@pytest.mark.slow
def test_everybody_gets_what_the_table_says(scene: Scene, silent: Frames) -> None:
    table, wrong = read_table(), []
    addresses = {route: scene.address(route) for route in table.expected()}
    for name in CALLERS:
        caller = Caller(scene, name)
        may_skip = name in scene.tokens and name not in TRY_PAGES
        for route, rules in table.expected().items():
            if may_skip and not route.startswith("api/"):
                continue
            for method, rule in rules.items():
                wanted = "-" if rule == "-" else table.rules[rule][name]
                got = caller.asks(method, addresses[route])
                if got != wanted and not (wanted == "-" and got in {"login", *REFUSALS.values()}):
                    wrong.append(f"{method} {route}: {name} gets {got}, not {wanted} ({rule})")
    assert not wrong, "\n" + "\n".join(wrong)


def test_no_other_method_gets_anybody_in(scene: Scene, silent: Frames) -> None:
    table, wrong = read_table().expected(), []
    addresses = {route: scene.address(route) for route in table}
    for name in ("nobody", "superuser", "coder"):
        caller = Caller(scene, name)
        for route, rules in table.items():
            for method in {"PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} - set(rules):
                if (got := caller.gets(method, addresses[route])) not in {"login", *REFUSALS.values()}:
                    wrong.append(f"{method} {route}: {name} gets {got}")
    assert not wrong, "\n" + "\n".join(wrong)


@contextmanager
def unwritable() -> Iterator[None]:
    """A full disk, a broken one, a database that another one stands in for: it reads, and takes nothing."""
    is_sqlite = connection.vendor == "sqlite"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("PRAGMA query_only=1" if is_sqlite else "SET TRANSACTION READ ONLY")
        yield
        if is_sqlite:
            cursor.execute("PRAGMA query_only=0")
        else:
            transaction.set_rollback(True)


def test_whoever_may_read_reads_while_nothing_can_be_written(scene: Scene, silent: Frames) -> None:
    Token.objects.update(used_at=None)
    table, wrong = read_table(), []
    addresses = {
        scene.address(route): table.rules[rules["GET"]]
        for route, rules in table.expected().items()
        if rules["GET"] not in {"-", "leave"}
    }
    for name in ("superuser", "token", "coder", "agent", "pulled", "dead"):
        caller = Caller(scene, name)
        for path, rule in sorted(addresses.items()):
            if name in scene.tokens and not path.startswith("/api/"):
                continue  # pages look at no token
            with unwritable():
                got = caller.gets("GET", path)
            if got != rule[name]:
                wrong.append(f"{path}: {name} gets {got}, not {rule[name]}")
        silent.clear()
    assert not wrong, "\n" + "\n".join(wrong)
    assert not Token.objects.exclude(used_at=None).exists()


# --- What lists, searches, choices and exports tell ---------------------------------------------------------

SECRET, BEGINNING = "Zebrafish", "Zebra"  # what is searched for is told back in the search's own field
ASKED = (
    f"q={BEGINNING}",
    f"search={BEGINNING}",
    f"s={BEGINNING}&extended=1",
    "project=ledger",
    "of=ledger",
)


def choices() -> list[str]:
    """The addresses at which forms look for rows to point at."""
    return [
        f"/admin/autocomplete/?term={BEGINNING}&app_label={model._meta.app_label}"
        f"&model_name={model._meta.model_name}&field_name={name}"
        for model, its_admin in admin.site._registry.items()
        for name in its_admin.get_autocomplete_fields(None)  # type: ignore[arg-type]
    ]


@pytest.mark.slow
def test_who_is_no_member_reads_no_word_of_a_project(scene: Scene, otto: User, frames: Frames) -> None:
    other = Project.objects.get(slug="other")
    own = [
        otto,
        other,
        *Host.objects.all(),
        *Section.objects.filter(project=other),
        *Task.objects.filter(project=other),
    ]
    Filler([SECRET]).fill()
    for row in own:
        row.save()  # with the words that it had; the dashboard tells everybody which hosts are up
    caller = Caller(scene, "outsider")
    lists = [
        scene.address(route)
        for route, rules in read_table().expected().items()
        if rules["GET"] != "-" and "<str:signed>" not in route  # who has the link was told by whoever invites
    ]
    leaks = []

    def is_told(path: str) -> bool:
        """Whether the caller gets an answer there at all; what it must not say is noted."""
        caller.client.cookies = SimpleCookie(caller.cookies)
        response = caller.client.get(path)
        told = response.content.decode(errors="replace")
        assert response.status_code < 500, path
        if response.status_code >= 400:
            return False
        if SECRET in told:
            around = told.find(SECRET)
            leaks.append(f"{path}: …{' '.join(told[around - 80 : around + 40].split())}…")
        return True

    for path in choices():
        is_told(path)
    for path in lists:  # who is refused without a word is asked with all words at once
        for query in ASKED if is_told(path) else ["&".join(ASKED)]:
            is_told(f"{path}?{query}")
    assert not leaks, "\n" + "\n".join(leaks)


def test_a_member_finds_the_words_that_others_are_not_told(scene: Scene) -> None:
    caller = Caller(scene, "viewer")
    Filler([SECRET]).fill()
    told = {
        path: SECRET in caller.client.get(path).content.decode()
        for path in (
            "/queue/team/",
            f"/admin/tasks/task/?q={BEGINNING}",
            f"/api/v1/tasks/?search={BEGINNING}",
            "/runs/",
        )
    }
    assert all(told.values()), told
