"""Attention: its definition, the fast exact paths, biases, linear attention, statistics and costs."""

from __future__ import annotations

from regard.kernels import biases, reference
from regard.kernels.cost_model import Cost, cost
from regard.kernels.functional import attention, attention_weights, attention_with_lse
from regard.kernels.linear_kernel import LinearState, linear_attention, linear_attention_with_state
from regard.kernels.planner import Plan, plan
from regard.kernels.statistics import attention_statistics
from regard.kernels.statistics_totals import Statistics

__all__ = [
    "Cost",
    "LinearState",
    "Plan",
    "Statistics",
    "attention",
    "attention_statistics",
    "attention_weights",
    "attention_with_lse",
    "biases",
    "cost",
    "linear_attention",
    "linear_attention_with_state",
    "plan",
    "reference",
]
