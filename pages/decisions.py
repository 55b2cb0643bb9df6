"""Which answers are ready by the rule, and what would move it?"""

import pandas as pd
import streamlit as st

from core.figures.words import say_number, say_part
from core.stats.decision import Moves, Table, WhatIf, apply_what_if, compare_decisions, summarise_systems
from core.ui import cached, deciding, url
from core.ui.deciding import Scored, Source
from core.ui.page import download, open_page, plain
from core.ui.scope import level_words, say_empty

NONE = "none"


def show_moves(moves: Moves, found: Scored) -> None:
    """How totals and decisions differ between two tables of the same items."""
    st.markdown(
        f"**{moves.risen} of {moves.items} totals rise, {moves.fallen} fall, {moves.same} stay**"
        + (f", {moves.open} have no total" if moves.open else "")
        + f". Ready: **{moves.ready_before}** before, **{moves.ready_after}** after."
    )
    steps = [f"{count} of {moves.items} totals move by {step:+g}" for step, count in moves.by if step]
    if steps:
        st.caption(" · ".join(steps))
    changed = [(key, "ready now") for key, now in zip(found.keys, moves.became_ready, strict=True) if now]
    changed += [(key, "no longer ready") for key, lost in zip(found.keys, moves.lost_ready, strict=True) if lost]
    if changed:
        st.dataframe(pd.DataFrame(changed, columns=["item", "decision"]), hide_index=True)


def select_what_if(source: Source, found: Scored) -> Table:
    """Draw the change of a level; the table it gives."""
    scales = {scale.key: scale for scale in found.table.scales}
    criterion_place, before_place, after_place, words_place = st.columns(4)
    key = url.choose(criterion_place, "Criterion", "if_criterion", {name: name for name in scales})
    levels = {level_words(level): level_words(level) for level in scales[key].levels}
    before = url.choose(before_place, "A score of", "if_from", levels)
    after = url.choose(after_place, "Counts as", "if_to", levels)
    words = url.ask(
        words_place,
        "Only where a text holds",
        "if_words",
        help="Looked for in the candidate and in the reasons. Empty: everywhere.",
    )
    where = None
    if words:
        holding = deciding.find_words(source=source, at=at, criterion_key=key, words=words)
        where = pd.Series(found.item_ids).isin(holding).to_numpy(bool)
    return apply_what_if(found.table, WhatIf(key, float(before), float(after)), where)


open_page("Decisions", "Which answers are ready by the rule, and what would move it?")
at = cached.snapshot()
sources = deciding.list_sources(at)
if not sources:
    say_empty("judge or label set")
source = sources[url.choose(st.sidebar, "Scores of", "decide", {key: value.name for key, value in sources.items()})]
found = deciding.scored(at, source)
st.text(source.name)
rule = deciding.select_rule(at, source, found.table.scales)
if rule is None:
    st.stop()
st.caption(
    f"Rule: {'every criterion at its gate' if not rule.text else 'as written'}. "
    "A veto criterion below its gate fails an answer whatever the rule says. Total: weighted sum of the scores."
)

systems = summarise_systems(found.table, rule, found.systems)
table = pd.DataFrame(
    [
        {
            "system": row.system,
            "ready": say_part(row.ready, row.items),
            "not ready": row.not_ready,
            "undefined": row.undefined,
            "score out of 10": "undefined: no item has every score" if row.score is None else say_number(row.score, 2),
            "items with every score": row.scored,
        }
        | {
            f"{scale.key} at {scale.levels[0]:g}": count
            for scale, count in zip(found.table.scales, row.lowest, strict=True)
        }
        for row in systems
    ]
)
st.subheader("Systems")
st.dataframe(table, hide_index=True)
st.caption("Undefined: a missing score could turn the decision either way. It counts as neither ready nor not ready.")
download(table, name="decisions")

st.subheader("What if a level counted as another?")
st.caption("Nothing is saved.")
show_moves(compare_decisions(found.table, select_what_if(source, found), rule), found)

st.subheader("Against other scores")
others = {NONE: "Nothing"} | {
    key: value.name for key, value in sources.items() if key != source.key and value.rubric_name == source.rubric_name
}
against = url.choose(st.container(), "Compare with", "against", others)
if against == NONE:
    st.stop()
other = sources[against]
if other.rubric_id != source.rubric_id:
    across = url.choose(
        st.container(),
        f"{source.rubric} and {other.rubric} are different versions: their scores may mean different things",
        "across",
        {"no": "Do not compare", "yes": "Compare across versions"},
        widget="segmented_control",
    )
    if across == "no":
        st.stop()
    st.warning("Compared across rubric versions.", icon=":material/history:")
later, earlier = deciding.common(found, deciding.scored(at, other))
if [scale.key for scale in later.table.scales] != [scale.key for scale in earlier.table.scales]:
    st.info("The two versions score different criteria, so their totals cannot be compared.", icon=":material/info:")
elif not len(later.item_ids):
    st.info("The two have no item in common.", icon=":material/info:")
else:
    st.caption(plain(f"From {other.name} to {source.name}, over the {len(later.item_ids):,} items they share."))
    show_moves(compare_decisions(earlier.table, later.table, rule), later)
