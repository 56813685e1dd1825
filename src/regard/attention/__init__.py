"""Attention itself: the definition, the fast exact paths, biases, linear attention, statistics and costs.

The room has the name of its main function, and stands for it: ``regard.attention(q, k, v)``
calls :func:`regard.attention.call.attention`.
"""

from __future__ import annotations

import sys
from types import ModuleType

from regard.attention import biases, reference
from regard.attention.call import attention, attention_weights, attention_with_lse
from regard.attention.costing import Cost, cost
from regard.attention.linear import LinearState, linear_attention, linear_attention_with_state
from regard.attention.planning import Plan, plan
from regard.attention.statistics import attention_statistics
from regard.attention.totals import Statistics

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


class _Room(ModuleType):
    """A module that can be called, because ``regard.attention`` is both a room and a function."""

    __call__ = staticmethod(attention)


sys.modules[__name__].__class__ = _Room
