"""Symmetries of the repetition statistics, and the same figures from independent libraries and brute force."""

import time
import tracemalloc
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats import inter_rater
from statsmodels.stats.contingency_tables import SquareTable

from core.stats.common import MISSING, Estimate, Floats, Undefined, distinct_rows
from core.stats.dispersion import dispersion_summary, level_counts, per_item_dispersion
from core.stats.gate import (
    flip_curve,
    flip_probability,
    gate_flips,
    item_verdicts,
    majority_flip_disjoint,
    majority_verdict,
    zero_flip_upper_bound,
)
from core.stats.pairs import (
    mean_pair_kappa,
    pair_exact_agreement,
    pair_flip_shares,
    pair_kappas,
    pair_table,
    pair_within_one_agreement,
    run_pairs,
    spread,
    transitions,
)
from core.stats.proportions import clopper_pearson, wilson
from core.stats.reliability import Metric, fleiss_kappa, gwet_ac1, gwet_ac2, krippendorff_alpha, randolph_kappa
from core.stats.totals import GROUPS
from core.stats.two_raters import Weights, bowker, cohens_kappa, pabak, stuart_maxwell, within_one_agreement
from core.stats.two_raters import gwet_ac2 as gwet_ac2_of_table
from core.stats.variance import icc_one_way, icc_two_way, mcdonald_omega, variance_components

LEVELS = np.array([1.0, 2.0, 3.0, 5.0])
GATE = 3.0

SCHEMES: tuple[Weights, ...] = ("nominal", "linear", "quadratic")

Codes = NDArray[np.signedinteger]


def score_matrices(*, gaps: bool = True) -> st.SearchStrategy[Codes]:
    """Codes of 2 to 8 items by 2 to 5 repetitions on four levels."""
    shapes = st.tuples(st.integers(2, 8), st.integers(2, 5))
    return arrays(np.int16, shapes, elements=st.integers(MISSING if gaps else 0, len(LEVELS) - 1))


def noisy(items: int, repetitions: int = 20, *, gaps: float = 0.0, seed: int = 0) -> Codes:
    """Codes of a judge with noise around each item's own level."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(1.5, 1.0, (items, 1)).astype(np.float32)
    noise = rng.standard_normal((items, repetitions), dtype=np.float32)
    codes = np.clip(np.rint(centre + 0.7 * noise), 0, 3).astype(np.int16)
    codes[rng.random((items, repetitions), dtype=np.float32) < gaps] = MISSING
    return codes


def figures(codes: Codes, levels: Floats = LEVELS) -> dict[str, Estimate]:
    """Every figure that treats repetitions as exchangeable."""
    counts = level_counts(codes, len(levels))
    spread_within = dispersion_summary(counts, levels)
    flips = gate_flips(counts, levels, GATE)
    components = variance_components(counts, levels)
    icc = icc_one_way(counts, levels)
    return {
        "mean_sd": spread_within.mean_sd,
        "mean_sd_population": spread_within.mean_sd_population,
        "zero_sd_share": spread_within.zero_sd_share,
        "mean_modal_share": spread_within.mean_modal_share,
        "mean_adjacent_agreement": spread_within.mean_adjacent_agreement,
        "within_item_sd": spread_within.within_item_sd,
        "flip_rate": flips.flip_rate,
        "pooled": flips.pooled,
        "any_flip": flips.any_flip,
        "alpha_nominal": krippendorff_alpha(counts, levels, metric="nominal"),
        "alpha_ordinal": krippendorff_alpha(counts, levels, metric="ordinal"),
        "alpha_interval": krippendorff_alpha(counts, levels, metric="interval"),
        "alpha_ratio": krippendorff_alpha(counts, levels, metric="ratio"),
        "icc": icc.single,
        "icc_average": icc.average,
        "item_share": components.item_share,
        "randolph": randolph_kappa(counts),
        "ac1": gwet_ac1(counts),
        "ac2": gwet_ac2(counts, levels),
    }


def values(found: dict[str, Estimate]) -> dict[str, float | None]:
    return {name: estimate.value for name, estimate in found.items()}


def same(found: dict[str, float | None], told: dict[str, float | None]) -> bool:
    undefined_alike = {k for k, v in found.items() if v is None} == {k for k, v in told.items() if v is None}
    defined = {k: v for k, v in told.items() if v is not None}
    return undefined_alike and {k: found[k] for k in defined} == pytest.approx(defined, abs=1e-9)


@given(score_matrices(), st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_the_order_of_items_and_of_repetitions_changes_nothing(codes: Codes, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shuffled = rng.permuted(codes[rng.permutation(len(codes))], axis=1)
    assert same(values(figures(shuffled)), values(figures(codes)))


@given(score_matrices())
@settings(max_examples=50, deadline=None)
def test_reading_the_scale_backwards_changes_no_agreement(codes: Codes) -> None:
    reversed_codes = np.where(codes == MISSING, MISSING, len(LEVELS) - 1 - codes)
    told, found = values(figures(codes)), values(figures(reversed_codes, LEVELS[::-1].copy()))
    assert same(found, told)


@given(score_matrices())
@settings(max_examples=50, deadline=None)
def test_naming_the_levels_otherwise_changes_no_nominal_figure(codes: Codes) -> None:
    relabelled = np.append([2, 0, 3, 1], MISSING)[codes]  # index -1 is the appended MISSING
    told, found = values(figures(codes)), values(figures(relabelled))
    nominal = ("zero_sd_share", "mean_modal_share", "alpha_nominal", "randolph", "ac1")
    assert same({name: found[name] for name in nominal}, {name: told[name] for name in nominal})


@given(score_matrices())
@settings(max_examples=50, deadline=None)
def test_doubling_all_items_leaves_means_over_items_as_they_are(codes: Codes) -> None:
    told, found = figures(codes), figures(np.vstack([codes, codes]))
    # alpha, the ICC and the components correct for the number of items, so only the others stay exactly
    kept = [name for name in told if not name.startswith(("alpha", "icc", "item_share"))]
    assert same({name: found[name].value for name in kept}, {name: told[name].value for name in kept})
    assert found["mean_sd"].n == 2 * told["mean_sd"].n
    assert found["mean_sd"].left_out == 2 * told["mean_sd"].left_out


@given(score_matrices(), st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_pair_figures_survive_doubling_and_reordering_the_items(codes: Codes, seed: int) -> None:
    shuffled = np.random.default_rng(seed).permutation(np.vstack([codes, codes]))
    told, found = run_pairs(codes, 4), run_pairs(shuffled, 4)
    for weights in SCHEMES:
        kappas = pair_kappas(found, LEVELS, weights=weights).values
        assert kappas == pytest.approx(pair_kappas(told, LEVELS, weights=weights).values, abs=1e-12, nan_ok=True)
    assert pair_flip_shares(found, LEVELS, GATE) == pytest.approx(pair_flip_shares(told, LEVELS, GATE), nan_ok=True)


@given(score_matrices())
@settings(max_examples=50, deadline=None)
def test_distinct_rows_with_weights_say_the_same_as_all_rows(codes: Codes) -> None:
    counts = level_counts(np.vstack([codes, codes[:1]]), len(LEVELS))
    rows, weights = np.unique(counts, axis=0, return_counts=True)
    assert krippendorff_alpha(rows, LEVELS, weights=weights).value == pytest.approx(
        krippendorff_alpha(counts, LEVELS).value
    )
    found, told = (gate_flips(c, LEVELS, GATE, weights=w) for c, w in ((rows, weights), (counts, None)))
    assert (found.flip_rate.n, found.flip_rate.left_out) == (told.flip_rate.n, told.flip_rate.left_out)
    assert found.flip_rate.value == pytest.approx(told.flip_rate.value)
    assert found.median_repetitions == told.median_repetitions


@given(score_matrices(gaps=False))
@settings(max_examples=50, deadline=None)
def test_swapping_the_raters_mirrors_the_cross_tab_and_keeps_kappa(codes: Codes) -> None:
    table = pair_table(codes, 0, 1, 4)
    assert (pair_table(codes, 1, 0, 4) == table.T).all()
    for weights in SCHEMES:
        there, back = (cohens_kappa(t, LEVELS, weights=weights).estimate.value for t in (table, table.T))
        assert there == pytest.approx(back)


@pytest.mark.parametrize("metric", ["nominal", "ordinal", "interval", "ratio"])
@pytest.mark.parametrize("seed", range(5))
def test_alpha_agrees_with_the_krippendorff_library(metric: Metric, seed: int) -> None:
    krippendorff = pytest.importorskip("krippendorff")
    codes = noisy(30, 6, gaps=0.3, seed=seed)
    data = np.where(codes == MISSING, np.nan, LEVELS[codes])
    told = krippendorff.alpha(data.T, level_of_measurement=metric, value_domain=LEVELS.tolist())
    assert krippendorff_alpha(level_counts(codes, 4), LEVELS, metric=metric).value == pytest.approx(told, abs=1e-12)


@pytest.mark.parametrize("weights", SCHEMES)
@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_pair_kappas_agree_with_scikit_learn(weights: Weights, gaps: float) -> None:
    codes, ranks = noisy(60, 6, gaps=gaps, seed=7), np.arange(4.0)  # scikit-learn weighs by rank
    pairs = run_pairs(codes, 4)
    found = pair_kappas(pairs, ranks, weights=weights)
    for at, (i, j) in enumerate(combinations(range(6), 2)):
        both = (codes[:, i] >= 0) & (codes[:, j] >= 0)
        a, b = codes[both, i], codes[both, j]
        told = cohen_kappa_score(a, b, labels=range(4), weights=None if weights == "nominal" else weights)
        assert (pairs.first[at], pairs.second[at], pairs.n[at]) == (i, j, both.sum())
        assert found.values[at] == pytest.approx(told, abs=1e-12)
        assert (pairs.tables[at] == pair_table(codes, i, j, 4)).all()
        assert pair_exact_agreement(pairs)[at] == pytest.approx((a == b).mean())
        assert pair_within_one_agreement(pairs)[at] == pytest.approx((abs(a - b) <= 1).mean())
        changed = (LEVELS[a] >= GATE) != (LEVELS[b] >= GATE)
        assert pair_flip_shares(pairs, LEVELS, GATE)[at] == pytest.approx(changed.mean())


@pytest.mark.parametrize("seed", range(3))
def test_two_rater_figures_agree_with_statsmodels(seed: int) -> None:
    table = pair_table(noisy(200, 2, seed=seed), 0, 1, 4)
    for weights in SCHEMES:
        found = cohens_kappa(table, np.arange(4.0), weights=weights)
        told = inter_rater.cohens_kappa(table, wt=None if weights == "nominal" else weights)
        assert found.estimate.interval is not None
        assert [
            found.estimate.value,
            found.standard_error,
            found.standard_error_h0,
            found.estimate.interval.low,
            found.estimate.interval.high,
        ] == pytest.approx([told.kappa, told.std_kappa, told.std_kappa0, told.kappa_low, told.kappa_upp])
    square = SquareTable(table, shift_zeros=False)
    assert stuart_maxwell(table).statistic == pytest.approx(square.homogeneity().statistic)
    assert bowker(table + 1).statistic == pytest.approx(SquareTable(table + 1).symmetry().statistic)


@pytest.mark.parametrize("seed", range(3))
def test_fleiss_and_randolph_agree_with_statsmodels(seed: int) -> None:
    counts = level_counts(noisy(50, 5, seed=seed), 4)
    assert fleiss_kappa(counts).value == pytest.approx(inter_rater.fleiss_kappa(counts, method="fleiss"))
    assert randolph_kappa(counts).value == pytest.approx(inter_rater.fleiss_kappa(counts, method="randolph"))


def test_many_rater_coefficients_of_two_raters_are_those_of_the_cross_tab() -> None:
    codes = noisy(80, 2, seed=4)
    counts, table = level_counts(codes, 4), pair_table(codes, 0, 1, 4)
    assert gwet_ac2(counts, LEVELS).value == pytest.approx(gwet_ac2_of_table(table, LEVELS).value)
    assert randolph_kappa(counts).value == pytest.approx(pabak(table).value)
    per_item = per_item_dispersion(counts, LEVELS)
    assert within_one_agreement(table).value == pytest.approx(per_item.adjacent_agreement.mean())


def test_fleiss_kappa_refuses_unequal_repetitions() -> None:
    with pytest.raises(ValueError, match="use nominal alpha"):
        fleiss_kappa(np.array([[2, 1], [1, 1]]))


@given(score_matrices())
@settings(max_examples=50, deadline=None)
def test_each_item_is_described_as_its_scores_say(codes: Codes) -> None:
    found = per_item_dispersion(level_counts(codes, 4), LEVELS)
    verdicts = item_verdicts(level_counts(codes, 4), LEVELS, GATE)
    for at, row in enumerate(codes):
        scored = row[row != MISSING]
        scores = LEVELS[scored]
        assert found.n[at] == len(scored)
        if not len(scored):
            assert np.isnan([found.mean[at], found.sd_population[at], found.score_range[at]]).all()
            assert not found.modal_levels[at].any()
            continue
        sizes = np.bincount(scored, minlength=4)
        assert found.mean[at] == pytest.approx(scores.mean())
        assert found.sd_population[at] == pytest.approx(scores.std())
        assert found.score_range[at] == np.ptp(scores)
        assert (found.modal_levels[at] == (sizes == sizes.max())).all()
        assert found.modal_share[at] == sizes.max() / len(scored)
        assert verdicts.pass_rate[at] == pytest.approx((scores >= GATE).mean())
        assert verdicts.straddles[at] == (len(set(scores >= GATE)) == 2)
        if len(scored) == 1:
            assert np.isnan([found.sd_sample[at], found.adjacent_agreement[at], verdicts.flip_probability[at]]).all()
            continue
        steps = [abs(int(a) - int(b)) for a, b in combinations(scored, 2)]
        flips = [(LEVELS[a] >= GATE) != (LEVELS[b] >= GATE) for a, b in combinations(scored, 2)]
        assert found.sd_sample[at] == pytest.approx(scores.std(ddof=1))
        assert found.pair_agreement[at] == pytest.approx(np.mean([step == 0 for step in steps]))
        assert found.adjacent_agreement[at] == pytest.approx(np.mean([step <= 1 for step in steps]))
        assert verdicts.flip_probability[at] == pytest.approx(np.mean(flips))


def test_identical_scores_have_a_spread_of_exactly_zero_on_an_awkward_scale() -> None:
    levels = np.array([0.1, 0.7])  # three times 0.1 divided by three is not 0.1 in binary
    summary = dispersion_summary(np.array([[3, 0], [0, 7]]), levels)
    assert (summary.mean_sd.value, summary.zero_sd_share.value, summary.within_item_sd.value) == (0, 1, 0)


def test_items_with_one_repetition_are_left_out_and_counted() -> None:
    codes = np.array([[0, 1, MISSING], [2, MISSING, MISSING], [MISSING, MISSING, MISSING], [3, 3, 3]])
    found = gate_flips(level_counts(codes, 4), LEVELS, GATE)
    assert (found.flip_rate.n, found.flip_rate.left_out) == (2, 2)
    assert (found.fewest_repetitions, found.median_repetitions, found.most_repetitions) == (2, 2.5, 3)
    # no verdict changes in the two items left: 1 - 0.05^(1/2)
    assert found.flip_rate.value == 0
    assert found.no_flip_bound == pytest.approx(1 - 0.05**0.5)


def test_a_level_outside_the_rubric_is_refused() -> None:
    with pytest.raises(ValueError, match="between -1 and 3"):
        level_counts(np.array([[0, 4]]), 4)


def test_the_flip_curve_goes_through_every_gate_but_the_lowest() -> None:
    counts = level_counts(noisy(40, 5), 4)
    curve = flip_curve(counts, LEVELS, rng=np.random.default_rng(1))
    assert [point.gate for point in curve] == [2, 3, 5]
    for point in curve:
        assert point.flip_rate.value == pytest.approx(gate_flips(counts, LEVELS, point.gate).flip_rate.value)


@pytest.mark.parametrize(("k", "n", "m"), [(3, 7, 3), (4, 8, 2), (5, 9, 4), (2, 6, 1), (0, 6, 3), (6, 6, 3)])
def test_majority_chances_agree_with_counting_all_draws(k: int, n: int, m: int) -> None:
    votes = [1] * k + [0] * (n - k)
    draws = list(combinations(range(n), m))
    twice = [2 * sum(votes[i] for i in draw) for draw in draws]
    told = [np.mean([x > m for x in twice]), np.mean([x < m for x in twice]), np.mean([x == m for x in twice])]
    assert [float(chance) for chance in majority_verdict(k, n, m)] == pytest.approx(told)
    disjoint = [
        (a > m) != (b > m) for (first, a), (second, b) in product(zip(draws, twice, strict=True), repeat=2)
        if not set(first) & set(second)
    ]  # fmt: skip
    assert len(disjoint) == comb(n, m) * comb(n - m, m)
    assert float(majority_flip_disjoint(k, n, m)) == pytest.approx(np.mean(disjoint))


def test_majority_of_one_flips_as_single_repetitions_do_and_too_few_votes_are_undefined() -> None:
    k, n = np.array([0, 1, 3, 5]), np.array([5, 5, 5, 5])
    assert majority_flip_disjoint(k, n, 1) == pytest.approx(flip_probability(k, n))
    assert np.isnan(majority_flip_disjoint(k, n, 3)).all()
    assert np.isnan(majority_verdict(1, 2, 3).passes)


def test_transitions_name_the_items_behind_each_direction() -> None:
    codes = np.array([[3, 0], [0, 3], [3, 3], [0, 0], [3, MISSING], [2, 1]])
    found = transitions(codes, 0, 1, LEVELS, GATE)
    assert found.table.tolist() == [[1, 2], [1, 1]]
    assert (found.lost.tolist(), found.gained.tolist()) == ([0, 5], [1])
    assert (found.n, found.left_out) == (5, 1)
    assert found.mcnemar.p == 1  # two against one: 2 * P(X <= 1 of 3) = 2 * 4/8


def test_pairs_without_a_kappa_say_why_and_stay_out_of_the_mean() -> None:
    # runs 0 and 1 always say the same level, run 3 shares no item with them
    codes = np.array([[0, 0, 0, MISSING], [0, 0, 1, MISSING], [MISSING, MISSING, 1, 2], [MISSING, MISSING, 0, 1]])
    pairs = run_pairs(codes, 4)
    found = pair_kappas(pairs, LEVELS)
    assert found.reasons == (Undefined.NO_VARIATION, None, Undefined.NO_DATA, None, Undefined.NO_DATA, None)
    assert np.isnan(pairs.matrix(found.values)[0, 1])
    summary = spread(found.values)
    assert (summary.defined, summary.undefined) == (3, 3)
    assert mean_pair_kappa(codes, LEVELS).value == pytest.approx(np.mean(found.values[found.defined]))
    assert mean_pair_kappa(codes, LEVELS).notes == ("3 of 6 pairs of runs have no kappa",)


def test_no_scores_at_all_leave_every_figure_undefined() -> None:
    for codes in (np.empty((0, 3), np.int16), np.full((4, 3), MISSING, np.int16)):
        assert {estimate.value for estimate in figures(codes).values()} == {None}
        assert mean_pair_kappa(codes, LEVELS).reason is Undefined.NO_DATA
        assert spread(pair_kappas(run_pairs(codes, 4), LEVELS).values).mean is None
        assert icc_two_way(codes, LEVELS).agreement_single.reason is Undefined.NO_DATA


def test_omega_of_exchangeable_runs_is_near_the_reliability_of_their_mean() -> None:
    codes = noisy(2_000, 6, seed=3)
    average = icc_one_way(level_counts(codes, 4), LEVELS).average.value
    assert mcdonald_omega(codes, LEVELS).value == pytest.approx(average, abs=0.01)


def test_variance_components_recover_the_truth_with_unequal_repetitions() -> None:
    rng = np.random.default_rng(5)
    levels = np.arange(0.0, 41)
    centre = rng.normal(20, 4, (4_000, 1))
    codes = np.clip(np.rint(centre + rng.normal(0, 3, (4_000, 6))), 0, 40).astype(int)
    codes[rng.random(codes.shape) < 0.3] = MISSING
    found = variance_components(level_counts(codes, 41), levels)
    # rounding adds 1/12 to the variance within; the SE of both is near 2%
    assert found.within == pytest.approx(9 + 1 / 12, rel=0.06)
    assert found.between == pytest.approx(16, rel=0.1)


def brute_force_interval(codes: Codes, draws: int) -> Floats:
    """Percentile limits of alpha and of the mean quadratic pair kappa by resampling rows of codes."""
    rng = np.random.default_rng(99)
    drawn = []
    for _ in range(draws):
        sample = codes[rng.integers(len(codes), size=len(codes))]
        kappas = pair_kappas(run_pairs(sample, 4), LEVELS).values
        alpha = krippendorff_alpha(level_counts(sample, 4), LEVELS, metric="ordinal").value
        drawn.append([alpha, kappas[np.isfinite(kappas)].mean()])
    return np.asarray(np.quantile(np.array(drawn, float), [0.025, 0.975], axis=0).T)


@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_the_fast_bootstrap_agrees_with_resampling_rows_one_draw_at_a_time(gaps: float) -> None:
    codes = noisy(120, 4, gaps=gaps, seed=11)
    told = brute_force_interval(codes, 1_000)
    alpha = krippendorff_alpha(level_counts(codes, 4), LEVELS, rng=np.random.default_rng(1), draws=4_000)
    kappa = mean_pair_kappa(codes, LEVELS, rng=np.random.default_rng(1), draws=4_000)
    # the SE of a 2.5% quantile of 1,000 draws is about 8% of the SD, so 0.01 to 0.02 here is three of them
    for found, limits in zip((alpha, kappa), told, strict=True):
        assert found.interval is not None
        assert [found.interval.low, found.interval.high] == pytest.approx(limits, abs=0.02)


def test_bundled_items_give_the_same_interval_as_single_ones() -> None:
    codes = noisy(3 * GROUPS, 4, seed=2)
    bundled = mean_pair_kappa(codes, LEVELS, rng=np.random.default_rng(1), draws=2_000).interval
    assert bundled is not None
    assert "groups" in bundled.method
    # a third of the items as single ones: their interval is sqrt(3) times as wide
    single = mean_pair_kappa(codes[:GROUPS], LEVELS, rng=np.random.default_rng(1), draws=2_000).interval
    assert single is not None
    assert "groups" not in single.method
    widths = [interval.high - interval.low for interval in (single, bundled) if interval.high and interval.low]
    assert widths[0] / widths[1] == pytest.approx(3**0.5, rel=0.12)


def test_item_intervals_are_seeded_and_hidden_below_ten_items() -> None:
    counts = level_counts(noisy(9, 5), 4)
    few = gate_flips(counts, LEVELS, GATE, rng=np.random.default_rng(1)).flip_rate.interval
    assert few is not None
    assert (few.low, few.reason) == (None, Undefined.TOO_FEW_ITEMS)
    counts = level_counts(noisy(50, 5), 4)
    first, second = (gate_flips(counts, LEVELS, GATE, rng=np.random.default_rng(1)) for _ in range(2))
    assert first == second


def test_the_bootstrap_covers_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(8)
    # Beta(1, 1) pass probabilities: E[2p(1 - p)] = 2 (1/2 - 1/3) = 1/3
    hits = 0
    for _ in range(200):
        k = rng.binomial(6, rng.random(60))
        interval = gate_flips(
            np.column_stack([6 - k, k]), np.array([0.0, 1.0]), 1, rng=rng, draws=400
        ).flip_rate.interval
        assert interval is not None
        assert interval.low is not None
        assert interval.high is not None
        hits += interval.low <= 1 / 3 <= interval.high
    assert 180 <= hits <= 199  # binomial(200, 0.95) lies there with probability 0.998, percentile bias included


@given(st.integers(0, 40), st.integers(1, 40))
@settings(max_examples=50, deadline=None)
def test_clopper_pearson_surrounds_the_share_and_is_mirrored(x: int, n: int) -> None:
    x = min(x, n)
    for interval_of in (wilson, clopper_pearson):
        there, back = interval_of(x, n).interval, interval_of(n - x, n).interval
        assert there is not None
        assert back is not None
        assert there.low is not None
        assert there.high is not None
        assert back.high is not None
        assert 0 <= there.low <= x / n <= there.high <= 1
        assert there.low == pytest.approx(1 - back.high, abs=1e-12)


def test_more_successes_than_trials_are_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and the trials"):
        wilson(3, 2)
    with pytest.raises(ValueError, match="at least one trial"):
        zero_flip_upper_bound(0)


def test_ten_million_scores_cost_seconds_and_little_memory() -> None:
    codes = noisy(500_000, 20, gaps=0.05)
    tracemalloc.start()
    started = time.process_time()
    counts = level_counts(codes, 4)
    rows, weights, _ = distinct_rows(counts)
    per_item_dispersion(counts, LEVELS)
    rng = np.random.default_rng(1)
    dispersion_summary(rows, LEVELS, weights=weights, rng=rng)
    krippendorff_alpha(rows, LEVELS, weights=weights, rng=rng)
    variance_components(rows, LEVELS, weights=weights, rng=rng)
    flip_curve(rows, LEVELS, weights=weights, rng=rng)
    gate_flips(rows, LEVELS, GATE, weights=weights, rng=rng)
    icc_two_way(codes, LEVELS)
    pair_kappas(run_pairs(codes, 4), LEVELS)
    found = mean_pair_kappa(codes, LEVELS, rng=rng)
    seconds, (_, peak) = time.process_time() - started, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.n == 500_000
    assert peak < 600e6
    assert seconds < 12  # two to three on a free machine, and processor time doubles on a shared one
