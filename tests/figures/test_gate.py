import numpy as np
import pytest

from core.figures.gate import (
    flip_matrix,
    gate_curve,
    kappa_spread,
    level_cross_tab,
    pass_rate_curve,
    transition_matrix,
)
from core.stats.common import MISSING, Undefined
from core.stats.gate import flip_curve, item_verdicts
from core.stats.pairs import pair_flip_shares, pair_kappas, pair_table, run_pairs, transitions
from tests.figures.reading import trace, words

LEVELS = np.arange(1.0, 6.0)
# Items by repetitions; verdicts at gate 3: PPF, FFF, PFP, PPP.
CODES = np.array([[2, 3, 1], [0, 0, 1], [4, 1, 2], [4, 4, 4]])
COUNTS = np.array([[0, 1, 1, 1, 0], [2, 1, 0, 0, 0], [0, 1, 1, 0, 1], [0, 0, 0, 0, 3]])


def flips(codes, names):
    pairs = run_pairs(codes, 5)
    return flip_matrix(pairs, pair_flip_shares(pairs, LEVELS, 3), names)


def cell_texts(figure):
    return {
        (int(y), int(x)): text
        for drawn in figure.data
        if drawn.name == "cell text"
        for y, x, text in zip(drawn.y, drawn.x, drawn.text, strict=True)
    }


def test_the_flip_matrix_is_the_share_of_items_with_different_verdicts():
    figure = flips(CODES, ["1·1", "1·2", "2·1"])
    # 1 and 2 differ on item 3; 1 and 3 on item 1; 2 and 3 on items 1 and 3
    expected = np.array([[np.nan, 0.25, 0.25], [0.25, np.nan, 0.5], [0.25, 0.5, np.nan]])
    np.testing.assert_array_equal(figure.data[0].z, expected)
    assert cell_texts(figure)[1, 2] == "50.0%"
    assert cell_texts(figure)[1, 1] == "–"
    cells = trace(figure, "cells")
    assert cells.hovertext[5] == "1·2 and 2·1<br>different verdicts: 2 of 4 (50.0%) items"
    assert cells.hovertext[4] == "1·2<br>one repetition cannot flip against itself"
    assert figure.layout.xaxis.ticktext == ("1·1", "1·2", "2·1")


def test_repetitions_without_a_common_item_are_masked_and_say_so():
    codes = np.array([[0, MISSING, 1], [MISSING, 3, 3]])
    figure = flips(codes, ["a", "b", "c"])
    assert np.isnan(figure.data[0].z[0, 1])
    assert cell_texts(figure)[0, 1] == "–"
    assert trace(figure, "cells").hovertext[1] == "a and b<br>undefined: no item was scored in both"


def test_twenty_repetitions_all_carry_their_figure():
    codes = np.random.default_rng(3).integers(0, 5, (50, 20))
    figure = flips(codes, [str(i) for i in range(20)])
    assert len(cell_texts(figure)) == 400
    assert max(map(len, cell_texts(figure).values())) <= 2
    assert len(figure.layout.xaxis.ticktext) == 20
    assert figure.data[0].zmax == np.nanmax(figure.data[0].z)


def test_no_flips_at_all_is_the_palest_colour_not_an_error():
    figure = flips(np.full((3, 2), 4), ["a", "b"])
    assert figure.data[0].zmax == 1
    assert cell_texts(figure)[0, 1] == "0.0%"


def test_a_single_repetition_gives_words():
    assert words(flips(CODES[:, :1], ["1·1"])) == f"undefined: {Undefined.SINGLE_REPETITION.words}"


def test_the_transition_matrix_has_counts_and_shares():
    figure = transition_matrix(transitions(CODES, 0, 1, LEVELS, 3), "1·1", "1·2")
    # both pass: items 1 and 4; pass then fail: item 3; both fail: item 2
    assert cell_texts(figure) == {
        (0, 0): "2<br>50.0%",
        (0, 1): "1<br>25.0%",
        (1, 0): "0<br>0.0%",
        (1, 1): "1<br>25.0%",
    }
    assert trace(figure, "cells").hovertext[1] == "Verdict in 1·1: pass<br>Verdict in 1·2: fail<br>1 of 4 (25.0%) items"
    assert figure.layout.xaxis.title.text == "Verdict in 1·2 (n = 4 items)"


def test_the_cross_tab_keeps_levels_nobody_used():
    figure = level_cross_tab(pair_table(CODES, 0, 1, 5), LEVELS, "a", "b")
    assert figure.data[0].z.shape == (5, 5)
    assert figure.layout.yaxis.ticktext == ("1", "2", "3", "4", "5")
    assert figure.data[0].z[2, 3] == 0.25


def test_an_empty_cross_tab_gives_words():
    assert "nothing was scored" in words(level_cross_tab(np.zeros((5, 5), int), LEVELS, "a", "b"))


def test_the_spread_marks_lowest_mean_and_highest_and_shows_every_pair():
    codes = np.random.default_rng(5).integers(0, 5, (60, 6))
    pairs = run_pairs(codes, 5)
    kappas = pair_kappas(pairs, LEVELS)
    figure = kappa_spread(pairs, kappas, list("abcdef"))
    np.testing.assert_array_equal(figure.data[0].x, kappas.values)
    assert figure.data[0].y.min() == 1
    assert [line.x0 for line in figure.layout.shapes] == [
        kappas.values.min(),
        kappas.values.mean(),
        kappas.values.max(),
    ]
    assert [part.split()[0] for part in words(figure).split(" | ")] == ["lowest", "mean", "highest"]


def test_dots_of_the_spread_never_cover_each_other():
    pairs = run_pairs(np.array([[0, 0, 0], [1, 1, 1]]), 5)
    figure = kappa_spread(pairs, pair_kappas(pairs, LEVELS), list("abc"))
    assert sorted(figure.data[0].y.tolist()) == [1, 2, 3]  # three kappas of exactly 1


def test_undefined_kappas_are_counted_or_explained():
    constant = run_pairs(np.full((4, 3), 2), 5)
    assert words(kappa_spread(constant, pair_kappas(constant, LEVELS), list("abc"))) == (
        f"undefined: {Undefined.NO_VARIATION.words}"
    )
    # a and b share no item, b and c agree on one constant item; a and c have (0,1), (1,1): kappa 0
    mixed = run_pairs(np.array([[0, MISSING, 1], [MISSING, 3, 3], [1, MISSING, 1]]), 5)
    figure = kappa_spread(mixed, pair_kappas(mixed, LEVELS), list("abc"))
    assert figure.layout.xaxis.title.text.endswith("(2 pairs undefined)")


def test_the_gate_curve_carries_the_flip_rates_and_marks_the_gate():
    points = flip_curve(COUNTS, LEVELS)
    figure = gate_curve(points, gate=3)
    # at gate 3: items 1 and 3 have 2 of 3 passes, f = 2*2*1/(3*2) = 2/3; the others 0: mean 1/3
    assert trace(figure, "flip rate").y[1] == pytest.approx(1 / 3)
    assert trace(figure, "items with both verdicts").y[1] == 0.5
    assert trace(figure, "flip rate").x == (2, 3, 4, 5)
    assert words(figure) == "gate 3"


def test_the_band_stays_between_the_limits_of_neighbouring_gates():
    counts = np.random.default_rng(0).multinomial(5, np.full(5, 0.2), size=40)
    points = flip_curve(counts, LEVELS, rng=np.random.default_rng(1))
    bands = [drawn for drawn in gate_curve(points).data if drawn.fill == "toself"]
    first, second = (point.flip_rate.interval for point in points[:2])
    assert len(bands) == 3
    assert bands[0].y == (first.low, second.low, second.high, first.high)


def test_without_intervals_no_band_is_drawn():
    figure = gate_curve(flip_curve(COUNTS, LEVELS, rng=np.random.default_rng(1)))  # four items: too few
    assert not [drawn for drawn in figure.data if drawn.fill == "toself"]
    assert "too few items for an interval" in trace(figure, "flip rate").hovertext[0]


def test_a_gate_curve_without_repetitions_or_gates_gives_words():
    once = np.eye(5, dtype=int)
    assert words(gate_curve(flip_curve(once, LEVELS))) == f"undefined: {Undefined.SINGLE_REPETITION.words}"
    assert words(gate_curve(())).startswith("undefined")


def test_the_pass_rate_curve_shades_exactly_the_straddlers():
    figure = pass_rate_curve(item_verdicts(COUNTS, LEVELS, 3))
    # sorted pass rates: 0, 2/3, 2/3, 1
    assert figure.data[0].x.tolist() == [0, 1, 1, 3, 3, 4]
    np.testing.assert_allclose(figure.data[0].y, [0, 0, 2 / 3, 2 / 3, 1, 1])
    assert (figure.layout.shapes[0].x0, figure.layout.shapes[0].x1) == (1, 3)
    assert words(figure) == "both verdicts: 2 of 4 (50.0%) items"


def test_a_million_items_make_a_curve_of_a_few_steps():
    verdicts = item_verdicts(np.vstack([COUNTS, np.zeros(5, int)]), LEVELS, 3)
    figure = pass_rate_curve(verdicts, weights=np.array([10**6, 5, 5, 10, 3]))
    assert len(figure.data[0].x) == 6
    assert figure.data[0].x[-1] == 10**6 + 20
    assert "3 items without a score are left out" in words(figure)


def test_no_straddlers_no_shade_no_scores_words():
    assert not pass_rate_curve(item_verdicts(COUNTS[[1, 3]], LEVELS, 3)).layout.shapes
    assert "nothing was scored" in words(pass_rate_curve(item_verdicts(np.zeros((2, 5), int), LEVELS, 3)))
