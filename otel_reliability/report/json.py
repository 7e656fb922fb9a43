"""The JSON document of a report: the serialisation of its view, with every number in full and every
name unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from enum import Enum
from typing import Any, Final, cast
from uuid import uuid4

from msgspec import Struct
from msgspec.structs import asdict

from otel_reliability.metrics.stability.tier import Tier
from otel_reliability.model.run import AgentKey, Run
from otel_reliability.report.run_fields import record_of
from otel_reliability.report.text import instant
from otel_reliability.report.view import Instant, ReportView
from otel_reliability.windows.session_scores import SessionScores

_INDENT: Final = "\n" + 8 * " "


def plain(value: Any) -> Any:
    """Return the value as dictionaries, lists, strings and numbers.

    >>> from otel_reliability.report.view import ReadingView
    >>> plain({"score": ReadingView(80.0, 12), "start": Instant(0)})
    {'score': {'value': 80.0, 'runs': 12}, 'start': '1970-01-01T00:00:00.000000000Z'}
    """
    match value:
        case Instant():
            return instant(value)
        case None | bool() | int() | float() | str():
            return value
        case AgentKey():
            return key_object(value)
        case SessionScores():
            return _session(value)
        case Enum():
            return value.name if isinstance(value, Tier) else value.value
        case Mapping():
            items = cast("Mapping[object, Any]", value).items()
            return {str(name): plain(each) for name, each in items}
        case _ if is_dataclass(value):
            return _object(value)
        case Struct():
            return plain(asdict(value))
        case _ if hasattr(value, "_asdict"):
            return plain(value._asdict())
        case _:
            return [plain(each) for each in value]


def key_object(key: AgentKey) -> dict[str, Any]:
    """Return the names of an agent, and where it runs; null for what is empty.

    >>> key_object(AgentKey("", "shop", "", "support"))
    {'service_namespace': None, 'service': 'shop', 'environment': None, 'agent': 'support'}
    """
    return {
        "service_namespace": key.service_namespace or None,
        "service": key.service_name or None,
        "environment": key.environment or None,
        "agent": key.agent,
        **({"attributes": dict(key.extra)} if key.extra else {}),
    }


def _session(session: SessionScores) -> dict[str, Any]:
    scores = {"reliability": session.reliability, "consistency": session.consistency}
    details = {
        f"{name}_detail": None
        if each is None
        else {"reason": each.reason, "metadata": plain(each.metadata)}
        for name, each in scores.items()
    }
    return {
        "id": session.session_id,
        "runs": list(session.runs),
        "start": instant(session.start_ns),
        "end": instant(session.end_ns),
        **{name: None if each is None else each.score for name, each in scores.items()},
        **details,
        "derived": list(session.derived),
    }


def _object(view: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in fields(view):
        value = getattr(view, field.name)
        if field.metadata.get("merged"):
            found |= plain(value)
        elif field.metadata.get("json", True) and not _is_default(field, value):
            found[field.metadata.get("name", field.name)] = plain(value)
    return found


def _is_default(field: Field[Any], value: Any) -> bool:
    default: Any = field.default if field.default_factory is MISSING else field.default_factory()
    return default is not MISSING and value == default


def render(view: Any) -> str:
    """Return the document, indented; the same view gives the same text."""
    return json.dumps(plain(view), indent=2, ensure_ascii=False) + "\n"


def pieces(report: ReportView) -> Iterator[str]:
    """Yield the document in pieces, its sessions one by one: there may be tens of thousands, a
    kilobyte each.
    """
    mark = uuid4().hex
    marks: Sequence[Any] = (mark,)
    agents = [
        replace(agent, sessions=marks) if agent.sessions else agent for agent in report.agents
    ]
    parts = render(replace(report, agents=agents)).split(f'"{mark}"')
    for part, agent in zip(
        parts, (agent for agent in report.agents if agent.sessions), strict=False
    ):
        yield part
        for number, session in enumerate(agent.sessions):
            text = json.dumps(plain(session), indent=2, ensure_ascii=False)
            yield (",\n" + text if number else text).replace("\n", _INDENT)
    yield parts[-1]


# --- A run ----------------------------------------------------------------------------------------


def line(run: Run) -> str:
    """The run on one line.

    >>> from otel_reliability.testing import run
    >>> print(line(run(["search"])))
    {"run_id": "run-1", "trace_id": "00000000000000000000000000000001", ...}
    """
    return json.dumps(record_of(run), ensure_ascii=False)
