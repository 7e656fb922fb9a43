"""What a metric is: a small object that learns a row, unlearns it, and answers.

The window owns the rows and calls `add` and `evict`; the metric owns only sums. `evict` undoes `add` exactly, so a metric's
value never depends on what has passed through. To add a metric: one file with one class, one row in `metrics.TABLE`, one
fixture (docs/recipes.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, Protocol

from otel_reliability.config import Settings
from otel_reliability.model.reading import MetricSpec, Reading
from otel_reliability.model.row import Path, Row, with_path

DEFAULTS: Final = Settings()
"""The settings of whoever gives none."""


class Lender(Protocol):
    """A window, to a metric: it keeps the rows anyway."""

    def rows(self) -> Sequence[Row]:
        """The rows in the window, in order. One that the metric is just told of is among them, whether it comes or leaves."""
        ...

    def counts(self, row: Row) -> bool:
        """Whether a row is among them."""
        ...


class Metric(ABC):
    """A number about a window, kept up to date as rows come and go.

    `companions` are numbers that stand beside it and come from the same sums (a share beside a yes or no): they are emitted
    and listed like metrics, and `beside` answers for them in their order.
    """

    __slots__ = ()

    spec: ClassVar[MetricSpec]
    companions: ClassVar[tuple[MetricSpec, ...]] = ()
    of_outcomes: ClassVar[bool] = False
    """Whether it says how often runs succeed. Errors tell failures by themselves, and nothing tells successes so: a window
    in which only failures are known has no such number."""

    wants: ClassVar[int] = 0
    """What evidence a row must carry to count here at all (`metrics.evidence`); of other rows a window says nothing."""

    alike: ClassVar[bool] = False
    """Whether it looks at nothing in which rows of one kind differ (`metrics.alike`): a window then counts what came and went
    of each kind, and tells when somebody asks (`tell`)."""
    alike_while_few: ClassVar[bool] = False
    """Whether that is so in windows that cannot hold more than `limits.paths` runs: in others it has to know them."""
    by_path: ClassVar[bool] = True
    """Whether it looks at the paths of rows that are alike."""

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        """Empty: no row has come yet."""
        super().__init__()

    def lend(self, lender: Lender) -> None:  # noqa: B027 (nobody need borrow)
        """Whose rows may be looked at, told before the first of them. Whoever would keep rows need not, then."""

    @abstractmethod
    def add(self, row: Row) -> None:
        """A row enters the window."""

    @abstractmethod
    def evict(self, row: Row) -> None:
        """A row that was added leaves the window. Undoes `add` exactly."""

    def count(self, row: Row, times: int) -> None:
        """So many rows like this one come, or as many leave as it is below 0."""
        change = self.add if times > 0 else self.evict
        for _ in range(abs(times)):
            change(row)

    def tell(self, row: Row, paths: Mapping[Path | None, int]) -> None:
        """Rows like this one came and left, but for their paths: of each so many, or as many left as it is below 0."""
        if self.by_path:
            for path, times in paths.items():
                self.count(with_path(row, path), times)
        else:
            self.count(row, sum(paths.values()))

    @abstractmethod
    def read(self) -> Reading:
        """The value for the rows now in the window, with the number of runs behind it. Changes nothing."""

    def beside(self) -> tuple[Reading, ...]:
        """The readings of `companions`, in their order. Changes nothing."""
        return ()

    def series(self) -> tuple[tuple[tuple[tuple[str, str], ...], Reading], ...]:
        """The readings as emitted: (attributes, reading). One without attributes, unless a metric has several (pass^k)."""
        return (((), self.read()),)


class Derived(ABC):
    """A number made of other metrics' readings (score, R_Con, R): it has no state of its own."""

    __slots__ = ()

    spec: ClassVar[MetricSpec]
    needs: ClassVar[tuple[str, ...]]

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        """Derived numbers may look at the settings (`metrics.min_runs`), and keep nothing else."""
        super().__init__()

    @abstractmethod
    def derive(self, readings: Mapping[str, Reading]) -> Reading:
        """The value, from the readings of the metrics named in `needs`."""

    def series(self, reading: Reading) -> tuple[tuple[tuple[tuple[str, str], ...], Reading], ...]:
        """The reading as emitted: (attributes, reading). One without attributes, unless it is told apart (a tier)."""
        return (((), reading),)
