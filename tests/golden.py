"""Compare two versions of the core on recorded and generated telemetry.

    python -m tests.golden dump FOLDER [--histories 10000]    with the version that is trusted
    python -m tests.golden compare FOLDER                     with the version that is new

`dump` writes, for every recording of ../shared/corpora and for generated histories, the final runs,
the number of run events, the readings of every window and the session scores, one JSON line each.
`compare` makes the same again and names what differs; it exits 1 if anything does. The reason a run
closed (`closed_by`) is left out: it depends on when spans arrive.
"""

from __future__ import annotations

import argparse
import enum
import gzip
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import asdict, replace

from otel_reliability.config import AssemblySettings, SessionSettings, Settings, WindowSettings
from otel_reliability.engine import Engine
from otel_reliability.model.coding import EFFECT_SIZE
from otel_reliability.model.run import CloseReason, Run, RunEvent
from otel_reliability.model.span import (
    AgentSpan,
    Call,
    Evaluation,
    Kind,
    Notes,
    RawSpan,
    Session,
    ToolFacts,
)
from otel_reliability.sources.otlp_json import read_file
from otel_reliability.testing import (
    FakeClock,
    agent,
    agent_span,
    at,
    handoff,
    model,
    other,
    span_id,
    tool,
    trace_id,
    workflow,
)
from tests.shared import SHARED

CORPORA: Final = ("captured", "coding_agents", "otel_real", "swe", "tau2", "taubench")
HASH_KEY: Final = "ab" * 32
HISTORY_SETTINGS: Final = Settings(
    windows=(WindowSettings("recent", last=5), WindowSettings("minute", period=60.0)),
    assembly=AssemblySettings(linger=2.0, idle_timeout=20.0, reopen=30.0, remember=120.0),
    sessions=SessionSettings(idle=60.0),
    hash_key=HASH_KEY,
)
AGENTS: Final = ("planner", "support", "billing", None)
TOOLS: Final = ("search", "book", "refund", "lookup_order", "send_mail")


# --- What is compared -----------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """Return the value as JSON holds it; floats keep all their digits."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value)
        return {str(plain(key)): plain(item) for key, item in items.items()}
    if isinstance(value, AbstractSet):
        return sorted((plain(item) for item in cast("AbstractSet[Any]", value)), key=repr)
    if isinstance(value, Struct):
        return plain(asdict(value))
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in cast("Sequence[Any]", value)]
    return value


def _comparable(run: Run) -> dict[str, Any]:
    """Return a run without what depends on arrival, and without what the recorded truth does not
    have: `has_effect`, `cached_tokens`, ids of responses, the mark of a command, and `compressions` and `flaws` where there
    is none.
    """
    found = {**plain(run), "closed_by": None}
    for name in ("first_step", "last_response", "previous_response", "resumes"):
        del found[name]
    for name in ("compressions", "flaws"):
        if not found[name]:
            del found[name]
    for call in found["tool_calls"] or ():
        del call["has_effect"]
        call["effect"] = call["effect"] and call["effect"][: 2 * EFFECT_SIZE]
    for call in found["model_calls"] or ():
        del call["cached_tokens"]
    return found


class Observed:
    """Everything that an engine emits while `feed` uses it."""

    def __init__(self, settings: Settings, *, wall: bool) -> None:
        self.clock = FakeClock()
        self.engine = Engine(settings, clock=self.clock, wall=self.clock.wall if wall else None)
        self.events: Counter[str] = Counter()
        self.engine.observers.append(self._observe)

    def _observe(self, event: RunEvent, now: float) -> None:
        self.events[event.change.value] += 1

    def result(self) -> dict[str, Any]:
        engine = self.engine
        runs = {run.run_id: _comparable(run) for run in engine.take_final()}
        scored = [
            [
                plain(event.key),
                event.session.end_ns,
                event.reliability,
                event.consistency,
                event.first,
                len(event.runs),
            ]
            for event in engine.take_scored()
        ]
        readings: dict[str, Any] = {}
        for key in engine.agents.keys():  # noqa: SIM118  it is no mapping
            state = engine.agents.agent(key)
            assert state is not None
            for name, window in state.windows.items():
                readings["|".join([*key[:4], name])] = {
                    metric: plain(reading) for metric, reading in window.readings().items()
                }
        return {
            "runs": dict(sorted(runs.items())),
            "readings": dict(sorted(readings.items())),
            "sessions": sorted(scored, key=repr),
            "accounts": {
                "|".join(key): number for key, number in sorted(engine.accounts.items()) if number
            },
            "events": dict(self.events),
        }


# --- Recordings -----------------------------------------------------------------------------------


def recordings() -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """Yield the name of every recording, and what makes its result."""
    for folder in CORPORA:
        for file in sorted((SHARED / "corpora" / folder).glob("*.jsonl.gz")):
            if ".metrics." not in file.name:
                yield f"{folder}/{file.name}", lambda file=file: of_recording(file)


def of_recording(file: Path) -> dict[str, Any]:
    """Return the result of a whole file, its sessions closed at the end."""
    observed = Observed(Settings(hash_key=HASH_KEY), wall=False)
    for batch in read_file(file):
        observed.engine.receive(batch.spans)
        observed.engine.receive_evaluations(batch.evaluations)
    observed.engine.flush(CloseReason.END_OF_INPUT)
    return observed.result()


# --- Generated histories --------------------------------------------------------------------------


def chain(number: int, parent: int | None = None, **place: Any) -> AgentSpan:
    """Return an untyped container."""
    return agent_span(Kind.CHAIN, None, number, parent, **place)


def two_calls(number: int, parent: int | None = None, **place: Any) -> AgentSpan:
    """Return a tool span that reports two calls, one of them failed."""
    calls = (Call("lookup_order", None, b"a"), Call("search", None, b"b", True))
    return agent_span(Kind.TOOL, ToolFacts(calls), number, parent, **place)


class History:
    """Seeded telemetry of a few traces with all that goes wrong on the way, and the order in which
    it arrives.
    """

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.number = 0
        self.spans: list[AgentSpan] = []
        self.evaluations: list[Evaluation] = []
        for trace in range(1, self.dice.choice((1, 1, 2, 3)) + 1):
            self._trace(trace)

    def chance(self, share: float) -> bool:
        return self.dice.random() < share

    def _add(
        self, make: Callable[..., AgentSpan], parent: int | None, *args: Any, **facts: Any
    ) -> AgentSpan:
        self.number += 1
        if self.chance(0.03):
            facts["remote"] = None
        span = make(self.number, parent, *args, trace=self.trace, **facts)
        self.spans.append(span)
        return span

    def _trace(self, trace: int) -> None:
        self.trace, self.time = trace, self.dice.randrange(0, 200) / 10
        for _ in range(self.dice.choice((1, 1, 1, 2))):
            top = None
            if self.chance(0.25):
                remote = self.chance(0.3)
                top = self._container(None if not remote else 900 + trace, remote=remote)
            self._invocation(top, 0)
        if self.chance(0.25):
            self._orphans()
        if self.chance(0.2):
            self._evaluate()

    def _container(self, parent: int | None, **facts: Any) -> int:
        start = self.time
        kind = self.dice.choice((Kind.OTHER, Kind.OTHER, Kind.CHAIN))
        make = other if kind is Kind.OTHER else chain
        self._add(make, parent, start=start, end=start + 30, **facts)
        return self.number

    def _times(self, longest: int = 15) -> tuple[float, float]:
        start = self.time
        end = start + self.dice.randrange(0, longest) / 10
        if not self.chance(0.2):
            self.time = end
        return start, end

    def _notes(self) -> Notes | None:
        if not self.chance(0.4):
            return None
        dice = self.dice
        return Notes(
            task_id=dice.choice(("t1", "t2", None)),
            success=dice.choice((True, False, None, None)),
            confidence=dice.choice((None, 0.2, 0.8)),
            cost=dice.choice((None, None, 0.5)),
            condition=dice.choice((None, None, None, "fault")),
            branches=dice.choice(((), (), (("route", "left"),), (("route", "right"),))),
            violations=dice.choice((None, None, (), (("pii", "high"),))),
            run_key=dice.choice((None, None, None, "ab" * 16)),
        )

    def _invocation(self, parent: int | None, depth: int) -> int:
        start = self.time
        name = self.dice.choice(AGENTS)
        make = workflow if self.chance(0.2) else agent
        at_index = len(self.spans)
        session = (
            Session(self.dice.choice((0, 1)), self.dice.choice(("c1", "c2")))
            if self.chance(0.4)
            else None
        )
        placed = self._add(make, parent, name, start=start, notes=self._notes(), session=session)
        number = self.number
        for _ in range(self.dice.randrange(0, 5)):
            self._step(number, depth)
        self.time += self.dice.randrange(0, 5) / 10
        self.spans[at_index] = replace(
            placed,
            start_ns=at(start),
            end_ns=at(self.time),
            failed=self.chance(0.15),
            evaluations=self._evaluation(placed),
        )
        return number

    def _evaluation(self, span: AgentSpan) -> tuple[Evaluation, ...]:
        if not self.chance(0.1):
            return ()
        name = self.dice.choice(("success", "coherence", "confidence", "constraint.pii"))
        return (Evaluation(name, self.dice.choice((0.0, 0.4, 0.9)), None, span.start_ns),)

    def _step(self, parent: int, depth: int) -> None:
        kind = self.dice.random()
        dice = self.dice
        start, end = self._times()
        if kind < 0.3:
            tokens = dice.choice(((100, 10), (90_000, 500), (None, None)))
            self._add(
                model,
                parent,
                tokens,
                dice.choice(("gpt-4o", "model-1")),
                start=start,
                end=end,
                failed=self.chance(0.1),
                scope=dice.choice(("test", "other")),
            )
            if self.chance(0.1):
                self._add(model, self.number, (50, 5), start=start, end=end)
        elif kind < 0.75:
            name = dice.choice(TOOLS)
            facts: dict[str, Any] = {
                "start": start,
                "end": end,
                "failed": self.chance(0.3),
                "arguments": dice.choice((b"a", b"b", None)),
                "result": dice.choice((None, b"x")),
                "call_id": dice.choice((None, None, f"call-{self.number}")),
            }
            if self.chance(0.05):
                self._add(two_calls, parent, start=start, end=end)
                return
            self._add(tool, parent, name, **facts)
            number = self.number
            if self.chance(0.15):
                self._add(tool, number, name, **facts | {"call_id": facts["call_id"]})
            if self.chance(0.15) and depth < 2:
                self._invocation(number, depth + 1)
        elif kind < 0.82:
            self._add(handoff, parent, dice.choice(("billing", None)), start=start, end=end)
        elif kind < 0.9:
            self._add(other, parent, start=start, end=end)
            self._step(self.number, depth)
        elif depth < 3:
            self._invocation(parent, depth + 1)

    def _orphans(self) -> None:
        missing = 5_000 + self.trace
        for _ in range(self.dice.randrange(1, 4)):
            start, end = self._times()
            if self.chance(0.6):
                self._add(
                    tool,
                    missing,
                    self.dice.choice(TOOLS),
                    start=start,
                    end=end,
                    notes=self._notes(),
                )
            else:
                self._add(
                    model,
                    self.dice.choice((missing, None)),
                    start=start,
                    end=end,
                    notes=self._notes(),
                )
        if self.chance(0.3):  # the parent of the orphans arrives after all
            self.spans.append(
                agent(missing, None, "late", trace=self.trace, start=0, end=self.time)
            )
        if self.chance(0.3) and self.trace > 1:
            link = (trace_id(1), span_id(self.dice.randrange(1, self.number)))
            self._add(agent, None, "linked", start=self.time, end=self.time + 1, link=link)

    def _evaluate(self) -> None:
        target = self.dice.choice(
            [span for span in self.spans if span.trace_id == trace_id(self.trace)]
        )
        self.evaluations.append(
            Evaluation(
                self.dice.choice(("success", "coherence", "relevance")),
                self.dice.choice((0.0, 0.5, 1.0)),
                self.dice.choice((None, "pass", "fail")),
                at(self.time),
                target.trace_id,
                target.span_id if self.chance(0.7) else None,
            )
        )

    def arrivals(self) -> Iterator[tuple[float, list[AgentSpan | Evaluation]]]:
        """Yield (seconds to wait, what arrives then): mostly in the order of ends; some late,
        doubled or in another version.
        """
        dice = self.dice
        items: list[tuple[float, AgentSpan | Evaluation]] = []
        spread = dice.choice((0.0, 1.0, 5.0, 40.0, 200.0))
        for span in self.spans:
            items.append((span.end_ns / 1e9 - at(0) / 1e9 + dice.random() * spread, span))
            if self.chance(0.08):
                twin = span if self.chance(0.5) else replace(span, end_ns=span.end_ns + 10**8)
                items.append((items[-1][0] + dice.random() * 60, twin))
        items.extend((dice.random() * 90, evaluation) for evaluation in self.evaluations)
        items.sort(key=lambda item: item[0])
        if self.chance(0.2):
            dice.shuffle(items)
            items = [(0.0, item) for _, item in items]
        now = 0.0
        while items:
            size = dice.choice((1, 2, 5, 20))
            batch = items[:size]
            items = items[size:]
            due = max(now, batch[-1][0])
            yield due - now, [item for _, item in batch]
            now = due


def of_history(seed: int) -> dict[str, Any]:
    history = History(seed)
    observed = Observed(HISTORY_SETTINGS, wall=True)
    for seconds, batch in history.arrivals():
        observed.clock.advance(seconds)
        observed.engine.tick()
        observed.engine.receive([item for item in batch if isinstance(item, AgentSpan | RawSpan)])
        observed.engine.receive_evaluations(
            [item for item in batch if isinstance(item, Evaluation)]
        )
    for _ in range(history.dice.choice((0, 5, 30))):
        observed.clock.advance(5)
        observed.engine.tick()
    observed.engine.flush(CloseReason.END_OF_INPUT)
    return observed.result()


# --- Command --------------------------------------------------------------------------------------


def results(histories: int) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, make in recordings():
        yield name, make()
    for seed in range(histories):
        yield f"history {seed}", of_history(seed)


def dump(folder: Path, histories: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.open(folder / "golden.jsonl.gz", "wt", encoding="utf-8", compresslevel=3) as out:
        for name, result in results(histories):
            out.write(json.dumps([name, result]) + "\n")


def compare(folder: Path, only: str, most: int) -> int:
    """Print what differs from the dump in the folder, and return how many results do."""
    different: Counter[str] = Counter()
    shown = number = 0
    made = dict(recordings())
    with gzip.open(folder / "golden.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            name, expected = json.loads(line)
            if only not in name:
                continue
            number += 1
            make = made.get(name)
            found = make() if make is not None else of_history(int(name.removeprefix("history ")))
            found = _without_new_metrics(json.loads(json.dumps(found)), expected)
            parts = [part for part in expected if expected[part] != found[part]]
            different.update(parts)
            if parts and shown < most:
                shown += 1
                print(f"{name}: {', '.join(parts)}")
                for part in parts:
                    for text in differences(expected[part], found[part], part):
                        print("   ", text)
    print(f"{number} results; different: {dict(different) or 'none'}")
    return sum(count for part, count in different.items() if part != "events")


def _without_new_metrics(found: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    """Return a result without the metrics that the truth does not have."""
    for window, readings in found["readings"].items():
        known = expected["readings"].get(window, readings)
        found["readings"][window] = {
            name: reading for name, reading in readings.items() if name in known
        }
    return found


def differences(old: Any, new: Any, where: str, most: int = 6) -> Iterator[str]:
    """Yield the first few places where two JSON values differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        one = cast("dict[str, Any]", old)
        two = cast("dict[str, Any]", new)
        left = most
        for key in sorted(one.keys() | two.keys()):
            if one.get(key) != two.get(key) and left:
                for text in differences(one.get(key), two.get(key), f"{where}.{key}", left):
                    yield text
                    left -= 1
                    if not left:
                        return
    elif old != new:
        before = str(cast("object", old))[:300]
        after = str(cast("object", new))[:300]
        yield f"{where}: {before} → {after}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("verb", choices=("dump", "compare"))
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--histories", type=int, default=10_000, help="generated histories to dump (default 10000)"
    )
    parser.add_argument("--only", default="", help="compare results whose name contains this")
    parser.add_argument(
        "--most", type=int, default=10, help="differing results to print in detail (default 10)"
    )
    options = parser.parse_args()
    if options.verb == "dump":
        dump(options.folder, options.histories)
        return 0
    return 1 if compare(options.folder, options.only, options.most) else 0


if __name__ == "__main__":
    sys.exit(main())
