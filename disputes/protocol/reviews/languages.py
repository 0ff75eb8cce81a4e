"""Putting the verdicts and severities of reviews in other languages into the words that the readers know.

One table has the words of each language. It is short, so that each of them is sure: a refusal is read
wherever the place of a verdict has one; an approval only if it is all that stands there, because not all
denials of other languages are known (VER-2).
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from disputes.protocol.text.documents import STATED, Line
from tasks.states import Severity
from tasks.text.regex import regex


class Language(NamedTuple):
    """The words of a language, with bars between them: before a verdict, for it, and for severities."""

    labels: str
    refusing: str
    approving: str
    severities: tuple[str, str, str, str] = ("", "", "", "")  # from critical to low
    denying: str = ""  # right before a refusal, which is none then


LANGUAGES = (
    Language(
        "fazit|urteil|ergebnis|entscheidung|bewertung",
        "nicht freigegeben|nicht genehmigt|abgelehnt|zurückgewiesen|überarbeitung nötig"
        "|überarbeitung erforderlich|änderungen erforderlich|änderungen nötig|änderungen notwendig"
        "|änderungen gewünscht|änderungen angefordert",
        "freigegeben|genehmigt|angenommen",
        denying="nicht",
    ),
    Language(
        "décision|résultat|avis",
        "modifications demandées|modifications requises|changements demandés|changements requis|rejeté|refusé"
        "|non approuvé|pas approuvé|à revoir",
        "approuvé|accepté",
        denying="pas|non",
    ),
    Language(
        "veredicto|resultado|conclusión|decisión",
        "cambios solicitados|cambios requeridos|cambios necesarios|rechazado|rechazada|no aprobado"
        "|no aprobada",
        "aprobado|aprobada|aceptado",
        denying="no",
    ),
    Language(
        "veredito|parecer|conclusão|decisão",
        "rejeitado|rejeitada|recusado|recusada|reprovado|reprovada|não aprovado|não aprovada"
        "|mudanças necessárias|mudanças solicitadas|alterações necessárias|alterações solicitadas",
        "aprovado|aprovada|aceito|aceite",
        denying="não",
    ),
    Language(
        "verdetto|esito|giudizio|decisione",
        "respinto|respinta|rifiutato|rifiutata|non approvato|non approvata|modifiche richieste"
        "|modifiche necessarie|da rivedere",
        "approvato|approvata|accettato",
        ("critico|critici", "alto|alta|gravi", "medio|media", "basso|bassa"),
        denying="non",
    ),
    Language(
        "oordeel|conclusie|beslissing|besluit",
        "afgekeurd|afgewezen|niet goedgekeurd|wijzigingen nodig|wijzigingen vereist|aanpassingen nodig",
        "goedgekeurd|geaccepteerd",
        ("kritiek", "hoog", "middel|gemiddeld", "laag"),
        denying="niet",
    ),
    Language(
        "werdykt|decyzja|wynik",
        "odrzucone|odrzucono|odrzucony|niezatwierdzone|nie zatwierdzone|nie zatwierdzono|wymaga poprawek"
        "|wymaga zmian|do poprawy",
        "zatwierdzone|zatwierdzono|zaakceptowane",
        ("krytyczny|krytyczne", "wysoki|wysokie", "średni|średnie", "niski|niskie"),
        denying="nie",
    ),
    Language(
        "karar|sonuç|değerlendirme",
        "reddedildi|ret|onaylanmadı|değişiklik gerekli|değişiklik gerekiyor|düzeltme gerekli",
        "onaylandı|kabul edildi",
        ("kritik", "yüksek", "orta", "düşük"),
    ),
    Language(
        "вердикт|решение|заключение|итог",
        "отклонено|отклонён|отклонен|отказано|не одобрено|не принято|требуются изменения|требуются правки"
        "|нужны изменения|нужны правки|требуется доработка|нужна доработка",
        "одобрено|принято",
        ("критический|критические|критично", "высокий|высокая|высокие", "средний|средняя|средние",
         "низкий|низкая|низкие"),
        denying="не",
    ),
    Language(
        "结论|結論|判定|裁决|审查结论|评审结论|审查结果|评审结果|審査結果|総合判定|レビュー結果",
        "拒绝|驳回|打回|不通过|未通过|不批准|需要修改|需修改|需要改进|要修正|却下|不承認|差し戻し|修正が必要"
        "|承認できません|承認不可",
        "通过|批准|同意|承認|合格",
        ("致命|严重|紧急|致命的|重大", "高|重要", "中|中等", "低|轻微|軽微"),
    ),
    Language(
        "판정|결론|결정",
        "거부|반려|거절|수정 필요|수정이 필요|변경 필요|승인 불가|승인할 수 없",
        "승인|통과",
        ("치명적|심각", "높음", "중간|보통", "낮음"),
    ),
    Language(
        "القرار|الحكم|النتيجة",
        "مرفوض|غير موافق|غير مقبول|يحتاج إلى تعديلات|يحتاج إلى تعديل|مطلوب تعديلات",
        "موافق عليه|مقبول|تمت الموافقة",
        ("حرج", "عالي|عالية|مرتفع", "متوسط|متوسطة", "منخفض|منخفضة"),
    ),
    Language(
        "निर्णय|फैसला|निष्कर्ष",
        "अस्वीकृत|अस्वीकार|बदलाव आवश्यक|बदलाव चाहिए|सुधार आवश्यक",
        "स्वीकृत|स्वीकार",
        ("गंभीर", "उच्च", "मध्यम", "निम्न"),
    ),
)  # fmt: skip
LABELS = "|".join(language.labels for language in LANGUAGES)
LABELS_OF_ALL = frozenset(LABELS.split("|"))
REFUSING = frozenset("|".join(language.refusing for language in LANGUAGES).split("|"))
APPROVING = frozenset("|".join(language.approving for language in LANGUAGES).split("|"))
SEVERITIES = {
    word: severity.upper()
    for language in LANGUAGES
    for severity, words in zip(
        sorted(Severity, key=["critical", "high", "medium", "low"].index), language.severities, strict=True
    )
    for word in words.split("|")
    if word
}
LABELLED = regex(
    rf"(?P<marks>[\W\d_]{{0,12}})(?P<label>{LABELS}|verdict|decision)[ \t]*(?:[*_]{{1,3}}[ \t]*)?(?:[:：]|$)"
    r"(?P<words>.*)",
)
_DENYING = "|".join(language.denying for language in LANGUAGES if language.denying)
WITHOUT_BLANKS = "\u2e80"  # the first letter of the scripts that have none
MAX_STATEMENT = 400
# Where words have blanks between them a refusal is words; elsewhere it may be a part of a longer text.
REFUSED = regex(
    rf"(?<!\w)(?:{'|'.join(each for each in REFUSING if each < WITHOUT_BLANKS)})(?!\w)"
    rf"|{'|'.join(each for each in REFUSING if each >= WITHOUT_BLANKS)}"
    rf"|(?<!\w)(?:{_DENYING})\s(?:\w+\s){{0,2}}"
    rf"(?:{'|'.join(each for each in APPROVING if each < WITHOUT_BLANKS)})(?!\w)"
    rf"|[不未没][^，。]{{0,3}}(?:{'|'.join(each for each in APPROVING if each >= WITHOUT_BLANKS)})"
)
COLON = regex(r"[:：]")
DENIED = regex(rf"(?<!\w)(?:{_DENYING})\s$")
MARKS = " \t*_`#.!。！:：\"'«»“”\ufe0f✅❌✓✗✔✘🔴🟢"
# A severity in brackets at the beginning of a line or behind its list marker, and one in a heading.
TAG = regex(
    r"(?P<before>[ \t]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?)[\[【「［]\s*(?P<word>\w{1,12})\s*[\]】」］]\s*"
)
HEADING = regex(r"(?P<marks>#{1,6} |\*\*)(?P<word>\w{1,12}?)(?:问题|問題|[ \t]+\w{1,14})?(?:\*\*)?[:：]?$")


def in_english(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield the lines, those with a verdict or a severity of another language in the words of ours."""
    is_awaited = False  # whether the last line was a label whose verdict stands below it
    for line in lines:
        if line.mode is not STATED or not line.text.strip():
            yield line
            continue
        text, is_awaited = _translated(line.text, is_awaited=is_awaited)
        yield line if text == line.text else line._replace(text=text)


def _translated(text: str, *, is_awaited: bool) -> tuple[str, bool]:
    plain = text.casefold()
    if plain.lstrip()[:1] == "|":
        return "|".join(_of_cell(cell) or cell for cell in text.split("|")), False
    if match := LABELLED.match(plain):
        marks, label = match["marks"].lstrip(" \t") if "#" in match["marks"] else "", match["label"]
        verdict = verdict_in(match["words"])
        if verdict:
            return f"{marks}Verdict: {verdict}", False
        if label not in ("verdict", "decision"):
            said = COLON.split(text, maxsplit=1)[1].strip(MARKS) if match["words"] else ""
            return f"{marks}Decision: {said}".rstrip(), not said
        return text, not match["words"].strip(MARKS)
    if verdict := verdict_in(plain, is_alone=not is_awaited):
        return f"{verdict}:" if plain.rstrip(" *_").endswith((":", "：")) else verdict, False
    if (match := TAG.match(text)) and (severity := SEVERITIES.get(match["word"].casefold())):
        return f"{match['before']}[{severity}] {text[match.end() :]}", False
    if (match := HEADING.match(text)) and (severity := SEVERITIES.get(match["word"].casefold())):
        return f"{match['marks'].replace('**', '### ')}{severity.capitalize()} issues", False
    return text, False


def _of_cell(cell: str) -> str:
    plain = cell.casefold().strip(" *_`:：")
    return " Verdict " if plain in LABELS_OF_ALL else verdict_in(plain, is_alone=True)


def verdict_in(words: str, *, is_alone: bool = False) -> str:
    """Return our word for the verdict of a statement in small letters; empty if it has none.

    If it stands `is_alone`, without a label, the statement must be nothing else.
    """
    plain = words[:MAX_STATEMENT].strip(MARKS)
    if plain in APPROVING:
        return "APPROVED"
    if is_alone:
        return "NEEDS_REVISION" if plain in REFUSING else ""
    found = (match for match in REFUSED.finditer(plain) if not DENIED.search(plain[: match.start()]))
    return "NEEDS_REVISION" if next(found, None) else ""
