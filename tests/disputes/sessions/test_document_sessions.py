"""Rounds about documents in rows: partial rounds, gaps that nobody looked at, the final review, rollbacks."""

import pytest
from django.test import Client
from django.urls import reverse

from disputes import amendments, intake, opening, records, rulings
from disputes.completion import rollbacks
from disputes.models import Amendment, Conflict, Flag
from disputes.protocol.rounds.examples import Earlier, score
from disputes.protocol.rounds.validation import FailureType, Form
from disputes.rulings import offers
from disputes.sessions import gaps, handing_in, repair
from tasks import hooks
from tasks.adding import add_task
from tasks.errors import Refused
from tasks.events import SYSTEM, Actor
from tasks.models import Landing, Project, Task
from tests.cases import for_each
from tests.factories import create_user
from tests.rounds import document_project, flagged, gap_in, proposal, propose, review, tick, verdict

pytestmark = pytest.mark.django_db

A, B, C, D = "GAP-AUTH-001", "GAP-AUTH-002", "GAP-AUTH-003", "GAP-AUTH-004"
BACK, FINE = "NEEDS_REVISION", "APPROVED"


@pytest.fixture
def project() -> Project:
    made = document_project(settings={"gaps_per_round": 2})
    for code, severity in ((A, "low"), (B, "critical"), (C, "high")):
        gap_in(made, code, severity)
    return made


def states(project: Project) -> dict[str, str]:
    rows = gaps.with_facts(project.tasks.gaps()).order_by("rank")
    return {gap.gap: str(gaps.state_of(gap)) for gap in rows}


def test_the_gravest_gaps_are_given_out_first_and_nothing_is_left_for_a_coder_of_code(
    project: Project,
) -> None:
    session = tick(project)

    assert states(project) == {A: "OPEN", B: "IN_PROGRESS", C: "IN_PROGRESS"}
    assert (session.status, session.round, session.is_session) == ("in_progress", 1, True)
    assert list(Task.objects.startable()) == [session]
    tick(project)
    assert project.tasks.filter(origin="rounds").count() == 1


def test_a_gap_says_where_it_stands_in_its_session(project: Project) -> None:
    propose(tick(project), proposal(B, more=f"BLOCKED_NEEDS_INPUT: {C} the law"))

    lines = {
        gap.gap: hooks.waiting_line(gap) for gap in project.tasks.gaps().select_related("project", "section")
    }

    assert lines[A] == "Waits to be given out in a round of its session."
    assert lines[B] == "Proposed in round 1: its review is still to come."
    assert lines[C].startswith("D-")


def line_of(task: Task) -> str:
    return hooks.waiting_line(Task.objects.select_related("project", "section").get(pk=task.pk))


def test_a_gap_and_its_session_say_what_they_wait_for_once_nothing_is_left_to_write() -> None:
    project = document_project()
    session, card = flagged(project, A)
    gap = project.tasks.get(gap=A)
    assert line_of(gap) == "Proposed in round 2: its review is still to come."
    session = review(session, verdict(FINE, {A: FINE}))

    ref = f"D-{card.dispute_id}"
    assert line_of(session).startswith(
        f"Nothing is left to write; {ref} has waited for a human to rule since "
    )
    assert line_of(gap) == f"Proposed in round 2; its session waits for {ref}."

    session.hold(actor=SYSTEM, note="held")
    assert line_of(gap) == f"Proposed in round 2; its session waits for {ref}."
    gap.send_gap_back(actor=SYSTEM, note="back")
    assert line_of(gap) == f"With the engineer; its session waits for {ref}."


def test_a_session_whose_gaps_are_all_blocked_names_no_coder(project: Project) -> None:
    session = tick(project)
    Task.objects.filter(gap=A).update(status="deferred")
    session = propose(session, f"BLOCKED_NEEDS_INPUT: {B} the contract\n\nBLOCKED_NEEDS_INPUT: {C} the law\n")
    Task.objects.filter(pk=session.pk).update(status="in_progress")

    assert line_of(session) == "Nothing is left to write: what is open waits for people or for other gaps."


def test_a_document_is_refused_with_everything_that_is_missing(project: Project) -> None:
    session = tick(project)
    cases = {
        "": ["EMPTY_OUTPUT"],
        "Hello.": ["WRONG_FORMAT", "WRONG_FORMAT", "NO_GAPS_ADDRESSED", "INCOMPLETE_STRUCTURE"],
        proposal("GAP-NONE-001"): ["INCONSISTENT_REFS"],
        proposal(A): ["NO_GAPS_ADDRESSED"],  # it was not given out
        "UNCERTAINTY: which law holds?": ["UNCERTAIN", "INCOMPLETE_STRUCTURE"],
        proposal(B, more="## DISAGREE: ISSUE-R9-001\n\nNo."): ["WRONG_FORMAT"],
    }
    for text, kinds in cases.items():
        with pytest.raises(Refused) as refused:
            propose(session, text)
        assert [each["type"] for each in refused.value.details] == kinds, text[:40]
    assert not session.submissions.exists()
    with pytest.raises(Refused) as of_review:
        review(propose(session, proposal(B, C)), "Fine.")
    assert [each["type"] for each in of_review.value.details] == [
        "WRONG_FORMAT",
        "WRONG_FORMAT",
        "PARSER_ALARM",
    ]


def test_a_gap_that_a_review_does_not_name_stays_proposed_and_is_reviewed_next(project: Project) -> None:
    session = propose(tick(project), proposal(B, C))

    session = review(session, verdict(FINE, {B: FINE}))

    assert states(project) == {A: "IN_PROGRESS", B: "ACCEPTED", C: "PROPOSED"}
    assert session.round == 2
    session = review(propose(session, proposal(A)), verdict(FINE, {A: FINE}))
    assert states(project)[C] == "PROPOSED"
    assert (session.status, session.round) == ("review", 2)  # nothing to write: it is asked again
    assert session.events.filter(kind="review_rest").get().data["final"] is False
    review(session, verdict(FINE, {C: FINE}))
    assert set(states(project).values()) == {"ACCEPTED"}


def test_a_grave_finding_that_nobody_answered_keeps_its_gap_open(project: Project) -> None:
    session = propose(tick(project), proposal(B, C))
    session = review(session, verdict(BACK, {B: BACK, C: FINE}, ("ISSUE-R1-001", B, "Midnight is open")))
    assert states(project) == {A: "IN_PROGRESS", B: "NEEDS_REVISION", C: "ACCEPTED"}

    session = propose(session, proposal(A, B))  # not a word on the finding
    assert states(project)[B] == "NEEDS_REVISION"
    assert "ISSUE-R1-001" in session.events.get(kind="round_proposed", data__round=2).data["refused"][B]
    session = review(session, verdict(FINE, {A: FINE, B: FINE}))
    assert states(project)[B] == "NEEDS_REVISION"

    session = propose(session, proposal(B, answers=("ISSUE-R1-001",)))
    assert states(project)[B] == "PROPOSED"
    review(session, verdict(FINE, {B: FINE}))
    assert states(project)[B] == "ACCEPTED"


def test_a_finding_that_an_earlier_round_answered_is_not_asked_for_again() -> None:
    """From the third round on, a gap that was sent back twice could never be proposed or sent back again."""
    project = document_project()
    gap_in(project, A)
    session = propose(tick(project), proposal(A))
    session = review(session, verdict(BACK, {A: BACK}, ("ISSUE-R1-001", A, "Midnight is open")))
    session = propose(session, proposal(A, answers=("ISSUE-R1-001",)))
    session = review(session, verdict(BACK, {A: BACK}, ("ISSUE-R2-001", A, "Noon is open")))

    session = propose(session, proposal(A, answers=("ISSUE-R2-001",)))

    assert states(project) == {A: "PROPOSED"}
    session = review(session, verdict(BACK, {A: BACK}, ("ISSUE-R3-001", A, "Dawn is open")))
    assert session.events.filter(kind="round_judged").latest("pk").data["sent_back"] == [A]
    session = propose(session, proposal(A))
    told = session.events.filter(kind="round_proposed").latest("pk").data["refused"]
    assert told == {A: "not answered: ISSUE-R3-001"}


@for_each("approval_first", [True, False])
def test_the_strictest_of_several_reviews_decides_on_a_gap(approval_first: bool) -> None:
    """A gap was accepted for good if the reviewer that approved it happened to be the quicker one."""
    project = document_project()
    gap_in(project, A)
    session = propose(tick(project), proposal(A))
    approval = verdict(FINE, {A: FINE})
    rejection = verdict(BACK, {A: BACK}, ("ISSUE-R1-001", A, "Midnight is open"))
    rejection = rejection.replace("High Priority", "Medium Priority")
    texts = [approval, rejection] if approval_first else [rejection, approval]

    session = review(session, texts[0], waiting_for=("second",))
    session = review(session, texts[1], by=Actor("run", "second"))

    assert states(project) == {A: "NEEDS_REVISION"}
    session = propose(session, proposal(A, answers=("ISSUE-R1-001",)))
    session = review(session, approval, waiting_for=("second",))
    review(session, approval, by=Actor("run", "second"))
    assert states(project) == {A: "ACCEPTED"}


def test_while_a_card_on_a_gap_is_open_no_reviewer_is_asked_about_it() -> None:
    project = document_project()
    session, card = flagged(project, A)

    review(session, verdict(FINE, {A: FINE}))
    for _ in range(3):
        session = tick(project)

    assert (states(project)[A], session.status) == ("PROPOSED", "in_progress")
    assert not session.events.filter(kind="review_rest").exists()
    lea = create_user("lea", is_superuser=True)
    rulings.decide(card, "waive", text="It is answered.", rationale="It is.", user=lea)
    session = tick(project)
    assert states(project)[A] == "ACCEPTED"
    assert session.events.get(kind="review_rest").data["final"] is True


def card_about_midnight(session: Task) -> Conflict:
    return opening.open_conflict(
        session, kind="disagreement", origin="disagree", opened_as="coder", question="Midnight is open",
        finding=session.findings.get(), submission=session.last_submission(),
    )  # fmt: skip


def test_the_button_promises_no_landing_while_gaps_are_open(project: Project) -> None:
    session = propose(tick(project), proposal(B, C))
    session = review(session, verdict(BACK, {B: BACK, C: FINE}, ("ISSUE-R1-001", B, "Midnight is open")))
    card = card_about_midnight(session)

    told = {each.option: each.consequence for each in offers.options_of(card)}

    assert "The rounds go on with the gaps that are open." in told["uphold_coder"]


@for_each("option", ["ask", "ask_disagree"])
def test_a_gap_goes_back_to_its_engineer_if_a_ruling_asks_for_an_answer(option: str) -> None:
    project = document_project()
    session, card = flagged(project, A)
    session = review(session, verdict(FINE, {A: FINE}))

    rulings.decide(card, option, rationale="Say it.", user=create_user("lea", is_superuser=True))
    session = tick(project)

    assert (states(project)[A], session.round) == ("IN_PROGRESS", 3)
    assert session in Task.objects.in_the_loop()
    with pytest.raises(Refused) as refused:
        intake.check_response(session, handing_in.read_document(session, proposal(A)))
    assert "ISSUE-R1-001" in str(refused.value.details)
    intake.check_response(session, handing_in.read_document(session, proposal(A, answers=("ISSUE-R1-001",))))
    session = review(propose(session, proposal(A, answers=("ISSUE-R1-001",))), verdict(FINE, {A: FINE}))
    assert states(project)[A] == "ACCEPTED"
    assert not Flag.objects.unsettled().exists(), "it would keep the project from ending as complete"


def test_people_are_asked_if_reviews_never_say_a_word_on_a_gap(project: Project) -> None:
    session = review(propose(tick(project), proposal(B, C)), verdict(FINE, {B: FINE}))
    session = review(propose(session, proposal(A)), verdict(FINE, {A: FINE}))

    for asked in range(1, 4):  # the first time, and twice more
        assert (session.status, session.events.filter(kind="review_rest").count()) == ("review", asked)
        session = review(session, verdict(FINE, {A: FINE}))

    assert session.status == "disputed"
    card = Conflict.objects.get(kind="help")
    assert card.question == f"3 reviews gave no verdict on {C}: Rounds of Spec"
    rulings.decide(card, "retry", text="Name all.", user=create_user("lea", is_superuser=True))
    session = tick(project)
    assert session.status == "review"
    review(session, verdict(FINE, {C: FINE}))
    assert states(project)[C] == "ACCEPTED"


def test_a_point_of_the_final_review_becomes_a_gap_and_the_rounds_go_on(project: Project) -> None:
    session = review(propose(tick(project), proposal(B, C)), verdict(FINE, {B: FINE, C: FINE}))
    session = review(propose(session, proposal(A)), verdict(FINE, {A: FINE}))
    assert session.status == "review"

    session = review(session, verdict(BACK, {A: FINE}, ("ISSUE-R2-001", C, "Two documents define a day")))

    assert states(project)["GAP-AUTH-004"] == "IN_PROGRESS"
    born = project.tasks.get(gap="GAP-AUTH-004")
    assert (born.parent.gap, born.severity, born.title) == (
        C, "high", "GAP-AUTH-004: Two documents define a day",
    )  # fmt: skip
    assert (session.status, session.round) == ("in_progress", 3)
    session = propose(session, proposal("GAP-AUTH-004", answers=("ISSUE-R2-001",)))
    session = review(session, verdict(FINE, {"GAP-AUTH-004": FINE}))
    session = review(session, verdict(FINE, {A: FINE}))
    session.refresh_from_db()
    assert (session.status, session.accepted.round) == ("completed", 3)


def test_what_does_not_fit_onto_the_branch_any_more_is_a_gap_for_the_engineer() -> None:
    """In a later session, too, whose rounds have the same numbers."""
    project = document_project()
    for number, gap in enumerate((A, B), start=1):
        gap_in(project, gap, number=50 * number)
        session = review(propose(tick(project), proposal(gap)), verdict(FINE, {gap: FINE}))
        session = review(session, verdict(FINE, {gap: FINE}))
        last = session.last_submission()
        last.sha = str(number) * 40
        last.save()
        Landing.objects.create(
            project=project, task=session, submission=last, status="conflict", sha=last.sha,
            problem="It clashes.",
        )  # fmt: skip
        session.clash(note="It clashes.")

        session = tick(project)

        new = project.tasks.get(gap=f"GAP-DOC-00{number}")
        assert new.title == f"{new.gap}: main has moved on: what was accepted has to fit onto it again"
        assert new.body.startswith(
            f"Commit {last.sha[:12]} of round 1 was accepted and could not land on main: It c"
        )
        assert (session.status, session.round, new.status) == ("in_progress", 2, "in_progress")
        assert session in Task.objects.in_the_loop()
        session = review(propose(session, proposal(new.gap)), verdict(FINE, {new.gap: FINE}))
        session = review(session, verdict(FINE, {gap: FINE}))
        session.refresh_from_db()
        assert (session.status, session.accepted.round) == ("completed", 2)
        session.landed(session.accepted.sha)


def test_blocked_gaps_wait_for_people_and_the_session_has_nothing_to_do(project: Project) -> None:
    session = tick(project)

    propose(session, f"BLOCKED_NEEDS_INPUT: {B} the contract\n\nBLOCKED_NEEDS_INPUT: {C} the law\n")

    assert states(project) == {A: "OPEN", B: "BLOCKED_EXTERNAL", C: "BLOCKED_EXTERNAL"}
    cards = Conflict.objects.filter(kind="help").order_by("pk")
    assert [(card.dispute.task.gap, card.question) for card in cards] == [
        (B, f"{B} waits for input: {B} the contract"), (C, f"{C} waits for input: {C} the law"),
    ]  # fmt: skip


def test_rounds_are_taken_back_with_their_gaps_and_figures(project: Project) -> None:
    lea = create_user("lea", is_superuser=True)
    session = review(propose(tick(project), proposal(B, C)), verdict(FINE, {B: FINE, C: FINE}))
    new = "- **GAP-AUTH-050** (HIGH): Who counts?"
    session = propose(session, proposal(A, new=new))
    session = review(session, verdict(BACK, {A: BACK}, ("ISSUE-R2-001", A, "Midnight is open")))
    before = states(project)
    assert before == {A: "NEEDS_REVISION", B: "ACCEPTED", C: "ACCEPTED", "GAP-AUTH-050": "IN_PROGRESS"}

    rollbacks.roll_back(session, 1, user=lea, reason="It is about something else.")
    session = tick(project)

    assert states(project) == {A: "IN_PROGRESS", B: "ACCEPTED", C: "ACCEPTED", "GAP-AUTH-050": "WONT_FIX"}
    assert session.round == 2
    assert not project.tasks.get(gap=A).submissions.standing().exists()
    assert "concrete examples" not in repair.adjustments_for(session)
    session = propose(session, proposal(A))
    review(session, verdict(FINE, {A: FINE}))
    assert states(project)[A] == "ACCEPTED"


def test_a_rollback_touches_no_earlier_session_and_keeps_gaps_that_people_added(project: Project) -> None:
    lea = create_user("lea", is_superuser=True)
    session = review(propose(tick(project), proposal(B, C)), verdict(FINE, {B: FINE, C: FINE}))
    session = review(propose(session, proposal(A)), verdict(FINE, {A: FINE}))
    session = review(session, verdict(FINE, {A: FINE}))
    session.landed(session.last_submission().sha)
    for number in (4, 5):
        add_task(project, f"GAP-AUTH-00{number}: Who?", actor=Actor.person(lea))
        session = tick(project)
        session = propose(session, proposal(D, answers=("ISSUE-R1-001",) if number == 5 else ()))
        session = review(session, verdict(BACK, {D: BACK}, (f"ISSUE-R{number - 3}-001", D, "Noon is open")))

    for to_round in (1, 0):
        rollbacks.roll_back(session, to_round, user=lea, reason="It is about something else.")
        session = tick(project)
        assert (session.round, len(gaps.assigned(session))) == (to_round + 1, 2)
    assert all(gap.submissions.standing().exists() for gap in project.tasks.filter(gap__in=[A, B, C]))
    assert not project.tasks.get(gap=D).submissions.standing().exists()


def test_a_gap_is_not_taken_back_without_its_session(project: Project, client: Client) -> None:
    lea = create_user("lea", is_superuser=True)
    session = propose(tick(project), proposal(B, C))
    gap = project.tasks.get(gap=B)

    with pytest.raises(Refused) as refused:
        rollbacks.roll_back(gap, 0, user=lea, reason="Again.")

    assert session.ref in refused.value.hint
    client.force_login(lea)
    assert client.get(f"/tasks/{gap.ref}/rollback/").url == f"/tasks/{session.ref}/rollback/"
    assert states(project)[B] == "PROPOSED"


def test_a_round_without_form_begins_anew_by_itself_once_where_the_project_wants_it() -> None:
    for mode, expected in (("interactive", False), ("auto_retry", True), ("strict", False)):
        project = document_project(f"spec-{mode.replace('_', '-')}", settings={"rollback_mode": mode})
        gap_in(project, A)
        session = tick(project)
        assert repair.may_repair(session) is expected, mode
        repair.repair(session, "WRONG_FORMAT: no heading")
        session.refresh_from_db()
        assert session.counts_since is not None
        assert not repair.may_repair(session), mode


def test_the_example_is_the_document_that_shows_best_what_was_missing() -> None:
    def one(text: str, **more: bool) -> Earlier:
        return Earlier(Form.PROPOSAL, text, 1, 1, **more)

    whole, thin = proposal(A), "x" * 600
    assert len(whole) < 5000
    assert score(one(thin)) == 5
    assert score(one(thin, accepted=True)) == 25
    assert score(one(whole), FailureType.WRONG_FORMAT) == 10 + 5 + 5
    assert score(one(proposal(A, B, C)), FailureType.NO_GAPS_ADDRESSED) == 5 + 6
    assert score(one("x" * 6000)) == 2
    assert score(one("x")) == 0


def test_a_card_quotes_the_section_that_its_finding_is_about(project: Project, client: Client) -> None:
    client.force_login(create_user("lea", is_superuser=True))
    session = propose(tick(project), proposal(B, C))
    found = verdict(BACK, {B: BACK, C: FINE}, ("ISSUE-R1-001", B, "Midnight is open"))
    of_file = "- **ISSUE-R1-002**: No unit\n  - **Gap:** GAP-AUTH-002\n  - **Location:** docs/spec.md:3\n\n"
    session = review(session, found.replace("## The gaps", f"{of_file}## The gaps"))
    row = session.findings.get(code="ISSUE-R1-002")
    assert (row.path, row.excerpt, row.excerpt_start) == ("docs/spec.md", "", None)  # a host reads it
    block = "## DISAGREE: ISSUE-R1-001\n\n**Reviewer Concern:**\n> Name the hour.\n\n"
    block += "**Engineer Position:**\nNo.\n\n"
    propose(session, proposal(B, more=f"{block}**Rationale:**\nThe law forbids an hour.\n"))
    conflict = Conflict.objects.get(origin="disagree")
    assert "The limit of GAP-AUTH-002 is 30 seconds" in conflict.finding.excerpt

    shown = client.get(reverse("dispute", args=[conflict.dispute_id]))

    assert "The limit of GAP-AUTH-002 is 30 seconds" in shown.content.decode()


def test_records_and_amendments_name_the_gap_and_its_part_of_the_documents(project: Project) -> None:
    project.tasks.filter(gap=B).update(source="docs/spec.md#sign-in")
    session = propose(tick(project), proposal(B, C))
    session = review(session, verdict(BACK, {B: BACK, C: FINE}, ("ISSUE-R1-001", B, "Midnight is open")))
    card = card_about_midnight(session)
    ruling = rulings.decide(card, "uphold_reviewer", user=create_user("lea", is_superuser=True))

    text = records.decisions_text(project)

    assert f"**Gap Affected:** {B} what holds at the edge?\n" in text
    assert f"- For Gap: {B} " in text
    assert amendments.about(Amendment(decision=ruling)).source == "docs/spec.md#sign-in"


def test_what_was_accepted_lands_when_a_session_is_ended_early(project: Project, client: Client) -> None:
    """In the middle of a round, for which nothing was handed in yet."""
    lea, tom = create_user("lea"), create_user("tom")
    for user, role in ((lea, "maintainer"), (tom, "triager")):
        project.memberships.create(user=user, role=role)
    end, finish = f"/projects/{project.slug}/end/", f"/projects/{project.slug}/finish/"
    client.force_login(lea)
    assert "would not land" not in client.get(end).content.decode()
    session = review(propose(tick(project), proposal(B, C)), verdict(BACK, {B: FINE, C: BACK}))
    assert (session.status, session.round) == ("in_progress", 2)
    html = client.get(end).content.decode()
    for words in (
        "1 accepted gap would not land with an end now",
        "Put them off and finish the session",
        B,
        C,
    ):
        assert words in html, words

    client.force_login(tom)
    assert client.post(finish).status_code == 403
    client.force_login(lea)
    assert client.post(finish).url == end
    session = tick(project)
    assert states(project)[B] == "ACCEPTED"
    assert set(project.tasks.gaps().exclude(gap=B).values_list("status", flat=True)) == {"deferred"}
    assert (session.status, session.last_submission().round) == ("review", 1)
    assert session.events.filter(kind="review_rest").get().data["final"] is True
    review(session, verdict(FINE, {B: FINE}))
    session.refresh_from_db()
    assert (session.status, session.accepted.round) == ("completed", 1)  # the outbox of what lands
    assert "lands once its final review is through" in client.get(end).content.decode()
    session.landed("a" * 40)
    tick(project)
    assert project.tasks.get(gap=B).landed_at
    assert "would not land" not in client.get(end).content.decode()

    project.tasks.get(gap=C).resume(actor=Actor.person(lea))  # for a session with a round 1 of its own
    review(propose(tick(project), proposal(C).replace("30 seconds", "99 s")), verdict(FINE, {C: FINE}))
    last, first = gaps.documents_of(project.tasks.get(gap=C))
    assert ("99 s" in last.response, "99 s" in first.response, last.round) == (True, False, 1)
    assert [each.verdict for document in (first, last) for each in document.reviews.all()] == [BACK, FINE]
    assert states(project)[C] == "ACCEPTED"
