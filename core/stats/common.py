"""What every statistic shares: the estimate, the reasons it may be undefined, and the item bootstrap."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

MISSING = -1
"""The level index of a repetition that was not made or gave no usable score."""

DRAWS = 2_000
FEWEST_ITEMS = 10
MOST_UNDEFINED_DRAWS = 0.05


class Undefined(StrEnum):
    """Why a figure has no value; `words` says it to a reader."""

    NO_DATA = "no_data"
    NO_VARIATION = "no_variation"
    NO_DENOMINATOR = "no_denominator"
    SINGLE_REPETITION = "single_repetition"
    SINGLE_ITEM = "single_item"
    TOO_FEW_ITEMS = "too_few_items"
    SINGULAR = "singular"
    SEPARATION = "separation"
    UNSTABLE_RESAMPLES = "unstable_resamples"
    COLLAPSED = "collapsed"

    @property
    def words(self) -> str:
        """The reason as a sentence fragment for the screen."""
        return _WORDS[self]


_WORDS = {
    Undefined.NO_DATA: "nothing was scored",
    Undefined.NO_VARIATION: "every score is the same, so agreement cannot be told from habit",
    Undefined.NO_DENOMINATOR: "there is nothing to divide by",
    Undefined.SINGLE_REPETITION: "one repetition shows no wobble: at least two are needed",
    Undefined.SINGLE_ITEM: "one item is not enough",
    Undefined.TOO_FEW_ITEMS: "too few items for an interval",
    Undefined.SINGULAR: "the equations have no single solution",
    Undefined.SEPARATION: "one side always wins, so the odds are infinite",
    Undefined.UNSTABLE_RESAMPLES: "undefined in more than 5% of the resamples",
    Undefined.COLLAPSED: "the interval collapses to a point, which is not certainty",
}


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval, or the reason there is none.

    Attributes:
        low: Lower limit, or None.
        high: Upper limit, or None.
        method: How it was computed, in words, e.g. "item bootstrap, 2,000 draws".
        level: Coverage, 0.95 for 95%.
        reason: Why there is no interval; None when there is one.
        undefined_share: Share of bootstrap draws in which the figure was undefined.
    """

    low: float | None
    high: float | None
    method: str
    level: float = 0.95
    reason: Undefined | None = None
    undefined_share: float = 0.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """One figure with what a reader needs to judge it.

    Attributes:
        value: The estimate, or None when undefined.
        n: Units (items unless the function says otherwise) it rests on.
        left_out: Units that could not be used.
        reason: Why `value` is None.
        interval: Its confidence interval, where one was asked for.
        notes: Warnings to print beside it, e.g. "kappa unstable: prevalence".
    """

    value: float | None
    n: int
    left_out: int = 0
    reason: Undefined | None = None
    interval: Interval | None = None
    notes: tuple[str, ...] = ()


def undefined(reason: Undefined, *, n: int = 0, left_out: int = 0, notes: tuple[str, ...] = ()) -> Estimate:
    """An estimate without a value, for `reason`."""
    return Estimate(None, n, left_out, reason, None, notes)


class DistinctRows(NamedTuple):
    """The distinct rows of a matrix.

    Attributes:
        rows: Shape (m, columns), each distinct row once.
        weights: Shape (m,), how many original rows equal each.
        inverse: Shape (rows,), where each original row stands in `rows`.
    """

    rows: Ints
    weights: Ints
    inverse: Ints


def distinct_rows(matrix: NDArray[np.integer]) -> DistinctRows:
    """Collapse equal rows of a non-negative integer matrix, shape (items, columns).

    Statistics that treat repetitions as exchangeable depend on an item only through its count vector, so they cost the
    same for a thousand items or ten million.
    """
    columns = matrix.shape[1]
    base = int(matrix.max(initial=0)) + 1
    if columns * np.log2(max(base, 2)) < 62:
        places = base ** np.arange(columns, dtype=np.int64)
        _, first, inverse, weights = np.unique(
            matrix.astype(np.int64) @ places, return_index=True, return_inverse=True, return_counts=True
        )
    else:
        _, first, inverse, weights = np.unique(
            matrix, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
    return DistinctRows(matrix[first].astype(np.int64), weights.astype(np.int64), inverse.reshape(-1))


def resample_weights(weights: Ints, rng: np.random.Generator, *, draws: int = DRAWS) -> Ints:
    """Bootstrap weights for distinct items, shape (draws, len(weights)).

    Drawing as many items as there are, with replacement, is a multinomial draw over the distinct rows.
    """
    total = int(weights.sum())
    return rng.multinomial(total, weights / total, size=draws)


def item_bootstrap(
    statistic: Callable[[Floats], Floats],
    weights: Ints,
    rng: np.random.Generator,
    *,
    draws: int = DRAWS,
    level: float = 0.95,
) -> Interval:
    """Percentile bootstrap that resamples items, all of an item's repetitions together.

    Args:
        statistic: Takes weights of shape (draws, m) and returns one figure a draw, nan where undefined.
        weights: How many items stand behind each of the m distinct rows.
        rng: Seeded generator.
        draws: Number of resamples.
        level: Coverage.

    Returns:
        The interval; without limits below `FEWEST_ITEMS` items, when more than 5% of the draws are undefined, or when
        all draws are equal.
    """
    method = f"item bootstrap, {draws:,} draws"
    if weights.sum() < FEWEST_ITEMS:
        return Interval(None, None, method, level, Undefined.TOO_FEW_ITEMS)
    return percentile_interval(
        statistic(resample_weights(weights, rng, draws=draws).astype(float)), method=method, level=level
    )


def percentile_interval(values: Floats, *, method: str, level: float = 0.95) -> Interval:
    """The central `level` share of resampled figures; undefined draws (nan) are dropped and their share is kept."""
    defined = values[np.isfinite(values)]
    share = 1 - len(defined) / len(values)
    if share > MOST_UNDEFINED_DRAWS:
        return Interval(None, None, method, level, Undefined.UNSTABLE_RESAMPLES, share)
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    if np.isclose(low, high, rtol=1e-12, atol=1e-15):  # equal but for the rounding of a sum
        return Interval(None, None, method, level, Undefined.COLLAPSED, share)
    return Interval(float(low), float(high), method, level, None, share)
