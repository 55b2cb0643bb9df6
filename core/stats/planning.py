"""How many items, labels and repetitions a question needs, and the error bars that follow from them."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from core.stats.common import Estimate, Floats, Interval, Undefined, undefined
from core.stats.logistic import FEW_CLUSTERS, FEW_CLUSTERS_NOTE
from core.stats.proportions import wilson
from core.stats.two_raters import Weights, cohens_kappa

MOST_ITEMS = 10**9
"""Beyond this a plan is no plan: the search stops and there is no answer."""


class KappaPlan(NamedTuple):
    """Items for a kappa of a given precision.

    Attributes:
        kappa: Kappa of the assumed table.
        items: Items needed.
    """

    kappa: float
    items: int


class DesignEffect(NamedTuple):
    """What clustering costs.

    Attributes:
        effect: Factor by which the variance grows.
        effective_n: Independent observations that carry as much.
    """

    effect: float
    effective_n: float


@dataclass(frozen=True, slots=True)
class SimulatedPower:
    """How often a simulated comparison finds the change.

    Attributes:
        power: Share of the simulations with p < alpha, Wilson interval over the simulations.
        change: Mean change of the pass probability that was put in.
    """

    power: Estimate
    change: float


def wald_sample_size(p: float, half_width: float, *, level: float = 0.95) -> float:
    """Items for a Wald interval of a proportion, z^2 p (1 - p) / half_width^2; round up, and check with Wilson."""
    return float(_z(level) ** 2 * p * (1 - p) / half_width**2)


def wilson_half_width(p: float, n: int, *, level: float = 0.95) -> float:
    """Half the width of the Wilson interval when a share p is seen in n items."""
    z = _z(level)
    return float(z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)))


def wilson_lower(p: float, n: int, *, level: float = 0.95) -> float:
    """Lower Wilson limit when a share p is seen in n items."""
    return _wilson_centre(p, n, level) - wilson_half_width(p, n, level=level)


def wilson_upper(p: float, n: int, *, level: float = 0.95) -> float:
    """Upper Wilson limit when a share p is seen in n items."""
    return _wilson_centre(p, n, level) + wilson_half_width(p, n, level=level)


def wilson_sample_size(p: float, half_width: float, *, level: float = 0.95) -> int | None:
    """Fewest items whose Wilson half-width is at most `half_width` at share p; None beyond `MOST_ITEMS`."""
    return fewest(lambda n: wilson_half_width(p, n, level=level) <= half_width)


def kappa_sample_size(
    joint: Floats, half_width: float, *, levels: Floats, weights: Weights = "nominal", level: float = 0.95
) -> KappaPlan:
    """Items for a kappa interval of given half-width, z^2 * (n * variance) / half_width^2, at an assumed table.

    Args:
        joint: Assumed shares of the cross-tab, shape (L, L), summing to 1.
        half_width: Half the width of the interval.
        levels: Level values, shape (L,).
        weights: Agreement weights.
        level: Coverage.
    """
    table = np.rint(joint / joint.sum() * 1e9).astype(np.int64)
    kappa = cohens_kappa(table, levels, weights=weights)
    if kappa.estimate.value is None or kappa.standard_error is None:
        raise ValueError("kappa is undefined for the assumed table: both raters are constant")
    variance = kappa.standard_error**2 * table.sum()
    return KappaPlan(kappa.estimate.value, ceil(_z(level) ** 2 * variance / half_width**2))


def zero_event_sample_size(bound: float, *, level: float = 0.95) -> int:
    """Items that must all be free of an event before its rate is below `bound`: (1 - bound)^n <= 1 - level.

    Hanley & Lippman-Hand (1983):

    >>> zero_event_sample_size(0.05)
    59
    """
    return ceil(log(1 - level) / log(1 - bound))


def mcnemar_power(p_gain: float, p_loss: float, n: int, *, alpha: float = 0.05) -> float:
    """Power of the exact two-sided McNemar test, summed over the number of items that change.

    Args:
        p_gain: Probability that an item changes one way.
        p_loss: Probability that it changes the other way.
        n: Items.
        alpha: The test rejects when p <= alpha.
    """
    changing = p_gain + p_loss
    if changing == 0:
        return 0.0
    d = np.arange(n + 1)
    chance = stats.binom.pmf(d, n, changing)
    d, chance = d[chance > 0], chance[chance > 0]
    quantile = stats.binom.ppf(alpha / 2, d, 0.5)
    critical = np.where(2 * stats.binom.cdf(quantile, d, 0.5) <= alpha, quantile, quantile - 1)
    share = p_gain / changing
    rejected = stats.binom.cdf(critical, d, share) + stats.binom.sf(d - critical - 1, d, share)
    return float(chance @ np.where(critical >= 0, rejected, 0.0))


def mcnemar_sample_size(p_gain: float, p_loss: float, *, power: float = 0.8, alpha: float = 0.05) -> int | None:
    """Items at which the exact McNemar test reaches the power; None when the two directions are equally likely.

    Exact power rises in a saw-tooth, so a few items less may also reach it.
    """
    if p_gain == p_loss:
        return None
    return fewest(lambda n: mcnemar_power(p_gain, p_loss, n, alpha=alpha) >= power, most=10**6)


def simulate_power(
    pass_shares: Floats,
    shift: float,
    *,
    items: int,
    repetitions: int,
    rng: np.random.Generator,
    simulations: int = 1_000,
    alpha: float = 0.05,
) -> SimulatedPower:
    """Power to find a shift when item means over repetitions are compared by a paired t-test.

    Each simulation draws items from the stored ones, lets both snapshots judge them, and shifts the log-odds of the
    second. Shares of 0 and 1 are pulled in by half a repetition, as more repetitions might show the other verdict.

    Args:
        pass_shares: Pass share of each stored item, shape (stored items,).
        shift: Shift of the log-odds of passing.
        items: Items of the planned comparison.
        repetitions: Repetitions of each item and snapshot.
        rng: Seeded generator.
        simulations: Simulated comparisons.
        alpha: A simulation finds the shift when p < alpha.
    """
    margin = 0.5 / (repetitions + 1)
    before = np.clip(pass_shares, margin, 1 - margin)
    after = special.expit(special.logit(before) + shift)
    drawn = rng.integers(len(before), size=(simulations, items))
    difference = (rng.binomial(repetitions, after[drawn]) - rng.binomial(repetitions, before[drawn])) / repetitions
    error = difference.std(axis=1, ddof=1) / np.sqrt(items)
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.abs(difference.mean(axis=1)) / error
    found = int((t > stats.t.ppf(1 - alpha / 2, items - 1)).sum())
    return SimulatedPower(wilson(found, simulations), float((after - before).mean()))


def miller_sample_size(
    delta: float,
    omega2: float,
    *,
    noise_a: float = 0.0,
    repetitions_a: int = 1,
    noise_b: float = 0.0,
    repetitions_b: int = 1,
    alpha: float = 0.05,
    power: float = 0.8,
) -> int:
    """Items to find a paired difference: (z_a/2 + z_b)^2 (omega^2 + s_A^2/K_A + s_B^2/K_B) / delta^2 (Miller 2024).

    Args:
        delta: Difference of the means to find.
        omega2: Variance over items of the difference of their expected scores.
        noise_a: Mean variance of repetitions of an item under the first judge.
        repetitions_a: Repetitions under the first judge.
        noise_b: The same for the second.
        repetitions_b: The same for the second.
        alpha: Two-sided level of the test.
        power: Probability of finding the difference.

    >>> miller_sample_size(0.03, 1 / 9)
    969
    """
    z = float(stats.norm.ppf(1 - alpha / 2) + stats.norm.ppf(power))
    variance = omega2 + noise_a / repetitions_a + noise_b / repetitions_b
    return ceil(z**2 * variance / delta**2)


def mean_variance(item_variance: float, noise_variance: float, *, items: int, repetitions: int) -> float:
    """Variance of a mean score, (Var(items) + noise / K) / n: more repetitions never get below Var(items) / n."""
    return (item_variance + noise_variance / repetitions) / items


def clustered_se(scores: Floats, clusters: NDArray[np.generic], *, corrected: bool = False) -> float:
    """Standard error of a mean of clustered scores, sqrt(sum over clusters of (sum of residuals)^2) / n (Miller 2024).

    Args:
        scores: Scores, shape (n,).
        clusters: Cluster of each score.
        corrected: CR1, times sqrt(G / (G - 1)) for G clusters, statsmodels' default; needs two clusters.
    """
    _, index = np.unique(clusters, return_inverse=True)
    sums = np.bincount(index, weights=scores - scores.mean())
    groups = len(sums)
    if corrected and groups < 2:
        raise ValueError("the CR1 correction needs at least two clusters")
    factor = groups / (groups - 1) if corrected else 1.0
    return float(np.sqrt(factor * (sums**2).sum()) / len(scores))


def clustered_mean(scores: Floats, clusters: NDArray[np.generic], *, level: float = 0.95) -> Estimate:
    """Mean of clustered scores; its n is the clusters.

    Below ten clusters the interval is CR1 with t(G - 1) and is flagged; from ten on the clustered normal one. A single
    cluster has no interval.
    """
    if len(scores) == 0:
        return undefined(Undefined.NO_DATA)
    groups = len(np.unique(clusters))
    few = groups < FEW_CLUSTERS
    method = "CR1, t on the items" if few else "clustered by item"
    value = float(scores.mean())
    if groups < 2:
        return Estimate(value, groups, interval=Interval(None, None, method, level, Undefined.SINGLE_ITEM))
    critical = stats.t.ppf((1 + level) / 2, groups - 1) if few else _z(level)
    half = float(critical * clustered_se(scores, clusters, corrected=few))
    notes = (FEW_CLUSTERS_NOTE,) if few else ()
    if half == 0:
        return Estimate(value, groups, interval=Interval(None, None, method, level, Undefined.COLLAPSED), notes=notes)
    return Estimate(value, groups, interval=Interval(value - half, value + half, method, level), notes=notes)


def paired_se(a: Floats, b: Floats) -> float:
    """Standard error of a mean difference of paired scores, sd(a - b) / sqrt(n); needs two items (Miller 2024)."""
    if len(a) < 2:
        raise ValueError("a paired standard error needs at least two items")
    return float((a - b).std(ddof=1) / np.sqrt(len(a)))


def design_effect(n: int, m: float, icc: float) -> DesignEffect:
    """Kish's design effect, 1 + (m - 1) icc, of n scores in clusters of m (Kish 1965)."""
    effect = 1 + (m - 1) * icc
    return DesignEffect(effect, n / effect)


def fewest(enough: Callable[[int], bool], *, most: int = MOST_ITEMS) -> int | None:
    """Smallest n for which a condition that stays true once true holds; None if it does not hold by `most`."""
    high = 1
    while not enough(high):
        if high >= most:
            return None
        high = min(2 * high, most)
    return 1 + bisect_left(range(1, high), True, key=enough)


def _wilson_centre(p: float, n: int, level: float) -> float:
    z = _z(level)
    return (p + z**2 / (2 * n)) / (1 + z**2 / n)


def _z(level: float) -> float:
    return float(stats.norm.ppf((1 + level) / 2))
