"""How often a release decision depends on which repetition happened to be looked at."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from core.stats.common import DRAWS, Bools, Estimate, Floats, Ints
from core.stats.totals import item_totals, ratio, repeated_items


@dataclass(frozen=True, slots=True)
class GateFlips:
    """Flips of the pass/fail verdict between repetitions, over the items with at least two scores.

    Attributes:
        gate: Level value at and above which an item passes.
        flip_rate: Mean over items of the probability that two repetitions disagree; the headline.
        standard_error: SD of the item values over sqrt(items); None below two items.
        pooled: Share of all repetition pairs that disagree; weighs heavily repeated items more.
        any_flip: Share of items with both verdicts; rises with the repetitions, so print their number beside it.
        fewest_repetitions: Smallest number of scores of an item; None without items.
        median_repetitions: Median number of scores.
        most_repetitions: Largest number of scores.
        no_flip_bound: When no item flipped, the 95% upper bound 1 - 0.05^(1 / items) on the share of items seen to
            flip; None otherwise.
    """

    gate: float
    flip_rate: Estimate
    standard_error: float | None
    pooled: Estimate
    any_flip: Estimate
    fewest_repetitions: int | None
    median_repetitions: float | None
    most_repetitions: int | None
    no_flip_bound: float | None


class GatePoint(NamedTuple):
    """Flips at one gate.

    Attributes:
        gate: Level value of the gate.
        flip_rate: Mean flip probability over items.
        any_flip: Share of items with both verdicts.
    """

    gate: float
    flip_rate: Estimate
    any_flip: Estimate


class ItemVerdicts(NamedTuple):
    """Verdicts of each item at a gate, one entry an item.

    Attributes:
        passes: Repetitions that pass.
        n: Scored repetitions.
        pass_rate: passes / n; nan without scores.
        flip_probability: Chance that two repetitions disagree; nan below two scores.
        straddles: Both verdicts occur.
    """

    passes: Ints
    n: Ints
    pass_rate: Floats
    flip_probability: Floats
    straddles: Bools


class MajorityVerdict(NamedTuple):
    """Chances of the majority verdict of m repetitions; a tie counts as fail where one verdict is needed.

    Attributes:
        passes: More than half pass.
        fails: More than half fail.
        ties: As many pass as fail; 0 for odd m.
    """

    passes: Floats
    fails: Floats
    ties: Floats


def passes(levels: Floats, gate: float) -> Bools:
    """Which levels pass: value at or above the gate, shape (L,)."""
    return np.asarray(np.asarray(levels) >= gate)


def flip_probability(k: ArrayLike, n: ArrayLike) -> Floats:
    """Unbiased probability that two repetitions of an item disagree, 2k(n - k) / (n(n - 1)).

    Args:
        k: Repetitions that pass, any shape.
        n: Scored repetitions; below two the result is nan, as one repetition cannot disagree with itself.

    >>> float(flip_probability(1, 10))
    0.2
    """
    k, n = np.asarray(k, float), np.asarray(n, float)
    return ratio(2 * k * (n - k), np.where(n < 2, 0, n * (n - 1)))


def item_verdicts(counts: NDArray[np.integer], levels: Floats, gate: float) -> ItemVerdicts:
    """Pass rate, flip probability and straddling of each item.

    Args:
        counts: Scores of each item at each level, shape (items, L).
        levels: Level values, shape (L,).
        gate: Level value at and above which an item passes.
    """
    n = counts.sum(axis=1).astype(np.int64)
    k = counts[:, passes(levels, gate)].sum(axis=1).astype(np.int64)
    return ItemVerdicts(k, n, ratio(k, n), flip_probability(k, n), (k > 0) & (k < n))


def gate_flips(
    counts: NDArray[np.integer],
    levels: Floats,
    gate: float,
    *,
    weights: Ints | None = None,
    rng: np.random.Generator | None = None,
    draws: int = DRAWS,
) -> GateFlips:
    """Estimate how often two repetitions of an item give different verdicts.

    The mean over items equals 1 minus Fleiss' observed agreement. Items with fewer than two scores are left out and
    counted.

    Args:
        counts: Scores of each item at each level, shape (items, L).
        levels: Level values, shape (L,).
        gate: Level value at and above which an item passes.
        weights: How many items each row of `counts` stands for, when the rows are distinct already.
        rng: Asks for item bootstrap intervals.
        draws: Number of resamples.
    """

    def features(rows: Ints) -> Floats:
        items = item_verdicts(rows, levels, gate)
        flips = items.flip_probability
        pairs = items.n * (items.n - 1) / 2
        return np.column_stack([np.ones(len(rows)), flips, flips**2, items.straddles, flips * pairs, pairs])

    items = repeated_items(counts, weights)
    totals = item_totals(features, items, rng, draws=draws)
    n = np.sort(np.repeat(items.rows.sum(axis=1), items.weights))
    any_flip = totals.estimate(lambda drawn: ratio(drawn[..., 3], drawn[..., 0]))
    return GateFlips(
        gate=gate,
        flip_rate=totals.estimate(lambda drawn: ratio(drawn[..., 1], drawn[..., 0])),
        standard_error=_standard_error(*totals.observed[:3]) if totals.items > 1 else None,
        pooled=totals.estimate(lambda drawn: ratio(drawn[..., 4], drawn[..., 5])),
        any_flip=any_flip,
        fewest_repetitions=int(n[0]) if len(n) else None,
        median_repetitions=float(np.median(n)) if len(n) else None,
        most_repetitions=int(n[-1]) if len(n) else None,
        no_flip_bound=zero_flip_upper_bound(totals.items) if any_flip.value == 0 else None,
    )


def flip_curve(
    counts: NDArray[np.integer],
    levels: Floats,
    *,
    weights: Ints | None = None,
    rng: np.random.Generator | None = None,
    draws: int = DRAWS,
) -> tuple[GatePoint, ...]:
    """Flips at every gate that can divide the items: each level above the lowest, in ascending order.

    Arguments as `gate_flips`; all gates share the same resamples, so the points can be compared.
    """
    gates = np.unique(levels)[1:]

    def features(rows: Ints) -> Floats:
        at_gates = [item_verdicts(rows, levels, gate) for gate in gates]
        flips, straddles = [v.flip_probability for v in at_gates], [v.straddles for v in at_gates]
        return np.column_stack([np.ones(len(rows)), *flips, *straddles])

    totals = item_totals(features, repeated_items(counts, weights), rng, draws=draws)

    def mean(feature: int) -> Estimate:
        return totals.estimate(lambda drawn: ratio(drawn[..., feature], drawn[..., 0]))

    return tuple(GatePoint(float(gate), mean(1 + i), mean(1 + len(gates) + i)) for i, gate in enumerate(gates))


def zero_flip_upper_bound(n: int, *, level: float = 0.95) -> float:
    """Upper bound 1 - (1 - level)^(1/n) of a share of which n trials showed nothing; exact, one-sided.

    For n repetitions of an item it bounds the minority verdict, for n items the share of items seen to flip.

    >>> round(zero_flip_upper_bound(5), 2)
    0.45
    """
    if n < 1:
        raise ValueError(f"a bound needs at least one trial, got {n}")
    return float(1 - (1 - level) ** (1 / n))


def majority_verdict(k: ArrayLike, n: ArrayLike, m: int) -> MajorityVerdict:
    """Chances of the majority verdict of m repetitions drawn without replacement from n stored ones.

    Args:
        k: Stored repetitions that pass, any shape.
        n: Stored repetitions; the result is nan where n < m.
        m: Repetitions that vote.
    """
    k, n = _votes(k, n, m)
    possible = n >= m
    drawn = stats.hypergeom(np.where(possible, n, m), np.where(possible, k, 0), m)
    more_pass, more_fail = drawn.sf(m // 2), drawn.cdf((m - 1) // 2)
    tied = drawn.pmf(m // 2) if m % 2 == 0 else np.zeros(possible.shape)
    return MajorityVerdict(*(np.where(possible, chance, np.nan) for chance in (more_pass, more_fail, tied)))


def majority_flip_disjoint(k: ArrayLike, n: ArrayLike, m: int) -> Floats:
    """Probability that two disjoint sets of m repetitions give different majority verdicts; a tie fails.

    For m = 1 this is `flip_probability`.

    Args:
        k: Stored repetitions that pass, any shape.
        n: Stored repetitions; the result is nan where n < 2m (use `majority_flip_iid` and say so).
        m: Repetitions that vote.
    """
    k, n = _votes(k, n, m)
    possible = n >= 2 * m
    n, k = np.where(possible, n, 2 * m)[..., None], np.where(possible, k, 0)[..., None]
    votes = np.arange(m // 2 + 1, m + 1)
    first_passes = stats.hypergeom.pmf(votes, n, k, m)
    second_fails = stats.hypergeom.cdf(m // 2, n - m, np.clip(k - votes, 0, n - m), m)
    return np.where(possible, 2 * np.sum(first_passes * second_fails, axis=-1), np.nan)


def majority_flip_iid(p: ArrayLike, m: int) -> Floats:
    """Flip rate 2P(1 - P) of the majority of m independent repetitions that each pass with probability p.

    With p estimated by k / n this is a plug-in figure and must be labelled as one.
    """
    majority = stats.binom.sf(m // 2, m, np.asarray(p, float))
    return np.asarray(2 * majority * (1 - majority))


def _standard_error(items: float, total: float, squares: float) -> float:
    variance = max(squares - total**2 / items, 0) / (items - 1)
    return float(np.sqrt(variance / items))


def _votes(k: ArrayLike, n: ArrayLike, m: int) -> tuple[Ints, Ints]:
    if m < 1:
        raise ValueError(f"at least one repetition must vote, got {m}")
    passed, stored = np.broadcast_arrays(np.asarray(k, np.int64), np.asarray(n, np.int64))
    if (passed < 0).any() or (passed > stored).any():
        raise ValueError("passes must lie between 0 and the stored repetitions")
    return passed, stored
