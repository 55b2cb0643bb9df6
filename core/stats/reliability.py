"""Chance-corrected agreement of many repetitions or raters, from count vectors."""

from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.stats.common import DRAWS, Estimate, Floats, Ints, Undefined, undefined
from core.stats.totals import Repeated, distinct_counts, item_totals, ratio, repeated_items
from core.stats.two_raters import Spacing, Weights, agreement_weights, gwet_coefficient

Metric = Literal["nominal", "ordinal", "interval", "ratio"]

SINGLE_ITEM_ALPHA = "a single item: alpha is 0 by construction"


def krippendorff_alpha(
    counts: NDArray[np.integer],
    levels: Floats,
    *,
    metric: Metric = "ordinal",
    weights: Ints | None = None,
    rng: np.random.Generator | None = None,
    draws: int = DRAWS,
    level: float = 0.95,
) -> Estimate:
    """Krippendorff's alpha, 1 - Do / De, over items with at least two scores (Krippendorff 2011).

    For repetitions of one judge it is intra-rater alpha. Undefined (no_variation) when every score is the same. A
    single item gives 0 with a note. Levels nobody used change nothing.

    Args:
        counts: Scores of each item at each level, shape (items, L).
        levels: Level values in rubric order, shape (L,).
        metric: Squared distance of two levels: nominal 1 if different; ordinal by the scores that lie between them;
            interval (a - b)^2; ratio ((a - b) / (a + b))^2, which needs values that are not negative.
        weights: How many items each row of `counts` stands for, when the rows are distinct already.
        rng: Asks for an item bootstrap interval.
        draws: Number of resamples.
        level: Coverage.
    """
    items = repeated_items(counts, weights)
    used = np.flatnonzero(items.weights @ items.rows)
    if len(used) == 1:
        return undefined(Undefined.NO_VARIATION, n=int(items.weights.sum()), left_out=items.left_out)
    used_items = Repeated(items.rows[:, used], items.weights, items.left_out, items.empty)
    notes = (SINGLE_ITEM_ALPHA,) if items.weights.sum() == 1 else ()
    totals = item_totals(_coincidences, used_items, rng, draws=draws)
    alpha = partial(_alpha, distances=_distances(np.asarray(levels, float)[used], metric))
    return totals.estimate(alpha, level=level, notes=notes)


def fleiss_kappa(
    counts: NDArray[np.integer],
    *,
    weights: Ints | None = None,
    rng: np.random.Generator | None = None,
    draws: int = DRAWS,
) -> Estimate:
    """Fleiss' kappa (1971), for items that all have the same number of scores.

    Undefined (no_variation) when every score is the same. Raises ValueError for unequal numbers: nominal
    `krippendorff_alpha` handles those. Items without any score are left out. Agrees with statsmodels' `fleiss_kappa`.

    Args:
        counts: Scores of each item at each level, shape (items, K).
        weights: How many items each row stands for, when the rows are distinct already.
        rng: Asks for an item bootstrap interval.
        draws: Number of resamples.
    """
    rows, multiplicity = distinct_counts(counts, weights)
    sizes = np.unique(rows.sum(axis=1)[rows.sum(axis=1) > 0])
    if len(sizes) > 1:
        raise ValueError(
            f"Fleiss' kappa needs equally many scores an item, got {sizes[0]} to {sizes[-1]}: use nominal alpha"
        )
    return _chance_corrected(rows, _fleiss, np.eye(rows.shape[1]), weights=multiplicity, rng=rng, draws=draws)


def randolph_kappa(
    counts: NDArray[np.integer],
    *,
    weights: Ints | None = None,
    rng: np.random.Generator | None = None,
    draws: int = DRAWS,
) -> Estimate:
    """Free-marginal kappa, (K po - 1) / (K - 1), of Randolph (2005); Brennan & Prediger's (1981) for two raters.

    It moves with the number of levels K, so `counts` must have a column for every level of the rubric; undefined
    (no_variation) for a single level. Arguments as `fleiss_kappa`; numbers of scores may differ.
    """
    return _chance_corrected(counts, _randolph, np.eye(counts.shape[1]), weights=weights, rng=rng, draws=draws)


def gwet_ac1(
    counts: NDArray[np.integer],
    *,
    weights: Ints | None = None,
    rng: np.random.Generator | None = None,
    draws: int = DRAWS,
) -> Estimate:
    """Gwet's AC1 of many raters with gaps (Gwet 2008); see `two_raters.gwet_ac1` for its meaning.

    Items scored once count in the level shares but not in the observed agreement. Arguments as `randolph_kappa`.
    """
    return _chance_corrected(counts, _gwet, np.eye(counts.shape[1]), weights=weights, rng=rng, draws=draws)


def gwet_ac2(
    counts: NDArray[np.integer],
    levels: Floats,
    *,
    agreement: Weights = "quadratic",
    by: Spacing = "value",
    weights: Ints | None = None,
    rng: np.random.Generator | None = None,
    draws: int = DRAWS,
) -> Estimate:
    """Gwet's AC2, AC1 with partial credit by the distance of the levels.

    Args:
        counts: Scores of each item at each level, shape (items, K), a column for every level of the rubric.
        levels: Level values, shape (K,).
        agreement: Credit for two levels.
        by: Distance by level value or by rank.
        weights: How many items each row of `counts` stands for, when the rows are distinct already.
        rng: Asks for an item bootstrap interval.
        draws: Number of resamples.
    """
    credit = agreement_weights(levels, agreement, by=by)
    return _chance_corrected(counts, _gwet, credit, weights=weights, rng=rng, draws=draws)


def _coincidences(rows: Ints) -> Floats:
    """Scores at each level, then coincidences of every two different levels (each pair once)."""
    first, second = np.triu_indices(rows.shape[1], 1)
    together = rows[:, first] * rows[:, second]
    return np.column_stack([rows, together / (rows.sum(axis=1, keepdims=True) - 1)])


def _distances(levels: Floats, metric: Metric) -> Callable[[Floats], Floats]:
    """Squared distance of every two levels, as a function of the scores at each level, shape (..., L)."""
    first, second = np.triu_indices(len(levels), 1)
    if metric == "ratio" and levels.min(initial=0) < 0:
        raise ValueError(f"the ratio metric needs level values that are not negative, got {levels.min()}")
    if metric == "ordinal":
        return partial(_ordinal_distances, first=first, second=second)
    difference = levels[first] - levels[second]
    if metric == "nominal":
        distances = np.ones(len(difference))
    elif metric == "interval":
        distances = difference**2
    else:
        distances = (difference / (levels[first] + levels[second])) ** 2
    return lambda _: distances


def _ordinal_distances(margins: Floats, first: Ints, second: Ints) -> Floats:
    midpoints = np.cumsum(margins, axis=-1) - margins / 2
    return np.asarray((midpoints[..., first] - midpoints[..., second]) ** 2)


def _alpha(totals: Floats, distances: Callable[[Floats], Floats]) -> Floats:
    n_levels = int((np.sqrt(8 * totals.shape[-1] + 1) - 1) / 2)
    margins, coincidences = totals[..., :n_levels], totals[..., n_levels:]
    first, second = np.triu_indices(n_levels, 1)
    squared = distances(margins)
    observed = (coincidences * squared).sum(axis=-1)
    by_chance = (margins[..., first] * margins[..., second] * squared).sum(axis=-1)
    return 1 - ratio((margins.sum(axis=-1) - 1) * observed, by_chance)


def _chance_corrected(
    counts: NDArray[np.integer],
    coefficient: Callable[[Floats, Floats, Floats], Floats],
    agreement: Floats,
    *,
    weights: Ints | None,
    rng: np.random.Generator | None,
    draws: int,
) -> Estimate:
    """Estimate a coefficient from mean observed agreement and level shares."""
    rows, multiplicity = distinct_counts(counts, weights)
    repeated = repeated_items(rows, multiplicity)
    if not len(repeated.rows) or rows.shape[1] == 1:
        reason = Undefined.NO_VARIATION if len(repeated.rows) else repeated.empty
        return undefined(reason, n=int(repeated.weights.sum()), left_out=repeated.left_out)
    scored = rows.sum(axis=1) > 0
    used = Repeated(rows[scored], multiplicity[scored], 0, repeated.empty)

    def figure(totals: Floats) -> Floats:
        observed = ratio(totals[..., 1], totals[..., 0])
        return coefficient(observed, totals[..., 3:] / totals[..., 2:3], agreement)

    totals = item_totals(partial(_agreement_features, agreement=agreement), used, rng, draws=draws)
    found = totals.estimate(figure)
    return Estimate(
        found.value, int(repeated.weights.sum()), repeated.left_out, found.reason, found.interval, found.notes
    )


def _agreement_features(rows: Ints, agreement: Floats) -> Floats:
    """Has pairs, weighted pair agreement, is scored, level shares."""
    n = rows.sum(axis=1)
    pairs = n * (n - 1)
    matched = (rows * (rows @ agreement)).sum(axis=1) - n
    agreed = np.divide(matched, pairs, out=np.zeros(len(rows)), where=pairs > 0)
    return np.column_stack([pairs > 0, agreed, np.ones(len(rows)), rows / n[:, None]])


def _fleiss(observed: Floats, shares: Floats, _: Floats) -> Floats:
    expected = np.where(shares.max(axis=-1) == 1, 1, (shares**2).sum(axis=-1))
    return ratio(observed - expected, 1 - expected)


def _randolph(observed: Floats, shares: Floats, _: Floats) -> Floats:
    k = shares.shape[-1]
    return np.asarray((k * observed - 1) / (k - 1))


def _gwet(observed: Floats, shares: Floats, agreement: Floats) -> Floats:
    return gwet_coefficient(observed, shares, agreement)
