"""The recorded fleet, replayed as if it happened now: OTLP-JSON for a service, a Collector, or a
file.

The recording holds the spans of ten agents of a bookshop under the OpenTelemetry SDK, round by
round, and the evaluations of their runs; each agent has a character that its numbers must show.
tests/demo/recording.py writes it.
"""

from __future__ import annotations

import gzip
import json
import logging
import re
import secrets
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.error import HTTPError
from urllib.parse import urlsplit

RECORDING: Final = Path(__file__).with_name("spans.jsonl.gz")
SERVICE: Final = "bookshop"
CHANGING: Final = "triage"
"""The agent that changes half-way."""
SECOND: Final = 1_000_000_000
ROUND_NS: Final = 25 * SECOND
"""Nanoseconds from one round of the recording to the next."""
LATE_AFTER_S: Final = 3.0
"""Seconds after which the spans are sent that outlive their runs: by then a service has closed the
run.
"""
TIMEOUT_S: Final = 5.0
FIRST_SERVER_ERROR: Final = 500
LOCAL: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_logger = logging.getLogger("otel_reliability.demo")

_TIME: Final = re.compile(r'(UnixNano": ?")(\d+)')
_TRACE: Final = re.compile(r'(traceId": ?"[0-9a-f]{16})[0-9a-f]{16}')

Sink = Callable[[str, str], object]
"""Receives a signal (traces or logs) and a body."""


class Round(NamedTuple):
    """One round of all agents: bodies by signal, the spans that come late, and when it ended."""

    bodies: tuple[tuple[str, str], ...]
    late: str | None
    end_ns: int


class Replay:
    """The rounds of the recording, again and again, to a sink.

    The first rounds are of the last minutes, one after the other; later ones are of now. In these
    the agent that changed half-way stays as it is since: it does not change again and again. Each
    replay has trace ids of its own.
    """

    def __init__(self, sink: Sink, clock: Callable[[], float] = time.monotonic) -> None:
        self._sink = sink
        self._clock = clock
        self._recorded = list(_recorded())
        self._again = list(_again(self._recorded))
        self._opened_ns = time.time_ns() - len(self._recorded) * ROUND_NS
        self._late: list[tuple[float, str]] = []
        self.rounds = 0
        """Rounds that were sent."""

    @property
    def opening(self) -> int:
        """Rounds after which every agent has shown its character."""
        return len(self._recorded)

    def round(self) -> None:
        """Send one round, and the late spans that are due."""
        cycle, at = divmod(self.rounds, len(self._recorded))
        if at % (len(self._recorded) // 2) == 0:
            self._nonce = secrets.token_hex(8)
        one = (self._again if cycle else self._recorded)[at]
        ends_ns = time.time_ns() if cycle else self._opened_ns + (at + 1) * ROUND_NS
        for signal, body in one.bodies:
            self._sink(signal, self._moved(body, ends_ns - one.end_ns))
        if one.late is not None:
            self._late.append(
                (self._clock() + LATE_AFTER_S, self._moved(one.late, ends_ns - one.end_ns))
            )
        self.rounds += 1
        self.send_late(self._clock())

    def send_late(self, now: float | None = None) -> None:
        """Send the late spans that are due; without `now` all of them."""
        while self._late and (now is None or self._late[0][0] <= now):
            self._sink("traces", self._late.pop(0)[1])

    def _moved(self, body: str, by_ns: int) -> str:
        moved = _TIME.sub(lambda found: f"{found[1]}{int(found[2]) + by_ns}", body)
        return _TRACE.sub(lambda found: f"{found[1]}{self._nonce}", moved)


def _recorded() -> Iterator[Round]:
    with gzip.open(RECORDING, "rt", encoding="utf-8") as lines:
        for line in lines:
            found: dict[str, Any] = json.loads(line)
            bodies = tuple(
                (signal, json.dumps(found[signal]))
                for signal in ("traces", "logs")
                if found.get(signal)
            )
            late = found.get("late")
            yield Round(bodies, None if late is None else json.dumps(late), found["end_ns"])


def _again(recorded: Sequence[Round]) -> Iterator[Round]:
    """The rounds without the first half of the agent that changes half-way: its second half stands
    there twice.
    """
    half = len(recorded) // 2
    for at, one in enumerate(recorded):
        if at >= half:
            yield one
            continue
        later = recorded[at + half]
        own, _ = _parted(one)
        _, changed = _parted(later)
        earlier_ns = one.end_ns - later.end_ns
        changed = _TIME.sub(lambda found: f"{found[1]}{int(found[2]) + earlier_ns}", changed)  # noqa: B023
        others = tuple(body for body in one.bodies if body[0] != "traces")
        yield one._replace(bodies=(("traces", own), ("traces", changed), *others))


def _parted(one: Round) -> tuple[str, str]:
    """The spans of a round as two bodies: without the agent that changes, and its own."""
    (body,) = (body for signal, body in one.bodies if signal == "traces")
    found = json.loads(body)
    its = {
        span["traceId"]
        for resource in found["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
        if any(
            attribute["key"] == "gen_ai.agent.name"
            and attribute["value"].get("stringValue") == CHANGING
            for attribute in span["attributes"]
        )
    }
    return json.dumps(_kept(found, its, wanted=False)), json.dumps(_kept(found, its, wanted=True))


def _kept(found: Mapping[str, Any], traces: set[str], *, wanted: bool) -> dict[str, Any]:
    """The body with the spans of these traces, or without them."""
    return {
        "resourceSpans": [
            {
                **resource,
                "scopeSpans": [
                    {
                        **scope,
                        "spans": [
                            span for span in scope["spans"] if (span["traceId"] in traces) is wanted
                        ],
                    }
                    for scope in resource["scopeSpans"]
                ],
            }
            for resource in found["resourceSpans"]
        ]
    }


def record(path: Path) -> None:
    """Write the recording to a file, as if it ended now, like the Collector's file exporter."""
    with path.open("w", encoding="utf-8") as file:
        replay = Replay(lambda _, body: file.write(f"{body}\n"))
        for _ in range(replay.opening):
            replay.round()
        replay.send_late()


class Endpoint:
    """A sink that posts to an OTLP/HTTP endpoint, like `http://127.0.0.1:4318`. The first of the
    bodies that cannot be sent, one after another, is reported.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._opener = opener(url)
        self._has_failed = False

    def __call__(self, signal: str, body: str) -> None:
        try:
            self._post(signal, body)
        except OSError as error:
            if not self._has_failed:
                _logger.warning("%s could not be sent to %s: %s", signal, self.url, error)
            self._has_failed = True
        else:
            self._has_failed = False

    def unreachable(self) -> str:
        """Return why nothing answers there; empty where something does."""
        try:
            self._post("traces", '{"resourceSpans": []}')
        except HTTPError as error:
            return str(error) if error.code >= FIRST_SERVER_ERROR else ""
        except OSError as error:
            return str(getattr(error, "reason", error))
        return ""

    def _post(self, signal: str, body: str) -> None:
        headers = {"Content-Type": "application/json"}
        url = f"{self.url}/v1/{signal}"
        request = urllib.request.Request(url, body.encode(), headers)  # noqa: S310  the user's URL
        self._opener.open(request, timeout=TIMEOUT_S).close()


def opener(url: str) -> urllib.request.OpenerDirector:
    """Return what opens the URL, without a proxy on this machine."""
    local = urlsplit(url).hostname in LOCAL
    return urllib.request.build_opener(*([urllib.request.ProxyHandler({})] if local else []))
