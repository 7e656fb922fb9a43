"""Encryption of the doors, and what they ask of a client's certificate."""

from __future__ import annotations

import ssl

from otel_reliability.service.settings import TLSSettings


def http_context(tls: TLSSettings) -> ssl.SSLContext | None:
    """For doors that speak HTTP; None where nothing is encrypted. With `client_ca` a client must have a certificate of theirs."""
    if tls.certificate is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tls.certificate, tls.key)
    if tls.client_ca is not None:
        context.load_verify_locations(tls.client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context
