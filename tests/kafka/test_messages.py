"""Run records as messages."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


@given(st.data())
def test_the_short_way_reads_what_the_long_one_does(data: st.DataObject) -> None:
    """Whatever is put in place of some bytes of a record, told before or not: the same record, or the same refusal."""
    sent = write(RunRecord(RunChange.SETTLED, run(["search"]), 10**18)).value
    begin = data.draw(st.integers(0, 60) | st.integers(0, len(sent)))
    piece = st.sampled_from([b"", b" ", b"0", b"-", b"9" * 19, b"}", b'"', b",", b'"run":', b"{}", b"\xff", b"1"])
    value = sent[:begin] + data.draw(piece) + sent[begin + data.draw(st.integers(0, 3)) :] + data.draw(piece)
    reader = Reader()
    reader(sent)

    assert _outcome(reader, value) == _outcome(read, value)


def _outcome(reader: Callable[[bytes], RunRecord], value: bytes) -> RunRecord | str:
    try:
        return reader(value)
    except BadRecord as error:
        return str(error)
