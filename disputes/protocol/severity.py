"""How severe a finding is: the words for it, and who may change it (§3)."""

import re

from tasks.states import Severity, severity_rank

# SEV-9: foreign words for severities.
SEVERITY_WORDS: dict[str, Severity] = {
    **{severity.value: severity for severity in Severity},
    "major": Severity.HIGH,
    "must": Severity.HIGH,
    "important": Severity.HIGH,
    "moderate": Severity.MEDIUM,
    "should": Severity.MEDIUM,
    "minor": Severity.LOW,
    "nit": Severity.LOW,
    "nits": Severity.LOW,
    "nice to have": Severity.LOW,
}


def read_severity(words: str) -> Severity | None:
    """The severity that these words state, or None (SEV-9). Of a range such as LOW-MEDIUM the higher one."""
    plain = re.sub(r"[^a-z-]+", " ", words.lower()).strip(" -").removesuffix(" risk")
    parts = [" ".join(part.split()) for part in plain.split("-")]
    named = [SEVERITY_WORDS[part] for part in parts if part in SEVERITY_WORDS]
    return max(named, key=severity_rank) if len(named) == len(parts) else None
