"""Agreement of 20 repetitions of 1,600 items, beside scikit-learn's and krippendorff's."""

from collections.abc import Iterator
from itertools import combinations

import krippendorff
import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import cohen_kappa_score

from benchmarks.measuring import Line, best_of
from core.stats.dispersion import level_counts
from core.stats.pairs import mean_pair_kappa, pair_kappas, run_pairs
from core.stats.reliability import krippendorff_alpha

ITEMS, REPETITIONS = 1_600, 20
LEVELS = np.arange(1.0, 6.0)
DRAWS = 1_000
_LOOPED_DRAWS = 2


def measure() -> Iterator[Line]:
    """Kappa of every two repetitions, its bootstrap, and alpha."""
    codes = _scores(np.random.default_rng(1))
    yield from _kappa(codes)
    yield from _bootstrap(codes)
    yield _alpha(codes)


def _kappa(codes: NDArray[np.int16]) -> Iterator[Line]:
    ours = best_of(7, lambda: pair_kappas(run_pairs(codes, len(LEVELS)), LEVELS))
    theirs = best_of(2, lambda: _looped_kappas(codes))
    difference = np.abs(pair_kappas(run_pairs(codes, len(LEVELS)), LEVELS).values - _looped_kappas(codes)).max()
    pairs = REPETITIONS * (REPETITIONS - 1) // 2
    yield Line(
        f"Quadratic kappa of {pairs} pairs, {ITEMS:,} items x {REPETITIONS} repetitions",
        f"{ours * 1e3:.2f} ms; scikit-learn in a loop {theirs:.2f} s: {theirs / ours:.0f} times as long",
        "at least 100 times",
        theirs >= 100 * ours,
    )
    yield Line("Largest difference from scikit-learn", f"{difference:.1e}", "below 1e-9", bool(difference < 1e-9))


def _bootstrap(codes: NDArray[np.int16]) -> Iterator[Line]:
    ours = best_of(3, lambda: mean_pair_kappa(codes, LEVELS, rng=np.random.default_rng(2), draws=DRAWS))
    rng = np.random.default_rng(3)
    a_draw = best_of(_LOOPED_DRAWS, lambda: _looped_kappas(codes[rng.integers(0, ITEMS, ITEMS)]))
    yield Line(
        f"{DRAWS:,}-draw item bootstrap of the mean pair kappa",
        f"{ours:.3f} s; scikit-learn in a loop would take {a_draw * DRAWS / 60:.0f} minutes",
        "under 0.5 s",
        ours < 0.5,
    )


def _alpha(codes: NDArray[np.int16]) -> Line:
    counts = level_counts(codes, len(LEVELS))
    ours = best_of(7, lambda: krippendorff_alpha(level_counts(codes, len(LEVELS)), LEVELS, metric="ordinal"))
    data = codes.T.astype(float)
    theirs = best_of(3, lambda: krippendorff.alpha(data, value_domain=range(5), level_of_measurement="ordinal"))
    found = krippendorff_alpha(counts, LEVELS, metric="ordinal").value or 0.0
    difference = abs(found - krippendorff.alpha(data, value_domain=range(5), level_of_measurement="ordinal"))
    return Line(
        f"Ordinal alpha, {ITEMS:,} items x {REPETITIONS} repetitions",
        f"{ours * 1e3:.2f} ms; krippendorff {theirs * 1e3:.2f} ms: {theirs / ours:.1f} times as long; "
        f"they differ by {difference:.0e}",
    )


def _looped_kappas(codes: NDArray[np.int16]) -> NDArray[np.float64]:
    """What a user would write with scikit-learn."""
    labels = range(len(LEVELS))
    return np.array(
        [
            cohen_kappa_score(codes[:, a], codes[:, b], labels=labels, weights="quadratic")
            for a, b in combinations(range(codes.shape[1]), 2)
        ]
    )


def _scores(rng: np.random.Generator) -> NDArray[np.int16]:
    quality = rng.normal(2.0, 1.0, (ITEMS, 1))
    return np.clip(np.rint(quality + rng.normal(0, 0.7, (ITEMS, REPETITIONS))), 0, 4).astype(np.int16)
