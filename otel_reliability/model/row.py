"""A row: what a window keeps of a run, and all that a metric may look at.

Rows are compact and self-contained: adding one and evicting it later see exactly the same facts, whatever happened since.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeVar

from otel_reliability.model.run import Outcome

BASELINE: Final = "baseline"
"""The condition of an undisturbed run."""

BYTE: Final = 256
MOST_SHARED: Final = 16_384
"""Sets of tools, and of how often each is used, that are remembered for paths to come."""

T = TypeVar("T")

_known: dict[Any, Any] = {}

_SUCCESS, _FAILURE = Outcome.SUCCESS, Outcome.FAILURE

OTHER_TASK: Final = "__other__"
"""The task of runs beyond the ceiling of tasks: a mixture, so no group of its own and part of none."""


class Path:
    """The ordered tool names of a run, with what metrics need of them, made once a distinct path and shared.

    `code` spells the path with one character a tool, so that edit distances run on plain strings; codes are comparable only
    between paths of one `windows.paths.PathTable`. `tools` are its different tools, sorted, and `times` how often it has each.
    `held` is for whoever made it: how many rows have it. Two paths are the same if they are one object: hashing them by their
    names would cost more than most of what is done with them.

    >>> Path(("search", "read", "search"), '!"!').counts
    (('read', 1), ('search', 2))
    """

    __slots__ = ("_steps", "code", "held", "times", "tools")

    def __init__(self, names: tuple[str, ...], code: str) -> None:
        tools = tuple(sorted(set(names)))
        self.code = code
        self.tools = _shared(tools)
        self.times = _shared(tuple([names.count(tool) for tool in tools]))
        self.held = 0
        self._steps = _steps(names, tools)

    @property
    def names(self) -> tuple[str, ...]:
        """Its steps."""
        tools = self.tools
        return tuple([tools[at] for at in self._steps])

    def __repr__(self) -> str:
        return f"Path(names={self.names!r}, code={self.code!r})"

    @property
    def counts(self) -> tuple[tuple[str, int], ...]:
        """(tool, how often), sorted by tool."""
        return tuple(zip(self.tools, self.times, strict=True))


def _steps(names: tuple[str, ...], tools: tuple[str, ...]) -> bytes | tuple[int, ...]:
    """Which of the tools each step is, in a byte each, where there are no more tools than that."""
    places = {tool: at for at, tool in enumerate(tools)}
    steps = [places[name] for name in names]
    return bytes(steps) if len(tools) <= BYTE else tuple(steps)


def _shared(value: T) -> T:
    """The same value as others have, while it is remembered: agents have tools in common, and paths what they have of them."""
    if len(_known) >= MOST_SHARED:
        _known.clear()
    return _known.setdefault(value, value)


class Retries(NamedTuple):
    """The retries of one run. `tool` is the tool of the longest chain; tokens and nanoseconds are what the retries cost."""

    number: int
    longest_chain: int
    tool: str | None
    tokens: int
    duration_ns: int
    repeats: int


class Row(NamedTuple):
    """One run as a window keeps it. None means: no evidence.

    - `path`: None for runs that give no evidence to path metrics (tools unobservable, or the run incomplete).
    - `retries`, `tool_calls`, `failed_calls`: None where the tools are unobservable.
    - `effects`: (tool, hash) of the calls that changed something, None where they cannot be told or compared (no task).
    - `signals`: (evaluation name, score) of the run, sorted; `derived` names those we computed ourselves.
    - `latency_ns`: mean duration of its model calls.
    - `by_status`: its success is no more than an end without error (`outcome.fallback: status`).
    """

    end_ns: int
    run_id: str
    start_ns: int
    task: str | None
    input_class: str | None
    condition: str
    branches: tuple[tuple[str, str], ...]
    path: Path | None
    tool_calls: int | None
    failed_calls: int | None
    retries: Retries | None
    pressure: float | None
    model_calls: int
    tokens: int | None
    latency_ns: int | None
    outcome: Outcome
    confidence: float | None
    cost: float | None
    violations: tuple[tuple[str, str], ...] | None
    session_id: str | None
    signals: tuple[tuple[str, float], ...]
    effects: frozenset[tuple[str, bytes | None]] | None
    weight: int
    arguments_known: bool
    by_status: bool = False

    @property
    def order(self) -> tuple[int, str]:
        """The order of runs in a window: by end, then by run id."""
        return (self.end_ns, self.run_id)

    @property
    def success(self) -> bool | None:
        """True or False where the outcome is known, else None."""
        outcome = self.outcome
        if outcome is _SUCCESS:
            return True
        return False if outcome is _FAILURE else None

    @property
    def baseline(self) -> bool:
        """Whether the run was undisturbed: perturbed runs count for robustness only."""
        return self.condition == BASELINE
