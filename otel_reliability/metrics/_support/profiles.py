"""Which form of the evaluation metrics is computed."""

from __future__ import annotations

from typing import Literal, TypeAlias

Profile: TypeAlias = Literal["published", "hal-harness"]
"""`published`: as the methodology page defines them. `hal-harness`: as its authors' code computes them today.

They differ in `outcome_consistency`, `trajectory_distribution`, `risk_coverage` and the aggregates of these.
"""
