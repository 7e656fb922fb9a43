"""A running service, asked over HTTP for all its agents."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlsplit

from otel_reliability.errors import ConfigurationError, ReliabilityError

PATIENCE: Final = 10.0
A_PAGE: Final = 1_000
"""Agents that one request asks for: as many as a service tells at once."""
API: Final = "/api/v1/agents"
LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
REFUSALS: Final = frozenset({401, 403})
LATER: Final = frozenset({429, 503})


class NoAnswer(ReliabilityError):
    """Nobody listens, or who does has no answer now: it may come later."""


class Asked:
    """A service at an address like `http://127.0.0.1:8080`, the door of its pages; `host:port` will do."""

    def __init__(self, address: str, token: str | None = None) -> None:
        """Raises `ConfigurationError` for an address that is none."""
        self.url = _url(address)
        self._token = token
        local = urlsplit(self.url).hostname in LOCAL
        self._opener = urllib.request.build_opener(*([urllib.request.ProxyHandler({})] if local else []))

    def agents(self) -> list[dict[str, Any]]:
        """A line for each agent, in the order of the service.

        Raises `NoAnswer` where nobody answers now, `ConfigurationError` where no answer will ever do.
        """
        return list(self._lines())

    def _lines(self) -> Iterator[dict[str, Any]]:
        total, told = 1, 0
        while told < total:
            page = self._page(told)
            total, lines = page["total"], cast("list[dict[str, Any]]", page["agents"])
            yield from lines
            told += A_PAGE

    def _page(self, offset: int) -> dict[str, Any]:
        try:
            page = json.loads(self._read(f"{self.url}{API}?limit={A_PAGE}&offset={offset}"))
            if page["agents"] is not None and page["total"] >= 0:
                return page
        except (ValueError, KeyError, TypeError):
            pass
        raise self._stranger()

    def _read(self, url: str) -> bytes:
        headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {self._token}"} if self._token else {})
        request = urllib.request.Request(url, headers=headers)  # noqa: S310 (the user's URL, of http or https)
        try:
            with self._opener.open(request, timeout=PATIENCE) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            error.close()  # it is an answer too, and holds its connection
            raise self._refused(error.code) from None
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "reason", error)
            raise NoAnswer(
                f"nobody answers at {self.url} ({getattr(why, 'strerror', None) or why}); "
                "start one with: otel-reliability serve (or: otel-reliability demo), or give the address of its pages."
            ) from None

    def _refused(self, code: int) -> ReliabilityError:
        if code in REFUSALS:
            return ConfigurationError(
                "--token-file",
                "nothing" if self._token is None else "its token",
                f"what {self.url} lets in",
                "give the file of tokens that the service was started with",
            )
        if code in LATER:
            return NoAnswer(f"the service at {self.url} is not ready yet ({code}); try again in a moment.")
        return self._stranger()

    def _stranger(self) -> ConfigurationError:
        remedy = "give that of its pages, 127.0.0.1:8080 unless it was started with --pages"
        return ConfigurationError("watch", self.url, "the address of an otel-reliability service", remedy)


def token_in(path: Path | None, given: str | None) -> str | None:
    """The first token of a file; without one the token that was given, if any."""
    if path is None:
        return given
    try:
        return path.read_text(encoding="utf-8").split()[0]
    except (OSError, UnicodeDecodeError, IndexError):
        remedy = "give the file of tokens that the service was started with"
        raise ConfigurationError("--token-file", str(path), "a file with a token in it", remedy) from None


def _url(address: str) -> str:
    """The address without what stands behind the port.

    >>> _url("127.0.0.1:8080"), _url("https://box:8443/api/v1/agents")
    ('http://127.0.0.1:8080', 'https://box:8443')
    """
    full = address if "://" in address else f"http://{address}"
    try:
        found = urlsplit(full)
        if found.scheme in {"http", "https"} and found.hostname and (found.port is None or found.port > 0):
            return f"{found.scheme}://{found.netloc}"
    except ValueError:
        pass
    raise ConfigurationError("watch", address, "the URL of a service", "write it like http://127.0.0.1:8080")
