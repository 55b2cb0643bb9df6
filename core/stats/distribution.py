"""Distances between two distributions of scores over the levels of one rubric."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from core.stats.common import Floats, Undefined

Counts = NDArray[np.integer]

SMALL_PSI, LARGE_PSI = 0.10, 0.25
"""Siddiqi's conventions, not tests: below the first a small change, above the second a large one."""


@dataclass(frozen=True, slots=True)
class Distances:
    """How far the scores of b lie from those of a.

    Attributes:
        wasserstein: Wasserstein-1 distance in score points.
        cliffs_delta: P(b > a) - P(b < a) for a random score of each; positive when b scores higher.
        ks: Largest difference of the cumulative shares. It has no p-value here, as scores tie.
        psi: Population stability index, sum of (p - q) ln(p / q).
        psi_without_change: Size of the index to expect when nothing changed, (k - 1)(1/n + 1/m).
        psi_smoothed: A level was empty, so 0.5 was added to every level of both sides.
        reason: Why all of these are None.
    """

    wasserstein: float | None
    cliffs_delta: float | None
    ks: float | None
    psi: float | None
    psi_without_change: float | None
    psi_smoothed: bool = False
    reason: Undefined | None = None


def distances(counts_a: Counts, counts_b: Counts, levels: Floats) -> Distances:
    """Every distance between two score distributions; undefined (no_data) when one side holds no score.

    Args:
        counts_a: Scores at each level, shape (L,).
        counts_b: The same for the other side.
        levels: Level values, shape (L,), in any order.
    """
    if counts_a.sum() == 0 or counts_b.sum() == 0:
        return Distances(None, None, None, None, None, reason=Undefined.NO_DATA)
    return Distances(
        wasserstein(counts_a, counts_b, levels),
        cliffs_delta(counts_a, counts_b, levels),
        ks_distance(counts_a, counts_b, levels),
        psi(counts_a, counts_b),
        psi_without_change(counts_a, counts_b),
        _has_empty_level(counts_a, counts_b),
    )


def wasserstein(counts_a: Counts, counts_b: Counts, levels: Floats) -> float:
    """Wasserstein-1 distance in score points, by scipy; gaps between level values count."""
    return float(stats.wasserstein_distance(levels, levels, counts_a, counts_b))


def cliffs_delta(counts_a: Counts, counts_b: Counts, levels: Floats) -> float:
    """Cliff's delta (1993), P(b > a) - P(b < a); only the order of the levels counts."""
    order = np.argsort(levels)
    p, q = (counts[order] / counts.sum() for counts in (counts_a, counts_b))
    below = np.cumsum(p) - p
    above = 1 - np.cumsum(p)
    return float(q @ (below - above))


def ks_distance(counts_a: Counts, counts_b: Counts, levels: Floats) -> float:
    """Largest absolute difference of the two cumulative distributions."""
    order = np.argsort(levels)
    p, q = (np.cumsum(counts[order]) / counts.sum() for counts in (counts_a, counts_b))
    return float(np.abs(p - q).max())


def psi(counts_a: Counts, counts_b: Counts) -> float:
    """Population stability index, sum of (p - q) ln(p / q).

    When either side leaves a level empty, 0.5 is added to every level of both sides first.
    """
    extra = 0.5 if _has_empty_level(counts_a, counts_b) else 0.0
    p, q = ((counts + extra) / (counts + extra).sum() for counts in (counts_a, counts_b))
    return float(((p - q) * np.log(p / q)).sum())


def psi_without_change(counts_a: Counts, counts_b: Counts) -> float:
    """About how large the index is when nothing changed and scores are independent, (k - 1)(1/n + 1/m)."""
    return float((len(counts_a) - 1) * (1 / counts_a.sum() + 1 / counts_b.sum()))


def _has_empty_level(counts_a: Counts, counts_b: Counts) -> bool:
    return bool((counts_a == 0).any() or (counts_b == 0).any())
