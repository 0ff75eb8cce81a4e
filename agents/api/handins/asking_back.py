"""Asking an agent back about a hand-in of which the reader is unsure, once (VER-6, ANS-7)."""

from collections.abc import Collection, Sequence

from agents.models import Run
from disputes.protocol.text.documents import Problem
from tasks.errors import Invalid

ASKED_BACK = "It is not sure that this was meant"


def ask_back(
    run: Run,
    doubts: Sequence[Problem],
    hint: str,
    *,
    about: Collection[str] = ("",),
    understood: Sequence[str] = (),
) -> None:
    """Have the agent confirm or correct what the reader is unsure of, once in a round.

    `about` are the codes of the findings in doubt, each of which is asked about once; without them, it is the
    whole document. The run goes on meanwhile, and an agent that only repeats its hand-in is taken at its
    word. Raises Refused: asked_back.
    """
    if not doubts:
        return
    of_round = Run.objects.filter(task=run.task_id, role=run.role, round=run.round)
    reasons = [each["reason"] for refusal in of_round.values_list("refusal", flat=True) for each in refusal]
    asked = [reason for reason in reasons if reason.startswith(ASKED_BACK)]
    if all(any(subject in reason for reason in asked) for subject in about):
        return
    raise Invalid(
        "asked_back", f"{ASKED_BACK}: {doubts[0].reason}.", hint,
        details=[
            *({"line": each.line, "reason": f"{ASKED_BACK}: {each.reason}"} for each in doubts),
            *({"line": 0, "reason": line, "is_reading": True} for line in understood),
        ],
    )  # fmt: skip
