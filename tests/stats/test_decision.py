"""The rule language, and what a rule gives over many items."""

from dataclasses import replace

import numpy as np
import pytest

from core.stats.decision import (
    DEEPEST_RULE,
    LONGEST_RULE,
    RuleError,
    Scale,
    Table,
    WhatIf,
    apply_what_if,
    compare_decisions,
    order_pairs,
    parse_rule,
    scores_out_of_ten,
    summarise_systems,
    totals,
)

NAN = float("nan")
SCALES = (
    Scale("correctness", (0.0, 1.0, 2.0), gate=2.0),
    Scale("tone", (0.0, 1.0, 2.0), gate=1.0),
    Scale("format", (0.0, 1.0, 2.0), gate=1.0),
)
ROWS = [(2, 1, 1), (2, 0, 2), (1, 2, 2), (2, 2, 2), (0, 0, 0), (NAN, 2, 2), (NAN, 0, 2), (2, NAN, 2)]


def table(*rows: tuple[float, ...]) -> Table:
    return Table(SCALES, np.array(rows or ROWS, float))


def said(text: str, *rows: tuple[float, ...]) -> str:
    """One sign an item: y, n or ?."""
    answers = parse_rule(text, SCALES).decide(table(*rows))
    return "".join("y" if yes else "n" if no else "?" for yes, no in zip(*answers, strict=True))


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("ready when correctness is 2 and no criterion is 0", "ynnyn?n?"),
        ("correctness is 2 and no criterion is 0", "ynnyn?n?"),
        ("READY WHEN Correctness = 2 AND NO criterion = 0", "ynnyn?n?"),
        ("correctness >= 2 and total >= 5", "nnnyn???"),
        ("correctness at least 2 and total at least 5", "nnnyn???"),
        ("correctness is at least 2 and total is at least 5", "nnnyn???"),
        ("all criteria >= 1", "ynyyn?n?"),
        ("every criterion above 0", "ynyyn?n?"),
        ("any criterion is 0", "nynny?y?"),
        ("not any criterion is 0", "ynyyn?n?"),
        ("no criterion is 0", "ynyyn?n?"),
        ("count of criteria at 0 <= 1", "yyyyny?y"),
        ("count of criteria >= 2 >= 2", "nyyyny?y"),
        ("correctness is not 1", "yynyy??y"),
        ("correctness != 1", "yynyy??y"),
        ("tone below 2 or format < 2", "yynnyny?"),
        ("score is 10", "nnnyn???"),
        ("score >= 10", "nnnyn???"),
        ('"tone" is 2', "nnyynyn?"),
        ("", "ynnyn?n?"),
    ],
)
def test_rules_say_yes_no_or_undefined(rule: str, expected: str) -> None:
    assert said(rule) == expected


def test_and_binds_closer_than_or_and_parentheses_undo_it() -> None:
    # tone is 2 -> true whatever follows; with parentheses format must be 2 as well.
    assert said("tone is 2 or correctness is 2 and format is 2", (0, 2, 0)) == "y"
    assert said("(tone is 2 or correctness is 2) and format is 2", (0, 2, 0)) == "n"


def test_what_is_missing_is_never_sure_even_where_no_level_could_fail() -> None:
    assert said("correctness >= 0", (NAN, 1, 1)) == "?"
    assert said("total >= 0", (NAN, 1, 1)) == "?"


def test_undefined_gives_way_to_what_decides() -> None:
    assert said("correctness is 2 and tone is 2", (NAN, 0, 0)) == "n"
    assert said("correctness is 2 or tone is 2", (NAN, 2, 0)) == "y"


def test_a_veto_fails_an_item_whatever_the_rule_says() -> None:
    scales = (SCALES[0], SCALES[1], replace(SCALES[2], veto=True))
    answers = parse_rule("correctness is 2", scales).decide(
        Table(scales, np.array([[2, 0, 0], [2, 0, 1], [2, 0, NAN]]))
    )
    assert answers.no.tolist() == [True, False, False]
    assert answers.yes.tolist() == [False, True, False]
    assert answers.undefined.tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("rule", "position", "expected", "found"),
    [
        ("correctness is", 15, "a number", "the end"),
        ("correctness 2", 13, "a comparison", "“2”"),
        ("ready correctness is 2", 7, "“when”", "“correctness”"),
        ("correctnes is 2", 1, "a criterion (correctness, tone, format)", "“correctnes”"),
        ("correctness is 2 tone is 1", 18, "“and”, “or” or the end", "“tone”"),
        ("(correctness is 2", 18, "“)”", "the end"),
        ("no tone is 0", 4, "“criterion”", "“tone”"),
        ("count criteria at 0 <= 1", 7, "“of”", "“criteria”"),
        ("correctness at 2", 16, "“least” or “most”", "“2”"),
        ("correctness is 3", 16, "a level of correctness (0, 1, 2)", "“3”"),
        ("correctness is 2 and", 21, "a criterion", "the end"),
        ("correctness is 2 & tone is 1", 18, "a word", "“&”"),
        ('"tone is 2', 1, "a closed quotation", '“"”'),
        ("__import__('os')", 11, "a word", None),
    ],
)
def test_errors_name_the_place_and_what_was_expected(
    rule: str, position: int, expected: str, found: str | None
) -> None:
    with pytest.raises(RuleError) as caught:
        parse_rule(rule, SCALES)
    assert caught.value.position == position or found is None
    if found is not None:
        assert expected in str(caught.value)
        assert str(caught.value).endswith(f"found {found}")


@pytest.mark.parametrize("rule", ["(" * 500 + "tone is 1" + ")" * 500, "not " * (DEEPEST_RULE + 1) + "tone is 1"])
def test_a_rule_nested_without_end_is_refused(rule: str) -> None:
    with pytest.raises(RuleError, match=r"characters|levels of"):
        parse_rule(rule, SCALES)


def test_a_rule_that_goes_on_for_ever_is_refused() -> None:
    with pytest.raises(RuleError, match=f"at most {LONGEST_RULE:,} characters"):
        parse_rule("tone is 1 or " * 200 + "tone is 1", SCALES)


def test_weights_give_totals_and_a_score_out_of_ten() -> None:
    # 2*2 + 1*1 + 1*0 = 5 of 0..8, so 6.25 of 10; on levels 1 to 5 the lowest is 0 of 10 and the highest 10.
    weighted = Table((replace(SCALES[0], weight=2.0), *SCALES[1:]), np.array([[2.0, 1.0, 0.0], [NAN, 1.0, 0.0]]))
    assert totals(weighted)[0] == 5
    assert scores_out_of_ten(weighted)[0] == 6.25
    assert np.isnan(totals(weighted)[1])
    likert = Table((Scale("a", (1.0, 2.0, 3.0, 4.0, 5.0), gate=4.0),), np.array([[1.0], [5.0], [3.0]]))
    assert scores_out_of_ten(likert).tolist() == [0, 10, 5]


def test_without_any_weight_a_score_is_undefined_and_never_a_number() -> None:
    weightless = Table(tuple(replace(scale, weight=0.0) for scale in SCALES), np.array(ROWS, float))
    assert np.isnan(scores_out_of_ten(weightless)).all()
    assert parse_rule("score >= 0", weightless.scales).decide(weightless).undefined.all()


def test_systems_are_counted_apart() -> None:
    rows = summarise_systems(table(), parse_rule("no criterion is 0", SCALES), ["a", "a", "b", "b", "b", "b", "a", "c"])
    first, second, third = rows
    # a: (2,1,1) ready; (2,0,2) and (?,0,2) are not. Scores 4/6 and 4/6 of the two complete ones.
    assert (first.system, first.items, first.ready, first.not_ready, first.undefined) == ("a", 3, 1, 2, 0)
    assert first.score == pytest.approx(10 * 4 / 6)
    assert (first.scored, first.lowest) == (2, (0, 2, 0))
    assert (second.ready, second.not_ready, second.undefined, second.lowest) == (2, 1, 1, (1, 1, 1))
    assert (third.score, third.scored, third.undefined) == (None, 0, 1)


def test_the_code_fence_story() -> None:
    # 24 replies; 19 got format 1 for a code fence, 5 got format 2. Ready needs correctness 2 and no criterion at 0.
    rows = [(2.0, 2.0, 1.0)] * 11 + [(1.0, 2.0, 1.0)] * 6 + [(2.0, 0.0, 1.0)] * 2 + [(2.0, 1.0, 2.0)] * 5
    fenced = np.arange(24) < 19
    before = table(*rows)
    rule = parse_rule("ready when correctness is 2 and no criterion is 0", SCALES)
    moves = compare_decisions(before, apply_what_if(before, WhatIf("format", 1.0, 2.0), fenced), rule)
    assert (moves.items, moves.risen, moves.fallen, moves.same, moves.open) == (24, 19, 0, 5, 0)
    assert moves.by == ((0.0, 5), (1.0, 19))
    assert moves.ready_before == moves.ready_after == 16
    assert not moves.became_ready.any()
    assert not moves.lost_ready.any()
    assert before.scores[0, 2] == 1, "nothing was changed in place"


def test_a_what_if_on_no_criterion_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no criterion style"):
        apply_what_if(table(), WhatIf("style", 1.0, 2.0))


def test_a_decision_that_moves_is_named() -> None:
    before, after = table((1, 1, 1), (2, 1, 1), (NAN, 1, 1)), table((2, 1, 1), (1, 1, 1), (2, 1, 1))
    moves = compare_decisions(before, after, parse_rule("correctness is 2", SCALES))
    assert moves.became_ready.tolist() == [True, False, True]
    assert moves.lost_ready.tolist() == [False, True, False]
    assert (moves.risen, moves.fallen, moves.open) == (1, 1, 1)


def test_pairs_in_the_same_order() -> None:
    # Ranks 1, 2, 2, 3 against totals 9, 7, 8, ?: (1,2) and (1,3) agree, (2,3) is tied by the reader, three are unknown.
    order = order_pairs([1, 2, 2, 3], np.array([9.0, 7.0, 8.0, NAN]))
    assert (order.pairs, order.same, order.opposite, order.tied, order.undefined) == (6, 2, 0, 1, 3)
    assert order_pairs([2, 1], np.array([9.0, 7.0])).opposite == 1
