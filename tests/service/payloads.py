"""OTLP requests as services send them, from a seed: agents at work, and the web servers beside them.

- `genai`: an `invoke_agent` root, model calls of 13 attributes, tool calls of 9, no content, as OpenTelemetry's own
  instrumentations send them unless told otherwise; some 550 bytes a span.
- `genai_content`: the same with the arguments and the result of each tool call.
- `genai4k`: the same, and each model call carries 4 KB of messages.
- `http`: ordinary server spans of 12 attributes, some 490 bytes each.

Runs of ten agents take habitual paths (`stable`) or nearly always new ones (`chaotic`). No two requests are alike: a service
never receives one twice, and what caches would make of that is not what it costs.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any, Final

from otel_reliability.model.span import KIND_CLIENT, KIND_INTERNAL, KIND_SERVER, RawSpan, Resource
from otel_reliability.sources.otlp_write import traces_protobuf

SPANS: Final = 512
"""Spans of a request, as a `BatchSpanProcessor` sends at most."""
AGENTS: Final = 10
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
MESSAGES: Final = 4_096

_RESOURCE: Final = Resource.of(
    {
        "service.name": "support", "service.namespace": "shop", "deployment.environment.name": "production",
        "telemetry.sdk.language": "python", "telemetry.sdk.name": "opentelemetry", "telemetry.sdk.version": "1.45.2",
    }
)  # fmt: skip
_SCOPE: Final = "opentelemetry.instrumentation.genai"
_WEB_SCOPE: Final = "opentelemetry.instrumentation.fastapi"
_EPOCH_NS: Final = 1_700_000_000_000_000_000
_MS: Final = 1_000_000


class Traffic:
    """What one service sends, span after span, for ever and never twice.

    `content`: with arguments and results; `messages`: with so many characters of them a model call; `web`: each run is the work
    of one request to a web server, whose span stands above it and ends last.
    """

    def __init__(
        self, *, chaotic: bool = False, content: bool = False, messages: int = 0, web: bool = False, seed: int = 7,
        agents: int = AGENTS,
    ) -> None:  # fmt: skip
        self._dice, self._chaotic, self._content, self._messages = random.Random(seed), chaotic, content, messages
        self._web = web
        self._agents = [f"{role} agent {number}" for number, role in zip(range(agents), _ROLES * agents, strict=False)]
        self._habits = [self._path() for _ in range(3)]
        self._now = _EPOCH_NS
        self._stream = self.spans()

    def requests(self, number: int, spans: int = SPANS) -> list[bytes]:
        """The next so many requests of so many spans. A run that one of them does not hold to its end goes on in the next."""
        return [traces_protobuf([next(self._stream) for _ in range(spans)]) for _ in range(number)]

    def spans(self) -> Iterator[RawSpan]:
        """The spans of run after run, children before their parents, as they end."""
        while True:
            yield from self.run()

    def run(self) -> list[RawSpan]:
        """The spans of one run."""
        trace, root = self._id(16), self._id(8)
        agent, conversation = self._dice.choice(self._agents), self._id(16).hex()
        began, found = self._now, list[RawSpan]()
        for tool in self._taken():
            found.append(self._model(trace, root, agent, conversation, "tool_calls"))
            found.append(self._tool(trace, root, agent, conversation, tool))
        found.append(self._model(trace, root, agent, conversation, "stop"))
        attributes = {
            "gen_ai.operation.name": "invoke_agent", "gen_ai.provider.name": "openai", "gen_ai.agent.name": agent,
            "gen_ai.agent.description": "Answers questions about orders", "gen_ai.conversation.id": conversation,
            "gen_ai.request.model": "gpt-4o-mini", "gen_ai.output.type": "text", "server.address": "api.openai.com",
        }  # fmt: skip
        self._now += 40 * _MS
        above = self._id(8) if self._web else None
        whole = _span(trace, root, above, f"invoke_agent {agent}", KIND_INTERNAL, began, self._now, attributes, _SCOPE)
        if above is None:
            return [*found, whole]
        about = {
            "http.request.method": "POST", "http.route": "/chat", "url.path": "/chat", "url.scheme": "https",
            "server.address": "shop.example.com", "http.response.status_code": 200,
        }  # fmt: skip
        return [
            *found,
            whole,
            _span(trace, above, None, "POST /chat", KIND_SERVER, began, self._now, about, _WEB_SCOPE),
        ]

    def _model(self, trace: bytes, parent: bytes, agent: str, conversation: str, finish: str) -> RawSpan:
        dice = self._dice
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o-mini",
            "gen_ai.response.model": "gpt-4o-mini-2024-07-18", "gen_ai.response.id": f"chatcmpl-{self._id(12).hex()}",
            "gen_ai.response.finish_reasons": (finish,), "gen_ai.usage.input_tokens": dice.randrange(200, 9_000),
            "gen_ai.usage.output_tokens": dice.randrange(10, 600), "gen_ai.conversation.id": conversation,
            "gen_ai.request.temperature": 0.2, "gen_ai.agent.name": agent, "server.address": "api.openai.com",
            "server.port": 443,
        }  # fmt: skip
        if self._messages:
            attributes["gen_ai.input.messages"] = _messages(dice, self._messages)
        return self._child(trace, parent, "chat gpt-4o-mini", KIND_CLIENT, attributes, 800)

    def _tool(self, trace: bytes, parent: bytes, agent: str, conversation: str, tool: str) -> RawSpan:
        attributes = {
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool, "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": f"call_{self._id(12).hex()}", "gen_ai.agent.name": agent,
            "gen_ai.conversation.id": conversation, "gen_ai.provider.name": "openai", "thread.id": 140_213,
            "gen_ai.tool.description": "Looks at what the shop knows",
        }  # fmt: skip
        if self._content:
            order, total = self._dice.randrange(10**6), self._dice.randrange(500)
            attributes["gen_ai.tool.call.arguments"] = json.dumps({"order_id": f"A-{order}", "verbose": False})
            attributes["gen_ai.tool.call.result"] = json.dumps({"status": "shipped", "total": total})
        return self._child(trace, parent, f"execute_tool {tool}", KIND_INTERNAL, attributes, 90)

    def _child(
        self, trace: bytes, parent: bytes, name: str, kind: int, attributes: dict[str, Any], longest_ms: int
    ) -> RawSpan:
        began, self._now = self._now, self._now + self._dice.randrange(5, longest_ms) * _MS
        return _span(trace, self._id(8), parent, name, kind, began, self._now, attributes, _SCOPE)

    def _taken(self) -> Sequence[str]:
        """The tools of one run: a habit, in one run of twenty with one call more, or anything."""
        if self._chaotic:
            return self._path()
        path = list(self._dice.choice(self._habits))
        if self._dice.random() < 0.05:
            path.insert(self._dice.randrange(len(path) + 1), self._dice.choice(TOOLS))
        return path

    def _path(self) -> list[str]:
        return [self._dice.choice(TOOLS) for _ in range(self._dice.randrange(3, 10))]

    def _id(self, size: int) -> bytes:
        return self._dice.randbytes(size)


_ROLES: Final = ("billing", "shipping", "returns", "sales", "triage")


def genai(number: int, *, chaotic: bool = False, spans: int = SPANS) -> list[bytes]:
    """Requests of agents at work."""
    return Traffic(chaotic=chaotic).requests(number, spans)


def genai_content(number: int, *, chaotic: bool = False, spans: int = SPANS) -> list[bytes]:
    """The same with arguments and results."""
    return Traffic(chaotic=chaotic, content=True).requests(number, spans)


def genai4k(number: int, *, chaotic: bool = False, spans: int = SPANS) -> list[bytes]:
    """The same with 4 KB of messages a model call, too."""
    return Traffic(chaotic=chaotic, content=True, messages=MESSAGES).requests(number, spans)


def http(number: int, *, spans: int = SPANS) -> list[bytes]:
    """Requests of a web server that knows no agents."""
    dice = random.Random(7)
    return [traces_protobuf([_web(dice, at) for at in range(spans)]) for _ in range(number)]


def _web(dice: random.Random, at: int) -> RawSpan:
    began = _EPOCH_NS + at * _MS
    order = dice.randrange(10**6)
    attributes = {
        "http.request.method": "GET", "url.scheme": "https", "url.path": f"/orders/{order}", "http.route": "/orders/{id}",
        "server.address": "shop.example.com", "server.port": 443, "client.address": f"10.0.{dice.randrange(256)}.7",
        "network.protocol.version": "1.1", "user_agent.original": "Mozilla/5.0 (X11; Linux x86_64) Firefox/128.0",
        "http.response.status_code": 200, "network.peer.address": "10.0.0.7", "network.peer.port": dice.randrange(2**16),
    }  # fmt: skip
    return _span(
        dice.randbytes(16), dice.randbytes(8), dice.randbytes(8), "GET /orders/{id}", KIND_SERVER, began,
        began + dice.randrange(1, 90) * _MS, attributes, _WEB_SCOPE,
    )  # fmt: skip


def _messages(dice: random.Random, size: int) -> str:
    text = " ".join(
        dice.choice(("order", "please", "the", "refund", "where", "is", "my", "parcel")) for _ in range(size // 6)
    )
    return json.dumps([{"role": "user", "parts": [{"type": "text", "content": text[: size - 70]}]}])


def _span(
    trace: bytes, span: bytes, parent: bytes | None, name: str, kind: int, start_ns: int, end_ns: int,
    attributes: dict[str, Any], scope: str,
) -> RawSpan:  # fmt: skip
    return RawSpan(
        trace, span, parent, name, kind, start_ns, end_ns, 0, False, attributes, (), (), scope, "1.3b0", _RESOURCE,
    )  # fmt: skip
