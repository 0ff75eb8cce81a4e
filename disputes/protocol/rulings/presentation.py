"""How a conflict is put before a person in plain text: both positions and the options (OPT-7).

Both positions are verbatim, as quotes; every other text is on one line, so that nothing an agent wrote
can pass for a heading, an option or a note of ours.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from disputes.protocol.rulings.options import ROWS, Kind, Option
from disputes.protocol.text.quotes import one_line, quoted

POSITION_MAX = 64_000
LINE_MAX = 600
CELL_MAX = 160
IMPLICIT_NOTE = (
    "NOTE: This conflict was detected automatically because the Engineer did not explicitly address this "
    "issue. The Engineer may have overlooked it, may have left it out on purpose, or may have addressed it "
    "without naming it. Consider asking first."
)
CRITICAL_NOTE = (
    "**Note:** For CRITICAL severity, Option A (Reviewer) is recommended unless the Engineer's rationale "
    "addresses safety or correctness concerns."
)
RECOMMENDED = " [RECOMMENDED]"


@dataclass(frozen=True, slots=True)
class Offer:
    """One option as it is presented: its cost, whether it is recommended, and what happens then."""

    option: Option
    letter: str
    title: str
    trade_off: str = ""
    is_recommended: bool = False
    consequence: str = ""


@dataclass(frozen=True, slots=True)
class Presented:
    """A conflict as a person has to see it. What nobody said is empty."""

    name: str  # the finding's code, or "Task ledger-214"
    kind: Kind
    subject: str
    severity: str
    gap: str
    offers: tuple[Offer, ...]
    raised_in: int | None = None  # the round that these words are from, if it was raised again
    reviewer: str = ""
    impact: str = ""
    coder: str = ""
    rationale: str = ""
    alternative: str = ""
    synthesis: str = ""
    synthesis_by: str = ""
    evidence: tuple[str, ...] = ()
    is_implicit: bool = False
    opened_by: str = ""  # who put it before a person: "The reviewer reviewer-1"; empty: the program
    is_outsiders: bool = False  # neither side opened it; the coder's position is its opener's


def present(conflict: Presented) -> str:
    """Return the whole text as lines of Markdown, without a final line end (OPT-7)."""
    blocks = [_head(conflict)]
    if conflict.kind is Kind.DISAGREEMENT:
        blocks += [_reviewer(conflict), _coder(conflict)]
        if conflict.synthesis.strip():
            blocks.append(_synthesis(conflict))
    elif conflict.kind is Kind.SILENCE:
        blocks += [
            _reviewer(conflict),
            ["**Engineer:** nothing was said of it.", *_evidence(conflict.evidence)],
        ]
    else:
        blocks.append(_happened(conflict))
    return "\n\n---\n\n".join("\n".join(block) for block in [*blocks, _summary(conflict)])


def _head(conflict: Presented) -> list[str]:
    raised = "" if conflict.raised_in is None else f" (raised in round {conflict.raised_in})"
    return [
        f"### Conflict: {conflict.name}",
        "",
        f"**Subject:** {one_line(conflict.subject, LINE_MAX)}{raised}",
        f"**Severity:** {conflict.severity.upper()}",
        f"**Gap Affected:** {one_line(conflict.gap, LINE_MAX)}",
    ]


def _offer(conflict: Presented, option: Option) -> Offer | None:
    return next((offer for offer in conflict.offers if offer.option is option), None)


def _position(conflict: Presented, option: Option, side: str, text: str) -> list[str]:
    offer = _offer(conflict, option)
    mark = RECOMMENDED if offer and offer.is_recommended else ""
    letter = f" (Option {offer.letter})" if offer else ""
    return [f"**{side}{letter}:**{mark}", *(quoted(text, POSITION_MAX) or ["Not explicitly stated."])]


def _trade_off(conflict: Presented, option: Option) -> list[str]:
    offer = _offer(conflict, option)
    return _labelled("Trade-off", offer.trade_off if offer else "")


def _labelled(label: str, text: str) -> list[str]:
    """Return a label with its text, on the same line or, if that has several lines, quoted below."""
    lines = quoted(text, POSITION_MAX)
    if not lines:
        return []
    if len(lines) == 1:
        return ["", f"**{label}:** {one_line(text, POSITION_MAX)}"]
    return ["", f"**{label}:**", *lines]


def _reviewer(conflict: Presented) -> list[str]:
    return [
        *_position(conflict, Option.UPHOLD_REVIEWER, "Reviewer Position", conflict.reviewer),
        *_labelled("Impact if ignored", conflict.impact),
        *_trade_off(conflict, Option.UPHOLD_REVIEWER),
    ]


def _coder(conflict: Presented) -> list[str]:
    return [
        *_position(conflict, Option.UPHOLD_CODER, "Engineer Position", conflict.coder),
        *_labelled("Rationale", conflict.rationale),
        *_labelled("Alternative", conflict.alternative),
        *_trade_off(conflict, Option.UPHOLD_CODER),
        *_opener(conflict),
        *_evidence(conflict.evidence),
    ]


def _opener(conflict: Presented) -> list[str]:
    """Return a note on whose words these are, unless they are simply the coder's."""
    who = one_line(conflict.opened_by, LINE_MAX)
    if conflict.is_implicit:
        return ["", IMPLICIT_NOTE]
    if who and not conflict.coder.strip():
        unheard = "The Engineer was not heard on it. Consider asking first."
        return ["", f"NOTE: {who} opened this dispute. {unheard}"]
    if who and conflict.is_outsiders:
        return ["", f"NOTE: {who} opened this dispute. The position above is theirs, not the Engineer's."]
    return []


def _synthesis(conflict: Presented) -> list[str]:
    by = one_line(conflict.synthesis_by, LINE_MAX)
    return [
        *_position(conflict, Option.COMPROMISE, "Synthesized Option", conflict.synthesis),
        *(["", f"**Proposed by:** {by}"] if by else []),
        *_trade_off(conflict, Option.COMPROMISE),
    ]


def _happened(conflict: Presented) -> list[str]:
    told = quoted(conflict.coder or conflict.reviewer, POSITION_MAX)
    evidence = _evidence(conflict.evidence)
    told = told or [] if evidence else told or ["Nothing more is known."]
    return ["**What happened:**", *told, *evidence] if told else evidence[1:]


def _evidence(facts: Iterable[str]) -> list[str]:
    lines = [f"- {one_line(fact, LINE_MAX)}" for fact in facts if fact.strip()]
    return ["", "**Evidence:**", *lines] if lines else []


def _summary(conflict: Presented) -> list[str]:
    is_disagreement = conflict.kind is Kind.DISAGREEMENT
    lines = ["### Options Summary", ""]
    if is_disagreement:
        lines += _table(
            ("Option", "Position", "Trade-off", "Recommended?"),
            (
                (
                    offer.letter,
                    ROWS[offer.option].side or offer.title,
                    one_line(offer.trade_off, CELL_MAX) or "-",
                    "Yes" if offer.is_recommended else "-",
                )
                for offer in conflict.offers
            ),
        )
    else:
        lines += _table(("Option", "Choice"), ((offer.letter, offer.title) for offer in conflict.offers))
    if any(offer.consequence for offer in conflict.offers):
        lines += ["", "**What happens then:**"]
        lines += [f"- {offer.letter}: {one_line(offer.consequence, LINE_MAX)}" for offer in conflict.offers]
    return [*lines, *(["", CRITICAL_NOTE] if is_disagreement and conflict.severity == "critical" else [])]


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Return a Markdown table, with bars in its cells escaped."""
    rule = tuple("-" * (len(cell) + 2) for cell in header)
    shown = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return [f"| {' | '.join(header)} |", f"|{'|'.join(rule)}|", *shown]
