"""What the pages say about a project of documents: its rounds, its gaps, and the project itself."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from agents.web.rounds.figures import SessionPage
from disputes import opening, rulings
from disputes.completion import checkpoints
from disputes.models import Opinion
from disputes.web.dispute.asking import ShownOpinion
from disputes.web.work.rollback import RollbackPage
from tasks.models import Checkpoint, Project
from tests.factories import create_project, create_run, create_user
from tests.rounds import document_project, flagged, gap_in, proposal, propose, review, tick, verdict

pytestmark = pytest.mark.django_db

A, B, BACK = "GAP-AUTH-001", "GAP-AUTH-002", "NEEDS_REVISION"


@pytest.fixture
def project() -> Project:
    made = document_project()
    for code in (A, B):
        gap_in(made, code, "high")
    return made


@pytest.fixture(autouse=True)
def reader(client: Client) -> None:
    client.force_login(create_user("lea", is_superuser=True))


def html(client: Client, path: str) -> str:
    reply = client.get(path)
    assert reply.status_code == 200
    return reply.content.decode()


def test_the_project_counts_its_gaps_and_not_the_session_beside_them(
    project: Project, client: Client
) -> None:
    tick(project)

    assert "0 of 2 landed" in html(client, f"/projects/{project.slug}/")


def test_a_gap_shows_its_section_of_the_document_and_no_build(project: Project, client: Client) -> None:
    propose(tick(project), proposal(A, B))
    gap = project.tasks.get(gap=A)

    for page in (html(client, f"/tasks/{gap.ref}/"), html(client, f"/tasks/{gap.ref}/diff/")):
        assert "No diff was kept" not in page
        assert f"The limit of {A} is 30 seconds" in page
        assert f"The limit of {B} is 30 seconds" not in page
    assert "Green" not in html(client, f"/tasks/{gap.ref}/")


def test_the_gate_tells_of_what_was_refused_before_it_was_taken(project: Project, client: Client) -> None:
    session = tick(project)
    create_run(
        session, round=1, status="ended", outcome="handed_in", refusals=2, ended_at=timezone.now(),
        refusal=[{"type": "WRONG_FORMAT", "reason": "no heading", "line": 0, "refs": []}],
    )  # fmt: skip
    propose(session, proposal(A, B))

    page = html(client, f"/projects/{project.slug}/rounds/1/")

    assert "Taken after 2 refusals: " in page
    assert "no heading" in page


def test_a_chart_of_a_single_checkpoint_names_it_once(project: Project) -> None:
    session = tick(project)
    checkpoints.take_checkpoint(project.pk)
    review(propose(session, proposal(A, B)), verdict(BACK, {A: BACK, B: BACK}))
    checkpoints.take_checkpoint(project.pk)

    chart = SessionPage(project).chart

    assert chart is not None
    assert (chart.first, chart.last) == ("checkpoint 1", "")


def test_a_round_says_what_was_accepted_in_it_by_a_ruling_and_after_the_final_review(
    client: Client,
) -> None:
    project = document_project()
    session, card = flagged(project, A)
    session = review(session, verdict("APPROVED", {A: "APPROVED"}))
    assert f"Not settled: {A}." in html(client, f"/projects/{project.slug}/rounds/2/")

    rulings.decide(card, "waive", text="It is answered.", rationale="It is.", user=User.objects.get())
    session = tick(project)
    for shown in ("", "final review"):
        page = html(client, f"/projects/{project.slug}/rounds/2/")
        assert f"Accepted: {A}. " in page
        assert "Not settled" not in page
        assert shown in page
        if not shown:
            session = review(session, verdict("APPROVED", {A: "APPROVED"}))


def test_pages_of_documents_speak_of_an_engineer_and_of_no_build(client: Client) -> None:
    project = document_project()
    gap_in(project, A, "critical")
    session = propose(tick(project), proposal(A))
    session = review(session, verdict(BACK, {A: BACK}, ("ISSUE-R1-001", A, "Midnight is open")))
    card = opening.open_conflict(
        session, kind="disagreement", origin="disagree", opened_as="coder", question="Midnight is open",
        finding=session.findings.get(), submission=session.last_submission(),
    )  # fmt: skip

    task = html(client, f"/tasks/{session.ref}/")
    ruling = html(client, f"/queue/{card.dispute.ref}/")
    back = html(client, f"/tasks/{session.ref}/rollback/")

    assert '<th scope="col">Engineer</th><th scope="col">Checks</th>' in task
    assert "Build, tests" not in task
    assert "the engineer carries it out and may not decline again" in ruling
    assert "next engineer prompt" in ruling
    assert "coder carries" not in ruling
    assert "the next prompt of the engineer says so" in back
    opinion = Opinion(verdict="dismiss", state="given")
    assert ShownOpinion(opinion, project.coder_word).title == "Dismiss: the engineer is right"
    ways = [how for _, how in RollbackPage(session, None).remedies]
    assert "Rule for the engineer on what is open, or finish it by hand." in ways
    queue, insights = "/queue/team/", "/insights/"
    for path in (queue, insights, f"/projects/{project.slug}/board/", f"/queue/{card.dispute.ref}/"):
        shown = html(client, path)
        assert "ngineer" in shown, path
        assert re.findall(r"Coder declined|With the coder|<span>Coder<|By coder", shown) == [], path
        assert "Build, tests" not in shown, path
    assert "Engineer declined" in html(client, queue)
    create_project("code")
    for path, chosen, word in (
        (queue, "", "<span>Coder or engineer<"), (queue, "code", "<span>Coder<"),
        (insights, "", "By coder or engineer"), (insights, "code", "By coder"),
    ):  # fmt: skip
        assert word in html(client, f"{path}?project={chosen}"), (path, chosen)


def test_prose_wraps_and_code_does_not(project: Project, client: Client) -> None:
    session = propose(tick(project), proposal(A, B))
    diff = "diff --git a/{0} b/{0}\n--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-A session ends.\n+It ends at noon.\n"
    session.submissions.update(diff=diff.format("docs/spec.md") + diff.format("check.py"))

    page = html(client, f"/tasks/{session.ref}/diff/")

    assert page.count('<table class="code is-prose">') == 1
    assert page.count('<table class="code">') == 1


def test_the_rounds_of_an_earlier_session_stay_within_reach(project: Project, client: Client) -> None:
    first = review(
        propose(tick(project), proposal(A, B)), verdict("APPROVED", {A: "APPROVED", B: "APPROVED"})
    )
    first = review(first, verdict("APPROVED", {A: "APPROVED"}))
    first.landed("a" * 40)
    gap_in(project, "GAP-AUTH-003", number=first.number + 1)
    second = propose(tick(project), proposal("GAP-AUTH-003"))
    assert second != first
    pages = f"/projects/{project.slug}/rounds/"

    Checkpoint.objects.create(project=project, number=7)
    newest = html(client, pages)
    assert "<dt>Round</dt><dd>1</dd>" in newest
    assert 'data-figure="checkpoint">7 of 10<' in newest, "the limit is of checkpoints, which go on"
    assert f'href="{pages}?session={first.number}"' in newest
    assert '<span data-net="0">' in newest, "what the first round of another session settled is not counted"
    assert f'href="{pages}1/?session={first.number}"' in html(client, f"{pages}?session={first.number}")
    assert f"The limit of {A} is 30 seconds" in html(client, f"{pages}1/?session={first.number}")
    assert f"The limit of {A} is 30 seconds" not in html(client, f"{pages}1/")
    assert client.get(f"{pages}?session=999").status_code == 404
