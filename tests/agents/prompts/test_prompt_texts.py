"""A project's own texts of prompts: what is refused, what they can never take away, and their versions."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.models import PromptText, Run
from agents.prompts import compose, prompt_admin, templates, texts
from agents.prompts.templates import TooMuch
from agents.prompts.texts import BadText
from tasks.models import Event, Membership, Project
from tests.agents.prompts.test_prompts import assert_hands_off, reject, reviewed, rule, run_for, told
from tests.agents.world import World, make_world  # noqa: F401
from tests.cases import for_each
from tests.factories import create_agent, create_project, create_run, create_task, create_user
from tests.sources import ROOT

pytestmark = pytest.mark.django_db

CODER = "# {{ title }}\n\nSpeak like a pirate.\n\n{{ body }}\n{% if source %}{{ source }}{% endif %}\n"


def faults(text: str, name: str = "coder") -> list[str]:
    return [str(fault) for fault in templates.check(name, text)]


@pytest.fixture
def lea(db: None) -> Any:
    return create_user("lea")


# --- What is refused --------------------------------------------------------------------------------------


@for_each("name", templates.SHAPES)
def test_the_programs_own_text_would_be_taken_from_a_project(name: str) -> None:
    assert faults(templates.own_source(name), name) == []


@for_each(
    ("line", "words"),
    [
        ("{{ titel }}", "there is no variable 'titel'; there are body, build"),
        ("{{ title.upper }}", "there is no variable 'title.upper'"),
        ("{{ settings.SECRET_KEY }}", "there is no variable 'settings.SECRET_KEY'"),
        ("{{ task.project.settings }}", "there is no variable 'task.project.settings'"),
        ("{{ run.token_hash }}", "there is no variable 'run.token_hash'"),
        ("{% if nothing %}a{% endif %}", "there is no variable 'nothing'"),
        ("{{ title|default:secret }}", "there is no variable 'secret'"),
        ("{% include 'hands_off.md' %}", "the tag 'include' is not allowed"),
        ("{% extends 'coder.md' %}", "the tag 'extends' is not allowed"),
        ("{% load static %}", "the tag 'load' is not allowed"),
        ("{% debug %}", "the tag 'debug' is not allowed"),
        ("{% url 'admin:index' %}", "the tag 'url' is not allowed"),
        ("{% lorem 99999999 w %}", "the tag 'lorem' is not allowed"),
        ("{% for a in body %}{% for b in body %}x{% endfor %}{% endfor %}", "the tag 'for' is not allowed"),
        ("{{ title|center:999999999 }}", "the filter 'center' is not allowed"),
        ("{{ title|stringformat:'999999999d' }}", "the filter 'stringformat' is not allowed"),
        ("{{ title|add:body }}", "the filter 'add' is not allowed"),
        ("{{ title|nothing }}", "the filter 'nothing' is not allowed"),
        ("{% if title %}never closed", "Unclosed tag on line 3: 'if'"),
        ("{{ title| }}", "Could not parse the remainder"),
        ("{{ __class__ }}", "may not begin with underscores"),
        ("{% endif %}", "Invalid block tag on line 3"),
        ("{% %}", "the tag '' is not allowed"),
    ],
)
def test_what_could_reach_further_is_refused_with_its_line(line: str, words: str) -> None:
    found = faults(f"{{{{ title }}}} {{{{ body }}}}\n{{{{ source }}}}\n{line}\n")

    assert len(found) >= 1
    assert words in found[0]
    assert found[0].startswith("line 3: ")


def test_what_stands_in_a_comment_is_nothing() -> None:
    assert faults(CODER + "{% comment %}{{ secret }}{% load x %}{% endcomment %}") == []


def test_a_text_that_never_says_what_to_do_is_refused() -> None:
    assert faults("Be nice. {{ title }}") == [
        "line 1: it never says {{ body }}, {{ source }}; without it nobody knows what to do."
    ]


@for_each("text", ["", " \n", "x" * (templates.TEXT_MAX + 1)])
def test_an_empty_or_endless_text_is_refused(text: str) -> None:
    assert len(faults(text)) == 1


def test_the_document_names_every_variable_and_no_other() -> None:
    rows = (
        (ROOT / "docs/prompts.md").read_text(encoding="utf-8").partition("| Variable |")[2].split("\n\n")[0]
    )
    told = {name for line in rows.splitlines() for name in re.findall(r"`(\w+)`", line.split("|")[1])}
    assert told == {name for shape in templates.SHAPES.values() for name in shape}


def test_there_is_no_prompt_of_another_name() -> None:
    assert "is no prompt" in faults(CODER, "verifier")[0]


def test_tags_within_tags_have_an_end() -> None:
    deep = "{% if title %}" * 5000 + "{% endif %}" * 5000
    assert faults(deep[: templates.TEXT_MAX]) == ["line 1: more than 20 tags stand within each other."]


@for_each(
    "bomb",
    [
        "{% for a in body %}" * 4 + "{{ body }}" + "{% endfor %}" * 4,
        "{{ body }}" * 3000,
    ],
)
def test_a_text_that_nobody_checked_comes_to_an_end_all_the_same(bomb: str) -> None:
    with pytest.raises(TooMuch):
        templates.fill(bomb, {"body": "word " * 2000})


# --- What it can never take away --------------------------------------------------------------------------


def test_a_projects_text_stands_between_the_rulings_and_the_hand_in(world: World, lea: Any) -> None:
    submission = reviewed(world, body="Weeks, please.")
    ruled, _ = reject(submission, "The name is wrong", "No test")
    rule(ruled, "uphold_reviewer")
    submission.task.refresh_from_db()
    texts.write(world.project, "coder", CODER, user=lea)
    run = run_for(world, submission.task)
    text = told(world, run)

    places = [
        text.index(words)
        for words in (
            "## Decided since your last run.", "Speak like a pirate.", "Weeks, please.",
            "## Findings to answer", "## Hands off settings and status", "## How to hand in",
            f"steroids tasks update {run.task.ref} --status review",
        )
    ]  # fmt: skip
    assert places == sorted(places)
    assert "You work alone in this private clone" not in text
    assert_hands_off(text)


def test_a_reviewers_text_keeps_what_is_settled_and_the_form(world: World, lea: Any) -> None:
    submission = reviewed(world)
    rule(reject(submission, "The name is wrong")[0], "uphold_coder")
    texts.write(world.project, "reviewer", "{{ title }} {{ body }}\n\n{{ diff }}\n", user=lea)
    run = run_for(world, submission.task, "reviewer", sha=submission.sha)
    text = told(world, run)

    assert text.index("## Settled. Do not raise again.") < text.index("```diff") < text.index("## Hands off")
    assert "## Verdict: NEEDS_REVISION" in text


def test_a_text_cannot_hide_what_follows_it_in_a_fence_of_its_own(world: World, lea: Any) -> None:
    with pytest.raises(BadText, match="fence"):
        texts.write(world.project, "coder", CODER + "\n```\nnever closed\n", user=lea)
    half = CODER + "{% if guide %}\n```\n{% endif %}and{% if build %}\n```\n{% endif %}"
    texts.write(world.project, "coder", half, user=lea)
    run = run_for(world, world.task(title="Weeks", body="Weeks.", status="in_progress", round=1))
    material = compose.Material(guide="Be kind.", guide_name="AGENTS.md")

    assert_hands_off(compose.compose(run, material, []).text)


def test_a_row_that_was_edited_past_every_check_gives_way_to_the_programs_text(world: World) -> None:
    for version, text in enumerate(("{{ body }}" * 3000, "{% if title %}", "{% load x %}"), start=1):
        PromptText.objects.update(is_active=False)
        PromptText.objects.create(
            project=world.project, name="coder", version=version, text=text, hash="0" * 64
        )
        run = run_for(world, world.task(body="word " * 2000, status="in_progress", round=1))
        composed = compose.compose(run, compose.Material(), [])

        assert composed.own is None
        assert "You work alone in this private clone" in composed.text
        assert_hands_off(composed.text)


# --- Versions ---------------------------------------------------------------------------------------------


def test_each_version_is_kept_and_one_is_in_use(lea: Any) -> None:
    ledger = create_project(slug="ledger")
    first = texts.write(ledger, "coder", CODER, user=lea)
    second = texts.write(ledger, "coder", CODER + "Arr.\n", user=lea)
    assert [text.version for text in (first, second)] == [1, 2]
    assert texts.in_use(ledger.pk, "coder") == second
    texts.use(first, user=lea)
    assert texts.in_use(ledger.pk, "coder") == first
    texts.use_the_programs(first, user=lea)

    assert texts.in_use(ledger.pk, "coder") is None
    assert PromptText.objects.count() == 2
    notes = Event.objects.filter(kind="prompt_changed").order_by("pk").values_list("note", flat=True)
    assert list(notes)[-2:] == [
        "coder: back to version 1 of the project's own text", "coder: the program's text",
    ]  # fmt: skip


def test_another_projects_text_is_not_used(world: World, lea: Any) -> None:
    texts.write(create_project(), "coder", CODER, user=lea)
    assert "pirate" not in told(world, run_for(world))


def test_a_run_keeps_which_text_it_was_told(world: World, lea: Any) -> None:
    from agents.hosts import starting
    from agents.verification import commands

    text = texts.write(world.project, "coder", CODER, user=lea)
    run = run_for(world)
    known = commands.commands_of(world.project, world.mirror, run.base_sha)
    starting.tell(run, starting.draft(run, world.mirror, known))
    kept = Run.objects.get(pk=run.pk)

    assert kept.prompt_text == text
    assert kept.template_hash == templates.hash_of("coder", text.text)
    assert kept.template_hash != templates.hash_of("coder")
    assert len(kept.prompt_hash) == 64


def test_a_bad_text_changes_nothing(lea: Any) -> None:
    ledger: Project = create_project()
    with pytest.raises(BadText, match="line 2: there is no variable 'nothing'"):
        texts.write(ledger, "coder", "{{ title }}{{ body }}{{ source }}\n{{ nothing }}", user=lea)

    assert not PromptText.objects.exists()


# --- The admin --------------------------------------------------------------------------------------------

ADD = "/admin/agents/prompttext/add/"


@pytest.fixture
def ledger(lea: Any) -> Project:
    return create_project(slug="ledger", members={lea: "maintainer", create_user("tom"): "triager"})


def as_(name: str) -> Client:
    client = Client()
    client.force_login(User.objects.get(username=name))
    return client


def test_a_maintainer_begins_with_the_programs_text(ledger: Project) -> None:
    page = as_("lea").get(f"{ADD}?name=reviewer").content.decode()

    assert "Three questions" in page
    assert "{{ diff }}" in page


def test_what_a_maintainer_writes_is_a_new_version_in_use(ledger: Project) -> None:
    for text in (CODER, CODER + "Arr.\n"):
        sent = {"project": ledger.pk, "name": "coder", "text": text, "is_active": "on"}
        reply: Any = as_("lea").post(ADD, sent)
        assert reply.status_code == 302, reply.context["adminform"].form.errors

    rows = PromptText.objects.order_by("version").values_list("version", "is_active", "by_user__username")
    assert list(rows) == [(1, False, "lea"), (2, True, "lea")]
    assert texts.in_use(ledger.pk, "coder").text == CODER + "Arr.\n"  # type: ignore[union-attr]


def test_faults_stand_beside_the_text_with_their_line(ledger: Project) -> None:
    sent = {"project": ledger.pk, "name": "coder", "text": CODER + "{{ secret }}", "is_active": "on"}
    page = as_("lea").post(ADD, sent)

    assert page.status_code == 200
    assert "line 7: there is no variable &#x27;secret&#x27;" in page.content.decode()
    assert not PromptText.objects.exists()


def test_a_text_may_be_kept_and_looked_at_before_it_is_used(ledger: Project) -> None:
    task = create_task(ledger, title="Import dates", body="Weeks, please.", status="in_progress", round=1)
    create_run(task, agent=create_agent("coder"))
    sent = {"project": ledger.pk, "name": "coder", "text": CODER}
    as_("lea").post(ADD, sent)
    text = PromptText.objects.get()
    page = as_("tom").get(f"/admin/agents/prompttext/{text.pk}/change/").content.decode()

    assert not text.is_active
    assert "Speak like a pirate.\n\n```text\nWeeks, please.\n```" in page
    assert "## How to hand in" in page
    as_("lea").post(LIST, {"action": "use_it", "_selected_action": [text.pk]})
    assert texts.in_use(ledger.pk, "coder") == text
    as_("lea").post(LIST, {"action": "use_the_programs", "_selected_action": [text.pk]})
    assert texts.in_use(ledger.pk, "coder") is None


LIST = "/admin/agents/prompttext/"


def test_a_triager_reads_and_writes_nothing(ledger: Project, lea: Any) -> None:
    text = texts.write(ledger, "coder", CODER, user=lea)
    client = as_("tom")

    assert client.get(ADD).status_code == 403
    assert client.get(f"{LIST}{text.pk}/change/").status_code == 200
    assert client.post(f"{LIST}{text.pk}/change/", {"text": "x"}).status_code == 403
    client.post(LIST, {"action": "use_the_programs", "_selected_action": [text.pk]})
    assert texts.in_use(ledger.pk, "coder") == text


def test_a_maintainer_of_another_project_chooses_nothing_here(ledger: Project, lea: Any) -> None:
    otto = create_user("otto")
    Membership.objects.create(project=ledger, user=otto, role="viewer")
    create_project(slug="other", members={otto: "maintainer"})
    text = texts.write(ledger, "coder", CODER, user=lea)
    as_("otto").post(LIST, {"action": "use_the_programs", "_selected_action": [text.pk]})

    assert texts.in_use(ledger.pk, "coder") == text


def test_a_text_is_shown_with_the_last_run_that_has_the_prompt_of_its_name(ledger: Project) -> None:
    """In rounds about documents the coder is an engineer, the reviewer an examiner."""
    texts_of = {name: PromptText(project=ledger, name=name, text="Begin.") for name in templates.SHAPES}
    assert {
        name for name, text in texts_of.items() if "nothing to show" not in prompt_admin.preview_of(text)
    } == set()
    create_run(create_task(ledger, title="Plain work"), "coder")
    create_run(create_task(ledger, title="A session", origin="rounds", status="review", round=1), "reviewer")
    shown = {name: prompt_admin.preview_of(text) for name, text in texts_of.items()}
    assert {name for name, text in shown.items() if "nothing to show" not in text} == {"coder", "examiner"}
    assert "Plain work" in shown["coder"]
