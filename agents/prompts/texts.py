"""A project's own prompt texts: checked versions, all kept, at most one of each prompt in use."""

from hashlib import sha256
from typing import Any

from django.db import transaction
from django.db.models import Max

from agents.models import PromptText
from agents.prompts import templates
from agents.prompts.templates import Fault
from tasks.database.locking import locked
from tasks.database.prepared import Prepared
from tasks.events import Actor
from tasks.models import Project
from tasks.models.event import record


class BadText(ValueError):
    """The text cannot be used; `faults` lists everything that is wrong with it."""

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = faults
        super().__init__("\n".join(map(str, faults)))


def in_use(project_pk: int, name: str) -> PromptText | None:
    """Return the project's own text for this prompt, or None if it uses the program's."""
    return _in_use.first(project_pk, name)


_in_use = Prepared(
    lambda project, name: PromptText.objects.filter(project=project, name=name, is_active=True).order_by()
)


@transaction.atomic
def write(project: Project, name: str, text: str, *, user: Any, is_active: bool = True) -> PromptText:
    """Save a new version, and use it unless `is_active` is false. Raises BadText."""
    text = text.replace("\r\n", "\n").replace("\0", "").strip() + "\n"
    if faults := templates.check(name, text):
        raise BadText(faults)
    locked(Project.objects).get(pk=project.pk)
    texts = PromptText.objects.filter(project=project, name=name)
    version = (texts.aggregate(last=Max("version"))["last"] or 0) + 1
    if is_active:
        texts.filter(is_active=True).update(is_active=False)
    made = PromptText.objects.create(
        project=project, name=name, version=version, text=text,
        hash=sha256(text.encode()).hexdigest(), by_user=user, is_active=is_active,
    )  # fmt: skip
    _tell(made, user, f"{name}: version {version} of the project's own text")
    return made


@transaction.atomic
def use(text: PromptText, *, user: Any) -> None:
    """Go back to an earlier version. Raises BadText if it would not be accepted today."""
    if faults := templates.check(text.name, text.text):
        raise BadText(faults)
    locked(Project.objects).get(pk=text.project_id)
    others = PromptText.objects.filter(project=text.project_id, name=text.name).exclude(pk=text.pk)
    others.filter(is_active=True).update(is_active=False)
    PromptText.objects.filter(pk=text.pk).update(is_active=True)
    _tell(text, user, f"{text.name}: back to version {text.version} of the project's own text")


@transaction.atomic
def use_the_programs(text: PromptText, *, user: Any) -> None:
    """Use the program's text instead of the project's own, which is kept."""
    used = PromptText.objects.filter(project=text.project_id, name=text.name, is_active=True)
    if used.update(is_active=False):
        _tell(text, user, f"{text.name}: the program's text")


def _tell(text: PromptText, user: Any, note: str) -> None:
    data = {"prompt": text.name, "version": text.version, "hash": text.hash[:12]}
    record(text.project, "prompt_changed", actor=Actor.person(user), note=note, data=data)
