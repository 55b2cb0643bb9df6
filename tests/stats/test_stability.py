"""Stability and the summary of one item: each kind, ties, and what is undefined."""

import numpy as np
import pytest

from core.stats.item import item_summary
from core.stats.stability import Stability, count_stability, item_stability

LEVELS = np.array([1.0, 2.0, 3.0])
COUNTS = np.array([[0, 0, 4], [2, 2, 0], [0, 1, 3], [0, 1, 0], [0, 0, 0]])


def test_each_kind_by_agreement_and_gate() -> None:
    kinds = item_stability(COUNTS, LEVELS, 3.0)
    assert kinds.tolist() == ["stable", "borderline", "unstable", "unknown", "unknown"]
    assert item_stability(COUNTS, LEVELS, 2.0).tolist() == ["stable", "unstable", "borderline", "unknown", "unknown"]
    assert count_stability(kinds) == {
        Stability.STABLE: 1,
        Stability.BORDERLINE: 1,
        Stability.UNSTABLE: 1,
        Stability.UNKNOWN: 2,
    }


def test_no_items_have_no_stability() -> None:
    assert item_stability(np.empty((0, 3), np.int64), LEVELS, 3.0).tolist() == []


def test_a_summary_of_four_scores() -> None:
    found = item_summary(COUNTS[2], LEVELS, 3.0)
    # scores 2, 3, 3, 3: mean 2.75, squares (0.75² + 3 · 0.25²) / 3 = 0.25; 2 · 3 · 1 / (4 · 3) = 0.5
    assert (found.n, found.mean, found.score_range, found.modes, found.modal_share) == (4, 2.75, 1.0, (3.0,), 0.75)
    assert found.sd == pytest.approx(0.5)
    assert (found.passes, found.flip_probability, found.minority_bound) == (3, 0.5, None)


def test_agreement_has_a_bound_and_ties_are_all_modes() -> None:
    assert item_summary(COUNTS[0], LEVELS, 3.0).minority_bound == pytest.approx(1 - 0.05**0.25)
    assert item_summary(COUNTS[1], LEVELS, 3.0).modes == (1.0, 2.0)


def test_one_score_and_none_are_undefined() -> None:
    one, none = item_summary(COUNTS[3], LEVELS, 3.0), item_summary(COUNTS[4], LEVELS, 3.0)
    assert (one.mean, one.sd, one.flip_probability, one.minority_bound) == (2.0, None, None, None)
    assert (none.n, none.mean, none.score_range, none.modes, none.modal_share) == (0, None, None, (), None)
