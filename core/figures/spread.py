"""The spread of repeated scores, item by item."""

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from core.stats.common import Floats

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#808080"
"""Okabe and Ito's colours that read on white and on black."""

BINS = 40
_MARGIN = {"l": 10, "r": 10, "t": 10, "b": 10}


def spread_histogram(sds: Floats) -> go.Figure:
    """How many items have which within-item SD; items that never wobbled are a bar of their own.

    Args:
        sds: Sample SD of each item in score points, nan where an item has fewer than two scores.
    """
    known = sds[np.isfinite(sds)]
    moving = known[known > 0]
    counts, edges = np.histogram(moving, bins=BINS)
    figure = go.Figure(
        [
            go.Bar(x=[0.0], y=[int((known == 0).sum())], name="no wobble seen", marker_color=GREY, width=0.02),
            go.Bar(
                x=(edges[:-1] + edges[1:]) / 2,
                y=counts,
                width=np.diff(edges),
                name="wobble",
                marker_color=BLUE,
                hovertemplate="SD about %{x:.2f}: %{y:,} items<extra></extra>",
            ),
        ]
    )
    return figure.update_layout(
        xaxis_title="Within-item SD (score points)",
        yaxis_title="Items",
        legend={"orientation": "h", "y": -0.25},
        margin=_MARGIN,
    )


def item_strip(keys: list[str], counts: NDArray[np.integer], levels: Floats, gate: float) -> go.Figure:
    """Score vectors as dots: one row an item, one dot a level, its size the repetitions that gave it.

    Args:
        keys: Item keys, top to bottom.
        counts: Scores of each item at each level, shape (items, L).
        levels: Level values of the rubric, shape (L,).
        gate: The score at and above which an item passes.
    """
    rows, places = np.nonzero(counts)
    sizes = counts[rows, places]
    most = max(int(counts.max(initial=1)), 1)
    figure = go.Figure(
        go.Scatter(
            x=levels[places],
            y=len(keys) - 1 - rows,
            mode="markers",
            marker={
                "size": 6 + 16 * np.sqrt(sizes / most),
                "color": np.where(levels[places] >= gate, BLUE, ORANGE),
                "symbol": np.where(levels[places] >= gate, "circle", "diamond"),
            },
            customdata=np.column_stack([[escape(keys[row]) for row in rows], sizes]) if len(rows) else None,
            hovertemplate="%{customdata[0]}: level %{x} given %{customdata[1]} times<extra></extra>",
        )
    )
    figure.add_vline(x=_gate_line(levels, gate), line_dash="dash", line_color=GREY, annotation_text=f"gate {gate:g}")
    return figure.update_layout(
        height=120 + 18 * len(keys),
        xaxis={"title": "Score (dots: circle passes, diamond fails)", "tickvals": levels},
        yaxis={"tickvals": list(range(len(keys))), "ticktext": [escape(key) for key in reversed(keys)]},
        margin=_MARGIN,
        showlegend=False,
    )


def flip_matrix(shares: Floats, labels: list[str]) -> go.Figure:
    """Share of items on which two repetitions fall on different sides of the gate, for every two.

    Args:
        shares: Shape (R, R), nan where there is no pair.
        labels: Of the repetitions.
    """
    figure = go.Figure(
        go.Heatmap(
            z=shares,
            x=labels,
            y=labels,
            colorscale="Cividis",
            colorbar={"tickformat": ".0%", "title": "Flip share"},
            hovertemplate="%{y} against %{x}: %{z:.1%} of items flip<extra></extra>",
            hoverongaps=False,
        )
    )
    return figure.update_layout(
        height=220 + 18 * len(labels), margin=_MARGIN, yaxis_autorange="reversed", xaxis_tickangle=-45
    )


def flip_rate_by_gate(gates: Floats, rates: Floats, low: Floats, high: Floats, gate: float) -> go.Figure:
    """The flip rate as a function of the gate, with its 95% interval; nan where undefined."""
    figure = go.Figure(
        go.Scatter(
            x=gates,
            y=rates,
            mode="lines+markers",
            line_color=BLUE,
            error_y={"type": "data", "symmetric": False, "array": high - rates, "arrayminus": rates - low},
            hovertemplate="gate %{x}: flip rate %{y:.1%}<extra></extra>",
        )
    )
    figure.add_vline(x=gate, line_dash="dash", line_color=GREY, annotation_text=f"gate {gate:g}")
    return figure.update_layout(
        xaxis={"title": "Gate", "tickvals": gates},
        yaxis={"title": "Flip rate", "tickformat": ".0%", "rangemode": "tozero"},
        margin=_MARGIN,
    )


def escape(text: str) -> str:
    """Untrusted text for a figure: Plotly would act on tags in it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _gate_line(levels: Floats, gate: float) -> float:
    """Half-way between the gate and the level below it."""
    below = levels[levels < gate]
    return float((gate + below[-1]) / 2) if len(below) else gate
