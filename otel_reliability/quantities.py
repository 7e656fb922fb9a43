"""What a setting can be, as types: `linger: Seconds`, `span_limit: Count`, `min_coverage: Points`.

To a type checker `Seconds` is a float. What is allowed, how it is written and how it is read from text rides on the type, as a
`Rule`; `loading.py` finds it there. Text is accepted wherever a value is, because environment variables are text.
"""

from __future__ import annotations

import difflib
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

A_FEW: Final = 12
"""Words that a message can list."""


class Rule(ABC):
    """What one kind of value may be. `allowed` completes "… is not", `remedy` says what to do instead."""

    @property
    @abstractmethod
    def allowed(self) -> str:
        """What is allowed."""

    @property
    @abstractmethod
    def remedy(self) -> str:
        """How to write it."""

    @abstractmethod
    def read(self, raw: object) -> object:
        """The value; ValueError or TypeError where it is not allowed."""

    def write(self, value: object) -> str:
        """The value as a user would write it: `read` gives it back."""
        return str(value)

    def shown(self, raw: object) -> object:
        """What a message may show of a value that is not allowed."""
        return raw

    def advice(self, raw: object) -> str:
        """The remedy for this very value."""
        del raw
        return self.remedy


def nearest(word: str, words: Iterable[str]) -> str:
    """What might have been meant, as a remedy.

    >>> nearest("lingr", ["linger", "reopen"])
    'the nearest is linger'
    >>> nearest("wait", ["linger", "reopen"])
    'take one of linger, reopen'
    """
    known = list(words)
    found = difflib.get_close_matches(word, known, n=3)
    if not found and len(known) <= A_FEW:
        return f"take one of {', '.join(known)}"
    found = found or difflib.get_close_matches(word, known, n=3, cutoff=0.0)
    return f"the nearest {'are' if len(found) > 1 else 'is'} {', '.join(found)}"


def _number(raw: object) -> float:
    """A finite number, also as text. A boolean is none, though Python says it is."""
    if isinstance(raw, bool) or not isinstance(raw, int | float | str):
        raise TypeError
    value = float(raw)
    if not math.isfinite(value):
        raise ValueError
    return value


@dataclass(frozen=True, slots=True)
class Real(Rule):
    """A number within bounds.

    >>> Real(0, 1).allowed
    'a number from 0 to 1'
    """

    least: float | None = None
    most: float | None = None

    @property
    def noun(self) -> str:
        return "a number"

    @property
    def allowed(self) -> str:
        if self.most is not None:
            return f"{self.noun} from {self.least} to {self.most}"
        return self.noun if self.least is None else f"{self.noun} of at least {self.least}"

    @property
    def remedy(self) -> str:
        return f"write it like {self.write(self._example())}"

    def _example(self) -> float:
        if self.least is not None and self.most is not None:
            return (self.least + self.most) / 2
        return 1 if self.least is None else self.least

    def read(self, raw: object) -> float:
        return self._bounded(_number(raw))

    def _bounded(self, value: float) -> float:
        if (self.least is not None and value < self.least) or (self.most is not None and value > self.most):
            raise ValueError
        return value

    def write(self, value: object) -> str:
        return str(value).removesuffix(".0")


@dataclass(frozen=True, slots=True)
class Whole(Real):
    """A whole number within bounds.

    >>> Whole(1).read("1_000")
    1000
    """

    @property
    def noun(self) -> str:
        return "a whole number"

    def read(self, raw: object) -> int:
        value = int(raw) if isinstance(raw, str) else _number(raw)
        if value != int(value):
            raise ValueError
        return int(self._bounded(value))


@dataclass(frozen=True, slots=True)
class Scaled(Rule):
    """A number in units, such as `1h30m` or `512MiB`; a plain number is in the base unit."""

    noun: str
    example: str
    base: str
    units: tuple[tuple[str, int], ...]
    """(unit, its size), smallest first."""
    per_base: int = 1
    """The size of the base unit."""
    whole: bool = False

    @property
    def allowed(self) -> str:
        return self.noun

    @property
    def remedy(self) -> str:
        return f"write it like {self.example}, or as a number of {self.base}, from 0"

    def read(self, raw: object) -> float:
        value = _number(self._sum(raw) if isinstance(raw, str) and not raw.strip()[-1:].isdigit() else raw)
        if value < 0 or (self.whole and value != int(value)):
            raise ValueError
        return int(value) if self.whole else value

    def _sum(self, text: str) -> float:
        sizes = dict(self.units)
        part = rf"(\d+(?:\.\d+)?)\s*({'|'.join(sizes)})"
        if not re.fullmatch(rf"(?:{part}\s*)+", text.strip()):
            raise ValueError
        return sum(float(number) * sizes[unit] for number, unit in re.findall(part, text)) / self.per_base

    def write(self, value: object) -> str:
        """In the fewest words that `read` understands exactly.

        >>> DURATION.write(5400.0), DURATION.write(0.25), SIZE.write(512 * 1024 * 1024)
        ('1h30m', '250ms', '512MiB')
        """
        left, words = round(_number(value) * self.per_base), ""
        for unit, size in reversed(self.units):
            count, left = divmod(left, size)
            words += f"{count}{unit}" if count else ""
        return words if words and self.read(words) == value else Real().write(value)


DURATION: Final = Scaled(
    "a duration",
    "10m, 1h30m or 250ms",
    "seconds",
    (("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)),
    per_base=1_000,
)
SIZE: Final = Scaled(
    "a size", "64KiB or 512MiB", "bytes", (("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)), whole=True
)


@dataclass(frozen=True, slots=True)
class Boolean(Rule):
    """true or false, as text too."""

    @property
    def allowed(self) -> str:
        return "true or false"

    @property
    def remedy(self) -> str:
        return "write true or false"

    def read(self, raw: object) -> bool:
        return raw if isinstance(raw, bool) else {"true": True, "false": False}[str(raw).strip().lower()]

    def write(self, value: object) -> str:
        return str(value).lower()


@dataclass(frozen=True, slots=True)
class Text(Rule):
    """Some text. A number is none: YAML reads `1.10` as 1.1."""

    @property
    def allowed(self) -> str:
        return "a text"

    @property
    def remedy(self) -> str:
        return "write some text, in quotation marks if it looks like a number"

    def read(self, raw: object) -> str:
        if not isinstance(raw, str):
            raise TypeError
        if not raw.strip():
            raise ValueError
        return raw.strip()


@dataclass(frozen=True, slots=True)
class OneOf(Text):
    """One of a few words."""

    words: tuple[str, ...]

    @property
    def allowed(self) -> str:
        return f"one of {', '.join(self.words)}"

    def read(self, raw: object) -> str:
        if raw not in self.words:
            raise ValueError
        return str(raw)

    def advice(self, raw: object) -> str:
        return nearest(str(raw), self.words)


@dataclass(frozen=True, slots=True)
class Expression(Text):
    """A regular expression."""

    @property
    def allowed(self) -> str:
        return "a regular expression"

    def advice(self, raw: object) -> str:
        return f"{_fault(raw)}; write it as for Python's re, with \\ before a sign that stands for itself"

    def read(self, raw: object) -> str:
        if not isinstance(raw, str) or _fault(raw):
            raise ValueError
        return raw


def _fault(raw: object) -> str:
    """Where a regular expression goes wrong; empty where it does not."""
    try:
        re.compile(str(raw))
    except re.error as error:
        return str(error)
    return "" if raw else "it is empty"


@dataclass(frozen=True, slots=True)
class Secret(Text):
    """Hexadecimal digits that no message shows."""

    least: int = 32

    @property
    def allowed(self) -> str:
        return f"an even number of hexadecimal digits, {self.least} or more"

    @property
    def remedy(self) -> str:
        return "make one with `python -c 'import secrets; print(secrets.token_hex())'`"

    def read(self, raw: object) -> str:
        text = Text.read(self, raw)
        if len(bytes.fromhex(text)) * 2 < self.least:
            raise ValueError
        return text

    def shown(self, raw: object) -> object:
        return f"({len(str(raw))} characters, not shown)"


Seconds: TypeAlias = Annotated[float, DURATION]
Bytes: TypeAlias = Annotated[int, SIZE]
Count: TypeAlias = Annotated[int, Whole(1)]
Share: TypeAlias = Annotated[float, Real(0, 1)]
Points: TypeAlias = Annotated[float, Real(0, 100)]
Weight: TypeAlias = Annotated[float, Real(0)]
Regex: TypeAlias = Annotated[str, Expression()]
HexKey: TypeAlias = Annotated[str, Secret()]
