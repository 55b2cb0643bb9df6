"""Adjusting p-values over a family of tests fixed beforehand."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy import stats

from core.stats.common import Floats

Adjustment = Literal["holm", "bh"]


def adjust_p(values: Sequence[float | None], *, method: Adjustment = "holm") -> tuple[float | None, ...]:
    """Adjusted p-values: Holm (1979) for decisions, Benjamini-Hochberg (1995, by scipy) for exploration.

    Undefined tests are dropped before the adjustment and come back as None in their place; they do not make the family
    larger. Both agree with statsmodels' `multipletests`, which forces a full garbage collection at every call.

    >>> adjust_p([0.01, None, 0.04], method="bh")
    (0.02, None, 0.04)
    """
    defined = np.array([p for p in values if p is not None])
    if len(defined) == 0:
        return (None,) * len(values)
    adjusted = iter((_holm(defined) if method == "holm" else stats.false_discovery_control(defined)).tolist())
    return tuple(None if p is None else next(adjusted) for p in values)


def _holm(p: Floats) -> Floats:
    """Each ordered p times the tests not yet rejected, never below the one before it."""
    order = np.argsort(p)
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted
