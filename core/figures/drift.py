"""A judge over time: change item by item, and the history of its runs."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from core.figures.theme import (
    BLUE,
    GREEN,
    GREY,
    PURPLE,
    VERMILLION,
    count_axis,
    escape,
    new_figure,
    no_figure,
    note,
    padded,
    short,
)
from core.figures.words import say_count, say_interval, say_number, say_part, say_reason
from core.stats.common import Floats, Ints, Undefined
from core.stats.control import BASELINE_POINTS, ChartState, ControlChart
from core.stats.drift import DriftOutcome, DriftVerdict, PairedChange

_BINS = 20
_MOST_DISTINCT = 41
_BAR = 0.03
_MARK_DASHES = ("dash", "dot", "dashdot", "longdash")


class Mark(NamedTuple):
    """A change in the history of a judge.

    Attributes:
        time: When, aware.
        kind: What changed, e.g. "snapshot changed" or "rubric changed".
        words: From what to what.
    """

    time: datetime
    kind: str
    words: str


def say_drift(verdict: DriftVerdict, change: PairedChange, *, parts: Sequence[str] = (), refused: int = 0) -> str:
    """The verdict as sentences: how far the scores moved, and whether that may be called drift.

    Args:
        verdict: Of the items that both sides judged as the same text.
        change: Their paired change.
        parts: Parts of the judge that differ; more than the snapshot makes it another judge, not drift.
        refused: Items left out because their text differs.
    """
    n = change.change.n
    if n == 0 and refused:
        return (
            f"Refused: the judged text differs on all {say_count(refused)} items that both sides share, so no change "
            "of their scores can be called drift."
        )
    left_out = f" {say_count(refused)} items whose text differs are left out." if refused else ""
    if verdict.outcome is DriftOutcome.NOT_MEASURABLE:
        return (
            f"Not measurable: {say_count(n)} items have an independent score of the same text on both sides, and at "
            f"least 10 are needed.{left_out}"
        )
    unknown = "" if verdict.noise_p is not None else " Floor unknown: one repetition shows no noise."
    if verdict.outcome is DriftOutcome.NO_ALARM:
        return f"No alarm: {_move_words(change)}; noise alone does as much.{unknown}{left_out}"
    tests = ("item means", "pass rate", "disagreement beyond repetition noise")
    found = [name for name, p in zip(tests, verdict.adjusted, strict=True) if p is not None and p < verdict.alpha]
    said = f"{_move_words(change)}; more than chance in {', '.join(found)}."
    if set(parts) <= {"snapshot"}:
        return f"Drift: {said}{unknown}{left_out}"
    return (
        f"Another judge, not drift: {said} It differs in {', '.join(parts)}, so the snapshot cannot be blamed alone."
        f"{unknown}{left_out}"
    )


def _move_words(change: PairedChange) -> str:
    value = change.change.value or 0.0
    word = "fell" if value < 0 else "rose" if value > 0 else "stayed"
    ends = f"from {say_number(change.mean_a.value)} to {say_number(change.mean_b.value)}"
    interval = say_interval(change.change.interval)
    rest = [f"{value:+.3f} points", interval, f"n = {say_count(change.change.n)} items"]
    return f"the mean {word} {ends} ({', '.join(part for part in rest if part)})"


class _Bars(NamedTuple):
    centres: Floats
    widths: Floats
    counts: Ints
    words: list[str]


def change_histogram(change: PairedChange, *, unit: str = "score points") -> go.Figure:
    """Items by how their mean moved between two snapshots: lowered, unchanged and raised apart.

    Args:
        change: The paired change.
        unit: Unit of the score.
    """
    n = len(change.differences)
    if n == 0:
        return no_figure("undefined: no item was scored in both snapshots")
    lowered, raised = change.differences[change.differences < 0], change.differences[change.differences > 0]
    reach = float(np.abs(change.differences).max()) or 1.0
    parts = (
        ("lowered", _bars(-lowered, reach, -1), VERMILLION, "\\", change.lowered),
        ("raised", _bars(raised, reach, 1), BLUE, "/", change.raised),
        ("unchanged", _zero_bar(change.unchanged, reach), GREY, "", change.unchanged),
    )
    traces = [
        go.Bar(
            x=bars.centres,
            y=bars.counts,
            width=bars.widths,
            name=f"{word}: {say_part(count, n)}",
            legendrank=1000 + ("lowered", "unchanged", "raised").index(word),
            marker={
                "color": colour,
                "pattern": {"shape": pattern, "fillmode": "replace"},
                "line": {"color": colour, "width": 1},
            },
            hovertext=[f"{said}: {say_part(int(k), n)} items" for said, k in zip(bars.words, bars.counts, strict=True)],
            hovertemplate="%{hovertext}<extra></extra>",
        )
        for word, bars, colour, pattern, count in parts
    ]
    alt = f"Change of {n:,} items: " + ", ".join(f"{count:,} {word}" for word, _, _, _, count in parts) + "."
    title = f"Change of the item's mean, second minus first ({escape(unit)})"
    figure = new_figure(traces, x=title, y="Items", alt=alt)
    figure.update_layout(barmode="overlay", showlegend=True)
    count_axis(figure, max(int(bars.counts.max()) for _, bars, _, _, _ in parts))
    figure.update_xaxes(range=[-1.1 * reach, 1.1 * reach])
    return figure


def time_line(
    times: Sequence[datetime],
    values: Floats,
    chart: ControlChart,
    *,
    title: str,
    names: Sequence[str] | None = None,
    marks: Sequence[Mark] = (),
) -> go.Figure:
    """Runs in order of time with their moving average and its control limits, and what changed in between.

    A click selects a point whose customdata is the run's place in `times`.

    Args:
        times: Start of each run, aware; shown in UTC.
        values: The figure of each run, shape (runs,), as `chart` was made of.
        chart: Its control chart.
        title: What the figure is, with its unit.
        names: Label of each run.
        marks: Changes of snapshot, rubric or prompt, drawn as lines.
    """
    if not len(values):
        return no_figure(say_reason(Undefined.NO_DATA))
    at = [_utc(time) for time in times]
    labels = [f"run {i + 1}" for i in range(len(at))] if names is None else [escape(name) for name in names]
    words = [
        f"{label}<br>{time} UTC<br>{say_number(value)}"
        for label, time, value in zip(labels, at, values.tolist(), strict=True)
    ]
    traces = [*_limit_traces(at, chart), *_run_traces(at, values, words, chart)]
    traces += _mark_traces(marks, _extent(values, chart))
    figure = new_figure(traces, x="Time (UTC)", y=title, alt=_history_words(title, values, chart), height=400)
    figure.update_layout(showlegend=True)
    figure.update_xaxes(type="date")
    if len({*at, *(_utc(mark.time) for mark in marks)}) == 1:
        figure.update_xaxes(range=[_utc(times[0] + side * timedelta(days=1)) for side in (-1, 1)])
    note(figure, _state_words(chart, len(values)))
    return figure


def _run_traces(at: Sequence[str], values: Floats, words: Sequence[str], chart: ControlChart) -> list[go.Scatter]:
    runs = np.arange(len(values))
    alarming = np.isin(runs, chart.alarms)
    looks = (
        ("run", ~alarming, {"color": BLUE, "size": 8}),
        ("run that breaks a limit", alarming, {"color": VERMILLION, "size": 12, "symbol": "x"}),
    )
    return [
        go.Scatter(
            x=[at[i] for i in np.flatnonzero(chosen).tolist()],
            y=values[chosen],
            mode="markers",
            name=name,
            marker=marker,
            customdata=runs[chosen],
            hovertext=[words[i] for i in np.flatnonzero(chosen).tolist()],
            hovertemplate="%{hovertext}<extra></extra>",
        )
        for name, chosen, marker in looks
        if chosen.any()
    ]


def _limit_traces(at: Sequence[str], chart: ControlChart) -> list[go.Scatter]:
    lines: list[tuple[str, Floats, str, str, bool]] = []
    if chart.limits is not None:
        lines += [
            ("control limits of the average", chart.limits.low, GREY, "dash", True),
            ("control limits of the average", chart.limits.high, GREY, "dash", False),
        ]
    if chart.centre is not None:
        lines += [
            ("mean of the baseline runs", np.full(len(at), chart.centre), GREY, "solid", True),
            ("moving average (EWMA)", chart.ewma, GREEN, "solid", True),
        ]
    return [
        go.Scatter(
            x=list(at),
            y=values,
            mode="lines",
            name=name,
            legendgroup=name,
            showlegend=shown,
            line={"color": colour, "dash": dash, "width": 2},
            hovertext=[f"{name}<br>{time} UTC<br>{say_number(v)}" for time, v in zip(at, values.tolist(), strict=True)],
            hovertemplate="%{hovertext}<extra></extra>",
        )
        for name, values, colour, dash, shown in lines
    ]


def _mark_traces(marks: Sequence[Mark], extent: tuple[float, float]) -> list[go.Scatter]:
    """One trace for each kind of change, so that the legend names the line styles."""
    traces = []
    for i, kind in enumerate(dict.fromkeys(mark.kind for mark in marks)):
        x: list[str | None] = []
        y: list[float | None] = []
        words: list[str] = []
        for mark in marks:
            if mark.kind == kind:
                time = _utc(mark.time)
                x += [time, time, None]
                y += [*extent, None]
                words += [f"{escape(kind)}<br>{time} UTC<br>{escape(mark.words, longest=120)}"] * 2 + [""]
        traces.append(
            go.Scatter(
                x=x,
                y=y,
                mode="lines+markers",
                name=escape(kind),
                line={"color": PURPLE, "dash": _MARK_DASHES[i % len(_MARK_DASHES)], "width": 2},
                marker={"symbol": ("triangle-down", "diamond", "square", "cross")[i % 4], "size": 9},
                hovertext=words,
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    return traces


def _extent(values: Floats, chart: ControlChart) -> tuple[float, float]:
    seen = [values] if chart.limits is None else [values, chart.limits.low, chart.limits.high]
    return padded([end for part in seen for end in (float(part.min()), float(part.max()))])


def _state_words(chart: ControlChart, runs: int) -> str:
    if chart.state is ChartState.LEARNING:
        return f"{chart.state}: {runs} of the {BASELINE_POINTS} runs that set the limits"
    return f"{chart.state}, {runs} runs"


def _history_words(title: str, values: Floats, chart: ControlChart) -> str:
    return f"{title} of {len(values)} runs, newest {say_number(float(values[-1]))}: {_state_words(chart, len(values))}."


def _utc(time: datetime) -> str:
    if time.tzinfo is None:
        raise ValueError(f"times must be aware, got {time.isoformat()}")
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def _zero_bar(count: int, reach: float) -> _Bars:
    return _Bars(np.zeros(1), np.array([_BAR * reach]), np.array([count]), ["unchanged"])


def _bars(sizes: Floats, reach: float, sign: int) -> _Bars:
    """Bars of one direction: one for each size of change when they are few, otherwise equal bins."""
    word = "raised" if sign > 0 else "lowered"
    if not len(sizes):  # a bar of no height keeps its entry in the legend
        return _Bars(np.array([sign * reach]), np.array([_BAR * reach]), np.zeros(1, np.int64), [word])
    distinct, counts = np.unique(np.round(sizes, 9), return_counts=True)
    gaps = np.diff(distinct, prepend=0.0)
    if len(distinct) <= _MOST_DISTINCT and (gaps >= reach / _MOST_DISTINCT).all():
        width = min(0.8 * float(gaps.min()), _BAR * reach)
        words = [f"{word} by {short(size)}" for size in distinct.tolist()]
        return _Bars(sign * distinct, np.full(len(distinct), width), counts.astype(np.int64), words)
    heights, edges = np.histogram(sizes, bins=_BINS, range=(0, reach))
    centres = sign * (edges[:-1] + edges[1:]) / 2
    words = [f"{word} by {short(low)} to {short(high)}" for low, high in pairwise(edges.tolist())]
    return _Bars(centres, np.full(_BINS, reach / _BINS), heights.astype(np.int64), words)
