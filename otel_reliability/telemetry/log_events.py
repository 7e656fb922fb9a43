"""Changes of behaviour, change points and excesses of open runs → OTel log events, where a
LoggerProvider is set.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from opentelemetry import _logs as logs
from opentelemetry import context
from opentelemetry._logs.severity import SeverityNumber
from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY  # the SDK's own way to say it

from otel_reliability.change.alarm import Alarm, SignalChange, Summary
from otel_reliability.change.monitor import Change
from otel_reliability.change.points import ChangePoint
from otel_reliability.change.sentences import of_alarm, of_point
from otel_reliability.model.run import AgentKey
from otel_reliability.telemetry import names
from otel_reliability.telemetry.exposition import of_agent
from otel_reliability.telemetry.guard import Guard
from otel_reliability.watch import Excess, sentence_of
from otel_reliability.windows.agents import OTHER_AGENT

EVENT_NAME: Final = "agent_reliability.change"
POINT_EVENT_NAME: Final = "agent_reliability.change_point"
EXCESS_EVENT_NAME: Final = "agent_reliability.run_excess"
PREFIX: Final = names.PREFIX + "change."
EXCESS_PREFIX: Final = names.PREFIX + "excess."


class Event(NamedTuple):
    """A log event, by the keywords of the logs API."""

    timestamp: int
    body: dict[str, Any]
    attributes: dict[str, Any]
    event_name: str = EVENT_NAME
    severity_number: SeverityNumber = SeverityNumber.WARN


def emit(changes: Sequence[Change | Excess], provider: logs.LoggerProvider | None = None) -> None:
    """Emit an event for each change, to the global LoggerProvider where no other is given. Never
    raises.

    Until a provider is set, the API drops the events.
    """
    if not changes:
        return
    with Guard("emitting a log event"):
        logger = logs.get_logger(names.SCOPE, logger_provider=provider)
        token = context.attach(
            context.set_value(_SUPPRESS_INSTRUMENTATION_KEY, value=True, context=context.Context())
        )
        try:
            for change in changes:
                _emit_event(logger, event_of(change))
        finally:
            context.detach(token)


def event_of(change: Change | Excess) -> Event:
    """Return the event of a change, of a change point, or of an open run that exceeds a bound.

    The attributes name the agent, the signals (the first names the change) and the observation. The
    body has a sentence, and the values before and after.
    """
    if isinstance(change, Excess):
        return _event_of_excess(change)
    key, alarm = change
    if isinstance(alarm, ChangePoint):
        return _event_of_point(key, alarm)
    attributes = {
        **of_agent(key),
        names.SIGNAL: alarm.signal,
        PREFIX + "signals": tuple(told.signal for told in alarm.signals),
        PREFIX + "observation": alarm.observation,
        PREFIX + "since_observation": alarm.since_observation,
    }
    return Event(alarm.noticed_ns, _body(alarm), attributes)


def _event_of_point(key: AgentKey, point: ChangePoint) -> Event:
    attributes = {
        **of_agent(key),
        PREFIX + "kind": point.kind,
        PREFIX + "observation": point.observation,
    }
    body = {"message": of_point(point), "before": list(point.before), "after": list(point.after)}
    return Event(point.at_ns, body, attributes, POINT_EVENT_NAME, SeverityNumber.INFO)


def _event_of_excess(excess: Excess) -> Event:
    run = excess.run
    attributes = {
        **of_agent(run.key if excess.agent == OTHER_AGENT else excess.agent),
        EXCESS_PREFIX + "kind": excess.kind,
        EXCESS_PREFIX + "value": excess.value,
        EXCESS_PREFIX + "bound": excess.bound,
        EXCESS_PREFIX + "bound_of": excess.of,
        EXCESS_PREFIX + "run_id": run.run_id,
    }
    return Event(run.end_ns, {"message": sentence_of(excess)}, attributes, EXCESS_EVENT_NAME)


def _body(alarm: Alarm) -> dict[str, Any]:
    return {
        "message": of_alarm(alarm),
        "observation": alarm.observation,
        "signals": [_signal(told) for told in alarm.signals],
        "tools": [shift._asdict() for shift in alarm.tools],
        "change_points": [of_point(point) for point in alarm.points],
    }


def _signal(told: SignalChange) -> dict[str, Any]:
    """Return a signal. Absent summaries are left out: some exporters refuse a null."""
    sides = {"before": told.before, "after": told.after}
    summaries = {side: _summary(summary) for side, summary in sides.items() if summary is not None}
    return {
        "signal": told.signal,
        "evidence": told.evidence,
        "since_observation": told.since_observation,
        **summaries,
    }


def _summary(summary: Summary) -> dict[str, float]:
    return {
        "observations": summary.observations,
        "mean": float(summary.mean),
        "median": float(summary.median),
    }


def _emit_event(logger: logs.Logger, event: Event) -> None:
    """Emit by keywords where the API has them; an older SDK accepts only records of
    its own class.
    """
    more = {"observed_timestamp": time.time_ns(), "severity_text": event.severity_number.name}
    facts: dict[str, Any] = event._asdict() | more
    emit: Callable[..., None] = logger.emit
    if _takes_keywords(type(logger)):
        emit(**facts)
    else:
        emit(_record(logger, facts))


def _record(logger: logs.Logger, facts: dict[str, Any]) -> Any:
    resource = getattr(logger, "resource", None)
    if resource is None:  # the API's own, which drops it, or another vendor's
        kind: Callable[..., Any] = logs.LogRecord
        return kind(**facts)
    from opentelemetry.sdk import _logs as sdk_logs  # noqa: PLC0415  newer ones have no such class

    of_sdk: Callable[..., Any] = vars(sdk_logs)["LogRecord"]
    return of_sdk(**facts, resource=resource)


@functools.cache
def _takes_keywords(logger: type[logs.Logger]) -> bool:
    return "event_name" in inspect.signature(logger.emit).parameters
