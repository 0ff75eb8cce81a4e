"""The site's own tables: tries to sign in, sessions, invitations, and the audit."""

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import models

from tasks.access import who_may_enter
from tasks.database.clock import estimated_time
from tasks.database.triggers import no_change, no_deletion
from tasks.models import Membership
from tasks.models.moments import MomentField
from tasks.models.person import person

# What browsers say of themselves. Most also name others, so the first that fits counts.
BROWSERS = (
    ("Edg", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("FxiOS/", "Firefox"), ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"), ("Safari/", "Safari"),
)  # fmt: skip
SYSTEMS = (
    ("iPhone", "iPhone"), ("iPad", "iPad"), ("Android", "Android"), ("Windows", "Windows"),
    ("CrOS", "ChromeOS"), ("Mac OS X", "macOS"), ("Linux", "Linux"),
)  # fmt: skip


class SignInTries(models.Model):
    """Failed tries in a row to sign in, for one name from one address, or for one address.

    The key is a hash, because people also type passwords into the field for the name. A row also remembers a
    code that was used, for as long as it is valid.
    """

    key = models.CharField(max_length=64, primary_key=True)
    count = models.PositiveIntegerField(default=0)
    free_at = models.DateTimeField(help_text="The next try may be made from then on.")
    forget_at = models.DateTimeField(db_index=True, help_text="The count starts again from then on.")

    class Meta:
        verbose_name_plural = "sign-in tries"

    def __str__(self) -> str:
        return f"{self.count} tries until {self.free_at:%H:%M:%S}"


class AuditEntry(models.Model):
    """An act that concerns the whole installation: who signed in from where, who changed what in the admin.

    What happens in a project is an event of the project instead. The table is append-only, which triggers of
    the database enforce.
    """

    class Kind(models.TextChoices):
        SIGNED_IN = "signed_in", "Signed in"
        SIGNED_OUT = "signed_out", "Signed out"
        REFUSED = "refused", "Refused at the sign-in"
        ENDED = "ended", "Ended a session"
        FACTOR_ON = "factor_on", "Set up a second factor"
        FACTOR_OFF = "factor_off", "Removed a second factor"
        INVITED = "invited", "Invited somebody"
        JOINED = "joined", "Took an invitation"
        ADDED = "added"
        CHANGED = "changed"
        DELETED = "deleted"

    kind = models.CharField(max_length=10, choices=Kind)
    who = models.CharField(max_length=150, blank=True, help_text="The user name as it was then.")
    about = models.CharField(max_length=300, blank=True)
    note = models.CharField(max_length=500, blank=True)
    address = models.CharField(max_length=50, blank=True)
    at = MomentField()

    triggers = (no_change("steroidsweb_auditentry"), no_deletion("steroidsweb_auditentry"))

    class Meta:
        ordering = ["-pk"]
        verbose_name_plural = "audit entries"

    def __str__(self) -> str:
        return f"{self.get_kind_display()} by {self.who}"


class SignedIn(models.Model):
    """Where a session began and with which browser, shown to its user; deleted with the session."""

    session = models.OneToOneField(Session, on_delete=models.CASCADE, related_name="signed_in")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="signed_in")
    address = models.CharField(max_length=50, blank=True)
    browser = models.CharField(max_length=200, blank=True)
    at = MomentField()

    class Meta:
        ordering = ["-at"]

    def __str__(self) -> str:
        return f"session of {self.user_id} since {self.at:%Y-%m-%d %H:%M}"

    @property
    def browser_name(self) -> str:
        """The browser as people know it, such as Firefox on Linux; what it said, if it is none of these."""
        name = next((name for word, name in BROWSERS if word in self.browser), "")
        system = next((name for word, name in SYSTEMS if word in self.browser), "")
        return f"{name} on {system}" if name and system else self.browser


class InvitationQuerySet(models.QuerySet["Invitation"]):
    def open(self) -> "InvitationQuerySet":
        """Return the invitations whose link still makes an account: whoever made it may still invite."""
        now = estimated_time()
        return self.filter(who_may_enter("by"), by__is_superuser=True, used_at=None, expires_at__gt=now)


class Invitation(models.Model):
    """A link for one new colleague. It is signed and not stored; deleting the row takes it back."""

    whom = models.CharField("for whom", max_length=200, blank=True, help_text="For your own memory.")
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="invitations", editable=False
    )
    at = MomentField("invited at", editable=False)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True, editable=False)
    used_by = person(editable=False)

    objects = InvitationQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"invitation {self.pk}{f' for {self.whom}' if self.whom else ''}"

    @property
    def is_open(self) -> bool:
        return Invitation.objects.open().filter(pk=self.pk).exists()


class InvitedRole(models.Model):
    """A role in a project that comes with an invitation."""

    invitation = models.ForeignKey(Invitation, on_delete=models.CASCADE, related_name="roles", db_index=False)
    project = models.ForeignKey("tasks.Project", on_delete=models.CASCADE, related_name="+")
    role = models.CharField(max_length=10, choices=Membership.Role, default=Membership.Role.TRIAGER)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["invitation", "project"], name="invited_role_once")]

    def __str__(self) -> str:
        return f"{self.role} in {self.project}"
