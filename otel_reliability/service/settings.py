"""Settings of the service: where it listens, who may come in, where numbers go, how much it may hold.

They stand below `service` in the file, and behind `OTEL_RELIABILITY_SERVICE_` in the environment (`config_file` reads both).
What must go together may come from different places, so it is checked when all is read (`checks`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, TypeAlias

from otel_reliability.loading import settle
from otel_reliability.quantities import Bytes, Seconds, Text
from otel_reliability.service.addresses import Address

AGENTS: Final = 20_000
"""The ceiling of agents where no setting says otherwise: out here no SDK counts their series."""


@dataclass(frozen=True, slots=True)
class Hidden(Text):
    """Some text that no message shows."""

    @property
    def allowed(self) -> str:
        return "a text without spaces or line breaks"

    def read(self, raw: object) -> str:
        text = Text.read(self, raw)
        if any(sign.isspace() for sign in text) or not text.isascii():
            raise ValueError
        return text

    def shown(self, raw: object) -> object:
        return f"({len(str(raw))} characters, not shown)"


@dataclass(frozen=True, slots=True)
class Url(Text):
    """Where OTLP is sent."""

    @property
    def allowed(self) -> str:
        return "a URL with http or https, a host and a port"

    @property
    def remedy(self) -> str:
        return "write it like http://127.0.0.1:4317"

    def read(self, raw: object) -> str:
        text = Text.read(self, raw)
        scheme, found, rest = text.partition("://")
        if not found or scheme not in {"http", "https"} or not rest.partition("/")[0].strip(":"):
            raise ValueError
        return text


Token: TypeAlias = Annotated[str, Hidden()]
Endpoint: TypeAlias = Annotated[str, Url()]
Protocol: TypeAlias = Literal["grpc", "http/protobuf"]


@dataclass(frozen=True, slots=True)
class TLSSettings:
    """Encryption of every door. Files are in PEM."""

    certificate: str | None = None
    """The server's certificate, with the chain that leads to it."""
    key: str | None = None
    """Its private key."""
    client_ca: str | None = None
    """Certificates of who signs those of clients; with it, clients without one of theirs are not let in."""


@dataclass(frozen=True, slots=True)
class PushSettings:
    """Metrics sent by OTLP. Headers, TLS, compression, timeout and temporality are set by OpenTelemetry's own variables."""

    endpoint: Endpoint | None = None
    """URL of the receiver; else OTEL_EXPORTER_OTLP_ENDPOINT; else nothing is sent. The default path is `/v1/metrics`."""
    protocol: Protocol | None = None
    """gRPC, or protobuf over HTTP; else OTEL_EXPORTER_OTLP_PROTOCOL, where that names the endpoint too; else gRPC."""
    interval: Seconds | None = None
    """Time between two exports; else OTEL_METRIC_EXPORT_INTERVAL; else 60 s."""


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """All settings of `otel-reliability serve` beside those of its engine."""

    grpc: Address = "127.0.0.1:4317"
    """Where OTLP comes in over gRPC."""
    http: Address = "127.0.0.1:4318"
    """Where OTLP comes in over HTTP."""
    metrics: Address = "127.0.0.1:9464"
    """Where Prometheus reads `/metrics`."""
    pages: Address = "127.0.0.1:8080"
    """Where the pages, the probes and the API are."""
    allow_public: bool = False
    """Whether doors may listen to others than this machine without encryption and without a token."""
    token: Token | None = field(default=None, repr=False)
    """What clients must send as `Authorization: Bearer …`, at every door; the probes need none."""
    token_file: str | None = None
    """A file of such tokens, one a line, any of which will do; read again when it changes."""
    tls: TLSSettings = TLSSettings()
    push: PushSettings = PushSettings()
    state: str | None = None
    """Directory in which state outlives the process; without, what is open is lost when it dies."""
    state_sync: Literal["normal", "full"] = "normal"
    """Whether what is acknowledged outlives the process (normal) or a loss of power too (full, which takes longer)."""
    state_limit: Bytes = 4 * 1024 * 1024 * 1024
    """Size of the journal on disk from which clients are told to come again."""
    instance: str | None = None
    """Which of several services this is, as `service.instance.id`; the name of the host if nobody says. It must stay the same."""
    max_request: Bytes = 64 * 1024 * 1024
    """Size of a request, packed or unpacked; a larger one is refused for good."""
    queue: Bytes = 256 * 1024 * 1024
    """Room for requests that are not committed yet; beyond, clients are told to come again."""
    memory: Bytes | None = None
    """Memory of the process from which clients are told to come again; nine tenths of the container's limit, where it has one."""
    commit_timeout: Seconds = 4.0
    """How long a request may wait to be committed. Collectors give up after 5 s."""
    max_connection_age: Seconds = 300.0
    """After so long a gRPC connection is closed, so that clients spread over several services."""
    drain: Seconds = 8.0
    """How long the end may take, once it is asked for."""

    def __post_init__(self) -> None:
        """Check every field."""
        settle(self)

    @property
    def guarded(self) -> bool:
        """Whether strangers are kept out, or at least cannot listen in."""
        return self.tls.certificate is not None or self.token is not None or self.token_file is not None


DOORS: Final = ("grpc", "http", "metrics", "pages")
"""What may listen."""
