"""How far apart are repeated scores of the same item?"""

import numpy as np
import pandas as pd
import streamlit as st

from core.figures.spread import item_strip, spread_histogram
from core.figures.words import say_estimate
from core.ui import cached
from core.ui.page import download, open_page, say_outcomes, say_scope, show_figure, show_metric
from core.ui.scope import select_scope

SHOWN = 40

open_page("Dispersion", "How far apart are repeated scores of the same item?")
scope = select_scope()
say_scope(scope)
say_outcomes(cached.tallies(scope.selection))
health = cached.health(scope.selection, scope.gate)
spread = cached.dispersion(scope.selection)
counts = cached.counts(scope.selection)

figures = {
    "Within-item SD": (health.dispersion.within_item_sd, "Pooled: √(Σ squares within items ÷ Σ(n − 1)), score points."),
    "Repeatability": (
        health.dispersion.repeatability,
        "Two runs of an item differ by less than this 95% of the time.",
    ),
    "Modal share": (health.dispersion.mean_modal_share, "Share of an item's scores at its commonest level, mean."),
    "Alpha (ordinal)": (health.alpha_ordinal, "Krippendorff's alpha of the repetitions: 1 is perfect, 0 is chance."),
}
for place, (label, (estimate, help_text)) in zip(st.columns(len(figures)), figures.items(), strict=True):
    with place:
        show_metric(label, estimate, say_estimate(estimate), help=help_text)

table = pd.DataFrame(
    {
        "item": cached.items(scope.selection).key,
        "slice": cached.items(scope.selection).slice,
        "scored": spread.n,
        "mean": np.where(spread.n > 0, spread.mean, np.nan),
        "sd": spread.sd_sample,
        "range": spread.score_range,
        "modal_share": spread.modal_share,
    }
)
st.subheader("Spread of the items")
show_figure(spread_histogram(spread.sd_sample), table, name="within_item_sd")

order = np.argsort(-np.nan_to_num(spread.sd_sample, nan=-1), kind="stable")[:SHOWN]
st.subheader(f"The {len(order):,} of {len(table):,} items that wobble most")
widest = table.iloc[order]
st.plotly_chart(
    item_strip(widest["item"].astype(str).tolist(), counts[order], np.array(scope.criterion.levels), scope.gate),
    key="item_strip",
)
st.dataframe(widest, hide_index=True, placeholder="undefined")
download(widest, name="widest_items")
