from enum import StrEnum

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q

from agents.providers.base import ProviderError
from agents.providers.registry import PROVIDERS, provider_for
from tasks.models import Project
from tasks.models.choices import NameField
from tasks.models.moments import MomentField


def provider_choices() -> list[tuple[str, str]]:
    """Return the names of all providers with their titles."""
    return [(name, provider.title) for name, provider in PROVIDERS.items()]


class Agent(models.Model):
    """A configured command that takes work in one role."""

    class Role(models.TextChoices):
        CODER = "coder"
        REVIEWER = "reviewer"
        JUDGE = "judge"
        MEDIATOR = "mediator"

    class Provider(StrEnum):
        """The providers that are no vendor's command."""

        COMMAND = "command"
        PULL = "pull"
        REPLAY = "replay"

    name = models.SlugField(max_length=60, unique=True)
    role = models.CharField(
        max_length=8, choices=Role,
        help_text="A judge gives an opinion on a conflict; a mediator proposes a synthesis.",
    )  # fmt: skip
    kind = models.CharField(
        "type", max_length=60, blank=True, help_text="What sort of agent it is: dev-agent, test-architect."
    )
    provider = NameField(max_length=10, choices=provider_choices, default=Provider.COMMAND.value)
    model = models.CharField(max_length=120, blank=True)
    vendor = models.CharField(
        max_length=60, blank=True, help_text="Who makes its model; empty means the provider's own vendor."
    )
    tier = models.CharField(
        max_length=40, blank=True,
        help_text="Agents of one tier stand in for each other; a step of a ladder may name it.",
    )  # fmt: skip
    instructions = models.TextField(blank=True, help_text="Added to every prompt of this agent.")
    projects = models.ManyToManyField(
        Project, blank=True, related_name="agents", help_text="Where it works; empty means everywhere."
    )
    domains = models.JSONField(
        default=list, blank=True, help_text='Tags it works on: ["backend"]. Empty means any.'
    )
    watches = models.JSONField(
        default=list, blank=True,
        help_text='Columns it takes work from: ["dev", "needs-senior-dev"]. Empty means its type\'s stages.',
    )  # fmt: skip
    focus = models.CharField(max_length=200, blank=True, help_text="What a reviewer looks at first.")
    priority = models.SmallIntegerField(default=0, help_text="Higher ones are chosen first.")
    slots = models.PositiveSmallIntegerField(default=1, help_text="Runs of this agent at a time.")
    host_label = models.CharField(
        max_length=40, blank=True,
        help_text="Only hosts with this label run it; empty: every host that its project allows.",
    )  # fmt: skip
    settings = models.JSONField(
        default=dict, blank=True,
        help_text='The four CLIs: {"key": "NAME_OF_A_VARIABLE", "base_url": "https://...", '
        '"program": "/path", "account": "team"}, all optional. "command": {"argv": ["my-agent", "{prompt}"], '
        '"pass": ["MY_AGENT_KEY"]}. "replay": {"cassettes": "/path"}.',
    )  # fmt: skip
    is_active = models.BooleanField("active", default=True)
    checked_at = models.DateTimeField(null=True, blank=True, editable=False)
    is_fine = models.BooleanField(null=True, blank=True, editable=False)
    check_says = models.CharField("last check", max_length=500, blank=True, editable=False)

    class Meta:
        ordering = ["role", "-priority", "name"]
        constraints = [
            models.CheckConstraint(condition=Q(slots__gt=0), name="agent_has_a_slot"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def account(self) -> str:
        """The account whose trouble pauses this agent; others of its provider may share it."""
        named = self.settings.get("account") if isinstance(self.settings, dict) else None
        if isinstance(named, str) and named:
            return named
        return self.provider if self._own_vendor() else f"{self.provider}:{self.name}"

    @property
    def made_by(self) -> str:
        """The vendor of the agent's model; empty if nobody named one."""
        return self.vendor or self._own_vendor()

    def _own_vendor(self) -> str:
        """Return who makes the models of the provider's command; empty if it may be anybody."""
        return PROVIDERS[self.provider].vendor if self.provider in PROVIDERS else ""

    def clean(self) -> None:
        if not isinstance(self.domains, list) or not all(isinstance(word, str) for word in self.domains):
            raise ValidationError({"domains": 'A list of tags is needed: ["backend", "api"].'})
        try:
            provider_for(self).check(self.settings, self.model)
        except ProviderError as error:
            # The code names the setting, for a form that has a field for it.
            fault = ValidationError(str(error), code=error.setting or "invalid")
            raise ValidationError({"settings": fault}) from error


class ProviderPause(models.Model):
    """Trouble with a provider: nothing that signs in there is started until the pause is over (LAD-4)."""

    name = models.CharField(max_length=120, unique=True, help_text="The account of the agents it holds up.")
    kind = models.CharField(max_length=12, help_text="The class of the error, such as quota.")
    reason = models.CharField(max_length=500)
    since = MomentField()
    until = models.DateTimeField()
    failures = models.PositiveIntegerField(default=1, help_text="In a row; each doubles the pause.")

    class Meta:
        ordering = ["until"]

    def __str__(self) -> str:
        return f"{self.name} until {self.until:%Y-%m-%d %H:%M} UTC"
