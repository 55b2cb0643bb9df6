"""The published TopicalChat repetitions, every prompt and criterion, against figures computed elsewhere."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from core.stats.common import MISSING, Estimate, Floats, Ints
from core.stats.dispersion import dispersion_summary, level_counts, per_item_dispersion
from core.stats.gate import flip_curve, gate_flips
from core.stats.pairs import mean_pair_kappa, pair_exact_agreement, pair_kappas, run_pairs, spread
from core.stats.reliability import Metric, krippendorff_alpha

REALDATA = (Path(__file__).resolve().parents[2] / ".." / "shared" / "realdata").resolve()
SCORES = REALDATA / "topicalchat_repeats.csv.gz"

pytestmark = pytest.mark.skipif(not SCORES.exists(), reason="the published judge data lie beside the checkout")

PROMPTS = (
    "analyze_rate",
    "analyze_rate_auto_cot",
    "geval",
    "geval_no_auto_cot",
    "llm_eval_no_cot",
    "rate_explain",
    "rate_explain_auto_cot",
)
CRITERIA = ("coherence", "engagingness", "groundedness", "naturalness")
CASES = [(prompt, criterion) for prompt in PROMPTS for criterion in CRITERIA]


@cache
def scores() -> pd.DataFrame:
    return pd.read_csv(SCORES, keep_default_na=False, dtype={"score": str})


@cache
def expected(prompt: str, criterion: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((REALDATA / "expected.json").read_text())["topicalchat_repeats"][prompt]
    return dict(found[criterion])


@cache
def judged(prompt: str, criterion: str) -> tuple[Ints, Floats]:
    """Level indices of the usable scores and the level values of the criterion."""
    levels = np.array([0.0, 1.0]) if criterion == "groundedness" else np.array([1.0, 2.0, 3.0])
    rows = scores()
    rows = rows[(rows["prompt"] == prompt) & (rows["criterion"] == criterion)]
    items, index = np.unique(rows["item_id"], return_inverse=True)
    codes = np.full((len(items), 20), MISSING, np.int64)
    usable = (rows["status"] == "ok").to_numpy()
    values = rows.loc[usable, "score"].astype(float)
    codes[index[usable], rows.loc[usable, "rep"]] = np.searchsorted(levels, values)
    return codes, levels


def close(estimate: Estimate, value: float) -> bool:
    return estimate.value == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize(("prompt", "criterion"), CASES)
def test_spread_within_items(prompt: str, criterion: str) -> None:
    told = expected(prompt, criterion)
    codes, levels = judged(prompt, criterion)
    counts = level_counts(codes, len(levels))
    summary = dispersion_summary(counts, levels)
    sds = per_item_dispersion(counts, levels).sd_sample
    sds = sds[np.isfinite(sds)]
    assert close(summary.mean_sd, told["per_item_sd_ddof1"]["mean"])
    assert close(summary.zero_sd_share, told["per_item_sd_ddof1"]["share_zero"])
    assert close(summary.mean_sd_population, told["per_item_sd_ddof0_mean"])
    assert np.median(sds) == pytest.approx(told["per_item_sd_ddof1"]["median"], abs=1e-6)
    assert sds.max() == pytest.approx(told["per_item_sd_ddof1"]["max"], abs=1e-6)


@pytest.mark.parametrize(("prompt", "criterion"), CASES)
def test_gate_flips_at_every_gate(prompt: str, criterion: str) -> None:
    told = expected(prompt, criterion)
    codes, levels = judged(prompt, criterion)
    counts = level_counts(codes, len(levels))
    curve = flip_curve(counts, levels)
    assert {f"gate_ge_{point.gate:g}" for point in curve} == {key for key in told if key.startswith("gate_ge_")}
    for point in curve:
        gate = told[f"gate_ge_{point.gate:g}"]
        found = gate_flips(counts, levels, point.gate)
        assert found.any_flip.value is not None
        assert (found.any_flip.n, round(found.any_flip.value * found.any_flip.n)) == (
            gate["items"],
            gate["items_crossing"],
        )
        assert close(found.any_flip, gate["share"])
        assert close(found.flip_rate, gate["mean_pair_flip_prob"])
        assert close(point.flip_rate, gate["mean_pair_flip_prob"])
        assert close(point.any_flip, gate["share"])


@pytest.mark.parametrize(("prompt", "criterion"), CASES)
def test_all_190_pairs_of_repetitions(prompt: str, criterion: str) -> None:
    told = expected(prompt, criterion)
    codes, levels = judged(prompt, criterion)
    pairs = run_pairs(codes, len(levels))
    figures = {
        "rep_pairs_190_qwk": pair_kappas(pairs, levels, weights="quadratic").values,
        "rep_pairs_190_kappa": pair_kappas(pairs, levels, weights="nominal").values,
        "rep_pairs_190_exact_agreement": pair_exact_agreement(pairs),
    }
    for key, values in figures.items():
        found = spread(values)
        assert (found.defined, found.undefined) == (190, 0)
        assert [found.mean, found.minimum, found.maximum] == pytest.approx(
            [told[key]["mean"], told[key]["min"], told[key]["max"]], abs=1e-6
        )
    assert close(mean_pair_kappa(codes, levels), told["rep_pairs_190_qwk"]["mean"])


@pytest.mark.parametrize(("prompt", "criterion"), CASES)
@pytest.mark.parametrize("metric", ["nominal", "ordinal", "interval"])
def test_krippendorff_alpha_of_the_repetitions(prompt: str, criterion: str, metric: Metric) -> None:
    codes, levels = judged(prompt, criterion)
    alpha = krippendorff_alpha(level_counts(codes, len(levels)), levels, metric=metric)
    assert close(alpha, expected(prompt, criterion)[f"kripp_alpha_{metric}"])


def test_the_item_bootstrap_of_the_mean_kappa_surrounds_it() -> None:
    codes, levels = judged("geval", "coherence")
    found = mean_pair_kappa(codes, levels, rng=np.random.default_rng(3))
    assert found.value is not None
    assert found.interval is not None
    assert found.interval.low is not None
    assert found.interval.high is not None
    # 359 items: the SE of a kappa of 0.447 is near 0.035, so 95% limits lie about 0.07 away on each side
    assert 0.03 < found.value - found.interval.low < 0.11
    assert 0.03 < found.interval.high - found.value < 0.11
