"""Where a response answers a finding, and as what: every place and shape (ANS-1 to ANS-4)."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from disputes.protocol.responses.answer_kinds import AnswerKind, is_answer, stated_kind
from disputes.protocol.responses.response import ReadResponse, read_response
from disputes.protocol.responses.sections import Role, role_of
from disputes.protocol.text.documents import Mode
from disputes.protocol.text.mentions import Names
from tests.cases import for_each
from tests.disputes.protocol.text.test_documents import QUADRATIC, growth

KNOWN = [f"ISSUE-R1-{number:03d}" for number in range(1, 20)] + ["H1", "M2", "CRIT-001", "CONCERN #1"]


def read(text: str, known: Iterable[str] | None = KNOWN) -> ReadResponse:
    return read_response(text, list(known) if known is not None else None)


def kinds(text: str) -> dict[str, str]:
    """What became of each finding; ours by the last digits of its id."""
    return {answer.code.removeprefix("ISSUE-R1-"): str(answer.kind) for answer in read(text).answers}


def places(text: str) -> dict[str, str]:
    return {answer.code.removeprefix("ISSUE-R1-"): answer.place for answer in read(text).answers}


ADDRESSED = {"001": "addressed"}

# --- Tables -----------------------------------------------------------------------------------------------

TABLES = [
    # ANS-1: the first cell, whatever the other columns are called
    ("| Issue | Resolution |\n|---|---|\n| ISSUE-R1-001 | A table of limits |", ADDRESSED),
    ("| Issue | Resolution |\n|:--|--:|\n| ISSUE-R1-001 (limits are vague) | A table |", ADDRESSED),
    ("| Issue | Resolution |\n|---|---|\n| ISSUE-R1-001 (CRITICAL) | A table |", ADDRESSED),
    ("| Issue | Resolution |\n|---|---|\n| Vague limits (ISSUE-R1-001) | A table |", ADDRESSED),
    ("| Issue | Resolution |\n|---|---|\n| **H1: vague limits** | A table |", {"H1": "addressed"}),
    ("Issue | Answer\n---|---\nISSUE-R1-001 | fixed\nISSUE-R1-002 | deferred",
     {"001": "addressed", "002": "deferred"}),
    # the kind stands in a column of its own, wherever that is
    ("| Issue | Severity | Status | Notes |\n|---|---|---|---|\n| ISSUE-R1-001 | HIGH | ✅ Fixed | x |\n"
     "| ISSUE-R1-002 | HIGH | ⏳ Deferred | x |\n| ISSUE-R1-003 | LOW | Won't fix | x |",
     {"001": "addressed", "002": "deferred", "003": "discarded"}),
    ("| # | Issue | Severity | Resolution |\n|---|---|---|---|\n| 1 | ISSUE-R1-001 | LOW | Deferred to v2 |",
     {"001": "deferred"}),
    ("| Issue | Title | Status |\n|---|---|---|\n| ISSUE-R1-001 | Deferred jobs | done |", ADDRESSED),
    # below headings that say what became of them, with what was asked in a column
    ("### Implemented\n| # | Item | Notes |\n|---|---|---|\n| ISSUE-R1-001 | Fix the lock | Added one |\n\n"
     "### Contested\n| # | Item | Reason |\n|---|---|---|\n| ISSUE-R1-002 | Remove it | It is called |\n\n"
     "### Needs Clarification\n| # | Item | Question |\n|---|---|---|\n| ISSUE-R1-003 | Fix it | Which? |",
     {"001": "addressed", "002": "declined"}),
    # another cell than the first, where the table tells what was done
    ("| Section | Change | Issue |\n|---|---|---|\n| 3.2 | A table of limits | ISSUE-R1-001 |", ADDRESSED),
    ("| Version | Changes |\n|---|---|\n| v1 | First |\n| v2 | **ISSUE-R1-001**: a table |", ADDRESSED),
    ("| Version | Date | Changes |\n|---|---|---|\n| 1.1 | 2031-01-02 | x (ISSUE-R1-001), ISSUE-R1-002 |",
     {"001": "addressed", "002": "addressed"}),
    ("| Round | Change |\n|---|---|\n| Round 2 | Addressed ISSUE-R1-001 |", ADDRESSED),
    # a table that only describes findings answers none
    ("| Issue | Severity | Title |\n|---|---|---|\n| ISSUE-R1-001 | HIGH | limits |", {}),
    ("| Step | Rule |\n|---|---|\n| 4 | as in ISSUE-R1-001 |", {}),
    ("| Issue | Resolution |\n|---|---|\n| limits | the one of ISSUE-R1-001 |", {}),
    # another finding in the answer is only mentioned
    ("| ISSUE-R1-002 | addressed | as ISSUE-R1-003 |", {"002": "addressed"}),
]  # fmt: skip


@for_each(("text", "expected"), TABLES, ids=lambda value: repr(value)[:70])
def test_a_table_answers_in_its_first_cell_or_where_it_tells_what_was_done(
    text: str, expected: dict[str, str]
) -> None:
    assert kinds(text) == expected


# --- Headings ---------------------------------------------------------------------------------------------

HEADINGS = [
    ("## Response to ISSUE-R1-001", ADDRESSED),
    ("### Response to Round 1 Issue (ISSUE-R1-001)", ADDRESSED),
    ("#### 3. Limits (Addressing ISSUE-R1-001)", ADDRESSED),
    ("#### Limits (ISSUE-R1-001 Fix)", ADDRESSED),
    ("### ISSUE-R1-001, ISSUE-R1-002: limits", {"001": "addressed", "002": "addressed"}),
    ("### H1: limits are vague", {"H1": "addressed"}),
    ("### CRIT-001", {"CRIT-001": "addressed"}),
    ("### The H1 tag", {}),  # an ordinary word
    ("### H1. Limits", {"H1": "addressed"}),
    ("### ISSUE-R1-001: limits\n\n**Status:** Deferred until the next round", {"001": "deferred"}),
    ("### ISSUE-R1-001\n- **Response:** Partially addressed", {"001": "partly"}),
    ("### ISSUE-R1-001\nDecision: left to the user", {"001": "user_decision"}),
    ("### ISSUE-R1-001\n\ntext\n\n## Next\n**Status:** Deferred", ADDRESSED),  # another section's
    ("```\n### ISSUE-R1-001\n```", {}),  # ID-3
]


@for_each(("text", "expected"), HEADINGS, ids=lambda value: repr(value)[:70])
def test_a_heading_that_names_a_finding_answers_it(text: str, expected: dict[str, str]) -> None:
    assert kinds(text) == expected


# --- Lines ------------------------------------------------------------------------------------------------

LEADS = [
    ("**Addressing ISSUE-R1-001:** the limits have a table now.", ADDRESSED),
    ("**ISSUE-R1-001 (CRITICAL): limits**\n\nA table.", ADDRESSED),
    ("**Removed (ISSUE-R1-001):** the old list.", ADDRESSED),
    ("**[REVISED - ISSUE-R1-001]** New words.", ADDRESSED),
    ("**Issue:** ISSUE-R1-001\n**Response:** Partially addressed.", {"001": "partly"}),
    ("**Revision:** Addresses ISSUE-R1-001 through ISSUE-R1-003",
     {"001": "addressed", "002": "addressed", "003": "addressed"}),
    ("- ISSUE-R1-001 → deferred\n- ISSUE-R1-002 -> fixed", {"001": "deferred", "002": "addressed"}),
    ("* ISSUE-R1-001\n  * Response: deferred", {"001": "deferred"}),
    ("- ISSUE-R1-001 vague limits: fixed", ADDRESSED),
    ("Regarding ISSUE-R1-001: a table was added.", ADDRESSED),
    ("From ISSUE-R1-001: \"the limits are vague\"", ADDRESSED),
    ("In response to ISSUE-R1-001, there is a table.", ADDRESSED),
    ("**Re: ISSUE-R1-001** We disagree, for it is there.", {"001": "declined"}),
    ("CONCERN #1: fixed", {"CONCERN #1": "addressed"}),
    # a sign before the finding
    ("✅ ISSUE-R1-001 – a table\n❌ ISSUE-R1-002 – the reviewer misread it\n⏭️ ISSUE-R1-003 – another task",
     {"001": "addressed", "002": "discarded", "003": "deferred"}),
    ("- ❌ **ISSUE-R1-001**: fixed after all", ADDRESSED),
    ("- ISSUE-R1-001 ✅ a table\n- H1 ⚠️ not the load test\n- M2 🚫 the RFC asks for it",
     {"001": "addressed", "H1": "partly", "M2": "discarded"}),
    # what objects, in other words than ours
    ("**ISSUE-R1-001** — pushing back: the limit is right.", {"001": "declined"}),
    ("ISSUE-R1-001: INVALID - there is no such function", {"001": "declined"}),
    ("- ISSUE-R1-001: Not a bug, the callers rely on it.", {"001": "declined"}),
    ("- ISSUE-R1-001: This is a false positive.", {"001": "declined"}),
    ("- ISSUE-R1-001: Could not reproduce it.", {"001": "declined"}),
    ("- ISSUE-R1-001: Incorrect. It is freed below.", {"001": "declined"}),
    ("- ISSUE-R1-001: Intentional; the RFC asks for it.", {"001": "accepted_as_is"}),
    ("- ISSUE-R1-001: I left it unchanged.", {"001": "accepted_as_is"}),
    # the same words as part of what was done
    ("- ISSUE-R1-001: Invalid input is refused now.", ADDRESSED),
    ("- ISSUE-R1-001: Incorrect offsets are refused now.", ADDRESSED),
    ("- ISSUE-R1-001: Intentional gaps are named.", ADDRESSED),
    # a label tells what became of all that it lists
    ("Fixed: ISSUE-R1-001, ISSUE-R1-002\nDeferred: ISSUE-R1-003\nNot addressed: ISSUE-R1-004",
     {"001": "addressed", "002": "addressed", "003": "deferred", "004": "discarded"}),
    ("- **Deferred:** ISSUE-R1-003 (needs data), ISSUE-R1-004", {"003": "deferred", "004": "deferred"}),
    ("All issues addressed: ISSUE-R1-001", ADDRESSED),
    ("**Open:** ISSUE-R1-001\nOutstanding: ISSUE-R1-002", {}),
    ("**Depends on:** ISSUE-R1-001\n**Related issues:** ISSUE-R1-002\n**Blocked by ISSUE-R1-003:** x", {}),
]  # fmt: skip


@for_each(("text", "expected"), LEADS, ids=lambda value: repr(value)[:70])
def test_a_line_that_begins_with_a_finding_answers_it(text: str, expected: dict[str, str]) -> None:
    assert kinds(text) == expected


@for_each(
    ("text", "expected"),
    [
        ("- [x] Limits have a table (ISSUE-R1-001)", {"001": "checkbox"}),
        ("- [X] ISSUE-R1-001", {"001": "checkbox"}),
        ("- [x] **ADDRESSES ISSUE-R1-001**", {"001": "checkbox"}),
        ("- [ ] ISSUE-R1-001: limits", {}),  # still to do
        ("- [ ] Limits (ISSUE-R1-001)", {}),
        ("- [ ] ISSUE-R1-001: deferred", {"001": "lead-in"}),  # it says what became of it
    ],
)
def test_a_box_answers_once_it_is_ticked(text: str, expected: dict[str, str]) -> None:
    assert places(text) == expected


@for_each(
    ("text", "expected"),
    [
        ("This also addresses ISSUE-R1-001.", ADDRESSED),
        ("It resolves ISSUE-R1-001 (limits) and ISSUE-R1-002.", {"001": "addressed", "002": "addressed"}),
        ("It resolves ISSUE-R1-001, which ISSUE-R1-002 needs.", ADDRESSED),
        ("To address ISSUE-R1-001, there is a table.", ADDRESSED),
        ("The limits are a table now (ISSUE-R1-001 fix).", ADDRESSED),
        ("The wording is clearer, as suggested in ISSUE-R1-001.", ADDRESSED),
        ("ISSUE-R1-001 has been resolved by the table.", ADDRESSED),
        ("ISSUE-R1-001 was deferred to the next round.", {"001": "deferred"}),
        ("ISSUE-R1-001 was not addressed.", {"001": "discarded"}),
        ("This does not address ISSUE-R1-001.", {}),
        ("We will address ISSUE-R1-001 next time.", {}),
        ("A table would fix ISSUE-R1-001.", {}),
        ("ISSUE-R1-001 is about limits.", {}),
        ("ISSUE-R1-001 remains open.", {}),
        ("As ISSUE-R1-001 points out, limits are vague.", {}),
        ("Unlike ISSUE-R1-001, this is new.", {}),
        ("- \"Limits are vague\" (ISSUE-R1-001)", {}),
    ],
)  # fmt: skip
def test_a_sentence_answers_only_where_it_claims_that_something_was_done(
    text: str, expected: dict[str, str]
) -> None:
    assert kinds(text) == expected


@for_each(
    ("text", "expected"),
    [
        ("Everything apart from ISSUE-R1-001 fixed.", {}),
        ("Everything but ISSUE-R1-001 is fixed.", {}),
        ("Fixed all findings except ISSUE-R1-001.", {}),
        ("Fixed: ISSUE-R1-001, ISSUE-R1-003 (but not ISSUE-R1-002)",
         {"001": "addressed", "003": "addressed"}),
        ("Fixed: all except for ISSUE-R1-001 and ISSUE-R1-002", {}),
        ("- [x] Everything other than ISSUE-R1-001", {}),
        ("## Fixed all but ISSUE-R1-001", {}),
        ("| Issue | Status |\n|---|---|\n| all but ISSUE-R1-001 | done |", {}),
        ("All of ISSUE-R1-001 to ISSUE-R1-003 except ISSUE-R1-002 are fixed.", {}),
        ("ISSUE-R1-001 to ISSUE-R1-003: fixed, except for the second one", {}),
        ("ISSUE-R1-001 to ISSUE-R1-003: all done except 002", {}),
        ("| ISSUE-R1-001 through 003 | done | except the last |", {}),
        ("ISSUE-R1-001: fixed, except for the docs", {"001": "partly"}),
        ("ISSUE-R1-001: Fixed in a.py but not in b.py", {"001": "partly"}),
        ("ISSUE-R1-001: fixed the read path; the write path is still open", {"001": "partly"}),
        ("ISSUE-R1-001: Done, though the delay is unchanged", {"001": "partly"}),
        ("- ISSUE-R1-001: the first half is done\n- ISSUE-R1-002: Addressed the easy part.",
         {"001": "partly", "002": "partly"}),
        ("- ISSUE-R1-001 (disagree): it is so\n- ISSUE-R1-002 (fixed): added\n- ISSUE-R1-003 [deferred]: a",
         {"001": "declined", "002": "addressed", "003": "deferred"}),
        ("- ISSUE-R1-001 (the disagreeing clients): fixed\n- ISSUE-R1-002：不\nISSUE-R1-003 = not done",
         {"001": "addressed", "002": "addressed", "003": "discarded"}),
        # one of several is told apart
        ("ISSUE-R1-001 to 003: fixed (002 only in part)",
         {"001": "addressed", "002": "partly", "003": "addressed"}),
        ("- ISSUE-R1-001, 002, 003: done, 003 is deferred to the next task",
         {"001": "addressed", "002": "addressed", "003": "deferred"}),
        ("| ISSUE-R1-001 to ISSUE-R1-003 | fixed, but R1-002 is not |",
         {"001": "addressed", "002": "discarded", "003": "addressed"}),
        ("ISSUE-R1-001 to 003: fixed, one only in part", {}),
        ("ISSUE-R1-001 to 002: fixed, 404 is sent now", {"001": "addressed", "002": "addressed"}),
        # nothing is excepted here
        ("ISSUE-R1-001: fixed but for ISSUE-R1-002, which is deferred", ADDRESSED),
        ("Nothing but ISSUE-R1-001 is left.", {}),
    ],
)  # fmt: skip
def test_what_is_excepted_from_an_answer_is_not_answered_by_it(text: str, expected: dict[str, str]) -> None:
    assert kinds(text) == expected  # ANS-5


@for_each(
    ("text", "expected"),
    [
        ("All of ISSUE-R1-001 to ISSUE-R1-003 are done.", ["001", "002", "003"]),
        ("Both ISSUE-R1-001 and ISSUE-R1-002 have been fixed.", ["001", "002"]),
        ("Findings ISSUE-R1-001, 002 are fixed; ISSUE-R1-003 is not.", ["001", "002"]),
        ("CONCERN #1 and CRIT-001 are fixed.", ["CONCERN #1", "CRIT-001"]),
        ("All of ISSUE-R1-001 to ISSUE-R1-003 are done but the second.", []),
        ("Most of ISSUE-R1-001 to ISSUE-R1-003 are done.", []),
        ("All of ISSUE-R1-001 to ISSUE-R1-003 are mostly done.", []),
        ("None of ISSUE-R1-001 to ISSUE-R1-003 are done.", []),
        ("Fixed all findings.", []),
        ("1. Fixed.\n2. Declined: the RFC asks for it.", []),
    ],
)
def test_a_sentence_about_several_findings_answers_them_if_it_says_so_of_all(
    text: str, expected: list[str]
) -> None:
    assert sorted(kinds(text)) == sorted(expected)  # ANS-5


@for_each(
    ("text", "expected"),
    [
        ("> ISSUE-R1-001: the lock leaks\n\nFixed in abc1234.", ADDRESSED),
        ("> **ISSUE-R1-001** (high) The lock leaks\n> on errors.\nGood catch, fixed.", ADDRESSED),
        ("> H1: the lock leaks\n\nDisagree, because the caller holds it.", {"H1": "declined"}),
        ("> ISSUE-R1-001: no test\n\nAdded one.", ADDRESSED),
        ("> ISSUE-R1-001: a\n\nWon't fix.\n\n> ISSUE-R1-002: b\n\nDone.",
         {"001": "discarded", "002": "addressed"}),
        # nothing says what became of it
        ("> ISSUE-R1-001: the lock leaks\n\nSee the other thread.", {}),
        ("> ISSUE-R1-001: the lock leaks", {}),
        ("> ISSUE-R1-001: the lock leaks\n\n> Fixed.", {}),
        ("> ISSUE-R1-001: the lock leaks\n\n## Fixed", {}),
        ("> ISSUE-R1-001: the lock leaks\n\n```\nFixed\n```", {}),
        ("> ISSUE-R1-001: the lock leaks\n\nISSUE-R1-002: fixed", {"002": "addressed"}),
        ("> ISSUE-R1-001: the lock leaks\n\nFix: take it in `claim`", {}),  # it may go on with the finding
        ("> ISSUE-R1-001: the lock leaks\n\n**Status: RESOLVED**", {}),
        ("> ISSUE-R1-001: fixed", {}),  # the quote itself states nothing
        # the reply may be to either, or the id is only named
        ("> ISSUE-R1-001: a\n> ISSUE-R1-002: b\n\nFixed.", {}),
        ("> as in ISSUE-R1-001\n\nFixed.", {}),
        ("> ISSUE-R1-001 and ISSUE-R1-002: a\n\nFixed.", {}),
        ("<!-- ISSUE-R1-001: a -->\nFixed.", {}),
    ],
)  # fmt: skip
def test_the_text_below_a_quoted_finding_answers_it_if_it_begins_with_what_was_done(
    text: str, expected: dict[str, str]
) -> None:
    assert kinds(text) == expected  # ANS-6


ARGUING = [
    "The caller already holds the lock, see `claim()`.",
    "`items` can never be empty at this point, because the form requires one.",
    "Changing this would break every client that sends no header.",
    "This seems like overkill for a script that runs once a year.",
    "I believe the reviewer overlooked that `close()` is called by the context manager.",
    "I don't see how two workers could get here at the same time.",
    "That's a matter of taste.",
    "Not worth the complexity.",
    "Low risk, the page is only for admins.",
    "The specification asks for exactly this order.",
    "This is how the library works, see its docs.",
    "Works for me, I can't reproduce this.",
    "Thanks for the suggestion, but I would keep the current structure.",
    "We leave this to the caller, which is the convention here.",
    "Django escapes this by default, so there is nothing to do.",
    "There is a test for that in test_io.py.",
    "Tests cover this.",
    "For now this is good enough.",
    "I agree in principle, but it is out of proportion for this change.",
    "Das ist so gewollt.",
    "No estoy de acuerdo, el protocolo lo pide.",
    "`close()` is called by the framework.",
    "The lock was added in an earlier change, so the race cannot occur.",
    "This was discussed in the design review and accepted.",
    "It has worked this way for years.",
    "This was introduced before my change.",
    "A new index would slow down the writes.",
    "The old API is deprecated and nobody calls it.",
    "这是预期行为，无需修改。",
    # it says that things stay as they are, though some words are those of a deed
    "Kept the current behaviour deliberately; callers depend on it.",
    "I considered adding a lock but chose to keep the single writer.",
    "We opted to stay with the list, it holds five entries at most.",
    "After looking into this, I concluded that the existing check suffices.",
    "This was implemented that way on purpose, see the comment above the call.",
    "Removed nothing: the constant is read by the plugin.",
    "I moved on without it, as the suggestion breaks Windows.",
    "The function is now used only in tests, so nothing needs to happen.",
    "Reverted my attempt, since it made the tests flaky; the code is as before.",
    "Tried it, and it made things slower, so the original stays.",
    "This stays. The limit was added for the old API and still holds.",
    "The test was already there in the first commit, so I changed nothing.",
    "Das habe ich bewusst so gelassen, weil der Aufrufer prüft.",
    "J'ai volontairement laissé le code tel quel.",
    # words for a deed, which their clause denies
    "Nothing here was changed; the spec asks for it.",
    "No lock has been added, because there is one writer.",
    "It wasn't removed, the plugin reads it.",
    "Ich habe das nicht geändert, weil der Aufrufer prüft.",
    "Hier wurde nichts ergänzt, denn das Verhalten ist richtig.",
    "Nun ja, das gehört so.",
    "Die Sperre hält der Aufrufer jetzt schon.",
    "Je n'ai rien changé, le comportement convient.",
    "No se ha corregido: la especificación no lo pide.",
    "No he añadido nada, ahora mismo el resultado es bueno.",
    "Ahora no.",
    "変更していません。呼び出し側がロックを保持しています。",
    "修正しないことにしました。",
    "追加しませんでした。",
    "没有添加，因为调用者已经持有锁。",
    "Não foi removido.",
    "Non è stato aggiunto nulla.",
    "Niet gewijzigd: het gedrag is juist.",
    "Не исправлено: так задумано.",
    # nobody can tell that this was done
    "Both writes are wrapped in one transaction.",
    "The helper closes the file in `finally`.",
    # what was done is undone
    "Reverted the change because it broke the tests.",
    "Tried a lock, it did not work, so I rolled it back.",
    "Attempted to limit it without success.",
    "Fixed at first, then reverted.",
]
DOING = [
    "Added an assertion, though the caller already holds the lock.",
    "You're right, the check was in the wrong place. Moved it up.",
    "The value can never be negative now that the type is unsigned.",
    "The RFC asks for it, so I changed the order.",
    "Not needed any more, since I dropped the whole module.",
    "see commit 3f2a9c1",
    "Use a set in place of the list",
    "A test was added.",
    "`retry()` now gives up after three attempts.",
    "Habe ich ergänzt.",
    "Got rid of the global, because the callers would share it.",
    "Check the return code of git",
    "Avoid the second query",
    "New test for empty input",
    "Null check, plus a test",
    "`timeout=None` → `timeout=30`",
    "3f2a9c1",
    "As suggested: one query.",
    "Reverted to the earlier format.",
    "Removed the cache and reverted to the earlier format, as asked.",
    "Deliberately strict: raised the limit to 5, as you asked.",
    "I kept the public name, but made the helper private as you asked.",
    "`limit` defaults to 100 from this commit on.",
    "Both branches are covered by new tests in test_api.py.",
    "已修复，添加了空值检查。",
    "修正しました。空の入力のテストを追加しました。",
    "Добавил проверку диапазона в `parse()`.",
    "Removi a variável global.",
    "Aggiunto un test per l'input vuoto.",
    "Test voor lege invoer toegevoegd.",
    "Dodałem sprawdzanie zakresu w `parse()`.",
    "Die Funktion wirft jetzt einen Fehler, statt nichts zu tun.",
    "Le contrôle a été ajouté et n'échoue pas.",
    "空の入力で落ちないように修正しました。",
    "The helper is not called twice any more.",
    "The test was not stable, so I replaced it.",
]

ARGUING += [
    "Silenced with noqa",
    "Fixed: suppressed the warning with a type: ignore",
    "Added `# noqa` to the line",
    "Marked the test as skipped",
    "I disabled the check in CI",
    "Tried to fix it but the tests deadlock, so I reverted the change.",
    "Attempted, reverted.",
    "Added a TODO.",
    "Added a comment explaining why the lock is unnecessary.",
    "Removed the assertion so that the test passes.",
    "Updated the test to expect the current behaviour.",
    "Addressed (no change required).",
]
DOING += ["Ignored errors are logged now.", "Added a test that the rule is skipped for an empty list."]
DOING += [
    "Added a comment explaining the lock order.",
    "Fixed in `a.py`; no changes needed in `b.py`.",
    "Reverted the unrelated change to `b.py` as you asked.",
]


@for_each("text", ARGUING)
def test_an_answer_that_tells_of_nothing_done_is_unclear(text: str) -> None:
    """ANS-7: it may be a refusal in other words."""
    for form in ("- ISSUE-R1-001: {}", "**ISSUE-R1-001** \u2013 {}", "### ISSUE-R1-001: a\n\n{}",
                 "| ISSUE-R1-001 | {} |"):  # fmt: skip
        (answer,) = read(form.format(text)).answers
        assert (answer.is_unclear, answer.kind) == (True, AnswerKind.ADDRESSED)


@for_each("text", DOING)
def test_an_answer_that_says_what_was_done_is_clear_whatever_else_it_argues(text: str) -> None:
    for form in (
        "- ISSUE-R1-001: {}",
        "### ISSUE-R1-001: it can never be empty\n\n{}",
        "| ISSUE-R1-001 | {} |",
    ):
        (answer,) = read(form.format(text)).answers
        assert not answer.is_unclear


@for_each(
    "text",
    ["Which lock do you mean?", "Isn't the lock already held by the caller here?", "Good point, thanks!",
     "ok",     "Could you give an example? I cannot follow.", "Unclear what is asked here, please clarify.",
     "Thanks for spotting this!"],
)  # fmt: skip
def test_a_question_or_thanks_alone_answers_nothing(text: str) -> None:
    assert kinds(f"- ISSUE-R1-001: {text}\n\n### ISSUE-R1-002\n\n{text}\n") == {}  # ANS-7
    assert kinds(f"- ISSUE-R1-001: Added a test. {text}") == ADDRESSED


@for_each(
    ("text", "expected"),
    [
        ("- ISSUE-R1-001: fixed\n- ISSUE-R1-002: see ISSUE-R1-001", {"001": "addressed", "002": "addressed"}),
        ("- ISSUE-R1-001: dup of ISSUE-R1-002\n- ISSUE-R1-002: won't fix",
         {"001": "discarded", "002": "discarded"}),
        ("| ISSUE-R1-001 | Deferred to v2 |\n| ISSUE-R1-002 | Duplicate of ISSUE-R1-001 |",
         {"001": "deferred", "002": "deferred"}),
        ("- ISSUE-R1-001: deferred\n- ISSUE-R1-002: Same as above.\n- ISSUE-R1-003: ditto",
         {"001": "deferred", "002": "deferred", "003": "deferred"}),
        ("- ISSUE-R1-001: same as R1-002 and R1-003\n- ISSUE-R1-002: done\n- ISSUE-R1-003: partly",
         {"001": "partly", "002": "addressed", "003": "partly"}),
        ("- ISSUE-R1-002: see ISSUE-R1-001\n\n## DISAGREE: ISSUE-R1-001\n\n**Rationale:** no",
         {"001": "declined", "002": "declined"}),
        # what it refers to has no answer either
        ("- ISSUE-R1-002: see ISSUE-R1-001", {}),
        ("- ISSUE-R1-001: see ISSUE-R1-002\n- ISSUE-R1-002: see ISSUE-R1-001", {}),
        ("- ISSUE-R1-001: ditto", {}),
        # it says more than that
        ("- ISSUE-R1-001: Fixed, see ISSUE-R1-002", {"001": "addressed"}),
    ],
)  # fmt: skip
def test_an_answer_that_refers_to_another_says_what_that_one_says(
    text: str, expected: dict[str, str]
) -> None:
    assert kinds(text) == expected  # ANS-8


# --- Sections ---------------------------------------------------------------------------------------------


@for_each(
    ("heading", "kind"),
    [
        ("Deferred Issues", "deferred"),
        ("Deferred to Round 3", "deferred"),
        ("Out of scope", "deferred"),
        ("Issues Not Addressed", "discarded"),
        ("Partially addressed", "partly"),
        ("No longer applicable", "mooted"),
        ("Accepted as is", "accepted_as_is"),
        ("Known Limitations", "accepted_as_is"),
        ("User Decisions Applied", "user_decision"),
        ("Changes", "addressed"),
    ],
)
def test_a_section_says_what_became_of_the_findings_it_lists(heading: str, kind: str) -> None:
    assert kinds(f"### {heading}\n\n- ISSUE-R1-001: limits") == {"001": kind}


@for_each("heading", ["Open Issues", "Remaining Issues", "Next Steps", "New Gaps Introduced"])
def test_a_list_of_what_is_open_answers_nothing(heading: str) -> None:
    text = f"## {heading}\n\n- **ISSUE-R1-001**: limits\n- ISSUE-R1-002: fixed\n\n## Rest\n- ISSUE-R1-003: x"

    assert kinds(text) == {"002": "addressed", "003": "addressed"}  # unless an entry says so itself


@for_each("heading", ["Background", "Context", "References", "Issues raised"])
def test_a_section_that_repeats_the_review_answers_nothing(heading: str) -> None:
    assert kinds(f"## {heading}\n\n- **ISSUE-R1-001**: the limits are vague") == {}


def test_a_list_of_changes_answers_what_it_names_in_parentheses() -> None:
    entries = "- v2: clearer limits (ISSUE-R1-003), retries (ISSUE-R1-004)"

    assert kinds(f"## Revision History\n\n{entries}") == {"003": "addressed", "004": "addressed"}
    assert kinds(f"## Limits\n\n{entries}") == {}
    deeds = "I did this:\n\n- Took the lock around the write (ISSUE-R1-003).\n- The test of (ISSUE-R1-004)."
    assert kinds(deeds) == {"003": "addressed"}  # without a heading it says itself what was done
    assert kinds("Instead of fixing ISSUE-R1-001 I rewrote the module.") == {}


def test_a_section_about_deferred_work_is_no_section_of_deferred_findings() -> None:
    assert role_of("Handling of deferred jobs") == (Role.PLAIN, None)
    assert role_of("Gap Resolution: GAP-FLOW-001") == (Role.PLAIN, None)


@for_each(
    ("text", "expected"),
    [
        ("Issues addressed:\n- ISSUE-R1-001\n- ISSUE-R1-002", {"001": "addressed", "002": "addressed"}),
        ("**Deferred issues:**\n\n1. ISSUE-R1-001: limits", {"001": "deferred"}),
        ("We address the following issues:\n\n- ISSUE-R1-001", ADDRESSED),
        ("The reviewer raised:\n\n- **ISSUE-R1-001**: limits", {}),
        ("Remaining issues:\n- ISSUE-R1-001: limits\n\nMore text.\n\n- ISSUE-R1-002: limits",
         {"002": "addressed"}),
        ("**Remaining issues:**\n- ISSUE-R1-001: limits\n\n**Limits** are\n- ISSUE-R1-002: limits",
         {"002": "addressed"}),
    ],
)  # fmt: skip
def test_a_line_with_a_colon_is_a_heading_to_the_list_below(text: str, expected: dict[str, str]) -> None:
    assert kinds(text) == expected


@for_each("word", ["open", "TODO", "In progress", "still open", "**Pending**", "remains unresolved."])
def test_what_is_only_called_open_is_not_answered(word: str) -> None:
    text = f"| ISSUE-R1-001 | {word} |\n\n- ISSUE-R1-002: {word}"

    assert kinds(text) == {}
    assert [each.code for each in read(text).mentions] == ["ISSUE-R1-001", "ISSUE-R1-002"]


# --- Which finding ----------------------------------------------------------------------------------------


@for_each(
    ("text", "codes"),
    [
        ("| R1-013 through R1-017 | done |", ["013", "014", "015", "016", "017"]),
        ("| R1-001–R1-003 | done |", ["001", "002", "003"]),
        ("| ISSUE-R1-001 to R1-003 | done |", ["001", "002", "003"]),
        ("| R1-001/002 | done |", ["001", "002"]),
        ("| ISSUE-R1-001, 002 and 003 | done |", ["001", "002", "003"]),
        ("| ISSUE-R1-1 | done |", ["001"]),  # the review prints all its digits
        ("| ISSUE-R1-001 - 404 errors | done |", ["001"]),  # another number
    ],
)
def test_short_ids_lists_and_ranges_are_filled_in(text: str, codes: list[str]) -> None:
    assert list(kinds(text)) == codes  # ANS-3


def test_a_range_is_not_filled_in_without_end() -> None:
    spans = Names().spans("R1-001 through R1-900")

    assert [span.codes for span in spans] == [("ISSUE-R1-001", "ISSUE-R1-900")]


def test_an_answer_to_a_finding_of_another_review_stands_elsewhere() -> None:
    response = read("| ISSUE-R1-001 | done |\n| ISSUE-R4-001 | done |")

    assert [answer.code for answer in response.answers] == ["ISSUE-R1-001"]
    assert [answer.code for answer in response.elsewhere] == ["ISSUE-R4-001"]


def test_without_a_list_of_findings_every_canonical_id_counts_and_no_other_one() -> None:
    response = read("| ISSUE-R4-001 | done |\n| H1 | done |", known=None)

    assert [answer.code for answer in response.answers] == ["ISSUE-R4-001"]


def test_what_is_named_without_an_answer_is_mentioned() -> None:
    text = "See ISSUE-R1-001.\n\n```\n# ISSUE-R1-002\n```\n\n> ISSUE-R1-003\n\n- ISSUE-R1-004: fixed"

    assert [(each.code[-3:], each.line, each.mode) for each in read(text).mentions] == [
        ("001", 1, Mode.STATED), ("002", 4, Mode.FENCED), ("003", 7, Mode.QUOTED),
    ]  # ANS-2  # fmt: skip


# --- Which of several answers -----------------------------------------------------------------------------


def test_an_answer_that_says_what_became_of_a_finding_goes_before_one_that_only_names_it() -> None:
    (answer,) = read("## Limits (ISSUE-R1-001)\n\n| ISSUE-R1-001 | deferred | later |").answers

    assert (answer.kind, answer.line) == (AnswerKind.DEFERRED, 3)


def test_a_row_of_its_own_goes_before_a_range() -> None:
    text = "**Revision:** Addresses ISSUE-R1-001 through ISSUE-R1-002\n\n| ISSUE-R1-001 | a table |"

    assert [(answer.code[-3:], answer.line) for answer in read(text).answers] == [("002", 1), ("001", 3)]


# --- The words --------------------------------------------------------------------------------------------

WORDS = [
    ("Accepted as-is", "accepted_as_is"),
    ("No change needed", "accepted_as_is"),
    ("Accepted risk", "accepted_as_is"),
    ("No changes.", "accepted_as_is"),
    ("Not being fixed", "discarded"),
    ("Won't do. The protocol calls it so.", "discarded"),
    ("I did not do it", "discarded"),
    ("We are not going to change this", "discarded"),
    ("Not doing this", "discarded"),
    ("Skipped, too risky now", "discarded"),
    ("Respectfully, no. The RFC asks for it.", "discarded"),
    ("No, the RFC asks for it.", "discarded"),
    ("🚫 the reviewer misread the loop", "discarded"),
    ("⚠️ the load test is missing", "partly"),
    ("Decided against it", "discarded"),
    ("I chose not to: the callers rely on it", "discarded"),
    ("I don't think so", "declined"),
    ("Not convinced: `test_empty` is that test", "declined"),
    ("I left this as is, since the RFC asks for it.", "accepted_as_is"),
    ("Leaving it as it was.", "accepted_as_is"),
    # what stands before the answer out of courtesy
    ("Good catch, fixed.", "addressed"),
    ("Good point, but declined: the RFC asks for it", "declined"),
    ("Thanks! Won't fix, though", "discarded"),
    ("Sorry, I disagree", "declined"),
    ("Good point. A table of limits.", None),
    # a refusal behind the reasons for it
    ("I considered this but decided against it, the driver does it.", "discarded"),
    ("This would break the callers, so I did not do it.", "discarded"),
    ("The RFC asks for it, so I'd rather leave it.", "discarded"),
    ("Callers pass it; we won't change this.", "discarded"),
    ("I agree with the finding but have not touched it.", "discarded"),
    ("We keep it", "accepted_as_is"),
    ("Thanks, but I prefer the current form.", "accepted_as_is"),
    ("Prefer to keep this", "accepted_as_is"),
    # consent, and then what was done
    ("Closed as won't fix", "discarded"),
    ("Closed: not a bug", "declined"),
    ("Agreed, but out of scope", "deferred"),
    ("Agreed. Not fixed yet.", "discarded"),
    ("Accepted, will do later", "deferred"),
    ("Valid, but out of scope here", "deferred"),
    ("Understood, but no change made", "accepted_as_is"),
    ("Yes, but I did not change it", "discarded"),
    ("Fixed? No.", "discarded"),
    ("Agreed. Moved the lock.", "addressed"),
    ("Yes, no lock was taken", "addressed"),
    ("Accepted and fixed", "addressed"),
    # done, but not whole
    ("Done in part", "partly"),
    ("Fixed (partially)", "partly"),
    ("Fixed mostly", "partly"),
    ("Done, except for the docs", "partly"),
    ("Fixed, but not for Windows", "partly"),
    ("Mostly done", "partly"),
    # a promise
    ("I will fix this in a follow-up", "deferred"),
    ("We'll add a test", "deferred"),
    ("Will fix", "deferred"),
    ("To be done in another task", "deferred"),
    ("Will be addressed with the new driver", "deferred"),
    ("Filed as a follow-up", "deferred"),
    ("Opened an issue for it", "deferred"),
    ("Tracked in #12", "deferred"),
    ("Follow-up task", "deferred"),
    ("Moved to a follow-up ticket", "deferred"),
    ("Noted.", "accepted_as_is"),
    ("Noted in the README", None),
    ("Отклонено: так требует спецификация", "declined"),
    ("拒绝，规范要求如此。", "declined"),
    ("Afgewezen", "declined"),
    ("Adiado: fica para a próxima versão", "deferred"),
    ("Not in this change; I opened a ticket for it.", "deferred"),
    ("Will be handled in the next release, filed #212.", "deferred"),
    ("Left for later", "deferred"),
    ("Leaving this for a follow-up", "deferred"),
    ("TODO: a test", "deferred"),
    # other refusals
    ("Declining this one", "declined"),
    ("Rejecting: the RFC asks for it", "declined"),
    ("Nope", "discarded"),
    ("Ignoring, a matter of taste", "discarded"),
    ("Could not fix it", "discarded"),
    ("Unable to fix this", "discarded"),
    ("Not possible with this driver", "discarded"),
    ("Not needed: the callers check it", "accepted_as_is"),
    ("It's by design", "accepted_as_is"),
    ("That's intended behaviour", "accepted_as_is"),
    ("Intentionally left so", "accepted_as_is"),
    ("Keeping the current behaviour", "accepted_as_is"),
    ("No action taken", "accepted_as_is"),
    # the most usual words of other languages
    ("erledigt, die Sperre bleibt", "addressed"),
    ("abgelehnt, weil das Protokoll es so nennt", "declined"),
    ("abgelehnt weil das Protokoll es so nennt", "declined"),
    ("nicht behoben", "discarded"),
    ("teilweise", "partly"),
    ("verschoben auf später", "deferred"),
    ("refusé : le protocole le veut", "declined"),
    ("pas corrigé", "discarded"),
    ("no corregido", "discarded"),
    ("rechazado", "declined"),
    ("User's choice: keep it", "user_decision"),
    ("_Deferred_ to round 4", "deferred"),
    ("by design", "accepted_as_is"),
    ("User decision: keep it", "user_decision"),
    ("Decided by the user", "user_decision"),
    ("Escalated to the user", "user_decision"),
    ("Obsolete, the module is gone", "mooted"),
    ("No longer applicable", "mooted"),
    ("N/A", "mooted"),
    ("out of scope for this round", "deferred"),
    ("Deferred the migration", "deferred"),
    ("Won't fix", "discarded"),
    ("We disagree with this", "declined"),
    ("Rejected the proposal", "declined"),
    ("Rejected names raise now", None),
    ("Dropped the column", None),
    ("Later calls raise", None),
    ("Added a table", None),
    ("Not null is checked", None),
    ("Skipped rows are counted", None),
    ("No longer raises", None),
    ("Won't raise any more", None),
    ("The driver decided it; the test proves that it does not change the order", None),
    ("No-op for an empty list", None),
    ("Good catches are logged", None),
    ("Intended users are named", None),
    ("We keep it sorted", None),
    ("It will add the lock to the list", None),
    ("This will be refused", None),
    ("Opened files are closed", None),
    ("Contested", "declined"),
    ("Not reproducible.", "declined"),
    ("Noted. The parser refuses NaN.", "accepted_as_is"),
    ("Not needed locks are freed", None),
    ("Valid names only", None),
    ("Fixed the part that fails", "addressed"),
    ("Fixed. Only the docs of Windows name it now", "addressed"),
    ("No lock was added", None),
    # the title of a finding that begins with such words
    ("User decision tree is undefined", None),
    ("Disagree rate too high", None),
    ("No change detection", None),
    ("Partial failures", None),
    ("Deferred jobs are lost", None),
    ("", None),
]


@for_each(("text", "kind"), WORDS)
def test_a_text_says_at_its_beginning_what_became_of_a_finding(text: str, kind: str | None) -> None:
    assert stated_kind(text) == kind


@for_each(("cell", "expected"), [
    ("addressed", True), ("Partially addressed", True), ("✅", True), ("No", True), ("Accepted as is", True),
    ("fixed by a table", False), ("", False), ("a table", False),
])  # fmt: skip
def test_a_cell_is_an_answer_if_it_holds_nothing_else(cell: str, expected: bool) -> None:
    assert is_answer(cell) is expected


# --- What always holds ------------------------------------------------------------------------------------

PIECES = st.sampled_from([
    "ISSUE-R1-001", "R1-002", "through", "H1", "CONCERN #1", "| ", "\n|---|---|\n", "\n", "## ", "**", ": ",
    "- ", "[x] ", "[ ] ", "Deferred", "Status:", "fixed", "not ", "(", ")", "```\n", "> ", "Addressing ",
    "Changes", "—", "DISAGREE: ", "Open Issues\n", "🙂", "\u2028", "| v2 |",
])  # fmt: skip
GARBAGE = st.lists(PIECES | st.text(max_size=4), max_size=40).map("".join)


@given(GARBAGE)
def test_whatever_the_text_only_known_findings_are_answered_where_they_are_named(text: str) -> None:
    response, lines = read(text), text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    for answer in response.answers:
        assert answer.code in KNOWN
        assert Names(KNOWN).spans(lines[answer.line - 1])
    assert not {answer.code for answer in response.answers} & {each.code for each in response.mentions}


LINEAR = {
    "ids in one line": lambda n: "ISSUE-R1-001 " * n,
    "a list of ids": lambda n: "| ISSUE-R1-001" + ", R1-002" * n,
    "ranges": lambda n: "R1-001 through R1-050 x " * n,
    "headings": lambda n: "## ISSUE-R1-001\n" * n,
    "nested headings": lambda n: "# Changes\n## ISSUE-R1-001\n### ISSUE-R1-002\n" * n,
    "rows": lambda n: "| Issue | Status |\n|---|---|\n" + "| ISSUE-R1-001 | done |\n" * n,
    "cells": lambda n: "| Version | Changes |\n|---|---|\n" + "| v2 " * n + "| ISSUE-R1-001 |",
    "labels": lambda n: "a" * n + ": ISSUE-R1-001",
    "marks before an id": lambda n: "*" * n + "ISSUE-R1-001",
    "blanks behind an id": lambda n: "ISSUE-R1-001" + " " * n + "x",
    "parentheses behind an id": lambda n: "- ISSUE-R1-001" + "(" * n,
    "claims": lambda n: "addressing " * n + "ISSUE-R1-001",
    "exceptions": lambda n: "all but ISSUE-R1-001, except R1-001 through R1-009 " * n,
    "quotes": lambda n: "> ISSUE-R1-001: a\n\n" * n + "> R1-002\n" * n,
    "blanks below a quote": lambda n: "> ISSUE-R1-001: a\n" + "\n" * n,
    "references": lambda n: "ISSUE-R1-001: see ISSUE-R1-002\n" * n,
    "numbers behind several": lambda n: "ISSUE-R1-001, 002: " + "001 is not, 002 " * n,
    "questions": lambda n: "ISSUE-R1-001: " + "is it the reviewer " * n,
    "arguments": lambda n: "- ISSUE-R1-001: " + "not a the reviewer the task is it you are " * n,
    "thanks": lambda n: "ISSUE-R1-001: " + "thanks for " * n,
    "courtesy": lambda n: "ISSUE-R1-001: " + "good catch, " * n,
    "inline blocks": lambda n: "DISAGREE: ISSUE-R1-001\n" * n,
}


@for_each("name", LINEAR)
def test_the_work_grows_with_the_length(name: str) -> None:
    assert growth(read, LINEAR[name], 400) < QUADRATIC / 2
