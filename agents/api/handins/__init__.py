"""The verbs of hand-ins. Each takes a token of the right role and writes its rows in one transaction.

A final verb (submit, approve, reject, dispute, blocked, escalate, opinion) ends the run: its token is dead
from then on. A malformed hand-in is refused with lines and reasons, and the run goes on.
"""

from agents.api.handins.caller import caller_of
from agents.api.handins.disputing import dispute, log
from agents.api.handins.opinion import opinion
from agents.api.handins.reviewing import review
from agents.api.handins.submitting import submit
from agents.api.handins.talking import blocked, comment, escalate
