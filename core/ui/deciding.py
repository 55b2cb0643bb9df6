"""Scores as a rule sees them, of a judge or of people; readers against readers; and what a change would move."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray
from sqlmodel import Session

from core.stats.against_people import modal_codes
from core.stats.common import MISSING, Bools, Estimate, Floats, Ints
from core.stats.decision import Rule, RuleError, Scale, Table, parse_rule, totals
from core.stats.health import SEED
from core.stats.two_raters import cohens_kappa, cross_tab, exact_agreement
from core.store import label_queries, label_writes, queries, writes
from core.store.engine import reading
from core.store.queries import CriterionView
from core.ui import cached, labelling, url
from core.ui.cached import Selection, Snapshot
from core.ui.labelling import SetView
from core.ui.scope import corpus_key, judge_words, level_words

DECISION = "decision"
"""The row of the ready decision among the criteria."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where scores come from.

    Attributes:
        key: As it stands in the URL.
        name: In words.
        kind: A label set's final labels, or a judge's most frequent scores.
        id: Label set or judge.
        corpus_id: Corpus of a judge's scores; None for labels.
        rubric_id: Rubric version.
        rubric: Rubric and version in words.
        rubric_name: Its name alone.
    """

    key: str
    name: str
    kind: Literal["labels", "judge"]
    id: int
    corpus_id: int | None
    rubric_id: int
    rubric: str
    rubric_name: str


@dataclass(frozen=True, slots=True)
class Scored:
    """Scores of one source, ready for a rule.

    Attributes:
        item_ids: Ascending, shape (items,).
        keys: Names of the items.
        systems: Who wrote them.
        table: The scores.
    """

    item_ids: NDArray[np.int64]
    keys: tuple[str, ...]
    systems: tuple[str, ...]
    table: Table


@dataclass(frozen=True, slots=True)
class ReaderRow:
    """Two readers on one criterion, or on the decision.

    Attributes:
        criterion: Its key, or "decision".
        agreement: Share of items with the same label.
        kappa: Cohen's kappa.
        quadratic: Cohen's kappa with quadratic weights; of the decision the same as `kappa`.
        same: Items with the same label.
        both: Items that both labelled.
    """

    criterion: str
    agreement: Estimate
    kappa: Estimate
    quadratic: Estimate
    same: int
    both: int


def scales_of(criteria: tuple[CriterionView, ...]) -> tuple[Scale, ...]:
    """What a rule needs to know of the criteria."""
    return tuple(Scale(view.key, view.levels, view.gate, view.weight, view.veto) for view in criteria)


def list_sources(at: Snapshot) -> dict[str, Source]:
    """Every label set with labels and every judge of single answers, by its key in the URL."""
    found = []
    for row in labelling.list_sets(at).rename(columns={"name": "set_name"}).itertuples():
        if row.labels:
            key = corpus_key(row.set_name, row.version)
            name = f"People: {row.set_name} v{row.version}, {row.rubric} v{row.rubric_version}"
            found.append(
                Source(
                    f"labels:{key}",
                    name,
                    "labels",
                    int(row.id),
                    None,
                    int(row.rubric_id),
                    f"{row.rubric} v{row.rubric_version}",
                    str(row.rubric),
                )
            )
    judges = cached.judges(at)
    for _, judge in judges[~judges.pairwise.astype(bool)].iterrows():
        corpus = corpus_key(judge.corpus, judge.corpus_version)
        found.append(
            Source(
                f"judge:{judge.fingerprint[:12]}:{corpus}",
                f"Judge: {judge_words(judge)} on {judge.corpus} v{judge.corpus_version}",
                "judge",
                int(judge.judge_id),
                int(judge.corpus_id),
                int(judge.rubric_id),
                f"{judge.rubric} v{judge.rubric_version}",
                str(judge.rubric),
            )
        )
    return {source.key: source for source in found}


@st.cache_resource(max_entries=cached.FEW, show_spinner="Reading scores…")
def scored(at: Snapshot, source: Source) -> Scored:
    """The scores of a source, one row an item.

    Of people: the adjudicated label, else the one that most of them gave; where they are split it is missing. Of a
    judge: the most frequent score, of a tie the lower one.
    """
    criteria = cached.criteria(at, rubric_id=source.rubric_id)
    scores = _people(at, source, criteria) if source.kind == "labels" else _judge(at, source, criteria)
    return _as_scored(scores, criteria)


def totals_of_set(at: Snapshot, labels: SetView) -> dict[int, float]:
    """Total of each item by the final labels of a set."""
    source = list_sources(at).get(f"labels:{labels.key}")
    if source is None:
        return {}
    found = scored(at, source)
    return dict(zip(found.item_ids.tolist(), totals(found.table).tolist(), strict=True))


def stored_rule(at: Snapshot, rubric_id: int) -> str:
    """The rubric version's rule for what is ready; empty for every gate."""
    rubrics = labelling.list_rubrics(at)
    return str(rubrics[rubrics.id == rubric_id].ready_rule.iloc[0])


def select_rule(at: Snapshot, source: Source, scales: tuple[Scale, ...]) -> Rule | None:
    """Draw the rule, which may be changed to see what would follow; None, with the error on screen, when it is none."""
    stored = stored_rule(at, source.rubric_id)
    text = url.ask(
        st.container(),
        "Ready when",
        "rule",
        placeholder=stored or "every criterion at its gate",
        help="For example: correctness is 2 and no criterion is 0. Empty: the rubric's own rule. Nothing is saved.",
    )
    try:
        return parse_rule(text or stored, scales)
    except RuleError as error:
        st.error(f"The rule cannot be read: {error}.", icon=":material/error:")
        st.code(f"{text or stored}\n{' ' * (error.position - 1)}^", language=None)
        return None


def find_words(at: Snapshot, source: Source, criterion_key: str, words: str) -> set[int]:
    """Items whose candidate, reason or rationale on the criterion holds the words."""
    criterion = {view.key: view for view in cached.criteria(at, rubric_id=source.rubric_id)}[criterion_key]
    with reading(cached.engine()) as session:
        if source.kind == "labels":
            return label_queries.find_label_text(
                session=session, label_set_id=source.id, criterion_id=criterion.id, words=words
            )
        runs = [run for run, _ in _runs(at, source)]
        return label_queries.find_score_text(session=session, run_ids=runs, criterion_id=criterion.id, words=words)


def common(first: Scored, second: Scored) -> tuple[Scored, Scored]:
    """Both sources on the items they share, in the same order."""
    shared = np.intersect1d(first.item_ids, second.item_ids)
    return _only(first, shared), _only(second, shared)


def list_raters(at: Snapshot, labels: SetView) -> list[str]:
    """Readers of a label set, those with most labels first."""
    found = labelling.list_labels(at, labels.id)
    return [str(name) for name in found.rater.value_counts().index]


def compare_readers(at: Snapshot, labels: SetView, first: str, second: str) -> list[ReaderRow]:
    """How two readers agree on every criterion and on the decision, over the items that both labelled.

    Without the row of the decision when the rubric's rule cannot be read.
    """
    criteria = cached.criteria(at, rubric_id=labels.rubric_id)
    one, other = _reader_scores(at, labels, criteria, first), _reader_scores(at, labels, criteria, second)
    one, other = one.align(other, join="inner", axis=0)
    rows = []
    for view in criteria:
        codes = [_codes(frame[view.key].to_numpy(float), view.levels) for frame in (one, other)]
        rows.append(_reader_row(view.key, codes[0], codes[1], np.array(view.levels)))
    try:
        rule = parse_rule(stored_rule(at, labels.rubric_id), scales_of(criteria))
    except RuleError:
        return rows
    decisions = [_decisions(rule, frame, criteria) for frame in (one, other)]
    return [*rows, _reader_row(DECISION, decisions[0], decisions[1], np.array([0.0, 1.0]))]


def list_differences(at: Snapshot, labels: SetView, first: str, second: str) -> pd.DataFrame:
    """Items and criteria on which two readers differ, with both reasons and the resolution.

    Columns: item_id, criterion_id, item, criterion, first, first_reason, second, second_reason, final, author, note.
    """
    keys = {view.id: view.key for view in cached.criteria(at, rubric_id=labels.rubric_id)}
    found = labelling.list_labels(at, labels.id)
    columns = ["item_id", "criterion_id"]
    both = found[found.rater == first].merge(found[found.rater == second], on=columns, suffixes=("", "_second"))
    both = both[both.value != both.value_second]
    with reading(cached.engine()) as session:
        resolved = label_queries.list_adjudications(session=session, label_set_id=labels.id)
    resolved = resolved.drop_duplicates(columns, keep="last")
    both = both.merge(resolved, on=columns, how="left", suffixes=("", "_final"))
    return pd.DataFrame(
        {
            "item_id": both.item_id.to_numpy(),
            "criterion_id": both.criterion_id.to_numpy(),
            "item": both.key.to_numpy(),
            "criterion": [keys[int(criterion)] for criterion in both.criterion_id],
            "first": [level_words(value) for value in both.value],
            "first_reason": both.reason.to_numpy(),
            "second": [level_words(value) for value in both.value_second],
            "second_reason": both.reason_second.to_numpy(),
            "final": ["open" if np.isnan(value) else level_words(value) for value in both.value_final.astype(float)],
            "author": both.author.fillna("").to_numpy(),
            "note": both.note.fillna("").to_numpy(),
        }
    )


def show_adjudication(at: Snapshot, labels: SetView, difference: pd.Series) -> None:
    """The form that records the resolution of one difference."""
    criterion = {view.id: view for view in cached.criteria(at, rubric_id=labels.rubric_id)}[
        int(difference.criterion_id)
    ]
    options = [level_words(level) for level in criterion.levels]
    with st.form("adjudication", clear_on_submit=True):
        final = st.radio("Final label", options, index=None, horizontal=True)
        author = st.text_input("Author or authors", key="author", help="A third person, or the two together.")
        note = st.text_area("Why", key="note", help="Kept with the final label. Both labels stay as they are.")
        if not st.form_submit_button("Record the final label"):
            return
    if final is None:
        st.error("Choose the final label.", icon=":material/error:")
        return
    try:
        with writes.writing(cached.engine()) as session:
            label_writes.record_adjudication(
                session=session,
                label_set_id=labels.id,
                item_id=int(difference.item_id),
                criterion_id=criterion.id,
                value=criterion.levels[options.index(final)],
                author=author,
                note=note,
            )
    except ValueError as error:
        st.error(f"Not recorded: {error}.", icon=":material/error:")
    else:
        st.rerun()


def stale_labels(at: Snapshot, rubric_id: int) -> pd.DataFrame:  # noqa: ARG001 - read anew with every revision
    """`label_queries.list_stale_labels`."""
    with reading(cached.engine()) as session:
        return label_queries.list_stale_labels(session=session, rubric_id=rubric_id)


def stale_scores(at: Snapshot, rubric_id: int) -> pd.DataFrame:  # noqa: ARG001 - read anew with every revision
    """`label_queries.list_stale_scores`."""
    with reading(cached.engine()) as session:
        return label_queries.list_stale_scores(session=session, rubric_id=rubric_id)


def change_log(name: str) -> pd.DataFrame:
    """`label_queries.list_change_log`."""
    with reading(cached.engine()) as session:
        return label_queries.list_change_log(session=session, name=name)


def newer_versions_touch(at: Snapshot, rubric_id: int) -> dict[str, str]:
    """Criteria of a rubric version that its newest version touches, and what changed."""
    rubrics = labelling.list_rubrics(at)
    own = rubrics[rubrics.id == rubric_id].iloc[0]
    newest = rubrics[rubrics["name"] == own["name"]].iloc[0]
    return label_queries.touched_criteria(
        cached.criteria(at, rubric_id=rubric_id), cached.criteria(at, rubric_id=int(newest.id))
    )


def show_changes(at: Snapshot, rubric_id: int) -> None:
    """The forms that make the next version of a rubric: another anchor, or another rule for what is ready."""
    criteria = {view.key: view for view in cached.criteria(at, rubric_id=rubric_id)}
    left, right = st.columns(2)
    with left:
        key = url.choose(st.container(), "Criterion", "change", {name: name for name in criteria})
        view = criteria[key]
        with st.form("change_anchor"):
            level = st.selectbox(
                "Level",
                range(len(view.levels)),
                format_func=lambda place: f"{view.levels[place]:g}: {view.anchors[place]}",
            )
            anchor = st.text_area("New anchor", help="What a reader must see to give this level.")
            author, reason = st.text_input("Author", key="anchor_author"), st.text_input("Reason", key="anchor_reason")
            if st.form_submit_button("Make the next version"):
                _change(
                    lambda session: label_writes.change_anchor(
                        session=session,
                        rubric_id=rubric_id,
                        criterion=key,
                        level=view.levels[level],
                        anchor=anchor,
                        author=author,
                        reason=reason,
                    )
                )
    with right, st.form("change_rule"):
        rule = st.text_input("Ready when", value=stored_rule(at, rubric_id), help="Empty: every criterion at its gate.")
        author, reason = st.text_input("Author", key="rule_author"), st.text_input("Reason", key="rule_reason")
        if st.form_submit_button("Make the next version"):
            try:
                parse_rule(rule, scales_of(tuple(criteria.values())))
            except RuleError as error:
                st.error(f"The rule cannot be read: {error}.", icon=":material/error:")
                return
            _change(
                lambda session: label_writes.change_ready_rule(
                    session=session, rubric_id=rubric_id, ready_rule=rule, author=author, reason=reason
                )
            )


def queue_rescoring(label_set_id: int, rubric_id: int) -> str:
    """Open the next version of a label set with a queue of what is stale; returns its key in the URL."""
    with writes.writing(cached.engine()) as session:
        made = label_writes.open_rescoring(session=session, label_set_id=label_set_id, rubric_id=rubric_id)
    sets = labelling.list_sets(cached.snapshot())
    row = sets[sets.id == made].iloc[0]
    return corpus_key(row["name"], row.version)


def _change(change: Callable[[Session], int]) -> None:
    try:
        with writes.writing(cached.engine()) as session:
            change(session)
    except ValueError as error:
        st.error(f"Not changed: {error}.", icon=":material/error:")
    else:
        url.publish(rubric="")
        st.rerun()


def _people(at: Snapshot, source: Source, criteria: tuple[CriterionView, ...]) -> pd.DataFrame:
    labels = labelling.list_labels(at, source.id)
    with reading(cached.engine()) as session:
        resolved = label_queries.list_adjudications(session=session, label_set_id=source.id)
    columns = ["item_id", "criterion_id"]
    final = labels.groupby(columns).value.agg(_most)
    final.update(resolved.drop_duplicates(columns, keep="last").set_index(columns).value)
    return _wide(final, criteria)


def _judge(at: Snapshot, source: Source, criteria: tuple[CriterionView, ...]) -> pd.DataFrame:
    parts = {}
    for view in criteria:
        matrix = cached.matrix(Selection(at.store, _runs(at, source), view.id, view.levels))
        codes = modal_codes(matrix.codes, len(view.levels))
        values = np.where(codes == MISSING, np.nan, np.array(view.levels)[codes])
        parts[view.key] = pd.Series(values, index=pd.Index(matrix.item_ids, name="item_id"))
    return pd.DataFrame(parts).sort_index()


def _runs(at: Snapshot, source: Source) -> tuple[tuple[int, int], ...]:
    if source.corpus_id is None:
        raise ValueError("labels have no runs")
    runs = cached.runs(at, judge_id=source.id, corpus_id=source.corpus_id)
    return tuple((int(run.id), int(run.revision)) for run in runs.itertuples())


def _most(values: pd.Series) -> float:
    """The value most readers gave; nan when they are split."""
    modes = values.mode()
    return float(modes.iloc[0]) if len(modes) == 1 else float("nan")


def _reader_scores(at: Snapshot, labels: SetView, criteria: tuple[CriterionView, ...], rater: str) -> pd.DataFrame:
    found = labelling.list_labels(at, labels.id)
    return _wide(found[found.rater == rater].set_index(["item_id", "criterion_id"]).value, criteria)


def _wide(values: pd.Series, criteria: tuple[CriterionView, ...]) -> pd.DataFrame:
    """Values by item and criterion as a frame with one column a criterion, in rubric order."""
    wide = values.unstack("criterion_id").reindex(columns=[view.id for view in criteria]).sort_index()
    wide.columns = pd.Index([view.key for view in criteria])
    return wide


def _as_scored(scores: pd.DataFrame, criteria: tuple[CriterionView, ...]) -> Scored:
    with reading(cached.engine()) as session:
        items = queries.list_items(session=session, item_ids=[int(item) for item in scores.index])
    return Scored(
        scores.index.to_numpy(np.int64),
        tuple(items.key),
        tuple(name or "not named" for name in items.system),
        Table(scales_of(criteria), scores.to_numpy(float)),
    )


def _only(source: Scored, item_ids: NDArray[np.int64]) -> Scored:
    rows = np.searchsorted(source.item_ids, item_ids)
    return Scored(
        item_ids,
        tuple(source.keys[row] for row in rows),
        tuple(source.systems[row] for row in rows),
        Table(source.table.scales, source.table.scores[rows]),
    )


def _codes(values: Floats, levels: tuple[float, ...]) -> Ints:
    """Level indices; MISSING where there is no label or one between two levels."""
    same: Bools = values[:, None] == np.array(levels)
    return np.where(same.any(axis=1), same.argmax(axis=1), MISSING).astype(np.int64)


def _decisions(rule: Rule, scores: pd.DataFrame, criteria: tuple[CriterionView, ...]) -> Ints:
    answers = rule.decide(Table(scales_of(criteria), scores.to_numpy(float)))
    return np.where(answers.undefined, MISSING, answers.yes).astype(np.int64)


def _reader_row(criterion: str, first: Ints, second: Ints, levels: Floats) -> ReaderRow:
    table = cross_tab(first, second, len(levels))
    rng = np.random.default_rng(SEED)
    return ReaderRow(
        criterion,
        agreement=exact_agreement(table),
        kappa=cohens_kappa(table, levels, rng=rng).estimate,
        quadratic=cohens_kappa(table, levels, weights="quadratic", rng=rng).estimate,
        same=int(np.trace(table)),
        both=int(table.sum()),
    )
