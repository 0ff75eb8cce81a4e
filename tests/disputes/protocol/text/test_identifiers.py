"""Ids in every form (ID-4): canonical, short, in lists and ranges, native; and what only looks like one."""

from disputes.protocol.text.identifiers import MAX_RANGE, gaps_in, is_canonical, native_code
from disputes.protocol.text.mentions import codes_in
from tests.cases import for_each
from tests.disputes.protocol.text.test_documents import QUADRATIC, growth


@for_each(
    ("code", "valid"),
    [
        ("ISSUE-R1-001", True),
        ("ISSUE-R12-999", True),
        ("ISSUE-R1-000", False),  # ID-1: 001 to 999
        ("ISSUE-R1-1", False),
        ("ISSUE-R1-0001", False),
        ("ISSUE-R100-001", False),
        ("issue-r1-001", False),
        ("R1-001", False),
        ("H1", False),
        ("", False),
    ],
)
def test_only_the_canonical_form_may_be_stored(code: str, valid: bool) -> None:
    assert is_canonical(code) is valid


LISTS = [
    ("ISSUE-R1-001", "1-001"),
    ("see ISSUE-R1-001, please", "1-001"),
    ("R7-002", "7-002"),  # short
    ("**ISSUE-R1-001**", "1-001"),
    ("`R1-001`", "1-001"),
    ("(ISSUE-R1-001)", "1-001"),
    ("issue-r1-001", "1-001"),
    ("ISSUE-R7-V2-001", "7-V2-001"),  # of a second version
    ("ISSUE-R1-1", "1-1"),
    ("ISSUE-R1-001, ISSUE-R1-002", "1-001 1-002"),
    ("ISSUE-R1-001 and R2-001", "1-001 2-001"),
    ("ISSUE-R1-001, 002 and 003", "1-001 1-002 1-003"),  # the rest in digits
    ("ISSUE-R1-001/002", "1-001 1-002"),
    ("R1-013 through R1-016", "1-013 1-014 1-015 1-016"),  # ID-4
    ("ISSUE-R2-001 through R2-003", "2-001 2-002 2-003"),
    ("R1-033–R1-035", "1-033 1-034 1-035"),
    ("R1-033 — R1-035", "1-033 1-034 1-035"),
    ("R1-033 - R1-035", "1-033 1-034 1-035"),
    ("R1-001 to R1-003", "1-001 1-002 1-003"),
    ("R1-001 to 003", "1-001 1-002 1-003"),
    ("**R1-001** through **R1-003**", "1-001 1-002 1-003"),
    ("R1-001 through R1-002, R1-009", "1-001 1-002 1-009"),
    ("R1-003 through R1-001", "1-003 1-001"),  # backwards is no range
    ("R1-001 through R2-003", "1-001 2-003"),  # nor is one across rounds
    ("ISSUE-R1-0012", ""),  # four digits
    ("XISSUE-R1-001", ""),  # no part of a word
    ("OVER-R1-001", ""),
    ("CVE-2024-001", ""),
    ("R1-001a", ""),
    ("ISSUE-R1-001 costs 100 calls", "1-001"),  # a number alone is none
    ("ISSUE-R1-001 in 2024, 404 times", "1-001"),
    ("nothing", ""),
    ("", ""),
]


@for_each(("text", "codes"), LISTS, ids=[text for text, _ in LISTS])
def test_codes_are_found_in_full(text: str, codes: str) -> None:
    assert codes_in(text) == [f"ISSUE-R{code}" for code in codes.split()]


def test_a_range_has_a_bound() -> None:
    assert len(codes_in(f"R1-001 through R1-{1 + MAX_RANGE:03d}")) == MAX_RANGE + 1
    assert len(codes_in(f"R1-001 through R1-{2 + MAX_RANGE:03d}")) == 2


@for_each(
    ("text", "code"),
    [
        ("CRIT-001: text", "CRIT-001"),
        ("HIGH-002", "HIGH-002"),
        ("MED-001] text", "MED-001"),
        ("NIT-004: text", "NIT-004"),
        ("H1: text", "H1"),
        ("M12. text", "M12"),
        ("L-001: text", "L-001"),
        ("CONCERN #1: text", "CONCERN #1"),
        ("Concern #2: text", "Concern #2"),
        ("Issue 3: text", "Issue 3"),
        ("GAP-1: text", "GAP-1"),
        ("AMBIGUITY-2: text", "AMBIGUITY-2"),
        ("EDGE-CASE-1: text", "EDGE-CASE-1"),
        ("XCUT-NAV-001: text", "XCUT-NAV-001"),
        ("XCUT-KEY-012", "XCUT-KEY-012"),
        ("DIVERGE-001: text", "DIVERGE-001"),
        ("COMPRESS-007", "COMPRESS-007"),
        ("OBSERVATION-R7-V2-001: text", "OBSERVATION-R7-V2-001"),
        ("GAP-STATE-001: text", ""),  # the id of a gap
        ("UTF-8: text", ""),
        ("HIGH: text", ""),  # a severity
        ("Higher: text", ""),
        ("Section 3: text", ""),
        ("the first", ""),
        ("", ""),
    ],
)
def test_the_native_id_at_the_beginning_is_found_as_printed(text: str, code: str) -> None:
    assert native_code(text) == code


@for_each(
    ("text", "gaps"),
    [
        ("GAP-PAY-001", ["GAP-PAY-001"]),
        ("about GAP-PAY-001 and GAP-TAX-002, GAP-PAY-001", ["GAP-PAY-001", "GAP-TAX-002"]),
        ("GAP-PAY-007a", ["GAP-PAY-007a"]),  # ID-4: of a split
        ("GAP-X-001", []),  # a category of one letter
        ("GAP-ABCDEFGHIJK-001", []),
        ("GAP-PAY-01", []),
        ("GAP-PAY-0012", []),
        ("MY-GAP-PAY-001", []),
        ("gap-pay-001", []),
        ("GAP-1", []),
    ],
)
def test_gaps_are_found_once_each(text: str, gaps: list[str]) -> None:
    assert gaps_in(text) == gaps


@for_each("piece", ["ISSUE-R1-001, ", "R1-", "ISSUE-R", "R1-001 through ", "001, ", "- ", "GAP-"])
def test_the_work_grows_with_the_length(piece: str) -> None:
    assert growth(lambda text: (codes_in(text), gaps_in(text)), lambda n: piece * n, 400) < QUADRATIC / 2
