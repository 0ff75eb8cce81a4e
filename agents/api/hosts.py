"""Hosts over REST, for superusers: what each is doing, and whether it takes new runs."""

from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from agents.models import Host, Run
from agents.setup import hosts
from tasks.access import require_superuser
from tasks.filtering import DONE, TextList
from tasks.idempotency import idempotent


class HostSerializer(serializers.ModelSerializer[Host]):
    """A machine that runs agents."""

    state = serializers.SerializerMethodField(help_text="alive, draining, full (its disk) or away")
    runs = serializers.IntegerField(source="live", read_only=True, help_text="Under way on it.")
    isolation = serializers.CharField(
        source="get_tier_display", read_only=True, help_text="Whether its runs are in a sandbox."
    )
    labels = TextList(read_only=True, help_text="What runs may ask for, from STEROIDS_HOST_LABELS.")

    class Meta:
        model = Host
        fields = ["name", "state", "seen_at", "runs", "slots", "isolation", "labels", "version"]
        read_only_fields = fields
        extra_kwargs = {
            "slots": {"help_text": "Runs that it takes at a time."},
            "seen_at": {"help_text": "When it was heard of last."},
            "version": {"help_text": "Of the program."},
        }

    def get_state(self, host: Any) -> str:
        return str(host.state(is_alive=host.is_alive))


class HostActSerializer(HostSerializer):
    message = serializers.CharField(help_text=DONE)

    class Meta(HostSerializer.Meta):
        fields = [*HostSerializer.Meta.fields, "message"]


class HostViewSet(mixins.ListModelMixin, viewsets.GenericViewSet[Host]):
    """The hosts of the installation."""

    queryset = Host.objects.none()
    serializer_class = HostSerializer
    lookup_field = "name"
    lookup_value_regex = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,119}"

    def get_queryset(self) -> QuerySet[Host]:
        under_way = Q(runs__status__in=Run.HELD)
        alive = Host.objects.alive().filter(pk=OuterRef("pk"))
        rows = Host.objects.filter(is_removed=False).order_by("name")
        return rows.annotate(live=Count("runs", filter=under_way), is_alive=Exists(alive))

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        require_superuser(request.user, "see the hosts")
        return super().list(request, *args, **kwargs)

    @extend_schema(request=None, responses=HostActSerializer)
    @action(detail=True, methods=["post"])
    @idempotent()
    def drain(self, request: Request, name: str) -> dict[str, Any]:
        """Let the host take no new runs; the runs it has go on to their end."""
        return self._set(request, name, True)

    @extend_schema(request=None, responses=HostActSerializer)
    @action(detail=True, methods=["post"])
    @idempotent()
    def resume(self, request: Request, name: str) -> dict[str, Any]:
        """Let the host take runs again."""
        return self._set(request, name, False)

    def _set(self, request: Request, name: str, is_draining: bool) -> dict[str, Any]:
        require_superuser(request.user, "start or stop hosts")
        host = hosts.named(name)
        hosts.set_draining(host, is_draining)
        left = hosts.left_on(host)
        end = f"It still has {left}." if left else "It is empty and can be stopped."
        said = f"takes no new runs. {end}" if is_draining else "takes new runs again."
        row = self.get_queryset().get(pk=host.pk)
        return {**HostSerializer(row).data, "message": f"{host.name} {said}"}
