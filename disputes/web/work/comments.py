"""What was said on a task or a project's card, in threads, as its pages show it."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from django.urls import reverse

from tasks.access import RULE, may
from tasks.database.prepared import Prepared
from tasks.models import Comment, Project, Task
from tasks.remarks.comments import BODY_MAX

COMMENTS_MAX = 200  # how many comments are read, newest first
THREADS_MAX = 30  # how many threads are shown, newest first


_of_task = Prepared(lambda task: Comment.objects.filter(task=task).order_by("-pk")[:COMMENTS_MAX])


@dataclass
class Thread:
    """A comment and its replies, oldest first."""

    first: Comment
    replies: list[Comment] = field(default_factory=list)

    @property
    def comments(self) -> list[Comment]:
        return [self.first, *self.replies]

    @property
    def is_resolved(self) -> bool:
        return self.first.status == Comment.Status.RESOLVED


@dataclass
class Discussion:
    """Everything that was said on one task or, without a task, on the project as a whole. One query."""

    project: Project
    user: Any
    task: Task | None = None
    may_rule: bool | None = None  # None: look it up in the memberships
    body_max = BODY_MAX

    @cached_property
    def may_comment(self) -> bool:
        return may(self.user, self.project, RULE) if self.may_rule is None else self.may_rule

    @cached_property
    def _comments(self) -> list[Comment]:
        if self.task:
            return _of_task.found(self.task.pk)[::-1]
        of_project = self.project.comments.filter(task=None)
        return list(of_project.order_by("-pk")[:COMMENTS_MAX])[::-1]

    @cached_property
    def threads(self) -> list[Thread]:
        """The threads, oldest first; a reply to a reply belongs to the thread of the first comment."""
        threads: dict[int, Thread] = {}
        for comment in self._comments:
            thread = threads.get(comment.parent_id or 0)
            if thread:
                thread.replies.append(comment)
            else:  # it begins a thread, or what it answers is too old to be shown
                thread = Thread(comment)
            threads[comment.pk] = thread
        begun = [thread for pk, thread in threads.items() if thread.first.pk == pk]
        return begun[-THREADS_MAX:]

    @property
    def count(self) -> str:
        number = len(self._comments)
        return f"{number}+" if number == COMMENTS_MAX else str(number)

    @property
    def url(self) -> str:
        """The path to which a comment is posted."""
        if self.task:
            return reverse("task-comment", args=[self.task.ref])
        return reverse("project-comment", args=[self.project.slug])
