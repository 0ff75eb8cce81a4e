"""What a review is asked back about before it is taken at its word (VER-6)."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from disputes.protocol.reviews.first_lines.prose import NOTHING
from disputes.protocol.reviews.group_labels import ASKING
from disputes.protocol.reviews.inline_severities import severity_in
from disputes.protocol.reviews.review import ReadReview
from disputes.protocol.reviews.severity import GRAVE
from disputes.protocol.text.documents import STATED, Line, Problem, scan, unclosed_fence
from disputes.protocol.text.locations import read_place
from tasks.text.regex import regex

WORDS_OF_A_REMARK = 40  # words; a longer rejection makes a point that can be named
MAX_BEFORE = 80  # the characters before a severity that may say there is nothing of it
IN_PARENTHESES = regex(r"[(\[](?P<words>[^()\[\]]{2,30})[)\]](?!\()")
ITEM = regex(r"\s*(?:[-*+]|\d{1,3}[.)])\s+(?:\[[^\]\n]{1,30}\]\s+)?[`*_]{0,3}(?P<first>[^\s`*]{1,200})")
# A sentence that demands something without words for a severity.
DEMANDING = regex(
    r"(?<!nothing )(?<!nothing here )\b(?:must|has to|have to|needs? to|should) (?:\w+ ){1,4}"
    r"before (?:\w+ ){0,2}(?:merg|land|ship|releas|deploy|approv)\w*"
    r"|\b(?<!was )(?<!were )not (?:approving|mergeable|ready to (?:merge|land|ship)|signing off)\b",
    re.IGNORECASE,
)
_ACT = (
    r"(?:add|address|adjust|avoid|bump|change|clean up|close|correct|delete|document|drop|ensure"
    r"|escape|extract|fix"
    r"|guard|handle|inline|move|pin|raise|regenerate|release|remove|rename|replace|reset|resolve"
    r"|restore|revert"
    r"|rewrite|simplify|sort|split|squash|strip|swap|take out|trim|turn|update|use|validate|wrap)"
)
_NO = r"(?<!no )(?<!not )(?<!nothing )(?<!nothing else )"
# What is told of the past, of a case that does not occur, or of what is right is no fault.
_NOW = (
    r"^(?:(?!\b(?:add(?:ing|ed|s)|catch(?:es)?|cannot|can['’]t|checked|covers?|explains?|fix(?:ed"
    r"|es)?|gone|if|never"
    r"|no|nobody|none|not|nothing|prevents?|previous(?:ly)?|thanks|that|used to|was|were|when(?:ever)?"
    r"|where(?:ver)?|whether|which|without|would)\b|n['’]t\b).)*"
)
_UNDONE = (
    r"(?:account|assert|check|clean|clos|compil|cover|document|escap|flush|free|handl|initiali|log"
    r"|match|mention"
    r"|propagat|releas|remov|reset|restor|test|translat|us|updat|validat|verif|work)\w*"
)
_FAULT = (
    r"(?:ambiguous|breaks|broken|confus(?:es|ing)|contradicts?|crash(?:es)?|deadlocks?|deprecated|disagrees?"
    r"|duplicates?|fails|forg[eo]ts?|fragile|hangs|hard-?coded|hides|ignored|ignores|incomplete|inconsistent"
    r"|incorrect(?:ly)?|insecure|invalid|lacks?|leaks|loses|misleading|misses|missing"
    r"|off[ -]by[ -]one|outdated|overflows"
    r"|races?|redundant|stale|stays open|swallows|(?:called|happens|read|runs|sent|written) twice"
    r"|typos?|unbounded|unchecked|unclear"
    r"|undocumented|unescaped|unhandled|unnoticed|unsafe|untested|unused|vulnerable|wrong(?:ly)?|zero)"
)
# What a reviewer writes who approves and still wants something, sentence by sentence; a false alarm costs one
# more call of the same run.
WISHES = {
    "an order": (
        r"^(?:(?:also|and|but|first|just|then|however|maybe|only|so|before [^,]+,)\W*"
        r"|let['’]s |remember to |make sure (?:to |that )?|(?:do )?(?:not|n['’]t) forget to )*"
        rf"(?:{_ACT}\b(?! (?:is|are|was|were|has|looks?|notes|seems|of)\b)|make sure\b|to ?do\b)"
        r"|\b(?:please|kindly)\b(?! (?:merge|land|ship|go ahead|proceed))|^let['’]s not\b"
        rf"|\b(?:don['’]t|do not) forget\b|^remember\b|,? (?:and|so|then|,) {_ACT} (?:an?|it|that|the"
        r"|them|this)\b"
    ),
    "what you, it or they should do": (
        r"\b(?:you|it|they|this|we|that|please|which) (?:still |also |really )?"
        r"(?:should|must|needs? to|ha(?:s|ve) to|could) "
        rf"(?:also |still |really )?(?:be )?{_ACT}\w*|\byou(?:['’]ll| will| still)? (?:need|have) to\b"
        r"|^(?:(?!\b(?:as|callers?|if|no|none|not|nothing|that|users?|what|when|where|whether|which|who)\b).)*"
        r"\b(?:must|ought to|should)\b (?!have\b|do\b|hold\b|work\b"
        r"|(?:all )?be (?:\w+ly )?(?:enough|fast|fine|good|great|no|ok|okay|plenty|safe|sufficient)\b)"
    ),
    "a wish": (
        r"\bi(?:['’]d| would| do)? (?:still |also |really )?(?:add|expect|prefer|want|miss|wish)\b"
        r"|\bi(?:['’]d| would) (?:still |also |really )?like (?!this|it|how|to (?:say|thank|praise))"
        r"|\b(?:can|could|would) you\b|\blet me know\b|\b(?:request|suggestion)s?:?$"
        r"|\bwould (?:still )?(?:be|feel|make|read) (?:\w+ ){0,2}(?:better|cleaner|clearer|good|great"
        r"|helpful|nicer?|safer|simpler|wise)\b"
    ),
    "a lack": (
        rf"\b{_NO}(?:needs?|wants) (?:an?|another|one more|some|more|work)\b|^(?:still )?needs\b"
        r"|\bno (?:test|check|limit|bound|timeout|validation|error handling|upper|lower|docstring"
        r"|changelog)\w*\b"
        r"(?! (?:is|are|was|were|fails?|failed|changes?|changed|broke|needs?)\b)"
        rf"|{_NOW}(?:\b{_FAULT}\b(?!.*\b(?:gone|fixed|resolved)\b)|\b(?:will|can|could|may"
        r"|might) (?:still )?(?:crash|deadlock|fail|hang|leak|lose|overflow)\b"
        r"|\b(?:there is|there are|there['’]s|there seems to be|i (?:found|noticed|see"
        r"|spotted)) (?!two new|an? new|now)(?:still )?"
        r"(?:an?|some|one|two|several) (?:\w+ ){0,2}(?:bug|crash|error|fault|gap|issue|leak|mistake"
        r"|problem|regression)s?\b)"
        rf"|\b(?:is|are)(?:n['’]t| not| never) (?:yet |ever )?{_UNDONE}"
        rf"|\bdo(?:es)?(?:n['’]t| not) (?:yet |even |actually )?{_UNDONE}|\bcan never fail\b"
        rf"|\byou left\b|{_NOW}\blines? \d"
        r"|\bgets? (?:past|through)\b|\bmiss(?:es)? (?:an?|one|the)\b|\blooks like an? \w*(?:bug"
        r"|error|race)\b"
        r"|\b(?:apart|aside) from (?:the|a|one)\b|\bexcept (?:that|for)\b|\bnot quite\b"
        r"|\b(?:only|one|two|three|an?|my) (?:\w+ )?(?:complaints?|concerns?|reservations?"
        r"|things?)\b(?! i (?:looked|checked))"
        r"|\bstill (?:\w+ly )?(?:crash|describe|fail|leak|lose|hang|ignore|mention|miss|return|say"
        r"|swallow|throw|allow)\w*"
        rf"|^(?:however,|but\b|still,)|{_NOW},? (?:but|though|although|however)\b"
    ),
    "a condition of landing": (
        r"\bapprov(?:e|ed|ing) with (?:an?|the|one|some)\b|\bhold off\b|"
        r"\b(?:merge|land|lgtm|ok|ship|release(?! notes)|approv(?:ed?|ing)|ready|good to go)\b[^.]{0,20}"
        r"\b(?:after|as (?:long|soon) as|assuming|expectation|if|once|on condition|pending|provided|unless"
        r"|when(?! you (?:like|want|wish)))\b"
        r"|\b(?:then|and) (?:merge|land|ship|release)\b|\bbefore (?:you|we) (?:merge|land|ship|release)\b"
        r"|\bbefore (?:this|it) (?:goes|lands|merges|ships|is (?:merged|released))\b"
        r"|(?:\bnot|n['’]t) (?:merge|land|ship|release)\b|\b(?:that|it|this|them) (?:before|first)\b"
    ),
}
# What a sentence says that leaves its wish to the coder or to another time.
WAIVER = regex(
    r"\b(?:(?:one|some) ?day|at some point|eventually|some time|future (?:work|idea)"
    r"|as an? (?:follow[ -]?up|aside)"
    r"|(?:separate|another|later|different|follow[ -]?up) (?:change|issue|pr|pull request|task|ticket)"
    r"|not (?:for|part of|in) (?:this|here)|out(?:side)? (?:of )?(?:the )?scope|unrelated|pre-?existing"
    r"|another day|for later|no need|not needed|not necessary|optional(?:ly)?|nice[ -]to[ -]have"
    r"|matter of (?:taste|style)|up to you"
    r"|if you (?:like|want|wish|feel like)|feel free|take (?:it|them) or leave"
    r"|no (?:strong )?(?:opinion|action)"
    r"|(?:might|may) (?:also )?(?:want|wish) to)\b",
    re.IGNORECASE,
)
WISHING = regex("|".join(WISHES.values()), re.IGNORECASE)
ANSWER = regex(r"(?:yes|no|nope|not|probably|maybe|perhaps)\b", re.IGNORECASE)  # of a rhetorical question
SENTENCES = regex(r"(?<=[.!?:;])\s+|\s[-–—]{1,2}\s")


def doubts_about_rejection(read: ReadReview) -> tuple[Problem, ...]:
    """Return what a rejection is asked back about: its warnings, and what may not have been read.

    That is a long text without a point, a grave word outside of the findings, or findings in sentences of
    which none has a severity, so that the coder need settle none of them; in another language than English
    also any text without a point, and an item that names a line of a file.
    """
    if read.findings:
        doubts = list(_points(_outside(read), has_findings=True))
        if not doubts and is_foreign(read.text):
            doubts += _places(_outside(read))
        if not any(found.severity for found in read.findings) and _in_sentences(read):
            doubts.append(
                Problem(read.findings[0].line, "no finding has a severity, so none has to be settled")
            )
        return (*read.warnings, *_swallowed(read), *doubts)
    if len(read.text.split()) <= WORDS_OF_A_REMARK and not is_foreign(read.text):
        return read.warnings
    return (*read.warnings, Problem(0, "no finding can be read in this rejection"))


def _in_sentences(read: ReadReview) -> bool:
    """Whether a finding was read from sentences, where much else may be said (FND-9)."""
    return any(found.format == "record-no-id" for found in read.findings)


def doubts_about_approval(read: ReadReview) -> tuple[Problem, ...]:
    """Return what an approval is asked back about: its warnings, and what may be a point that was not read.

    That is a line that calls something critical or high, or asks for something before the work may land, and
    belongs to no finding; or anything else that is said in another language than English.
    """
    outside = list(_outside(read))
    doubts = [*read.warnings, *_swallowed(read), *_points(outside, has_findings=bool(read.findings))]
    texts = [line.text for line in outside]
    if not doubts and any(map(is_foreign, ["\n".join(texts), *texts])):
        doubts.append(Problem(0, "it is not in English, and what it asks for may not be read"))
    return tuple(doubts)


def _swallowed(read: ReadReview) -> Iterator[Problem]:
    if line := unclosed_fence(scan(read.text)):
        yield Problem(line, "the fence that opens here is never closed, so nothing below it is read")


def _outside(read: ReadReview) -> Iterator[Line]:
    """Yield the lines of a review that belong to no finding and tell of no earlier one."""
    told = {
        number
        for found in read.findings
        for number in range(found.line, found.line + found.text.count("\n") + 1)
    }
    told |= {status.line for status in read.prior}
    return (line for line in scan(read.text) if line.mode is STATED and line.number not in told)


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
        elif not has_findings and (words := _wish(line.text)):
            yield Problem(line.number, f"it says {words[:60]!r}, and no finding is read there")


def _wish(text: str) -> str:
    """Return the words with which a line asks for something or names a fault; empty if there are none."""
    if match := ASKING.search(text) or DEMANDING.search(text):
        return match[0]
    sentences = [sentence.strip(" *_>-+\t") for sentence in SENTENCES.split(text)]
    before = ""
    for sentence, after in zip(sentences, [*sentences[1:], ""], strict=True):
        about = f"{before} {sentence}" if before.endswith(":") else sentence
        is_open = sentence.endswith("?") and not ANSWER.match(after)
        wishes = WISHING.search(sentence) and (is_open or not sentence.endswith("?"))
        ends_asking = is_open and not after
        if (wishes or ends_asking) and not (WAIVER.search(about) or WAIVER.match(after)):
            return sentence
        before = sentence
    return ""


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
