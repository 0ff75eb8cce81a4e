"""The words and phrases with which a coder says what became of a finding (ANS-4)."""

import re
from enum import StrEnum

from tasks.text.regex import regex


class AnswerKind(StrEnum):
    """How a response treats a finding."""

    ADDRESSED = "addressed"
    DECLINED = "declined"
    DISCARDED = "discarded"
    DEFERRED = "deferred"
    PARTLY = "partly"
    USER_DECISION = "user_decision"
    MOOTED = "mooted"
    ACCEPTED_AS_IS = "accepted_as_is"


ANSWER_WORDS: dict[str, AnswerKind] = {
    **dict.fromkeys(
        ["addressed", "addresses", "fixed", "fixes", "fix", "done", "resolved", "resolves", "implemented"]
        + ["applied", "adopted", "incorporated", "accepted", "accept", "agreed", "agree", "clarified"]
        + ["corrected", "updated", "added", "changed", "complete", "completed", "closed", "yes"]
        + ["erledigt", "behoben", "umgesetzt", "corrigé", "résolu", "fait", "corregido", "resuelto", "hecho"],
        AnswerKind.ADDRESSED,
    ),
    **dict.fromkeys(
        ["declined", "decline", "disagree", "disagreed", "disagreement", "disputed", "rejected", "invalid"]
        + ["contested", "contesting", "contest", "challenged", "challenging", "objected"]
        + ["incorrect", "mistaken", "misread", "abgelehnt", "refusé", "rejeté", "rechazado"]
        + ["declining", "reject", "rejecting", "denied", "refuted", "recusado", "rejeitado", "rifiutato"]
        + ["respinto", "afgewezen", "geweigerd", "odrzucono", "odrzucone", "отклонено", "отказано", "拒绝"]
        + ["不同意", "却下"],
        AnswerKind.DECLINED,
    ),
    **dict.fromkeys(
        ["discarded", "dropped", "wontfix", "ignored", "unaddressed", "skipped", "skip", "skipping"]
        + ["ignoring", "nope", "nah"],
        AnswerKind.DISCARDED,
    ),
    **dict.fromkeys(
        ["deferred", "defer", "later", "postponed", "backlog", "backlogged", "verschoben", "zurückgestellt"]
        + ["reporté", "aplazado", "adiado", "rimandato", "rinviato", "uitgesteld", "odłożone", "отложено"]
        + ["推迟", "延期", "保留"],
        AnswerKind.DEFERRED,
    ),
    **dict.fromkeys(
        ["partly", "partially", "partial", "teilweise", "partiellement", "parcialmente"], AnswerKind.PARTLY
    ),
    "user_decision": AnswerKind.USER_DECISION,
    **dict.fromkeys(["mooted", "moot", "obsolete", "superseded"], AnswerKind.MOOTED),
    **dict.fromkeys(
        ["accepted_as_is", "intentional", "intentionally", "deliberate", "deliberately", "unchanged"],
        AnswerKind.ACCEPTED_AS_IS,
    ),
}
# The kinds that the refusal of a JSON hand-in lists; the others are understood too.
HAND_IN_KINDS = (
    AnswerKind.ADDRESSED, AnswerKind.DECLINED, AnswerKind.DISCARDED, AnswerKind.DEFERRED, AnswerKind.PARTLY,
)  # fmt: skip
_IT = r"(?:it|this|that|so|these|those|them)"
_ACTS = r"(?:change|changing|fix|fixing|apply|applying|implement|implementing|adopt|adopting|touch|touching)"
# Phrases at the beginning of a text, after fillers. The first one that fits counts.
PHRASES: tuple[tuple[re.Pattern[str], AnswerKind], ...] = tuple(
    (regex(rf"(?:{pattern})\b"), kind)
    for pattern, kind in [
        (r"no longer (?:applies|applicable|relevant|needed|exists|present)|not applicable|n/a|made moot"
         r"|overtaken by", AnswerKind.MOOTED),
        (r"push(?:ing|ed)? back|(?:an? )?(?:false (?:positive|alarm)|misreading|misunderstanding)"
         r"|not (?:an? )?(?:bug|issue|problem|defect|valid|correct|true|reproducible)"
         r"|(?:cannot|could not|unable to|not) reproduce(?: (?:it|this|that))?"
         r"|not (?:think so|convinced|persuaded)", AnswerKind.DECLINED),
        (rf"not (?:going to )?(?:do|doing|{_ACTS})(?: {_IT})?|decided against {_IT}|not possible|impossible"
         rf"|(?:could not|cannot|unable to) (?:do|{_ACTS})(?: {_IT})?"
         rf"|(?:decided|chose|opted|preferred|prefer) not to(?: (?:do|{_ACTS}) {_IT})?",
         AnswerKind.DISCARDED),
        (r"(?:accepted|kept|left|leave|keep|works|remains|stays|unchanged) as (?:it )?is|as is|as intended"
         rf"|(?:left|leave|leaving|kept|keep|keeping) {_IT} as (?:it |they )?(?:is|are|was|were)"
         r"|not (?:needed|necessary|required)|unnecessary|no action(?: (?:taken|needed|required|necessary))?"
         r"|intended(?: behaviou?r)?|intentionally (?:left|kept)(?: \w+)?"
         rf"|keep(?:ing)? (?:{_IT}|the current \w+)|prefer (?:the current \w+|to keep {_IT})"
         r"|(?:left|leaving|kept|keeping) (?:it |this )?(?:unchanged|untouched|alone)"
         r"|on purpose"
         r"|no (?:code |spec |further )?changes?(?: (?:needed|required|made|necessary))?|by design"
         r"|noted(?=\W*$|[.;!]|, thank)|works? as (?:intended|designed)|working as intended"
         r"|known limitation|acknowledged"
         r"|accept(?:ed|s)? (?:the |as (?:a )?)?(?:known )?(?:risk|limitation)|risk accepted",
         AnswerKind.ACCEPTED_AS_IS),
        (r"(?:user|human)(?:['’]s)? (?:decision|decided|decides|choice|chose|ruled|ruling|must decide)"
         r"|(?:decided|ruled|settled) by (?:the |a )?(?:user|human)"
         r"|(?:escalated|left|deferred|up|put) to (?:the |a )?(?:user|human)"
         r"|(?:per|needs|awaiting|pending) (?:the |a )?(?:user|human)(?:['’]s)? (?:decision|input|ruling)",
         AnswerKind.USER_DECISION),
        (r"out of scope|fix(?:es)? (?:is |are )?(?:pending|planned|coming|to follow|in progress|underway)"
         r"|future work|to ?do|tbd|wip|follow up(?: (?:task|issue|ticket))?|punted|park(?:ed|ing)"
         rf"|(?:left|leave|leaving) (?:{_IT} )?(?:for|to) (?:later|(?:an|a|another|the next) \w+(?: up)?)"
         r"|(?:filed|opened|created|tracked|tracking|logged) (?:\w+ ){0,3}"
         r"(?:issue|ticket|follow up|task|backlog|#\d+)"
         r"|(?:(?:in|for|to) (?:the |a )?)?(?:next|later|future) (?:round|release|version|iteration|phase)"
         rf"|(?:moved|pushed|put|scheduled|planned|queued) (?:{_IT} )?(?:to|for|in|into|as|on) "
         r"(?:an? |the |its own )?(?:\w+ ){0,2}(?:task|ticket|issue|release|sprint|follow up|version"
         r"|milestone|iteration|backlog|roadmap)"
         r"|not (?:now|this round|in this(?: \w+)?)", AnswerKind.DEFERRED),
        (r"in part|partly|(?:mostly|almost|nearly|half) (?:done|fixed|addressed|resolved|implemented)|half",
         AnswerKind.PARTLY),
    ]
)  # fmt: skip
SYMBOLS = {
    **dict.fromkeys("✅✓✔☑", AnswerKind.ADDRESSED),
    **dict.fromkeys("❌✗✘☒🚫⛔", AnswerKind.DISCARDED),
    **dict.fromkeys("⏳⏸⏭⏩", AnswerKind.DEFERRED),
    "⚠": AnswerKind.PARTLY,
}
# Words that may come before the answer: "I disagree", "was fixed".
FILLERS = frozenset(
    ["i", "we", "is", "was", "are", "were", "has", "have", "had", "been", "be", "did", "do", "will",
     "now", "yet", "this", "it", "that", "fully", "all", "already", "also", "the", "issue", "finding",
     "point", "status", "answer", "response", "strongly", "respectfully", "completely", "being", "currently",
     "am", "s", "wird", "wurde", "ist"]
)  # fmt: skip
DENIALS = frozenset({"not", "never", "cannot", "no", "un", "nicht", "pas", "non"})
# "Respectfully, no. The callers rely on it": the word is a sentence of its own.
NO_ALONE = regex(r"\bno\s*(?:[.,:;!–—](?!\s*\d)|$)")
# What stands before an answer out of courtesy: "Good catch, fixed", "Thanks! Done".
COURTESY = regex(
    r"[\s*_\"'“”(]{0,8}(?:(?:(?:good|great|nice|fair|excellent) (?:catch|point|call|find|idea|spot)"
    r"|fair enough|thanks?(?: you)?(?: a lot)?(?: for [\w ]{1,40})?|sorry|sure|ok(?:ay)?|indeed|true"
    r"|right|absolutely|of course)"
    r"(?:\s*[,.!:;–—]+\s*|\s+-{1,2}\s+)){1,4}(?:(?:but|and|so)\s+)?",
    re.IGNORECASE,
)
# Words that only agree that there is something to do, or ask whether it is done; what follows says the rest.
CONSENT = regex(
    r"\W*(?:(?:yes|agreed?|accepted|valid|understood|considered|acknowledged|noted|closed)"
    r"(?:\s*[,.;:–—]\s*(?:but\s+)?|\s+(?:but|as)\s+)|(?:fixed|done|addressed|resolved)\?\s*)",
    re.IGNORECASE,
)
# Words right after what was done that leave a part of it undone.
RESERVED = regex(
    r"\W{1,3}(?:in part|partially|partly|mostly|almost|except|apart from|but (?:not|only)|half)\b"
)
# A promise: "I will fix this later", "To be done".
PROMISE = regex(
    r"(?:(?:i|we)(?:['’]ll| will| shall| am going to| are going to)|will) (?:\w+ly )?"
    r"(?:fix|do|address|implement|resolve|add|change|look|follow)\b"
    r"|(?:(?:this|it|that)(?:['’]ll| will) be|will be|to be) "
    r"(?:fixed|done|addressed|handled|implemented|resolved)\b"
)
# A refusal of the coder's own behind its reasons: "This would break the callers, so I did not do it."
REFUSING = regex(
    rf"\b(?:decided (?:against {_IT}|not to(?: (?:do|{_ACTS}) {_IT})?)"
    r"|(?:i|we) (?:(?:did|do|will|would) not|(?:did|do|wo|would)n['’]t|(?:am|are) not going to|chose not to)"
    rf" (?:do|make|take|{_ACTS}) {_IT}"
    r"|(?:(?:i|we)(?:['’]ll| will)|will) leave (?:it|this|that)(?: \w+)? (?:to|for) (?:you|the \w+|a human)"
    rf"|(?:have not|haven['’]t) (?:done|changed|fixed|touched|implemented) {_IT}"
    rf"|(?:i|we)(?:['’]d| would) rather (?:not(?: (?:do|{_ACTS}) {_IT})?"
    rf"|(?:leave|keep|skip) {_IT}(?: as \w+ \w+| alone)?))"
    r"(?=\s*(?:$|[.,;:!)–—]|(?:because|since|as)\b))",
    re.IGNORECASE,
)
MAX_REASONS = 400  # the characters in which such a refusal is looked for
AGREEING = frozenset({"accept", "accepted", "agree", "agreed"})
# What may follow an answer of one word, so that "Later calls raise" and "Dropped the column" are not answers.
AFTER = regex(
    r"\s*(?:$|[.,;:!?，。：；！、()/|*_\[\]–—&+→]|-+(?:\s|>)|(?:to|in|until|till|by|because|as|since|for|with|per|via|and"
    r"|but|on|at|from|after|before|here|now|already|today|again|this|that|so|we"
    r"|weil|denn|wegen|auf|bis|parce|porque)\b)"
)
# Answers that may have an object: "Deferred the migration", "Rejected the proposal".
WITH_OBJECT = regex(r"\s+(?:the|this|that|your|reviewer|it|these|those|a|an|any)\b")
TAKING_OBJECTS = frozenset({"declined", "decline", "disagree", "disagreed", "rejected", "deferred", "defer",
                            "postponed", "ignored"})  # fmt: skip
# "Added" alone is an answer; "Added a table" is what was done.
DEEDS = frozenset({"added", "changed", "updated", "clarified", "corrected", "applied", "complete", "closed"})
MAX_ANSWER = 80
# Underscores around words are marks; the one in user_decision is part of the word.
MARKUP = regex(r"(?<![a-z0-9])_+|_+(?![a-z0-9])")
MARKS = str.maketrans("*`~-", "    ")
NOT = regex(r"\b[a-z]*n['’]t\b")
WORD = regex(r"[^\W\d]+")
OPEN = regex(
    r"\W*(?:(?:is|still|remains?|yet)\s+){0,3}(?:open|to[ -]?do|tbd|in[ -]progress|pending|wip|not started"
    r"|unresolved|outstanding|under (?:review|discussion|consideration))\W*",
    re.IGNORECASE,
)


def _plain(text: str) -> str:
    """Return the beginning of a text in lower case, without marks, and with "won't" and "didn't" as "not"."""
    plain = text[:160].lower()
    if "'" in plain or "’" in plain:
        plain = NOT.sub("not", plain)
    if "_" in plain:
        plain = MARKUP.sub("", plain)
    return plain.lstrip(" *_`~\"'“”([{<>→-–—:")


def _words(text: str) -> list[str]:
    """Return the words at the beginning of a text, without fillers."""
    return [word for word in WORD.findall(_plain(text)[:MAX_ANSWER]) if word not in FILLERS]


def _phrase(plain: str, word: str) -> tuple[AnswerKind, bool] | None:
    """Return the kind of the phrase that begins at this word, and whether it ends the text; or None."""
    start = re.search(rf"\b{re.escape(word)}\b", plain)
    text = " ".join(plain[start.start() :].translate(MARKS).split()) if start else ""
    for pattern, kind in PHRASES:
        if (match := pattern.match(text)) and AFTER.match(text, match.end()):
            return kind, not text[match.end() :].strip(" .!")
    return None


def is_answer(cell: str) -> bool:
    """Whether a cell contains an answer and nothing else."""
    if len(cell) > MAX_ANSWER or is_open(cell):
        return False
    stripped = cell.strip(" *`_")
    if stripped and all(sign in SYMBOLS or sign == "\ufe0f" for sign in stripped):
        return True
    words = _words(cell)
    if not words or words == ["no"]:
        return bool(words)
    if all(word in ANSWER_WORDS or word in DENIALS for word in words):
        return any(word in ANSWER_WORDS for word in words)
    phrase = _phrase(_plain(cell), words[0])
    return phrase is not None and phrase[1]


def is_open(text: str) -> bool:
    """Whether a text only says that nothing has been done yet."""
    return len(text) <= MAX_ANSWER and OPEN.fullmatch(text) is not None


def stated_kind(text: str) -> AnswerKind | None:
    """Return what became of the finding, if the text begins by saying so or refuses later, or None (ANS-4).

    What stands before it out of courtesy is passed over. A text that only says that nothing has been done yet
    is no answer.
    """
    if is_open(text):
        return None
    if match := COURTESY.match(text):
        text = text[match.end() :]
    if match := CONSENT.match(text):
        said = _at_beginning(text[match.end() :]) or _refused_later(text)
        if said is not AnswerKind.ADDRESSED and said is not None:
            return said
    if AGREEING & set(_words(text)[:1]) and (refused := _refused_later(text)):
        return refused  # "I agree with the finding but have not touched it."
    return _at_beginning(text) or _refused_later(text)


def _refused_later(text: str) -> AnswerKind | None:
    return AnswerKind.DISCARDED if REFUSING.search(text[:MAX_REASONS]) else None


def _at_beginning(text: str) -> AnswerKind | None:
    plain = _plain(text)
    if not plain:
        return None
    if plain[0] in SYMBOLS:
        return _at_beginning(plain[1:].lstrip("\ufe0f")) or SYMBOLS[plain[0]]
    words = _words(text)
    if not words:
        return None
    if PROMISE.match(plain):
        return AnswerKind.DEFERRED
    if phrase := _phrase(plain, words[0]):
        return phrase[0]
    return _denied(plain, words) if words[0] in DENIALS else _kind_of_word(plain, words)


def _denied(plain: str, words: list[str]) -> AnswerKind | None:
    """Return what a denial says, such as "Not fixed", "Not yet" or "No"; None if it is no answer."""
    second = words[1] if len(words) > 1 else ""
    if second in AGREEING:
        return AnswerKind.DECLINED  # "Not accepted", "We do not agree"
    is_no = words[0] == "no" and NO_ALONE.search(plain) is not None
    denies = is_no or second == "yet" or second in ANSWER_WORDS
    return AnswerKind.DISCARDED if denies else None


def _kind_of_word(plain: str, words: list[str]) -> AnswerKind | None:
    """Return what the first word of a text says, unless the words after it give it another meaning."""
    first = words[0]
    found = ANSWER_WORDS.get(first)
    if found is None:
        return None
    rest = plain[plain.find(first) + len(first) :]
    if found is AnswerKind.ADDRESSED and RESERVED.match(rest):
        return AnswerKind.PARTLY
    if len(words) > 1 and words[1] in ANSWER_WORDS and found is not AnswerKind.ADDRESSED:
        return found
    if AFTER.match(rest) or (found is AnswerKind.ADDRESSED and first not in DEEDS):
        return found
    return found if first in TAKING_OBJECTS and WITH_OBJECT.match(rest) else None
