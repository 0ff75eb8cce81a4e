"""The tables of disagreement. Their constraints enforce what each table promises."""

from disputes.models.amendment import Amendment
from disputes.models.conflict import NOT_STATED, Conflict, ConflictQuerySet, StaleConflict
from disputes.models.decision import Decision, Precedent
from disputes.models.dispute import Dispute
from disputes.models.flag import Flag, HeuristicScore
from disputes.models.guideline import Guideline
from disputes.models.insights import CountedUntil, Tally
from disputes.models.notifications import Channel, Delivery, Reminder
from disputes.models.opinion import Opinion
from disputes.models.proposal import Proposal
from disputes.models.triage import Bulk, Follow, OnCall, SavedView
