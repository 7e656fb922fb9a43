"""The questions of the dashboards, with their variables filled in as Grafana fills them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

ROOT: Final = Path(__file__).resolve().parents[2]
SHIPPED: Final = ROOT / "otel_reliability" / "dashboards"
BOARDS: Final = ("fleet", "agent")
_VARIABLE: Final = re.compile(r"\$\{?(\w+)\}?")


class Asked(NamedTuple):
    """One query of one panel."""

    board: str
    panel: str
    ref: str
    expr: str
    instant: bool = False
    legend: str = ""
    exemplar: bool = False

    def __str__(self) -> str:
        return f"{self.board}: {self.panel} [{self.ref}]"


def board(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((SHIPPED / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


def panels(name: str) -> Iterator[dict[str, Any]]:
    """Every panel, those of folded rows too."""
    for panel in board(name)["panels"]:
        if panel["type"] == "row":
            yield from panel["panels"]
        else:
            yield panel


def questions() -> Iterator[Asked]:
    for name in BOARDS:
        for panel in panels(name):
            for target in panel["targets"]:
                yield Asked(
                    name,
                    panel["title"],
                    target["refId"],
                    target["expr"],
                    target.get("instant", False),
                    target.get("legendFormat", ""),
                    target.get("exemplar", False),
                )
        for annotation in board(name)["annotations"]["list"]:
            yield Asked(name, annotation["name"], "annotation", annotation["expr"])


def rules_in(text: str) -> list[dict[str, Any]]:
    """The rules of a file for Prometheus, or of one for Grafana."""
    return [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


def alerts_in(text: str) -> list[dict[str, Any]]:
    """The same, without what is only recorded."""
    return [rule for rule in rules_in(text) if "record" not in rule]


def filled(expr: str, interval: str = "1m", span: str = "1h", **chosen: str) -> str:
    """A question as Prometheus gets it. What nobody chose is everything.

    >>> filled('increase(a{b=~"$agent",c=~"$window"}[$__rate_interval])', agent="x")
    'increase(a{b=~"x",c=~".*"}[1m])'
    """
    known: Mapping[str, str] = {
        "__rate_interval": interval,
        "__interval": interval,
        "__range": span,
        **chosen,
    }
    every = re.sub(r'="\$', '=~"$', expr)
    return _VARIABLE.sub(lambda found: known.get(found[1], ".*"), every)
