"""What a review is asked back about, so that no point is lost and no approval arises by accident (VER-6)."""

from disputes.protocol.reviews.doubts import (
    doubts_about_approval,
    doubts_about_note,
    doubts_about_rejection,
)
from disputes.protocol.reviews.review import read_review
from disputes.protocol.reviews.verdict_words import Verdict
from tests.cases import for_each

# What people write below an approval. Which of it asks for something, no list of words can tell.
REMARKS = (
    "LGTM after you squash the debugging print.",
    "There's an off-by-one in the loop on line 14.",
    "The README still describes the old flag.",
    "What happens if `rows` is empty?",
    "Kindly take out the print statements.",
    "The constant is in seconds but the name says ms.",
    "Rename `foo`.",
    "Fix it",
    "- TODO: handle the timeout",
    "> nobody wants the old name any more",
    "| the lock | to be released |",
    "```suggestion\nlimit = 3\n```",
    "Allerdings muss die Sperre noch auf.",
    "Sous réserve de corriger `src/a.py:6`.",
    "Pero hay un error en src/a.py:6 que hay que arreglar antes de fusionar.",
    "承認します。ただし、src/a.py:6 のバグはマージ前に修正が必要です。",
    "ロックを必ず解放してください",
    "Одобрено, но сначала исправьте src/a.py:6.",
    "Maybe add a cache one day, if this ever shows up in a profile.",
    "Thanks for adding the missing test so quickly.",
    "It does not touch the public API, so nobody is affected.",
)
# What says no more than that the work is approved.
BARE = (
    "",
    "LGTM",
    "Approved.",
    "**Verdict:** APPROVED",
    "# Review\n\n## Verdict: APPROVED",
    "Fine.\n\nApproved.",
    '{"verdict": "APPROVED", "findings": []}',
    "<review>\n<thinking>Must the lock be fixed?</thinking>\n<verdict>APPROVED</verdict>\n</review>",
    "## Critical\n\nNone found.\n\n## Low\n\n- (none)\n\nN/A\n\n**Verdict:** APPROVED",
)
# Notes that ask for something without a question, or that are more than a note.
REQUESTS = (
    "please rename it",
    "Looks good. I'd rename `total`.",
    "LGTM modulo the missing test.",
    "Approve after the lock is held.",
    "Happy to accept, provided the file is closed.",
    "Fine. With that fixed, go ahead.",
    "The loop should handle an empty list.",
    "Add a test.",
    "Nice, though you forgot the lock.",
    "It needs a test.",
    "- the lock\n- the file",
    '{"review": {"remarks": ["the lock leaks"]}}',
)
# What no marker outweighs.
GRAVE = (
    "The token [P1] is written to the log, by the way.",
    "The rest is fine, the lock (must fix) aside.",
    "Please fix the lock before it lands.",
    "Not approving until the first point is settled.",
)


def doubtful(text: str) -> list[int]:
    return [problem.line for problem in doubts_about_approval(read_review(text))]


def test_an_approval_with_a_remark_says_that_nothing_is_left_to_change_or_is_asked_back() -> None:
    for remark in REMARKS:
        said = f"Approved.\n\n{remark}"
        assert doubtful(said) in ([3], [4]), remark
        assert doubtful(f"{said}\n\nNO_ISSUES_FOUND") == [], remark
        assert doubtful(f"{said}\n\n```\nNO_ISSUES_FOUND\n```") in ([3], [4]), remark
    for bare in BARE:
        assert doubtful(bare) == [], bare
    assert doubtful('{"verdict": "APPROVED", "findings": [], "summary": "Take the lock first."}')
    for grave in GRAVE:
        assert doubtful(f"Approved.\n\n{grave}\n\nNO_ISSUES_FOUND") == [3], grave
    assert doubtful("DONE.md names the task. NO_ISSUES_FOUND") == []


def test_a_note_needs_no_such_word_unless_it_names_something_grave_or_cannot_be_read() -> None:
    def doubted(note: str) -> bool:
        return bool(doubts_about_note(read_review(note)))

    assert not doubted("Minor: prefer a timeout.")
    assert not doubted("The café's naïve façade is fine, as is the Straße and the señor.")
    assert not doubted("Fine, in the style of van Rossum.")
    assert not doubted("See https://example.org/a?b=c, `x if a else b?` and what /api/?q does.")
    for note in (
        *GRAVE,
        "Looks good. Could you rename `total` to `sum_of_rows`?",
        "LGTM! Would you mind closing the file (it leaks)?",
        'Great work — can we also "round half up?"',
        "Allerdings muss die Sperre noch auf.",
        "Одобрено, но сначала исправьте src/a.py:6.",
    ):
        assert doubted(note), note
        assert doubted(f"{note} NO_ISSUES_FOUND") == (note in GRAVE), note
    for request in REQUESTS:
        assert doubted(request), request
        assert not doubted(f"{request}\n\nNO_ISSUES_FOUND"), request
    for against in (
        "4/10. Nothing is tested.",
        "2.5 out of 5, sorry.",
        "★★☆☆☆",
        "It is slower than before.",
        "Only the happy path works.",
        "A TODO is left in src/a.py.",
        "There are no tests.",
        "It does not compile.",
        "This breaks the login page on Safari.",
        "The loop never ends if the queue is empty.",
        "I am not convinced.",
        "The tests fail on my machine.",
        "The error path is untested.",
        "No problem here, but nobody holds the lock.",
        '[{"remarks": ["the lock leaks"]}]',
    ):
        assert doubted(against), against
        assert not doubted(f"{against}\n\nNO_ISSUES_FOUND"), against
        assert not doubted(f"{against}\n\nVerdict: APPROVED") or against[0] == "[", against
    for remark in (
        "Nothing to add.",
        "Nothing blocking.",
        "Not blocking: naming.",
        "No further comments.",
        "I could not find anything wrong.",
        "Not bad. 9/10.",
        "★★★★☆",
        "Does what it says, no surprises.",
        "Not a single problem found.",
        "The lock is no longer held.",
        "Tests pass and nothing else changed.",
        "This can't break anything.",
        "Works for me, all tests pass.",
        "Renamed as agreed, and nothing is missing.",
        "The change is small and does what it says.",
        "Fix is complete. Update of the docs looks fine.",
        "I ran the suite; all green.",
    ):
        assert not doubted(remark), remark


def test_an_approval_under_a_verdict_that_nobody_knows_is_asked_back() -> None:
    low = "\n\n- [LOW] src/a.py:3 - a typo"
    for words in ("SPLIT", "on the fence", "⛔ stop"):
        for stated in (f"Verdict: {words}", f"## Verdict\n\n**{words}**", f"**Review verdict**: {words}"):
            assert doubtful(f"{stated}{low}") == [stated.count("\n") + 1], stated
            assert doubtful(f"{stated}{low}\n\nFinal verdict: APPROVED") == [], stated
    for consent in ("PASS", "✅ Ready to merge", "ship it", "no objections"):
        assert doubtful(f"Verdict: {consent}{low}") == [], consent
    for refusal in (
        "Verdict: REVISE", "**Verdict:** ❌ Not approved", "Verdict: NO-GO", "Overall code verdict: NACK",
        "**The patch is incorrect.** It drops the lock.", "One regression. The patch is incorrect.",
        "Code-Review: -2", "-1: it leaks", "It leaks. NAK until that is gone.", "Don't merge this yet.",
        "Not LGTM: it leaks.", "I do not approve this change.", "I cannot recommend approval: it leaks.",
    ):  # fmt: skip
        assert read_review(f"{refusal}{low}").verdict is Verdict.NEEDS_REVISION, refusal
    for other in ("It is not that the patch is incorrect.", "Low: -1 is returned.", "Nacre is a gem."):
        assert read_review(f"{other}{low}").verdict is None, other


@for_each(
    ("text", "lines"),
    [
        ("LGTM overall!\n\nOnly the lock (high) and the timer (high) leak, see `a.py:7`.", [3]),
        ("Nice. One thing must be fixed before merging, though: the lock leaks.", [1]),
        # what is told of may be done; the reviewer knows
        ("This fixes the critical bug (high) from last week. NO_ISSUES_FOUND", [1]),
        ("Release notes:\n\n- Fixed: crash on start (high)\n\nNO_ISSUES_FOUND", [3]),
        # nothing is demanded
        ("No issues (critical, high, or medium) found. NO_ISSUES_FOUND", []),
        ("None of the findings (high) of round 2 remain. NO_ISSUES_FOUND", []),
        ("Nothing here must be fixed before merging. NO_ISSUES_FOUND", []),
        ("A great step from the last version, which was not mergeable.\n\nNO_ISSUES_FOUND", []),
        ("The critical path is well tested, and the names are good (at last). NO_ISSUES_FOUND", []),
        ("## Earlier findings\n\n- ISSUE-R1-001 (high): fixed\n\nApproved.", []),
        # it counts more than is read, or what it raises binds nobody
        (
            "Verdict: APPROVED\n\nFound 2 issues (1 critical, 1 high).\n\nNO_ISSUES_FOUND",
            [3],
        ),
        ("- [LOW] src/a.py:3 - a typo\n\n2 findings.\n\nApproved.", [3]),
        ("- [LOW] src/a.py:3 - a typo\n\n1 finding, all 4 issues of v2 were fixed.\n\nApproved.", []),
        ("APPROVED\n\n## Issues\n\n1. Rename `do_it`\n2. Missing test for the empty list", [5]),
        ("APPROVED\n\n## Issues\n\n1. Nit: rename `do_it`\n2. A test of it is optional", []),
        ("APPROVED\n\n## Issues\n\n- None within the scope.\n\nNO_ISSUES_FOUND", []),
        # a finding is not lost, and what is said beside it is not asked for, if it can be read
        ("- [HIGH] the lock leaks (critical for us)\n\nApproved.", []),
        ("- [LOW] src/a.py:3 - a typo\n\nGood tests, small change.\n\nApproved.", []),
        ("Allerdings muss die Sperre noch auf.\n\n- [LOW] src/a.py:3 - a typo\n\nApproved.", [0]),
    ],
)
def test_an_approval_is_asked_back_where_a_point_may_have_been_missed(text: str, lines: list[int]) -> None:
    assert doubtful(text) == lines


@for_each(
    ("text", "lines"),
    [
        ("Reject.\n\n`a.py:3` Take the lock.", [3]),  # the coder would have to settle nothing
        ("The lock (critical) leaks.\n\n- [LOW] src/a.py:3 - a typo\n\nReject.", [1]),
        ("Reject.\n\nThe lock leaks (high).\n\n`a.py:3` Take the lock.", []),
        ("Reject.\n\n- [LOW] src/a.py:3 - a typo", []),
        ("Reject, the lock leaks.", []),
        ("Reject.\n\n- [x] the lock", [0]),  # it has a form in which a point may stand
        ("Reject.\n\n> [HIGH] the lock leaks\n\nStill open.", [0]),
        ('Reject.\n\n```json\n{"findings": [{"severity": "high", "mess', [3, 0]),
        # counts and scales are no points
        ("- [HIGH] a.py:3 - it leaks\n\nTotal: 3 findings (2 P0)\n\nReject.", [3]),
        ("- [HIGH] a.py:3 - it leaks\n\nTotal: 1 finding (0 P0, 1 high, 0 low)\n\nReject.", []),
        ("**Actionable comments posted: 2**\n\n- [HIGH] a.py:3 - it leaks\n\nReject.", [1]),
        ("- [HIGH] a.py:3 - it leaks\n\nIssues found: 1\n\nReject.", []),
        ("Scale (critical/high/low).\n\n- [HIGH] a.py:3 - it leaks\n\nReject. (high: 1, low: 0)", []),
        # nobody knows what a fence hides that is never closed
        ("- [MUST] a.py:3 Take the lock:\n\n```\nlock()\n\n- [MUST] a.py:7 Close the file", [3]),
        ("- [MUST] a.py:3 Take the lock:\n\n```\nlock()\n```\n\n- [MUST] a.py:7 Close the file", []),
        ("Reject. " + "The lock leaks. " * 20, [0]),
        ("# レビュー\n\n### 重大: 上限が固定されている\n- 場所: src/a.py:6", [0]),
        ("Die Grenze ist falsch.\n\nUrteil: nicht freigegeben", [0]),
        (
            "## Mineur\n- `b.py:1` : une faute dans le texte.\n\n## Avis\n- `a.py:6` : la limite est fausse.",
            [5],
        ),
        ("## Bloquant\n- `a.py:6` : la limite est fausse.\n\n## Mineur\n- `b.py:1` : une faute.", []),
    ],
)
def test_a_rejection_is_asked_back_where_it_may_bind_nobody_to_its_points(
    text: str, lines: list[int]
) -> None:
    assert [problem.line for problem in doubts_about_rejection(read_review(text))] == lines
