"""Settings of the service (where it listens, who may connect, where metrics go, where its state is)
and of workers on Kafka.

They stand below `service` and `kafka` in the file, and behind `OTEL_RELIABILITY_SERVICE_` and
`OTEL_RELIABILITY_KAFKA_` in the environment (`config_file` reads both). Fields that depend on one
another may come from different places, so they are checked when all is read (`checks`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

from msgspec import Meta, Struct

from otel_reliability.config import Settings
from otel_reliability.errors import ConfigurationError
from otel_reliability.loading import (
    Bytes,
    Internal,
    InternalSeconds,
    Seconds,
    Secret,
    Text,
    Url,
    shown,
)
from otel_reliability.service.addresses import LISTENS

Address: TypeAlias = Annotated[
    str,
    Meta(
        pattern=LISTENS,
        extra={
            "allowed": "a host and a port, or off",
            "remedy": "write it like 127.0.0.1:4317, or 0.0.0.0:4317 for every interface",
        },
    ),
]


class TLSSettings(Struct, frozen=True):
    """Encryption of every endpoint. Files are in PEM."""

    certificate: Text | None = None
    """The server's certificate, with the chain that leads to it."""
    key: Text | None = None
    """Its private key."""
    client_ca: Text | None = None
    """Certificates that sign those of clients; with it, clients without such a certificate are
    refused.
    """


class ServiceSettings(Struct, frozen=True):
    """All settings of `otel-reliability serve` next to those of its engine."""

    grpc: Address = "127.0.0.1:4317"
    """Address of the OTLP/gRPC receiver; `off` closes it."""
    http: Address = "127.0.0.1:4318"
    """Address of the OTLP/HTTP receiver."""
    metrics: Address = "127.0.0.1:9464"
    """Address of `/metrics`, which Prometheus scrapes."""
    series: Literal["all", "dashboards", "fleet"] = "dashboards"
    """Metrics of agents in a scrape: all; those that the dashboards, rules and alerts ask for; or
    those without the ones that only the dashboard of an agent asks for, for thousands of agents.
    """
    ui: Address = "127.0.0.1:8080"
    """Address of the UI, the health checks and the API."""
    allow_public: bool = False
    """True if endpoints may listen to other machines without encryption and without a token."""
    token: Secret | None = None
    """Token that clients must send as `Authorization: Bearer …` to every endpoint; health checks
    need none.
    """
    token_file: Text | None = None
    """File of such tokens, one per line, each of which is accepted; it is read again when it
    changes.
    """
    tls: TLSSettings = TLSSettings()
    push: Url | None = None
    """OTLP endpoint that metrics are sent to; OpenTelemetry's own variables
    (`OTEL_EXPORTER_OTLP_…`) set all else.
    """
    state: Text | None = None
    """Directory of the state; without it, what is open is lost when the process ends."""
    state_sync: Literal["normal", "full"] = "normal"
    """Losses that acknowledged data survives: the end of the process (normal), or a loss of power
    too (full, which is slower).
    """
    state_limit: Bytes = 4 << 30
    """Size of the state on disk above which requests are answered with *overloaded*."""
    instance: Text | None = None
    """This service among several, as `service.instance.id`; default: the host's name. It must stay
    the same.
    """
    cors: tuple[Text, ...] = ()
    """Origins of web pages that may send OTLP over HTTP, such as `https://app.example.com`; none
    may by default.
    """
    drain: Seconds = 8.0
    """Seconds that shutting down may take."""

    max_request: Internal = 64 << 20
    """Bytes of a request, compressed or not; a larger one is refused."""
    queue: Internal = 0
    """Bytes of requests that are not committed yet; above, requests are answered with *overloaded*.
    0: a quarter of `limits.memory`.
    """
    memory: Internal = 0
    """Bytes of the process above which requests are answered with *overloaded*. 0: nine tenths of
    the container's limit.
    """
    commit_timeout: InternalSeconds = 4.0
    """Seconds that a request may wait to be committed. Collectors give up after 5 s."""
    max_connection_age: InternalSeconds = 300.0
    """Seconds after which a gRPC connection is closed, so that clients spread over several
    services.
    """

    def __repr__(self) -> str:
        """Return the settings without the token."""
        return shown(self, without="token")

    @property
    def guarded(self) -> bool:
        """Return whether clients need a token, or connections are encrypted."""
        return (
            self.tls.certificate is not None
            or self.token is not None
            or self.token_file is not None
        )


ENDPOINTS: Final = ("grpc", "http", "metrics", "ui")
"""The settings that are addresses."""


class KafkaSettings(Struct, frozen=True):
    """All settings of `otel-reliability kafka` next to those of its engine and of `service.metrics`
    and `service.ui`.
    """

    brokers: Text | None = None
    """Addresses of the brokers: host:port, several with commas."""
    spans: Text = "otlp_spans"
    """The topic that the Collector writes spans to, keyed by trace id."""
    logs: Text | None = None
    """The topic that it writes log events to, keyed by trace id, with as many partitions; their
    evaluations join the runs.
    """
    runs: Text = "otel_reliability_runs"
    """The topic of run records, keyed by agent."""
    readings: Text | None = None
    """The topic that readings go to as OTLP metrics; without, they are only at `/metrics`."""
    dead_letters: Text | None = None
    """The topic that messages go to which cannot be used; without, they are counted and left."""
    group: Text = "otel-reliability"
    """Prefix of the consumer groups of the two stages, and of the topics of their state."""
    state: Text | None = None
    """Directory of this worker's copy of its state; without it, all state is loaded from the
    brokers at every start.
    """
    guarantee: Literal["exactly-once", "at-least-once"] = "exactly-once"
    """True if messages, state and what is sent are one transaction."""
    commit: Seconds = 1.0
    """Time between two commits: what is sent is seen by others so much later."""
    session_timeout: Seconds = 45.0
    """Time without a sign of life after which the brokers give a worker's partitions to others."""
    transaction_timeout: Seconds = 15.0
    """Time after which the brokers end the transaction of a worker that died; what stands behind it
    is not read until then.
    """
    tick: Seconds = 5.0
    """Time between two ticks: a partition without messages closes its runs by them."""
    tell: Seconds = 15.0
    """Time between two publications of readings."""
    client: Mapping[str, str] = {}
    """Options of the client library by its own names, such as security.protocol, sasl.mechanism,
    ssl.ca.location.
    """

    def __post_init__(self) -> None:
        """Check that a transaction is longer than what one commit holds."""
        if self.transaction_timeout <= self.commit:
            allowed = f"longer than commit ({self.commit:g} s)"
            raise ConfigurationError(
                "transaction_timeout", self.transaction_timeout, allowed, "raise it"
            )

    def __repr__(self) -> str:
        """Return the settings without the client's options, which hold passwords."""
        return shown(self, without="client")


class Config(Settings, frozen=True):
    """All settings of a service or of a worker on Kafka: those of its engine, and its own."""

    service: ServiceSettings = ServiceSettings()
    kafka: KafkaSettings = KafkaSettings()

    foreign_prefixes: ClassVar[tuple[str, ...]] = ()
