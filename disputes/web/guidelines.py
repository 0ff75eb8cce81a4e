"""The link from a ruling to a standing guideline."""

from django.urls import reverse
from django.utils.http import urlencode

from disputes.models import Decision
from disputes.models.guideline import TEXT_MAX


def url_to_add(ruling: Decision) -> str:
    """Return the path of the form for a standing guideline, filled with the ruling's words."""
    words = ruling.text or ruling.conflict.question
    said = f"{words.strip()} {ruling.rationale.strip()}".strip()[:TEXT_MAX]
    about = {"project": ruling.conflict.dispute.project_id, "decision": ruling.pk, "text": said}
    return f"{reverse('admin:disputes_guideline_add')}?{urlencode(about)}"
