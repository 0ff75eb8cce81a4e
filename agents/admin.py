"""The admin pages of agents, hosts and runs, and of the tokens of people and agents."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Left
from django.forms.widgets import Script
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.template.defaultfilters import filesizeformat
from django.urls import path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.admin import StackedInline
from unfold.decorators import display

from agents.crew import pauses
from agents.models import Agent, Host, Output, Prompt, ProviderPause, Run, Token, new_token, token_hash
from agents.prompts import prompt_admin  # noqa: F401  (registers the prompts of projects)
from agents.pull import leases
from agents.setup import checking, hosts
from agents.setup.adding import missing_program
from agents.web.agent_form import AgentForm
from agents.web.log import plain
from tasks.access import is_superuser, may_enter
from tasks.admin import base
from tasks.database.clock import estimated_time
from tasks.spans import clock

LIVE_RUNS = Count("runs", ~Q(runs__status=Run.Status.ENDED))
LOG_PIECES = 5
CHECKED_MAX = 10  # agents that one action checks at most


def _section(title: str | None, *fields: Any) -> Any:
    return title, {"fields": fields}


def _folded(title: str, *fields: Any) -> Any:
    return title, {"classes": ("collapse",), "fields": fields}


@admin.register(Agent)
class AgentAdmin(base.SuperuserAdmin, base.BaseAdmin):
    list_display = (
        "name", "role", "made_of", "is_active", "priority", "live_of_slots", "state", "seen",
    )  # fmt: skip
    list_filter = ("role", "provider", "tier", "is_active")
    search_fields = ("name", "model", "kind")
    actions = ("check_agents",)
    form = AgentForm
    readonly_fields = ("last_check",)
    fieldsets = (
        _section(
            None, "last_check", ("name", "role"), "provider", "command_line", "model", "key", "passes",
            "hosts", "again", "cassettes", "domains", "watches", "projects", "is_active",
        ),
        _folded(
            "Advanced", ("kind", "vendor"), "tier", ("priority", "slots"), "focus", "instructions", "program",
            "base_url", "sign_in_file", "account", "host_label", "cost_input", "cost_output",
            "cost_cache_read", "limit_context", "limit_output",
        ),
    )  # fmt: skip

    class Media:
        css = {"all": ("steroids/agent-form.css",)}
        js = (Script("steroids/agent-form.js", type="module"),)

    def get_urls(self) -> list[Any]:
        state = self.admin_site.admin_view(self.check_state)
        return [path("<path:object_id>/check/", state, name="agents_agent_check"), *super().get_urls()]

    def check_state(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Return the state of the agent's check as JSON, for the agent's page while it waits for a result."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        agent = self.get_object(request, object_id)
        return JsonResponse({"is_asked": checking.is_asked(agent), "says": checking.last_check(agent)})

    def get_queryset(self, request: HttpRequest) -> QuerySet[Agent]:
        used = Token.objects.filter(agent=OuterRef("pk"), used_at__isnull=False)
        seen = used.order_by("-used_at").values("used_at")[:1]
        lease = Run.objects.live().filter(
            agent=OuterRef("pk"), is_pulled=True, host=None, lease_until__isnull=False
        )
        lease = lease.order_by("-lease_until").values("lease_until")[:1]
        rows = super().get_queryset(request)
        return rows.annotate(live=LIVE_RUNS, claimed_at=Subquery(seen), lease=Subquery(lease))

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Return the list of agents, with the pauses of all accounts read in one go."""
        shown = super().get_changelist_instance(request)
        paused = pauses.paused()
        for agent in shown.result_list:
            agent.pause = paused.get(agent.account)
        return shown

    @display(description="model", ordering="model")
    def made_of(self, agent: Agent) -> SafeString:
        """Return the model, and below it what runs it and in which tier."""
        below = ", ".join(filter(None, (agent.get_provider_display(), agent.tier and f"tier {agent.tier}")))
        return format_html('{}<br><small class="meta">{}</small>', agent.model or "-", below)

    @display(
        description="state",
        label={"paused": "warning", "fails": "danger", "fine": "success"}
        | dict.fromkeys(("not checked", "being checked"), "neutral"),
    )
    def state(self, agent: Any) -> tuple[str, str]:
        """Return the label's key and text: paused if the account is, else what the last check found."""
        if pause := getattr(agent, "pause", None):
            return "paused", f"paused until {clock(pause.until, estimated_time())}"
        untried = "being checked" if checking.is_asked(agent) else "not checked"
        word = {True: "fine", False: "fails"}.get(agent.is_fine, untried)
        return word, word

    @display(description="last seen")
    def seen(self, agent: Any) -> str:
        """Return when a pulled agent last asked for work or sent a beat; empty for agents on hosts."""
        if agent.provider != Agent.Provider.PULL:
            return ""
        beaten = agent.lease - leases.lease() if agent.lease else None
        last = max(filter(None, (agent.claimed_at, beaten)), default=None)
        return clock(last, estimated_time()) if last else "never"

    @display(description="last check")
    def last_check(self, agent: Agent) -> SafeString:
        waits = reverse("admin:agents_agent_check", args=[agent.pk]) if checking.is_asked(agent) else ""
        return format_html(
            '<span id="last-check" role="status" data-waits="{}">{}</span>',
            waits,
            checking.last_check(agent),
        )

    @admin.action(description="Check: start the command once")
    def check_agents(self, request: HttpRequest, queryset: QuerySet[Agent]) -> None:
        asked = list(queryset[:CHECKED_MAX])
        for agent in asked:
            checking.ask(agent)
        names = ", ".join(agent.name for agent in asked)
        self.message_user(request, f"{names}: being checked. The result stands here in a moment.")

    def response_add(self, request: HttpRequest, obj: Agent, post_url_continue: Any = None) -> HttpResponse:
        return self._checked(request, obj) or super().response_add(request, obj, post_url_continue)

    def response_change(self, request: HttpRequest, obj: Agent) -> HttpResponse:
        return self._checked(request, obj) or super().response_change(request, obj)

    def _checked(self, request: HttpRequest, agent: Agent) -> HttpResponse | None:
        """Start a check and redirect to the agent's page after "Save and check"; otherwise return None."""
        if "_check" not in request.POST:
            return None
        checking.ask(agent)
        self.message_user(
            request,
            f"{agent.name} was saved. What its check finds appears under Last check.",
            messages.SUCCESS,
        )
        return HttpResponseRedirect(reverse("admin:agents_agent_change", args=[agent.pk]))

    def save_model(self, request: HttpRequest, obj: Agent, form: Any, change: bool) -> None:
        """Save the agent, and only warn if its program is missing: an agent host may be another machine."""
        super().save_model(request, obj, form, change)
        if missing := missing_program(obj):
            says = f"{missing} Saved all the same: another host may have it."
            self.message_user(request, says, messages.WARNING)

    @display(description="running", ordering="live")
    def live_of_slots(self, agent: Any) -> str:
        return f"{agent.live} of {agent.slots}"


@admin.register(Host)
class HostAdmin(base.SuperuserAdmin, base.BaseAdmin):
    """Hosts register themselves. People drain them and set their slots; `manage.py host` removes one."""

    list_display = ("name", "state", "live_of_slots", "tier", "disk", "seen_at", "version")
    list_filter = ("is_draining", "is_removed")
    search_fields = ("name", "place")
    actions = ("drain", "resume")
    fields = (
        ("is_draining", "slots"), ("name", "state"), "left", "tier", "why_open", "disk",
        ("seen_at", "ticked_at"), "version", "tools", "seen_by_runs", "place", "labels", "boot_id",
    )  # fmt: skip
    readonly_fields = (
        "name", "state", "left", "tier", "why_open", "disk", "seen_at", "ticked_at", "version", "tools",
        "seen_by_runs", "place", "labels", "boot_id",
    )  # fmt: skip

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Host]:
        is_alive = Exists(Host.objects.alive().filter(pk=OuterRef("pk")))
        return super().get_queryset(request).annotate(live=LIVE_RUNS, is_alive=is_alive)

    @display(description="running", ordering="live")
    def live_of_slots(self, host: Any) -> str:
        return f"{host.live} of {host.slots}"

    @display(
        description="state",
        label={
            "alive": "success", "draining": "warning", "full": "danger", "away": "danger",
            "removed": "neutral",
        },
    )  # fmt: skip
    def state(self, host: Any) -> str:
        return str(host.state(is_alive=host.is_alive))

    @display(description="still has")
    def left(self, host: Host) -> str:
        """Say which runs and commits only this host has; a draining host is empty once there are none."""
        return str(hosts.left_on(host))

    @display(description="toolchains")
    def seen_by_runs(self, host: Host) -> str:
        """List the folders on the host that runs may read besides the system's own."""
        return format_html_join("", "{}<br>", ((folder,) for folder in host.toolchains)) or "none"

    @display(description="free on disk", ordering="disk_free")
    def disk(self, host: Host) -> str:
        return filesizeformat(host.disk_free) if host.disk_free is not None else ""

    @admin.action(description="Drain: take no new runs")
    def drain(self, request: HttpRequest, queryset: QuerySet[Host]) -> None:
        for host in queryset:
            hosts.set_draining(host, True)
            self.message_user(request, f"{host} takes no new runs. It still has {hosts.left_on(host)}.")

    @admin.action(description="Resume: take runs again")
    def resume(self, request: HttpRequest, queryset: QuerySet[Host]) -> None:
        for host in queryset:
            hosts.set_draining(host, False)
            self.message_user(request, f"{host} takes runs again.")


@admin.register(ProviderPause)
class ProviderPauseAdmin(base.ReadOnlyAdmin, base.SuperuserAdmin, base.BaseAdmin):
    """Accounts that are paused because of trouble. A pause can be ended on the dashboard."""

    list_display = ("name", "kind", "until", "failures", "reason")
    list_filter = ("kind",)
    search_fields = ("name", "reason")


class PromptInline(base.ReadOnlyAdmin, StackedInline):
    model = Prompt
    fields = readonly_fields = (base.in_full("text", "text"),)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Let everybody who may see the run see its prompt."""
        return True


@admin.register(Run)
class RunAdmin(base.ReadOnlyAdmin, base.ProjectScopedAdmin):
    list_display = (
        base.related("pk", "run", "pk"), base.task_ref, "role", "round", "agent_label", "host", "status",
        "outcome_label", "started_at", "ended_at",
    )  # fmt: skip
    list_filter = (base.ProjectFilter, "status", "role", "outcome", "error_class")
    list_select_related = ("task__project", "host")
    search_fields = ("agent_label", "task__title", "reason")
    fieldsets = (
        _section(
            None, ("task", "project"), ("role", "round"), ("status", "outcome", "error_class"), "reason",
            "log",
        ),
        _section(
            "Who and when", ("agent_label", "model"), ("host", "tier"), ("queued_at", "started_at"),
            ("last_output_at", "ended_at"),
        ),
        _folded(
            "For those who look closely", ("seat", "task_version"), ("fence", "lease_until"),
            ("exit_code", "is_counted"), ("submission", "review"), "sha", "base_sha", "salvage_sha",
            "prompt_hash",
        ),
    )  # fmt: skip
    readonly_fields = ("log",)
    inlines = (PromptInline,)

    def view_on_site(self, run: Run) -> str:
        """Return the URL of the run's page, which follows its log."""
        return reverse("run", args=[run.pk])

    @display(
        description="outcome",
        ordering="outcome",
        label=dict.fromkeys(Run.Outcome, "danger")
        | {"": "neutral", "handed_in": "success", "nothing": "warning", "stopped": "neutral"},
    )
    def outcome_label(self, run: Run) -> tuple[str, str]:
        return run.outcome, run.get_outcome_display()

    @display(description="end of the log")
    def log(self, run: Run) -> SafeString:
        pieces = run.outputs.order_by("-seq").values_list("text", flat=True)[:LOG_PIECES]
        return base.preformatted(plain("".join(reversed(pieces))))


@admin.register(Output)
class OutputAdmin(base.ReadOnlyAdmin, base.ProjectScopedAdmin):
    project_path = "run__project"
    list_display = (
        base.related("run_id", "run", "run"), base.related("run.task.ref", "task", "run__task"), "seq",
        "beginning",
    )  # fmt: skip
    list_filter = (base.ProjectFilter,)
    list_select_related = ("run__task__project",)
    search_fields = ("=run__pk",)
    search_help_text = "Number of a run"
    fields = ("run", "seq", "words")
    readonly_fields = ("words",)
    ordering = ("-pk",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Output]:
        return super().get_queryset(request).defer("text").annotate(head=Left("text", 100))

    @display(description="text")
    def beginning(self, output: Any) -> str:
        return plain(output.head).strip()

    @display(description="text")
    def words(self, output: Output) -> SafeString:
        return base.preformatted(plain(output.text))


@admin.register(Token)
class TokenAdmin(base.ExpiringAdmin, base.BaseAdmin):
    """The tokens for the API.

    Staff users create and withdraw their own. Superusers see and withdraw all tokens, and create those of
    pulled agents.
    """

    list_display = ("name", "user", "agent", "created_at", "used_at", "expires_at")
    list_select_related = ("user", "agent")
    search_fields = ("name", "user__username", "agent__name")

    def has_module_permission(self, request: HttpRequest) -> bool:
        return may_enter(request.user)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request) and (obj is None or self._is_own(request, obj))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.has_module_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_view_permission(request, obj)

    def _is_own(self, request: HttpRequest, token: Token) -> bool:
        return is_superuser(request) or token.user_id == request.user.pk

    def get_queryset(self, request: HttpRequest) -> QuerySet[Token]:
        rows = super().get_queryset(request)
        return rows if is_superuser(request) else rows.filter(user=request.user)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        if obj is not None:
            return ("name", "expires_at", "user", "agent", "created_at", "used_at")
        return ("name", "agent", "expires_at") if is_superuser(request) else ("name", "expires_at")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return () if obj is None else ("user", "agent", "created_at", "used_at")

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Offer only pulled agents: no other agent has a token of its own."""
        if db_field.name == "agent":
            kwargs["queryset"] = Agent.objects.filter(provider=Agent.Provider.PULL)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: Token, form: Any, change: bool) -> None:
        """Create the token and show it in clear in one message; only its hash is stored."""
        secret = new_token()
        obj.user, obj.hash = None if obj.agent else request.user, token_hash(secret)
        super().save_model(request, obj, form, change)
        shown = format_html("Copy it now, it is not shown again: <code>{}</code>", secret)
        self.message_user(request, shown, messages.WARNING)
