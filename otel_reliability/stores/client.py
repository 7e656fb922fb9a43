"""JSON over HTTP, for reading a trace store: retries with back-off, `Retry-After`, no credentials
to another host.

No official client is used: each brings 25 to 79 packages for what takes one request here.
"""

from __future__ import annotations

import base64
import email.utils
import ipaddress
import math
import ssl
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from http.client import HTTPException, HTTPMessage
from typing import IO, Any, Final, TypeAlias
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlencode, urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import msgspec

from otel_reliability.errors import ConfigurationError, SourceError
from otel_reliability.sources.otlp_json import record, text

ATTEMPTS: Final = 6
"""Times that a request is sent before its failure counts."""
TIMEOUT_S: Final = 60
LONGEST_WAIT_S: Final = 120.0
"""Longest pause between two attempts; a store that asks for more is not waited for."""
MAX_ANSWER: Final = 256 * 1024 * 1024
"""Bytes of one answer."""
PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed."""
NOT_FOUND: Final = 404
_REDIRECTED: Final = "; redirects to another host are not followed, name it with --url"

Params: TypeAlias = Iterable[tuple[str, str]]


class StoreError(SourceError):
    """An answer of a store that is not the one asked for. `status` is None without an answer;
    neither credentials nor the body are in the message.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        self.status = status
        super().__init__(message)


class _SameHost(HTTPRedirectHandler):
    """Follows redirects within one host: elsewhere the credentials would go along."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        if urlsplit(newurl)[:2] != urlsplit(req.full_url)[:2]:
            return None
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class Client:
    """Requests to one store. A user and password in `base` become a header. `named`: what the
    address was set by; `credentials`: how to set those, as the object of "set".
    """

    def __init__(
        self,
        base: str,
        headers: Mapping[str, str] | None = None,
        *,
        named: str = "--url",
        credentials: str = "the credentials in the store's own environment variables",
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        parts = urlsplit(base)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            shown = base if "@" not in base else "an address with credentials"
            remedy = "write it like https://host:port; a file or database is read by its server"
            raise ConfigurationError(named, shown, "the URL of a server", remedy)
        user, at, host = parts.netloc.rpartition("@")
        if at:
            base = urlunsplit(parts._replace(netloc=host))
            headers = {**basic(unquote(user)), **(headers or {})}
        if headers and parts.scheme == "http" and not _is_local(parts.hostname):
            shown = f"{parts.scheme}://{parts.hostname}"
            remedy = "use https, or unset the credentials"
            raise ConfigurationError("--url", shown, "safe for credentials", remedy)
        self.base = base.rstrip("/")
        self.notes = Counter[str]()
        """Facts about what was read that a user must know, such as traces that a store left out;
        each with how often it holds.
        """
        self._credentials = credentials
        self._headers = {"Accept": "application/json", **(headers or {})}
        self._sleep = sleep
        self._open = build_opener(_SameHost).open

    def get(self, path: str, params: Params = ()) -> Any:
        """Return the JSON of an answer to GET. Raises `StoreError`."""
        query = urlencode(list(params))
        url = f"{self.base}{path}{'?' if query else ''}{query}"
        return self._ask(path, Request(url))  # noqa: S310  the scheme is checked above

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Return the JSON of an answer to POST. Raises `StoreError`."""
        url = f"{self.base}{path}"
        content = msgspec.json.encode(body)
        request = Request(url, content, method="POST")  # noqa: S310  the scheme is checked above
        request.add_header("Content-Type", "application/json")
        return self._ask(path, request)

    def _ask(self, path: str, request: Request) -> Any:
        for name, value in self._headers.items():
            request.add_unredirected_header(name, value)
        for attempt in range(1, ATTEMPTS + 1):
            pause = float(2 ** (attempt - 1))
            body = b""
            try:
                with self._open(request, timeout=TIMEOUT_S) as answer:
                    body = answer.read(MAX_ANSWER + 1)
                if len(body) > MAX_ANSWER:
                    longest = f"the answer is longer than {MAX_ANSWER} bytes"
                    raise StoreError(f"{self.base}{path}: {longest}.")
                return msgspec.json.decode(body)
            except HTTPError as error:
                error.close()
                asked_for = _pause_of(error.headers.get("Retry-After"))
                pause = pause if asked_for is None else asked_for
                is_last = attempt == ATTEMPTS or pause > LONGEST_WAIT_S
                if error.code not in PASSING or is_last:
                    raise StoreError(self._says(path, error.code), error.code) from None
            except (URLError, HTTPException, OSError) as error:
                if attempt == ATTEMPTS or _is_certain(error):
                    raise StoreError(f"{self.base}{path}: {_without_answer(error)}") from None
            except (msgspec.DecodeError, RecursionError):
                is_cut = body.lstrip()[:1] in (b"{", b"[")  # else another program answers there
                if attempt == ATTEMPTS or not is_cut:
                    why = "cut off" if is_cut else "no JSON; check --url"
                    raise StoreError(f"{self.base}{path}: the answer is {why}.") from None
            self._sleep(min(pause, LONGEST_WAIT_S))
        raise AssertionError("the last attempt returns or raises")

    def pages(
        self, ask: Callable[[str], Any], cursor_of: Callable[[dict[str, Any]], object]
    ) -> Iterator[dict[str, Any]]:
        """Yield the answers of a list page by page: `ask` returns the one at a cursor, `cursor_of`
        the next one, if any. Raises `StoreError` where a cursor returns.
        """
        seen = {""}
        cursor = ""
        while True:
            answer = record(ask(cursor))
            yield answer
            cursor = text(cursor_of(answer))
            if not cursor:
                return
            if cursor in seen:
                said = "the store answers with a page that it answered with before"
                raise StoreError(f"{self.base}: {said}; what came before it was read.")
            seen.add(cursor)

    def _says(self, path: str, status: int) -> str:
        hint = {
            301: _REDIRECTED,
            302: _REDIRECTED,
            307: _REDIRECTED,
            308: _REDIRECTED,
            401: f"; set {self._credentials}",
            403: "; the credentials do not permit it",
            404: "; check --url and --project",
            429: "; the store's rate limit is used up, call again later with the same --output",
        }.get(status, "")
        return f"{self.base}{path}: the store answered with status {status}{hint}."


def basic(pair: str) -> dict[str, str]:
    """Return the header of basic authentication, by `user:password`."""
    return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _is_certain(error: Exception) -> bool:
    """Return whether the same request would fail again."""
    certain = ConnectionRefusedError, ssl.SSLCertVerificationError
    return isinstance(getattr(error, "reason", error), certain)


def _without_answer(error: Exception) -> str:
    reason = getattr(error, "reason", error)
    if isinstance(reason, ssl.SSLCertVerificationError):
        remedy = "set SSL_CERT_FILE to the certificate of its authority"
        return f"its certificate is not trusted; {remedy}."
    kind = type(reason).__name__
    return f"no answer ({kind}); is the store running there? Name it with --url."


def _pause_of(header: str | None) -> float | None:
    """Return the seconds of `Retry-After`, a number or a date.

    >>> _pause_of("3"), _pause_of(None), _pause_of("soon")
    (3.0, None, None)
    """
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        pass
    else:
        return max(seconds, 0.0) if math.isfinite(seconds) else None
    try:
        at = email.utils.parsedate_to_datetime(header)
    except ValueError:
        return None
    now = email.utils.localtime()
    return max((at - now).total_seconds(), 0.0) if at.tzinfo else None
