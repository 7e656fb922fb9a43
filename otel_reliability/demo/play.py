"""The demo from its beginning to its end: the service, the fleet that sends to it, and what is shown of both."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from rich.console import Console, RenderableType
from rich.live import Live

from otel_reliability.demo import page
from otel_reliability.demo.agreement import Agreement, agreement, recorded
from otel_reliability.demo.bookshop import Bookshop, SpanFile
from otel_reliability.demo.fleet import A_ROUND, ROUNDS
from otel_reliability.demo.hosting import hosting
from otel_reliability.demo.in_process import InProcess
from otel_reliability.demo.scrape import Samples
from otel_reliability.demo.sending import Judgements, sending, spans_to
from otel_reliability.demo.watch import Seen, Watch
from otel_reliability.metrics.sessions import SPECS as SESSIONS
from otel_reliability.model.run import Run
from otel_reliability.report.recording import Recording, for_report
from otel_reliability.service.service import Service
from otel_reliability.telemetry.exposition import FULL_NAMES, GAUGES
from otel_reliability.telemetry.prometheus import family_of

OPENING: Final = 0.5
"""Seconds from one round of the opening to the next, where somebody watches."""
CLOSED: Final = 3.0
"""Seconds after which a service has closed a run that it has seen whole."""
PATIENCE: Final = 40.0
"""Seconds in which every run has settled, every conversation ended, and all doors agree."""
LOOK: Final = 0.5

Show = Callable[[RenderableType], None]


class Plan(NamedTuple):
    """How the demo is to go. `seconds`: after how many it ends by itself; None: when it is asked to. `once`: when all is told."""

    seed: int
    path: Path
    once: bool
    seconds: float | None
    pace: float


class Demo:
    """A running service, the fleet that sends to it, and a file of its spans."""

    def __init__(self, service: Service, plan: Plan) -> None:
        endpoint = f"http://{service.addresses['http']}"
        self.settings, self.plan = service.engine.settings, plan
        self.addresses = {name: str(place) for name, place in service.addresses.items()}
        self.watch = Watch(service.addresses)
        self.file, self.inside, self.wire = SpanFile(plan.path), InProcess(self.settings), spans_to(endpoint)
        processors = (self.wire, SimpleSpanProcessor(self.file), self.inside.processor)
        self.shop = Bookshop(plan.seed, processors, [Judgements(endpoint), self.file])

    def close(self) -> None:
        """End the fleet."""
        self.shop.close()
        self.inside.close()

    def open(self, show: Show, pause: float) -> None:
        """The first rounds, and what the service makes of them, until it has closed their runs."""
        while self.shop.rounds < ROUNDS:
            self.shop.round()
            show(page.so_far(self.watch.look(), self.shop.rounds))
            time.sleep(pause)
        self._wait(show, self.shop.lateness)
        self.shop.end_late()
        self.wire.force_flush()
        self.file.close()
        self._wait(show, CLOSED)

    def _wait(self, show: Show, seconds: float) -> None:
        ending = time.monotonic() + seconds
        while time.monotonic() < ending:
            show(page.so_far(self.watch.look(), self.shop.rounds))
            time.sleep(LOOK)

    def compare(self) -> tuple[Agreement, Agreement]:
        """What `/metrics` tells, and what the span processor within the process tells, against the file."""
        expected = self._recorded()
        deadline = time.monotonic() + PATIENCE
        found = agreement(self.watch.numbers(), expected)
        while found.differing and time.monotonic() < deadline:
            time.sleep(LOOK)
            found = agreement(self.watch.numbers(), expected)
        return found, agreement(_without_sessions(self.inside.numbers()), _without_sessions(expected))

    def _recorded(self) -> Samples:
        runs: list[Run] = []
        recording = Recording(for_report(self.settings, self.settings.windows[0]), settled=runs.extend)
        recording.read(self.plan.path)
        return recorded(recording.close(), runs)

    def live(self) -> RenderableType:
        """The fleet as it is now."""
        return page.live(self.watch.look(), self.shop.rounds * A_ROUND, self.addresses)


def play(plan: Plan, console: Console) -> bool:
    """Run the demo. False: the doors disagree."""
    began = time.monotonic()
    with ExitStack() as stack:
        demo = Demo(stack.enter_context(hosting()), plan)
        stack.callback(demo.close)
        with _shown(console) as show:
            demo.open(show, min(OPENING, plan.pace) if console.is_terminal else 0.0)
        agents = demo.watch.look()
        console.print(page.verdict(agents, demo.watch.reasons(agents[0].name)))
        if plan.once:
            console.print(page.fleet(agents), "")
            _tell_next(console, demo, agents[0], live=False)
            found = demo.compare()
            console.print(page.agreed(*found))
        else:
            _tell_next(console, demo, agents[0], live=True)
            found = _stay(demo, console, began)
        return not any(each.differing for each in found)


def send(endpoint: str, plan: Plan, console: Console) -> None:
    """Be the fleet of a service, or a Collector, that runs elsewhere."""
    began = time.monotonic()
    console.print(
        f"Runs of a small fleet go to {endpoint}, a round every {plan.pace:g} s; Ctrl-C ends it.", soft_wrap=True
    )
    with sending(endpoint, plan.seed) as shop:
        while not _over(plan, began, shop.rounds):
            shop.round()
            time.sleep(0 if plan.once else plan.pace)
        time.sleep(shop.lateness)


def _over(plan: Plan, began: float, rounds: int) -> bool:
    late = plan.seconds is not None and time.monotonic() - began >= plan.seconds
    return late or (plan.once and rounds >= ROUNDS)


def _stay(demo: Demo, console: Console, began: float) -> tuple[Agreement, Agreement]:
    """Go on until somebody has seen enough; first of all, tell whether the doors agree."""
    with _shown(console, transient=False) as show:
        show(demo.live())
        found = demo.compare()
        console.print(page.agreed(*found), "")
        with suppress(KeyboardInterrupt):  # all is told: this is how it is meant to end
            while not _over(demo.plan, began, demo.shop.rounds):
                demo.shop.round()
                show(demo.live())
                time.sleep(demo.plan.pace)
    return found


def _tell_next(console: Console, demo: Demo, worst: Seen, *, live: bool) -> None:
    steps = page.next_steps(demo.addresses if live else None, demo.plan.path, worst)
    console.print(steps, soft_wrap=True)  # a broken command cannot be copied


@contextmanager
def _shown(console: Console, *, transient: bool = True) -> Generator[Show]:
    """Shows what changes in one place; nothing where nobody watches."""
    if not console.is_terminal:
        yield lambda _: None
        return
    with Live(console=console, transient=transient, auto_refresh=False, vertical_overflow="crop") as live:
        yield lambda seen: live.update(seen, refresh=True)


def _without_sessions(numbers: Samples) -> Samples:
    """Judgements are sent to the service; within the agents' process nobody hears of them."""
    return {series: value for series, value in numbers.items() if series[0] not in _OF_SESSIONS}


_OF_SESSIONS: Final = frozenset(family_of(GAUGES[FULL_NAMES[spec.name]]) for spec in SESSIONS)
