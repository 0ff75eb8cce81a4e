"""What a review is asked back about before it is taken at its word (VER-6)."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain

from disputes.protocol.reviews.first_lines.prose import NOTHING
from disputes.protocol.reviews.first_lines.start import EMPTY
from disputes.protocol.reviews.group_labels import ASKING
from disputes.protocol.reviews.inline_severities import severity_in
from disputes.protocol.reviews.markups import lines_of
from disputes.protocol.reviews.review import PLAIN_APPROVALS, ReadReview
from disputes.protocol.reviews.severity import GRAVE
from disputes.protocol.reviews.verdict_words import read_verdict
from disputes.protocol.reviews.verdicts import says_no_issues, verdict_label
from disputes.protocol.text.documents import STATED, Line, Problem, list_item, scan, unclosed_fence
from disputes.protocol.text.locations import read_place
from tasks.text.regex import regex

WORDS_OF_A_REMARK = 40  # words; a longer rejection makes a point that can be named
WORDS_OF_A_VERDICT = 2  # words: "Verdict: APPROVED"
WORDS_OF_NOTHING = 5  # words: "No critical issues were found."
MAX_BEFORE = 80  # the characters before a severity that may say there is nothing of it
IN_PARENTHESES = regex(r"[(\[](?P<words>[^()\[\]]{2,30})[)\]](?!\()")
ITEM = regex(r"\s*(?:[-*+]|\d{1,3}[.)])\s+(?:\[[^\]\n]{1,30}\]\s+)?[`*_]{0,3}(?P<first>[^\s`*]{1,200})")
QUESTION = regex(r"\w[\])}'\"»”’*_`]{0,4}[?？؟](?=[\s\])}'\"»”’*_!?]|$)")
# A sentence that demands something without words for a severity.
DEMANDING = regex(
    r"(?<!nothing )(?<!nothing here )\b(?:must|has to|have to|needs? to|should) (?:\w+ ){1,4}"
    r"before (?:\w+ ){0,2}(?:merg|land|ship|releas|deploy|approv)\w*"
    r"|\b(?<!was )(?<!were )not (?:approving|mergeable|ready to (?:merge|land|ship)|signing off)\b",
    re.IGNORECASE,
)
# What a note asks for, or binds its approval to.
_DEEDS = (
    r"(?:add|chang|clos|delet|document|drop|extract|fix|handl|includ|limit|mov|nam|remov|renam|replac|revert"
    r"|split|updat)"
)
_APPROVED = r"(?:lgtm|approv\w+|accept\w*|fine|good|great|nice|ok(?:ay)?|merge)"
_BUT = (
    r"(?:after|although|apart from|assuming|but|except|however|if|modulo|once|provided|though|unless|until)"
)
REQUEST = regex(
    r"\b(?:please|kindly)\b|\b(?:with|after) (?:that|this|it|these) (?:done|fixed|changed)\b"
    rf"|\b{_APPROVED}\b[^.!?]{{0,40}}\b{_BUT}\b"
    rf"|\b(?:must|should|ought to|ha(?:s|ve) to|needs? to|(?:i|we)(?:['’]d| would)) (?:\w+ )?{_DEEDS}\w*"
    r"|\b(?:must|should) (?:also )?(?:contain|be)\b|\bneeds (?:an?|another|more|some)\b"
    r"|\b(?<!nothing )(?<!nothing is )(?<!no )(?:forg[eo]t\w*|missing|misses|lacks?)\b"
    r"|[.!]\s+(?:however|but|that said|still|yet|one thing)\b"
    rf"|(?:^|[.!?:]\s+)\W{{0,4}}{_DEEDS}e? (?!(?:is|was|are|looks?|works?|in|of|to|does)\b)\w",
    re.IGNORECASE,
)
# What a note says against the work: that it does something wrong, or not at all.
FAULT = regex(
    r"\b(?:no|nobody|not|never|nothing|none|without|cannot|\w+n['’]t|hardly|barely)\b"
    r"|\b(?:fixme|half of|incomplete|only (?:half|one|part|some|the)|slower|stubs?|todo|ugly|worse)\b"
    r"|\b(?:breaks|corrupts|crashes|deadlocks|fails?|failed|hangs|leaks|loses|regresses|swallows)\b"
    r"|\b(?:is|are|looks?|seems?|stays?|still|remains?|too|was|were) (?:\w+ )?"
    r"(?:bad|broken|brittle|flaky|incomplete|insecure|long|racy|red|slow|weak|worse|wrong"
    r"|un(?:able|checked|clear|covered|finished|handled|necessary|readable|reliable|safe|stable|tested|used))\b",
    re.IGNORECASE,
)
# Denials that say nothing against it: "Nothing to add", "I could find nothing wrong", "It no longer leaks".
UNTROUBLED = regex(
    r"\b(?:no|not|never|nobody|nothing|none|without|cannot|\w+n['’]t)\b"
    r"(?: (?!(?:and|because|but|except)\b)[\w'’-]+){0,4}? "
    r"(?:amiss|any ?more|bad|block\w*|br(?:eak|oke)\w*|bugs?|changes?|comments?|complain\w*|concerns?"
    r"|defects?|doubts?|else|errors?|fail\w*|faults?|findings?|flaws?|further|issues?|left|missing|more|nits?|object\w*"
    r"|open|problems?|questions?|regress\w*|remarks?|risks?|surprises?|to add|to say|wrong)\b"
    r"|\bno longer \w+|\bno,|\bnever mind\b",
    re.IGNORECASE,
)
# A mark: "4/10", "2.5 out of 5", "★★☆☆☆".
MARK = regex(
    r"\b(?P<points>\d{1,3}(?:[.,]\d)?)\s?(?:/|out of)\s?(?P<most>5|10|100)\b|(?P<stars>[★⭐]+)(?P<rest>☆*)"
)
PASSING = 2 / 3  # of the points
# A finding without a severity that says itself that nothing has to be done about it.
OPTIONAL = regex(
    r"\b(?:optional(?:ly)?|nit(?:s|pick\w*)?|fyi|consider|suggestions?|minor|nice to have|follow[ -]?up"
    r"|non-blocking|not blocking|no action|for later|in passing|remark|observation)\b|^\W*note\b",
    re.IGNORECASE,
)
# How many findings there are, as the review says: "3 findings", "Found 2 issues", "(1 critical, 2 high)".
TALLIED = regex(
    r"\b(?P<count>\d{1,2})\s?[x×]?\s(?:(?:new|open|further) )?"
    r"(?P<what>findings?|issues?|problems?|blockers?"
    r"|(?:critical|high|P0|P1)(?=\s*(?:[,;.)+*]|$|(?:severity|priority|issues?|findings?|and)\b)))\b",
    re.IGNORECASE,
)
# The same the other way round: "Actionable comments posted: 3", "Issues found: 2".
TALLIED_BEHIND = regex(
    r"^\W{0,4}(?:actionable |new |open |total )?(?P<what>comments|findings|issues|problems)"
    r"(?: (?:posted|found|raised|generated))?:[ *_]{0,4}(?P<count>\d{1,2})\W*$",
    re.IGNORECASE,
)
ALL = ("com", "f", "i", "pro")  # how the words begin that count all findings
# How such a line begins, in which no finding may lie although it stands right below one.
TALLY_FIRST = regex(
    r"\W{0,4}(?:(?:total|summary|findings?|result|tally|found|i found|there are)\b|\d)", re.IGNORECASE
)
# Such a count of something else: of earlier findings, of a scale, of what was done.
OTHERWISE = regex(
    r"\b(?:resolved|fixed|addressed|closed|previous|prior|earlier|last|round \d|[rv]\d|all|of|from|were|was"
    r"|no longer|withdrawn|tests?|lines?|files?|if|would|weights?|at least|more than|up to|than)\b",
    re.IGNORECASE,
)
# Words of a verdict that need not be known, because they only consent.
CONSENTING = regex(
    r"\W*(?:pass|ship|ready|go\b|ok|good|great|merge|comment|no |fine|clean|positive|yes)", re.IGNORECASE
)
MAX_VERDICT = 4  # words


def doubts_about_rejection(read: ReadReview) -> tuple[Problem, ...]:
    """Return what a rejection is asked back about: its warnings, and what may not have been read.

    That is a text without a point that is long or has a form, a grave word outside of the findings, or
    findings in sentences of which none has a severity, so that the coder need settle none of them; in another
    language than English also any text without a point, and an item that names a line of a file.
    """
    if read.findings:
        doubts = list(_points(_outside(read), has_findings=True))
        if not doubts and is_foreign(read.text):
            doubts += _places(_outside(read))
        doubts += _untallied(read)
        if not any(found.severity for found in read.findings) and _in_sentences(read):
            doubts.append(
                Problem(read.findings[0].line, "no finding has a severity, so none has to be settled")
            )
        return (*read.warnings, *_swallowed(read), *doubts)
    is_remark = len(read.text.split()) <= WORDS_OF_A_REMARK and not is_foreign(read.text)
    if is_remark and not _has_form(read):
        return read.warnings
    return (*read.warnings, *_swallowed(read), Problem(0, "no finding can be read in this rejection"))


def _in_sentences(read: ReadReview) -> bool:
    """Whether a finding was read from sentences, where much else may be said (FND-9)."""
    return any(found.format == "record" for found in read.findings)


def doubts_about_approval(read: ReadReview, *, free_remarks: bool = False) -> tuple[Problem, ...]:
    """Return what an approval is asked back about: its warnings, and what may be a point that was not read.

    That is a line that calls something critical or high, or asks for something before the work may land, and
    belongs to no finding. In a review that approves plainly it is also any remark, in whatever language,
    unless NO_ISSUES_FOUND says that nothing is left to change. Beside findings, and where remarks are free
    because they need no answer, it is only a remark that is not in English.
    """
    doubts = [
        *read.warnings,
        *_swallowed(read),
        *_points(_outside(read), has_findings=bool(read.findings)),
        *_unknown_verdict(read),
        *_untallied(read),
        *(() if free_remarks else _unmarked(read)),
    ]
    is_plain = read.verdict is None or read.verdict in PLAIN_APPROVALS
    if doubts or not is_plain or says_no_issues(scan(read.text)):
        return tuple(doubts)
    if read.findings or free_remarks:
        texts = [line.text for line in _outside(read)]
        if any(map(is_foreign, ["\n".join(texts), *texts])):
            doubts.append(Problem(0, "it is not in English, and what it asks for may not be read"))
    elif remark := next(filter(_is_remark, _untold(read)), None):
        doubts.append(Problem(remark.number, "it may ask for something, and no line says NO_ISSUES_FOUND"))
    return tuple(doubts)


def _unmarked(read: ReadReview) -> Iterator[Problem]:
    """Yield the first finding of an approval that has no severity and does not say that it is only a remark.

    It may be meant as a demand, and the work would land without it.
    """
    if says_no_issues(scan(read.text)):
        return
    for found in read.findings:
        if (
            found.severity is None
            and not found.withdrawn
            and not OPTIONAL.search(f"{found.title} {found.text}")
        ):
            yield Problem(found.line, "this finding has no severity, so the work would land without it")
            return


def _untallied(read: ReadReview) -> Iterator[Problem]:
    """Yield the first line that counts more findings, or more grave ones, than could be read."""
    if read.prose is not None:
        return
    count, grave = len(read.findings), sum(found.severity in GRAVE for found in read.findings)
    outside = {line.number for line in _outside(read)}
    for line in lines_of(read.text):
        if line.number not in outside and not TALLY_FIRST.match(line.text):
            continue
        if line.mode is not STATED or OTHERWISE.search(line.text):
            continue
        told = chain(TALLIED.finditer(line.text), TALLIED_BEHIND.finditer(line.text))
        counted = [(int(match["count"]), match["what"].lower()) for match in told]
        of_all = max((number for number, what in counted if what.startswith(ALL)), default=0)
        of_grave = sum(number for number, what in counted if not what.startswith(ALL))
        if of_all > count or of_grave > grave:
            yield Problem(line.number, f"it counts more findings than the {count} that were read")
            return


def doubts_about_note(read: ReadReview) -> tuple[Problem, ...]:
    """Return what an approval is asked back about that has nothing but a note: whatever may want an answer.

    A note is a sentence or two that need none. A question wants one, a request wants a change, what is said
    against the work may want one, too, and what is written in a form, such as a list, is a review.
    """
    doubts = doubts_about_approval(read, free_remarks=not _has_form(read)) or tuple(_unmarked(read))
    if doubts or says_no_issues(scan(read.text)):
        return doubts
    is_bare = read.verdict is None and not read.findings  # it states nothing itself
    for line in _outside(read):
        if QUESTION.search(line.text):
            return (Problem(line.number, "it asks a question, and no line says NO_ISSUES_FOUND"),)
        against = FAULT.search(UNTROUBLED.sub(" ", line.text)) if is_bare else None
        if match := REQUEST.search(line.text) or against:
            reason = f"it says {match[0][:60]!r}, and no line says NO_ISSUES_FOUND"
            return (Problem(line.number, reason),)
        if is_bare and (mark := next(filter(_is_low, MARK.finditer(line.text)), None)):
            reason = f"it gives a mark of {mark[0]!r}, and no line says NO_ISSUES_FOUND"
            return (Problem(line.number, reason),)
    return ()


def _is_low(mark: re.Match[str]) -> bool:
    """Whether so few points do not go with an approval."""
    if stars := mark["stars"]:
        return bool(mark["rest"]) and len(stars) < PASSING * len(stars + mark["rest"])
    return float(mark["points"].replace(",", ".")) < PASSING * int(mark["most"])


def _has_form(read: ReadReview) -> bool:
    """Whether a text that belongs to no finding is more than sentences: a list, a table, a quote, data."""
    return any(
        line.text.strip()
        and (line.mode is not STATED or line.text.lstrip()[0] in "|<{[" or list_item(line.text) is not None)
        for line in _untold(read)
    )


def _unknown_verdict(read: ReadReview) -> Iterator[Problem]:
    """Yield the stated verdict of which nobody knows what it means, if no other can be read (VER-2)."""
    if read.verdict is not None:
        return
    is_awaited = False
    for line in _outside(read):
        label = verdict_label(line.text)
        is_label = label is not None and label[0].endswith(("verdict", "decision"))
        words = label[1] if label and is_label else line.text if is_awaited else ""
        if not words.strip(" *_`:#"):
            is_awaited = is_label or (is_awaited and not line.text.strip())
            continue
        is_awaited = False
        words = words.strip(" *_`:#.")
        if len(words.split()) <= MAX_VERDICT and WORDS.search(words) and not CONSENTING.match(words):
            yield Problem(line.number, f"nobody knows what the verdict {words[:40]!r} means")
            return


def _is_remark(line: Line) -> bool:
    """Whether a line says more than its verdict: more than "LGTM", "Approved." or "Verdict: APPROVED"."""
    words = WORDS.findall(line.text)
    if line.heading or not words or (len(words) <= WORDS_OF_NOTHING and EMPTY.match(line.text)):
        return False
    if len(words) == 1:  # which is a sentence in some languages, and a change in a block of code
        return line.mode is not STATED or not words[0].isascii()
    return len(words) > WORDS_OF_A_VERDICT or read_verdict(line.text) not in PLAIN_APPROVALS


def _swallowed(read: ReadReview) -> Iterator[Problem]:
    if line := unclosed_fence(scan(read.text)):
        yield Problem(line, "the fence that opens here is never closed, so nothing below it is read")


def _outside(read: ReadReview) -> Iterator[Line]:
    """Yield the lines that a review states outside of its findings, and that tell of no earlier one."""
    return (line for line in _untold(read) if line.mode is STATED)


def _untold(read: ReadReview) -> Iterator[Line]:
    """Yield the lines of a review that belong to no finding and tell of no earlier one."""
    text = read.text if read.prose is None else read.prose
    told = {
        number
        for found in read.findings
        if read.prose is None or found.format != "data"
        for number in range(found.line, found.line + found.text.count("\n") + 1)
    }
    told |= {status.line for status in read.prior}
    return (line for line in lines_of(text) if line.number not in told)


def _places(lines: Iterable[Line]) -> Iterator[Problem]:
    for line in lines:
        if (match := ITEM.match(line.text)) and (place := read_place(match["first"])).path and place.first:
            said = f"it names line {place.first} of {place.path}"
            yield Problem(line.number, f"{said}, and no finding is read there")


def _points(lines: Iterable[Line], *, has_findings: bool) -> Iterator[Problem]:
    for line in lines:
        if line.heading or line.text.lstrip()[:1] == "|":
            continue
        if word := _grave_word(line.text):
            yield Problem(line.number, f"it says {word!r}, and no finding is read there")
        elif not has_findings and (match := ASKING.search(line.text) or DEMANDING.search(line.text)):
            yield Problem(line.number, f"it says {match[0][:60]!r}, and no finding is read there")


def _grave_word(text: str) -> str:
    """Return the word in parentheses that calls something critical or high; empty if there is none."""
    if "(" not in text and "[" not in text:
        return ""
    for match in IN_PARENTHESES.finditer(text):
        before = text[max(match.start() - MAX_BEFORE, 0) : match.start()]
        if severity_in(match["words"]) in GRAVE and not NOTHING.search(before):
            return match["words"]
    return ""


# --- Languages that the readers of reviews know little of --------------------------------------------------

WORDS = regex(r"[^\W\d_]+")
ENOUGH = 2  # words of another language; one alone may be part of a name
LATIN_MAX = "\u024f"  # the last letter of the Latin alphabets
# The commonest short words of English, and of other languages that are written in Latin letters; words that
# two sides have in common are left out.
_ENGLISH = """
the is are was be been and or of to in it its for with this that these not all now but at by from has have
does i you we they if when which so can will would should there than only here now still
"""
_OTHERS = """
der das und nicht ist sind ein eine einen dem mit für auf von zu wird muss müssen noch aber vor bei sich auch
nur wie dass oder im zum zur
le la les un une du et est pas qui que dans pour sur avec sont ne ce cette mais avant sous sauf il doit de
el los las una y por con para es del se hay pero antes está sin
lo gli di che non è per sono ma prima um uma os não em são mas het een niet van op zijn maar wel
"""
ENGLISH, OTHERS = frozenset(_ENGLISH.split()), frozenset(_OTHERS.split())


def is_foreign(text: str) -> bool:
    """Whether the text seems to be in another language than English, by its letters or commonest words."""
    letters = Counter(letter > LATIN_MAX for letter in text if letter.isalpha())
    if letters[True] * 2 > letters[False]:
        return True
    words = [word.lower() for word in WORDS.findall(text)]
    others = sum(word in OTHERS for word in words)
    return others >= ENOUGH and others > sum(word in ENGLISH for word in words)
