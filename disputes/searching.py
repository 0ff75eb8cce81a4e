"""The text that a search of the queue reads: one per dispute, stored with it.

No index finds part of a word, so a search reads everything in a tab, and looking up titles and findings for
each row would take most of the time. The text is case-folded, so that a search ignores case in any language.
"""

from collections.abc import Iterable

from django.db.models import Q, QuerySet

from disputes.models import Conflict, Dispute
from tasks.models import Task

WORDS_MAX = 10  # what comes after them narrows nothing down


def text_of(dispute: Dispute, conflicts: Iterable[Conflict]) -> str:
    """Return the task's title and each conflict's question, finding code and path, one per line."""
    lines = [dispute.question, dispute.task.title if dispute.task else ""]
    for conflict in conflicts:
        lines.append(conflict.question)
        if conflict.finding:
            lines += [conflict.finding.code, conflict.finding.path]
    return "\n".join(dict.fromkeys(line.casefold() for line in lines if line))


def holding(words: str) -> Q:
    """Return a filter for the disputes whose text contains each of these words."""
    return Q(*(Q(search_text__contains=word) for word in words.casefold().split()[:WORDS_MAX]))


def renew(disputes: QuerySet[Dispute]) -> None:
    """Write the texts of these disputes again, after something that they contain was changed elsewhere."""
    for dispute in disputes.select_related("task"):
        dispute.search_text = text_of(dispute, dispute.conflicts.select_related("finding"))
        dispute.save(update_fields=["search_text"])


def renew_for(task: Task) -> None:
    """Write the texts of the task's disputes again, after its title has changed."""
    renew(Dispute.objects.filter(task=task))
