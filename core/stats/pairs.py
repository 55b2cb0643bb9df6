"""Every run against every other run: all pair statistics come out of one Gram matrix of one-hot scores."""

from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.stats.common import (
    FEWEST_ITEMS,
    MISSING,
    Bools,
    Estimate,
    Floats,
    Interval,
    Ints,
    Undefined,
    percentile_interval,
    undefined,
)
from core.stats.gate import passes
from core.stats.totals import GROUPS, bootstrap_words, ratio, unit_weights
from core.stats.two_raters import (
    TestResult,
    Weights,
    agreement_weights,
    cross_tab,
    kappas_from_margins,
    mcnemar_exact,
    weighted_kappas,
)

PAIR_DRAWS = 1_000
SPREAD_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

_CELLS_AT_ONCE = 80_000  # what fits a core's cache, which is twice as fast as large blocks
_ROWS_AT_ONCE = 100
_DRAWS_AT_ONCE = 250


@dataclass(frozen=True, slots=True)
class RunPairs:
    """Cross-tabs of all R(R - 1) / 2 pairs of runs, first before second.

    Attributes:
        runs: R, the number of runs.
        first: Column of the first run of each pair, shape (P,).
        second: Column of the second run.
        tables: Items at each pair of levels that both runs scored, shape (P, L, L), rows by the first run.
    """

    runs: int
    first: Ints
    second: Ints
    tables: Ints

    @property
    def n(self) -> Ints:
        """Items that both runs of each pair scored, shape (P,)."""
        return np.asarray(self.tables.sum(axis=(1, 2)))

    def matrix(self, figures: NDArray[np.number]) -> Floats:
        """Spread one figure a pair over a symmetric R x R matrix; nan on the diagonal, where there is no pair."""
        square = np.full((self.runs, self.runs), np.nan)
        square[self.first, self.second] = square[self.second, self.first] = figures
        return square


@dataclass(frozen=True, slots=True)
class PairKappas:
    """Cohen's kappa of every pair of runs.

    Attributes:
        values: Shape (P,), nan where undefined.
        defined: Where `values` holds a figure.
        reasons: Why a pair has none; None where it has one.
    """

    values: Floats
    defined: Bools
    reasons: tuple[Undefined | None, ...]


@dataclass(frozen=True, slots=True)
class Spread:
    """How far the pairs of runs lie apart; figures are None when no pair is defined.

    Attributes:
        mean: Mean over the defined pairs; never show it alone.
        minimum: Lowest pair.
        maximum: Highest pair.
        quantiles: The 5%, 25%, 50%, 75% and 95% quantiles.
        defined: Pairs with a figure.
        undefined: Pairs without.
    """

    mean: float | None
    minimum: float | None
    maximum: float | None
    quantiles: tuple[float, ...]
    defined: int
    undefined: int


@dataclass(frozen=True, slots=True)
class Transitions:
    """How verdicts change from one run to another, over the items both scored.

    Attributes:
        table: Rows pass, fail in the first run; columns pass, fail in the second.
        lost: Rows of the score matrix that passed first and failed then.
        gained: Rows that failed first and passed then.
        n: Items both runs scored.
        left_out: Items that one of them did not score.
        mcnemar: Exact test of lost against gained.
    """

    table: Ints
    lost: Ints
    gained: Ints
    n: int
    left_out: int
    mcnemar: TestResult


def run_pairs(codes: NDArray[np.integer], n_levels: int) -> RunPairs:
    """Cross-tabulate every pair of runs, over the items both scored.

    Args:
        codes: Level indices, shape (items, runs), MISSING where not scored.
        n_levels: L, levels of the rubric.
    """
    runs = codes.shape[1]
    first, second = np.triu_indices(runs, 1)
    gram = np.zeros((1, runs * n_levels, runs * n_levels))
    step = max(_ROWS_AT_ONCE, _CELLS_AT_ONCE // max(1, runs * n_levels) // _ROWS_AT_ONCE * _ROWS_AT_ONCE)
    for start in range(0, len(codes), step):
        gram += _grams(_blocks(codes[start : start + step], _ROWS_AT_ONCE), n_levels).sum(axis=0, dtype=float)
    return RunPairs(runs, first, second, _pair_tables(gram, runs)[0].astype(np.int64))


def pair_exact_agreement(pairs: RunPairs) -> Floats:
    """Share of items at the same level, shape (P,); nan where the runs share no item."""
    return ratio(np.trace(pairs.tables, axis1=1, axis2=2), pairs.n)


def pair_within_one_agreement(pairs: RunPairs) -> Floats:
    """Share of items at most one level step apart, shape (P,); nan where the runs share no item.

    A step is one place in the rubric, whatever the values of the two levels.
    """
    steps = np.arange(pairs.tables.shape[1])
    close = np.abs(steps[:, None] - steps[None, :]) <= 1
    return ratio(pairs.tables[:, close].sum(axis=1), pairs.n)


def pair_flip_shares(pairs: RunPairs, levels: Floats, gate: float) -> Floats:
    """Share of items with different verdicts at the gate, shape (P,); nan where the runs share no item."""
    passing = passes(levels, gate)
    changed = passing[:, None] != passing[None, :]
    return ratio(pairs.tables[:, changed].sum(axis=1), pairs.n)


def pair_kappas(pairs: RunPairs, levels: Floats, *, weights: Weights = "quadratic") -> PairKappas:
    """Cohen's kappa of every pair, weighted by level value; edge rules as `two_raters.cohens_kappa`.

    Args:
        pairs: Cross-tabs of the pairs.
        levels: Level values, shape (L,).
        weights: Agreement weights.
    """
    return _kappas(pairs, agreement_weights(levels, weights))


def spread(figures: Floats) -> Spread:
    """Summarise one figure a pair, shape (P,); undefined pairs (nan) are counted and left out."""
    defined = figures[np.isfinite(figures)]
    missing = len(figures) - len(defined)
    if not len(defined):
        return Spread(None, None, None, (), 0, missing)
    quantiles = tuple(float(q) for q in np.quantile(defined, SPREAD_QUANTILES))
    return Spread(float(defined.mean()), float(defined.min()), float(defined.max()), quantiles, len(defined), missing)


def pair_table(codes: NDArray[np.integer], i: int, j: int, n_levels: int) -> Ints:
    """Full cross-tab of runs i (rows) and j (columns) over the rubric's levels, shape (L, L)."""
    return cross_tab(codes[:, i], codes[:, j], n_levels)


def transitions(codes: NDArray[np.integer], i: int, j: int, levels: Floats, gate: float) -> Transitions:
    """Verdicts that changed between runs i and j, and the items behind each direction.

    Args:
        codes: Level indices, shape (items, runs), MISSING where not scored.
        i: Column of the first run.
        j: Column of the second run.
        levels: Level values, shape (L,).
        gate: Level value at and above which an item passes.
    """
    both = (codes[:, i] != MISSING) & (codes[:, j] != MISSING)
    passing = passes(levels, gate)
    before, after = passing[codes[:, i]], passing[codes[:, j]]
    lost, gained = np.flatnonzero(both & before & ~after), np.flatnonzero(both & ~before & after)
    kept = int((both & before & after).sum())
    n = int(both.sum())
    table = np.array([[kept, len(lost)], [len(gained), n - kept - len(lost) - len(gained)]])
    return Transitions(table, lost, gained, n, len(codes) - n, mcnemar_exact(len(lost), len(gained)))


def mean_pair_kappa(
    codes: NDArray[np.integer],
    levels: Floats,
    *,
    weights: Weights = "quadratic",
    rng: np.random.Generator | None = None,
    draws: int = PAIR_DRAWS,
    level: float = 0.95,
) -> Estimate:
    """Mean of Cohen's kappa over all pairs of runs; show it with its `spread`.

    Pairs without a kappa are left out of the mean, here and in each resample, and noted. Items are resampled; above
    2,000 items they are bundled at random into 2,000 groups and the groups are resampled. Undefined
    (no_variation) when no pair has a kappa.

    Args:
        codes: Level indices, shape (items, runs), MISSING where not scored.
        levels: Level values, shape (L,).
        weights: Agreement weights, by level value.
        rng: Asks for an item bootstrap interval.
        draws: Number of resamples.
        level: Coverage.
    """
    scored_twice = (codes != MISSING).sum(axis=1) >= 2
    items = int(scored_twice.sum())
    left_out = len(codes) - items
    if items == 0:
        once = (codes != MISSING).any()
        return undefined(Undefined.SINGLE_REPETITION if once else Undefined.NO_DATA, left_out=left_out)
    used, seen = _seen_levels(codes[scored_twice], len(levels))
    agreement = agreement_weights(levels, weights)[np.ix_(seen, seen)]
    kappas = _kappas(run_pairs(used, len(seen)), agreement)
    missing = int((~kappas.defined).sum())
    notes = (f"{missing} of {len(kappas.values)} pairs of runs have no kappa",) if missing else ()
    if not kappas.defined.any():
        return undefined(Undefined.NO_VARIATION, n=items, left_out=left_out, notes=notes)
    interval = None
    if rng is not None:
        interval = _mean_kappa_interval(used, agreement, rng, draws=draws, level=level)
    return Estimate(float(kappas.values[kappas.defined].mean()), items, left_out, None, interval, notes)


def _kappas(pairs: RunPairs, agreement: Floats) -> PairKappas:
    values = weighted_kappas(pairs.tables.astype(float), agreement)
    defined = np.isfinite(values)
    without = {True: Undefined.NO_DATA, False: Undefined.NO_VARIATION}
    reasons = tuple(
        None if known else without[n == 0] for known, n in zip(defined.tolist(), pairs.n.tolist(), strict=True)
    )
    return PairKappas(values, defined, reasons)


def _seen_levels(codes: NDArray[np.integer], n_levels: int) -> tuple[NDArray[np.integer], Ints]:
    """Codes renumbered over the levels that occur, and those levels; a 0 to 100 scale shrinks most."""
    seen = np.flatnonzero(np.bincount(codes[codes != MISSING], minlength=n_levels))
    numbers = np.full(n_levels + 1, MISSING, codes.dtype)  # the last place is what MISSING, -1, points at
    numbers[seen] = np.arange(len(seen))
    return numbers[codes], seen


class _Groups(NamedTuple):
    """What the kappa of every pair needs of each group of items.

    Attributes:
        credit: Sum of agreement weights, shape (groups, P).
        rows: Items at each level by the first run, shape (groups, P * L).
        columns: Items at each level by the second run.
    """

    credit: Floats
    rows: NDArray[np.float32]
    columns: NDArray[np.float32]


def _one_hot(codes: NDArray[np.integer], n_levels: int) -> NDArray[np.float32]:
    """Indicator of every level, shape (..., L, runs); float32 counts whole numbers exactly up to 16 million."""
    chosen: Bools = codes[..., None, :] == np.arange(n_levels, dtype=codes.dtype)[:, None]
    return chosen.astype(np.float32)


def _mean_kappa_interval(
    codes: NDArray[np.integer], agreement: Floats, rng: np.random.Generator, *, draws: int, level: float
) -> Interval:
    method = bootstrap_words(draws, bundled=len(codes) > GROUPS)
    if len(codes) < FEWEST_ITEMS:
        return Interval(None, None, method, level, Undefined.TOO_FEW_ITEMS)
    groups = _group_sums(_grouped(codes, rng), agreement)
    count = len(groups.credit)
    sizes = [min(_DRAWS_AT_ONCE, draws - start) for start in range(0, draws, _DRAWS_AT_ONCE)]
    means = [_mean_kappas(unit_weights(count, rng, draws=size), groups, agreement) for size in sizes]
    return percentile_interval(np.concatenate(means), method=method, level=level)


def _grouped(codes: NDArray[np.integer], rng: np.random.Generator) -> NDArray[np.integer]:
    """Items, or random groups of items of equal size, shape (groups, size, runs)."""
    if len(codes) <= GROUPS:
        return codes[:, None, :]
    size = -(-len(codes) // GROUPS)
    return rng.permutation(_blocks(codes, size * GROUPS)[0]).reshape(GROUPS, size, codes.shape[1])


def _blocks(codes: NDArray[np.integer], size: int) -> NDArray[np.integer]:
    """Items in blocks, shape (blocks, size, runs); places left over are MISSING."""
    count = -(-len(codes) // size)
    padded = np.full((count * size, codes.shape[1]), MISSING, codes.dtype)
    padded[: len(codes)] = codes
    return padded.reshape(count, size, codes.shape[1])


def _grams(groups: NDArray[np.integer], n_levels: int) -> NDArray[np.float32]:
    """Gram matrix of the one-hot scores of each group, shape (groups, L * runs, L * runs).

    Small products of an array with its copy: numpy hands X.T @ X to a symmetric routine, and large products to several
    threads, and both stall a hundredfold where other processes keep the cores busy.
    """
    count, size, runs = groups.shape
    width = n_levels * runs
    parts = []
    for start in range(0, size, _ROWS_AT_ONCE):
        part = groups[:, start : start + _ROWS_AT_ONCE]
        scores = _one_hot(part, n_levels).reshape(count, part.shape[1], width)
        parts.append(scores.transpose(0, 2, 1) @ scores.copy())
    return reduce(np.add, parts)


def _group_sums(groups: NDArray[np.integer], agreement: Floats) -> _Groups:
    count, size, runs = groups.shape
    n_levels = len(agreement)
    pairs = runs * (runs - 1) // 2
    credit = np.empty((count, pairs))
    rows, columns = (np.empty((count, pairs, n_levels), np.float32) for _ in range(2))
    width = runs * n_levels
    step = max(1, _CELLS_AT_ONCE // (width * max(size, width)))
    for start in range(0, count, step):
        part = slice(start, start + step)
        tables = _pair_tables(_grams(groups[part], n_levels), runs)
        credit[part] = (tables.reshape(-1, n_levels**2) @ agreement.reshape(-1)).reshape(-1, pairs)
        rows[part], columns[part] = tables.sum(axis=-1), tables.sum(axis=-2)
    return _Groups(credit, rows.reshape(count, -1), columns.reshape(count, -1))


def _pair_tables(grams: NDArray[np.floating], runs: int) -> NDArray[np.floating]:
    """Cut the cross-tab of every pair of runs out of Gram matrices, shape (groups, P, L, L)."""
    n_levels = grams.shape[-1] // runs
    first, second = np.triu_indices(runs, 1)
    tables = grams.reshape(-1, n_levels, runs, n_levels, runs)[:, :, first, :, second]
    return np.ascontiguousarray(np.moveaxis(tables, 0, 1))


def _mean_kappas(weights: Floats, groups: _Groups, agreement: Floats) -> Floats:
    """Mean kappa over the pairs that have one, for each resample of groups; nan where no pair has."""
    shape = len(weights), groups.credit.shape[1], len(agreement)
    counts = weights.astype(np.float32)
    rows, columns = ((counts @ margin).reshape(shape).astype(float) for margin in (groups.rows, groups.columns))
    kappas = kappas_from_margins(weights @ groups.credit, rows, columns, agreement)
    defined = np.isfinite(kappas)
    return ratio(np.where(defined, kappas, 0).sum(axis=1), defined.sum(axis=1))
