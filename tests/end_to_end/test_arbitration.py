"""A disagreement from hand-in to landing, on each way that a project can settle it (ARB-5 to ARB-7)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.hosts import paths
from agents.models import Prompt, Run
from disputes import opinions, rulings
from disputes.models import Conflict, Decision, Opinion
from tasks.configuration.changing import configure
from tasks.events import Actor
from tasks.models import Event, Project, Task
from tests.end_to_end.loop import Loop, bare_remote, command_agent, git, script, small_project, task_in

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

CODER = """
    import os, pathlib, subprocess, sys
    prompt = pathlib.Path(sys.argv[1]).read_text()
    text, response = "hello", "Done."
    if "Decided since your last run" in prompt and "uphold_reviewer" in prompt:
        text = "HELLO"
    elif "ISSUE-R1-001" in prompt:
        text = "hello there"
        response = ("## DISAGREE: ISSUE-R1-001\\n\\n**Reviewer Concern:**\\n> Shout\\n\\n"
                    "**Engineer Position:**\\nNo shouting.\\n\\n**Rationale:**\\nIt is rude.\\n")
    pathlib.Path("hello.txt").write_text(text + "\\n")
    subprocess.run(["git", "add", "-A"], check=True)
    subprocess.run(["git", "commit", "-q", "-m", "feat: " + text], check=True)
    file = pathlib.Path(os.environ["TMPDIR"], "response.md")
    file.write_text(response)
    sys.exit(subprocess.run(
        ["steroids", "tasks", "update", "--status", "review", "--response", file]).returncode)
"""
REVIEWER = """
    import os, pathlib, subprocess, sys
    if pathlib.Path("hello.txt").read_text() == "hello\\n":
        file = pathlib.Path(os.environ["TMPDIR"], "review.md")
        file.write_text("### High Priority\\n\\n- **ISSUE-R1-001**: Shout\\n  - **Location:** hello.txt:1\\n"
                        "  - **Impact:** Nobody hears it.\\n\\n## Verdict: NEEDS_REVISION\\n")
        sys.exit(subprocess.run(["steroids", "tasks", "reject", "--file", file]).returncode)
    sys.exit(subprocess.run(["steroids", "tasks", "approve"]).returncode)
"""
# It looks at the code, breaks its clone, and hands in a verdict.
JUDGE = """
    import os, pathlib, subprocess, sys
    prompt = pathlib.Path(sys.argv[1]).read_text()
    assert "No shouting." in prompt and "Nobody hears it." in prompt
    assert pathlib.Path("hello.txt").read_text() == "hello there\\n"
    pathlib.Path("hello.txt").write_text("SABOTAGE\\n")
    subprocess.run(["git", "commit", "-qam", "feat: mine"], check=True)
    file = pathlib.Path(os.environ["TMPDIR"], "reasons.md")
    file.write_text("`hello.txt:1` is read by people far away.")
    sys.exit(subprocess.run(["steroids", "opinion", "--verdict", "{verdict}", "--reasons", file]).returncode)
"""


@pytest.fixture
def make(tmp_path: Path, lea: User) -> Callable[..., Task]:
    """A task whose coder will decline what its reviewer asks, and who settles that."""

    def made(judge: str = "", **settings: Any) -> Task:
        remote = bare_remote(tmp_path, {"README.md": "Small.\n"})
        project = small_project(remote)
        project.memberships.create(user=lea, role="maintainer")
        configure(project, settings, actor=Actor.person(lea))
        command_agent("coder", script(tmp_path, "coder", CODER))
        command_agent("reviewer", script(tmp_path, "reviewer", REVIEWER))
        if judge:
            command_agent("judge", script(tmp_path, "judge", judge), model="wise-1", vendor="elsewhere")
        return task_in(project)

    return made


def disagreement(project: Project) -> Conflict:
    return Conflict.objects.get(dispute__project=project, kind="disagreement")


def on_main(task: Task) -> str:
    task.refresh_from_db()
    assert task.landed_sha, f"{task.ref} is {task.status}"
    return git(Path(task.project.repo_url), "show", "main:hello.txt")


def test_the_judge_enforces_and_the_coder_carries_it_out(
    loop: Loop, make: Callable[..., Task], lea: User
) -> None:
    task = make(JUDGE.replace("{verdict}", "ENFORCE"), on_dispute="judge", prompt_user=False)
    loop.until_idle()
    conflict = disagreement(task.project)
    opinion, decision = Opinion.objects.get(), Decision.objects.get()
    assert (opinion.state, opinion.verdict, opinion.by_agent) == ("given", "enforce", "judge-script")
    assert (opinion.by_model, opinion.by_vendor) == ("wise-1", "elsewhere")
    assert opinion.reasons == "`hello.txt:1` is read by people far away."
    assert (decision.option, decision.authority, decision.user) == ("uphold_reviewer", "policy", None)
    assert decision.policy_set_by == lea
    assert on_main(task) == "HELLO"  # what the coder made of the ruling, and nothing of the judge's
    conflict.refresh_from_db()
    assert conflict.followed == Conflict.Followed.APPLIED
    ruled = Event.objects.get(kind="ruled")
    assert (ruled.actor_kind, ruled.label) == ("policy", "judge-script, by Lea Lindt\u2019s policy")


def test_the_judge_dismisses_and_the_code_lands_as_it_is(loop: Loop, make: Callable[..., Task]) -> None:
    task = make(JUDGE.replace("{verdict}", "DISMISS"), on_dispute="judge", prompt_user=False)
    loop.until_idle()
    assert on_main(task) == "hello there"
    assert Decision.objects.get().option == "uphold_coder"
    prompt = Prompt.objects.filter(run__role="reviewer").order_by("-run_id").first()
    assert prompt is not None
    assert "Do not raise again" in prompt.text
    for run in Run.objects.all():
        left = {path.name for path in paths.run_folder(run.pk).iterdir()}
        assert left <= {"closing", "copied", "exit.json", "lock", "output.log", "pid"}, run.role


def test_where_the_judge_escalates_a_human_rules(loop: Loop, make: Callable[..., Task], lea: User) -> None:
    task = make(JUDGE.replace("{verdict}", "ESCALATE"), on_dispute="judge", prompt_user=False)
    loop.until_idle()
    conflict = disagreement(task.project)
    assert (conflict.status, Decision.objects.count()) == ("open", 0)
    assert rulings.last_judged(conflict).verdict == "escalate"  # type: ignore[union-attr]
    rulings.decide(conflict, "uphold_coder", user=lea)
    loop.until_idle()
    assert on_main(task) == "hello there"


def test_a_person_asks_the_judge_reads_the_opinion_and_rules_otherwise(
    loop: Loop, make: Callable[..., Task], lea: User
) -> None:
    task = make(JUDGE.replace("{verdict}", "ENFORCE"), on_dispute="judge", prompt_user=True)
    loop.until(task, "disputed")
    loop.until_idle()
    conflict = disagreement(task.project)
    assert not Run.objects.filter(role="judge").exists()  # nobody is asked unasked
    opinions.ask(conflict, "judge", user=lea)
    loop.until_idle()
    assert (Opinion.objects.get().state, Decision.objects.count()) == ("given", 0)
    rulings.decide(conflict, "uphold_coder", user=lea)
    loop.until_idle()
    assert on_main(task) == "hello there"


def test_a_project_that_discards_goes_on_by_itself_in_somebodys_name(
    loop: Loop, make: Callable[..., Task], lea: User
) -> None:
    task = make(on_dispute="discard", prompt_user=False)
    loop.until_idle()
    assert on_main(task) == "hello there"
    decision = Decision.objects.get()
    assert (decision.option, decision.authority, decision.policy_set_by) == ("uphold_coder", "policy", lea)
    assert decision.rationale.startswith(rulings.DISCARDED)
    assert not Opinion.objects.exists()


def test_a_judge_who_only_talks_is_read_by_the_first_line(loop: Loop, make: Callable[..., Task]) -> None:
    task = make("print('**DISMISS.** It is polite as it is.')", on_dispute="judge", prompt_user=False)
    loop.until_idle()
    opinion = Opinion.objects.get()
    assert (opinion.verdict, opinion.reasons) == ("dismiss", "**DISMISS.** It is polite as it is.")
    assert on_main(task) == "hello there"


def test_a_judge_who_rambles_leaves_it_to_a_human(loop: Loop, make: Callable[..., Task]) -> None:
    task = make("print('I would not ENFORCE this.')", on_dispute="judge", prompt_user=False)
    loop.until_idle()
    assert Opinion.objects.get().verdict == "escalate"
    assert disagreement(task.project).status == "open"
    assert not Decision.objects.exists()


def test_a_judge_that_says_nothing_is_given_up_after_three_runs(
    loop: Loop, make: Callable[..., Task]
) -> None:
    task = make("import sys; sys.exit(3)", on_dispute="judge", prompt_user=False)
    loop.until_idle()
    task.refresh_from_db()
    opinion = Opinion.objects.get()
    assert opinion.state == "failed"
    assert "3 runs ended without an opinion" in opinion.reasons
    assert Run.objects.filter(role="judge").count() == 3
    assert task.status == "disputed"  # where it was: no failure of it
    assert task.not_before is None
    assert Conflict.objects.filter(status="open").exclude(kind="alert").count() == 1


def test_a_mediators_proposal_becomes_option_c(loop: Loop, make: Callable[..., Task], tmp_path: Path) -> None:
    task = make(mediator=True)
    mediator = """
        import subprocess, sys
        sys.exit(subprocess.run(["steroids", "opinion", "--proposal", "Say it once aloud.",
                                 "--trade-off", "Each a half."]).returncode)
    """
    command_agent("mediator", script(tmp_path, "mediator", mediator))
    loop.until_idle()
    conflict = disagreement(task.project)
    assert (conflict.proposal.text, conflict.proposal.by) == (
        "Say it once aloud.",
        "mediator mediator-script",
    )
    assert (conflict.proposal.trade_off, conflict.proposal.covers_both) == ("Each a half.", False)
    assert conflict.status == "open"
