"""What tokens cost, from YAML lists that people edit. This is core: no Django here.

An operator's list is asked before the program's. A model that is on neither has no price; the cost of its
runs is then said to be unknown, never taken for nothing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

import yaml

from tasks.configuration.yaml_files import Fault, FaultyFile, compose

OWN = Path(__file__).with_name("prices.yaml")
SIZE_MAX = 256 * 1024
MODELS_MAX = 2_000
NAME_MAX = 120
PRICE_MAX = Decimal(100_000)  # dollars for a million tokens
MILLION = Decimal(1_000_000)
SMALLEST = Decimal("0.000001")
COST_MAX = Decimal("999999.999999")  # what a run's row can hold
KINDS = ("input", "cached", "output")


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens that a run used. `read` does not include those from a cache."""

    read: int = 0
    cached: int = 0
    written: int = 0

    @property
    def any(self) -> bool:
        return bool(self.read or self.cached or self.written)


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens of one model, or of all models whose names match the pattern."""

    pattern: str
    input: Decimal
    cached: Decimal
    output: Decimal

    def of(self, tokens: Tokens) -> Decimal:
        """Return what these tokens cost in dollars, rounded to a millionth."""
        sums = tokens.read * self.input + tokens.cached * self.cached + tokens.written * self.output
        return min((sums / MILLION).quantize(SMALLEST, ROUND_HALF_UP), COST_MAX)


class BadPrices(ValueError):
    """Raised if a list cannot be used; `faults` says everything that is wrong with it."""

    def __init__(self, name: str, faults: Iterable[Fault]) -> None:
        self.faults = tuple(sorted(faults, key=lambda fault: fault.line))
        super().__init__("\n".join(f"{name}:{fault.line}: {fault.message}" for fault in self.faults))


@dataclass(frozen=True, slots=True)
class PriceList:
    """Price lists, in the order in which they are asked."""

    lists: tuple[tuple[Price, ...], ...]

    def find(self, model: str) -> Price | None:
        """Return the model's price, or None if no list has it. `vendor/model` is also tried as `model`."""
        names = [model.strip().lower()]
        names += [names[0].rpartition("/")[2]] if "/" in names[0] else []
        for prices in self.lists:
            for name in names:
                fitting = [price for price in prices if name and fnmatchcase(name, price.pattern)]
                if fitting:
                    return max(fitting, key=_exactness)
        return None

    def cost(self, model: str, tokens: Tokens) -> Decimal | None:
        """Return what the tokens cost in dollars; None if the model has no price or nothing was counted."""
        price = self.find(model) if tokens.any else None
        return price.of(tokens) if price else None


def _exactness(price: Price) -> tuple[bool, int]:
    return "*" not in price.pattern, len(price.pattern)


# --- Reading ----------------------------------------------------------------------------------------------


def read(text: str, name: str = "prices.yaml") -> tuple[Price, ...]:
    """Return the prices in the YAML text. Raises BadPrices with every fault and its line."""
    faults: list[Fault] = []
    found = tuple(_prices(_root(text, name), faults))
    if len(found) > MODELS_MAX:
        faults.append(Fault(1, f"it names {len(found)} models; {MODELS_MAX} are the most."))
    if faults:
        raise BadPrices(name, faults)
    return found


def _root(text: str, name: str) -> yaml.Node | None:
    try:
        return compose(text, SIZE_MAX)
    except FaultyFile as error:
        raise BadPrices(name, error.faults) from error


def _prices(root: yaml.Node | None, faults: list[Fault]) -> Iterator[Price]:
    for name, where, node in _entries(root, "the file", faults):
        if name != "models":
            faults.append(Fault(where, f"{name!r} is no key of a price list; it has one, models."))
            continue
        for pattern, line, values in _entries(node, "models", faults):
            if not pattern or len(pattern) > NAME_MAX:
                faults.append(Fault(line, f"a model's name has 1 to {NAME_MAX} characters."))
            elif price := _price(pattern, line, values, faults):
                yield price


def _price(pattern: str, line: int, node: yaml.Node, faults: list[Fault]) -> Price | None:
    """Return the price in one model's entry, or None if something is wrong with it."""
    before, values = len(faults), {}
    for kind, where, value in _entries(node, pattern, faults):
        if kind not in KINDS:
            faults.append(Fault(where, f"{pattern}: {kind!r} is none of {', '.join(KINDS)}."))
        elif (amount := _amount(value)) is None:
            faults.append(Fault(where, f"{pattern}: {kind} is a number from 0 to {PRICE_MAX}."))
        else:
            values[kind] = amount
    if len(faults) == before and not {"input", "output"} <= set(values):
        faults.append(Fault(line, f"{pattern}: input and output are needed."))
    if len(faults) > before:
        return None
    cached = values.get("cached", values["input"])
    return Price(pattern.lower(), values["input"], cached, values["output"])


def _entries(node: yaml.Node | None, what: str, faults: list[Fault]) -> Iterator[tuple[str, int, yaml.Node]]:
    """Yield name, line and value of each entry of a mapping; a repeated name is a fault."""
    if node is None or (isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null")):
        return
    if not isinstance(node, yaml.MappingNode):
        faults.append(Fault(node.start_mark.line + 1, f"{what} is a mapping, name: value."))
        return
    seen: set[str] = set()
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode) or not isinstance(key.value, str):
            faults.append(Fault(line, f"{what}: a name is a plain word."))
        elif key.value in seen:
            faults.append(Fault(line, f"{what}: {key.value!r} stands there twice."))
        else:
            seen.add(key.value)
            yield key.value, line, value


def _amount(node: yaml.Node) -> Decimal | None:
    if not isinstance(node, yaml.ScalarNode) or node.style in {"'", '"', "|", ">"}:
        return None
    try:
        amount = Decimal(node.value)
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and 0 <= amount <= PRICE_MAX else None


# --- The lists of this installation -----------------------------------------------------------------------


def load(path: Path | None) -> PriceList:
    """Return the list at `path`, if there is one, followed by the program's own.

    A file is read only if it has changed. Raises BadPrices, and OSError if the file cannot be read.
    """
    lists = [_file(OWN, *_stamp(OWN))]
    if path is not None and path.exists():
        lists.insert(0, _file(path, *_stamp(path)))
    return PriceList(tuple(lists))


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=8)
def _file(path: Path, modified: int, size: int) -> tuple[Price, ...]:
    if size > SIZE_MAX:
        raise BadPrices(str(path), [Fault(1, f"it has {size} bytes; {SIZE_MAX} are the most.")])
    return read(path.read_text(encoding="utf-8", errors="replace"), str(path))
