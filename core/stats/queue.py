"""Which items people should label: balanced over slices and score bands, some of them twice."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from core.stats.common import Floats, Ints

DOUBLE_SHARE = 0.2
LEAST_OF_EACH_KIND = 0.25
"""While there are any, at least this share of a queue is steady items, and as many are unsteady ones."""

UNSTEADY_FROM = 0.1
"""Chance that two repetitions disagree at the gate, from which an item counts as unsteady."""

NO_BAND = -1
"""The band of an item that no judge scored."""


@dataclass(frozen=True, slots=True)
class Pool:
    """The items a queue is chosen from.

    Attributes:
        slices: Slice of each item, shape (items,).
        bands: Place of its typical score among the rubric's levels, NO_BAND where it has none, shape (items,).
        flips: Its flip rate, nan where it has fewer than two scores, shape (items,).
    """

    slices: Sequence[str]
    bands: Ints
    flips: Floats


@dataclass(frozen=True, slots=True)
class Choice:
    """One item of a queue.

    Attributes:
        item: Row of the item in the pool.
        slot: Place of its reader.
        second_slot: Place of its second reader; None where one is enough.
        steady: Whether repetitions agree on it; None when that is not known.
    """

    item: int
    slot: int
    second_slot: int | None
    steady: bool | None


class _Cell(NamedTuple):
    """Items that are alike for the balance."""

    slice: str
    band: int
    steady: bool | None


def build_queue(
    pool: Pool,
    *,
    size: int,
    readers: int = 2,
    double_share: float = DOUBLE_SHARE,
    rng: np.random.Generator,
) -> tuple[Choice, ...]:
    """Choose items one after another, each from the slice, then the kind, then the band that has had the fewest turns.

    Args:
        pool: What to choose from. Without scores of a judge only the slices are balanced.
        size: How many items are wanted; the whole pool when it is smaller.
        readers: People who label.
        double_share: Share of the items that two readers label.
        rng: Seeded generator.

    Raises:
        ValueError: For a size or a number of readers below 1, or a share outside 0 to 1.
    """
    if size < 1 or readers < 1:
        raise ValueError(f"a queue needs at least one item and one reader, got {size} and {readers}")
    if not 0 <= double_share <= 1:
        raise ValueError(f"the share labelled twice must lie between 0 and 1, got {double_share:g}")
    chosen = _choose(pool, min(size, len(pool.slices)), rng)
    doubles = round(double_share * len(chosen)) if readers > 1 else 0
    twice = set(rng.permutation(len(chosen))[:doubles].tolist())
    slots = rng.permutation(np.arange(len(chosen)) % readers).tolist()
    return tuple(
        Choice(item, slots[turn], (slots[turn] + 1) % readers if turn in twice else None, cell.steady)
        for turn, (item, cell) in enumerate(chosen)
    )


def _choose(pool: Pool, size: int, rng: np.random.Generator) -> list[tuple[int, _Cell]]:
    cells: defaultdict[_Cell, list[int]] = defaultdict(list)
    for item in rng.permutation(len(pool.slices)).tolist():
        flip = pool.flips[item]
        steady = bool(flip < UNSTEADY_FROM) if np.isfinite(flip) else None
        cells[_Cell(pool.slices[item], int(pool.bands[item]), steady)].append(item)
    chosen: list[tuple[int, _Cell]] = []
    turns: Counter[object] = Counter()
    while len(chosen) < size:
        cell = min(_wanted(cells, turns, len(chosen)), key=lambda cell: _turns(cell, turns))
        chosen.append((cells[cell].pop(), cell))
        if not cells[cell]:
            del cells[cell]
        turns.update([("slice", cell.slice), ("kind", cell.steady), ("band", cell.slice, cell.band), cell])
    return chosen


def _wanted(cells: dict[_Cell, list[int]], turns: Counter[object], chosen: int) -> list[_Cell]:
    """The cells of a kind that falls short of its least share, or all of them."""
    short = {kind for kind in (True, False) if turns["kind", kind] < LEAST_OF_EACH_KIND * (chosen + 1)}
    return [cell for cell in cells if cell.steady in short] or list(cells)


def _turns(cell: _Cell, turns: Counter[object]) -> tuple[int, int, int, int]:
    return turns["slice", cell.slice], turns["kind", cell.steady], turns["band", cell.slice, cell.band], turns[cell]
