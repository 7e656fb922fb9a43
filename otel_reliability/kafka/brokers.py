"""Checks of the brokers and topics before a worker starts, and explanations of their errors."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, cast

from otel_reliability.errors import ConfigurationError, ReliabilityError
from otel_reliability.kafka.stage import Stage
from otel_reliability.service.settings import KafkaSettings

_library: Final = cast("Any", importlib.import_module("confluent_kafka"))
_admin: Final = cast("Any", importlib.import_module("confluent_kafka.admin"))

TopicCollection: Final[Any] = _library.TopicCollection
KafkaError: Final[Any] = _library.KafkaError
KafkaException: Final[type[Exception]] = _library.KafkaException
TopicPartition: Final[Any] = _library.TopicPartition
AdminClient: Final[Any] = _admin.AdminClient


_logger = logging.getLogger("otel_reliability.kafka")

PATIENCE: Final = 10.0
"""Seconds that the brokers may take to describe topics."""
_DENIED: Final[frozenset[int]] = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
_BROKEN: Final[frozenset[int]] = frozenset(
    {KafkaError._STATE, KafkaError.INVALID_TXN_STATE}  # noqa: SLF001 (so are they named)
)
_STRANGER: Final[frozenset[int]] = frozenset(
    # so are they named
    {KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._SSL}  # noqa: SLF001
)


class NotYet(ReliabilityError):
    """Error: something is missing that may come: `reason` is the word by which
    starts are counted.
    """

    def __init__(self, reason: str, wrong: ConfigurationError) -> None:
        self.reason = reason
        super().__init__(str(wrong))


def check_topics(stage: Stage, kafka: KafkaSettings) -> dict[str, int]:
    """Return the number of partitions of each topic that the stage needs.

    Raise `NotYet` for a problem that may end by itself, and `ConfigurationError` for settings that
    must be changed.
    """
    written = {*stage.inputs, stage.output, *stage.others}  # what it reads it writes too: ticks
    if kafka.dead_letters is not None:
        written.add(kafka.dead_letters)
    sizes: dict[str, int] = {}
    for name, found in _described(sorted(written), kafka).items():
        sizes[name] = _size(name, found, kafka)
        _check_rights(name, found, {"READ", "WRITE"} if name in stage.inputs else {"WRITE"}, kafka)
    counts = {sizes[name] for name in stage.inputs}
    if len(counts) > 1:
        counted = ", ".join(f"{name}: {sizes[name]}" for name in stage.inputs)
        raise ConfigurationError(
            "kafka.logs",
            counted,
            "topics of as many partitions each",
            "create both topics again with the same number",
        )
    return sizes


def connection_of(kafka: KafkaSettings) -> dict[str, Any]:
    """Return the connection options by the client library's own names."""
    return {"bootstrap.servers": kafka.brokers, **kafka.client}


def explain(error: Exception) -> tuple[str, str]:
    """Return the word by which an error of a running stage is counted, and what to do about it."""
    found = {int(one.code()): one for one in _errors(error)}
    denied = next((found[code] for code in found if code in _DENIED), None)
    # Whatever came of it: an abort that fails would be reported in its place.
    if denied is not None:
        return (
            "denied",
            f"the brokers do not permit it ({denied.str()}); permit it, it is tried again",
        )
    if found.keys() & _BROKEN:
        return (
            "brokers",
            (
                f"{error}; where no broker went away, this user may not write a topic of its "
                "state (changelog__…)"
            ),
        )
    if found:
        return "brokers", f"{error}"
    return "error", f"{type(error).__name__}: {error}"


def _described(topics: Sequence[str], kafka: KafkaSettings) -> dict[str, Any]:
    """Return the description of each topic, or the code of an error. Topics are not
    created by it.
    """
    heard: list[int] = []

    def listen(error: Any) -> None:
        heard.append(error.code())

    try:
        client = AdminClient({**connection_of(kafka), "error_cb": listen}, logger=_quiet)
        client.list_topics(timeout=PATIENCE)  # that they answer at all
        asked = client.describe_topics(
            TopicCollection(list(topics)),
            include_authorized_operations=True,
            request_timeout=PATIENCE,
        )
        return {name: _answer(future) for name, future in asked.items()}
    except ValueError as error:
        raise _client(str(error)) from None
    except KafkaException as error:
        if _code(error) == KafkaError._INVALID_ARG:  # noqa: SLF001 (so is it named)
            raise _client(str(error.args[0].str())) from None
        if _STRANGER.intersection(heard):
            raise _client(
                "the brokers do not accept it: " + str(KafkaError(heard[-1]).str())
            ) from None
        raise NotYet(
            "brokers",
            ConfigurationError(
                "kafka.brokers", kafka.brokers, "answering", "it is asked again until it does"
            ),
        ) from None


def _answer(future: Any) -> Any:
    try:
        return future.result(PATIENCE)
    except KafkaException as error:
        return _code(error)


def _size(name: str, found: Any, kafka: KafkaSettings) -> int:
    if isinstance(found, int) and found in _DENIED:
        raise _not_yet("denied", name, kafka, "a topic that this user may use", "permit it")
    if isinstance(found, int) or found is None:
        remedy = (
            "make it, with as many partitions as there may ever be workers; it is looked for "
            "again until it is there"
        )
        raise _not_yet("topic", name, kafka, "a topic of these brokers", remedy)
    return len(found.partitions)


def _check_rights(name: str, found: Any, needed: Collection[str], kafka: KafkaSettings) -> None:
    """That this user may do what is needed. Found out only at work, a right that lacks shows as a
    transaction that broke.
    """
    rights = {right.name for right in found.authorized_operations or ()}
    lacking = set(needed) - rights
    if rights and lacking:
        allowed = f"a topic that this user may {' and '.join(sorted(lacking)).lower()}"
        raise _not_yet("denied", name, kafka, allowed, "permit it")


def _not_yet(reason: str, topic: str, kafka: KafkaSettings, allowed: str, remedy: str) -> NotYet:
    fields = ("spans", "logs", "runs", "readings", "dead_letters")
    field = next(field for field in fields if getattr(kafka, field) == topic)
    return NotYet(reason, ConfigurationError(f"kafka.{field}", topic, allowed, remedy))


def _client(why: str) -> ConfigurationError:
    return ConfigurationError(
        "kafka.client",
        "(not shown)",
        f"what the client library and the brokers take ({why})",
        "see its own documentation",
    )


def _code(error: BaseException) -> int | None:
    """The code of Kafka's error in an exception, or in what led to it."""
    return next((int(found.code()) for found in _errors(error)), None)


def _errors(error: BaseException) -> Iterator[Any]:
    """Kafka's errors in an exception, and in what led to it."""
    here: BaseException | None = error
    while here is not None:
        for found in (*here.args, getattr(here, "error", None)):
            if isinstance(found, KafkaError):
                yield found
        here = here.__cause__ or here.__context__


_quiet = logging.getLogger("otel_reliability.kafka.brokers")
_quiet.addHandler(logging.NullHandler())
_quiet.propagate = False
