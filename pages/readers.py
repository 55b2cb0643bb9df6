"""Where do two people read the same answer differently, and how was it settled?"""

import pandas as pd
import streamlit as st

from core.figures.words import say_estimate, say_part
from core.ui import cached, deciding, labelling, url
from core.ui.links import link
from core.ui.page import download, open_page, show_text

open_page("Readers against readers", "Where do two people read the same answer differently, and how was it settled?")
at = cached.snapshot()
labels = labelling.select_label_set(at, readers=2)
raters = deciding.list_raters(at, labels) if labels else []
if labels is None or len(raters) < 2:
    st.info(
        "Two readers are needed: label the same items under two names on the Label page, import labels with a column "
        "for the rater, or run `make demo`.",
        icon=":material/info:",
    )
    st.stop()
first = url.choose(st.sidebar, "First reader", "first", {name: name or "not named" for name in raters})
others = {name: name or "not named" for name in raters if name != first}
second = url.choose(st.sidebar, "Second reader", "second", others)
st.text(f"{labels.name} under {labels.rubric} · {first or 'not named'} against {second or 'not named'}")
if labels.simulated:
    st.caption(":orange-badge[simulated]")
if touched := deciding.newer_versions_touch(at, labels.rubric_id):
    st.warning("Some of these labels are stale: the rubric changed after they were made.", icon=":material/history:")
    st.text("\n".join(f"{key}: {words}" for key, words in touched.items()))
    link("rubric_changes", "See what changed and queue them", rubric=labels.rubric_name)

rows = pd.DataFrame(
    [
        {
            "criterion": row.criterion,
            "same label": say_part(row.same, row.both),
            "kappa": say_estimate(row.kappa),
            "quadratic kappa": say_estimate(row.quadratic),
            "notes": "; ".join(row.kappa.notes),
            "rubric": "stale" if row.criterion in touched else "current",
        }
        for row in deciding.compare_readers(at, labels, first, second)
    ]
)
st.dataframe(rows, hide_index=True)
download(rows, name="readers")
if deciding.DECISION not in set(rows.criterion):
    st.warning("The rubric's ready rule cannot be read, so decisions are not compared.", icon=":material/rule:")

differences = deciding.list_differences(at, labels, first, second)
still_open = int((differences.final == "open").sum())
st.subheader(f"Differences: {len(differences):,}, of which {still_open:,} are open")
if differences.empty:
    st.info("The two gave the same label wherever both labelled.", icon=":material/check:")
    st.stop()
shown = differences.drop(columns=["item_id", "criterion_id"])
st.dataframe(shown, hide_index=True)
download(shown, name="differences")

st.subheader("Settle a difference")
keys = {
    f"{row.item_id}:{row.criterion}": f"{row.item} · {row.criterion}: {row.first} against {row.second} · {row.final}"
    for row in differences.itertuples()
}
chosen = url.choose(st.container(), "Difference", "difference", keys)
difference = differences.iloc[list(keys).index(chosen)]
item = labelling.get_item(int(difference.item_id))
texts, form = st.columns([3, 2])
with texts:
    show_text("Request", item.request)
    show_text("Reference", item.reference)
    show_text("Candidate", item.candidate)
with form:
    show_text(f"{first or 'not named'}: {difference['first']}", difference.first_reason, none="no reason given")
    show_text(f"{second or 'not named'}: {difference['second']}", difference.second_reason, none="no reason given")
    if difference.final != "open":
        show_text(f"Final label {difference.final}, by {difference.author}", difference.note)
    deciding.show_adjudication(at, labels, difference)
