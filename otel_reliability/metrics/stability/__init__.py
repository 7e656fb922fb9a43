"""Stability: does the agent behave alike from run to run? Lower is better, but for the similarity
and the score.

Source: AgentCop, *Reliability Layer*; what stands beside its five metrics is ours.
"""

from __future__ import annotations

from otel_reliability.metrics.base import Derived, Metric
from otel_reliability.metrics.stability.branch_instability import BranchInstability
from otel_reliability.metrics.stability.cache_hit_share import CacheHitShare
from otel_reliability.metrics.stability.context_growth import ContextGrowth
from otel_reliability.metrics.stability.distinct_paths import DistinctPaths
from otel_reliability.metrics.stability.effect_agreement import EffectAgreement
from otel_reliability.metrics.stability.flag import Flag
from otel_reliability.metrics.stability.no_effect_share import NoEffectShare
from otel_reliability.metrics.stability.path_entropy import PathEntropy
from otel_reliability.metrics.stability.path_similarity import PathSimilarity
from otel_reliability.metrics.stability.repeated_calls import Loops, RetryExplosion
from otel_reliability.metrics.stability.score import Score, ScoreCoverage
from otel_reliability.metrics.stability.step_predictability import StepPredictability
from otel_reliability.metrics.stability.tier import TierRank
from otel_reliability.metrics.stability.token_budget_pressure import TokenBudgetPressure
from otel_reliability.metrics.stability.tool_call_variation import ToolCallVariation
from otel_reliability.metrics.stability.tool_variance import ToolVariance

ROWS: tuple[type[Metric | Derived], ...] = (
    Score,
    ScoreCoverage,
    TierRank,
    Flag,
    PathEntropy,
    ToolVariance,
    RetryExplosion,
    BranchInstability,
    TokenBudgetPressure,
    ToolCallVariation,
    DistinctPaths,
    PathSimilarity,
    StepPredictability,
    EffectAgreement,
    NoEffectShare,
    ContextGrowth,
    CacheHitShare,
    Loops,
)
