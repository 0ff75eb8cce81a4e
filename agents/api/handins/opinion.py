from typing import Any

from django.db import transaction

from agents import judging
from agents.api.handins import caller as callers
from agents.api.handins.caller import end_run, reply
from agents.models import Run
from disputes import opinions
from disputes.models import Opinion
from tasks.errors import Invalid, Refused

TOLD = {
    Opinion.State.GIVEN: "Your opinion on {ref} is taken: {verdict}.",
    Opinion.State.LATE: "{ref} was settled before your opinion came. It is kept and has no effect.",
}


@transaction.atomic(savepoint=False)
def opinion(user: Any, ref: str, data: dict[str, Any]) -> dict[str, Any]:
    """Give a judge's verdict or a mediator's proposal on the conflict that the run is about (ARB-6)."""
    caller, task = callers.caller_of(user, "opinion", ref, data["model"])
    run = caller.run
    if run is None or run.opinion is None:  # people are refused by caller_of
        raise Refused("wrong_role", "This run was asked for no opinion.", "End your work.", status=403)
    proposal = data["proposal"].strip()
    verdict = data["verdict"]
    if run.role == Run.Role.MEDIATOR:
        if bool(proposal) == data["none"]:
            raise Invalid(
                "wrong_verdict", "A mediator hands in a proposal, or says that there is none.",
                "Use --proposal, or --none with --reasons.",
            )  # fmt: skip
        verdict = Opinion.Verdict.NONE if data["none"] else Opinion.Verdict.PROPOSE
    said = judging.said_by(
        run, str(verdict), model=data["model"], reasons=data["reasons"], text=proposal,
        trade_off=data["trade_off"],
    )  # fmt: skip
    end_run(caller, task)
    given = opinions.give(run.opinion, said, actor=caller.actor)
    words = TOLD[Opinion.State(given.state)]
    message = words.format(ref=given.conflict.ref, verdict=given.get_verdict_display())
    task.refresh_from_db()
    return reply(message, task, conflicts=[given.conflict.ref])
