"""A judge at a glance: the figures that the overview, the command line and the reports share."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.stats.common import Estimate, Floats, distinct_rows
from core.stats.dispersion import DispersionSummary, dispersion_summary, level_counts
from core.stats.gate import GateFlips, gate_flips
from core.stats.reliability import krippendorff_alpha
from core.stats.variance import OneWayIcc, VarianceComponents, icc_one_way, variance_components

SEED = 20260901
"""Of every interval on screen, so that the same data always shows the same limits."""


@dataclass(frozen=True, slots=True)
class JudgeHealth:
    """How much a judge wobbles on one criterion.

    Attributes:
        items: Items with at least one usable score.
        most_repetitions: Usable scores of the item that has most.
        dispersion: Spread within items.
        gate: Flips at the gate.
        alpha: Krippendorff's alpha, nominal, ordinal and interval, of repetitions with one another.
        icc: ICC(1,1) and ICC(1,k).
        components: Variance from items and from repetition.
    """

    items: int
    most_repetitions: int
    dispersion: DispersionSummary
    gate: GateFlips
    alpha_nominal: Estimate
    alpha_ordinal: Estimate
    alpha_interval: Estimate
    icc: OneWayIcc
    components: VarianceComponents


def judge_health(codes: NDArray[np.integer], levels: Floats, gate: float, *, seed: int = SEED) -> JudgeHealth:
    """All figures of a judge's wobble on one criterion, with seeded intervals.

    Args:
        codes: Level indices, shape (items, repetitions), -1 where there is no usable score.
        levels: Level values of the rubric, shape (L,).
        gate: The score at and above which an item passes.
        seed: Of the item bootstrap.
    """
    counts = level_counts(codes, len(levels))
    scored = counts.sum(axis=1)
    rows, weights, _ = distinct_rows(counts[scored > 0])

    def rng() -> np.random.Generator:
        return np.random.default_rng(seed)

    return JudgeHealth(
        items=int((scored > 0).sum()),
        most_repetitions=int(scored.max(initial=0)),
        dispersion=dispersion_summary(rows, levels, weights=weights, rng=rng()),
        gate=gate_flips(rows, levels, gate, weights=weights, rng=rng()),
        alpha_nominal=krippendorff_alpha(rows, levels, metric="nominal", weights=weights, rng=rng()),
        alpha_ordinal=krippendorff_alpha(rows, levels, metric="ordinal", weights=weights, rng=rng()),
        alpha_interval=krippendorff_alpha(rows, levels, metric="interval", weights=weights, rng=rng()),
        icc=icc_one_way(rows, levels, weights=weights),
        components=variance_components(rows, levels, weights=weights),
    )
