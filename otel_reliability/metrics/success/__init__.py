"""Success: does the agent do its work, and does it end without an error? And the verdict, which
joins the answer with the stability of what it does.
"""

from __future__ import annotations

from otel_reliability.metrics.success.error_rate import ErrorRate
from otel_reliability.metrics.success.success_rate import SuccessRate
from otel_reliability.metrics.success.verdict import Grade, VerdictRank

ROWS = (SuccessRate, ErrorRate, VerdictRank, Grade)
