"""Position bias of a pairwise judge: each pair judged in both orders, verdicts stored by slot.

A verdict is +1 for the first slot, 0 for a tie, -1 for the second; on the five-step scale +2 and -2 are the strong
verdicts. Order AB shows candidate A in slot 1, order BA shows it in slot 2.
"""

from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.stats.common import MISSING, Estimate, Ints, Undefined, undefined
from core.stats.noise import NoiseFloor, noise_floor
from core.stats.proportions import clopper_pearson, wilson
from core.stats.two_raters import Kappa, cohens_kappa, cross_tab, mcnemar_exact

Verdicts = NDArray[np.integer]

UNSCORED = -128
"""The verdict of a call that gave none."""

FLIP_LIMIT = 0.20
NOT_ENOUGH_FLIPS = "not enough flips to tell"
NO_FLIPS = "no flips"

_WINNERS = np.array([-1.0, 0.0, 1.0])
_SCORED_CODES = 3


class Outcome(IntEnum):
    """What the two orders of a pair say together."""

    CONSISTENT = 0
    CONSISTENT_TIE = 1
    FIRST_SLOT_FLIP = 2
    SECOND_SLOT_FLIP = 3
    TIE_SHIFT = 4
    INCOMPLETE = 5


# Row: sign of the verdict in order AB; column: in order BA; each -1, 0, 1 and unscored.
_OUTCOMES = np.array(
    [
        [Outcome.SECOND_SLOT_FLIP, Outcome.TIE_SHIFT, Outcome.CONSISTENT, Outcome.INCOMPLETE],
        [Outcome.TIE_SHIFT, Outcome.CONSISTENT_TIE, Outcome.TIE_SHIFT, Outcome.INCOMPLETE],
        [Outcome.CONSISTENT, Outcome.TIE_SHIFT, Outcome.FIRST_SLOT_FLIP, Outcome.INCOMPLETE],
        [Outcome.INCOMPLETE] * 4,
    ],
    dtype=np.int8,
)


class PositionVerdict(StrEnum):
    """A judge against the frozen limit of its flip rate."""

    RELIABLE = "reliable"
    UNRELIABLE = "unreliable"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class PairOutcomes:
    """The pairs of a judge, by what their two orders say together.

    Attributes:
        codes: `Outcome` of each pair, shape (pairs,).
        counts: Pairs of each `Outcome`, shape (6,), indexed by its value.
    """

    codes: NDArray[np.int8]
    counts: Ints

    def count(self, *outcomes: Outcome) -> int:
        """Pairs with any of these outcomes."""
        return int(self.counts[list(outcomes)].sum())

    @property
    def pairs(self) -> int:
        """All pairs, the incomplete ones too."""
        return int(self.counts.sum())

    @property
    def complete(self) -> int:
        """Pairs with a verdict in both orders."""
        return self.pairs - self.count(Outcome.INCOMPLETE)

    @property
    def agreeing(self) -> int:
        """Pairs on which both orders say the same, a tie twice included."""
        return self.count(Outcome.CONSISTENT, Outcome.CONSISTENT_TIE)

    @property
    def flips(self) -> int:
        """Pairs on which the same slot won twice."""
        return self.count(Outcome.FIRST_SLOT_FLIP, Outcome.SECOND_SLOT_FLIP)


@dataclass(frozen=True, slots=True)
class SlotPreference:
    """Which slot the flips favour.

    Attributes:
        first_share: Share of the flips that went to the first slot, Clopper-Pearson interval; undefined without flips.
        p: Exact two-sided binomial p-value of "no preference"; 1 without flips.
    """

    first_share: Estimate
    p: float


@dataclass(frozen=True, slots=True)
class PositionBias:
    """The position-bias figures of one judge.

    Attributes:
        outcomes: The pairs by outcome.
        flip_rate: Flips over complete pairs, Wilson interval. A tie shift is no flip, and counts in the denominator.
        tie_shift_rate: Pairs with a tie in one order only, over complete pairs.
        consistency: Pairs on which both orders say the same, over complete pairs.
        preference: Which slot the flips favour.
    """

    outcomes: PairOutcomes
    flip_rate: Estimate
    tie_shift_rate: Estimate
    consistency: Estimate
    preference: SlotPreference


@dataclass(frozen=True, slots=True)
class WinRates:
    """How often candidate A wins, with disagreement between the orders kept apart from real ties.

    Attributes:
        wins_a: Pairs on which both orders chose candidate A.
        wins_b: Pairs on which both orders chose candidate B.
        ties: Pairs on which both orders said tie.
        ties_by_disagreement: Complete pairs on which the orders differ.
        consistent_only: wins_a over the pairs both orders decided alike, Wilson interval.
        flips_as_ties: (wins_a + half of all ties of both kinds) over complete pairs.
    """

    wins_a: int
    wins_b: int
    ties: int
    ties_by_disagreement: int
    consistent_only: Estimate
    flips_as_ties: Estimate


@dataclass(frozen=True, slots=True)
class WinnerAgreement:
    """A judge's winners against known winners.

    Attributes:
        agreement: Share of the pairs with both verdicts on which they are the same, Wilson interval.
        kappa: Cohen's kappa over A, tie and B.
    """

    agreement: Estimate
    kappa: Kappa


@dataclass(frozen=True, slots=True)
class OrderAgreement:
    """Agreement with known winners in each order, and where the orders agree.

    Attributes:
        order_ab: Verdicts with candidate A in slot 1.
        order_ba: Verdicts with candidate A in slot 2.
        consistent: Pairs on which both orders say the same.
    """

    order_ab: WinnerAgreement
    order_ba: WinnerAgreement
    consistent: WinnerAgreement


def position_outcomes(order_ab: Verdicts, order_ba: Verdicts) -> PairOutcomes:
    """Sort pairs by what their two orders say together.

    Consistent: the same candidate twice, whatever the strength. Flip: the same slot twice. Tie shift: a tie in one
    order only. Incomplete: a verdict missing in either order; never consistent and never biased.

    Args:
        order_ab: Verdicts by slot with candidate A in slot 1, shape (pairs,), UNSCORED where there is none.
        order_ba: Verdicts by slot with candidate A in slot 2.
    """
    codes = _OUTCOMES[_sign_index(order_ab), _sign_index(order_ba)]
    return PairOutcomes(codes, np.bincount(codes, minlength=len(Outcome)).astype(np.int64))


def position_bias(order_ab: Verdicts, order_ba: Verdicts) -> PositionBias:
    """Flip rate, consistency and slot preference of a judge over pairs judged in both orders.

    Without a complete pair every rate is undefined (no_denominator). Arguments as `position_outcomes`.
    """
    outcomes = position_outcomes(order_ab, order_ba)
    return PositionBias(
        outcomes,
        _share(outcomes, outcomes.flips),
        _share(outcomes, outcomes.count(Outcome.TIE_SHIFT)),
        _share(outcomes, outcomes.agreeing),
        slot_preference(outcomes.count(Outcome.FIRST_SLOT_FLIP), outcomes.count(Outcome.SECOND_SLOT_FLIP)),
    )


def slot_preference(first_slot: int, second_slot: int) -> SlotPreference:
    """Test whether flips favour a slot: exact binomial, which is the exact McNemar test on the flipped pairs.

    Args:
        first_slot: Flips to the first slot.
        second_slot: Flips to the second slot.
    """
    flips = first_slot + second_slot
    share = clopper_pearson(first_slot, flips)
    if flips == 0:
        return SlotPreference(replace(share, notes=(NO_FLIPS,)), 1.0)
    if flips < flips_needed():
        share = replace(share, notes=(NOT_ENOUGH_FLIPS,))
    p = mcnemar_exact(first_slot, second_slot).p
    return SlotPreference(share, 1.0 if p is None else p)


def flips_needed(*, alpha: float = 0.05) -> int:
    """Fewest flips that can show a slot preference: all one way, 2 * 0.5^n < alpha.

    >>> flips_needed()
    6
    """
    return int(np.floor(np.log2(2 / alpha))) + 1


def position_verdict(flip_rate: Estimate, *, limit: float = FLIP_LIMIT) -> PositionVerdict:
    """A flip rate against its limit: unreliable above it, reliable only if the whole interval is at or below it.

    Inconclusive when the rate is at or below the limit and its interval is not, or when there is no rate.
    """
    if flip_rate.value is None:
        return PositionVerdict.INCONCLUSIVE
    if flip_rate.value > limit:
        return PositionVerdict.UNRELIABLE
    high = None if flip_rate.interval is None else flip_rate.interval.high
    return PositionVerdict.RELIABLE if high is not None and high <= limit else PositionVerdict.INCONCLUSIVE


def win_rates(order_ab: Verdicts, order_ba: Verdicts) -> WinRates:
    """How often candidate A wins over the pairs judged in both orders. Arguments as `position_outcomes`."""
    outcomes = position_outcomes(order_ab, order_ba)
    decided = outcomes.codes == Outcome.CONSISTENT
    wins_a = int((order_ab[decided] > 0).sum())
    wins_b = int(decided.sum()) - wins_a
    ties = outcomes.count(Outcome.CONSISTENT_TIE)
    disagreements = outcomes.complete - outcomes.agreeing
    return WinRates(
        wins_a,
        wins_b,
        ties,
        disagreements,
        wilson(wins_a, wins_a + wins_b),
        _score(outcomes, wins_a + (ties + disagreements) / 2),
    )


def winner_agreement(order_ab: Verdicts, order_ba: Verdicts, known: Verdicts) -> OrderAgreement:
    """Agreement of the judge with known winners, per order and where the orders agree.

    Args:
        order_ab: Verdicts by slot with candidate A in slot 1, shape (pairs,).
        order_ba: Verdicts by slot with candidate A in slot 2.
        known: Winner of each pair by people or by construction: +1 A, 0 tie, -1 B, UNSCORED where unknown.
    """
    outcomes = position_outcomes(order_ab, order_ba)
    agreeing = (outcomes.codes == Outcome.CONSISTENT) | (outcomes.codes == Outcome.CONSISTENT_TIE)
    judge_ab, judge_ba, people = _winner_codes(order_ab), _winner_codes(_swap(order_ba)), _winner_codes(known)
    return OrderAgreement(
        _agreement(judge_ab, people), _agreement(judge_ba, people), _agreement(judge_ab[agreeing], people[agreeing])
    )


def majority_verdicts(verdicts: Verdicts) -> Verdicts:
    """The verdict that most repetitions of each pair gave, in one order, shape (pairs,).

    Unscored repetitions have no vote. UNSCORED where none is left or where the leading verdicts have equally many
    votes. The winner is strong when more than half of its votes are.

    Args:
        verdicts: Verdicts by slot of one order, shape (pairs, repetitions).
    """
    scored = verdicts != UNSCORED
    votes = np.stack([(scored & (np.sign(verdicts) == sign)).sum(axis=1) for sign in (-1, 0, 1)], axis=1)
    most = votes.max(axis=1)
    alone = (votes == most[:, None]).sum(axis=1) == 1
    winner = (votes.argmax(axis=1) - 1).astype(np.int8)
    strong = (scored & (verdicts == 2 * winner[:, None]) & (winner[:, None] != 0)).sum(axis=1)
    strength = np.where(2 * strong > most, 2, 1).astype(np.int8)
    return np.where(alone & (most > 0), winner * strength, UNSCORED).astype(np.int8)


def orphans_as_consistent(order_ab: Verdicts, order_ba: Verdicts) -> Estimate:
    """Consistency by a rule that counts a verdict whose mate is missing as consistent, over single verdicts.

    (2 * consistent pairs + verdicts without their mate) / all verdicts. Some published logs count so; it favours judges
    that give no verdict. `left_out` is the number of verdicts without their mate. Arguments as `position_outcomes`.
    """
    outcomes = position_outcomes(order_ab, order_ba)
    orphans = int(((order_ab != UNSCORED) ^ (order_ba != UNSCORED)).sum())
    verdicts = 2 * outcomes.complete + orphans
    if verdicts == 0:
        return undefined(Undefined.NO_DENOMINATOR)
    return Estimate((2 * outcomes.agreeing + orphans) / verdicts, verdicts, orphans)


def slot_table(order_ab: Verdicts, order_ba: Verdicts, *, steps: Literal[3, 5] = 3) -> Ints:
    """Count pairs by their verdict in order AB (row) and in order BA (column), both by slot.

    Rows and columns run from the second slot's strongest win to the first slot's; incomplete pairs are left out.

    Args:
        order_ab: Verdicts by slot with candidate A in slot 1, shape (pairs,).
        order_ba: Verdicts by slot with candidate A in slot 2.
        steps: 3 for win, tie, loss; 5 keeps the strong verdicts apart.
    """
    strongest = steps // 2
    complete = (order_ab != UNSCORED) & (order_ba != UNSCORED)
    rows = np.clip(order_ab[complete], -strongest, strongest).astype(np.int64) + strongest
    columns = np.clip(order_ba[complete], -strongest, strongest).astype(np.int64) + strongest
    return np.bincount(rows * steps + columns, minlength=steps**2).reshape(steps, steps).astype(np.int64)


def position_noise(order_ab: Verdicts, order_ba: Verdicts, *, rng: np.random.Generator) -> NoiseFloor:
    """Tell position from noise: disagreement between the orders beside disagreement within one order.

    `within_a` and `within_b` are the same-order flip rates, `cross` the disagreement between the orders about the
    candidate, `excess` the part that position explains. A tie against a win is a disagreement.

    Args:
        order_ab: Verdicts by slot with candidate A in slot 1, shape (pairs, repetitions), UNSCORED where there is none.
        order_ba: Verdicts by slot with candidate A in slot 2, shape (pairs, repetitions of that order).
        rng: Seeded generator of the intervals.
    """
    return noise_floor(_winner_counts(order_ab), _winner_counts(_swap(order_ba)), rng=rng)


def _sign_index(verdicts: Verdicts) -> NDArray[np.int8]:
    """0 second slot, 1 tie, 2 first slot, 3 unscored."""
    signs = (np.sign(verdicts) + 1).astype(np.int8)
    signs[verdicts == UNSCORED] = _SCORED_CODES
    return signs


def _swap(verdicts: Verdicts) -> Verdicts:
    """The same verdicts seen from the other slot."""
    return np.where(verdicts == UNSCORED, UNSCORED, -verdicts.astype(np.int16)).astype(np.int8)


def _winner_codes(verdicts: Verdicts) -> Ints:
    """0 for B, 1 for a tie, 2 for A, MISSING for none."""
    return np.where(verdicts == UNSCORED, MISSING, np.sign(verdicts).astype(np.int64) + 1)


def _winner_counts(verdicts: Verdicts) -> Ints:
    codes = _winner_codes(verdicts)
    return np.stack([(codes == code).sum(axis=1) for code in range(_SCORED_CODES)], axis=1)


def _agreement(judge: Ints, people: Ints) -> WinnerAgreement:
    table = cross_tab(judge, people, _SCORED_CODES)
    return WinnerAgreement(wilson(int(np.trace(table)), int(table.sum())), cohens_kappa(table, _WINNERS))


def _share(outcomes: PairOutcomes, count: int) -> Estimate:
    return replace(wilson(count, outcomes.complete), left_out=outcomes.count(Outcome.INCOMPLETE))


def _score(outcomes: PairOutcomes, points: float) -> Estimate:
    left_out = outcomes.count(Outcome.INCOMPLETE)
    if outcomes.complete == 0:
        return undefined(Undefined.NO_DENOMINATOR, left_out=left_out)
    return Estimate(points / outcomes.complete, outcomes.complete, left_out)
