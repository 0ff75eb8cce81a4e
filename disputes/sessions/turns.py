"""What a tick does for a session: its gaps follow its documents, and the next work is given out.

All of it follows from rows, under the project's lock, so it may run late, twice, or again after a crash.
"""

from django.db import transaction
from django.db.models import Q

from disputes import opening
from disputes.importing.plan import ReviewDocument, Work
from disputes.models import Conflict, ConflictQuerySet, Decision
from disputes.protocol.reviews.review import Verdict
from disputes.protocol.reviews.severity import GRAVE
from disputes.protocol.rounds.gaps import GapState, after_review, why_not_proposed
from disputes.protocol.rounds.partial import read_no_issues
from disputes.protocol.rounds.proposals import new_gaps, read_proposal
from disputes.protocol.rulings import options
from disputes.protocol.rulings.options import Option
from disputes.protocol.text.identifiers import gaps_in
from disputes.protocol.text.quotes import one_line
from disputes.sessions import findings, gaps, handing_in
from disputes.sessions.documents import Folder
from disputes.silence import flags
from disputes.silence.detection import hold_for
from tasks.events import SYSTEM, Actor
from tasks.models import Finding, Landing, Project, Review, Submission, Task
from tasks.models.event import record
from tasks.states import Severity, Status

TOLD = PROPOSED, JUDGED, FINAL = "round_proposed", "round_judged", "final_review"  # kinds of events
STATES = {
    Status.PENDING: GapState.OPEN,
    Status.IN_PROGRESS: GapState.IN_PROGRESS,
    Status.REVIEW: GapState.PROPOSED,
}


def advance(project: Project) -> None:
    """Bring the session and its gaps to where the rows lead (RND-3). The caller holds the project's lock."""
    if project.kind != Project.Kind.DOCUMENTS:
        return
    gaps.name_gaps(project)
    session = gaps.session_of(project)
    if session is None or session.landed_at:
        _land_gaps(session)
        if not gaps.is_work_left(project):
            return
        session = gaps.begin(project)
    with transaction.atomic():
        _Turn(session).take()


def _land_gaps(session: Task | None) -> None:
    """Mark the accepted gaps as landed, because they are on the target branch with their session."""
    if session is None:
        return
    accepted = session.project.tasks.gaps().filter(status=Status.COMPLETED, finished_by="review")
    for gap in accepted.filter(landed_at__isnull=True):
        gap.project = session.project
        gap.landed(session.landed_sha)


class _Turn:
    """What one session's documents lead to, including the final review of the whole (RND-6)."""

    def __init__(self, session: Task) -> None:
        self.session = session
        self.project = session.project
        self.folder = Folder(session)
        self.gaps = gaps.by_code(self.project)

    def take(self) -> None:
        self._follow_documents()
        if self.session.status == Status.IN_PROGRESS:
            self._go_on()
        if self.session.status in {Status.PENDING, Status.IN_PROGRESS}:
            self._give_out()

    def _follow_documents(self) -> None:
        """Let each new document change the gaps, and apply the last review again after each ruling."""
        told = self.project.events.filter(task=self.session, kind__in=[PROPOSED, JUDGED])
        known = set(told.values_list("kind", "data__row"))
        rows = [
            (PROPOSED, p.row.pk) if isinstance(p.row, Submission) else (JUDGED, p.row.pk)
            for p in self.folder.places
        ]
        if not rows or (rows[-1] in known and not self._waits_for_verdicts()):
            return
        for submission, work in self.folder.works():
            if (PROPOSED, submission.pk) not in known:
                self._propose(submission, work)
        for review, judged in sorted(self.folder.judged(), key=_strictest_last):
            is_over = self.session.status != Status.REVIEW or review.turn != self.session.version
            if is_over and (JUDGED, review.pk) not in known:
                self._judge(review, judged, is_new=True)
        if self.folder.judged() and self.session.status != Status.REVIEW:
            self._judge(*self.folder.judged()[-1], is_new=False)

    def _waits_for_verdicts(self) -> bool:
        """Whether a ruling since then may have settled what kept a gap from being accepted."""
        return any(gap.status == Status.REVIEW for gap in self.gaps.values())

    # --- What the engineer wrote ---

    def _propose(self, submission: Submission, work: Work) -> None:
        """Turn sections into proposals and new gaps into rows; ask about what is blocked."""
        made, _ = handing_in.delivered(self.session, submission.response)
        actor = Actor("run", submission.by_agent)
        self._add_gaps(submission, actor)
        refused = {}
        for code, text in work.sections.items():
            if (gap := self.gaps.get(code)) is None:
                continue
            self._keep_document(gap, submission, work, text)
            if why := self._propose_gap(gap, submission, text, actor):
                refused[code] = why
        for each in made.blocked:
            self._block(self.gaps[each.gap], each.text, actor)
        blocked = [each.gap for each in made.blocked]
        record(
            self.project, PROPOSED, task=self.session, actor=actor,
            note=_partly(made.addressed, made.missing, blocked),
            data={
                "row": submission.pk, "round": submission.round, "blocked": blocked,
                "addressed": made.addressed, "missing": made.missing, "refused": refused,
            },
        )  # fmt: skip
        self._flags(submission, work.document.path)

    def _keep_document(self, gap: Task, submission: Submission, work: Work, text: str) -> None:
        """Store the gap's part of a document with the gap, once."""
        taken = gaps.documents_of(gap).filter(round=submission.round, attempt__gte=submission.attempt)
        if not taken.filter(at=submission.at).exists():
            Submission.objects.create(
                task=gap, round=submission.round, attempt=submission.attempt + taken.count(),
                kind=Submission.Kind.DOCUMENT, response=text, by_agent=submission.by_agent,
                origin_path=work.document.path, content_sha256=work.document.sha256,
                state=Submission.State.VERIFIED, at=submission.at,
            )  # fmt: skip

    def _propose_gap(self, gap: Task, submission: Submission, text: str, actor: Actor) -> str:
        """Propose the gap. Return why it cannot be proposed, or ""."""
        if why := why_not_proposed(self._state(gap), text, self._unanswered(gap, submission)):
            return "" if gap.status == Status.REVIEW else why
        gap.propose(submission.round, actor=actor, note=f"round {submission.round}")
        for card in Conflict.objects.of(gap).awaited().filter(kind=Conflict.Kind.HELP):
            card.mark(Conflict.Followed.APPLIED, actor=actor)  # the engineer got what it asked for
        return ""

    def _state(self, gap: Task) -> GapState:
        reviews = Review.objects.standing().filter(submission__task=gap).order_by("-pk")
        said = reviews.values_list("verdict", flat=True).first() if gap.status == Status.IN_PROGRESS else ""
        sent_back = said == Review.Verdict.NEEDS_REVISION
        return GapState.NEEDS_REVISION if sent_back else STATES.get(Status(gap.status), GapState.ACCEPTED)

    def _unanswered(self, gap: Task, submission: Submission) -> tuple[str, ...]:
        """Return the grave findings on the gap that no document so far answers."""
        raised = self.session.findings.standing().filter(gap=gap, is_withdrawn=False, severity__in=GRAVE)
        before = raised.filter(round__lt=submission.round).select_related("first", "review")
        newest = {finding.origin.pk: finding for finding in before.order_by("pk")}
        so_far = self.session.submissions.standing().filter(round__lte=submission.round)
        closed = findings.answered(newest, so_far) | self._disputed()
        return tuple(finding.code for pk, finding in newest.items() if pk not in closed)

    def _disputed(self) -> set[int]:
        """Return the findings, as first raised, that people have ruled on or are asked about."""
        conflicts = Conflict.objects.of(self.session).disagreements().not_moot()
        return set(conflicts.filter(finding__isnull=False).values_list("finding", flat=True))

    def _add_gaps(self, submission: Submission, actor: Actor) -> None:
        for new in new_gaps(read_proposal(submission.response)):
            if new.code not in self.gaps:
                self.gaps[new.code] = gaps.add_gap(
                    self.session, new.code, new.title, new.severity or Severity.MEDIUM,
                    parent=self.gaps.get(new.parent), actor=actor,
                    note=f"Introduced in round {submission.round}, line {new.line}.",
                )  # fmt: skip

    def _block(self, gap: Task, text: str, actor: Actor) -> None:
        """Ask people for what the engineer lacks; they provide it, or defer or close the gap."""
        if gap.status in {Status.PENDING, Status.IN_PROGRESS}:
            opening.stop_for_help(
                gap, Conflict.Origin.BLOCKED, f"{gap.gap} waits for input: {text}"[:500], actor=actor,
                detail=text,
            )  # fmt: skip

    # --- Silence ---

    def _flags(self, submission: Submission, path: str) -> None:
        """Flag what the document passes over, by the plan's walk through the session (SIL-6)."""
        walked = self.folder.plan.silence
        step = next((each for each in walked.steps if each.name == path), None) if walked else None
        if step is None or step.judgement is None:
            return
        rows = self._rows_by_number()
        disputed = self._disputed()
        found = [
            (rows[each.ordinal], each)
            for each in step.judgement.flags
            if each.ordinal in rows and rows[each.ordinal].origin.pk not in disputed
        ]
        hold_for(flags.raise_flags(submission, found, actor=SYSTEM), self.session)

    def _rows_by_number(self) -> dict[int, Finding]:
        """Return the findings by the plan's numbers: from 1, in the order in which they were raised."""
        rows: dict[int, Finding] = {}
        number = 0
        for review, judged in self.folder.judged():
            left = list(review.findings.select_related("first", "review").order_by("ordinal"))
            for _, found in judged.findings:
                number += 1
                same = next((row for row in left if row.text == (found.text or found.title)), None)
                if same:
                    left.remove(same)
                    rows[number] = same
        return rows

    # --- What the reviewer wrote ---

    def _judge(self, review: Review, judged: ReviewDocument, *, is_new: bool) -> None:
        """Send back or accept each gap that the review looked at, or leave it as it is."""
        session_round = review.submission.round
        looked_at = {code: self.gaps[code] for code in judged.gaps if code in self.gaps}
        actor = Actor("run", review.by_agent)
        if is_new:
            self._flags(review.submission, judged.document.path)
        accepted, sent_back, left = [], [], []
        for code, gap in looked_at.items():
            gap.refresh_from_db()
            target = self._verdict(review, judged, gap)
            if is_new:
                self._keep_verdict(review, judged, gap)
            if target is GapState.ACCEPTED:
                if gap.status == Status.IN_PROGRESS:  # the sign-off answers what was open
                    gap.propose(session_round, actor=actor, note="answered, as its review says")
                gap.accept_gap(actor=actor, note=f"Signed off in round {session_round}.")
                accepted.append(code)
            elif target is GapState.NEEDS_REVISION:
                gap.send_gap_back(actor=actor, note=f"Review of round {session_round}.")
                sent_back.append(code)
            elif gap.status != Status.COMPLETED:
                left.append(code)
        if is_new:
            is_final = self._is_final(review)
            record(
                self.project, FINAL if is_final else JUDGED, task=self.session, actor=actor,
                note=_partly(accepted, left, sent_back),
                data={
                    "row": review.pk, "round": session_round, "accepted": accepted, "sent_back": sent_back,
                    "left": left, "verdict": review.verdict,
                },
            )  # fmt: skip
            if is_final:
                record(self.project, JUDGED, task=self.session, actor=actor, data={"row": review.pk})
                self._blockers_become_gaps(review, actor)

    def _is_final(self, review: Review) -> bool:
        """Whether this was the final review of the whole, asked for when nothing was open."""
        asked = self.project.events.filter(task=self.session, kind="review_rest", data__final=True)
        return asked.filter(at__lte=review.at, data__submission=review.submission_id).exists()

    def _verdict(self, review: Review, judged: ReviewDocument, gap: Task) -> GapState | None:
        """Return the state to which the review moves the gap, or None if it stays where it is."""
        newest = gaps.documents_of(gap).first()
        if newest is None or newest.at > review.submission.at:
            return None  # the gap was written about since
        is_of_this = newest.at == review.submission.at
        if gap.status != Status.REVIEW and not (gap.status == Status.IN_PROGRESS and is_of_this):
            return None
        if not _is_named(judged, gap.gap) or self._asked().filter(finding__gap=gap).exists():
            return None
        target = after_review(
            grave_findings=self._grave_issues(review, gap),
            is_sent_back=judged.verdict_on(gap.gap) is Verdict.NEEDS_REVISION,
            is_signed_off=self._signs_off(judged, gap) and not self._is_sent_back_by_another(review, gap),
            open_conflicts=Conflict.objects.of(self.session).open().filter(finding__gap=gap).count(),
        )
        if gap.status == Status.IN_PROGRESS and target is GapState.NEEDS_REVISION:
            return None  # the gap is with the engineer already
        return target

    def _is_sent_back_by_another(self, review: Review, gap: Task) -> bool:
        """Whether another review of the same turn sends the gap back: the strictest prevails (ARB-9)."""
        return any(
            _is_named(judged, gap.gap)
            and (judged.verdict_on(gap.gap) is Verdict.NEEDS_REVISION or self._grave_issues(other, gap) > 0)
            for other, judged in self.folder.judged()
            if (other.submission_id, other.turn) == (review.submission_id, review.turn) and other != review
        )

    def _grave_issues(self, review: Review, gap: Task) -> int:
        """Count the review's grave findings on the gap that no ruling has dismissed."""
        raised = review.findings.filter(gap=gap, is_withdrawn=False, severity__in=GRAVE)
        settled = Conflict.objects.of(self.session).settled().values_list("finding", flat=True)
        upheld = Conflict.objects.of(self.session).awaited().values_list("finding", flat=True)
        passed = set(settled) - set(upheld)
        return sum(finding.origin.pk not in passed for finding in raised.select_related("first"))

    def _signs_off(self, judged: ReviewDocument, gap: Task) -> bool:
        """Whether the review signs this gap off and no grave finding on it is left unanswered."""
        silent = any(
            each.finding.gap == gap.gap and each.finding.is_grave for each in self.folder.plan.never_answered
        )
        if silent or not judged.approves(gap.gap):
            return False
        if judged.verdict_on(gap.gap) is Verdict.NO_ISSUES_FOUND:
            return read_no_issues(judged.document.text, [*self.gaps]).signs_off(gap.gap)
        return True

    def _keep_verdict(self, review: Review, judged: ReviewDocument, gap: Task) -> None:
        """Store the review's verdict on the gap with the gap's own proposal."""
        last = gaps.documents_of(gap).filter(at__lte=review.submission.at).first()
        if last is None or not _is_named(judged, gap.gap):
            return
        sent_back = self._grave_issues(review, gap) or not self._signs_off(judged, gap)
        known = last.reviews.filter(by_agent=review.by_agent).count()
        Review.objects.create(
            submission=last, version=known + 1, by_agent=review.by_agent, at=review.at,
            verdict=Review.Verdict.NEEDS_REVISION if sent_back else Review.Verdict.APPROVED,
            raw_verdict=review.raw_verdict, origin_path=judged.document.path,
            content_sha256=judged.document.sha256,
        )  # fmt: skip

    def _blockers_become_gaps(self, review: Review, actor: Actor) -> None:
        """Create a gap for each mandatory finding of the final review, because it is work again."""
        for finding in review.findings.filter(is_withdrawn=False, mandatory=True).select_related("gap"):
            code = gaps.free_code(_area(finding.gap), self.gaps)
            self.gaps[code] = gap = gaps.add_gap(
                self.session, code, one_line(finding.title, 200), finding.severity, parent=finding.gap,
                note=f"{finding.code} of the final review.", actor=actor,
            )  # fmt: skip
            Finding.objects.filter(pk=finding.pk).update(gap=gap)

    # --- What comes next ---

    def _go_on(self) -> None:
        """Continue after a passed round: with the next one, a review of what is left, or the final review."""
        self._send_back_ruled()
        last = self.session.last_submission()
        if last is None or last.state != Submission.State.VERIFIED or not last.reviews.exists():
            return
        left = self.session.open_gaps()
        if not left.exists() and not self._is_clash_given(last):
            note = "Every gap is settled or put off: the final review."
            self.session.review_rest(note=note, final=True, submission=last.pk)
            return
        if not gaps.is_work_left(self.project):
            self._go_on_with_proposed(last)
        if last.round == self.session.round and gaps.is_work_left(self.project):
            self.session.next_round(note="The round was passed; gaps are left.")

    def _is_clash_given(self, last: Submission) -> bool:
        """Make a gap of it, once, if the accepted commits do not fit onto the target branch any more.

        Only the engineer can make them fit, and it works on gaps; another final review would change nothing.
        """
        clash = last.landings.filter(status=Landing.Status.CONFLICT).last()
        note = f"Commit {last.sha[:12]} of round {last.round} could not land."
        told = self.project.events.filter(kind="gap_found", note=note)
        if clash is None or told.exists():
            return False
        body = (
            f"Commit {last.sha[:12]} of round {last.round} was accepted and could not land on "
            f"{self.project.branch}: {one_line(clash.problem)}\n\nWrite everything that it changed into the "
            "documents as they are there now, so that every gap that was accepted is in them again."
        )
        code = gaps.free_code(gaps.NO_AREA, self.gaps)
        title = f"{self.project.branch} has moved on: what was accepted has to fit onto it again"
        self.gaps[code] = gaps.add_gap(
            self.session, code, title, Severity.HIGH, parent=None, note=note, body=body
        )
        return True

    def _go_on_with_proposed(self, last: Submission) -> None:
        """Continue if all gaps that can be worked on are proposed, and reviewed as they are.

        A gap that its review did not sign off is reviewed again. One that is signed off and not accepted
        waits for the ruling on its card, or else its engineer has to answer: another review would leave it
        where it is, too.
        """
        proposed = list(self.session.open_gaps().filter(status=Status.REVIEW).order_by("rank"))
        judged = [document for review, document in self.folder.judged() if review.submission_id == last.pk]
        unsigned = [gap for gap in proposed if not _is_signed_off(judged, gap.gap)]
        if unsigned:
            self._ask_again(last, unsigned)
            return
        undecided = set(Conflict.objects.of(self.session).open().values_list("finding__gap", flat=True))
        for gap in proposed:
            if gap.pk not in undecided:
                gap.project = self.project
                gap.send_gap_back(actor=SYSTEM, note="Signed off, but a finding on it was never answered.")

    def _ask_again(self, last: Submission, unsigned: list[Task]) -> None:
        """Ask for a review of the gaps, and a person once that was in vain as often as runs are tried."""
        asked = self.session.events.filter(
            kind="review_rest", data__final=False, data__submission=last.pk
        ).order_by()
        if self.session.counts_since:
            asked = asked.filter(at__gt=self.session.counts_since)
        times = asked.count()
        if times <= self.project.config.max_retries:
            note = "Proposed gaps wait for a review."
            self.session.review_rest(note=note, final=False, submission=last.pk)
            return
        codes = ", ".join(gap.gap for gap in unsigned)
        question = f"{times} reviews gave no verdict on {codes}: {self.session.title}"
        opening.stop_for_help(
            self.session, Conflict.Origin.EMPTY_RUNS, question[:500],
            detail="Tell the reviewer what to look at and retry, or defer or cancel these gaps.",
        )  # fmt: skip

    def _send_back_ruled(self) -> None:
        """Send gaps back to the engineer if a ruling asks for a change to them, or for an answer."""
        proposed = self.project.tasks.gaps().filter(status=Status.REVIEW)
        for gap in proposed.filter(gap_findings__in=self._asked().values("finding")).distinct():
            gap.project = self.project
            gap.send_gap_back(actor=SYSTEM, note="A ruling asks for a change or an answer.")

    def _asked(self) -> ConflictQuerySet:
        """Return the cards whose ruling asks the engineer for a change or an answer that is still to come."""
        asks = [option for option in Option if options.asks(option)]
        told = Decision.objects.standing().filter(Q(expects_change=True) | Q(option__in=asks))
        return Conflict.objects.of(self.session).awaited().filter(decisions__in=told)

    def _give_out(self) -> None:
        """Give the engineer the gaps of this round, up to the number in the settings."""
        is_begun = self.session.submissions.standing().filter(round=self.session.round).exists()
        given = gaps.assigned(self.session)
        free = self.project.config.gaps_per_round - len(given)
        chosen = [*gaps.may_be_given(self.project)][: max(free, 0)] if not is_begun else []
        for gap in chosen:
            gap.project = self.project
            gap.take_up(max(self.session.round, 1), note=f"Given out in round {max(self.session.round, 1)}.")
        if (chosen or given) and self.session.status == Status.PENDING:
            self.session.start()


def _strictest_last(pair: tuple[Review, ReviewDocument]) -> tuple[int, int, int, bool]:
    """Order reviews by their turns; in a turn the strictest has the last word on a gap (ARB-9)."""
    review, _ = pair
    submission = review.submission
    rejects = review.verdict == Review.Verdict.NEEDS_REVISION
    return submission.round, submission.attempt, review.turn or 0, rejects


def _is_named(judged: ReviewDocument, code: str) -> bool:
    """Whether a review is about a gap (RND-5): with verdicts on some, it has not looked at the others."""
    own = {gap for stated in judged.read.verdicts for gap in gaps_in(stated.scope)}
    return not own or code in own or any(about == code for about, _ in judged.findings)


def _is_signed_off(judged: list[ReviewDocument], code: str) -> bool:
    """Whether one of the reviews names the gap and approves it."""
    return any(_is_named(each, code) and each.approves(code) for each in judged)


def _area(gap: Task | None) -> str:
    return gap.gap.split("-")[1] if gap and gap.gap else gaps.NO_AREA


def _partly(done: object, left: object, other: object) -> str:
    told = [("", done), ("left: ", left), ("back: ", other)]
    return "; ".join(f"{word}{', '.join(codes)}" for word, codes in told if codes)[:500]  # type: ignore[call-overload]
