"""A stage on Quix Streams: which partitions this worker has, and when everything is committed.

What messages change, what is sent because of them and how far was read are committed together, or
not at all. Everything here runs on the thread that calls `run`, but for what is only read.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from quixstreams import Application
from quixstreams.context import message_context
from quixstreams.kafka.configuration import ConnectionConfig
from quixstreams.models import TopicAdmin, TopicManager

from otel_reliability.kafka.brokers import KafkaException, TopicPartition, connection_of
from otel_reliability.kafka.stage import TICK, KafkaMessage, Partition, Stage
from otel_reliability.model.record import BadRecord
from otel_reliability.service.answers import Refused
from otel_reliability.service.settings import KafkaSettings
from otel_reliability.telemetry.guard import Guard

_logger = logging.getLogger("otel_reliability.kafka")

POLL: Final = 0.25
"""Seconds that one poll for messages waits, and so the least time between two checks of everything
else.
"""
AHEAD: Final = 5_000
"""Messages of a partition that are held while those of its other topic are older: what an hour's
backlog may take of memory.
"""
LAG_INTERVAL_S: Final = 2.0
"""Seconds between two measurements of the lag."""
STANDBY: Final = 15.0
"""Seconds without a partition after which a worker logs that it is one too many."""
SLICE = 0.02
LONGEST_SLICE = 1.0
SHARE = 4
"""Seconds of other work after which agents are loaded, for a share of that time, and for how long
at most.
"""
PATIENCE: Final = 20.0
"""Seconds that the brokers may take to answer when a worker starts."""
ENDING: Final = 25.0
"""Seconds that the last commit may take at the end; orchestrators wait for half a minute, as a
rule.
"""
_FAULTS: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
_GUARD: Final = Guard("a message")


class StreamValues:
    """The store of one partition, within the transaction that is open now."""

    def __init__(self, partition: Any, transaction: Callable[[], Any]) -> None:
        self._partition = partition
        self._transaction = transaction

    def get(self, key: bytes) -> bytes | None:
        return self._transaction().get_bytes(key=key, prefix=b"")

    def put(self, key: bytes, value: bytes) -> None:
        self._transaction().set_bytes(key=key, value=value, prefix=b"")

    def drop(self, key: bytes) -> None:
        self._transaction().delete(key=key, prefix=b"")

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        transaction = self._transaction()
        for key, _ in self._partition.iter_items(b""):
            value = transaction.get_bytes(key=key, prefix=b"")
            if value is not None:
                yield key, value


class Worker:
    """One run of a stage in a consumer group, from its start to its end, however that comes."""

    def __init__(self, stage: Stage, kafka: KafkaSettings, state: Path, account: Account) -> None:
        self.account = account
        self._stage = stage
        self._kafka = kafka
        connection = cast("Any", ConnectionConfig).from_librdkafka_dict(
            connection_of(kafka), ignore_extras=True
        )
        extra = extra_of(kafka)
        session_ms = _ms(kafka.session_timeout)
        self._group = f"{kafka.group}-{stage.name}"
        self._app: Any = Application(
            broker_address=connection,
            consumer_group=self._group,
            auto_offset_reset="earliest",
            commit_interval=kafka.commit,
            consumer_extra_config={
                **extra,
                "session.timeout.ms": session_ms,
                "heartbeat.interval.ms": max(100, min(3_000, session_ms // 3)),
            },
            producer_extra_config={**extra, **_producer(kafka)},
            state_dir=state,
            consumer_poll_timeout=POLL,
            max_partition_buffer_size=AHEAD,
            loglevel=None,
            processing_guarantee=kafka.guarantee,
            broker_availability_timeout=0,
            on_processing_error=_raised,
            on_consumer_error=_raised,
            on_producer_error=_raised,
            topic_manager=TopicManager(
                topic_admin=TopicAdmin(
                    broker_address=connection, extra_config=extra, logger=_logger
                ),
                consumer_group=self._group,
                timeout=PATIENCE,
            ),
        )
        topics = [
            self._app.topic(name, value_deserializer="bytes", key_deserializer="bytes")
            for name in stage.inputs
        ]
        frames: list[Any] = [self._app.dataframe(topic) for topic in topics]
        self._context: Any = frames[0].processing_context
        self._store_of: str = frames[0].stream_id
        self._end: Callable[..., None] = self._app.stop
        self._app.stop = self._stopped
        self._ending = threading.Timer(ENDING, _leave)
        self._ending.daemon = True
        self.asked = False
        """True if the worker was asked to end."""
        self._broke: BaseException | None = None
        self._join(topics, frames)
        self._commit: Callable[..., None] = self._context.commit_checkpoint
        self._context.commit_checkpoint = self._committed
        self._producer: Any = self._app.get_producer()
        self._producer.poll(0)  # makes it, before two threads use it
        self._ticker = Ticker(self._producer, kafka.tick)
        self._open: dict[int, tuple[Any, Partition]] = {}
        self._now: dict[int, float] = {}
        self._began = self._measured_at = self.account.beat = time.monotonic()
        self._offsets: dict[tuple[str, int], int] = {}
        self._given = self._loaded_at = self._began
        self._is_loaded = True

    def run(self) -> None:
        """Work until a signal, or until something breaks: then it raises, and nothing of what was
        not committed has happened.
        """
        self._ticker.start()
        try:
            self._app.run()
        except Exception as error:
            raise error from (self._broke if self._broke is not error else None)
        finally:
            self._ticker.stop()
            self._sync({})
            self._producer.flush(2.0)
            self._ending.cancel()

    def _stopped(self, fail: bool = False) -> None:
        """Note that Quix Streams ends: by a signal, or because it has ended."""
        if not fail and not self.asked:
            self.asked = True
            self._ending.start()
        if fail:  # clearing up after it may fail too, and would be reported in its place
            self._broke = sys.exc_info()[1]
        self._end(fail)

    @property
    def restoring(self) -> bool:
        """Return whether state is being restored. From any thread."""
        return self._context.state_manager.recovery_required

    # --- The topology -----------------------------------------------------------------------------

    def _join(self, topics: list[Any], frames: list[Any]) -> None:
        """All inputs share the store of the first: partitions of one number go to one worker, and
        are read by time. Otherwise the shorter backlog would bring the present, and the runs of the
        longer one would close before their spans are read.
        """
        frames[0].register_store()
        registry = self._context.dataframe_registry
        registry.register_stream_id(self._store_of, [topic.name for topic in topics])
        TopicManager.ensure_topics_copartitioned(*topics)
        for frame in frames:
            frame.update(self._take, metadata=True)
        registry.register_periodic_task(self._between)
        if len(frames) > 1:
            registry.require_time_alignment()

    # --- One message ------------------------------------------------------------------------------

    def _take(self, value: bytes | None, key: bytes | None, time_ms: int, headers: object) -> None:
        context = message_context()
        topic = context.topic
        number = context.partition
        offset = context.offset
        message = KafkaMessage(topic, key, value or TICK, time_ms)
        self._offsets[topic, number] = offset + 1
        self.account.messages[topic, "records" if message.value else "ticks"] += 1
        partition = self._partition(number)
        now = self._now[number] = max(self._now.get(number, 0.0), min(time_ms / 1e3, time.time()))
        try:
            outgoing = partition.take(message, now)
        except Exception as error:
            why = _why_unusable(error)
            if why is None:
                raise
            self._dead_letter(message, *why, offset, number)
            return
        for out in outgoing:
            self._context.producer.produce(topic=self._stage.output, key=out.key, value=out.value)

    def _dead_letter(
        self, message: KafkaMessage, reason: str, detail: str, offset: int, number: int
    ) -> None:
        """Count a message that cannot be used, and send it to the topic of dead letters where there
        is one.
        """
        self.account.dead[reason] += 1
        _logger.warning(
            "%s[%d]@%d cannot be used: %s: %s", message.topic, number, offset, reason, detail
        )
        if self._kafka.dead_letters is not None:
            where = {
                "topic": message.topic,
                "partition": number,
                "offset": offset,
                "stage": self._stage.name,
            }
            about = {"reason": reason, "detail": detail, **where}
            headers: Any = {name: str(value).encode() for name, value in about.items()}
            self._context.producer.produce(
                topic=self._kafka.dead_letters,
                key=message.key,
                value=message.value,
                headers=headers,
            )

    def _committed(self, force: bool = False, **named: Any) -> None:
        """Commit, where it is time or `force` asks for it; before that every partition stores what
        changed.
        """
        checkpoint = self._context.checkpoint
        if (force or checkpoint.expired()) and not checkpoint.empty():
            for _, partition in self._open.values():
                partition.save()
        self._commit(force=force, **named)

    # --- Partitions -------------------------------------------------------------------------------

    def _partition(self, number: int) -> Partition:
        found = self._open.get(number)
        if found is None or found[0] is not self._stores().get(number):
            self._sync(self._stores())
            found = self._open[number]
        return found[1]

    def _transaction(self, number: int) -> Any:
        return self._context.checkpoint.get_store_transaction(self._store_of, number)

    def _stores(self) -> dict[int, Any]:
        return self._context.state_manager.get_store(self._store_of).partitions

    def _sync(self, stores: Mapping[int, Any]) -> None:
        """Give up what others have, take over what is given: a partition that was closed meanwhile
        is another.
        """
        for number, (store, _) in list(self._open.items()):
            if stores.get(number) is not store:
                del self._open[number]
                self._now.pop(number, None)
                self._stage.close(number)
        given = [(number, store) for number, store in stores.items() if number not in self._open]
        for number, store in given:
            values = StreamValues(store, partial(self._transaction, number))
            self._open[number] = (store, self._stage.open(number, values))
        self._ticker.partitions = [
            (topic, number) for topic in self._stage.inputs for number in self._open
        ]
        self.account.partitions = sorted(self._open)
        if given:
            self._given = self.account.beat
            self._is_loaded = False

    # --- Between messages -------------------------------------------------------------------------

    def _between(self) -> None:
        """Synchronize partitions, load, publish and measure: after every message and every poll."""
        now = time.monotonic()
        if not self.restoring:
            stores = self._stores()
            if {number: store for number, (store, _) in self._open.items()} != stores:
                self._sync(dict(stores))
            self._load(now)
            self._check_ready(now)
        self._publish(now)
        if now >= self._measured_at + LAG_INTERVAL_S:
            self._measured_at = now
            self._measure_lag()
        self.account.beat = now

    def _load(self, now: float) -> None:
        """Load agents, while messages are received in between."""
        spent = now - self._loaded_at
        if self._is_loaded or spent < SLICE:
            return
        self._is_loaded = self._stage.load(min(SHARE * spent, LONGEST_SLICE))
        self._loaded_at = time.monotonic()
        if self._is_loaded:
            self.account.assigned(self._loaded_at - self._given)

    def _check_ready(self, now: float) -> None:
        """Be ready with loaded partitions, and without any once it is clear that none is left."""
        if self._open:
            self.account.ready = self._is_loaded
        elif not self.account.ready and now >= self._began + STANDBY:
            self.account.ready = True
            _logger.warning(
                (
                    "No partition of %s is left for this worker: there are more workers than "
                    "partitions. It stands by."
                ),
                " or ".join(self._stage.inputs),
            )

    def _publish(self, now: float) -> None:
        """Readings rest on what is committed."""
        found = self._stage.publish(now)
        if found is not None:
            self._context.commit_checkpoint(force=True)
            for one in found:
                self._producer.produce(topic=self._kafka.readings, key=one.key, value=one.value)
            self._producer.poll(0)

    def _measure_lag(self) -> None:
        """Measure the lag of each partition by the offsets that the brokers last reported."""
        lags: dict[tuple[str, str], int] = {}
        for topic in self._stage.inputs:
            for number in self._open:
                lag = self._behind(topic, number)
                if lag is not None:
                    lags[topic, str(number)] = lag
        self.account.lags = lags

    def _behind(self, topic: str, number: int) -> int | None:
        """Return the number of messages of a partition that wait; None if it is unknown."""
        position = self._offsets.get((topic, number))
        try:
            _, high = self._context.consumer.get_watermark_offsets(
                TopicPartition(topic, number), cached=True
            )
        except KafkaException:
            return None
        return None if high < 0 or position is None else max(0, high - position)


def _why_unusable(error: Exception) -> tuple[str, str] | None:
    """Return the word by which a dead letter is counted, and what is wrong with it, without
    content. None: the stage fails.

    If our own code fails over a message, it is a dead letter and its partition goes on.
    """
    if isinstance(error, Refused):
        return error.reason, str(error)
    if isinstance(error, BadRecord):
        return "run_record", str(error)
    return (
        ("fault", type(error).__name__)
        if isinstance(error, _FAULTS) and _GUARD.stops(error)
        else None
    )


class Ticker:
    """Sends ticks, which are empty messages, to every partition that a worker reads: its time goes
    on when nothing else comes.

    It has a thread of its own. A tick that is lost is made up for by the next.
    """

    def __init__(self, producer: Any, interval: float) -> None:
        self.partitions: Sequence[tuple[str, int]] = ()
        """Destinations: topics and partitions. Replaced as a whole, by any thread."""
        self._producer = producer
        self._interval = interval
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ticker", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join(5.0)

    def _run(self) -> None:
        while not self._ending.wait(self._interval):
            for topic, number in self.partitions:
                try:
                    self._producer.produce(
                        topic, value=TICK, partition=number, buffer_error_max_tries=1
                    )
                # brokers that are away are reported elsewhere
                except Exception as error:  # noqa: BLE001
                    _logger.debug("A tick was not sent: %s", error)
            self._producer.poll(0)


class Account:
    """Self-telemetry of a worker, over all its starts. Written by its thread, read by any."""

    def __init__(self) -> None:
        self.messages: Counter[tuple[str, str]] = Counter()
        self.dead: Counter[str] = Counter()
        self.starts: Counter[str] = Counter()
        self.partitions: list[int] = []
        self.lags: Mapping[tuple[str, str], int] = {}
        self.rebalances = 0
        self.restore = 0.0
        self.ready = False
        self.beat = 0.0
        """When it last came round, by the machine's steady clock."""

    def assigned(self, seconds: float) -> None:
        """Count a rebalance; `seconds` passed until all partitions were loaded."""
        self.rebalances += 1
        self.restore = seconds
        _logger.info(
            "Partitions %s are at work after %.1f s.", ", ".join(map(str, self.partitions)), seconds
        )


def _leave() -> None:
    """End without the last commit, which the brokers do not take. As with any worker that dies,
    nothing of it has happened.
    """
    _logger.error(
        "The brokers have not taken the last commit for %.0f s: the worker ends without "
        "it. Nothing is lost; "
        "the next owner of its partitions goes on from the commit before.",
        ENDING,
    )
    os._exit(1)


def extra_of(kafka: KafkaSettings) -> dict[str, Any]:
    """Return the client library's other options that were given."""
    known = ConnectionConfig.model_fields.keys() | {"sasl_mechanisms"}
    return {
        name: value for name, value in kafka.client.items() if name.replace(".", "_") not in known
    }


def _producer(kafka: KafkaSettings) -> dict[str, Any]:
    linger = {"linger.ms": 20, "compression.type": "zstd"}
    if kafka.guarantee == "exactly-once":
        # A name of its own, for two of one name would end each other; rights are given by how it
        # begins.
        name = f"{kafka.group}-{uuid.uuid4().hex}"
        return {
            **linger,
            "transactional.id": name,
            "transaction.timeout.ms": _ms(kafka.transaction_timeout),
        }
    return dict(linger)


def _ms(seconds: float) -> int:
    return round(seconds * 1e3)


def _raised(*_: object) -> bool:
    """Raise the error: it is logged where the worker is started again."""
    return False
