"""Reading findings that a review lists in a table, and what tables say about other findings (FND-6)."""

from collections.abc import Callable, Collection, Iterator
from itertools import chain, zip_longest

from disputes.protocol.reviews.blocks import Block
from disputes.protocol.reviews.candidate import SILENT
from disputes.protocol.reviews.findings import Found
from disputes.protocol.reviews.first_lines.start import COUNT, EMPTY, LETTERS
from disputes.protocol.reviews.headings import WORD, Purpose, Section
from disputes.protocol.reviews.inline_severities import severity_in
from disputes.protocol.reviews.layout import Layout
from disputes.protocol.reviews.statuses import Status, codes_of, status_of
from disputes.protocol.text.documents import Row, Table
from disputes.protocol.text.keywords import keywords, likeness
from tasks.states import Severity
from tasks.text.regex import regex

TITLE_COLUMNS = (
    "issue", "problem", "concern", "finding", "gap", "ambiguity", "weakness", "missing", "description",
    "summary", "title", "question", "befund", "problema", "hallazgo", "problème",
)  # fmt: skip
ID_COLUMNS = frozenset(["id", "#", "no", "no.", "nr", "nr.", "issue id", "finding id", "code", "ref"])
SEVERITY_COLUMNS = frozenset(
    ["severity", "priority", "prio", "risk", "sev", "sev.", "risk level", "severity level"]
    + ["schwere", "schweregrad", "priorität", "gravedad", "severidad", "prioridad", "gravité"]
)
# Other headings of a severity column, which count, as does none, if every cell below states a severity.
SEVERE_HEAD = regex(
    r"\b(?:sever\w*|priorit\w*|bad|serious\w*|urgen\w*|importan\w*|rating|level|weight|class|grade)\b"
)
LOCATION_WORDS = frozenset(
    ["location", "section", "line", "lines", "where", "file", "files", "path", "place"]
)
IMPACT_COLUMNS = frozenset(["impact", "risk", "why it matters"])
SUGGESTION_COLUMNS = frozenset(
    ["suggestion", "suggested fix", "recommendation", "fix", "resolution", "required change", "what to do"]
)
# A table with one of these columns judges or counts; it does not list findings.
OTHER_COLUMNS = frozenset(
    ["valid?", "count", "verdict", "required?", "addressed?", "resolved?", "result", "assessment"]
    + ["mitigation"]
)
ALIKE = 0.5
MAX_COMPARED = 60  # how many findings each row is compared with
NOT_LISTING = frozenset([*SILENT, Purpose.PRAISE, Purpose.GAPS, Purpose.REQUIRED])


def listed_severities(layout: Layout) -> dict[str, Severity]:
    """Return the severity of each code in the tables that state one; the first one counts."""
    found: dict[str, Severity] = {}
    for table in layout.tables:
        if layout.where[table.start].purpose in SILENT:
            continue
        column = _severity_column(table)
        for row in table.rows:
            first, *others = row.cells
            severity = severity_in(row.cell(column))
            named = [first]
            if not severity and len(first) <= 16:  # | HIGH | 2 | ISSUE-R1-001, ISSUE-R1-002 |
                severity, named = severity_in(first), others
            if severity:
                for code in chain.from_iterable(map(codes_of, named)):
                    found.setdefault(code.upper(), severity)
    return found


def find_rows(
    layout: Layout, blocks: list[Block], raised: Collection[str], *, lenient: bool
) -> Iterator[Found]:
    """Yield the findings in the rows of tables that list issues, unless they are raised elsewhere (FND-6)."""
    told: list[frozenset[str]] | None = None
    for table, section in _tables_of_issues(layout, blocks, lenient=lenient):
        if told is None:
            told = [keywords(block.start.title) for block in blocks[:MAX_COMPARED]]
        for first, last, row in _whole_rows(table):
            found = _row(layout.written(first, last).strip(), table, row, section)
            if found and not any(code in raised for code in _row_codes(row)) and not _told(found, told):
                yield found


def _tables_of_issues(
    layout: Layout, blocks: list[Block], *, lenient: bool
) -> Iterator[tuple[Table, Section]]:
    """Yield the tables that list issues, are in no block, and whose section has no other findings."""
    busy = {id(section) for block in blocks for section in _line_of(block.section)}
    inside = [range(block.begin, block.end) for block in blocks]
    position = 0
    for table in layout.tables:
        while position < len(inside) and inside[position].stop <= table.start:
            position += 1
        if position < len(inside) and table.start in inside[position]:
            continue
        section = layout.where[table.start]
        if section.purpose in NOT_LISTING or not _lists(table, section, alone=lenient):
            continue
        if id(section) not in busy or section.parent is None:
            yield table, section


def _whole_rows(table: Table) -> Iterator[tuple[int, int, Row]]:
    """Yield each row with its lines: one with words in a single cell goes on with the one above it."""
    severe = _severity_column(table)
    whole: list[tuple[int, int, Row]] = []
    for index, row in enumerate(table.rows, table.start + 2):
        goes_on = severe is not None and not row.cell(severe) and sum(map(bool, row.cells)) == 1
        if goes_on and whole and not row.cells[0]:
            first, _, above = whole.pop()
            cells = tuple(" ".join(filter(None, pair)) for pair in zip_longest(above.cells, row.cells))
            whole.append((first, index + 1, Row(above.line, cells)))
        else:
            whole.append((index, index + 1, row))
    yield from whole


def _row_codes(row: Row) -> list[str]:
    return [code for cell in row.cells[:2] for code in codes_of(cell)]


def _told(found: Found, told: list[frozenset[str]]) -> bool:
    """Whether a row only sums up a finding described elsewhere."""
    words = keywords(found.title)
    return any(likeness(words, other) >= ALIKE for other in told)


def _line_of(section: Section) -> Iterator[Section]:
    above: Section | None = section
    while above is not None:
        yield above
        above = above.parent


def _is_location(name: str) -> bool:
    """Whether a column says where: `File`, `File:Line`, `File / Lines`."""
    words = WORD.findall(name)
    return bool(words) and LOCATION_WORDS.issuperset(words)


def _severity_column(table: Table) -> int | None:
    """Return the index of the column that says how severe each row is, or None."""
    if (column := table.column(SEVERITY_COLUMNS)) is not None:
        return column
    for index, name in enumerate(table.names):
        cells = [cell for row in table.rows if (cell := row.cell(index))]
        if (not name or SEVERE_HEAD.search(name)) and cells and all(map(severity_in, cells)):
            return index
    return None


def _widest_column(table: Table) -> int | None:
    """Return the index of the column with the most text among those with an unknown heading, or None."""
    told = SEVERITY_COLUMNS | ID_COLUMNS | SUGGESTION_COLUMNS | {"status", "state"}
    severe = _severity_column(table)
    widths = [
        (sum(len(row.cell(index)) for row in table.rows), index)
        for index, name in enumerate(table.names)
        if name not in told and not _is_location(name) and index != severe
    ]
    return max(widths, default=(0, None))[1]


def _title_column(table: Table) -> int | None:
    names = table.names
    columns = [names.index(name) for name in TITLE_COLUMNS if name in names]
    first = columns[:1]
    if first == [0] and all(len(row.cells[0].split()) <= 1 for row in table.rows):
        columns = columns[1:]  # | Issue | Description | with ids in the first
    if not columns and _severity_column(table) is not None:
        return _widest_column(table)
    return next(iter(columns or first), None)


def _lists(table: Table, section: Section, *, alone: bool) -> bool:
    """Whether a table lists issues: one column names them, and another one or the section says how severe."""
    names = table.names
    if not names or OTHER_COLUMNS & set(names) or _title_column(table) is None:
        return False
    if section.purpose is Purpose.ISSUES:
        return True
    counts = alone or section.purpose not in (Purpose.CLOSING, Purpose.CHECKS)
    return counts and _severity_column(table) is not None


def _row(text: str, table: Table, row: Row, section: Section) -> Found | None:
    names = table.names
    column = _title_column(table)

    def cell(is_wanted: Callable[[str], object]) -> str:
        return row.cell(next((i for i, name in enumerate(names) if is_wanted(name) and i != column), None))

    title = row.cell(column).strip("* ")
    if not LETTERS.search(title) or EMPTY.match(title) or COUNT.fullmatch(title):
        return None
    status = status_of(cell(["status", "state"].__contains__))
    if status not in (None, Status.UNRESOLVED):
        return None
    words = row.cell(_severity_column(table))
    codes = _row_codes(row)
    return Found(
        title=title[:500],
        severity=severity_in(words) or section.severity,
        raw_severity=words.strip("* ")[:40],
        code=codes[0] if codes else "",
        location=cell(_is_location),
        impact=cell(IMPACT_COLUMNS.__contains__),
        suggestion=cell(SUGGESTION_COLUMNS.__contains__),
        text=text,
        line=row.line,
        format="table-row",
        gap=section.gap,
    )
