"""The forms on the page of a dispute."""

from typing import Any

from django import forms
from django.core import signing

from disputes import rulings
from disputes.models import Conflict
from disputes.protocol.rulings.options import Option
from tasks.database.clock import estimated_time

SALT = "disputes.card"


def signed_now(conflict: Conflict) -> str:
    """Return a signed mark of when the card was shown."""
    return signing.dumps([conflict.pk, estimated_time().timestamp()], salt=SALT)


def seconds_since(mark: str, conflict: Conflict) -> float | None:
    """Return how many seconds ago this card was shown, or None if the mark is forged or of another card."""
    try:
        pk, at = signing.loads(mark, salt=SALT)
    except signing.BadSignature:
        return None
    return max(estimated_time().timestamp() - at, 0.0) if pk == conflict.pk else None


class _Words(forms.CharField):
    """Text as it was typed, with the line ends of browsers normalised."""

    def __init__(self, *, rows: int, placeholder: str = "", **kwargs: Any) -> None:
        look = {"rows": rows, "class": "field", "placeholder": placeholder}
        kwargs = {"required": False, "max_length": rulings.TEXT_MAX} | kwargs
        super().__init__(widget=forms.Textarea(attrs=look), **kwargs)

    def to_python(self, value: Any) -> str:
        return super().to_python(value).replace("\r\n", "\n")


class SynthesisForm(forms.Form):
    """A synthesis as a person proposes it. `rulings.propose_synthesis` decides whether it is accepted."""

    synthesis = _Words(label="What both sides could live with", rows=3)
    trade_off = _Words(label="What each side gives up", rows=2)
    covers_both = forms.BooleanField(label="It meets both concerns", required=False)


class RulingForm(forms.Form):
    """A ruling as it was typed. `rulings.decide` decides whether it is accepted."""

    option = forms.CharField(max_length=16, required=False)
    text = _Words(label="Ruling", rows=3, placeholder="Left empty, the words of the chosen option stand.")
    rationale = _Words(label="Why", rows=1)
    constraints = _Words(label="Constraints", rows=2)
    cites = forms.Field(label="As ruled on", widget=forms.MultipleHiddenInput, required=False)  # C-9
    amend = forms.BooleanField(label="Draft the amendment of the specification", required=False)
    expects_change = forms.BooleanField(label="The code must change", required=False, initial=True)
    discard = forms.BooleanField(required=False)  # a separate button, which drops the finding
    shown = forms.CharField(max_length=64, required=False)
    since = forms.CharField(max_length=200, required=False)
    opened = forms.CharField(max_length=64, required=False)  # which code was opened (CRITICAL)

    def clean(self) -> dict[str, Any]:
        data = super().clean() or self.cleaned_data
        if not data.get("option") and not data.get("discard"):
            self.add_error("option", "Choose an option first.")
        return data

    def chosen(self) -> dict[str, Any]:
        """Return option and words, as `rulings.decide` and `rulings.preview` take them."""
        data = self.cleaned_data
        cites = ",".join(data["cites"] or ())[:200]
        if data["discard"]:
            why = data["rationale"].strip()
            reason = f"{rulings.DISCARDED}: {why}" if why else rulings.DISCARDED
            return {"option": Option.UPHOLD_CODER.value, "rationale": reason, "cites": cites}
        words = {name: data[name] for name in ("option", "text", "rationale", "constraints")}
        return {**words, "expects_change": data["expects_change"], "cites": cites}
