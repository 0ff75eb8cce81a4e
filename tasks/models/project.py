import json
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q

from tasks.configuration.policy import ProjectSettings, SettingsError
from tasks.database.locking import locked
from tasks.database.prepared import Prepared
from tasks.models.moments import MomentField
from tasks.text.branches import BRANCH_SAYS, is_branch_name
from tasks.text.repository_urls import has_password, is_found_anywhere, redact
from tasks.text.unseen import plain


def validate_slug(slug: str) -> None:
    """Refuse the slugs "c" and "d", because C-9 and D-7 name conflicts and disputes."""
    if slug.lower() in {"c", "d"}:
        raise ValidationError(f"{slug} stands for conflicts and disputes; choose another short name.")


def validate_settings(data: Any) -> None:
    """Refuse settings that cannot be used; the message names the key at fault."""
    try:
        ProjectSettings.from_json(data)
    except (SettingsError, TypeError) as error:
        raise ValidationError(str(error)) from error


def validate_branch(name: str) -> None:
    """Refuse what git takes for no branch, before anybody waits for its first fetch."""
    if name and not is_branch_name(name):
        raise ValidationError(f"{name!r} is not {BRANCH_SAYS}.")


def validate_repository(url: str) -> None:
    """Refuse a path that means another place in another folder, and a URL with a password in it.

    Members can read the URL, and events keep it for ever.
    """
    if not is_found_anywhere(url):
        raise ValidationError(f"{url!r} is no address: give a URL, HOST:PATH or an absolute path.")
    if has_password(url):
        raise ValidationError(
            "The address holds a password or a token, which every member would see. Leave it out and put the "
            "line https://USER:PASSWORD@HOST into the file git-credentials in the data folder, mode 0600."
        )


# These are not on the columns, because migrations would have to import them for ever.
VALIDATORS = {
    "slug": validate_slug, "settings": validate_settings, "repo_url": validate_repository,
    "target_branch": validate_branch,
}  # fmt: skip

# How a project may end (END-1 to END-7).
EXITS = [
    ("complete", "Complete"),
    ("good_enough", "Good enough"),
    ("user_approved", "Approved by a person"),
    ("max_rounds", "Round limit"),
    ("stall_exit", "Ended in a stall"),
    ("abandoned", "Abandoned"),
]


class Project(models.Model):
    """A git repository with its settings, sections and tasks."""

    class Status(models.TextChoices):
        ACTIVE = "active"
        PAUSED = "paused"
        FINISHED = "finished"

    class Base(models.TextChoices):
        """What is known of the target branch's head under the project's own commands."""

        UNKNOWN = "unknown", "Not tried yet"
        TRYING = "trying", "Being tried"
        GREEN = "green", "Green"
        NOTHING = "nothing", "Nothing to run"
        ACCEPTED = "accepted", "Red, accepted as it is"
        RED = "red", "Red"
        BROKEN = "broken", "Cannot be run here"

    class Kind(models.TextChoices):
        CODE = "code", "Code"  # each task goes through the loop by itself
        DOCUMENTS = "documents", "Documents"  # its tasks are gaps, which a session closes in rounds

    # Coders begin only in these states, so whatever turns red afterwards is their doing.
    FIT = (Base.GREEN, Base.NOTHING, Base.ACCEPTED)

    slug = models.SlugField(
        "short name", max_length=40, unique=True, help_text="Begins every task's name: ledger-214."
    )
    name = models.CharField(max_length=120)
    kind = models.CharField(
        max_length=9,
        choices=Kind,
        default=Kind.CODE,
        help_text="Code: each task is coded, tested and reviewed. Documents: the tasks are gaps, which an "
        "engineer and a reviewer close in rounds.",
    )
    brief = models.TextField(
        blank=True, help_text="What the documents are for, and for whom. Every prompt of a round holds it."
    )
    repo_url = models.CharField(
        "repository", max_length=500, help_text="A URL or a path that git can fetch from and push to."
    )
    target_branch = models.CharField(
        max_length=200, blank=True, default="main",
        help_text="Work begins and lands on it. Empty: the one that the repository calls its default.",
    )  # fmt: skip
    status = models.CharField(max_length=10, choices=Status, default=Status.ACTIVE)
    max_parallel = models.PositiveSmallIntegerField(
        "runs at a time", default=2, help_text="How many agents and verifications work here at the same time."
    )
    preamble = models.TextField(
        blank=True, editable=False, help_text="What stands above the first section of its TODO.md."
    )
    settings = models.JSONField(default=dict, blank=True, help_text="What differs from the defaults.")
    trouble = models.CharField(
        max_length=500, blank=True, editable=False, help_text="Why nothing is started: an unreachable remote."
    )
    trouble_until = models.DateTimeField(null=True, blank=True, editable=False)
    trouble_count = models.PositiveSmallIntegerField(default=0, editable=False)
    base_state = models.CharField(max_length=8, choices=Base, default=Base.UNKNOWN, editable=False)
    base_sha = models.CharField(
        max_length=64, blank=True, editable=False, help_text="The head that `base_state` is about."
    )
    base_at = models.DateTimeField(null=True, blank=True, editable=False, help_text="Of that state.")
    base_problem = models.CharField(max_length=500, blank=True, editable=False)
    base_red = models.JSONField(
        default=dict, blank=True, editable=False, help_text="What is red at base_sha: step, exit code, tests."
    )
    base_known = models.JSONField(
        default=dict, blank=True, editable=False, help_text="What somebody accepted as it is, likewise."
    )
    last_started_at = models.DateTimeField(null=True, blank=True, editable=False)
    records_event = models.PositiveBigIntegerField(
        default=0, editable=False, help_text="The newest event that the records on their branch know of."
    )
    records_at = models.DateTimeField(null=True, blank=True, editable=False, help_text="When last tried.")
    records_problem = models.CharField(max_length=500, blank=True, editable=False)
    focus = models.CharField(
        max_length=8, blank=True, editable=False,
        choices=[("critical", "Only critical tasks are begun")],
    )  # fmt: skip
    exit_type = models.CharField(max_length=13, blank=True, editable=False, choices=EXITS)
    exit_at = models.DateTimeField(null=True, blank=True, editable=False)
    exit_summary = models.JSONField(default=dict, blank=True, editable=False)
    created_at = MomentField(editable=False)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(condition=~Q(slug__in=["c", "d", "C", "D"]), name="project_slug_free"),
            models.CheckConstraint(condition=Q(max_parallel__gt=0), name="project_max_parallel_positive"),
            models.CheckConstraint(condition=Q(kind__in=["code", "documents"]), name="project_kind_known"),
            models.CheckConstraint(
                condition=Q(status__in=["active", "paused", "finished"]), name="project_status_known"
            ),
            models.CheckConstraint(
                condition=Q(
                    base_state__in=["unknown", "trying", "green", "nothing", "accepted", "red", "broken"]
                ),
                name="project_base_state_known",
            ),
            models.CheckConstraint(
                condition=Q(exit_type="", exit_at__isnull=True)
                | (~Q(exit_type="") & Q(exit_at__isnull=False, status="finished")),
                name="project_ended_is_finished",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Leave out of the name what nobody sees and what turns the text around it."""
        self.name = " ".join(plain(self.name).split())
        if not self.name:
            raise ValidationError({"name": "Nothing of this name can be seen."})

    def clean_fields(self, exclude: Collection[str] | None = None) -> None:
        errors: dict[str, Any] = {}
        try:
            super().clean_fields(exclude=exclude)
        except ValidationError as error:
            errors = error.update_error_dict({})
        for name in VALIDATORS.keys() - errors.keys() - set(exclude or ()):
            try:
                VALIDATORS[name](getattr(self, name))
            except ValidationError as error:
                errors[name] = error.error_list
        if errors:
            raise ValidationError(errors)

    @property
    def address(self) -> str:
        """The repository's URL as people may read it; passwords, which an old URL may contain, are masked."""
        return redact(self.repo_url)

    @property
    def coder_word(self) -> str:
        """The role whose work is reviewed, as people call it in a project of this kind."""
        return self.coder_word_of([self.kind])

    @property
    def checks_word(self) -> str:
        """What is run on that work before it is reviewed, as people call it in a project of this kind."""
        return "Checks" if self.kind == self.Kind.DOCUMENTS else "Build, tests"

    @classmethod
    def coder_word_of(cls, kinds: Iterable[str]) -> str:
        """Return what that role is called where projects of these kinds are shown together."""
        words = {"engineer" if kind == cls.Kind.DOCUMENTS else "coder" for kind in kinds}
        return " or ".join(sorted(words)) or "coder"

    @property
    def branch(self) -> str:
        """The target branch as sentences call it, even before its name is known."""
        return self.target_branch or "The default branch"

    @property
    def config(self) -> ProjectSettings:
        """The settings. Defaults stand in for wrong ones, which pause the project until they are mended."""
        return _settings_of(json.dumps(self.settings, sort_keys=True))[0]

    @property
    def setting_faults(self) -> list[SettingsError]:
        """What is wrong with the stored settings, which an upgrade or an edit past the forms may leave."""
        return _settings_of(json.dumps(self.settings, sort_keys=True))[1]


@lru_cache(maxsize=1024)
def _settings_of(text: str) -> tuple[ProjectSettings, list[SettingsError]]:
    """Parse settings, cached by their text, because each query of a project makes a new instance."""
    return ProjectSettings.salvaged(json.loads(text))


_locked = Prepared(lambda pk: locked(Project.objects).filter(pk=pk))


def locked_project(pk: int) -> Project | None:
    """Return the project, locked until the transaction ends; None if it is gone."""
    found: Project | None = _locked.first(pk)
    return found


class FormerName(models.Model):
    """A short name that a project had before, by which links in messages go on leading to it."""

    slug = models.SlugField(max_length=40, primary_key=True)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="former_names")

    def __str__(self) -> str:
        return self.slug


class Membership(models.Model):
    """A person's role in one project."""

    class Role(models.TextChoices):
        VIEWER = "viewer"  # reads
        TRIAGER = "triager"  # rules, comments, defers
        MAINTAINER = "maintainer"  # edits tasks, cancels, hands in for an agent

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="memberships", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role, default=Role.TRIAGER)
    is_lead = models.BooleanField("lead", default=False, help_text="Is told what nobody else picked up.")

    class Meta:
        ordering = ["project", "user"]
        constraints = [models.UniqueConstraint(fields=["project", "user"], name="membership_once")]

    def __str__(self) -> str:
        return f"{self.user} in {self.project}: {self.role}"


class Section(models.Model):
    """An ordered group of tasks; it may be nested in another section and wait for others."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="sections", db_index=False)
    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="children"
    )
    title = models.CharField(max_length=200)
    body = models.TextField(blank=True)
    rank = models.BigIntegerField(default=0)
    is_stopped = models.BooleanField(
        "stopped",
        default=False,
        help_text="A task in it failed; nothing here is started until it is ruled on.",
    )
    depends_on = models.ManyToManyField("self", symmetrical=False, blank=True, related_name="dependants")

    class Meta:
        ordering = ["project", "rank"]
        constraints = [
            models.UniqueConstraint(fields=["project", "parent", "title"], name="section_title_once"),
            models.UniqueConstraint(
                fields=["project", "title"], condition=Q(parent__isnull=True), name="section_top_title_once"
            ),
        ]

    def __str__(self) -> str:
        return self.title


class FollowedTodo(models.Model):
    """The TODO.md in the repository that a project follows: what was taken from it, and what waits.

    Hosts read and write the file; `tasks/todo/following.py` has the rules.
    """

    project = models.OneToOneField(Project, on_delete=models.CASCADE, related_name="todo")
    looked_at = models.DateTimeField(null=True, blank=True, help_text="When a host last looked.")
    seen = models.CharField(max_length=64, blank=True, help_text="The head that was last looked at.")
    sha = models.CharField(max_length=64, blank=True, help_text="The commit whose file was last taken.")
    path = models.CharField(max_length=300, blank=True, help_text="Where the file lay then.")
    lines = models.JSONField(default=dict, help_text="The line of each task in it, by the task's number.")
    ticked = models.JSONField(default=list, help_text="Tasks whose box is filled, by their numbers.")
    opened = models.JSONField(default=list, help_text="Finished tasks whose box somebody emptied again.")
    waiting = models.CharField(
        max_length=64, blank=True, help_text="A commit of the file that a person is to look at first."
    )
    waiting_for = models.JSONField(default=list, help_text="What that file would change, in sentences.")
    granted = models.CharField(max_length=64, blank=True, help_text="The commit that a person let pass.")
    written = models.CharField(max_length=64, blank=True, help_text="The program's own last commit of it.")
    problem = models.CharField(max_length=500, blank=True)

    class Meta:
        verbose_name = "followed TODO.md"
        verbose_name_plural = "followed TODO.md"

    def __str__(self) -> str:
        return f"{self.path} of {self.project_id}"
