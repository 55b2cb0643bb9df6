import numpy as np
import pytest

from core.figures.agreement import confusion_matrix, estimate_row, forest, promotion_row, slice_bars, trust_rows
from core.figures.theme import alt_text
from core.stats.calibration import judge_vs_people
from core.stats.common import Estimate, Interval, Undefined, undefined
from core.stats.promotion import non_inferiority
from core.stats.trust import LineVerdict, TrustRule, evaluate_trust, trust_figures
from tests.figures.reading import trace, words

# The twenty labels r01..r20: 9 passes and 6 fails in common, 3 false passes, 2 false fails.
PEOPLE = np.array([1] * 11 + [0] * 9)
JUDGE = np.array([1] * 9 + [0] * 2 + [1] * 3 + [0] * 6)
RULE = TrustRule(min_agreement=0.80, min_kappa=0.60, max_false_passes=2, min_labels=50)


@pytest.fixture
def decision():
    measured = judge_vs_people(PEOPLE, JUDGE, np.array([0.0, 1.0]), 1, rng=np.random.default_rng(0))
    return evaluate_trust(RULE, trust_figures(measured, RULE))


def written(figure):
    return {
        (int(y), int(x)): text
        for drawn in figure.data
        if drawn.name == "cell text"
        for y, x, text in zip(drawn.y, drawn.x, drawn.text, strict=True)
    }


@pytest.mark.parametrize(
    ("shares", "false_pass"),
    [("row", "3<br>33%"), ("column", "3<br>25%")],  # 3 of 9 human fails; 3 of 12 judge passes
)
def test_the_confusion_matrix_names_its_denominator(shares, false_pass):
    figure = confusion_matrix(np.array([[9, 2], [3, 6]]), ["pass", "fail"], shares=shares)
    assert written(figure)[1, 0] == false_pass
    assert figure.layout.xaxis.title.text == f"Judge (shares of the {shares})"
    hover = trace(figure, "cells").hovertext[2]
    assert "of the row: 3 of 9 (33.3%)" in hover
    assert "of the column: 3 of 12 (25.0%)" in hover
    assert figure.layout.yaxis.ticktext == ("pass (n = 11)", "fail (n = 9)")


def test_a_row_nobody_used_stays_and_has_no_share():
    figure = confusion_matrix(np.array([[4, 0, 1], [0, 0, 0], [0, 2, 3]]), ["1", "2", "3"])
    assert np.isnan(figure.data[0].z[1]).all()
    assert written(figure)[1, 1] == "0<br>–"
    assert figure.layout.yaxis.ticktext[1] == "2 (n = 0)"


def test_an_empty_confusion_matrix_gives_words():
    assert "nothing was scored" in words(confusion_matrix(np.zeros((2, 2), int), ["pass", "fail"]))


def test_a_trust_rule_shows_every_line_with_verdict_by_symbol_and_word(decision):
    figure = forest(trust_rows(decision))
    failing, undecided = trace_group(figure, "fails"), trace_group(figure, "not decided")
    assert sorted(value for drawn in failing for value in drawn.x) == pytest.approx([24 / 49, 0.75, 3])
    assert [value for drawn in undecided for value in drawn.x] == [20]
    assert failing[0].marker.symbol != undecided[0].marker.symbol
    assert figure.layout.yaxis.ticktext == ("agreement<br>≥ 0.8: fails", "kappa<br>≥ 0.6: fails")
    assert figure.layout.yaxis2.ticktext == ("false passes<br>≤ 2: fails", "labels<br>≥ 50: undecided")
    assert [list(drawn.x) for drawn in trace_group(figure, "threshold")] == [[0.8, 0.6], [2, 50]]
    assert "agreement 0.750, 95% 0.531 to 0.888, asked ≥ 0.8, fails" in alt_text(figure)  # Wilson .531 to .888


def trace_group(figure, name):
    return [drawn for drawn in figure.data if drawn.name == name]


def test_each_legend_entry_appears_once(decision):
    figure = forest(trust_rows(decision))
    shown = [drawn.name for drawn in figure.data if drawn.showlegend]
    assert sorted(shown) == ["fails", "not decided", "threshold"]


def test_intervals_are_drawn_from_limit_to_limit(decision):
    lines = trace_group(forest(trust_rows(decision)), "interval")
    agreement = decision.lines[0].interval
    assert lines[0].x[:2] == (agreement.low, agreement.high)
    assert lines[1].x == ()  # counts have no interval


def test_margins_stand_on_the_side_that_is_worse():
    better = Estimate(0.01, 200, interval=Interval(-0.02, 0.04, "x", 0.9))
    worse = Estimate(0.04, 80, interval=Interval(0.02, 0.06, "x", 0.9))
    rows = [
        promotion_row("agreement", non_inferiority(better, 0.03), unit="share"),
        promotion_row("false passes", non_inferiority(worse, 0.01, higher_is_better=False), unit="share"),
        promotion_row("flips", non_inferiority(better, 0.03, higher_is_better=False), unit="share"),
    ]
    figure = forest(rows, zero=True, threshold_word="margin")
    assert list(trace(figure, "margin").x) == [-0.03, 0.01, 0.03]
    assert figure.layout.yaxis.ticktext == (
        "agreement<br>≥ -0.03: pass",
        "false passes<br>≤ 0.01: fail",
        "flips<br>≤ 0.03: insufficient evidence",
    )
    symbols = {name: trace(figure, name).marker.symbol for name in ("passes", "fails", "not decided")}
    assert len(set(symbols.values())) == 3
    assert 0 in [line.x0 for line in figure.layout.shapes]


def test_an_undefined_line_is_words_and_no_point():
    row = promotion_row("cost", non_inferiority(undefined(Undefined.NO_DATA), 0.1), unit="cents")
    figure = forest([row])
    assert words(figure) == "undefined: nothing was scored"
    assert [drawn.name for drawn in figure.data] == ["interval", "threshold"]
    assert "pass" not in figure.layout.yaxis.ticktext[0]


def test_an_undefined_verdict_is_not_shown_as_a_pass():
    assert LineVerdict.UNDEFINED == "undefined"
    measured = judge_vs_people(PEOPLE[:3], JUDGE[:3], np.array([0.0, 1.0]), 1, rng=np.random.default_rng(0))
    rule = TrustRule(min_kappa=0.6)  # three passes by both: kappa is undefined
    figure = forest(trust_rows(evaluate_trust(rule, trust_figures(measured, rule))))
    assert figure.layout.yaxis.ticktext == ("kappa<br>≥ 0.6: undefined",)
    assert words(figure) == "undefined"


def test_the_axis_holds_every_limit_and_threshold():
    figure = forest([estimate_row("a", Estimate(0.5, 10, interval=Interval(-0.4, 0.9, "x")))])
    low, high = figure.layout.xaxis.range
    assert low < -0.4
    assert high > 0.9


def test_nothing_to_compare_gives_words():
    assert words(forest([])) == "there is nothing to compare"
    assert words(slice_bars([], [], title="Agreement")) == "there are no slices to compare"


def test_slices_show_value_interval_n_and_words():
    known = Estimate(0.6, 20, interval=Interval(0.39, 0.78, "Wilson"))
    figure = slice_bars(
        ["boundary", "nuisance"],
        [known, undefined(Undefined.NO_VARIATION, n=9)],
        title="Agreement",
        overall=Estimate(0.8, 500),
    )
    assert figure.data[0].x == (0.6,)
    assert figure.data[1].x == (0.39, 0.78, None)
    assert figure.layout.yaxis.ticktext == ("boundary<br>n = 20", "nuisance<br>n = 9")
    assert words(figure) == f"undefined: {Undefined.NO_VARIATION.words} | overall 80.0%"
    assert figure.data[0].hovertext == ("boundary<br>60.0% (95% 39.0% to 78.0%, n = 20 items)",)


def test_all_slices_undefined_keeps_the_rows():
    figure = slice_bars(["a"], [undefined(Undefined.NO_DATA)], title="Kappa", share=False)
    assert figure.layout.yaxis.ticktext == ("a<br>n = 0",)
    assert "nothing was scored" in words(figure)
