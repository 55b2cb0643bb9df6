"""Sample sizes and error bars against the reference vectors, brute force and simulation."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from core.stats.common import Undefined
from core.stats.planning import (
    clustered_mean,
    clustered_se,
    design_effect,
    fewest,
    kappa_sample_size,
    mcnemar_power,
    mcnemar_sample_size,
    mean_variance,
    miller_sample_size,
    paired_se,
    simulate_power,
    wald_sample_size,
    wilson_half_width,
    wilson_lower,
    wilson_sample_size,
    zero_event_sample_size,
)
from core.stats.proportions import wilson

VECTORS = {v["id"]: v for v in json.loads((Path(__file__).parent / "vectors.json").read_text())}

COVERED = {
    "n-wald-halfwidth",
    "n-wilson-halfwidth",
    "n-kappa-halfwidth",
    "n-zero-events",
    "clustered-se",
    "clustered-se-cr1",
    "paired-se",
    "miller-sample-size",
    "miller-resampling",
    "design-effect",
}


def given_input(vector_id: str) -> Any:
    return VECTORS[vector_id]["input"]


def close(vector_id: str, *found: float | None) -> bool:
    told = tuple(np.ravel(VECTORS[vector_id]["expected"]))
    return found == pytest.approx(told, abs=VECTORS[vector_id]["tolerance"])


def test_sample_sizes_match_the_vectors() -> None:
    assert close("n-wald-halfwidth", wald_sample_size(**given_input("n-wald-halfwidth")))
    assert close("n-wilson-halfwidth", wilson_sample_size(**given_input("n-wilson-halfwidth")))
    assert close("n-zero-events", zero_event_sample_size(**given_input("n-zero-events")))
    assert close("miller-sample-size", miller_sample_size(**given_input("miller-sample-size")))
    kappa = given_input("n-kappa-halfwidth")
    plan = kappa_sample_size(np.array(kappa["joint"]), kappa["half_width"], levels=np.array([1.0, 0.0]))
    assert close("n-kappa-halfwidth", *plan)


def test_error_bars_match_the_vectors() -> None:
    for vector_id, corrected in (("clustered-se", False), ("clustered-se-cr1", True)):
        data = given_input("clustered-se")
        found = clustered_se(np.array(data["scores"]), np.array(data["cluster"]), corrected=corrected)
        assert close(vector_id, found)
    pair = given_input("paired-se")
    assert close("paired-se", paired_se(np.array(pair["a"]), np.array(pair["b"])))
    effect = given_input("design-effect")
    assert close("design-effect", *design_effect(effect["n"], effect["m"], effect["icc"]))
    noise = given_input("miller-resampling")
    assert close(
        "miller-resampling",
        *(
            mean_variance(noise["item_var"], noise["noise_var"], items=noise["n"], repetitions=repetitions)
            for repetitions in noise["K"]
        ),
    )


def test_repetition_noise_adds_to_the_items_needed() -> None:
    # 1/9 + 0.09/3 + 0.06/2 = 0.1711; (1.96 + 0.8416)^2 * 0.1711 / 0.0009 = 1492.3.
    assert miller_sample_size(0.03, 1 / 9, noise_a=0.09, repetitions_a=3, noise_b=0.06, repetitions_b=2) == 1493


def test_few_clusters_get_t_and_a_flag_and_one_gets_no_interval() -> None:
    data = given_input("clustered-se")
    scores, clusters = np.array(data["scores"]), np.array(data["cluster"])
    mean = clustered_mean(scores, clusters)
    assert mean.interval is not None
    assert mean.interval.high is not None
    # t(3) = 3.182446 times the CR1 error.
    half = 3.182446305 * VECTORS["clustered-se-cr1"]["expected"]
    assert mean.interval.high - scores.mean() == pytest.approx(half)
    assert mean.n == 4
    assert mean.notes
    alone = clustered_mean(scores, np.zeros(9))
    assert alone.interval is not None
    assert alone.interval.reason is Undefined.SINGLE_ITEM
    assert clustered_mean(np.array([]), np.array([])).reason is Undefined.NO_DATA


def test_many_singleton_clusters_give_the_plain_error() -> None:
    scores = np.random.default_rng(0).normal(size=400)
    assert clustered_se(scores, np.arange(400)) == pytest.approx(scores.std() / 20)


def test_mcnemar_power_is_the_sum_over_all_outcomes() -> None:
    n, gain, loss = 12, 0.5, 0.1
    total = 0.0
    for b, c in product(range(n + 1), repeat=2):
        if 0 < b + c <= n and stats.binomtest(b, b + c).pvalue <= 0.05:
            total += stats.multinomial.pmf([b, c, n - b - c], n, [gain, loss, 1 - gain - loss])
    assert mcnemar_power(gain, loss, n) == pytest.approx(total)
    assert mcnemar_power(0, 0, 50) == 0.0


def test_mcnemar_sample_size_reaches_its_power() -> None:
    n = mcnemar_sample_size(0.12, 0.05)
    assert n is not None
    assert mcnemar_power(0.12, 0.05, n) >= 0.8 > mcnemar_power(0.12, 0.05, n - 20)
    assert mcnemar_sample_size(0.1, 0.1) is None


def test_simulated_power_is_the_level_without_a_shift_and_grows_with_items() -> None:
    rng = np.random.default_rng(2)
    shares = rng.beta(2, 2, 300)
    none = simulate_power(shares, 0.0, items=100, repetitions=3, rng=rng)
    assert none.change == pytest.approx(0.0, abs=1e-12)
    assert none.power.value is not None
    assert none.power.value < 0.08
    small, large = (simulate_power(shares, 0.5, items=items, repetitions=3, rng=rng).power.value for items in (30, 200))
    assert small is not None
    assert large is not None
    assert small < large
    assert large > 0.9


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 200), st.integers(1, 200))
def test_planned_wilson_limits_are_those_of_the_interval(x: int, n: int) -> None:
    x = min(x, n)
    interval = wilson(x, n).interval
    assert interval is not None
    assert interval.low is not None
    assert interval.high is not None
    assert wilson_lower(x / n, n) == pytest.approx(interval.low, abs=1e-12)
    assert wilson_half_width(x / n, n) == pytest.approx((interval.high - interval.low) / 2, abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 10_000))
def test_fewest_finds_the_threshold(threshold: int) -> None:
    assert fewest(lambda n: n >= threshold) == threshold
    assert fewest(lambda n: n >= threshold, most=threshold - 1 or 1) == (None if threshold > 1 else 1)
