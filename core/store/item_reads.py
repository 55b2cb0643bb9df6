"""What is known of one item: its texts and the outcomes of its repetitions."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlmodel import Session, func, select

from core.store.queries import find_item
from core.store.tables import Call, Item, ItemVector, Order, Score
from core.store.vectors import NOT_MADE, unpack

_VECTOR = ItemVector.__table__.c


class ItemTexts(NamedTuple):
    """One item as the judge saw it; a text is None where the source gave none or it was removed.

    Attributes:
        candidate_b: The second candidate of a pair.
        system: Who wrote the candidate.
        system_b: Who wrote the second one.
    """

    id: int
    key: str
    slice: str
    pair: bool
    request: str | None
    reference: str | None
    candidate: str | None
    candidate_b: str | None
    system: str
    system_b: str


class Repetitions(NamedTuple):
    """Outcomes of one item for one criterion and order.

    Attributes:
        run_ids: Run of each repetition, shape (R,).
        repetitions: Its number in the run, shape (R,).
        outcomes: The one-byte codes of `core.store.vectors`, shape (R,).
    """

    run_ids: NDArray[np.int64]
    repetitions: NDArray[np.int64]
    outcomes: NDArray[np.uint8]


def get_item_texts(*, session: Session, corpus_id: int, key: str) -> ItemTexts | None:
    """The item of a corpus with this key."""
    item = find_item(session=session, corpus_id=corpus_id, key=key)
    if item is None or item.id is None:
        return None
    return ItemTexts(**{name: getattr(item, name) for name in ItemTexts._fields})


def get_repetitions(
    *, session: Session, item_id: int, run_ids: Sequence[int], criterion_ids: Sequence[int]
) -> dict[tuple[int, str], Repetitions]:
    """Outcomes of one item by criterion and order, repetitions in the order of the runs.

    Args:
        session: An open session.
        item_id: Which item.
        run_ids: Runs, in the order wanted.
        criterion_ids: Which criteria.
    """
    query = select(_VECTOR.run_id, _VECTOR.criterion_id, _VECTOR.slot_order, _VECTOR.codes).where(
        _VECTOR.run_id.in_(run_ids),
        _VECTOR.criterion_id.in_(criterion_ids),
        _VECTOR.slot_order.in_(list(Order)),  # names the whole key, so that the database looks rows up
        _VECTOR.item_id == item_id,
    )
    found: dict[tuple[int, str], dict[int, NDArray[np.uint8]]] = {}
    for run_id, criterion_id, slot_order, codes in session.execute(query):
        found.setdefault((criterion_id, slot_order), {})[run_id] = unpack([bytes(codes)])[0]
    return {key: _joined(vectors, run_ids) for key, vectors in found.items()}


def count_unscored(*, session: Session, run_ids: Sequence[int], criterion_id: int, item_slice: str) -> dict[str, int]:
    """Unscored calls by reason on the items of one slice; the tallies of a run do not tell slices apart."""
    call, item, score = Call.__table__.c, Item.__table__.c, Score.__table__.c
    query = (
        select(score.unscored, func.count())
        .join(Call, call.id == score.call_id)
        .join(Item, item.id == call.item_id)
        .where(
            call.run_id.in_(run_ids),
            score.criterion_id == criterion_id,
            score.unscored.is_not(None),
            item.slice == item_slice,
        )
        .group_by(score.unscored)
        .order_by(score.unscored)
    )
    return {reason: int(calls) for reason, calls in session.execute(query)}


def _joined(vectors: dict[int, NDArray[np.uint8]], run_ids: Sequence[int]) -> Repetitions:
    used = [run_id for run_id in run_ids if run_id in vectors]
    made = {run_id: np.flatnonzero(vectors[run_id] != NOT_MADE) for run_id in used}
    return Repetitions(
        np.concatenate([np.full(len(made[run_id]), run_id) for run_id in used]),
        np.concatenate([made[run_id] for run_id in used]),
        np.concatenate([vectors[run_id][made[run_id]] for run_id in used]),
    )
