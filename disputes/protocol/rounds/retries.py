"""Retries: with which words and example, and what the log says (VAL-6, EX-8)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from disputes.protocol.rounds.examples import Earlier, Example, ExampleSource, pick
from disputes.protocol.rounds.validation import Failure, FailureType, Form, Validation
from disputes.protocol.text.quotes import fenced, one_line
from tasks.configuration.policy import DEFAULTS, ProjectSettings
from tasks.text.counting import some_of

LIST_MAX = 50  # how many ids a prompt names
ID_MAX = 60


# --- With which words -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Due:
    """What the agent was supposed to deliver."""

    form: Form
    place: str  # the command that hands in
    assigned: tuple[str, ...] = ()  # gap ids, the most important first
    known: tuple[str, ...] = ()  # ids of gaps or findings that exist
    least_chars: int = DEFAULTS.thin_content_chars


REQUIRED: dict[Form, tuple[str, ...]] = {
    Form.PROPOSAL: ("## Gap Resolution: <gap id>", "**Confidence:** HIGH, MEDIUM or LOW", "### Trade-offs"),
    Form.REVIEW: (
        "## Review: <gap id>",
        "### Critical Issues",
        "### High Priority",
        "### Medium Priority",
        "### Low Priority",
        "or NO_ISSUES_FOUND with what you looked at",
    ),
}
FIRST_HEADING: dict[Form, str] = {
    Form.PROPOSAL: "## Gap Resolution: {}",
    Form.REVIEW: "## Review: {}",
}
Words = Callable[[Failure, Due], Iterable[str]]


def _ids(ids: Iterable[str]) -> str:
    """Return a list of ids; each may be an agent's words, so it is kept short and on one line."""
    return some_of([one_line(each, ID_MAX) for each in ids], LIST_MAX)


def _missing(failure: Failure, due: Due) -> Iterable[str]:
    yield f"Your run ended without a hand-in. Hand in with exactly this command: `{due.place}`"
    yield "The hand-in must be accepted before you stop; printing the text is not enough."


def _refused(failure: Failure, due: Due) -> Iterable[str]:
    yield "Your run handed in, and nothing of it was taken. The last refusal is this list:"
    yield ""
    yield from (f"{number}. {one_line(reason)}" for number, reason in enumerate(failure.refs[:LIST_MAX], 1))
    if (left := len(failure.refs) - LIST_MAX) > 0:
        yield f"{LIST_MAX + 1}. and {left} more of the kind"
    yield ""
    yield f"Mend every item of it, then hand in with exactly this command: `{due.place}`"
    yield "Read what it prints. The run is done when it says that the work is handed in, and not before."


def _empty(failure: Failure, due: Due) -> Iterable[str]:
    yield "The document was blank. Write content even where you are not sure."
    yield f"At least {due.least_chars} characters for each gap, with concrete examples."
    yield "You may state **Confidence:** LOW and say what is missing."


def _wrong_format(failure: Failure, due: Due) -> Iterable[str]:
    yield f"What was wrong: {one_line(failure.message)}."
    yield "These must stand in the document, each on a line of its own:"
    yield from (f"- `{heading}`" for heading in REQUIRED[due.form])
    yield "Match the example."


def _no_gaps(failure: Failure, due: Due) -> Iterable[str]:
    yield f"The document names none of your gaps. Yours are, the most important first: {_ids(due.assigned)}."
    if due.assigned:
        yield f"Its first heading is exactly: `{FIRST_HEADING[due.form].format(due.assigned[0])}`"


def _unknown(failure: Failure, due: Due) -> Iterable[str]:
    yield f"These gaps do not exist: {_ids(failure.refs)}."
    yield f"These exist: {_ids(due.known) or 'none'}."
    yield "New ones go under the heading `### New Gaps Introduced`, and nowhere else first."


def _uncertain(failure: Failure, due: Due) -> Iterable[str]:
    yield f"You wrote that you are not sure: {one_line(failure.message)}."
    yield f"Propose something all the same for {_ids(failure.refs)}, by the documents and the settled gaps."
    yield "`**Confidence:** LOW` is allowed; name what would make you sure under `### Trade-offs`."


@dataclass(frozen=True, slots=True)
class Advice:
    """What one failure adds to the prompt, and where its example comes from, best source first."""

    words: Words
    examples: tuple[ExampleSource, ...] = ()


C, E, S = ExampleSource.CANONICAL, ExampleSource.SESSION, ExampleSource.TEMPLATE
ADVICE: dict[FailureType, Advice] = {
    FailureType.FILE_MISSING: Advice(_missing),
    FailureType.REFUSED: Advice(_refused, (C,)),
    FailureType.EMPTY_OUTPUT: Advice(_empty, (C,)),
    FailureType.WRONG_FORMAT: Advice(_wrong_format, (C,)),
    FailureType.NO_GAPS_ADDRESSED: Advice(_no_gaps, (E, C)),
    FailureType.INCONSISTENT_REFS: Advice(_unknown, (E, S)),
    FailureType.UNCERTAIN: Advice(_uncertain, (E, C)),
}


def notice(result: Validation, due: Due) -> list[str]:
    """Return the lines that name everything wrong with the last run, and what to do about it (VAL-2)."""
    lines = ["## Your last run was not accepted", ""]
    for kind in dict.fromkeys(failure.type for failure in result.failures):
        alike = [failure for failure in result.failures if failure.type is kind]
        together = Failure(
            kind,
            "; ".join(failure.message for failure in alike),
            refs=tuple(ref for failure in alike for ref in failure.refs),
        )
        words = ADVICE[kind].words(together, due) if kind in ADVICE else [one_line(together.message)]
        lines += [f"### {kind}", "", *words, ""]
    return lines


def example_for(
    result: Validation, due: Due, earlier: Iterable[Earlier] = (), settings: ProjectSettings = DEFAULTS
) -> Example | None:
    """Return the example for the first failure that wants one (EX-1), cut to its budget (EX-4), or None."""
    budget = settings.retry_example_tokens
    wanting = ((each.type, ADVICE[each.type].examples) for each in result.failures if each.type in ADVICE)
    failure, sources = next((each for each in wanting if each[1]), (None, ()))
    return pick(due.form, sources, earlier, budget, failure=failure)


def first_example(
    form: Form, earlier: Iterable[Earlier] = (), settings: ProjectSettings = DEFAULTS
) -> Example | None:
    """Return the example of a first prompt: an earlier document of the project, or ours (EX-1, EX-4)."""
    budget = settings.first_example_tokens
    return pick(form, (ExampleSource.SESSION, ExampleSource.CANONICAL), earlier, budget)


def example_lines(example: Example) -> str:
    """Return the example with an introduction that says where it comes from (EX-6)."""
    told = f"## An example: {example.origin}\n\nIt shows the form; its ids and its content are not yours."
    return f"{told}\n\n{fenced(example.text, 'markdown')}"


def demand(result: Validation, due: Due) -> str:
    """Return the closing line of the prompt, which demands a complete document."""
    kinds = ", ".join(dict.fromkeys(failure.type for failure in result.failures))
    return f"Again: mend {kinds}, and deliver a complete document, not only what changed: `{due.place}`"


# --- The log ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run: when it ended (ISO 8601, UTC), in which role, and its result."""

    at: str
    role: str
    result: Validation


@dataclass(frozen=True, slots=True)
class Logged:
    """One line of the log (VAL-6).

    `attempt` is 0 if the provider failed. `prompt_change` is empty unless it is a retry.
    """

    at: str
    role: str
    attempt: int
    result: str
    message: str
    prompt_change: str = ""


def log_of(attempts: Iterable[Attempt]) -> tuple[Logged, ...]:
    """Return a line for each run; a retry also says which failure it answers (VAL-6)."""
    lines: list[Logged] = []
    number, before = 0, None
    for each in attempts:
        result = each.result
        number += not result.provider
        lines.append(
            Logged(
                at=each.at,
                role=each.role,
                attempt=0 if result.provider else number,
                result=result.failure_type or "OK",
                message=result.message,
                prompt_change=_change(before) if before else "",
            )
        )
        before = before if result.provider else result
    return tuple(lines)


def _change(before: Validation) -> str:
    kinds = dict.fromkeys(failure.type for failure in before.failures)
    return f"notice on {', '.join(kinds)} before the prompt"
