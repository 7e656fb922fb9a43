"""A service that runs in this process, on free ports, with a clock that a test winds; and spans to
send it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Final, cast

import grpc
from msgspec import structs

from otel_reliability.config import LimitSettings
from otel_reliability.demo.hosting import living
from otel_reliability.loading import own_fields
from otel_reliability.model.span import RawSpan, Resource
from otel_reliability.service.config_file import load_config
from otel_reliability.service.decoded import Decoded
from otel_reliability.service.health import RECOVERING
from otel_reliability.service.persistence import Persistence, Volatile
from otel_reliability.service.service import Service
from otel_reliability.service.settings import ServiceSettings
from otel_reliability.service.state import State
from otel_reliability.service.writer import Ack, _Waiting
from otel_reliability.state.store import Unavailable
from otel_reliability.testing import FakeClock, span
from tests.otlp import traces_protobuf
from tests.real.waiting import until
from tests.real.web import Answer, ask

PROTOBUF: Final = "application/x-protobuf"
JSON: Final = "application/json"
FREE: Final = "127.0.0.1:0"
EXPORT_TRACES: Final = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
EXPORT_LOGS: Final = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
HEALTH: Final = "/grpc.health.v1.Health/Check"
LATER: Final = 100_000.0
"""When the clock of a service begins, unless a test says otherwise: what the builders make is past
by then.
"""
MOMENT: Final = 1_000.0
"""Seconds in which every run closes and becomes final."""


class Controlled(Volatile):
    """Persistence that a test holds up, and lets fail. Passed as `persistence_of`."""

    def __init__(self) -> None:
        self.may_restore, self.may_commit = threading.Event(), threading.Event()
        self.may_restore.set()
        self.groups: list[int] = []
        self.full_disk: frozenset[str] = frozenset()
        """Names of the methods that find no room."""

    def __call__(self, state: State) -> Volatile:
        super().__init__(state)
        return self

    def restore(self) -> None:
        self.may_restore.wait(60)

    def before_apply(self, group: Sequence[Decoded]) -> None:
        self.may_commit.wait(60)
        self.groups.append(len(group))
        self._check("before_apply")

    def after_deadlines(self, now: float) -> None:
        self._check("after_deadlines")
        super().after_deadlines(now)

    def _check(self, name: str) -> None:
        if name in self.full_disk:
            raise Unavailable("state_full", "the disk is full")


class Running:
    """A service under test."""

    def __init__(self, service: Service, clock: FakeClock) -> None:
        self.service = service
        self.clock = clock

    def url(self, door: str, path: str = "", *, scheme: str = "http") -> str:
        return f"{scheme}://{self.service.addresses[door]}{path}"

    @property
    def target(self) -> str:
        return str(self.service.addresses["grpc"])

    def post(self, signal: str, body: bytes, kind: str = PROTOBUF, **headers: str) -> Answer:
        """Send one request over HTTP; `content_encoding="gzip"` is a header."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return ask(
            self.url("http", f"/v1/{signal}"), body=body, headers={"Content-Type": kind, **named}
        )

    def get(self, door: str, path: str, **headers: str) -> Answer:
        return ask(
            self.url(door, path),
            headers={name.replace("_", "-"): value for name, value in headers.items()},
        )

    def call(self, body: bytes, method: str = EXPORT_TRACES, **options: Any) -> bytes:
        """Send one request over gRPC; a refusal is raised."""
        with grpc.insecure_channel(
            self.target, options=[("grpc.max_send_message_length", -1)]
        ) as channel:
            export: Any = cast("Any", channel).unary_unary(method)
            return export(body, timeout=60, **options)

    def send(self, spans: Iterable[RawSpan]) -> None:
        """Have spans accepted, and let time pass until their runs are final."""
        assert self.post("traces", body_of(spans)).status == 200
        self.finalize()

    def metrics(self) -> str:
        answer = self.get("metrics", "/metrics")
        assert answer.status == 200
        return answer.text

    def finalize(self) -> None:
        """Let time pass until every run is closed and final, and wait for the writer to have seen
        it.
        """
        for _ in range(2):
            self.clock.advance(MOMENT)
            self.writer_came_round()

    def writer_came_round(self) -> None:
        """Wait until the writer has met every deadline up to now. A request that nobody waits for
        wakes it: idle, it takes a turn every quarter of a second.
        """
        now = self.clock()
        cancelled = Future[Ack]()
        cancelled.cancel()
        self.service.writer._queue.put(_Waiting(Decoded(), cancelled))
        until(lambda: self.service.writer.beat >= now, "the writer to come round", pause=0.002)

    def sum(self, name: str, **labels: str) -> float:
        return sum_of(self.metrics(), name, **labels)


def sum_of(text: str, name: str, **labels: str) -> float:
    """The sum of the samples of Prometheus text with that name and these labels (`__` stands for
    `_`-joined dots).
    """
    wanted = [f'{key}="{value}"' for key, value in labels.items()]
    lines = (line for line in text.splitlines() if line.startswith((f"{name}{{", f"{name} ")))
    return sum(
        float(line.rpartition(" ")[2]) for line in lines if all(want in line for want in wanted)
    )


@contextmanager
def serving(
    engine: Mapping[str, object] | None = None,
    *,
    persistence_of: Callable[[State], Persistence] | None = None,
    env: Mapping[str, str] | None = None,
    clock: FakeClock | None = None,
    wait: bool = True,
    **service: object,
) -> Generator[Running]:
    """A running service; `service` are settings of it by name, also internal ones; so are the
    `limits` of `engine`. A scrape has all series, unless they say otherwise.

    `wait`: until its state is loaded.
    """
    endpoints = {"grpc": FREE, "http": FREE, "metrics": FREE, "ui": FREE, "drain": 5.0}
    endpoints["series"] = "all"
    public = {field.path for field in own_fields(ServiceSettings)}
    given = dict(engine or {})
    limits: Any = given.pop("limits", {})
    flags = {name: value for name, value in service.items() if name in public}
    loaded = load_config(flags={**given, "service": {**endpoints, **flags}})
    internal = {name: value for name, value in service.items() if name not in public}
    service_settings = structs.replace(loaded.service, **internal)
    config = structs.replace(loaded, limits=LimitSettings(**limits), service=service_settings)
    wound = FakeClock(LATER) if clock is None else clock
    made = Service(
        config, persistence_of=persistence_of, env=env or {}, clock=wound, wall=wound.wall
    )
    with living(made):
        until(
            lambda: not wait or RECOVERING not in made.readiness.reasons, "the service to be ready"
        )
        yield Running(made, wound)


def run_of(
    trace: int = 1, tools: Sequence[str] = ("search",), agent: str = "support", start: float = 0.0
) -> list[RawSpan]:
    invocation = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent}
    root = span(1, trace=trace, attributes=invocation, start=start, end=start + len(tools) + 1)
    calls = [
        span(
            2 + number,
            1,
            trace=trace,
            start=start + number,
            attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool},
        )
        for number, tool in enumerate(tools)
    ]
    return [root, *calls]


def lone_agent(name: str, trace: int, environment: str) -> RawSpan:
    """A run of one span."""
    resource = Resource.of({"service.name": "bank", "deployment.environment.name": environment})
    about = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
    return span(1, trace=trace, attributes=about, resource=resource)


def runs_of(
    number: int, tools: Sequence[str] = ("search",), agent: str = "support", first: int = 1
) -> list[RawSpan]:
    return [
        one
        for trace in range(first, first + number)
        for one in run_of(trace, tools, agent, 10.0 * trace)
    ]


def body_of(spans: Iterable[RawSpan]) -> bytes:
    return traces_protobuf(spans)
