"""The agent of an experiment: a command, a Python function, or a service that is asked over HTTP.

A command and a function are started again for each attempt, with OpenTelemetry's variables. A
service runs already: it is asked with the headers of W3C trace context and baggage, and exports to
the receiver of the experiment, whose address is fixed for that.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import aiohttp

from otel_reliability.errors import ConfigurationError
from otel_reliability.experiments.environment import PROPAGATED, Attempt
from otel_reliability.experiments.process import MAX_OUTPUT, Ended, arguments_of, run_process
from otel_reliability.experiments.receiver import Inbox
from otel_reliability.experiments.tasks import Task
from otel_reliability.sources.otlp_json import items, record

DEFAULT_BODY: Final = '{"input": "{input}"}'
JSON_TYPE: Final = "application/json"
SETTLE_S: Final = 10.0
"""Seconds that the spans of a service may be late: SDKs export every 5 s by default."""
_FIELD: Final = re.compile(r"\{(?:id|input)\}")
_LOOK_S: Final = 0.05
_FAILED: Final = 1
_ERROR: Final = 400


class Agent(Protocol):
    """One way to run an agent."""

    async def run(
        self, task: Task, attempt: Attempt, env: Mapping[str, str], inbox: Inbox, limit: float
    ) -> Ended:
        """Make an attempt, in at most `limit` seconds, and return its end. `env` is the environment
        of the attempt; its telemetry arrives in `inbox`.
        """
        ...


class CommandAgent:
    """A command, with `{input}` and `{id}` in its arguments, or the input on standard input."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command

    async def run(
        self, task: Task, attempt: Attempt, env: Mapping[str, str], inbox: Inbox, limit: float
    ) -> Ended:
        """Run it to its end. Raises `OSError` if it cannot be started."""
        return await run_process(*arguments_of(self._command, task), env, limit)


def called_agent(target: str) -> CommandAgent:
    """Return the agent that a Python function is, like `package.module:function`: it gets the input
    and returns the output, in a process of its own for each attempt.
    """
    return CommandAgent((sys.executable, "-m", "otel_reliability.experiments.called", target))


class PostedAgent:
    """A service that gets the input by POST, and answers with the output."""

    def __init__(self, url: str, body: str = DEFAULT_BODY, headers: Mapping[str, str] = {}) -> None:
        self._url = url
        self._body = body
        given = {key.lower(): value for key, value in headers.items()}
        self._headers = {"content-type": JSON_TYPE, **given}

    async def run(
        self, task: Task, attempt: Attempt, env: Mapping[str, str], inbox: Inbox, limit: float
    ) -> Ended:
        """Post the input, and wait for the spans of the attempt. An answer of 400 or above failed;
        none within the limit ran into the time limit. Raises `ConfigurationError` where nothing
        listens.
        """
        headers = {**self._headers, **{name: env[key] for name, key in PROPAGATED.items()}}
        is_json = self._headers["content-type"].partition(";")[0] == JSON_TYPE
        body = filled(self._body, task, _in_json if is_json else str)
        timeout = aiohttp.ClientTimeout(total=limit)
        start_ns = time.time_ns()
        code: int | None = None
        output = errors = ""
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.post(self._url, data=body.encode(), headers=headers) as answer,
            ):
                output = (await answer.content.read(MAX_OUTPUT)).decode("utf-8", "replace")
                code = _FAILED if answer.status >= _ERROR else 0
                errors = f"{self._url} answered {answer.status}" if code else ""
        except TimeoutError:
            errors = f"{self._url} did not answer in time"
        except aiohttp.ClientConnectorError:
            raise ConfigurationError(
                "--post", self._url, "the address of a service that listens", "start it first"
            ) from None
        except aiohttp.ClientError as error:
            code = _FAILED
            errors = f"{self._url}: {type(error).__name__}"
        end_ns = time.time_ns()
        await _settled(inbox, attempt)
        return Ended(code, output, errors, start_ns, end_ns)


def filled(template: str, task: Task, written: Callable[[str], str]) -> str:
    """Return a body with the id and the input of a task.

    >>> filled('{"q": "{input}"}', Task("7", "hello"), _in_json)
    '{"q": "hello"}'
    """
    fields = {"{id}": task.id, "{input}": task.input}
    return _FIELD.sub(lambda match: written(fields[match[0]]), template)


def _in_json(text: str) -> str:
    """Return a text as it stands between the quotes of JSON."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


async def _settled(inbox: Inbox, attempt: Attempt) -> None:
    """Wait until the service has sent the span that answered, which ends after all below it; for a
    time that its exporter may take, where it sends none.
    """
    deadline = time.monotonic() + SETTLE_S
    while time.monotonic() < deadline:
        if any(_answers(request, attempt) for request in inbox.seen()):
            return
        await asyncio.sleep(_LOOK_S)


def _answers(request: Mapping[str, Any], attempt: Attempt) -> bool:
    """Return whether a request in OTLP-JSON holds a span right below the attempt's own."""
    above = attempt.span_id.hex()
    return any(
        record(span).get("parentSpanId") == above
        for group in items(request.get("resourceSpans"))
        for scope in items(record(group).get("scopeSpans"))
        for span in items(record(scope).get("spans"))
    )
