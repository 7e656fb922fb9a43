"""tested_edit_share: does the agent run tests after it changed something?"""

from __future__ import annotations

from otel_reliability.metrics._support.per_run import PerRun
from otel_reliability.metrics.base import CODING, UNDISTURBED
from otel_reliability.model.reading import MetricSpec
from otel_reliability.model.row import Row


class TestedEditShare(PerRun):
    """The share of prompts in which tests ran after the last edit that succeeded.

    Of prompts with such an edit whose commands are all known: without the arguments of the shell
    whether it ran tests is unknown. Whether the tests passed does not count.

    >>> from otel_reliability.model.coding import CodingTotals
    >>> from otel_reliability.testing import row
    >>> metric = TestedEditShare()
    >>> for tested in (1, 0, 0, 0):
    ...     metric.add(row(coding=CodingTotals(1, testable_prompts=1, tested_prompts=tested)))
    >>> metric.value().value
    0.25
    """

    __slots__ = ()
    __test__ = False
    """It is no test."""

    requires = UNDISTURBED | CODING

    spec = MetricSpec(
        name="tested_edit_share",
        title="Share of edits that were tested",
        family="coding",
        direction="higher",
        description="The share of prompts with an edit in which tests ran after the last edit.",
        formula="prompts with tests after the last edit / prompts with an edit",
        required_data="1 prompt that changed a file, with the commands of the shell",
        source="this project",
        improve="Instruct the agent how to run the tests, and to do so before it ends.",
        interval="share",
    )

    def of_run(self, row: Row) -> int | None:
        coding = row.coding
        return None if coding is None or not coding.testable_prompts else coding.tested_prompts
