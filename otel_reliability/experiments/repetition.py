"""A test as an experiment: `@pytest.mark.reliability` repeats it until its targets are decided."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from otel_reliability.experiments.decision import Results, SequentialTest, is_sequential, tests_of
from otel_reliability.experiments.faults import CALL, DEFAULT_KINDS, VARIABLE, Faults
from otel_reliability.experiments.journal import AttemptResult
from otel_reliability.experiments.rewriters import REWRITERS, variants_of
from otel_reliability.metrics.passes.run_counts import recommend_runs
from otel_reliability.model.row import BASELINE
from otel_reliability.report.target import GateTarget, parse
from otel_reliability.statistics.sequential import SequentialDecision

FAULT: Final = "fault"
HALF_WIDTH: Final = "0.05"


class VariedInput:
    """The input of a test as each attempt gives it to the agent: a test calls this with a text, and
    gets another form of it where the attempt is one that varies inputs.
    """

    def __init__(self) -> None:
        self._condition = BASELINE
        self._trial = 0
        self.calls = 0

    def begin(self, condition: str, trial: int) -> None:
        """Begin an attempt under a condition."""
        self._condition = condition
        self._trial = trial

    def __call__(self, text: str) -> str:
        """Return the input for this attempt. Raises `ConfigurationError` for one that has no other
        form.
        """
        if self._condition not in REWRITERS:
            return text
        self.calls += 1
        variants = variants_of(self._condition, "of this test", text)
        return variants[self._trial % len(variants)]


class Budget:
    """US dollars that the attempts at a test may cost. `spent` returns what the runs since the last
    call cost; None where one does not say.
    """

    def __init__(self, most: float, spent: Callable[[], float | None]) -> None:
        self._most = most
        self._spent = spent
        self._total = 0.0
        self._attempts = 0

    def ended_by(self) -> str:
        """Return why the next attempt must not begin; empty where it may."""
        cost = self._spent()
        if cost is None:
            return "an attempt does not say what it cost, so the limit of costs cannot hold"
        self._total += cost
        self._attempts += 1
        next_one = self._total / self._attempts
        if self._total + next_one > self._most:
            return f"{self._total:.4g} of {self._most:g} US dollars are spent"
        return ""


def repeat(
    test: Callable[[], object],
    name: str,
    *,
    require: str | Sequence[str],
    repeat: int | None = None,
    faults: float = 0.0,
    vary: str | Sequence[str] = (),
    varied: VariedInput | None = None,
    budget: Budget | None = None,
) -> None:
    """Call a test again and again, until all targets are decided, at most `repeat` times under each
    condition. With `faults`, calls of tools that are `faulty` fail at this rate in some attempts;
    with `vary` ("prompt", "structure"), inputs that the test passes through `varied` have another
    form in some.

    Raises `AssertionError` for a target that failed or is undecided, with the first failure of the
    test, and `ValueError` for a target that cannot be decided early, or a variation that is none.
    """
    conditions = _conditions(vary, faults)
    targets = _targets(require, conditions)
    varied = varied or VariedInput()
    tests = tests_of(targets, [name], conditions)
    results = Results([name])
    most = repeat or recommend_runs(HALF_WIDTH)
    first: Exception | None = None
    calls = 0
    ended_by = ""
    for trial in range(most):
        for condition in conditions:
            varied.begin(condition, trial)
            result, error, called = _attempt(
                test, name, trial, condition, faults if condition == FAULT else 0.0
            )
            first = first or error
            calls += called
            results.add(result)
        for one in tests:
            one.update(results)
        ended_by = "" if budget is None else budget.ended_by()
        if ended_by or all(one.decision is not SequentialDecision.UNDECIDED for one in tests):
            break
    if faults and not calls:
        raise AssertionError("no tool call could fail: decorate the tools with `faulty`")
    if vary and not varied.calls:
        raise AssertionError("no input was varied: pass it through the fixture `varied_input`")
    _conclude(tests, first, ended_by)


def _conditions(vary: str | Sequence[str], faults: float) -> tuple[str, ...]:
    """Return the conditions that alternate. Raises `ValueError` for a variation that is none."""
    variations = [vary] if isinstance(vary, str) else list(vary)
    for variation in variations:
        if variation not in REWRITERS:
            raise ValueError(f"vary={variation!r} is none of {', '.join(REWRITERS)}")
    return (BASELINE, *variations, *([FAULT] if faults else ()))


def _targets(require: str | Sequence[str], conditions: Sequence[str]) -> list[GateTarget]:
    """Return the targets. Raises `ValueError` for one that cannot be decided early."""
    texts = [require] if isinstance(require, str) else list(require)
    targets = [parse(text) for text in texts]
    for target in targets:
        if not is_sequential(target, conditions):
            raise ValueError(
                f"{target.text!r} is no rate of attempts; use success_rate, pass_hat_k.<k> or, "
                "with faults or vary, fault_robustness, prompt_robustness or structure_robustness"
            )
    return targets


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


def _conclude(tests: Sequence[SequentialTest], first: Exception | None, ended_by: str) -> None:
    missed = [one for one in tests if one.decision is not SequentialDecision.PASS]
    if missed:
        lines = [one.sentence for one in missed]
        if ended_by:
            lines.append(f"It ended because {ended_by}.")
        if first is not None:
            lines.append(f"The first failure: {type(first).__name__}: {first}")
        raise AssertionError("\n".join(lines)) from first
