"""What a review is asked back about, so that no point is lost and no approval arises by accident (VER-6)."""

from disputes.protocol.reviews.doubts import doubts_about_approval, doubts_about_rejection
from disputes.protocol.reviews.review import read_review
from tests.cases import for_each

# Approvals as people write them, of which the first ones ask for something.
ASKING = (
    "Looks good, but the timeout is never reset after a retry.",
    "I'd like the magic number 86400 to become a constant.",
    "The second test doesn't assert anything.",
    "`parse_date` swallows the exception, which hides bad rows.",
    "LGTM after you squash the debugging print.",
    "There's an off-by-one in the loop on line 14.",
    "Before you merge, drop the commented-out block.",
    "I think `total` should be a Decimal, not a float.",
    "The README still describes the old flag.",
    "The new parameter isn't documented anywhere.",
    "What happens if `rows` is empty?",
    "Would be good to have the limit configurable before this goes out.",
    "Kindly take out the print statements.",
    "The comment on top contradicts the code.",
    "Your new helper duplicates `slugify` from utils, use that one.",
    "The constant is in seconds but the name says ms.",
    "No upper bound on the retries.",
    "I'm approving this so as not to block you, the naming needs work.",
    "Line 17 compares strings, and these are numbers.",
    "It is optional. The lock leaks, though.",
)
PLAIN = (
    "Nit: `tmp` is not the best name. No need to change it.",
    "As a follow-up, we might want to move the constants to one place.",
    "Well done, I have no further remarks. Merge when you like.",
    "Maybe add a cache one day, if this ever shows up in a profile.",
    "Future work: drop the compatibility shim once Python 3.10 is gone.",
    "But that is a matter of taste, so I leave it to you.",
    "Could this be simpler? Probably not; I tried two other ways.",
    "Who would have thought this needs only six lines? Good work.",
    "Would I have done it differently? Yes. Is it wrong? No.",
    "The previous version could crash on empty input; this one does not.",
    "The old script still returns 0 on failure, which is out of scope.",
    "The docs now say what must be set before the first start.",
    "Thanks for adding the missing test so quickly.",
    "The only thing I looked at twice was the regex, and it is right.",
    "It does not touch the public API, so nobody is affected.",
    "The old findings are resolved: the lock is held, the log no longer prints the token.",
)


def doubtful(text: str) -> list[int]:
    return [problem.line for problem in doubts_about_approval(read_review(text))]


@for_each(
    ("text", "lines"),
    [
        ("LGTM overall!\n\nOnly the lock (high) and the timer (high) leak, see `a.py:7`.", [3]),
        ("Nice. One thing must be fixed before merging, though: the lock leaks.", [1]),
        ("LGTM.\n\nPlease fix the lock before it lands.", [3]),
        ("I would like to see a test for the empty file.\n\nApproved.", [1]),
        ("Good work.\n\nNot approving until the first point is settled.", [3]),
        ("Approved.\n\nThe token [P1] is written to the log, by the way.", [3]),
        ("Approved.\n\nThe rest is fine, the lock (must fix) aside.", [3]),
        ("Approved. I ran the linter at its strictest level (high), and it is clean.", [1]),
        # an approval that goes on to ask for something, or names a fault
        ("Approved.\n\nGood tests.\n\nPlease change the separator to a semicolon.", [5]),
        ("All good. One thing though: the cache never evicts, fix that first.\n\nApproved.", [1]),
        ("Approved.\n\nJust rename `foo`.", [3]),
        ("Approved.\n\nBut the leak remains.", [3]),
        ("Approved.\n\nThe lock still leaks on errors.", [3]),
        ("Approved.\n\nYou should release the lock in the error path.", [3]),
        ("Approved.\n\nCan you add a test for empty input?", [3]),
        ("Approved.\n\nIt needs a test.", [3]),
        ("Approved.\n\nOnly the test for empty input is missing.", [3]),
        ("Approved.\n\nThere is a race in `close()`.", [3]),
        ("Approved.\n\nThis will crash on empty input.", [3]),
        ("Don't merge until the checks are green.\n\nApproved.", [1]),
        ("Approved.\n\nShip it once the typo is gone.", [3]),
        ("Approved.\n\nFix it and merge.", [3]),
        ("Approved.\n\n- TODO: handle the timeout", [3]),
        # what is told of may be done; the reviewer knows
        ("This fixes the critical bug (high) from last week. Approved.", [1]),
        ("The token used to never expire (high), but now it does. Approved.", [1]),
        ("Without this fix, the export would be wrong (critical). Approved.", [1]),
        ("Release notes:\n\n- Fixed: crash on start (high)\n\nVerdict: APPROVED", [3]),
        *((f"Approved.\n\n{asking}", [3]) for asking in ASKING),
        # nothing is demanded
        *((f"Approved.\n\n{plain}", []) for plain in PLAIN),
        ("No issues (critical, high, or medium) found. APPROVED", []),
        ("None of the findings (high) of round 2 remain. Approved.", []),
        ("Nothing here must be fixed before merging.", []),
        ("A great step from the last version, which was not mergeable.\n\nApproved.", []),
        ("LGTM with a few thoughts, none of which should hold this up.\n\nUp to you.", []),
        ("Approved. The critical path is well tested, and the names are good (at last).", []),
        ("No issues found. Checked for bugs.", []),
        ("Earlier findings:\n\n- ISSUE-R1-001 (high): fixed\n\nApproved.", []),
        ("```\nlock() (high)\n```\n\n> must be fixed before merging\n\nApproved.", []),
        ("| Finding | State |\n|---|---|\n| Lock (high) | fixed |\n\nApproved.", []),
        ("- [HIGH] the lock leaks (critical for us)\n\nApproved.", []),  # it is read as a finding
        ("Approved.\n\nThe error path returns early if the file is missing, as specified.", []),
        ("Approved.\n\nI tried to break it and could not. Docs are updated, too.", []),
        ("Approved.\n\nThe race is gone. Nothing is missing, and the change is small.", []),
        ("Approved.\n\nIt handles empty input; there is one new test. Changing the limit was right.", []),
        # in another language the reader may miss a condition
        (
            "Approved.\n\nThe parser is fine and the tests good.\n\nAllerdings muss die Sperre noch auf.",
            [0],
        ),
        ("Freigegeben. Allerdings muss src/a.py:6 vor dem Merge noch korrigiert werden.", [0]),
        ("Status: APPROVED\n\nDas darf so nicht gemergt werden: die Grenze ist falsch.", [0]),
        ("Approuvé sous réserve de corriger `src/a.py:6`.", [0]),
        ("Aprobado, pero hay un error en src/a.py:6 que hay que arreglar antes de fusionar.", [0]),
        ("承認します。ただし、src/a.py:6 のバグはマージ前に修正が必要です。", [0]),
        ("Одобрено, но сначала исправьте src/a.py:6.", [0]),
        ("Approved. The café's naïve façade is fine, as is the Straße and the señor.", []),
        ("LGTM", []),
        ("Fine, in the style of van Rossum.", []),
        ("", []),
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
