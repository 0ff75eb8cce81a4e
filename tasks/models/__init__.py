"""The database rows of the work itself. Each table states its invariants as constraints."""

from tasks.models.checkpoint import Checkpoint
from tasks.models.choices import SEVERITY_CHOICES, STATUS_CHOICES
from tasks.models.event import Event, Notice, Seal
from tasks.models.idempotency import Idempotency
from tasks.models.project import FollowedTodo, FormerName, Membership, Project, Section
from tasks.models.review import Answer, Comment, Finding, Review
from tasks.models.submission import Bundle, Landing, Rollback, Submission, Verification
from tasks.models.task import Dependency, Task
from tasks.models.task_moves import StaleTask
