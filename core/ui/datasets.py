"""What the store holds, as lists: corpora, rubrics, imports, label sets, and a judge's scores to take away."""

from typing import Any

import pandas as pd
import streamlit as st

from core.store import contents, queries
from core.store.engine import reading
from core.ui import cached, rubrics, url
from core.ui.cached import FEW, Snapshot
from core.ui.page import download
from core.ui.scope import judge_words

_COUNTS = {"items", "labels", "rows", "imported", "set_aside"}
_LAST = ("sha256", "policy")


@st.cache_data(max_entries=FEW, show_spinner=False)
def imports(at: Snapshot) -> pd.DataFrame:  # noqa: ARG001 - the key
    """`queries.list_imports`."""
    with reading(cached.engine()) as session:
        return queries.list_imports(session=session)


@st.cache_data(max_entries=FEW, show_spinner="Counting labels…")
def label_sets(at: Snapshot) -> pd.DataFrame:  # noqa: ARG001 - the key
    """`contents.list_label_sets`."""
    with reading(cached.engine()) as session:
        return contents.list_label_sets(session=session)


@st.cache_data(max_entries=FEW, show_spinner=False)
def set_aside(at: Snapshot, *, import_file_id: int) -> pd.DataFrame:  # noqa: ARG001 - the key
    """`queries.list_set_aside`."""
    with reading(cached.engine()) as session:
        return queries.list_set_aside(session=session, import_file_id=import_file_id)


def show_store(at: Snapshot) -> None:
    """Every list, one under the other; an empty store says what to do."""
    if cached.corpora(at).empty and rubrics.stored(at).empty:
        st.info(
            "Nothing is stored yet. Bring in a file above, or run `make demo` to load the simulated history.",
            icon=":material/info:",
        )
        return
    _show_corpora(at)
    _show_rubrics(at)
    _show_imports(at)
    _show_label_sets(at)
    _show_scores(at)


def _time(label: str) -> Any:
    return st.column_config.DatetimeColumn(f"{label} (UTC)", format="YYYY-MM-DD HH:mm", timezone="UTC")


def _show_corpora(at: Snapshot) -> None:
    st.subheader("Corpora")
    corpora = cached.corpora(at).drop(columns="id")
    _show(corpora, "corpora", help_text={"sha256": "Hash over the items' keys and texts: equal hashes, equal items."})


def _show_rubrics(at: Snapshot) -> None:
    st.subheader("Rubrics")
    _show(
        rubrics.stored(at).drop(columns="id"),
        "rubrics",
        help_text={"sha256": "Hash over everything a judge sees of it."},
    )
    if rubrics.stored(at).empty:
        return
    chosen = url.choose(st.container(), "Levels and change log of", "rubric", rubrics.words(at))
    rubrics.show_levels(at, int(chosen))
    st.dataframe(
        rubrics.changes(at, rubric_id=int(chosen)), hide_index=True, column_config={"created_at": _time("changed")}
    )


def _show_imports(at: Snapshot) -> None:
    st.subheader("Imports")
    files = imports(at)
    if files.empty:
        st.caption("No file has been imported.")
        return
    _show(files.drop(columns="id"), "imports", help_text={"sha256": "Hash of the file's content, unpacked."})
    words = {
        str(key): f"{name} · {at_time:%Y-%m-%d %H:%M} UTC"
        for key, name, at_time in zip(files.id, files["name"], files.created_at, strict=True)
    }
    chosen = url.choose(st.container(), "Lines set aside from", "file", words)
    lines = set_aside(at, import_file_id=int(chosen))
    if lines.empty:
        st.caption("Every line of this file was imported.")
        return
    st.dataframe(lines, hide_index=True)
    download(lines, name=f"set_aside_{chosen}")


def _show_label_sets(at: Snapshot) -> None:
    st.subheader("Label sets")
    held = label_sets(at)
    if held.empty:
        st.caption("No labels yet: they come with a file that has a label column, or from the labelling page.")
        return
    _show(held.drop(columns="id"), "label_sets", help_text={"policy": "The written policy they were made under."})


def _show_scores(at: Snapshot) -> None:
    judges = cached.judges(at)
    if judges.empty:
        return
    st.subheader("Scores to take away")
    by_key = {f"{row.judge_id}-{row.corpus_id}": row for _, row in judges.iterrows()}
    words = {key: f"{judge_words(row)} · {row.corpus} v{row.corpus_version}" for key, row in by_key.items()}
    chosen = by_key[url.choose(st.container(), "Scores of", "scores", words)]
    judge_id, corpus_id = int(chosen.judge_id), int(chosen.corpus_id)
    st.download_button(
        "Download scores as CSV",
        data=lambda: _scores(judge_id, corpus_id),
        file_name=f"scores_judge_{judge_id}_corpus_{corpus_id}.csv",
        mime="text/csv",
        icon=":material/download:",
        on_click="ignore",
    )
    st.caption(f"One row a score, unscored ones with their reason; {contents.MOST_EXPORTED:,} rows at most, no texts.")


def _scores(judge_id: int, corpus_id: int) -> bytes:
    with reading(cached.engine()) as session:
        scores = contents.list_scores(session=session, judge_id=judge_id, corpus_id=corpus_id)
    return contents.to_csv(scores).encode()


def _show(table: pd.DataFrame, name: str, *, help_text: dict[str, str]) -> None:
    """A list with its download."""
    column = st.column_config
    columns: dict[str, Any] = {key: column.TextColumn(key, help=words) for key, words in help_text.items()}
    columns |= {key: column.NumberColumn(key, format="localized") for key in _COUNTS & set(table.columns)}
    st.dataframe(
        table,
        hide_index=True,
        placeholder="",
        column_order=sorted(table.columns, key=lambda key: key in _LAST),
        column_config=columns | {"created_at": _time("stored")},
    )
    download(table, name=name)
