"""Drift, control charts and promotion against the reference vectors, published data and simulation."""

import json
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from core.stats.common import Undefined
from core.stats.control import ChartState, control_chart, cusum, ewma, ewma_limits, p_chart_limits
from core.stats.dispersion import level_counts
from core.stats.distribution import cliffs_delta, distances, ks_distance, psi, psi_without_change, wasserstein
from core.stats.drift import (
    DriftOutcome,
    drift_verdict,
    gate_change,
    gate_noise_floor,
    majority_verdicts,
    paired_change,
    pass_rate_change,
    rank_correlation,
    snapshot_kappa,
    wilcoxon_exact,
)
from core.stats.multiplicity import adjust_p
from core.stats.noise import FLOOR_UNKNOWN, excess_p_value, noise_floor
from core.stats.promotion import (
    GateOutcome,
    item_gate,
    non_inferiority,
    paired_difference,
    runs_at_gate,
    tost_paired,
)
from core.stats.two_raters import cohens_kappa, cross_tab, mcnemar_exact

VECTORS = {v["id"]: v for v in json.loads((Path(__file__).parent / "vectors.json").read_text())}
REALDATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "realdata"
FIVE = np.arange(1.0, 6.0)

COVERED = {
    "edge-wilcoxon-zeros-ties",
    "edge-wilcoxon-all-zero",
    "wasserstein-ordinal",
    "edge-wasserstein-noncontiguous",
    "psi",
    "edge-psi-empty-level",
    "multiplicity-bh",
    "edge-multiplicity-nan",
    "ewma-nist",
    "ewma-limits-nist",
    "p-chart-nist",
    "edge-p-chart-clip",
    "cusum-tabular",
    "tost-paired",
    "tost-ci-duality",
    "paired-pass-rate-diff",
    "drift-noise-floor",
    "edge-drift-identical",
}


def data(vector_id: str) -> Any:
    return VECTORS[vector_id]["input"]


def close(vector_id: str, *found: float | None) -> bool:
    told = tuple(np.ravel(VECTORS[vector_id]["expected"]))
    return found == pytest.approx(told, abs=VECTORS[vector_id]["tolerance"])


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20)


def test_wilcoxon_is_exact_with_zeros_and_ties() -> None:
    found = wilcoxon_exact(np.array(data("edge-wilcoxon-zeros-ties")["diff"]))
    assert close("edge-wilcoxon-zeros-ties", found.p)
    assert (found.n, wilcoxon_exact(np.array([])).reason) == (7, Undefined.NO_DATA)


def test_no_changed_item_gives_p_one(rng: np.random.Generator) -> None:
    zeros = np.array(data("edge-wilcoxon-all-zero")["diff"])
    counts = level_counts(np.full((len(zeros), 1), 2), 5)
    change = paired_change(counts, counts, FIVE, rng=rng)
    assert close("edge-wilcoxon-all-zero", wilcoxon_exact(zeros).p, change.change.value)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=9))
def test_wilcoxon_counts_every_sign_flip(values: list[int]) -> None:
    changed = np.array([v for v in values if v])
    ranks = stats.rankdata(np.abs(changed)) if len(changed) else np.array([])
    sums = np.array([np.dot(ranks, signs) for signs in product([0, 1], repeat=len(changed))])
    up = ranks[changed > 0].sum() if len(changed) else 0.0
    tail = min((sums <= up + 1e-9).mean(), (sums >= up - 1e-9).mean())
    assert wilcoxon_exact(np.array(values)).p == pytest.approx(min(1.0, 2 * tail))


def test_exact_and_normal_wilcoxon_agree_where_they_meet(rng: np.random.Generator) -> None:
    differences = np.round(rng.normal(0.1, 1, 201), 6)
    asymptotic = stats.wilcoxon(differences[:200], method="asymptotic").pvalue
    assert wilcoxon_exact(differences[:200]).p == pytest.approx(asymptotic, abs=2e-3)
    assert wilcoxon_exact(differences).p == pytest.approx(stats.wilcoxon(differences, method="asymptotic").pvalue)


def test_distances_match_the_vectors() -> None:
    for vector_id in ("wasserstein-ordinal", "edge-wasserstein-noncontiguous"):
        told = data(vector_id)
        a, b = np.array(told["counts_a"]), np.array(told["counts_b"])
        assert close(vector_id, wasserstein(a, b, np.array(told["levels"], float)))
    for vector_id in ("psi", "edge-psi-empty-level"):
        told = data(vector_id)
        assert close(vector_id, psi(np.array(told["counts_a"]), np.array(told["counts_b"])))


def test_distances_do_not_depend_on_the_order_of_the_rubric() -> None:
    a, b = np.array([2, 5, 20, 40, 33]), np.array([6, 10, 24, 38, 22])
    there, back = distances(a, b, FIVE), distances(a[::-1], b[::-1], FIVE[::-1])
    assert (back.wasserstein, back.cliffs_delta, back.ks, back.psi) == pytest.approx(
        (there.wasserstein, there.cliffs_delta, there.ks, there.psi)
    )
    assert there.psi_without_change == 4 * (1 / 100 + 1 / 100)
    assert distances(a, np.zeros(5, dtype=int), FIVE).reason is Undefined.NO_DATA
    assert distances(np.array([0, 5, 15]), np.array([4, 6, 10]), FIVE[:3]).psi_smoothed


def test_cliffs_delta_and_ks_match_all_pairs_and_scipy() -> None:
    a, b = np.array([2, 5, 20, 40, 33]), np.array([6, 10, 24, 38, 22])
    x, y = np.repeat(FIVE, a), np.repeat(FIVE, b)
    assert cliffs_delta(a, b, FIVE) == pytest.approx(np.sign(y[:, None] - x[None, :]).mean())
    assert ks_distance(a, b, FIVE) == pytest.approx(stats.ks_2samp(x, y).statistic)


def test_expected_psi_is_about_what_no_change_gives(rng: np.random.Generator) -> None:
    shares = np.array([0.1, 0.2, 0.4, 0.2, 0.1])
    a, b = rng.multinomial(400, shares, 2_000), rng.multinomial(300, shares, 2_000)
    mean = np.mean([psi(x, y) for x, y in zip(a, b, strict=True)])
    assert psi_without_change(a[0], b[0]) == pytest.approx(mean, rel=0.1)


def test_benjamini_hochberg_matches_the_paper() -> None:
    adjusted = adjust_p(data("multiplicity-bh")["p"], method="bh")
    rejected = sum(p is not None and p <= 0.05 for p in adjusted)
    assert close("multiplicity-bh", *adjusted, rejected)


def test_undefined_tests_leave_the_family_and_keep_their_place() -> None:
    values = data("edge-multiplicity-nan")["p"]
    assert adjust_p(values, method="holm") == (0.02, None, 0.04)
    assert adjust_p(values, method="bh") == (0.02, None, 0.04)
    assert adjust_p([None, None]) == (None, None)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_adjustment_agrees_with_statsmodels(values: list[float]) -> None:
    assert adjust_p(values, method="holm") == pytest.approx(tuple(multipletests(values, method="holm")[1]))
    assert adjust_p(values, method="bh") == pytest.approx(tuple(multipletests(values, method="fdr_bh")[1]))


def test_control_chart_parts_match_nist() -> None:
    told = data("ewma-nist")
    assert close("ewma-nist", *ewma(np.array(told["x"]), lam=told["lam"], target=told["target"]))
    told = data("ewma-limits-nist")
    limits = ewma_limits(told["target"], told["s"], lam=told["lam"], width=told["L"])
    assert close("ewma-limits-nist", float(limits.low), float(limits.high))
    exact = ewma_limits(told["target"], told["s"], lam=told["lam"], width=told["L"], points=60)
    # First point: 3 * 2.0539 * 0.3 = 1.84851.
    assert exact.high[0] == pytest.approx(50 + 1.84851)
    assert exact.high[-1] == pytest.approx(float(limits.high))
    for vector_id in ("p-chart-nist", "edge-p-chart-clip"):
        told = data(vector_id)
        p_limits = p_chart_limits(told["pbar"], told["n"], exact=False)
        assert close(vector_id, float(p_limits.low), float(p_limits.high))


def test_rare_events_get_exact_p_chart_limits() -> None:
    told = data("edge-p-chart-clip")
    high = float(p_chart_limits(told["pbar"], told["n"]).high)
    assert stats.binom.sf(high * 50, 50, 0.02) <= stats.norm.sf(3) < stats.binom.sf(high * 50 - 1, 50, 0.02)
    assert p_chart_limits(0.2313, 50) == p_chart_limits(0.2313, 50, exact=False)


def test_cusum_matches_montgomery() -> None:
    told = data("cusum-tabular")
    found = cusum(np.array(told["x"]), target=told["target"], spread=told["s"], k=told["k"], h=told["h"])
    first = -1 if found.first_high is None else found.first_high
    assert close("cusum-tabular", found.high[-1], found.low[-1], first)


def test_control_chart_learns_then_finds_a_shift(rng: np.random.Generator) -> None:
    history = rng.normal(3.5, 0.05, 30)
    assert control_chart(history[:19]).state is ChartState.LEARNING
    assert control_chart(history).state is ChartState.IN_CONTROL
    shifted = np.concatenate([history, rng.normal(3.3, 0.05, 5)])
    chart = control_chart(shifted)
    assert chart.state is ChartState.OUT_OF_CONTROL
    assert chart.alarms.min() >= 30
    assert control_chart(np.full(25, 3.0)).state is ChartState.NO_SPREAD
    with pytest.raises(ValueError, match="at least 20"):
        control_chart(history, baseline=5)


def test_equivalence_matches_the_vectors() -> None:
    told = data("tost-paired")
    found = tost_paired(np.array(told["diff"]), told["margin"])
    assert close("tost-paired", found.p, found.p_lower, found.p_upper)
    assert close("tost-ci-duality", found.interval.low, found.interval.high, found.equivalent)
    assert tost_paired(np.array([0.1]), 0.2).reason is Undefined.SINGLE_ITEM
    assert tost_paired(np.zeros(5), 0.2).p is None


def test_pass_rate_change_matches_the_vector() -> None:
    change = pass_rate_change(**data("paired-pass-rate-diff"))
    assert close("paired-pass-rate-diff", change.difference.value, change.standard_error)


def test_gate_change_names_the_items_and_skips_missing_ones() -> None:
    change = gate_change(np.array([1, 0, 1, -1, 0]), np.array([0, 1, 1, 1, -1]))
    assert (change.gained.tolist(), change.lost.tolist()) == ([1], [0])
    assert (change.pass_rate.difference.n, change.pass_rate.difference.left_out) == (3, 2)
    assert change.pass_rate.test.p == 1.0


@pytest.mark.parametrize("vector_id", ["drift-noise-floor", "edge-drift-identical"])
def test_noise_floor_matches_the_vectors(vector_id: str) -> None:
    sides = [np.array(data(vector_id)[side]) for side in ("snapshot1", "snapshot2")]
    first, second = (np.column_stack([side[:, 0], side[:, 1] - side[:, 0]]) for side in sides)
    found = noise_floor(first, second)
    assert close(vector_id, found.cross.value, found.floor.value, found.excess.value)
    assert found.shown is not None
    assert found.excess.value is not None
    assert found.shown == max(0.0, found.excess.value)


def test_noise_permutation_agrees_with_shuffling_labels(rng: np.random.Generator) -> None:
    a, b = rng.random((12, 4)) < 0.5, rng.random((12, 3)) < 0.8

    def excess(x: np.ndarray, y: np.ndarray) -> float:
        sides = [np.column_stack([v.sum(axis=1), (~v).sum(axis=1)]) for v in (x, y)]
        value = noise_floor(*sides).excess.value
        assert value is not None
        return value

    both, observed = np.hstack([a, b]), excess(a, b)
    shuffled = [rng.permuted(both, axis=1) for _ in range(1_000)]
    brute = np.mean([excess(s[:, :4], s[:, 4:]) >= observed - 1e-12 for s in shuffled])
    four, three = np.full(12, 4), np.full(12, 3)
    found = excess_p_value(a.sum(axis=1), four, b.sum(axis=1), three, rng=rng)
    assert found == pytest.approx(brute, abs=0.04)


def test_one_repetition_leaves_the_floor_unknown(rng: np.random.Generator) -> None:
    counts = level_counts(rng.integers(0, 5, (30, 1)), 5)
    floor = gate_noise_floor(counts, counts, FIVE, 4)
    assert floor.excess.reason is Undefined.SINGLE_REPETITION
    assert floor.shown is None
    verdict = drift_verdict(counts, counts, FIVE, 4, rng=rng)
    assert verdict.noise_p is None
    assert FLOOR_UNKNOWN in verdict.notes
    assert verdict.outcome is DriftOutcome.NO_ALARM


def test_kappa_between_single_snapshots_is_cohens(rng: np.random.Generator) -> None:
    a = rng.integers(0, 5, 60)
    b = np.clip(a + rng.integers(-1, 2, 60), 0, 4)
    found = snapshot_kappa(level_counts(a[:, None], 5), level_counts(b[:, None], 5), FIVE, rng=rng)
    plain = cohens_kappa(cross_tab(a, b, 5), FIVE, weights="quadratic").estimate.value
    assert found.value == pytest.approx(plain)
    constant = level_counts(np.ones((20, 2), dtype=int), 5)
    assert snapshot_kappa(constant, constant, FIVE, rng=rng).reason is Undefined.NO_VARIATION
    assert rank_correlation(constant, constant, FIVE).reason is Undefined.NO_VARIATION


def test_missing_repetitions_and_items_are_left_out(rng: np.random.Generator) -> None:
    a, b = np.array([[0, 1], [2, -1], [-1, -1]]), np.array([[1, 1], [2, 2], [3, 3]])
    change = paired_change(level_counts(a, 5), level_counts(b, 5), FIVE, rng=rng)
    # Item means 1.5 -> 2 and 3 -> 3; the third item has no score in the first snapshot.
    assert (change.change.value, change.change.n, change.change.left_out) == (0.25, 2, 1)
    assert (change.raised, change.lowered, change.unchanged) == (1, 0, 1)
    assert change.items.tolist() == [0, 1]
    nothing = paired_change(level_counts(a[2:], 5), level_counts(b[2:], 5), FIVE, rng=rng)
    assert nothing.change.reason is nothing.mean_a.reason is Undefined.NO_DATA


def simulated(rng: np.random.Generator, true: np.ndarray, repetitions: int) -> np.ndarray:
    """Scores of a noisy judge on a 1-5 scale: true value plus noise, to the nearest level."""
    scores = np.rint(true[:, None] + rng.normal(0, 0.6, (len(true), repetitions)))
    return level_counts(np.clip(scores, 1, 5).astype(int) - 1, 5)


def alarms(items: int, *, repetitions: int, shift: float, seed: int, noise: float = 0.0) -> int:
    rng = np.random.default_rng(seed)
    found = 0
    for _ in range(100):
        true = rng.uniform(1, 5, items)
        before = simulated(rng, true, repetitions)
        after = simulated(rng, true + shift + rng.normal(0, noise, items), repetitions)
        found += drift_verdict(before, after, FIVE, 4, rng=rng).outcome is DriftOutcome.DRIFT
    return found


@pytest.mark.parametrize("items", [30, 200])
@pytest.mark.parametrize("repetitions", [1, 5])
def test_an_unchanged_noisy_judge_raises_no_alarm(items: int, repetitions: int) -> None:
    assert alarms(items, repetitions=repetitions, shift=0.0, seed=7) <= 5


@pytest.mark.parametrize("shift", [0.5, -0.5])
def test_a_shift_of_half_a_level_is_found(shift: float) -> None:
    assert alarms(200, repetitions=5, shift=shift, seed=8) >= 90


def test_a_change_that_only_scatters_is_found_by_the_noise_floor() -> None:
    assert alarms(200, repetitions=5, shift=0.0, seed=9, noise=1.0) >= 90


def test_paired_interval_finds_what_the_unpaired_one_hides(rng: np.random.Generator) -> None:
    baseline = rng.uniform(1, 5, 60)
    candidate = baseline - 0.15 + rng.normal(0, 0.05, 60)
    paired = paired_difference(candidate, baseline, span=4, rng=rng)
    assert paired.interval is not None
    assert paired.interval.high is not None
    assert paired.interval.high < 0
    unpaired = 1.645 * np.sqrt(candidate.var(ddof=1) / 60 + baseline.var(ddof=1) / 60)
    assert candidate.mean() - baseline.mean() + unpaired > 0


def test_non_inferiority_has_three_outcomes(rng: np.random.Generator) -> None:
    baseline = rng.uniform(0, 1, 400)
    wobble = rng.normal(0, 0.2, 400)
    same = paired_difference(baseline + wobble - wobble.mean(), baseline, span=1, rng=rng)
    assert non_inferiority(same, 0.05).outcome is GateOutcome.PASS
    unsure = non_inferiority(same, 0.005)
    assert unsure.outcome is GateOutcome.INSUFFICIENT
    # Half-width about 1.645 * 0.2 / 20 = 0.0165; (0.0165 / 0.005)^2 * 400 is about 4,330 items.
    assert unsure.items_needed == pytest.approx(4_330, rel=0.25)
    worse = paired_difference(baseline - 0.2 + wobble, baseline, span=1, rng=rng)
    assert non_inferiority(worse, 0.05).outcome is GateOutcome.FAIL
    assert non_inferiority(worse, 0.05, higher_is_better=False).outcome is GateOutcome.PASS
    with pytest.raises(ValueError, match="margin"):
        non_inferiority(same, -0.1)


def test_undefined_differences_are_insufficient_evidence(rng: np.random.Generator) -> None:
    nothing = paired_difference(np.full(20, np.nan), np.ones(20), span=1, rng=rng)
    assert nothing.reason is Undefined.NO_DATA
    assert non_inferiority(nothing, 0.1).outcome is GateOutcome.INSUFFICIENT
    few = paired_difference(np.ones(9), np.ones(9), span=1, rng=rng)
    assert non_inferiority(few, 0.5).outcome is GateOutcome.INSUFFICIENT


def test_identical_verdicts_are_bounded_and_not_certain(rng: np.random.Generator) -> None:
    verdicts = np.ones(200)
    same = paired_difference(verdicts, verdicts, span=1, rng=rng)
    assert same.interval is not None
    # 1 - 0.05^(1/200) = 0.01487.
    assert (same.interval.low, same.interval.high) == pytest.approx((-0.01487, 0.01487), abs=1e-5)
    assert non_inferiority(same, 0.02).outcome is GateOutcome.PASS
    assert non_inferiority(same, 0.01).outcome is GateOutcome.INSUFFICIENT


def test_an_item_gate_names_the_one_bad_item() -> None:
    passes = np.full(50, 10)
    passes[17] = 0
    gate = item_gate(passes, np.full(50, 10), least=0.5)
    assert gate.outcome is GateOutcome.FAIL
    assert gate.failed.tolist() == [17]
    missing = item_gate(np.array([10, 0]), np.array([10, 0]), least=0.5)
    assert (missing.outcome, missing.missing.tolist()) == (GateOutcome.INSUFFICIENT, [1])
    assert item_gate(np.array([], dtype=int), np.array([], dtype=int), least=0.5).outcome is GateOutcome.INSUFFICIENT


def test_three_runs_around_the_gate_straddle() -> None:
    runs = runs_at_gate(np.array([0.62, 0.58, 0.61]), 0.60)
    assert (runs.passes, runs.n, runs.straddles) == (2, 3, True)


def test_half_a_million_items_are_quick(rng: np.random.Generator) -> None:
    true = rng.uniform(1, 5, 500_000)
    a, b = simulated(rng, true, 5), simulated(rng, true, 5)
    start = time.perf_counter()
    change = paired_change(a, b, FIVE, rng=rng)
    verdict = drift_verdict(a, b, FIVE, 4, rng=rng)
    kappa = snapshot_kappa(a, b, FIVE, rng=rng)
    elapsed = time.perf_counter() - start
    assert change.change.interval is not None
    assert change.change.interval.low is not None
    assert verdict.outcome is DriftOutcome.NO_ALARM
    assert kappa.interval is not None
    assert elapsed < 10


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    if not REALDATA.exists():
        pytest.skip("the shared real data is not beside the checkout")
    figures: dict[str, Any] = json.loads((REALDATA / "expected.json").read_text())
    return figures


@pytest.fixture(scope="module")
def wildbench() -> pd.DataFrame:
    if not REALDATA.exists():
        pytest.skip("the shared real data is not beside the checkout")
    rows = pd.read_csv(REALDATA / "wildbench_judge_drift.csv.gz", keep_default_na=False)
    rows["release_judge"] = rows["release"] + " " + rows["judge"]
    return rows


def paired_releases(rows: pd.DataFrame, old: str, new: str) -> pd.DataFrame:
    keys = ["session_id", "model"]
    sides = [rows[rows["release_judge"] == side].set_index(keys) for side in (old, new)]
    return sides[0].add_suffix("_old").join(sides[1].add_suffix("_new"), how="inner")


TURBO, FIRST, AGAIN = "v2.0522 gpt-4-turbo-2024-04-09", "v2.0522 gpt-4o-2024-05-13", "v2.0625 gpt-4o-2024-05-13"
TEN = np.arange(1.0, 11.0)


def scores(both: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    a, b = (pd.to_numeric(both[f"score_{side}"], errors="coerce") for side in ("old", "new"))
    kept = a.notna() & b.notna()
    old, new = (level_counts(side[kept].to_numpy().astype(int)[:, None] - 1, 10) for side in (a, b))
    return old, new


def agrees(a: np.ndarray, b: np.ndarray, told: dict[str, Any], rng: np.random.Generator) -> None:
    change = paired_change(a, b, TEN, rng=rng)
    gate = gate_change(majority_verdicts(a, TEN, 7), majority_verdicts(b, TEN, 7))
    found = {
        "n": change.change.n,
        "mean_old": change.mean_a.value,
        "mean_new": change.mean_b.value,
        "raised": change.raised,
        "lowered": change.lowered,
        "unchanged": change.unchanged,
        "gate7_fail_to_pass": len(gate.gained),
        "gate7_pass_to_fail": len(gate.lost),
        "mcnemar_exact_p": gate.pass_rate.test.p,
        "qwk": snapshot_kappa(a, b, TEN, rng=rng).value,
        "spearman": rank_correlation(a, b, TEN).value,
    }
    assert found == pytest.approx({name: told[name] for name in found}, rel=1e-6)


def test_pooled_wildbench_comparison(told: dict[str, Any], wildbench: pd.DataFrame, rng: np.random.Generator) -> None:
    both = paired_releases(wildbench, TURBO, FIRST)
    a, b = scores(both[both["output_md5_old"] == both["output_md5_new"]])
    agrees(a, b, told["wildbench_pooled_turbo_to_4o_same_output"], rng)
    assert drift_verdict(a, b, TEN, 7, rng=rng).outcome is DriftOutcome.DRIFT


def test_every_wildbench_model(told: dict[str, Any], wildbench: pd.DataFrame, rng: np.random.Generator) -> None:
    checked = 0
    for model, comparisons in told["wildbench"].items():
        for figures in comparisons:
            both = paired_releases(wildbench[wildbench["model"] == model], figures["old"], figures["new"])
            same = both[both["output_md5_old"] == both["output_md5_new"]]
            fresh = same[same["request_id_old"] != same["request_id_new"]]
            for name, rows in (("all_same_output", same), ("genuinely_rejudged_same_output", fresh)):
                if name in figures:
                    agrees(*scores(rows), figures[name], rng)
                    checked += 1
    assert checked == sum(
        name in figures
        for comparisons in told["wildbench"].values()
        for figures in comparisons
        for name in ("all_same_output", "genuinely_rejudged_same_output")
    )


def test_fresh_judgements_of_the_same_text_differ_on_a_quarter_of_the_items(
    told: dict[str, Any], wildbench: pd.DataFrame, rng: np.random.Generator
) -> None:
    figures = told["wildbench_pooled_4o_rerun"]
    both = paired_releases(wildbench, FIRST, AGAIN)
    fresh = both[both["request_id_old"] != both["request_id_new"]]
    a, b = scores(fresh[fresh["output_md5_old"] == fresh["output_md5_new"]])
    change = paired_change(a, b, TEN, rng=rng)
    gate = gate_change(majority_verdicts(a, TEN, 7), majority_verdicts(b, TEN, 7))
    assert (change.change.n, change.unchanged) == (figures["rejudged_same_output"], figures["same_score"])
    assert np.abs(change.differences).mean() == pytest.approx(figures["mean_abs_diff"])
    assert len(gate.gained) + len(gate.lost) == figures["gate7_flips"]
    assert snapshot_kappa(a, b, TEN, rng=rng).value == pytest.approx(figures["qwk"], abs=1e-9)


def test_llmdrift_mcnemar_tables(told: dict[str, Any]) -> None:
    rows = pd.read_csv(REALDATA / "llmdrift_prime.csv.gz", keep_default_na=False)
    for column, suffix, accuracy in (
        ("correct_strict", "", "accuracy_first_tag"),
        ("correct_lenient", " lenient", "accuracy_lenient"),
    ):
        wide = rows.pivot(index="number", columns="snapshot", values=column).astype(int)
        assert wide.mean().to_dict() == pytest.approx(told["llmdrift_prime"][accuracy])
        for old, new in (("gpt-4-0314", "gpt-4-0613"), ("gpt-3.5-turbo-0301", "gpt-3.5-turbo-0613")):
            figures = told["llmdrift_prime"][f"{old}->{new}{suffix}"]
            change = gate_change(wide[old].to_numpy(), wide[new].to_numpy())
            assert (len(change.lost), len(change.gained)) == (figures["right_to_wrong"], figures["wrong_to_right"])
            assert change.pass_rate.difference.n == figures["n"]
            assert change.pass_rate.test.p == pytest.approx(figures["mcnemar_exact_p"], rel=1e-6)


def test_devbench_consistency_lost_between_snapshots() -> None:
    # 18 lost, 1 gained: 2 * (1 + 19) / 2^19 = 7.63e-5.
    assert mcnemar_exact(18, 1).p == pytest.approx(40 / 2**19)
