"""The truth behind the demo history: true levels, judges with known noise, and the draws made from them.

A judge reads an item's true level, adds its shift and normal noise (its own times the item's), and writes the nearest
level. Everything is plain arrays, so that statistics can be held against the truth that they were fed.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from core.store.tables import Slice, Unscored

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rng = np.random.Generator

CRITERIA = ("helpfulness", "groundedness")
LEVELS = (np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([1.0, 2.0, 3.0]))
"""Level values of each criterion, those of the shipped rubric."""

SCALES = np.array([1.0, 0.5])
"""Share of a judge's shift and noise that each criterion gets: the shorter scale is easier."""

LABELLED = 40
PAIRS = 40

WHOLE_REASONS = (Unscored.REFUSAL, Unscored.TRUNCATED, Unscored.NOT_JSON, Unscored.REQUEST_ERROR)
"""Reasons that leave the whole call without a score."""

PART_REASONS = (
    Unscored.MISSING_CRITERION,
    Unscored.OUT_OF_RANGE,
    Unscored.WRONG_TYPE,
    Unscored.NO_RATIONALE,
)
"""Reasons that leave one criterion without a score."""

PAIR_REASONS = (Unscored.VERDICT_MISSING, Unscored.CONFLICTING_VERDICTS)

_SIZES = {
    Slice.ANCHOR: 10,
    Slice.BOUNDARY: 14,
    Slice.NUISANCE: 8,
    Slice.ADVERSARIAL: 8,
    Slice.CONTRAST: 8,
    Slice.PRODUCTION: 12,
}
_NOISINESS = {
    Slice.ANCHOR: 0.6,
    Slice.BOUNDARY: 1.3,
    Slice.NUISANCE: 1.0,
    Slice.ADVERSARIAL: 1.2,
    Slice.CONTRAST: 0.8,
    Slice.PRODUCTION: 1.0,
}


@dataclass(frozen=True, slots=True)
class ItemTruth:
    """What no judge sees.

    Attributes:
        slices: Slice of each item.
        levels: True level, shape (items, criteria); real-valued.
        noisiness: Factor on every judge's noise, shape (items,).
    """

    slices: tuple[Slice, ...]
    levels: Floats
    noisiness: Floats

    def __len__(self) -> int:
        return len(self.slices)


@dataclass(frozen=True, slots=True)
class JudgeTruth:
    """How a simulated judge errs.

    Attributes:
        shift: Added to every true level.
        noise: Standard deviation of its error on an item of noisiness 1.
        flattery: Added on adversarial items.
        starts: When each run began.
        repetitions: Of each run.
        unscored: Calls without a usable score, over all runs.
        copied: Replies that repeat the one before.
    """

    name: str
    model: str
    prompt_version: str
    prompt: str
    shift: float
    noise: float
    flattery: float
    starts: tuple[datetime, ...]
    repetitions: int
    unscored: int
    copied: int

    @property
    def calls_per_item(self) -> int:
        """Repetitions over all runs."""
        return len(self.starts) * self.repetitions


@dataclass(frozen=True, slots=True)
class RaterTruth:
    """How a simulated person errs."""

    name: str
    shift: float
    noise: float


@dataclass(frozen=True, slots=True)
class PairJudgeTruth:
    """How the simulated pair judge errs.

    Attributes:
        slot_bias: Added to the first slot's advantage.
        noise: Standard deviation of its error.
        tie_band: Advantages smaller than this are a tie.
        repetitions: Of each order.
        unscored: Calls without a verdict.
    """

    name: str
    model: str
    prompt_version: str
    prompt: str
    slot_bias: float
    noise: float
    tie_band: float
    start: datetime
    repetitions: int
    unscored: int


@dataclass(frozen=True, slots=True)
class Draws:
    """Every call of a judge, the repetitions of its runs one after another.

    Attributes:
        levels: Level index that the judge arrived at, shape (items, calls, criteria), unscored calls included.
        confidence: How sure it says it is, same shape: lower the further it had to move to the level.
        reasons: Why there is no score, shape (items, calls, criteria); empty where there is one.
        copied: Whether the reply repeats the call before, shape (items, calls).
    """

    levels: Ints
    confidence: Floats
    reasons: NDArray[np.str_]
    copied: NDArray[np.bool_]

    def part(self, calls: slice) -> "Draws":
        """Some of the calls."""
        return Draws(self.levels[:, calls], self.confidence[:, calls], self.reasons[:, calls], self.copied[:, calls])


@dataclass(frozen=True, slots=True)
class PairDraws:
    """Every call of the pair judge.

    Attributes:
        levels: Index into (second slot, tie, first slot), shape (pairs, orders, repetitions); orders are ab, ba.
        reasons: Why there is no verdict, same shape; empty where there is one.
    """

    levels: Ints
    reasons: NDArray[np.str_]


@dataclass(frozen=True, slots=True)
class History:
    """The demo history with the truth behind it.

    Attributes:
        items: The items' truth.
        judges: Each judge with its calls.
        labelled: Places of the labelled items, ascending.
        labels: Level index by rater, shape (raters, labelled, criteria).
        differences: How much better candidate A of each pair is than B, shape (pairs,).
        pairs: The pair judge's calls.
        winners: A person's verdict with candidate A in slot 1, as a level index, shape (pairs,).
    """

    items: ItemTruth
    judges: tuple[tuple[JudgeTruth, Draws], ...]
    labelled: Ints
    labels: Ints
    differences: Floats
    pairs: PairDraws
    winners: Ints


def _nights(*days: tuple[int, int]) -> tuple[datetime, ...]:
    return tuple(datetime(2026, month, day, 2, tzinfo=UTC) for month, day in days)


_CAREFUL_PROMPT = (
    "Read the request, the reference and the answer. Compare the answer with the reference step by step, quote the "
    "words that decide, and choose the level whose description fits. Write the rationale first."
)
_HASTY_PROMPT = "Rate the answer. Be brief."
_PAIR_PROMPT = "Compare the two answers with the request. End with VERDICT: 1, VERDICT: 2 or VERDICT: TIE."

SPRING, AUTUMN = "sim-judge-2026-03-01", "sim-judge-2026-09-01"

JUDGES = (
    JudgeTruth(
        name="careful judge",
        model=SPRING,
        prompt_version="careful-1",
        prompt=_CAREFUL_PROMPT,
        shift=0.0,
        noise=0.3,
        flattery=0.0,
        starts=_nights((3, 9), (3, 16), (3, 23)),
        repetitions=5,
        unscored=18,
        copied=6,
    ),
    JudgeTruth(
        name="hasty judge",
        model=SPRING,
        prompt_version="hasty-1",
        prompt=_HASTY_PROMPT,
        shift=0.2,
        noise=0.75,
        flattery=0.8,
        starts=_nights((3, 10), (3, 17), (3, 24)),
        repetitions=4,
        unscored=20,
        copied=4,
    ),
    JudgeTruth(
        name="careful judge",
        model=AUTUMN,
        prompt_version="careful-1",
        prompt=_CAREFUL_PROMPT,
        shift=-0.5,
        noise=0.4,
        flattery=0.0,
        starts=_nights((9, 7), (9, 14), (9, 21)),
        repetitions=5,
        unscored=14,
        copied=5,
    ),
)

RATERS = (RaterTruth("rater-1", 0.0, 0.3), RaterTruth("rater-2", -0.15, 0.35))

PAIR_JUDGE = PairJudgeTruth(
    name="pair judge",
    model=SPRING,
    prompt_version="pair-1",
    prompt=_PAIR_PROMPT,
    slot_bias=0.6,
    noise=0.5,
    tie_band=0.25,
    start=_nights((3, 25))[0],
    repetitions=3,
    unscored=6,
)


def draw_history(seed: int) -> History:
    """The whole history; the same seed gives the same history."""
    items_rng, labels_rng, pairs_rng, *judge_rngs = np.random.default_rng(seed).spawn(3 + len(JUDGES))
    items = draw_items(items_rng)
    judges = tuple((judge, draw_calls(rng, items, judge)) for judge, rng in zip(JUDGES, judge_rngs, strict=True))
    labelled = np.sort(labels_rng.choice(len(items), LABELLED, replace=False))
    differences = pairs_rng.normal(0.2, 1.1, PAIRS)
    return History(
        items=items,
        judges=judges,
        labelled=labelled,
        labels=draw_labels(labels_rng, items.levels[labelled]),
        differences=differences,
        pairs=draw_verdicts(pairs_rng, differences, PAIR_JUDGE),
        winners=verdict_levels(differences + pairs_rng.normal(0, 0.2, PAIRS), PAIR_JUDGE.tie_band),
    )


def draw_items(rng: Rng) -> ItemTruth:
    """Items of all six slices; those of the boundary slice lie within a fifth of a level of the gate's threshold."""
    helpfulness = {
        Slice.ANCHOR: np.repeat(LEVELS[0], 2),
        Slice.BOUNDARY: rng.uniform(3.3, 3.7, _SIZES[Slice.BOUNDARY]),
        Slice.NUISANCE: rng.uniform(2.0, 5.0, _SIZES[Slice.NUISANCE]),
        Slice.ADVERSARIAL: rng.uniform(1.2, 2.6, _SIZES[Slice.ADVERSARIAL]),
        Slice.CONTRAST: np.tile([4.6, 2.9], 4),
        Slice.PRODUCTION: rng.uniform(1.5, 5.0, _SIZES[Slice.PRODUCTION]),
    }
    groundedness = {
        Slice.ANCHOR: np.tile([3.0, 2.0], 5),
        Slice.BOUNDARY: rng.uniform(1.6, 2.9, _SIZES[Slice.BOUNDARY]),
        Slice.NUISANCE: rng.uniform(2.0, 3.0, _SIZES[Slice.NUISANCE]),
        Slice.ADVERSARIAL: rng.uniform(0.9, 1.8, _SIZES[Slice.ADVERSARIAL]),
        Slice.CONTRAST: np.tile([2.9, 1.1], 4),
        Slice.PRODUCTION: rng.uniform(1.2, 3.0, _SIZES[Slice.PRODUCTION]),
    }
    return ItemTruth(
        slices=tuple(name for name, size in _SIZES.items() for _ in range(size)),
        levels=np.column_stack(
            [np.concatenate([truth[name] for name in _SIZES]) for truth in (helpfulness, groundedness)]
        ),
        noisiness=np.repeat([_NOISINESS[name] for name in _SIZES], list(_SIZES.values())),
    )


def location(items: ItemTruth, judge: JudgeTruth, criterion: int) -> Floats:
    """Where a judge's scores of each item lie before they are made levels, shape (items,)."""
    adversarial = np.array([name == Slice.ADVERSARIAL for name in items.slices])
    moved = SCALES[criterion] * (judge.shift + judge.flattery * adversarial)
    return np.asarray(items.levels[:, criterion] + moved)


def spread(items: ItemTruth, judge: JudgeTruth, criterion: int) -> Floats:
    """Standard deviation of a judge's scores of each item before they are made levels, shape (items,)."""
    return np.asarray(SCALES[criterion] * judge.noise * items.noisiness)


def nearest_levels(values: Floats, levels: Floats) -> Ints:
    """Index of the level nearest to each value; half-way goes up."""
    return np.searchsorted((levels[1:] + levels[:-1]) / 2, values, side="right").astype(np.int64)


def draw_calls(rng: Rng, items: ItemTruth, judge: JudgeTruth) -> Draws:
    """All calls of a judge: exactly `judge.unscored` without a usable score and `judge.copied` copies."""
    shape = (len(items), judge.calls_per_item)
    levels = np.empty((*shape, len(CRITERIA)), np.int64)
    confidence = np.empty(levels.shape)
    for place, values in enumerate(LEVELS):
        noise = spread(items, judge, place)[:, None] * rng.standard_normal(shape)
        read = location(items, judge, place)[:, None] + noise
        levels[..., place] = nearest_levels(read, values)
        confidence[..., place] = np.clip(0.95 - 0.7 * np.abs(read - values[levels[..., place]]), 0.3, 0.95)
    copied = _draw_copies(rng, shape, judge)
    for drawn in (levels, confidence):
        drawn[:, 1:][copied[:, 1:]] = drawn[:, :-1][copied[:, 1:]]
    return Draws(levels, confidence, _draw_reasons(rng, copied, judge), copied)


def _draw_copies(rng: Rng, shape: tuple[int, int], judge: JudgeTruth) -> NDArray[np.bool_]:
    """Copies on items that differ, never the first call of a run."""
    copied = np.zeros(shape, bool)
    chosen = rng.choice(shape[0], judge.copied, replace=False)
    runs = rng.integers(len(judge.starts), size=judge.copied)
    copied[chosen, runs * judge.repetitions + rng.integers(1, judge.repetitions, judge.copied)] = True
    return copied


def _draw_reasons(rng: Rng, copied: NDArray[np.bool_], judge: JudgeTruth) -> NDArray[np.str_]:
    """Unscored calls anywhere but on copies and the replies they repeat; every second one fails on one criterion."""
    reasons = np.full((*copied.shape, len(CRITERIA)), "", "U24")
    free = ~copied
    free[:, :-1] &= ~copied[:, 1:]
    cells = np.argwhere(free)
    for number, (item, call) in enumerate(rng.choice(cells, judge.unscored, replace=False)):
        if number % 2:
            reasons[item, call, rng.integers(len(CRITERIA))] = PART_REASONS[number // 2 % len(PART_REASONS)]
        else:
            reasons[item, call] = WHOLE_REASONS[number // 2 % len(WHOLE_REASONS)]
    return reasons


def draw_labels(rng: Rng, levels: Floats) -> Ints:
    """Level indices by rater for items of the given true levels, shape (raters, items, criteria)."""
    drawn = [
        [
            nearest_levels(
                levels[:, place] + SCALES[place] * (rater.shift + rater.noise * rng.standard_normal(len(levels))),
                LEVELS[place],
            )
            for place in range(len(CRITERIA))
        ]
        for rater in RATERS
    ]
    return np.array(drawn).transpose(0, 2, 1)


def verdict_levels(advantage: Floats, tie_band: float) -> Ints:
    """Index into (second slot, tie, first slot) for the first slot's advantage."""
    return ((advantage > -tie_band).astype(np.int64) + (advantage > tie_band)).astype(np.int64)


def draw_verdicts(rng: Rng, differences: Floats, judge: PairJudgeTruth) -> PairDraws:
    """All calls of the pair judge: in order ab candidate A stands in slot 1, in order ba candidate B."""
    shape = (len(differences), 2, judge.repetitions)
    quality = differences[:, None, None] * np.array([1.0, -1.0])[None, :, None]
    levels = verdict_levels(quality + judge.slot_bias + judge.noise * rng.standard_normal(shape), judge.tie_band)
    reasons = np.full(shape, "", "U24")
    for number, place in enumerate(rng.choice(levels.size, judge.unscored, replace=False)):
        reasons.flat[place] = PAIR_REASONS[number % len(PAIR_REASONS)]
    return PairDraws(levels, reasons)
