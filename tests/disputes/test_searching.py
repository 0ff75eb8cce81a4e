"""What a search of the queue finds, and that it reads the disputes alone."""

import pytest
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.test import Client, RequestFactory
from django.urls import reverse

from disputes import opening
from disputes.models import Conflict, Dispute
from disputes.web.queue import listing
from disputes.web.queue.filters import QueueFilter
from tasks.events import Actor
from tasks.models import Project
from tasks.todo.exporting import export_todo
from tasks.todo.importing import import_todo
from tests.asking import as_user
from tests.factories import create_finding, create_review, create_submission, create_task

pytestmark = pytest.mark.django_db


def dispute(project: Project, question: str = "Back off, or not?", **kwargs: str) -> Conflict:
    """An open conflict over a finding."""
    submission = create_submission(create_task(project, status="disputed", round=1, title="Retry calls"))
    return opening.open_conflict(
        submission.task, kind="disagreement", origin="disagree", opened_as="coder", question=question,
        finding=create_finding(create_review(submission)), submission=submission, severity="high",
        reviewer_position="Wait longer.", coder_position="The limiter bounds it.", **kwargs,
    )  # fmt: skip


def found(user: User, words: str, tab: listing.Tab = listing.MINE) -> list[str]:
    return [row.question for row in searched(user, words, tab)]


def searched(user: User, words: str, tab: listing.Tab = listing.MINE) -> QuerySet[Dispute]:
    request = RequestFactory().get("/queue/", {"q": words})
    request.user = user
    return QueueFilter(request.GET, listing.disputes_in(tab, user), request).qs


def test_small_and_large_letters_are_the_same_in_any_language(ledger: Project, tom: User) -> None:
    dispute(ledger, "Größe der ÜBERGABE?")
    assert found(tom, "übergabe") == found(tom, "GRÖSSE") == ["Größe der ÜBERGABE?"]


def test_signs_of_patterns_stand_for_themselves(ledger: Project, tom: User) -> None:
    dispute(ledger, "Is 100% of it a_b?")
    assert len(found(tom, "100%")) == len(found(tom, "a_b")) == 1
    assert found(tom, "10%of") == found(tom, "a?b") == []


def test_a_conflict_that_is_only_logged_is_found_too(ledger: Project, tom: User) -> None:
    dispute(ledger, "Tabs or spaces?", effect="log")
    assert found(tom, "spaces", listing.SETTLED) == ["Tabs or spaces?"]


def test_another_title_is_found_however_it_was_written(
    client: Client, ledger: Project, tom: User, admin_user: User
) -> None:
    task = dispute(ledger).task
    text = export_todo(ledger).replace("Retry calls", "Ask again")
    import_todo(ledger, text, actor=Actor.person(admin_user))
    assert (len(found(tom, "ask again")), len(found(tom, "retry"))) == (1, 0)

    sent = {
        "title": "Give up", "body": "", "source": "", "tags": "", "severity": "high", "rank": 1,
        "section": task.section_id, "dependencies-TOTAL_FORMS": 0, "dependencies-INITIAL_FORMS": 0,
    }  # fmt: skip
    as_user(client, admin_user).post(reverse("admin:tasks_task_change", args=[task.pk]), sent)
    assert (len(found(tom, "give up")), len(found(tom, "ask again"))) == (1, 0)


def test_a_search_asks_no_other_table_for_its_words(ledger: Project, tom: User, admin_user: User) -> None:
    """Read behind each row, titles and findings were most of it."""
    asked = str(searched(admin_user, "ledger-7").query)
    assert [name for name in ("conflict", "finding", "review") if f'_{name}"' in asked] == []
    assert " JOIN " not in asked.partition("WHERE")[0]
