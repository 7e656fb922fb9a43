"""Content on and off: the same runs, and nothing claimed that only content tells."""

from __future__ import annotations

import functools

import pytest
from msgspec.structs import replace

from otel_reliability.model.span import Resource
from tests.conventions.reading import READER
from tests.corpora.compare import FIELDS, match
from tests.corpora.content import quotes_a_prompt, without_content
from tests.corpora.known import every_agent_capture, misses
from tests.corpora.recordings import Rebuilt, captured, rebuilt, rebuilt_capture, truth

ONLY_WITH_CONTENT = {
    ("crewai-openllmetry", "path"),
    ("google_adk15-native", "tokens"),
    ("haystack218-native", "failed calls"),
    ("haystack218-native", "path"),
    ("haystack218-native", "retries"),
    ("haystack218-native", "agents of steps"),
    ("haystack218-native", "tokens"),
    ("langgraph04-openllmetry", "session"),
    ("llama_index-otel", "failed calls"),
    ("llama_index-otel", "hand-offs"),
    ("llama_index-otel", "path"),
    ("llama_index-otel", "retries"),
    ("smolagents117-openinference", "tokens"),
}
"""Fields that a capture tells in its content alone."""
NOBODY = Resource()
PROMISED = ("langgraph", "openai_agents", "pydantic_ai", "vercel")
"""Frameworks whose runs must not depend on content at all."""


@functools.cache
def rebuilt_without_content(capture: str) -> Rebuilt:
    return rebuilt(map(without_content, captured(capture)))


@every_agent_capture
def test_no_prompt_is_left(capture: str) -> None:
    """What is taken out is all that quotes a prompt: otherwise these tests would show nothing."""
    for span in map(without_content, captured(capture)):
        assert quotes_a_prompt(span.attributes) == [], span.name
        assert not any(event.attributes for event in span.events)


@every_agent_capture
def test_runs_agents_and_outcomes_are_the_same(capture: str) -> None:
    found = {
        run.run_id: (run.key, run.outcome, run.nested)
        for run in rebuilt_without_content(capture).runs
    }

    assert found == {
        run.run_id: (run.key, run.outcome, run.nested) for run in rebuilt_capture(capture).runs
    }


@every_agent_capture
def test_paths_are_the_same_or_unobservable(capture: str) -> None:
    """Never another path, and never an empty one in place of what cannot be seen; where promised,
    the same.
    """
    full = {run.run_id: run for run in rebuilt_capture(capture).runs}
    for run in rebuilt_without_content(capture).runs:
        if run.path is not None or capture.startswith(PROMISED):
            assert (run.path, run.retries) == (full[run.run_id].path, full[run.run_id].retries), (
                run.run_id
            )


@every_agent_capture
def test_unknown_arguments_are_told(capture: str) -> None:
    """Where no arguments are known, a run that called tools says so; an empty path knows all of its
    none.
    """
    for run in rebuilt_without_content(capture).runs:
        if run.tool_calls is not None:
            assert run.arguments_known is (not run.tool_calls)


NEVER_WRONG = sorted(ONLY_WITH_CONTENT - {("google_adk15-native", "tokens")})
"""ADK 1.5 writes a total as its output tokens, which only the response's JSON gives away."""


@pytest.mark.parametrize(("capture", "field"), NEVER_WRONG)
def test_what_only_content_tells_is_absent_without_it(capture: str, field: str) -> None:
    pairs = match(truth(capture), rebuilt_without_content(capture).tops).pairs
    missed = misses(truth(capture), field, pairs)

    for true, run in pairs:
        if true.id in missed:
            assert run is not None
            told = {"tokens": (run.input_tokens, run.output_tokens), "session": (run.session_id,)}
            assert not any(
                value is not None for value in told.get(field, (run.path, run.tool_calls))
            ), true.id


@every_agent_capture
def test_no_content_is_kept(capture: str) -> None:
    for span in captured(capture):
        assert quotes_a_prompt({"kept": replace(READER.read(span), resource=NOBODY)}) == [], (
            span.name
        )


@pytest.mark.parametrize("field", FIELDS)
@every_agent_capture
def test_what_only_content_tells_is_listed(capture: str, field: str) -> None:
    with_content = misses(
        truth(capture), field, match(truth(capture), rebuilt_capture(capture).tops).pairs
    )
    without = misses(
        truth(capture), field, match(truth(capture), rebuilt_without_content(capture).tops).pairs
    )

    assert (set(without) > set(with_content)) is ((capture, field) in ONLY_WITH_CONTENT)
    assert set(without) >= set(with_content)
