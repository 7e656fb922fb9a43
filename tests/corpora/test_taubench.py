"""tau-bench: counts known from the benchmark's own files."""

from __future__ import annotations

import functools
import json
from collections import Counter, defaultdict
from typing import Any

import pytest
from msgspec.structs import replace

from otel_reliability.config import MetricSettings
from otel_reliability.model.run import Outcome, Run
from otel_reliability.model.span import RawSpan
from tests.corpora.recordings import Rebuilt, rebuilt, recording
from tests.shared import shared

GPT_4O = "gpt-4o_airline_4trials"
GROK_3 = "grok-3_retail_1trial_faults"
EXPLODES = MetricSettings().retry_threshold


def spans(name: str) -> tuple[RawSpan, ...]:
    return recording(f"taubench/{name}.otlp.jsonl.gz").spans


@functools.cache
def runs(name: str) -> Rebuilt:
    return rebuilt(spans(name))


@functools.cache
def truth(name: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(
        shared("corpora/taubench/truth.json").read_text(encoding="utf-8")
    )
    return told["datasets"][name]


def exploding(found: Rebuilt) -> list[Run]:
    return [run for run in found.runs if (run.longest_retry_chain or 0) >= EXPLODES]


def longest_streak(run: Run) -> int:
    """The longest row of calls of one tool."""
    longest = streak = 0
    for number, name in enumerate(run.path or ()):
        streak = streak + 1 if number and name == (run.path or ())[number - 1] else 1
        longest = max(longest, streak)
    return longest


@pytest.mark.parametrize("name", [GPT_4O, GROK_3])
def test_every_run_is_what_the_benchmark_says(name: str) -> None:
    """Task, trial, success, number of calls and of failed ones, run by run; every span is used."""
    told = truth(name)["runs"]
    true = {
        (run["task"], run["trial"]): (run["success"], run["n_calls"], run["errors"]) for run in told
    }
    found = {
        (run.task_id, run.trial): (
            run.success,
            len(run.tool_calls or ()),
            sum(not call.ok for call in run.tool_calls or ()),
        )
        for run in runs(name).runs
    }

    assert found == true
    assert runs(name).accounts == {
        ("received", ""): len(spans(name)),
        ("used", ""): len(spans(name)),
    }


@pytest.mark.parametrize("name", [GPT_4O, GROK_3])
def test_every_path_is_the_sequence_of_its_trial(name: str) -> None:
    found: dict[str | None, dict[int | None, list[str]]] = defaultdict(dict)
    for run in runs(name).runs:
        found[run.task_id][run.trial] = list(run.path or ())

    for task, true in truth(name)["per_task"].items():
        assert [
            path for _, path in sorted(found[task].items(), key=lambda item: item[0] or 0)
        ] == true["sequences"]


def test_streaks_without_an_error_explode_nowhere() -> None:
    """28 runs call one tool five times or more in a row without an error: no retry, and none
    explodes.
    """
    streaks = [
        run
        for run in runs(GPT_4O).runs
        if longest_streak(run) >= 5 and all(call.ok for call in run.tool_calls or ())
    ]

    assert len(streaks) == 28
    assert {run.longest_retry_chain for run in streaks} == {0}


@pytest.mark.parametrize(("name", "number"), [(GPT_4O, 8), (GROK_3, 6)])
def test_without_arguments_more_looks_like_a_retry(name: str, number: int) -> None:
    """With arguments unknown a call is taken for a retry by its tool alone; the runs say that they
    were unknown.
    """
    key = "gen_ai.tool.call.arguments"
    bare = rebuilt(
        replace(
            span, attributes={name: value for name, value in span.attributes.items() if name != key}
        )
        for span in spans(name)
    )

    assert len(exploding(bare)) == number
    assert all(run.arguments_known for run in runs(name).runs)
    assert not any(run.arguments_known for run in bare.runs if run.tool_calls)


def test_one_trace_a_turn_is_one_run_a_turn() -> None:
    """The same trials with a trace a user turn: as many runs as traces, in 200 conversations, with
    the same calls.
    """
    found = runs(GPT_4O + ".turns")
    by_session: dict[str | None, list[str]] = defaultdict(list)
    for run in found.runs:
        by_session[run.session_id].extend(run.path or ())
    whole = {run.session_id: list(run.path or ()) for run in runs(GPT_4O).runs}

    assert len(found.runs) == len({span.trace_id for span in spans(GPT_4O + ".turns")})
    assert by_session == whole
    assert Counter(run.outcome for run in found.runs if run.outcome is not Outcome.COMPLETED) == {
        Outcome.SUCCESS: 84,
        Outcome.FAILURE: 116,
    }
