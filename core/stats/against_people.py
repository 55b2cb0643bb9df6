"""A judge held against one reference of people's labels: the figures that the page and the command line share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from core.stats.calibration import Confusion, JudgeAgreement, confusion_counts, decision_rates, judge_vs_people
from core.stats.common import MISSING, Bools, Estimate, Floats, Ints
from core.stats.corrected import CorrectedRate, Ppi, corrected_pass_rate, ppi_mean
from core.stats.dispersion import level_counts
from core.stats.gate import passes
from core.stats.health import SEED
from core.stats.people import AltTest, HumanCeiling, alt_test, human_ceiling
from core.stats.trust import TrustRule
from core.stats.two_raters import cohens_kappa, cross_tab

MAJORITY = "majority"
ADJUDICATED = "adjudicated"
RATER = "rater:"
"""References: `majority`, `adjudicated`, or `rater:` and a name."""

CALLS = "calls"
MODAL = "modal"
COLUMN = "call:"
"""Units: `calls`, `modal`, or `call:` and the column of the score matrix."""

Timing = Literal["before", "after"]

_DECISIONS = np.array([0.0, 1.0])
_EXACT = 1e-9


@dataclass(frozen=True, slots=True)
class Compared:
    """Labels and scores of the same items.

    Attributes:
        item_ids: Items with a label or a call, ascending, shape (items,).
        raters: Names of the people.
        people: Each person's level index, shape (people, items); MISSING without a label or between two levels.
        adjudicated: Level index of the recorded final label, shape (items,); MISSING without one.
        labelled: Whether anyone labelled the item, shape (items,).
        between: Labels that lie between two levels and so belong to none.
        judge: The judge's level indices, shape (items, columns); MISSING where unscored.
    """

    item_ids: Ints
    raters: tuple[str, ...]
    people: Ints
    adjudicated: Ints
    labelled: Bools
    between: int
    judge: Ints


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Items that are in no figure, each counted once.

    Attributes:
        no_label: Scored, but the reference has no label.
        tied: The raters are split evenly, or all labels lie between two levels, and nobody adjudicated.
        no_score: Labelled, but without a usable score.
    """

    no_label: int
    tied: int
    no_score: int


@dataclass(frozen=True, slots=True)
class PartAgreement:
    """Pass/fail agreement on a part of the items.

    Attributes:
        name: The slice.
        confusion: Decisions of people and judge; calls when repetitions are pooled.
        agreement: Same decision, of all.
        kappa: Kappa of the decisions.
        false_passes: False passes of the human fails.
    """

    name: str
    confusion: Confusion
    agreement: Estimate
    kappa: Estimate
    false_passes: Estimate


@dataclass(frozen=True, slots=True)
class CorrectedRest:
    """Pass rate that people would give the items nobody labelled.

    Attributes:
        rate: Rogan-Gladen with the interval of Lee et al.
        ppi: Prediction-powered inference over passes.
        rest: Scored items without a label.
        rest_passes: Those the judge passes.
        rehearsal: Nothing is unlabelled, so `rate` corrects the labelled items themselves: it only shows how far so
            many labels would carry.
    """

    rate: CorrectedRate
    ppi: Ppi
    rest: int
    rest_passes: int
    rehearsal: bool


@dataclass(frozen=True, slots=True)
class Assessment:
    """Everything the page and the command line show of a judge against people.

    Attributes:
        item_ids: The items that positions in `measured` point at.
        reference: Level index of the reference, shape (items,).
        judge: Level indices of the judge in the chosen unit, shape (items,) or (items, columns).
        measured: The judge against the reference.
        left_out: Items in no figure.
        between: Labels between two levels.
        slices: Pass/fail agreement in each slice.
        decisions: Ceiling of pass/fail decisions; None below two raters. The judge speaks with its modal score.
        levels: Ceiling of levels; None below two raters.
        replacement: Could the judge replace one of the people? None below two raters.
        corrected: Pass rate of the unlabelled rest, by the judge's modal score when its calls are pooled.
    """

    item_ids: Ints
    reference: Ints
    judge: Ints
    measured: JudgeAgreement
    left_out: LeftOut
    between: int
    slices: tuple[PartAgreement, ...]
    decisions: HumanCeiling | None
    levels: HumanCeiling | None
    replacement: AltTest | None
    corrected: CorrectedRest


def level_codes_of(values: Floats, levels: Floats) -> Ints:
    """Level index of each value, any shape; MISSING for nan and for a value between two levels."""
    nearest = np.abs(np.nan_to_num(values)[..., None] - levels).argmin(axis=-1)
    at_level = np.abs(levels[nearest] - np.nan_to_num(values)) < _EXACT
    return np.where(np.isfinite(values) & at_level, nearest, MISSING).astype(np.int64)


def compare(
    *,
    item_ids: Ints,
    codes: NDArray[np.integer],
    labelled_ids: Ints,
    raters: Sequence[str],
    labels: Floats,
    adjudicated: Floats,
    levels: Floats,
) -> Compared:
    """Bring labels and scores to the same items.

    Args:
        item_ids: Items of the score matrix, ascending, shape (n,).
        codes: Its level indices, shape (n, columns).
        labelled_ids: Items with labels, ascending, shape (m,).
        raters: Names of the people.
        labels: Newest label of each person, shape (people, m), nan where there is none.
        adjudicated: Recorded final labels, shape (m,), nan where there is none.
        levels: Level values, shape (L,).
    """
    everything = np.union1d(item_ids, labelled_ids).astype(np.int64)
    judge = np.full((len(everything), codes.shape[1] if codes.ndim > 1 else 0), MISSING, np.int64)
    judge[np.searchsorted(everything, item_ids)] = codes
    place = np.searchsorted(everything, labelled_ids)
    people = np.full((len(raters), len(everything)), MISSING, np.int64)
    people[:, place] = level_codes_of(labels, levels)
    final = np.full(len(everything), MISSING, np.int64)
    final[place] = level_codes_of(adjudicated, levels)
    labelled = np.zeros(len(everything), dtype=bool)
    labelled[place] = np.isfinite(labels).any(axis=0) | np.isfinite(adjudicated)
    between = int((np.isfinite(labels) & (level_codes_of(labels, levels) == MISSING)).sum())
    return Compared(everything, tuple(raters), people, final, labelled, between, judge)


def reference_codes(compared: Compared, reference: str, n_levels: int) -> Ints:
    """Level index of the chosen reference, shape (items,); MISSING where it has none.

    `majority`: the adjudicated label where one is recorded, else the level that more people chose than any other.
    `adjudicated`: recorded final labels only. `rater:NAME`: that person's newest label, as it was given.

    Raises:
        ValueError: For a reference that is none of these.
    """
    if reference == ADJUDICATED:
        return compared.adjudicated
    if reference.startswith(RATER):
        name = reference.removeprefix(RATER)
        if name not in compared.raters:
            raise ValueError(f"{name!r} labelled nothing here; the raters are {', '.join(compared.raters)}")
        return np.asarray(compared.people[compared.raters.index(name)])
    if reference != MAJORITY:
        raise ValueError(f"{reference!r} is no reference: majority, adjudicated or rater:NAME")
    votes = level_counts(compared.people.T, n_levels)
    top = votes.max(axis=1, initial=0)
    won = (top > 0) & ((votes == top[:, None]).sum(axis=1) == 1)
    majority = np.where(won, votes.argmax(axis=1), MISSING)
    return np.asarray(np.where(compared.adjudicated != MISSING, compared.adjudicated, majority), np.int64)


def modal_codes(codes: NDArray[np.integer], n_levels: int) -> Ints:
    """Most frequent level of each item, shape (items,); of levels that tie the lower, so that a tie never passes."""
    counts = level_counts(codes, n_levels)
    return np.where(counts.sum(axis=1) > 0, counts.argmax(axis=1), MISSING).astype(np.int64)


def unit_codes(compared: Compared, unit: str, n_levels: int) -> Ints:
    """The judge's level indices in the chosen unit: shape (items,), or (items, columns) for all calls.

    Raises:
        ValueError: For a unit that is none, or a column that is not there.
    """
    if unit == CALLS:
        return compared.judge
    if unit == MODAL:
        return modal_codes(compared.judge, n_levels)
    column = unit.removeprefix(COLUMN)
    if not unit.startswith(COLUMN) or not column.isdecimal() or int(column) >= compared.judge.shape[1]:
        raise ValueError(f"{unit!r} is no unit: calls, modal, or call:0 to call:{compared.judge.shape[1] - 1}")
    return np.asarray(compared.judge[:, int(column)])


def assess(
    compared: Compared,
    slices: Sequence[str],
    *,
    reference: str,
    unit: str,
    levels: Floats,
    gate: float,
    seed: int = SEED,
) -> Assessment:
    """Hold a judge against one reference of people's labels.

    Args:
        compared: Labels and scores of the same items.
        slices: Slice of each item.
        reference: As `reference_codes` takes it.
        unit: As `unit_codes` takes it.
        levels: Level values, shape (L,).
        gate: Level value at and above which an item passes.
        seed: Of every interval.
    """
    rng = np.random.default_rng(seed)
    n_levels = len(levels)
    human = reference_codes(compared, reference, n_levels)
    judge = unit_codes(compared, unit, n_levels)
    single = modal_codes(judge, n_levels) if judge.ndim > 1 else judge
    several = len(compared.raters) > 1
    passing = passes(levels, gate)
    people = compared.people
    return Assessment(
        item_ids=compared.item_ids,
        reference=human,
        judge=judge,
        measured=judge_vs_people(human, judge, levels, gate, rng=rng),
        left_out=_left_out(compared, human, single, reference),
        between=compared.between,
        slices=by_slice(human, judge, slices, levels, gate, seed=seed),
        decisions=(
            human_ceiling(_decided(people, passing), _decided(single, passing), _DECISIONS, rng=rng)
            if several
            else None
        ),
        levels=human_ceiling(people, single, levels, rng=rng) if several else None,
        replacement=alt_test(people, single, levels) if several else None,
        corrected=corrected_rest(human, single, compared.labelled, levels, gate),
    )


def by_slice(
    human: Ints, judge: Ints, slices: Sequence[str], levels: Floats, gate: float, *, seed: int = SEED
) -> tuple[PartAgreement, ...]:
    """Pass/fail agreement in each slice that has an item with both a label and a score, in order of name."""
    rng = np.random.default_rng(seed)
    names, passing = np.asarray(slices, dtype=object), passes(levels, gate)
    wide = judge if judge.ndim > 1 else judge[:, None]
    usable = (human != MISSING) & (wide != MISSING).any(axis=1)
    parts = []
    for name in sorted(set(names[usable])):
        chosen = names == name
        parts.append(_part(str(name), _decided(human[chosen], passing), _decided(wide[chosen], passing), rng))
    return tuple(parts)


def corrected_rest(human: Ints, judge: Ints, labelled: Bools, levels: Floats, gate: float) -> CorrectedRest:
    """Pass rate people would give the scored items nobody labelled; without any, a rehearsal on the labelled ones.

    Args:
        human: Level index of the reference, shape (items,).
        judge: One level index an item.
        labelled: Whether anyone labelled the item.
        levels: Level values, shape (L,).
        gate: Level value at and above which an item passes.
    """
    passing = passes(levels, gate)
    both, rest = (human != MISSING) & (judge != MISSING), ~labelled & (judge != MISSING)
    known = confusion_counts(passing[human[both]], passing[judge[both]])
    rest_passes, n = int(passing[judge[rest]].sum()), int(rest.sum())
    rate = corrected_pass_rate(rest_passes, n, known) if n else corrected_pass_rate(known.judge_passes, known.n, known)
    ppi = ppi_mean(
        passing[human[both]].astype(float), passing[judge[both]].astype(float), passing[judge[rest]].astype(float)
    )
    return CorrectedRest(rate, ppi, n, rest_passes, rehearsal=n == 0)


def cell_positions(assessment: Assessment, row: Bools, column: Bools) -> Ints:
    """Positions of the items in one cell of a confusion matrix.

    Args:
        assessment: Its reference and judge.
        row: Levels of the reference that belong to the cell, shape (L,).
        column: Levels of the judge; with pooled calls one call there is enough.
    """
    wide = assessment.judge if assessment.judge.ndim > 1 else assessment.judge[:, None]
    known = assessment.reference != MISSING
    return np.flatnonzero(known & row[assessment.reference] & ((wide != MISSING) & column[wide]).any(axis=1))


def rule_from(thresholds: Mapping[str, Any]) -> TrustRule:
    """The rule that stored thresholds describe; other entries, such as what it was written for, are left alone.

    Raises:
        ValueError: When it asks for nothing, or for more or less than can be.
    """
    names = {field.name for field in fields(TrustRule)}
    rule = TrustRule(**{name: value for name, value in thresholds.items() if name in names})
    asked = (rule.min_agreement, rule.min_kappa, rule.max_false_passes, rule.max_false_pass_rate, rule.min_labels)
    if all(line is None for line in asked):
        raise ValueError("a trust rule needs at least one threshold")
    for name, share in (("agreement", rule.min_agreement), ("false pass rate", rule.max_false_pass_rate)):
        if share is not None and not 0 <= share <= 1:
            raise ValueError(f"{name} {share:g} is no share: give a number from 0 to 1")
    if rule.min_kappa is not None and not -1 <= rule.min_kappa <= 1:
        raise ValueError(f"kappa {rule.min_kappa:g} lies outside -1 to 1")
    for name, count in (("false passes", rule.max_false_passes), ("labels", rule.min_labels)):
        if count is not None and count < 0:
            raise ValueError(f"{name} {count} is less than nothing")
    return rule


def kept_thresholds(rule: TrustRule) -> dict[str, float | int | str]:
    """The thresholds a rule asks for, as they are stored."""
    found = {field.name: getattr(rule, field.name) for field in fields(rule)}
    return {name: value for name, value in found.items() if value is not None}


def rule_timing(labels_seen: int, earlier_labels: int) -> Timing:
    """Whether a rule was made before the labels it is held against; once "after", always "after".

    Args:
        labels_seen: Labels of its scope that existed when it was frozen.
        earlier_labels: Labels of the present comparison that are older than the rule.
    """
    return "after" if labels_seen or earlier_labels else "before"


def _left_out(compared: Compared, human: Ints, judge: Ints, reference: str) -> LeftOut:
    scored, known = judge != MISSING, human != MISSING
    undecided = compared.labelled & ~known if reference == MAJORITY else np.zeros_like(known)
    return LeftOut(
        no_label=int((scored & ~known & ~undecided).sum()),
        tied=int((scored & undecided).sum()),
        no_score=int((~scored & (known | undecided)).sum()),
    )


def _decided(codes: Ints, passing: Bools) -> Ints:
    """Level indices as decisions: 1 passes, 0 fails."""
    return np.where(codes == MISSING, MISSING, passing[codes].astype(np.int64))


def _part(name: str, human: Ints, judge: Ints, rng: np.random.Generator) -> PartAgreement:
    if ((judge != MISSING).sum(axis=1) > 1).any():
        found = judge_vs_people(human, judge, _DECISIONS, 1.0, rng=rng)
        rates = found.rates
        return PartAgreement(
            name, found.confusion, rates.agreement, found.decision_kappa, rates.false_passes_of_human_fails
        )
    table = cross_tab(human, modal_codes(judge, 2), 2)
    confusion = Confusion(tp=int(table[1, 1]), fp=int(table[0, 1]), fn=int(table[1, 0]), tn=int(table[0, 0]))
    one_each = decision_rates(confusion)
    kappa = cohens_kappa(table, _DECISIONS, rng=rng).estimate
    return PartAgreement(name, confusion, one_each.agreement, kappa, one_each.false_passes_of_human_fails)
