"""Ask a server on loopback over HTTP; every answer is an answer, whatever its status."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Mapping
from email.message import Message
from typing import NamedTuple

# No proxy of the environment may come between a test and its own machine.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Answer(NamedTuple):
    """What a server said."""

    status: int
    headers: Message
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


def ask(
    url: str,
    *,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    method: str | None = None,
    timeout: float = 30.0,
) -> Answer:
    """Send one request: GET without a body, POST with one, or the method told."""
    request = urllib.request.Request(url, data=body, headers=dict(headers or {}), method=method)
    try:
        with _opener.open(request, timeout=timeout) as response:
            return Answer(response.status, response.headers, response.read())
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, error.headers, error.read())


def answers(url: str, status: int = 200) -> bool:
    """Whether a server is there and gives this status."""
    try:
        return ask(url, timeout=2.0).status == status
    except OSError:
        return False
