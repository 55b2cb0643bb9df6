"""Each item's repetitions in one word: do they agree, and if not, does the gate lie between them?"""

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from core.stats.common import Floats
from core.stats.dispersion import per_item_dispersion
from core.stats.gate import item_verdicts


class Stability(StrEnum):
    """How the repetitions of an item stand to one another and to the gate."""

    STABLE = "stable"
    BORDERLINE = "borderline"
    UNSTABLE = "unstable"
    UNKNOWN = "unknown"


STABILITY_WORDS = {
    Stability.STABLE: "every repetition gave the same level",
    Stability.BORDERLINE: "repetitions differ, but all of them pass or all of them fail",
    Stability.UNSTABLE: "some repetitions pass and some fail: the decision depends on the call",
    Stability.UNKNOWN: "fewer than two scores",
}


def item_stability(counts: NDArray[np.integer], levels: Floats, gate: float) -> NDArray[np.str_]:
    """The `Stability` of each item, shape (items,).

    "Stable" is what was seen, not a promise: n equal repetitions leave room for a minority verdict of up to
    `gate.zero_flip_upper_bound(n)`.

    Args:
        counts: Scores of each item at each level, shape (items, L).
        levels: Level values, shape (L,).
        gate: Level value at and above which an item passes.

    >>> item_stability(np.array([[3, 0], [2, 1], [1, 0]]), np.array([1.0, 2.0]), 2.0).tolist()
    ['stable', 'unstable', 'unknown']
    """
    spread, verdicts = per_item_dispersion(counts, levels), item_verdicts(counts, levels, gate)
    cases = [verdicts.n < 2, verdicts.straddles, spread.sd_population > 0]
    words = [Stability.UNKNOWN, Stability.UNSTABLE, Stability.BORDERLINE]
    return np.select(cases, [np.str_(word) for word in words], np.str_(Stability.STABLE))


def count_stability(stability: NDArray[np.str_]) -> dict[Stability, int]:
    """Items of each kind, those with none included."""
    return {kind: int((stability == kind).sum()) for kind in Stability}
