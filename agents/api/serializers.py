"""The bodies of hand-ins. Texts are limited here; disputes.protocol reads their content."""

import json
from functools import cache
from typing import Any

from django.utils.functional import cached_property
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from disputes.protocol.text.documents import MAX_BYTES
from tasks.configuration.stages import REASONS, UNKNOWN
from tasks.filtering import OptionalText, SeverityField
from tasks.models.choices import validate_sha

NOTES_MAX = 20_000


def _without_nul(data: Any) -> Any:
    """Return the data without NUL, the one character that a database refuses."""
    match data:
        case str():
            return data.replace("\0", "")
        case dict():
            return {_without_nul(key): _without_nul(value) for key, value in data.items()}
        case list():
            return [_without_nul(value) for value in data]
    return data


@extend_schema_field({"oneOf": [{"type": "string"}, {"type": "object"}]})
class Document(serializers.Field):  # type: ignore[type-arg]
    """Markdown as text, or its structured form as an object."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str | dict):
            raise serializers.ValidationError("It is neither a text nor an object.")
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        try:
            size = len(text.encode())
        except UnicodeEncodeError as error:
            raise serializers.ValidationError("It holds characters that are no text.") from error
        if size > MAX_BYTES:
            raise serializers.ValidationError(f"It has {size} bytes; {MAX_BYTES} are the limit.")
        return _without_nul(data)

    def to_representation(self, value: Any) -> Any:
        return value


class Body(serializers.Serializer[Any]):
    """Reads a body. Its fields are made once, not copied for each request, since nothing changes them."""

    @cached_property
    def fields(self) -> Any:
        return _fields_of(type(self))


@cache
def _fields_of(kind: type[Body]) -> Any:
    return super(Body, kind()).fields


class SubmitSerializer(Body):
    sha = serializers.CharField(validators=[validate_sha])
    response = Document(required=False, default="")
    notes = OptionalText(max_length=NOTES_MAX)
    model = OptionalText(max_length=120)


class ReviewSerializer(Body):
    notes = OptionalText(max_length=NOTES_MAX)
    review = Document(required=False, default="")
    check = serializers.BooleanField(
        required=False, default=False, help_text="Only say how the review is read; nothing is handed in."
    )
    confirm = serializers.BooleanField(
        required=False, default=False, help_text="Take it as it was read, though the reader was unsure."
    )
    model = OptionalText(max_length=120)


class OpenDisputeSerializer(Body):
    reason = serializers.CharField(max_length=300)
    position = OptionalText(max_length=NOTES_MAX)
    finding = OptionalText(max_length=24)
    severity = SeverityField(required=False)
    model = OptionalText(max_length=120)


class LogSerializer(Body):
    notes = serializers.CharField(max_length=NOTES_MAX)
    minor = serializers.BooleanField()
    model = OptionalText(max_length=120)


class BlockedSerializer(Body):
    reason = serializers.CharField(max_length=NOTES_MAX)


class EscalateSerializer(Body):
    reason = serializers.ChoiceField(choices=REASONS, required=False, default=UNKNOWN)
    notes = serializers.CharField(max_length=NOTES_MAX // 2)


class CommentSerializer(Body):
    body = serializers.CharField(max_length=NOTES_MAX)
    target = OptionalText(max_length=300)
    parent = serializers.IntegerField(required=False, allow_null=True, default=None)
    back = serializers.BooleanField(required=False, default=False)
    disagree = serializers.BooleanField(required=False, default=False)
    resolve = serializers.BooleanField(required=False, default=False)


class GiveOpinionSerializer(Body):
    """A judge gives `verdict` and `reasons`; a mediator gives `proposal` and `trade_off`, or `none`."""

    verdict = OptionalText(max_length=20, help_text="ENFORCE, DISMISS or ESCALATE")
    reasons = OptionalText(max_length=NOTES_MAX)
    proposal = OptionalText(max_length=NOTES_MAX)
    trade_off = OptionalText(max_length=NOTES_MAX)
    none = serializers.BooleanField(required=False, default=False)
    model = OptionalText(max_length=120)

    def validate_verdict(self, value: str) -> str:
        return value.strip().lower()


class HandedInSerializer(serializers.Serializer[Any]):
    """The reply to a hand-in."""

    message = serializers.CharField()
    task = serializers.CharField()
    status = serializers.CharField()
    round = serializers.IntegerField()
    conflicts = serializers.ListField(child=serializers.CharField(), required=False)
    findings = serializers.ListField(child=serializers.DictField(), required=False)
    dropped = serializers.ListField(child=serializers.CharField(), required=False)
    read_as = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="How the review is read, a line each."
    )


class MeSerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=["run", "agent", "person"])
    name = serializers.CharField()
    role = serializers.CharField(allow_blank=True)
    task = serializers.CharField(allow_blank=True)
