"""One engine with its instruments, shared by the processors and exporters of one MeterProvider.

No thread of ours runs, unless the host registers `on_excess`, but for the second in which the price
table is loaded. Deadlines are met by the first of: a
collection, `force_flush`, a processor or an exporter that receives spans.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from opentelemetry import context, metrics, trace
from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY  # the SDK's own way to say it
from opentelemetry.metrics import MeterProvider
from opentelemetry.sdk.resources import Resource

from otel_reliability import price_table
from otel_reliability.config import Settings
from otel_reliability.engine import Engine
from otel_reliability.errors import ConfigurationError
from otel_reliability.loading import load
from otel_reliability.model.run import CloseReason, Run
from otel_reliability.read_view import ReadView
from otel_reliability.telemetry import log_events, names
from otel_reliability.telemetry import self as self_telemetry
from otel_reliability.telemetry.exposition import agent_points
from otel_reliability.telemetry.guard import Guard
from otel_reliability.telemetry.instruments import Observed, Point, Recorded, Snapshot, snapshot
from otel_reliability.telemetry.ledger import BUDGET, ToolLedger, fitting
from otel_reliability.telemetry.recorder import Recorder, RunReadings, readings_of
from otel_reliability.watch import MAX_REMEMBERED, Excess

_logger = logging.getLogger("otel_reliability")

WAIT_TIMEOUT_S: Final = 5.0
"""Seconds that a collection, `force_flush` or shutdown waits for the engine. A host's own thread
never waits.
"""
TICK_S: Final = 1.0
"""Seconds between two checks of the deadlines."""
MAX_HELP: Final = 16
"""Spans, about, whose runs a host's thread closes and finalizes at a time."""

WATCH_INTERVAL_S: Final = 0.5
"""Seconds between two checks of the thread that watches open runs."""


class SpanSource:
    """A processor or exporter that hands spans to the engine. One without a queue has nothing to
    add to this.
    """

    @property
    def queued(self) -> tuple[int, int]:
        """Length and capacity of its queue."""
        return 0, 0

    def drain(self, wait: float) -> bool:
        """Hand the engine all spans that wait; False when it stayed busy for `wait` seconds."""
        return True

    def restart(self) -> None:
        """Drop everything: a forked child starts empty."""


class Live:
    """An engine, its span sources, and the instruments that report its numbers."""

    def __init__(
        self,
        provider: MeterProvider,
        settings: Settings,
        *,
        follows_global: bool,
        make_engine: Callable[[Settings], Engine] | None = None,
    ) -> None:
        self.settings = fitting(settings)
        self.engine = (make_engine or _engine)(self.settings)
        self._provider = provider
        self._follows_global = follows_global
        self._sources: list[SpanSource] = []
        self._begun = self._warned = self._forked = False
        self.exiting = False
        """True once the interpreter exits: remaining runs are closed for that reason."""
        self._watcher: Watcher | None = None
        self._hook = partial(_at_exit, weakref.ref(self))
        self._next_tick = self._collect_duration = 0.0
        self._ledger = ToolLedger(self.settings)
        self._infos = set[frozenset[tuple[str, str | bool]]]()
        meter = provider.get_meter(names.SCOPE)
        standard = names.STANDARD if self.settings.telemetry.standard_metrics else ()
        recorded = Recorded(meter, (*names.COUNTERS, *names.HISTOGRAMS, *standard))
        self._recorder = Recorder(recorded, self.settings, self._ledger)
        self._observed = Observed(
            meter, (*names.gauges(), *names.SELF), self.collect, self._register_exit_hook
        )

    def serves(self, provider: MeterProvider) -> bool:
        """Return whether this provider's numbers are reported here. A global provider may be set
        after the processor was made.
        """
        return self._provider is provider or (
            self._follows_global and metrics.get_meter_provider() is provider
        )

    # --- Span sources -----------------------------------------------------------------------------

    def attach(self, source: SpanSource) -> None:
        self._sources.append(source)

    def detach(self, source: SpanSource) -> None:
        """Remove a source that was shut down. With the last one every run is closed: no span will
        arrive.
        """
        if source in self._sources:
            source.drain(WAIT_TIMEOUT_S)
            self._sources.remove(source)
            if not self._sources:
                self.flush(CloseReason.SHUTDOWN, WAIT_TIMEOUT_S)

    def begin(self, resource: Resource) -> None:
        """Note that a span arrived: from the first one on there is something to save at exit."""
        if not self._begun:
            self._begun = True
            price_table.load_beside()
            self._register_exit_hook()
            if self._forked and "service.instance.id" not in resource.attributes:
                _logger.warning(
                    "This is a forked worker without a service.instance.id: its numbers "
                    "and those of its siblings overwrite "
                    "each other. Give the resource of each worker an id of its own, or "
                    "send the spans of all of them to the "
                    "otel-reliability service."
                )

    def _register_exit_hook(self) -> None:
        """Let our exit hook run before those that are registered already.

        Hooks run last in, first out, and providers register theirs when they are made. Instruments
        are made once the MeterProvider is there: from then on ours runs before its own, and the
        last collection has every run.
        """
        if not self.exiting:
            atexit.unregister(self._hook)
            atexit.register(self._hook)

    # --- Work -------------------------------------------------------------------------------------

    def pump(self, wait: float) -> bool:
        """Drain all sources, meet the deadlines, record final runs. False: the engine was busy for
        `wait` seconds.
        """
        return self._drain(wait) and self.tick(wait)

    def due(self) -> bool:
        """Return whether a host's thread is to check the deadlines: it is time, and what runs need
        is loaded.
        """
        return self.engine.now() >= self._next_tick and price_table.is_loaded()

    def tick(self, wait: float) -> bool:
        """Meet the deadlines and record final runs. False: the engine was busy
        for `wait` seconds.
        """
        self._next_tick = self.engine.now() + TICK_S
        return self.engine.tick(wait=wait) and self._record(wait)

    def work(self, seconds: float) -> None:
        """Do of what `tick` does as much as is due, and begin no more of it after so many
        seconds.
        """
        end = time.perf_counter() + seconds
        while self.due() and self.help() and time.perf_counter() < end:
            pass

    def help(self) -> bool:
        """Do a little of what `tick` does: record what is final, or else close and finalize runs of
        about `MAX_HELP` spans. It stays due while there is more to do. False: the engine was busy.
        """
        if self.engine.waiting:
            return self._record(0)
        is_free = self.engine.tick(wait=0, spans=MAX_HELP)
        if is_free and not self.engine.waiting and not self.engine.is_behind:
            self._next_tick = self.engine.now() + TICK_S
        return is_free

    def flush(self, reason: CloseReason, wait: float) -> bool:
        """Drain all sources, close and record every run. False: the engine was busy for `wait`
        seconds.
        """
        self._next_tick = self.engine.now() + TICK_S  # closed runs have no deadline
        return self._drain(wait) and self.engine.flush(reason, wait=wait) and self._record(wait)

    def collect(self) -> Snapshot:
        began = self.engine.now()
        self.pump(WAIT_TIMEOUT_S)
        self.watch(WAIT_TIMEOUT_S)
        found = self.engine.read(self._snapshot, wait=WAIT_TIMEOUT_S)
        self._collect_duration = self.engine.now() - began
        return {} if found is None else found

    def watch(self, wait: float) -> None:
        """Compare the open runs with their bounds; record those that exceed one for
        the first time.
        """
        self.engine.watch(wait=wait)
        excesses = self.engine.take_excesses()
        self._recorder.exceed(excesses)
        log_events.emit(excesses)
        if self._watcher is not None:
            self._watcher.pending.extend(excesses)

    def on_excess(self, callback: Callable[[Excess], object]) -> None:
        """Call this for every open run that exceeds a bound, from now on, on a thread that watches
        them.
        """
        if self._watcher is None:
            self._watcher = Watcher(weakref.ref(self))
        self._watcher.callbacks.append(callback)
        self._watcher.start()

    def _drain(self, wait: float) -> bool:
        return all(source.drain(wait) for source in tuple(self._sources))

    def _snapshot(self, view: ReadView) -> Snapshot:
        lengths, capacities = zip((0, 0), *(source.queued for source in self._sources), strict=True)
        own = self_telemetry.of_host(sum(lengths), sum(capacities), self._collect_duration)
        points = (point for point in agent_points(view) if self._fits(point))
        return snapshot((*points, *self_telemetry.points(self.engine, self._ledger), *own))

    def _fits(self, point: Point) -> bool:
        """Return whether the SDK has room for a point of `info`, of which each change point of an
        agent adds an attribute set.
        """
        name, _, attributes = point
        if name != names.INFO.name:
            return True
        labels = frozenset(attributes.items())
        if labels not in self._infos and len(self._infos) < BUDGET:
            self._infos.add(labels)
        return labels in self._infos

    def _record(self, wait: float) -> bool:
        found = self.engine.read(self._final, wait=wait)
        if found is None:
            return False
        final, revised, readings = found
        self._recorder.record(final, readings)
        self._recorder.revise(revised, readings)
        self._recorder.late(self.engine.take_late())
        self._recorder.score(self.engine.take_scored())
        changes = self.engine.take_changes()
        self._recorder.change(changes)
        log_events.emit(changes)
        if self.engine.closed and not self._warned:
            self._warn_if_unread()
        return True

    def _final(self, view: ReadView) -> tuple[Sequence[Run], Sequence[Run], dict[str, RunReadings]]:
        final = self.engine.take_final()
        revised = self.engine.take_revised()
        return final, revised, readings_of((*final, *revised), view)

    def _warn_if_unread(self) -> None:
        provider = metrics.get_meter_provider() if self._follows_global else self._provider
        self._warned = True
        # The API's own, which measures nothing.
        if type(provider).__module__.startswith("opentelemetry.metrics"):
            _logger.warning(
                "Agent runs arrive, but no MeterProvider exports their numbers. Set "
                "OTEL_METRICS_EXPORTER (otlp, console, "
                "prometheus) and start under opentelemetry-instrument, or call "
                "opentelemetry.metrics.set_meter_provider(...)."
            )

    # --- Ends -------------------------------------------------------------------------------------

    def exit(self) -> None:
        """Let the exporters of the exiting interpreter hand over their spans, then
        close every run.
        """
        self.exiting = True
        token = context.attach(context.set_value(_SUPPRESS_INSTRUMENTATION_KEY, value=True))
        try:
            flush = getattr(trace.get_tracer_provider(), "force_flush", None)
            if flush is not None:
                flush()
        finally:
            context.detach(token)
        self.flush(CloseReason.SHUTDOWN, WAIT_TIMEOUT_S)

    def restart(self) -> None:
        """Start empty in a forked child: open runs and windows stay the parent's."""
        self._begun = False
        self._forked = True
        self.engine.restart()
        self._observed.restart()
        for source in self._sources:
            source.restart()
        if self._watcher is not None:
            self._watcher.pending.clear()
            self._watcher.start()


class Watcher:
    """The one thread that a host may ask for: it watches open runs, and calls the host's callbacks.

    It ends with the `Live` that it belongs to, keeps no interpreter from exiting, and no failure of
    a callback leaves it. While a callback blocks, at most 10,000 excesses wait; older ones are not
    passed on, and `agent.reliability.run.excess` has them all.
    """

    def __init__(self, live: weakref.ref[Live]) -> None:
        self.callbacks: list[Callable[[Excess], object]] = []
        self.pending: deque[Excess] = deque(maxlen=MAX_REMEMBERED)
        self._live = live
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread, unless it runs: in a forked child it does not."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(
                target=self._run, name="otel-reliability-watch", daemon=True
            )
            self._thread.start()

    def _run(self) -> None:
        context.attach(context.set_value(_SUPPRESS_INSTRUMENTATION_KEY, value=True))
        while True:
            time.sleep(WATCH_INTERVAL_S)
            live = self._live()
            if live is None or live.exiting:
                return
            with Guard("watching open runs"):
                live.pump(WAIT_TIMEOUT_S)
                live.watch(WAIT_TIMEOUT_S)
            del live
            while self.pending:
                excess = self.pending.popleft()
                for callback in tuple(self.callbacks):
                    _call(callback, excess)


_ON_EXCESS: Final = Guard("calling on_excess")


def _call(callback: Callable[[Excess], object], excess: Excess) -> None:
    """Call a callback of the host. Whatever it raises ends no thread of ours, `SystemExit` too,
    which would end it without a word.
    """
    try:
        callback(excess)
    except BaseException as error:
        if not _ON_EXCESS.stops(error):
            raise


_lives: weakref.WeakSet[Live] = weakref.WeakSet()
_lock = threading.Lock()


def live_of(
    provider: MeterProvider | None,
    settings: Settings | None,
    make_engine: Callable[[Settings], Engine] | None = None,
) -> Live:
    """Return the engine and instruments of a provider (None: the global one), made for its first
    span source.
    """
    asked = metrics.get_meter_provider() if provider is None else provider
    with _lock:
        for live in tuple(_lives):
            if live.serves(asked):
                if settings is not None and fitting(settings) != live.settings:
                    _logger.warning(
                        "Processors and exporters of one MeterProvider share one engine: "
                        "the settings of the first one stay "
                        "in force."
                    )
                return live
        follows_global = provider is None or provider is metrics.get_meter_provider()
        live = Live(
            asked, settings or Settings(), follows_global=follows_global, make_engine=make_engine
        )
        _lives.add(live)
        return live


def settings_from(options: Mapping[str, object]) -> Settings | None:
    """Return the settings; None where none are given, so that those of an earlier processor apply.

    `window` is short for one window of so many runs. Invalid options raise `ConfigurationError`.
    Invalid variables are logged and ignored: a misspelt variable must not keep a program from
    starting.

    >>> settings_from({"window": 50}).windows
    (WindowSettings(name='recent', last=50, period=None),)
    """
    given = dict(options)
    if "window" in given:
        given["windows"] = [{"name": "recent", "last": given.pop("window")}]
    base = _from_environment()
    if not given:
        return base
    return load(Settings, given, base=base)


def _from_environment() -> Settings | None:
    try:
        found = Settings.from_environment(os.environ)
    except ConfigurationError as error:
        _logger.error("%s No setting is taken from the environment.", error)  # noqa: TRY400  the message says it all
        return None
    return None if found == Settings() else found


def _engine(settings: Settings) -> Engine:
    """Return an engine with its pinned reference. One that cannot be read must not keep the program
    from starting.
    """
    if not settings.change.reference:
        return Engine(settings)
    from otel_reliability.reference import pinned_by  # noqa: PLC0415  it reads files, with a parser of OTLP

    try:
        pinned = pinned_by(settings)
    except ConfigurationError as error:
        _logger.error(("%s The reference of each agent is its own first observations."), error)  # noqa: TRY400  no traceback
        pinned = None
    return Engine(settings, pinned=pinned)


def _at_exit(reference: weakref.ref[Live]) -> None:
    with Guard("the exit hook"):
        live = reference()
        if live is not None:
            live.exit()


def _after_fork() -> None:
    global _lock  # noqa: PLW0603  another thread of the parent may have held it
    with Guard("the fork hook"):
        _lock = threading.Lock()
        for live in tuple(_lives):
            live.restart()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=price_table.wait_until_loaded, after_in_child=_after_fork)
