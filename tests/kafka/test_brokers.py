from __future__ import annotations

from itertools import pairwise

import pytest

from otel_reliability.kafka.brokers import KafkaError, KafkaException, explain


def broken() -> Exception:
    return KafkaException(KafkaError(KafkaError.INVALID_TXN_STATE, "an abort that failed"))


def raised(*errors: Exception) -> Exception:
    """The last of these, which came of the one before it, and so on."""
    for cause, error in pairwise(errors):
        error.__cause__ = cause
    return errors[-1]


def test_a_right_that_lacks_is_told_whatever_came_of_it() -> None:
    denied = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "no right to write"))
    reason, what = explain(raised(denied, ValueError("in between"), broken()))

    assert reason == "denied"
    assert "no right to write" in what
    assert "permit it" in what


@pytest.mark.parametrize(
    ("error", "reason", "part"),
    [
        (broken(), "brokers", "may not write a topic of its state"),
        (
            KafkaException(KafkaError(KafkaError.NOT_COORDINATOR, "elsewhere")),
            "brokers",
            "elsewhere",
        ),
        (ValueError("of ours"), "error", "ValueError: of ours"),
    ],
)
def test_every_other_trouble_has_its_word(error: Exception, reason: str, part: str) -> None:
    word, what = explain(error)

    assert word == reason
    assert part in what
