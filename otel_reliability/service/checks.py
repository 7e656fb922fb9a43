"""Checks of a service's settings as a whole: fields that depend on one another, and files. Raise
`ConfigurationError`.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from otel_reliability.errors import ConfigurationError
from otel_reliability.service.addresses import parse_address
from otel_reliability.service.settings import ENDPOINTS, Config, ServiceSettings, TLSSettings


def check(service: ServiceSettings) -> None:
    """Check everything about these settings that can be known before the service starts."""
    _check_endpoints(service)
    _check_files(service)
    http_context(service.tls)


def check_workers(config: Config) -> None:
    """Check the settings of workers on Kafka, which need brokers and a common key of hashes."""
    if not config.kafka.brokers:
        remedy = "give host:port, several with commas (--brokers)"
        raise ConfigurationError("kafka.brokers", config.kafka.brokers, "a list of brokers", remedy)
    if config.hash_key is None:
        allowed = "a key that all workers share: they compare hashes"
        raise ConfigurationError(
            "hash_key", None, allowed, "give all of them the same, as a secret"
        )


def _check_endpoints(service: ServiceSettings) -> None:
    """An endpoint that other machines reach must be guarded, or be public on purpose."""
    for endpoint in ENDPOINTS:
        address: str = getattr(service, endpoint)
        place = parse_address(address)
        if place is not None and place.public and not service.guarded and not service.allow_public:
            remedy = (
                "set tls.certificate and tls.key, or token_file; or allow_public, if "
                "something else guards it"
            )
            raise _wrong(endpoint, address, "safe without encryption and without a token", remedy)


def _check_files(service: ServiceSettings) -> None:
    """Files of TLS are of use together only; each that is named must be readable, and hold
    something.
    """
    tls = service.tls
    files = {
        "tls.certificate": (tls.certificate, "tls.key", tls.key),
        "tls.key": (tls.key, "tls.certificate", tls.certificate),
        "tls.client_ca": (tls.client_ca, "tls.certificate", tls.certificate),
        "token_file": (service.token_file, "", service.token_file),
    }
    given = [
        (field, file, other, need)
        for field, (file, other, need) in files.items()
        if file is not None
    ]
    for field, file, other, need in given:
        if need is None:
            raise _wrong(field, file, f"usable without {other}", f"give {other} too")
    for field, file, *_ in given:
        try:
            content = Path(file).read_bytes()
        except OSError as error:
            raise _wrong(
                field, file, f"a file that can be read ({error.strerror})", "give its path"
            ) from None
        if not content.strip():
            raise _wrong(field, file, "a file with anything in it", "fill it")


def http_context(tls: TLSSettings) -> ssl.SSLContext | None:
    """Return the context of HTTP endpoints; None without encryption. With `client_ca` clients need
    a certificate signed by it.
    """
    if tls.certificate is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(tls.certificate, tls.key)
    except ssl.SSLError as error:
        allowed = f"a PEM certificate that goes with tls.key ({error.reason})"
        raise _wrong("tls.certificate", tls.certificate, allowed, "give both") from None
    try:
        if tls.client_ca is not None:
            context.load_verify_locations(tls.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
    except ssl.SSLError as error:
        allowed = f"certificates in PEM ({error.reason})"
        raise _wrong("tls.client_ca", tls.client_ca, allowed, "give the signers' own") from None
    return context


def _wrong(field: str, value: object, allowed: str, remedy: str) -> ConfigurationError:
    return ConfigurationError(f"service.{field}", value, allowed, remedy)
