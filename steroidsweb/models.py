"""What the site itself keeps: who tried to sign in how often."""

from django.db import models


class SignInTries(models.Model):
    """Tries in a row without success, for one name from one address, or for one address.

    The key is a hash: people also type passwords where their name belongs.
    """

    key = models.CharField(max_length=64, primary_key=True)
    count = models.PositiveIntegerField(default=0)
    free_at = models.DateTimeField(help_text="The next try may be made from then on.")
    forget_at = models.DateTimeField(db_index=True, help_text="The count begins anew from then on.")

    class Meta:
        verbose_name_plural = "sign-in tries"

    def __str__(self) -> str:
        return f"{self.count} tries until {self.free_at:%H:%M:%S}"
