"""A ruling becomes a standing guideline, told to coders and reviewers of its scope until it expires."""

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from agents.prompts.compose import Material, compose
from disputes import rulings
from disputes.models import Guideline
from disputes.models.guideline import GUIDELINE_DAYS
from tasks.models import Event, Project, Task
from tests.disputes.test_opinions import disagreement
from tests.factories import create_run, create_submission, create_task

pytestmark = pytest.mark.django_db

WORDS = "Wait between calls, doubling up to an hour."


def prompt(task: Task, role: str = "coder") -> str:
    about = {"sha": create_submission(task).sha} if role == "reviewer" else {}
    run = create_run(task, role, seat=f"{role} {task.runs.count()}", **about)
    return compose(run, Material(), []).text


def test_a_ruling_becomes_a_guideline_that_prompts_of_its_scope_hold(
    client: Client, ledger: Project, tom: User, vera: User
) -> None:
    conflict = disagreement(ledger)
    rulings.decide(conflict, "other", user=tom, text=WORDS, rationale="Their limits.", undo_seconds=0)
    client.force_login(tom)
    page = client.get(f"/queue/{conflict.dispute.ref}/?conflict={conflict.ref}").content.decode()
    link = re.search(r'href="([^"]*guideline/add/[^"]*)"', page)
    assert link, page
    form = client.get(unescape(link[1])).content.decode()
    assert WORDS in form
    assert f'value="{timezone.now() + timedelta(days=GUIDELINE_DAYS):%Y-%m-%d}"' in form
    decision = conflict.decisions.get()
    sent: dict[str, Any] = {
        "project": ledger.pk, "text": WORDS, "tag": "api", "decision": decision.pk,
        "expires_at_0": "2099-01-01", "expires_at_1": "00:00:00",
    }  # fmt: skip
    assert client.post("/admin/disputes/guideline/add/", sent).status_code == 302
    guideline = Guideline.objects.get()
    assert (guideline.by, guideline.decision, guideline.tag) == (tom, decision, "api")
    assert Event.objects.filter(kind="guideline_added", project=ledger).count() == 1
    assert "A standing guideline" in client.get(f"/queue/{conflict.dispute.ref}/").content.decode()

    line = f"- {WORDS} (ruled on {conflict.ref})"
    tagged, other = create_task(ledger, tags=["api"]), create_task(ledger, tags=["docs"])
    assert line in prompt(tagged)
    assert line in prompt(tagged, "reviewer")
    assert WORDS not in prompt(other)

    # It expires, by itself or because somebody ends it; who only looks on changes nothing.
    Guideline.objects.update(expires_at=timezone.now() - timedelta(minutes=1))
    assert WORDS not in prompt(tagged)
    Guideline.objects.update(expires_at=None, tag="")
    assert WORDS in prompt(other)
    end = {"action": "end_now", "_selected_action": [str(guideline.pk)]}
    client.force_login(vera)
    client.post("/admin/disputes/guideline/", end)
    assert WORDS in prompt(other)
    client.force_login(tom)
    client.post("/admin/disputes/guideline/", end)
    assert WORDS not in prompt(other)


def test_a_guideline_names_no_ruling_of_another_project(client: Client, ledger: Project, tom: User) -> None:
    other = Project.objects.create(slug="other", name="Other", repo_url="/tmp/other.git")
    other.memberships.create(user=tom, role="triager")
    conflict = disagreement(other)
    rulings.decide(conflict, "other", user=tom, text=WORDS, undo_seconds=0)
    client.force_login(tom)
    sent = {"project": ledger.pk, "text": WORDS, "decision": conflict.decisions.get().pk}
    page = client.post("/admin/disputes/guideline/add/", sent)
    assert "This ruling is of another project." in page.content.decode()
    assert not Guideline.objects.exists()
