"""What did the judge say about this one answer, every time?"""

import numpy as np
import streamlit as st

from core.figures.dispersion import score_vector
from core.figures.words import say_number, say_share
from core.stats.item import item_summary
from core.ui import url
from core.ui.item import list_calls, list_vectors, name_reasons, score_table, select_item, show_call
from core.ui.page import (
    download,
    open_page,
    plain,
    say_outcomes,
    say_scope,
    show_figure,
    show_table,
    show_text,
    show_value,
)
from core.ui.scope import select_scope

MOST_CALLS = 60
SHOWN = {"all": "All calls", "scored": "Calls with a score", "unscored": "Calls without a score"}

open_page("Item", "What did the judge say about this one answer, every time?")
scope = select_scope(pairwise=None, sliced=False)
item = select_item(scope)
say_scope(scope)
st.subheader(plain(item.key), anchor=False)
st.caption(plain(" · ".join(filter(None, [f"slice {item.slice}", item.system, item.system_b]))))
texts = {"Request": item.request, "Reference": item.reference}
texts |= (
    {"Candidate A": item.candidate, "Candidate B": item.candidate_b} if item.pair else {"Candidate": item.candidate}
)
for label, text in texts.items():
    show_text(label, text, none="The source gave none, or it was removed.")

calls = list_calls(scope, item)
levels, gate = np.array(scope.criterion.levels), None if scope.pairwise else scope.gate
vectors = [name_reasons(vector, calls) for vector in list_vectors(scope, item, scope.criterion)]
st.subheader("Every score, in the order of the calls")
say_outcomes(calls.outcome.value_counts().to_dict())
if not vectors:
    st.info("The judge was not asked about this item in the chosen runs.", icon=":material/info:")
    st.stop()
for vector in vectors:
    found = item_summary(vector.counts, levels, scope.gate)
    modes = " and ".join(f"{mode:g}" for mode in found.modes) or "none"
    figures = {
        "SD": (say_number(found.sd), f"score points, {found.n} scores", "Sample SD; it needs two scores."),
        "Range": (say_number(found.score_range, 0), "score points", "Highest less lowest score given."),
        "Mode": (
            modes,
            f"{say_share(found.modal_share)} of the scores",
            "The commonest score; all that tie are named.",
        ),
    }
    if gate is not None:
        bound = f"none seen: up to {say_share(found.minority_bound)} may differ" if found.minority_bound else ""
        figures["Passes"] = (f"{found.passes} of {found.n}", f"at gate {gate:g}", "Scores at and above the gate.")
        figures["Flip probability"] = (
            say_share(found.flip_probability),
            bound or "of two repetitions",
            "Chance that two repetitions disagree at the gate, 2k(n − k) / (n(n − 1)), with k of n passing. Where none "
            "disagreed: the 95% upper bound on the share that would.",
        )
    if vector.order:
        st.markdown(f"**{vector.order}**")
    for place, (label, (value, note, help_text)) in zip(st.columns(len(figures)), figures.items(), strict=True):
        with place:
            show_value(label, value, note, help=help_text)

names = [name for vector in vectors for name in vector.names]
words = [said for vector in vectors for said in vector.words]
codes = np.concatenate([vector.codes for vector in vectors])
groups = [vector.order or "scored" for vector in vectors for _ in vector.codes]
groups = [group if code >= 0 else "no score" for group, code in zip(groups, codes, strict=True)]
kept = calls.drop(columns=["call_id", "raw_reply"])
show_figure(score_vector(codes, names, words, levels, groups=groups, gate=gate), kept, name="item_scores")

st.subheader("Every call, side by side")
shown = url.choose(st.container(width=260), "Show", "calls", SHOWN)
wanted = {"all": calls.value.isna() | True, "scored": calls.value.notna(), "unscored": calls.value.isna()}[shown]
listed = calls[wanted]
with st.container(horizontal=True):
    for call in listed.head(MOST_CALLS).itertuples():
        show_call(call, passes=None if gate is None or call.value is None else bool(call.value >= gate))
if len(listed) > MOST_CALLS:
    st.caption(f"The first {MOST_CALLS} of {len(listed):,} calls; the CSV has all of them.")
download(calls.drop(columns="call_id"), name="item_calls")

st.subheader("The item on every criterion")
show_table(score_table(scope, item))
