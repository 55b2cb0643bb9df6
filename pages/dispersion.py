"""How far apart are repeated scores of the same item?"""

import numpy as np
import pandas as pd
import streamlit as st

from core.figures.dispersion import MOST_ROWS, item_strip, sd_histogram
from core.figures.words import say_estimate, say_part, say_share
from core.stats.stability import STABILITY_WORDS, Stability, count_stability
from core.ui import cached, url
from core.ui.page import (
    ITEM_COLUMNS,
    open_item,
    open_page,
    say_outcomes,
    say_scope,
    show_clickable,
    show_figure,
    show_items,
    show_metric,
)
from core.ui.scope import select_scope

ALL = "all"

open_page("Dispersion", "How far apart are repeated scores of the same item?")
scope = select_scope()
kinds = {ALL: "All items"} | {kind.value: kind.capitalize() for kind in Stability}
kind = url.choose(
    st.sidebar, "Stability", "stability", kinds, help="Only items of this kind in the strip and the table."
)
say_scope(scope)
say_outcomes(cached.tallies(scope.selection))
health = cached.health(scope.selection, scope.gate)
spread, counts = cached.dispersion(scope.selection), cached.counts(scope.selection)
stability, items = cached.stability(scope.selection, scope.gate), cached.items(scope.selection)

figures = {
    "Within-item SD": (health.dispersion.within_item_sd, "Pooled: √(Σ squares within items ÷ Σ(n − 1)), score points."),
    "Repeatability": (health.dispersion.repeatability, "Two runs of an item differ by less than this 95% of the time."),
    "Mean item SD": (health.dispersion.mean_sd, "Mean of the items' sample SDs, score points."),
    "Modal share": (
        health.dispersion.mean_modal_share,
        "Share of an item's scores at its commonest level, mean; it falls as repetitions grow.",
    ),
    "Alpha (ordinal)": (health.alpha_ordinal, "Krippendorff's alpha of the repetitions: 1 is perfect, 0 is chance."),
    "ICC(1,1)": (health.icc.single, "Share of the variance of one score that lies between items."),
}
for start in range(0, len(figures), 3):
    for place, (label, (estimate, help_text)) in zip(
        st.columns(3), list(figures.items())[start : start + 3], strict=True
    ):
        with place:
            show_metric(label, estimate, say_estimate(estimate), help=help_text)

table = pd.DataFrame(
    {
        "item": items.key,
        "slice": items.slice,
        "stability": stability,
        "scored": spread.n,
        "mean": spread.mean,
        "sd": spread.sd_sample,
        "range": spread.score_range,
        "modal_share": spread.modal_share,
        "flip_probability": cached.verdicts(scope.selection, scope.gate).flip_probability,
    }
)
st.subheader("How many items wobble, and how much", anchor=False)
show_figure(sd_histogram(spread, mean=health.dispersion.mean_sd), table, name="within_item_sd")

st.subheader("Which items wobble", anchor=False)
seen = count_stability(stability)
for each in Stability:
    st.markdown(f"- **{each.capitalize()}**: {STABILITY_WORDS[each]} — {say_part(seen[each], len(table))} items")
bound = health.gate.no_flip_bound
if bound is not None:
    st.info(
        f"No item was seen on both sides of gate {scope.gate:g}. That is not 0%: with "
        f"{health.gate.flip_rate.n:,} items, up to {say_share(bound)} of items like these may be (95% upper bound).",
        icon=":material/info:",
    )
order = cached.widest(scope.selection)
if kind != ALL:
    order = order[stability[order] == kind]
chosen = table.iloc[order]
st.markdown(f"**{kinds[kind]}, the widest spread first.** A click on a row of the table, or on a dot, opens the item.")
strip = item_strip(
    counts[order[:MOST_ROWS]],
    chosen["item"].head(MOST_ROWS).tolist(),
    np.array(scope.criterion.levels),
    gate=scope.gate,
)
row = show_clickable(strip, key="item_strip")
if row is not None:
    open_item(scope, str(chosen["item"].iloc[row]))
show_items(chosen, scope, name="items", column_config=ITEM_COLUMNS)
