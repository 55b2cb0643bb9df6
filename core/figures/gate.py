"""Release decisions that depend on which repetition was looked at."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from core.figures.heat import MARK, heat_map
from core.figures.theme import (
    BLUE,
    GREY,
    PALE_BLUE,
    PERCENT,
    SHADE,
    VERMILLION,
    count_axis,
    escape,
    interval_lines,
    level_names,
    mark_value,
    new_figure,
    no_figure,
    note,
    padded,
)
from core.figures.words import say_count, say_estimate, say_number, say_part, say_reason, say_share
from core.stats.common import Floats, Ints, Undefined
from core.stats.gate import GatePoint, ItemVerdicts
from core.stats.pairs import PairKappas, RunPairs, Transitions, spread

_BRIEF_TEXT_ABOVE = 12
_STACKS = 60


def flip_matrix(pairs: RunPairs, shares: Floats, runs: Sequence[str]) -> go.Figure:
    """Heat map of the share of items with different verdicts, for every two repetitions.

    Args:
        pairs: Cross-tabs of the pairs.
        shares: Figure of each pair (`pair_flip_shares`), shape (P,), nan where the two share no item.
        runs: Label of each repetition, "run·repetition".
    """
    if len(runs) < 2:
        return no_figure(say_reason(Undefined.SINGLE_REPETITION))
    names = [escape(run, longest=18) for run in runs]
    matrix, n = pairs.matrix(shares), np.nan_to_num(pairs.matrix(pairs.n)).astype(np.int64)
    hover = [[_flip_words(names, matrix, n, i, j) for j in range(len(names))] for i in range(len(names))]
    brief = len(names) > _BRIEF_TEXT_ABOVE
    text = [[_cell_share(share, brief=brief) for share in row] for row in matrix.tolist()]
    unit = "%" if brief else "share"
    known = shares[np.isfinite(shares)]
    lowest, highest = (known.min(), known.max()) if len(known) else (np.nan, np.nan)
    return heat_map(
        matrix,
        text=text,
        hover=hover,
        rows=names,
        columns=names,
        row_title="Repetition",
        column_title=f"Repetition (cells: items with different verdicts, {unit})",
        value_title="Items with different verdicts",
        alt=f"Flip share of every two of {len(names)} repetitions, {say_share(lowest)} to {say_share(highest)}.",
        highest=float(highest) if highest > 0 else 1.0,
    )


def transition_matrix(changes: Transitions, first: str, second: str) -> go.Figure:
    """Verdicts of one repetition against another: 2 x 2 counts with their share of all items both scored.

    Args:
        changes: Verdicts that changed.
        first: Label of the repetition in the rows.
        second: Label of the one in the columns.
    """
    return count_map(
        changes.table,
        ("pass", "fail"),
        ("pass", "fail"),
        row_title=f"Verdict in {escape(first)}",
        column_title=f"Verdict in {escape(second)}",
    )


def level_cross_tab(table: Ints, levels: Floats, first: str, second: str) -> go.Figure:
    """Scores of one repetition, judge or snapshot against another's, over all levels of the rubric.

    Args:
        table: Items at each pair of levels, shape (L, L).
        levels: Level values, shape (L,).
        first: Label of the rows.
        second: Label of the columns.
    """
    names = level_names(levels)
    return count_map(
        table, names, names, row_title=f"Level in {escape(first)}", column_title=f"Level in {escape(second)}"
    )


def count_map(
    table: Ints,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    row_title: str,
    column_title: str,
    unit: str = "items",
) -> go.Figure:
    """Heat map of counts, each with its share of the whole table.

    Args:
        table: Counts, shape (rows, columns).
        rows: Names of the rows; escaped already.
        columns: Names of the columns.
        row_title: What the rows are.
        column_title: What the columns are.
        unit: What is counted.
    """
    n = int(table.sum())
    if n == 0:
        return no_figure(say_reason(Undefined.NO_DATA))
    hover = [
        [
            f"{row_title}: {row}<br>{column_title}: {column}<br>{say_part(int(count), n)} items"
            for column, count in zip(columns, counts, strict=True)
        ]
        for row, counts in zip(rows, table, strict=True)
    ]
    with_shares = len(columns) <= 7
    text = [
        [say_count(count) + (f"<br>{say_share(count / n)}" if with_shares else "") for count in counts]
        for counts in table.tolist()
    ]
    return heat_map(
        table / n,
        text=text,
        hover=hover,
        rows=rows,
        columns=columns,
        row_title=row_title,
        column_title=f"{column_title} (n = {say_count(n)} {unit})",
        value_title=f"Share of {unit}",
        alt=f"{row_title} against {column_title}, {say_count(n)} {unit}.",
        highest=float(table.max() / n),
    )


def kappa_spread(pairs: RunPairs, kappas: PairKappas, runs: Sequence[str]) -> go.Figure:
    """Kappa of every two repetitions as a stack of dots, with lowest, mean and highest marked.

    A click selects a point whose customdata is (first repetition, second repetition).

    Args:
        pairs: The pairs.
        kappas: Their kappas; undefined ones are counted in words.
        runs: Label of each repetition.
    """
    found = spread(kappas.values)
    if found.mean is None or found.minimum is None or found.maximum is None:
        reason = next((reason for reason in kappas.reasons if reason is not None), Undefined.SINGLE_REPETITION)
        return no_figure(say_reason(reason))
    defined = np.flatnonzero(kappas.defined)
    values = kappas.values[defined]
    names = [escape(run, longest=18) for run in runs]
    ends = [(names[pairs.first[p]], names[pairs.second[p]]) for p in defined]
    trace = go.Scatter(
        x=values,
        y=_stacked(values),
        mode="markers",
        marker={"color": BLUE, "size": 8, "line": {"color": GREY, "width": 1}},
        customdata=np.column_stack([pairs.first[defined], pairs.second[defined]]),
        hovertext=[
            f"{a} and {b}<br>kappa {say_number(value)}, n = {say_count(int(n))} items"
            for (a, b), value, n in zip(ends, values, pairs.n[defined], strict=True)
        ],
        hovertemplate="%{hovertext}<extra></extra>",
        name="pairs of repetitions",
    )
    alt = (
        f"Kappa of {found.defined} pairs of repetitions: lowest {say_number(found.minimum)}, "
        f"mean {say_number(found.mean)}, highest {say_number(found.maximum)}."
    )
    figure = new_figure([trace], x="Cohen's kappa of two repetitions", y="Pairs", alt=alt)
    span = padded([found.minimum, found.maximum], share=0.08)
    figure.update_xaxes(range=list(span))
    count_axis(figure, float(trace.y.max()))
    marks = {"lowest": found.minimum, "mean": found.mean, "highest": found.maximum}
    for line, (word, value) in enumerate(marks.items()):
        mark_value(
            figure,
            value,
            f"{word} {say_number(value)}",
            span=span,
            dash="solid" if word == "mean" else "dot",
            line=line % 2,
        )
    if found.undefined:
        figure.update_xaxes(title_text=f"Cohen's kappa of two repetitions ({found.undefined} pairs undefined)")
    return figure


def gate_curve(points: Sequence[GatePoint], *, gate: float | None = None) -> go.Figure:
    """Flip rate at every gate the rubric allows, with its interval, and the share of items with both verdicts.

    Args:
        points: Flips at each gate.
        gate: The rubric's gate, marked.
    """
    known = [point for point in points if point.flip_rate.value is not None]
    if not known:
        return no_figure(say_reason(points[0].flip_rate.reason if points else Undefined.NO_VARIATION))
    gates = [point.gate for point in known]
    limits = [_limits(point) for point in known]
    traces = [
        *_bands(gates, limits),
        interval_lines(gates, [point.flip_rate.interval for point in known], axis="y", colour=BLUE),
        go.Scatter(
            x=gates,
            y=[point.flip_rate.value for point in known],
            mode="lines+markers",
            name="flip rate with 95% interval",
            line={"color": BLUE},
            marker={"size": 9},
            hovertext=[f"gate {p.gate:g}<br>flip rate {say_estimate(p.flip_rate, 1, share=True)}" for p in known],
            hovertemplate="%{hovertext}<extra></extra>",
        ),
        go.Scatter(
            x=gates,
            y=[point.any_flip.value for point in known],
            mode="lines+markers",
            name="items with both verdicts (rises with repetitions)",
            line={"color": VERMILLION, "dash": "dot"},
            marker={"size": 8, "symbol": "square"},
            hovertext=[f"gate {p.gate:g}<br>both verdicts {say_estimate(p.any_flip, 1, share=True)}" for p in known],
            hovertemplate="%{hovertext}<extra></extra>",
        ),
    ]
    alt = "Flip rate by gate: " + "; ".join(f"{p.gate:g}: {say_share(p.flip_rate.value)}" for p in known) + "."
    figure = new_figure(traces, x="Gate (level at and above which an item passes)", y="Share", alt=alt)
    span = padded(gates, share=0.08)
    figure.update_layout(showlegend=True)
    figure.update_traces(cliponaxis=False, selector={"mode": "lines+markers"})
    figure.update_xaxes(range=list(span), **({"tickvals": gates} if len(gates) <= 21 else {}))
    figure.update_yaxes(tickformat=PERCENT, rangemode="tozero")
    if gate is not None:
        mark_value(figure, gate, f"gate {gate:g}", span=span)
    return figure


def pass_rate_curve(verdicts: ItemVerdicts, *, weights: Ints | None = None) -> go.Figure:
    """Items sorted by the share of their repetitions that pass; those with both verdicts are shaded.

    Args:
        verdicts: Verdicts of each item, or of each distinct item.
        weights: How many items each entry stands for.
    """
    weights = np.ones(len(verdicts.n), np.int64) if weights is None else weights
    scored = verdicts.n > 0
    rates, inverse = np.unique(verdicts.pass_rate[scored], return_inverse=True)
    items = np.bincount(inverse, weights=weights[scored], minlength=len(rates)).astype(np.int64)
    total = int(items.sum())
    if not total:
        return no_figure(say_reason(Undefined.NO_DATA))
    ends = np.cumsum(items)
    straddlers = int(weights[verdicts.straddles].sum())
    words = [f"pass rate {say_share(r)}: {say_part(int(k), total)} items" for r, k in zip(rates, items, strict=True)]
    trace = go.Scatter(
        x=np.column_stack([ends - items, ends]).ravel(),
        y=np.repeat(rates, 2),
        mode="lines",
        line={"color": BLUE, "width": 3},
        hovertext=np.repeat(words, 2).tolist(),
        hovertemplate="%{hovertext}<extra></extra>",
        name="pass rate",
    )
    said = f"both verdicts: {say_part(straddlers, total)} items"
    figure = new_figure(
        [trace], x="Items, sorted by pass rate", y="Repetitions that pass", alt=f"Pass rate of each item; {said}."
    )
    figure.update_xaxes(range=[0, total])
    figure.update_yaxes(tickformat=PERCENT, range=[-0.04, 1.04])
    if straddlers:
        start = int(items[rates == 0].sum())
        figure.add_vrect(x0=start, x1=start + straddlers, fillcolor=SHADE, line_width=0, layer="below")
    left_out = int(weights.sum()) - total
    note(figure, said + (f"; {say_count(left_out)} items without a score are left out" if left_out else ""))
    return figure


def _flip_words(names: Sequence[str], matrix: Floats, n: Ints, i: int, j: int) -> str:
    if i == j:
        return f"{names[i]}<br>one repetition cannot flip against itself"
    if not n[i, j]:
        return f"{names[i]} and {names[j]}<br>undefined: no item was scored in both"
    flipped = round(float(matrix[i, j]) * int(n[i, j]))
    return f"{names[i]} and {names[j]}<br>different verdicts: {say_part(flipped, int(n[i, j]))} items"


def _cell_share(share: float, *, brief: bool) -> str:
    if np.isnan(share):
        return MARK
    return say_share(share, 0).removesuffix("%") if brief else say_share(share)


def _stacked(values: Floats) -> Ints:
    """Height of each dot in the stack of its neighbours, from 1."""
    width = float(np.ptp(values)) / _STACKS or 1.0
    stack = np.floor((values - values.min()) / width).astype(np.int64)
    order = np.argsort(values, kind="stable")
    heights = np.empty(len(values), np.int64)
    _, starts, sizes = np.unique(stack[order], return_index=True, return_counts=True)
    heights[order] = np.arange(len(values)) - np.repeat(starts, sizes) + 1
    return heights


def _limits(point: GatePoint) -> tuple[float, float] | None:
    interval = point.flip_rate.interval
    if interval is None or interval.low is None or interval.high is None:
        return None
    return interval.low, interval.high


def _bands(gates: Sequence[float], limits: Sequence[tuple[float, float] | None]) -> list[go.Scatter]:
    """Shaded polygons over neighbouring gates that both have an interval; never across a gap."""
    bands = []
    for start in range(len(gates) - 1):
        here, there = limits[start], limits[start + 1]
        if here is None or there is None:
            continue
        left, right = gates[start], gates[start + 1]
        bands.append(
            go.Scatter(
                x=[left, right, right, left],
                y=[here[0], there[0], there[1], here[1]],
                fill="toself",
                fillcolor=PALE_BLUE,
                mode="none",
                hoverinfo="skip",
                showlegend=False,
                name="interval",
            )
        )
    return bands
