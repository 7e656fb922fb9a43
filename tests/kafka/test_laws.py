"""Both stages give what the single process gives, however messages come and whoever has the
partitions.
"""

from __future__ import annotations

from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.model.run import RunChange
from tests.kafka.streams import Aggregating, Assembling, Told, final, joined, plain
from tests.laws.arrival import SETTINGS, after, at_once, read, schedules
from tests.laws.telemetry import cases


@given(st.data())
def test_neither_order_nor_batches_nor_doubling_nor_take_overs_change_anything(
    data: st.DataObject,
) -> None:
    """Runs, each emitted, revised and final in order, and readings are those of one process that
    has it all in one batch; but for what crosses traces, which is left out on both sides.
    """
    case = data.draw(cases())
    told = cast("list[Told]", read([*case.everything, *case.evaluations]))
    alone = [one for some in told if (one := joined(some)) is not None]
    expected = after(at_once(alone), whole_services=False)
    first = Assembling(SETTINGS)
    second = Aggregating(SETTINGS)
    for pause, batch in data.draw(schedules(told)):
        first.pass_time(pause)
        for _ in range(data.draw(st.sampled_from((1, 1, 2)))):
            first.take(cast("list[Told]", batch))
        if data.draw(st.integers(0, 3)) == 0:
            first.take_over(data.draw(st.integers(0, first.partitions - 1)))
    first.pass_time(200.0, step=data.draw(st.sampled_from((1.0, 7.0))))
    for at in range(0, len(first.told), 10):
        second.take(first.told[at : at + 10])
        second.tick()
        if data.draw(st.integers(0, 5)) == 0:
            second.take_over(data.draw(st.integers(0, second.partitions - 1)))

    found = final(first.records)
    assert {run_id: plain(run) for run_id, run in found.items()} == {
        run_id: plain(run) for run_id, run in expected.runs.items()
    }
    ids = [record.run.run_id for record in first.records if record.change is RunChange.FINAL]
    assert sorted(ids) == sorted(expected.runs)
    assert second.readings() == expected.readings
