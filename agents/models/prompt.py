from django.db import models
from django.db.models import Q

from agents.models.run import Run
from tasks.models import Project
from tasks.models.moments import MomentField
from tasks.models.person import person


class PromptText(models.Model):
    """A project's own version of a prompt. Versions are never changed, only replaced by a newer one."""

    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, related_name="prompt_texts", db_index=False
    )
    name = models.CharField(max_length=40, help_text="coder, reviewer, judge, mediator.")
    version = models.PositiveIntegerField()
    text = models.TextField()
    hash = models.CharField(max_length=64, editable=False)
    is_active = models.BooleanField("in use", default=True)
    by_user = person()
    at = MomentField()

    class Meta:
        ordering = ["project", "name", "-version"]
        constraints = [
            models.UniqueConstraint(fields=["project", "name", "version"], name="prompt_text_version_once"),
            models.UniqueConstraint(
                fields=["project", "name"], condition=Q(is_active=True), name="prompt_text_one_in_use"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} v{self.version} of {self.project}"


class Prompt(models.Model):
    """The exact prompt that a run's agent was given."""

    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="prompt")
    text = models.TextField()

    def __str__(self) -> str:
        return f"prompt of run {self.run_id}"


class Output(models.Model):
    """A piece of a run's log, as the host copied it."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="outputs", db_index=False)
    seq = models.PositiveIntegerField()
    text = models.TextField()

    class Meta:
        ordering = ["run", "seq"]
        constraints = [models.UniqueConstraint(fields=["run", "seq"], name="output_seq_once")]

    def __str__(self) -> str:
        return f"output {self.seq} of run {self.run_id}"
