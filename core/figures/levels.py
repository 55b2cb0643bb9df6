"""Distribution of scores over the levels of the rubric, of several judges, runs or snapshots side by side."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from core.figures.theme import PERCENT, escape, level_names, look, mark_value, named_ticks, new_figure, no_figure
from core.figures.words import say_part, say_reason
from core.stats.common import Floats, Undefined


def level_bars(
    counts: NDArray[np.integer], levels: Floats, names: Sequence[str], *, gate: float | None = None
) -> go.Figure:
    """Share of the scores at each level, side by side; every level of the rubric has its place, used or not.

    Args:
        counts: Scores at each level, shape (names, L).
        levels: Level values in rubric order, shape (L,).
        names: Judge, run or snapshot of each row.
        gate: Level value at and above which an item passes, drawn between the levels when the levels ascend.
    """
    totals = counts.sum(axis=1)
    if not totals.sum():
        return no_figure(say_reason(Undefined.NO_DATA))
    labels = level_names(levels)
    traces = [
        go.Bar(
            x=np.arange(len(levels)),
            y=row / total if total else np.full(len(row), np.nan),
            name=f"{escape(name)} (n = {total:,})",
            marker={
                "color": look(i).colour,
                "pattern": {"shape": look(i).pattern, "fillmode": "replace"},
                "line": {"color": look(i).colour, "width": 1},
            },
            hovertext=[
                f"{escape(name)}<br>level {label}: {say_part(int(count), int(total))} scores"
                for label, count in zip(labels, row, strict=True)
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        )
        for i, (name, row, total) in enumerate(zip(names, counts, totals.tolist(), strict=True))
    ]
    alt = f"Share of scores at each of {len(levels)} levels for {', '.join(map(str, names))}."
    figure = new_figure(traces, x="Level of the rubric", y="Share of scores", alt=alt)
    figure.update_layout(barmode="group", showlegend=True)
    figure.update_xaxes(**named_ticks(labels), range=[-0.6, len(levels) - 0.4])
    figure.update_yaxes(tickformat=PERCENT, rangemode="tozero")
    if gate is not None and (np.diff(levels) > 0).all():
        mark_value(figure, float(np.searchsorted(levels, gate)) - 0.5, f"gate {gate:g}", span=(-0.6, len(levels) - 0.4))
    return figure
