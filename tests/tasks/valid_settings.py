"""Any settings that a project may have, for properties that hold for all of them."""

from typing import Any

from hypothesis import strategies as st

from tasks.configuration.policy import SETTINGS
from tasks.configuration.schema import (
    Branch,
    Choice,
    Document,
    Flag,
    Hosts,
    Kind,
    Ladders,
    Number,
    PerSeverity,
    Text,
    Whole,
    Words,
)
from tasks.configuration.stages import PRESETS, Stages
from tasks.states import Severity

SIGNS = st.characters(codec="utf-8", exclude_characters="\0")  # which databases take
SEVERITIES = [severity.value for severity in Severity]


@st.composite
def ladders(draw: st.DrawFn) -> dict[str, str]:
    """Ranges without gap and overlap; the last one is open."""
    ladder, due = {}, 0
    names = st.text(SIGNS, min_size=1, max_size=20)
    models = names.filter(lambda name: bool(name.strip()) and name != "escalate")
    for length in draw(st.lists(st.integers(1, 5), max_size=4)):
        last = due + length - 1
        spelled = str(due) if last == due and draw(st.booleans()) else f"{due}-{last}"
        ladder[spelled], due = draw(models), last + 1
    return ladder | {f"{due}+": draw(models | st.just("escalate"))}


@st.composite
def stages(draw: st.DrawFn) -> list[Any]:
    """Names and mappings, each name once; the last one is reviewed."""
    names = draw(
        st.lists(st.sampled_from(["stories", "tests", "dev", "qa", "docs"]), min_size=1, unique=True)
    )
    line = st.text(st.characters(max_codepoint=127, categories=["L", "N"]), max_size=20)
    free = {"title": line, "agent_type": line, "ladder": line, "about": st.text(SIGNS, max_size=30)}
    made = []
    for name in names:
        more = draw(st.fixed_dictionaries({}, optional=free))
        reviewed = {"is_reviewed": True if name == names[-1] else draw(st.booleans())}
        made.append({"name": name, **more, **reviewed} if more or draw(st.booleans()) else name)
    return made


def value(kind: Kind) -> st.SearchStrategy[Any]:
    """Whatever this kind accepts."""
    match kind:
        case Flag():
            return st.booleans()
        case Whole(low=low, high=high, none=none):
            return st.integers(low, high) | st.none() if none else st.integers(low, high)
        case Number(low=low, high=high, none=none):
            return st.floats(low, high) | st.none() if none else st.floats(low, high)
        case Hosts():
            return st.sampled_from(["", "packages.example.org", "*.example.org:8443 [::1]", "*"])
        case Branch():
            return st.sampled_from(["", "main", "release/2.0"])
        case Document():
            return st.sampled_from(["", "SPEC.md", "docs/Specification of all.markdown"])
        case Text():
            return st.text(SIGNS)
        case Choice(words=words):
            return st.sampled_from(words)
        case Words(words=words):
            return st.lists(st.sampled_from(words))
        case Ladders():
            names = st.text(SIGNS, min_size=1, max_size=20).filter(lambda name: bool(name.strip()))
            return st.dictionaries(names, ladders(), max_size=3)
        case Stages():
            return st.sampled_from([*PRESETS]) | stages()
        case PerSeverity(each=Choice(words=words), fixed=fixed):
            free = [severity for severity in SEVERITIES if severity not in dict(fixed)]
            return st.fixed_dictionaries({}, optional={name: st.sampled_from(words) for name in free})
        case PerSeverity(each=Whole(low=low, high=high)):
            weights = st.lists(st.integers(low, high), min_size=4, max_size=4)
            return weights.map(lambda found: dict(zip(SEVERITIES, sorted(found)[::-1], strict=True)))
    raise AssertionError(kind)


def _in_order(settings: dict[str, Any]) -> dict[str, Any]:
    if settings.get("max_rounds") is not None:
        settings["max_rounds"] = min(settings["max_rounds"], settings.get("hard_limit", 50))
    return settings


def valid_settings() -> st.SearchStrategy[dict[str, Any]]:
    """Some of the keys, each with a value that it may have; together they are in order."""
    every = {key: value(entry.kind) for key, entry in SETTINGS.items()}
    return st.fixed_dictionaries({}, optional=every).map(_in_order)
