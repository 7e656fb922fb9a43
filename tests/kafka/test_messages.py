"""Run records as messages."""

from __future__ import annotations

import pytest

from otel_reliability.kafka.messages import Reader, read, write
from otel_reliability.model.event import RunChange
from otel_reliability.model.record import BadRecord, RunRecord
from otel_reliability.model.run import AgentKey
from otel_reliability.testing import run


def test_records_are_read_as_they_were_written() -> None:
    """One after the other, the same run twice in words, and changed; the key is the agent's."""
    read_once, kept = Reader(most=1), run(["search"])._replace(key=AgentKey("", 'a "b"', "", "c", (("v", "1"),)))
    other = kept._replace(path=("book",))
    for told_ns, (change, one) in enumerate(
        [(RunChange.CLOSED, kept), (RunChange.REVISED, other), (RunChange.SETTLED, other), (RunChange.SETTLED, kept)]
    ):
        sent = write(RunRecord(change, one, told_ns))
        found = read_once(sent.value)
        assert found == read(sent.value)
        assert (found.change, found.told_ns, found.run.path) == (change, told_ns, one.path)
        assert sent.key == b'["","a \\"b\\"","","c",[["v","1"]]]'


@pytest.mark.parametrize(
    "value", [b"", b"\xff", b"[]", b'{"version":1,"run":{}}', b'{"version":1,"change":"x","run":null}']
)
def test_what_is_no_record_is_refused(value: bytes) -> None:
    """Also when it comes again."""
    reader = Reader()
    for _ in range(2):
        with pytest.raises(BadRecord):
            reader(value)
