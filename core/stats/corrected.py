"""Pass rate of unlabelled items, corrected for the judge's errors on labelled ones."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import stats

from core.stats.calibration import Confusion
from core.stats.common import FEWEST_ITEMS, Estimate, Floats, Interval, Undefined, undefined

CHANCE = (
    "no correction: sensitivity + specificity is at most 1, so the judge tells pass from fail no better than chance"
)
WEAK = "sensitivity + specificity is below 1.2: the correction multiplies every error by more than 5"
CLIPPED = "the corrected rate lay outside [0, 1] and was clipped"
RANDOM_LABELS = "assumes labels drawn at random from the items the judge scored"
SAME_ERRORS = "assumes that sensitivity and specificity carry over to the unlabelled items"

_WEAK_SUM = 1.2


class RoganGladen(NamedTuple):
    """A corrected rate before and after clipping.

    Attributes:
        raw: (p + spec - 1) / (sens + spec - 1); None when refused.
        shown: The same, clipped to [0, 1].
        reason: Why there is none.
        notes: Warnings to print beside it.
    """

    raw: float | None
    shown: float | None
    reason: Undefined | None
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CorrectedRate:
    """Pass rate of unlabelled items after Rogan & Gladen.

    Attributes:
        estimate: Clipped rate over the unlabelled items, with the interval of Lee et al.; notes carry the warnings.
        raw: The rate before clipping; None when refused.
        standard_error: Delta-method standard error of `raw`; None when refused.
        labels: Labelled items it was calibrated on.
    """

    estimate: Estimate
    raw: float | None
    standard_error: float | None
    labels: int


@dataclass(frozen=True, slots=True)
class Ppi:
    """A mean by prediction-powered inference.

    Attributes:
        estimate: Mean over the population, normal interval; n is the labelled items.
        weight: How much the judge's scores count, lambda: 1 plain, 0 the labels alone.
        standard_error: Its standard error; None when undefined.
    """

    estimate: Estimate
    weight: float | None
    standard_error: float | None


def rogan_gladen(p: float, sens: float, spec: float) -> RoganGladen:
    """Corrected rate (p + spec - 1) / (sens + spec - 1), Rogan & Gladen (1978).

    Refused (singular) when sens + spec <= 1, warned about below 1.2, clipped to [0, 1] with a note.

    >>> round(rogan_gladen(23 / 150, 0.96, 0.89).raw, 4)
    0.051
    """
    slope = sens + spec - 1
    if slope <= 0:
        return RoganGladen(None, None, Undefined.SINGULAR, (CHANCE,))
    raw = (p + spec - 1) / slope
    shown = min(1.0, max(0.0, raw))
    said = {WEAK: sens + spec < _WEAK_SUM, CLIPPED: shown != raw}
    return RoganGladen(raw, shown, None, tuple(note for note, holds in said.items() if holds))


def rogan_gladen_se(p: float, sens: float, spec: float, *, n: int, human_passes: int, human_fails: int) -> float:
    """Delta-method standard error of the corrected rate, with the errors of all three rates.

    Args:
        p: Judge's pass rate over n unlabelled items.
        sens: Sensitivity over `human_passes` labelled items.
        spec: Specificity over `human_fails` labelled items.
        n: Unlabelled items.
        human_passes: Labelled items that people pass.
        human_fails: Labelled items that people fail.
    """
    slope = sens + spec - 1
    theta = (p + spec - 1) / slope
    variance = (
        p * (1 - p) / n
        + (1 - theta) ** 2 * spec * (1 - spec) / human_fails
        + theta**2 * sens * (1 - sens) / human_passes
    )
    return float(np.sqrt(variance) / slope)


def lee_interval(
    p: float, sens: float, spec: float, *, n: int, human_passes: int, human_fails: int, level: float = 0.95
) -> Interval:
    """Interval of the corrected rate by Lee et al. (2025, arXiv 2511.21140), clipped to [0, 1].

    All three rates get pseudo-counts, and the centre moves by what the curvature adds. Arguments as
    `rogan_gladen_se`. Without limits (singular) when the rates with pseudo-counts add up to 1 or less.
    """
    z = float(stats.norm.ppf((1 + level) / 2))
    method = "Lee et al. 2025"
    n_1 = n + z**2
    p_1 = (n * p + z**2 / 2) / n_1
    sens_1 = (human_passes * sens + 1) / (human_passes + 2)
    spec_1 = (human_fails * spec + 1) / (human_fails + 2)
    if sens_1 + spec_1 <= 1:
        return Interval(None, None, method, level, Undefined.SINGULAR)
    theta = (p_1 + spec_1 - 1) / (sens_1 + spec_1 - 1)
    fails, passes = spec_1 * (1 - spec_1) / (human_fails + 2), sens_1 * (1 - sens_1) / (human_passes + 2)
    shift = 2 * z**2 * (theta * passes - (1 - theta) * fails)
    variance = p_1 * (1 - p_1) / n_1 + (1 - theta) ** 2 * fails + theta**2 * passes
    half = z * np.sqrt(variance) / (sens_1 + spec_1 - 1)
    low, high = np.clip([theta + shift - half, theta + shift + half], 0, 1)
    return Interval(float(low), float(high), method, level)


def corrected_pass_rate(judge_passes: int, n: int, labelled: Confusion, *, level: float = 0.95) -> CorrectedRate:
    """Pass rate people would give n unlabelled items, from the judge's pass rate and its errors on labelled ones.

    Undefined (no_denominator) when the labels hold no human pass or no human fail, or n is 0; refused (singular) when
    the judge is no better than chance. An interval of [0, 1] is said in words: so many labels cannot calibrate a judge.

    Args:
        judge_passes: Unlabelled items the judge passes.
        n: Unlabelled items.
        labelled: Confusion on independent labelled items.
        level: Coverage.
    """
    if n == 0 or labelled.human_passes == 0 or labelled.human_fails == 0:
        return CorrectedRate(undefined(Undefined.NO_DENOMINATOR, n=n), None, None, labelled.n)
    p, sens, spec = judge_passes / n, labelled.tp / labelled.human_passes, labelled.tn / labelled.human_fails
    found = rogan_gladen(p, sens, spec)
    if found.reason is not None:
        return CorrectedRate(undefined(found.reason, n=n, notes=found.notes), None, None, labelled.n)
    passes, fails = labelled.human_passes, labelled.human_fails
    interval = lee_interval(p, sens, spec, n=n, human_passes=passes, human_fails=fails, level=level)
    notes = (*found.notes, SAME_ERRORS)
    if interval.low is None or (interval.low, interval.high) == (0.0, 1.0):
        notes = (cannot_calibrate(labelled.n), *notes)
    error = rogan_gladen_se(p, sens, spec, n=n, human_passes=passes, human_fails=fails)
    return CorrectedRate(Estimate(found.shown, n, interval=interval, notes=notes), found.raw, error, labelled.n)


def cannot_calibrate(labels: int) -> str:
    """Said when the interval is as wide as it can be."""
    return f"{labels} labels cannot calibrate a judge"


def ppi_mean(
    human: Floats, judge_labelled: Floats, judge_unlabelled: Floats, *, tuned: bool = False, level: float = 0.95
) -> Ppi:
    """Mean of human scores over all items: judge's mean on unlabelled items plus its mean error on labelled ones.

    theta = lambda mean(judge, unlabelled) + mean(human - lambda judge, labelled); variance the sum of the two variances
    over N and n (Angelopoulos et al. 2023). Works for scores and for passes as 0 and 1. Undefined (no_data) when
    either part is empty; without an interval below ten labels.

    Args:
        human: Human scores of the labelled items, shape (n,).
        judge_labelled: Judge's scores of the same items.
        judge_unlabelled: Judge's scores of the others, shape (N,).
        tuned: PPI++: lambda is chosen to minimise the variance and kept in [0, 1].
        level: Coverage.
    """
    n, m = len(human), len(judge_unlabelled)
    if n == 0 or m == 0:
        return Ppi(undefined(Undefined.NO_DATA, n=n), None, None)
    weight = _tuned_weight(human, judge_labelled, judge_unlabelled) if tuned else 1.0
    rectifier = human - weight * judge_labelled
    value = float(weight * judge_unlabelled.mean() + rectifier.mean())
    error = float(np.sqrt(weight**2 * judge_unlabelled.var() / m + rectifier.var() / n))
    method = "PPI++" if tuned else "PPI"
    half = float(stats.norm.ppf((1 + level) / 2)) * error
    interval = Interval(value - half, value + half, method, level)
    if n < FEWEST_ITEMS or error == 0:
        reason = Undefined.TOO_FEW_ITEMS if n < FEWEST_ITEMS else Undefined.COLLAPSED
        interval = Interval(None, None, method, level, reason)
    return Ppi(Estimate(value, n, interval=interval, notes=(RANDOM_LABELS,)), weight, error)


def _tuned_weight(human: Floats, judge_labelled: Floats, judge_unlabelled: Floats) -> float:
    """cov(human, judge) / ((1 + n / N) var(judge)), in [0, 1] (Angelopoulos, Duchi & Zrnic 2023); as ppi_py has it."""
    everything = np.concatenate([judge_labelled, judge_unlabelled])
    spread = everything.var(ddof=1)
    if spread == 0:
        return 0.0
    covariance = ((human - human.mean()) * (judge_labelled - judge_labelled.mean())).mean()
    return float(np.clip(covariance / ((1 + len(human) / len(judge_unlabelled)) * spread), 0, 1))
