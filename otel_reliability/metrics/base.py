"""What a metric is: a small object that learns a row, unlearns it, and answers (DESIGN §4.1).

The window owns the rows and calls `add` and `evict`; the metric owns only sums. `evict` undoes `add` exactly, so a metric's
value never depends on what has passed through. To add a metric: one file with one class, one row in `metrics.TABLE`, one
fixture (docs/recipes.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

from otel_reliability.model.reading import MetricSpec, Reading
from otel_reliability.model.row import Row


class Metric(ABC):
    """A number about a window, kept up to date as rows come and go."""

    spec: ClassVar[MetricSpec]

    @abstractmethod
    def add(self, row: Row) -> None:
        """A row enters the window."""

    @abstractmethod
    def evict(self, row: Row) -> None:
        """A row that was added leaves the window. Undoes `add` exactly."""

    @abstractmethod
    def read(self) -> Reading:
        """The value for the rows now in the window, with the number of runs behind it. Changes nothing."""

    def series(self) -> tuple[tuple[tuple[tuple[str, str], ...], Reading], ...]:
        """The readings as emitted: (attributes, reading). One without attributes, unless a metric has several (pass^k)."""
        return (((), self.read()),)


class Derived(ABC):
    """A number made of other metrics' readings (score, R_Con, R): it has no state of its own."""

    spec: ClassVar[MetricSpec]
    needs: ClassVar[tuple[str, ...]]

    @abstractmethod
    def derive(self, readings: Mapping[str, Reading]) -> Reading:
        """The value, from the readings of the metrics named in `needs`."""
