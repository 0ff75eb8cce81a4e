"""Turning a session's plan into rows: tasks, submissions, reviews, findings, answers, conflicts (IMP-1).

Importing the same files again writes nothing. A changed file becomes a new version of its review: findings
that it still contains are recognised, so that rulings stay, and those that it no longer contains are
withdrawn.
"""

from dataclasses import dataclass, field

from django.db import transaction

from disputes import intake, withdrawal
from disputes.completion.stuck import Known
from disputes.importing.folder import ENGINEER, REVIEWER, SessionFolder, Trouble
from disputes.importing.plan import Plan, ReviewDocument, Work, plan_session
from disputes.importing.reading import Reading, reading_of
from disputes.models import Conflict
from disputes.protocol.responses.response import Answered
from disputes.protocol.reviews.identity import Raised, same_finding
from disputes.protocol.reviews.review import Found, Verdict, place
from disputes.protocol.rounds.sessions import Left
from disputes.protocol.silence.suspicion import Judgement
from disputes.protocol.text.quotes import one_line
from disputes.silence import flags
from tasks.adding import create_last, section_titled
from tasks.database.locking import locked
from tasks.events import SYSTEM, Actor
from tasks.models import Answer, Comment, Finding, Project, Review, Submission, Task
from tasks.models.event import record
from tasks.states import Severity, Status, worst
from tasks.text.counting import counted

VERDICTS = {
    Verdict.APPROVED: Review.Verdict.APPROVED,
    Verdict.APPROVED_WITH_CONDITIONS: Review.Verdict.APPROVED_WITH_CONDITIONS,
    Verdict.NEEDS_REVISION: Review.Verdict.NEEDS_REVISION,
}
DECISIONS_LABEL = "decisions.md (imported)"


@dataclass(slots=True)
class RoundsReport:
    """What the import of one session did, and what could not be read."""

    session: str
    counts: dict[str, int] = field(default_factory=dict)
    changes: list[str] = field(default_factory=list)
    notes: list[Trouble] = field(default_factory=list)
    never_answered: list[str] = field(default_factory=list)

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    @property
    def summary(self) -> str:
        """What is new, in words, such as "2 tasks, 1 conflict"."""
        return ", ".join(counted(number, what) for what, number in self.counts.items())


def read_session(project: Project, session: SessionFolder) -> Reading:
    """Return how a session is understood, without writing anything; unreadable files are allowed."""
    return reading_of(session, plan_session(session, project.config))


def import_session(project: Project, session: SessionFolder, *, actor: Actor) -> RoundsReport:
    """Write a session, all of it or nothing. Raises ValueError if it has unreadable files."""
    if session.unreadable:
        raise ValueError(f"{session.name} has unreadable files")
    plan = plan_session(session, project.config)
    with transaction.atomic():
        locked(Project.objects).get(pk=project.pk)  # else two imports could give out the same numbers
        return _Import(project, plan, actor).run()


class _Import:
    """The import of one session. `findings` holds what was raised so far, by the printed code."""

    def __init__(self, project: Project, plan: Plan, actor: Actor) -> None:
        self.project, self.plan, self.actor = project, plan, actor
        self.report = RoundsReport(plan.name, notes=plan.notes)
        self.tasks: dict[str, Task] = {}
        self.findings: dict[str, Finding] = {}
        self.by_number: dict[int, Finding] = {}  # by the numbers that the plan's silence uses
        self.raised = 0
        self._known: Known | None = None  # for the review being read

    def run(self) -> RoundsReport:
        self._tasks()
        walked = self.plan.silence.steps if self.plan.silence else ()
        for step, silence in zip(self.plan.steps, walked, strict=True):
            if isinstance(step, Work):
                self._work(step)
                self._flags(step, silence.judgement)
            else:
                self._flags(step, silence.judgement)  # what the approval leaves unanswered (SIL-7)
                self._judged(step)
        self._decisions()
        self.report.never_answered = [_left(each) for each in self.plan.never_answered]
        if self.report.counts:
            note = f"{self.plan.name}: {self.report.summary}"
            record(self.project, "rounds_imported", actor=self.actor, note=note)
        return self.report

    # --- Tasks ---

    def _tasks(self) -> None:
        """Create a task for each gap that has none. A known task keeps its status, whatever the files say."""
        sources = {self._source(gap): gap for gap in self.plan.titles}
        known = Task.objects.filter(project=self.project, origin=Task.Origin.IMPORT, source__in=sources)
        self.tasks = {sources[task.source]: task for task in known.select_related("project")}
        missing = [gap for gap in self.plan.titles if gap not in self.tasks]
        if not missing:
            return
        section = section_titled(self.project, one_line(self.plan.name, 180))
        for gap in missing:
            is_done = self.plan.is_accepted(gap)
            last = max((step.document.round for step in self.plan.about(gap)), default=0)
            self.tasks[gap] = task = create_last(
                self.project, section=section, title=self.plan.titles[gap], source=self._source(gap),
                origin=Task.Origin.IMPORT, severity=self._severity(gap), round=last,
                status=Status.COMPLETED if is_done else Status.DEFERRED,
                finished_by="import" if is_done else "",
            )  # fmt: skip
            record(self.project, "created", actor=self.actor, task=task, new=task.status, note="Imported.")
            self.report.count("task")

    def _source(self, gap: str) -> str:
        """Return what the task is recognised by: the session and its gap."""
        return f"{self.plan.name[:200]}#{gap or 'session'}"

    def _severity(self, gap: str) -> Severity:
        judged = [step for step in self.plan.steps if isinstance(step, ReviewDocument)]
        found = [f for step in judged for about, f in step.findings if about == gap and not f.withdrawn]
        return worst(each.severity or Severity.MEDIUM for each in found)

    def _is_mandatory(self, found: Found) -> bool:
        """Whether the finding blocks; one without a severity never does (SEV-9)."""
        return self.project.config.is_mandatory(found.severity, found.raw_severity)

    # --- What the engineer wrote ---

    def _work(self, work: Work) -> None:
        for gap, text in work.sections.items():
            self._submission(gap, work, text)
        given = {
            finding.origin.pk: (finding, answer)
            for answer in work.response.answers
            if (finding := self.findings.get(answer.code.upper()))
        }
        for finding, answer in given.values():
            submission = self._submission_for(finding, work)
            if self._answer(submission, finding, answer):
                flags.answered(submission, [finding.origin.pk], actor=self.actor)
        self._drop_answers(work, set(given))
        for block in work.response.disagreements:
            finding = self.findings.get(block.code.upper())
            if finding is None or not finding.mandatory:
                continue
            conflicts = Conflict.objects.about(finding).disagreements()
            if not conflicts.exists():
                intake.disagree(self._submission_for(finding, work), finding, block, actor=self.actor)
                self.report.count("conflict")

    def _answer(self, submission: Submission, finding: Finding, answer: Answered) -> bool:
        """Write or update an answer. Return whether there was none before."""
        values = {"kind": answer.kind.value, "text": answer.text, "line": answer.line or None}
        row, is_new = Answer.objects.get_or_create(
            submission=submission, finding=finding.origin, defaults=values
        )
        if is_new:
            self.report.count("answer")
        elif any(getattr(row, name) != value for name, value in values.items()):
            Answer.objects.filter(pk=row.pk).update(**values)
        return is_new

    def _drop_answers(self, work: Work, given: set[int]) -> None:
        """Delete the answers that a changed document gave before and no longer gives."""
        document = work.document
        rows = Answer.objects.filter(
            submission__task__in=self.tasks.values(), submission__round=document.round,
            submission__attempt=document.version, submission__kind=Submission.Kind.DOCUMENT,
        ).exclude(finding__in=given)  # fmt: skip
        for row in rows.select_related("finding"):
            self.report.changes.append(f"{document.path} no longer answers {row.finding.code}.")
            row.delete()

    def _submission_for(self, finding: Finding, work: Work) -> Submission:
        """Return this document's submission for the finding's task, even if no section is about that gap."""
        gap = self._gap_of(finding)
        return self._submission(gap, work, work.sections.get(gap, ""))

    def _gap_of(self, finding: Finding) -> str:
        return next(gap for gap, task in self.tasks.items() if task.pk == finding.task_id)

    def _submission(self, gap: str, step: Work | ReviewDocument, text: str) -> Submission:
        """Return the document's submission for one gap; it is created when a review or an answer needs it."""
        document, task = step.document, self.tasks[gap]
        key = {"task": task, "round": document.round, "attempt": document.version, "rolled_back": None}
        submission = Submission.objects.filter(**key).first()
        is_work = document.role == ENGINEER
        content = document.sha256 if is_work else ""
        if submission is None:
            self.report.count("submission")
            return Submission.objects.create(
                **key, kind=Submission.Kind.DOCUMENT, response=text, by_agent=ENGINEER,
                origin_path=document.path[:300] if is_work else "", content_sha256=content,
            )  # fmt: skip
        if is_work and submission.content_sha256 != content:
            if submission.content_sha256:
                self.report.changes.append(f"{document.path} has changed: {task.ref} has its new text.")
            submission.response, submission.content_sha256 = text, content
            submission.origin_path = document.path[:300]
            submission.save(update_fields=["response", "content_sha256", "origin_path"])
        return submission

    # --- What nobody answered ---

    def _flags(self, step: Work | ReviewDocument, judgement: Judgement | None) -> None:
        """Raise the suspicions about one document as flags, each on the submission of its finding's task."""
        for suspicion in judgement.flags if judgement else ():
            finding = self.by_number.get(suspicion.ordinal)
            if finding is None:
                continue
            gap = self._gap_of(finding)
            text = step.sections.get(gap, "") if isinstance(step, Work) else ""
            submission = self._submission(gap, step, text)
            for _ in flags.raise_flags(submission, [(finding, suspicion)], actor=self.actor):
                self.report.count("flag")

    # --- What the reviewer wrote ---

    def _judged(self, step: ReviewDocument) -> None:
        for gap in step.gaps:
            found = [
                (number, each) for number, (about, each) in enumerate(step.findings, self.raised + 1)
                if about == gap
            ]  # fmt: skip
            self._review(gap, step, found)
        self.raised += len(step.findings)
        self._withdraw(step, self._elsewhere(step))
        done = [self.findings[code.upper()] for code in step.confirmed if code.upper() in self.findings]
        for finding in done:
            submission = self._submission(self._gap_of(finding), step, "")
            flags.answered(submission, [finding.origin.pk], actor=self.actor)

    def _review(self, gap: str, step: ReviewDocument, found: list[tuple[int, Found]]) -> None:
        submission = self._submission(gap, step, "")
        old = submission.reviews.filter(by_agent=REVIEWER).order_by("-version").first()
        if old and old.content_sha256 == step.document.sha256:
            rows = {row.ordinal: row for row in old.findings.select_related("first")}
            for ordinal, (number, _) in enumerate(found, start=1):
                if row := rows.get(ordinal):
                    self._remember(number, row)
            return
        review = Review.objects.create(
            submission=submission, version=old.version + 1 if old else 1, verdict=self._verdict(gap, step),
            raw_verdict=step.read.raw_verdict[:80], text=step.document.text, by_agent=REVIEWER,
            origin_path=step.document.path[:300], content_sha256=step.document.sha256,
        )  # fmt: skip
        self.report.count("review")
        known = list(old.findings.select_related("first")) if old else []
        if old:
            old.superseded_by = review
            old.save(update_fields=["superseded_by"])
            self.report.changes.append(
                f"{step.document.path} has changed: it is version {review.version} for {submission.task.ref}."
            )
        for ordinal, (number, each) in enumerate(found, start=1):
            same = _again(each, known, self.project.config.same_finding_minimum)
            if same:
                known.remove(same)
            self._remember(number, self._finding(review, ordinal, each, same))
        self._withdraw(step, known)

    def _verdict(self, gap: str, step: ReviewDocument) -> Review.Verdict:
        """Return the verdict; only a clear approval without a mandatory finding approves (ARB-2, ARB-3)."""
        found = [each for about, each in step.findings if about == gap and not each.withdrawn]
        stated = VERDICTS.get(step.verdict_on(gap) or Verdict.NEEDS_REVISION, Review.Verdict.APPROVED)
        if stated == Review.Verdict.NEEDS_REVISION or any(self._is_mandatory(each) for each in found):
            return Review.Verdict.NEEDS_REVISION
        return Review.Verdict.APPROVED_WITH_CONDITIONS if found else stated

    def _finding(self, review: Review, ordinal: int, found: Found, same: Finding | None) -> Finding:
        task = review.submission.task
        path, line = place(found.location)
        severity = found.severity or Severity.MEDIUM
        values = {
            "review": review, "ordinal": ordinal, "raw_code": found.code[:60], "severity": severity,
            "raw_severity": found.raw_severity[:40], "mandatory": self._is_mandatory(found),
            "title": found.title[:500], "path": path or found.location[:300], "line": line,
            "impact": found.impact, "suggestion": found.suggestion, "text": found.text or found.title,
            "is_withdrawn": found.withdrawn,
        }  # fmt: skip
        if same:
            if same.lowered_by_id:  # the severity that a person set is final (SEV-7)
                values = {name: values[name] for name in values if name not in {"severity", "mandatory"}}
            for name, value in values.items():
                setattr(same, name, value)
            same.save(update_fields=list(values))
            return same
        if self._known is None or self._known.review.pk != review.pk:
            self._known = Known(review)
        origin, possibly, score = self._known.earlier(found)
        self.report.count("finding")
        return Finding.objects.create(
            task=task, round=review.submission.round, first=origin, possibly=possibly, same_as_score=score,
            code=intake.allot_code(self._known.codes, review.submission.round, found.code), **values,
        )  # fmt: skip

    def _remember(self, number: int, finding: Finding) -> None:
        self.by_number[number] = finding
        if finding.raw_code:  # documents use the printed codes and do not know ours
            self.findings[finding.raw_code.upper()] = finding

    def _elsewhere(self, step: ReviewDocument) -> list[Finding]:
        """Return findings that an earlier version of the document raised on gaps it no longer looks at."""
        looked_at = [self.tasks[gap] for gap in step.gaps]
        document = step.document
        rows = Finding.objects.filter(
            task__project=self.project, task__origin=Task.Origin.IMPORT,
            task__source__startswith=self._source("").removesuffix("session"), is_withdrawn=False,
            review__submission__round=document.round, review__submission__attempt=document.version,
        ).exclude(task__in=looked_at)  # fmt: skip
        return list(rows)

    def _withdraw(self, step: ReviewDocument, vanished: list[Finding]) -> None:
        for finding in vanished:
            if finding.is_withdrawn:
                continue
            finding.is_withdrawn = True
            finding.save(update_fields=["is_withdrawn"])
            withdrawal.withdraw([finding], finding.task, actor=SYSTEM)
            self.report.count("withdrawn finding")
            self.report.changes.append(
                f"{step.document.path} no longer holds {finding.code}: {one_line(finding.title, 80)}. "
                "It is withdrawn."
            )

    # --- What people decided ---

    def _decisions(self) -> None:
        """Turn recorded decisions into comments on the tasks whose findings they settle."""
        for decided in self.plan.decisions.decisions if self.plan.decisions else ():
            named = [self.findings[code] for code in decided.codes if code in self.findings]
            for finding in named:
                body = "\n\n".join(filter(None, [decided.title, decided.text, decided.rationale]))
                _, is_new = Comment.objects.get_or_create(
                    project=self.project, task_id=finding.task_id, target=finding.code,
                    by_label=DECISIONS_LABEL, body=body,
                )  # fmt: skip
                if is_new:
                    self.report.count("decision")
            if not named and decided.codes:
                path = "decisions.md"
                reason = f"{', '.join(decided.codes)}: no finding of this session"
                self.report.notes.append(Trouble(f"{path}:{decided.line}", reason))


def _left(left: Left) -> str:
    finding = left.finding
    severity = (finding.severity or "unknown").upper()
    name = finding.code or "no id"
    return f"{severity} {name} ({finding.gap or 'no gap'}): {one_line(finding.title, 100)} [{left.review}]"


def _as_raised(finding: Finding) -> Raised:
    return Raised(
        finding.title, finding.location, code=finding.code, raw_code=finding.raw_code, text=finding.text
    )


def _again(found: Found, known: list[Finding], minimum: float) -> Finding | None:
    """Return the finding of the previous version that this one repeats, by printed code or else by words."""
    if found.code:
        for finding in known:
            if finding.raw_code.upper() == found.code.upper():
                return finding
    raised = Raised(found.title, found.location, code=found.code, text=found.text)
    match = same_finding(raised, [_as_raised(finding) for finding in known], minimum=minimum)
    return known[match.index] if match else None
