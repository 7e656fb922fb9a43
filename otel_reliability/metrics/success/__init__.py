"""Success: does the agent do its work, does it end without an error, what does it cost? And the
verdict, which joins the answer with the stability of what it does.
"""

from __future__ import annotations

from otel_reliability.metrics.success.cost_per_run import CostPerRun
from otel_reliability.metrics.success.error_rate import ErrorRate
from otel_reliability.metrics.success.failed_call_share import FailedCallShare
from otel_reliability.metrics.success.failed_in_a_row import FailedInARow
from otel_reliability.metrics.success.failed_run_share import FailedRunShare
from otel_reliability.metrics.success.objective import (
    ErrorBudgetLeft,
    Objective,
    ObjectivePeriod,
)
from otel_reliability.metrics.success.success_rate import SuccessRate
from otel_reliability.metrics.success.verdict import GradeRank, VerdictRank

ROWS = (
    SuccessRate,
    ErrorRate,
    FailedRunShare,
    FailedInARow,
    FailedCallShare,
    VerdictRank,
    GradeRank,
    Objective,
    ObjectivePeriod,
    ErrorBudgetLeft,
    CostPerRun,
)
