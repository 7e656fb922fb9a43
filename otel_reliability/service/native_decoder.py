"""OTLP trace requests in protobuf → agent spans by the optional native extension
`otel-reliability-native`.

It does what `otlp_protobuf` and the reader of the conventions do together, with the same result;
what it does not read, they do.
"""

from __future__ import annotations

import importlib
import logging
from types import SimpleNamespace
from typing import Any, Final

from google.protobuf.message import DecodeError

from otel_reliability.conventions.base import Own
from otel_reliability.conventions.hashing import RULES, HashedResult, TextRules
from otel_reliability.conventions.results import error_word
from otel_reliability.conventions.templates import Template
from otel_reliability.model.span import (
    AgentSpan,
    Call,
    LazyAttributes,
    RawSpan,
    Resource,
    Session,
    ToolFacts,
)
from otel_reliability.sources.batch import Malformed, fault, parent, parent_remote
from otel_reliability.sources.otlp_descriptor import SPAN_STATUS
from otel_reliability.sources.otlp_protobuf import (
    decoded,
    resource_of,
    scope_of,
    unusual,
    with_status,
)

FIELDS: Final = {
    one.__name__: one.__struct_fields__
    for one in (AgentSpan, Call, HashedResult, Own, Session, Template, TextRules)
} | {ToolFacts.__name__: ToolFacts.__struct_fields__[:2]}
"""The fields of what is passed to compiled modules and what comes back. They say for which ones
they were built: others would be taken for what they are not. Of the facts of a tool they set the
first two only; the package adds its owner.
"""

_logger = logging.getLogger("otel_reliability")


def load(name: str) -> Any:
    """Return a compiled module; None where it is not installed, cannot be loaded, or was built for
    another version.

    >>> load("no_such_module") is None
    True
    """
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError:
        return None
    # the extension is optional: no failure of it may reach the host
    except Exception as error:  # noqa: BLE001
        _logger.warning(
            "%s is not used, Python does its work: it cannot be loaded: %s: %s",
            name,
            type(error).__name__,
            error,
        )
        return None
    if getattr(module, "FIELDS", None) != FIELDS:
        _logger.warning(
            "%s is not used, Python does its work: it was built for another version. "
            "Install otel-reliability-native again "
            "(pip install ./native), of the same version as otel-reliability.",
            name,
        )
        return None
    return module


MODULE: Final = "otel_reliability_native"


class NativeDecoder:
    """Decodes requests by the conventions of a reader; with a `module` other than the installed one
    in tests.
    """

    def __init__(self, reader: Any, module: Any) -> None:
        self._scanner = module.Scanner(reader, _PYTHON)

    def __call__(self, body: bytes) -> tuple[list[AgentSpan], list[Malformed]] | None:
        """Agent spans, and what is malformed; None where the decoder in Python must
        read the body.
        """
        try:
            return self._scanner.scan(body)
        except (DecodeError, UnicodeDecodeError):
            return None


def native_decoder(reader: Any) -> NativeDecoder | None:
    """A decoder by the conventions of a reader, where the extension is installed."""
    module = load(MODULE)
    return None if module is None else NativeDecoder(reader, module)


def _raw(
    trace_id: bytes,
    span_id: bytes,
    parent_id: bytes,
    name: str,
    kind: int,
    start_ns: int,
    end_ns: int,
    status: int,
    flags: int,
    pairs: dict[str, bytes],
    fields: list[tuple[int, int, bytes]],
    scope: str,
    version: str,
    resource: Resource,
) -> RawSpan:
    """The span as the decoder in Python gives it."""
    given, state, events, links, dropped = unusual(fields, pairs)
    stati = [data for number, _, data in fields if number == SPAN_STATUS]
    if stati:
        _, events = with_status(stati[-1], events, end_ns)
    return RawSpan(
        trace_id,
        span_id,
        parent_id=parent(parent_id),
        name=name,
        span_kind=kind,
        start_ns=start_ns,
        end_ns=end_ns,
        status=status,
        parent_remote=parent_remote(flags),
        attributes=LazyAttributes(given, decoded),
        events=events,
        links=links,
        scope=scope,
        scope_version=version,
        resource=resource,
        trace_state=state,
        dropped=dropped,
    )


_PYTHON: Final = SimpleNamespace(
    AgentSpan=AgentSpan,
    Call=Call,
    HashedResult=HashedResult,
    Session=Session,
    ToolFacts=ToolFacts,
    decoded=decoded,
    error_word=error_word,
    fault=fault,
    raw=_raw,
    resource_of=resource_of,
    scope_of=scope_of,
    text_rules=RULES,
)
"""Names that the extension needs of the package."""
