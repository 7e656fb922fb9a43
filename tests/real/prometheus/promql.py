"""Ask a Prometheus server what it knows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from tests.real.waiting import PATIENCE, until
from tests.real.web import ask


class QueryFailed(AssertionError):
    """Prometheus refused a question, or its answer is not of the asked form."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One series at one moment: its labels with the name under `__name__`, its value, when
    (seconds).
    """

    labels: Mapping[str, str]
    value: float
    at: float


Samples = Sequence[Sample]


class PromQL:
    """The HTTP interface of a Prometheus server."""

    def __init__(self, url: str) -> None:
        self.url = url

    def query(self, expression: str, *, at: float | None = None) -> Samples:
        """The series of an instant vector or a scalar, now or `at` some second."""
        data = self.api("query", query=expression, time=at)
        if data["resultType"] == "scalar":
            return [_sample({}, data["result"])]
        if data["resultType"] != "vector":
            raise QueryFailed(
                f"query {expression}: gives a {data['resultType']}, wanted a vector or a scalar"
            )
        return [_sample(series["metric"], series["value"]) for series in data["result"]]

    def value(self, expression: str) -> float:
        """The value of the one series that an expression gives."""
        samples = self.query(expression)
        if len(samples) != 1:
            raise QueryFailed(
                f"query {expression}: gives {len(samples)} series, wanted one; narrow it: {samples}"
            )
        return samples[0].value

    def span(self, expression: str, start: float, end: float, step: float) -> Sequence[Samples]:
        """Every series of an expression over a span of time, one sample a step."""
        data = self.api("query_range", query=expression, start=start, end=end, step=step)
        return [
            [_sample(series["metric"], point) for point in series["values"]]
            for series in data["result"]
        ]

    def wait(
        self, expression: str, met: Callable[[Samples], bool] = bool, *, patience: float = PATIENCE
    ) -> Samples:
        """The first answer to an expression that meets a condition: by default, that
        there is any.
        """

        def answer() -> list[Samples]:
            samples = self.query(expression)
            return [samples] if met(samples) else []

        return until(answer, f"Prometheus to meet {expression}", patience=patience)[0]

    def exemplars(self, expression: str, start: float, end: float) -> Sequence[Mapping[str, Any]]:
        """The exemplars of an expression's series between two moments, each as `labels`, `value`,
        `timestamp`.
        """
        data = self.api("query_exemplars", query=expression, start=start, end=end)
        return [exemplar for series in data for exemplar in series["exemplars"]]

    def api(self, what: str, **parameters: str | float | None) -> Any:
        """The `data` of one answer of /api/v1: `targets`, `rules`, `alerts`, `series`, `metadata`,
        …
        """
        told = {name: value for name, value in parameters.items() if value is not None}
        answer = ask(f"{self.url}/api/v1/{what}?{urlencode(told)}")
        said: dict[str, Any] = json.loads(answer.body)
        if said["status"] != "success":
            raise QueryFailed(f"{what} {told}: {said['errorType']}: {said['error']}")
        return said["data"]


def _sample(labels: Mapping[str, str], point: Sequence[Any]) -> Sample:
    return Sample(labels=labels, value=float(point[1]), at=float(point[0]))
