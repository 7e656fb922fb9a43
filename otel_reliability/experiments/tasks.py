"""The file of tasks: JSON lines, CSV or YAML, one task an entry."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from otel_reliability.errors import ConfigurationError, SourceError
from otel_reliability.experiments.expectation import Expectation, expectation_of

FIELDS: Final = frozenset({"id", "input", "expect", "variants"})
"""Fields of a task."""
EXAMPLE: Final = '{"id": "refund-7", "input": "Refund order 7", "expect": {"contains": "done"}}'


class Task(NamedTuple):
    """A task: its id, the text that the agent gets, and what its output must be."""

    id: str
    input: str
    expectation: Expectation | None = None
    variants: tuple[str, ...] = ()
    """Other forms of the input that mean the same, for `--vary prompt`."""


def read_tasks(path: Path) -> list[Task]:
    """Read a file of tasks. Raises `SourceError` if it cannot be opened or parsed, and
    `ConfigurationError` for an entry that is no task.
    """
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise ConfigurationError(
            "TASKS", path.name, "a .jsonl, .csv or .yaml file", "give it one of these endings"
        )
    try:
        entries = reader(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path} cannot be read: {error}") from None
    except ValueError as error:
        raise SourceError(f"{path} cannot be parsed: {error}") from None
    return _tasks(path.name, entries)


def _tasks(name: str, entries: Iterable[object]) -> list[Task]:
    found: dict[str, Task] = {}
    for number, entry in enumerate(entries, 1):
        place = f"{name}, task {number}"
        task = _task(place, entry, number)
        if task.id in found:
            raise ConfigurationError(place, task.id, "an id of its own", "give each task one id")
        found[task.id] = task
    if not found:
        raise ConfigurationError("TASKS", name, "a file with tasks", f"write one like {EXAMPLE}")
    return list(found.values())


def _task(place: str, entry: object, number: int) -> Task:
    if not isinstance(entry, Mapping):
        raise ConfigurationError(place, entry, "an object", f"write it like {EXAMPLE}")
    fields = cast("Mapping[str, Any]", entry)
    for field in fields:
        if field not in FIELDS:
            raise ConfigurationError(
                place, field, f"a field of a task ({', '.join(sorted(FIELDS))})", "remove it"
            )
    if fields.get("input") is None:
        raise ConfigurationError(place, dict(fields), "a task with an input", f"like {EXAMPLE}")
    given = fields["input"]
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    id_ = fields.get("id")
    return Task(
        str(number) if id_ is None or id_ == "" else str(id_),
        text,
        expectation_of(place, fields.get("expect")),
        _variants(place, fields.get("variants")),
    )


def _variants(place: str, value: object) -> tuple[str, ...]:
    if value is None or value == "":
        return ()
    items: list[object] = [None]
    if isinstance(value, list):
        items = cast("list[object]", value)
    texts = [item for item in items if isinstance(item, str)]
    if len(texts) < len(items):
        raise ConfigurationError(f"{place}, variants", items, "a list of texts", "write them so")
    return tuple(texts)


def _lines(text: str) -> list[object]:
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def _csv(text: str) -> list[object]:
    return list(csv.DictReader(text.splitlines(keepends=True), strict=True))


def _yaml(text: str) -> list[object]:
    import yaml  # noqa: PLC0415  the other formats need no package

    try:
        found: object = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
    if not isinstance(found, list):
        raise ValueError("it is no list of tasks")  # noqa: TRY004  it becomes a `SourceError`
    return cast("list[object]", found)


_READERS: Final[Mapping[str, Callable[[str], list[object]]]] = {
    ".jsonl": _lines,
    ".csv": _csv,
    ".yaml": _yaml,
    ".yml": _yaml,
}
