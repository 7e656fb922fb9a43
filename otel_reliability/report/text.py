"""Numbers, names and times as people read them, the same in every format."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from otel_reliability.model.reading import MetricSpec
from otel_reliability.model.run import AgentKey

MINUS: Final = "−"
ABSENT: Final = "–"
ARROW: Final = " → "
LONGEST_NAME: Final = 60
POINTS: Final = "{points}"
"""The unit of a score of 0 to 100, as people see it."""
SECOND: Final = 1_000_000_000
_FORBIDDEN: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot hold, escaped or not."""


def clean(name: str, longest: int = LONGEST_NAME) -> str:
    r"""Return a name from telemetry that is safe to show: on one line, without control characters,
    of limited length.

    Names are input of the user's agents; a terminal would obey control characters in them. Signs
    that are invisible, and that may turn a line around (U+202E), are shown by their number.

    >>> clean("refund\x1b[2J\n tool"), clean("a" * 80, 6), clean("pay\u202eyap")
    ('refund·[2J· tool', 'aaaaa…', 'pay\\u202eyap')
    """
    shown = "".join(map(_visible, name))
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def _visible(sign: str) -> str:
    category = unicodedata.category(sign)
    if category == "Cf":
        return f"\\u{ord(sign):04x}"
    return "·" if category[0] == "C" else sign


def allowed(text: str) -> str:
    r"""Return the text with the characters replaced that XML cannot hold, escaped or not.

    >>> allowed("refund\x1b tool")
    'refund\ufffd tool'
    """
    return _FORBIDDEN.sub("\ufffd", text)


def agent_name(key: AgentKey) -> str:
    """Return the agent's name, as a title."""
    return clean(key.agent) or "(unnamed)"


def place(key: AgentKey) -> str:
    """Return where an agent runs: its service and environment, and its other identifying
    attributes.

    >>> place(AgentKey("acme", "shop", "prod", "support", (("service.version", "2"),)))
    'acme / shop · prod · service.version 2'
    """
    service = " / ".join(clean(part) for part in (key.service_namespace, key.service_name) if part)
    extra = (f"{clean(name)} {clean(value)}" for name, value in key.extra)
    return " · ".join(part for part in (service, clean(key.environment), *extra) if part)


def trace_of(run_id: str) -> str:
    """Return the trace id of a run, to paste into a tracing backend.

    >>> trace_of("5f35601083fc1096a1c24d4bf8676dea-d00910405fb855f5")
    '5f35601083fc1096a1c24d4bf8676dea'
    """
    return run_id.partition("-")[0]


def number(value: float | None, unit: str = "{ratio}") -> str:
    """Return a value in as many digits as mean something: shares with three decimals, points with
    one, counts as they are.

    >>> [number(value) for value in (0.56499, 1.0, None)]
    ['0.565', '1.000', '–']
    >>> (
    ...     number(128.0, "{path}"),
    ...     number(0.085, "{retry}"),
    ...     number(99.96, "{points}"),
    ...     number(0.00743, "s"),
    ... )
    ('128', '0.085', '100.0', '7.43 ms')
    """
    if value is None:
        return ABSENT
    if unit == "s":
        return seconds(value)
    if unit == "{usd}":
        return dollars(value)
    if unit == "{ratio}":
        return f"{value:.3f}"
    return f"{value:.1f}" if unit == POINTS else grouped(value)


def measured(spec: MetricSpec, value: float | None) -> str:
    """Return a metric's value.

    >>> from otel_reliability.metrics import ALL_SPECS
    >>> [
    ...     measured(ALL_SPECS[name], value)
    ...     for name, value in (("path_entropy", 0.5), ("score", 38.54), ("loops", 2.0))
    ... ]
    ['0.500', '38.5', '2']
    """
    if spec.unit == "{score}":
        return number(value, POINTS if spec.high == 100 else "{ratio}")
    return number(value, spec.unit)


def dollars(value: float | None) -> str:
    """Return an amount of US dollars: cents from a dollar on, two digits below.

    >>> dollars(1234.5), dollars(0.01234), dollars(0.0), dollars(0.000042), dollars(None)
    ('$1,234.50', '$0.012', '$0', 'below $0.0001', '–')
    """
    if value is None:
        return ABSENT
    if 0 < value < 0.0001:
        return "below $0.0001"
    return f"${value:,.2f}" if value >= 1 else f"${value:.2g}"


def grouped(value: float) -> str:
    """Return a count or an amount, with four digits and thousands apart.

    >>> grouped(1164), grouped(1.58357), grouped(123456.7), grouped(0.0)
    ('1,164', '1.584', '123,457', '0')
    """
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def seconds(value: float) -> str:
    """Return a duration.

    >>> seconds(0.00743), seconds(2.5), seconds(190), seconds(0), seconds(93_784)
    ('7.43 ms', '2.5 s', '3 min 10 s', '0 s', '1 d 2 h')
    """
    if 0 < value < 1:
        return f"{value * 1e3:.3g} ms"
    if value < 60:
        return f"{value:.3g} s"
    sizes = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    left = round(value)
    parts = list[str]()
    for unit, size in sizes:
        count, left = divmod(left, size)
        if count or parts:
            parts.append(f"{count} {unit}")
    return " ".join(part for part in parts[:2] if not part.startswith("0 "))


def percent(share: float) -> str:
    """Return a share in whole percents, but never 0 % for something, nor 100 % for less than all.

    >>> percent(0.424), percent(0.004), percent(0.999), percent(1.0)
    ('42 %', '<1 %', '>99 %', '100 %')
    """
    whole = round(share * 100)
    if 0 < share < 1 and whole in {0, 100}:
        return ">99 %" if whole else "<1 %"
    return f"{whole} %"


def share(value: float | None) -> str:
    """Return a share in percent, or the sign of an absent value.

    >>> share(0.5), share(None)
    ('50 %', '–')
    """
    return ABSENT if value is None else percent(value)


def count(amount: int, noun: str) -> str:
    """Return an amount with its noun.

    >>> count(1, "run"), count(1200, "run"), count(2, "retry"), count(2, "success")
    ('1 run', '1,200 runs', '2 retries', '2 successes')
    """
    many = noun[:-1] + "ies" if noun.endswith("y") else noun + ("es" if noun.endswith("s") else "s")
    return f"{amount:,} {noun if amount == 1 else many}"


def listed(names: Iterable[str], most: int = 4, separator: str = ", ") -> str:
    """Return some names, and how many more.

    >>> listed("abcdef"), listed("ab")
    ('a, b, c, d and 2 more', 'a, b')
    """
    every = list(names)
    rest = len(every) - most
    return separator.join(every[:most]) + (f" and {rest} more" if rest > 0 else "")


def route(steps: Sequence[str], most: int = 5) -> str:
    """Return steps of a path, the last ones of a long one.

    >>> route(["search", "read"]), route("abcdefg")
    ('search → read', '… → c → d → e → f → g')
    """
    shown = [clean(step, 40) for step in steps]
    return ARROW.join(shown if len(shown) <= most else ["…", *shown[-most:]])


def instant(ns: int) -> str:
    """Return a Unix time in RFC 3339, all nine decimals of it.

    >>> instant(1_700_000_000_000_000_001)
    '2023-11-14T22:13:20.000000001Z'
    """
    whole, rest = divmod(ns, SECOND)
    return f"{datetime.fromtimestamp(whole, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09}Z"


def span_of_time(start_ns: int, end_ns: int) -> str:
    """Return a period in UTC, without repeating its date.

    >>> start = 1_700_000_000 * SECOND
    >>> span_of_time(start, start + 90 * SECOND)
    '2023-11-14 22:13 to 22:14 UTC'
    >>> span_of_time(start, start + 86_400 * SECOND)
    '2023-11-14 22:13 to 2023-11-15 22:13 UTC'
    """
    start, end = (datetime.fromtimestamp(ns // SECOND, UTC) for ns in (start_ns, end_ns))
    until = f"{end:%H:%M}" if start.date() == end.date() else f"{end:%Y-%m-%d %H:%M}"
    return (
        f"{start:%Y-%m-%d %H:%M} to {until} UTC"
        if f"{start:%H:%M}" != until
        else f"{start:%Y-%m-%d %H:%M} UTC"
    )


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    each.__name__: each
    for each in (
        agent_name,
        clean,
        count,
        dollars,
        grouped,
        instant,
        number,
        percent,
        place,
        route,
        seconds,
        share,
        trace_of,
    )
}
"""The functions that templates of pages and Markdown use as filters, by their own names. `count`
replaces Jinja's.
"""
