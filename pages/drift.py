"""Did the judge change, and what moved it?"""

import numpy as np
import pandas as pd
import streamlit as st

from core.figures.drift import Mark, change_histogram, say_drift, time_line
from core.figures.levels import level_bars
from core.figures.words import say_count, say_estimate, say_number, say_p, say_part, say_share
from core.ui import drift
from core.ui.comparing import select_comparison
from core.ui.page import download, open_page, plain, show_figure, show_metric

CHANGE_COLUMNS = {
    "candidate": st.column_config.TextColumn("Candidate", width="small"),
    "change": st.column_config.NumberColumn("Change", format="%+.3f", help="Mean of the items' changes, in points."),
    "low": st.column_config.NumberColumn("95% low", format="%+.3f", help="Items are resampled, 2,000 draws."),
    "high": st.column_config.NumberColumn("95% high", format="%+.3f"),
    "gained": st.column_config.NumberColumn("Fail → pass", help="By the majority of an item's repetitions."),
    "lost": st.column_config.NumberColumn("Pass → fail"),
    "p_mean": st.column_config.NumberColumn("p of the means", format="%.2g", help="Wilcoxon signed-rank test."),
    "adjusted_mean": st.column_config.NumberColumn("adjusted", format="%.2g", help="Over both tests of every row."),
    "p_gate": st.column_config.NumberColumn("p at the gate", format="%.2g", help="Exact McNemar test."),
    "adjusted_gate": st.column_config.NumberColumn("adjusted ", format="%.2g", help="Over both tests of every row."),
}

open_page("Drift", "Did the judge change, and what moved it?")
choice = select_comparison()
comparison, gate = choice.comparison, choice.gate
found = drift.moved(comparison, gate, choice.item_slice)
why = drift.reasons(choice.at, comparison)
badge = " :orange-badge[simulated]" if choice.simulated else ""
where = choice.corpus if choice.item_slice is None else f"{choice.corpus}, slice {choice.item_slice}"
st.markdown(
    f"**{plain(choice.before)}** → **{plain(choice.after)}**{badge}  \n"
    f"{plain(where)} · {plain(choice.criterion.key)} · gate {gate:g}"
)
for words in choice.marked:
    st.warning(f"Compared across versions: {plain(words)}.", icon=":material/compare_arrows:")

st.subheader("Verdict")
st.markdown(plain(say_drift(found.verdict, found.change, parts=why.parts, refused=len(why.changed))))
change, gates, floor = found.change, found.gates, found.floor
n = change.change.n
figures = {
    "Mean change": (change.change, say_estimate(change.change), "Repetitions are averaged inside the item first."),
    "Pass rate change": (
        gates.pass_rate.difference,
        say_estimate(gates.pass_rate.difference, 1, share=True),
        "Items that gained their pass minus those that lost it, by the majority of the repetitions.",
    ),
    "Quadratic kappa": (found.kappa, say_estimate(found.kappa), "Between a repetition of one side and of the other."),
    "Rank correlation": (found.rank, say_estimate(found.rank), "Spearman's, of the item means."),
}
for place, (label, (estimate, said, help_text)) in zip(st.columns(len(figures)), figures.items(), strict=True):
    with place:
        show_metric(label, estimate, said, help=help_text)
st.caption(
    f"Raised {say_part(change.raised, n)} · lowered {say_part(change.lowered, n)} · unchanged "
    f"{say_part(change.unchanged, n)} · fail → pass {say_count(len(gates.gained))}, pass → fail "
    f"{say_count(len(gates.lost))}, exact McNemar {say_p(gates.pass_rate.test.p, gates.pass_rate.test.reason)}"
)
if floor.shown is None:
    st.caption("Noise floor unknown: one repetition shows no wobble, so nothing is subtracted.")
else:
    st.caption(
        f"Verdicts of the two sides differ in {say_share(floor.cross.value)} of pairs of repetitions, within one side "
        f"in {say_share(floor.floor.value)} (noise floor); beyond the floor: {say_share(floor.shown)}"
    )

st.subheader("Scores before and after")
levels = np.array(choice.criterion.levels)
counts = pd.DataFrame({"level": levels, "before": found.scores[0], "after": found.scores[1]})
show_figure(level_bars(found.scores, levels, ["before", "after"], gate=gate), counts, name="drift_levels")
apart = found.apart
if apart.reason is None:
    smoothed = ", 0.5 added to every level as one is empty" if apart.psi_smoothed else ""
    st.caption(
        f"Wasserstein-1 {say_number(apart.wasserstein)} points · Cliff's delta {say_number(apart.cliffs_delta)} · PSI "
        f"{say_number(apart.psi)}{smoothed}; about {say_number(apart.psi_without_change)} is to be expected without "
        "any change (0.10 and 0.25 are conventions, not tests)"
    )

st.subheader("Change of each item")
sizes, items = np.unique(np.round(change.differences, 9), return_counts=True)
show_figure(change_histogram(change), pd.DataFrame({"change": sizes, "items": items}), name="drift_changes")

st.subheader("Items whose verdict changed")
switched = drift.changed_items(comparison, gate, choice.item_slice)
total = len(gates.gained) + len(gates.lost)
st.caption(
    f"{say_count(total)} items, by the majority of their repetitions; a tie fails."
    + (f" The {drift.MOST_ITEMS} that moved most are listed." if total > len(switched) else "")
    + (" Choose a row to read the item." if total else "")
)
if total:
    event = st.dataframe(
        switched,
        key="drift_items",
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "before": st.column_config.NumberColumn("Mean before", format="%.2f"),
            "after": st.column_config.NumberColumn("Mean after", format="%.2f"),
            "change": st.column_config.NumberColumn("Change", format="%+.2f"),
            "passes_before": st.column_config.TextColumn("Passed before"),
            "passes_after": st.column_config.TextColumn("Passed after"),
        },
    )
    download(switched, name="drift_items")
    if event.selection.rows:
        item = str(switched.item.iloc[event.selection.rows[0]])
        st.switch_page("pages/item.py", query_params=choice.address | {"item": item})

st.subheader("By slice and criterion")
family = drift.family_table(choice.family, choice.method)
correction = "Holm" if choice.method == "holm" else "Benjamini-Hochberg"
st.caption(f"{correction} over {2 * len(family)} tests: the means and the gate of every row.")
st.dataframe(family, hide_index=True, column_config=CHANGE_COLUMNS, placeholder="undefined")
download(family, name="drift_family")

st.subheader("Why did it move")
st.markdown(plain(why.left))
if len(why.changed):
    st.warning(
        f"{say_count(len(why.changed))} items were judged with another text under the same key. They are left out: a "
        "change of text is not drift.",
        icon=":material/edit_document:",
    )
if why.copied:
    st.warning(
        f"{say_part(why.copied, why.replies)} replies of the candidate carry a response id of the baseline. They are "
        "the baseline's judgements copied, so they are left out and are no agreement.",
        icon=":material/content_copy:",
    )
st.dataframe(
    why.table,
    hide_index=True,
    height="content",
    column_config={"cause": st.column_config.TextColumn("cause", width=250)},
)
download(why.table, name="drift_causes")

st.subheader("Runs over time")
past = drift.past(choice.at, comparison)
figure = time_line(
    past.table["time"].dt.to_pydatetime() if len(past.table) else [],
    past.table["mean"].to_numpy(float),
    past.chart,
    title="Mean of the item means (score points)",
    names=past.table.run.tolist(),
    marks=[Mark(*mark) for mark in past.marks],
)
show_figure(figure, past.table, name="drift_runs")
