"""Traffic from a seed: shapes of run that differ in one thing each, and a web server without
agents.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from benchmarks.otlp import Sent, pairs, requests
from benchmarks.recorded import EPOCH_NS, MS, recorded

RECORDED: Final = "recorded"
WEB: Final = "web"
TOOLS: Final = (
    "search_orders",
    "get_order",
    "get_customer",
    "lookup_policy",
    "check_stock",
    "refund",
    "send_mail",
    "escalate",
)
OPENINGS: Final = ("please", "can you", "I want you to", "hello, I would like you to")
WISHES: Final = ("cancel and refund", "change the address of", "tell me where to find", "pay for")
SUBJECTS: Final = (
    "the shoes I ordered last week",
    "my subscription to the magazine",
    "a flight from Lisbon to Oslo",
    "the repair of our dishwasher",
    "the invoice of the hotel",
    "my reservation of two seats",
)


class Shape(NamedTuple):
    """One kind of run. Only `content`, `requests` and `sub_agent` change what there is to compute;
    `chaotic`: nearly every path is new.
    """

    content: bool = False
    response_model: bool = True
    sub_agent: bool = False
    chaotic: bool = False
    requests: bool = False
    sessions: bool = True
    agents: int = 10
    name: str = "agent"


SHAPES: Final[Mapping[str, Shape]] = {
    "one agent": Shape(),
    "arguments and results": Shape(content=True),
    "attributes missing": Shape(response_model=False),
    "one sub-agent per run": Shape(sub_agent=True),
}


def traffic(name: str) -> Iterator[bytes]:
    """Return the endless requests of a name: `recorded`, `web`, or a shape. Raises `Unavailable`
    without recordings.
    """
    if name == RECORDED:
        return requests(recorded())
    return requests(web() if name == WEB else runs(SHAPES[name]))


def runs(shape: Shape, seed: int = 7) -> Iterator[Sent]:
    """Return the spans of endless runs of one shape, children before their parents, as they end."""
    return (sent for run in each_run(shape, seed) for sent in run)


def each_run(shape: Shape, seed: int = 7) -> Iterator[list[Sent]]:
    """Return the same run by run: model calls of 13 attributes, tool calls of 9, three habitual
    paths (one in 20 departs).
    """
    writer = _Writer(shape, random.Random(seed))
    while True:
        yield [Sent(_RESOURCE, _GENAI, span) for span in writer.run()]


class _Writer:
    def __init__(self, shape: Shape, dice: random.Random) -> None:
        self._shape = shape
        self._dice = dice
        self._now = EPOCH_NS
        self._turn = 0
        self._habits = [self._path() for _ in range(3)]

    def run(self) -> list[Span]:
        self._turn += 1
        agent = f"{self._shape.name} {self._turn % self._shape.agents}"
        trace = self._dice.randbytes(16)
        session = self._dice.randbytes(8).hex()
        return self._invocation(agent, trace, b"", session, self._steps(), self._shape.sub_agent)

    def _invocation(
        self,
        agent: str,
        trace: bytes,
        parent: bytes,
        session: str,
        path: Sequence[str],
        sub_agent: bool,
    ) -> list[Span]:
        root = self._dice.randbytes(8)
        began = self._now
        found = list[Span]()
        about = {"gen_ai.agent.name": agent, "gen_ai.provider.name": "openai"}
        if self._shape.sessions:
            about["gen_ai.conversation.id"] = session
        for tool in path:
            found += [
                self._model(trace, root, about, "tool_calls"),
                self._tool(trace, root, about, tool),
            ]
        if sub_agent:
            found += self._invocation("researcher", trace, root, session, path[:2], sub_agent=False)
        found.append(self._model(trace, root, about, "stop"))
        attributes = about | {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.description": "Answers questions about orders",
            "gen_ai.request.model": "gpt-4o-mini",
            "gen_ai.output.type": "text",
            "server.address": "api.openai.com",
        }
        if self._shape.requests:
            attributes["gen_ai.input.messages"] = self._request()
        return [
            *found,
            span(trace, root, parent, f"invoke_agent {agent}", 1, began, self._now, attributes),
        ]

    def _request(self) -> str:
        """Return what the user asked: one of 24 kinds, each in several wordings."""
        dice = self._dice
        words = (dice.choice(OPENINGS), dice.choice(WISHES), dice.choice(SUBJECTS))
        text = f"{' '.join(words)}, it is number {dice.randrange(10**6)}"
        return json.dumps([{"role": "user", "parts": [{"type": "text", "content": text}]}])

    def _model(self, trace: bytes, parent: bytes, about: Mapping[str, Any], finish: str) -> Span:
        dice = self._dice
        attributes: dict[str, Any] = {**about} | {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "gpt-4o-mini",
            "gen_ai.response.id": f"chatcmpl-{dice.randbytes(12).hex()}",
            "gen_ai.response.finish_reasons": [finish],
            "gen_ai.usage.input_tokens": dice.randrange(200, 9_000),
            "gen_ai.usage.output_tokens": dice.randrange(10, 600),
            "gen_ai.request.temperature": 0.2,
            "server.address": "api.openai.com",
            "server.port": 443,
        }
        if self._shape.response_model:
            attributes["gen_ai.response.model"] = "gpt-4o-mini-2024-07-18"
        return self._child(trace, parent, "chat gpt-4o-mini", 3, attributes)

    def _tool(self, trace: bytes, parent: bytes, about: Mapping[str, Any], tool: str) -> Span:
        attributes: dict[str, Any] = {**about} | {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": f"call_{self._dice.randbytes(12).hex()}",
            "thread.id": 140_213,
            "gen_ai.tool.description": "Reads the records of the shop",
        }
        if self._shape.content:
            order = self._dice.randrange(10**6)
            total = self._dice.randrange(500)
            attributes["gen_ai.tool.call.arguments"] = json.dumps(
                {"order_id": f"A-{order}", "verbose": False}
            )
            attributes["gen_ai.tool.call.result"] = json.dumps(
                {"status": "shipped", "total": total}
            )
        return self._child(trace, parent, f"execute_tool {tool}", 1, attributes)

    def _child(
        self, trace: bytes, parent: bytes, name: str, kind: Any, attributes: Mapping[str, Any]
    ) -> Span:
        began = self._now
        self._now = self._now + self._dice.randrange(5, 90) * MS
        return span(
            trace, self._dice.randbytes(8), parent, name, kind, began, self._now, attributes
        )

    def _steps(self) -> list[str]:
        if self._shape.chaotic:
            return self._path()
        path = [*self._dice.choice(self._habits)]
        if self._dice.random() < 0.05:
            path.insert(self._dice.randrange(len(path) + 1), self._dice.choice(TOOLS))
        return path

    def _path(self) -> list[str]:
        return [self._dice.choice(TOOLS) for _ in range(self._dice.randrange(3, 10))]


def web(seed: int = 7) -> Iterator[Sent]:
    """Return the spans of a web server that knows no agents: 12 attributes each."""
    dice = random.Random(seed)
    now = EPOCH_NS
    while True:
        now += MS
        attributes = {
            "http.request.method": "GET",
            "url.scheme": "https",
            "url.path": f"/orders/{dice.randrange(10**6)}",
            "http.route": "/orders/{id}",
            "server.address": "shop.example.com",
            "server.port": 443,
            "client.address": f"10.0.{dice.randrange(256)}.7",
            "network.protocol.version": "1.1",
            "user_agent.original": "Mozilla/5.0 (X11; Linux x86_64) Firefox/128.0",
            "http.response.status_code": 200,
            "network.peer.address": "10.0.0.7",
            "network.peer.port": dice.randrange(2**16),
        }
        trace = dice.randbytes(16)
        own = dice.randbytes(8)
        parent = dice.randbytes(8)
        yield Sent(
            _RESOURCE,
            _WEB,
            span(trace, own, parent, "GET /orders/{id}", 2, now, now + 9 * MS, attributes),
        )


def span(
    trace: bytes,
    own: bytes,
    parent: bytes,
    name: str,
    kind: Any,
    start_ns: int,
    end_ns: int,
    attributes: Mapping[str, Any],
) -> Span:
    """Return one span of the protocol."""
    return Span(
        trace_id=trace,
        span_id=own,
        parent_span_id=parent,
        name=name,
        kind=kind,
        start_time_unix_nano=start_ns,
        end_time_unix_nano=end_ns,
        attributes=pairs(attributes),
    )


_RESOURCE: Final = Resource(
    attributes=pairs(
        {
            "service.name": "support",
            "service.namespace": "shop",
            "deployment.environment.name": "production",
            "telemetry.sdk.language": "python",
            "telemetry.sdk.name": "opentelemetry",
            "telemetry.sdk.version": "1.45.2",
        }
    )
)
_GENAI: Final = InstrumentationScope(name="opentelemetry.instrumentation.genai", version="1.3b0")
_WEB: Final = InstrumentationScope(name="opentelemetry.instrumentation.fastapi", version="1.3b0")
