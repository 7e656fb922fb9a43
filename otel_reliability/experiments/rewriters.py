"""Rewriters: other forms of an input that mean the same. They are deterministic, so that an
experiment can be repeated.

Words with digits, signs or capitals inside (order numbers, addresses, names of files) stay as they
are: another form of them would be another task.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any, Final, TypeAlias, cast

from otel_reliability.errors import ConfigurationError

Rewriter: TypeAlias = Callable[[str], str]

_PLAIN_WORD: Final = re.compile(r"(?<![^\s(\"'])[A-Z]?[a-z]+(?=[\s.,;:!?)\"']|$)")
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+")
_DATE: Final = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_LINKED: Final = re.compile(
    r"\b(then|after|before|first|next|finally|it|its|this|that|these|they|them|also|but|so)\b",
    re.IGNORECASE,
)
"""Words by which a sentence depends on the one before it."""
LINE_BREAK: Final = "\n"
LEAST_LETTERS: Final = 5
"""Letters of a word that is misspelled."""
EVERY: Final = 4
"""Of these words, every so many is misspelled."""
WRITING_S: Final = 120.0
"""Seconds that a command may take to write the forms of one input."""


def spacing(text: str) -> str:
    """Return the text with two spaces between words, and a line break at its end.

    >>> spacing("Refund order 7").removesuffix(LINE_BREAK)
    'Refund  order  7'
    """
    return text.replace(" ", "  ") + LINE_BREAK


def case(text: str) -> str:
    """Return the text with plain words in lower case.

    >>> case("Refund order A7 for Ann")
    'refund order A7 for ann'
    """
    return _PLAIN_WORD.sub(lambda found: found[0].lower(), text)


def typing_errors(text: str) -> str:
    """Return the text with two letters exchanged in every fourth long word, the first one included.

    >>> typing_errors("Please refund order A7")
    'Plaese refund order A7'
    """
    seen = 0

    def misspelled(found: re.Match[str]) -> str:
        nonlocal seen
        word = found[0]
        if len(word) < LEAST_LETTERS:
            return word
        seen += 1
        middle = len(word) // 2
        swapped = word[: middle - 1] + word[middle] + word[middle - 1] + word[middle + 1 :]
        return swapped if seen % EVERY == 1 else word

    return _PLAIN_WORD.sub(misspelled, text)


def politeness(text: str) -> str:
    """Return the text as a polite request.

    >>> politeness("Refund order 7.")
    'Hello, please help me with this: Refund order 7. Thank you!'
    """
    return f"Hello, please help me with this: {text} Thank you!"


def sentence_order(text: str) -> str:
    """Return the text with its sentences the other way round, unless one depends on another.

    >>> sentence_order("I am Ann. Refund order 7.")
    'Refund order 7. I am Ann.'
    """
    sentences = _SENTENCE.split(text.strip())
    return text if _LINKED.search(text) else " ".join(reversed(sentences))


def dates(text: str) -> str:
    """Return the text with ISO dates written out.

    >>> dates("Book 2026-01-31")
    'Book 31 January 2026'
    """

    def written(found: re.Match[str]) -> str:
        try:
            day = date(*map(int, found.groups()))
        except ValueError:
            return found[0]
        return f"{day.day} {day:%B %Y}"

    return _DATE.sub(written, text)


# --- JSON -----------------------------------------------------------------------------------------


def key_order(text: str) -> str:
    """Return the JSON with the members of objects the other way round.

    >>> key_order('{"id": 7, "name": "Ann"}')
    '{"name": "Ann", "id": 7}'
    """
    return _dumped(_mapped(json.loads(text), lambda pairs: list(reversed(pairs))))


def naming_style(text: str) -> str:
    """Return the JSON with keys in camelCase instead of snake_case, and the other way round.

    >>> naming_style('{"order_id": 7, "firstName": "Ann"}')
    '{"orderId": 7, "first_name": "Ann"}'
    """
    return _dumped(
        _mapped(json.loads(text), lambda pairs: [(_renamed(key), value) for key, value in pairs])
    )


def nesting(text: str) -> str:
    """Return the JSON one level deeper.

    >>> nesting('{"id": 7}')
    '{"data": {"id": 7}}'
    """
    return _dumped({"data": json.loads(text)})


def indentation(text: str) -> str:
    """Return the JSON on several lines."""
    return json.dumps(json.loads(text), ensure_ascii=False, indent=2)


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _mapped(value: object, change: Callable[[list[tuple[str, Any]]], list[tuple[str, Any]]]) -> Any:
    if isinstance(value, Mapping):
        inner = cast("Mapping[str, object]", value)
        return dict(change([(key, _mapped(each, change)) for key, each in inner.items()]))
    if isinstance(value, list):
        return [_mapped(each, change) for each in cast("list[object]", value)]
    return value


def _renamed(key: str) -> str:
    if "_" in key:
        first, *rest = key.split("_")
        return first + "".join(part.capitalize() for part in rest)
    return re.sub(r"(?<=[a-z0-9])[A-Z]", lambda found: "_" + found[0].lower(), key)


REWRITERS: Final[Mapping[str, Sequence[Rewriter]]] = {
    "prompt": (case, typing_errors, politeness, spacing, sentence_order, dates),
    "structure": (key_order, naming_style, indentation, nesting),
}
"""The rewriters of each condition, in the order in which the trials of a task use them."""


def variants_of(condition: str, task_id: str, text: str) -> list[str]:
    """Return the other forms of an input, each once. Raises `ConfigurationError` where there is
    none.
    """
    try:
        made = [rewrite(text) for rewrite in REWRITERS[condition]]
    except ValueError:
        raise ConfigurationError(
            f"task {task_id}", text[:40], "JSON", "give it an input in JSON, or its own variants"
        ) from None
    found = [each for each in dict.fromkeys(made) if each != text]
    if not found:
        raise ConfigurationError(
            f"task {task_id}", text[:40], f"an input with a variant of its {condition}", "add one"
        )
    return found


def written_variants(command: Sequence[str], task_id: str, text: str) -> list[str]:
    """Return the other forms of an input that a command of the user prints, one a line: as text, or
    as a JSON string where it has line breaks. The command gets `{"id", "input"}` on standard input.

    Raises `ConfigurationError` if it cannot be started, fails, or prints none.
    """
    place = f"--vary-with, task {task_id}"
    given = json.dumps({"id": task_id, "input": text})
    try:
        done = subprocess.run(  # noqa: S603  the command is the user's
            command, input=given, capture_output=True, text=True, timeout=WRITING_S, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ConfigurationError(
            place, " ".join(command), "a command that exits with 0", str(error)
        ) from None
    lines = [_unquoted(line) for line in done.stdout.splitlines() if line.strip()]
    found = [line for line in dict.fromkeys(lines) if line != text]
    if not found:
        raise ConfigurationError(
            place, done.stdout[:40], "another form of the input", "print one a line"
        )
    return found


def _unquoted(line: str) -> str:
    """Return a line as text; a JSON string is unquoted.

    >>> _unquoted('"Refund 7"'), _unquoted("Refund 8")
    ('Refund 7', 'Refund 8')
    """
    try:
        found: object = json.loads(line)
    except ValueError:
        return line
    return found if isinstance(found, str) else line
