"""The field for when a row was made."""

from typing import Any

from django.db import models
from django.utils import timezone

from tasks.database.clock import estimated_time


class MomentField(models.DateTimeField):
    """A time by the database's clock, which is that of the row's making unless another one is given.

    Migrations, which import nothing of the program, know it as a plain one.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"default": estimated_time} | kwargs)

    def deconstruct(self) -> Any:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.DateTimeField", args, kwargs | {"default": timezone.now}
