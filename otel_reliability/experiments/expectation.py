"""Expectations: what the output of an attempt must be."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from otel_reliability.errors import ConfigurationError


class Expectation(NamedTuple):
    """A rule (`equals`, `contains`, `matches` or `json`) and the value it compares with."""

    rule: str
    value: Any

    def holds(self, output: str) -> bool:
        """Return whether an output meets it; white space around the output does not count.

        >>> Expectation("equals", "42").holds(" 42 ")
        True
        >>> Expectation("json", {"total": 3}).holds('{"total": 3, "currency": "EUR"}')
        True
        """
        return _RULES[self.rule](output.strip(), self.value)


def expectation_of(place: str, value: object) -> Expectation | None:
    """Read the field `expect` of a task: a text that the output must equal, or an object with one
    rule. Raises `ConfigurationError`.

    >>> expectation_of("tasks, task 1", {"matches": "refunded: [0-9]+"})
    Expectation(rule='matches', value='refunded: [0-9]+')
    """
    if value is None or value == "":
        return None
    if not isinstance(value, Mapping):
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return Expectation("equals", text.strip())
    rules = cast("Mapping[str, Any]", value)
    if len(rules) != 1 or next(iter(rules)) not in _RULES:
        raise ConfigurationError(
            f"{place}, expect",
            dict(rules),
            f"an object with one of {', '.join(_RULES)}",
            'write it like {"contains": "done"}',
        )
    [(rule, wanted)] = rules.items()
    if rule != "json" and not isinstance(wanted, str):
        raise ConfigurationError(f"{place}, expect.{rule}", wanted, "a text", "put it in quotes")
    if rule == "matches":
        try:
            re.compile(wanted)
        except re.error as error:
            allowed = f"a regular expression ({error})"
            raise ConfigurationError(f"{place}, expect", wanted, allowed, "correct it") from None
    return Expectation(rule, wanted.strip() if rule == "equals" else wanted)


def is_within(wanted: object, found: object) -> bool:
    """Return whether every member of `wanted` is in `found`; lists are compared item by item.

    >>> is_within({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": 2}], "d": 3}), is_within(1, True)
    (True, False)
    """
    if isinstance(wanted, Mapping):
        inner = cast("Mapping[str, object]", wanted)
        if not isinstance(found, Mapping):
            return False
        other = cast("Mapping[str, object]", found)
        return all(key in other and is_within(inner[key], other[key]) for key in inner)
    if isinstance(wanted, list):
        items = cast("Sequence[object]", wanted)
        if not isinstance(found, list):
            return False
        others = cast("Sequence[object]", found)
        return len(items) == len(others) and all(map(is_within, items, others))
    return wanted == found and isinstance(wanted, bool) == isinstance(found, bool)


def _holds_json(output: str, wanted: object) -> bool:
    try:
        return is_within(wanted, json.loads(output))
    except ValueError:
        return False


_RULES: Final[Mapping[str, Callable[[str, Any], bool]]] = {
    "equals": lambda output, wanted: output == wanted,
    "contains": lambda output, wanted: wanted in output,
    "matches": lambda output, wanted: re.search(wanted, output) is not None,
    "json": _holds_json,
}
