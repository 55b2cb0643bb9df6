"""Proportions with intervals that hold at 0, at 1 and for few trials."""

from typing import Literal

from statsmodels.stats.proportion import proportion_confint

from core.stats.common import Estimate, Interval, Undefined, undefined

_WORDS = {"wilson": "Wilson", "beta": "Clopper-Pearson"}


def wilson(x: int, n: int, *, level: float = 0.95) -> Estimate:
    """Share of successes with the Wilson (1927) score interval, by statsmodels.

    Args:
        x: Successes.
        n: Trials; 0 makes the share undefined (no_denominator).
        level: Coverage.

    Returns:
        The share x / n over n trials.

    Newcombe (1998) prints 0.2553 to 0.3662 for 81 of 263:

    >>> interval = wilson(81, 263).interval
    >>> f"{interval.low:.4f} {interval.high:.4f}"
    '0.2553 0.3662'
    """
    return _proportion(x, n, method="wilson", level=level)


def clopper_pearson(x: int, n: int, *, level: float = 0.95) -> Estimate:
    """Share of successes with the exact interval of Clopper and Pearson (1934), by statsmodels.

    Its coverage is at least `level` for every true share, so use it where coverage is promised. Arguments and edge rule
    as `wilson`.
    """
    return _proportion(x, n, method="beta", level=level)


def _proportion(x: int, n: int, *, method: Literal["wilson", "beta"], level: float) -> Estimate:
    if not 0 <= x <= n:
        raise ValueError(f"successes must lie between 0 and the trials, got {x} of {n}")
    if n == 0:
        return undefined(Undefined.NO_DENOMINATOR)
    low, high = proportion_confint(x, n, alpha=1 - level, method=method)
    limits = float(low) if x else 0.0, float(high) if x < n else 1.0  # both methods end exactly there
    return Estimate(x / n, n, interval=Interval(*limits, _WORDS[method], level))
