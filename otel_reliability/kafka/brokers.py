"""What a worker needs of the brokers before it starts, and what is said where it is not there."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final, cast

from otel_reliability.errors import ConfigurationError, ReliabilityError
from otel_reliability.kafka.client import AdminClient, KafkaError, KafkaException, TopicCollection
from otel_reliability.kafka.stage import Stage
from otel_reliability.service.kafka_settings import KafkaSettings

_logger = logging.getLogger("otel_reliability.kafka")

PATIENCE: Final = 10.0
"""Seconds that the brokers may take to say which topics there are."""
_DENIED: Final[frozenset[int]] = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
_STRANGER: Final[frozenset[int]] = frozenset(
    {KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._SSL}  # noqa: SLF001 (so are they named)
)


class NotYet(ReliabilityError):
    """Something that is not there, and may come: `reason` is the word by which starts are counted."""

    def __init__(self, reason: str, wrong: ConfigurationError) -> None:
        self.reason = reason
        super().__init__(str(wrong))


def check_topics(stage: Stage, kafka: KafkaSettings) -> dict[str, int]:
    """How many partitions each topic has that the stage needs.

    Raises `NotYet` for what may heal, and `ConfigurationError` for what somebody must change.
    """
    needed = {*stage.inputs, stage.output, *stage.others}
    if kafka.dead_letters is not None:
        needed.add(kafka.dead_letters)
    sizes = {name: _size(name, found, kafka) for name, found in _described(sorted(needed), kafka).items()}
    counts = {sizes[name] for name in stage.inputs}
    if len(counts) > 1:
        told = ", ".join(f"{name}: {sizes[name]}" for name in stage.inputs)
        raise ConfigurationError(
            "kafka.logs", told, "topics of as many partitions each", "make both topics anew with the same number"
        )
    return sizes


def told(error: Exception) -> tuple[str, str]:
    """An error while a stage is at work: the word by which it is counted, and what to do about it."""
    code = _code(error)
    if code in _DENIED:
        return "denied", f"the brokers do not permit it ({error}); permit it, it is tried again"
    if code is not None:
        return "brokers", f"{error}"
    return "error", f"{type(error).__name__}: {error}"


def _described(topics: Sequence[str], kafka: KafkaSettings) -> dict[str, Any]:
    """What the brokers say of each topic: its description, or the code of an error. Asking makes none."""
    heard: list[int] = []

    def listen(error: Any) -> None:
        heard.append(error.code())

    try:
        client = AdminClient({"bootstrap.servers": kafka.brokers, **kafka.client, "error_cb": listen}, logger=_quiet)
        client.list_topics(timeout=PATIENCE)  # that they answer at all
        asked = client.describe_topics(TopicCollection(list(topics)), request_timeout=PATIENCE)
        return {name: _answer(future) for name, future in asked.items()}
    except ValueError as error:
        raise _client(str(error)) from None
    except KafkaException as error:
        if _code(error) == KafkaError._INVALID_ARG:  # noqa: SLF001 (so is it named)
            raise _client(str(error.args[0].str())) from None
        if _STRANGER.intersection(heard):
            raise _client("the brokers do not accept it: " + str(KafkaError(heard[-1]).str())) from None
        raise NotYet(
            "brokers",
            ConfigurationError("kafka.brokers", kafka.brokers, "answering", "it is asked again until it does"),
        ) from None


def _answer(future: Any) -> Any:
    try:
        return future.result(PATIENCE)
    except KafkaException as error:
        return _code(error)


def _size(name: str, found: Any, kafka: KafkaSettings) -> int:
    if isinstance(found, int) and found in _DENIED:
        wrong = ConfigurationError(_field(name, kafka), name, "a topic that this user may use", "permit it")
        raise NotYet("denied", wrong)
    if isinstance(found, int) or found is None:
        remedy = (
            "make it, with as many partitions as there may ever be workers; it is looked for again until it is there"
        )
        raise NotYet("topic", ConfigurationError(_field(name, kafka), name, "a topic of these brokers", remedy))
    return len(found.partitions)


def _field(name: str, kafka: KafkaSettings) -> str:
    fields = ("spans", "logs", "runs", "readings", "dead_letters")
    return "kafka." + next(field for field in fields if getattr(kafka, field) == name)


def _client(why: str) -> ConfigurationError:
    return ConfigurationError(
        "kafka.client",
        "(not shown)",
        f"what the client library and the brokers take ({why})",
        "see its own documentation",
    )


def _code(error: BaseException) -> int | None:
    """The code of Kafka's error in an exception, or in what led to it."""
    here: BaseException | None = error
    while here is not None:
        for found in (*here.args, getattr(here, "error", None)):
            if isinstance(found, KafkaError):
                return int(cast("Any", found).code())
        here = here.__cause__ or here.__context__
    return None


_quiet = logging.getLogger("otel_reliability.kafka.client")
_quiet.addHandler(logging.NullHandler())
_quiet.propagate = False
