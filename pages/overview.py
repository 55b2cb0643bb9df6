"""Which judges are there, and how much does each one wobble?"""

import streamlit as st

from core.ui import cached, url
from core.ui.overview import FIRST, criterion_keys, overview
from core.ui.page import download, open_page
from core.ui.scope import say_empty

SHOWN = [
    "judge",
    "within_item_sd",
    "flip_rate",
    "flip_interval",
    "alpha",
    "items",
    "attempted",
    "scored",
    "unscored",
    "runs",
    "newest_run",
    "corpus",
    "criterion",
    "source",
    "undefined",
]

open_page("Overview", "Which judges are there, and how much does each one wobble?")
at = cached.snapshot()
if cached.judges(at).empty:
    say_empty("judge")

choices = {FIRST: "Each rubric's first criterion"} | {key: key for key in criterion_keys(at)}
criterion = url.choose(st.sidebar, "Criterion", "overview", choices, help="Every figure below is for this criterion.")
table = overview(at, criterion)

st.markdown("Choose a row to see its items.")
column = st.column_config
event = st.dataframe(
    table,
    key="overview_table",
    hide_index=True,
    on_select="rerun",
    selection_mode="single-row",
    placeholder="undefined",
    column_order=SHOWN,
    column_config={
        "judge": column.TextColumn(
            "Judge", width="medium", help="Fingerprint in words: name, model snapshot, prompt, rubric version."
        ),
        "corpus": column.TextColumn("Corpus", help="The frozen, versioned set of items it was run over."),
        "criterion": column.TextColumn("Criterion", help="What was scored."),
        "runs": column.NumberColumn("Runs", help="Batches of calls."),
        "items": column.NumberColumn("Items", format="localized", help="Items with at least one usable score."),
        "attempted": column.NumberColumn("Attempted", format="localized", help="Calls made."),
        "scored": column.NumberColumn("Scored", format="localized", help="Calls with a usable, independent score."),
        "unscored": column.TextColumn("Unscored", help="Calls without one, by reason; never counted as scores."),
        "within_item_sd": column.NumberColumn(
            "Within-item SD",
            format="%.3f",
            help="Spread of repeated scores of one item, in score points: √(Σ squares within items ÷ Σ(n − 1)).",
        ),
        "flip_rate": column.NumberColumn(
            "Flip rate",
            format="percent",
            help="Chance that two repetitions of an item fall on different sides of the gate, mean over items.",
        ),
        "flip_interval": column.TextColumn("95% interval", help="Of the flip rate; items are resampled, 2,000 draws."),
        "alpha": column.NumberColumn(
            "Alpha",
            format="%.3f",
            help="Krippendorff's alpha (ordinal) of the repetitions with one another: 1 is perfect, 0 is chance.",
        ),
        "undefined": column.TextColumn("Why undefined", help="Why a figure in this row has no value."),
        "newest_run": column.DatetimeColumn("Newest run (UTC)", format="YYYY-MM-DD HH:mm", timezone="UTC"),
        "source": column.TextColumn("Source", help="Where the scores came from; simulated ones are made by a program."),
    },
)
download(table, name="overview")
if event.selection.rows:
    row = table.iloc[event.selection.rows[0]]
    if not row.pairwise:
        query = {"corpus": row.corpus_key, "judge": row.judge_key, "criterion": row.criterion}
        st.switch_page("pages/dispersion.py", query_params=query)
