"""Which decisions depend on which call happened to run?"""

import numpy as np
import pandas as pd
import streamlit as st

from core.figures.spread import flip_matrix, flip_rate_by_gate
from core.figures.words import say_estimate
from core.stats.pairs import pair_flip_shares
from core.ui import cached
from core.ui.page import download, open_page, say_outcomes, say_scope, show_figure, show_metric
from core.ui.scope import select_scope

open_page("Gate flips", "Which decisions depend on which call happened to run?")
scope = select_scope()
say_scope(scope)
say_outcomes(cached.tallies(scope.selection))
levels = np.array(scope.criterion.levels)
flips = cached.health(scope.selection, scope.gate).gate

figures = {
    "Flip rate": (flips.flip_rate, "Chance that two repetitions of an item disagree at the gate, mean over items."),
    "Items seen to flip": (flips.any_flip, "Share of items with both verdicts; it rises with the repetitions made."),
    "Mean pair kappa": (cached.mean_kappa(scope.selection), "Quadratic kappa, mean over every two repetitions."),
}
for place, (label, (estimate, help_text)) in zip(st.columns(len(figures)), figures.items(), strict=True):
    with place:
        show_metric(label, estimate, say_estimate(estimate), help=help_text)

pairs = cached.pairs(scope.selection)
labels = [f"run {column.run_id} · {column.repetition}" for column in cached.matrix(scope.selection).columns]
shares = pairs.matrix(pair_flip_shares(pairs, levels, scope.gate))
st.subheader("Repetition against repetition")
if len(labels) < 2:
    st.info("One repetition shows no flips: at least two are needed.", icon=":material/info:")
else:
    flat = pd.DataFrame(shares, columns=labels)
    flat.insert(0, "repetition", labels)
    show_figure(flip_matrix(shares, labels), flat, name="flip_matrix")

st.subheader("If the gate stood elsewhere")
points = pd.DataFrame(
    [
        {
            "gate": point.gate,
            "flip_rate": point.flip_rate.value,
            "low": point.flip_rate.interval.low if point.flip_rate.interval else None,
            "high": point.flip_rate.interval.high if point.flip_rate.interval else None,
        }
        for point in cached.curve(scope.selection)
    ],
    dtype=float,
)
gates, rates, low, high = (points[name].to_numpy() for name in ("gate", "flip_rate", "low", "high"))
show_figure(flip_rate_by_gate(gates, rates, low, high, scope.gate), points, name="flip_rate_by_gate")

verdicts = cached.verdicts(scope.selection, scope.gate)
items = cached.items(scope.selection)
straddlers = pd.DataFrame({"item": items.key, "slice": items.slice, "passes": verdicts.passes, "scored": verdicts.n})[
    verdicts.straddles
]
st.subheader(f"Straddlers: {len(straddlers):,} of {len(items):,} items passed and failed")
st.dataframe(straddlers, hide_index=True)
download(straddlers, name="straddlers")
