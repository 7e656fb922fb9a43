"""Laws over everything recorded: order, repetition and company change nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from otel_reliability.conventions import requests
from otel_reliability.model.run import Run
from otel_reliability.model.span import RawSpan
from tests.conventions.reading import READER, unwanted
from tests.corpora.recordings import (
    ALL_CAPTURES,
    CAPTURES,
    Rebuilt,
    captured,
    every_capture,
    rebuilt,
    rebuilt_capture,
)

ONE_CALL = ("mcp_client-native", "mcp_server-native")


def by_id(found: Rebuilt | Sequence[Run]) -> dict[str, Run]:
    """Runs by id, none of them twice."""
    runs = found.runs if isinstance(found, Rebuilt) else found
    assert len({run.run_id for run in runs}) == len(runs)
    return {run.run_id: run for run in runs}


def two_services() -> Rebuilt:
    """The runs of an agent and of the tool server it calls, which are recorded apart and share
    their traces.
    """
    return rebuilt([span for capture in ONE_CALL for span in captured(capture)])


def everything() -> list[RawSpan]:
    """The spans of every capture."""
    return [span for capture in ALL_CAPTURES for span in captured(capture)]


@every_capture
@pytest.mark.parametrize("seed", range(2))
def test_order_does_not_matter(capture: str, seed: int) -> None:
    spans = list(captured(capture))
    random.Random(seed).shuffle(spans)

    assert by_id(rebuilt(spans)) == by_id(rebuilt_capture(capture))


@every_capture
def test_repetition_does_not_matter(capture: str) -> None:
    spans = list(captured(capture)) * 2
    random.Random(1).shuffle(spans)
    found = rebuilt(spans)

    assert by_id(found) == by_id(rebuilt_capture(capture))
    assert found.accounts["duplicate", ""] == len(captured(capture))


@pytest.mark.parametrize("doubled", [False, True])
def test_company_does_not_matter(doubled: bool) -> None:
    spans = everything() * (2 if doubled else 1)
    random.Random(7).shuffle(spans)
    found = rebuilt(spans)
    together = two_services().runs if CAPTURES else ()
    alone = [
        run
        for capture in ALL_CAPTURES
        if capture not in ONE_CALL
        for run in rebuilt_capture(capture).runs
    ]

    assert by_id(found) == by_id([*alone, *together])
    assert found.accounts["received", ""] == len(spans)
    assert sum(number for (name, _), number in found.accounts.items() if name != "received") == len(
        spans
    )


@pytest.mark.skipif(not CAPTURES, reason="../shared/corpora/captured is not here")
def test_a_call_told_by_two_services_counts_once() -> None:
    """With the server's spans of the same calls beside the client's, every run has the path it had
    without them.
    """
    client, server = ONE_CALL
    paths = {run.run_id: run.path for run in two_services().runs}

    assert paths == {run.run_id: run.path for run in rebuilt_capture(client).runs}
    assert rebuilt_capture(server).runs == ()


def test_what_nobody_wants_can_be_dropped() -> None:
    """A door in the host's process keeps only wanted attributes: every recorded span reads the same
    without the rest.
    """
    wanted = READER.keys.wanted
    prefixes = READER.keys.prefixes
    dropped = 0
    for span in everything():
        of_request = set(requests.keys_of(span.attributes, READER.keys.requests))
        kept = {
            key: value
            for key, value in span.attributes.items()
            if key in wanted or key.startswith(prefixes) or key in of_request
        }
        dropped += len(span.attributes) - len(kept)

        assert READER.read(replace(span, attributes=kept)) == READER.read(span)
        assert unwanted(span) <= of_request
    assert dropped
