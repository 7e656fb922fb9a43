"""The whole job of the service without its transport: bytes, decoding, conventions, assembly,
windows, change detection.

Runs linger and can be reopened for one second of a clock that advances with the requests, so
closing and finalizing are inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from otel_reliability.config import Settings
from otel_reliability.conventions.reader import MAX_MEMORY
from otel_reliability.engine import Engine
from otel_reliability.service.answers import Encoding, OtlpSignal
from otel_reliability.service.decoded import Decoder

SETTINGS: Final[Mapping[str, Any]] = {"assembly": {"linger": 1.0, "reopen": 1.0}}
STEP_S: Final = 0.1
"""Seconds between two requests, on the job's own clock."""


class Job:
    """An engine behind a decoder, driven as the service drives it."""

    def __init__(self, settings: Mapping[str, Any] = SETTINGS) -> None:
        self.now = 0.0
        self.engine = Engine(Settings.load(settings), clock=lambda: self.now, wall=None)
        self._decode = Decoder(self.engine.reader)

    def receive(self, body: bytes) -> None:
        """Take one request through all stages, and advance the clock."""
        found = self._decode(OtlpSignal.TRACES, Encoding.PROTOBUF, body)
        self.engine.receive(found.spans)
        self.engine.receive_evaluations(found.evaluations)
        self.wait(STEP_S)

    def wait(self, seconds: float) -> None:
        """Advance the clock, meet the deadlines, and drop what exporters would record."""
        self.now += seconds
        self.engine.tick()
        self.engine.take_final()
        self.engine.take_revised()
        self.engine.take_scored()

    def forget_templates(self) -> None:
        """Forget what conventions remember of spans that are alike: so much for all agents
        together, however many there are.
        """
        self.engine.reader.remember(MAX_MEMORY + 1)
        self.receive(b"")
