"""Change of a judge between two snapshots over the same frozen items, paired item by item."""

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from core.stats.common import (
    FEWEST_ITEMS,
    MISSING,
    Estimate,
    Floats,
    Interval,
    Ints,
    Undefined,
    distinct_rows,
    undefined,
)
from core.stats.gate import ItemVerdicts, item_verdicts
from core.stats.means import item_mean
from core.stats.multiplicity import adjust_p
from core.stats.noise import FLOOR_UNKNOWN, NoiseFloor, excess_p_value, noise_floor
from core.stats.totals import ItemTotals, Repeated, item_totals, ratio
from core.stats.two_raters import TestResult, Weights, agreement_weights, mcnemar_exact, weighted_kappas

ALARM_LEVEL = 0.01
"""Family-wise level of the drift alarm: an unchanged judge alarms in about one comparison of a hundred."""

MOST_EXACT = 200
"""Changed items up to which Wilcoxon's p-value is exact."""

TOO_FEW_TO_CALL = "fewer than 10 items in both snapshots"

Counts = NDArray[np.integer]


class DriftOutcome(StrEnum):
    """What the comparison of two snapshots says."""

    DRIFT = "drift"
    NO_ALARM = "no alarm"
    NOT_MEASURABLE = "not measurable"


@dataclass(frozen=True, slots=True)
class PairedChange:
    """Change of the item means between two snapshots.

    Attributes:
        mean_a: Mean over items of the first snapshot's item means.
        mean_b: The same for the second, over the same items.
        change: mean_b - mean_a in score points, item bootstrap interval.
        raised: Items whose mean rose.
        lowered: Items whose mean fell.
        unchanged: Items whose mean is the same.
        items: Positions of the items scored in both, shape (n,).
        differences: Their change, shape (n,).
    """

    mean_a: Estimate
    mean_b: Estimate
    change: Estimate
    raised: int
    lowered: int
    unchanged: int
    items: Ints
    differences: Floats


@dataclass(frozen=True, slots=True)
class PassRateChange:
    """Change of a pass rate over paired items.

    Attributes:
        difference: (gained - lost) / n with its paired normal interval.
        standard_error: sqrt((gained + lost) / n - d^2) / sqrt(n); None without items.
        test: Exact McNemar test.
    """

    difference: Estimate
    standard_error: float | None
    test: TestResult


@dataclass(frozen=True, slots=True)
class GateChange:
    """Change of verdicts between two snapshots, one verdict an item each.

    Attributes:
        gained: Positions of the items that failed before and pass now.
        lost: Positions of the items that passed before and fail now.
        pass_rate: What that does to the pass rate.
    """

    gained: Ints
    lost: Ints
    pass_rate: PassRateChange


@dataclass(frozen=True, slots=True)
class DriftVerdict:
    """Whether two snapshots of a judge differ, over a family of three tests fixed in advance.

    Attributes:
        outcome: Drift when any adjusted p-value is below `alpha`.
        score: Wilcoxon test of the item means.
        gate: Test of the pass rate: exact McNemar with one repetition, else Wilcoxon on the items' pass shares.
        noise_p: Permutation p-value of disagreement beyond repetition noise; None when the floor is unknown.
        adjusted: Holm-adjusted p-values of the three, in this order.
        alpha: Family-wise level of the alarm.
        notes: Warnings to print beside it.
    """

    outcome: DriftOutcome
    score: TestResult
    gate: TestResult
    noise_p: float | None
    adjusted: tuple[float | None, ...]
    alpha: float
    notes: tuple[str, ...] = ()


def paired_change(
    counts_a: Counts, counts_b: Counts, levels: Floats, *, rng: np.random.Generator, level: float = 0.95
) -> PairedChange:
    """Compare item means: repetitions are averaged inside the item first, items in one snapshot only are left out.

    Args:
        counts_a: Scores of each item at each level in the first snapshot, shape (items, L).
        counts_b: The same items in the second.
        levels: Level values, shape (L,).
        rng: Seeded generator of the interval.
        level: Coverage.
    """
    means_a, means_b = item_means(counts_a, levels), item_means(counts_b, levels)
    change = _settled(means_b - means_a)
    items = np.flatnonzero(np.isfinite(change))
    differences = change[items]
    return PairedChange(
        _mean(means_a, items),
        _mean(means_b, items),
        item_mean(change, rng=rng, level=level),
        int((differences > 0).sum()),
        int((differences < 0).sum()),
        int((differences == 0).sum()),
        items,
        differences,
    )


def item_means(counts: Counts, levels: Floats) -> Floats:
    """Mean score of each item, shape (items,); nan where it has no score."""
    return ratio(counts @ levels, counts.sum(axis=1))


def wilcoxon_exact(differences: Floats) -> TestResult:
    """Wilcoxon signed-rank test, two-sided: zeros dropped, ties at their mid-ranks, signs flipped in every way.

    Exact up to `MOST_EXACT` changed items, by adding the items' ranks one at a time to the distribution of the rank
    sum; beyond that scipy's normal approximation with tie correction. No changed item: p = 1.

    Args:
        differences: Change of each item, shape (items,).
    """
    changed = differences[differences != 0]
    if len(differences) == 0:
        return TestResult(None, 0, reason=Undefined.NO_DATA)
    if len(changed) == 0:
        return TestResult(1.0, len(differences))
    if len(changed) > MOST_EXACT:
        found = stats.wilcoxon(changed, zero_method="wilcox", method="asymptotic")
        return TestResult(float(found.pvalue), len(differences), float(found.statistic))
    doubled = np.rint(2 * stats.rankdata(np.abs(changed))).astype(np.int64)
    chances = _sign_flip_distribution(doubled)
    up = int(doubled[changed > 0].sum())
    p = 2 * min(chances[: up + 1].sum(), chances[up:].sum())
    return TestResult(float(min(p, 1.0)), len(differences), min(up, int(doubled.sum()) - up) / 2)


def gate_change(pass_a: NDArray[np.generic], pass_b: NDArray[np.generic], *, level: float = 0.95) -> GateChange:
    """Compare verdicts, one an item and snapshot.

    Args:
        pass_a: 1 or True for pass, 0 or False for fail, MISSING for none, shape (items,).
        pass_b: The same items in the second snapshot.
        level: Coverage.
    """
    a, b = pass_a.astype(np.int64), pass_b.astype(np.int64)
    used = (a != MISSING) & (b != MISSING)
    gained, lost = np.flatnonzero(used & (a < b)), np.flatnonzero(used & (a > b))
    change = pass_rate_change(len(gained), len(lost), int(used.sum()), level=level)
    difference = replace(change.difference, left_out=int((~used).sum()))
    return GateChange(gained, lost, replace(change, difference=difference))


def pass_rate_change(gained: int, lost: int, n: int, *, level: float = 0.95) -> PassRateChange:
    """Change of a pass rate over n paired items (Agresti 2002, 10.1).

    Args:
        gained: Items that failed before and pass now.
        lost: Items that passed before and fail now.
        n: Items with both verdicts.
        level: Coverage.
    """
    if n == 0:
        return PassRateChange(undefined(Undefined.NO_DATA), None, TestResult(None, 0, reason=Undefined.NO_DATA))
    value = (gained - lost) / n
    error = float(np.sqrt(max((gained + lost) / n - value**2, 0.0) / n))
    interval = _paired_interval(value, error, n, level)
    return PassRateChange(Estimate(value, n, interval=interval), error, mcnemar_exact(gained, lost))


def majority_verdicts(counts: Counts, levels: Floats, gate: float) -> Ints:
    """Verdict of each item by the majority of its repetitions: 1, 0 (a tie fails), MISSING without scores."""
    verdicts = item_verdicts(counts, levels, gate)
    return np.where(verdicts.n == 0, MISSING, (2 * verdicts.passes > verdicts.n).astype(np.int64))


def gate_noise_floor(
    counts_a: Counts, counts_b: Counts, levels: Floats, gate: float, *, rng: np.random.Generator | None = None
) -> NoiseFloor:
    """Disagreement about the gate between two snapshots, and how much of it is repetition noise.

    Args:
        counts_a: Scores of each item at each level in the first snapshot, shape (items, L).
        counts_b: The same items in the second.
        levels: Level values, shape (L,).
        gate: Level value at and above which an item passes.
        rng: Asks for intervals.
    """
    return noise_floor(_pass_fail(counts_a, levels, gate), _pass_fail(counts_b, levels, gate), rng=rng)


def snapshot_kappa(
    counts_a: Counts,
    counts_b: Counts,
    levels: Floats,
    *,
    rng: np.random.Generator,
    weights: Weights = "quadratic",
) -> Estimate:
    """Weighted kappa between a repetition of one snapshot and one of the other, item bootstrap interval.

    An item adds every pair of its repetitions with weight 1 / (n_a n_b), so it counts once whatever its repetitions;
    with one repetition each this is Cohen's kappa. Undefined (no_variation) when both snapshots are constant.

    Args:
        counts_a: Scores of each item at each level in the first snapshot, shape (items, L).
        counts_b: The same items in the second.
        levels: Level values, shape (L,).
        rng: Seeded generator.
        weights: Agreement weights.
    """
    w = agreement_weights(levels, weights)
    totals = _cross_totals(counts_a, counts_b, rng)
    return totals.estimate(lambda sums: weighted_kappas(sums.reshape(*sums.shape[:-1], *w.shape), w))


def rank_correlation(counts_a: Counts, counts_b: Counts, levels: Floats, *, level: float = 0.95) -> Estimate:
    """Spearman's correlation of the item means, by scipy, with the interval of Bonett & Wright (2000).

    Undefined (no_variation) when either snapshot gives all items the same mean. Arguments as `snapshot_kappa`.
    """
    a, b = item_means(counts_a, levels), item_means(counts_b, levels)
    used = np.isfinite(a) & np.isfinite(b)
    a, b = _settled(a[used]), _settled(b[used])
    n, left_out = len(a), int((~used).sum())
    if n == 0:
        return undefined(Undefined.NO_DATA, left_out=left_out)
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return undefined(Undefined.NO_VARIATION, n=n, left_out=left_out)
    value = float(stats.spearmanr(a, b).statistic)
    method = "Bonett-Wright"
    if n < FEWEST_ITEMS:
        return Estimate(value, n, left_out, interval=Interval(None, None, method, level, Undefined.TOO_FEW_ITEMS))
    if abs(value) >= 1:
        return Estimate(value, n, left_out, interval=Interval(None, None, method, level, Undefined.COLLAPSED))
    half = stats.norm.ppf((1 + level) / 2) * np.sqrt((1 + value**2 / 2) / (n - 3))
    low, high = np.tanh(np.arctanh(value) + np.array([-half, half]))
    return Estimate(value, n, left_out, interval=Interval(float(low), float(high), method, level))


def drift_verdict(
    counts_a: Counts,
    counts_b: Counts,
    levels: Floats,
    gate: float,
    *,
    rng: np.random.Generator,
    alpha: float = ALARM_LEVEL,
) -> DriftVerdict:
    """Tell drift from repetition noise by three tests, Holm-adjusted: item means, pass rate, disagreement at the gate.

    Undefined tests leave the family. Below ten common items nothing is called.

    Args:
        counts_a: Scores of each item at each level in the first snapshot, shape (items, L).
        counts_b: The same items in the second.
        levels: Level values, shape (L,).
        gate: Level value at and above which an item passes.
        rng: Seeded generator of the permutations.
        alpha: Family-wise level of the alarm.
    """
    a, b = item_verdicts(counts_a, levels, gate), item_verdicts(counts_b, levels, gate)
    used = (a.n > 0) & (b.n > 0)
    means_a, means_b = item_means(counts_a[used], levels), item_means(counts_b[used], levels)
    score = wilcoxon_exact(_settled(means_b - means_a))
    gates = _gate_test(a, b)
    noise_p = excess_p_value(a.passes, a.n, b.passes, b.n, rng=rng)
    adjusted = adjust_p([score.p, gates.p, noise_p], method="holm")
    notes = () if noise_p is not None else (FLOOR_UNKNOWN,)
    if used.sum() < FEWEST_ITEMS:
        found = DriftOutcome.NOT_MEASURABLE
        notes = (TOO_FEW_TO_CALL, *notes)
    else:
        alarm = any(p is not None and p < alpha for p in adjusted)
        found = DriftOutcome.DRIFT if alarm else DriftOutcome.NO_ALARM
    return DriftVerdict(found, score, gates, noise_p, adjusted, alpha, notes)


def _mean(values: Floats, items: Ints) -> Estimate:
    left_out = len(values) - len(items)
    if len(items) == 0:
        return undefined(Undefined.NO_DATA, left_out=left_out)
    return Estimate(float(values[items].mean()), len(items), left_out)


def _gate_test(a: ItemVerdicts, b: ItemVerdicts) -> TestResult:
    used = (a.n > 0) & (b.n > 0)
    if (a.n[used] == 1).all() and (b.n[used] == 1).all():
        gained, lost = used & (a.passes < b.passes), used & (a.passes > b.passes)
        test = mcnemar_exact(int(gained.sum()), int(lost.sum()))
        return test if used.any() else TestResult(None, 0, reason=Undefined.NO_DATA)
    return wilcoxon_exact(_settled(b.pass_rate[used] - a.pass_rate[used]))


def _pass_fail(counts: Counts, levels: Floats, gate: float) -> Ints:
    verdicts = item_verdicts(counts, levels, gate)
    return np.column_stack([verdicts.passes, verdicts.n - verdicts.passes])


def _cross_totals(counts_a: Counts, counts_b: Counts, rng: np.random.Generator) -> ItemTotals:
    """Cross-tab of the repetition pairs, one item's pairs adding up to 1."""
    used = (counts_a.sum(axis=1) > 0) & (counts_b.sum(axis=1) > 0)
    distinct = distinct_rows(np.hstack([counts_a[used], counts_b[used]]))
    items = Repeated(distinct.rows, distinct.weights, int((~used).sum()), Undefined.NO_DATA)
    return item_totals(partial(_cross_cells, n_levels=counts_a.shape[1]), items, rng)


def _cross_cells(rows: Ints, n_levels: int) -> Floats:
    a, b = rows[:, :n_levels], rows[:, n_levels:]
    pairs = a[:, :, None] * b[:, None, :]
    return np.asarray(pairs.reshape(len(rows), n_levels**2) / (a.sum(axis=1) * b.sum(axis=1))[:, None])


def _settled(values: Floats) -> Floats:
    """Means of the same scores summed in another order differ in the last digits and must still tie."""
    return np.round(values, 9)


def _sign_flip_distribution(doubled_ranks: Ints) -> Floats:
    """Chance of every rank sum when each item's sign is a coin toss, indexed by the doubled sum."""
    chances = np.zeros(int(doubled_ranks.sum()) + 1)
    chances[0] = 1.0
    reached = 0
    for rank in doubled_ranks:
        reached += rank
        moved = chances[: reached + 1 - rank].copy()
        chances[: reached + 1] /= 2
        chances[rank : reached + 1] += moved / 2
    return chances


def _paired_interval(value: float, error: float, n: int, level: float) -> Interval:
    method = "paired normal"
    if n < FEWEST_ITEMS:
        return Interval(None, None, method, level, Undefined.TOO_FEW_ITEMS)
    if error == 0:
        return Interval(None, None, method, level, Undefined.COLLAPSED)
    half = float(stats.norm.ppf((1 + level) / 2) * error)
    return Interval(value - half, value + half, method, level)
