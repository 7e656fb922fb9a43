"""The demo's fleet at a real service whose clock is wound, round by round, and what Prometheus gets to see of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from otel_reliability.model.span import RawSpan, Resource
from otel_reliability.sources.otlp_write import logs_json
from otel_reliability.testing import SECOND, traces_protobuf
from tests.demo.bookshop import ROUND, Bookshop
from tests.demo.fleet import ROUNDS
from tests.service.running import JSON, Running

OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0"
_SAMPLE: Final = re.compile(r"^(\S+?(?:\{.*\})?) (\S+)(?: # .*)?$")


class Shop:
    """The fleet, in step with the clock of a service: each round happens when the clock says so."""

    def __init__(self, running: Running, *, seed: int = 7, version: str | None = None) -> None:
        self._running, self._version = running, version
        begun_ns = running.clock.wall()
        self._shop = Bookshop(seed, wall=lambda: begun_ns + ROUNDS * ROUND * SECOND, clock=running.clock)
        self._begun_ns = begun_ns
        self.rounds = 0

    def round(self, seconds: float = ROUND) -> None:
        """One turn of every agent, and the time that passes with it."""
        played_ns = self._begun_ns + min(self.rounds, ROUNDS) * ROUND * SECOND
        later_ns = self._running.clock.wall() - played_ns
        self._shop.round()
        self.rounds += 1
        self._running.clock.advance(seconds)
        self._send(later_ns)
        self._running.writer_came_round()

    def _send(self, later_ns: int) -> None:
        ended, judged = self._shop.ended()
        spans = [self._told(span, later_ns) for span in ended]
        judgements = [one._replace(time_ns=one.time_ns + later_ns) for one in judged]
        assert self._running.post("traces", traces_protobuf(spans)).status == 200
        if judgements:
            body = json.dumps(logs_json(judgements)).encode()
            assert self._running.post("logs", body, JSON).status == 200

    def _told(self, span: RawSpan, later_ns: int) -> RawSpan:
        moved = span._replace(start_ns=span.start_ns + later_ns, end_ns=span.end_ns + later_ns)
        if self._version is None:
            return moved
        return moved._replace(resource=Resource.of({**span.resource.attributes, "service.version": self._version}))


def stamped(running: Running, others: Mapping[str, str]) -> Iterator[str]:
    """One scrape of the service, as it would stand in a store: at its clock's time, with the labels of the scraper."""
    at = f"{running.clock.wall() / 1e9:.3f}"
    extra = ",".join(f'{label}="{value}"' for label, value in others.items())
    for line in running.get("metrics", "/metrics", Accept=OPENMETRICS).text.splitlines():
        if line.startswith("# TYPE"):
            yield line
        elif not line.startswith("#"):
            found = _SAMPLE.match(line)
            assert found, line
            yield f"{_with(found[1], extra)} {found[2]} {at}"


def _with(series: str, extra: str) -> str:
    return f"{series[:-1]},{extra}}}" if series.endswith("}") else f"{series}{{{extra}}}"


def one_family_at_a_time(scrapes: Sequence[Sequence[str]]) -> Iterator[str]:
    """Many scrapes as one text: families in turn, each with all its samples, as the format asks."""
    families: dict[str, list[str]] = {}
    for scrape in scrapes:
        lines: list[str] = []
        for line in scrape:
            if line.startswith("#"):
                lines = families.setdefault(line, [])
            else:
                lines.append(line)
    for head, lines in families.items():
        yield head
        yield from lines
    yield "# EOF"


def written(path: Path, scrapes: Sequence[Sequence[str]]) -> Path:
    """The text as a file for `promtool tsdb create-blocks-from openmetrics`."""
    path.write_text("\n".join(one_family_at_a_time(scrapes)) + "\n", encoding="utf-8")
    return path


def play(
    running: Running,
    rounds: int,
    seconds: float,
    seen: Callable[[], None],
    *,
    seed: int = 7,
    version: str | None = None,
) -> None:
    """Let the fleet act for so many rounds, and look after each."""
    shop = Shop(running, seed=seed, version=version)
    for _ in range(rounds):
        shop.round(seconds)
        seen()
