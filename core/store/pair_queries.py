"""Reads for judges of pairs: what a pair is made of, how long its candidates are, and who is known to have won."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sqlalchemy import Select, and_, case, func, select
from sqlalchemy.orm import aliased
from sqlmodel import Session

from core.store.tables import (
    Adjudication,
    CorpusItem,
    Criterion,
    Family,
    Item,
    ItemVector,
    Judge,
    Label,
    LabelSet,
    Order,
    Run,
)

ADJUDICATION = Adjudication.__table__.c
CRITERION = Criterion.__table__.c
FAMILY = Family.__table__.c
ITEM = Item.__table__.c
JUDGE = Judge.__table__.c
LABEL = Label.__table__.c
LABEL_SET = LabelSet.__table__.c
MEMBER = CorpusItem.__table__.c
RUN = Run.__table__.c
VECTOR = ItemVector.__table__.c

UNKNOWN = -128
"""The winner of a pair that no one knows, or on which people split evenly."""

_AT_ONCE = 50_000
_MOST_PARAMETERS = 900


class PairGroup(NamedTuple):
    """What pairs have in common: their slice and the systems that wrote candidates A and B."""

    slice: str
    system: str
    system_b: str


@dataclass(frozen=True, slots=True)
class PairGroups:
    """The group of every pair, as a code: a million pairs hold a few groups.

    Attributes:
        item_ids: Shape (pairs,), ascending.
        codes: Place of each pair's group in `groups`, shape (pairs,).
        groups: The distinct groups.
    """

    item_ids: NDArray[np.int64]
    codes: NDArray[np.int64]
    groups: tuple[PairGroup, ...]


@dataclass(frozen=True, slots=True)
class PairLengths:
    """Characters of both candidates; 0 where there is no text.

    Attributes:
        item_ids: Shape (pairs,), ascending.
        candidate: Length of candidate A, shape (pairs,).
        candidate_b: Length of candidate B, shape (pairs,).
    """

    item_ids: NDArray[np.int64]
    candidate: NDArray[np.int64]
    candidate_b: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PairWinners:
    """Known winners of pairs.

    Attributes:
        item_ids: Shape (pairs,), ascending.
        winners: +1 candidate A, 0 tie, -1 candidate B, UNKNOWN where people split evenly; shape (pairs,).
    """

    item_ids: NDArray[np.int64]
    winners: NDArray[np.int8]


def get_pair_groups(*, session: Session, run_ids: Sequence[int], criterion_id: int) -> PairGroups:
    """Slice and systems of every pair that the runs judged on the criterion."""
    query = select(ITEM.id, ITEM.slice, ITEM.system, ITEM.system_b).where(_judged(run_ids, criterion_id))
    places: dict[tuple[str, str, str], int] = {}
    ids, codes = [], []
    for rows in session.execute(query.order_by(ITEM.id)).partitions(_AT_ONCE):
        ids.append(np.fromiter((row[0] for row in rows), np.int64, len(rows)))
        found = (places.setdefault((row[1], row[2], row[3]), len(places)) for row in rows)
        codes.append(np.fromiter(found, np.int64, len(rows)))
    return PairGroups(_joined(ids), _joined(codes), tuple(PairGroup(*group) for group in places))


def get_pair_lengths(*, session: Session, run_ids: Sequence[int], criterion_id: int) -> PairLengths:
    """Length of both candidates of every pair that the runs judged; the database counts, no text is read."""
    query = select(
        ITEM.id,
        func.coalesce(func.length(ITEM.candidate), 0),
        func.coalesce(func.length(ITEM.candidate_b), 0),
    ).where(_judged(run_ids, criterion_id))
    columns = _columns(session, query.order_by(ITEM.id), 3)
    return PairLengths(columns[0], columns[1], columns[2])


def list_winner_sets(*, session: Session, corpus_id: int, criterion_key: str) -> pd.DataFrame:
    """Label sets that name the winner of some pair of the corpus, newest first.

    Columns: label_set_id, name, version, rubric_id, criterion_id, pairs, simulated.
    """
    query = (
        select(
            LABEL_SET.id.label("label_set_id"),
            LABEL_SET.name,
            LABEL_SET.version,
            LABEL_SET.rubric_id,
            LABEL.criterion_id,
            func.count(LABEL.item_id.distinct()).label("pairs"),
            LABEL_SET.simulated,
        )
        .join(Label, LABEL.label_set_id == LABEL_SET.id)
        .join(Criterion, CRITERION.id == LABEL.criterion_id)
        .join(CorpusItem, MEMBER.item_id == LABEL.item_id)
        .join(Item, ITEM.id == LABEL.item_id)
        .where(MEMBER.corpus_id == corpus_id, CRITERION.key == criterion_key, ITEM.pair)
        .group_by(LABEL_SET.id, LABEL.criterion_id)
        .order_by(LABEL_SET.id.desc())
    )
    return _frame(session, query)


def get_pair_winners(*, session: Session, label_set_id: int, criterion_id: int) -> PairWinners:
    """The winner of each labelled pair: as adjudicated, else the verdict that most raters gave.

    The newest label of a rater counts. A value between two levels, as a mean of raters is, counts by its sign.
    """
    newest = (
        select(func.max(LABEL.id).label("id"))
        .where(LABEL.label_set_id == label_set_id, LABEL.criterion_id == criterion_id)
        .group_by(LABEL.item_id, LABEL.rater)
        .subquery()
    )
    votes = [func.sum(case((chosen, 1), else_=0)) for chosen in (LABEL.value > 0, LABEL.value == 0, LABEL.value < 0)]
    query = select(LABEL.item_id, *votes).join(newest, newest.c.id == LABEL.id).group_by(LABEL.item_id)
    item_ids, *counts = _columns(session, query.order_by(LABEL.item_id), 4)
    table = np.stack(counts, axis=1)
    leaders = table == table.max(axis=1, keepdims=True, initial=0)
    winners = np.where(leaders.sum(axis=1) == 1, 1 - leaders.argmax(axis=1), UNKNOWN).astype(np.int8)
    return _adjudicated(session, label_set_id, criterion_id, PairWinners(item_ids, winners))


def _adjudicated(session: Session, label_set_id: int, criterion_id: int, found: PairWinners) -> PairWinners:
    """The winners with the newest adjudication of each pair in place of the labels."""
    query = (
        select(ADJUDICATION.item_id, ADJUDICATION.value)
        .where(ADJUDICATION.label_set_id == label_set_id, ADJUDICATION.criterion_id == criterion_id)
        .order_by(ADJUDICATION.id)
    )
    resolved = {item: int(np.sign(value)) for item, value in session.execute(query)}
    if not resolved:
        return found
    known = dict(zip(found.item_ids.tolist(), found.winners.tolist(), strict=True)) | resolved
    item_ids = np.array(sorted(known), np.int64)
    return PairWinners(item_ids, np.array([known[item] for item in item_ids.tolist()], np.int8))


def list_single_twins(*, session: Session, run_ids: Sequence[int], criterion_id: int) -> pd.DataFrame:
    """Pairs both of whose candidates are also single items, word for word: item_id, twin, twin_b.

    The database compares the texts; none is read.
    """
    one, two = aliased(Item.__table__), aliased(Item.__table__)
    query = (
        select(ITEM.id.label("item_id"), func.min(one.c.id).label("twin"), func.min(two.c.id).label("twin_b"))
        .join(one, and_(one.c.candidate == ITEM.candidate, ~one.c.pair))
        .join(two, and_(two.c.candidate == ITEM.candidate_b, ~two.c.pair))
        .where(_judged(run_ids, criterion_id))
        .group_by(ITEM.id)
        .order_by(ITEM.id)
    )
    single = select(ITEM.id).where(~ITEM.pair, ITEM.candidate.is_not(None)).limit(1)
    if session.execute(single).first() is None:
        return pd.DataFrame(columns=["item_id", "twin", "twin_b"])
    return _frame(session, query)


def list_single_judges(*, session: Session, item_ids: Iterable[int]) -> pd.DataFrame:
    """Judges and criteria that scored any of these single items: judge_id, name, model, criterion_id, criterion."""
    few = list(item_ids)[:_MOST_PARAMETERS]
    query = (
        select(JUDGE.id.label("judge_id"), JUDGE.name, JUDGE.model, CRITERION.id.label("criterion_id"), CRITERION.key)
        .distinct()
        .join(Run, RUN.judge_id == JUDGE.id)
        .join(ItemVector, VECTOR.run_id == RUN.id)
        .join(Criterion, CRITERION.id == VECTOR.criterion_id)
        .where(VECTOR.slot_order == Order.SINGLE, VECTOR.item_id.in_(few))
        .order_by(JUDGE.id, CRITERION.id)
    )
    return _frame(session, query).rename(columns={"key": "criterion"})


def list_judge_runs(*, session: Session, judge_id: int) -> list[int]:
    """Ids of all runs of a judge, over any corpus."""
    return list(session.scalars(select(RUN.id).where(RUN.judge_id == judge_id).order_by(RUN.id)))


def list_families(*, session: Session) -> pd.DataFrame:
    """Families as people entered them: kind ("judge" or "system"), name, family."""
    return _frame(session, select(FAMILY.kind, FAMILY.name, FAMILY.family).order_by(FAMILY.kind, FAMILY.name))


def _judged(run_ids: Sequence[int], criterion_id: int) -> Any:
    """Whether the runs hold an outcome of the item on the criterion."""
    outcomes = select(VECTOR.item_id).where(
        VECTOR.run_id.in_(run_ids), VECTOR.criterion_id == criterion_id, VECTOR.slot_order.in_((Order.AB, Order.BA))
    )
    return ITEM.id.in_(outcomes)


def _columns(session: Session, query: Select[Any], width: int) -> list[NDArray[np.int64]]:
    """A query of whole numbers as arrays, one a column."""
    parts: list[list[NDArray[np.int64]]] = [[] for _ in range(width)]
    for rows in session.execute(query).partitions(_AT_ONCE):
        block = np.array([tuple(row) for row in rows], np.int64)
        for place in range(width):
            parts[place].append(block[:, place])
    return [_joined(part) for part in parts]


def _joined(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _frame(session: Session, query: Select[Any]) -> pd.DataFrame:
    result = session.execute(query)
    return pd.DataFrame(result.all(), columns=list(result.keys()))
