"""The bodies of hand-ins. Texts are limited here; disputes.protocol reads their content."""

import json
from functools import cache
from typing import Any

from django.utils.functional import cached_property
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from disputes.protocol.text.documents import MAX_BYTES
from tasks.configuration.stages import REASONS, UNKNOWN
from tasks.filtering import DONE, OptionalFlag, OptionalText, SeverityField, TextList
from tasks.models.choices import validate_sha
from tasks.text.storable import all_storable

NOTES_MAX = 20_000
MODEL = "Which model did the work, if it is not the one that was set."


@extend_schema_field({"oneOf": [{"type": "string"}, {"type": "object"}]})
class Document(serializers.Field):  # type: ignore[type-arg]
    """Markdown as text, or its structured form as an object."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str | dict):
            raise serializers.ValidationError("It is neither a text nor an object.")
        data = all_storable(data)
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        if (size := len(text.encode())) > MAX_BYTES:
            raise serializers.ValidationError(f"It has {size} bytes; {MAX_BYTES} are the limit.")
        return data

    def to_representation(self, value: Any) -> Any:
        return value


class Body(serializers.Serializer[Any]):
    """Reads a body. Its fields are made once, not copied for each request, since nothing changes them.

    A field that it does not know is refused: what an approval says in one would else be lost.
    """

    def to_internal_value(self, data: Any) -> Any:
        read = super().to_internal_value(data)
        if unknown := sorted(set(map(str, data)) - self.fields.keys()):
            why = f"There is no such field; the fields are {', '.join(self.fields)}."
            raise serializers.ValidationError({all_storable(name[:60]): [why] for name in unknown[:20]})
        return read

    @cached_property
    def fields(self) -> Any:
        return _fields_of(type(self))


@cache
def _fields_of(kind: type[Body]) -> Any:
    return super(Body, kind()).fields


class SubmitSerializer(Body):
    sha = serializers.CharField(
        validators=[validate_sha], help_text="The commit, in full; people may leave it out in the command."
    )
    response = Document(required=False, default="", help_text="An answer to each finding, as a document.")
    notes = OptionalText(max_length=NOTES_MAX, help_text="In place of a document: free words.")
    model = OptionalText(max_length=120, help_text=MODEL)


class ReviewSerializer(Body):
    notes = OptionalText(max_length=NOTES_MAX, help_text="In place of a document: free words.")
    review = Document(required=False, default="", help_text="The findings, as a document.")
    check = OptionalFlag(help_text="Only say how the review is read; nothing is handed in.")
    confirm = OptionalFlag(help_text="Take it as it was read, though the reader was unsure.")
    model = OptionalText(max_length=120, help_text=MODEL)


class OpenDisputeSerializer(Body):
    reason = serializers.CharField(
        max_length=300,
        help_text="architecture, specification, guideline, security, scope, other, or own words.",
    )
    position = OptionalText(
        max_length=NOTES_MAX, help_text="What the caller's side says; it is shown word for word."
    )
    finding = OptionalText(
        max_length=24, help_text="The code of the finding that it is about; empty: about none."
    )
    severity = SeverityField(required=False, help_text="Never less than the finding's own.")
    model = OptionalText(max_length=120, help_text=MODEL)


class LogSerializer(Body):
    notes = serializers.CharField(max_length=NOTES_MAX, help_text="What the coder sees otherwise.")
    minor = serializers.BooleanField(help_text="Always true: whatever should hold the task is a dispute.")
    model = OptionalText(max_length=120, help_text=MODEL)


class BlockedSerializer(Body):
    reason = serializers.CharField(
        max_length=NOTES_MAX, help_text="What is missing: an access, a tool or a fact. A person reads it."
    )


class EscalateSerializer(Body):
    reason = serializers.ChoiceField(
        choices=REASONS, required=False, default=UNKNOWN, help_text="Decides which specialists get it."
    )
    notes = serializers.CharField(max_length=NOTES_MAX // 2, help_text="What was tried and why it failed.")


class CommentSerializer(Body):
    body = serializers.CharField(max_length=NOTES_MAX, help_text="In Markdown; @name tells a member.")
    target = OptionalText(max_length=300, help_text="What it is about: a file and line, or a heading.")
    parent = serializers.IntegerField(
        required=False,
        allow_null=True,
        default=None,
        help_text="The number of the comment that this answers.",
    )
    back = OptionalFlag(help_text="Object to the stage before, and send the task there.")
    disagree = OptionalFlag(help_text="Say that the objection is wrong, and send the task on.")
    resolve = OptionalFlag(help_text="Accept the objection, and mend it.")


class GiveOpinionSerializer(Body):
    """A judge gives `verdict` and `reasons`; a mediator gives `proposal` and `trade_off`, or `none`."""

    verdict = OptionalText(max_length=20, help_text="ENFORCE, DISMISS or ESCALATE")
    reasons = OptionalText(max_length=NOTES_MAX, help_text="Why, for the person who rules.")
    proposal = OptionalText(max_length=NOTES_MAX, help_text="What both sides could live with.")
    trade_off = OptionalText(max_length=NOTES_MAX, help_text="What each side gives up.")
    none = OptionalFlag(help_text="There is no middle ground to propose.")
    model = OptionalText(max_length=120, help_text=MODEL)

    def validate_verdict(self, value: str) -> str:
        return value.strip().lower()


class HandedInSerializer(serializers.Serializer[Any]):
    """The reply to a hand-in."""

    message = serializers.CharField(help_text=DONE)
    task = serializers.CharField()
    status = serializers.CharField(help_text="That of the task now.")
    round = serializers.IntegerField()
    conflicts = TextList(required=False, help_text="Names of those that this opened.")
    findings = serializers.ListField(
        child=serializers.DictField(), required=False, help_text="As they were read from the review."
    )
    dropped = TextList(required=False, help_text="Findings that were left out, and why.")
    read_as = TextList(required=False, help_text="How the review is read, a line each.")


class MeSerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=["run", "agent", "person"], help_text="Whose token this is.")
    name = serializers.CharField()
    role = serializers.CharField(allow_blank=True, help_text="Of a run's agent; empty for others.")
    task = serializers.CharField(
        allow_blank=True, help_text="The only one that a run may hand in; empty for others."
    )
