"""Pairwise judges: what the order of the two candidates does to the verdict."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from core.figures.agreement import estimate_row, forest
from core.figures.gate import count_map
from core.figures.theme import (
    BLUE,
    GREEN,
    GREY,
    PERCENT,
    PURPLE,
    VERMILLION,
    escape,
    interval_lines,
    mark_value,
    new_figure,
    no_figure,
    row_axis,
)
from core.figures.words import say_count, say_estimate, say_part, say_reason
from core.stats.bradley_terry import BradleyTerry
from core.stats.common import Floats, Ints, Undefined
from core.stats.pairwise import UNSCORED, Outcome, PairOutcomes, Verdicts
from core.stats.preference import LengthEffect
from core.stats.proportions import wilson

_OUTCOMES: tuple[tuple[str, tuple[Outcome, ...], str, str], ...] = (
    ("consistent", (Outcome.CONSISTENT, Outcome.CONSISTENT_TIE), BLUE, ""),
    ("first-slot flip", (Outcome.FIRST_SLOT_FLIP,), VERMILLION, "/"),
    ("second-slot flip", (Outcome.SECOND_SLOT_FLIP,), PURPLE, "\\"),
    ("tie shift", (Outcome.TIE_SHIFT,), GREEN, "."),
    ("incomplete", (Outcome.INCOMPLETE,), GREY, "x"),
)
_SLOT_NAMES = {
    3: ("second slot", "tie", "first slot"),
    5: ("second slot,<br>clearly", "second slot", "tie", "first slot", "first slot,<br>clearly"),
}
_LENGTH_BINS = 8


def outcome_bars(outcomes: Sequence[PairOutcomes], names: Sequence[str]) -> go.Figure:
    """How the pairs of a set of verdicts divide over the outcomes of judging both orders, one bar a set.

    Args:
        outcomes: The pairs of each set.
        names: The sets: a repetition, or the majority of several.
    """
    if not any(found.pairs for found in outcomes):
        return no_figure("no pair was judged in both orders")
    at = [i for i, found in enumerate(outcomes) if found.pairs]
    traces = []
    for word, codes, colour, pattern in _OUTCOMES:
        counts = [outcomes[i].count(*codes) for i in at]
        traces.append(
            go.Bar(
                y=at,
                x=[count / outcomes[i].pairs for i, count in zip(at, counts, strict=True)],
                orientation="h",
                width=0.6,
                name=word,
                customdata=at,
                marker={
                    "color": colour,
                    "pattern": {"shape": pattern, "fillmode": "replace"},
                    "line": {"color": colour, "width": 1},
                },
                hovertext=[
                    f"{escape(names[i])}<br>{word}: {say_part(count, outcomes[i].pairs)} pairs"
                    for i, count in zip(at, counts, strict=True)
                ],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        )
    labels = [f"{escape(name)}<br>n = {say_count(found.pairs)}" for name, found in zip(names, outcomes, strict=True)]
    alt = "; ".join(
        f"{name}: {say_part(found.agreeing, found.pairs)} pairs consistent"
        for name, found in zip(names, outcomes, strict=True)
    )
    figure = new_figure(traces, x="Share of pairs", y="Verdicts", alt=alt, height=150 + 52 * len(outcomes))
    figure.update_layout(barmode="stack", showlegend=True, legend={"traceorder": "normal"})
    figure.update_xaxes(tickformat=PERCENT, range=[0, 1], showgrid=True)
    figure.update_yaxes(**row_axis(labels))
    for i in set(range(len(outcomes))) - set(at):
        figure.add_annotation(
            text="no pair was judged", x=0.02, xref="x domain", xanchor="left", y=i, yref="y", showarrow=False
        )
    return figure


def slot_map(table: Ints) -> go.Figure:
    """Heat map of the verdicts of each pair by slot: candidate A first (rows) against candidate A second (columns).

    The same slot twice, on the diagonal apart from the tie, is a flip.

    Args:
        table: Pairs at each two verdicts (`slot_table`), 3 x 3 or 5 x 5.
    """
    names = _SLOT_NAMES[len(table)]
    return count_map(
        table, names, names, row_title="Winner, A in slot 1", column_title="Winner, A in slot 2", unit="pairs"
    )


def abilities(fit: BradleyTerry, names: Sequence[str]) -> go.Figure:
    """Bradley-Terry abilities with intervals, the strongest on top, and the slot effect on an axis of its own.

    Args:
        fit: The model; without a fit the figure says why.
        names: The candidates, in the order of the fit.
    """
    known = [i for i, found in enumerate(fit.abilities) if found.value is not None]
    if not known:
        return no_figure(say_reason(fit.abilities[0].reason if fit.abilities else Undefined.NO_DATA))
    ranked = sorted(known, key=lambda i: -(fit.abilities[i].value or 0.0))
    unit = "Ability (log-odds against the reference candidate, which is 0)"
    rows = [estimate_row(names[i], fit.abilities[i], unit=unit) for i in ranked]
    if fit.slot is not None:
        rows.append(estimate_row("first slot", fit.slot, unit="Slot effect (log-odds that slot 1 wins between equals)"))
    return forest(rows, zero=True)


def length_preference(
    difference: Floats, verdicts: Verdicts, *, unit: str, effect: LengthEffect | None = None
) -> go.Figure:
    """Share of verdicts for slot 1 by how much longer the reply in slot 1 is, in bins of equally many verdicts.

    An association: longer replies may also be better ones. Ties and unscored verdicts are left out.

    Args:
        difference: Length of slot 1 minus length of slot 2, shape (rows,).
        verdicts: Verdicts by slot, UNSCORED where there is none.
        unit: Unit of `difference`.
        effect: Fitted on the same `difference` without human verdicts, drawn as a curve.
    """
    used = (verdicts != UNSCORED) & (verdicts != 0) & np.isfinite(difference)
    if not used.any():
        return no_figure(say_reason(Undefined.NO_DATA))
    x, first = difference[used], verdicts[used] > 0
    cuts = np.unique(np.quantile(x, np.linspace(0, 1, _LENGTH_BINS + 1)))
    bins = np.searchsorted(cuts[1:-1], x, side="right")
    chosen = [bins == i for i in np.unique(bins)]
    centres = [float(x[part].mean()) for part in chosen]
    shares = [wilson(int(first[part].sum()), int(part.sum())) for part in chosen]
    traces = [
        interval_lines(centres, [share.interval for share in shares], axis="y"),
        go.Scatter(
            x=centres,
            y=[share.value for share in shares],
            mode="markers",
            name="verdicts for slot 1 with 95% interval",
            marker={"color": BLUE, "size": 10},
            hovertext=[
                f"length difference {x[part].min():.3g} to {x[part].max():.3g}<br>"
                f"slot 1 wins {say_estimate(share, 1, share=True, unit='verdicts')}"
                for part, share in zip(chosen, shares, strict=True)
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        ),
    ]
    if effect is not None and effect.slope.value is not None and effect.slot.value is not None:
        line = np.linspace(x.min(), x.max(), 60)
        traces.append(
            go.Scatter(
                x=line,
                y=1 / (1 + np.exp(-(effect.slot.value + effect.slope.value * line))),
                mode="lines",
                line={"color": VERMILLION, "dash": "dot"},
                name="fitted (an association, not a cause)",
                hoverinfo="skip",
            )
        )
    alt = f"Share of {say_count(len(x))} verdicts for slot 1 by length difference."
    title = f"Length of slot 1 minus length of slot 2 ({escape(unit)})"
    figure = new_figure(traces, x=title, y="Verdicts for slot 1", alt=alt)
    figure.update_layout(showlegend=True)
    figure.update_yaxes(tickformat=PERCENT, range=[-0.03, 1.03])
    mark_value(figure, 0.5, "no preference", axis="y", dash="dot")
    return figure
