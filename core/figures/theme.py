"""One look for every figure: colours, template, axis titles, marked lines, and words where nothing can be drawn.

Pages show figures with `st.plotly_chart(figure, theme="streamlit", config=CONFIG, alt=alt_text(figure))`, which paints
the background in the app's light or dark theme. So a colour here must read on both.
"""

import re
from collections.abc import Iterable, Sequence
from html import escape as escape_html
from textwrap import wrap
from typing import Any, Literal, NamedTuple

import numpy as np
import plotly.graph_objects as go

from core.figures.words import say_number
from core.stats.common import Floats, Interval

# Okabe and Ito (2008), without the three that fall below 3:1 on white, and a grey for what is not data.
BLUE = "#0072B2"
VERMILLION = "#D55E00"
GREEN = "#009E73"
PURPLE = "#CC79A7"
GREY = "#808080"

SERIES = (BLUE, VERMILLION, GREEN, PURPLE, GREY)
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross")
PATTERNS = ("", "/", ".", "x", "-")
PALE_BLUE = "rgba(0, 114, 178, 0.35)"
SHADE = "rgba(128, 128, 128, 0.18)"

TEXT = "#000037"
"""Streamlit's placeholder for its strongest text colour, light or dark by theme; near black where nothing replaces it.

Its own choice for ticks and axis titles stays below 4.5:1 on white.
"""

PERCENT = ".1~%"
HEIGHT = 360

CONFIG: dict[str, Any] = {"displaylogo": False, "scrollZoom": False, "modeBarButtons": [["toImage"]]}
"""For `st.plotly_chart(config=...)`: the only button saves the figure as an image."""

MOST_TICKS = 21

_LABEL_LENGTH = 40
_WRAP_AT = 52
# Line breaks and other control characters, and the marks that turn the reading direction of what follows.
_INVISIBLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")

TEMPLATE = go.layout.Template(
    layout={
        "colorway": SERIES,
        "hoverlabel": {"align": "left", "namelength": -1},
        "hovermode": "closest",
        "bargap": 0.15,
        "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0, "xanchor": "left"},
        "xaxis": {"automargin": True, "zeroline": False},
        "yaxis": {"automargin": True, "zeroline": False},
    }
)


class Look(NamedTuple):
    """Colour, symbol and pattern of one series, so that none depends on colour alone."""

    colour: str
    symbol: str
    pattern: str


def look(index: int) -> Look:
    """The look of the series at `index`; symbols and patterns shift when the colours start again."""
    turn = index // len(SERIES)
    return Look(
        SERIES[index % len(SERIES)],
        SYMBOLS[(index + turn) % len(SYMBOLS)],
        PATTERNS[(index + turn) % len(PATTERNS)],
    )


def escape(text: object, *, longest: int = _LABEL_LENGTH) -> str:
    """Make a name or key safe as plotly text, which would otherwise read tags, entities and formulas in it.

    Args:
        text: Item key, judge name or anything else that the program did not write itself.
        longest: Characters after which it is cut with an ellipsis.

    >>> escape("<b>r01</b> $x$")
    '&lt;b&gt;r01&lt;/b&gt; &#36;x&#36;'
    """
    plain = " ".join(_INVISIBLE.sub(" ", str(text)).split())
    cut = plain if len(plain) <= longest else plain[: longest - 1].rstrip() + "…"
    return escape_html(cut).replace("$", "&#36;")


def new_figure(traces: Iterable[Any], *, x: str, y: str, alt: str, height: int = HEIGHT) -> go.Figure:
    """A figure with axis titles.

    Args:
        traces: Plotly traces.
        x: Title of the x axis, with its unit.
        y: Title of the y axis.
        alt: What the figure shows, for readers who do not see it.
        height: Height in pixels.
    """
    figure = go.Figure(list(traces))
    figure.update_xaxes(title={"text": x, "standoff": 12})
    figure.update_yaxes(title={"text": y, "standoff": 12})
    dress(figure, alt=alt, height=height)
    return figure


def dress(figure: go.Figure, *, alt: str, height: int) -> None:
    """Give a figure, with the axes it has, what all figures share; arguments as `new_figure`."""
    text = {"color": TEXT}
    figure.update_layout(
        template=TEMPLATE,
        height=height,
        margin={"l": 8, "r": 16, "t": 28, "b": 8},
        dragmode=False,
        meta={"alt": alt},
        font=text,
        hoverlabel={"font": text},
    )
    figure.update_xaxes(tickfont=text, title={"font": text})
    figure.update_yaxes(tickfont=text, title={"font": text})


def padded(values: Iterable[float | None], *, share: float = 0.06) -> tuple[float, float]:
    """Range of an axis with some room beside the outermost values.

    Args:
        values: What the axis must hold, at least one figure; None is passed over.
        share: Room on each side, as a share of the extent.
    """
    known = [value for value in values if value is not None]
    low, high = min(known), max(known)
    pad = share * (high - low) or share * abs(high) or share
    return low - pad, high + pad


def count_axis(figure: go.Figure, highest: float) -> None:
    """Start the y axis of counts at 0, without ticks between whole numbers."""
    figure.update_yaxes(rangemode="tozero", **({"dtick": 1} if highest <= 5 else {}))


def interval_ends(interval: Interval | None) -> tuple[float | None, float | None]:
    """Both limits, None where there are none."""
    return (None, None) if interval is None else (interval.low, interval.high)


def alt_text(figure: go.Figure) -> str:
    """What the figure shows, in words."""
    return str(figure.layout.meta["alt"])


def no_figure(words: str) -> go.Figure:
    """A figure that says why there is nothing to draw."""
    figure = new_figure([], x="", y="", alt=words, height=180)
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    figure.add_annotation(
        text=broken(words), x=0.5, y=0.5, xref="paper", yref="paper", showarrow=False, font={"size": 14}
    )
    return figure


def broken(words: str, *, at: int = _WRAP_AT) -> str:
    """Words over several lines, since plotly does not wrap; escaped."""
    return "<br>".join(escape(line, longest=at + 1) for line in wrap(words, at))


def mark_value(
    figure: go.Figure,
    value: float,
    words: str,
    *,
    axis: Literal["x", "y"] = "x",
    dash: str = "dash",
    span: tuple[float, float] | None = None,
    line: int = 0,
) -> None:
    """Draw a line across the figure at a value, with its meaning in words at the line's end.

    Args:
        figure: The figure to draw on.
        value: Where, on the axis.
        words: What the line means.
        axis: Axis the value stands on.
        dash: Style of the line.
        span: Range of the axis, so that words near an edge stay inside.
        line: Text line above the plot, for marks that would cover each other.
    """
    if axis == "y":
        figure.add_hline(y=value, line={"color": GREY, "dash": dash, "width": 2})
        figure.add_annotation(text=escape(words), x=1, xref="paper", xanchor="right", y=value, yanchor="bottom")
    else:
        figure.add_vline(x=value, line={"color": GREY, "dash": dash, "width": 2})
        figure.add_annotation(
            text=escape(words),
            x=value,
            xanchor=_anchor(value, span),
            y=1,
            yref="paper",
            yanchor="bottom",
            yshift=18 * line,
        )
        figure.update_layout(margin={"t": max(figure.layout.margin.t, 28 + 18 * line)})
    figure.layout.annotations[-1].showarrow = False


def note(figure: go.Figure, words: str) -> None:
    """Say something about the whole figure, above it at the left."""
    figure.add_annotation(
        text=broken(words, at=90),
        x=0,
        y=1,
        xref="paper",
        yref="paper",
        xanchor="left",
        yanchor="bottom",
        align="left",
        showarrow=False,
    )


def level_names(levels: Floats) -> list[str]:
    """Level values as short as they can be written exactly enough to tell them apart."""
    return [f"{value:g}" for value in levels.tolist()]


def named_ticks(names: Sequence[str], positions: Sequence[float] | Floats | None = None) -> dict[str, Any]:
    """Axis settings that put names at positions (0, 1, 2, ... by default), thinned out when there are too many."""
    places = list(range(len(names))) if positions is None else [float(place) for place in positions]
    every = -(-len(names) // MOST_TICKS)
    return {"tickmode": "array", "tickvals": places[::every], "ticktext": list(names)[::every]}


def row_axis(names: Sequence[str]) -> dict[str, Any]:
    """Axis settings for one row a name, the first on top; every row keeps its name."""
    return {
        "tickmode": "array",
        "tickvals": list(range(len(names))),
        "ticktext": list(names),
        "range": [len(names) - 0.5, -0.5],
        "showgrid": False,
    }


def interval_lines(
    centres: Sequence[float], intervals: Sequence[Interval | None], *, axis: Literal["x", "y"], colour: str = GREY
) -> Any:
    """A trace with one line from limit to limit for each interval that has limits.

    Args:
        centres: Position of each on the other axis.
        intervals: The intervals.
        axis: Axis the limits stand on.
        colour: Colour of the lines.
    """
    along: list[float | None] = []
    across: list[float | None] = []
    for centre, interval in zip(centres, intervals, strict=True):
        if interval is not None and interval.low is not None and interval.high is not None:
            along += [interval.low, interval.high, None]
            across += [centre, centre, None]
    places = {"x": along, "y": across} if axis == "x" else {"x": across, "y": along}
    return go.Scatter(
        **places, mode="lines", line={"color": colour, "width": 3}, hoverinfo="skip", showlegend=False, name="interval"
    )


def nice_ticks(highest: float) -> Floats:
    """About five round values from 0 to `highest`."""
    rough = highest / 5
    power = 10.0 ** np.floor(np.log10(rough))
    step = power * next(factor for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    return np.asarray(np.arange(0, highest + step / 1e6, step))


def short(value: float) -> str:
    """A tick's or bin's limit, without trailing zeros."""
    text = say_number(value, 3)
    return text.rstrip("0").rstrip(".") if "." in text and text[0] not in "<>" else text


def _anchor(value: float, span: tuple[float, float] | None) -> str:
    if span is None or span[0] == span[1]:
        return "center"
    place = (value - span[0]) / (span[1] - span[0])
    return "left" if place < 0.15 else "right" if place > 0.85 else "center"
