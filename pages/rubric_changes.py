"""How did the rubric change, and which labels and scores did that make stale?"""

import streamlit as st

from core.ui import cached, deciding, labelling, url
from core.ui.links import link
from core.ui.page import download, open_page

open_page("Rubric changes", "How did the rubric change, and which labels and scores did that make stale?")
at = cached.snapshot()
rubrics = labelling.list_rubrics(at)
if rubrics.empty:
    st.info("There is no rubric yet. Import a file, or run `make demo`.", icon=":material/info:")
    st.stop()
newest = {row["name"]: row for _, row in rubrics.drop_duplicates("name").iterrows()}
name = url.choose(st.sidebar, "Rubric", "rubric", {key: f"{key} v{row.version}" for key, row in newest.items()})
rubric_id, version = int(newest[name].id), int(newest[name].version)
st.text(f"{name} v{version}")

st.subheader("Change log")
log = deciding.change_log(name)
st.dataframe(log, hide_index=True)
download(log, name="rubric_changes")

st.subheader("Stale labels")
labels = deciding.stale_labels(at, rubric_id)
if labels.empty:
    st.caption("No label was made under an older wording of its criterion.")
else:
    st.dataframe(labels.drop(columns="label_set_id"), hide_index=True)
    sets = {int(row.label_set_id): f"{row.label_set} v{row.version}" for row in labels.itertuples()}
    chosen = int(url.choose(st.container(), "Label set", "stale", {str(key): words for key, words in sets.items()}))
    if st.button("Queue its stale items for rescoring", type="primary"):
        key = deciding.queue_rescoring(chosen, rubric_id)
        st.success("A new version of the label set holds the queue. The old labels stay.", icon=":material/check:")
        link("label", "Label them", labels=key)

st.subheader("Stale scores of judges")
scores = deciding.stale_scores(at, rubric_id)
if scores.empty:
    st.caption("No judge scored under an older wording of its criterion.")
else:
    st.dataframe(scores.drop(columns="judge_id"), hide_index=True)
    st.caption("A judge under the new version is another judge: run it over these items again.")
    download(scores, name="stale_scores")

st.subheader("Make the next version")
st.caption("The old version stays. The change log keeps the date, the author and the reason.")
deciding.show_changes(at, rubric_id)
