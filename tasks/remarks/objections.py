"""Threads of comments with which one stage sends work back to the one before it (ITM-2, ITM-3)."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tasks.models import Comment, Task

BACK, FORWARD = "back", "forward"


@dataclass(slots=True)
class Objection:
    """One thread: the comment that began it, and those that moved the task, oldest first."""

    root: Comment
    moves: list[Comment] = field(default_factory=list)
    said: list[Comment] = field(default_factory=list)  # the whole thread

    @property
    def stage(self) -> str:
        """The stage that raised the objection."""
        return self.root.stage

    @property
    def rounds(self) -> int:
        """The number of rounds of the dispute: one for each reply that moved the task."""
        return max(len(self.moves) - 1, 0)

    @property
    def agents(self) -> list[str]:
        """Who moved the task, in order."""
        return [comment.by_label for comment in self.moves]

    @property
    def is_open(self) -> bool:
        return self.root.status == Comment.Status.OPEN

    @property
    def waits_for_answer(self) -> bool:
        """Whether the stage before has not answered yet."""
        return self.is_open and bool(self.moves) and self.moves[-1].sends == BACK

    @property
    def flag(self) -> str:
        """The sentence for the card and for the file beside the artifact."""
        return f"Agents disagree after {self.rounds} rounds - human decision needed"

    def side(self, sends: str) -> list[Comment]:
        """Return what one side wrote when it moved the task."""
        return [comment for comment in self.moves if comment.sends == sends]


def threads_of(comments: Iterable[Comment]) -> list[list[Comment]]:
    """Return the comments as threads, oldest first; each begins with the comment that replies to none."""
    every = sorted(comments, key=lambda comment: (comment.at, comment.pk))
    known = {comment.pk: comment for comment in every}
    threads: dict[int, list[Comment]] = {}
    for comment in every:
        root, seen = comment, {comment.pk}
        while root.parent_id in known and root.parent_id not in seen:
            root = known[root.parent_id]
            seen.add(root.pk)
        threads.setdefault(root.pk, []).append(comment)
    return [sorted(found, key=lambda each: each.pk != root) for root, found in threads.items()]


def objections_among(comments: Iterable[Comment]) -> list[Objection]:
    """Return the threads that began by sending work back."""
    return [
        Objection(thread[0], [each for each in thread if each.sends], thread)
        for thread in threads_of(comments)
        if thread[0].sends
    ]


def objections_of(task: Task) -> list[Objection]:
    """Return the objections on a task, with one query."""
    return objections_among(task.comments.order_by())


def tag_of(before: str, stage: str) -> str:
    """Return the tag of a task over which two stages disagree (COL-2)."""
    return f"dispute-{before}-vs-{stage}"
