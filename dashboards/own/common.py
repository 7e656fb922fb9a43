"""What the rows of Self are made with: the instances chosen, and what came to them."""

from __future__ import annotations

from typing import Final

from dashboards.promql import increase, sample_of
from otel_reliability.telemetry.names import Instrument

HERE: Final = 'instance=~"$instance"'


NOTHING: Final = "None in this time"


def now(spec: Instrument, selector: str = "", by: str = "") -> str:
    """The value now, over the instances chosen."""
    told = f"{HERE},{selector}" if selector else HERE
    return f"sum{f' by ({by})' if by else ''} ({sample_of(spec)}{{{told}}})"


def came(spec: Instrument, by: str = "", selector: str = "", over: str = "$__rate_interval") -> str:
    """What came in each interval."""
    told = f"{HERE},{selector}" if selector else HERE
    return f"sum{f' by ({by})' if by else ''} ({increase(spec, told, over)})"
