"""Letters for prompts and tool definitions that have no name.

Their hashes depend on the key of the process, so they name nothing that a user could find again.
Letters follow the order of first appearance, so they are the same in every invocation on the same
recording. What a run has several of is one value: their order would be that of the hashes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from otel_reliability.model.run import HASHED, is_hashed

Fingerprints: TypeAlias = tuple[tuple[str, str], ...]
MAX_VALUES: Final = 1_000
"""Values without a name that get a letter; beyond, hashes stay."""


def letter(number: int) -> str:
    """Return the letter of a number from 0, like the columns of a spreadsheet.

    >>> letter(0), letter(25), letter(26)
    ('A', 'Z', 'AA')
    """
    text = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("A") + rest) + text
    return text


class Letters:
    """The values without a name of some runs, by when they appeared first.

    >>> letters = Letters()
    >>> letters.add((("prompt", "00c0ffee00c0ffee"),), 2, "run-2")
    >>> letters.add((("prompt", "f00df00df00df00d"),), 1, "run-1")
    >>> letters.of((("model", "m"), ("prompt", "00c0ffee00c0ffee")))
    (('model', 'm'), ('prompt', 'B'))
    """

    def __init__(self) -> None:
        self._first: dict[tuple[str, str], tuple[int, str]] = {}
        self._letters: Mapping[tuple[str, str], str] | None = None

    def add(self, fingerprints: Fingerprints, start_ns: int, run_id: str) -> None:
        """Add a run that has these fingerprints."""
        seen = start_ns, run_id
        for value in _nameless(fingerprints):
            known = self._first.get(value)
            if (known is None and len(self._first) < MAX_VALUES) or (known and seen < known):
                self._first[value] = seen
                self._letters = None

    def of(self, fingerprints: Fingerprints) -> Fingerprints:
        """Return fingerprints with letters in the place of hashes."""
        letters = self._by_value()
        found = {value: letters[value] for value in _nameless(fingerprints) if value in letters}
        if not found:
            return fingerprints
        kinds = {kind for kind, _ in found}
        rest = [pair for pair in fingerprints if pair[0] not in kinds]
        return tuple(sorted([*rest, *((kind, name) for (kind, _), name in found.items())]))

    def _by_value(self) -> Mapping[tuple[str, str], str]:
        if self._letters is None:
            numbers = Counter[str]()
            letters: dict[tuple[str, str], str] = {}
            for value in sorted(self._first, key=self._first.__getitem__):
                letters[value] = letter(numbers[value[0]])
                numbers[value[0]] += 1
            self._letters = letters
        return self._letters


def _nameless(fingerprints: Fingerprints) -> Iterable[tuple[str, str]]:
    """Yield each kind of which a run has values without a name, and these values."""
    for kind in sorted(HASHED):
        value = ", ".join([each for of, each in fingerprints if of == kind])
        if is_hashed(kind, value):
            yield kind, value
