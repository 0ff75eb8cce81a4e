"""The admin of the flags of silent disagreement, and of how far each heuristic may be trusted."""

from django.contrib import admin
from unfold.decorators import display

from disputes.models import Flag, HeuristicScore
from disputes.protocol.silence.scores import Score, heuristic_weight
from disputes.protocol.silence.suspicion import SEEN_AS
from tasks.admin.base import ProjectFilter, ProjectScopedAdmin, ReadOnlyAdmin, related


@admin.register(Flag)
class FlagAdmin(ReadOnlyAdmin, ProjectScopedAdmin):
    """Flags of silent disagreement: what the heuristics saw, and what a person made of it."""

    project_path = "submission__task__project"
    list_display = (
        "finding", related("submission.task.ref", "task", "submission__task"), "seen", "level", "confidence",
        "status", "at",
    )  # fmt: skip
    list_filter = (ProjectFilter, "level", "status")
    list_select_related = ("finding", "submission__task__project")
    search_fields = ("finding__code", "finding__title", "submission__task__title")
    ordering = ("-pk",)

    @display(description="what was seen")
    def seen(self, flag: Flag) -> str:
        return ", ".join(SEEN_AS.get(name, name) for name in flag.heuristics)


@admin.register(HeuristicScore)
class HeuristicScoreAdmin(ReadOnlyAdmin, ProjectScopedAdmin):
    """How far each heuristic may be trusted in a project."""

    list_display = ("seen", "project", "confirmed", "refused", "precision", "weight")
    list_filter = (ProjectFilter, "heuristic")
    list_select_related = ("project",)
    search_fields = ("heuristic",)

    @display(description="heuristic", ordering="heuristic")
    def seen(self, score: HeuristicScore) -> str:
        return SEEN_AS.get(score.heuristic, score.heuristic)

    @display(description="precision")
    def precision(self, score: HeuristicScore) -> str:
        """Return the share of the heuristic's flags that people confirmed, with the number they judged."""
        judged = Score(score.confirmed, score.refused)
        return "-" if judged.precision is None else f"{judged.precision:.0%} of {judged.flags}"

    @display(description="weight")
    def weight(self, score: HeuristicScore) -> str:
        penalty = score.project.config.false_positive_penalty
        return f"{heuristic_weight(score.refused, penalty):.1f}"
