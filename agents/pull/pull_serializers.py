"""What a pulled agent sends, and what it is told."""

from typing import Any

from rest_framework import serializers

from tasks.filtering import DONE, OptionalText

LOG_MAX = 64 * 1024
REASON_MAX = 300
TOKENS_MAX = 10**12


class AddressesSerializer(serializers.Serializer[Any]):
    """The URLs to use with the run's token."""

    work = serializers.CharField(help_text="GET: the prompt, and where the code is.")
    beat = serializers.CharField(help_text="POST: the agent is alive; whether it has to stop.")
    base = serializers.CharField(
        help_text="GET: the commits up to the base that the remote lacks, as a bundle."
    )
    bundle = serializers.CharField(help_text="POST: a bundle with the coder's commits.")
    release = serializers.CharField(help_text="POST: give the run back.")


class ClaimedSerializer(serializers.Serializer[Any]):
    """A run that this agent claimed. Only the claimer is given the token, which is stored nowhere."""

    run = serializers.IntegerField()
    token = serializers.CharField(help_text="Hands in work for this task only, and dies with the run.")
    task = serializers.CharField()
    title = serializers.CharField()
    role = serializers.CharField(help_text="coder, reviewer or another; each has hand-ins of its own.")
    stage = serializers.CharField(
        allow_blank=True, help_text="The task's column; empty where there is only one."
    )
    round = serializers.IntegerField()
    beat_seconds = serializers.FloatField(help_text="Beat at least this often.")
    lease_seconds = serializers.FloatField(help_text="Without a beat for so long the run is lost.")
    addresses = AddressesSerializer()


class WorkSerializer(serializers.Serializer[Any]):
    """The work of a run. Until a host has prepared it, `ready` is false and most fields are absent."""

    ready = serializers.BooleanField(help_text="Whether a host has prepared it; ask again until it has.")
    run = serializers.IntegerField()
    task = serializers.CharField()
    role = serializers.CharField()
    stage = serializers.CharField(required=False, allow_blank=True)
    round = serializers.IntegerField(required=False)
    prompt = serializers.CharField(required=False, help_text="What the agent is told, in Markdown.")
    repo_url = serializers.CharField(required=False, help_text="Where to clone from, if your machine may.")
    target_branch = serializers.CharField(required=False)
    branch = serializers.CharField(required=False, allow_blank=True, help_text="Of a coder's commits.")
    base_sha = serializers.CharField(required=False, help_text="The commit that the work begins at.")
    base_bundle = serializers.BooleanField(required=False, help_text="Whether to fetch the base's bundle.")
    base_ref = serializers.CharField(required=False, help_text="What that bundle calls the base.")
    hand_in_ref = serializers.CharField(required=False, help_text="What your bundle calls its commit.")


class BeatSerializer(serializers.Serializer[Any]):
    """What the agent reports while it works, all optional. Usage is counted from the beginning of the run."""

    log = OptionalText(
        trim_whitespace=False, max_length=LOG_MAX, help_text="What the agent wrote since the last beat."
    )
    tokens_in = serializers.IntegerField(
        required=False, min_value=0, max_value=TOKENS_MAX, help_text="Without those read from a cache."
    )
    tokens_cached = serializers.IntegerField(
        required=False, min_value=0, max_value=TOKENS_MAX, help_text="Read from a cache."
    )
    tokens_out = serializers.IntegerField(required=False, min_value=0, max_value=TOKENS_MAX)
    cost = serializers.DecimalField(
        required=False, min_value=0, max_digits=12, decimal_places=6, help_text="US dollars."
    )


class BeatenSerializer(serializers.Serializer[Any]):
    """Whether the agent may go on. If `stop` is true it has to end its work: the lease is not prolonged."""

    stop = serializers.BooleanField(help_text="End the work: what is handed in now is refused.")
    reason = serializers.CharField(allow_blank=True, help_text="Why it has to stop.")
    ready = serializers.BooleanField(help_text="Whether the work is prepared.")
    lease_seconds = serializers.FloatField(help_text="Without another beat for so long the run is lost.")


class ReleaseSerializer(serializers.Serializer[Any]):
    failed = serializers.BooleanField(
        required=False, default=False, help_text="It was tried and nothing came of it: counts as a failure."
    )
    reason = OptionalText(
        max_length=REASON_MAX, help_text="What went wrong, for the people who look at the run."
    )


class ReleasedSerializer(serializers.Serializer[Any]):
    message = serializers.CharField(help_text=DONE)


class BroughtSerializer(serializers.Serializer[Any]):
    message = serializers.CharField(help_text=DONE)
    sha = serializers.CharField(help_text="The commit that was taken out of the bundle.")
    bytes = serializers.IntegerField(help_text="How large the bundle was.")
