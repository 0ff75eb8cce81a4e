"""The opinions of judges and mediators on a conflict, as its page shows them, and asking for more."""

from dataclasses import dataclass
from functools import cached_property

from disputes import hooks, opinions
from disputes.models import Conflict, Opinion
from disputes.opinions import Reach
from tasks.text.counting import counted

SHOWN = 6  # how many opinions on one conflict are shown, newest first
REASONS_SHOWN = 4_000  # characters; the rest is behind "As it was handed in"

VERDICT_WORDS = {
    Opinion.Verdict.ENFORCE: ("A", "Enforce: the reviewer is right"),
    Opinion.Verdict.DISMISS: ("B", "Dismiss: the {coder} is right"),
    Opinion.Verdict.ESCALATE: ("", "Escalate: a human has to say"),
    Opinion.Verdict.PROPOSE: ("C", "A proposal"),
    Opinion.Verdict.NONE: ("", "No middle way"),
}


@dataclass(frozen=True, slots=True)
class ShownOpinion:
    """One opinion as the page shows it."""

    opinion: Opinion
    coder: str  # what the project calls it

    @property
    def letter(self) -> str:
        return VERDICT_WORDS[Opinion.Verdict(self.opinion.verdict)][0] if self.opinion.verdict else ""

    @property
    def title(self) -> str:
        opinion = self.opinion
        if opinion.verdict:
            return VERDICT_WORDS[Opinion.Verdict(opinion.verdict)][1].format(coder=self.coder)
        return "Asked" if opinion.state == Opinion.State.ASKED else "Nobody gave it"

    @property
    def who(self) -> str:
        opinion = self.opinion
        return " \u00b7 ".join(
            word for word in (opinion.by_agent, opinion.by_model, opinion.by_vendor) if word
        )

    @property
    def quotes(self) -> list[tuple[str, str]]:
        """What the opinion says, as labelled texts of limited length."""
        opinion = self.opinion
        text = "" if opinion.text == opinion.reasons else opinion.text
        every = (("Proposal", text), ("Trade-off", opinion.trade_off), ("Reasons", opinion.reasons))
        return [(label, _cut(words)) for label, words in every if words.strip()]


def _cut(words: str) -> str:
    left = len(words) - REASONS_SHOWN
    return words if left <= 0 else f"{words[:REASONS_SHOWN]} [\u2026 {counted(left, 'more character')}]"


@dataclass
class Asking:
    """Who was asked, and who may be asked. Only people who may rule can ask (`may_rule`)."""

    conflict: Conflict
    may_rule: bool

    @cached_property
    def said(self) -> list[ShownOpinion]:
        """The newest opinions, newest first."""
        rows = sorted(self.conflict.opinions.all(), key=lambda opinion: -opinion.pk)
        coder = self.conflict.dispute.project.coder_word
        return [ShownOpinion(opinion, coder) for opinion in rows[:SHOWN]]

    @property
    def is_offered(self) -> bool:
        """Whether asking is possible at all: two sides disagree, and nobody has ruled."""
        is_open = self.conflict.is_open and self.conflict.dispute.task is not None
        return self.may_rule and is_open and self.conflict.kind == Conflict.Kind.DISAGREEMENT

    @property
    def has_choice(self) -> bool:
        """Whether asking has a box of its own: somebody can be asked, or the project wants that."""
        if not self.is_offered:
            return False
        return self.judge.is_possible or self.judge_is_asked or self.may_propose or self.default == "judge"

    @property
    def has_hint(self) -> bool:
        """Whether a discreet line says how to assign a judge, as nobody here has asked for one (ARB-5)."""
        return self.is_offered and not self.has_choice

    def _is_asked(self, kind: str) -> bool:
        pending = (kind, Opinion.State.ASKED)
        return any((each.opinion.kind, each.opinion.state) == pending for each in self.said)

    @property
    def judge_is_asked(self) -> bool:
        return self._is_asked(Opinion.Kind.JUDGE)

    @property
    def mediator_is_asked(self) -> bool:
        return self._is_asked(Opinion.Kind.MEDIATOR)

    @cached_property
    def _reach(self) -> dict[str, Reach]:
        return hooks.reach_of(self.conflict)

    @property
    def judge(self) -> Reach:
        """Whether there is a judge to ask; if not, how to assign one (ARB-5)."""
        return self._reach[Opinion.Kind.JUDGE]

    @property
    def mediator(self) -> Reach:
        return self._reach[Opinion.Kind.MEDIATOR]

    @property
    def waits(self) -> str:
        """Why the judge has not begun, if no suitable one is free."""
        return self.judge.waits if self.is_offered and self.judge_is_asked else ""

    @property
    def may_propose(self) -> bool:
        """Whether a mediator can be asked, which requires that there is no option C yet."""
        return self.conflict.proposal_id is None and self.mediator.is_possible and not self.mediator_is_asked

    @cached_property
    def trust(self) -> str:
        """A sentence on the judge's record, if it may earn the right to rule alone; else empty."""
        bound = self.conflict.dispute.project.config.judge_trust
        if not self.is_offered or not bound:
            return ""
        record = opinions.record_of(self.conflict.dispute.project, self.conflict.severity)
        said = f"People ruled as the judge had said on {record}; "
        if opinions.is_for_people(self.conflict):
            return f"{said}on what is critical or about security it never rules alone."
        return f"{said}it rules alone from {bound:.0%}."

    @cached_property
    def is_unsigned(self) -> bool:
        """Whether the project's policy would rule here if somebody had set it."""
        return self.is_offered and opinions.policy_of(self.conflict.dispute.project).is_unsigned

    @cached_property
    def default(self) -> str:
        """What the project's settings choose: human, judge or discard."""
        return self.conflict.dispute.project.config.on_dispute
