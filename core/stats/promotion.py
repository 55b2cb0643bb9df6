"""Is a candidate judge no worse than the baseline? Non-inferiority, equivalence and per-item gates."""

from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil

import numpy as np
from scipy import stats

from core.stats.common import Estimate, Floats, Interval, Ints, Undefined
from core.stats.means import item_mean

PROMOTION_LEVEL = 0.90
"""Two-sided coverage whose lower limit is the one-sided 95% limit of non-inferiority."""


class GateOutcome(StrEnum):
    """What a line of the promotion rule says."""

    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    INSUFFICIENT = "insufficient evidence"


@dataclass(frozen=True, slots=True)
class NonInferiority:
    """A difference against its margin.

    Attributes:
        outcome: Pass, fail or insufficient evidence.
        difference: Candidate minus baseline, with its 90% interval.
        margin: How much worse the candidate may be.
        higher_is_better: Whether worse means lower.
        items_needed: Items that would decide at the present difference and spread; None when it is decided, or when
            more items would not help.
    """

    outcome: GateOutcome
    difference: Estimate
    margin: float
    higher_is_better: bool
    items_needed: int | None


@dataclass(frozen=True, slots=True)
class Tost:
    """Two one-sided t-tests on paired differences.

    Attributes:
        p: Larger of the two; small when the difference lies inside the margin.
        p_lower: Test of "not below -margin", which is the non-inferiority test.
        p_upper: Test of "not above +margin".
        interval: Interval of the mean difference, 1 - 2 alpha.
        equivalent: The interval lies inside the margin; None when undefined.
        reason: Why the p-values are None.
    """

    p: float | None
    p_lower: float | None
    p_upper: float | None
    interval: Interval
    equivalent: bool | None
    reason: Undefined | None = None


@dataclass(frozen=True, slots=True)
class ItemGate:
    """A gate every item must pass on its own.

    Attributes:
        outcome: Fail as soon as one item is below; insufficient when none is below and some are missing or there are no
            items.
        failed: Items whose pass share is below the least one allowed.
        missing: Items without a score: not passes.
        passed: Items that pass.
    """

    outcome: GateOutcome
    failed: Ints
    missing: Ints
    passed: Ints


@dataclass(frozen=True, slots=True)
class RunsAtGate:
    """The figure of several runs against one gate.

    Attributes:
        passes: Runs at or above the gate.
        n: Runs with a figure.
        straddles: Both verdicts occur, so the decision depends on the run.
    """

    passes: int
    n: int
    straddles: bool


def paired_difference(
    candidate: Floats,
    baseline: Floats,
    *,
    span: float,
    rng: np.random.Generator,
    level: float = PROMOTION_LEVEL,
) -> Estimate:
    """Mean over items of candidate minus baseline, with an item bootstrap interval.

    Any figure that is a mean over items fits: agreement with people, false passes over the human fails, flip
    probability, within-item variance, score, unscored share, cost. When all differences are equal the bootstrap
    collapses; then the share of items that could differ is at most 1 - a^(1/n), a = (1 - level) / 2, and each moves the
    mean by at most `span` beyond what was seen.

    Args:
        candidate: Figure of each item under the candidate, shape (items,), nan where it has none.
        baseline: The same under the baseline.
        span: Largest difference one item can show.
        rng: Seeded generator.
        level: Coverage.
    """
    found = item_mean(candidate - baseline, rng=rng, level=level)
    if found.value is None or found.interval is None or found.interval.reason is not Undefined.COLLAPSED:
        return found
    reach = span * (1 - ((1 - level) / 2) ** (1 / found.n))
    limits = Interval(found.value - reach, found.value + reach, "no item differs: exact bound", level)
    return replace(found, interval=limits)


def non_inferiority(difference: Estimate, margin: float, *, higher_is_better: bool = True) -> NonInferiority:
    """A paired difference against a margin written beforehand.

    Pass when the limit on the worse side is better than the margin; fail when the whole interval is worse than it;
    otherwise, and without an interval, insufficient evidence.

    Args:
        difference: Candidate minus baseline with its two-sided 90% interval, as `paired_difference` gives it.
        margin: How much worse the candidate may be, 0 or more, in the units of the difference.
        higher_is_better: False for false passes, spread, flips, unscored share and cost.
    """
    if margin < 0:
        raise ValueError(f"a margin is 0 or more, got {margin}")
    sign = 1 if higher_is_better else -1
    limits = _limits(difference.interval, sign)
    if difference.value is None or limits is None:
        return NonInferiority(GateOutcome.INSUFFICIENT, difference, margin, higher_is_better, None)
    low, high = limits
    if low > -margin:
        return NonInferiority(GateOutcome.PASS, difference, margin, higher_is_better, None)
    if high < -margin:
        return NonInferiority(GateOutcome.FAIL, difference, margin, higher_is_better, None)
    room, half = sign * difference.value + margin, sign * difference.value - low
    needed = ceil(difference.n * (half / room) ** 2) + 1 if room > 0 else None
    return NonInferiority(GateOutcome.INSUFFICIENT, difference, margin, higher_is_better, needed)


def tost_paired(differences: Floats, margin: float, *, alpha: float = 0.05) -> Tost:
    """Two one-sided t-tests that a mean paired difference lies within +-margin (Schuirmann 1987), by scipy.

    Undefined below two items and when all differences are equal.

    Args:
        differences: Paired differences, shape (items,).
        margin: Half the width of what counts as unchanged.
        alpha: Equivalent when the 1 - 2 alpha interval lies inside the margin.
    """
    method, level = "paired t", 1 - 2 * alpha
    reason = Undefined.SINGLE_ITEM if len(differences) < 2 else Undefined.NO_VARIATION
    if len(differences) < 2 or np.ptp(differences) == 0:
        return Tost(None, None, None, Interval(None, None, method, level, reason), None, reason)
    lower = stats.ttest_1samp(differences, -margin, alternative="greater").pvalue
    upper = stats.ttest_1samp(differences, margin, alternative="less").pvalue
    low, high = stats.ttest_1samp(differences, 0).confidence_interval(level)
    inside = bool(-margin < low and high < margin)
    interval = Interval(float(low), float(high), method, level)
    return Tost(float(max(lower, upper)), float(lower), float(upper), interval, inside)


def item_gate(passes: Ints, scored: Ints, *, least: float) -> ItemGate:
    """Hold every item to its own pass share, so that one bad item cannot hide in a mean.

    Args:
        passes: Passing repetitions of each item, shape (items,).
        scored: Scored repetitions of each item; 0 is a missing item and no pass.
        least: Least pass share an item needs.
    """
    missing = scored == 0
    below = ~missing & (passes < least * scored)
    passed = ~missing & ~below
    outcome = GateOutcome.FAIL if below.any() else GateOutcome.PASS
    if outcome is GateOutcome.PASS and (missing.any() or len(scored) == 0):
        outcome = GateOutcome.INSUFFICIENT
    return ItemGate(outcome, np.flatnonzero(below), np.flatnonzero(missing), np.flatnonzero(passed))


def runs_at_gate(values: Floats, gate: float) -> RunsAtGate:
    """How many runs reach a gate.

    Args:
        values: Figure of each run, shape (runs,), nan where a run has none.
        gate: Value to reach.

    >>> runs_at_gate(np.array([0.62, 0.58, 0.61]), 0.60)
    RunsAtGate(passes=2, n=3, straddles=True)
    """
    defined = values[np.isfinite(values)]
    passes = int((defined >= gate).sum())
    return RunsAtGate(passes, len(defined), 0 < passes < len(defined))


def _limits(interval: Interval | None, sign: int) -> tuple[float, float] | None:
    """The interval on a scale where higher is better."""
    if interval is None or interval.low is None or interval.high is None:
        return None
    return (interval.low, interval.high) if sign > 0 else (-interval.high, -interval.low)
