"""People against people, and a judge measured by how well it could replace one of them."""

from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from core.stats.common import MISSING, Bools, Estimate, Floats, Ints, Undefined, distinct_rows, undefined
from core.stats.totals import Repeated, item_totals
from core.stats.two_raters import Weights, agreement_weights, weighted_kappas

Alignment = Literal["accuracy", "rmse"]

WITHIN_HUMAN_VARIATION = "within human variation: people differ among themselves at least as much"
FEWEST_PEOPLE = 3
FEWEST_ITEMS_EACH = 30


@dataclass(frozen=True, slots=True)
class HumanCeiling:
    """How far people agree with each other, beside how far the judge agrees with them, on the same items.

    Attributes:
        human_agreement: Mean over pairs of people of the share of items with the same level.
        human_kappa: Mean over pairs of people of kappa.
        judge_agreement: Mean over people of their agreement with the judge.
        judge_kappa: Mean over people of their kappa with the judge; noted when it reaches `human_kappa`.
    """

    human_agreement: Estimate
    human_kappa: Estimate
    judge_agreement: Estimate
    judge_kappa: Estimate


@dataclass(frozen=True, slots=True)
class ReplacedPerson:
    """The judge in place of one person.

    Attributes:
        person: Row of the person.
        n: Items the comparison rests on.
        advantage: Share of items on which the judge matches the others at least as well as the person does.
        p: One-sided p-value of "the person is better by at least epsilon".
        adjusted_p: The same after Benjamini-Yekutieli over the people.
        judge_wins: The adjusted p-value is at most alpha.
    """

    person: int
    n: int
    advantage: float
    p: float
    adjusted_p: float
    judge_wins: bool


@dataclass(frozen=True, slots=True)
class AltTest:
    """May the judge replace a person? Calderon et al. (2025).

    Attributes:
        winning_rate: Share of people the judge may replace; passes at 0.5.
        advantage_probability: Mean of the people's `advantage`.
        passes: The winning rate is at least 0.5; None when refused.
        people: One entry a person.
        epsilon: How much worse the judge may be, for its lower cost.
    """

    winning_rate: Estimate
    advantage_probability: Estimate
    passes: bool | None
    people: tuple[ReplacedPerson, ...]
    epsilon: float


def human_ceiling(
    people: NDArray[np.integer],
    judge: NDArray[np.integer],
    levels: Floats,
    *,
    rng: np.random.Generator,
    weights: Weights = "nominal",
) -> HumanCeiling:
    """Mean pairwise agreement and kappa between people, and between each person and the judge.

    Only items the judge scored and at least two people labelled count, so that both sides rest on the same items. Each
    pair uses the items both labelled; a pair without a defined kappa leaves the mean. Item bootstrap intervals.

    Args:
        people: Level indices, shape (people, items), MISSING where not labelled.
        judge: Judge's level indices, shape (items,), MISSING where unscored.
        levels: Level values, shape (L,).
        rng: Seeded generator.
        weights: Agreement weights of kappa.
    """
    used = (judge != MISSING) & ((people != MISSING).sum(axis=0) >= 2)
    raters = np.vstack([people, judge])[:, used]
    left_out = int((~used).sum())
    # Codes move up by one, so that MISSING is 0 and the rows can be collapsed.
    distinct = distinct_rows(raters.T.astype(np.int64) + 1)
    items = Repeated(distinct.rows, distinct.weights, left_out, Undefined.NO_DATA)
    pairs = list(combinations(range(len(people)), 2)) + [(person, len(people)) for person in range(len(people))]
    between = np.array([second < len(people) for _, second in pairs])
    totals = item_totals(partial(_pair_cells, pairs=pairs, n_levels=len(levels)), items, rng)
    w = agreement_weights(levels, weights)

    def mean(chosen: Bools, *, kappa: bool) -> Estimate:
        def figure(sums: Floats) -> Floats:
            tables = sums.reshape(*sums.shape[:-1], len(pairs), len(levels), len(levels))[..., chosen, :, :]
            return _defined_mean(_kappas(tables, w) if kappa else _agreements(tables))

        return totals.estimate(figure)

    human_kappa, judge_kappa = mean(between, kappa=True), mean(~between, kappa=True)
    ceiling, reached = human_kappa.value, judge_kappa.value
    if ceiling is not None and reached is not None and reached >= ceiling:
        judge_kappa = replace(judge_kappa, notes=(WITHIN_HUMAN_VARIATION,))
    return HumanCeiling(mean(between, kappa=False), human_kappa, mean(~between, kappa=False), judge_kappa)


def alt_test(
    people: NDArray[np.integer],
    judge: NDArray[np.integer],
    levels: Floats,
    *,
    epsilon: float = 0.2,
    alignment: Alignment = "accuracy",
    alpha: float = 0.05,
) -> AltTest:
    """Alternative annotator test (Calderon et al. 2025).

    Leaves out one person at a time. On each item the person labelled, both the person and the judge are scored against
    the other people; d is 1 where the person scores at least as well, minus 1 where the judge does. A one-sided t-test
    of mean(d) < epsilon, Benjamini-Yekutieli over people; without variance of d the judge wins exactly when mean(d) <
    epsilon. Refused (too_few_items) below three people with 30 items each that another person labelled too.

    Args:
        people: Level indices, shape (people, items), MISSING where not labelled.
        judge: Judge's level indices, shape (items,), MISSING where unscored.
        levels: Level values, shape (L,).
        epsilon: 0.2 for experts, 0.15 for skilled people, 0.1 for crowd workers.
        alignment: Share of the others with the same level, or minus the root mean squared distance to them.
        alpha: False discovery rate.
    """
    differences = {}
    for person in range(len(people)):
        mine, others = people[person], np.delete(people, person, axis=0)
        used = (judge != MISSING) & (mine != MISSING) & (others != MISSING).any(axis=0)
        if used.sum() >= FEWEST_ITEMS_EACH:
            h = _alignment(mine[used], others[:, used], levels, alignment)
            f = _alignment(judge[used], others[:, used], levels, alignment)
            differences[person] = (h >= f).astype(int), (f >= h).astype(int)
    left_out = len(people) - len(differences)
    if len(differences) < FEWEST_PEOPLE:
        nothing = undefined(Undefined.TOO_FEW_ITEMS, n=len(differences), left_out=left_out)
        return AltTest(nothing, nothing, None, (), epsilon)
    p = [_one_sided(human - machine, epsilon) for human, machine in differences.values()]
    adjusted = stats.false_discovery_control(p, method="by")
    found = tuple(
        ReplacedPerson(
            person, len(machine), float(machine.mean()), p[i], float(adjusted[i]), bool(adjusted[i] <= alpha)
        )
        for i, (person, (_, machine)) in enumerate(differences.items())
    )
    n = len(found)
    winning = sum(person.judge_wins for person in found) / n
    advantage = sum(person.advantage for person in found) / n
    return AltTest(Estimate(winning, n, left_out), Estimate(advantage, n, left_out), winning >= 0.5, found, epsilon)


def _pair_cells(rows: Ints, pairs: list[tuple[int, int]], n_levels: int) -> Floats:
    """Cross-tab cells of each pair of raters, shape (rows, pairs * L * L); codes are level indices plus one."""
    cells = np.zeros((len(rows), len(pairs), n_levels, n_levels))
    for pair, (first, second) in enumerate(pairs):
        a, b = rows[:, first] - 1, rows[:, second] - 1
        both = np.flatnonzero((a >= 0) & (b >= 0))
        cells[both, pair, a[both], b[both]] = 1
    return cells.reshape(len(rows), len(pairs) * n_levels**2)


def _kappas(tables: Floats, weights: Floats) -> Floats:
    """Kappa of each table; nan for an empty one."""
    return np.where(tables.sum(axis=(-2, -1)) > 0, weighted_kappas(tables, weights), np.nan)


def _agreements(tables: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.asarray(np.trace(tables, axis1=-2, axis2=-1) / tables.sum(axis=(-2, -1)))


def _defined_mean(values: Floats) -> Floats:
    """Mean over the last axis of the defined values; nan without any."""
    defined = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(defined, values, 0).sum(axis=-1) / defined.sum(axis=-1))


def _alignment(codes: Ints, others: Ints, levels: Floats, alignment: Alignment) -> Floats:
    """How well each label agrees with the other people's, shape (items,); higher is better."""
    known = others != MISSING
    if alignment == "accuracy":
        return np.asarray(((others == codes) & known).sum(axis=0) / known.sum(axis=0))
    squares = np.where(known, (levels[others] - levels[codes]) ** 2, 0)
    return np.asarray(-np.sqrt(squares.sum(axis=0) / known.sum(axis=0)))


def _one_sided(d: Ints, epsilon: float) -> float:
    """p-value of mean(d) >= epsilon."""
    if np.ptp(d) == 0:
        return 0.0 if d.mean() < epsilon else 1.0
    return float(stats.ttest_1samp(d, epsilon, alternative="less").pvalue)
