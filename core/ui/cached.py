"""All caching. Keys are ids and revisions, so a new score is seen at once and nothing else is computed again.

Frozen values are kept as resources: sessions share them without a copy, and nobody may change them.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray
from sqlalchemy import Engine

from core.stats.common import Estimate
from core.stats.dispersion import ItemDispersion, level_counts, per_item_dispersion
from core.stats.gate import GatePoint, ItemVerdicts, flip_curve, item_verdicts
from core.stats.health import SEED, JudgeHealth, judge_health
from core.stats.pairs import PairKappas, RunPairs, mean_pair_kappa, pair_kappas, run_pairs
from core.stats.stability import item_stability
from core.store import item_reads, queries
from core.store.engine import database_url, get_engine, reading
from core.store.item_reads import ItemTexts, Repetitions
from core.store.queries import CriterionView, ScoreMatrix
from core.store.tables import Order

FEW, MANY = 8, 256


class Snapshot(NamedTuple):
    """What a store held at one moment: the key of every cached list."""

    store: str
    revision: int


class Selection(NamedTuple):
    """What a score matrix is made of; the runs' revisions make it a new key when scores are added.

    Attributes:
        store: The store's address.
        runs: (run id, revision) of each run, in the order of the columns.
        criterion_id: Which criterion.
        levels: Its level values.
        item_slice: Only items of this slice, or all.
        slot_order: Which order of a pair; empty for single items.
    """

    store: str
    runs: tuple[tuple[int, int], ...]
    criterion_id: int
    levels: tuple[float, ...]
    item_slice: str | None = None
    slot_order: str = Order.SINGLE


def engine() -> Engine:
    """The store that the environment names, migrated on the first look."""
    return get_engine(database_url())


def snapshot() -> Snapshot:
    """The store as it is now: read on every rerun."""
    with reading(engine()) as session:
        return Snapshot(database_url(), queries.get_revision(session=session))


@st.cache_data(max_entries=FEW, show_spinner=False)
def corpora(at: Snapshot) -> pd.DataFrame:  # noqa: ARG001 - the key
    """`queries.list_corpora`."""
    with reading(engine()) as session:
        return queries.list_corpora(session=session)


@st.cache_data(max_entries=FEW, show_spinner=False)
def judges(at: Snapshot) -> pd.DataFrame:  # noqa: ARG001 - the key
    """`queries.list_judges` over all corpora."""
    with reading(engine()) as session:
        return queries.list_judges(session=session)


@st.cache_data(max_entries=MANY, show_spinner=False)
def runs(at: Snapshot, *, judge_id: int, corpus_id: int) -> pd.DataFrame:  # noqa: ARG001 - the key
    """`queries.list_runs`."""
    with reading(engine()) as session:
        return queries.list_runs(session=session, judge_id=judge_id, corpus_id=corpus_id)


@st.cache_resource(max_entries=MANY, show_spinner=False)
def criteria(at: Snapshot, *, rubric_id: int) -> tuple[CriterionView, ...]:  # noqa: ARG001 - the key
    """`queries.list_criteria`."""
    with reading(engine()) as session:
        return queries.list_criteria(session=session, rubric_id=rubric_id)


@st.cache_data(max_entries=MANY, show_spinner=False)
def slices(at: Snapshot, *, corpus_id: int) -> dict[str, int]:  # noqa: ARG001 - the key
    """`queries.list_slices`."""
    with reading(engine()) as session:
        return queries.list_slices(session=session, corpus_id=corpus_id)


@st.cache_data(max_entries=MANY, show_spinner=False)
def tallies(selection: Selection) -> dict[str, int]:
    """Calls by outcome: "scored", "copied" or an unscored reason; `queries.get_tallies`, or counted in the slice."""
    runs = [run for run, _ in selection.runs]
    with reading(engine()) as session:
        if selection.item_slice is None:
            return queries.get_tallies(session=session, run_ids=runs, criterion_id=selection.criterion_id)
        unscored = item_reads.count_unscored(
            session=session, run_ids=runs, criterion_id=selection.criterion_id, item_slice=selection.item_slice
        )
    seen = matrix(selection)
    counted = {"scored": seen.scored, "copied": seen.copied} | unscored
    return {outcome: calls for outcome, calls in counted.items() if calls}


@st.cache_resource(max_entries=FEW, show_spinner="Reading scores…")
def matrix(selection: Selection) -> ScoreMatrix:
    """`queries.get_score_matrix`."""
    with reading(engine()) as session:
        return queries.get_score_matrix(
            session=session,
            run_ids=[run for run, _ in selection.runs],
            criterion_id=selection.criterion_id,
            slot_order=selection.slot_order,
            item_slice=selection.item_slice,
        )


@st.cache_resource(max_entries=FEW, show_spinner="Reading items…")
def items(selection: Selection) -> pd.DataFrame:
    """`queries.list_items` for the rows of the matrix."""
    with reading(engine()) as session:
        return queries.list_items(session=session, item_ids=matrix(selection).item_ids.tolist())


@st.cache_resource(max_entries=MANY, show_spinner="Measuring the judge…")
def health(selection: Selection, gate: float) -> JudgeHealth:
    """`judge_health` of the matrix."""
    return judge_health(matrix(selection).codes, np.array(selection.levels), gate)


@st.cache_resource(max_entries=FEW, show_spinner=False)
def counts(selection: Selection) -> NDArray[np.int64]:
    """Scores of each item at each level."""
    return level_counts(matrix(selection).codes, len(selection.levels))


@st.cache_resource(max_entries=FEW, show_spinner=False)
def dispersion(selection: Selection) -> ItemDispersion:
    """`per_item_dispersion` of every item."""
    return per_item_dispersion(counts(selection), np.array(selection.levels))


@st.cache_resource(max_entries=FEW, show_spinner=False)
def verdicts(selection: Selection, gate: float) -> ItemVerdicts:
    """`item_verdicts` of every item at the gate."""
    return item_verdicts(counts(selection), np.array(selection.levels), gate)


@st.cache_resource(max_entries=MANY, show_spinner="Moving the gate…")
def curve(selection: Selection) -> tuple[GatePoint, ...]:
    """`flip_curve`: the flip rate at every gate."""
    return tuple(flip_curve(counts(selection), np.array(selection.levels), rng=np.random.default_rng(SEED)))


@st.cache_resource(max_entries=MANY, show_spinner="Comparing repetitions…")
def pairs(selection: Selection) -> RunPairs:
    """`run_pairs`: the cross-tab of every two repetitions."""
    return run_pairs(matrix(selection).codes, len(selection.levels))


@st.cache_resource(max_entries=MANY, show_spinner="Comparing repetitions…")
def mean_kappa(selection: Selection) -> Estimate:
    """`mean_pair_kappa` with quadratic weights."""
    return mean_pair_kappa(matrix(selection).codes, np.array(selection.levels), rng=np.random.default_rng(SEED))


@st.cache_resource(max_entries=MANY, show_spinner=False)
def kappas(selection: Selection) -> PairKappas:
    """`pair_kappas` with quadratic weights of every two repetitions."""
    return pair_kappas(pairs(selection), np.array(selection.levels))


@st.cache_resource(max_entries=FEW, show_spinner=False)
def stability(selection: Selection, gate: float) -> NDArray[np.str_]:
    """`item_stability` of every item at the gate."""
    return item_stability(counts(selection), np.array(selection.levels), gate)


@st.cache_resource(max_entries=FEW, show_spinner=False)
def widest(selection: Selection) -> NDArray[np.intp]:
    """Rows of the matrix by the SD of their repetitions, the widest first; items with fewer than two scores last."""
    return np.argsort(-np.nan_to_num(dispersion(selection).sd_sample, nan=-1.0), kind="stable")


@st.cache_data(max_entries=MANY, show_spinner=False)
def item_texts(at: Snapshot, *, corpus_id: int, key: str) -> ItemTexts | None:  # noqa: ARG001 - the key
    """`item_reads.get_item_texts`."""
    with reading(engine()) as session:
        return item_reads.get_item_texts(session=session, corpus_id=corpus_id, key=key)


@st.cache_data(max_entries=MANY, show_spinner=False)
def item_calls(at: Snapshot, *, item_id: int, runs: tuple[int, ...], criterion_id: int) -> pd.DataFrame:  # noqa: ARG001 - the key
    """`queries.list_calls`."""
    with reading(engine()) as session:
        return queries.list_calls(session=session, item_id=item_id, run_ids=runs, criterion_id=criterion_id)


@st.cache_resource(max_entries=MANY, show_spinner=False)
def repetitions(
    at: Snapshot,  # noqa: ARG001 - the key
    *,
    item_id: int,
    runs: tuple[int, ...],
    criteria: tuple[int, ...],
) -> dict[tuple[int, str], Repetitions]:
    """`item_reads.get_repetitions`."""
    with reading(engine()) as session:
        return item_reads.get_repetitions(session=session, item_id=item_id, run_ids=runs, criterion_ids=criteria)
