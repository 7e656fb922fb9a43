"""What settings of a service must hold together, and what they name that must be there. Raises `ConfigurationError`."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from otel_reliability.config import Settings
from otel_reliability.errors import ConfigurationError
from otel_reliability.service.addresses import place_of
from otel_reliability.service.kafka_settings import KafkaSettings
from otel_reliability.service.settings import DOORS, ServiceSettings


def check(engine: Settings, service: ServiceSettings) -> None:
    """Everything about these settings that can be told before the service starts."""
    if service.queue < service.max_request:
        raise _wrong("queue", service.queue, "as large as max_request", "make it larger")
    _check_doors(service)
    for pair in _pairs(service):
        _check_pair(pair)
    for field, file in _files(service):
        _check_file(field, file)
    _check_certificate(service)


def check_workers(engine: Settings, kafka: KafkaSettings) -> None:
    """The same for workers on Kafka, beside `check`."""
    if not kafka.brokers:
        raise ConfigurationError(
            "kafka.brokers", kafka.brokers, "where brokers are", "give host:port, several with commas (--brokers)"
        )
    if engine.hash_key is None:
        raise ConfigurationError(
            "hash_key",
            None,
            "shared by the workers: effects that each hashes with a key of its own never agree",
            "give all of them the same, as a secret of theirs",
        )


def _check_doors(service: ServiceSettings) -> None:
    """What is open to others must be guarded, or be meant so."""
    for door in DOORS:
        address: str = getattr(service, door)
        place = place_of(address)
        if place is not None and place.public and not service.guarded and not service.allow_public:
            raise _wrong(
                door,
                address,
                "safe without encryption and without a token",
                "set tls.certificate and tls.key, or token_file; or allow_public, if something else guards it",
            )


class _Pair(NamedTuple):
    """Two settings of which the first is of no use without the second."""

    field: str
    value: str | None
    needs: str
    given: str | None


def _pairs(service: ServiceSettings) -> Iterator[_Pair]:
    yield _Pair("tls.certificate", service.tls.certificate, "tls.key", service.tls.key)
    yield _Pair("tls.key", service.tls.key, "tls.certificate", service.tls.certificate)
    yield _Pair("tls.client_ca", service.tls.client_ca, "tls.certificate", service.tls.certificate)


def _check_pair(pair: _Pair) -> None:
    if pair.value is not None and pair.given is None:
        raise _wrong(pair.field, pair.value, f"usable without {pair.needs}", f"give {pair.needs} too")


def _files(service: ServiceSettings) -> Iterator[tuple[str, str]]:
    found = {
        "token_file": service.token_file,
        "tls.certificate": service.tls.certificate,
        "tls.key": service.tls.key,
        "tls.client_ca": service.tls.client_ca,
    }
    yield from ((field, file) for field, file in found.items() if file is not None)


def _check_file(field: str, file: str) -> None:
    try:
        content = Path(file).read_bytes()
    except OSError as error:
        raise _wrong(field, file, f"a file that can be read ({error.strerror})", "give its path") from None
    if not content.strip():
        raise _wrong(field, file, "a file with anything in it", "fill it")


def _check_certificate(service: ServiceSettings) -> None:
    tls = service.tls
    if tls.certificate is None:
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(tls.certificate, tls.key)
    except ssl.SSLError as error:
        raise _wrong(
            "tls.certificate",
            tls.certificate,
            f"a PEM certificate that goes with tls.key ({error.reason})",
            "give both",
        ) from None
    try:
        if tls.client_ca is not None:
            context.load_verify_locations(tls.client_ca)
    except ssl.SSLError as error:
        raise _wrong(
            "tls.client_ca", tls.client_ca, f"certificates in PEM ({error.reason})", "give the signers' own"
        ) from None


def _wrong(field: str, value: object, allowed: str, remedy: str) -> ConfigurationError:
    return ConfigurationError(f"service.{field}", value, allowed, remedy)
