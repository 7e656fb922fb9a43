"""Sketches: what a request is about, as a vector, from which its words cannot be read.

A sketch is the sum of what the pieces of the words mean. The table of meanings
(`word_pieces.npz`, made by `benchmarks/word_pieces.py` from the weights of all-MiniLM-L6-v2,
Apache-2.0) is loaded when the first sketch is made. It knows English. A text of which most words
are unknown to it is sketched by its letters, three at a time: texts that share words are alike,
texts that only share a meaning are not.

Words with digits, addresses and links are left out: they say whom a request is about, not what it
wants.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from otel_reliability.statistics.likeness import GREATEST, packed, unpacked

NUMBERS: Final = 256
"""Numbers of a sketch, half a byte each: as fine as it takes to distinguish requests."""
FIRST_WORDS: Final = 96
LAST_WORDS: Final = 32
"""Words of a text that count: the first and the last."""
MAX_HEAD: Final = 3_072
MAX_TAIL: Final = 1_024
"""Characters of a text in which these words are searched."""
MAX_WORD: Final = 40
"""Letters of a word; longer ones are none."""
MIN_KNOWN: Final = 0.5
"""Share of the words that must be in the table for the text to be read by it."""

_TABLE: Final = Path(__file__).with_name("word_pieces.npz")
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_masked: Final = re.compile(r"\d|@|://").search


class Table(NamedTuple):
    """The meanings of word pieces: for each a row of packed numbers, their unit, and the index of
    the row.
    """

    meanings: Any
    units: Any
    rows: dict[str, int]


@cache
def table() -> Table:
    """Return the table, which is read once."""
    import numpy as np  # noqa: PLC0415  attaching to a host must not import it

    with np.load(_TABLE) as file:
        pieces = file["pieces"].tobytes().decode("ascii").split("\n")
        units = file["units"].astype("float32")
        return Table(file["table"], units, {piece: row for row, piece in enumerate(pieces)})


def sketch_of(text: str) -> bytes | None:
    """Return the sketch of a text, `NUMBERS` numbers (`statistics.likeness.packed`). None where it
    has no word.

    >>> sketch_of("cancel my order") == sketch_of("Cancel my order #4711!")
    True
    >>> sketch_of("4711") is None
    True
    """
    words = words_of(text)
    if not words:
        return None
    meanings, units, known = table()
    if sum([word in known for word in words]) >= MIN_KNOWN * len(words):
        rows = [row for word in words for row in _pieces(word, known)]
        return _in_bytes(units[rows] @ unpacked(meanings[rows]))
    return _in_bytes(_by_letters(words))


def words_of(text: str) -> list[str]:
    """Return the words of a text that count, in lower case and without accents.

    >>> words_of("Où est ma commande n°12, bob@example.com?")
    ['ou', 'est', 'ma', 'commande']
    """
    if len(text) > MAX_HEAD + MAX_TAIL:
        text = f"{text[:MAX_HEAD]} {text[-MAX_TAIL:]}"
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text)
        text = "".join([letter for letter in text if not unicodedata.combining(letter)])
    found = [
        word
        for token in text.lower().split()
        if not _masked(token)
        for word in _LETTERS.findall(token)
        if len(word) <= MAX_WORD
    ]
    if len(found) <= FIRST_WORDS + LAST_WORDS:
        return found
    return found[:FIRST_WORDS] + found[-LAST_WORDS:]


def _pieces(word: str, known: dict[str, int]) -> list[int]:
    """Return the rows of the longest pieces that a word is made of, from its beginning; none where
    the table lacks one.
    """
    whole = known.get(word)
    if whole is not None:
        return [whole]
    found: list[int] = []
    start = 0
    while start < len(word):
        before = "##" if start else ""
        for end in range(len(word), start, -1):
            row = known.get(before + word[start:end])
            if row is not None:
                found.append(row)
                start = end
                break
        else:
            return []
    return found


def _by_letters(words: list[str]) -> Any:
    """Return a vector of the groups of three letters of some words: each adds to a number, or takes
    from it, by its hash.
    """
    import numpy as np  # noqa: PLC0415  see `table`

    total = np.zeros(NUMBERS, "int32")
    for word in words:
        padded = f"<{word}>"
        for at in range(len(padded) - 2):
            drawn = zlib.crc32(padded[at : at + 3].encode("utf-8", "surrogatepass"))
            total[drawn % NUMBERS] += 1 if drawn & (1 << 31) else -1
    return total


def _in_bytes(vector: Any) -> bytes | None:
    """Return a vector packed, its greatest number as 7; None where it is 0."""
    greatest = float(abs(vector).max())
    return packed((vector * (GREATEST / greatest)).round()).tobytes() if greatest else None
