"""Settings of the workers on Kafka: below `kafka` in the file, behind `OTEL_RELIABILITY_KAFKA_` in the environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from otel_reliability.loading import Contradiction
from otel_reliability.quantities import Seconds


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """All settings of `otel-reliability kafka` beside those of its engine and its doors (`service.metrics`, `service.pages`)."""

    brokers: str | None = None
    """Where the brokers are: host:port, several with commas."""
    spans: str = "otlp_spans"
    """The topic that the Collector writes spans to, keyed by trace id."""
    logs: str | None = None
    """The topic that it writes log events to, keyed by trace id, with as many partitions; their evaluations join the runs."""
    runs: str = "otel_reliability_runs"
    """The topic of run records, keyed by agent."""
    readings: str | None = None
    """The topic that readings go to as OTLP metrics; without, they are only at `/metrics`."""
    dead_letters: str | None = None
    """The topic that messages go to which cannot be used; without, they are counted and left."""
    group: str = "otel-reliability"
    """What the consumer groups of the two stages, and the topics of their state, begin with."""
    state: str | None = None
    """Directory of this worker's copy of its state; without, all of it is read back from the brokers at every start."""
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
    """Time between two sendings of readings."""
    client: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Options of the client library by its own names, such as security.protocol, sasl.mechanism, ssl.ca.location."""

    def contradiction(self) -> Contradiction | None:
        """A transaction holds all that one commit does."""
        if self.transaction_timeout <= self.commit:
            allowed = f"longer than commit ({self.commit:g} s)"
            return Contradiction("transaction_timeout", self.transaction_timeout, allowed, "raise it")
        return None
