"""A judge against people: confusion at the gate, error rates with their denominators, agreement beyond chance."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from core.stats.common import DRAWS, MISSING, Bools, Estimate, Floats, Interval, Ints, Undefined, distinct_rows
from core.stats.dispersion import level_counts
from core.stats.gate import passes
from core.stats.proportions import clopper_pearson, wilson
from core.stats.totals import ItemTotals, Repeated, item_totals, ratio
from core.stats.two_raters import (
    FEW_FOR_ASYMPTOTICS,
    Weights,
    agreement_weights,
    cohens_kappa,
    gwet_ac1,
    gwet_coefficient,
    kappa_bootstrap,
    pabak,
    weighted_kappas,
)

Method = Literal["wilson", "clopper_pearson"]

FROM_AGREEMENT = "from the Wilson limit of the agreement at the observed margins"

_DRAWN_CELLS = 800_000
"""Kappa of few items takes few values, so its limits jump between them when the draws are few.

The draws are this many over the cells in use: 200,000 for two levels.
"""

_PROPORTIONS = {"wilson": wilson, "clopper_pearson": clopper_pearson}
_DECISIONS = np.array([0.0, 1.0])
_WEIGHTS: tuple[Weights, ...] = ("nominal", "linear", "quadratic")


@dataclass(frozen=True, slots=True)
class Confusion:
    """Decisions of people and judge, pass being positive; calls when repetitions are pooled, else items.

    Attributes:
        tp: Both pass.
        fp: Judge passes, people fail: a false pass.
        fn: Judge fails, people pass: a false fail.
        tn: Both fail.
    """

    tp: int
    fp: int
    fn: int
    tn: int

    @property
    def n(self) -> int:
        """All decisions."""
        return self.tp + self.fp + self.fn + self.tn

    @property
    def human_passes(self) -> int:
        """Decisions people call pass."""
        return self.tp + self.fn

    @property
    def human_fails(self) -> int:
        """Decisions people call fail."""
        return self.fp + self.tn

    @property
    def judge_passes(self) -> int:
        """Decisions the judge calls pass."""
        return self.tp + self.fp


@dataclass(frozen=True, slots=True)
class DecisionRates:
    """Rates of the pass/fail decisions; each is undefined (no_denominator) where it has nothing to divide by.

    Attributes:
        agreement: Decisions that are the same, of all.
        sensitivity: Judge passes, of the human passes.
        specificity: Judge fails, of the human fails.
        false_passes_of_human_fails: False passes, of the human fails: 1 - specificity.
        false_passes_of_judge_passes: False passes, of the judge's passes: how many passes are wrong.
        false_fails_of_human_passes: False fails, of the human passes: 1 - sensitivity.
        human_pass_rate: Human passes, of all.
        judge_pass_rate: Judge passes, of all.
    """

    agreement: Estimate
    sensitivity: Estimate
    specificity: Estimate
    false_passes_of_human_fails: Estimate
    false_passes_of_judge_passes: Estimate
    false_fails_of_human_passes: Estimate
    human_pass_rate: Estimate
    judge_pass_rate: Estimate


@dataclass(frozen=True, slots=True)
class Kappas:
    """Cohen's kappa with each set of agreement weights, distances by level value.

    Attributes:
        nominal: Equal or not.
        linear: Distance.
        quadratic: Squared distance.
    """

    nominal: Estimate
    linear: Estimate
    quadratic: Estimate


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """A judge against people on the same items.

    Attributes:
        table: Human level (row) against judge level (column), shape (L, L).
        confusion: The same at the gate.
        items: Items with a human label and a judge score.
        calls: Scored calls on them; more than `items` when repetitions are pooled.
        left_out: Items that lack one of the two.
        agreement: Same level, of all.
        kappas: Kappa over the levels.
        ac1: Gwet's AC1 over the levels.
        pabak: Prevalence- and bias-adjusted kappa over the levels.
        decision_kappa: Kappa of the pass/fail decisions.
        rates: Rates of the pass/fail decisions.
        false_passes: Positions of the items people fail and the judge passes at least once.
        false_fails: Positions of the items people pass and the judge fails at least once.
    """

    table: Ints
    confusion: Confusion
    items: int
    calls: int
    left_out: int
    agreement: Estimate
    kappas: Kappas
    ac1: Estimate
    pabak: Estimate
    decision_kappa: Estimate
    rates: DecisionRates
    false_passes: Ints
    false_fails: Ints


def confusion_counts(human_pass: Bools, judge_pass: Bools) -> Confusion:
    """Count the decisions of people and judge on the same items.

    Args:
        human_pass: True where people pass the item, shape (items,).
        judge_pass: True where the judge passes it.
    """
    if human_pass.shape != judge_pass.shape:
        raise ValueError(f"people and judge must decide on the same items: {human_pass.shape}, {judge_pass.shape}")
    return Confusion(
        int((human_pass & judge_pass).sum()),
        int((~human_pass & judge_pass).sum()),
        int((human_pass & ~judge_pass).sum()),
        int((~human_pass & ~judge_pass).sum()),
    )


def decision_rates(confusion: Confusion, *, method: Method = "wilson") -> DecisionRates:
    """Every rate of a confusion table of independent decisions, one an item, with its interval.

    Args:
        confusion: Counts of the decisions.
        method: Wilson, or Clopper-Pearson where coverage is to be guaranteed.
    """
    table = np.array([[confusion.tn, confusion.fp], [confusion.fn, confusion.tp]])
    return _rates(partial(_table_share, table, method), _decision_masks(np.array([False, True])))


def judge_vs_people(
    human: NDArray[np.integer],
    judge: NDArray[np.integer],
    levels: Floats,
    gate: float,
    *,
    rng: np.random.Generator,
    method: Method = "wilson",
) -> JudgeAgreement:
    """Agreement of a judge with people on the items that both scored.

    With one call an item the shares have Wilson intervals and kappa has the item bootstrap below 50 items, the
    asymptotic interval from there on; a perfect kappa gets the limit that the Wilson limit of the agreement implies.
    With repetitions all calls are pooled, an item weighing by its calls, and every interval resamples items; a share of
    exactly 0 or 1 then gets the Wilson or exact interval over its items.

    Args:
        human: Final label of each item as level index, shape (items,), MISSING where there is none.
        judge: Judge's level indices, shape (items,) or (items, repetitions), MISSING where unscored.
        levels: Level values, shape (L,).
        gate: Level value at and above which an item passes.
        rng: Seeded generator of the intervals.
        method: Interval of shares.
    """
    calls = judge[:, None] if judge.ndim == 1 else judge
    counts = level_counts(calls, len(levels))
    used = (human != MISSING) & (counts.sum(axis=1) > 0)
    labels, counts = human[used].astype(np.int64), counts[used]
    passing, positions = passes(levels, gate), np.flatnonzero(used)
    evidence = _evidence(labels, counts, levels, rng, method)
    human_passes, judge_passes, scored = passing[labels], counts[:, passing].sum(axis=1), counts.sum(axis=1)
    decisions = _decision_masks(passing)
    everything = np.ones_like(decisions.agree)
    return JudgeAgreement(
        table=evidence.table,
        confusion=_confusion(evidence.table, decisions),
        items=len(labels),
        calls=int(scored.sum()),
        left_out=int((~used).sum()),
        agreement=evidence.share(np.eye(len(levels), dtype=bool), everything),
        kappas=Kappas(*(evidence.kappa(levels, weights) for weights in _WEIGHTS)),
        ac1=evidence.ac1(),
        pabak=evidence.pabak(),
        decision_kappa=_evidence(
            human_passes.astype(np.int64),
            np.column_stack([scored - judge_passes, judge_passes]),
            _DECISIONS,
            rng,
            method,
        ).kappa(_DECISIONS, "nominal"),
        rates=_rates(evidence.share, decisions),
        false_passes=positions[~human_passes & (judge_passes > 0)],
        false_fails=positions[human_passes & (judge_passes < scored)],
    )


class _Decisions(NamedTuple):
    """Cells of a level cross-tab that belong to each decision, shape (L, L)."""

    human_pass: Bools
    judge_pass: Bools

    @property
    def agree(self) -> Bools:
        return np.asarray(self.human_pass == self.judge_pass)


class _Evidence(Protocol):
    """A cross-tab of people and judge that knows how sure its figures are."""

    @property
    def table(self) -> Ints: ...

    def share(self, part: Bools, whole: Bools) -> Estimate: ...

    def kappa(self, levels: Floats, weights: Weights) -> Estimate: ...

    def ac1(self) -> Estimate: ...

    def pabak(self) -> Estimate: ...


@dataclass(frozen=True, slots=True)
class _OneCallEach:
    """One call an item: intervals of independent items."""

    table: Ints
    rng: np.random.Generator
    method: Method

    def share(self, part: Bools, whole: Bools) -> Estimate:
        return _table_share(self.table, self.method, part, whole)

    def kappa(self, levels: Floats, weights: Weights) -> Estimate:
        found = cohens_kappa(self.table, levels, weights=weights)
        kappa = found.estimate
        if kappa.value is not None and kappa.n < FEW_FOR_ASYMPTOTICS and not _collapsed(kappa.interval):
            draws = max(DRAWS, _DRAWN_CELLS // int(np.count_nonzero(self.table)))
            interval = kappa_bootstrap(self.table, levels, self.rng, weights=weights, draws=draws)
            kappa = replace(kappa, interval=interval)
        return _bounded(kappa, found.expected, len(levels), self)

    def ac1(self) -> Estimate:
        return gwet_ac1(self.table, rng=self.rng)

    def pabak(self) -> Estimate:
        return pabak(self.table, rng=self.rng)


@dataclass(frozen=True, slots=True)
class _PooledCalls:
    """All calls of an item: intervals resample items."""

    totals: ItemTotals
    items: Repeated
    n_levels: int
    method: Method

    @property
    def table(self) -> Ints:
        return self.totals.observed.reshape(self.n_levels, self.n_levels).astype(np.int64)

    def share(self, part: Bools, whole: Bools) -> Estimate:
        cells, among = (part & whole).ravel().astype(float), whole.ravel().astype(float)
        found = self.totals.estimate(lambda sums: ratio(sums @ cells, sums @ among), reason=Undefined.NO_DENOMINATOR)
        concerned = _cells(self.items.rows, n_levels=self.n_levels) @ among > 0
        n = int(self.items.weights[concerned].sum())
        found = replace(found, n=n)
        if found.value in (0.0, 1.0) and _collapsed(found.interval):
            return replace(found, interval=_PROPORTIONS[self.method](round(found.value) * n, n).interval)
        return found

    def kappa(self, levels: Floats, weights: Weights) -> Estimate:
        agreement = agreement_weights(levels, weights)
        found = self.totals.estimate(lambda sums: weighted_kappas(self._tables(sums), agreement))
        pooled = cohens_kappa(self.table, levels, weights=weights)
        return _bounded(replace(found, notes=pooled.estimate.notes), pooled.expected, len(levels), self)

    def ac1(self) -> Estimate:
        return self.totals.estimate(lambda sums: _ac1s(self._tables(sums)))

    def pabak(self) -> Estimate:
        k = self.n_levels
        return self.totals.estimate(lambda sums: (k * _agreements(self._tables(sums)) - 1) / (k - 1))

    def _tables(self, sums: Floats) -> Floats:
        return sums.reshape(*sums.shape[:-1], self.n_levels, self.n_levels)


def _evidence(labels: Ints, counts: Ints, levels: Floats, rng: np.random.Generator, method: Method) -> _Evidence:
    n_levels = len(levels)
    distinct = distinct_rows(np.column_stack([labels, counts]))
    items = Repeated(distinct.rows, distinct.weights, 0, Undefined.NO_DATA)
    if int(counts.sum()) > len(labels):
        return _PooledCalls(item_totals(partial(_cells, n_levels=n_levels), items, rng), items, n_levels, method)
    table = (distinct.weights @ _cells(distinct.rows, n_levels=n_levels)).reshape(n_levels, n_levels)
    return _OneCallEach(table.astype(np.int64), rng, method)


def _cells(rows: Ints, n_levels: int) -> Floats:
    """Cross-tab cells of items given as label and count vector, shape (rows, L * L)."""
    cells = np.zeros((len(rows), n_levels, n_levels))
    cells[np.arange(len(rows)), rows[:, 0]] = rows[:, 1:]
    return cells.reshape(len(rows), n_levels**2)


def _decision_masks(passing: Bools) -> _Decisions:
    shape = (len(passing), len(passing))
    return _Decisions(np.broadcast_to(passing[:, None], shape), np.broadcast_to(passing[None, :], shape))


def _confusion(table: Ints, decisions: _Decisions) -> Confusion:
    human, judge = decisions
    return Confusion(
        *(int(table[cell].sum()) for cell in (human & judge, ~human & judge, human & ~judge, ~human & ~judge))
    )


def _table_share(table: Ints, method: Method, part: Bools, whole: Bools) -> Estimate:
    return _PROPORTIONS[method](int(table[part & whole].sum()), int(table[whole].sum()))


def _rates(share: Callable[[Bools, Bools], Estimate], decisions: _Decisions) -> DecisionRates:
    human, judge = decisions
    everything = np.ones_like(decisions.agree)
    return DecisionRates(
        agreement=share(decisions.agree, everything),
        sensitivity=share(judge, human),
        specificity=share(~judge, ~human),
        false_passes_of_human_fails=share(judge, ~human),
        false_passes_of_judge_passes=share(~human, judge),
        false_fails_of_human_passes=share(~judge, human),
        human_pass_rate=share(human, everything),
        judge_pass_rate=share(judge, everything),
    )


def _bounded(kappa: Estimate, expected: float | None, n_levels: int, evidence: _Evidence) -> Estimate:
    """Give a perfect kappa the limit that the agreement's implies: each disagreement counted as the greatest."""
    if kappa.value is None or expected is None or not _collapsed(kappa.interval):
        return kappa
    agreement = evidence.share(np.eye(n_levels, dtype=bool), np.ones((n_levels, n_levels), dtype=bool))
    if agreement.value != 1.0 or agreement.interval is None or agreement.interval.low is None:
        return kappa
    low = (agreement.interval.low - expected) / (1 - expected)
    return replace(kappa, interval=Interval(low, 1.0, FROM_AGREEMENT))


def _collapsed(interval: Interval | None) -> bool:
    return interval is not None and interval.reason is Undefined.COLLAPSED


def _agreements(tables: Floats) -> Floats:
    return np.asarray(np.trace(tables, axis1=-2, axis2=-1) / tables.sum(axis=(-2, -1)))


def _ac1s(tables: Floats) -> Floats:
    p = tables / tables.sum(axis=(-2, -1), keepdims=True)
    shares = (p.sum(axis=-1) + p.sum(axis=-2)) / 2
    return gwet_coefficient(_agreements(tables), shares, np.eye(tables.shape[-1]))
