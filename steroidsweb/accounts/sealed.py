"""What SECRET_KEY seals besides the addresses of channels: second factors."""

from collections.abc import Callable

from django.apps.registry import Apps
from django.db import connection, models, transaction

from disputes.notifications.sealing import Unreadable
from tasks.database.locking import locked

SEALED = ("secret", "seed")  # what is sealed in a row's data


class SealedFactor(models.Model):
    """A second factor's row, also while STEROIDS_MFA is off and django-allauth is not loaded."""

    data = models.JSONField()

    class Meta:
        apps = Apps()  # known to nobody else: the table is django-allauth's
        app_label = "mfa"
        db_table = "mfa_authenticator"

    def __str__(self) -> str:
        return f"second factor {self.pk}"


def reseal(again: Callable[[str], str]) -> int:
    """Seal the secrets of all second factors with today's key. Return how many."""
    if SealedFactor._meta.db_table not in connection.introspection.table_names():
        return 0  # STEROIDS_MFA was never on
    done = 0
    for pk in SealedFactor.objects.values_list("pk", flat=True):
        with transaction.atomic():
            row = locked(SealedFactor.objects).filter(pk=pk).first()
            if row is None:
                continue
            try:
                sealed = {key: again(row.data[key]) for key in SEALED if key in row.data}
            except Unreadable:
                continue  # its user is told so at the next sign-in
            row.data |= sealed
            row.save(update_fields=["data"])
            done += 1
    return done
