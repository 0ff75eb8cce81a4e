from django.db import models

from tasks.models.project import Project


class FollowedTodo(models.Model):
    """The TODO.md in the repository that a project follows: what was taken from it, and what waits.

    Hosts read and write the file; `tasks/todo/following.py` has the rules.
    """

    project = models.OneToOneField(Project, on_delete=models.CASCADE, related_name="todo")
    looked_at = models.DateTimeField(null=True, blank=True, help_text="When a host last looked.")
    seen = models.CharField(max_length=64, blank=True, help_text="The head that was last looked at.")
    sha = models.CharField(max_length=64, blank=True, help_text="The commit whose file was last taken.")
    path = models.CharField(max_length=300, blank=True, help_text="Where the file lay then.")
    lines = models.JSONField(default=dict, help_text="The line of each task in it, by the task's number.")
    ticked = models.JSONField(default=list, help_text="Tasks whose box is filled, by their numbers.")
    opened = models.JSONField(default=list, help_text="Finished tasks whose box somebody emptied again.")
    waiting = models.CharField(
        max_length=64, blank=True, help_text="A commit of the file that a person is to look at first."
    )
    waiting_for = models.JSONField(default=list, help_text="What that file would change, in sentences.")
    granted = models.CharField(max_length=64, blank=True, help_text="The commit that a person let pass.")
    written = models.CharField(max_length=64, blank=True, help_text="The program's own last commit of it.")
    problem = models.CharField(max_length=500, blank=True)

    class Meta:
        verbose_name = "followed TODO.md"
        verbose_name_plural = "followed TODO.md"

    def __str__(self) -> str:
        return f"{self.path} of {self.project_id}"
