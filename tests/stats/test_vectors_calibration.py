"""Judge against people, corrected rates, people against people and trust rules, against the reference vectors."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from core.stats.calibration import (
    FROM_AGREEMENT,
    Confusion,
    JudgeAgreement,
    confusion_counts,
    decision_rates,
    judge_vs_people,
)
from core.stats.common import MISSING, Estimate, Interval, Undefined
from core.stats.corrected import (
    CHANCE,
    CLIPPED,
    WEAK,
    corrected_pass_rate,
    lee_interval,
    ppi_mean,
    rogan_gladen,
    rogan_gladen_se,
)
from core.stats.people import WITHIN_HUMAN_VARIATION, alt_test, human_ceiling
from core.stats.planning import wilson_lower
from core.stats.proportions import wilson
from core.stats.trust import (
    LineVerdict,
    Outcome,
    TrustDecision,
    TrustFigures,
    TrustRule,
    evaluate_trust,
    trust_figures,
)
from core.stats.two_raters import KAPPA_UNSTABLE, ONE_RATER_CONSTANT

VECTORS = {v["id"]: v for v in json.loads((Path(__file__).parent / "vectors.json").read_text())}
FAIL_PASS = np.array([0.0, 1.0])
FIVE = np.arange(1.0, 6.0)

COVERED = {
    "seed20-counts",
    "seed20-agreement",
    "seed20-kappa",
    "seed20-false-pass",
    "seed20-rule",
    "seed20-sens-spec-wilson",
    "seed20-pabak",
    "seed20-ac1",
    "seed20-kappa-bootstrap",
    "seed20-rogan-gladen-identity",
    "rogan-gladen-brucellosis",
    "lee2025-ci-1",
    "lee2025-ci-3",
    "rogan-gladen-delta-se",
    "judgy-readme",
    "edge-rogan-gladen-clip",
    "edge-ci-no-denominator",
    "ppi-mean",
    "human-ceiling",
}


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20)


def data(vector_id: str) -> Any:
    return VECTORS[vector_id]["input"]


def close(vector_id: str, *found: float | None) -> bool:
    told = VECTORS[vector_id]["expected"]
    values = told.values() if isinstance(told, dict) else [told]
    return found == pytest.approx(
        tuple(np.concatenate([np.ravel(v) for v in values])), abs=VECTORS[vector_id]["tolerance"]
    )


def limits(estimate: Estimate) -> tuple[float, float]:
    assert estimate.interval is not None
    assert estimate.interval.low is not None
    assert estimate.interval.high is not None
    return estimate.interval.low, estimate.interval.high


def seed20(rater: str) -> np.ndarray:
    return np.array([label == "pass" for label in data("seed20-counts")[rater]]).astype(int)


def seed20_agreement(rng: np.random.Generator) -> JudgeAgreement:
    return judge_vs_people(seed20("human"), seed20("judge"), FAIL_PASS, 1, rng=rng)


def test_twenty_labels_give_the_published_counts_and_rates(rng: np.random.Generator) -> None:
    found = seed20_agreement(rng)
    c, rates = found.confusion, found.rates
    assert c == confusion_counts(seed20("human") == 1, seed20("judge") == 1)
    assert close("seed20-counts", c.tp, c.fn, c.fp, c.tn)
    assert close("seed20-agreement", found.agreement.value)
    assert limits(found.agreement) == pytest.approx((0.531299122381, 0.888138298592))
    false_passes = rates.false_passes_of_human_fails, rates.false_passes_of_judge_passes
    assert close("seed20-false-pass", len(found.false_passes), *(rate.value for rate in false_passes))
    assert [rate.n for rate in false_passes] == [9, 12]
    assert found.false_passes.tolist() == [2, 8, 14]
    assert close(
        "seed20-sens-spec-wilson",
        rates.sensitivity.value,
        *limits(rates.sensitivity),
        rates.specificity.value,
        *limits(rates.specificity),
    )
    assert rates == decision_rates(c)


def test_twenty_labels_give_the_published_kappa_and_its_kin(rng: np.random.Generator) -> None:
    found = seed20_agreement(rng)
    for kappa in (found.decision_kappa, found.kappas.nominal, found.kappas.linear, found.kappas.quadratic):
        assert close("seed20-kappa", kappa.value)
        assert close("seed20-kappa-bootstrap", *limits(kappa))
    assert close("seed20-ac1", found.ac1.value)
    assert close("seed20-pabak", found.pabak.value)


def test_twenty_labels_do_not_meet_the_rule(rng: np.random.Generator) -> None:
    told = data("seed20-rule")
    rule = TrustRule(min_agreement=told["min_agreement"], min_kappa=told["min_kappa"])
    decision = evaluate_trust(rule, trust_figures(seed20_agreement(rng), rule))
    assert {line.name: line.verdict is not LineVerdict.FAILS for line in decision.lines} == {
        "min_agreement": VECTORS["seed20-rule"]["expected"]["agreement_ok"],
        "min_kappa": VECTORS["seed20-rule"]["expected"]["kappa_ok"],
    }
    assert decision.outcome is Outcome.NOT_TRUSTED
    assert decision.labels_needed is None


def test_a_judge_that_always_passes_agrees_often_and_tells_nothing(rng: np.random.Generator) -> None:
    human = np.repeat([1, 0], [90, 10])
    found = judge_vs_people(human, np.ones(100, dtype=int), FAIL_PASS, 1, rng=rng)
    assert (found.agreement.value, found.decision_kappa.value) == (0.9, 0.0)
    assert set(found.decision_kappa.notes) == {ONE_RATER_CONSTANT, KAPPA_UNSTABLE}
    assert found.rates.specificity.value == 0.0
    constant = judge_vs_people(np.ones(20, dtype=int), np.ones(20, dtype=int), FAIL_PASS, 1, rng=rng)
    assert constant.decision_kappa.reason is Undefined.NO_VARIATION
    assert constant.rates.false_passes_of_human_fails.value is VECTORS["edge-ci-no-denominator"]["expected"]
    assert constant.rates.false_passes_of_human_fails.reason is Undefined.NO_DENOMINATOR


def test_a_missing_score_in_the_middle_shifts_nothing(rng: np.random.Generator) -> None:
    human, judge = seed20("human"), seed20("judge").copy()
    judge[7] = MISSING
    found = judge_vs_people(human, judge, FAIL_PASS, 1, rng=rng)
    # r08 was a true pass: 8 + 6 of 19.
    assert found.confusion == Confusion(tp=8, fp=3, fn=2, tn=6)
    assert (found.items, found.left_out, found.false_passes.tolist()) == (19, 1, [2, 8, 14])
    empty = judge_vs_people(human, np.full(20, MISSING), FAIL_PASS, 1, rng=rng)
    assert empty.decision_kappa.reason is Undefined.NO_DATA
    assert empty.agreement.reason is Undefined.NO_DENOMINATOR


def test_a_perfect_judge_gets_a_limit_and_not_certainty(rng: np.random.Generator) -> None:
    codes = np.repeat([0, 1], 50)
    for judge in (codes, np.column_stack([codes, codes])):
        found = judge_vs_people(codes, judge, FAIL_PASS, 1, rng=rng)
        low, high = limits(found.decision_kappa)
        # Wilson lower limit of 100 of 100 is 0.9630; (0.9630 - 0.5) / 0.5 = 0.926.
        assert low == pytest.approx(2 * wilson_lower(1.0, 100) - 1)
        assert high == 1.0
        assert found.decision_kappa.interval is not None
        assert found.decision_kappa.interval.method == FROM_AGREEMENT
        assert limits(found.rates.specificity) == limits(wilson(50, 50))


def test_level_gate_is_by_value_and_unused_levels_stay(rng: np.random.Generator) -> None:
    human, judge = np.array([4, 3, 2, 0]), np.array([3, 4, 4, 0])
    found = judge_vs_people(human, judge, FIVE, 4, rng=rng)
    assert found.table.shape == (5, 5)
    assert found.confusion == Confusion(tp=2, fp=1, fn=0, tn=1)
    assert (found.agreement.value, found.rates.agreement.value) == (0.25, 0.75)


def test_pooled_repetitions_resample_items(rng: np.random.Generator) -> None:
    human = np.repeat([0, 1], 20)
    stubborn = np.where(rng.random(40) < 0.8, human, 1 - human)
    once = judge_vs_people(human, stubborn, FAIL_PASS, 1, rng=rng)
    ten = judge_vs_people(human, np.repeat(stubborn[:, None], 10, axis=1), FAIL_PASS, 1, rng=rng)
    assert (ten.items, ten.calls, ten.confusion.n) == (40, 400, 400)
    assert ten.agreement.value == once.agreement.value
    assert ten.decision_kappa.value == pytest.approx(once.decision_kappa.value)
    assert ten.ac1.value == pytest.approx(once.ac1.value)
    assert ten.pabak.value == pytest.approx(once.pabak.value)
    assert ten.rates.sensitivity.n == 20
    # Copies of a call add no evidence: the width stays that of 40 items, 2 * 1.96 * sqrt(p q / 40).
    p = ten.agreement.value
    assert p is not None
    low, high = limits(ten.agreement)
    assert high - low == pytest.approx(2 * 1.96 * np.sqrt(p * (1 - p) / 40), rel=0.15)
    assert limits(ten.decision_kappa) == pytest.approx(limits(once.decision_kappa), abs=0.05)


def test_corrected_rate_matches_the_vectors() -> None:
    told = data("seed20-rogan-gladen-identity")
    assert close("seed20-rogan-gladen-identity", rogan_gladen(told["judge_pass_rate"], told["sens"], told["spec"]).raw)
    told = data("rogan-gladen-brucellosis")
    assert close("rogan-gladen-brucellosis", rogan_gladen(told["x"] / told["n"], told["sens"], told["spec"]).shown)
    told = data("edge-rogan-gladen-clip")
    clipped = rogan_gladen(told["p"], told["sens"], told["spec"])
    assert close("edge-rogan-gladen-clip", clipped.raw, clipped.shown)
    assert clipped.notes == (CLIPPED,)
    told = data("rogan-gladen-delta-se")
    error = rogan_gladen_se(
        told["p"], told["sens"], told["spec"], n=told["n"], human_passes=told["n_pos"], human_fails=told["n_neg"]
    )
    assert close("rogan-gladen-delta-se", error)


@pytest.mark.parametrize("vector_id", ["lee2025-ci-1", "lee2025-ci-3"])
def test_corrected_interval_matches_the_authors_code(vector_id: str) -> None:
    told = data(vector_id)
    shown = rogan_gladen(told["p"], told["q1"], told["q0"]).shown
    interval = lee_interval(
        told["p"], told["q1"], told["q0"], n=told["n"], human_passes=told["m1"], human_fails=told["m0"]
    )
    assert close(vector_id, shown, interval.low, interval.high)


def test_corrected_rate_from_counts_matches_judgy() -> None:
    told = data("judgy-readme")
    labels, judge = np.array(told["test_labels"]) == 1, np.array(told["test_preds"]) == 1
    unlabelled = told["unlabeled_preds"]
    found = corrected_pass_rate(sum(unlabelled), len(unlabelled), confusion_counts(labels, judge))
    assert close("judgy-readme", found.estimate.value)


def test_twenty_labels_cannot_calibrate() -> None:
    seed = confusion_counts(seed20("human") == 1, seed20("judge") == 1)
    found = corrected_pass_rate(12, 20, seed)
    assert found.raw == pytest.approx(0.55)
    assert limits(found.estimate) == (0.0, 1.0)
    assert found.estimate.notes[0] == "20 labels cannot calibrate a judge"


def test_correction_is_refused_at_chance_and_warned_about_near_it() -> None:
    refused = corrected_pass_rate(5, 10, Confusion(tp=5, fp=5, fn=5, tn=5))
    assert (refused.estimate.value, refused.estimate.reason) == (None, Undefined.SINGULAR)
    assert refused.estimate.notes == (CHANCE,)
    assert refused.raw is refused.standard_error is None
    assert WEAK in rogan_gladen(0.5, 0.6, 0.5).notes
    assert rogan_gladen(0.5, 0.7, 0.6).notes == ()
    one_sided = corrected_pass_rate(5, 10, Confusion(tp=5, fp=0, fn=5, tn=0))
    assert one_sided.estimate.reason is Undefined.NO_DENOMINATOR


def test_corrected_interval_covers_the_truth(rng: np.random.Generator) -> None:
    covered = 0
    for _ in range(300):
        tp, tn = rng.binomial(100, 0.9), rng.binomial(100, 0.85)
        judged = rng.binomial(1_000, 0.7 * 0.9 + 0.3 * 0.15)
        low, high = limits(corrected_pass_rate(judged, 1_000, Confusion(tp, 100 - tn, 100 - tp, tn)).estimate)
        covered += low <= 0.7 <= high
    # 95% of 300 is 285; below 275 has probability under 1%.
    assert covered >= 275


def test_ppi_matches_the_vector() -> None:
    told = data("ppi-mean")
    found = ppi_mean(np.array(told["Y"]), np.array(told["Yhat"]), np.array(told["Yhat_unlabeled"]))
    assert close("ppi-mean", found.estimate.value, *limits(found.estimate))
    assert found.weight == 1.0


def test_tuned_ppi_ignores_a_useless_judge_and_never_loses_much(rng: np.random.Generator) -> None:
    human = rng.random(200)
    noise, more = rng.random(200), rng.random(5_000)
    plain, tuned = (ppi_mean(human, noise, more, tuned=tuned) for tuned in (False, True))
    assert plain.standard_error is not None
    assert tuned.standard_error is not None
    assert tuned.weight == pytest.approx(0.0, abs=0.1)
    assert tuned.standard_error < plain.standard_error
    assert tuned.standard_error <= human.std() / np.sqrt(200) + 1e-12
    good = ppi_mean(human, human + 0.01 * noise, rng.random(5_000), tuned=True)
    # The best weight is 1 / (1 + 200 / 5000) = 0.9615 for a judge that equals the human.
    assert good.weight == pytest.approx(0.9615, abs=0.05)
    assert ppi_mean(human[:0], noise[:0], more).estimate.reason is Undefined.NO_DATA
    few = ppi_mean(human[:5], noise[:5], more).estimate.interval
    assert few is not None
    assert few.reason is Undefined.TOO_FEW_ITEMS


def test_human_ceiling_matches_the_vector(rng: np.random.Generator) -> None:
    told = data("human-ceiling")
    found = human_ceiling(np.array(told["humans"]), np.array(told["judge"]), np.array([0.0, 1.0, 2.0]), rng=rng)
    assert close("human-ceiling", found.human_agreement.value, found.human_kappa.value, found.judge_kappa.value)
    assert found.judge_kappa.notes == (WITHIN_HUMAN_VARIATION,)
    low, high = limits(found.human_kappa)
    assert low < VECTORS["human-ceiling"]["expected"][1] < high


def test_human_ceiling_uses_the_items_each_pair_shares(rng: np.random.Generator) -> None:
    people = np.array([[0, 1, 1, MISSING, 0], [0, 1, MISSING, 1, MISSING], [MISSING, MISSING, 1, 0, MISSING]])
    found = human_ceiling(people, np.array([0, 1, 1, 1, 0]), FAIL_PASS, rng=rng)
    # Pairs share items 0-1 (agree twice), 2 (agree), 3 (differ): (1 + 1 + 0) / 3. Item 4 has one person.
    assert found.human_agreement.value == pytest.approx(2 / 3)
    assert (found.human_agreement.n, found.human_agreement.left_out) == (4, 1)
    # The judge agrees with the first on 3 of 3, the second on 3 of 3, the third on 1 of 2.
    assert found.judge_agreement.value == pytest.approx((1 + 1 + 0.5) / 3)


def alike(rng: np.random.Generator, truth: np.ndarray, right: float) -> np.ndarray:
    return np.where(rng.random(len(truth)) < right, truth, rng.integers(0, 3, len(truth)))


def test_alt_test_lets_a_good_judge_replace_people_and_a_random_one_not(rng: np.random.Generator) -> None:
    truth, levels = rng.integers(0, 3, 200), np.array([0.0, 1.0, 2.0])
    people = np.array([alike(rng, truth, 0.8) for _ in range(4)])
    for alignment in ("accuracy", "rmse"):
        good = alt_test(people, alike(rng, truth, 0.9), levels, alignment=alignment)
        assert (good.passes, good.winning_rate.value) == (True, 1.0)
        random = alt_test(people, rng.integers(0, 3, 200), levels, alignment=alignment)
        assert (random.passes, random.winning_rate.value) == (False, 0.0)
        assert random.advantage_probability.value is not None
        assert good.advantage_probability.value is not None
        assert random.advantage_probability.value < good.advantage_probability.value


def test_alt_test_follows_its_definition(rng: np.random.Generator) -> None:
    truth, levels = rng.integers(0, 3, 60), np.array([0.0, 1.0, 2.0])
    people = np.array([alike(rng, truth, 0.7) for _ in range(3)])
    judge = alike(rng, truth, 0.7)
    p_values, advantages = [], []
    for j in range(3):
        others = [people[k] for k in range(3) if k != j]
        person = [np.mean([other[i] == people[j][i] for other in others]) for i in range(60)]
        machine = [np.mean([other[i] == judge[i] for other in others]) for i in range(60)]
        d = [int(h >= f) - int(f >= h) for h, f in zip(person, machine, strict=True)]
        p_values.append(stats.ttest_1samp(d, 0.2, alternative="less").pvalue)
        advantages.append(np.mean([f >= h for h, f in zip(person, machine, strict=True)]))
    found = alt_test(people, judge, levels)
    assert [person.p for person in found.people] == pytest.approx(p_values)
    assert found.advantage_probability.value == pytest.approx(np.mean(advantages))


def test_alt_test_refuses_few_people_or_items_and_settles_no_variance() -> None:
    levels, codes = np.array([0.0, 1.0]), np.tile([0, 1], 20)
    assert alt_test(np.tile(codes, (2, 1)), codes, levels).winning_rate.reason is Undefined.TOO_FEW_ITEMS
    assert alt_test(np.tile(codes, (3, 1))[:, :29], codes[:29], levels).passes is None
    perfect = alt_test(np.tile(codes, (3, 1)), codes, levels)
    assert perfect.passes is True
    opposed = alt_test(np.tile(codes, (3, 1)), 1 - codes, levels)
    assert opposed.passes is False


def figures(agreed: int, n: int, kappa: Estimate, *, false_passes: int = 0) -> TrustFigures:
    return TrustFigures(wilson(agreed, n), kappa, false_passes, wilson(false_passes, n // 2), n)


def kappa_of(value: float, low: float, n: int) -> Estimate:
    return Estimate(value, n, interval=Interval(low, min(1.0, 2 * value - low), "test"))


def verdicts(decision: TrustDecision) -> dict[str, LineVerdict]:
    return {line.name: line.verdict for line in decision.lines}


def test_points_and_limits_above_the_bars_are_trusted() -> None:
    rule = TrustRule(min_agreement=0.8, min_kappa=0.6, max_false_passes=2, max_false_pass_rate=0.1, min_labels=50)
    decision = evaluate_trust(rule, figures(190, 200, kappa_of(0.9, 0.8, 200), false_passes=2))
    assert decision.outcome is Outcome.TRUSTED
    assert set(verdicts(decision).values()) == {LineVerdict.PASSES}


def test_a_limit_below_the_bar_is_inconclusive_and_says_how_many_labels_decide() -> None:
    rule = TrustRule(min_agreement=0.8, min_kappa=0.6)
    decision = evaluate_trust(rule, figures(85, 100, kappa_of(0.7, 0.5, 100)))
    assert decision.outcome is Outcome.INCONCLUSIVE
    agreement, kappa = decision.lines
    assert agreement.labels_needed is not None
    assert wilson_lower(0.85, agreement.labels_needed) >= 0.8 > wilson_lower(0.85, agreement.labels_needed - 1)
    # (0.2 / 0.1)^2 * 100 = 400.
    assert kappa.labels_needed == pytest.approx(400, abs=1)
    assert decision.labels_needed == max(agreement.labels_needed, kappa.labels_needed or 0)


def test_too_few_labels_are_inconclusive_and_a_missed_point_is_not_trusted() -> None:
    good = figures(30, 30, kappa_of(1.0, 0.8, 30))
    few = evaluate_trust(TrustRule(min_agreement=0.8, min_labels=50), good)
    assert (few.outcome, few.labels_needed) == (Outcome.INCONCLUSIVE, 50)
    missed = evaluate_trust(
        TrustRule(min_agreement=0.8, max_false_passes=2, min_labels=50),
        figures(30, 30, kappa_of(1.0, 0.8, 30), false_passes=3),
    )
    assert missed.outcome is Outcome.NOT_TRUSTED
    assert missed.labels_needed is None


def test_an_undefined_figure_passes_no_rule() -> None:
    nothing = Estimate(None, 40, reason=Undefined.NO_VARIATION)
    decision = evaluate_trust(TrustRule(min_agreement=0.5, min_kappa=0.0), figures(40, 40, nothing))
    assert verdicts(decision)["min_kappa"] is LineVerdict.UNDEFINED
    assert decision.outcome is Outcome.INCONCLUSIVE
    with pytest.raises(ValueError, match="at least one threshold"):
        evaluate_trust(TrustRule(), figures(40, 40, nothing))


def test_no_number_of_labels_lifts_a_point_that_sits_on_the_bar() -> None:
    decision = evaluate_trust(TrustRule(min_agreement=0.8), figures(80, 100, kappa_of(0.7, 0.6, 100)))
    assert (decision.outcome, decision.labels_needed) == (Outcome.INCONCLUSIVE, None)


def test_a_rule_may_speak_of_levels(rng: np.random.Generator) -> None:
    human, judge = np.array([4, 3, 2, 0]), np.array([3, 4, 4, 0])
    measured = judge_vs_people(human, judge, FIVE, 4, rng=rng)
    by_level = trust_figures(measured, TrustRule(on="level", kappa_weights="quadratic"))
    assert by_level.agreement == measured.agreement
    assert by_level.kappa == measured.kappas.quadratic


cells = st.integers(0, 60)


@settings(max_examples=50, deadline=None)
@given(cells, cells, cells, cells)
def test_swapping_people_and_judge_swaps_the_rates(tp: int, fp: int, fn: int, tn: int) -> None:
    there, back = decision_rates(Confusion(tp, fp, fn, tn)), decision_rates(Confusion(tp, fn, fp, tn))
    assert there.agreement == back.agreement
    assert there.human_pass_rate == back.judge_pass_rate
    assert there.false_passes_of_judge_passes == back.false_fails_of_human_passes


@settings(max_examples=50, deadline=None)
@given(cells, cells, cells, cells)
def test_correcting_the_labelled_items_themselves_gives_the_human_rate(tp: int, fp: int, fn: int, tn: int) -> None:
    labelled = Confusion(tp, fp, fn, tn)
    found = corrected_pass_rate(labelled.judge_passes, labelled.n, labelled)
    if found.raw is not None:
        assert found.raw == pytest.approx(labelled.human_passes / labelled.n, abs=1e-6)
