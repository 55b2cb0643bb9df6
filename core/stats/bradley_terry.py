"""Ranking of candidates from pairwise verdicts, with the effect of the slot."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import statsmodels.api as sm
from scipy import sparse, special, stats
from statsmodels.tools.sm_exceptions import PerfectSeparationWarning

from core.stats.common import Estimate, Floats, Ints, Undefined, undefined
from core.stats.logistic import cluster_covariance, coefficient, separated
from core.stats.proportions import clopper_pearson
from core.stats.two_raters import TestResult


@dataclass(frozen=True, slots=True)
class BradleyTerry:
    """A fitted Bradley-Terry model on the log-odds scale.

    Attributes:
        abilities: Ability of each candidate minus that of the reference candidate, whose own is 0 by definition.
        slot: Log-odds that the first slot wins between equals; None when the model has no slot effect.
        slot_test: Test of "no slot effect": likelihood ratio, or cluster-robust Wald when clusters were given.
        first_share: Plain share of verdicts the first slot won, Clopper-Pearson interval; defined where the fit is not.
    """

    abilities: tuple[Estimate, ...]
    slot: Estimate | None
    slot_test: TestResult | None
    first_share: Estimate


def bradley_terry(
    first: Ints,
    second: Ints,
    first_wins: Ints,
    second_wins: Ints,
    *,
    candidates: int,
    reference: int = 0,
    slot: bool = True,
    clusters: Ints | None = None,
) -> BradleyTerry:
    """Bradley-Terry model as a binomial GLM (statsmodels): logit P(first wins) = slot + ability_first - ability_second.

    Ties are no verdicts here: leave them out. Undefined (separation) when some candidates or a slot always win, so that
    no finite fit exists; undefined (singular) when the candidates fall into groups never compared, or when no pair was
    shown in both orders and nothing else tells slot from ability.

    Args:
        first: Candidate index in slot 1, shape (rows,).
        second: Candidate index in slot 2.
        first_wins: Verdicts of the row for slot 1: counts, or 0 and 1.
        second_wins: Verdicts of the row for slot 2.
        candidates: Number of candidates.
        reference: Candidate whose ability is 0.
        slot: Fit the slot effect as intercept (Agresti 2002, 10.6).
        clusters: Item of each row for cluster-robust errors.
    """
    cell, inverse = np.unique(first * candidates + second, return_inverse=True)
    wins = np.bincount(inverse, weights=first_wins, minlength=len(cell)).astype(float)
    losses = np.bincount(inverse, weights=second_wins, minlength=len(cell)).astype(float)
    design = _design(cell // candidates, cell % candidates, candidates, reference=reference, slot=slot).toarray()
    n = int(first_wins.sum() + second_wins.sum())
    share = clopper_pearson(int(first_wins.sum()), n)
    reason = _obstacle(design, wins, losses)
    if reason is not None:
        return _undefined_fit(reason, n, candidates, share, slot=slot)
    fit = _fit(wins, losses, design)
    covariance, groups = np.asarray(fit.cov_params()), None
    if clusters is not None:
        rows = _design(first, second, candidates, reference=reference, slot=slot)
        expected = (first_wins + second_wins) * special.expit(rows @ fit.params)
        covariance, groups = cluster_covariance(covariance, rows, first_wins - expected, clusters)
    errors = np.sqrt(np.diag(covariance))
    found = [coefficient(value, error, n, clusters=groups) for value, error in zip(fit.params, errors, strict=True)]
    abilities = found[1:] if slot else list(found)
    abilities.insert(reference, Estimate(0.0, n))
    if not slot:
        return BradleyTerry(tuple(abilities), None, None, share)
    test = (
        _likelihood_ratio(fit.deviance, wins, losses, design[:, 1:], n)
        if groups is None
        else _wald(fit.params[0], errors[0], n, groups)
    )
    return BradleyTerry(tuple(abilities), found[0], test, share)


def _design(first: Ints, second: Ints, candidates: int, *, reference: int, slot: bool) -> sparse.csr_array:
    """Intercept if asked, then +1 for the candidate in slot 1 and -1 for the one in slot 2, reference dropped."""
    rows, ones = np.arange(len(first)), np.ones(len(first))
    columns = np.concatenate([np.zeros(len(first), dtype=np.int64), first + 1, second + 1])
    full = sparse.csr_array(
        (np.concatenate([ones, ones, -ones]), (np.tile(rows, 3), columns)), shape=(len(first), candidates + 1)
    )
    kept = [column for column in range(candidates + 1) if column != reference + 1 and (slot or column > 0)]
    return full[:, kept]


def _obstacle(design: Floats, wins: Floats, losses: Floats) -> Undefined | None:
    """Why the model cannot be fitted, if it cannot."""
    if wins.sum() + losses.sum() == 0:
        return Undefined.NO_DATA
    if np.linalg.matrix_rank(design) < design.shape[1]:
        return Undefined.SINGULAR
    return Undefined.SEPARATION if separated(design, wins > 0, losses > 0) else None


def _undefined_fit(reason: Undefined, n: int, candidates: int, share: Estimate, *, slot: bool) -> BradleyTerry:
    nothing = undefined(reason, n=n)
    test = TestResult(None, n, reason=reason)
    return BradleyTerry((nothing,) * candidates, nothing if slot else None, test if slot else None, share)


def _fit(wins: Floats, losses: Floats, design: Floats) -> Any:
    """Binomial GLM; as many parameters as rows leave no degree of freedom, by which statsmodels divides on the way.

    Such a model meets every row exactly, which statsmodels takes for separation; that was ruled out before.
    """
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", PerfectSeparationWarning)
        return sm.GLM(np.column_stack([wins, losses]), design, family=sm.families.Binomial()).fit()


def _likelihood_ratio(deviance: float, wins: Floats, losses: Floats, without: Floats, n: int) -> TestResult:
    """Deviance without the slot effect minus deviance with it."""
    smaller = _fit(wins, losses, without)
    return _chi2(float(smaller.deviance - deviance), n)


def _wald(value: float, error: float, n: int, groups: int) -> TestResult:
    if groups == 1:
        return TestResult(None, n, reason=Undefined.SINGLE_ITEM)
    return _chi2(float((value / error) ** 2), n)


def _chi2(statistic: float, n: int) -> TestResult:
    return TestResult(float(stats.chi2.sf(statistic, 1)), n, statistic, 1)
