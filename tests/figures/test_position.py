import numpy as np
import pytest

from core.figures.position import abilities, length_preference, outcome_bars, slot_map
from core.stats.bradley_terry import bradley_terry
from core.stats.common import Undefined
from core.stats.pairwise import UNSCORED, position_outcomes, slot_table
from core.stats.preference import length_effect
from tests.figures.reading import trace, words

# Twelve pairs: 8 consistent, 4 flips to the first slot.
AB = np.ones(12, int)
BA = np.array([-1] * 8 + [1] * 4)
NONE = np.array([], int)


def test_the_outcomes_of_a_judge_fill_its_bar():
    mixed = position_outcomes(np.array([1, -1, 0, 0, UNSCORED]), np.array([-1, -1, 0, 1, 1]))
    figure = outcome_bars([position_outcomes(AB, BA), mixed], ["twelve", "mixed"])
    shares = {drawn.name: list(drawn.x) for drawn in figure.data}
    assert shares == {
        "consistent": [8 / 12, 2 / 5],
        "first-slot flip": [4 / 12, 0],
        "second-slot flip": [0, 1 / 5],
        "tie shift": [0, 1 / 5],
        "incomplete": [0, 1 / 5],
    }
    assert trace(figure, "first-slot").hovertext[0] == "twelve<br>first-slot flip: 4 of 12 (33.3%) pairs"
    assert len({drawn.marker.pattern.shape for drawn in figure.data}) == 5


def test_a_judge_without_pairs_keeps_its_row_and_has_no_bar():
    figure = outcome_bars([position_outcomes(AB, BA), position_outcomes(NONE, NONE)], ["a", "b"])
    assert figure.layout.yaxis.ticktext == ("a<br>n = 12", "b<br>n = 0")
    assert trace(figure, "consistent").y == (0,)
    assert words(figure) == "no pair was judged"


def test_no_pairs_at_all_gives_words():
    assert words(outcome_bars([position_outcomes(NONE, NONE)], ["a"])) == "no pair was judged in both orders"
    assert words(slot_map(np.zeros((3, 3), int))) == "undefined: nothing was scored"


@pytest.mark.parametrize("steps", [3, 5])
def test_the_slot_map_has_every_verdict_of_the_scale(steps):
    figure = slot_map(slot_table(AB, BA, steps=steps))
    middle, first = steps // 2, steps // 2 + 1
    assert figure.data[0].z[first, middle - 1] == pytest.approx(8 / 12)  # first slot, then second: candidate A twice
    assert figure.data[0].z[first, first] == pytest.approx(4 / 12)
    assert len(figure.layout.xaxis.ticktext) == steps
    assert figure.layout.xaxis.title.text == "Winner, A in slot 2 (n = 12 pairs)"


def test_abilities_rank_the_strongest_first_with_the_slot_apart():
    first, second = np.array([0, 1, 0, 2, 1, 2]), np.array([1, 0, 2, 0, 2, 1])
    wins = np.array([4, 7, 3, 8, 5, 7])
    fit = bradley_terry(first, second, wins, 10 - wins, candidates=3)
    figure = abilities(fit, ["weak", "middle", "strong"])
    assert [name.split("<br>")[0] for name in figure.layout.yaxis.ticktext] == ["strong", "middle", "weak"]
    points = [drawn for drawn in figure.data if drawn.name == "estimate"]
    assert list(points[0].x) == sorted((found.value for found in fit.abilities), reverse=True)
    assert list(points[1].x) == [fit.slot.value]


def test_abilities_without_a_fit_give_words():
    fit = bradley_terry(np.array([0, 1]), np.array([1, 0]), np.array([5, 0]), np.array([0, 5]), candidates=2)
    assert words(abilities(fit, ["a", "b"])) == f"undefined: {Undefined.SEPARATION.words}"


def test_length_bins_share_out_all_verdicts_but_ties_and_unscored():
    difference = np.linspace(-2, 2, 82)
    verdicts = np.where(difference > 0, 1, -1)
    verdicts[0], verdicts[1] = 0, UNSCORED
    figure = length_preference(difference, verdicts, unit="log tokens")
    points = trace(figure, "verdicts for slot 1")
    assert sum(int(text.split("n = ")[1].split()[0]) for text in points.hovertext) == 80
    assert points.y[0] == 0
    assert points.y[-1] == 1


def test_the_fitted_curve_follows_the_effect():
    rng = np.random.default_rng(2)
    difference = rng.normal(size=200)
    verdicts = np.where(rng.random(200) < 1 / (1 + np.exp(-difference)), 1, -1)
    effect = length_effect(difference, verdicts)
    curve = trace(length_preference(difference, verdicts, unit="SD", effect=effect), "fitted")
    odds = np.log(curve.y / (1 - curve.y))
    np.testing.assert_allclose(odds, effect.slot.value + effect.slope.value * curve.x)


def test_a_single_length_and_no_verdicts():
    same = length_preference(np.zeros(4), np.array([1, 1, -1, 1]), unit="tokens")
    assert trace(same, "verdicts for slot 1").y == (0.75,)
    assert "nothing was scored" in words(length_preference(np.zeros(1), np.array([UNSCORED]), unit="tokens"))
