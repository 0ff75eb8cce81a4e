"""Documents that show the form: where they come from, and how they are cut to a budget (EX-1, EX-4)."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from disputes.protocol.rounds.proposals import NEW_GAPS, TRADE_OFFS, bare, read_proposal
from disputes.protocol.rounds.validation import FailureType, Form
from disputes.protocol.text.documents import Line, joined, scan
from tasks.text.regex import regex

CHARS_PER_TOKEN = 4  # EX-4: off by 20 to 30 % for code, which is acceptable
CUT = "[… cut here: {left} of {size} characters are left]"

# EX-1, tier 1: our own examples.
CANONICAL: dict[Form, str] = {
    Form.PROPOSAL: """\
## Gap Resolution: GAP-AUTH-001

**Gap:** When does a session end?

**Confidence:** HIGH

### Proposed Solution

A session ends 30 minutes after its last request, and 12 hours after its start whatever happens. Both limits
are settings (`session_idle_minutes`, `session_max_hours`). A request of a session that has ended gets status
401 and the code `session_ended`; the page then shows the sign-in form and keeps what was typed.

### Examples

**Example 1: a session that goes on.** Requests at 10:00, 10:29 and 10:58: the session is alive at 11:27.

**Example 2: a session that ends.** Requests at 10:00 and 10:31: the second one gets 401, `session_ended`.

### Trade-offs

- Pro: a forgotten browser is safe after half an hour.
- Pro: one rule for the pages and for the API.
- Con: somebody who reads for longer than that signs in again.
- Con: each request writes the time of the last one.

### New Gaps Introduced

- **GAP-AUTH-009** (LOW): What happens to an upload that is under way when its session ends?
""",
    Form.REVIEW: """\
## Review: GAP-AUTH-001

### Critical Issues

None.

### High Priority

- **ISSUE-R3-001**: The limit of 12 hours has no exception for running uploads
  - **Location:** Proposed Solution, first sentence
  - **Impact:** An upload of four hours fails at its end, and nobody is told before.
  - **Suggestion:** Let the session live while an upload runs, at most 24 hours.

### Medium Priority

None.

### Low Priority

- **ISSUE-R3-002**: The word "session" is used for two things
  - **Location:** Trade-offs
  - **Impact:** A reader stops and wonders.
  - **Suggestion:** Call the second one "visit".

## Verdict: NEEDS_REVISION
""",
    Form.HAND_IN: """\
| Finding | Answer | What was done |
|---|---|---|
| ISSUE-R2-001 | addressed | `login()` compares hashes in constant time; test_login.py holds it. |
| ISSUE-R2-002 | declined | See below. |
| ISSUE-R2-003 | deferred | Needs the new mail service, which is task 41. |

## DISAGREE: ISSUE-R2-002

**Reviewer Concern:**
> The limit of five tries must be counted in Redis.

**Engineer Position:**
The limit stays in the database.

**Rationale:**
The requirement in docs/SPEC.md, section 4, says that one installation has no other store; a row per account
is written 5 times at most, as test_limit.py measures.

**Alternative Approach (if any):**
Keep the count in the database and make the store exchangeable.

**Request:** Escalate to user for resolution
""",
    Form.REJECTION: """\
## Review: Sign in

### High Priority

- **ISSUE-R2-001**: A wrong password is compared letter by letter
  - **Location:** auth/login.py:41
  - **Impact:** The time of the answer tells how many letters are right.
  - **Suggestion:** Compare the hashes with `hmac.compare_digest`.

### Low Priority

- **ISSUE-R2-002**: The message of a refused sign-in names the account

## Verdict: NEEDS_REVISION
""",
}
# EX-1, tier 3: the bare form of documents about gaps.
SKELETONS: dict[Form, str] = {
    Form.PROPOSAL: """\
## Gap Resolution: <gap id>

**Confidence:** HIGH, MEDIUM or LOW

### Proposed Solution

<what is decided, with values; at least 200 characters>

### Examples

<one that succeeds, one at the edge>

### Trade-offs

<at least two pros and two cons>

### New Gaps Introduced

<ids and titles, or None>
""",
    Form.REVIEW: """\
## Review: <gap id>

### Critical Issues

<findings, or None>

### High Priority

- **ISSUE-R<round>-<number>**: <one sentence>
  - **Location:** <section or line>
  - **Impact:** <what goes wrong>
  - **Suggestion:** <what to do instead>

### Medium Priority

<findings, or None>

### Low Priority

<findings, or None>

## Verdict: NEEDS_REVISION, or NO_ISSUES_FOUND with what you looked at
""",
}


class ExampleSource(StrEnum):
    """Where an example comes from (EX-1)."""

    CANONICAL = "canonical"
    SESSION = "session"
    TEMPLATE = "template"


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier document of this project that may serve as an example; `number` grows with time."""

    form: Form
    text: str
    number: int
    round: int
    accepted: bool = False  # a gap was accepted because of it


@dataclass(frozen=True, slots=True)
class Example:
    """An example as it goes into a prompt, after it was cut."""

    source: ExampleSource
    origin: str  # EX-6: what the agent is told about its source
    text: str

    @property
    def size(self) -> int:
        """The estimated length in tokens (EX-4)."""
        return tokens(self.text)


def tokens(text: str) -> int:
    """Return how many tokens a text has, at four characters each, rounded up (EX-4)."""
    return -(-len(text) // CHARS_PER_TOKEN)


def score(candidate: Earlier, failure: FailureType | None = None) -> int:
    """Return points for how well an earlier document shows what was missing (EX-3)."""
    text = candidate.text
    points = 20 * candidate.accepted
    if 500 <= len(text) <= 5_000:
        points += 5
    elif 5_000 < len(text) <= 10_000:
        points += 2
    if failure not in {FailureType.WRONG_FORMAT, FailureType.NO_GAPS_ADDRESSED}:
        return points
    read = read_proposal(text)
    if failure is FailureType.NO_GAPS_ADDRESSED:
        return points + min(2 * len(read.mentioned), 10)
    shown = any(section.examples for section in read.sections)
    return points + 10 * read.has_resolution + 5 * read.has_trade_offs + 5 * shown


def pick(
    form: Form,
    sources: Sequence[ExampleSource],
    earlier: Iterable[Earlier],
    budget: int,
    *,
    failure: FailureType | None = None,
) -> Example | None:
    """Return the example from the first source that has one, cut to `budget` tokens, or None (EX-1).

    Of the earlier documents it is the one with the most points, and of equal ones the newest (EX-3).
    """
    candidates = [each for each in earlier if each.form is form]
    for source in sources:
        if source is ExampleSource.SESSION and candidates:
            best = max(candidates, key=lambda each: (score(each, failure), each.number))
            return _cut_to(source, f"round {best.round} of this project", best.text, budget)
        if source is ExampleSource.CANONICAL:
            return _cut_to(source, "the program's own example", CANONICAL[form], budget)
        if source is ExampleSource.TEMPLATE:
            return _cut_to(source, "the bare form", SKELETONS[form], budget)
    return None


def _cut_to(source: ExampleSource, origin: str, text: str, budget: int) -> Example | None:
    return Example(source, origin, truncated(text, budget)) if budget > 0 else None


# --- Cutting ----------------------------------------------------------------------------------------------

# EX-5: what is kept, most important first. A section belongs to the first pattern that its heading matches.
KEEP: tuple[re.Pattern[str], ...] = (
    regex(r"(?:gap |engineer )?(?:resolution|revision|revised)\b|review\b|GAP-", re.IGNORECASE),
    regex(r"(?:\w+ )?(?:solution|proposal)|critical|high\b", re.IGNORECASE),
    TRADE_OFFS,
    regex(r"examples?\b", re.IGNORECASE),
    NEW_GAPS,
)
TITLE = 0


def truncated(text: str, budget: int) -> str:
    """Return the text within `budget` tokens: its most important sections, then a hard cut with a note.

    What is kept stays in the order of the document (EX-5). Raises DocumentError if the text is too large to
    read.
    """
    limit = budget * CHARS_PER_TOKEN
    if len(text) <= limit:
        return text
    note = CUT.format(left=limit, size=len(text))  # no shorter than the one that is written below
    if limit <= len(note):
        return text[:limit]
    kept = _kept(_sections(scan(text)), limit - len(note) - 1)
    return f"{kept}\n{CUT.format(left=len(kept), size=len(text))}"


def _kept(sections: Sequence[tuple[int, str]], room: int) -> str:
    """Return as many sections as fit, important ones first; the first one that does not fit is cut off."""
    kept: dict[int, str] = {}
    for index in sorted(range(len(sections)), key=lambda place: (sections[place][0], place)):
        section = sections[index][1]
        kept[index] = section[:room]
        room -= len(kept[index]) + 1  # the line end between two sections
        if room <= 0:
            break
    return "\n".join(kept[index] for index in sorted(kept))


def _sections(lines: Sequence[Line]) -> list[tuple[int, str]]:
    """Return the rank and text of each section; what comes before the first heading ranks with the title."""
    found: list[tuple[int, list[Line]]] = [(TITLE, [])]
    for line in lines:
        if heading := line.heading:
            found.append((_worth(bare(heading[1])), []))
        found[-1][1].append(line)
    return [(worth, joined(body)) for worth, body in found if body]


def _worth(heading: str) -> int:
    return next((rank for rank, pattern in enumerate(KEEP) if pattern.match(heading)), len(KEEP))
