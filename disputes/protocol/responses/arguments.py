"""Telling answers that say what was done from those that argue, ask or only thank (ANS-7)."""

import re

from disputes.protocol.responses.answer_kinds import ANSWER_WORDS, COURTESY, AnswerKind, is_open, stated_kind
from tasks.text.regex import regex

# Verbs in the past that tell of no deed: "I looked at it", "We decided on this order".
_NO_DEEDS = (
    r"(?:accepted|agreed|allowed|asked|assumed|based|believed|called|checked|concluded|confirmed|confused|considered"
    r"|covered|decided|designed|discussed|documented|expected|filed|guaranteed|handled|intended|investigated"
    r"|logged|looked|measured|mentioned|needed|noticed|opened|opted|overlooked|preferred|protected|required|reviewed|stated|supposed"
    r"|talked|tested|tracked|tried|used|verified|wanted|worked|indeed|need|exceed|proceed|embed)"
)
# How words for added, changed, corrected, removed, done and now begin in other languages.
_STEMS = {
    "Dutch": r"nu\b|toegevoegd|gewijzigd|verwijderd|verplaatst|opgelost|gedaan",
    "French": r"maintenant|désormais|ajouté|changé|corrigé|déplacé|modifié|remplacé|supprimé",
    "German": (
        r"angepasst|behoben|eingebaut|eingefügt|eingeführt|entfernt|ergänzt|ersetzt|geändert|gelöscht"
        r"|hinzugefügt|korrigiert|umbenannt|umgesetzt|umgestellt|jetzt|nun\b(?! ja\b| mal\b)"
    ),
    "Italian": r"ora\b|aggiunt|corrett|modificat|rimoss|spostat|risolt|fatto\b",
    "Polish": r"doda[nł]|zmieni|napraw|poprawi|przenios|usun[ią]|teraz",
    "Portuguese": r"agora|adicion[ae]|alterei|corrigi|movi\b|removi|resolvid|feito",
    "Russian": r"добав|измен[еи]|исправ|перен[её]с|сделан|удал[еи]|теперь",
    "Spanish": r"ahora|agregad|añadid|añadí|cambiad|cambié|corregid|corregí|eliminad|modificad|reemplazad",
}
_CHARACTERS = (
    "修复|已处理|添加|新增|增加|改为|删除|现在"  # Chinese
    "|修正|追加|変更|削除|対応済|しました|ようにした"  # Japanese
)
# What a clause that tells of a deed holds.
_DEEDS = {
    "a verb in the past at the beginning": (
        r"^(?:(?:also|and|but|has|have|i|it|just|so|then|was|we|were)\W+|['’]ve ){0,4}"
        rf"(?:(?!{_NO_DEEDS}\b)[a-z]{{2,20}}ed|brought|built|caught|cut|did|gave|got|hid|made|put"
        r"|rewrote|set|split|threw|took|went|wrote)\b"
    ),
    "a verb of a commit message at the beginning": (
        r"^(?:add|allow|avoid|cap|catch|check|clamp|close|convert|default|delete|document|don['’]t|drop|enforce"
        r"|ensure|escape|extract|fail|give|guard|handle|hash|introduce|let|limit|lock|log|make|move|never|pass"
        r"|quote|raise|read|refactor|reject|remove|rename|replace|restrict|return|revert|rewrite|run|simplify"
        r"|skip|sort|stop|store|switch|update|use|validate|wrap)\s(?!(?:of|is|are|has|does|me|us)\b)"
    ),
    "a change": (
        r"(?<!not )(?<!never )(?<!be )\b(?:added|adjusted|changed|corrected|deleted|dropped|extended"
        r"|extracted|implemented|introduced|moved|removed|renamed|replaced|rewritten|tightened|updated)\b"
    ),
    "a new state": (
        r"(?<!for )(?<!right )(?<!until )\bnow\b|\b(?:instead|any ?more|no longer)\b|\bis (?:gone|left)\b"
        r"|(?<!be )\bdone\b|\S (?:->|→) \S|\bas (?:proposed|requested|suggested)\b"
        r"|\bfrom (?:this commit|now) on\b|\bby (?:an? )?new tests?\b"
    ),
    "a new thing at the beginning": (
        r"^(?:(?:a|an|the|one|two|three|\d+) )?(?:additional|new|regression)\b"
        r"(?!.{0,80}\b(?:would|could|should|must|might|are|is|makes?)\b)"
        r"|\b(?:and|plus|\+) (?:an? )?(?:\w+ )?tests?\b(?! (?:cover|check|pass|show)\w*)"
    ),
    "a commit": r"(?:^|\b(?:in|by|with|commit) )[`(]?(?=[a-f]{0,9}\d)[0-9a-f]{7,40}\b",
}
DEED = regex("|".join(_DEEDS.values()), re.IGNORECASE)
# "No lock was added", "Nothing here has been changed": the deed of such a clause is denied.
DENIED_DEED = regex(
    r"(?:\b(?:no|none|not|nothing|never)|n['’]t)\b(?: (?!(?:and|i|it|so|then|until|we)\b)[\w`]+){0,4}"
    r" (?:added|adjusted|changed|corrected|deleted|done|dropped|extended|extracted|implemented|introduced"
    r"|moved|removed|renamed|replaced|rewritten|tightened|updated)\b",
    re.IGNORECASE,
)
DEED_ELSEWHERE = regex(rf"\b(?:{'|'.join(_STEMS.values())})|{_CHARACTERS}", re.IGNORECASE)
# Words of those languages that deny what their clause says. What is done and denied something else is asked
# about once too often; what is denied and passes as done would land.
DENIED_ELSEWHERE = regex(
    r"\b(?:nicht|nichts|keine?\w?|nie|niemals"
    r"|ne|pas|rien|aucune?|jamais|non|nulla|niente|nessun\w?"
    r"|no|nada|ning[uú]n\w?|nunca|tampoco|não|nenhum\w?|niet|niets|geen|nic|żad\w+|не|ничего)\b|\bn['’]"
    r"|没|未|不(?!再)|无"
    r"|(?:ません|ない|なかった|なし|せず)(?:でした|です|ので|ため|が|から)?$|(?:ない|しません)(?:こと|まま|と)",
    re.IGNORECASE,
)
# What makes the deed of a clause one of earlier times: "The lock was added in an earlier change".
BEFORE = regex(
    r"\b(?:already|previously|years|long ago|bereits|schon|déjà|já|già"
    r"|(?:earlier|last|previous|before (?:my|the|this)) (?:change|commit|release|task|version|year))\b",
    re.IGNORECASE,
)
# What makes a clause one that says that something stays as it is.
STAYS = regex(
    r"\b(?:on purpose|deliberate(?:ly)?|intentional(?:ly)?|by design|bewusst|absichtlich"
    r"|so (?:gelassen|gewollt)"
    r"|volontairement|exprès|a propósito|as (?:it )?(?:is|was)$|as before$|suffices?|moved on|my attempt"
    r"|no (?:code |further )?changes? (?:(?:is|are|was|were) )?(?:made|needed|necessary|required)(?=\W*$)"
    r"|chose (?:to (?:keep|leave|stay)|not to)|it (?:made|broke|caused))\b",
    re.IGNORECASE,
)
# What says of the whole answer that nothing was done.
NOTHING_DONE = regex(
    r"\b(?:changed|did|removed) nothing\b|\bnothing (?:needs|had|has) to\b"
    r"|\b(?:then|later|so|but|and) (?:i |we )?(?:reverted|undid|(?:rolled|backed)(?= (?:it|this|that)\b))"
    r"(?: (?:it|this|that|them|back|out|(?:the|my) (?:change|commit|fix))){0,2}"
    r"(?=\W*(?:$|[.,;]|again|because|since))"
    r"|^\W*(?:i |we )?reverted (?:the|my|this|that) (?:attempt|change|commit|fix)\b"
    r"|^\W*(?:i |we )?(?:tried|attempted)\b.{0,200}"
    r"\b(?:reverted|undone|undid|gave up|(?:rolled|backed) (?:it|this|that)\b)"
    r"|\bwithout success\b|\bto no avail\b|\b(?:did not|didn['’]t) (?:help|work)\b"
    r"|^this stays\b|\bthe (?:code|original|present \w+) (?:is as before|remains|stays)\b",
    re.IGNORECASE,
)
# What only hides the point: "Silenced with noqa", "Marked the test as skipped" (ANS-7).
SILENCING = regex(
    r"(?:^|[.;:,]\s+|\b(?:and|by|i|we)\s+)\W*(?:"
    r"(?:silenc|suppress|mut|disabl|skipp?)(?:e[sd]?|ing)\b.{0,40}?"
    r"\b(?:noqa|nosec|type: ignore|warnings?|lint\w*|checks?|rules?|tests?|pylint|eslint|mypy|ruff)\b"
    r"|(?:add|put|us)(?:e?d|ing)?\b.{0,20}?"
    r"(?:\bnoqa|\bnosec|type: ignore|no cover|eslint-disable|@ts-ignore|SuppressWarnings|xfail)"
    r"|mark(?:ed|ing)?\b.{0,30}?\b(?:skip(?:ped)?|xfail)\b"
    # and what only makes a test agree, or says in a comment why nothing is done
    r"|(?:delet|remov|dropp?|loosen|relax)(?:ed|ing)?\b.{0,20}?"
    r"\b(?:assert(?:ion)?s?|(?:failing|flaky|broken|red) tests?)\b"
    r"|(?:chang|updat|adapt|adjust)(?:e?d|ing)?\b.{0,20}?\btests? to (?:accept|expect|match) "
    r"(?:the )?(?:actual|current|existing|old|present)\b"
    r"|(?:add|left|leave|put)(?:e?d|ing)?\b (?:an? |some )?(?:todo|fixme|xxx)\b"
    r"|(?:add|left|leave|put|wr[io]te)(?:e?d|ing)?\b (?:an? )?(?:\w+ )?(?:comment|note)\b.{0,30}?"
    r"\b(?:why|that) (?:\w+ ){1,6}"
    r"(?:not|never|unnecessary|needless|intentional|intended|deliberate|safe|fine|harmless)\b)",
    re.IGNORECASE,
)
CLAUSES = regex(
    r"[.,;:!?)(–—\n]+\s+|[。，；：、]|\s-{1,2}\s"
    r"|\b(?:but|because|aber|denn|und|weil|car|et|mais|parce que|porque|pero|y)\b"
)
_LATER = r"(?:follow[- ]?up|separate|another|different|later|future|next|own|dedicated)"
_WORK = (
    r"(?:pr|pull request|mr|task|ticket|issue|release|change|commit|sprint|version|story|refactor\w*|step)"
)
PUT_OFF = regex(
    rf"\b(?:(?:in|for|to|into|with) (?:an? |the |its |my |our )?{_LATER} {_WORK}|as (?:an? )?follow[- ]?up"
    r"|kommt später|plus tard|más (?:tarde|adelante))\b",
    re.IGNORECASE,
)
HEDGED = regex(
    r"\W*(?:(?:i|we|fully|do)\s+){0,3}(?:agreed?|accept(?:ed)?|yes)\b[^.;]{0,120}\b(?:but|however|though|yet)\b",
    re.IGNORECASE,
)
# What leaves a part undone: "Fixed in a.py, but not in b.py", "the write path is still open".
_UNDONE = r"(?:missing|open|to do|un(?!ti)\w{2,12}ed|undone)"
LEFT = regex(
    r"\b(?:but|though|although|however|except)\b[^.;]{0,60}"
    r"\b(?:not (?:in|for|on|the|yet)|only|missing|open|remains?|still|unchanged|unfixed)\b"
    rf"|[;,–—-]\s*(?:\w+ ){{1,5}}(?:is|are|remains?|stays?) (?:still )?{_UNDONE}\b"
    r"|^(?:\W*\w+){0,2}\W+(?:only )?(?:the )?(?:easy|first|main|obvious|second|simple) (?:half|part)s?\b",
    re.IGNORECASE,
)
# A request for more words.
ASKING = regex(
    r"\b(?:please|can you|could you) (?:\w+ )?(?:clarify|explain|elaborate|specify)"
    r"|\b(?:unclear|not clear) (?:what|which|why|how|where|to me)\b"
    r"|\bneeds? (?:more |further |some )?(?:info\w*|details?|clarification|context)\b",
    re.IGNORECASE,
)
QUESTION_FIRST = regex(r"[^.!?]{1,300}\?")
MAX_READ = 400  # characters
MAX_QUESTION = 200


def answer_kind(text: str) -> AnswerKind | None:
    """Return what became of a finding, as `stated_kind` does, or that other work is to treat it."""
    kind, text = stated_kind(text), text[:MAX_READ]
    is_doubtful = HEDGED.match(text) or STAYS.search(text) or is_undone(text)
    if kind is AnswerKind.ADDRESSED and is_doubtful and not tells_of_deed(text):
        return None  # "I agree in principle, but …", "It was implemented that way on purpose"
    if kind in (None, AnswerKind.ADDRESSED) and LEFT.search(text) and (kind or tells_of_deed(text)):
        return AnswerKind.PARTLY
    return kind or (AnswerKind.DEFERRED if PUT_OFF.search(text) and not tells_of_deed(text) else None)


def is_undone(text: str) -> bool:
    """Whether an answer says that nothing was done about the finding, or that it was taken back."""
    return NOTHING_DONE.search(text[:MAX_READ]) is not None


def tells_of_deed(text: str) -> bool:
    """Whether an answer that names no kind says that something was done.

    If it does not, it may be a refusal in other words (ANS-7): "The caller already holds the lock."
    """
    text = text[:MAX_READ]
    if is_undone(text):
        return False
    clauses = [clause.strip(" *_\"'“”.") for clause in CLAUSES.split(text)]
    elsewhere = [clause for clause in clauses if DEED_ELSEWHERE.search(clause)]
    if any(map(DENIED_ELSEWHERE.search, elsewhere)):
        elsewhere = []
    told = [*elsewhere, *(each for each in clauses if DEED.search(each) and not DENIED_DEED.search(each))]
    return any(
        not (BEFORE.search(clause) or STAYS.search(clause) or clause.lower() in ANSWER_WORDS)
        for clause in told
    )


def is_silencing(text: str) -> bool:
    """Whether an answer says that a warning or a test was silenced, whatever it calls that (ANS-7)."""
    return SILENCING.search(text[:MAX_READ]) is not None


def says_nothing(text: str) -> bool:
    """Whether an answer says nothing of what was done: it thanks, asks, or calls the finding open."""
    if len(text) > MAX_QUESTION:
        return False  # it explains something
    text = text.strip(" \t*_`\"'“”()")
    if not text or is_open(text):
        return bool(text)
    if (match := COURTESY.match(f"{text}.")) and match.end() > len(text):
        return True
    asks = text[-1] == "?" or QUESTION_FIRST.match(text) is not None or ASKING.search(text) is not None
    return asks and not tells_of_deed(text)
