"""The parts every page is made of: its opening, its denominators, figures with their table and download."""

from collections.abc import Mapping

import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from sqlalchemy.exc import OperationalError

from core.stats.common import Estimate
from core.ui import cached
from core.ui.scope import Scope

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def open_page(title: str, question: str) -> None:
    """Title and question of a page; a store that cannot be reached ends it with what to do.

    Page settings are made here as well as in app.py: the first request after a start, if it is a deep link, runs the
    page alone.
    """
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


def say_scope(scope: Scope) -> None:
    """Which judge, corpus and criterion the figures below are about."""
    badge = " :orange-badge[simulated]" if scope.simulated else ""
    where = (
        scope.corpus if scope.selection.item_slice is None else f"{scope.corpus}, slice {scope.selection.item_slice}"
    )
    st.markdown(
        f"**{plain(scope.judge)}**{badge}  \n{plain(where)} · {plain(scope.criterion.key)} · gate {scope.gate:g}"
    )


def say_outcomes(outcomes: Mapping[str, int]) -> None:
    """Attempted, scored and unscored by reason: the denominator of everything below."""
    attempted = sum(outcomes.values())
    scored = outcomes.get("scored", 0)
    rest = ", ".join(f"{calls:,} {reason}" for reason, calls in sorted(outcomes.items()) if reason != "scored")
    st.caption(f"{attempted:,} calls attempted · {scored:,} scored · unscored or not counted: {rest or 'none'}")


def show_figure(figure: go.Figure, table: pd.DataFrame, *, name: str, key: str | None = None) -> None:
    """A figure with the table behind it and its CSV download."""
    st.plotly_chart(figure, key=key or name, config={"displaylogo": False})
    with st.expander("Table and download"):
        st.dataframe(table, hide_index=True)
        download(table, name=name)


def download(table: pd.DataFrame, *, name: str) -> None:
    """A CSV of `table`, made only when asked for."""
    st.download_button(
        "Download CSV",
        data=lambda: to_csv(table),
        file_name=f"{name}.csv",
        mime="text/csv",
        key=f"download_{name}",
        icon=":material/download:",
        on_click="ignore",
    )


def to_csv(table: pd.DataFrame) -> bytes:
    """A table as CSV in which no cell of untrusted text can start a spreadsheet formula."""
    text = table.select_dtypes(include=["object", "string"]).columns
    safe = table.assign(**{column: [_defused(value) for value in table[column]] for column in text})
    csv: str = safe.to_csv(index=False)
    return csv.encode()


def show_metric(label: str, estimate: Estimate, words: str, *, help: str) -> None:
    """One figure large, with its interval and n below; undefined is said in words."""
    value, _, rest = words.partition(" (")
    with st.container(border=True):
        if estimate.value is None:
            st.markdown(f"{label}  \n*undefined: {words}*", help=help)
            return
        st.metric(label, value, help=help)
        st.caption(rest.rstrip(")"))
        for note in estimate.notes:
            st.caption(note)


def _defused(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value


def plain(text: str) -> str:
    """Text that came from outside, with everything Markdown would act on escaped."""
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]()#+-.!|<>$:~" else sign for sign in text)
