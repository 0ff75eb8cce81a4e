"""Makers of rows with sensible defaults. `create_x(**what_matters)`."""

from itertools import count
from typing import Any

from django.contrib.auth.models import User

from agents.models import Agent, Host, Run, Token, new_token, token_hash
from tasks.database.prepared import Prepared
from tasks.models import Finding, Membership, Project, Review, Section, Submission, Task

_numbers = count(10_001)  # away from the numbers that tests give themselves
BASE = "b" * 40


def sha(seed: int | str) -> str:
    """A well-formed commit name."""
    return f"{seed:0>40}"[-40:] if isinstance(seed, int) else (seed * 40)[:40]


def create_user(username: str = "", **kwargs: Any) -> User:
    username = username or f"user{next(_numbers)}"
    return User.objects.create_user(
        username, f"{username}@example.org", "secret-password", is_staff=True, **kwargs
    )


def create_token(user: User, name: str) -> tuple[Token, str]:
    """A person's token, as a row and in clear."""
    secret = new_token()
    return Token.objects.create(user=user, name=name, hash=token_hash(secret)), secret


def create_project(slug: str = "", *, members: dict[User, str] | None = None, **kwargs: Any) -> Project:
    slug = slug or f"p{next(_numbers)}"
    kwargs = {
        "name": slug.capitalize(), "repo_url": f"https://example.org/{slug}.git",
        "base_state": Project.Base.GREEN,
    } | kwargs  # fmt: skip
    project = Project.objects.create(slug=slug, **kwargs)
    for user, role in (members or {}).items():
        Membership.objects.create(project=project, user=user, role=role)
    return project


def create_section(project: Project | None = None, title: str = "", **kwargs: Any) -> Section:
    number = next(_numbers)
    return Section.objects.create(
        project=project or create_project(), title=title or f"Section {number}", rank=number, **kwargs
    )


_first_section = Prepared(lambda project: Section.objects.filter(project=project).order_by("rank")[:1])


def create_task(project: Project | None = None, *, section: Section | None = None, **kwargs: Any) -> Task:
    project = project or (section.project if section else create_project())
    section = section or _first_section.first(project.pk) or create_section(project)
    number = next(_numbers)
    kwargs = {"number": number, "rank": number, "title": f"Task {number}"} | kwargs
    return Task.objects.create(project=project, section=section, **kwargs)


_in_round = Prepared(
    lambda task, round_: Submission.objects.filter(task=task, round=round_).values_list("pk")
)


def create_submission(task: Task, **kwargs: Any) -> Submission:
    number = next(_numbers)
    kwargs = {
        "round": max(task.round, 1),
        "attempt": len(_in_round.rows(task.pk, max(task.round, 1))) + 1,
        "sha": sha(number),
        "base_sha": BASE,
        "by_agent": "coder-1",
        "state": Submission.State.VERIFIED,
    } | kwargs
    return Submission.objects.create(task=task, **kwargs)


def create_review(submission: Submission, **kwargs: Any) -> Review:
    kwargs = {"verdict": Review.Verdict.NEEDS_REVISION, "by_agent": "reviewer-1"} | kwargs
    return Review.objects.create(submission=submission, **kwargs)


_of_review = Prepared(lambda review: Finding.objects.filter(review=review).order_by().values_list("pk"))
_of_task = Prepared(lambda task: Finding.objects.filter(task=task).order_by().values_list("pk"))


def create_finding(review: Review, **kwargs: Any) -> Finding:
    task = review.submission.task
    ordinal = len(_of_review.rows(review.pk)) + 1
    kwargs = {
        "round": review.submission.round,
        "ordinal": ordinal,
        "code": f"ISSUE-R{review.submission.round}-{len(_of_task.rows(task.pk)) + 1:03d}",
        "severity": "high",
        "mandatory": True,
        "title": "Failed calls are retried at once",
        "path": "src/calls.py",
        "line": 12,
        "impact": "A dead server is hammered.",
        "suggestion": "Wait between tries, twice as long each time.",
    } | kwargs
    return Finding.objects.create(review=review, task=task, **kwargs)


def create_agent(role: str = "coder", **kwargs: Any) -> Agent:
    kwargs = {"name": f"{role}-{next(_numbers)}", "settings": {"argv": ["true"]}, "slots": 4} | kwargs
    return Agent.objects.create(role=role, **kwargs)


def create_host(name: str = "test-host", **kwargs: Any) -> Host:
    return Host.objects.get_or_create(name=name, defaults={"boot_id": "a boot", **kwargs})[0]


def create_run(task: Task, role: str = "coder", **kwargs: Any) -> Run:
    kwargs = {
        "seat": role,
        "round": max(task.round, 1),
        "status": Run.Status.RUNNING,
        "task_version": task.version,
        "agent_label": f"{role}-1",
    } | kwargs
    return Run.objects.create(task=task, project=task.project, role=role, **kwargs)
