"""Where the variance of the scores comes from: items or repetitions."""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from statsmodels.multivariate.factor import Factor

from core.stats.common import DRAWS, MISSING, Estimate, Floats, Interval, Ints, Undefined, undefined
from core.stats.dispersion import level_counts, sums_of_squares
from core.stats.totals import ItemTotals, item_totals, ratio, repeated_items

NO_NOISE_SEEN = "no repetition noise observed"
NEGATIVE_BETWEEN = "the estimate of the variance between items is negative and shown as 0"
NEVER_REACHED = "no number of repetitions reaches the target"


@dataclass(frozen=True, slots=True)
class OneWayIcc:
    """Intraclass correlations of exchangeable repetitions.

    Attributes:
        single: ICC(1,1), reliability of one repetition.
        average: ICC(1,k), reliability of the mean of k repetitions.
        k: Repetitions averaged: n0, which is the common number when all items have the same; None without items.
    """

    single: Estimate
    average: Estimate
    k: float | None


class TwoWayMeanSquares(NamedTuple):
    """Mean squares of items, raters, residual and within items (Shrout & Fleiss' BMS, JMS, EMS, WMS)."""

    items: float
    raters: float
    residual: float
    within: float


@dataclass(frozen=True, slots=True)
class TwoWayIcc:
    """Intraclass correlations of named raters, every item scored by every rater.

    Attributes:
        agreement_single: ICC(2,1), raters drawn from many, their level counts.
        agreement_average: ICC(2,k).
        consistency_single: ICC(3,1), these raters, their level does not count.
        consistency_average: ICC(3,k), Cronbach's alpha.
        mean_squares: None when there is nothing to estimate.
    """

    agreement_single: Estimate
    agreement_average: Estimate
    consistency_single: Estimate
    consistency_average: Estimate
    mean_squares: TwoWayMeanSquares | None


@dataclass(frozen=True, slots=True)
class VarianceComponents:
    """One-way variance components in squared score points; figures are None, with one reason, when undefined.

    Attributes:
        items: Items with at least two scores.
        left_out: The other items.
        mean_square_between: MSB.
        mean_square_within: MSW.
        n0: Effective repetitions an item.
        between_raw: (MSB - MSW) / n0, which may be negative.
        between: Variance between items, never below 0.
        within: Variance within items, MSW.
        negative: `between_raw` is below 0.
        item_share: between / (between + within).
        repetition_share: within / (between + within).
        reason: Why the figures are None.
    """

    items: int
    left_out: int
    mean_square_between: float | None
    mean_square_within: float | None
    n0: float | None
    between_raw: float | None
    between: float | None
    within: float | None
    negative: bool
    item_share: Estimate
    repetition_share: Estimate
    reason: Undefined | None


class _OneWay(NamedTuple):
    between: Floats
    within: Floats
    n0: Floats


def icc_one_way(
    counts: NDArray[np.integer], levels: Floats, *, weights: Ints | None = None, level: float = 0.95
) -> OneWayIcc:
    """ICC(1,1) and ICC(1,k) with F-based limits (Shrout & Fleiss 1979), from items with at least two scores.

    Unequal numbers of repetitions enter through n0 = (N - sum n_i^2 / N) / (I - 1); the limits are then approximate.
    Undefined (no_variation) when every score is the same, (single_item) for one item. Without noise within items 1
    without an interval (collapsed).

    Args:
        counts: Scores of each item at each level, shape (items, L).
        levels: Level values, shape (L,).
        weights: How many items each row of `counts` stands for, when the rows are distinct already.
        level: Coverage.
    """
    totals = _one_way_totals(counts, levels, weights, None, DRAWS)
    reason = _no_components(totals)
    if reason:
        none = undefined(reason, n=totals.items, left_out=totals.left_out)
        return OneWayIcc(none, none, None)
    between, within, n0 = (float(part) for part in _one_way(totals.observed))
    df = totals.items - 1, float(totals.observed[1]) - totals.items
    single = (between - within) / (between + (n0 - 1) * within)
    limits = _f_limits(between / within, *df, level) if within else None
    icc = partial(_icc, n=totals.items, left_out=totals.left_out, level=level)
    average = 1 - within / between if between else None
    return OneWayIcc(
        icc(single, limits and tuple((f - 1) / (f + n0 - 1) for f in limits)),
        icc(average, limits and tuple(1 - 1 / f if f else -np.inf for f in limits)),
        n0,
    )


def icc_two_way(codes: NDArray[np.integer], levels: Floats, *, level: float = 0.95) -> TwoWayIcc:
    """ICC(2,1), (2,k), (3,1) and (3,k) with F-based limits (Shrout & Fleiss 1979; McGraw & Wong 1996).

    Only items that every rater scored are used; the others are counted as left out. Undefined (no_variation) when
    every score is the same, (single_item) and (single_repetition) below two items or raters.

    Args:
        codes: Level indices, shape (items, raters), MISSING where not scored.
        levels: Level values, shape (L,).
        level: Coverage.
    """
    complete = (codes != MISSING).all(axis=1)
    n, k = int(complete.sum()), codes.shape[1]
    left_out = len(codes) - n
    squares = _two_way_squares(codes[complete], np.asarray(levels, float)) if n > 1 and k > 1 else None
    if squares is None or not any(squares):
        none = undefined(_no_two_way(n, k), n=n, left_out=left_out)
        return TwoWayIcc(none, none, none, none, None)
    icc = partial(_icc, n=n, left_out=left_out, level=level)
    bms, jms, ems = squares.items, squares.raters, squares.residual
    single_2 = _over(bms - ems, bms + (k - 1) * ems + k * (jms - ems) / n)
    single_3 = _over(bms - ems, bms + (k - 1) * ems)
    f = _f_limits(bms / ems, n - 1, (n - 1) * (k - 1), level) if ems else None
    limits_2 = _icc2_limits(squares, single_2, n, k, level) if ems and single_2 is not None else None
    return TwoWayIcc(
        icc(single_2, limits_2),
        icc(_over(bms - ems, bms + (jms - ems) / n), limits_2 and tuple(spearman_brown(r, k) for r in limits_2)),
        icc(single_3, f and tuple((x - 1) / (x + k - 1) for x in f)),
        icc(_over(bms - ems, bms), f and tuple(1 - 1 / x if x else -np.inf for x in f)),
        squares,
    )


def variance_components(
    counts: NDArray[np.integer],
    levels: Floats,
    *,
    weights: Ints | None = None,
    rng: np.random.Generator | None = None,
    draws: int = DRAWS,
) -> VarianceComponents:
    """Split the variance of a score into items and repetitions, in closed form (one-way ANOVA).

    Args:
        counts: Scores of each item at each level, shape (items, L).
        levels: Level values, shape (L,).
        weights: How many items each row of `counts` stands for, when the rows are distinct already.
        rng: Asks for item bootstrap intervals of the shares.
        draws: Number of resamples.
    """
    totals = _one_way_totals(counts, levels, weights, rng, draws)
    if totals.items < 2:
        none = undefined(
            Undefined.SINGLE_ITEM if totals.items else totals.empty, n=totals.items, left_out=totals.left_out
        )
        return VarianceComponents(
            totals.items, totals.left_out, None, None, None, None, None, None, False, none, none, none.reason
        )
    between, within, n0 = (float(part) for part in _one_way(totals.observed))
    raw = (between - within) / n0
    notes = (NEGATIVE_BETWEEN,) if raw < 0 else ()
    return VarianceComponents(
        items=totals.items,
        left_out=totals.left_out,
        mean_square_between=between,
        mean_square_within=within,
        n0=n0,
        between_raw=raw,
        between=max(raw, 0.0),
        within=within,
        negative=raw < 0,
        item_share=totals.estimate(_item_share, notes=notes),
        repetition_share=totals.estimate(lambda drawn: 1 - _item_share(drawn), notes=notes),
        reason=None,
    )


def mcdonald_omega(codes: NDArray[np.integer], levels: Floats) -> Estimate:
    """McDonald's omega of the sum of all runs: how much of its variance one common factor explains.

    With exchangeable runs it tends to ICC(1,k), so it is a figure for experts (Schroeder & Wood-Doughty 2024). Only
    items that every run scored are used. Undefined (single_repetition) below three runs, (no_variation) when a run is
    constant, (singular) when no single factor fits. Principal axis factoring by statsmodels.

    Args:
        codes: Level indices, shape (items, runs), MISSING where not scored.
        levels: Level values, shape (L,).
    """
    complete = codes[(codes != MISSING).all(axis=1)]
    n, left_out = len(complete), len(codes) - len(complete)
    if n < 2 or codes.shape[1] < 3:
        few = Undefined.SINGLE_REPETITION if codes.shape[1] < 3 else Undefined.SINGLE_ITEM if n else Undefined.NO_DATA
        return undefined(few, n=n, left_out=left_out)
    if (complete.min(axis=0) == complete.max(axis=0)).any():
        return undefined(Undefined.NO_VARIATION, n=n, left_out=left_out)
    value = omega_of_correlations(np.corrcoef(np.asarray(levels, float)[complete], rowvar=False))
    if value is None:
        return undefined(Undefined.SINGULAR, n=n, left_out=left_out)
    return Estimate(value, n, left_out)


def omega_of_correlations(correlations: Floats) -> float | None:
    """Omega, (sum of loadings)^2 / ((sum of loadings)^2 + sum of (1 - loading^2)); None when no single factor fits.

    Args:
        correlations: Correlations of the runs, shape (R, R), R at least 3.
    """
    fit = Factor(corr=correlations, n_factor=1, method="pa").fit(maxiter=500, tol=1e-12)
    loadings = fit.loadings[:, 0]
    if not np.isfinite(loadings).all() or (loadings**2 > 1 + 1e-9).any():
        return None
    common = loadings.sum() ** 2
    return float(common / (common + (1 - loadings**2).sum()))


def spearman_brown(r: float, k: float) -> float:
    """Reliability of the mean of k repetitions when one has reliability r: kr / (1 + (k - 1) r).

    >>> round(spearman_brown(0.6, 6), 3)
    0.9
    """
    return k * r / (1 + (k - 1) * r)


def repetitions_needed(r: float, target: float) -> Estimate:
    """Fewest repetitions whose mean reaches a target reliability, target (1 - r) / (r (1 - target)) rounded up.

    Undefined (no_denominator) when r is not positive: averaging then reaches nothing.

    Args:
        r: Reliability of one repetition, at most 1.
        target: Wanted reliability, in (0, 1).

    >>> repetitions_needed(0.6, 0.9).value
    6.0
    """
    if not 0 < target < 1:
        raise ValueError(f"the target reliability must lie between 0 and 1, got {target}")
    if r <= 0:
        return undefined(Undefined.NO_DENOMINATOR, notes=(NEVER_REACHED,))
    exact = target * (1 - r) / (r * (1 - target))
    return Estimate(float(max(1, np.ceil(exact - 1e-9))), 0)


def _one_way_totals(
    counts: NDArray[np.integer], levels: Floats, weights: Ints | None, rng: np.random.Generator | None, draws: int
) -> ItemTotals:
    """Totals of 1, n, n^2, the centred sum T, T^2 / n and the squares within."""
    centred = np.asarray(levels, float) - np.mean(levels)

    def features(rows: Ints) -> Floats:
        n, sums = rows.sum(axis=1), rows @ centred
        return np.column_stack([np.ones(len(rows)), n, n**2, sums, sums**2 / n, sums_of_squares(rows, centred)])

    return item_totals(features, repeated_items(counts, weights), rng, draws=draws)


def _one_way(totals: Floats) -> _OneWay:
    items, n, squared_n, total, between, within = np.moveaxis(totals, -1, 0)
    return _OneWay(
        np.maximum(ratio(between - ratio(total**2, n), items - 1), 0),
        ratio(within, n - items),
        ratio(n - ratio(squared_n, n), items - 1),
    )


def _no_components(totals: ItemTotals) -> Undefined | None:
    """Why an ICC cannot be computed."""
    if totals.items < 2:
        return Undefined.SINGLE_ITEM if totals.items else totals.empty
    between, within, _ = _one_way(totals.observed)
    scale = totals.observed[4]  # sum of T^2 / n: what rounding is measured against
    nothing = within == 0 and between <= 1e-12 * scale
    return Undefined.NO_VARIATION if nothing else None


def _item_share(totals: Floats) -> Floats:
    between, within, n0 = _one_way(totals)
    component = np.maximum(ratio(between - within, n0), 0)
    return ratio(component, component + within)


def _f_limits(f: float, df1: float, df2: float, level: float) -> tuple[float, float]:
    """F divided, and multiplied, by the critical values that bound the true ratio."""
    tail = (1 + level) / 2
    return float(f / stats.f.ppf(tail, df1, df2)), float(f * stats.f.ppf(tail, df2, df1))


def _icc(value: float | None, limits: tuple[float, ...] | None, *, n: int, left_out: int, level: float) -> Estimate:
    if value is None:
        return undefined(Undefined.NO_DENOMINATOR, n=n, left_out=left_out)
    if limits is None:
        interval = Interval(None, None, "F distribution", level, Undefined.COLLAPSED)
        return Estimate(value, n, left_out, interval=interval, notes=(NO_NOISE_SEEN,))
    return Estimate(value, n, left_out, interval=Interval(limits[0], limits[1], "F distribution", level))


def _over(numerator: float, denominator: float) -> float | None:
    return numerator / denominator if denominator else None


def _no_two_way(n: int, k: int) -> Undefined:
    if n == 0:
        return Undefined.NO_DATA
    if k < 2:
        return Undefined.SINGLE_REPETITION
    return Undefined.SINGLE_ITEM if n == 1 else Undefined.NO_VARIATION


def _two_way_squares(codes: NDArray[np.integer], levels: Floats) -> TwoWayMeanSquares:
    """Mean squares from level counts by item and by rater, without a matrix of score values."""
    n, k = codes.shape
    by_item, by_rater = level_counts(codes, len(levels)), level_counts(codes.T, len(levels))
    margins = by_rater.sum(axis=0)
    levels = levels - margins @ levels / (n * k)
    total = margins @ levels**2 if np.count_nonzero(margins) > 1 else 0.0
    within = sums_of_squares(by_item, levels).sum()
    raters = ((by_rater @ levels) ** 2).sum() / n
    items = max(total - within, 0.0)
    residual = max(within - raters, 0.0)
    return TwoWayMeanSquares(
        float(items / (n - 1)),
        float(raters / (k - 1)),
        float(residual / ((n - 1) * (k - 1))),
        float(within / (n * (k - 1))),
    )


def _icc2_limits(squares: TwoWayMeanSquares, r: float, n: int, k: int, level: float) -> tuple[float, float]:
    """Limits of ICC(2,1) by Satterthwaite's degrees of freedom (Shrout & Fleiss 1979, p. 424)."""
    bms, jms, ems, _ = squares
    fj, tail = jms / ems, (1 + level) / 2
    spread = k * r * fj + n * (1 + (k - 1) * r) - k * r
    df = (k - 1) * (n - 1) * spread**2 / ((n - 1) * k**2 * r**2 * fj**2 + (n * (1 + (k - 1) * r) - k * r) ** 2)
    low_f, high_f = stats.f.ppf(tail, n - 1, df), stats.f.ppf(tail, df, n - 1)
    noise = k * jms + (k * n - k - n) * ems
    low = n * (bms - low_f * ems) / (low_f * noise + n * bms)
    high = n * (high_f * bms - ems) / (noise + n * high_f * bms)
    return float(low), float(high)
