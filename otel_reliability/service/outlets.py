"""What leaves the service by itself: metrics to a sink, runs to another service."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from otel_reliability.engine import Ceiling, Engine
from otel_reliability.service.emission import Emission
from otel_reliability.service.outward import PushPlan, emit_target, push_plan
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
    """The senders that settings, and OpenTelemetry's own variables in `env`, ask for."""

    def __init__(
        self, settings: ServiceSettings, env: Mapping[str, str], engine: Engine, wall: Callable[[], int]
    ) -> None:
        target = emit_target(settings.emit_runs)
        self.emission = None if target is None else Emission(sender_of(target, "logs"), wall)
        if self.emission is not None:
            engine.observers.append(self.emission)
        self._plan: PushPlan | None = push_plan(settings.push, env)
        self.push: Push | None = None

    def start(self, exposition: Exposition, resource: Mapping[str, str]) -> None:
        """From now on."""
        if self._plan is not None:
            requests = Requests(exposition, resource, self._plan.temporality)
            self.push = Push(requests, sender_of(self._plan.target, "metrics"), self._plan.interval)
            self.push.start()
        if self.emission is not None:
            self.emission.start()

    def stop(self, patience: float) -> None:
        """Send what is left, everything once, each within so many seconds."""
        if self.emission is not None:
            self.emission.stop(patience)
        if self.push is not None:
            self.push.stop(patience)

    def sent(self) -> dict[str, Sent]:
        """What was sent so far, by what it carried."""
        found = {"metrics": self.push, "runs": self.emission}
        return {name: Sent(Counter(one.outcomes), one.duration) for name, one in found.items() if one is not None}

    def ceilings(self) -> Iterator[Ceiling]:
        """Runs that wait to be handed on."""
        if self.emission is not None:
            yield Ceiling("emission", len(self.emission), self.emission.limit, self.emission.outcomes["overflow"])
