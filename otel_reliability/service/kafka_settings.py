"""Settings of the workers on Kafka: below `kafka` in the file, behind `OTEL_RELIABILITY_KAFKA_` in the environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from otel_reliability.errors import ConfigurationError
from otel_reliability.loading import Seconds, Text


class KafkaSettings(Struct, frozen=True):
    """All settings of `otel-reliability kafka` next to those of its engine and of `service.metrics` and `service.ui`."""

    brokers: Text | None = None
    """Where the brokers are: host:port, several with commas."""
    spans: Text = "otlp_spans"
    """The topic that the Collector writes spans to, keyed by trace id."""
    logs: Text | None = None
    """The topic that it writes log events to, keyed by trace id, with as many partitions; their evaluations join the runs."""
    runs: Text = "otel_reliability_runs"
    """The topic of run records, keyed by agent."""
    readings: Text | None = None
    """The topic that readings go to as OTLP metrics; without, they are only at `/metrics`."""
    dead_letters: Text | None = None
    """The topic that messages go to which cannot be used; without, they are counted and left."""
    group: Text = "otel-reliability"
    """What the consumer groups of the two stages, and the topics of their state, begin with."""
    state: Text | None = None
    """Directory of this worker's copy of its state; without it, all state is loaded from the brokers at every start."""
    guarantee: Literal["exactly-once", "at-least-once"] = "exactly-once"
    """Whether messages, state and what is sent are one transaction."""
    commit: Seconds = 1.0
    """Time between two commits: what is sent is seen by others so much later."""
    session_timeout: Seconds = 45.0
    """Time without a sign of life after which the brokers give a worker's partitions to others."""
    transaction_timeout: Seconds = 15.0
    """Time after which the brokers end the transaction of a worker that died; what stands behind it is not read until then."""
    tick: Seconds = 5.0
    """Time between two ticks: a partition without messages closes its runs by them."""
    tell: Seconds = 15.0
    """Time between two publications of readings."""
    client: Mapping[str, str] = {}
    """Options of the client library by its own names, such as security.protocol, sasl.mechanism, ssl.ca.location."""

    def __post_init__(self) -> None:
        """Check that a transaction is longer than what one commit holds."""
        if self.transaction_timeout <= self.commit:
            allowed = f"longer than commit ({self.commit:g} s)"
            raise ConfigurationError("transaction_timeout", self.transaction_timeout, allowed, "raise it")

    def __repr__(self) -> str:
        """Return the settings without the client's options, which hold passwords."""
        shown = {name: getattr(self, name) for name in self.__struct_fields__ if name != "client"}
        return f"KafkaSettings({', '.join(f'{name}={value!r}' for name, value in shown.items())})"
