"""A row: the part of a run that a window keeps, and all that a metric may read.

Rows are compact and self-contained: adding one and evicting it later see exactly the same facts,
whatever happened since.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import Struct

from otel_reliability.model.coding import CodingTotals
from otel_reliability.model.run import Outcome

BASELINE: Final = "baseline"
"""The condition of an undisturbed run."""

_SUCCESS = Outcome.SUCCESS
_FAILURE = Outcome.FAILURE

OTHER_TASK: Final = "__other__"
"""The task of runs beyond the limit of tasks: a mixture, so no group of its own and part of none.
"""


class Path(Struct, eq=False, gc=False):
    """The ordered tool names of a run, made once a distinct path and shared.

    `code` spells the path with one character a tool, so that edit distances run on plain strings;
    codes are comparable only between paths of one `windows.rows.PathTable`, which keeps what the
    characters stand for. `held` is the number of rows that have it. Two paths are the same if they
    are one object: hashing them by their names would cost more than most of what is done with them.

    >>> Path('!"!', {"!": "search", '"': "read"}).counts
    (('read', 1), ('search', 2))
    """

    code: str
    _spelled: Mapping[str, str]
    held: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        spelled = self._spelled
        return tuple([spelled[symbol] for symbol in self.code])

    def spell_by(self, spelled: Mapping[str, str]) -> None:
        """Look up its characters there from now on."""
        self._spelled = spelled

    def __repr__(self) -> str:
        return f"Path(code={self.code!r}, names={self.names!r})"

    @property
    def tools(self) -> tuple[str, ...]:
        return tuple(sorted(set(self.names)))

    @property
    def counts(self) -> tuple[tuple[str, int], ...]:
        """(tool, how often), sorted by tool."""
        names = self.names
        return tuple([(tool, names.count(tool)) for tool in sorted(set(names))])


class Retries(NamedTuple):
    """The retries and repeats of one run, and what they cost in tokens and nanoseconds. `tool` is
    that of the longest chain.
    """

    number: int
    longest_chain: int
    tool: str | None
    tokens: int
    duration_ns: int
    repeats: int
    repeat_tokens: int = 0
    repeat_ns: int = 0


class CallTotals(NamedTuple):
    """The tool calls of a part of a run: how many, how many failed, were retries, were repeats."""

    calls: int
    failed: int
    retries: int
    repeats: int


class Compressions(NamedTuple):
    """The compressions of the context in one run: those that succeeded, those that failed, and the
    calls around the first.

    `tokens_before` and `tokens_after` are sums over those that succeeded and report both.
    """

    number: int
    failed: int
    tokens_before: int
    tokens_after: int
    before: CallTotals
    after: CallTotals


class Row(Struct, frozen=True, gc=False):
    """One run as a window keeps it. None means: no data.

    - `path`: None for runs that do not count for path metrics (tools unobservable, or the run
      incomplete).
    - `retries`, `tool_calls`, `failed_calls`: None where the tools are unobservable.
    - `effects`: (tool, hash) of the calls that changed something, None where unknown, or not
      compared (no task) and not empty.
    - `signals`: (evaluation name, score) of the run, sorted; `derived` names those we computed
      ourselves.
    - `latency_ns`: mean duration of its model calls.
    - `models`: the names of the models that it called, sorted.
    - `step_growth`: the rise of the share of the context window from one model call of its agent to
      the next.
    - `compressions`: those of the context; None where there is none.
    - `ended_in_error`: whether the run ended in an error, whatever its outcome.
    - `request`: the sketch of what the user asked, where no task is known; None where the telemetry
      does not hold it.
    - `group`: the number of its input group among the runs of its window, which are compared with
      one another; None until the window forms its groups, and without a request.
    - `coding`: what it did to files; None where it read and changed none.
    - `cached_tokens`, `input_tokens`: `CachedInput`.
    - `by_status`: its success is no more than an end without error (`outcome.fallback: status`).
    - `flaws`: the kinds of flaws of its telemetry (`model.flaws`).
    - `outcome_key`: the hash of its business key.
    - `outcome_ns`: when its outcome became known, where that was reported apart from spans.
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
    models: tuple[str, ...] = ()
    step_growth: float | None = None
    compressions: Compressions | None = None
    ended_in_error: bool | None = None
    request: bytes | None = None
    group: int | None = None
    flaws: tuple[str, ...] = ()
    coding: CodingTotals | None = None
    cached_tokens: int = 0
    input_tokens: int = 0
    nested: bool = False
    outcome_key: str | None = None
    outcome_ns: int | None = None

    @property
    def success(self) -> bool | None:
        """True or False where the outcome is known, else None."""
        outcome = self.outcome
        if outcome is _SUCCESS:
            return True
        return False if outcome is _FAILURE else None

    @property
    def failed(self) -> bool | None:
        """True if it is known to have failed: by its outcome, or, where that is not known, by an
        error at its end; None where neither is known.
        """
        return self.ended_in_error if self.success is None else not self.success

    @property
    def undisturbed(self) -> bool:
        """True if nothing was perturbed: other runs count for robustness only."""
        return self.condition == BASELINE
