"""Preference for length and for a judge's own family, as associations."""

from dataclasses import dataclass

import numpy as np
import statsmodels.api as sm
from numpy.typing import NDArray
from scipy import stats

from core.stats.common import Bools, Estimate, Floats, Interval, Ints, Undefined, undefined
from core.stats.logistic import FEW_CLUSTERS, FEW_CLUSTERS_NOTE, cluster_covariance, coefficient, separated
from core.stats.pairwise import UNSCORED, Verdicts
from core.stats.proportions import wilson

ASSOCIATION = "association: longer replies may also be better ones"


@dataclass(frozen=True, slots=True)
class LengthEffect:
    """How the verdict goes with length, on the log-odds scale.

    Attributes:
        slot: Log-odds that the first slot wins at equal length (and at an undecided human verdict, where known).
        slope: Change of the log-odds for one unit of length difference; noted as an association.
        human: Change of the log-odds when the human winner goes from undecided to slot 1; None without human verdicts.
    """

    slot: Estimate
    slope: Estimate
    human: Estimate | None


def length_effect(
    difference: Floats, verdicts: Verdicts, *, human: Verdicts | None = None, clusters: Ints | None = None
) -> LengthEffect:
    """Logistic regression of "slot 1 wins" on the length difference, with the slot as intercept (statsmodels Logit).

    Ties and unscored verdicts are left out, and rows without a human verdict where those are given. Undefined
    (separation) when length decides every verdict, (singular) when the lengths never differ. Without human verdicts the
    slope mixes quality and bias (Dubois et al. 2024).

    Args:
        difference: Length of slot 1 minus length of slot 2, shape (rows,); see `standardised_log_ratio`.
        verdicts: Verdict by slot, UNSCORED where there is none.
        human: Human verdict by slot: +1, 0, -1, UNSCORED where unknown.
        clusters: Item of each row for cluster-robust errors.
    """
    used = (verdicts != UNSCORED) & (np.sign(verdicts) != 0)
    used &= True if human is None else human != UNSCORED
    columns = [np.ones(int(used.sum())), difference[used]]
    columns += [] if human is None else [np.sign(human[used]).astype(float)]
    design, wins = np.column_stack(columns), verdicts[used] > 0
    n, left_out = len(wins), int((~used).sum())
    reason = _obstacle(design, wins)
    if reason is not None:
        nothing = undefined(reason, n=n, left_out=left_out, notes=(ASSOCIATION,))
        return LengthEffect(nothing, nothing, None if human is None else nothing)
    fit = sm.Logit(wins.astype(float), design).fit(disp=0)
    covariance, groups = fit.cov_params(), None
    if clusters is not None:
        covariance, groups = cluster_covariance(covariance, design, wins - fit.predict(), clusters[used])
    found = [
        coefficient(value, error, n, clusters=groups, left_out=left_out)
        for value, error in zip(fit.params, np.sqrt(np.diag(covariance)), strict=True)
    ]
    slope = found[1]
    noted = Estimate(slope.value, n, left_out, interval=slope.interval, notes=(ASSOCIATION, *slope.notes))
    return LengthEffect(found[0], noted, None if human is None else found[2])


def standardised_log_ratio(first: Floats, second: Floats) -> Floats:
    """Log length of slot 1 minus log length of slot 2, divided by its standard deviation, shape (rows,).

    Lengths must be positive. All 0 where the ratio never varies.
    """
    if (first <= 0).any() or (second <= 0).any():
        raise ValueError("lengths must be positive; leave empty candidates out")
    difference = np.log(first) - np.log(second)
    spread = difference.std(ddof=1) if len(difference) > 1 else 0.0
    return np.asarray(difference / spread if spread > 0 else np.zeros(len(difference)))


def longer_wins_share(difference: Floats, verdicts: Verdicts) -> Estimate:
    """Share of decided verdicts that chose the longer candidate, with its Wilson interval.

    Ties, unscored verdicts and equal lengths are left out. Give one verdict per pair, or the interval is too narrow.

    Args:
        difference: Length of slot 1 minus length of slot 2, shape (rows,).
        verdicts: Verdict by slot.
    """
    used = (verdicts != UNSCORED) & (np.sign(verdicts) != 0) & (difference != 0)
    longer = np.sign(verdicts[used]) == np.sign(difference[used])
    share = wilson(int(longer.sum()), len(longer))
    return Estimate(
        share.value, share.n, int((~used).sum()), share.reason, share.interval, notes=(ASSOCIATION, *share.notes)
    )


def length_matched(first: Floats, second: Floats, *, within: float = 0.1) -> Bools:
    """Pairs whose longer candidate is at most `within` longer than the shorter, shape (rows,)."""
    return np.asarray(np.maximum(first, second) <= (1 + within) * np.minimum(first, second))


def self_preference_did(
    outcomes: NDArray[np.number], own_judge: Bools, own_candidate: Bools, *, clusters: Ints | None = None
) -> Estimate:
    """Self-preference as a difference in differences, with a cluster-robust interval.

    (own judge on its own family minus on others) minus (reference judge on the same family minus on others): quality
    that both judges see cancels out (Panickssery et al. 2024). The error is that of the interaction in a saturated
    linear model, CR1 with t(G - 1).

    Args:
        outcomes: Win (1, 0, 0.5 for a tie) or score of each judgement, shape (rows,).
        own_judge: True for the judge under suspicion, False for the reference judge or people.
        own_candidate: True where the candidate is of the suspected judge's family.
        clusters: Item of each row; None takes each row as its own.

    Returns:
        The difference over rows; undefined (no_denominator) when one of the four cells is empty.
    """
    cell = 2 * own_judge.astype(np.int64) + own_candidate
    sizes = np.bincount(cell, minlength=4)
    n = len(outcomes)
    if (sizes == 0).any():
        return undefined(Undefined.NO_DENOMINATOR, n=n)
    means = np.bincount(cell, weights=outcomes, minlength=4) / sizes
    signs = np.array([1.0, -1.0, -1.0, 1.0])
    influence = (signs / sizes)[cell] * (outcomes - means[cell])
    _, index = np.unique(np.arange(n) if clusters is None else clusters, return_inverse=True)
    groups = int(index.max()) + 1
    notes = (FEW_CLUSTERS_NOTE,) if groups < FEW_CLUSTERS else ()
    interval = _cluster_interval(float(signs @ means), np.bincount(index, weights=influence).astype(float), n)
    return Estimate(float(signs @ means), n, interval=interval, notes=notes)


def _cluster_interval(value: float, influence: Floats, n: int) -> Interval:
    """Interval of a linear contrast of four means from the influence of each cluster."""
    groups, method = len(influence), "CR1, t on the items"
    if groups < 2 or n <= 4:
        return Interval(None, None, method, reason=Undefined.TOO_FEW_ITEMS)
    error = np.sqrt((influence**2).sum() * groups / (groups - 1) * (n - 1) / (n - 4))
    if error == 0:
        return Interval(None, None, method, reason=Undefined.COLLAPSED)
    half = float(stats.t.ppf(0.975, groups - 1) * error)
    return Interval(value - half, value + half, method)


def _obstacle(design: Floats, wins: Bools) -> Undefined | None:
    """Why the regression cannot be fitted, if it cannot."""
    if len(wins) == 0:
        return Undefined.NO_DATA
    if np.linalg.matrix_rank(design.T @ design) < design.shape[1]:
        return Undefined.SINGULAR
    extremes = _extremes(design, wins)
    held = wins[extremes]
    return Undefined.SEPARATION if separated(design[extremes], held, ~held) else None


def _extremes(design: Floats, wins: Bools) -> Ints:
    """Rows with the least and greatest length difference per outcome and human verdict: they decide separation."""
    rows = []
    groups = design[:, 2] if design.shape[1] > 2 else np.zeros(len(design))
    for group in np.unique(groups):
        for outcome in (False, True):
            members = np.flatnonzero((groups == group) & (wins == outcome))
            if len(members):
                lengths = design[members, 1]
                rows += [members[lengths.argmin()], members[lengths.argmax()]]
    return np.asarray(rows, dtype=np.int64)
