import secrets
from hashlib import sha256

from django.db import models
from django.db.models import Q

from agents.models.agent import Agent
from tasks.models.moments import MomentField
from tasks.models.person import person

TOKEN_PREFIX = "stx_"  # noqa: S105  (a public prefix, so that scanners recognise a leaked token)


def new_token() -> str:
    """Return a new token of 256 random bits, to be shown once and stored only as a hash."""
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def token_hash(token: str) -> str:
    return sha256(token.encode()).hexdigest()


class Token(models.Model):
    """A token of a person or of a pulled agent. Only its hash is stored."""

    user = person(on_delete=models.CASCADE, related_name="tokens")
    agent = models.ForeignKey(
        Agent, null=True, blank=True, on_delete=models.CASCADE, related_name="tokens",
        help_text="An agent elsewhere that claims its own work.",
    )  # fmt: skip
    name = models.CharField(max_length=80)
    hash = models.CharField(max_length=64, unique=True, editable=False)
    created_at = MomentField(editable=False)
    used_at = models.DateTimeField(null=True, blank=True, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["user", "name"]
        constraints = [
            models.CheckConstraint(
                condition=Q(user__isnull=False, agent__isnull=True)
                | Q(user__isnull=True, agent__isnull=False),
                name="token_of_a_person_or_an_agent",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.user or self.agent}"

    @classmethod
    def mint_for(cls, agent: Agent, name: str) -> tuple["Token", str]:
        """Create a token for a pulled agent; return its row and the token in clear, which is shown once."""
        secret = new_token()
        return cls.objects.create(agent=agent, name=name, hash=token_hash(secret)), secret
