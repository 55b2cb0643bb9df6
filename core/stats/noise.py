"""How often two sets of repetitions disagree, and how much of that is mere repetition noise."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import stats

from core.stats.common import (
    DRAWS,
    Bools,
    Estimate,
    Floats,
    Ints,
    Undefined,
    distinct_rows,
    item_bootstrap,
    undefined,
)

FLOOR_UNKNOWN = "noise floor unknown: one repetition"


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """Disagreement between two sets of repetitions of the same items, split into noise and the rest.

    Attributes:
        cross: Probability that a repetition of one set and one of the other disagree, mean over items.
        within_a: The same for two repetitions of the first set, over items with at least two.
        within_b: The same for the second set.
        floor: Mean of `within_a` and `within_b` over the items of `excess`.
        excess: Cross minus floor over items with at least two repetitions in both sets. For two outcomes it estimates
            the mean of (p1 - p2)^2 without bias, so it may be negative.
    """

    cross: Estimate
    within_a: Estimate
    within_b: Estimate
    floor: Estimate
    excess: Estimate

    @property
    def shown(self) -> float | None:
        """The excess, floored at 0 for display."""
        return None if self.excess.value is None else max(0.0, self.excess.value)


def noise_floor(counts_a: Ints, counts_b: Ints, *, rng: np.random.Generator | None = None) -> NoiseFloor:
    """Split the disagreement between two sets of repetitions into repetition noise and excess.

    Per item, cross = 1 - sum a_k b_k / (n_a n_b), within = 1 - sum k (k - 1) / (n (n - 1)), excess = cross minus the
    mean of the two within rates. Items without a scored repetition in both sets are left out; with one repetition in
    either set an item has a cross rate and no excess.

    Args:
        counts_a: Repetitions of the first set by outcome, shape (items, outcomes).
        counts_b: Repetitions of the second set, same shape.
        rng: Asks for item bootstrap intervals of the cross rate and the excess.
    """
    rows, weights, _ = distinct_rows(np.hstack([counts_a, counts_b]))
    a, b = np.hsplit(rows, 2)
    n_a, n_b = a.sum(axis=1), b.sum(axis=1)
    cross = _cross(a, b)
    within_a, within_b = disagreement_within(a), disagreement_within(b)
    floor = (within_a + within_b) / 2
    repeated = (n_a > 1) & (n_b > 1)
    return NoiseFloor(
        _mean(cross, weights, (n_a > 0) & (n_b > 0), Undefined.NO_DATA, rng),
        _mean(within_a, weights, n_a > 1, Undefined.SINGLE_REPETITION),
        _mean(within_b, weights, n_b > 1, Undefined.SINGLE_REPETITION),
        _mean(floor, weights, repeated, Undefined.SINGLE_REPETITION),
        _mean(cross - floor, weights, repeated, Undefined.SINGLE_REPETITION, rng),
    )


def disagreement_within(counts: Ints) -> Floats:
    """Probability that two repetitions of an item disagree, shape (items,); nan below two repetitions."""
    n = counts.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(1 - (counts * (counts - 1)).sum(axis=1) / (n * (n - 1)))


def excess_p_value(
    passes_a: Ints, scored_a: Ints, passes_b: Ints, scored_b: Ints, *, rng: np.random.Generator, draws: int = DRAWS
) -> float | None:
    """Permutation p-value of the excess disagreement on pass/fail: snapshot labels shuffled within each item.

    Given an item's passes in both snapshots together, the passes of the first are hypergeometric when the snapshots do
    not differ. Items with equal totals are drawn together, so the cost does not grow with the items.

    Args:
        passes_a: Passes per item in the first snapshot, shape (items,).
        scored_a: Scored repetitions per item in the first snapshot.
        passes_b: Passes in the second.
        scored_b: Scored repetitions in the second.
        rng: Seeded generator.
        draws: Number of permutations.

    Returns:
        (1 + draws at least as large) / (1 + draws), or None where no item has two repetitions in both snapshots.
    """
    used = (scored_a > 1) & (scored_b > 1)
    if not used.any():
        return None
    columns = [passes_a + passes_b, scored_a, scored_b]
    states, _, inverse = distinct_rows(np.column_stack([column[used] for column in columns]))
    observed = _binary_excess(passes_a[used], scored_a[used], passes_b[used], scored_b[used]).sum()
    permuted = np.zeros(draws)
    for (total, n_a, n_b), items in zip(states, np.bincount(inverse), strict=True):
        support = np.arange(max(0, total - n_b), min(total, n_a) + 1)
        chances = stats.hypergeom.pmf(support, n_a + n_b, total, n_a)
        seen = rng.multinomial(items, chances / chances.sum(), size=draws)
        permuted += seen @ _binary_excess(support, n_a, total - support, n_b)
    # Sums of equal terms in another order differ in the last digits.
    as_large = permuted >= observed - 1e-9 * max(1.0, abs(observed))
    return float((1 + as_large.sum()) / (1 + draws))


def _binary_excess(k_a: Ints, n_a: Ints, k_b: Ints, n_b: Ints) -> Floats:
    cross = (k_a * (n_b - k_b) + (n_a - k_a) * k_b) / (n_a * n_b)
    within_a = 2 * k_a * (n_a - k_a) / (n_a * (n_a - 1))
    within_b = 2 * k_b * (n_b - k_b) / (n_b * (n_b - 1))
    return np.asarray(cross - (within_a + within_b) / 2)


def _cross(a: Ints, b: Ints) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(1 - (a * b).sum(axis=1) / (a.sum(axis=1) * b.sum(axis=1)))


def _mean(
    values: Floats, weights: Ints, used: Bools, reason: Undefined, rng: np.random.Generator | None = None
) -> Estimate:
    """Mean over the items behind the used rows, with an item bootstrap interval if asked."""
    v, w = values[used], weights[used]
    n, left_out = int(w.sum()), int(weights[~used].sum())
    if n == 0:
        return undefined(reason, left_out=left_out)
    interval = None if rng is None else item_bootstrap(partial(_weighted_means, values=v), w, rng)
    return Estimate(float(w @ v / n), n, left_out, interval=interval)


def _weighted_means(weights: Floats, values: Floats) -> Floats:
    return np.asarray(weights @ values / weights.sum(axis=1))
