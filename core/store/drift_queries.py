"""Reads for comparing two sets of runs: which items are the same text, and which replies are copies."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sqlalchemy import select
from sqlmodel import Session, col

from core.store.queries import ScoreMatrix
from core.store.tables import Call, Item, ItemVector, Judge, LabelSet, Rubric
from core.store.vectors import COPIED

_MOST_PARAMETERS = 900
_FACTS = ["id", "key", "content_sha256"]


@dataclass(frozen=True, slots=True)
class Alignment:
    """The items of two score matrices, paired where both sides judged the same text.

    Attributes:
        rows_a: Rows of the first matrix that are paired, shape (n,).
        rows_b: Rows of the second matrix, in the same order.
        unchecked: Pairs of the same stored item whose source gave neither a text nor a hash.
        changed: One row a key under which the two sides judged different texts, never paired: key, item_a, item_b.
        unknown: Keys in two collections whose texts cannot be compared because a hash is missing; never paired.
        only_a: Items whose key the second side does not have.
        only_b: The same the other way round.
    """

    rows_a: NDArray[np.int64]
    rows_b: NDArray[np.int64]
    unchecked: int
    changed: pd.DataFrame
    unknown: int
    only_a: int
    only_b: int


class SliceMembers(NamedTuple):
    """The slice of every item that some runs judged.

    Attributes:
        item_ids: Ascending, shape (items,).
        names: The slices.
        places: Index into `names` of each item.
    """

    item_ids: NDArray[np.int64]
    names: tuple[str, ...]
    places: NDArray[np.int16]


@dataclass(frozen=True, slots=True)
class JudgeParts:
    """The parts of a judge's fingerprint, each as a person would compare it."""

    snapshot: str
    prompt_version: str
    prompt: str | None
    rubric: str
    output_schema: dict[str, Any]
    parameters: dict[str, Any]
    parser_version: str
    aggregation: str


def align_items(*, session: Session, ids_a: NDArray[np.int64], ids_b: NDArray[np.int64]) -> Alignment:
    """Pair the items of two matrices by key, and only where the judged text is the same.

    Within a collection the same text under the same key is one stored item. Between collections the key and the hash
    of the text must agree.

    Args:
        session: An open session.
        ids_a: Item ids of the first matrix, ascending, shape (items,).
        ids_b: Item ids of the second.
    """
    common, rows_a, rows_b = np.intersect1d(ids_a, ids_b, assume_unique=True, return_indices=True)
    unchecked = np.intersect1d(common, _unhashed(session)).size
    rest_a = _facts(session, np.setdiff1d(ids_a, common, assume_unique=True))
    rest_b = _facts(session, np.setdiff1d(ids_b, common, assume_unique=True))
    same = rest_a[rest_a.content_sha256 != ""].merge(rest_b, on=["key", "content_sha256"], suffixes=("_a", "_b"))
    left_a, left_b = rest_a[~rest_a.id.isin(same.id_a)], rest_b[~rest_b.id.isin(same.id_b)]
    shared = left_a.merge(left_b, on="key", suffixes=("_a", "_b"))
    known = (shared.content_sha256_a != "") & (shared.content_sha256_b != "")
    changed = shared[known].rename(columns={"id_a": "item_a", "id_b": "item_b"})[["key", "item_a", "item_b"]]
    return Alignment(
        np.concatenate([rows_a, np.searchsorted(ids_a, same.id_a.to_numpy(np.int64))]).astype(np.int64),
        np.concatenate([rows_b, np.searchsorted(ids_b, same.id_b.to_numpy(np.int64))]).astype(np.int64),
        int(unchecked),
        changed.drop_duplicates("key").reset_index(drop=True),
        int(shared[~known].key.nunique()),
        int((~left_a.key.isin(shared.key)).sum()),
        int((~left_b.key.isin(shared.key)).sum()),
    )


def list_copied_replies(*, session: Session, before: Sequence[int], after: Sequence[int]) -> pd.DataFrame:
    """Calls of the runs `after` that carry the response id of a call of the runs `before`: run_id, item_id, repetition.

    They are the earlier judgements themselves, not new ones.
    """
    columns = ["run_id", "item_id", "repetition"]
    call, earlier = Call.__table__.c, Call.__table__.alias("earlier").c
    if session.scalar(select(call.id).where(call.response_id.is_not(None)).limit(1)) is None:
        return pd.DataFrame(columns=columns, dtype=np.int64)
    query = (
        select(call.run_id, call.item_id, call.repetition)
        .distinct()
        .join(earlier.id.table, earlier.response_id == call.response_id)
        .where(call.run_id.in_(after), earlier.run_id.in_(before), earlier.id != call.id)
        .order_by(call.run_id, call.item_id, call.repetition)
    )
    return pd.DataFrame(session.execute(query).all(), columns=columns, dtype=np.int64)


def leave_out_copies(matrix: ScoreMatrix, copies: pd.DataFrame) -> tuple[NDArray[np.uint8], int]:
    """The outcomes of a matrix with copied replies taken out, and how many scores that were.

    Args:
        matrix: The matrix.
        copies: run_id, item_id and repetition of each, as `list_copied_replies` gives them.
    """
    if copies.empty:
        return matrix.outcomes, 0
    columns = {(column.run_id, column.repetition): place for place, column in enumerate(matrix.columns)}
    kept = copies[copies.item_id.isin(matrix.item_ids)]
    rows = np.searchsorted(matrix.item_ids, kept.item_id.to_numpy(np.int64))
    places = np.array([columns.get(key, -1) for key in zip(kept.run_id, kept.repetition, strict=True)], dtype=np.int64)
    rows, places = rows[places >= 0], places[places >= 0]
    usable = matrix.outcomes[rows, places] < COPIED
    outcomes = matrix.outcomes.copy()
    outcomes[rows[usable], places[usable]] = COPIED
    return outcomes, int(usable.sum())


def list_item_slices(*, session: Session, run_ids: Sequence[int], criterion_id: int) -> SliceMembers:
    """The slice of every item that the runs judged, whether or not its text was replaced in the corpus since."""
    vector = ItemVector.__table__.c
    judged = select(vector.item_id).where(vector.run_id.in_(run_ids), vector.criterion_id == criterion_id)
    query = select(col(Item.id), col(Item.slice)).where(col(Item.id).in_(judged)).order_by(col(Item.id))
    rows = session.execute(query).all()
    places, names = pd.factorize(np.array([row[1] for row in rows], dtype=object), sort=True)
    ids = np.fromiter((row[0] for row in rows), np.int64, len(rows))
    return SliceMembers(ids, tuple(map(str, names)), places.astype(np.int16))


def get_judge_parts(*, session: Session, judge_id: int) -> JudgeParts:
    """The parts of a stored judge; where an import named no model, its name in the file stands for the snapshot.

    Raises:
        ValueError: When there is no such judge.
    """
    row = session.execute(
        select(Judge, Rubric.__table__.c.name, Rubric.__table__.c.version)
        .join(Rubric, col(Rubric.id) == Judge.rubric_id)
        .where(col(Judge.id) == judge_id)
    ).first()
    if row is None:
        raise ValueError(f"there is no judge {judge_id}")
    judge, rubric, version = row
    parameters = dict(judge.parameters)
    named = parameters.pop("judge", "")
    of_file = parameters.pop("rubric_version", "")
    return JudgeParts(
        judge.model or named or judge.name,
        judge.prompt_version,
        judge.prompt,
        f"{rubric} v{version}" + (f" (file: {of_file})" if of_file else ""),
        judge.output_schema,
        parameters,
        judge.parser_version,
        judge.aggregation,
    )


def list_label_sets(*, session: Session, rubric_ids: Sequence[int]) -> pd.DataFrame:
    """Label sets made under these rubric versions, oldest first: rubric_id, name, version, created_at."""
    table = LabelSet.__table__.c
    query = (
        select(table.rubric_id, table.name, table.version, table.created_at)
        .where(table.rubric_id.in_(rubric_ids))
        .order_by(table.id)
    )
    result = session.execute(query)
    return pd.DataFrame(result.all(), columns=list(result.keys()))


def _unhashed(session: Session) -> NDArray[np.int64]:
    """Items without a hash: read from the index over key and hash, not from the items."""
    return np.array(session.scalars(select(col(Item.id)).where(col(Item.content_sha256) == "")).all(), np.int64)


def _facts(session: Session, item_ids: NDArray[np.int64]) -> pd.DataFrame:
    item = Item.__table__.c
    query = select(item.id, item.key, item.content_sha256)
    wanted = item_ids.tolist()
    rows = [
        tuple(row)
        for start in range(0, len(wanted), _MOST_PARAMETERS)
        for row in session.execute(query.where(item.id.in_(wanted[start : start + _MOST_PARAMETERS])))
    ]
    return pd.DataFrame(rows, columns=_FACTS)
