"""The experiment: attempts, round by round, until all targets are decided or a limit is reached."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from otel_reliability.config import Settings
from otel_reliability.experiments.agents import Agent
from otel_reliability.experiments.decision import Results, SequentialTest, tests_of
from otel_reliability.experiments.environment import Attempt, environment_of
from otel_reliability.experiments.faults import CALL, VARIABLE, Faults
from otel_reliability.experiments.journal import AttemptResult, Journal, marked_request
from otel_reliability.experiments.process import Ended
from otel_reliability.experiments.receiver import ANY_ADDRESS, Inbox, Receiver
from otel_reliability.experiments.success import success_of
from otel_reliability.experiments.tasks import Task
from otel_reliability.model.run import Run
from otel_reliability.recording import Recording
from otel_reliability.report.target import GateTarget
from otel_reliability.sources.otlp_json import decode_request
from otel_reliability.statistics.sequential import SequentialDecision

FAULT: Final = "fault"
"""The condition under which tool calls fail."""
LEAST_FAULT_ATTEMPTS: Final = 3
"""Attempts under `FAULT` after which some tool call must have been subject to it: without any, the
agent would look robust.
"""
DEFAULT_ROUNDS: Final = 5
"""Attempts at each task where nothing decides earlier or later."""


class ExperimentPlan(NamedTuple):
    """Agent, tasks, targets and limits. `rounds` is None where sequential targets alone decide;
    `timeout` is in seconds, `max_cost` in US dollars. `variants` holds the other forms of an input,
    by condition and task; `fault_rate` is the share of tool calls that fail under `fault`;
    `earlier` are the results to compare with; `listen` is the address of the receiver.
    """

    agent: Agent
    tasks: Sequence[Task]
    conditions: Sequence[str]
    targets: Sequence[GateTarget]
    check: Sequence[str]
    rounds: int | None
    max_runs: int
    max_cost: float | None
    jobs: int
    timeout: float
    protocol: str
    variants: Mapping[tuple[str, str], Sequence[str]] = {}
    fault_rate: float = 0.0
    fault_kinds: tuple[str, ...] = ()
    earlier: Sequence[AttemptResult] = ()
    listen: str = ANY_ADDRESS


class Experiment:
    """An experiment. `changed` is called after every result."""

    def __init__(
        self,
        plan: ExperimentPlan,
        journal: Journal,
        settings: Settings,
        changed: Callable[[], None],
    ) -> None:
        self.plan = plan
        ids = [task.id for task in plan.tasks]
        earlier = Results(ids)
        for result in plan.earlier:
            earlier.add(result)
        self.results = Results(ids, earlier)
        self.tests: list[SequentialTest] = tests_of(
            plan.targets, self.results.task_ids, plan.conditions
        )
        self.ended_by = ""
        """Why it ended before everything was decided; empty otherwise."""
        self.first_error = ""
        """The end of the standard error of the first attempt that ended in an error."""
        self.resumed = len(journal.earlier)
        """Attempts of an earlier session."""
        self._journal = journal
        self._settings = settings
        self._changed = changed
        self._started = 0
        self._fault_attempts = 0
        self._fault_calls = 0
        self._workers: list[asyncio.Task[None]] = []
        self._plans = self._attempts()
        self._update()
        for result in journal.earlier:  # a decision is made at the attempt that it was made at
            self.results.add(result)
            self._started += 1
            self._update()

    @property
    def cost(self) -> float | None:
        """US dollars spent; None where an attempt with runs does not say what it cost."""
        costs = [one.cost for one in self.results.all if one.runs]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if len(known) == len(costs) else None

    def stop(self) -> None:
        """End now: attempts under way are dropped, what was recorded stays."""
        self.ended_by = "it was interrupted"
        for worker in self._workers:
            worker.cancel()

    async def run(self) -> None:
        """Run all attempts. Raises what an attempt raised that could not be started."""
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError, ValueError, RuntimeError):
            loop.add_signal_handler(signal.SIGINT, self.stop)
        receivers = [Receiver(self.plan.listen) for _ in range(self.plan.jobs)]
        try:
            for receiver in receivers:
                await receiver.open()
            self._workers = [asyncio.create_task(self._work(each)) for each in receivers]
            done = await asyncio.gather(*self._workers, return_exceptions=True)
        finally:
            for receiver in receivers:
                await receiver.close()
        for error in done:
            if isinstance(error, Exception):
                raise error

    async def _work(self, receiver: Receiver) -> None:
        while not self._is_over() and (attempt := next(self._plans, None)) is not None:
            self._started += 1
            result = await self._attempt(receiver, attempt)
            self.results.add(result)
            self._update()
            self._changed()

    def _attempts(self) -> Iterator[Attempt]:
        """Yield attempts round by round, so that all tasks have as many under each condition: those
        that were asked for, then more while a target is undecided.
        """
        asked = self.plan.rounds or 0
        for trial in itertools.count():
            for task in self.plan.tasks:
                for condition in self.plan.conditions:
                    if trial >= asked and self._is_decided():
                        return
                    if trial not in self.results.of(condition, task.id):
                        yield Attempt.new(task.id, trial, condition)

    def _is_decided(self) -> bool:
        return all(test.decision is not SequentialDecision.UNDECIDED for test in self.tests)

    def _is_over(self) -> bool:
        if self.ended_by:
            return True
        if self._fault_attempts >= LEAST_FAULT_ATTEMPTS and not self._fault_calls:
            self.ended_by = (
                "no tool call could fail: decorate tools with `faulty`, or start MCP servers by "
                "`otel-reliability fault-proxy`"
            )
        if self._started >= self.plan.max_runs:
            self.ended_by = f"--max-runs {self.plan.max_runs} is reached"
        most = self.plan.max_cost
        if most is not None and self.results.all:
            cost = self.cost
            if cost is None:
                self.ended_by = "an attempt does not say what it cost, so --max-cost cannot hold"
            elif cost + self._cost_under_way(cost) > most:
                self.ended_by = f"--max-cost {most:g} is reached"
        return bool(self.ended_by)

    def _cost_under_way(self, cost: float) -> float:
        """Return what the attempts under way and one more will cost, by the mean so far."""
        done = len(self.results.all)
        return cost / done * (self._started - done + 1)

    def _update(self) -> None:
        for test in self.tests:
            test.update(self.results)

    async def _attempt(self, receiver: Receiver, attempt: Attempt) -> AttemptResult:
        plan = self.plan
        task = next(task for task in plan.tasks if task.id == attempt.task_id)
        endpoint = receiver.addresses[plan.protocol]
        env = environment_of(attempt, endpoint, plan.protocol, os.environ)
        variants = plan.variants.get((attempt.condition, task.id))
        text = variants[attempt.trial % len(variants)] if variants else task.input
        receiver.inbox.take()
        ended = await self._run_agent(task._replace(input=text), attempt, env, receiver.inbox)
        requests = receiver.inbox.take()
        named = [marked_request(one, attempt.attributes) for one in requests]
        runs = _runs_of(named, self._settings)
        success = await success_of(ended, runs, task, plan.check, os.environ, plan.timeout)
        if success.error and not self.first_error:
            self.first_error = _last_line(ended)
        return self._journal.write(attempt, ended, success, requests, runs)

    async def _run_agent(
        self, task: Task, attempt: Attempt, env: dict[str, str], inbox: Inbox
    ) -> Ended:
        """Run the agent; under `FAULT` with faults, seeded by the task and the trial."""
        plan = self.plan
        if attempt.condition != FAULT:
            return await plan.agent.run(task, attempt, env, inbox, plan.timeout)
        seed = f"{zlib.crc32(attempt.task_id.encode())}-{attempt.trial}"
        with tempfile.TemporaryDirectory() as folder:
            counts = Path(folder) / "calls"
            counts.touch()
            faults = Faults(plan.fault_rate, seed, plan.fault_kinds, str(counts))
            disturbed = {**env, VARIABLE: faults.encoded()}
            ended = await plan.agent.run(task, attempt, disturbed, inbox, plan.timeout)
            self._fault_calls += counts.read_text().count(CALL)
            self._fault_attempts += 1
        return ended


def _last_line(ended: Ended) -> str:
    lines = ended.errors.strip().splitlines()
    return lines[-1] if lines else ""


def _runs_of(requests: Sequence[object], settings: Settings) -> list[Run]:
    """Return the runs of an attempt, rebuilt from its requests as from a file."""
    runs: list[Run] = []
    recording = Recording(settings, final=runs.extend)
    for request in requests:
        batch = decode_request(request)
        recording.engine.receive(batch.spans)
        recording.engine.receive_logs(batch.logs)
        recording.engine.receive_evaluations(batch.evaluations)
    recording.close()
    return runs
