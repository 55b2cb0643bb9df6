"""Judge against people, and figures against the thresholds of a rule."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from core.figures.heat import MARK, heat_map
from core.figures.theme import (
    BLUE,
    GREEN,
    GREY,
    PALE_BLUE,
    PERCENT,
    PURPLE,
    TEXT,
    VERMILLION,
    broken,
    dress,
    escape,
    interval_ends,
    interval_lines,
    mark_value,
    new_figure,
    no_figure,
    padded,
    row_axis,
)
from core.figures.words import (
    UNDEFINED,
    say_count,
    say_estimate,
    say_interval,
    say_number,
    say_part,
    say_reason,
    say_share,
)
from core.stats.common import Estimate, Interval, Ints, Undefined
from core.stats.promotion import GateOutcome, NonInferiority
from core.stats.trust import LineVerdict, TrustDecision

Shares = Literal["row", "column"]
Better = Literal["higher", "lower"]

_ROW_HEIGHT = 58

_TRUST_NAMES: dict[str, tuple[str, str, Better]] = {
    "min_agreement": ("agreement", "share or kappa", "higher"),
    "min_kappa": ("kappa", "share or kappa", "higher"),
    "max_false_pass_rate": ("false passes of human fails", "share or kappa", "lower"),
    "max_false_passes": ("false passes", "items", "lower"),
    "min_labels": ("labels", "items", "higher"),
}

_GOOD, _BAD, _OPEN, _NONE = "passes", "fails", "not decided", "no rule"
_MARKS = {
    _GOOD: (GREEN, "circle"),
    _BAD: (VERMILLION, "x"),
    _OPEN: (PURPLE, "diamond-open"),
    _NONE: (BLUE, "circle"),
}
_KINDS: dict[str | None, str] = {
    GateOutcome.PASS: _GOOD,
    LineVerdict.PASSES: _GOOD,
    GateOutcome.FAIL: _BAD,
    LineVerdict.FAILS: _BAD,
    None: _NONE,
}


@dataclass(frozen=True, slots=True)
class ForestRow:
    """One figure of a forest plot.

    Attributes:
        name: What the figure is.
        value: The figure; None when undefined.
        interval: Its interval, where it has one.
        n: Items it rests on, where known.
        reason: Why `value` is None.
        threshold: What a rule asks, or the margin; None without one.
        better: Which side of the threshold is the good one.
        outcome: What the rule says, in words (`LineVerdict` or `GateOutcome`); None without a rule.
        unit: Title of the axis; rows of equal unit share an axis.
    """

    name: str
    value: float | None
    interval: Interval | None = None
    n: int | None = None
    reason: Undefined | None = None
    threshold: float | None = None
    better: Better = "higher"
    outcome: str | None = None
    unit: str = "estimate"


def estimate_row(name: str, estimate: Estimate, *, unit: str = "estimate") -> ForestRow:
    """A row for an estimate without a rule."""
    return ForestRow(name, estimate.value, estimate.interval, estimate.n, estimate.reason, unit=unit)


def trust_rows(decision: TrustDecision) -> list[ForestRow]:
    """The lines of a trust rule."""
    rows = []
    for line in decision.lines:
        name, unit, better = _TRUST_NAMES.get(line.name, (line.name, "estimate", "higher"))
        rows.append(
            ForestRow(
                name,
                line.value,
                line.interval,
                threshold=line.threshold,
                better=better,
                outcome=line.verdict,
                unit=unit,
            )
        )
    return rows


def promotion_row(name: str, result: NonInferiority, *, unit: str) -> ForestRow:
    """A difference to the baseline with its margin."""
    better: Better = "higher" if result.higher_is_better else "lower"
    margin = -result.margin if result.higher_is_better else result.margin
    found = result.difference
    return ForestRow(
        name, found.value, found.interval, found.n, found.reason, margin, better, result.outcome, f"{unit}, difference"
    )


def forest(rows: Sequence[ForestRow], *, zero: bool = False, threshold_word: str = "threshold") -> go.Figure:
    """Figures with their intervals against what a rule asks of each; what the rule says stands beside the name.

    Args:
        rows: The figures, first on top; rows of equal unit share an axis.
        zero: Mark 0, for differences.
        threshold_word: What the thresholds are called in the legend, e.g. "margin".
    """
    if not rows:
        return no_figure("there is nothing to compare")
    units = list(dict.fromkeys(row.unit for row in rows))
    groups = [[row for row in rows if row.unit == unit] for unit in units]
    figure = make_subplots(
        rows=len(units),
        cols=1,
        row_heights=[len(group) for group in groups],
        vertical_spacing=0 if len(units) == 1 else min(0.22, 0.9 / (len(units) - 1), 78 / _height(rows, units)),
    )
    dress(figure, alt="; ".join(f"{row.name} {_row_words(row)}" for row in rows), height=_height(rows, units))
    figure.update_layout(showlegend=True)
    said: set[str] = set()
    for place, (unit, group) in enumerate(zip(units, groups, strict=True), start=1):
        _draw_group(figure, group, place, unit, zero=zero, threshold_word=threshold_word, said=said)
    return figure


def confusion_matrix(
    table: Ints,
    labels: Sequence[str],
    *,
    rows: str = "People",
    columns: str = "Judge",
    shares: Shares = "row",
) -> go.Figure:
    """Confusion matrix over levels or over pass and fail: counts, with their share of the row or of the column.

    Both shares are in the hover. A click on a cell selects a point whose customdata is (row, column).

    Args:
        table: Items at each pair of labels, shape (L, L).
        labels: Names of the levels, all of the rubric.
        rows: Who is in the rows.
        columns: Who is in the columns.
        shares: Which share is written and coloured.
    """
    n = int(table.sum())
    if n == 0:
        return no_figure(say_reason(Undefined.NO_DATA))
    row_totals, column_totals = table.sum(axis=1), table.sum(axis=0)
    totals = row_totals[:, None] if shares == "row" else column_totals[None, :]
    whole = np.broadcast_to(totals, table.shape)
    values = np.divide(table, whole, out=np.full(table.shape, np.nan), where=whole > 0)
    names, row_who, column_who = [escape(label) for label in labels], escape(rows), escape(columns)
    hover = [
        [
            f"{row_who}: {names[i]}, {column_who}: {names[j]}<br>"
            f"{say_count(int(table[i, j]))} items, {say_share(table[i, j] / n)} of all {say_count(n)}<br>"
            f"of the row: {say_part(int(table[i, j]), int(row_totals[i]))}<br>"
            f"of the column: {say_part(int(table[i, j]), int(column_totals[j]))}"
            for j in range(len(names))
        ]
        for i in range(len(names))
    ]
    with_shares = len(names) <= 7
    text = [
        [_count_text(int(table[i, j]), values[i, j], with_shares) for j in range(len(names))] for i in range(len(names))
    ]
    return heat_map(
        values,
        text=text,
        hover=hover,
        rows=[f"{name} (n = {say_count(int(total))})" for name, total in zip(names, row_totals, strict=True)],
        columns=[f"{name}<br>n = {say_count(int(total))}" for name, total in zip(names, column_totals, strict=True)],
        row_title=row_who,
        column_title=f"{column_who} (shares of the {shares})",
        value_title=f"Share of the {shares}",
        alt=f"{rows} against {columns}, {say_count(n)} items, {say_part(int(np.trace(table)), n)} on the diagonal.",
    )


def slice_bars(
    names: Sequence[str],
    estimates: Sequence[Estimate],
    *,
    title: str,
    share: bool = True,
    overall: Estimate | None = None,
    rows: str = "Slice",
) -> go.Figure:
    """One bar a slice, or another part, with its interval and n; a part without a figure says why.

    Args:
        names: The parts.
        estimates: The figure of each.
        title: What the figure is, with its unit.
        share: Write percentages.
        overall: The figure over all parts, marked.
        rows: What the parts are.
    """
    if not names:
        return no_figure("there are no slices to compare")
    at = range(len(names))
    defined = [i for i in at if estimates[i].value is not None]
    labels = [f"{escape(name)}<br>n = {say_count(found.n)}" for name, found in zip(names, estimates, strict=True)]
    digits = 1 if share else 3
    traces = [
        go.Bar(
            x=[estimates[i].value for i in defined],
            y=defined,
            orientation="h",
            width=0.5,
            marker={"color": PALE_BLUE, "line": {"color": BLUE, "width": 2}},
            customdata=defined,
            hovertext=[f"{escape(names[i])}<br>{say_estimate(estimates[i], digits, share=share)}" for i in defined],
            hovertemplate="%{hovertext}<extra></extra>",
            name=title,
        ),
        interval_lines(list(at), [found.interval for found in estimates], axis="x", colour=TEXT),
    ]
    alt = "; ".join(
        f"{name}: {say_estimate(found, digits, share=share)}" for name, found in zip(names, estimates, strict=True)
    )
    figure = new_figure(traces, x=title, y=rows, alt=alt, height=110 + 46 * max(len(names), 2))
    figure.update_layout(showlegend=False)
    figure.update_yaxes(**row_axis(labels))
    ends = [end for found in estimates for end in (found.value, *interval_ends(found.interval)) if end is not None]
    low, high = padded([0.0, *ends])
    figure.update_xaxes(range=[low if min([0.0, *ends]) < 0 else 0, high], showgrid=True)
    if share:
        figure.update_xaxes(tickformat=PERCENT)
    for i in set(at) - set(defined):
        _say_in_row(figure, i, say_reason(estimates[i].reason))
    if overall is not None and overall.value is not None:
        say = say_share if share else say_number
        mark_value(figure, overall.value, f"overall {say(overall.value, digits)}")
    return figure


def _draw_group(
    figure: go.Figure,
    group: Sequence[ForestRow],
    place: int,
    unit: str,
    *,
    zero: bool,
    threshold_word: str,
    said: set[str],
) -> None:
    """One axis of a forest plot: intervals, thresholds, then the points on top."""
    traces = [
        interval_lines(range(len(group)), [row.interval for row in group], axis="x"),
        *_threshold_traces(group, threshold_word),
        *_point_traces(group),
    ]
    for trace in traces:
        trace.showlegend = trace.name != "interval" and trace.name not in said
        trace.legendgroup = trace.name
        said.add(trace.name)
        figure.add_trace(trace, row=place, col=1)
    figure.update_yaxes(**row_axis([_row_label(row) for row in group]), row=place, col=1)
    title = {"text": escape(unit, longest=90), "standoff": 6}
    figure.update_xaxes(title=title, showgrid=True, range=_extent(group, zero=zero), row=place, col=1)
    if zero:
        figure.add_vline(x=0, line={"color": GREY, "width": 1}, row=place, col=1)
    for i, row in enumerate(group):
        if row.value is None:
            suffix = "" if place == 1 else str(place)
            _say_in_row(figure, i, say_reason(row.reason), yref=f"y{suffix}", xref=f"x{suffix} domain")


def _extent(group: Sequence[ForestRow], *, zero: bool) -> tuple[float, float]:
    ends = [end for row in group for end in (row.value, row.threshold, *interval_ends(row.interval))]
    known = [end for end in ends if end is not None]
    return padded([*known, *([0.0] if zero or not known else [])])


def _threshold_traces(group: Sequence[ForestRow], word: str) -> list[go.Scatter]:
    asked = [(i, row, row.threshold) for i, row in enumerate(group) if row.threshold is not None]
    if not asked:
        return []
    return [
        go.Scatter(
            x=[threshold for _, _, threshold in asked],
            y=[i for i, _, _ in asked],
            mode="markers",
            name=word,
            marker={"symbol": "line-ns-open", "size": 30, "color": GREY, "line": {"width": 3}},
            hovertext=[f"{escape(row.name)}<br>{word}: {_asked(row)}" for _, row, _ in asked],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    ]


def _point_traces(group: Sequence[ForestRow]) -> list[go.Scatter]:
    traces = []
    for kind, (colour, symbol) in _MARKS.items():
        chosen = [(i, row) for i, row in enumerate(group) if row.value is not None and _kind(row) == kind]
        if chosen:
            traces.append(
                go.Scatter(
                    x=[row.value for _, row in chosen],
                    y=[i for i, _ in chosen],
                    mode="markers",
                    name="estimate" if kind == _NONE else kind,
                    marker={
                        "color": colour,
                        "symbol": symbol,
                        "size": 12,
                        "line": {"width": 2 if kind == _OPEN else 0},
                    },
                    hovertext=[f"{escape(row.name)}<br>{_row_words(row)}" for _, row in chosen],
                    hovertemplate="%{hovertext}<extra></extra>",
                )
            )
    return traces


def _kind(row: ForestRow) -> str:
    return _KINDS.get(row.outcome, _OPEN)


def _row_label(row: ForestRow) -> str:
    asked = f" {_asked(row)}" if row.threshold is not None else ""
    verdict = f": {escape(row.outcome)}" if row.outcome is not None else ""
    second = f"{asked.strip()}{verdict}".lstrip(": ") or (f"n = {say_count(row.n)}" if row.n is not None else "")
    return escape(row.name) + (f"<br>{second}" if second else "")


def _asked(row: ForestRow) -> str:
    sign = "≥" if row.better == "higher" else "≤"
    return f"{sign} {row.threshold:g}"


def _row_words(row: ForestRow) -> str:
    value = say_reason(row.reason) if row.value is None else say_number(row.value)
    n = f"n = {say_count(row.n)} items" if row.n is not None else ""
    asked = f"asked {_asked(row)}" if row.threshold is not None else ""
    parts = [value, say_interval(row.interval), n, asked, row.outcome or ""]
    return ", ".join(dict.fromkeys(part for part in parts if part and part != UNDEFINED)) or UNDEFINED


def _say_in_row(figure: go.Figure, row: int, words: str, *, xref: str = "x domain", yref: str = "y") -> None:
    figure.add_annotation(
        text=broken(words, at=60), x=0.02, xref=xref, xanchor="left", y=row, yref=yref, align="left", showarrow=False
    )


def _height(rows: Sequence[ForestRow], units: Sequence[str]) -> int:
    return 80 + _ROW_HEIGHT * max(len(rows), 2) + 70 * len(units)


def _count_text(count: int, share: float, with_shares: bool) -> str:
    if not with_shares:
        return say_count(count)
    return f"{say_count(count)}<br>{MARK if np.isnan(share) else say_share(share, 0)}"
