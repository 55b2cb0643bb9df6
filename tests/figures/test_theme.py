import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.figures import theme
from core.figures.heat import SCALE, cell_colours, dark_cells, heat_map, luminance
from core.stats.common import Interval
from tests.figures.reading import words

CONFIG = tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text())


def rgb(colour):
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255


def contrast(a, b):
    """WCAG 2.2, contrast ratio."""
    light, dark = sorted((float(luminance(rgb(a))), float(luminance(rgb(b)))), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_contrast_knows_wcags_own_examples():
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.005)  # the grey that just fails AA


@pytest.mark.parametrize("section", ["light", "dark"])
@pytest.mark.parametrize("colour", theme.SERIES)
def test_every_colour_reads_on_both_backgrounds(section, colour):
    assert contrast(colour, CONFIG["theme"][section]["backgroundColor"]) >= 3  # WCAG 1.4.11, graphical objects


@pytest.mark.parametrize("section", ["light", "dark"])
def test_text_and_links_of_the_app_reach_aa(section):
    colours = CONFIG["theme"][section]
    for ground in (colours["backgroundColor"], colours["secondaryBackgroundColor"]):
        assert contrast(colours["textColor"], ground) >= 4.5
        assert contrast(colours["linkColor"], ground) >= 4.5
        assert contrast(colours["primaryColor"], ground) >= 3


def test_native_charts_share_the_colours():
    assert tuple(CONFIG["theme"]["chartCategoricalColors"]) == theme.SERIES


def test_the_app_sends_nothing_away_and_takes_large_files():
    assert CONFIG["browser"]["gatherUsageStats"] is False
    assert CONFIG["client"]["showErrorLinks"] is False
    assert CONFIG["server"] == {"headless": True, "showEmailPrompt": False, "maxUploadSize": 1024}


def test_the_text_colour_is_the_one_streamlit_replaces():
    from streamlit.elements.lib.streamlit_plotly_theme import GRAY_90  # noqa: PLC0415

    assert theme.TEXT == GRAY_90


@settings(max_examples=50)
@given(st.floats(0, 1))
def test_cell_text_reaches_aa_on_every_cell_colour(value):
    cell = float(luminance(cell_colours(np.array([value]), 1.0))[0])
    text = 1.0 if dark_cells(np.array([value]), 1.0)[0] else 0.0
    assert (max(cell, text) + 0.05) / (min(cell, text) + 0.05) >= 4.5


def test_the_ends_of_the_scale_are_its_colours():
    ends = cell_colours(np.array([0.0, 0.5]), 0.5)
    np.testing.assert_allclose(ends, [rgb(SCALE[0]), rgb(SCALE[-1])])


@pytest.mark.parametrize(
    ("raw", "safe"),
    [
        ("<b>r01</b>", "&lt;b&gt;r01&lt;/b&gt;"),
        ('<a href="javascript:x">', "&lt;a href=&quot;javascript:x&quot;&gt;"),
        ("a &amp; b", "a &amp;amp; b"),
        ("$E=mc^2$", "&#36;E=mc^2&#36;"),
        ("one\ntwo\tthree\x00", "one two three"),
        ("abc\u202etxt", "abc txt"),
        ("x" * 50, "x" * 39 + "…"),
        (7, "7"),
    ],
)
def test_escape(raw, safe):
    assert theme.escape(raw) == safe


@settings(max_examples=50)
@given(st.text())
def test_escaped_text_holds_no_markup(raw):
    assert not set(theme.escape(raw, longest=10**6)) & set('<>"$\n\r')


def test_no_figure_says_why_and_hides_its_axes():
    figure = theme.no_figure("undefined: <nothing> was scored")
    assert words(figure) == "undefined: &lt;nothing&gt; was scored"
    assert figure.layout.xaxis.visible is False
    assert figure.layout.yaxis.visible is False
    assert theme.alt_text(figure) == "undefined: <nothing> was scored"


def test_series_differ_by_more_than_colour():
    looks = [theme.look(i) for i in range(10)]
    assert len({(look.colour, look.symbol) for look in looks}) == 10
    assert len({(look.colour, look.pattern) for look in looks}) == 10
    assert len({look.symbol for look in looks[:5]}) == len({look.pattern for look in looks[:5]}) == 5


def test_intervals_without_limits_draw_nothing():
    known, unknown = Interval(0.2, 0.4, "Wilson"), Interval(None, None, "Wilson")
    drawn = theme.interval_lines([0, 1, 2], [known, unknown, None], axis="x")
    assert drawn.x == (0.2, 0.4, None)
    assert drawn.y == (0, 0, None)


def test_words_near_an_edge_stay_inside():
    figure = theme.new_figure([], x="x", y="y", alt="")
    for value in (0.0, 0.5, 1.0):
        theme.mark_value(figure, value, "gate", span=(0, 1))
    assert [note.xanchor for note in figure.layout.annotations] == ["left", "center", "right"]


def test_many_names_are_thinned_out_but_rows_never():
    names = [str(i) for i in range(101)]
    assert theme.named_ticks(names)["ticktext"] == [str(i) for i in range(0, 101, 5)]
    assert theme.row_axis(names)["ticktext"] == names


@pytest.mark.parametrize(("highest", "ticks"), [(0.83, [0, 0.2, 0.4, 0.6, 0.8]), (1, [0, 0.2, 0.4, 0.6, 0.8, 1])])
def test_nice_ticks_are_round(highest, ticks):
    np.testing.assert_allclose(theme.nice_ticks(highest), ticks, atol=1e-12)


def matrix(size, values=None):
    cells = np.full((size, size), 0.25) if values is None else values
    text = [[f"{cell:.2f}" for cell in row] for row in cells]
    names = [str(i) for i in range(size)]
    return heat_map(
        cells,
        text=text,
        hover=text,
        rows=names,
        columns=names,
        row_title="r",
        column_title="c",
        value_title="v",
        alt="",
    )


@pytest.mark.parametrize("size", [1, 3, 20])
def test_a_heat_map_writes_each_cell_once_in_square_cells(size):
    figure = matrix(size)
    written = [text for trace in figure.data if trace.name == "cell text" for text in trace.text]
    assert written == ["0.25"] * size**2
    assert figure.layout.yaxis.scaleanchor == "x"
    assert figure.layout.yaxis.range == (size - 0.5, -0.5)
    assert figure.layout.height <= 760


def test_a_large_heat_map_shows_its_scale_instead_of_figures():
    figure = matrix(26)
    assert figure.data[0].showscale is True
    assert not [trace for trace in figure.data if trace.name == "cell text"]


def test_a_click_finds_its_cell():
    figure = matrix(3, np.arange(9).reshape(3, 3) / 8)
    cells = next(trace for trace in figure.data if trace.name == "cells")
    place = cells.customdata.tolist().index([1, 2])
    assert (cells.y[place], cells.x[place], cells.hovertext[place]) == (1, 2, "0.62")
