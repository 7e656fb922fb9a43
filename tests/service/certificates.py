"""Certificates for tests: an authority, what it signs, and what it should not have."""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, as files in PEM."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates for 127.0.0.1, and writes them to a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = _named(name)
        self.certificate = folder / f"{name}.pem"
        self.certificate.write_bytes(
            _pem(self._signed(self._subject, self._key, days=1, is_authority=True))
        )

    def issue(self, name: str, *, days: int = 1) -> Pair:
        """A pair that ends in so many days; with fewer than one it has ended."""
        key = ec.generate_private_key(ec.SECP256R1())
        pair = Pair(
            self._folder / f"{self._name}-{name}.pem", self._folder / f"{self._name}-{name}.key"
        )
        pair.certificate.write_bytes(
            _pem(self._signed(_named(name), key, days=days, is_authority=False))
        )
        pair.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return pair

    def client(self, pair: Pair | None = None) -> ssl.SSLContext:
        """What a client needs that trusts this authority, with a certificate of its own or none."""
        context = ssl.create_default_context(cafile=str(self.certificate))
        if pair is not None:
            context.load_cert_chain(pair.certificate, pair.key)
        return context

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, days: int, is_authority: bool
    ) -> x509.Certificate:
        end = datetime.now(UTC) + timedelta(days=days)
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(end - timedelta(days=30))
            .not_valid_after(end)
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([address]), critical=False)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
            .sign(self._key, hashes.SHA256())
        )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
