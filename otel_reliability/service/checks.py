"""Checks of a service's settings as a whole: fields that depend on one another, and files. Raise `ConfigurationError`."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from otel_reliability.config import Settings
from otel_reliability.errors import ConfigurationError
from otel_reliability.service.addresses import place_of
from otel_reliability.service.kafka_settings import KafkaSettings
from otel_reliability.service.settings import ENDPOINTS, ServiceSettings


def check(service: ServiceSettings) -> None:
    """Check everything about these settings that can be known before the service starts."""
    _check_endpoints(service)
    for pair in _pairs(service):
        _check_pair(pair)
    for field, file in _files(service):
        _check_file(field, file)
    _check_certificate(service)


def check_workers(engine: Settings, kafka: KafkaSettings) -> None:
    """Check the settings of workers on Kafka, which need brokers and a common key of hashes."""
    if not kafka.brokers:
        raise ConfigurationError(
            "kafka.brokers", kafka.brokers, "a list of brokers", "give host:port, several with commas (--brokers)"
        )
    if engine.hash_key is None:
        raise ConfigurationError(
            "hash_key",
            None,
            "a key that all workers share: they compare hashes",
            "give all of them the same, as a secret",
        )


def _check_endpoints(service: ServiceSettings) -> None:
    """An endpoint that other machines reach must be guarded, or be public on purpose."""
    for endpoint in ENDPOINTS:
        address: str = getattr(service, endpoint)
        place = place_of(address)
        if place is not None and place.public and not service.guarded and not service.allow_public:
            raise _wrong(
                endpoint,
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
    tls = service.tls
    yield _Pair("tls.certificate", tls.certificate, "tls.key", tls.key)
    yield _Pair("tls.key", tls.key, "tls.certificate", tls.certificate)
    yield _Pair("tls.client_ca", tls.client_ca, "tls.certificate", tls.certificate)


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
