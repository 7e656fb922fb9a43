"""Run records as messages."""

from __future__ import annotations

from otel_reliability.kafka.messages import write
from otel_reliability.model.record import RunRecord, read
from otel_reliability.model.run import AgentKey, RunChange
from otel_reliability.testing import run


def test_records_travel_under_the_key_of_their_agent() -> None:
    """The key is the agent's, in JSON; the value is the record."""
    one = run(["search"])._replace(key=AgentKey("", 'a "b"', "", "c", (("v", "1"),)))
    sent = write(RunRecord(RunChange.FINAL, one, 7))

    assert sent.key == b'["","a \\"b\\"","","c",[["v","1"]]]'
    assert read(sent.value).revision == 7
    assert read(sent.value).run.key == one.key
