"""Control charts over the history of a judge's runs."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from scipy import stats

from core.stats.common import Bools, Floats, Ints

BASELINE_POINTS = 20
"""Runs that set the centre and the spread; a chart with fewer is still learning."""

_FEW_EVENTS = 5


class Limits(NamedTuple):
    """Control limits.

    Attributes:
        low: Lower limit; an array when the limits widen over time.
        high: Upper limit.
    """

    low: Floats
    high: Floats


class Cusum(NamedTuple):
    """Tabular CUSUM in units of the standard deviation.

    Attributes:
        high: Sum of deviations upwards, shape (points,).
        low: Sum of deviations downwards.
        first_high: First point whose upward sum exceeds the decision interval; None without one.
        first_low: The same downwards.
    """

    high: Floats
    low: Floats
    first_high: int | None
    first_low: int | None


class ChartState(StrEnum):
    """What a control chart says."""

    LEARNING = "learning"
    IN_CONTROL = "in control"
    OUT_OF_CONTROL = "out of control"
    NO_SPREAD = "no spread between the baseline runs"


@dataclass(frozen=True, slots=True)
class ControlChart:
    """EWMA and CUSUM of the figure of successive runs.

    Attributes:
        state: What the chart says.
        centre: Mean of the baseline runs; None while learning.
        spread: Standard deviation between the baseline runs, not the sampling error within a run, because the same
            items recur; None while learning.
        ewma: Exponentially weighted moving average, shape (runs,); empty while learning.
        limits: Its limits; None while learning or without spread.
        cusum: CUSUM of the same runs; None while learning or without spread.
        alarms: Runs after the baseline that break a limit of either chart.
    """

    state: ChartState
    centre: float | None
    spread: float | None
    ewma: Floats
    limits: Limits | None
    cusum: Cusum | None
    alarms: Ints


def control_chart(
    values: Floats, *, lam: float = 0.3, width: float = 3.0, k: float = 0.5, h: float = 5.0, baseline: int | None = None
) -> ControlChart:
    """EWMA and CUSUM chart of one figure over runs of the same frozen corpus.

    Args:
        values: The figure of each run in order of time, shape (runs,); leave out runs without one.
        lam: Weight of the newest run in the EWMA.
        width: Limits of the EWMA in standard deviations.
        k: Reference value of the CUSUM in standard deviations.
        h: Decision interval of the CUSUM in standard deviations.
        baseline: Runs that set centre and spread, at least `BASELINE_POINTS`, which is the default.
    """
    points = BASELINE_POINTS if baseline is None else baseline
    if points < BASELINE_POINTS:
        raise ValueError(f"a baseline needs at least {BASELINE_POINTS} runs, got {points}")
    nothing = np.empty(0)
    no_alarms = np.empty(0, dtype=np.int64)
    if len(values) < points:
        return ControlChart(ChartState.LEARNING, None, None, nothing, None, None, no_alarms)
    centre, spread = float(values[:points].mean()), float(values[:points].std(ddof=1))
    smoothed = ewma(values, lam=lam, target=centre)
    if spread == 0:
        return ControlChart(ChartState.NO_SPREAD, centre, spread, smoothed, None, None, no_alarms)
    limits = ewma_limits(centre, spread, lam=lam, width=width, points=len(values))
    sums = cusum(values, target=centre, spread=spread, k=k, h=h)
    broken = (smoothed < limits.low) | (smoothed > limits.high) | (sums.high > h) | (sums.low > h)
    alarms = np.flatnonzero(broken & (np.arange(len(values)) >= points))
    state = ChartState.OUT_OF_CONTROL if len(alarms) else ChartState.IN_CONTROL
    return ControlChart(state, centre, spread, smoothed, limits, sums, alarms)


def ewma(values: Floats, *, lam: float, target: float) -> Floats:
    """Exponentially weighted moving average, z_t = lam x_t + (1 - lam) z_(t-1), from z_0 = target."""
    smoothed = np.empty(len(values))
    last = target
    for t, value in enumerate(values):
        last = lam * value + (1 - lam) * last
        smoothed[t] = last
    return smoothed


def ewma_limits(target: float, spread: float, *, lam: float, width: float = 3.0, points: int | None = None) -> Limits:
    """Limits of an EWMA, target -+ width * s * sqrt(lam / (2 - lam) * (1 - (1 - lam)^(2t))).

    Args:
        target: Centre line.
        spread: Standard deviation between points.
        lam: Weight of the newest point.
        width: Width in standard deviations.
        points: Number of points for exact limits, shape (points,); None for the asymptotic pair, shape ().
    """
    growth = 1.0 if points is None else 1 - (1 - lam) ** (2 * np.arange(1, points + 1))
    half = width * spread * np.sqrt(lam / (2 - lam) * growth)
    return Limits(np.asarray(target - half), np.asarray(target + half))


def p_chart_limits(share: float, n: int, *, width: float = 3.0, exact: bool | None = None) -> Limits:
    """Limits for the share of n items around a long-run share.

    Args:
        share: Long-run share.
        n: Items in a run.
        width: Width in standard deviations; exact limits leave out the same tail probability.
        exact: Binomial quantiles (True) or the normal limits clipped to [0, 1] (False); None takes the exact ones when
            n * share or n * (1 - share) is below 5.
    """
    if exact is None:
        exact = n * min(share, 1 - share) < _FEW_EVENTS
    if exact:
        tail = stats.norm.sf(width)
        low, high = np.asarray(stats.binom.ppf([tail, 1 - tail], n, share)) / n
        return Limits(np.asarray(low), np.asarray(high))
    half = width * np.sqrt(share * (1 - share) / n)
    return Limits(np.asarray(max(0.0, share - half)), np.asarray(min(1.0, share + half)))


def cusum(values: Floats, *, target: float, spread: float, k: float = 0.5, h: float = 5.0) -> Cusum:
    """Tabular CUSUM, C+_t = max(0, C+_(t-1) + z_t - k) and the same downwards, z in standard deviations (Montgomery).

    Args:
        values: Points in order of time, shape (points,).
        target: Centre line.
        spread: Standard deviation between points.
        k: Reference value: half the shift to find, in standard deviations.
        h: Decision interval in standard deviations.
    """
    z = (np.asarray(values) - target) / spread
    high, low = _one_sided(z - k), _one_sided(-z - k)
    return Cusum(high, low, _first(high > h), _first(low > h))


def _one_sided(steps: Floats) -> Floats:
    """Running sum that never falls below 0: the sum minus its running minimum."""
    total = np.cumsum(steps)
    return np.asarray(total - np.minimum(np.minimum.accumulate(total), 0))


def _first(broken: Bools) -> int | None:
    found = np.flatnonzero(broken)
    return int(found[0]) if len(found) else None
