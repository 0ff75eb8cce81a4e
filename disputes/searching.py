"""What a search of the queue reads: one text a dispute, kept beside it.

No index finds a part of a word, so a search reads all that a tab holds; asked for behind each row, titles and
findings would be most of that. The text is in small letters, so that a search ignores them in any language.
"""

from collections.abc import Iterable

from django.db.models import Q, QuerySet

from disputes.models import Conflict, Dispute
from tasks.models import Task


def text_of(dispute: Dispute, conflicts: Iterable[Conflict]) -> str:
    """The task's title, and of each conflict the question and the finding's code and path, a line each."""
    lines = [dispute.question, dispute.task.title if dispute.task else ""]
    for conflict in conflicts:
        lines.append(conflict.question)
        if conflict.finding:
            lines += [conflict.finding.code, conflict.finding.path]
    return "\n".join(dict.fromkeys(line.casefold() for line in lines if line))


def holding(words: str) -> Q:
    """The disputes whose text holds these words."""
    return Q(search_text__contains=words.casefold())


def renew(disputes: QuerySet[Dispute]) -> None:
    """Write the texts anew, where something that they hold was written by itself."""
    for dispute in disputes.select_related("task"):
        dispute.search_text = text_of(dispute, dispute.conflicts.select_related("finding"))
        dispute.save(update_fields=["search_text"])


def renew_for(task: Task) -> None:
    """Its title is another one now."""
    renew(Dispute.objects.filter(task=task))
