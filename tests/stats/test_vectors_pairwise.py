"""Pairwise verdicts against the reference vectors, the published position-bias data and statsmodels."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st

from core.stats.bradley_terry import BradleyTerry, bradley_terry
from core.stats.common import Undefined
from core.stats.pairwise import (
    NO_FLIPS,
    NOT_ENOUGH_FLIPS,
    UNSCORED,
    Outcome,
    PositionVerdict,
    flips_needed,
    position_bias,
    position_noise,
    position_outcomes,
    position_verdict,
    slot_preference,
    slot_table,
    win_rates,
    winner_agreement,
)
from core.stats.preference import (
    ASSOCIATION,
    length_effect,
    length_matched,
    longer_wins_share,
    self_preference_did,
    standardised_log_ratio,
)
from core.stats.proportions import wilson
from core.stats.two_raters import mcnemar_exact

VECTORS = {v["id"]: v for v in json.loads((Path(__file__).parent / "vectors.json").read_text())}
REALDATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "realdata"

COVERED = {
    "seed12-counts",
    "seed12-flip-rate",
    "seed12-slot-test",
    "seed12-winrate",
    "edge-slot-no-flips",
    "faireval-conflict-chatgpt",
    "faireval-conflict-gpt4",
    "bt-baseball",
    "bt-baseball-slot",
    "bt-baseball-slot-lrt",
    "edge-bt-separation",
    "verbosity-logit",
    "self-preference-did",
}


def expected(vector_id: str) -> Any:
    return VECTORS[vector_id]["expected"]


def close(vector_id: str, *found: float | None) -> bool:
    return found == pytest.approx(tuple(np.ravel(expected(vector_id))), abs=VECTORS[vector_id]["tolerance"] or 1e-12)


def by_slot(vector_id: str) -> tuple[np.ndarray, np.ndarray]:
    """Letters name the candidate chosen; A stands in slot 1 in the first order and in slot 2 in the second."""
    pairs = VECTORS[vector_id]["input"]["pairs"]
    order_ab = np.array([1 if pair[0] == "A" else -1 for pair in pairs])
    order_ba = np.array([1 if pair[1] == "B" else -1 for pair in pairs])
    return order_ab, order_ba


def test_twelve_pairs_hold_eight_consistent_and_four_first_slot_flips() -> None:
    outcomes = position_outcomes(*by_slot("seed12-counts"))
    first, second = outcomes.count(Outcome.FIRST_SLOT_FLIP), outcomes.count(Outcome.SECOND_SLOT_FLIP)
    assert [outcomes.pairs, outcomes.agreeing, outcomes.flips, first, second] == expected("seed12-counts")
    assert np.flatnonzero(outcomes.codes == Outcome.FIRST_SLOT_FLIP).tolist() == [2, 4, 7, 10]


def test_twelve_pairs_are_unreliable_and_too_few_to_show_a_slot_preference() -> None:
    bias = position_bias(*by_slot("seed12-flip-rate"))
    rate, share = bias.flip_rate, bias.preference.first_share
    assert rate.interval is not None
    assert share.interval is not None
    assert close("seed12-flip-rate", rate.value, rate.interval.low, rate.interval.high)
    assert close("seed12-slot-test", share.value, bias.preference.p, share.interval.low, share.interval.high)
    assert share.notes == (NOT_ENOUGH_FLIPS,)
    assert position_verdict(rate) is PositionVerdict.UNRELIABLE


def test_flips_count_as_half_a_win() -> None:
    rates = win_rates(*by_slot("seed12-winrate"))
    assert close("seed12-winrate", rates.flips_as_ties.value)
    # Five pairs AA, three BB, four AB: 5 of 8 where the orders agree.
    assert (rates.wins_a, rates.wins_b, rates.ties, rates.ties_by_disagreement) == (5, 3, 0, 4)
    assert rates.consistent_only.value == 5 / 8


def test_without_flips_the_slot_share_is_undefined_and_p_is_one() -> None:
    preference = position_bias(*by_slot("edge-slot-no-flips")).preference
    assert preference.first_share.value is expected("edge-slot-no-flips")
    assert preference.first_share.reason is Undefined.NO_DENOMINATOR
    assert preference.first_share.notes == (NO_FLIPS,)
    assert preference.p == 1.0


@pytest.mark.parametrize("vector_id", ["faireval-conflict-chatgpt", "faireval-conflict-gpt4"])
def test_published_conflict_rate_is_the_flip_rate(vector_id: str) -> None:
    x, n = VECTORS[vector_id]["input"]["x"], VECTORS[vector_id]["input"]["n"]
    order_ab = np.ones(n, dtype=int)
    order_ba = np.where(np.arange(n) < x, 1, -1)
    rate = position_bias(order_ab, order_ba).flip_rate
    assert rate.interval is not None
    assert close(vector_id, rate.value, rate.interval.low, rate.interval.high)


def test_six_one_way_flips_are_needed() -> None:
    assert flips_needed() == 6
    # 2 * 0.5^5 = 0.0625 and 2 * 0.5^6 = 0.03125.
    assert slot_preference(5, 0).p == 0.0625
    assert slot_preference(6, 0).p == 0.03125


def baseball(**options: Any) -> BradleyTerry:
    games = VECTORS["bt-baseball"]["input"]["games"]
    teams = ["Baltimore", "Boston", "Cleveland", "Detroit", "Milwaukee", "New York", "Toronto"]
    index = np.array([[teams.index(home), teams.index(away)] for home, away, *_ in games])
    wins = np.array([game[2:] for game in games])
    return bradley_terry(index[:, 0], index[:, 1], wins[:, 0], wins[:, 1], candidates=len(teams), **options)


def test_baseball_abilities_match_agresti() -> None:
    fit = baseball(slot=False)
    assert fit.abilities[0].value == 0.0
    assert fit.slot is None
    assert close("bt-baseball", *(ability.value for ability in fit.abilities[1:]))


def test_baseball_home_effect_is_the_intercept() -> None:
    fit = baseball()
    assert fit.slot is not None
    assert fit.slot.value is not None
    assert fit.slot.interval is not None
    assert fit.slot.interval.high is not None
    error = (fit.slot.interval.high - fit.slot.value) / 1.959963984540054
    assert close("bt-baseball-slot", fit.slot.value, error)
    assert fit.slot_test is not None
    assert close("bt-baseball-slot-lrt", fit.slot_test.statistic, fit.slot_test.p)


def test_a_slot_that_always_wins_has_no_finite_effect() -> None:
    given_counts = VECTORS["edge-bt-separation"]["input"]
    half = given_counts["first_wins"] // 2
    fit = bradley_terry(np.array([0, 1]), np.array([1, 0]), np.array([half, half]), np.array([0, 0]), candidates=2)
    assert fit.slot is not None
    assert fit.slot.value is expected("edge-bt-separation")
    assert fit.slot.reason is Undefined.SEPARATION
    assert fit.first_share.value == 1.0
    assert fit.first_share.n == given_counts["first_wins"]
    assert fit.slot_test is not None
    assert fit.slot_test.p is None


def test_candidates_that_never_met_cannot_be_ranked() -> None:
    first, second = np.array([0, 1, 2, 3]), np.array([1, 0, 3, 2])
    fit = bradley_terry(first, second, np.full(4, 2), np.full(4, 1), candidates=4)
    assert {ability.reason for ability in fit.abilities} == {Undefined.SINGULAR}


def test_a_candidate_that_never_loses_has_no_finite_ability() -> None:
    first, second = np.array([0, 1, 2, 0]), np.array([1, 2, 0, 2])
    fit = bradley_terry(first, second, np.array([5, 3, 0, 4]), np.array([0, 2, 4, 0]), candidates=3, slot=False)
    assert {ability.reason for ability in fit.abilities} == {Undefined.SEPARATION}


def test_cluster_robust_errors_match_statsmodels() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.integers(0, 3, 400), rng.integers(1, 3, 400)
    second = (first + second) % 3
    wins = (rng.random(400) < 0.55 + 0.1 * (first - second) / 2).astype(int)
    items = rng.integers(0, 60, 400)
    fit = bradley_terry(first, second, wins, 1 - wins, candidates=3, clusters=items)
    ability = (np.arange(3) == first[:, None]).astype(float) - (np.arange(3) == second[:, None])
    design = np.column_stack([np.ones(400), ability[:, 1:]])
    model = sm.GLM(wins, design, family=sm.families.Binomial())
    reference = model.fit(cov_type="cluster", cov_kwds={"groups": items})
    assert fit.slot is not None
    for found, value, limits in zip(
        [fit.slot, *fit.abilities[1:]], reference.params, reference.conf_int(), strict=True
    ):
        assert found.interval is not None
        assert (found.value, found.interval.low, found.interval.high) == pytest.approx((value, *limits), abs=1e-7)


def test_length_slope_matches_the_vector() -> None:
    data = VECTORS["verbosity-logit"]["input"]
    verdicts = np.where(np.array(data["first_wins"]) == 1, 1, -1)
    effect = length_effect(np.array(data["length_diff"]), verdicts)
    assert close("verbosity-logit", effect.slot.value, effect.slope.value)
    assert effect.slope.notes == (ASSOCIATION,)
    assert effect.human is None


def test_length_effect_leaves_out_ties_and_unknown_human_verdicts() -> None:
    rng = np.random.default_rng(0)
    difference, human = rng.normal(size=300), rng.integers(-1, 2, 300)
    verdicts = np.where(rng.random(300) < 1 / (1 + np.exp(-difference - human)), 1, -1)
    verdicts[:20], human[20:30], verdicts[30:35] = 0, UNSCORED, UNSCORED
    items = np.arange(300) // 2
    effect = length_effect(difference, verdicts, human=human, clusters=items)
    kept = slice(35, None)
    design = sm.add_constant(np.column_stack([difference, human])[kept])
    reference = sm.Logit(verdicts[kept] > 0, design).fit(disp=0, cov_type="cluster", cov_kwds={"groups": items[kept]})
    assert effect.human is not None
    assert (effect.slope.n, effect.slope.left_out) == (265, 35)
    for found, value, limits in zip(
        [effect.slot, effect.slope, effect.human], reference.params, reference.conf_int(), strict=True
    ):
        assert found.interval is not None
        assert (found.value, found.interval.low, found.interval.high) == pytest.approx((value, *limits), abs=1e-7)


def test_length_that_decides_every_verdict_is_separation() -> None:
    effect = length_effect(np.array([-2.0, -1.0, 1.0, 2.0]), np.array([-1, -1, 1, 1]))
    assert effect.slope.reason is Undefined.SEPARATION
    assert length_effect(np.ones(4), np.array([1, -1, 1, -1])).slope.reason is Undefined.SINGULAR
    assert length_effect(np.ones(0), np.ones(0, dtype=int)).slope.reason is Undefined.NO_DATA


def test_longer_wins_share_ignores_ties_and_equal_lengths() -> None:
    share = longer_wins_share(np.array([3.0, -2.0, 0.0, 5.0, 1.0]), np.array([1, 1, 1, 0, 1]))
    assert (share.value, share.n, share.left_out) == (2 / 3, 3, 2)


def test_log_ratio_is_standardised_and_length_matching_is_symmetric() -> None:
    first, second = np.array([100.0, 109.0, 300.0]), np.array([109.0, 100.0, 100.0])
    assert standardised_log_ratio(first, second).std(ddof=1) == pytest.approx(1.0)
    assert length_matched(first, second).tolist() == [True, True, False]
    with pytest.raises(ValueError, match="positive"):
        standardised_log_ratio(np.array([0.0]), np.array([1.0]))


def test_self_preference_matches_the_vector_and_a_saturated_model() -> None:
    cells = VECTORS["self-preference-did"]["input"]["cells"]
    outcomes = np.concatenate([cells[key] for key in cells])
    own_judge = np.repeat([key.startswith("own") for key in cells], 4)
    own_candidate = np.repeat([key.endswith("self") for key in cells], 4)
    found = self_preference_did(outcomes, own_judge, own_candidate, clusters=np.tile(np.arange(4), 4))
    assert close("self-preference-did", found.value)
    rng = np.random.default_rng(5)
    wins, mine, kin = rng.random(200), rng.random(200) < 0.5, rng.random(200) < 0.5
    items = rng.integers(0, 30, 200)
    design = np.column_stack([np.ones(200), mine, kin, mine & kin]).astype(float)
    reference = sm.OLS(wins, design).fit(cov_type="cluster", cov_kwds={"groups": items}, use_t=True)
    found = self_preference_did(wins, mine, kin, clusters=items)
    assert found.interval is not None
    assert (found.value, found.interval.low, found.interval.high) == pytest.approx(
        (reference.params[3], *reference.conf_int()[3])
    )


def test_self_preference_needs_all_four_cells() -> None:
    always = np.ones(6, dtype=bool)
    assert self_preference_did(np.ones(6), always, always).reason is Undefined.NO_DENOMINATOR


def test_an_unscored_judge_has_no_bias_figure() -> None:
    nothing = np.full(5, UNSCORED)
    bias = position_bias(nothing, np.array([1, 0, -1, 1, UNSCORED]))
    assert bias.outcomes.count(Outcome.INCOMPLETE) == 5
    for figure in (bias.flip_rate, bias.consistency, bias.tie_shift_rate, bias.preference.first_share):
        assert figure.value is None
    assert position_verdict(bias.flip_rate) is PositionVerdict.INCONCLUSIVE
    assert win_rates(nothing, nothing).flips_as_ties.reason is Undefined.NO_DENOMINATOR


def test_always_the_second_slot_is_a_full_flip() -> None:
    bias = position_bias(np.full(9, -1), np.full(9, -1))
    assert bias.flip_rate.value == 1.0
    assert bias.preference.first_share.value == 0.0


def test_first_slot_against_tie_is_a_tie_shift_and_not_consistent() -> None:
    bias = position_bias(np.ones(9, dtype=int), np.zeros(9, dtype=int))
    assert (bias.flip_rate.value, bias.tie_shift_rate.value, bias.consistency.value) == (0.0, 1.0, 0.0)


def test_position_verdict_needs_the_whole_interval_to_call_a_judge_reliable() -> None:
    assert position_verdict(wilson(5, 100)) is PositionVerdict.RELIABLE  # upper limit 0.112
    assert position_verdict(wilson(1, 10)) is PositionVerdict.INCONCLUSIVE  # upper limit 0.404
    assert position_verdict(wilson(21, 100)) is PositionVerdict.UNRELIABLE


def test_slot_table_keeps_strong_verdicts_apart() -> None:
    order_ab, order_ba = np.array([2, 1, -2, 0, UNSCORED]), np.array([-1, 1, -2, 0, 1])
    table = slot_table(order_ab, order_ba, steps=5)
    assert table.sum() == 4
    assert (table[4, 1], table[3, 3], table[0, 0], table[2, 2]) == (1, 1, 1, 1)
    assert slot_table(order_ab, order_ba).tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 1]]


def test_agreement_with_known_winners_is_per_order_and_where_consistent() -> None:
    # Candidate chosen: AB order A A B A, BA order A B B B; people say A A B A.
    order_ab, order_ba = np.array([1, 1, -1, 1]), np.array([-1, 1, 1, 1])
    found = winner_agreement(order_ab, order_ba, np.array([1, 1, -1, 1]))
    assert found.order_ab.agreement.value == 1.0
    assert found.order_ba.agreement.value == 0.5
    assert (found.consistent.agreement.value, found.consistent.agreement.n) == (1.0, 2)


def test_noise_is_told_from_position() -> None:
    rng = np.random.default_rng(1)
    better = rng.random((400, 1)) < 0.5
    noisy_ab = np.where((rng.random((400, 3)) < 0.8) == better, 1, -1)
    noisy_ba = np.where((rng.random((400, 3)) < 0.8) == better, -1, 1)
    noise = position_noise(noisy_ab, noisy_ba, rng=rng)
    # Two independent draws that are right with probability 0.8 disagree with probability 2 * 0.8 * 0.2 = 0.32.
    assert noise.floor.value == pytest.approx(0.32, abs=0.04)
    assert noise.excess.interval is not None
    assert noise.excess.interval.low is not None
    assert noise.excess.interval.high is not None
    assert noise.excess.interval.low < 0 < noise.excess.interval.high
    slotted = position_noise(np.ones((50, 2), dtype=int), np.ones((50, 2), dtype=int), rng=rng)
    assert (slotted.cross.value, slotted.floor.value, slotted.excess.value) == (1.0, 0.0, 1.0)
    single = position_noise(np.ones((50, 1), dtype=int), np.ones((50, 1), dtype=int), rng=rng)
    assert single.floor.reason is Undefined.SINGLE_REPETITION


verdict_lists = st.lists(
    st.tuples(st.sampled_from([2, 1, 0, -1, -2, UNSCORED]), st.sampled_from([2, 1, 0, -1, -2, UNSCORED])), max_size=30
)


@settings(max_examples=50, deadline=None)
@given(verdict_lists)
def test_swapping_the_candidates_changes_no_position_figure(pairs: list[tuple[int, int]]) -> None:
    verdicts = np.array(pairs, dtype=int).reshape(-1, 2)
    there, back = position_bias(*verdicts.T), position_bias(*verdicts.T[::-1])
    assert there.outcomes.counts.tolist() == back.outcomes.counts.tolist()
    assert there.preference == back.preference


@settings(max_examples=50, deadline=None)
@given(verdict_lists)
def test_swapping_the_slots_swaps_the_flips(pairs: list[tuple[int, int]]) -> None:
    verdicts = np.array(pairs, dtype=int).reshape(-1, 2)
    mirrored = np.where(verdicts == UNSCORED, UNSCORED, -verdicts)
    there, back = position_outcomes(*verdicts.T), position_outcomes(*mirrored.T)
    assert there.count(Outcome.FIRST_SLOT_FLIP) == back.count(Outcome.SECOND_SLOT_FLIP)
    assert there.agreeing == back.agreeing
    assert slot_table(*verdicts.T).sum() == there.complete == slot_table(*verdicts.T, steps=5).sum()


def test_a_million_pairs_take_well_under_a_second() -> None:
    rng = np.random.default_rng(0)
    order_ab, order_ba = (rng.integers(-1, 2, 1_000_000).astype(np.int8) for _ in range(2))
    start = time.perf_counter()
    bias, rates = position_bias(order_ab, order_ba), win_rates(order_ab, order_ba)
    agreement = winner_agreement(order_ab, order_ba, order_ab)
    elapsed = time.perf_counter() - start
    assert bias.outcomes.pairs == rates.flips_as_ties.n == agreement.order_ab.agreement.n == 1_000_000
    assert elapsed < 1.0


@pytest.fixture(scope="module")
def published() -> tuple[pd.DataFrame, dict[str, Any]]:
    if not REALDATA.exists():
        pytest.skip("the shared real data is not beside the checkout")
    rows = pd.read_csv(REALDATA / "positionbias_pairs.csv.gz", keep_default_na=False)
    slots = {"A": 1, "B": -1, "C": 0, "": UNSCORED}
    rows["verdict"] = rows["choice"].map(slots).astype(int)
    keys = ["bench", "judge", "rep", "pair_id"]
    wide = rows.pivot_table(index=keys, columns="order", values="verdict", aggfunc="first").reset_index()
    return wide, json.loads((REALDATA / "expected.json").read_text())["positionbias"]


def test_every_published_judge_bench_and_repetition(published: tuple[pd.DataFrame, dict[str, Any]]) -> None:
    wide, figures = published
    checked = 0
    for (bench, judge, rep), pairs in wide.groupby(["bench", "judge", "rep"]):
        told = figures[bench][judge][f"rep{rep}"]
        outcomes = position_outcomes(pairs["ref_first"].to_numpy(), pairs["ref_second"].to_numpy())
        assert {
            "pairs": outcomes.pairs,
            "usable": outcomes.complete,
            "consistent": outcomes.agreeing,
            "both_tie": outcomes.count(Outcome.CONSISTENT_TIE),
            "first_slot_both": outcomes.count(Outcome.FIRST_SLOT_FLIP),
            "second_slot_both": outcomes.count(Outcome.SECOND_SLOT_FLIP),
            "tie_vs_win": outcomes.count(Outcome.TIE_SHIFT),
            "unparsed_pairs": outcomes.count(Outcome.INCOMPLETE),
        }.items() <= told.items()
        checked += 1
    assert checked == sum(
        key in ("rep1", "rep2", "rep3")
        for bench in ("MTBench", "DevBench")
        for told in figures[bench].values()
        for key in told
    )


def test_consistency_lost_between_snapshots(published: tuple[pd.DataFrame, dict[str, Any]]) -> None:
    wide, figures = published
    for change in figures["judge_snapshot_drift"]:
        of_bench = wide[(wide["bench"] == change["bench"]) & (wide["rep"] == change["rep"])]
        sides = [
            of_bench[of_bench["judge"] == change[side]].set_index("pair_id").sort_index() for side in ("old", "new")
        ]
        common = sides[0].index.intersection(sides[1].index)
        old, new = (
            position_outcomes(side.loc[common, "ref_first"].to_numpy(), side.loc[common, "ref_second"].to_numpy())
            for side in sides
        )
        usable = (old.codes != Outcome.INCOMPLETE) & (new.codes != Outcome.INCOMPLETE)
        agree_old, agree_new = (
            np.isin(side.codes, [Outcome.CONSISTENT, Outcome.CONSISTENT_TIE])[usable] for side in (old, new)
        )
        lost, gained = int((agree_old & ~agree_new).sum()), int((~agree_old & agree_new).sum())
        assert (lost, gained) == (change["lost_consistency"], change["gained_consistency"])
        assert mcnemar_exact(lost, gained).p == pytest.approx(change["mcnemar_exact_p"], rel=1e-9)
