"""One item at a glance: its spread and its verdict."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.stats.common import Floats
from core.stats.dispersion import per_item_dispersion
from core.stats.gate import item_verdicts, zero_flip_upper_bound


@dataclass(frozen=True, slots=True)
class ItemSummary:
    """The repetitions of one item.

    Attributes:
        n: Scored repetitions.
        mean: Mean level value; None without scores, as are `score_range` and `modal_share`.
        sd: Sample SD; None below two scores.
        score_range: Highest minus lowest level value used.
        modes: The most frequent level values; several when they tie.
        modal_share: Share of the scores at one of them.
        passes: Repetitions at and above the gate.
        flip_probability: Chance that two repetitions disagree, 2k(n - k) / (n(n - 1)); None below two scores.
        minority_bound: Where no repetition of two or more disagreed, the 95% upper bound on the share of repetitions
            that would; None otherwise.
    """

    n: int
    mean: float | None
    sd: float | None
    score_range: float | None
    modes: tuple[float, ...]
    modal_share: float | None
    passes: int
    flip_probability: float | None
    minority_bound: float | None


def item_summary(counts: NDArray[np.integer], levels: Floats, gate: float) -> ItemSummary:
    """Summarise the repetitions of one item.

    Args:
        counts: Scores at each level, shape (L,).
        levels: Level values, shape (L,).
        gate: Level value at and above which the item passes.

    >>> item_summary(np.array([0, 1, 4]), np.array([1.0, 2.0, 3.0]), 3.0).flip_probability
    0.4
    """
    spread, verdicts = per_item_dispersion(counts[None, :], levels), item_verdicts(counts[None, :], levels, gate)
    n = int(spread.n[0])
    agreed = n >= 2 and not verdicts.straddles[0]
    return ItemSummary(
        n=n,
        mean=_known(spread.mean[0]),
        sd=_known(spread.sd_sample[0]),
        score_range=_known(spread.score_range[0]),
        modes=tuple(np.asarray(levels)[spread.modal_levels[0]].tolist()),
        modal_share=_known(spread.modal_share[0]),
        passes=int(verdicts.passes[0]),
        flip_probability=_known(verdicts.flip_probability[0]),
        minority_bound=zero_flip_upper_bound(n) if agreed else None,
    )


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
