"""Names and keys come from files, so no figure may hand them to plotly as markup."""

from datetime import UTC, datetime

import numpy as np
import pytest

from core.figures import agreement, dispersion, drift, gate, levels, position
from core.figures.theme import CONFIG
from core.stats.bradley_terry import bradley_terry
from core.stats.common import Estimate
from core.stats.control import control_chart
from core.stats.pairs import pair_flip_shares, pair_kappas, run_pairs, transitions
from core.stats.pairwise import position_outcomes
from tests.figures.reading import sent

EVIL = '<b>x</b><a href="javascript:alert(1)">%{y}$a$'
LEVELS = np.arange(1.0, 4.0)
CODES = np.array([[0, 1], [2, 2], [1, 1], [2, 0]])
PAIRS = run_pairs(CODES, 3)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
TABLE = np.array([[4, 1], [1, 4]])

FIGURES = {
    "item_strip": lambda: dispersion.item_strip(np.eye(3, dtype=int), [EVIL] * 3, LEVELS),
    "level_bars": lambda: levels.level_bars(np.eye(3, dtype=int), LEVELS, [EVIL] * 3),
    "flip_matrix": lambda: gate.flip_matrix(PAIRS, pair_flip_shares(PAIRS, LEVELS, 2), [EVIL] * 2),
    "transition_matrix": lambda: gate.transition_matrix(transitions(CODES, 0, 1, LEVELS, 2), EVIL, EVIL),
    "level_cross_tab": lambda: gate.level_cross_tab(np.eye(3, dtype=int), LEVELS, EVIL, EVIL),
    "kappa_spread": lambda: gate.kappa_spread(PAIRS, pair_kappas(PAIRS, LEVELS), [EVIL] * 2),
    "confusion_matrix": lambda: agreement.confusion_matrix(TABLE, [EVIL] * 2, rows=EVIL, columns=EVIL),
    "forest": lambda: agreement.forest([agreement.estimate_row(EVIL, Estimate(0.5, 9), unit=EVIL)]),
    "slice_bars": lambda: agreement.slice_bars([EVIL], [Estimate(0.5, 9)], title="Agreement"),
    "outcome_bars": lambda: position.outcome_bars([position_outcomes(CODES[:, 0] - 1, CODES[:, 1] - 1)], [EVIL]),
    "abilities": lambda: position.abilities(
        bradley_terry(np.array([0, 1]), np.array([1, 0]), np.array([3, 2]), np.array([2, 3]), candidates=2), [EVIL] * 2
    ),
    "length_preference": lambda: position.length_preference(np.arange(4.0), np.array([1, -1, 1, 1]), unit=EVIL),
    "time_line": lambda: drift.time_line(
        [NOW], np.ones(1), control_chart(np.ones(1)), title="x", names=[EVIL], marks=[drift.Mark(NOW, EVIL, EVIL)]
    ),
}


@pytest.mark.parametrize("name", FIGURES)
def test_names_reach_the_browser_as_text(name):
    spec = sent(FIGURES[name]())
    assert "&lt;b&gt;x&lt;/b&gt;" in spec
    for markup in ("<b>", "<a ", "$a$"):
        assert markup not in spec


@pytest.mark.parametrize("name", FIGURES)
def test_templates_hold_no_names(name):
    """A name inside a hover template would be filled in by plotly."""
    for drawn in FIGURES[name]().data:
        assert drawn.hovertemplate in {None, "%{hovertext}<extra></extra>"}
        assert getattr(drawn, "texttemplate", None) is None


def test_the_only_button_saves_the_image():
    assert CONFIG["modeBarButtons"] == [["toImage"]]
    assert CONFIG["displaylogo"] is False
