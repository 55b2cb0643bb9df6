"""A judge against people: the choices in the URL, the cached comparison, trust rules and word searches."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import streamlit as st

from core.judge.program import NothingToSearchError, WordSearch, phrases_of, record_word_search
from core.stats.against_people import (
    ADJUDICATED,
    CALLS,
    COLUMN,
    MAJORITY,
    MODAL,
    RATER,
    Assessment,
    Compared,
    Timing,
    assess,
    compare,
    kept_thresholds,
    rule_from,
    rule_timing,
)
from core.stats.common import MISSING, Bools, Ints
from core.stats.trust import TrustRule
from core.store import agreement_queries, queries, trust_writes, writes
from core.store.agreement_queries import LabelTable
from core.store.engine import reading
from core.ui import cached, url
from core.ui.cached import Selection, Snapshot
from core.ui.page import plain
from core.ui.scope import Scope, judge_key

FEW, MANY = 8, 256

SAME_VERSION, ANY_VERSION = "same", "any"


@dataclass(frozen=True, slots=True)
class LabelSetView:
    """One label set, the only one that a comparison uses.

    Attributes:
        id: Its key in the store.
        name: Name and version in words.
        policy: The written policy.
        rubric: Rubric name and version that it was made under.
        other_version: Whether that is not the judge's rubric version.
        simulated: Whether a program made the labels.
    """

    id: int
    name: str
    policy: str
    rubric: str
    other_version: bool
    simulated: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is compared on the page.

    Attributes:
        scope: Judge, corpus, criterion and gate.
        labels: The label set.
        reference: As the statistics take it.
        unit: As the statistics take it.
        columns: Names of the judge's calls.
        slices: Slice of each item.
        keys: Key of each item.
        found: The figures.
        raters: Names of the people.
        superseded: Older labels of the same person and item, which do not count.
    """

    scope: Scope
    labels: LabelSetView
    reference: str
    unit: str
    columns: list[str]
    slices: tuple[str, ...]
    keys: tuple[str, ...]
    found: Assessment
    raters: tuple[str, ...]
    superseded: int


class FrozenRule(NamedTuple):
    """A trust rule as it was frozen.

    Attributes:
        intact: Whether what is stored still has the hash it was frozen with.
        corpus: Corpus it was written for.
        criterion: Criterion it was written for.
    """

    id: int
    name: str
    author: str
    rule: TrustRule
    sha256: str
    intact: bool
    labels_seen: int
    created_at: datetime
    corpus: str
    criterion: str


@st.cache_data(max_entries=MANY, show_spinner=False)
def label_sets(at: Snapshot, *, corpus_id: int, criterion: str) -> pd.DataFrame:  # noqa: ARG001 - the key
    """`agreement_queries.list_label_sets`."""
    with reading(cached.engine()) as session:
        return agreement_queries.list_label_sets(session=session, corpus_id=corpus_id, criterion=criterion)


@st.cache_resource(max_entries=FEW, show_spinner=False)
def labels(
    at: Snapshot,  # noqa: ARG001 - the key
    *,
    label_set_id: int,
    corpus_id: int,
    criterion: str,
    item_slice: str | None,
) -> LabelTable:
    """`agreement_queries.get_labels`."""
    with reading(cached.engine()) as session:
        return agreement_queries.get_labels(
            session=session,
            label_set_id=label_set_id,
            corpus_id=corpus_id,
            criterion=criterion,
            item_slice=item_slice,
        )


@st.cache_resource(max_entries=FEW, show_spinner=False)
def item_list(at: Snapshot, item_ids: tuple[int, ...]) -> pd.DataFrame:  # noqa: ARG001 - the key
    """`queries.list_items`."""
    with reading(cached.engine()) as session:
        return queries.list_items(session=session, item_ids=item_ids)


@st.cache_resource(max_entries=MANY, show_spinner="Comparing with people…")
def assessment(
    at: Snapshot,
    selection: Selection,
    label_set_id: int,
    corpus_id: int,
    criterion: str,
    *,
    reference: str,
    unit: str,
    gate: float,
) -> Assessment:
    """`assess` of one judge and one label set."""
    compared = _compared(at, selection, label_set_id, corpus_id, criterion)
    slices = item_list(at, tuple(compared.item_ids.tolist())).slice
    return assess(
        compared,
        slices.tolist(),
        reference=reference,
        unit=unit,
        levels=np.array(selection.levels),
        gate=gate,
    )


@st.cache_data(max_entries=MANY, show_spinner=False)
def rationales(at: Snapshot, selection: Selection, item_ids: tuple[int, ...]) -> pd.DataFrame:  # noqa: ARG001 - the key
    """`agreement_queries.list_rationales`."""
    with reading(cached.engine()) as session:
        return agreement_queries.list_rationales(
            session=session,
            run_ids=[run for run, _ in selection.runs],
            criterion_id=selection.criterion_id,
            item_ids=item_ids,
        )


@st.cache_data(max_entries=MANY, show_spinner=False)
def label_reasons(at: Snapshot, label_set_id: int, criterion: str, item_ids: tuple[int, ...]) -> pd.DataFrame:  # noqa: ARG001 - the key
    """`agreement_queries.list_label_reasons`."""
    with reading(cached.engine()) as session:
        return agreement_queries.list_label_reasons(
            session=session, label_set_id=label_set_id, criterion=criterion, item_ids=item_ids
        )


def select_labels(scope: Scope) -> LabelSetView | None:
    """Draw the choice of the one label set; None, with what to do on screen, when there is none to compare with."""
    sets = label_sets(scope.at, corpus_id=scope.corpus_id, criterion=scope.criterion.key)
    if sets.empty:
        st.info(
            f"Nobody has labelled {plain(scope.criterion.key)} on {plain(scope.corpus)} yet. Label items on the "
            "Label page, or import labels with `python -m core.cli import FILE --label-set NAME --policy TEXT`.",
            icon=":material/info:",
        )
        return None
    same = sets.rubric_id == scope.criterion.rubric_id
    if not same.all():
        versions = url.choose(
            st.sidebar,
            "Labels made under",
            "versions",
            {SAME_VERSION: "the judge's rubric version", ANY_VERSION: "any rubric version"},
            help="Scores and labels of different rubric versions may mean different things.",
        )
        if versions == SAME_VERSION:
            sets = sets[same]
    if sets.empty:
        st.info(
            "There are labels, but none under the judge's rubric version. To compare across versions, choose “any "
            "rubric version” in the sidebar.",
            icon=":material/info:",
        )
        return None
    by_key = {f"{row['name']}@{row.version}": row for _, row in sets.iterrows()}
    row = by_key[
        url.choose(
            st.sidebar,
            "Label set",
            "labels",
            {key: f"{row['name']} v{row.version} ({row['items']:,} items)" for key, row in by_key.items()},
            help="Labels made under one written policy. Two sets are never mixed.",
        )
    ]
    return LabelSetView(
        id=int(row.id),
        name=f"{row['name']} v{row.version}",
        policy=str(row.policy or ""),
        rubric=f"{row.rubric} v{row.rubric_version}",
        other_version=int(row.rubric_id) != scope.criterion.rubric_id,
        simulated=bool(row.simulated),
    )


def select_comparison(scope: Scope, chosen: LabelSetView) -> Comparison:
    """Draw the choice of reference and unit, and compare."""
    table = labels(
        scope.at,
        label_set_id=chosen.id,
        corpus_id=scope.corpus_id,
        criterion=scope.criterion.key,
        item_slice=scope.selection.item_slice,
    )
    references = {MAJORITY: "majority of the raters" if len(table.raters) > 1 else "the rater, or the adjudication"}
    references |= {f"{RATER}{name}": f"rater {name or 'without a name'}" for name in table.raters}
    if np.isfinite(table.adjudicated).any():
        references[ADJUDICATED] = "adjudicated labels only"
    reference = url.choose(
        st.sidebar, "People", "reference", references, help="Which label of an item the judge is held against."
    )
    columns = [f"run {column.run_id} · {column.repetition}" for column in cached.matrix(scope.selection).columns]
    units = {f"{COLUMN}{place}": name for place, name in enumerate(columns)}
    if len(columns) != 1:
        units = {CALLS: "all calls, clustered by item", MODAL: "most frequent score of each item", **units}
    unit = url.choose(
        st.sidebar,
        "Judgement",
        "unit",
        units,
        help="With repetitions: every call, the score an item got most often, or one call an item.",
    )
    found = assessment(
        scope.at,
        scope.selection,
        chosen.id,
        scope.corpus_id,
        scope.criterion.key,
        reference=reference,
        unit=unit,
        gate=scope.gate,
    )
    items = item_list(scope.at, tuple(found.item_ids.tolist()))
    return Comparison(
        scope,
        chosen,
        reference,
        unit,
        columns,
        tuple(items.slice),
        tuple(items.key),
        found,
        table.raters,
        table.superseded,
    )


def error_table(comparison: Comparison, positions: Ints, *, said_at: Bools) -> pd.DataFrame:
    """Some items with both sides and their words: item, slice, people, judge, rationale, reason of people.

    Args:
        comparison: What is compared.
        positions: Positions in its items.
        said_at: Take the rationale of the first call that gave one of these levels, shape (L,).
    """
    scope, found = comparison.scope, comparison.found
    ids = tuple(found.item_ids[positions].tolist())
    said = _words_of(rationales(scope.at, scope.selection, ids), comparison, said_at)
    reasons = label_reasons(scope.at, comparison.labels.id, scope.criterion.key, ids)
    levels = scope.criterion.levels
    rows = []
    for position, item_id in zip(positions.tolist(), ids, strict=True):
        why = [f"{row.rater}: {row.reason}" for row in reasons[reasons.item_id == item_id].itertuples() if row.reason]
        scores = np.atleast_1d(found.judge[position])
        scores = scores[scores != MISSING]
        rows.append(
            {
                "item": comparison.keys[position],
                "slice": comparison.slices[position],
                "people": f"{levels[found.reference[position]]:g}",
                "judge": _score_words([levels[score] for score in scores]),
                "rationale": said.get(item_id, "none recorded"),
                "reason of people": "; ".join(why) or "none recorded",
            }
        )
    return pd.DataFrame(rows, columns=["item", "slice", "people", "judge", "rationale", "reason of people"])


def criterion_assessments(comparison: Comparison) -> list[tuple[str, Assessment]]:
    """The same label set on every criterion of the judge's rubric that it labels, in rubric order, each at its gate.

    The reference and the unit are kept; a rater who did not label a criterion gives way to the majority.
    """
    scope = comparison.scope
    found = []
    for criterion in cached.criteria(scope.at, rubric_id=scope.criterion.rubric_id):
        sets = label_sets(scope.at, corpus_id=scope.corpus_id, criterion=criterion.key)
        if comparison.labels.id not in set(sets.id):
            continue
        selection = scope.selection._replace(criterion_id=criterion.id, levels=criterion.levels)
        table = labels(
            scope.at,
            label_set_id=comparison.labels.id,
            corpus_id=scope.corpus_id,
            criterion=criterion.key,
            item_slice=selection.item_slice,
        )
        named = comparison.reference.removeprefix(RATER)
        absent = comparison.reference.startswith(RATER) and named not in table.raters
        if cached.matrix(selection).outcomes.size == 0 or not len(table.item_ids):
            continue
        unit = comparison.unit if cached.matrix(selection).outcomes.shape[1] == len(comparison.columns) else MODAL
        assessed = assessment(
            scope.at,
            selection,
            comparison.labels.id,
            scope.corpus_id,
            criterion.key,
            reference=MAJORITY if absent else comparison.reference,
            unit=unit,
            gate=scope.gate if criterion.id == scope.criterion.id else criterion.gate,
        )
        found.append((criterion.key, assessed))
    return found


def trust_rules(at: Snapshot) -> list[FrozenRule]:
    """Every frozen rule, newest first."""
    rules = _trust_rules(at)
    return [
        FrozenRule(
            id=int(row.id),
            name=row.name_,
            author=row.author,
            rule=rule_from(row.thresholds),
            sha256=row.sha256,
            intact=row.sha256 == trust_writes.rule_hash(row.name_, row.thresholds),
            labels_seen=int(row.labels_seen),
            created_at=row.created_at,
            corpus=str(row.thresholds.get(trust_writes.CORPUS, "")),
            criterion=str(row.thresholds.get(trust_writes.CRITERION, "")),
        )
        for row in rules.rename(columns={"name": "name_"}).itertuples()
    ]


def timing(comparison: Comparison, rule: FrozenRule) -> Timing:
    """Whether the rule was made before the labels it is held against."""
    with reading(cached.engine()) as session:
        earlier = agreement_queries.count_labels(
            session=session,
            collection=corpus_name(comparison.scope),
            criterion=comparison.scope.criterion.key,
            label_set_id=comparison.labels.id,
            before=rule.created_at,
        )
    return rule_timing(rule.labels_seen, earlier)


def freeze_rule(scope: Scope, *, name: str, author: str, rule: TrustRule) -> int:
    """Freeze a rule for the corpus and criterion of the scope; its id.

    Raises:
        ValueError: When something is missing.
    """
    thresholds = kept_thresholds(rule)
    rule_from(thresholds)
    with writes.writing(cached.engine()) as session:
        frozen = trust_writes.freeze_trust_rule(
            session=session,
            name=name,
            author=author,
            thresholds=thresholds,
            corpus=corpus_name(scope),
            criterion=scope.criterion.key,
        )
        return frozen.id or 0


def corpus_name(scope: Scope) -> str:
    """The corpus without its version."""
    corpora = cached.corpora(scope.at)
    return str(corpora.loc[corpora.id == scope.corpus_id, "name"].iloc[0])


def word_search_of(words: str, *, match: str, case: bool) -> WordSearch:
    """The search that a form describes.

    Raises:
        NothingToSearchError: Without a word.
    """
    return WordSearch(phrases_of(words), "all" if match == "all" else "any", case)


def word_search(comparison: Comparison, search: WordSearch) -> Assessment:
    """A word search against the same people, without saving anything.

    Raises:
        NothingToSearchError: When the corpus holds no text.
    """
    scope = comparison.scope
    return _searched(
        scope.at,
        scope.selection,
        search,
        label_set_id=comparison.labels.id,
        corpus_id=scope.corpus_id,
        criterion=scope.criterion.key,
        reference=comparison.reference,
        gate=scope.gate,
    )


@st.cache_resource(max_entries=FEW, show_spinner="Searching the texts…")
def _searched(
    at: Snapshot,
    selection: Selection,
    search: WordSearch,
    *,
    label_set_id: int,
    corpus_id: int,
    criterion: str,
    reference: str,
    gate: float,
) -> Assessment:
    with reading(cached.engine()) as session:
        texts = agreement_queries.list_candidates(session=session, corpus_id=corpus_id)
    if selection.item_slice is not None:
        texts = texts[texts.slice == selection.item_slice]
    if texts.candidate.isna().all():
        raise NothingToSearchError("this corpus holds no texts to search")
    verdicts = [search.passes(text if isinstance(text, str) else None) for text in texts.candidate]
    highest = len(selection.levels) - 1
    codes = np.array([[MISSING if verdict is None else highest * int(verdict)] for verdict in verdicts], np.int64)
    table = labels(
        at, label_set_id=label_set_id, corpus_id=corpus_id, criterion=criterion, item_slice=selection.item_slice
    )
    compared = _joined(texts.id.to_numpy(np.int64), codes, table, selection)
    slices = item_list(at, tuple(compared.item_ids.tolist())).slice
    return assess(
        compared,
        slices.tolist(),
        reference=reference,
        unit=f"{COLUMN}0",
        levels=np.array(selection.levels),
        gate=gate,
    )


def search_errors(scope: Scope, found: Assessment, positions: Ints) -> pd.DataFrame:
    """Items on which a word search errs, with their text: item, slice, people, text."""
    ids = tuple(found.item_ids[positions].tolist())
    with reading(cached.engine()) as session:
        texts = agreement_queries.list_candidates(session=session, corpus_id=scope.corpus_id).set_index("id")
    chosen = texts.reindex(ids)
    people = [f"{scope.criterion.levels[found.reference[position]]:g}" for position in positions.tolist()]
    return pd.DataFrame(
        {
            "item": chosen.key.tolist(),
            "slice": chosen.slice.tolist(),
            "people": people,
            "text": chosen.candidate.tolist(),
        }
    )


def save_word_search(scope: Scope, search: WordSearch) -> str:
    """Save a word search as a judge with a run over the scope's corpus; its key in the URL.

    Raises:
        NothingToSearchError: When the corpus holds no text.
    """
    judge_id = record_word_search(
        cached.engine(),
        search,
        corpus_id=scope.corpus_id,
        rubric_id=scope.criterion.rubric_id,
        criterion=scope.criterion,
    )
    judges = cached.judges(cached.snapshot())
    return judge_key(str(judges.loc[judges.judge_id == judge_id, "fingerprint"].iloc[0]))


@st.cache_data(max_entries=FEW, show_spinner=False)
def _trust_rules(at: Snapshot) -> pd.DataFrame:  # noqa: ARG001 - the key
    with reading(cached.engine()) as session:
        return agreement_queries.list_trust_rules(session=session)


def _compared(at: Snapshot, selection: Selection, label_set_id: int, corpus_id: int, criterion: str) -> Compared:
    matrix = cached.matrix(selection)
    table = labels(
        at, label_set_id=label_set_id, corpus_id=corpus_id, criterion=criterion, item_slice=selection.item_slice
    )
    return _joined(matrix.item_ids, matrix.codes.astype(np.int64), table, selection)


def _joined(item_ids: Ints, codes: Ints, table: LabelTable, selection: Selection) -> Compared:
    return compare(
        item_ids=item_ids,
        codes=codes,
        labelled_ids=table.item_ids,
        raters=table.raters,
        labels=table.values,
        adjudicated=table.adjudicated,
        levels=np.array(selection.levels),
    )


def _words_of(said: pd.DataFrame, comparison: Comparison, said_at: Bools) -> dict[Any, str]:
    """One rationale an item: of the chosen call, else of the first call at one of the levels."""
    if comparison.unit.startswith(COLUMN):
        column = cached.matrix(comparison.scope.selection).columns[int(comparison.unit.removeprefix(COLUMN))]
        said = said[(said.run_id == column.run_id) & (said.repetition == column.repetition)]
    said = said[said.value.isin(np.array(comparison.scope.criterion.levels)[said_at])]
    first = said[said.rationale.notna()].drop_duplicates("item_id")
    return dict(zip(first.item_id, first.rationale, strict=True))


def _score_words(scores: list[float]) -> str:
    """A score; of several calls each score with how often it was given."""
    if len(scores) < 2:
        return f"{scores[0]:g}" if scores else "no score"
    return ", ".join(f"{score:g} × {times}" for score, times in sorted(Counter(scores).items()))
