"""The form in which a person enters a channel."""

from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.conf import settings
from django.db.models import Q

from disputes.models import Channel
from disputes.notifications.addresses import LENGTH_MAX, Address, checked
from disputes.notifications.notices import OF_A_PERSON, OF_A_PROJECT
from tasks.access import projects_for
from tasks.errors import Refused
from tasks.models import Project

ADDRESS = (
    "An Apprise address such as mailto://user:password@example.org or slack://token/channel, or the https:// "
    "address that Slack, Discord or Teams gave you; for a webhook, the https:// address of your receiver. It "
    "is kept sealed and not shown again."
)
CLOCK = forms.TimeInput(attrs={"type": "time", "class": "field"}, format="%H:%M")


class ChannelForm(forms.ModelForm):  # type: ignore[type-arg]
    """A channel as it was typed. The address is asked for once and never shown again."""

    address = forms.CharField(max_length=LENGTH_MAX, strip=True)
    wants = forms.MultipleChoiceField(label="What about", required=False, widget=forms.CheckboxSelectMultiple)
    timezone = forms.ChoiceField(label="Time zone", widget=forms.Select(attrs={"class": "field"}))

    class Meta:
        model = Channel
        fields = ("name", "kind", "project", "wants", "digest_at", "quiet_from", "quiet_until", "timezone")
        widgets = {
            "name": forms.TextInput(attrs={"class": "field", "autocomplete": "off"}),
            "kind": forms.Select(attrs={"class": "field"}),
            "project": forms.Select(attrs={"class": "field"}),
            "digest_at": CLOCK,
            "quiet_from": CLOCK,
            "quiet_until": CLOCK,
        }
        labels = {
            "name": "Name",
            "kind": "Kind",
            "project": "Only in",
            "digest_at": "One message a day, at",
            "quiet_from": "Quiet from",
            "quiet_until": "Quiet until",
        }
        help_texts = dict.fromkeys(fields, "") | {
            "project": "A channel for one project is used there instead of your general one.",
        }

    def __init__(self, *args: Any, user: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.found: Address | None = None
        self.is_new = self.instance.pk is None
        self.topics = OF_A_PERSON if self.instance.user_id else OF_A_PROJECT
        self.fields["wants"].choices = [(topic.value, label) for topic, label in self.topics.items()]  # type: ignore[attr-defined]
        if not self.instance.wants:
            self.initial["wants"] = list(self.topics)
        zones = sorted(available_timezones() | {"UTC", self.instance.timezone})
        self.fields["timezone"].choices = [(zone, zone.replace("_", " ")) for zone in zones]  # type: ignore[attr-defined]
        if self.is_new:
            self.initial["timezone"] = settings.TIME_ZONE
            self.fields["timezone"].widget.attrs["data-own-zone"] = ""
        if self.instance.user_id is None:
            del self.fields["project"]
        else:
            mine = Q(pk__in=projects_for(user)) | Q(pk=self.instance.project_id)  # that they may have left
            self.fields["project"].queryset = Project.objects.filter(mine).order_by("name")  # type: ignore[attr-defined]
            self.fields["project"].empty_label = "All my projects"  # type: ignore[attr-defined]
        look = {"class": "field", "autocomplete": "off", "spellcheck": "false"}
        self.fields["address"].widget = forms.TextInput(attrs=look)
        self.fields["address"].required = self.is_new
        self.fields["address"].label = "Address" if self.is_new else "New address"
        self.fields["address"].help_text = (
            ADDRESS if self.is_new else "Empty keeps the one that is sealed here."
        )
        if not self.is_new:
            del self.fields["kind"]

    def clean_wants(self) -> list[str]:
        """Return the chosen topics, as [] if all are chosen, so that topics added later are included.

        Raises ValidationError if none is chosen.
        """
        chosen = self.cleaned_data["wants"]
        if not chosen:
            raise forms.ValidationError("Choose at least one, or pause the channel.")
        return [] if len(chosen) == len(self.topics) else chosen

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        start, end = values.get("quiet_from"), values.get("quiet_until")
        if (start is None) != (end is None):
            self.add_error("quiet_until" if start else "quiet_from", "Quiet hours have two ends.")
        elif start is not None and start == end:
            self.add_error("quiet_until", "Quiet hours end at another time than they begin.")
        kind = values.get("kind") or self.instance.kind
        if kind == Channel.Kind.WEBHOOK and values.get("digest_at"):
            self.add_error("digest_at", "A webhook gets each event by itself.")
        if values.get("address") and not self.errors:
            try:
                self.found = checked(kind, values["address"])
            except Refused as refused:
                self.add_error("address", refused.message)
        return values
