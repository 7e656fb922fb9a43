"""Metrics that the service pushes by OTLP."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from otel_reliability.service.outward import PushPlan, push_plan
from otel_reliability.service.settings import ServiceSettings
from otel_reliability.telemetry.exposition import Exposition
from otel_reliability.telemetry.otlp import sender_of
from otel_reliability.telemetry.otlp_requests import Requests
from otel_reliability.telemetry.push import Push


class Sent(NamedTuple):
    """What a sender did: requests by outcome, and how long the last one took."""

    outcomes: Counter[str]
    duration: float


class Outlets:
    """The sender that settings, and OpenTelemetry's own variables in `env`, ask for."""

    def __init__(self, settings: ServiceSettings, env: Mapping[str, str]) -> None:
        self._plan: PushPlan | None = push_plan(settings.push, env)
        self.push: Push | None = None

    def start(self, exposition: Exposition, resource: Mapping[str, str]) -> None:
        """Push from now on."""
        if self._plan is not None:
            requests = Requests(exposition, resource, self._plan.temporality)
            self.push = Push(requests, sender_of(self._plan.target, "metrics"), self._plan.interval)
            self.push.start()

    def stop(self, patience: float) -> None:
        """Push everything once more, within so many seconds."""
        if self.push is not None:
            self.push.stop(patience)

    def sent(self) -> dict[str, Sent]:
        """Return what was sent so far, by what it carried."""
        push = self.push
        return {} if push is None else {"metrics": Sent(Counter(push.outcomes), push.duration)}
