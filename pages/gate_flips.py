"""Which decisions depend on which call happened to run?"""

import numpy as np
import pandas as pd
import streamlit as st

from core.figures.gate import flip_matrix, gate_curve, kappa_spread, level_cross_tab, transition_matrix
from core.figures.words import say_estimate, say_number, say_p, say_part, say_share
from core.stats.pairs import pair_flip_shares, pair_table, spread, transitions
from core.stats.two_raters import cohens_kappa, exact_agreement, within_one_agreement
from core.ui import cached
from core.ui.page import (
    ITEM_COLUMNS,
    open_page,
    say_outcomes,
    say_scope,
    show_figure,
    show_items,
    show_metric,
    show_value,
)
from core.ui.repetitions import choose_pair, pick_pair, repetition_names
from core.ui.scope import select_scope

open_page("Gate flips", "Which decisions depend on which call happened to run?")
scope = select_scope()
say_scope(scope)
say_outcomes(cached.tallies(scope.selection))
levels, codes = np.array(scope.criterion.levels), cached.matrix(scope.selection).codes
flips = cached.health(scope.selection, scope.gate).gate
items, verdicts = cached.items(scope.selection), cached.verdicts(scope.selection, scope.gate)
names = repetition_names(scope)

for place, (label, estimate, help_text) in zip(
    st.columns(3),
    [
        ("Flip rate", flips.flip_rate, "Chance that two repetitions of an item disagree at the gate, mean over items."),
        (
            "Items seen to flip",
            flips.any_flip,
            "Share of items with both verdicts; it rises with the repetitions made.",
        ),
        ("Flips, all pairs pooled", flips.pooled, "Share of all pairs of repetitions that disagree at the gate."),
    ],
    strict=True,
):
    with place:
        show_metric(label, estimate, say_estimate(estimate, 1, share=True), help=help_text)
if flips.fewest_repetitions is not None:
    st.caption(
        f"Repetitions an item: {flips.fewest_repetitions} to {flips.most_repetitions}, "
        f"median {flips.median_repetitions:g}; the more there are, the more items are seen to flip."
    )
if flips.no_flip_bound is not None:
    st.info(
        f"No item flipped at gate {scope.gate:g}. That is not 0%: with {flips.flip_rate.n:,} items, up to "
        f"{say_share(flips.no_flip_bound)} of items like these may be seen to flip (95% upper bound).",
        icon=":material/info:",
    )

st.subheader("If the gate stood elsewhere", anchor=False)
points = cached.curve(scope.selection)
curve = pd.DataFrame(
    [
        {
            "gate": point.gate,
            "flip_rate": point.flip_rate.value,
            "low": point.flip_rate.interval and point.flip_rate.interval.low,
            "high": point.flip_rate.interval and point.flip_rate.interval.high,
            "items_with_both_verdicts": point.any_flip.value,
        }
        for point in points
    ]
)
show_figure(gate_curve(points, gate=scope.gate), curve, name="flip_rate_by_gate")

straddling = np.flatnonzero(verdicts.straddles)
straddling = straddling[np.argsort(-verdicts.flip_probability[straddling], kind="stable")]
st.subheader("Straddlers: items that passed and failed", anchor=False)
st.markdown(
    f"{say_part(len(straddling), int((verdicts.n >= 2).sum()))} items with two or more scores. "
    "A click on a row opens the item."
)
straddlers = pd.DataFrame(
    {
        "item": items.key,
        "slice": items.slice,
        "passes": verdicts.passes,
        "scored": verdicts.n,
        "pass_rate": verdicts.pass_rate,
        "flip_probability": verdicts.flip_probability,
    }
).iloc[straddling]
show_items(straddlers, scope, name="straddlers", column_config=ITEM_COLUMNS)

st.subheader("Repetition against repetition", anchor=False)
if len(names) < 2:
    st.info("One repetition shows no flips: at least two are needed.", icon=":material/info:")
    st.stop()
pairs, kappas = cached.pairs(scope.selection), cached.kappas(scope.selection)
shares = pair_flip_shares(pairs, levels, scope.gate)
flat = pd.DataFrame(pairs.matrix(shares), columns=names)
flat.insert(0, "repetition", names)
st.caption("A click on a cell shows that pair below.")
show_figure(flip_matrix(pairs, shares, names), flat, name="flip_matrix", on_click=pick_pair(scope))

found = spread(kappas.values)
st.markdown("**Quadratic kappa of every two repetitions**", help="1 is perfect, 0 is chance; never its mean alone.")
for place, (label, value, note) in zip(
    st.columns(3),
    [
        ("Lowest", found.minimum, f"of {found.defined:,} pairs, {found.undefined:,} undefined"),
        ("Mean", found.mean, say_estimate(cached.mean_kappa(scope.selection)).partition(" (")[2].rstrip(")")),
        ("Highest", found.maximum, f"of {found.defined:,} pairs, {found.undefined:,} undefined"),
    ],
    strict=True,
):
    with place:
        show_value(label, say_number(value), note, help="Over the pairs of repetitions that have a kappa.")
listed = pd.DataFrame(
    {
        "first": np.array(names)[pairs.first],
        "second": np.array(names)[pairs.second],
        "items": pairs.n,
        "quadratic_kappa": kappas.values,
        "flip_share": shares,
    }
)
show_figure(kappa_spread(pairs, kappas, names), listed, name="pair_kappas", on_click=pick_pair(scope))

st.subheader("One pair of repetitions", anchor=False)
first, second = choose_pair(scope, pairs, shares)
if first == second:
    st.info("Choose two different repetitions.", icon=":material/info:")
    st.stop()
changes = transitions(codes, first, second, levels, scope.gate)
table = pair_table(codes, first, second, len(levels))
st.caption(f"{changes.n:,} items were scored in both; {changes.left_out:,} left out.")
left, right = st.columns(2)
verdict_table = pd.DataFrame(changes.table, columns=["pass", "fail"])
verdict_table.insert(0, names[first], ["pass", "fail"])
cross_table = pd.DataFrame(table, columns=[f"{level:g}" for level in levels])
cross_table.insert(0, names[first], [f"{level:g}" for level in levels])
with left:
    show_figure(transition_matrix(changes, names[first], names[second]), verdict_table, name="transitions")
with right:
    show_figure(level_cross_tab(table, levels, names[first], names[second]), cross_table, name="cross_tab")
agreements = {
    "Same level": (exact_agreement(table), True, "Share of items at the same level."),
    "Within one": (within_one_agreement(table), True, "Share of items at most one place of the rubric apart."),
    "Nominal κ": (cohens_kappa(table, levels).estimate, False, "Cohen's kappa; any difference counts alike."),
    "Linear κ": (cohens_kappa(table, levels, weights="linear").estimate, False, "Weighted by distance."),
    "Quadratic κ": (cohens_kappa(table, levels, weights="quadratic").estimate, False, "By distance squared."),
}
for place, (label, (estimate, share, help_text)) in zip(st.columns(5), agreements.items(), strict=True):
    with place:
        show_metric(label, estimate, say_estimate(estimate, 1 if share else 3, share=share), help=help_text)
st.caption(f"Lost against gained, exact McNemar test: {say_p(changes.mcnemar.p, changes.mcnemar.reason)}.")
score = pd.DataFrame({"item": items.key, "slice": items.slice})
for column, name in ((first, "first"), (second, "second")):
    score[name] = np.where(codes[:, column] >= 0, levels[codes[:, column]], np.nan)
for rows, name, words in (
    (changes.lost, "lost", f"passed in {names[first]}, failed in {names[second]}"),
    (changes.gained, "gained", f"failed in {names[first]}, passed in {names[second]}"),
):
    st.markdown(f"**{len(rows):,} items {words}**")
    titles = {"first": f"Score in {names[first]}", "second": f"Score in {names[second]}"}
    show_items(score.iloc[rows], scope, name=name, column_config=ITEM_COLUMNS | titles)
