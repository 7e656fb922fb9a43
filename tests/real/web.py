"""Ask a server on loopback over HTTP; every answer is an answer, whatever its status."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from email.message import Message
from functools import cache
from typing import NamedTuple


@cache
def _opener(context: ssl.SSLContext | None) -> urllib.request.OpenerDirector:
    """No proxy of the environment may come between a test and its own machine."""
    handlers = [] if context is None else [urllib.request.HTTPSHandler(context=context)]
    return urllib.request.build_opener(urllib.request.ProxyHandler({}), *handlers)


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
    context: ssl.SSLContext | None = None,
) -> Answer:
    """Send one request: GET without a body, POST with one, or the method told; over TLS as the
    context says.
    """
    request = urllib.request.Request(url, data=body, headers=dict(headers or {}), method=method)
    try:
        with _opener(context).open(request, timeout=timeout) as response:
            return Answer(response.status, response.headers, response.read())
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, error.headers, error.read())


def answers(url: str, status: int = 200) -> bool:
    try:
        return ask(url, timeout=2.0).status == status
    except OSError:
        return False
