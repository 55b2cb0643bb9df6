"""Mean of one figure over items."""

import numpy as np

from core.stats.common import Estimate, Floats, Undefined
from core.stats.totals import Repeated, item_totals, ratio


def item_mean(values: Floats, *, rng: np.random.Generator, level: float = 0.95) -> Estimate:
    """Mean over items with its item bootstrap interval.

    Args:
        values: Figure of each item, shape (items,), nan where it has none: left out and counted.
        rng: Seeded generator.
        level: Coverage.
    """
    used = np.isfinite(values)
    distinct, weights = np.unique(values[used], return_counts=True)
    positions = np.arange(len(distinct), dtype=np.int64)[:, None]
    items = Repeated(positions, weights.astype(np.int64), int((~used).sum()), Undefined.NO_DATA)
    totals = item_totals(lambda rows: np.column_stack([distinct[rows[:, 0]], np.ones(len(rows))]), items, rng)
    return totals.estimate(lambda sums: ratio(sums[..., 0], sums[..., 1]), level=level)
