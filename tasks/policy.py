"""Core: the settings of one project as one validated value, kept as JSON in the project's row."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from tasks.states import Severity

HOLD, SHIP, LOG = "hold", "ship", "log"
EFFECTS = (HOLD, SHIP, LOG)
ON_FAILED = ("section", "project", "continue")


class SettingsError(ValueError):
    """A setting has an unknown key or a value that it may not have."""


def _default_policy() -> dict[str, str]:
    return {Severity.CRITICAL: HOLD, Severity.HIGH: HOLD, Severity.MEDIUM: SHIP, Severity.LOW: LOG}


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """How a project's work is done; every key has a default that works."""

    policy: dict[str, str] = field(default_factory=_default_policy)
    rejections_max: int = 15
    undo_seconds: float = 10.0
    mandatory: tuple[str, ...] = ("critical", "high")
    on_failed: str = "section"
    detect_commands: bool = True
    build_command: str = ""
    build_timeout: float = 600.0
    test_command: str = ""
    test_timeout: float = 600.0
    review_after_rebase: bool = False

    def __post_init__(self) -> None:
        if set(self.policy) != set(Severity):
            raise SettingsError("policy names each of critical, high, medium and low once.")
        for severity, effect in self.policy.items():
            if effect not in EFFECTS:
                raise SettingsError(f"policy.{severity} is {effect!r}; it is one of hold, ship, log.")
        if self.policy[Severity.CRITICAL] != HOLD:
            raise SettingsError("policy.critical is always hold.")
        if self.on_failed not in ON_FAILED:
            raise SettingsError(f"on_failed is {self.on_failed!r}; it is one of {', '.join(ON_FAILED)}.")
        if self.rejections_max < 1:
            raise SettingsError("rejections_max is at least 1.")
        for name in ("build_timeout", "test_timeout"):
            if not 1 <= getattr(self, name) <= 3600:
                raise SettingsError(f"{name} is between 1 and 3600 seconds.")
        if not 0 <= self.undo_seconds <= 3600:
            raise SettingsError("undo_seconds is between 0 and 3600.")
        if unknown := set(self.mandatory) - set(Severity):
            raise SettingsError(f"mandatory holds unknown severities: {', '.join(sorted(unknown))}.")

    @classmethod
    def from_json(cls, data: Any) -> "ProjectSettings":
        """The settings in `data` over the defaults. Raises SettingsError naming the key at fault."""
        if not isinstance(data, dict):
            raise SettingsError("settings are a JSON object.")
        known = {item.name: item for item in fields(cls)}
        if unknown := set(data) - set(known):
            raise SettingsError(f"unknown setting: {', '.join(sorted(unknown))}.")
        values = dict(data)
        if "policy" in values:
            if not isinstance(values["policy"], dict):
                raise SettingsError("policy maps each severity to hold, ship or log.")
            values["policy"] = _default_policy() | values["policy"]
        if "mandatory" in values:
            named = values["mandatory"]
            if not isinstance(named, list | tuple) or not all(isinstance(name, str) for name in named):
                raise SettingsError("mandatory is a list of severities.")
            values["mandatory"] = tuple(values["mandatory"])
        for name, value in values.items():
            expected = type(getattr(cls(), name))
            if expected is float and isinstance(value, int) and not isinstance(value, bool):
                try:
                    values[name] = float(value)
                except OverflowError as error:
                    raise SettingsError(f"{name} is too large a number.") from error
            elif not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
                raise SettingsError(f"{name} is {value!r}; a {expected.__name__} is needed.")
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        """The settings as plain JSON values."""
        return {**asdict(self), "mandatory": list(self.mandatory), "policy": dict(self.policy)}

    def effect(self, severity: str) -> str:
        """hold, ship or log for a conflict of this severity; an unknown one counts as medium."""
        return self.policy.get(severity, self.policy[Severity.MEDIUM])
