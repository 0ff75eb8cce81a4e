"""Where a ruling goes in a specification, and in which words. No rows, no git."""

import pytest

from disputes.protocol.rulings.amendments import About, NotAmended, Ruled, amended, words_of
from disputes.protocol.text.documents import scan

SPEC = """\
# Calls

Be polite.

## 4.3 Retries

Calls that fail are made
again, "at once".

```
## 4.4 Not a heading
```

### Files

Files at once.

## 4.4 Names

Say `amount_minor`.
"""


def where(**about: object) -> str:
    return amended(SPEC, "docs/SPEC.md", "> Wait.", About(**about))[1]  # type: ignore[arg-type]


def test_the_section_is_the_one_that_the_dispute_names_quotes_or_points_to() -> None:
    assert where(texts=("It breaks §4.4.",)) == "4.4 Names"
    assert where(texts=("See section 9.9, and Section 4.3 of it",)) == "4.3 Retries"
    assert where(texts=("The text says “calls that fail are   made again”, which hammers.",)) == "4.3 Retries"
    assert where(path="docs/SPEC.md", line=16) == "Files"
    assert where(path="src/SPEC.py", line=16) == "Rulings"
    assert where(source="docs/SPEC.md#4.3") == "4.3 Retries"
    assert where(source="docs/SPEC.md#names") == "Rulings"
    assert where(source="docs/OTHER.md#4.3") == "Rulings"
    assert where(source="docs/SPEC.md#files", texts=("It breaks §4.4.",)) == "4.4 Names"


def test_words_stand_at_the_end_of_their_section_and_change_nothing_else() -> None:
    text, _ = amended(SPEC, "docs/SPEC.md", "> Wait.", About(source="docs/SPEC.md#4.3"))
    assert text == SPEC.replace("heading\n```\n\n### Files", "heading\n```\n\n> Wait.\n\n### Files")
    text, _ = amended(SPEC, "docs/SPEC.md", "> Wait.", About())
    assert text == f"{SPEC}\n## Rulings\n\n> Wait.\n"
    again, _ = amended(text, "docs/SPEC.md", "> Less.", About())
    assert again == f"{SPEC}\n## Rulings\n\n> Wait.\n\n> Less.\n"
    windows, _ = amended(SPEC.replace("\n", "\r\n"), "docs/SPEC.md", "> Wait.", About(texts=("§4.4",)))
    assert windows == f"{SPEC}\n> Wait.\n".replace("\n", "\r\n")
    assert amended("", "docs/SPEC.md", "> Wait.", About())[0] == "## Rulings\n\n> Wait.\n"
    with pytest.raises(NotAmended, match="line 3"):
        amended("# A\n\n```\n", "docs/SPEC.md", "> Wait.", About())


def test_nothing_in_a_ruling_becomes_a_part_of_the_specification() -> None:
    hostile = "Fine.\n## 5 Owned\n```\n<script>alert(1)</script>\n<!-- hidden\n\u202ereversed"
    words = words_of(Ruled("D-1, C-1", hostile, hostile, hostile, hostile, hostile, "2026-01-12"))
    assert all(line.startswith(">") for line in words.split("\n"))
    text, _ = amended(SPEC, "docs/SPEC.md", words, About(texts=("§4.3",)))
    assert [line.heading for line in scan(text) if line.heading] == [
        line.heading for line in scan(SPEC) if line.heading
    ]
    assert "<script" not in text
    assert "<!--" not in text
