import numpy as np
import pytest

from core.figures.dispersion import MOST_ROWS, item_strip, score_vector, sd_histogram
from core.figures.levels import level_bars
from core.stats.common import Estimate, Undefined
from core.stats.dispersion import per_item_dispersion
from tests.figures.reading import sent, trace, words

LEVELS = np.arange(1.0, 6.0)
# Item SDs: 0 (all 3), 1 / sqrt(2) (one 2, one 3) twice, left out (one score), left out (none).
COUNTS = np.array([[0, 0, 4, 0, 0], [0, 1, 1, 0, 0], [0, 1, 1, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0]])


def test_agreeing_items_have_their_own_bar_and_no_item_is_lost():
    figure = sd_histogram(per_item_dispersion(COUNTS, LEVELS))
    assert trace(figure, "all repetitions agree").y == (1,)
    differing = trace(figure, "repetitions differ")
    assert differing.y.sum() == 2
    assert differing.y[-1] == 2
    assert words(figure) == "2 items with fewer than two scores are left out"


def test_weights_stand_for_items():
    items = per_item_dispersion(COUNTS, LEVELS)
    figure = sd_histogram(items, weights=np.array([100, 20, 30, 7, 5]), mean=Estimate(0.2357, 150))
    assert trace(figure, "all repetitions agree").y == (100,)
    assert trace(figure, "repetitions differ").y.sum() == 50
    assert "12 items with fewer than two scores" in words(figure)
    assert "mean 0.236" in words(figure)


def test_half_a_million_items_cost_the_browser_thirty_bars():
    counts = np.random.default_rng(0).multinomial(10, np.full(5, 0.2), size=500_000)
    figure = sd_histogram(per_item_dispersion(counts, LEVELS))
    assert len(trace(figure, "repetitions differ").y) == 30
    assert sum(int(np.sum(drawn.y)) for drawn in figure.data) == 500_000
    assert len(sent(figure)) < 10_000


@pytest.mark.parametrize(
    ("counts", "reason"),
    [(COUNTS[3:4], Undefined.SINGLE_REPETITION), (np.zeros((0, 5), int), Undefined.NO_DATA)],
)
def test_without_repetitions_the_figure_says_why(counts, reason):
    figure = sd_histogram(per_item_dispersion(counts, LEVELS))
    assert not figure.data
    assert words(figure) == f"undefined: {reason.words}"


def test_a_strip_shows_each_item_at_each_level_with_its_count():
    figure = item_strip(COUNTS[:2], ["r01", "r02"], LEVELS, gate=3)
    dots = trace(figure, "repetitions at a level")
    assert list(zip(dots.y.tolist(), dots.x.tolist(), strict=True)) == [(0, 3), (1, 2), (1, 3)]
    assert dots.marker.size[0] > dots.marker.size[1] == dots.marker.size[2]
    assert dots.hovertext[0] == "r01<br>level 3: 4 of 4 (100.0%) repetitions"
    assert trace(figure, "mean").x.tolist() == [3, 2.5]
    assert figure.layout.xaxis.ticktext == ("1", "2", "3", "4", "5")  # levels nobody used stay
    assert figure.layout.shapes[0].x0 == 2.5  # between the highest failing and the lowest passing level
    assert words(figure) == "gate 3"


def test_a_strip_says_how_many_items_it_leaves_out():
    figure = item_strip(np.tile(COUNTS[0], (75, 1)), [str(i) for i in range(75)], LEVELS)
    assert len(figure.layout.yaxis.ticktext) == MOST_ROWS
    assert "the first 60 of 75 items" in words(figure)


def test_keys_that_look_alike_keep_their_rows():
    figure = item_strip(COUNTS[:2], ["2024-01-01", "2024-01-01"], LEVELS)
    assert figure.layout.yaxis.tickvals == (0, 1)


def test_an_item_without_scores_keeps_its_row_and_has_no_mean():
    figure = item_strip(COUNTS[[0, 4]], ["a", "b"], LEVELS)
    assert figure.layout.yaxis.ticktext == ("a", "b")
    assert trace(figure, "mean").y.tolist() == [0]


def test_nothing_scored_gives_words():
    assert "nothing was scored" in words(item_strip(COUNTS[4:], ["b"], LEVELS))
    assert "nothing was scored" in words(level_bars(COUNTS[4:], LEVELS, ["b"]))


def test_level_bars_show_shares_of_each_judges_own_scores_over_all_levels():
    figure = level_bars(np.array([[0, 3, 1, 0, 0], [5, 0, 0, 0, 0], [0] * 5]), LEVELS, ["A", "B", "C"], gate=3)
    assert figure.data[0].y.tolist() == [0, 0.75, 0.25, 0, 0]
    assert figure.data[1].y.tolist() == [1, 0, 0, 0, 0]
    assert np.isnan(figure.data[2].y).all()
    assert [bars.name for bars in figure.data] == ["A (n = 4)", "B (n = 5)", "C (n = 0)"]
    assert figure.data[0].hovertext[1] == "A<br>level 2: 3 of 4 (75.0%) scores"
    assert figure.layout.xaxis.ticktext == ("1", "2", "3", "4", "5")
    assert figure.layout.shapes[0].x0 == 1.5  # between levels 2 and 3, at places 1 and 2
    assert len({bars.marker.pattern.shape for bars in figure.data}) == 3


def test_a_score_vector_keeps_the_order_and_puts_calls_without_a_score_below_the_levels():
    figure = score_vector(
        np.array([2, -1, 0]),
        ["1·0", "1·1", "<b>"],
        ["3", "refused", "1"],
        np.array([1.0, 2.0, 3.0]),
        groups=["scored", "no score", "scored"],
        gate=2.0,
    )
    assert list(trace(figure, "scored").x) == [0, 2]
    assert list(trace(figure, "scored").y) == [3.0, 1.0]
    assert trace(figure, "no score").y[0] < 1
    assert figure.layout.yaxis.ticktext[-1] == "no score"
    assert "gate 2" in words(figure)
    assert "<b>" not in sent(figure)


def test_a_score_vector_without_calls_gives_words():
    figure = score_vector(np.array([], int), [], [], np.array([1.0, 2.0]), groups=[])
    assert "nothing was scored" in words(figure)
