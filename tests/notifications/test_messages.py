"""The words of a message: short, on one line, harmless in a chat and in the head of a mail."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from disputes import rulings
from disputes.models import Decision
from disputes.notifications.messages import (
    LINE_MAX,
    SUBJECT_MAX,
    Message,
    line,
    message_of,
    payload,
    together,
)
from disputes.notifications.subjects import subject_of
from tasks.events import Actor
from tasks.models import Event, Project
from tasks.models.event import record
from tests.cases import for_each
from tests.notifications.conftest import open_card

pytestmark = pytest.mark.django_db

HOSTILE = [
    "Ok?\r\nBcc: everybody@example.org\r\n\r\nBuy",
    "@channel @here @everyone <!channel> <@U024BE7LH> @**all**",
    "[Approve](https://evil.example/approve) <https://evil.example|Approve>",
    "`code` \u202egnp.exe \x1b[31mred \x00 \u2028next",
    "x" * 100_000,
]


@for_each("text", HOSTILE, ids=lambda text: text[:12])
def test_a_line_calls_nobody_links_nowhere_and_stays_one_line(text: str) -> None:
    told = line(text)
    assert len(told) <= LINE_MAX
    assert told.isprintable()
    assert not set(told) & set("@<>`\\")
    assert "://" not in told
    assert "](" not in told


@for_each("text", HOSTILE, ids=lambda text: text[:12])
def test_a_hostile_question_harms_neither_subject_nor_body(ledger: Project, text: str) -> None:
    open_card(ledger, text.replace("\0", "")[:500])  # PostgreSQL takes none
    message = message_of(subject_of(Event.objects.get(kind="conflict_opened")))
    assert len(message.subject) <= SUBJECT_MAX
    assert message.subject.isprintable()
    assert message.subject.startswith("[ledger] Disagreement waits for a ruling: ")
    assert not set(message.body) & set("@<>`\r")


def test_a_message_says_what_where_and_how_grave_and_leads_to_the_card(
    ledger: Project, settings: Any
) -> None:
    settings.URL = "https://steroids.example.org"
    conflict = open_card(ledger, "Wait or not?")
    message = message_of(subject_of(Event.objects.get(kind="conflict_opened")))
    assert message.lines == (
        "Disagreement waits for a ruling: Wait or not?",
        f"High, {conflict.dispute.ref}, {conflict.task.ref} Call politely",
    )
    assert message.url == (
        f"https://steroids.example.org/queue/{conflict.dispute.ref}/?conflict={conflict.ref}"
    )


def test_without_an_address_of_ours_there_is_no_link(ledger: Project) -> None:
    open_card(ledger)
    assert message_of(subject_of(Event.objects.get(kind="conflict_opened"))).url == ""


def test_a_reopened_ruling_says_so(ledger: Project, tom: User) -> None:
    conflict = open_card(ledger, "Wait or not?")
    rulings.decide(conflict, "uphold_reviewer", user=tom)
    rulings.reopen(Decision.objects.get(), user=tom, reason="It was wrong.")
    newest = Event.objects.filter(kind="conflict_opened").order_by("-pk")[0]
    subject = subject_of(newest)
    assert subject.topic == "reopened"
    assert message_of(subject).lines[0] == "A ruling was reopened: Wait or not?"


def test_who_is_mentioned_reads_so_and_what_was_said(ledger: Project, vera: User) -> None:
    dispute = open_card(ledger, "Wait or not?").dispute
    data = {"comment": 1, "mentions": [vera.pk], "dispute": dispute.ref}
    event = record(
        ledger, "commented", actor=Actor("person", "Tom Tran"), task=dispute.task, note="@vera?", data=data
    )
    subject = subject_of(event)
    assert message_of(subject, "mentioned").lines[:2] == (
        "Tom Tran mentioned you: Wait or not?",
        "“\uff20vera?”",
    )
    assert message_of(subject, "commented").subject == "[ledger] Tom Tran commented: Wait or not?"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("trouble", "Its repository cannot be reached: Ledger."),
        ("round_limit", "The limit of checkpoints is reached: Ledger."),
        ("project_ended", "The project has ended: Ledger."),
    ],
)
def test_an_event_of_a_whole_project_names_it(ledger: Project, kind: str, words: str) -> None:
    assert message_of(subject_of(record(ledger, kind))).lines == (words,)
    ledger.name = "Shall we?"
    assert message_of(subject_of(record(ledger, kind))).lines[0].endswith(": Shall we?")


def test_many_messages_become_one_with_an_end() -> None:
    many = [Message(f"No. {number}", (f"Number {number}", "High"), "") for number in range(60)]
    message = together(many)
    assert message.subject == "60 messages from Steroids Web"
    assert message.lines[:3] == ("1. Number 0", "   High", "2. Number 1")
    assert message.lines[-1] == "And 20 more."
    assert together(many[:1]) == many[0]


def test_machines_read_the_same_as_json(ledger: Project) -> None:
    conflict = open_card(ledger, "Wait\x1b or not?")
    told = payload(subject_of(Event.objects.get(kind="conflict_opened")), "an-id")
    assert told["id"] == "an-id"
    assert told["type"] == "opened"
    assert told["data"] | {"event": 0} == {
        "event": 0, "kind": "conflict_opened", "project": "ledger", "task": conflict.task.ref,
        "dispute": conflict.dispute.ref, "conflict": conflict.ref, "severity": "high",
        "question": "Wait or not?", "actor": {"kind": "system", "name": "System"}, "note": "Wait or not?",
        "url": None,
    }  # fmt: skip
