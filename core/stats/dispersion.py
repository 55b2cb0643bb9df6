"""How far the repetitions of one item lie apart, per item and over the corpus."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from core.stats.common import DRAWS, MISSING, Bools, Estimate, Floats, Ints
from core.stats.totals import ItemTotals, item_totals, ratio, repeated_items

REPEATABILITY_FACTOR = stats.norm.ppf(0.975) * np.sqrt(2)
"""Two repetitions of an item differ by less than this many within-item SDs 95% of the time (Bland & Altman)."""


@dataclass(frozen=True, slots=True)
class ItemDispersion:
    """Spread of each item's scores, one entry an item.

    Attributes:
        n: Scored repetitions.
        mean: Mean level value; nan without scores.
        sd_population: SD with divisor n; nan without scores.
        sd_sample: SD with divisor n - 1; nan below two scores.
        score_range: Highest minus lowest level value used; nan without scores.
        modal_levels: Shape (items, L), the most frequent levels; several are marked when they tie.
        modal_share: Share of the scores at one modal level; nan without scores. Its floor is 1 / n.
        pair_agreement: Share of repetition pairs at the same level; nan below two scores.
        adjacent_agreement: Share of repetition pairs at most one level step apart; nan below two scores. A step is one
            place in the rubric, whatever the values of the two levels.
    """

    n: Ints
    mean: Floats
    sd_population: Floats
    sd_sample: Floats
    score_range: Floats
    modal_levels: Bools
    modal_share: Floats
    pair_agreement: Floats
    adjacent_agreement: Floats


@dataclass(frozen=True, slots=True)
class DispersionSummary:
    """Spread over the items with at least two scores; the others are counted as left out in every estimate.

    Attributes:
        mean_sd: Mean of the items' sample SDs.
        mean_sd_population: Mean of the items' population SDs.
        zero_sd_share: Share of items whose repetitions all agree.
        mean_modal_share: Mean modal share; falls as repetitions grow, so compare at equal numbers only.
        mean_adjacent_agreement: Mean share of repetition pairs within one level step.
        within_item_sd: Pooled, sqrt(sum SS / sum (n - 1)); not the mean of the SDs.
        repeatability: 1.96 sqrt(2) times the pooled SD: two repetitions differ by less 95% of the time.
    """

    mean_sd: Estimate
    mean_sd_population: Estimate
    zero_sd_share: Estimate
    mean_modal_share: Estimate
    mean_adjacent_agreement: Estimate
    within_item_sd: Estimate
    repeatability: Estimate


def level_counts(codes: NDArray[np.integer], n_levels: int) -> Ints:
    """Count the scores of each item at each level, shape (items, n_levels).

    Args:
        codes: Level indices, shape (items, repetitions), MISSING where not scored.
        n_levels: Levels of the rubric.
    """
    if codes.size and not MISSING <= codes.min() <= codes.max() < n_levels:
        raise ValueError(f"level indices must lie between {MISSING} and {n_levels - 1}")
    counts = np.empty((len(codes), n_levels), np.int64)
    for level in range(n_levels):
        counts[:, level] = np.count_nonzero(codes == level, axis=1)
    return counts


def per_item_dispersion(counts: NDArray[np.integer], levels: Floats) -> ItemDispersion:
    """Describe the spread of each item's repetitions.

    Args:
        counts: Scores of each item at each level, shape (items, L).
        levels: Level values in rubric order, shape (L,).
    """
    n = counts.sum(axis=1).astype(np.int64)
    squares = sums_of_squares(counts, levels)
    top = counts.max(axis=1, initial=0)
    pairs = n * (n - 1)
    same = (counts * (counts - 1)).sum(axis=1)
    neighbours = 2 * (counts[:, 1:] * counts[:, :-1]).sum(axis=1)
    return ItemDispersion(
        n=n,
        mean=ratio(counts @ levels, n),
        sd_population=np.sqrt(ratio(squares, n)),
        sd_sample=np.sqrt(ratio(squares, np.maximum(n - 1, 0))),
        score_range=_score_range(counts, levels),
        modal_levels=(counts == top[:, None]) & (counts > 0),
        modal_share=ratio(top, n),
        pair_agreement=ratio(same, pairs),
        adjacent_agreement=ratio(same + neighbours, pairs),
    )


def sums_of_squares(counts: NDArray[np.integer], levels: Floats) -> Floats:
    """Squared distance of each item's scores from their mean, summed, shape (items,); exactly 0 when all agree."""
    n = counts.sum(axis=1)
    means = counts @ levels / np.maximum(n, 1)
    squares = np.zeros(len(counts))
    for level, value in enumerate(levels):
        squares += counts[:, level] * (value - means) ** 2
    return np.where(counts.max(axis=1, initial=0) == n, 0.0, squares)


def dispersion_summary(
    counts: NDArray[np.integer],
    levels: Floats,
    *,
    weights: Ints | None = None,
    rng: np.random.Generator | None = None,
    draws: int = DRAWS,
) -> DispersionSummary:
    """Summarise the spread within items, each figure with its item bootstrap interval.

    Items with fewer than two scores are left out and counted.

    Args:
        counts: Scores of each item at each level, shape (items, L).
        levels: Level values, shape (L,).
        weights: How many items each row of `counts` stands for, when the rows are distinct already.
        rng: Asks for intervals.
        draws: Number of resamples.
    """

    def features(rows: Ints) -> Floats:
        items = per_item_dispersion(rows, levels)
        return np.column_stack(
            [
                np.ones(len(rows)),
                items.sd_sample,
                items.sd_population,
                items.sd_population == 0,
                items.modal_share,
                items.adjacent_agreement,
                sums_of_squares(rows, levels),
                items.n - 1,
            ]
        )

    totals = item_totals(features, repeated_items(counts, weights), rng, draws=draws)
    return DispersionSummary(
        mean_sd=_mean(totals, 1),
        mean_sd_population=_mean(totals, 2),
        zero_sd_share=_mean(totals, 3),
        mean_modal_share=_mean(totals, 4),
        mean_adjacent_agreement=_mean(totals, 5),
        within_item_sd=totals.estimate(_pooled_sd),
        repeatability=totals.estimate(lambda drawn: REPEATABILITY_FACTOR * _pooled_sd(drawn)),
    )


def _score_range(counts: NDArray[np.integer], levels: Floats) -> Floats:
    highest, lowest = np.full(len(counts), np.nan), np.full(len(counts), np.nan)
    for level in np.argsort(levels):
        highest[counts[:, level] > 0] = levels[level]
    for level in np.argsort(levels)[::-1]:
        lowest[counts[:, level] > 0] = levels[level]
    return np.asarray(highest - lowest)


def _mean(totals: ItemTotals, feature: int) -> Estimate:
    return totals.estimate(lambda drawn: ratio(drawn[..., feature], drawn[..., 0]))


def _pooled_sd(totals: Floats) -> Floats:
    return np.asarray(np.sqrt(ratio(totals[..., -2], totals[..., -1])))
