"""Reads of people's labels beside a judge's scores, and of the frozen trust rules."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sqlalchemy import Select, func, select
from sqlalchemy.sql.base import ReadOnlyColumnCollection
from sqlmodel import Session

from core.store.tables import (
    Adjudication,
    Call,
    CorpusItem,
    Criterion,
    Item,
    Label,
    LabelSet,
    Rubric,
    Run,
    Score,
    ScoreEvidence,
    TrustRule,
)

LABEL = Label.__table__.c
ADJUDICATION = Adjudication.__table__.c
SET = LabelSet.__table__.c
CRITERION = Criterion.__table__.c
MEMBER = CorpusItem.__table__.c
ITEM = Item.__table__.c
RUBRIC = Rubric.__table__.c
RULE = TrustRule.__table__.c
CALL = Call.__table__.c
RUN = Run.__table__.c
SCORE = Score.__table__.c
EVIDENCE = ScoreEvidence.__table__.c

TRUST = "trust"
"""The kind of a frozen rule whose thresholds name none: may this judge be trusted?"""

_MOST_PARAMETERS = 900


@dataclass(frozen=True, slots=True)
class LabelTable:
    """The labels of one label set on one criterion: never of two sets.

    Attributes:
        item_ids: Items with a label or an adjudication, ascending, shape (items,).
        raters: Names, in order.
        values: Newest label of each rater, shape (raters, items), nan where there is none.
        adjudicated: Newest recorded final label, shape (items,), nan where there is none.
        labels: Labels that count: one a rater and item.
        superseded: Older labels of the same rater and item, which do not count.
        rubric_id: Rubric version the set was made under.
    """

    item_ids: NDArray[np.int64]
    raters: tuple[str, ...]
    values: NDArray[np.float64]
    adjudicated: NDArray[np.float64]
    labels: int
    superseded: int
    rubric_id: int


def list_label_sets(*, session: Session, corpus_id: int, criterion: str) -> pd.DataFrame:
    """Label sets with labels of this criterion on items of the corpus, newest first.

    Columns: id, name, version, policy, rubric_id, rubric, rubric_version, simulated, created_at, labels, items, raters.
    """
    query = (
        select(
            SET.id,
            SET.name,
            SET.version,
            SET.policy,
            SET.rubric_id,
            RUBRIC.name.label("rubric"),
            RUBRIC.version.label("rubric_version"),
            SET.simulated,
            SET.created_at,
            func.count().label("labels"),
            func.count(LABEL.item_id.distinct()).label("items"),
            func.count(LABEL.rater.distinct()).label("raters"),
        )
        .select_from(Label.__table__)
        .join(LabelSet.__table__, SET.id == LABEL.label_set_id)
        .join(Rubric.__table__, RUBRIC.id == SET.rubric_id)
        .join(Criterion.__table__, CRITERION.id == LABEL.criterion_id)
        .join(CorpusItem.__table__, MEMBER.item_id == LABEL.item_id)
        .where(MEMBER.corpus_id == corpus_id, CRITERION.key == criterion)
        .group_by(SET.id, RUBRIC.id)
        .order_by(SET.id.desc())
    )
    result = session.execute(query)
    return pd.DataFrame(result.all(), columns=list(result.keys()))


def get_labels(
    *, session: Session, label_set_id: int, corpus_id: int, criterion: str, item_slice: str | None = None
) -> LabelTable:
    """The labels that count of one set: of each rater the newest an item, and the newest adjudication.

    Args:
        session: An open session.
        label_set_id: The one set.
        corpus_id: Only items of this corpus version.
        criterion: Key of the criterion.
        item_slice: Only items of this slice.

    Raises:
        ValueError: When there is no such label set.
    """
    label_set = session.get(LabelSet, label_set_id)
    if label_set is None:
        raise ValueError(f"there is no label set {label_set_id}")
    found = session.execute(
        _on_corpus(
            select(LABEL.item_id, LABEL.rater, LABEL.value, LABEL.id).where(LABEL.label_set_id == label_set_id),
            LABEL,
            corpus_id,
            criterion,
            item_slice,
        ).order_by(LABEL.id)
    ).all()
    newest = {(row.item_id, row.rater): float(row.value) for row in found}
    final = {
        row.item_id: float(row.value)
        for row in session.execute(
            _on_corpus(
                select(ADJUDICATION.item_id, ADJUDICATION.value, ADJUDICATION.id).where(
                    ADJUDICATION.label_set_id == label_set_id
                ),
                ADJUDICATION,
                corpus_id,
                criterion,
                item_slice,
            ).order_by(ADJUDICATION.id)
        )
    }
    item_ids = np.array(sorted({item for item, _ in newest} | final.keys()), dtype=np.int64)
    raters = tuple(sorted({rater for _, rater in newest}))
    place = {item: position for position, item in enumerate(item_ids.tolist())}
    values = np.full((len(raters), len(item_ids)), np.nan)
    for (item, rater), value in newest.items():
        values[raters.index(rater), place[item]] = value
    adjudicated = np.full(len(item_ids), np.nan)
    for item, value in final.items():
        adjudicated[place[item]] = value
    return LabelTable(item_ids, raters, values, adjudicated, len(newest), len(found) - len(newest), label_set.rubric_id)


def count_labels(
    *,
    session: Session,
    collection: str,
    criterion: str,
    label_set_id: int | None = None,
    before: datetime | None = None,
) -> int:
    """Labels and adjudications of a criterion on the items of a corpus in all its versions.

    Args:
        session: An open session.
        collection: Name of the corpus.
        criterion: Key of the criterion.
        label_set_id: Only of this set; of every set when None.
        before: Only those made before this time.
    """
    total = 0
    for table in (Label.__table__, Adjudication.__table__):
        query = (
            select(func.count())
            .select_from(table)
            .join(Item.__table__, ITEM.id == table.c.item_id)
            .join(Criterion.__table__, CRITERION.id == table.c.criterion_id)
            .where(ITEM.collection == collection, CRITERION.key == criterion)
        )
        if label_set_id is not None:
            query = query.where(table.c.label_set_id == label_set_id)
        if before is not None:
            query = query.where(table.c.created_at <= before)
        total += session.scalar(query) or 0
    return total


def list_label_reasons(*, session: Session, label_set_id: int, criterion: str, item_ids: Sequence[int]) -> pd.DataFrame:
    """Every label of a set on some items, oldest first: item_id, rater, value, reason."""
    query = (
        select(LABEL.item_id, LABEL.rater, LABEL.value, LABEL.reason)
        .join(Criterion.__table__, CRITERION.id == LABEL.criterion_id)
        .where(LABEL.label_set_id == label_set_id, CRITERION.key == criterion)
        .order_by(LABEL.id)
    )
    return _by_items(session, query, LABEL.item_id, item_ids)


def list_rationales(
    *, session: Session, run_ids: Sequence[int], criterion_id: int, item_ids: Sequence[int]
) -> pd.DataFrame:
    """The judge's words on some items, in the order of its calls: item_id, run_id, repetition, value, rationale."""
    query = (
        select(CALL.item_id, CALL.run_id, CALL.repetition, SCORE.value, EVIDENCE.rationale)
        .join(Score.__table__, SCORE.call_id == CALL.id)
        .outerjoin(ScoreEvidence.__table__, EVIDENCE.score_id == SCORE.id)
        .where(CALL.run_id.in_(run_ids), SCORE.criterion_id == criterion_id, SCORE.value.is_not(None))
        .order_by(CALL.run_id, CALL.repetition, CALL.item_id)
    )
    return _by_items(session, query, CALL.item_id, item_ids)


def list_candidates(*, session: Session, corpus_id: int) -> pd.DataFrame:
    """The texts of a corpus's single items, for a program that reads them: id, key, slice, candidate."""
    query = (
        select(ITEM.id, ITEM.key, ITEM.slice, ITEM.candidate)
        .join(CorpusItem.__table__, MEMBER.item_id == ITEM.id)
        .where(MEMBER.corpus_id == corpus_id, ITEM.pair.is_(False))
        .order_by(ITEM.id)
    )
    result = session.execute(query)
    return pd.DataFrame(result.all(), columns=list(result.keys()))


def find_run(*, session: Session, judge_id: int, corpus_id: int) -> int | None:
    """A run of the judge over the corpus version, when there is one."""
    found: int | None = session.scalar(select(RUN.id).where(RUN.judge_id == judge_id, RUN.corpus_id == corpus_id))
    return found


def list_trust_rules(*, session: Session, kind: str = TRUST) -> pd.DataFrame:
    """Every frozen rule of a kind, newest first: id, name, author, thresholds, sha256, labels_seen, created_at.

    Args:
        session: An open session.
        kind: What its thresholds name as `kind`; trust where they name none.
    """
    query = select(
        RULE.id, RULE.name, RULE.author, RULE.thresholds, RULE.sha256, RULE.labels_seen, RULE.created_at
    ).order_by(RULE.id.desc())
    result = session.execute(query)
    wanted = [row for row in result if row.thresholds.get("kind", TRUST) == kind]
    return pd.DataFrame(wanted, columns=list(result.keys()))


def _on_corpus(
    query: Select[Any],
    table: ReadOnlyColumnCollection[str, Any],
    corpus_id: int,
    criterion: str,
    item_slice: str | None,
) -> Select[Any]:
    """Keep the rows on items of a corpus version, on one criterion and, where one is named, of one slice."""
    query = (
        query.join(Criterion.__table__, CRITERION.id == table.criterion_id)
        .join(CorpusItem.__table__, MEMBER.item_id == table.item_id)
        .where(MEMBER.corpus_id == corpus_id, CRITERION.key == criterion)
    )
    if item_slice is None:
        return query
    return query.join(Item.__table__, ITEM.id == table.item_id).where(ITEM.slice == item_slice)


def _by_items(session: Session, query: Select[Any], column: Any, item_ids: Sequence[int]) -> pd.DataFrame:
    """The rows on some items, asked for in portions that every database takes."""
    frames = []
    for start in range(0, max(len(item_ids), 1), _MOST_PARAMETERS):
        result = session.execute(query.where(column.in_(item_ids[start : start + _MOST_PARAMETERS])))
        frames.append(pd.DataFrame(result.all(), columns=list(result.keys())))
    return pd.concat(frames, ignore_index=True)
