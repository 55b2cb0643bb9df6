"""Statistics of item totals: one function gives the point estimate and every bootstrap draw."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.stats.common import (
    DRAWS,
    FEWEST_ITEMS,
    Estimate,
    Floats,
    Interval,
    Ints,
    Undefined,
    distinct_rows,
    percentile_interval,
    resample_weights,
    undefined,
)

GROUPS = 2_000
"""Above this many rows, items are bundled at random into this many groups of equal size and groups are resampled.

A random group is an independent sample of items, so the variance is still that of resampled items.
"""

_CHUNK_ROWS = 4_000
_CHUNK_DRAWS = 250


class Repeated(NamedTuple):
    """Items with at least two scored repetitions, as distinct count vectors.

    Attributes:
        rows: Count vectors, shape (m, L).
        weights: How many items have each, shape (m,).
        left_out: Items with fewer than two scores.
        empty: Why nothing can be said when no item is left.
    """

    rows: Ints
    weights: Ints
    left_out: int
    empty: Undefined


@dataclass(frozen=True, slots=True)
class ItemTotals:
    """Item features summed over all items, and over each bootstrap resample.

    Attributes:
        observed: Totals over the items, shape (features,).
        drawn: Totals of each resample, shape (draws, features); None when no interval was asked for.
        items: Items they rest on.
        left_out: Items that could not be used.
        method: How the resamples were drawn, in words.
        empty: Reason to give when there are no items.
    """

    observed: Floats
    drawn: Floats | None
    items: int
    left_out: int
    method: str
    empty: Undefined

    def estimate(
        self,
        figure: Callable[[Floats], Floats],
        *,
        reason: Undefined = Undefined.NO_VARIATION,
        level: float = 0.95,
        notes: tuple[str, ...] = (),
    ) -> Estimate:
        """One figure of these totals with its item bootstrap interval.

        Args:
            figure: Takes totals of shape (..., features), returns shape (...), nan where undefined.
            reason: Why the figure is undefined where it is nan.
            level: Coverage.
            notes: Warnings that go with the figure.
        """
        if self.items == 0:
            return undefined(self.empty, left_out=self.left_out, notes=notes)
        value = float(figure(self.observed))
        if not np.isfinite(value):
            return undefined(reason, n=self.items, left_out=self.left_out, notes=notes)
        return Estimate(value, self.items, self.left_out, None, self._interval(figure, level), notes)

    def _interval(self, figure: Callable[[Floats], Floats], level: float) -> Interval | None:
        if self.drawn is None:
            return None
        if self.items < FEWEST_ITEMS:
            return Interval(None, None, self.method, level, Undefined.TOO_FEW_ITEMS)
        return percentile_interval(figure(self.drawn), method=self.method, level=level)


def distinct_counts(counts: NDArray[np.integer], weights: Ints | None = None) -> tuple[Ints, Ints]:
    """Distinct count vectors and how many items have each; counts that come with weights are taken as they are."""
    if weights is not None:
        return np.asarray(counts, np.int64), np.asarray(weights, np.int64)
    distinct = distinct_rows(counts)
    return distinct.rows, distinct.weights


def repeated_items(counts: NDArray[np.integer], weights: Ints | None = None) -> Repeated:
    """Keep the items with at least two scores and count the others.

    Args:
        counts: Scores of each item at each level, shape (items, L).
        weights: How many items each row stands for, when the rows are distinct already.
    """
    rows, items = distinct_counts(counts, weights)
    n = rows.sum(axis=1)
    kept = n >= 2
    empty = Undefined.SINGLE_REPETITION if (n == 1).any() else Undefined.NO_DATA
    return Repeated(rows[kept], items[kept], int(items[~kept].sum()), empty)


def item_totals(
    features: Callable[[Ints], Floats],
    items: Repeated,
    rng: np.random.Generator | None = None,
    *,
    draws: int = DRAWS,
) -> ItemTotals:
    """Sum item features over all items and over bootstrap resamples of items.

    Args:
        features: Takes count vectors of shape (rows, L), returns features of shape (rows, F). Called on a few thousand
            rows at a time, so memory stays flat.
        items: Distinct count vectors with their weights.
        rng: Seeded generator; None asks for no resamples.
        draws: Number of resamples.
    """
    rows, weights = items.rows, items.weights
    observed = sum((weights[part] @ features(rows[part]) for part in _slices(len(rows), _CHUNK_ROWS)), np.zeros(1))
    count = int(weights.sum())
    drawn, method = None, ""
    if rng is not None and count >= FEWEST_ITEMS:
        drawn = _drawn_totals(features, rows, weights, rng, draws)
    if rng is not None:
        method = bootstrap_words(draws, bundled=len(rows) > GROUPS)
        drawn = np.empty((0, len(observed))) if drawn is None else drawn
    return ItemTotals(observed, drawn, count, items.left_out, method, items.empty)


def bootstrap_words(draws: int, *, bundled: bool) -> str:
    """The bootstrap's name for the screen."""
    return f"item bootstrap, {draws:,} draws" + (f" of {GROUPS:,} random item groups" if bundled else "")


def unit_weights(units: int, rng: np.random.Generator, *, draws: int) -> Floats:
    """Bootstrap weights of units that all count once, shape (draws, units); faster than a multinomial draw."""
    drawn = rng.integers(units, size=(draws, units)) + units * np.arange(draws)[:, None]
    return np.bincount(drawn.reshape(-1), minlength=draws * units).reshape(draws, units).astype(float)


def ratio(numerator: ArrayLike, denominator: ArrayLike) -> Floats:
    """Elementwise quotient, nan where the denominator is 0."""
    shape = np.broadcast_shapes(np.shape(numerator), np.shape(denominator))
    quotient = np.full(shape, np.nan)
    np.divide(numerator, denominator, out=quotient, where=np.not_equal(denominator, 0))
    return quotient


def _drawn_totals(
    features: Callable[[Ints], Floats], rows: Ints, weights: Ints, rng: np.random.Generator, draws: int
) -> Floats:
    if len(rows) > GROUPS:
        units = _bundled(features, rows, weights, rng)
        weights = np.ones(len(units), np.int64)
    else:
        units = features(rows)
    sizes = [part.stop - part.start for part in _slices(draws, _CHUNK_DRAWS)]
    if (weights == 1).all():
        return np.concatenate([unit_weights(len(weights), rng, draws=size) @ units for size in sizes])
    return np.concatenate([resample_weights(weights, rng, draws=size) @ units for size in sizes])


def _bundled(features: Callable[[Ints], Floats], rows: Ints, weights: Ints, rng: np.random.Generator) -> Floats:
    """Features summed over random groups of items of equal size, shape (GROUPS, F)."""
    order = rng.permutation(np.repeat(np.arange(len(rows)), weights))
    starts = np.arange(GROUPS + 1) * len(order) // GROUPS
    groups_at_once = max(1, _CHUNK_ROWS * GROUPS // len(order))
    sums = []
    for part in _slices(GROUPS, groups_at_once):
        first, last = starts[part.start], starts[part.stop]
        sums.append(np.add.reduceat(features(rows[order[first:last]]), starts[part] - first, axis=0))
    return np.concatenate(sums)


def _slices(length: int, step: int) -> Iterator[slice]:
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))
