"""Authentication by bearer tokens."""

from __future__ import annotations

import binascii
import hmac
from contextlib import suppress
from pathlib import Path

from otel_reliability.service.answers import Problem, Refused


class AccessTokens:
    """Tokens that clients must send. Without any, every client is accepted.

    A file of tokens, one a line, is read again when it changes, so that one can be added before
    another is removed. If it can no longer be read, the last ones stay valid.

    >>> (
    ...     AccessTokens("secret").allow("Bearer secret"),
    ...     AccessTokens("secret").allow("Bearer guess"),
    ...     AccessTokens().allow(None),
    ... )
    (True, False, True)
    """

    def __init__(self, token: str | None = None, file: str | None = None) -> None:
        self._given = () if token is None else (token.encode(),)
        self._file = None if file is None else Path(file)
        self._read: tuple[bytes, ...] = ()
        self._stamp: tuple[int, int] | None = None

    @property
    def asked(self) -> bool:
        return bool(self._given) or self._file is not None

    def allow(self, authorization: str | None) -> bool:
        """Return whether a client that sends this header is accepted. The time does not depend on
        how wrong the token is.
        """
        if not self.asked:
            return True
        sent = _sent(authorization or "")
        found = [hmac.compare_digest(sent, token) for token in (*self._given, *self._from_file())]
        return any(found) and bool(sent)

    def check(self, authorization: str | None) -> None:
        if not self.allow(authorization):
            raise Refused(Problem.UNAUTHENTICATED, "unauthenticated", "send a valid bearer token")

    def _from_file(self) -> tuple[bytes, ...]:
        with suppress(OSError):
            if self._file is not None:
                found = self._file.stat()
                stamp = (found.st_mtime_ns, found.st_size)
                if stamp != self._stamp:
                    self._read = tuple(self._file.read_bytes().split())
                    self._stamp = stamp
        return self._read


def _sent(authorization: str) -> bytes:
    """Return the token in a header; empty, which is never valid, if there is none. A browser sends
    it as a password.

    >>> (
    ...     _sent("Bearer secret"),
    ...     _sent("Basic bWU6c2VjcmV0"),
    ...     _sent("Digest secret"),
    ...     _sent("Basic ?"),
    ... )
    (b'secret', b'secret', b'', b'')
    """
    scheme, _, given = authorization.partition(" ")
    sent = given.strip().encode("utf-8", "surrogateescape")
    with suppress(binascii.Error):
        if scheme.lower() == "basic":
            return binascii.a2b_base64(sent, strict_mode=True).partition(b":")[2]
    return sent if scheme.lower() == "bearer" else b""
