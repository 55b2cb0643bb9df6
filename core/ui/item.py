"""One item as a page shows it: which to choose from, what was said of it, and its scores on every criterion."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from core.judge.asking import FORM
from core.judge.parse import PARSER_VERSION, parse
from core.judge.protocol import Form
from core.stats.dispersion import level_counts
from core.stats.item import item_summary
from core.store.engine import reading
from core.store.item_reads import ItemTexts, Repetitions
from core.store.queries import CriterionView
from core.store.tables import Judge, Order
from core.store.vectors import COPIED, UNSCORED, level_codes
from core.ui import cached, url
from core.ui.cached import FEW, Snapshot
from core.ui.page import outcome_words, plain
from core.ui.scope import Scope

MOST_CHOICES = 500
"""Items in the sidebar's list; the search reaches the others."""

CARD_WIDTH = 256

ORDER_WORDS = {Order.SINGLE: "", Order.AB: "A in slot 1", Order.BA: "B in slot 1"}


@dataclass(frozen=True, slots=True)
class Vector:
    """Every repetition of an item for one criterion, in one order.

    Attributes:
        criterion: What was scored.
        order: Which candidate stood in slot 1, in words; empty for single items.
        names: Run and repetition of each, "run 1 · 0".
        codes: Level indices, shape (R,), -1 where there is no usable, independent score.
        words: What came of each: the level, or why there is no score.
    """

    criterion: CriterionView
    order: str
    names: tuple[str, ...]
    codes: NDArray[np.int16]
    words: tuple[str, ...]

    @property
    def counts(self) -> NDArray[np.int64]:
        """Scores at each level, shape (L,)."""
        return np.asarray(level_counts(self.codes[None, :], len(self.criterion.levels))[0])


def select_item(scope: Scope) -> ItemTexts:
    """Draw the choice of an item and return it; an item that the corpus has not ends the page with what to do."""
    known = _keys(scope)
    if known.empty:
        st.info("No item has a call in the chosen runs. Choose other runs in the sidebar.", icon=":material/info:")
        st.stop()
    listed = _found(known)
    wanted = url.read("item")
    if wanted and ("item" in st.query_params or _texts(scope, wanted)):
        listed = [wanted, *(key for key in listed if key != wanted)]
    chosen = url.choose(
        st.sidebar,
        "Item",
        "item",
        {key: key for key in listed},
        help="Items whose scores differ most stand first; type to search the list.",
    )
    texts = _texts(scope, chosen)
    if texts is None:
        st.warning(
            f"There is no item “{plain(chosen)}” in {plain(scope.corpus)}. It may belong to another corpus or version: "
            "choose that corpus, or an item of this one, in the sidebar.",
            icon=":material/search_off:",
        )
        st.stop()
    return texts


def list_calls(scope: Scope, item: ItemTexts) -> pd.DataFrame:
    """Every call on the item for the scope's criterion: the columns of `queries.list_calls` and three more.

    outcome is "scored", "copied" or the reason why the call is unscored. counted says whether its score is in the
    figures: a copy is not, nor is a call that was made again. explanation says in words what was wrong with an unscored
    reply, where Evenhand read it itself.
    """
    calls = cached.item_calls(scope.at, item_id=item.id, runs=_runs(scope), criterion_id=scope.criterion.id)
    place = ["run_id", "repetition", "slot_order"]
    last = calls.attempt == calls.groupby(place).attempt.transform("max")
    copies = {
        (int(run), int(repetition), str(order))
        for (criterion, order), found in _repetitions(scope, item).items()
        if criterion == scope.criterion.id
        for run, repetition, outcome in zip(*found, strict=True)
        if outcome == COPIED
    }
    copied = last & pd.Series(
        [key in copies for key in zip(*(calls[name] for name in place), strict=True)], index=calls.index, dtype=bool
    )
    outcome = calls.unscored.fillna("scored").mask(copied, "copied")
    return calls.assign(outcome=outcome, counted=last & (outcome == "scored"), explanation=_explanations(scope, calls))


def _explanations(scope: Scope, calls: pd.DataFrame) -> list[str]:
    form = _reading_form(scope.at, scope.judge_id)
    if form is None:
        return [""] * len(calls)
    criteria = cached.criteria(scope.at, rubric_id=scope.criterion.rubric_id)
    explained = []
    for call in calls.itertuples():
        found = parse(call.raw_reply, criteria, form, call.stop_reason) if _given(call.raw_reply) else None
        explained.append(found.detail if found and found.reason == call.unscored else "")
    return explained


@st.cache_data(max_entries=FEW, show_spinner=False)
def _reading_form(at: Snapshot, judge_id: int) -> Form | None:  # noqa: ARG001 - the key
    """How replies of a judge are read; None where another program, or another version of the parser, read them."""
    with reading(cached.engine()) as session:
        judge = session.get(Judge, judge_id)
        if judge is None or judge.parser_version != PARSER_VERSION:
            return None
        return Form(judge.parameters[FORM])


def list_vectors(scope: Scope, item: ItemTexts, criterion: CriterionView) -> list[Vector]:
    """The item's repetitions for one criterion: one vector, or one for each order of a pair."""
    found = _repetitions(scope, item)
    return [_vector(found[criterion.id, order], criterion, order) for order in Order if (criterion.id, order) in found]


def name_reasons(vector: Vector, calls: pd.DataFrame) -> Vector:
    """The vector with the reason of each unscored repetition, which `calls` knows, in its words."""
    reasons = {
        (f"run {call.run_id} · {call.repetition}", ORDER_WORDS[Order(call.slot_order)]): outcome_words(call.outcome)
        for call in calls.itertuples()
    }
    words = tuple(
        reasons.get((name, vector.order), said) if code < 0 else said
        for name, said, code in zip(vector.names, vector.words, vector.codes, strict=True)
    )
    return replace(vector, words=words)


def score_table(scope: Scope, item: ItemTexts) -> pd.DataFrame:
    """The item on every criterion of the rubric, at the rubric's gates.

    Columns: criterion, order, scored, mean, sd, range, modes, gate, passes, flip_probability.
    """
    vectors = [
        vector
        for criterion in cached.criteria(scope.at, rubric_id=scope.criterion.rubric_id)
        for vector in list_vectors(scope, item, criterion)
    ]
    return pd.DataFrame([_score_row(vector) for vector in vectors])


def show_call(call: Any, *, passes: bool | None) -> None:
    """One call with the judge's words; nothing in them is acted on.

    Args:
        call: A row of `list_calls`.
        passes: Whether its score passes; None where there is no score or no gate.
    """
    order = ORDER_WORDS[Order(call.slot_order)]
    attempt = f"attempt {call.attempt}" if call.attempt > 1 else ""
    with st.container(border=True, width=CARD_WIDTH):
        st.caption(" · ".join(filter(None, [f"run {call.run_id} · repetition {call.repetition}", attempt, order])))
        st.markdown(_verdict(call, passes))
        if call.explanation:
            st.caption(plain(f"Why: {call.explanation}."))
        if call.outcome == "copied":
            st.caption("The reply carries the id of an earlier one, so it counts once, there.")
        elif call.outcome == "scored" and not call.counted:
            st.caption("The call was made again; the later attempt counts.")
        for label, text in (
            ("Rationale", call.rationale),
            ("Cited evidence", call.cited_evidence),
            ("Why not the level beside it", call.boundary_reason),
        ):
            if _given(text):
                st.caption(label)
                st.text(text)
        if _given(call.confidence):
            st.caption(f"Stated confidence {call.confidence:g}")
        if _given(call.raw_reply):
            with st.expander("Raw reply"):
                st.code(call.raw_reply, language=None, wrap_lines=True)


def _verdict(call: Any, passes: bool | None) -> str:
    if call.outcome not in ("scored", "copied"):
        raw = f" (it gave {plain(str(call.raw_value))})" if _given(call.raw_value) else ""
        return f":gray-badge[:material/block: no score: {outcome_words(call.outcome)}]{raw}"
    if not _given(call.value):
        return f":gray-badge[{outcome_words(call.outcome)}]"
    badge = {True: " :blue-badge[:material/check: pass]", False: " :orange-badge[:material/close: fail]", None: ""}
    copied = " :gray-badge[:material/content_copy: copied reply]" if call.outcome == "copied" else ""
    return f"**Score {call.value:g}**{badge[passes]}{copied}"


def _given(value: object) -> bool:
    return value is not None and value != "" and not (isinstance(value, float) and np.isnan(value))


def _score_row(vector: Vector) -> dict[str, object]:
    found = item_summary(vector.counts, np.array(vector.criterion.levels), vector.criterion.gate)
    return {
        "criterion": vector.criterion.key,
        "order": vector.order,
        "scored": found.n,
        "mean": found.mean,
        "sd": found.sd,
        "range": found.score_range,
        "modes": " and ".join(f"{mode:g}" for mode in found.modes),
        "gate": vector.criterion.gate,
        "passes": found.passes,
        "flip_probability": found.flip_probability,
    }


def _vector(found: Repetitions, criterion: CriterionView, order: Order) -> Vector:
    codes = level_codes(found.outcomes)
    unscored = {UNSCORED: "no usable score", COPIED: outcome_words("copied")}
    return Vector(
        criterion,
        ORDER_WORDS[order],
        tuple(f"run {run} · {number}" for run, number in zip(found.run_ids, found.repetitions, strict=True)),
        codes,
        tuple(
            f"{criterion.levels[code]:g}" if code >= 0 else unscored[int(outcome)]
            for code, outcome in zip(codes, found.outcomes, strict=True)
        ),
    )


def _keys(scope: Scope) -> "pd.Series[str]":
    """Keys of the items that were called, the widest first."""
    orders = (Order.AB, Order.BA) if scope.pairwise else (Order.SINGLE,)
    parts = []
    for order in orders:
        selection = scope.selection._replace(slot_order=order)
        parts.append(cached.items(selection).key.iloc[cached.widest(selection)])
    return pd.concat(parts).drop_duplicates() if len(parts) > 1 else parts[0]


def _found(known: "pd.Series[str]") -> list[str]:
    if len(known) <= MOST_CHOICES:
        return [str(key) for key in known]
    part = st.sidebar.text_input("Find items", help=f"Part of a key; {len(known):,} items are too many to list.")
    found = known[known.str.contains(part, regex=False)] if part else known
    st.sidebar.caption(f"{len(found):,} items match; the list shows {min(len(found), MOST_CHOICES):,}.")
    return [str(key) for key in (found if len(found) else known).head(MOST_CHOICES)]


def _texts(scope: Scope, key: str) -> ItemTexts | None:
    return cached.item_texts(scope.at, corpus_id=scope.corpus_id, key=key)


def _repetitions(scope: Scope, item: ItemTexts) -> dict[tuple[int, str], Repetitions]:
    criteria = tuple(view.id for view in cached.criteria(scope.at, rubric_id=scope.criterion.rubric_id))
    return cached.repetitions(scope.at, item_id=item.id, runs=_runs(scope), criteria=criteria)


def _runs(scope: Scope) -> tuple[int, ...]:
    return tuple(run for run, _ in scope.selection.runs)
