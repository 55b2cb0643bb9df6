"""Agreement, dispersion, reliability, gate flips and proportions against the reference vectors."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.stats.common import MISSING, Estimate, Ints, Undefined
from core.stats.dispersion import dispersion_summary, level_counts
from core.stats.gate import (
    flip_probability,
    gate_flips,
    majority_flip_disjoint,
    majority_flip_iid,
    majority_verdict,
    zero_flip_upper_bound,
)
from core.stats.pairs import transitions
from core.stats.proportions import clopper_pearson, wilson
from core.stats.reliability import fleiss_kappa, gwet_ac1, gwet_ac2, krippendorff_alpha, randolph_kappa
from core.stats.two_raters import (
    ONE_RATER_CONSTANT,
    PERFECT_AGREEMENT,
    Kappa,
    Spacing,
    bowker,
    cohens_kappa,
    cross_tab,
    exact_agreement,
    kappa_bootstrap,
    mcnemar_chi2,
    mcnemar_exact,
    pabak,
    stuart_maxwell,
)
from core.stats.two_raters import gwet_ac1 as gwet_ac1_of_table
from core.stats.variance import (
    icc_one_way,
    icc_two_way,
    mcdonald_omega,
    omega_of_correlations,
    repetitions_needed,
    spearman_brown,
    variance_components,
)

VECTORS = {v["id"]: v for v in json.loads((Path(__file__).parent / "vectors.json").read_text())}
BINARY = np.array([0.0, 1.0])


def coded(values: list[Any], levels: list[Any]) -> Ints:
    """Level indices of values in a list or a list of lists, MISSING for None."""
    places = {level: index for index, level in enumerate(levels)} | {None: MISSING}
    return np.asarray(np.vectorize(places.__getitem__, otypes=[np.int64])(np.array(values, dtype=object)))


def table_of(given: dict[str, Any], levels: list[Any] | None = None) -> Ints:
    """The cross-tab of a vector's raters: a by b, or human by judge."""
    if "table" in given:
        return np.array(given["table"])
    a, b = (given["a"], given["b"]) if "a" in given else (given["human"], given["judge"])
    levels = levels or given["levels"]
    return cross_tab(coded(a, levels), coded(b, levels), len(levels))


def kappa_of(given: dict[str, Any], weights: Any = "nominal") -> Kappa:
    """Kappa by level value where levels are numbers, by rank where they are words or the vector says so."""
    table = table_of(given)
    levels = given.get("levels", range(len(table)))
    words = isinstance(levels[0], str)
    by: Spacing = "rank" if words or given.get("distance") == "rank" else "value"
    values = np.arange(len(table), dtype=float) if words else np.array(levels, float)
    return cohens_kappa(table, values, weights=weights, by=by)


def kappa_errors(weights: Any, *, limits: bool = True) -> Callable[[dict[str, Any]], list[float | None]]:
    """Kappa, SE, limits and SE under independence, in the vectors' order."""

    def found(given: dict[str, Any]) -> list[float | None]:
        kappa = kappa_of(given, weights)
        interval = kappa.estimate.interval
        inner = [interval.low, interval.high] if limits and interval else []
        return [kappa.estimate.value, kappa.standard_error, *inner, kappa.standard_error_h0]

    return found


def weighted(weights: Any) -> Callable[[dict[str, Any]], float | None]:
    return lambda given: kappa_of(given, weights).estimate.value


def units(given: dict[str, Any]) -> tuple[Ints, np.ndarray]:
    """Count matrix and level values of a vector's units by raters."""
    values = {v for unit in given["units"] for v in unit if v is not None}
    levels = given.get("levels") or sorted(values)
    return level_counts(coded(given["units"], levels), len(levels)), np.array(levels, float)


def alpha(metric: Any) -> Callable[[dict[str, Any]], float | None]:
    return lambda given: krippendorff_alpha(*units(given), metric=metric).value


def groups(rows: list[list[float]]) -> tuple[Ints, np.ndarray]:
    """Codes and level values of lists of equally many numbers."""
    levels, codes = np.unique(np.array(rows, float), return_inverse=True)
    return codes.reshape(len(rows), -1), levels


def counted(rows: list[list[float]]) -> tuple[Ints, np.ndarray]:
    codes, levels = groups(rows)
    return level_counts(codes, len(levels)), levels


def with_limits(estimate: Estimate) -> list[float | None]:
    assert estimate.interval is not None
    return [estimate.value, estimate.interval.low, estimate.interval.high]


def limits(estimate: Estimate) -> list[float | None]:
    return with_limits(estimate)[1:]


def both_proportions(given: dict[str, Any]) -> list[Any]:
    return [limits(wilson(given["x"], given["n"])), limits(clopper_pearson(given["x"], given["n"]))]


def flips(items: list[list[int]]) -> list[float | None]:
    """Headline, pooled and any-flip share of items given as passes of repetitions."""
    found = gate_flips(np.array([[n - k, k] for k, n in items]), BINARY, 1)
    return [found.flip_rate.value, found.pooled.value, found.any_flip.value]


def item_flip_error(given: dict[str, Any]) -> list[float | None]:
    passes = {0.0: 0, 0.4: 1, 0.6: 2}  # of five repetitions: 2k(5 - k) / 20
    items = np.array([[5 - passes[f], passes[f]] for f in given["item_flip"]])
    found = gate_flips(items, BINARY, 1)
    return [found.flip_rate.value, found.standard_error]


def pass_fail_transitions(given: dict[str, Any]) -> list[list[int]]:
    codes = np.column_stack([coded(given[run], ["fail", "pass"]) for run in ("run1", "run2")])
    table = transitions(codes, 0, 1, BINARY, 1).table
    return [[int(count) for count in row] for row in table]


def bland_altman(given: dict[str, Any]) -> list[float | None]:
    found = dispersion_summary(*counted([list(pair) for pair in zip(given["rep1"], given["rep2"], strict=True)]))
    return [found.within_item_sd.value, found.repeatability.value]


def negative_between(given: dict[str, Any]) -> list[float | None]:
    found = variance_components(*counted(list(given["groups"].values())))
    assert found.negative
    return [found.between_raw, found.between, found.within]


def icc_mean_squares(given: dict[str, Any]) -> list[float]:
    squares = icc_two_way(*groups(given["ratings"])).mean_squares
    assert squares is not None
    return [squares.items, squares.within, squares.raters, squares.residual]


def fleiss_relation(given: dict[str, Any]) -> float:
    counts, _ = counted(given["ratings"])
    kappa = fleiss_kappa(counts).value
    assert kappa is not None
    return kappa + (1 - kappa) / int(counts.sum())


def fleiss_and_randolph(given: dict[str, Any]) -> list[float | None]:
    counts = np.array(given["counts"])
    wider = np.column_stack([counts, np.zeros(len(counts), int)])
    assert fleiss_kappa(wider).value == pytest.approx(fleiss_kappa(counts).value)
    return [fleiss_kappa(counts).value, randolph_kappa(counts).value, randolph_kappa(wider).value]


def by_levels(statistic: Callable[[Ints], Estimate]) -> Callable[[dict[str, Any]], list[float | None]]:
    """A figure on a rubric of three and of five levels."""
    return lambda given: [statistic(table_of(given, list(range(1, k + 1)))).value for k in (3, 5)]


def chi2_df(test: Any) -> list[Any]:
    return [test.statistic, test.df]


def discordant(table: list[list[int]]) -> tuple[int, int]:
    return table[0][1], table[1][0]


FOUND: dict[str, Callable[[dict[str, Any]], Any]] = {
    "seed20-agreement": lambda v: exact_agreement(table_of(v)).value,
    "seed20-kappa": weighted("nominal"),
    "seed20-kappa-ci": lambda v: kappa_errors("nominal")(v)[1:],
    "seed20-kappa-se-delta": lambda v: kappa_of(v).standard_error,
    "seed20-agreement-ci": both_proportions,
    "seed20-pabak": lambda v: pabak(table_of(v)).value,
    "seed20-ac1": lambda v: gwet_ac1_of_table(table_of(v)).value,
    "seed20-krippendorff-nominal": lambda v: (
        krippendorff_alpha(
            level_counts(coded([v["human"], v["judge"]], v["levels"]).T, 2), BINARY, metric="nominal"
        ).value
    ),
    "seed20-mcnemar": lambda v: mcnemar_exact(*discordant(table_of(v).tolist())).p,
    "kappa-sas-table10-nominal": kappa_errors("nominal"),
    "kappa-sas-table10-linear": kappa_errors("linear"),
    "kappa-sas-skin-nominal": kappa_errors("nominal"),
    "kappa-sas-skin-linear": kappa_errors("linear"),
    "kappa-sas-skin-quadratic": kappa_errors("quadratic", limits=False),
    **{
        f"kappa-irr-anxiety-{weights}-{distance}": weighted(weights)
        for weights in ("nominal", "linear", "quadratic")
        for distance in ("rank", "rubric")
    },
    **{
        f"kappa-paradox-fc90-{table}": lambda v: [kappa_of(v).estimate.value, pabak(table_of(v)).value]
        for table in ("balanced", "sym-bias", "asym-bias")
    },
    "kappa-vs-ac1-gwet2008": lambda v: [kappa_of(v).estimate.value, gwet_ac1_of_table(table_of(v)).value],
    "edge-kappa-both-constant": weighted("nominal"),
    "edge-kappa-one-constant": weighted("nominal"),
    "edge-kappa-single-item-agree": weighted("nominal"),
    "edge-kappa-perfect": lambda v: [kappa_of(v).estimate.value, kappa_of(v).standard_error],
    "edge-kappa-noncontiguous-quadratic": weighted("quadratic"),
    "edge-kappa-string-order": weighted("quadratic"),
    "edge-kappa-unused-levels": weighted("linear"),
    "edge-ac1-unused-levels": by_levels(gwet_ac1_of_table),
    "edge-brennan-prediger-levels": by_levels(pabak),
    **{
        f"alpha-{data}-{metric}": alpha(metric)
        for data in ("krippendorff2011", "wikipedia")
        for metric in ("nominal", "ordinal", "interval")
    },
    "edge-alpha-constant": alpha("nominal"),
    "edge-alpha-single-item": alpha("nominal"),
    "edge-alpha-noncontiguous": lambda v: [alpha("ordinal")(v), alpha("interval")(v)],
    "fleiss-alpha-relation": fleiss_relation,
    "edge-fleiss-constant": lambda v: fleiss_kappa(np.array(v["counts"])).value,
    "edge-fleiss-empty-category": fleiss_and_randolph,
    "edge-fleiss-unequal-reps": alpha("nominal"),
    "gwet-4raters-identity": lambda v: gwet_ac1(units(v)[0]).value,
    "gwet-4raters-quadratic": lambda v: gwet_ac2(*units(v), agreement="quadratic").value,
    "gwet-4raters-linear": lambda v: gwet_ac2(*units(v), agreement="linear").value,
    "icc-sf-mean-squares": lambda v: dict(zip(("BMS", "WMS", "JMS", "EMS"), icc_mean_squares(v), strict=True)),
    "icc-sf-ICC1-1": lambda v: with_limits(icc_one_way(*counted(v["ratings"])).single),
    "icc-sf-ICC1-k": lambda v: with_limits(icc_one_way(*counted(v["ratings"])).average),
    "icc-sf-ICC2-1": lambda v: with_limits(icc_two_way(*groups(v["ratings"])).agreement_single),
    "icc-sf-ICC2-k": lambda v: with_limits(icc_two_way(*groups(v["ratings"])).agreement_average),
    "icc-sf-ICC3-1": lambda v: with_limits(icc_two_way(*groups(v["ratings"])).consistency_single),
    "icc-sf-ICC3-k": lambda v: with_limits(icc_two_way(*groups(v["ratings"])).consistency_average),
    "spearman-brown-icc": lambda v: spearman_brown(v["r"], v["k"]),
    "cronbach-equals-icc3k": lambda v: icc_two_way(*groups(v["ratings"])).consistency_average.value,
    "edge-icc-constant": lambda v: icc_one_way(*counted(v["ratings"])).single.value,
    "edge-icc-no-within-variance": lambda v: icc_one_way(*counted(v["ratings"])).single.value,
    "edge-vc-negative": negative_between,
    "within-sd-bland-altman": bland_altman,
    "modal-share": lambda v: (
        dispersion_summary(
            level_counts(coded([[*unit, None, None][:3] for unit in v["units"]], [1, 2, 3]), 3), np.arange(1.0, 4)
        ).mean_modal_share.value
    ),
    "mcdonald-omega": lambda v: omega_of_correlations(np.array(v["corr"])),
    "flip-k1-n10": lambda v: float(flip_probability(v["k"], v["n"])),
    "flip-k1-n2": lambda v: float(flip_probability(v["k"], v["n"])),
    "edge-flip-unanimous": lambda v: [float(flip_probability(v["k"], v["n"])), zero_flip_upper_bound(v["n"])],
    "edge-flip-single-repetition": lambda v: flips([[v["k"], v["n"]]])[0],
    "flip-corpus": lambda v: flips(v["items"]),
    "flip-fleiss-identity": lambda v: flips([[sum(row), len(row)] for row in v["passes"]])[0],
    "flip-se-clustered": item_flip_error,
    "flip-transition": pass_fail_transitions,
    "mcnemar-agresti": lambda v: [
        mcnemar_chi2(*discordant(v["table"]), corrected=corrected).statistic for corrected in (False, True)
    ],
    "mcnemar-exact-small": lambda v: mcnemar_exact(v["b"], v["c"]).p,
    "edge-mcnemar-no-discordant": lambda v: mcnemar_exact(*discordant(v["table"])).p,
    "stuart-maxwell-vision": lambda v: [*chi2_df(stuart_maxwell(table_of(v))), stuart_maxwell(table_of(v)).p],
    "bowker-vision": lambda v: [*chi2_df(bowker(table_of(v))), bowker(table_of(v)).p],
    "edge-stuart-maxwell-empty-level": lambda v: chi2_df(stuart_maxwell(table_of(v))),
    "edge-bowker-empty-pairs": lambda v: [*chi2_df(bowker(table_of(v))), bowker(table_of(v)).p],
    **{f"ci-newcombe-{of}": both_proportions for of in ("81-263", "15-148", "0-20", "1-29")},
    "edge-ci-no-denominator": lambda v: wilson(v["x"], v["n"]).value,
    "faireval-conflict-chatgpt": lambda v: with_limits(wilson(v["x"], v["n"])),
    "spearman-brown-reps": lambda v: repetitions_needed(v["r"], v["target"]).value,
    **{
        f"majority-{of}": lambda v: float(majority_verdict(v["k"], v["n"], v["m"]).passes)
        for of in ("3-of-6-10", "5-of-6-10", "3-of-2-5", "3-of-9-10")
    },
    "majority-flip-disjoint": lambda v: float(majority_flip_disjoint(v["k"], v["n"], v["m"])),
    "majority-flip-iid": lambda v: float(majority_flip_iid(v["p"], v["m"])),
    "edge-even-majority-tie": lambda v: [float(chance) for chance in majority_verdict(v["k"], v["n"], v["m"])],
}

FIRST_OF_EXPECTED = {"edge-vc-negative": 3}
"""The fourth figure is the residual variance by REML: an iterative fit, where the rule is the closed form."""


def flat(value: Any) -> list[Any]:
    """Figures in a fixed order, whatever they are nested in."""
    if isinstance(value, dict):
        return [figure for part in value.values() for figure in flat(part)]
    if isinstance(value, list | tuple):
        return [figure for part in value for figure in flat(part)]
    return [value]


@pytest.mark.parametrize("vector_id", sorted(FOUND))
def test_figure_agrees_with_the_reference_vector(vector_id: str) -> None:
    vector = VECTORS[vector_id]
    expected = flat(vector["expected"])[: FIRST_OF_EXPECTED.get(vector_id)]
    found = flat(FOUND[vector_id](vector["input"]))
    if expected == [None]:
        assert found == [None]
    else:
        assert found == pytest.approx(expected, abs=vector["tolerance"], rel=0)


def test_bootstrap_interval_of_kappa_agrees_with_the_reference_simulation() -> None:
    vector = VECTORS["seed20-kappa-bootstrap"]
    interval = kappa_bootstrap(table_of(vector["input"]), BINARY, np.random.default_rng(1), draws=20_000)
    assert [interval.low, interval.high] == pytest.approx(vector["expected"], abs=vector["tolerance"])


def test_every_vector_is_checked_by_some_test_file() -> None:
    here = set(FOUND) | {"seed20-kappa-bootstrap"}
    others = "".join(
        path.read_text() for path in Path(__file__).parent.glob("test_vectors_*.py") if path != Path(__file__)
    )
    assert {vector_id for vector_id in VECTORS if vector_id not in here and f'"{vector_id}"' not in others} == set()


@pytest.mark.parametrize(
    ("estimate", "reason"),
    [
        (kappa_of(VECTORS["edge-kappa-both-constant"]["input"]).estimate, Undefined.NO_VARIATION),
        (kappa_of(VECTORS["edge-kappa-single-item-agree"]["input"]).estimate, Undefined.NO_VARIATION),
        (krippendorff_alpha(*units(VECTORS["edge-alpha-constant"]["input"])), Undefined.NO_VARIATION),
        (fleiss_kappa(np.array([[7, 0], [7, 0]])), Undefined.NO_VARIATION),
        (icc_one_way(*counted([[3, 3], [3, 3], [3, 3]])).single, Undefined.NO_VARIATION),
        (icc_two_way(*groups([[3, 3], [3, 3], [3, 3]])).agreement_single, Undefined.NO_VARIATION),
        (icc_one_way(*counted([[3, 4]])).single, Undefined.SINGLE_ITEM),
        (variance_components(*counted([[3, 4]])).item_share, Undefined.SINGLE_ITEM),
        (gate_flips(np.array([[0, 1]]), BINARY, 1).flip_rate, Undefined.SINGLE_REPETITION),
        (krippendorff_alpha(np.array([[0, 1], [1, 0]]), BINARY), Undefined.SINGLE_REPETITION),
        (gate_flips(np.zeros((0, 2), int), BINARY, 1).flip_rate, Undefined.NO_DATA),
        (dispersion_summary(np.zeros((3, 2), int), BINARY).mean_sd, Undefined.NO_DATA),
        (wilson(0, 0), Undefined.NO_DENOMINATOR),
        (repetitions_needed(0.0, 0.9), Undefined.NO_DENOMINATOR),
        (mcdonald_omega(np.array([[0, 1, 1], [1, 1, 0]]), BINARY), Undefined.NO_VARIATION),
        (mcdonald_omega(np.array([[0, 1], [1, 0]]), BINARY), Undefined.SINGLE_REPETITION),
    ],
)
def test_undefined_figures_are_none_and_say_why(estimate: Estimate, reason: Undefined) -> None:
    assert (estimate.value, estimate.reason, estimate.interval) == (None, reason, None)


def test_perfect_agreement_shows_no_interval_but_the_wilson_limits_of_the_agreement() -> None:
    table = np.array([[5, 0], [0, 5]])
    kappa = cohens_kappa(table, BINARY)
    assert kappa.estimate.interval is not None
    assert (kappa.estimate.value, kappa.standard_error) == (1.0, 0.0)
    assert (kappa.estimate.interval.low, kappa.estimate.interval.reason) == (None, Undefined.COLLAPSED)
    assert PERFECT_AGREEMENT in kappa.estimate.notes
    # Wilson's lower limit at 10 of 10 is n / (n + z^2) = 10 / 13.8415
    assert limits(exact_agreement(table))[0] == pytest.approx(10 / (10 + 1.959963984540054**2))


def test_one_constant_rater_makes_kappa_exactly_zero_and_is_said() -> None:
    kappa = kappa_of(VECTORS["edge-kappa-one-constant"]["input"]).estimate
    assert kappa.value == 0
    assert ONE_RATER_CONSTANT in kappa.notes


def test_a_level_never_confused_makes_stuart_maxwell_singular() -> None:
    found = stuart_maxwell(np.array([[10, 2, 0], [3, 8, 0], [0, 0, 6]]))
    assert (found.p, found.reason) == (None, Undefined.SINGULAR)


def test_mcnemar_chi2_without_change_is_undefined_where_statsmodels_says_p_is_0() -> None:
    assert (mcnemar_chi2(0, 0).p, mcnemar_chi2(0, 0).reason) == (None, Undefined.NO_DENOMINATOR)
