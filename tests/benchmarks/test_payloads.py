from __future__ import annotations

from benchmarks import payloads
from otel_reliability.model.span import RawSpan
from otel_reliability.sources.otlp_protobuf import decode_traces


def spans(body: bytes) -> list[RawSpan]:
    """What a request holds."""
    batch = decode_traces(body)
    assert batch.malformed == []
    return batch.spans


def test_requests_are_of_the_size_that_they_are_told_to_be() -> None:
    """512 spans each, in the bytes that real instrumentations take."""
    for make, low, high in ((payloads.genai, 500, 600), (payloads.genai4k, 2_300, 2_600), (payloads.http, 450, 550)):
        (body,) = make(1)

        assert len(spans(body)) == payloads.SPANS
        assert low < len(body) / payloads.SPANS < high


def test_no_two_requests_are_alike() -> None:
    """Nor are the ids of any two spans; the same seed gives the same again."""
    one, two = payloads.genai(2)

    assert one != two
    assert {span.span_id for span in spans(one)}.isdisjoint(span.span_id for span in spans(two))
    assert payloads.genai(2) == [one, two]


def test_stable_runs_have_habits_and_chaotic_ones_have_none() -> None:
    """Of a hundred runs, few paths beside almost as many as runs."""
    paths: dict[bool, set[tuple[str, ...]]] = {False: set(), True: set()}
    for chaotic, found in paths.items():
        traffic = payloads.Traffic(chaotic=chaotic)
        for _ in range(100):
            run = traffic.run()
            found.add(tuple(span.name for span in run if span.name.startswith("execute_tool")))

    assert len(paths[False]) < 20
    assert len(paths[True]) > 80
