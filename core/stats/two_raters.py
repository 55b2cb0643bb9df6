"""Agreement of two raters, or of two runs, from their cross-tab, and how the cross-tab moved."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from core.stats.common import (
    DRAWS,
    MISSING,
    Bools,
    Estimate,
    Floats,
    Interval,
    Ints,
    Undefined,
    item_bootstrap,
    undefined,
)
from core.stats.proportions import wilson

Weights = Literal["nominal", "linear", "quadratic"]
Spacing = Literal["value", "rank"]

ONE_RATER_CONSTANT = "one rater constant: kappa is 0 whatever the agreement"
KAPPA_UNSTABLE = "kappa unstable: prevalence"
PERFECT_AGREEMENT = "perfect agreement: see the Wilson interval of the agreement"

FEW_FOR_ASYMPTOTICS = 50
_PREVALENT = 0.9


@dataclass(frozen=True, slots=True)
class Kappa:
    """Cohen's kappa with its standard errors.

    Attributes:
        estimate: Kappa over the items both raters scored.
        standard_error: Fleiss-Cohen-Everitt standard error; None when kappa is undefined.
        standard_error_h0: Standard error if the raters were independent; None when kappa is undefined.
        observed: Observed weighted agreement; None without items.
        expected: Weighted agreement expected from the margins; None without items.
    """

    estimate: Estimate
    standard_error: float | None
    standard_error_h0: float | None
    observed: float | None
    expected: float | None


@dataclass(frozen=True, slots=True)
class TestResult:
    """A significance test.

    Attributes:
        p: Two-sided p-value, or None when undefined.
        n: Items the test rests on.
        statistic: Test statistic; None for exact tests and undefined ones.
        df: Degrees of freedom, where the statistic has some.
        reason: Why `p` is None.
    """

    __test__ = False  # a class that pytest should not collect

    p: float | None
    n: int
    statistic: float | None = None
    df: int | None = None
    reason: Undefined | None = None


def cross_tab(a: NDArray[np.integer], b: NDArray[np.integer], n_levels: int) -> Ints:
    """Count level pairs, shape (n_levels, n_levels), over the items that both raters scored.

    Args:
        a: Level indices of the row rater, shape (items,), MISSING where unscored.
        b: Level indices of the column rater.
        n_levels: Levels of the rubric; unused ones keep their empty row and column.
    """
    both = (a != MISSING) & (b != MISSING)
    cells = a[both].astype(np.int64) * n_levels + b[both]
    return np.bincount(cells, minlength=n_levels**2).reshape(n_levels, n_levels).astype(np.int64)


def agreement_weights(levels: Floats, weights: Weights = "nominal", *, by: Spacing = "value") -> Floats:
    """Agreement weight of every level pair, shape (L, L): 1 on the diagonal, 0 at the greatest distance.

    Nominal: 1 if equal. Linear: 1 - |a - b| / range. Quadratic: 1 - ((a - b) / range)^2 (Cohen 1968).

    Args:
        levels: Level values of the whole rubric, shape (L,).
        weights: Which of the three.
        by: "value" measures distance by level value; "rank" by place in the rubric, so unused levels count too.
    """
    if weights == "nominal" or len(levels) == 1:
        return np.eye(len(levels))
    at = np.asarray(levels, float) if by == "value" else np.arange(len(levels), dtype=float)
    distance = np.abs(at[:, None] - at[None, :]) / np.ptp(at)
    return np.asarray(1 - (distance if weights == "linear" else distance**2))


def cohens_kappa(
    table: Ints,
    levels: Floats,
    *,
    weights: Weights = "nominal",
    by: Spacing = "value",
    level: float = 0.95,
    rng: np.random.Generator | None = None,
) -> Kappa:
    """Cohen's kappa, (po - pe) / (1 - pe), with weights by level value.

    Undefined (no_variation) when both raters are constant; exactly 0 with a note when one is; at perfect agreement 1
    without an interval (collapsed), since an interval of no width is not certainty. Notes a margin above 90%. Variance
    after Fleiss, Cohen & Everitt (1969); estimate and errors agree with statsmodels' `cohens_kappa`.

    Args:
        table: Cross-tab over the rubric's levels, shape (L, L).
        levels: Level values, shape (L,).
        weights: Agreement weights (Cohen 1960, 1968).
        by: Distance by level value or by rank.
        level: Coverage.
        rng: When given, fewer than 50 items get the item bootstrap as interval instead of the asymptotic one.
    """
    _check_square(table, levels)
    n = int(table.sum())
    if n == 0:
        return Kappa(undefined(Undefined.NO_DATA), None, None, None, None)
    w = agreement_weights(levels, weights, by=by)
    p = table / n
    rows, columns = p.sum(axis=1), p.sum(axis=0)
    observed, expected = float((w * p).sum()), float(rows @ w @ columns)
    constant = int(table.sum(axis=1).max() == n) + int(table.sum(axis=0).max() == n)
    if constant == 2:
        return Kappa(undefined(Undefined.NO_VARIATION, n=n), None, None, observed, expected)
    perfect = bool(np.trace(table) == n)
    error, error_h0 = _kappa_errors(p, w, n)
    value = 0.0 if constant == 1 else 1.0 if perfect else (observed - expected) / (1 - expected)
    if perfect:
        interval = Interval(None, None, "Fleiss-Cohen-Everitt", level, Undefined.COLLAPSED)
    elif rng is not None and n < FEW_FOR_ASYMPTOTICS:
        interval = kappa_bootstrap(table, levels, rng, weights=weights, by=by, level=level)
    else:
        interval = _normal_interval(value, error, level)
    notes = _kappa_notes(rows, columns, one_constant=constant == 1, perfect=perfect)
    return Kappa(Estimate(value, n, interval=interval, notes=notes), error, error_h0, observed, expected)


def kappa_bootstrap(
    table: Ints,
    levels: Floats,
    rng: np.random.Generator,
    *,
    weights: Weights = "nominal",
    by: Spacing = "value",
    draws: int = DRAWS,
    level: float = 0.95,
) -> Interval:
    """Item bootstrap interval of Cohen's kappa; undefined draws are dropped and their share is kept."""
    w = agreement_weights(levels, weights, by=by)
    return table_bootstrap(partial(weighted_kappas, weights=w), table, rng, draws=draws, level=level)


def table_bootstrap(
    statistic: Callable[[Floats], Floats],
    table: Ints,
    rng: np.random.Generator,
    *,
    draws: int = DRAWS,
    level: float = 0.95,
) -> Interval:
    """Item bootstrap of a statistic of a cross-tab.

    Args:
        statistic: Takes cross-tabs of shape (draws, L, L), returns one figure a draw, nan where undefined.
        table: Observed cross-tab, shape (L, L), one item a count.
        rng: Seeded generator.
        draws: Number of resamples.
        level: Coverage.
    """
    used = np.flatnonzero(table)

    def resampled(item_weights: Floats) -> Floats:
        tables = np.zeros((len(item_weights), table.size))
        tables[:, used] = item_weights
        return statistic(tables.reshape(-1, *table.shape))

    return item_bootstrap(resampled, table.reshape(-1)[used], rng, draws=draws, level=level)


def weighted_kappas(tables: Floats, weights: Floats) -> Floats:
    """Kappa of many cross-tabs at once, shape (..., L, L) -> (...); nan where both raters are constant.

    Args:
        tables: Cross-tabs of counts.
        weights: Agreement weights, shape (L, L), 1 on the diagonal.
    """
    observed = (tables * weights).sum(axis=(-2, -1))
    return kappas_from_margins(observed, tables.sum(axis=-1), tables.sum(axis=-2), weights)


def kappas_from_margins(observed: Floats, rows: Floats, columns: Floats, weights: Floats) -> Floats:
    """Kappa from weighted agreement and margins; nan where both raters are constant or nothing was scored.

    Args:
        observed: Sum of agreement weights over the items, shape (...).
        rows: Items at each level by the first rater, shape (..., L).
        columns: Items at each level by the second rater.
        weights: Agreement weights, shape (L, L), 1 on the diagonal.
    """
    n = rows.sum(axis=-1)
    row_constant, column_constant = rows.max(axis=-1) == n, columns.max(axis=-1) == n
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = ((rows @ weights) * columns).sum(axis=-1) / n
        kappas = (observed - expected) / (n - expected)
    kappas = np.where(row_constant | column_constant, 0.0, kappas)
    return np.where(row_constant & column_constant, np.nan, kappas)


def exact_agreement(table: Ints, *, level: float = 0.95) -> Estimate:
    """Share of items on which both raters chose the same level, with its Wilson interval."""
    return wilson(int(np.trace(table)), int(table.sum()), level=level)


def within_one_agreement(table: Ints, *, level: float = 0.95) -> Estimate:
    """Share of items on which the raters are at most one level step apart, with its Wilson interval.

    A step is one place in the rubric, whatever the values of the two levels.
    """
    return wilson(int(table[_within_one(len(table))].sum()), int(table.sum()), level=level)


def pabak(table: Ints, *, rng: np.random.Generator | None = None) -> Estimate:
    """Prevalence- and bias-adjusted kappa, (K po - 1) / (K - 1), also Brennan-Prediger's kappa.

    It moves with the number of levels K, so the table must hold all levels of the rubric (Byrt et al. 1993).

    Args:
        table: Cross-tab, shape (K, K).
        rng: Asks for an item bootstrap interval.
    """
    return _table_estimate(_pabaks, table, rng)


def gwet_ac1(table: Ints, *, rng: np.random.Generator | None = None) -> Estimate:
    """Gwet's AC1 of two raters: chance agreement sum pi_k (1 - pi_k) / (K - 1), pi_k averaged over the raters.

    Never undefined for constant raters, and it moves with K, so it stands beside kappa and never in its place
    (Gwet 2008).

    Args:
        table: Cross-tab over all levels of the rubric, shape (K, K).
        rng: Asks for an item bootstrap interval.
    """
    return _table_estimate(partial(_gwets, weights=np.eye(len(table))), table, rng)


def gwet_ac2(
    table: Ints,
    levels: Floats,
    *,
    weights: Weights = "quadratic",
    by: Spacing = "value",
    rng: np.random.Generator | None = None,
) -> Estimate:
    """Gwet's AC2, AC1 with partial credit: chance agreement T_w sum pi_k (1 - pi_k) / (K (K - 1)).

    Args:
        table: Cross-tab over all levels of the rubric, shape (K, K).
        levels: Level values, shape (K,).
        weights: Agreement weights; T_w is their sum.
        by: Distance by level value or by rank.
        rng: Asks for an item bootstrap interval.
    """
    _check_square(table, levels)
    return _table_estimate(partial(_gwets, weights=agreement_weights(levels, weights, by=by)), table, rng)


def gwet_coefficient(observed: Floats, shares: Floats, weights: Floats) -> Floats:
    """(po - pe) / (1 - pe) with Gwet's chance agreement, for one or many resamples.

    Args:
        observed: Weighted observed agreement, shape (...).
        shares: Average share of each level, shape (..., K).
        weights: Agreement weights, shape (K, K).
    """
    k = len(weights)
    expected = weights.sum() / (k * (k - 1)) * (shares * (1 - shares)).sum(axis=-1)
    return np.asarray((observed - expected) / (1 - expected))


def mcnemar_exact(b: int, c: int) -> TestResult:
    """Exact two-sided McNemar test: binomial on the b + c discordant items with p = 1/2, by scipy.

    Without discordant items nothing speaks for a change: p = 1.

    Args:
        b: Items that changed one way.
        c: Items that changed the other way.
    """
    n = b + c
    return TestResult(float(stats.binomtest(b, n).pvalue) if n else 1.0, n)


def mcnemar_chi2(b: int, c: int, *, corrected: bool = False) -> TestResult:
    """Asymptotic McNemar test; below 25 discordant items use `mcnemar_exact`.

    Args:
        b: Items that changed one way.
        c: Items that changed the other way; undefined (no_denominator) when b + c = 0.
        corrected: Edwards' continuity correction, (|b - c| - 1)^2 / (b + c).
    """
    if b + c == 0:
        return TestResult(None, 0, reason=Undefined.NO_DENOMINATOR)
    return _chi2_test(max(abs(b - c) - int(corrected), 0) ** 2 / (b + c), 1, b + c)


def stuart_maxwell(table: Ints) -> TestResult:
    """Do both raters use the levels equally often? Stuart (1955), Maxwell (1970).

    Levels that neither used are dropped first. Undefined (singular) when the covariance of the margin differences has
    no inverse, for instance when one level is never confused with another.

    Args:
        table: Cross-tab, shape (L, L).
    """
    n = int(table.sum())
    used = _used_levels(table)
    kept = table[np.ix_(used, used)].astype(float)
    if len(kept) < 2:
        return TestResult(None, n, reason=Undefined.NO_VARIATION if n else Undefined.NO_DATA)
    rows, columns = kept.sum(axis=1), kept.sum(axis=0)
    difference = (rows - columns)[:-1]
    covariance = (np.diag(rows + columns) - kept - kept.T)[:-1, :-1]
    if np.linalg.matrix_rank(covariance) < len(covariance):
        return TestResult(None, n, reason=Undefined.SINGULAR)
    return _chi2_test(float(difference @ np.linalg.solve(covariance, difference)), len(difference), n)


def bowker(table: Ints) -> TestResult:
    """Are changes between every two levels equally frequent both ways? Bowker (1948).

    Degrees of freedom are the level pairs that occur at all; statsmodels counts the empty ones too. Undefined
    (no_denominator) when nothing changed.

    Args:
        table: Cross-tab, shape (L, L).
    """
    upper = np.triu_indices(len(table), 1)
    there, back = table[upper].astype(float), table.T[upper].astype(float)
    seen = there + back > 0
    n = int(table.sum())
    if not seen.any():
        return TestResult(None, n, reason=Undefined.NO_DENOMINATOR if n else Undefined.NO_DATA)
    chi2 = ((there - back)[seen] ** 2 / (there + back)[seen]).sum()
    return _chi2_test(float(chi2), int(seen.sum()), n)


def _check_square(table: Ints, levels: Floats) -> None:
    if table.shape != (len(levels), len(levels)):
        raise ValueError(f"the cross-tab must have one row and column per level: {table.shape}, {len(levels)} levels")


def _kappa_errors(p: Floats, w: Floats, n: int) -> tuple[float, float]:
    """Standard errors of kappa as it is, and if the raters were independent (Fleiss, Cohen & Everitt 1969)."""
    rows, columns = p.sum(axis=1), p.sum(axis=0)
    expected = rows @ w @ columns
    kappa = ((w * p).sum() - expected) / (1 - expected)
    margin_weights = (w @ columns)[:, None] + (w.T @ rows)[None, :]
    scale = n * (1 - expected) ** 2
    variance = (p * (w - margin_weights * (1 - kappa)) ** 2).sum() - (kappa - expected * (1 - kappa)) ** 2
    variance_h0 = (np.outer(rows, columns) * (w - margin_weights) ** 2).sum() - expected**2
    return float(np.sqrt(max(variance, 0) / scale)), float(np.sqrt(max(variance_h0, 0) / scale))


def _normal_interval(value: float, error: float, level: float) -> Interval:
    half = stats.norm.ppf((1 + level) / 2) * error
    if half == 0:
        return Interval(None, None, "Fleiss-Cohen-Everitt", level, Undefined.COLLAPSED)
    return Interval(float(value - half), float(value + half), "Fleiss-Cohen-Everitt", level)


def _kappa_notes(rows: Floats, columns: Floats, *, one_constant: bool, perfect: bool) -> tuple[str, ...]:
    said = {
        ONE_RATER_CONSTANT: one_constant,
        KAPPA_UNSTABLE: max(rows.max(), columns.max()) > _PREVALENT,
        PERFECT_AGREEMENT: perfect,
    }
    return tuple(note for note, holds in said.items() if holds)


def _within_one(n_levels: int) -> Bools:
    """Level pairs at most one step apart."""
    steps = np.arange(n_levels)
    return np.asarray(np.abs(steps[:, None] - steps[None, :]) <= 1)


def _used_levels(table: Ints) -> Ints:
    return np.flatnonzero(table.sum(axis=0) + table.sum(axis=1))


def _table_estimate(statistic: Callable[[Floats], Floats], table: Ints, rng: np.random.Generator | None) -> Estimate:
    n = int(table.sum())
    if n == 0:
        return undefined(Undefined.NO_DATA)
    if len(table) == 1:
        return undefined(Undefined.NO_VARIATION, n=n)
    interval = None if rng is None else table_bootstrap(statistic, table, rng)
    return Estimate(float(statistic(table.astype(float))), n, interval=interval)


def _pabaks(tables: Floats) -> Floats:
    k = tables.shape[-1]
    agreement = np.trace(tables, axis1=-2, axis2=-1) / tables.sum(axis=(-2, -1))
    return np.asarray((k * agreement - 1) / (k - 1))


def _gwets(tables: Floats, weights: Floats) -> Floats:
    p = tables / tables.sum(axis=(-2, -1), keepdims=True)
    return gwet_coefficient((p * weights).sum(axis=(-2, -1)), (p.sum(axis=-1) + p.sum(axis=-2)) / 2, weights)


def _chi2_test(chi2: float, df: int, n: int) -> TestResult:
    return TestResult(float(stats.chi2.sf(chi2, df)), n, float(chi2), df)
