"""Which values can be the key of a row. Forms of the admin look their rows up by whatever a request sends."""

from typing import Any

from django.db.models.lookups import In

KEY_MAX = 2**63 - 1


def _can_be_key(value: Any) -> bool:
    if not isinstance(value, str | int):
        return True  # for Django to judge
    try:
        return 0 <= int(value) <= KEY_MAX
    except ValueError:
        return False


class KeyIn(In):
    """`pk__in`, for which a text or a number that can be no key names no row, as for `pk`. Django raises."""

    def get_prep_lookup(self) -> Any:
        if self.rhs_is_direct_value():
            self.rhs = [value for value in self.rhs if _can_be_key(value)]
        return super().get_prep_lookup()
