"""The parts every page is made of: its opening, its denominators, figures with their table and download."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from sqlalchemy.exc import OperationalError
from streamlit.navigation.page import StreamlitPage
from streamlit.runtime.pages_manager import PagesManager

from core.stats.common import Estimate
from core.store.contents import to_csv
from core.ui import cached
from core.ui.scope import Scope

MOST_ROWS = 1_000
"""Rows of a table that a browser is sent; the CSV has all of them."""

OUTCOME_WORDS = {
    "scored": "scored",
    "copied": "copied from another reply",
    "refusal": "refused",
    "truncated": "cut off",
    "not_json": "not JSON",
    "missing_criterion": "criterion missing",
    "out_of_range": "not a level of the rubric",
    "wrong_type": "score of the wrong type",
    "no_rationale": "no rationale",
    "request_error": "request failed",
    "verdict_missing": "verdict missing",
    "conflicting_verdicts": "verdicts contradict each other",
    "cancelled": "cancelled",
}
"""What came of a call, as a reader would say it."""

ITEM_COLUMNS = {
    "item": st.column_config.TextColumn("Item", width="medium", help="Key of the item in its corpus."),
    "slice": st.column_config.TextColumn("Slice", help="Why the item is in its corpus."),
    "stability": st.column_config.TextColumn("Stability", help="Whether its repetitions agree; defined on this page."),
    "scored": st.column_config.NumberColumn("Scored", help="Usable, independent scores."),
    "passes": st.column_config.NumberColumn("Passes", help="Scores at and above the gate."),
    "mean": st.column_config.NumberColumn("Mean", format="%.3f", help="Of the scores."),
    "sd": st.column_config.NumberColumn("SD", format="%.3f", width=96, help="Sample SD of the scores, score points."),
    "range": st.column_config.NumberColumn("Range", format="%g", help="Highest less lowest score."),
    "modal_share": st.column_config.NumberColumn(
        "Modal share", format="percent", help="Share of the scores at the commonest level."
    ),
    "pass_rate": st.column_config.NumberColumn("Pass rate", format="percent", help="Passes ÷ scored."),
    "flip_probability": st.column_config.NumberColumn(
        "Flip probability",
        format="percent",
        width=120,
        help="Chance that two repetitions disagree at the gate: 2k(n − k) / (n(n − 1)), with k of n passing.",
    ),
}
"""Titles, formats and help of the columns that tables of items share."""

ROW_OR_CELL: tuple[Literal["single-row"], Literal["single-cell"]] = ("single-row", "single-cell")
"""Selection of a table whose rows lead on: a click anywhere in the row counts."""

_CHART = {"displaylogo": False, "scrollZoom": False, "modeBarButtons": [["toImage"]]}


def open_page(title: str, question: str) -> None:
    """Title and question of a page; a store that cannot be reached ends it with what to do.

    The first request after a start, if it is a deep link, would run the page alone, without app.py and its navigation:
    until `st.navigation` was called once, Streamlit takes the folder of pages for its own. Then it starts over.
    """
    if PagesManager.uses_pages_directory:
        PagesManager.uses_pages_directory = False
        st.rerun()
    st.set_page_config(page_title=f"{title} · Evenhand", page_icon="⚖️", layout="wide")
    st.title(title)
    st.caption(question)
    try:
        cached.engine()
    except OperationalError as error:
        st.error(
            f"The store cannot be opened: {str(error.orig).strip()}. "
            "Check EVENHAND_DATABASE_URL or EVENHAND_DATABASE_PATH, then reload.",
            icon=":material/database_off:",
        )
        st.stop()


def run(page: StreamlitPage) -> None:
    """Run the chosen page; a store that stops answering on the way is said in words."""
    try:
        page.run()
    except OperationalError as error:
        st.error(
            f"The store did not answer: {str(error.orig).strip()}. Nothing was half-written. Another program may be "
            "writing into it for long: wait a moment, then try again.",
            icon=":material/database_off:",
        )


def say_scope(scope: Scope) -> None:
    """Which judge, corpus and criterion the figures below are about."""
    badge = " :orange-badge[simulated]" if scope.simulated else ""
    where = (
        scope.corpus if scope.selection.item_slice is None else f"{scope.corpus}, slice {scope.selection.item_slice}"
    )
    gate = "" if scope.pairwise else f" · gate {scope.gate:g}"
    st.markdown(f"**{plain(scope.judge)}**{badge}  \n{plain(where)} · {plain(scope.criterion.key)}{gate}")


def say_outcomes(outcomes: Mapping[str, int]) -> None:
    """Attempted, scored and unscored by reason: the denominator of everything below."""
    attempted = sum(outcomes.values())
    scored = outcomes.get("scored", 0)
    rest = ", ".join(
        f"{calls:,} {outcome_words(reason)}" for reason, calls in sorted(outcomes.items()) if reason != "scored"
    )
    st.caption(f"{attempted:,} calls attempted · {scored:,} scored · unscored or not counted: {rest or 'none'}")


def show_text(label: str, text: str | None, *, none: str = "not given") -> None:
    """A text that came from outside, as it stands; nothing in it is acted on."""
    with st.container(border=True):
        st.caption(label)
        if text:
            st.text(text)
        else:
            st.caption(f"*{none}*")


def outcome_words(outcome: str) -> str:
    """What came of a call, in words; an outcome without words is its own name."""
    return OUTCOME_WORDS.get(outcome, outcome.replace("_", " "))


def show_figure(
    figure: go.Figure,
    table: pd.DataFrame,
    *,
    name: str,
    key: str | None = None,
    on_click: Callable[[tuple[int, ...]], None] | None = None,
) -> None:
    """A figure with the table behind it and its CSV download.

    Args:
        figure: The figure.
        table: The figures drawn in it.
        name: File name of the CSV and key of the widgets.
        key: Key of the chart where it is not the name.
        on_click: Called with the customdata of a point that was clicked.
    """
    chart = key or name
    st.plotly_chart(
        figure,
        key=chart,
        config=_CHART,
        alt=_alt(figure),
        on_select="ignore" if on_click is None else lambda: _pass_click(chart, on_click),
        selection_mode="points",
    )
    with st.expander("Table and download"):
        show_table(table)
        download(table, name=name)


def show_clickable(figure: go.Figure, *, key: str) -> int | None:
    """A figure without a table of its own; returns the row that the clicked point carries as customdata, else None."""
    event = st.plotly_chart(
        figure, key=key, config=_CHART, alt=_alt(figure), on_select="rerun", selection_mode="points"
    )
    carried = _carried(event.selection.points)
    return carried[0] if carried else None


def _alt(figure: go.Figure) -> str | None:
    return str((figure.layout.meta or {}).get("alt", "")) or None


def show_table(table: pd.DataFrame) -> None:
    """A table to read; beyond `MOST_ROWS` rows it says how many are left to the download."""
    st.dataframe(table.head(MOST_ROWS), hide_index=True, placeholder="undefined")
    _say_cut(table)


def show_items(table: pd.DataFrame, scope: Scope, *, name: str, column_config: Mapping[str, Any] | None = None) -> None:
    """A table of items with its download; a click on a row opens the item's page.

    Args:
        table: One row an item, its key in the column "item".
        scope: What the page looks at; the item's page opens on the same.
        name: File name of the CSV and key of the table.
        column_config: Titles, formats and help of the columns.
    """
    if table.empty:
        st.caption("None.")
        return
    event = st.dataframe(
        table.head(MOST_ROWS),
        key=f"items_{name}",
        hide_index=True,
        on_select="rerun",
        selection_mode=ROW_OR_CELL,
        placeholder="undefined",
        column_config=dict(column_config or {}),
    )
    _say_cut(table)
    download(table, name=name)
    row = clicked_row(event)
    if row is not None:
        open_item(scope, str(table["item"].iloc[row]))


def clicked_row(event: Any) -> int | None:
    """The row of a table in which a box or a cell was clicked, whatever the table is sorted by."""
    if event.selection.rows:
        return int(event.selection.rows[0])
    return int(event.selection.cells[0][0]) if event.selection.cells else None


def open_item(scope: Scope, key: str) -> None:
    """Go to an item's page, on the same judge, criterion and gate."""
    st.switch_page("pages/item.py", query_params=scope.address(item=key))


def _pass_click(chart: str, on_click: Callable[[tuple[int, ...]], None]) -> None:
    """Hand on the customdata of the point that was clicked; taking a selection back hands on nothing."""
    if carried := _carried(st.session_state[chart].selection.points):
        on_click(carried)


def _carried(points: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    """The customdata of the first point; a row of several numbers comes from the browser as a numbered mapping."""
    found = points[0].get("customdata") if points else None
    if found is None:
        return ()
    return tuple(int(part) for part in np.ravel(list(found.values()) if isinstance(found, Mapping) else found))


def _say_cut(table: pd.DataFrame) -> None:
    if len(table) > MOST_ROWS:
        st.caption(f"The first {MOST_ROWS:,} of {len(table):,} rows; the CSV has all of them.")


def download(table: pd.DataFrame, *, name: str) -> None:
    """A CSV of `table`, made only when asked for."""
    st.download_button(
        "Download CSV",
        data=lambda: to_csv(table).encode(),
        file_name=f"{name}.csv",
        mime="text/csv",
        key=f"download_{name}",
        icon=":material/download:",
        on_click="ignore",
    )


def show_metric(label: str, estimate: Estimate, words: str, *, help: str) -> None:
    """One figure large, with its interval and n below; undefined is said in words."""
    value, _, rest = words.partition(" (")
    with st.container(border=True):
        if estimate.value is None:
            st.markdown(f"{label}  \n*{words.partition(' (')[0]}*", help=help)
            return
        st.metric(label, value, help=help)
        st.caption(rest.rstrip(")"))
        for note in estimate.notes:
            st.caption(note)


def show_value(label: str, value: str, note: str, *, help: str) -> None:
    """One figure large that has no interval, with what it rests on below."""
    with st.container(border=True):
        st.metric(label, value, help=help)
        st.caption(note)


def plain(text: str) -> str:
    """Text that came from outside, with everything Markdown would act on escaped."""
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]()#+-.!|<>$:~" else sign for sign in text)
