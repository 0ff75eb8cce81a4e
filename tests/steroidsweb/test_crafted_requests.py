"""Whatever an address, a query or a form is filled with, the answer is one in words and never an error."""

import json
import re
from collections.abc import Iterator
from http.cookies import SimpleCookie
from itertools import cycle, islice
from typing import Any

import pytest
from django.db import transaction
from django.http import QueryDict

from tests.steroidsweb.silence import Frames
from tests.steroidsweb.test_access_matrix import Caller, Scene, frames, read_table, scene  # noqa: F401

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

# Letters for a number, one that no column holds, NUL, no UTF-8, a digit that is no number; nothing.
CRAFTED = ("abc", "9" * 30, "1%002", "%ff%fe", "%C2%B2", "")
FORM = "application/x-www-form-urlencoded"
# Bodies that are no form and no JSON, or another kind than they say.
BODIES = (
    ("application/json", b"[]"),
    ("application/json", b'"\xff\x00"'),
    ("application/json", b'{"ref": {"a": []}, "items": 7, "conflict": [null], "title": {}, "message": []}'),
    ("multipart/form-data", b"abc"),
    ("multipart/form-data; boundary=b", b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n\xff'),
    (f"{FORM}; charset=nonsense", b"a=%ff"),
    (FORM, b"&".join(b"a=1" for _ in range(1500))),
    (FORM, b"a=" + b"x" * 1_100_000),
)
OF_LISTS = {"p", "o", "q", "e", "page", "limit", "search", "id__in", "project__id__exact", "status__exact"}
ALONE = {"_to_field", "_selected_action"}  # of which any unknown value is refused before all others are read
# The first ends the session; ?format= of the others is the library's.
NOT_ASKED = {"admin/logout/", "api/schema/", "api/docs/"}
PART = re.compile(r"<[^>]*>|\(\?P<\w+>…\)")


class Crafty:
    """Somebody who may do anything, and what goes wrong for them."""

    def __init__(self, scene: Scene, name: str, read: set[str]) -> None:  # noqa: F811
        self.caller, self.read = Caller(scene, name), read
        self.wrong: list[str] = []

    def ask(self, method: str, path: str, data: bytes = b"", kind: str = FORM) -> None:
        """Ask, and take back what it changed."""
        self.caller.client.cookies = SimpleCookie(self.caller.cookies)
        with transaction.atomic():
            response = self.caller.client.generic(method, path, data, kind)
            said = b"".join(response) if response.streaming else response.content
            transaction.set_rollback(True)
        if response.status_code >= 400 and (fault := self.fault(response, said.decode(errors="replace"))):
            self.wrong.append(f"{method} {path[:120]} {kind} {data[:120]!r}: {response.status_code} {fault}")

    def fault(self, response: Any, said: str) -> str:
        if response.status_code >= 500:
            return repr(getattr(response, "exc_info", None))[:300]
        is_json = response["Content-Type"].startswith("application/json")
        has_words = {"message", "error"} & set(json.loads(said)) if is_json else re.search(r"<h1|<main", said)
        return "" if has_words else f"no words: {said[:80]}"

    def craft(self, path: str, method: str, turn: int) -> None:
        """Fill all that the page or the form reads, each with another value."""
        self.read.clear()
        self.ask(method, path, b"_save=1")
        names = sorted((self.read | OF_LISTS) - ALONE)
        for name in ALONE & self.read:
            self.ask(method, f"{path}?{name}=" if method == "GET" else path, f"{name}=".encode())
        values = islice(cycle(CRAFTED), turn % len(CRAFTED), None)
        filled = "&".join(f"{name}={value}" for name, value in zip(names, values, strict=False))
        if method == "GET":
            self.ask(method, f"{path}?{filled}")
        else:
            self.ask(method, path, filled.encode())


def crafted_parts(route: str, path: str, turn: int) -> Iterator[str]:
    """The address with each of its parts that name something filled with a value."""
    named, real = re.sub(r"[$^]", "", f"/{route}").split("/"), path.split("/")
    for place, segment in enumerate(named):
        if PART.search(segment):
            value = CRAFTED[:3][(turn + place) % 3]
            yield "/".join([*real[:place], PART.sub(value, segment), *real[place + 1 :]])


def test_no_crafted_request_is_an_error_or_without_words(
    scene: Scene,  # noqa: F811
    frames: Frames,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: set[str] = set()

    def spied(ask: Any) -> Any:
        def spy(query: Any, key: Any, *args: Any) -> Any:
            if isinstance(key, str):
                read.add(key)
            return ask(query, key, *args)

        return spy

    for name in ("get", "getlist", "__getitem__", "__contains__"):
        monkeypatch.setattr(QueryDict, name, spied(getattr(QueryDict, name)))
    people = {is_api: Crafty(scene, "token" if is_api else "superuser", read) for is_api in (True, False)}
    table = {route: rules for route, rules in read_table().expected().items() if route not in NOT_ASKED}
    asked = [
        (route, method) for route, rules in table.items() for method, rule in rules.items() if rule != "-"
    ]
    for turn, (route, method) in enumerate(asked):  # which spreads the values over the addresses
        crafty, path = people[route.startswith("api/v1")], scene.address(route)
        crafty.craft(path, method, turn)
        if method != "GET":
            kind, body = BODIES[turn % len(BODIES)]
            crafty.ask(method, path, body, kind)
        for crafted in crafted_parts(route, path, turn):
            crafty.ask(method, crafted)
    wrong = [fault for crafty in people.values() for fault in crafty.wrong]
    assert not wrong, "\n" + "\n".join(wrong)
