"""Flaws of telemetry: each is planted and found, and a clean recording has none."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from otel_reliability.cli.app import app
from otel_reliability.model.flaws import FLAWS
from otel_reliability.model.span import KIND_CLIENT, RawSpan, Resource
from otel_reliability.report.data_quality import quality_of_spans
from otel_reliability.report.view import QualityFinding
from otel_reliability.testing import SECOND, span, span_id, write_otlp
from tests.corpora.recordings import CAPTURES
from tests.report.build import agent_of, chat, printed, recorded, report, run_spans, runs, spoil
from tests.shared import shared

Spans = list[RawSpan]


def findings(tmp_path: Path, spans: Iterable[RawSpan]) -> dict[str, QualityFinding]:
    """The findings about the only agent of these spans, and about spans without a run."""
    found = report(tmp_path, list(spans))
    [agent] = found.agents
    return {one.kind: one for one in (*agent.data_quality, *found.data_quality)}


def model(number: int, parent: int | None, start: float, *, tokens: int | None = None) -> RawSpan:
    """A model call in trace 1 that lasts a tenth of a second."""
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    used = {} if tokens is None else {"gen_ai.usage.input_tokens": tokens}
    return span(
        number,
        parent,
        name="chat m",
        kind=KIND_CLIENT,
        start=start,
        end=start + 0.1,
        attributes={**attributes, **used},
    )


def without(spans: Spans, key: str) -> Spans:
    return [
        replace(each, attributes={k: v for k, v in each.attributes.items() if k != key})
        for each in spans
    ]


def wrong_unit() -> Spans:
    return [
        replace(each, start_ns=each.start_ns // 1000, end_ns=each.end_ns // 1000)
        for each in runs("a b")
    ]


def backwards() -> Spans:
    root, tool, *others = runs("a b")
    return [root, replace(tool, end_ns=tool.start_ns - SECOND), *others]


def rootless() -> Spans:
    return runs("a b")[1:]


def agentless() -> Spans:
    """A model and a tool that nothing is above."""
    return [replace(one, parent_id=None) for one in [*runs("a")[1:], model(9, 1, 100.2, tokens=50)]]


def partial_tokens() -> Spans:
    return [*runs("a"), model(8, 1, 100.2, tokens=50), model(9, 1, 101.2)]


def unobservable() -> Spans:
    return [*runs(""), chat(1, gen_ai__response__finish_reasons=["tool_calls"])]


def messages() -> Spans:
    asked = (
        '[{"role": "assistant", "parts": [{"type": "tool_call", "id": "1", "name": "a", '
        '"arguments": {}}]}]'
    )
    return [
        *runs(""),
        chat(1, gen_ai__response__finish_reasons=["tool_calls"], gen_ai__output__messages=asked),
    ]


def skewed() -> Spans:
    root, *tools = runs("a b")
    other = Resource.of({"service.name": "other"})
    return [
        root,
        *(
            replace(
                each,
                start_ns=each.start_ns - 30 * SECOND,
                end_ns=each.end_ns - 30 * SECOND,
                resource=other,
                parent_remote=True,
            )
            for each in tools
        ),
    ]


def tied() -> Spans:
    root, first, second = runs("a b")
    return [root, first, replace(second, start_ns=first.start_ns)]


def scopeless() -> Spans:
    return [
        replace(each, scope="", scope_version="")
        for each in [*runs("a"), model(9, 1, 100.1, tokens=5)]
    ]


def nameless() -> Spans:
    return [replace(each, resource=Resource.of({})) for each in runs("a")]


def own_conversations() -> Spans:
    return [one for n in (1, 2, 3) for one in run_spans(n, "a", session=f"c{n}")]


def split() -> Spans:
    """A run without a call, and a call in a trace of its own."""
    root, call = runs("a")
    return [root, replace(call, trace_id=bytes(15) + b"\7", parent_id=None)]


def orphans() -> Spans:
    return [*runs("a"), model(9, None, 500.0)]


def above_two_runs() -> Spans:
    """Two runs below one span of the application, which is annotated."""
    note = {"reliability.task.id": "refund"}
    request = span(99, trace=1, start=0.0, end=9_999.0, name="request", attributes=note)
    first = run_spans(1, "a b")
    second = [
        replace(
            one,
            trace_id=request.trace_id,
            span_id=span_id(50 + at),
            parent_id=span_id(50) if one.parent_id else None,
        )
        for at, one in enumerate(run_spans(2, "a b"))
    ]
    runs = [*first, *second]
    return [
        request,
        *(one if one.parent_id else replace(one, parent_id=request.span_id) for one in runs),
    ]


def cut_off() -> Spans:
    """A model span whose tokens fell victim to the limit of attributes."""
    lost = replace(model(9, 1, 101.2), dropped=3)
    return [*runs("a"), model(8, 1, 100.2, tokens=50), lost]


def lost_models() -> Spans:
    """An agent that used more than its only model call."""
    root, *steps = run_spans(
        1, "a", notes={"gen_ai.usage.input_tokens": 90, "gen_ai.usage.output_tokens": 5}
    )
    return [root, *steps, model(9, 1, 100.2, tokens=50)]


def begun_by_a_tool() -> Spans:
    """A run whose only model call answers what a tool returned."""
    returned = '[{"role": "user", "content": "Go"}, {"role": "tool", "content": "done"}]'
    said = model(9, 1, 105.2, tokens=50)
    return [
        *runs("a"),
        replace(said, attributes={**said.attributes, "gen_ai.input.messages": returned}),
    ]


def without_agents_name() -> Spans:
    return without(runs("a"), "gen_ai.agent.name")


def executed_again() -> Spans:
    """A run in two attempts; the first ended when its process did."""
    call = {"gen_ai.tool.call.id": "call-1"}
    root, *steps = runs("a")
    steps = [replace(one, attributes={**one.attributes, **call}) for one in steps]
    again = [
        replace(
            one,
            span_id=span_id(50 + at),
            parent_id=span_id(50) if one.parent_id else None,
            start_ns=one.start_ns + 30 * SECOND,
            end_ns=one.end_ns + 30 * SECOND,
        )
        for at, one in enumerate([root, *steps])
    ]
    return [root, *steps, *again]


def begun_alike() -> Spans:
    """Two runs that nothing connects but the id of a response."""
    found: Spans = []
    for number in (1, 2):
        own = run_spans(number, "a")
        said = model(9, 1, 100.2, tokens=50)
        attributes = {**said.attributes, "gen_ai.response.id": "r1"}
        said = replace(said, trace_id=own[0].trace_id, parent_id=own[0].span_id)
        found += [*own, replace(said, attributes=attributes)]
    return found


def reported_twice() -> Spans:
    """One run below a web request, as two instrumentations see it."""
    request = span(1, trace=1, start=0.0, end=9_999.0, name="request")
    found: Spans = [request]
    for number, scope in ((10, "one"), (20, "another")):
        ids = {one.span_id: span_id(number + at) for at, one in enumerate(run_spans(1, "a b"))}
        found += [
            replace(
                one,
                span_id=ids[one.span_id],
                parent_id=ids.get(one.parent_id or b"", request.span_id),
                scope=scope,
            )
            for one in run_spans(1, "a b")
        ]
    return found


PLANTED: dict[str, Callable[[], Spans]] = {
    "time_unit": wrong_unit,
    "root_missing": rootless,
    "agent_missing": agentless,
    "dropped_parts": cut_off,
    "model_calls_lost": lost_models,
    "first_model_call_missing": begun_by_a_tool,
    "agent_unnamed": without_agents_name,
    "split_trace": split,
    "tokens_partial": partial_tokens,
    "calls_from_messages": messages,
    "calls_unobservable": unobservable,
    "arguments_unknown": lambda: without(runs("a"), "gen_ai.tool.call.arguments"),
    "clock_skew": skewed,
    "negative_duration": backwards,
    "time_resolution": tied,
    "scope_missing": scopeless,
    "service_missing": nameless,
    "conversation_invented": own_conversations,
    "run_replayed": executed_again,
    "replays": begun_alike,
    "run_reported_twice": reported_twice,
    "orphan_span": orphans,
    "annotation_lost": above_two_runs,
    "duplicate_span": lambda: [*runs("a"), *runs("a")],
}
IMPLIED = {
    "split_trace": ("orphan_span", "calls_unobservable"),
    "dropped_parts": ("tokens_partial",),
}
"""Findings that another one always has with it."""
ELSEWHERE = {
    "unread_span",
    "late_span",
    "root_late",
    "scope_unrecognized",
    "session_file_partial",
}
"""Kinds that no list of spans plants: tests below do, and those of session files."""


def test_lost_annotations_are_counted(tmp_path: Path) -> None:
    """Above two runs, and in a trace without one; the annotation above one run is not lost."""
    note = {"reliability.task.id": "refund"}
    alone = span(1, trace=90, name="script", attributes=note)
    one_run = run_spans(91, "a")
    above = span(99, trace=91, start=0.0, end=9_999.0, name="request", attributes=note)
    below = [replace(one, parent_id=span_id(99)) if not one.parent_id else one for one in one_run]
    file = write_otlp(tmp_path / "spans.jsonl", [*above_two_runs(), alone, above, *below])

    found = json.loads(CliRunner().invoke(app, ["inspect", str(file), "--format", "json"]).stdout)[
        "data_quality"
    ]
    lost = [one for one in found if one["kind"] == "annotation_lost"]
    assert [one["count"] for one in lost] == [2]


def test_every_kind_of_flaw_is_planted() -> None:
    assert PLANTED.keys() | ELSEWHERE == {flaw.kind for flaw in FLAWS}


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_flaw_is_found_and_no_other(tmp_path: Path, kind: str) -> None:
    found = findings(tmp_path, PLANTED[kind]()).keys()

    assert found == {kind, *IMPLIED.get(kind, ())}


def test_a_clean_recording_has_no_finding(tmp_path: Path) -> None:
    spans = [one for n in (1, 2, 3) for one in run_spans(n, "a b", session="c")]

    assert findings(tmp_path, [*spans, model(9, 1, 100.1, tokens=5)]) == {}


def test_counts_are_of_the_runs_that_have_the_flaw(tmp_path: Path) -> None:
    found = findings(
        tmp_path, [*without(runs("a"), "gen_ai.tool.call.arguments"), *runs("a", first=2)]
    )

    assert (found["arguments_unknown"].count, found["arguments_unknown"].of) == (1, 2)


def test_a_finding_that_can_turn_a_verdict_stands_next_to_it(tmp_path: Path) -> None:
    agent = agent_of(tmp_path, partial_tokens())

    assert (
        "tokens of some model calls only in 1 of 1 run, which affects tokens, cost, token budget "
        "pressure"
    ) in agent.caveats
    assert "Data quality" in printed(report(tmp_path, partial_tokens()))


def inspected(file: Path) -> list[str]:
    """The kinds of findings of `inspect`, which begins with them."""
    result = CliRunner().invoke(app, ["inspect", "--format", "json", str(file)])
    document = json.loads(result.stdout)
    assert next(iter(document)) == "data_quality"
    return [one["kind"] for one in document["data_quality"]]


def test_tokens_are_unknown_where_a_model_span_lost_them(tmp_path: Path) -> None:
    recording = recorded(tmp_path, cut_off())
    window = recording.window(recording.agents()[0])
    assert window is not None

    [row] = window.rows()

    assert (row.tokens, row.pressure) == (None, None)


def test_inspect_begins_with_the_findings(tmp_path: Path) -> None:
    file = write_otlp(tmp_path / "spans.jsonl", rootless())

    assert inspected(file) == ["root_missing"]
    shown = CliRunner().invoke(app, ["inspect", str(file)]).stdout
    assert shown.lstrip().startswith("Data quality")


def test_lines_that_cannot_be_read_are_a_finding(tmp_path: Path) -> None:
    file = spoil(write_otlp(tmp_path / "spans.jsonl", runs("a")), "{")

    assert inspected(file) == ["unread_span"]


def test_spans_that_came_too_late_are_a_finding() -> None:
    [found] = quality_of_spans({("late", ""): 3, ("used", ""): 7}, 10, 0)

    assert (found.kind, found.count, found.of, found.unit) == ("late_span", 3, 10, "spans")


def test_an_unknown_dialect_is_a_finding(tmp_path: Path) -> None:
    spans = [
        span(n, trace=n, name="step", attributes={"acme.agent.step": "x"}, scope="acme")
        for n in range(1, 4)
    ]

    assert inspected(write_otlp(tmp_path / "spans.jsonl", spans)) == ["scope_unrecognized"]


TRUE_FINDINGS = {
    "arguments_unknown": 154,
    "calls_unobservable": 35,
    "calls_from_messages": 17,
    "tokens_partial": 1,
    "conversation_invented": 6,
    "root_missing": 2,
    "time_resolution": 1,
    "agent_unnamed": 1,
}
"""Findings about real recordings, by runs: what these instrumentations do not record (arguments
without capture of content; tools of two of them), one that gives each run a conversation, two runs
whose process was killed, a model call that ended without an answer, one recording in milliseconds,
and an agent of Haystack without a name.
"""


@pytest.mark.skipif(not CAPTURES, reason="needs ../shared/corpora/captured")
def test_real_recordings_have_true_findings_only(tmp_path: Path) -> None:
    from otel_reliability.recording import REPORT_SETTINGS, Recording  # noqa: PLC0415
    from otel_reliability.report.build import report_of  # noqa: PLC0415

    found: Counter[str] = Counter()
    for name in CAPTURES:
        recording = Recording(REPORT_SETTINGS)
        recording.read(shared(f"corpora/captured/{name}.jsonl.gz"))
        recording.close()
        view = report_of(recording, max_runs_for_intervals=0)
        for each in (view.data_quality, *(agent.data_quality for agent in view.agents)):
            found.update({one.kind: one.count for one in each})

    assert found == TRUE_FINDINGS
