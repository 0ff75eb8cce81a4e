"""Names of people: records, mentions and choices show a name, so it belongs to one account."""

import unicodedata
from typing import Any

from django import forms
from django.contrib.auth import get_user_model

from tasks.events import SYSTEM
from tasks.text.unseen import plain

NAMESAKE = "Somebody is called that already, and no record would tell you apart. Add another name or initial."


def is_free(name: str, *, but: Any = None) -> bool:
    """Whether neither another account nor the program goes by the name, however spaced or capitalised.

    Accounts that are shut count, too, because records go on naming them.
    """
    wanted = _key(name)
    if wanted == _key(SYSTEM.label):
        return False
    rows = get_user_model().objects.exclude(pk=but).values_list("username", "first_name", "last_name")
    return all(wanted not in {_key(user), _key(f"{first} {last}")} for user, first, last in rows.iterator())


def _key(name: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", plain(name)).casefold().split())


class OwnNameForm(forms.ModelForm):  # type: ignore[type-arg]
    """A form of an account, whose new names nobody else has and hold nothing that is not seen."""

    def clean(self) -> dict[str, Any]:
        data = super().clean() or self.cleaned_data
        data |= {name: plain(data[name]).strip() for name in ("first_name", "last_name") if data.get(name)}
        called = f"{data.get('first_name', '')} {data.get('last_name', '')}".strip()
        for field, name, words in (
            ("username", data.get("username", ""), "Somebody has that name. Choose another one."),
            ("first_name", called, NAMESAKE),
        ):
            is_new = field in self.changed_data or (
                field == "first_name" and "last_name" in self.changed_data
            )
            if name and is_new and not is_free(name, but=self.instance.pk):
                self.add_error(field, words)
        return data
