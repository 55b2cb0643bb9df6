"""The promotion review: a candidate judge against the baseline, line by line, under a rule frozen beforehand."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from core.stats.against_people import MAJORITY, compare, reference_codes
from core.stats.common import MISSING, Bools, Estimate, Floats, Ints, Undefined, undefined
from core.stats.dispersion import level_counts, per_item_dispersion
from core.stats.gate import item_verdicts, passes
from core.stats.promotion import GateOutcome, ItemGate, NonInferiority, item_gate, non_inferiority, paired_difference
from core.stats.totals import ratio

KIND = "promotion"
"""Entry `kind` of the stored thresholds: tells a promotion rule from a trust rule."""


@dataclass(frozen=True, slots=True)
class PromotionRule:
    """How much worse the candidate may be; a margin of None asks nothing.

    Attributes:
        agreement: Share of labelled items on which judge and people decide alike.
        false_pass_rate: Share of the human fails that the judge passes.
        item_sd: Mean sample SD of an item's repetitions, score points.
        flip_rate: Chance that two repetitions disagree at the gate.
        location: Mean score in either direction, score points.
        unscored: Share of calls without a usable score.
        tokens: Mean tokens of a call.
        item_pass_share: Least pass share every item of the candidate needs; not a margin.
    """

    agreement: float | None = None
    false_pass_rate: float | None = None
    item_sd: float | None = None
    flip_rate: float | None = None
    location: float | None = None
    unscored: float | None = None
    tokens: float | None = None
    item_pass_share: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and (value < 0 or not np.isfinite(value)):
                raise ValueError(f"{field.name}: a margin is a number of 0 or more, got {value:g}")
        if self.item_pass_share is not None and self.item_pass_share > 1:
            raise ValueError(f"item_pass_share: a share is at most 1, got {self.item_pass_share:g}")

    @property
    def asks(self) -> dict[str, float]:
        """The lines that ask something."""
        return {
            field.name: getattr(self, field.name) for field in fields(self) if getattr(self, field.name) is not None
        }


@dataclass(frozen=True, slots=True)
class Side:
    """One judge on the shared items, a row an item in the same order on both sides.

    Attributes:
        counts: Scores at each level, shape (items, L).
        attempted: Calls made, shape (items,).
        tokens: Mean tokens of a call, shape (items,), nan where the source gave none.
    """

    counts: Ints
    attempted: Ints
    tokens: Floats


class LabelsLike(Protocol):
    """The labels of one set, as the store hands them over: see `against_people.compare`."""

    @property
    def item_ids(self) -> Ints:
        """Items with a label, ascending, shape (m,)."""

    @property
    def raters(self) -> Sequence[str]:
        """Names of the people."""

    @property
    def values(self) -> Floats:
        """Newest label of each person, shape (people, m)."""

    @property
    def adjudicated(self) -> Floats:
        """Recorded final labels, shape (m,)."""


@dataclass(frozen=True, slots=True)
class ReviewLine:
    """One line of the rule.

    Attributes:
        name: Field of `PromotionRule`.
        outcome: What it says.
        candidate: The candidate's own figure over the items both sides have.
        baseline: The baseline's.
        result: The paired difference against its margin; None for the per-item gate.
        items: For the per-item gate, its verdict on each item.
    """

    name: str
    outcome: GateOutcome
    candidate: Estimate
    baseline: Estimate
    result: NonInferiority | None = None
    items: ItemGate | None = None


@dataclass(frozen=True, slots=True)
class Review:
    """The whole review.

    Attributes:
        outcome: Fail when a line fails, else insufficient when one is, else pass; insufficient without lines.
        lines: One for each thing the rule asks, in its order.
        better: Items nearer to people than before, or, where nobody labelled, with more passes; shape (items,).
        worse: The same the other way.
        fixed: Majority verdict wrong before and right now, each side of one mind.
        broken: Right before and wrong now, each side of one mind.
        within_noise: Majority verdict changed, but a side's own repetitions disagree or it has only one.
        labelled: Items with a label.
    """

    outcome: GateOutcome
    lines: tuple[ReviewLine, ...]
    better: Bools
    worse: Bools
    fixed: Bools
    broken: Bools
    within_noise: Bools
    labelled: int


@dataclass(frozen=True, slots=True)
class _Figure:
    """Where a line's item values come from.

    Attributes:
        of: Values of a side, shape (items,).
        span: Largest difference one item can show; None when only the data say.
        higher_is_better: Which way is worse.
    """

    of: Callable[[Side], Floats]
    span: float | None
    higher_is_better: bool = False


def promotion_review(
    candidate: Side,
    baseline: Side,
    rule: PromotionRule,
    *,
    levels: Floats,
    gate: float,
    human: NDArray[np.integer],
    seed: int,
) -> Review:
    """Hold a candidate against the baseline on the same items.

    Args:
        candidate: The judge under review.
        baseline: The approved judge.
        rule: Frozen margins.
        levels: Level values, shape (L,).
        gate: Level value at and above which an item passes.
        human: People's decision on each item: 1 pass, 0 fail, MISSING without a label; shape (items,).
        seed: Of every interval.
    """
    figures = _figures(levels, gate, human)
    lines = []
    for name, margin in rule.asks.items():
        if name == "item_pass_share":
            lines.append(_item_line(candidate, baseline, margin, levels, gate))
        else:
            rng = np.random.default_rng(seed)
            lines.append(_line(name, figures[name], (candidate, baseline), margin, rng))
    before, after = (item_verdicts(side.counts, levels, gate) for side in (baseline, candidate))
    known = bool((human != MISSING).any())
    right_before, right_after = (
        _right(found.pass_rate, human) if known else found.pass_rate for found in (before, after)
    )
    first, second = (_majority(found.passes, found.n) for found in (before, after))
    changed = (first != MISSING) & (second != MISSING) & (first != second)
    of_one_mind = ~before.straddles & ~after.straddles & (before.n > 1) & (after.n > 1)
    return Review(
        outcome=overall([line.outcome for line in lines]),
        lines=tuple(lines),
        better=right_after > right_before,
        worse=right_after < right_before,
        fixed=changed & of_one_mind & (second == human),
        broken=changed & of_one_mind & (first == human),
        within_noise=changed & ~of_one_mind,
        labelled=int((human != MISSING).sum()),
    )


def side_of(codes: NDArray[np.integer], attempted: Ints, tokens: Floats, n_levels: int) -> Side:
    """A side out of its score matrix.

    Args:
        codes: Level indices, shape (items, repetitions), MISSING where there is no usable score.
        attempted: Calls made, shape (items,).
        tokens: Mean tokens of a call, shape (items,).
        n_levels: Levels of the rubric.
    """
    return Side(level_counts(codes, n_levels), attempted, tokens)


def people_decisions(item_ids: Ints, labels: LabelsLike | None, levels: Floats, gate: float) -> Ints:
    """People's decision on each item: 1 pass, 0 fail, MISSING without a label; shape (items,).

    The adjudicated label where one is recorded, else the level that more people chose than any other.

    Args:
        item_ids: Items, ascending, shape (items,).
        labels: The labels of one set; None when there are none.
        levels: Level values, shape (L,).
        gate: Level value at and above which an item passes.
    """
    if labels is None:
        return np.full(len(item_ids), MISSING, np.int64)
    compared = compare(
        item_ids=item_ids,
        codes=np.full((len(item_ids), 1), MISSING),
        labelled_ids=labels.item_ids,
        raters=labels.raters,
        labels=labels.values,
        adjudicated=labels.adjudicated,
        levels=levels,
    )
    reference = reference_codes(compared, MAJORITY, len(levels))
    decided = np.where(reference == MISSING, MISSING, passes(levels, gate)[reference].astype(np.int64))
    return np.asarray(decided[np.searchsorted(compared.item_ids, item_ids)])


def overall(outcomes: list[GateOutcome]) -> GateOutcome:
    """One failing line fails the review; nothing asked or anything undecided is insufficient evidence."""
    if GateOutcome.FAIL in outcomes:
        return GateOutcome.FAIL
    if not outcomes or GateOutcome.INSUFFICIENT in outcomes:
        return GateOutcome.INSUFFICIENT
    return GateOutcome.PASS


def promotion_rule(thresholds: Mapping[str, Any]) -> PromotionRule:
    """The rule out of its stored thresholds.

    Raises:
        ValueError: For a threshold that no promotion rule has, or that is no number.
    """
    known = {field.name for field in fields(PromotionRule)}
    asked = {name: value for name, value in thresholds.items() if name not in ("kind", "corpus", "criterion")}
    strange = sorted(set(asked) - known)
    if strange:
        raise ValueError(f"a promotion rule has no {', '.join(strange)}; it knows {', '.join(sorted(known))}")
    return PromotionRule(**{name: float(value) for name, value in asked.items()})


def _figures(levels: Floats, gate: float, human: NDArray[np.integer]) -> dict[str, _Figure]:
    """How each line's item values are made.

    The largest sample SD of scores within a span is span / sqrt(2), that of two scores at its ends.
    """
    width = float(levels.max() - levels.min())

    def agreement(side: Side) -> Floats:
        return _right(item_verdicts(side.counts, levels, gate).pass_rate, human)

    def false_passes(side: Side) -> Floats:
        rate = item_verdicts(side.counts, levels, gate).pass_rate
        return np.where(human == 0, rate, np.nan)

    return {
        "agreement": _Figure(agreement, 1.0, higher_is_better=True),
        "false_pass_rate": _Figure(false_passes, 1.0),
        "item_sd": _Figure(lambda side: per_item_dispersion(side.counts, levels).sd_sample, width / np.sqrt(2)),
        "flip_rate": _Figure(lambda side: item_verdicts(side.counts, levels, gate).flip_probability, 1.0),
        "location": _Figure(lambda side: per_item_dispersion(side.counts, levels).mean, width),
        "unscored": _Figure(lambda side: ratio(side.attempted - side.counts.sum(axis=1), side.attempted), 1.0),
        "tokens": _Figure(lambda side: side.tokens, None),
    }


def _line(name: str, figure: _Figure, sides: tuple[Side, Side], margin: float, rng: np.random.Generator) -> ReviewLine:
    ours, theirs = (figure.of(side) for side in sides)
    shared = np.isfinite(ours) & np.isfinite(theirs)
    ours, theirs = np.where(shared, ours, np.nan), np.where(shared, theirs, np.nan)
    if not shared.any():
        difference = undefined(Undefined.NO_DATA, left_out=len(shared))
    else:
        span = figure.span if figure.span is not None else float(max(np.nanmax(ours), np.nanmax(theirs)))
        difference = paired_difference(ours, theirs, span=span, rng=rng)
    result = non_inferiority(difference, margin, higher_is_better=figure.higher_is_better)
    if name == "location":
        result = _either_way(difference, margin)
    return ReviewLine(name, result.outcome, _plain_mean(ours), _plain_mean(theirs), result)


def _either_way(difference: Estimate, margin: float) -> NonInferiority:
    """A score that moved up is as bad as one that moved down: both one-sided tests must pass."""
    up = non_inferiority(difference, margin, higher_is_better=False)
    down = non_inferiority(difference, margin)
    outcomes = [up.outcome, down.outcome]
    needed = [found.items_needed for found in (up, down) if found.outcome is GateOutcome.INSUFFICIENT]
    most = None if not needed or None in needed else max(number for number in needed if number is not None)
    return NonInferiority(overall(outcomes), difference, margin, False, most)


def _item_line(candidate: Side, baseline: Side, least: float, levels: Floats, gate: float) -> ReviewLine:
    found, before = (item_verdicts(side.counts, levels, gate) for side in (candidate, baseline))
    items = item_gate(found.passes, found.n, least=least)
    return ReviewLine(
        "item_pass_share", items.outcome, _plain_mean(found.pass_rate), _plain_mean(before.pass_rate), items=items
    )


def _plain_mean(values: Floats) -> Estimate:
    used = values[np.isfinite(values)]
    if not len(used):
        return undefined(Undefined.NO_DATA, left_out=len(values))
    return Estimate(float(used.mean()), len(used), len(values) - len(used))


def _right(pass_rate: Floats, human: NDArray[np.integer]) -> Floats:
    """Share of an item's repetitions that decide as people do; nan without a label or a score."""
    share = np.where(human == 1, pass_rate, 1 - pass_rate)
    return np.where(human == MISSING, np.nan, share)


def _majority(passes: Ints, n: Ints) -> Ints:
    """1 when more than half pass, 0 otherwise (a tie fails), MISSING without a score."""
    return np.where(n == 0, MISSING, (2 * passes > n).astype(np.int64))
