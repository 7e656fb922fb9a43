"""The recording of an experiment: OTLP-JSON lines, which `report` and `gate` read.

A line holds a request of an agent, whose resources name the attempt and its success. After those of
an attempt follows a line with a span of our own: the attempt, in the trace that the agent was
handed. An attempt of which no run arrived (it crashed before its first span) is a run by that span,
under the name of the agent of the other attempts: failures must not vanish with their telemetry.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from otel_reliability.errors import ConfigurationError
from otel_reliability.experiments.environment import ENVIRONMENT, Attempt
from otel_reliability.experiments.process import Ended
from otel_reliability.experiments.success import Success
from otel_reliability.model.run import AgentKey, Run
from otel_reliability.model.span import KIND_INTERNAL, STATUS_ERROR, STATUS_UNSET, RawSpan, Resource
from otel_reliability.sources.otlp_json import items, read_lines, record
from otel_reliability.sources.otlp_write import traces_json

SCOPE: Final = "otel_reliability.experiments"
ATTEMPT_SPAN: Final = "attempt"
EXPERIMENT_SPAN: Final = "experiment"
SOURCE_KEY: Final = "reliability.attempt.success_source"
ERROR_KEY: Final = "reliability.attempt.error"
RUNS_KEY: Final = "reliability.attempt.runs"
COST_KEY: Final = "reliability.attempt.cost_usd"
_PARTS: Final = ("resourceSpans", "resourceLogs")


class AttemptResult(NamedTuple):
    """The result of an attempt. `runs` counts its runs, `cost` is in US dollars, None: unknown."""

    task_id: str
    trial: int
    condition: str
    success: bool
    source: str
    error: bool
    runs: int
    cost: float | None
    seconds: float


class Journal:
    """Appends to a recording. With `resume`, the attempts in it count; without, it must not exist.
    What follows the last whole attempt, as after a kill, is cut off: that attempt runs again.

    Raises `ConfigurationError` for a file that exists, and `OSError`.
    """

    def __init__(self, path: Path, agent: str | None, *, resume: bool) -> None:
        if path.exists() and not resume:
            raise ConfigurationError(
                "--out", str(path), "a new file", "pass --resume to go on with it, or name another"
            )
        self.path = path
        self.earlier = read_results(path) if path.exists() else []
        if path.exists():
            _cut_after_last_attempt(path)
        self._key = None if agent is None else AgentKey("", agent, ENVIRONMENT, agent)
        self._silent: list[RawSpan] = []
        self._file = path.open("ab")

    def write(
        self,
        attempt: Attempt,
        ended: Ended,
        success: Success,
        requests: Iterable[dict[str, Any]],
        runs: Sequence[Run],
    ) -> AttemptResult:
        """Append an attempt, and return its result."""
        top = [run for run in runs if not run.nested]
        costs = [run.cost for run in top]
        known = [cost for cost in costs if cost is not None]
        cost = sum(known) if len(known) == len(costs) and costs else None
        marks = {**attempt.attributes, "reliability.run.success": success.value}
        lines = [marked_request(request, marks) for request in requests]
        span = _span_of(attempt, ended, success, len(runs), cost)
        if top and self._key is None:
            self._key = top[0].key
        if runs:
            lines.append(traces_json([span]))
        else:
            self._silent.append(span)
        self._append(*lines, *self._take_silent())
        return AttemptResult(
            attempt.task_id,
            attempt.trial,
            attempt.condition,
            success.value,
            success.source,
            success.error,
            len(runs),
            cost,
            ended.seconds,
        )

    def close(self, decided: Sequence[str], verdict: str, now_ns: int) -> None:
        """Append what was decided, and close the file."""
        for span in self._silent:
            self._append(traces_json([span]))
        attributes = {
            "reliability.experiment.verdict": verdict,
            "reliability.experiment.targets": list(decided),
        }
        attempt = Attempt.new("", 0, "")
        span = _span(EXPERIMENT_SPAN, attempt, now_ns, now_ns, attributes)
        self._append(traces_json([span]))
        self._file.close()

    def _take_silent(self) -> list[dict[str, Any]]:
        """Return the attempts without a run, as runs, once the name of the agent is known."""
        key = self._key
        if key is None:
            return []
        resource = Resource.of(
            {
                "service.namespace": key.service_namespace,
                "service.name": key.service_name,
                "deployment.environment.name": ENVIRONMENT,
            }
        )
        operation = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": key.agent}
        made = [
            replace(each, attributes={**each.attributes, **operation}, resource=resource)
            for each in self._silent
        ]
        self._silent.clear()
        return [traces_json([span]) for span in made]

    def _append(self, *requests: Mapping[str, Any]) -> None:
        """Append lines with one write, so that an attempt is recorded as a whole or not at all."""
        lines = [json.dumps(request, ensure_ascii=False) + "\n" for request in requests]
        self._file.write("".join(lines).encode("utf-8", "replace"))
        self._file.flush()


def marked_request(request: Mapping[str, Any], marks: Mapping[str, str | bool]) -> dict[str, Any]:
    """Return a request in OTLP-JSON whose resources carry these attributes and the environment of
    experiments.

    >>> marked = marked_request({"resourceSpans": [{"scopeSpans": []}]}, {"reliability.trial": "1"})
    >>> [pair["key"] for pair in marked["resourceSpans"][0]["resource"]["attributes"]]
    ['reliability.trial', 'deployment.environment.name']
    """
    added = {**marks, "deployment.environment.name": ENVIRONMENT}
    made = dict(request)
    for part in _PARTS:
        if part in request:
            made[part] = [_marked(record(group), added) for group in items(request[part])]
    return made


def _marked(group: Mapping[str, Any], added: Mapping[str, str | bool]) -> dict[str, Any]:
    resource = record(group.get("resource"))
    given = items(resource.get("attributes"))
    pairs = [pair for pair in given if record(pair).get("key") not in added]
    for key, value in added.items():
        kind = "boolValue" if isinstance(value, bool) else "stringValue"
        pairs.append({"key": key, "value": {kind: value}})
    return {**group, "resource": {**resource, "attributes": pairs}}


def read_results(path: Path) -> list[AttemptResult]:
    """Return the results of the attempts in a recording. Raises `SourceError`."""
    found: list[AttemptResult] = []
    for _, batch in read_lines(path):
        for span in batch.spans:
            if span.scope == SCOPE and span.name == ATTEMPT_SPAN:
                given = span.attributes
                cost = given.get(COST_KEY)
                found.append(
                    AttemptResult(
                        str(given.get("reliability.task.id", "")),
                        int(given.get("reliability.trial", 0)),
                        str(given.get("reliability.condition", "baseline")),
                        given.get("reliability.run.success") is True,
                        str(given.get(SOURCE_KEY, "")),
                        given.get(ERROR_KEY) is True,
                        int(given.get(RUNS_KEY, 0)),
                        None if cost is None else float(cost),
                        (span.end_ns - span.start_ns) / 1e9,
                    )
                )
    return found


def _cut_after_last_attempt(path: Path) -> None:
    """Cut off what follows the last attempt: requests of one that did not end, and a line that is
    not whole. Without any attempt the file stays as it is.
    """
    last = 0
    for number, batch in read_lines(path):
        if any(span.scope == SCOPE for span in batch.spans):
            last = number
    if last:
        with path.open("r+b") as file:
            file.truncate(sum(map(len, islice(file, last))))


def _span_of(
    attempt: Attempt, ended: Ended, success: Success, runs: int, cost: float | None
) -> RawSpan:
    attributes: dict[str, Any] = {
        **attempt.attributes,
        "reliability.trial": attempt.trial,
        "reliability.run.success": success.value,
        SOURCE_KEY: success.source,
        ERROR_KEY: success.error,
        RUNS_KEY: runs,
    }
    if ended.exit_code is not None:
        attributes["process.exit.code"] = ended.exit_code
    if cost is not None:
        attributes[COST_KEY] = cost
    made = _span(ATTEMPT_SPAN, attempt, ended.start_ns, ended.end_ns, attributes)
    return replace(made, status=STATUS_ERROR if success.error else STATUS_UNSET)


def _span(
    name: str, attempt: Attempt, start_ns: int, end_ns: int, attributes: Mapping[str, Any]
) -> RawSpan:
    return RawSpan(
        trace_id=attempt.trace_id,
        span_id=attempt.span_id,
        parent_id=None,
        name=name,
        span_kind=KIND_INTERNAL,
        start_ns=start_ns,
        end_ns=end_ns,
        status=STATUS_UNSET,
        parent_remote=None,
        attributes=attributes,
        events=(),
        links=(),
        scope=SCOPE,
        scope_version="",
        resource=Resource.of({"deployment.environment.name": ENVIRONMENT}),
        trace_state="",
    )
