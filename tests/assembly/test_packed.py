"""A run that was packed is the run that it was."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from otel_reliability import testing
from otel_reliability.assembly.packed import pack, unpack
from otel_reliability.model.model_calls import ModelCall, ModelCalls
from otel_reliability.model.run import Run
from otel_reliability.model.span import Evaluation
from otel_reliability.model.tool_calls import ToolCall, ToolCalls

TIMES = st.sampled_from([0, 5, 1_700_000_000_000_000_000, 2**63 - 1, 2**63])
TOKENS = st.sampled_from([None, 7, 7, 300, 10**20])
HASHES = st.sampled_from([None, b"hash"])
CALLS = st.builds(
    ToolCall, st.sampled_from(["search", "book"]), st.booleans(), st.booleans(), st.booleans(), st.integers(0, 2),
    st.sampled_from(["support", "billing"]), TIMES, TIMES, HASHES, HASHES, HASHES,
)  # fmt: skip
MODELS = st.builds(
    ModelCall, st.sampled_from([None, "m", "n"]), TOKENS, TOKENS, st.booleans(), st.sampled_from(["support", "billing"]),
    TIMES, TIMES,
)  # fmt: skip


@given(calls=st.none() | st.lists(CALLS, max_size=5), models=st.lists(MODELS, max_size=5))
def test_it_comes_back_as_it_was(calls: list[ToolCall] | None, models: list[ModelCall]) -> None:
    """With tokens for all, some or none, no calls, and numbers beyond 64 bits."""
    judged = (Evaluation("quality", 0.5, None, 3, trace_id=b"t" * 16),)
    columns = None if calls is None else ToolCalls.of(calls)
    run = testing.run(["search"], tool_calls=columns, model_calls=ModelCalls.of(models), evaluations=judged)

    assert unpack(pack(run)) == run


def test_it_is_plain_where_it_can_be() -> None:
    """A run with ordinary numbers is packed; one whose numbers are too large, or that has no columns, stays."""
    call = testing.call("search")
    model = ModelCall("m", 5, 7, False, "support", 1, 2)

    def run(*models: ModelCall) -> Run:
        return testing.run(tool_calls=ToolCalls.of([call]), model_calls=ModelCalls.of(models))

    assert type(pack(run(model, model._replace(input_tokens=6)))) is tuple
    for whole in (run(model._replace(end_ns=2**63)), run(model, model._replace(input_tokens=None)), testing.run(())):
        assert pack(whole) is whole
