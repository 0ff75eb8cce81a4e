"""What a pulled agent sends, and what it is told."""

from typing import Any

from rest_framework import serializers

from tasks.filtering import OptionalText

LOG_MAX = 64 * 1024
REASON_MAX = 300
TOKENS_MAX = 10**12


class AddressesSerializer(serializers.Serializer[Any]):
    """The URLs to use with the run's token."""

    work = serializers.CharField()
    beat = serializers.CharField()
    base = serializers.CharField()
    bundle = serializers.CharField()
    release = serializers.CharField()


class ClaimedSerializer(serializers.Serializer[Any]):
    """A run that this agent claimed. Only the claimer is given the token, which is stored nowhere."""

    run = serializers.IntegerField()
    token = serializers.CharField()
    task = serializers.CharField()
    title = serializers.CharField()
    role = serializers.CharField()
    stage = serializers.CharField(allow_blank=True)
    round = serializers.IntegerField()
    beat_seconds = serializers.FloatField(help_text="Beat at least this often.")
    lease_seconds = serializers.FloatField(help_text="Without a beat for so long the run is lost.")
    addresses = AddressesSerializer()


class WorkSerializer(serializers.Serializer[Any]):
    """The work of a run. Until a host has prepared it, `ready` is false and most fields are absent."""

    ready = serializers.BooleanField()
    run = serializers.IntegerField()
    task = serializers.CharField()
    role = serializers.CharField()
    stage = serializers.CharField(required=False, allow_blank=True)
    round = serializers.IntegerField(required=False)
    prompt = serializers.CharField(required=False)
    repo_url = serializers.CharField(required=False)
    target_branch = serializers.CharField(required=False)
    branch = serializers.CharField(required=False, allow_blank=True, help_text="Of a coder's commits.")
    base_sha = serializers.CharField(required=False)
    base_bundle = serializers.BooleanField(required=False, help_text="Whether to fetch the base's bundle.")
    base_ref = serializers.CharField(required=False, help_text="What that bundle calls the base.")
    hand_in_ref = serializers.CharField(required=False, help_text="What your bundle calls its commit.")


class BeatSerializer(serializers.Serializer[Any]):
    """What the agent reports while it works, all optional. Usage is counted from the beginning of the run."""

    log = OptionalText(trim_whitespace=False, max_length=LOG_MAX)
    tokens_in = serializers.IntegerField(required=False, min_value=0, max_value=TOKENS_MAX)
    tokens_cached = serializers.IntegerField(required=False, min_value=0, max_value=TOKENS_MAX)
    tokens_out = serializers.IntegerField(required=False, min_value=0, max_value=TOKENS_MAX)
    cost = serializers.DecimalField(
        required=False, min_value=0, max_digits=12, decimal_places=6, help_text="US dollars."
    )


class BeatenSerializer(serializers.Serializer[Any]):
    """Whether the agent may go on. If `stop` is true it has to end its work: the lease is not prolonged."""

    stop = serializers.BooleanField()
    reason = serializers.CharField(allow_blank=True)
    ready = serializers.BooleanField()
    lease_seconds = serializers.FloatField()


class ReleaseSerializer(serializers.Serializer[Any]):
    failed = serializers.BooleanField(
        required=False, default=False, help_text="It was tried and nothing came of it: counts as a failure."
    )
    reason = OptionalText(max_length=REASON_MAX)


class ReleasedSerializer(serializers.Serializer[Any]):
    message = serializers.CharField()


class BroughtSerializer(serializers.Serializer[Any]):
    message = serializers.CharField()
    sha = serializers.CharField()
    bytes = serializers.IntegerField()
