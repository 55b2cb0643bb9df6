"""How far the repetitions of an item lie apart."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from core.figures.theme import (
    BLUE,
    GREY,
    VERMILLION,
    count_axis,
    escape,
    level_names,
    look,
    mark_value,
    named_ticks,
    new_figure,
    nice_ticks,
    no_figure,
    note,
    padded,
    row_axis,
    short,
)
from core.figures.words import say_count, say_number, say_part, say_reason
from core.stats.common import MISSING, Estimate, Floats, Ints, Undefined
from core.stats.dispersion import ItemDispersion, per_item_dispersion

MOST_ROWS = 60
"""Items a strip plot shows."""

_BINS = 30


def sd_histogram(
    items: ItemDispersion, *, weights: Ints | None = None, mean: Estimate | None = None, bins: int = _BINS
) -> go.Figure:
    """Items by the sample SD of their scores, in score points; items whose repetitions all agree have their own bar.

    Counted here, so that half a million items cost the browser `bins` bars.

    Args:
        items: Spread of each item or of each distinct item; items with fewer than two scores are left out and counted.
        weights: How many items each entry stands for.
        mean: Mean SD to mark.
        bins: Bars above zero.
    """
    weights = np.ones(len(items.n), np.int64) if weights is None else weights
    known = np.isfinite(items.sd_sample)
    sds, counts = items.sd_sample[known], weights[known]
    total = int(counts.sum())
    left_out = int(weights.sum()) - total
    if not total:
        return no_figure(say_reason(Undefined.SINGLE_REPETITION if left_out else Undefined.NO_DATA))
    agreeing, highest = int(counts[sds == 0].sum()), float(sds.max())
    top = highest or 1.0
    heights, edges = np.histogram(sds[sds > 0], bins=bins, range=(0, top), weights=counts[sds > 0])
    heights, width = heights.astype(np.int64), top / bins
    zero_at = -1.5 * width
    traces = [
        go.Bar(
            x=[zero_at],
            y=[agreeing],
            width=2 * width,
            name="all repetitions agree (SD 0)",
            marker={
                "color": GREY,
                "pattern": {"shape": "/", "fillmode": "replace"},
                "line": {"color": GREY, "width": 1},
            },
            hovertext=[f"all repetitions agree: {say_part(agreeing, total)} items"],
            hovertemplate="%{hovertext}<extra></extra>",
        ),
        go.Bar(
            x=(edges[:-1] + edges[1:]) / 2,
            y=heights,
            width=width,
            name="repetitions differ",
            marker={"color": BLUE},
            hovertext=[
                f"SD {say_number(low)} to {say_number(high)}: {say_part(int(count), total)} items"
                for (low, high), count in zip(pairwise(edges.tolist()), heights, strict=True)
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        ),
    ]
    alt = f"Items by within-item SD: {say_part(agreeing, total)} have none, the highest is {short(highest)}."
    figure = new_figure(traces, x="SD of an item's repetitions (score points)", y="Items", alt=alt)
    ticks = nice_ticks(top)
    figure.update_layout(bargap=0, showlegend=True)
    count_axis(figure, max(agreeing, *heights.tolist()))
    figure.update_xaxes(
        tickvals=[zero_at, *ticks[1:]],
        ticktext=["0", *(short(tick) for tick in ticks[1:].tolist())],
        range=[zero_at - 1.5 * width, top + width],
    )
    if left_out:
        note(figure, f"{say_count(left_out)} items with fewer than two scores are left out")
    if mean is not None and mean.value is not None:
        mark_value(figure, mean.value, f"mean {say_number(mean.value)}", span=(zero_at, top), line=bool(left_out))
    return figure


def item_strip(
    counts: NDArray[np.integer], keys: Sequence[str], levels: Floats, *, gate: float | None = None
) -> go.Figure:
    """One row an item: a dot at each level it was scored, as large as that was frequent, and the mean.

    The first `MOST_ROWS` items are shown, so pass them sorted. A click selects a point whose customdata is the item's
    row in `counts`.

    Args:
        counts: Scores of each item at each level, shape (items, L).
        keys: Name of each item.
        levels: Level values, shape (L,); all of them stand on the axis.
        gate: Level value at and above which an item passes.
    """
    shown = counts[:MOST_ROWS]
    if not shown.sum():
        return no_figure(say_reason(Undefined.NO_DATA))
    items = per_item_dispersion(shown, levels)
    names = [escape(key) for key in keys[:MOST_ROWS]]
    row, level = np.nonzero(shown)
    often = shown[row, level]
    labels = level_names(levels)
    scored = np.flatnonzero(items.n)
    traces = [
        go.Scatter(
            x=levels[level],
            y=row,
            mode="markers",
            name="repetitions at a level (area: how many)",
            marker={
                "color": BLUE,
                "size": 6 + 12 * np.sqrt(often / often.max()),
                "opacity": 1,
                "line": {"color": GREY, "width": 1},
            },
            customdata=row,
            hovertext=[
                f"{names[i]}<br>level {labels[j]}: {say_part(int(k), int(items.n[i]))} repetitions"
                for i, j, k in zip(row, level, often, strict=True)
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        ),
        go.Scatter(
            x=items.mean[scored],
            y=scored,
            mode="markers",
            name="mean",
            marker={"color": VERMILLION, "symbol": "line-ns-open", "size": 14, "line": {"width": 3}},
            customdata=scored,
            hovertext=[
                f"{names[i]}<br>mean {say_number(items.mean[i])}, SD {say_number(items.sd_sample[i])}, "
                f"n = {items.n[i]} repetitions"
                for i in scored
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        ),
    ]
    alt = f"Scores of {len(shown)} items over {len(levels)} levels, one row an item."
    height = 130 + 17 * max(len(shown), 4)
    figure = new_figure(traces, x="Score (level of the rubric)", y="Item", alt=alt, height=height)
    span = padded(levels.tolist())
    figure.update_layout(showlegend=True)
    figure.update_xaxes(**named_ticks(labels, levels), range=list(span), showgrid=True)
    figure.update_yaxes(**row_axis(names))
    if gate is not None:
        mark_value(figure, _below(levels, gate), f"gate {gate:g}", span=span)
    if len(counts) > len(shown):
        note(figure, f"the first {len(shown)} of {say_count(len(counts))} items")
    return figure


def score_vector(
    codes: NDArray[np.integer],
    names: Sequence[str],
    words: Sequence[str],
    levels: Floats,
    *,
    groups: Sequence[str],
    gate: float | None = None,
) -> go.Figure:
    """Every repetition of one item in the order it was made, at the level it was given; those without one lie below.

    Args:
        codes: Level index of each repetition, shape (R,), MISSING where there is no usable score.
        names: Name of each repetition.
        words: What came of each repetition, for the hover.
        levels: Level values, shape (L,); all of them stand on the axis.
        groups: Series of each repetition, told apart by colour and symbol.
        gate: Level value at and above which an item passes.
    """
    if not len(codes):
        return no_figure(say_reason(Undefined.NO_DATA))
    labels, ticks = level_names(levels), np.sort(levels)
    step = float(np.diff(ticks).max(initial=0)) or 1.0
    floor = float(ticks[0]) - step
    heights = np.where(codes == MISSING, floor, levels[codes])
    traces = []
    for place, group in enumerate(dict.fromkeys(groups)):
        own = [at for at, name in enumerate(groups) if name == group]
        style = look(place)
        traces.append(
            go.Scatter(
                x=own,
                y=heights[own],
                mode="markers",
                name=escape(group),
                marker={"color": style.colour, "symbol": style.symbol, "size": 11, "line": {"color": GREY, "width": 1}},
                hovertext=[f"{escape(names[at])}<br>{escape(words[at])}" for at in own],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    alt = "Scores in order: " + ", ".join("none" if code == MISSING else labels[code] for code in codes) + "."
    figure = new_figure(traces, x="Repetition", y="Score (level of the rubric)", alt=alt, height=300)
    missing = bool((codes == MISSING).any())
    figure.update_layout(showlegend=True)
    figure.update_xaxes(**named_ticks([escape(name) for name in names]), range=[-0.6, len(codes) - 0.4])
    shown = named_ticks(labels, levels)
    if missing:
        shown |= {"tickvals": [*shown["tickvals"], floor], "ticktext": [*shown["ticktext"], "no score"]}
    figure.update_yaxes(
        **shown, range=list(padded([floor if missing else float(ticks[0]), float(ticks[-1])], share=0.12))
    )
    if gate is not None:
        mark_value(figure, _below(levels, gate), f"gate {gate:g}", axis="y")
    return figure


def _below(levels: Floats, gate: float) -> float:
    """Between the lowest level that passes and the highest that fails, where the line covers no dot."""
    failing, passing = levels[levels < gate], levels[levels >= gate]
    if not len(failing) or not len(passing):
        return gate
    return float(failing.max() + passing.min()) / 2
