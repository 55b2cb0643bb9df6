"""The promotion review on scores small enough to count by hand."""

import numpy as np
import pytest

from core.stats.common import MISSING
from core.stats.promotion import GateOutcome
from core.stats.review import KIND, PromotionRule, Review, Side, promotion_review, promotion_rule, side_of

LEVELS = np.arange(1.0, 6.0)
GATE = 4.0


def side(codes: list[list[int]]) -> Side:
    matrix = np.array(codes)
    return side_of(matrix, np.full(len(matrix), matrix.shape[1]), np.full(len(matrix), 100.0), len(LEVELS))


def review(candidate: Side, baseline: Side, human: list[int], **margins: float) -> Review:
    rule = PromotionRule(**margins)
    return promotion_review(candidate, baseline, rule, levels=LEVELS, gate=GATE, human=np.array(human), seed=1)


def test_a_false_pass_line_rests_on_the_human_fails() -> None:
    before = side([[1, 1]] * 20 + [[4, 4]] * 20)
    after = side([[4, 1]] * 20 + [[4, 4]] * 20)
    (line,) = review(after, before, [0] * 20 + [1] * 20, false_pass_rate=0.05).lines
    # people fail 20 items: the baseline passes none of them, the candidate half of its calls on each
    assert line.baseline.value == 0
    assert line.candidate.value == 0.5
    assert line.candidate.n == 20
    assert line.outcome is GateOutcome.FAIL


def test_an_unscored_call_is_no_fail_but_counts_as_unscored() -> None:
    before, after = side([[4, 4]] * 40), side([[4, MISSING]] * 40)
    agreement, unscored = review(after, before, [1] * 40, agreement=0.1, unscored=0.1).lines
    assert agreement.candidate.value == 1
    assert unscored.candidate.value == 0.5
    assert unscored.outcome is GateOutcome.FAIL


def test_one_item_at_none_of_ten_fails_the_gate_of_every_item() -> None:
    good, bad = [4] * 10, [0] * 10
    (line,) = review(side([good] * 49 + [bad]), side([good] * 50), [MISSING] * 50, item_pass_share=0.8).lines
    assert line.items is not None
    assert line.outcome is GateOutcome.FAIL
    assert line.items.failed.tolist() == [49]


def test_a_missing_item_is_not_a_pass() -> None:
    (line,) = review(side([[4, 4]] * 9 + [[MISSING] * 2]), side([[4, 4]] * 10), [1] * 10, item_pass_share=0.5).lines
    assert line.outcome is GateOutcome.INSUFFICIENT


def test_without_labels_agreement_is_undefined_and_passes_nothing() -> None:
    found = review(side([[4, 4]] * 30), side([[4, 4]] * 30), [MISSING] * 30, agreement=1.0)
    assert found.lines[0].candidate.value is None
    assert found.outcome is GateOutcome.INSUFFICIENT


def test_a_location_that_rose_too_far_fails_as_one_that_fell() -> None:
    low, high = side([[1, 1]] * 15 + [[2, 2]] * 15), side([[3, 3]] * 15 + [[4, 4]] * 15)
    assert review(high, low, [1] * 30, location=0.5).outcome is GateOutcome.FAIL
    assert review(low, high, [1] * 30, location=0.5).outcome is GateOutcome.FAIL
    assert review(low, low, [1] * 30, location=0.5).outcome is GateOutcome.PASS


def test_a_change_is_noise_where_a_side_contradicts_itself() -> None:
    before = side(
        [
            [0, 0],
            [0, 0],
            [4, 4],
            [
                0,
                0,
            ],
            [4, 4],
        ]
    )
    after = side([[4, 4], [4, 4], [0, 0], [4, 0], [4, 4]])
    found = review(after, before, [1, 0, 1, 1, 1], agreement=0.1)
    assert np.flatnonzero(found.fixed).tolist() == [0]
    assert np.flatnonzero(found.broken).tolist() == [1, 2]
    # the fourth passes one of two: a tie fails, so its verdict did not change, but it is nearer to people
    assert not found.within_noise.any()
    assert np.flatnonzero(found.better).tolist() == [0, 3]
    noisy = review(side([[4, 4, 0]] * 12), side([[0, 0, 0]] * 12), [1] * 12, agreement=0.1)
    assert noisy.within_noise.all()
    assert not noisy.fixed.any()


def test_a_rule_that_asks_nothing_passes_nothing() -> None:
    assert review(side([[4, 4]] * 10), side([[4, 4]] * 10), [1] * 10).outcome is GateOutcome.INSUFFICIENT


def test_stored_thresholds_come_back_as_the_rule() -> None:
    stored = {"kind": KIND, "corpus": "answers", "criterion": "quality", "agreement": 0.05}
    assert promotion_rule(stored) == PromotionRule(agreement=0.05)
    with pytest.raises(ValueError, match="has no speed"):
        promotion_rule({"speed": 1})
    with pytest.raises(ValueError, match="0 or more"):
        PromotionRule(flip_rate=-0.1)
