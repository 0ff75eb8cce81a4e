"""The REST API for reading disputes and, with a person's token, ruling on them."""

from typing import Any

import django_filters
from django.db.models import Expression, Prefetch, Q, QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import mixins, serializers, viewsets
from rest_framework.pagination import PageNumberPagination
from rest_framework.request import Request
from rest_framework.response import Response

from disputes import amendments, opinions, rulings, staleness
from disputes.models import Conflict, Decision, Dispute, Opinion
from disputes.presenting import presentation
from disputes.protocol.rulings.options import read_choice
from disputes.protocol.rulings.synthesis import Source
from disputes.web.queue.listing import in_order
from tasks.access import RULE, projects_for, require, tasks_for, tasks_named
from tasks.api import REF, ProjectNameFilter, validated
from tasks.configuration.policy import ProjectSettings
from tasks.database.clock import estimated_time
from tasks.database.prepared import Prepared
from tasks.errors import Invalid, Refused
from tasks.events import Actor
from tasks.filtering import DONE, NewestFilter, OptionalFlag, OptionalText, SeverityFilter
from tasks.idempotency import acting
from tasks.text.counting import counted

TEXT_MAX = 20_000
WHICH = "Which one is meant, by its name or code; empty: the only open one."


class DisputeFilter(django_filters.FilterSet):
    """The filters of the list: `open` means waiting for a human, `resolved` means ruled on or closed."""

    project = ProjectNameFilter(field_name="project__slug")
    severity = SeverityFilter()
    status = django_filters.ChoiceFilter(
        choices=[("open", "Open"), ("resolved", "Resolved")], method="filter_status"
    )
    stale = django_filters.ChoiceFilter(
        choices=[("1", "Yes")], method="filter_stale", label="Open for longer than the project bears"
    )

    recent = NewestFilter(label="Only the newest N")

    def filter_status(self, queryset: QuerySet[Dispute], name: str, value: str) -> QuerySet[Dispute]:
        opened = Q(status=Dispute.Status.OPEN)
        return queryset.filter(opened if value == "open" else ~opened)

    def filter_stale(self, queryset: QuerySet[Dispute], name: str, value: str) -> QuerySet[Dispute]:
        return queryset.filter(staleness.stale())


class TaskNameSerializer(serializers.Serializer[Any]):
    ref = serializers.CharField()
    title = serializers.CharField()


class OptionSerializer(serializers.Serializer[Any]):
    letter = serializers.CharField(help_text="A to D, as people name it.")
    key = serializers.CharField(source="option", help_text="What it means, wherever its letter stands.")
    title = serializers.CharField()
    text = serializers.CharField(help_text="The words that a ruling begins with; they may be changed.")
    consequence = serializers.CharField(help_text="What follows for the task.")


class CitedSerializer(serializers.Serializer[Any]):
    """The precedent that a ruling follows."""

    ref = serializers.CharField(source="conflict.ref")
    dispute = serializers.CharField(source="conflict.dispute.ref")
    question = serializers.CharField(source="conflict.question")


class DecisionSerializer(serializers.ModelSerializer[Decision]):
    letter = serializers.CharField()
    by = serializers.CharField(read_only=True, help_text="The person or the policy that ruled.")
    constraints = serializers.CharField(
        source="constraints_text", help_text="What the coder must keep to, a line each."
    )
    cites = CitedSerializer(source="cited", many=True, read_only=True)

    class Meta:
        model = Decision
        fields = [
            "letter", "option", "text", "rationale", "constraints", "cites", "expects_change", "by", "at",
            "used_at",
        ]  # fmt: skip
        extra_kwargs = {
            "used_at": {"help_text": "When a prompt began with it; from then on it cannot be undone."},
            "rationale": {"help_text": "Why; the prompt says it, too."},
            "expects_change": {"help_text": "Whether the code must change; the program checks that."},
            "at": {"help_text": "When it was ruled."},
        }


class OpinionSerializer(serializers.ModelSerializer[Opinion]):
    """What a judge or a mediator was asked and answered; an opinion is never a ruling."""

    class Meta:
        model = Opinion
        fields = [
            "kind", "state", "verdict", "reasons", "text", "trade_off", "by_agent", "by_model", "by_vendor",
            "asked_at", "given_at",
        ]  # fmt: skip
        extra_kwargs = {
            "verdict": {"help_text": "What the judge would do; a mediator gives none."},
            "trade_off": {"help_text": "What each side gives up by the proposal."},
            "by_vendor": {"help_text": "Who makes the model."},
            "kind": {"help_text": "Of a judge, or of a mediator."},
        }


class ConflictSerializer(serializers.ModelSerializer[Conflict]):
    ref = serializers.CharField(help_text="Its name: C-9.")
    code = serializers.CharField(
        source="name", help_text="The code of its finding, or the task or the project that it is about."
    )
    options = serializers.SerializerMethodField(
        help_text="What a person may choose; other choices are refused."
    )
    decision = serializers.SerializerMethodField(help_text="The ruling that stands; none where it is open.")
    opinions = OpinionSerializer(many=True, read_only=True)
    synthesis = serializers.CharField(
        source="proposal.text", default="", read_only=True,
        help_text="What was proposed as a middle ground: option C.",
    )  # fmt: skip
    synthesis_by = serializers.CharField(
        source="proposal.by", default="", read_only=True, help_text="Who proposed it."
    )
    synthesis_trade_off = serializers.CharField(
        source="proposal.trade_off", default="", read_only=True, help_text="What each side gives up."
    )
    synthesis_covers_both = serializers.BooleanField(
        source="proposal.covers_both", default=False, read_only=True,
        help_text="Whether it meets both concerns.",
    )  # fmt: skip
    presentation = serializers.SerializerMethodField(
        help_text="The conflict as a person reads it, in Markdown"
    )

    class Meta:
        model = Conflict
        fields = [
            "ref", "code", "kind", "origin", "opened_as", "reason", "status", "followed", "severity",
            "effect", "question", "reviewer_position", "reviewer_label", "coder_position",
            "coder_rationale", "coder_label", "alternative", "synthesis", "synthesis_by",
            "synthesis_trade_off", "synthesis_covers_both", "options", "decision", "opinions",
            "presentation",
        ]  # fmt: skip
        extra_kwargs = {
            "kind": {
                "help_text": "Two sides, a finding passed over, an alert, or a task that needs a person."
            },
            "origin": {"help_text": "What opened it."},
            "opened_as": {"help_text": "The side that opened it."},
            "followed": {"help_text": "What became of the ruling."},
            "effect": {
                "help_text": "What the task does meanwhile: it is held, it lands, or this is only noted."
            },
            "reviewer_label": {"help_text": "The agent or person that spoke for the reviewer."},
            "coder_label": {"help_text": "The agent or person that spoke for the coder."},
            "coder_rationale": {"help_text": "Why the coder declined."},
            "alternative": {"help_text": "What the coder would do instead."},
            "reason": {"help_text": "What it is about."},
        }

    @extend_schema_field(OptionSerializer(many=True))
    def get_options(self, conflict: Conflict) -> Any:
        return OptionSerializer(self._options(conflict), many=True).data

    def _options(self, conflict: Conflict) -> list[rulings.OptionView]:
        return rulings.options_of(conflict, self.context.setdefault("blockers", {}))

    def get_presentation(self, conflict: Conflict) -> str:
        return presentation(conflict, self._options(conflict))

    @extend_schema_field(DecisionSerializer(allow_null=True))
    def get_decision(self, conflict: Conflict) -> Any:
        standing = conflict.standing_decision()
        return DecisionSerializer(standing).data if standing else None


class DisputeSerializer(serializers.ModelSerializer[Dispute]):
    """A dispute in a list."""

    ref = serializers.CharField(help_text="Its name: D-7.")
    task = serializers.SerializerMethodField(help_text="None where it is about a whole project.")
    status = serializers.SerializerMethodField(help_text="open or resolved.")
    reason = serializers.SerializerMethodField(
        help_text="What its most severe open conflict is about, or what opened it."
    )
    blocks_project = serializers.BooleanField(read_only=True, help_text="Whether its whole project waits.")
    days_open = serializers.SerializerMethodField(help_text="Whole days, until now or until it was closed.")

    class Meta:
        model = Dispute
        fields = [
            "ref", "task", "status", "reason", "severity", "blocks", "blocks_project", "question",
            "opened_at", "days_open", "closed_at", "closed_reason",
        ]  # fmt: skip
        extra_kwargs = {
            "question": {"help_text": "What is to be ruled on, in one line."},
            "closed_reason": {"help_text": "Why it ended; empty while it is open."},
            "severity": {"help_text": "That of its most severe open conflict."},
        }

    @extend_schema_field(TaskNameSerializer(allow_null=True))
    def get_task(self, dispute: Dispute) -> Any:
        return {"ref": dispute.task.ref, "title": dispute.task.title} if dispute.task else None

    def get_status(self, dispute: Dispute) -> str:
        return "open" if dispute.status == Dispute.Status.OPEN else "resolved"

    def get_reason(self, dispute: Dispute) -> str:
        conflicts = list(dispute.conflicts.all())
        head = next((c for c in conflicts if c.is_open), conflicts[0] if conflicts else None)
        if head is None:
            return ""
        return head.reason if head.reason != Conflict.Reason.OTHER else head.origin

    def get_days_open(self, dispute: Dispute) -> int:
        return ((dispute.closed_at or estimated_time()) - dispute.opened_at).days


class DisputeDetailSerializer(DisputeSerializer):
    """One dispute with its conflicts, the most severe first, with both positions verbatim."""

    conflicts = serializers.SerializerMethodField(help_text="The most severe first.")

    class Meta(DisputeSerializer.Meta):
        fields = [*DisputeSerializer.Meta.fields, "conflicts"]

    @extend_schema_field(ConflictSerializer(many=True))
    def get_conflicts(self, dispute: Dispute) -> Any:
        return ConflictSerializer(in_order(dispute.conflicts.all()), many=True, context=self.context).data


class ResolveSerializer(serializers.Serializer[Any]):
    decision = serializers.CharField(
        max_length=40, help_text="The letter, key or title of an option that the conflict offers."
    )
    notes = OptionalText(
        max_length=TEXT_MAX,
        help_text="Why. Where the option asks for own words and `text` is empty, these are the words.",
    )
    text = OptionalText(
        max_length=TEXT_MAX, help_text="What the coder must do; empty: the option's own words."
    )
    conflict = OptionalText(max_length=30, help_text=WHICH)
    all = OptionalFlag(help_text="Rule the same on every open conflict of the dispute.")
    cites = OptionalText(
        max_length=200,
        help_text="The precedents that the ruling follows, by conflict (C-9) or dispute (D-7), with commas.",
    )


class SynthesisSerializer(serializers.Serializer[Any]):
    text = serializers.CharField(
        max_length=TEXT_MAX, help_text="What both sides could live with: option C from then on"
    )
    trade_off = OptionalText(max_length=TEXT_MAX, help_text="What each side gives up")
    covers_both = OptionalFlag(help_text="Whether it meets both concerns")
    conflict = OptionalText(max_length=30, help_text=WHICH)


class ActedSerializer(DisputeDetailSerializer):
    """The dispute, and a sentence that says what was done."""

    message = serializers.CharField(help_text=DONE)

    class Meta(DisputeDetailSerializer.Meta):
        fields = [*DisputeDetailSerializer.Meta.fields, "message"]


class AmendedSerializer(ActedSerializer):
    """The dispute, the number of its new amendment, and a sentence that says what was done."""

    amendment = serializers.IntegerField(help_text="Its number under /api/v1/amendments/.")

    class Meta(ActedSerializer.Meta):
        fields = [*ActedSerializer.Meta.fields, "amendment"]


class AskSerializer(serializers.Serializer[Any]):
    conflict = OptionalText(max_length=30, help_text=WHICH)


class DisputePages(PageNumberPagination):
    """Pages that also say when the disputes of their projects are stale."""

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        told: dict[str, Any] = super().get_paginated_response_schema(schema)
        told["properties"]["stale_after_days"] = {
            "type": "integer", "nullable": True, "description": "null: it differs among the projects.",
        }  # fmt: skip
        return told


class DisputeViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Dispute]):
    """Disputes in the projects that you are a member of."""

    queryset = Dispute.objects.none()
    serializer_class = DisputeSerializer
    filterset_class = DisputeFilter
    pagination_class = DisputePages
    lookup_field = "ref"
    lookup_value_regex = REF

    def get_queryset(self) -> QuerySet[Dispute]:
        visible = Q(project__in=projects_for(self.request.user)) | Q(task__in=tasks_for(self.request.user))
        return (
            Dispute.objects.filter(visible)
            .select_related("task__project", "project")
            .prefetch_related("conflicts")
            .in_order()
        )

    def get_object(self) -> Dispute:
        """Return the dispute that the URL names by itself (D-7), a conflict (C-9) or a task (ledger-214).

        For a task it is the newest dispute. Raises Http404, or Refused("not_found") if the task has none that
        the caller may see.
        """
        head, _, number = self.kwargs["ref"].rpartition("-")
        told = Opinion.objects.all()
        if getattr(self.request.user, "gives_opinion", False):  # judges see no other opinion
            told = told.none()
        disputes = self.get_queryset().prefetch_related(
            "conflicts__finding", "conflicts__raised_as", "conflicts__proposal",
            Prefetch("conflicts__opinions", told),
            "conflicts__decisions__user", "conflicts__decisions__policy_set_by",
            Prefetch(
                "conflicts__decisions__cites", Decision.objects.select_related("conflict__dispute")
            ),
            "conflicts__submission__task__project",
            "conflicts__dispute__task__project", "conflicts__dispute__project",
        )  # fmt: skip
        if head.upper() == "D":
            return get_object_or_404(disputes, pk=number)
        if head.upper() == "C":
            return get_object_or_404(disputes.filter(conflicts__pk=number))
        tasks = tasks_named(self.request.user, self.kwargs["ref"])
        found = disputes.filter(task__in=tasks).order_by("-pk").first()
        if found is None:
            raise Refused(
                "not_found", f"There is no dispute on {self.kwargs['ref']} that you may see.",
                "List them: `steroids dispute list`.", status=404,
            )  # fmt: skip
        return found

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        reply = self.get_paginated_response(DisputeSerializer(page, many=True).data)
        limits = {dispute.project.config.timeout_days for dispute in page or []}
        limits = limits or {ProjectSettings().timeout_days}
        reply.data["stale_after_days"] = limits.pop() if len(limits) == 1 else None
        return reply

    @extend_schema(responses=DisputeDetailSerializer)
    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return Response(DisputeDetailSerializer(self.get_object()).data)

    @acting(ResolveSerializer, ActedSerializer)
    def resolve(self, request: Request, ref: str) -> dict[str, Any]:
        """Rule on a conflict. Only people may do this, and it takes effect at once."""
        dispute, data = self._to_act(request, ResolveSerializer, "rule on a dispute", "rules")
        chosen = _chosen(dispute, ref, data["conflict"], take_all=data["all"])
        decided = [
            rulings.decide(
                conflict, option, user=request.user, rationale=data["notes"], undo_seconds=0,
                cites=data["cites"],
                text=data["text"] or _own_words(conflict, option, data["notes"]),
            )
            for conflict, option in _meant(data["decision"], chosen)
        ]  # fmt: skip
        dispute = self.get_object()
        named = ", ".join(f"{d.conflict.ref}: {d.letter} ({d.option})" for d in decided)
        task = f"; {dispute.task.ref} is {dispute.task.status} now" if dispute.task else ""
        return _told(dispute, f"Ruled {named}{task}.")

    @acting(SynthesisSerializer, ActedSerializer)
    def synthesis(self, request: Request, ref: str) -> dict[str, Any]:
        """Propose a synthesis on an open conflict; it becomes option C. Only people may do this."""
        dispute, data = self._to_act(request, SynthesisSerializer, "propose a synthesis", "does")
        [conflict] = _chosen(dispute, ref, data["conflict"], take_all=False)
        made = rulings.propose_synthesis(
            conflict, data["text"], by=Source.HUMAN, actor=Actor.person(request.user),
            trade_off=data["trade_off"], covers_both=data["covers_both"],
        )  # fmt: skip
        return _told(self.get_object(), f"Option C of {conflict.ref} is proposed by {made.by}.")

    @acting(AskSerializer, ActedSerializer, url_path="ask-judge")
    def ask_judge(self, request: Request, ref: str) -> dict[str, Any]:
        """Ask a judge for an opinion on an open disagreement; it is not a ruling. Only people may do this."""
        return self._ask(request, ref, Opinion.Kind.JUDGE)

    @acting(AskSerializer, ActedSerializer, url_path="ask-mediator")
    def ask_mediator(self, request: Request, ref: str) -> dict[str, Any]:
        """Ask a mediator for a proposal, which becomes option C. Only people may do this."""
        return self._ask(request, ref, Opinion.Kind.MEDIATOR)

    @acting(AskSerializer, AmendedSerializer)
    def amend(self, request: Request, ref: str) -> dict[str, Any]:
        """Have the ruling drafted into the project's specification. A person then approves the draft."""
        dispute, said = self._to_act(request, AskSerializer, "ask for an amendment", "does")
        conflict = _ruled_on(dispute, ref, said["conflict"])
        ruling = conflict.standing_decision()
        if ruling is None:
            raise Invalid(
                "not_a_ruling", f"No ruling between two sides stands on {conflict.ref}.", "Rule on it first."
            )
        made = amendments.ask(ruling, user=request.user)
        message = f"Amendment {made.pk} of {made.path} is drafted next."
        return _told(self.get_object(), message, amendment=made.pk)

    def _ask(self, request: Request, ref: str, kind: Opinion.Kind) -> dict[str, Any]:
        dispute, said = self._to_act(request, AskSerializer, "ask for an opinion", "asks")
        [conflict] = _chosen(dispute, ref, said["conflict"], take_all=False)
        opinions.ask(conflict, kind, user=request.user)
        return _told(self.get_object(), f"The {kind.value} is asked about {conflict.ref}.")

    def _to_act(
        self, request: Request, form: type[serializers.Serializer[Any]], what: str, verb: str
    ) -> tuple[Dispute, dict[str, Any]]:
        """Return the dispute and the validated body if the caller is a person who may rule on it.

        Raises Http404, ValidationError or Refused: "wrong_role" (see `refuse_runs`), "not_found" if there is
        no dispute that the person may see, "no_right" if they may not rule.
        """
        refuse_runs(request, what, verb)
        dispute = self.get_object()
        require(request.user, dispute.project, RULE, "rule")
        return dispute, validated(form, request.data)


def _told(dispute: Dispute, message: str, **more: Any) -> dict[str, Any]:
    return {**DisputeDetailSerializer(dispute).data, **more, "message": message}


def refuse_runs(request: Request, what: str, verb: str) -> None:
    """Raise Refused("wrong_role") if the caller is an agent's run."""
    if getattr(request.user, "task_pk", None) is not None:
        raise Refused("wrong_role", f"No agent may {what}.", f"A human of the project {verb}.", status=403)


def _meant(word: str, chosen: list[Conflict]) -> list[tuple[Conflict, str]]:
    """Return each chosen conflict with the option that the word means on it.

    A conflict that does not know the word gets it unchanged, and is refused when it is ruled on. Raises
    Refused("several_meanings") if the word means different options on different conflicts.
    """
    known = [(c, choice.option) for c in chosen if (choice := read_choice(word, c.choices))]
    if len({option for _, option in known}) > 1:
        told = ", ".join(f"{option} on {conflict.ref}" for conflict, option in known)
        raise Invalid("several_meanings", f"{word} would mean {told}.", "Name one with --conflict CODE.")
    means = dict(known)
    return [(conflict, means.get(conflict, word)) for conflict in chosen]


def _ruled_on(dispute: Dispute, ref: str, named: str) -> Conflict:
    """Return the conflict whose ruling is meant.

    Raises Refused: "not_found" if the named conflict is not in the dispute, and without a name
    "several_ruled" or "not_a_ruling" unless exactly one conflict was ruled on.
    """
    if named or ref.upper().startswith("C-"):
        return _chosen(dispute, ref, named, take_all=False)[0]
    ruled = list(dispute.conflicts.filter(decisions__in=Decision.objects.standing()).distinct())
    if len(ruled) != 1:
        raise Invalid(
            "several_ruled" if ruled else "not_a_ruling",
            f"{dispute.ref} has {counted(len(ruled), 'ruling') if ruled else 'no ruling'}.",
            "Name the conflict with --conflict CODE." if ruled else "Rule on it first.",
        )  # fmt: skip
    return ruled[0]


def _own_words(conflict: Conflict, option: str, notes: str) -> str:
    """Return the notes to use as the ruling's text if the option needs one and there is none yet, else ""."""
    offered = conflict.choice(option)
    return notes if offered and offered.needs_text and not rulings.text_of(conflict, option) else ""


def _all_of(dispute: Expression) -> QuerySet[Conflict]:
    conflicts = Conflict.objects.filter(dispute=dispute).order_by("pk")
    return conflicts.select_related(
        "finding", "raised_as", "submission", "proposal", "dispute__task__project"
    )


_of_dispute = Prepared(_all_of)


def _chosen(dispute: Dispute, ref: str, named: str, *, take_all: bool) -> list[Conflict]:
    """Return the conflicts that are meant.

    Without a name and without open conflicts that is the last conflict of the dispute. Raises Refused:
    "not_found", or "several_open" if more than one is open and neither a name nor `take_all` is given.
    """
    conflicts: list[Conflict] = _of_dispute.found(dispute.pk)
    opened = [conflict for conflict in conflicts if conflict.is_open]
    if ref.upper().startswith("C-"):
        named = ref
    if named:
        wanted = [c for c in conflicts if named.upper() in {c.ref, c.name.upper()}]
        if not wanted:
            known = ", ".join(conflict.ref for conflict in conflicts)
            raise Refused(
                "not_found", f"{dispute.ref} has no conflict {named}.", f"It has {known}.", status=404
            )
        return [next((c for c in wanted if c in opened), wanted[-1])]
    if not opened:
        return conflicts[-1:]
    if len(opened) > 1 and not take_all:
        raise Refused(
            "several_open", f"{dispute.ref} has {len(opened)} open conflicts.",
            "Name one with --conflict CODE, or rule on all with --all.",
            open=[{"ref": c.ref, "code": c.name, "question": c.question} for c in opened],
        )  # fmt: skip
    return opened
