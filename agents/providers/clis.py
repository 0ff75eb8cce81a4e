"""What the four coding CLIs have in common: their settings, how they sign in, and a home for each run.

No secret is ever an argument: keys are passed in variables, or in files of mode 0600 in the run's own home.
"""

from abc import abstractmethod
from collections.abc import Container
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agents.providers import base
from tasks.text.regex import regex

NO_KEY = "none"  # for the operator's own server, which asks for no key
TEXT_MAX = 500
MODEL = regex(r"[A-Za-z0-9][A-Za-z0-9._:/@+\[\]-]{0,119}\Z")
SIGN_IN_FILE_MAX = 256 * 1024


class Cli(base.Provider):
    """A vendor's command. All settings are optional.

    `program` is its path or name; `base_url` is another server than the vendor's; `key` is the NAME of the
    variable that holds the key; `pass` names further variables that the agent may see; `sign_in_file` is
    copied into each run's home, to the place where the command keeps its sign-in; agents with the same
    `account` pause together.
    """

    command: str
    key_variable: str  # the variable that holds the operator's key by default
    own_hosts: tuple[str, ...] = ()
    own_variable = ""  # the variable with a subscription's token, if there is one
    sign_in_place: str  # the file in which it keeps its sign-in, relative to its home
    settings = frozenset({"program", "base_url", "key", "pass", "sign_in_file", "account", "hosts"})

    @property
    def about(self) -> str:  # type: ignore[override]
        return f"Signs in with {self.key_variable}, unless you name another variable."

    def check(self, settings: dict[str, Any], model: str = "") -> None:
        if not isinstance(settings, dict):
            raise base.ProviderError(f"{self.title}: the settings are a mapping: {{}} will do.")
        if unknown := sorted(set(map(str, settings)) - self.settings):
            known = ", ".join(sorted(self.settings))
            raise base.ProviderError(
                f"{self.title} has no setting {unknown[0]!r}; it knows {known}.", setting=unknown[0]
            )
        for name in sorted({"program", "base_url", "key", "sign_in_file", "account"} & set(settings)):
            if not _is_plain(settings[name]):
                raise base.ProviderError(f"{name} is a text of one line.", setting=name)
        if (url := settings.get("base_url")) and not _is_address(url):
            raise base.ProviderError(
                f"base_url is an address such as http://127.0.0.1:8080/v1, not {url!r}.", setting="base_url"
            )
        if key := settings.get("key"):
            self._check_key(key)
        if (file := settings.get("sign_in_file")) and not Path(file).is_absolute():
            raise base.ProviderError("sign_in_file is the absolute path of a file.", setting="sign_in_file")
        base.checked_names(settings)
        base.checked_hosts(settings)
        if model and not MODEL.match(model):
            raise base.ProviderError(f"{model!r} is no name of a model.", setting="model")

    def hosts(self, settings: dict[str, Any], model: str) -> list[str]:
        if url := settings.get("base_url"):
            return [base.host_of(url), *base.checked_hosts(settings)]
        return [*self.vendor_hosts(model), *base.checked_hosts(settings)]

    def vendor_hosts(self, model: str) -> tuple[str, ...]:
        """Return the vendor's hosts: those of the models, and those that renew a sign-in."""
        return self.own_hosts

    def sign_in(self, given: Container[str], home: Path, model: str = "") -> dict[str, Any] | None:
        """Return the settings with which it can sign in on this host, or None if it cannot.

        `given` holds the names of the operator's variables, `home` is their home. No value or file is read.
        """
        if self.usual_variable(model) in given:
            return {}
        if self.own_variable and self.own_variable in given:
            return {"pass": [self.own_variable]}
        file = home / self.sign_in_place
        return {"sign_in_file": str(file)} if file.is_file() else None

    def program(self, settings: dict[str, Any]) -> str:
        return settings.get("program") or self.command

    def _check_key(self, key: str) -> None:
        if not base.NAME.match(key):
            raise base.ProviderError(
                f"key is the name of the variable that holds the key, such as {self.key_variable}; "
                "the key itself stands in the orchestrator's environment.",
                setting="key",
            )
        if base.OURS.match(key):
            raise base.ProviderError(f"{key} belongs to this program; no agent may see it.", setting="key")

    def argv(self, settings: dict[str, Any], launch: base.Launch) -> list[str]:
        self.check(settings, launch.model)
        return [*self._command(settings, launch), *self.arguments(settings, launch)]

    def _command(self, settings: dict[str, Any], launch: base.Launch) -> list[str]:
        program = base.find_program(self.program(settings), launch.path)
        return (
            [base.find_program("node", launch.path), program]
            if program.endswith((".js", ".mjs"))
            else [program]
        )

    @abstractmethod
    def arguments(self, settings: dict[str, Any], launch: base.Launch) -> list[str]:
        """Return the arguments that follow the program."""

    def environment(self, settings: dict[str, Any], launch: base.Launch) -> dict[str, str]:
        home = launch.home
        return {
            "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_DATA_HOME": str(home / ".local" / "share"),
            "XDG_STATE_HOME": str(home / ".local" / "state"),
            "XDG_CACHE_HOME": str(home / ".cache"),
            "NO_COLOR": "1",
        }

    def files(self, settings: dict[str, Any], launch: base.Launch) -> dict[str, str]:
        source = settings.get("sign_in_file")
        if not source:
            return {}
        try:
            raw = Path(source).read_bytes()
            text = raw.decode()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is no text"
            raise base.NotSignedIn(
                f"The sign-in of {self.title}, {source}, cannot be read: {why}. Sign in on this host again."
            ) from None
        if len(raw) > SIGN_IN_FILE_MAX:
            raise base.ProviderError(f"{source} is too large to be a sign-in of {self.title}.")
        return {self.sign_in_place: text}

    def usual_variable(self, model: str) -> str:
        """Return the variable that holds the key for this model unless the settings name another."""
        return self.key_variable

    def key(self, settings: dict[str, Any], launch: base.Launch) -> str:
        """Return the key of this run; empty if it signs in in another way. Raises NotSignedIn.

        The vendor's key is never sent to another server unless `key` says so.
        """
        named, elsewhere = settings.get("key"), settings.get("base_url")
        otherwise = settings.get("sign_in_file") or settings.get("pass")
        if not named and elsewhere:
            return NO_KEY
        name = named or self.usual_variable(launch.model)
        if value := launch.given.get(name, ""):
            return value
        if named or not otherwise:
            raise base.NotSignedIn(
                f"{self.title} is not signed in: the variable {name} is not set where the orchestrator runs. "
                f"Set it there and start the orchestrator again."
            )
        return ""


def _is_plain(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= TEXT_MAX and value.isprintable()


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        return False
