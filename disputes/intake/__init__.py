"""Turning hand-ins into rows: reviews into findings, responses into answers, and both into conflicts.

The callers hold the transaction in which the task moves, so that rows and status cannot disagree.
"""

from disputes.intake.due import findings_to_answer, last_reviews, newest_of
from disputes.intake.reviews import Taken, allot_code, conclude_reviews, take_review
from disputes.intake.submissions import (
    WAYS_TO_ANSWER,
    check_response,
    disagree,
    not_raised_by,
    raised_by,
    take_answers,
    take_submission,
)
