from __future__ import annotations

import random
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from otel_reliability.contrast.compare import compare
from otel_reliability.contrast.sample import MAX_SAMPLES, LatestSamples, Sample, samples_of
from otel_reliability.contrast.sentences import of_comparison
from otel_reliability.model.run import Outcome, Run
from otel_reliability.recording import Recording
from otel_reliability.testing import call, run
from tests.shared import each_file


def told(before: list[Run], after: list[Run]) -> str:
    return of_comparison(compare(samples_of(before), samples_of(after)))


def of_path(*path: str, runs: int = 40, first: int = 0, **facts: object) -> list[Run]:
    return [run(path, first + n, **facts) for n in range(runs)]


def test_the_sentence_names_tools_and_calls() -> None:
    sentence = told(of_path("lookup"), of_path("lookup", "verify", "recheck", first=40))

    assert sentence.startswith("differs: ")
    assert "verify is used in 0 % → 100 % of the runs" in sentence
    assert "tool calls 1 → 3" in sentence


def test_success_and_errors_come_first() -> None:
    crashed = of_path("look", first=40, outcome=Outcome.FAILURE, ended_in_error=True)
    fine = of_path("look", "pay", outcome=Outcome.SUCCESS, ended_in_error=False)
    sentence = told(fine, crashed)

    assert sentence.startswith(
        "differs: success in 100 % → 0 % of the runs; an error at the end of"
    )
    assert sentence.index("an error at the end of 0 % → 100 %") < sentence.index("pay is used")


def test_the_order_of_steps_is_the_headline_where_nothing_else_differs() -> None:
    sentence = told(of_path("ask", "look"), of_path("look", "ask", first=40))

    assert "the last step in" in sentence
    assert "tool calls" not in sentence


def test_failed_and_retried_calls_are_named() -> None:
    calls = (call("pay", ok=False), call("pay", 1.0, retry=True, chain=1))
    retried = of_path("pay", "pay", first=40, tool_calls=calls)
    sentence = told(of_path("pay", "pay"), retried)

    assert "pay is retried in 0 % → 100 %" in sentence
    assert "failed tool calls 0 → 1" in sentence


def test_no_difference_is_said_with_the_size_that_would_have_been_shown() -> None:
    compared = compare(samples_of(of_path("a", "b")), samples_of(of_path("a", "b", first=40)))

    assert compared.differs is False
    assert compared.detectable is not None
    assert "a share would have to differ by 32 points" in of_comparison(compared)
    few = told(of_path("a", runs=5), of_path("a", runs=5, first=5))
    assert "by 92 points" in few


def test_too_few_runs_give_no_result() -> None:
    compared = compare(samples_of(of_path("a", runs=4)), samples_of(of_path("b")))

    assert compared.differs is None
    assert "there are 4 before and 40 after" in of_comparison(compared)
    perturbed = of_path("a", condition="typo")
    assert compare(samples_of(perturbed), samples_of(of_path("b"))).differs is None


def test_other_tasks_are_named_as_a_reason() -> None:
    before = [run(["a"], n, task_id=f"t{n % 8}") for n in range(40)]
    after = [run(["b"], 40 + n, task_id=f"u{n % 8}") for n in range(40)]

    assert "only 0 % of the runs are at tasks that both have" in told(before, after)


def test_the_order_of_arrival_does_not_matter() -> None:
    before = [run(["a", *["b"] * (n % 3)], n) for n in range(30)]
    after = [run(["a", *["b"] * (n % 4)], 30 + n) for n in range(30)]

    assert compare(samples_of(before), samples_of(after)) == compare(
        samples_of(before[::-1]), samples_of(after[::-1])
    )


def test_the_latest_runs_are_kept() -> None:
    kept = LatestSamples()
    for n in range(3 * MAX_SAMPLES):
        kept.add(run(["a"], n))

    assert [one.run_id for one in kept.latest()] == [
        f"run-{n}" for n in range(2 * MAX_SAMPLES, 3 * MAX_SAMPLES)
    ]


@cache
def main_agent(file: Path) -> list[Sample]:
    runs: list[Run] = []
    recording = Recording(final=runs.extend)
    recording.read(file)
    recording.close()
    [(key, _)] = Counter(one.key for one in runs if not one.nested).most_common(1)
    return samples_of(one for one in runs if one.key == key)


FILES = each_file("corpora/tau2/*.otlp.jsonl.gz", "corpora/taubench/*.otlp.jsonl.gz")


@pytest.mark.parametrize("comparisons", [200, pytest.param(1_000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("by_task", [False, True])
@pytest.mark.parametrize("file", FILES)
def test_halves_of_one_agent_seldom_differ(file: Path, by_task: bool, comparisons: int) -> None:
    """Halves by run, and by task, of every recording: so many comparisons in all."""
    samples = main_agent(file)
    blocks = sorted({one.block for one in samples})
    rng = random.Random(5)
    each = comparisons // (2 * len(FILES))
    false = 0
    for _ in range(each):
        if by_task:
            chosen = set(rng.sample(blocks, len(blocks) // 2))
            halves = [one.block in chosen for one in samples]
        else:
            halves = [at % 2 == 0 for at in range(len(samples))]
            rng.shuffle(halves)
        before = [one for one, first in zip(samples, halves, strict=True) if first]
        after = [one for one, first in zip(samples, halves, strict=True) if not first]
        false += compare(before, after).differs is True

    assert false <= 0.04 * each + 2 * (0.04 * 0.96 * each) ** 0.5
