"""A test as an experiment: `@pytest.mark.reliability` repeats it until its targets are decided."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from otel_reliability.experiments.decision import Results, SequentialTest, is_sequential, tests_of
from otel_reliability.experiments.faults import CALL, KINDS, VARIABLE, Faults
from otel_reliability.experiments.journal import AttemptResult
from otel_reliability.metrics.passes.run_counts import recommend_runs
from otel_reliability.model.row import BASELINE
from otel_reliability.report.target import parse
from otel_reliability.statistics.sequential import SequentialDecision

FAULT: Final = "fault"
DEFAULT_KINDS: Final = tuple(kind for kind in KINDS if kind != "slow")
HALF_WIDTH: Final = "0.05"


def repeat(
    test: Callable[[], object],
    name: str,
    *,
    require: str | Sequence[str],
    repeat: int | None = None,
    faults: float = 0.0,
) -> None:
    """Call a test again and again, until all targets are decided, at most `repeat` times under each
    condition. With `faults`, calls of tools that are `faulty` fail at this rate in every second
    attempt.

    Raises `AssertionError` for a target that failed or is undecided, with the first failure of the
    test, and `ValueError` for a target that cannot be decided early.
    """
    texts = [require] if isinstance(require, str) else list(require)
    targets = [parse(text) for text in texts]
    conditions = (BASELINE, FAULT) if faults else (BASELINE,)
    for target in targets:
        if not is_sequential(target, conditions):
            raise ValueError(
                f"{target.text!r} is no rate of attempts; use success_rate, pass_hat_k.<k> or, "
                "with faults, fault_robustness"
            )
    tests = tests_of(targets, [name], conditions)
    results = Results([name])
    most = repeat or recommend_runs(HALF_WIDTH)
    first: Exception | None = None
    calls = 0
    for trial in range(most):
        for condition in conditions:
            result, error, called = _attempt(
                test, name, trial, condition, faults if condition == FAULT else 0.0
            )
            first = first or error
            calls += called
            results.add(result)
        for one in tests:
            one.update(results)
        if all(one.decision is not SequentialDecision.UNDECIDED for one in tests):
            break
    if faults and not calls:
        raise AssertionError("no tool call could fail: decorate the tools with `faulty`")
    _conclude(tests, first)


def _attempt(
    test: Callable[[], object], name: str, trial: int, condition: str, faults: float
) -> tuple[AttemptResult, Exception | None, int]:
    """Return the result of one call, its error, and how many calls of tools could fail."""
    error: Exception | None = None
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "calls"
        counts.touch()
        if faults:
            asked = Faults(faults, str(trial), DEFAULT_KINDS, str(counts))
            os.environ[VARIABLE] = asked.encoded()
        try:
            test()
        except Exception as raised:  # noqa: BLE001  any error is a failed attempt
            error = raised
        finally:
            os.environ.pop(VARIABLE, None)
        calls = counts.read_text().count(CALL)
    is_error = error is not None and not isinstance(error, AssertionError)
    seconds = time.monotonic() - start
    result = AttemptResult(
        name, trial, condition, error is None, "test", is_error, 0, None, seconds
    )
    return result, error, calls


def _conclude(tests: Sequence[SequentialTest], first: Exception | None) -> None:
    missed = [one for one in tests if one.decision is not SequentialDecision.PASS]
    if missed:
        lines = [one.sentence for one in missed]
        if first is not None:
            lines.append(f"The first failure: {type(first).__name__}: {first}")
        raise AssertionError("\n".join(lines)) from first
