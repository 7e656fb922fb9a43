"""Writes the recordings that tests read where ../shared is absent: `python -m tests.made.make`.

One plan of runs, told in three conventions. What the plan says is the truth file of each.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from otel_reliability.model.span import STATUS_ERROR, STATUS_UNSET, RawSpan
from otel_reliability.testing import span, span_id, trace_id, traces_json

FOLDER: Final = Path(__file__).parent / "corpora" / "captured"
STEP_S: Final = 0.01
"""Seconds that a call takes: fake models answer at once."""
BETWEEN_S: Final = 1.0
"""Seconds from the start of a run to that of the next one."""
TOKENS: Final = (20, 5)
"""Tokens that each call of a model reads and writes."""
AGENT: Final = "support"
SUB_AGENT: Final = "billing"

Attributes = Mapping[str, Any]


@dataclass(frozen=True)
class Call:
    """A call of a tool. With `agent`, the tool starts that agent, which makes `calls` itself;
    `handoff`: and does nothing else.
    """

    name: str
    arguments: str = "{}"
    ok: bool = True
    agent: str | None = None
    calls: tuple[Call, ...] = ()
    handoff: bool = False


@dataclass(frozen=True)
class Planned:
    """A run. `together`: the calls but the last run at once."""

    scenario: str
    calls: tuple[Call, ...] = ()
    ok: bool = True
    session: str | None = None
    retries: int = 0
    together: bool = False


@dataclass(frozen=True)
class Dialect:
    """A convention: the instrumentation's scope, and attributes of its three kinds of spans."""

    scope: str
    agent: Callable[[str], dict[str, Any]]
    model: Callable[[], dict[str, Any]]
    tool: Callable[[Call], dict[str, Any]]
    session: str


SEARCH: Final = Call("search", '{"query": "order 7"}')
LOST: Final = Call("search", '{"query": "order 7"}', ok=False)
BOOK: Final = Call("book", '{"order": 7}')
REFUND: Final = Call("refund", '{"order": 7}')
DELEGATE: Final = Call("ask_billing", '{"order": 7}', agent=SUB_AGENT, calls=(REFUND,))
TRANSFER: Final = Call("transfer_to_billing", agent=SUB_AGENT, calls=(REFUND,), handoff=True)

RUNS: Final = (
    Planned("clean", (SEARCH, BOOK)),
    Planned("no_tool"),
    Planned("retry", (LOST, LOST, SEARCH, BOOK), retries=2),
    Planned("tool_error", (LOST,)),
    Planned("run_error", (SEARCH,), ok=False),
    Planned("parallel", (SEARCH, BOOK, REFUND), together=True),
    Planned("sub_agent", (SEARCH, DELEGATE, BOOK)),
    Planned("hand_off", (SEARCH, TRANSFER)),
    Planned("turn1", (SEARCH,), session="a conversation"),
    Planned("turn2", (BOOK,), session="a conversation"),
    Planned("turn1", (SEARCH, SEARCH), session="another conversation"),
)

GENAI: Final = Dialect(
    "opentelemetry.instrumentation.genai",
    lambda name: {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name},
    lambda: {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "a-model",
        "gen_ai.usage.input_tokens": TOKENS[0],
        "gen_ai.usage.output_tokens": TOKENS[1],
    },
    lambda call: {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.call.arguments": call.arguments,
        **({} if call.ok else {"error.type": "TimeoutError"}),
    },
    "gen_ai.conversation.id",
)
OPENINFERENCE: Final = Dialect(
    "openinference.instrumentation.made",
    lambda name: {"openinference.span.kind": "AGENT", "agent.name": name},
    lambda: {
        "openinference.span.kind": "LLM",
        "llm.model_name": "a-model",
        "llm.token_count.prompt": TOKENS[0],
        "llm.token_count.completion": TOKENS[1],
    },
    lambda call: {
        "openinference.span.kind": "TOOL",
        "tool.name": call.name,
        "input.value": call.arguments,
        "input.mime_type": "application/json",
    },
    "session.id",
)
OPENLLMETRY: Final = Dialect(
    "opentelemetry.instrumentation.made",
    lambda name: {"traceloop.span.kind": "agent", "traceloop.entity.name": name},
    lambda: {
        "llm.request.type": "chat",
        "gen_ai.system": "openai",
        "gen_ai.request.model": "a-model",
        "gen_ai.usage.input_tokens": TOKENS[0],
        "gen_ai.usage.output_tokens": TOKENS[1],
    },
    lambda call: {
        "traceloop.span.kind": "tool",
        "traceloop.entity.name": call.name,
        "traceloop.entity.input": json.dumps({"args": [], "kwargs": json.loads(call.arguments)}),
    },
    "traceloop.association.properties.session_id",
)
DIALECTS: Final = {
    "made-genai": GENAI,
    "made-openinference": OPENINFERENCE,
    "made-openllmetry": OPENLLMETRY,
}


class Telling:
    """Tells planned runs in one convention, a trace each."""

    def __init__(self, dialect: Dialect, first_trace: int) -> None:
        self._dialect = dialect
        self._first = first_trace
        self._spans: list[RawSpan] = []
        self._session: dict[str, Any] = {}
        self._trace = self._used = 0
        self._now = 0.0

    def spans(self) -> list[RawSpan]:
        """Return the spans of all runs, in the order in which they end."""
        for number, run in enumerate(RUNS):
            self._trace = self._first + number
            self._used = 0
            self._now = number * BETWEEN_S
            self._session = {self._dialect.session: run.session} if run.session else {}
            self._agent(AGENT, None, run.calls, ok=run.ok, together=run.together)
        return sorted(self._spans, key=lambda one: one.end_ns)

    def truth(self) -> dict[str, Any]:
        """Return what the plan knows of the same runs, as a truth file has it."""
        return {"runs": [self._true(number, run) for number, run in enumerate(RUNS)]}

    def _true(self, number: int, run: Planned) -> dict[str, Any]:
        calls = list(_made(run.calls, AGENT))
        # A model is called before each call of a tool, and once more at the end.
        agents = 1 + sum(call.agent is not None for call, _ in calls)
        models = agents + len(calls)
        return {
            "run_id": f"{run.scenario}-{number:02}",
            "scenario": run.scenario,
            "agent": AGENT,
            "session_id": run.session,
            "trace_ids": [trace_id(self._first + number).hex()],
            "root_span_ids": [span_id((self._first + number) * 1_000 + 1).hex()],
            "tool_calls": [
                {"name": call.name, "agent": agent, "ok": call.ok, "handoff": call.handoff}
                for call, agent in calls
            ],
            "input_tokens": models * TOKENS[0],
            "output_tokens": models * TOKENS[1],
            "outcome": "success" if run.ok else "failure",
            "identical_retries": run.retries,
            "sub_agents": [call.agent for call, _ in calls if call.agent is not None],
        }

    def _agent(
        self, name: str, parent: int | None, calls: tuple[Call, ...], *, ok: bool, together: bool
    ) -> None:
        number = self._number()
        begin = self._now
        for at, call in enumerate(calls):
            self._take("chat", number, self._dialect.model())
            if together and 0 < at < len(calls) - 1:
                self._now -= 2.5 * STEP_S  # it begins while the call before it goes on
            self._call(call, number)
        self._take("chat", number, self._dialect.model())
        self._add(number, parent, f"invoke_agent {name}", begin, self._dialect.agent(name), ok=ok)

    def _call(self, call: Call, parent: int) -> None:
        number = self._number()
        begin = self._now
        self._now += STEP_S
        if call.agent is not None:
            self._agent(call.agent, number, call.calls, ok=True, together=False)
        facts = self._dialect.tool(call)
        self._add(number, parent, f"execute_tool {call.name}", begin, facts, ok=call.ok)

    def _take(self, name: str, parent: int, facts: Attributes) -> None:
        number = self._number()
        begin = self._now
        self._now += STEP_S
        self._add(number, parent, name, begin, facts, ok=True)

    def _number(self) -> int:
        """Return the next number of a span, unlike those of other traces; the root's ends in 1."""
        self._used += 1
        return self._trace * 1_000 + self._used

    def _add(
        self,
        number: int,
        parent: int | None,
        name: str,
        begin: float,
        facts: Attributes,
        *,
        ok: bool,
    ) -> None:
        self._spans.append(
            span(
                number,
                parent,
                trace=self._trace,
                name=name,
                start=begin,
                end=self._now,
                status=STATUS_UNSET if ok else STATUS_ERROR,
                attributes={**facts, **self._session},
                scope=self._dialect.scope,
            )
        )


def _made(calls: tuple[Call, ...], agent: str) -> Iterator[tuple[Call, str]]:
    """Yield each call with the agent that makes it, those of a sub-agent after its own."""
    for call in calls:
        yield call, agent
        if call.agent is not None:
            yield from _made(call.calls, call.agent)


def files() -> Iterator[tuple[str, bytes]]:
    """Yield each file by name, the same bytes every time."""
    for place, (name, dialect) in enumerate(DIALECTS.items()):
        telling = Telling(dialect, first_trace=1 + place * 100)
        lines = json.dumps(traces_json(telling.spans()), sort_keys=True) + "\n"
        yield f"{name}.jsonl.gz", gzip.compress(lines.encode(), mtime=0)
        truth = json.dumps(telling.truth(), indent=1, sort_keys=True) + "\n"
        yield f"{name}.truth.json", truth.encode()


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for file_name, content in files():
        (FOLDER / file_name).write_bytes(content)
