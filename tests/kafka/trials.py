"""The long forms of the tests of workers on Kafka."""

from __future__ import annotations

from typing import Final

from tests.trial import Trial

_SAME: Final = (
    "tests/kafka/test_same_numbers.py::test_every_recording_tells_the_same_however_it_comes"
)
_TROUBLE: Final = "tests/kafka/test_trouble.py"
_KILLED: Final = "tests/kafka/test_killed.py"
_NUMBERS: Final = {1: "one worker", 2: "two workers", 4: "four workers"}
TRIALS: Final = (
    *(
        Trial(
            name,
            "every recording through a real Collector and broker, every message twice, "
            "in three orders and batchings: runs as "
            "`runs`, counters as one process, gauges as `report`",
            f"{number} a stage, 58 recordings, thrice",
            (f"{_SAME}[{number}]",),
        )
        for number, name in _NUMBERS.items()
    ),
    Trial(
        "killed workers",
        "`kill -9` of any of three workers a stage at random moments under load, workers "
        "added and taken away, the broker killed "
        "twice: the runs and numbers of one undisturbed process",
        "30 kills",
        (f"{_KILLED}::test_thirty_kills_while_workers_come_and_go_and_the_broker_is_restarted",),
    ),
    Trial(
        "backlog",
        "a worker that is far behind catches up, and says how far it is",
        "1,000,000 spans",
        (
            f"{_KILLED}::test_a_worker_that_is_a_million_spans_behind_catches_up_and_says_how_far_it_is",
        ),
    ),
    Trial(
        "broken traces",
        "a trace under many keys and one of 100,000 spans: counted, and no harm to others",
        "60 runs around them",
        (f"{_TROUBLE}::test_traces_that_are_broken_harm_no_other",),
    ),
    Trial(
        "brokers away",
        (
            "at the start, for a minute in mid-stream, and at the end: logged once, waited "
            "for, nothing lost"
        ),
        "a minute",
        (
            f"{_TROUBLE}::test_what_is_not_there_yet_is_told_and_waited_for[a minute]",
            f"{_TROUBLE}::test_a_worker_ends_though_the_brokers_are_away",
        ),
    ),
    Trial(
        "denied",
        "rights of every kind taken away and given back: logged, waited for, nothing lost",
        "6 rights",
        (f"{_TROUBLE}::test_what_is_not_permitted_is_told_and_waited_for",),
    ),
)
