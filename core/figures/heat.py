"""The one heat map: square cells with their figure written in them, undefined cells empty and named."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from core.figures.theme import TEXT, VERMILLION, named_ticks, new_figure
from core.stats.common import Bools, Floats

SCALE = ("#E8F1F8", "#5BA3CF", "#0072B2", "#08304F")
"""Colours from the lowest to the highest value, at equal distances."""

MOST_WRITTEN = 25
"""Rows or columns up to which every cell carries its figure."""

MARK = "–"
"""Written in a cell without a figure; its hover says why."""

Texts = Sequence[Sequence[str]]


def heat_map(
    values: Floats,
    *,
    text: Texts,
    hover: Texts,
    rows: Sequence[str],
    columns: Sequence[str],
    row_title: str,
    column_title: str,
    value_title: str,
    alt: str,
    highest: float = 1.0,
) -> go.Figure:
    """Draw a matrix of figures between 0 and `highest`, the first row on top.

    A click on a cell selects a point whose customdata is (row, column).

    Args:
        values: Shape (rows, columns), nan where undefined.
        text: What each cell says; escaped already.
        hover: What each cell says on hover; escaped already.
        rows: Names of the rows, escaped already.
        columns: Names of the columns, escaped already.
        row_title: What the rows are.
        column_title: What the columns are.
        value_title: What the colour stands for, with its unit.
        alt: Description of the figure.
        highest: Value of the darkest colour.
    """
    n_rows, n_columns = values.shape
    written = max(n_rows, n_columns) <= MOST_WRITTEN
    scale = [[i / (len(SCALE) - 1), colour] for i, colour in enumerate(SCALE)]
    traces = [
        go.Heatmap(
            z=values,
            zmin=0,
            zmax=highest,
            colorscale=scale,
            xgap=1,
            ygap=1,
            hoverinfo="skip",
            showscale=not written,
            colorbar={"title": {"text": value_title, "side": "right"}, "tickformat": ".0%"},
        )
    ]
    if written:
        traces += _cell_texts(values, text, highest)
    traces.append(_cell_targets(hover, n_rows, n_columns))
    figure = new_figure(traces, x=column_title, y=row_title, alt=alt, height=_height(n_rows))
    figure.update_layout(hoverdistance=-1, showlegend=False)  # the nearest cell centre is the cell under the pointer
    figure.update_xaxes(
        **named_ticks(columns), range=[-0.5, n_columns - 0.5], constrain="domain", showgrid=False, side="bottom"
    )
    figure.update_yaxes(
        **named_ticks(rows), range=[n_rows - 0.5, -0.5], constrain="domain", showgrid=False, scaleanchor="x"
    )
    return figure


def cell_colours(values: Floats, highest: float) -> Floats:
    """Red, green and blue between 0 and 1 of each value on the scale, shape (..., 3); plotly mixes them likewise."""
    stops = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in SCALE]) / 255
    place = np.clip(np.nan_to_num(values) / highest, 0, 1)
    at = np.linspace(0, 1, len(SCALE))
    return np.stack([np.interp(place, at, stops[:, channel]) for channel in range(3)], axis=-1)


def luminance(colours: Floats) -> Floats:
    """Relative luminance of sRGB colours between 0 and 1, shape (..., 3) -> (...) (WCAG 2.2)."""
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    return np.asarray(linear @ np.array([0.2126, 0.7152, 0.0722]))


def dark_cells(values: Floats, highest: float) -> Bools:
    """Where white text stands out more than black: (1.05)/(L + .05) > (L + .05)/.05."""
    return np.asarray((luminance(cell_colours(values, highest)) + 0.05) ** 2 < 1.05 * 0.05)


def _cell_texts(values: Floats, text: Texts, highest: float) -> list[Any]:
    """Text traces for dark, light and undefined cells; scatter text, since a heat map has one colour for all."""
    defined = np.isfinite(values)
    dark = defined & dark_cells(values, highest)
    words = np.array([[str(cell) for cell in row] for row in text], dtype=object)
    groups = [(dark, "#FFFFFF"), (defined & ~dark, "#000000"), (~defined, TEXT)]
    return [_text_trace(words, cells, colour) for cells, colour in groups if cells.any()]


def _text_trace(words: Any, cells: Bools, colour: str) -> Any:
    y, x = np.nonzero(cells)
    font = {"size": _text_size(max(words.shape)), "color": colour}
    same = {"textfont": {"color": colour}}  # a click on one cell must not fade the others
    return go.Scatter(
        x=x,
        y=y,
        text=words[cells].tolist(),
        mode="text",
        textfont=font,
        hoverinfo="skip",
        name="cell text",
        selected=same,
        unselected=same,
    )


def _cell_targets(hover: Texts, n_rows: int, n_columns: int) -> Any:
    """One invisible point a cell, for hover and click: plotly cannot select cells of a heat map."""
    y, x = np.divmod(np.arange(n_rows * n_columns), max(n_columns, 1))
    return go.Scatter(
        x=x,
        y=y,
        mode="markers",
        marker={"symbol": "square-open", "size": 22, "color": VERMILLION, "line": {"width": 3}, "opacity": 0},
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 0}},
        hovertext=[cell for row in hover for cell in row],
        hovertemplate="%{hovertext}<extra></extra>",
        customdata=np.column_stack([y, x]),
        name="cells",
    )


def _text_size(cells: int) -> int:
    return 14 if cells <= 6 else 12 if cells <= 10 else 10 if cells <= 20 else 9


def _height(n_rows: int) -> int:
    cell = 84 if n_rows <= 4 else 64 if n_rows <= 7 else 44 if n_rows <= 12 else 30
    return min(760, max(260, n_rows * cell + 110))
