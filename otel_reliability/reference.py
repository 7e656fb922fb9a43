"""`change.reference`: a recording → the units of its agents, which change is measured against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from otel_reliability.change.recording import Units
from otel_reliability.change.units import Unit
from otel_reliability.config import Settings
from otel_reliability.engine import Engine
from otel_reliability.errors import ConfigurationError, SourceError
from otel_reliability.model.run import AgentKey, CloseReason
from otel_reliability.sources.otlp_json import read_file

FIELD = "change.reference"


def pinned_by(settings: Settings) -> Mapping[AgentKey, Sequence[Unit]]:
    """The units of the recording that the settings name, by agent; none where they name none.

    Agents are matched by service, environment and name. One that is not in the recording learns a reference of its own.
    Raises `ConfigurationError` where the file cannot be opened, or holds no run.

    >>> pinned_by(Settings())
    {}
    """
    path = settings.change.reference
    if path is None:
        return {}
    try:
        found = _read(path, settings)
    except SourceError as error:
        raise ConfigurationError(FIELD, path, f"a recording that can be read ({error})", "give its path") from error
    if not found:
        allowed = "a recording of agent runs"
        raise ConfigurationError(
            FIELD, path, allowed, "give OTLP-JSON lines, as the Collector's file exporter writes them"
        )
    return found


def _read(path: str, settings: Settings) -> dict[AgentKey, list[Unit]]:
    engine = Engine(replace(settings, change=replace(settings.change, enabled=False)), clock=lambda: 0.0, wall=None)
    units = Units()
    for batch in read_file(path):
        engine.receive(batch.spans)
        engine.receive_evaluations(batch.evaluations)
        engine.tick()
        units.add(engine.take_settled())
    engine.flush(CloseReason.END_OF_INPUT)
    units.add(engine.take_settled())
    return units.found()
