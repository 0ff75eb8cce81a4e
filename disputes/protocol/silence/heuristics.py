"""The check for silent disagreement: its heuristics (SIL-1 to SIL-5), their levels and the evidence.

Intent is never inferred: what was found is shown, and a person is asked.
"""

from collections.abc import Iterable, Sequence

from disputes.protocol.responses.answer_kinds import AnswerKind
from disputes.protocol.responses.answers import Answered
from disputes.protocol.responses.response import ReadResponse
from disputes.protocol.silence import suspicion
from disputes.protocol.silence.deflection import deflections, response_section
from disputes.protocol.silence.evidence import QUOTE_MAX, Suspect, evidence, signs
from disputes.protocol.silence.matching import Haystack, SoftMatch
from disputes.protocol.silence.substance import Change, Comparison, Substance
from disputes.protocol.text.documents import FENCED, scan
from disputes.protocol.text.keywords import keywords, overlap
from tasks.configuration.policy import DEFAULTS, ProjectSettings
from tasks.states import Severity

SOFT_MATCHES_MAX = 200  # how many findings are searched for by their words; each search reads the whole text


def judge_silence(
    findings: Sequence[suspicion.Watched],
    response: ReadResponse,
    document: str,
    previous: str = "",
    *,
    settings: ProjectSettings = DEFAULTS,
) -> suspicion.Judgement:
    """Return the flags that a document raises about the findings it should have treated (SIL-1 to SIL-10).

    `response` is the document as read, `previous` the one that the findings were raised against; if it is
    empty, nothing is said about changes. Raises DocumentError if the document is too large.
    """
    return _Judge(findings, response, document, previous, settings).judge()


class _Judge:
    def __init__(
        self,
        findings: Sequence[suspicion.Watched],
        response: ReadResponse,
        document: str,
        previous: str,
        settings: ProjectSettings,
    ) -> None:
        self.settings = settings
        self.document = document
        self.lines = scan(document)
        self.declined = {block.code for block in response.disagreements}
        self.previous = previous
        self._comparisons: dict[str, Comparison] = {}
        self._haystacks: dict[str, Haystack] = {}
        self._looked = 0
        self._by_line: dict[int, list[str]] = {}
        answers = {answer.code: answer for answer in response.answers}
        self.cases = [
            Suspect(finding, position, answers.get(finding.code) if finding.code else None)
            for position, finding in enumerate(findings)
        ]
        self.answered = sum(case.answer is not None for case in self.cases)
        named: dict[str, dict[bool, int]] = {}
        for mention in response.mentions:
            named.setdefault(mention.code, {}).setdefault(mention.mode is FENCED, mention.line)
        for case in self.cases:
            lines = named.get(case.finding.code, {}) if case.finding.code else {}
            case.mentioned, case.in_code = lines.get(False, 0), lines.get(True, 0)

    def judge(self) -> suspicion.Judgement:
        open_ones = [case for case in self.cases if not case.finding.is_settled]
        watched = [c for c in open_ones if c.finding.is_grave and (c.answer or c.finding.is_due)]
        for case in watched:
            self._measure(case)
        for case in self.cases:
            self._apply(case)
        suspects = [case for case in self.cases if case.heuristics]
        levels = self._levels(suspects)
        flags = tuple(self._suspicion(case, levels[case.position]) for case in suspects)
        return suspicion.Judgement(flags, (*_alerts(flags), *_gone(watched)))

    def _measure(self, case: Suspect) -> None:
        """Record whether the place of the finding changed, and whether in the words of its impact (SIL-4)."""
        finding = case.finding
        if finding.touched is False:
            case.change = Change(Substance.NO, finding.location, 0.0)
        elif finding.touched:
            case.change = Change(Substance.YES, finding.location)
        elif (finding.reviewed or self.previous).strip() and finding.location.strip():
            comparison = self._comparison(finding.reviewed or self.previous)
            case.change = comparison.change(finding.location, finding.impact)

    def _comparison(self, previous: str) -> Comparison:
        if previous not in self._comparisons:
            minimum = self.settings.semantic_overlap_minimum
            self._comparisons[previous] = Comparison(previous, self.document, minimum=minimum)
        return self._comparisons[previous]

    def _apply(self, case: Suspect) -> None:
        """Record which heuristics fire for the finding."""
        if not self._is_judged(case):
            return
        finding, answer = case.finding, case.answer
        if answer is None:
            case.match = self._soft_match(finding)
        elif finding.code not in self.declined and case.change.substance is not Substance.YES:
            case.deflections = self._deflections(answer)
            if answer.is_unclear and case.change.substance is Substance.NO:
                case.deflections = case.deflections or [answer.text[:QUOTE_MAX]]  # ANS-7
        silent = answer is None
        claims = answer is None or answer.kind in {AnswerKind.ADDRESSED, AnswerKind.PARTLY}
        fires = {
            suspicion.Heuristic.NO_REFERENCE: silent,
            suspicion.Heuristic.REPEATED_ROLLBACK: silent and len(set(finding.rollbacks)) >= 2,
            suspicion.Heuristic.UNJUSTIFIED_DOWNGRADE: finding.is_claimed_resolved
            and (silent or self._leaves_out(finding)),
            suspicion.Heuristic.NO_CHANGE: claims and case.change.flags and self._may_tell(case.change),
            suspicion.Heuristic.DEFLECTION: bool(case.deflections),
        }
        case.heuristics += [heuristic for heuristic, does in fires.items() if does]

    def _is_judged(self, case: Suspect) -> bool:
        """Whether the finding is open and due, and is either grave or was passed over in enough rounds."""
        finding, answer = case.finding, case.answer
        if finding.is_settled or not (answer or finding.is_due):
            return False
        rounds = len(set(finding.silent_rounds)) + 1
        return finding.is_grave or (not answer and rounds >= self.settings.pattern_threshold)

    def _deflections(self, answer: Answered) -> list[str]:
        """Return the deflecting phrases of an answer, read once for all findings that the line answers."""
        if answer.line not in self._by_line:
            self._by_line[answer.line] = deflections(response_section(self.lines, answer))
        return self._by_line[answer.line]

    def _may_tell(self, change: Change) -> bool:
        """Whether a change may be judged: an unchanged place always, a partial one if words are compared."""
        return change.substance is Substance.NO or self.settings.enable_semantic_check

    def _leaves_out(self, finding: suspicion.Watched) -> bool:
        """Whether the solution for the finding's gap has too few of the finding's own words."""
        if not self.settings.enable_semantic_check or not finding.solution:
            return False
        share = overlap(keywords(f"{finding.title} {finding.impact}"), keywords(finding.solution))
        return share is not None and share < self.settings.semantic_overlap_minimum

    def _soft_match(self, finding: suspicion.Watched) -> SoftMatch | None:
        self._looked += 1
        if self._looked > SOFT_MATCHES_MAX:
            return None
        previous = finding.reviewed or self.previous
        if previous not in self._haystacks:
            self._haystacks[previous] = Haystack(self.document, previous)
        return self._haystacks[previous].match(
            finding.title, finding.text, finding.location, minimum=self.settings.soft_match_overlap
        )

    def _levels(self, suspects: Iterable[Suspect]) -> dict[int, suspicion.Level]:
        """Return the level of each flag by the position of its finding (SIL-10)."""
        counted = [case for case in suspects if _counts(case)]
        highs = sum(case.finding.severity is Severity.HIGH for case in counted)
        criticals = sum(case.finding.severity is Severity.CRITICAL for case in counted)
        return {case.position: self._level(case, highs, criticals) for case in suspects}

    def _level(self, case: Suspect, highs: int, criticals: int) -> suspicion.Level:
        level = suspicion.Level.LOG
        if _counts(case):
            level = suspicion.round_level(case.finding.severity, highs, criticals, self.settings)
            if case.mentioned:
                level = suspicion.STEP_DOWN.get(level, level)
        if suspicion.Heuristic.DEFLECTION in case.heuristics:
            level = max(level, suspicion.Level.REVIEW, key=suspicion.LEVELS.index)
        unanswered = suspicion.Heuristic.NO_REFERENCE in case.heuristics
        if unanswered and len(set(case.finding.silent_rounds)) + 1 >= self.settings.pattern_threshold:
            level = suspicion.Level.SYSTEMATIC
        return level

    def _suspicion(self, case: Suspect, level: suspicion.Level) -> suspicion.Suspicion:
        finding = case.finding
        answered = self.answered - bool(case.answer)
        confidence = max(
            (suspicion.CONFIDENCE[heuristic] for heuristic in case.heuristics),
            key=list(suspicion.Confidence).index,
        )
        if case.match and case.heuristics == [suspicion.Heuristic.NO_REFERENCE]:
            confidence = suspicion.Confidence.MEDIUM
        return suspicion.Suspicion(
            code=finding.code,
            ordinal=finding.ordinal,
            severity=finding.severity,
            heuristics=tuple(case.heuristics),
            confidence=confidence,
            level=level,
            evidence=tuple(evidence(case, answered, len(self.cases) - 1)),
            overlap=case.change.overlap,
            signs=tuple(signs(case, self.cases, answered, len(self.document))),
        )


def _counts(case: Suspect) -> bool:
    """Whether the finding counts as unanswered in its round.

    It does not if only a partial change or a deflecting phrase speaks against it.
    """
    if suspicion.Heuristic.NO_CHANGE in case.heuristics and case.change.substance is Substance.NO:
        return True
    return bool({*case.heuristics} - {suspicion.Heuristic.NO_CHANGE, suspicion.Heuristic.DEFLECTION})


EFFECTS = {
    suspicion.Level.SYSTEMATIC: "the same concern was passed over again and again",
    suspicion.Level.BLOCK: "the round cannot end without a human's decision",
    suspicion.Level.WARN: "a human should look before the next phase",
    suspicion.Level.REVIEW: "the response turns the finding away without an alternative",
}


def _alerts(flags: Sequence[suspicion.Suspicion]) -> Iterable[suspicion.Alert]:
    for level in reversed(suspicion.LEVELS):
        codes = tuple(flag.code or f"#{flag.ordinal}" for flag in flags if flag.level == level)
        if codes and level in EFFECTS:
            yield suspicion.Alert(level, codes, f"{', '.join(codes)}: {EFFECTS[level]}")


def _gone(watched: Iterable[Suspect]) -> Iterable[suspicion.Alert]:
    """Yield an alert for findings whose section is gone, so that nothing can be compared (SIL-4)."""
    codes = tuple(
        case.finding.code or f"#{case.finding.ordinal}"
        for case in watched
        if case.change.substance is Substance.UNKNOWN
    )
    if codes:
        yield suspicion.Alert(
            suspicion.Level.REVIEW, codes, f"{', '.join(codes)}: the section is gone; look for yourself"
        )
