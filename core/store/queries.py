"""All reads. Nothing here loads a text for a chart, and nothing commits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sqlalchemy import Select, func, select
from sqlmodel import Session, col

from core.store.tables import (
    Call,
    Corpus,
    CorpusItem,
    Criterion,
    ImportFile,
    ImportMapping,
    Item,
    ItemVector,
    Judge,
    Level,
    Order,
    Rubric,
    RubricChange,
    Run,
    RunTally,
    Score,
    ScoreEvidence,
    SetAsideLine,
    StoreRevision,
)
from core.store.vectors import COPIED, NOT_MADE, UNSCORED, level_codes, unpack

CALL = Call.__table__.c
CORPUS = Corpus.__table__.c
EVIDENCE = ScoreEvidence.__table__.c
ITEM = Item.__table__.c
JUDGE = Judge.__table__.c
MEMBER = CorpusItem.__table__.c
RUBRIC = Rubric.__table__.c
RUN = Run.__table__.c
SCORE = Score.__table__.c
TALLY = RunTally.__table__.c
VECTOR = ItemVector.__table__.c

_MOST_PARAMETERS = 900
"""Of one statement: SQLite builds differ in what they take, none takes fewer."""


@dataclass(frozen=True, slots=True)
class CriterionView:
    """A criterion with its levels in rubric order.

    Attributes:
        levels: Numeric values, shape (L,).
        anchors: What a reader must see to give each level.
    """

    id: int
    rubric_id: int
    key: str
    question: str
    weight: float
    gate: float
    veto: bool
    levels: tuple[float, ...]
    anchors: tuple[str, ...]


class Repetition(NamedTuple):
    """Which column of a score matrix this is: the k-th repetition of a run."""

    run_id: int
    repetition: int


@dataclass(frozen=True, slots=True)
class ScoreMatrix:
    """Every outcome of some runs for one criterion.

    Attributes:
        item_ids: Shape (items,), ascending.
        outcomes: Shape (items, columns), the one-byte codes of `core.store.vectors`.
        columns: Which run and repetition each column is.
    """

    item_ids: NDArray[np.int64]
    outcomes: NDArray[np.uint8]
    columns: tuple[Repetition, ...]

    @property
    def codes(self) -> NDArray[np.int16]:
        """Level indices, shape (items, columns); -1 where there is no usable, independent score."""
        return level_codes(self.outcomes)

    @property
    def attempted(self) -> int:
        """Calls that were made."""
        return int((self.outcomes != NOT_MADE).sum())

    @property
    def scored(self) -> int:
        """Calls with a usable, independent score."""
        return int((self.outcomes < COPIED).sum())

    @property
    def copied(self) -> int:
        """Replies that carry another's response id, counted once elsewhere."""
        return int((self.outcomes == COPIED).sum())

    @property
    def unscored(self) -> int:
        """Calls without a usable score."""
        return int((self.outcomes == UNSCORED).sum())


def get_revision(*, session: Session) -> int:
    """The number of write transactions so far."""
    return session.scalar(select(col(StoreRevision.revision))) or 0


def list_corpora(*, session: Session) -> pd.DataFrame:
    """Every corpus version, newest first: id, name, version, items, sha256, simulated, created_at."""
    items = select(MEMBER.corpus_id, func.count().label("items")).group_by(MEMBER.corpus_id).subquery()
    query = (
        select(
            CORPUS.id, CORPUS.name, CORPUS.version, items.c["items"], CORPUS.sha256, CORPUS.simulated, CORPUS.created_at
        )
        .join(items, items.c.corpus_id == CORPUS.id)
        .order_by(CORPUS.created_at.desc(), CORPUS.id.desc())
    )
    return _frame(session, query)


def list_judges(*, session: Session, corpus_id: int | None = None) -> pd.DataFrame:
    """Judges that have runs, one row a judge and corpus.

    Columns: judge_id, corpus_id, name, kind, model, family, prompt_version, rubric_id, rubric, rubric_version,
    aggregation, parser_version, fingerprint, pairwise, simulated, corpus, corpus_version, runs, revision (the sum
    of the runs' revisions, so that it moves with every write), newest_run.
    """
    query = (
        select(
            JUDGE.id.label("judge_id"),
            CORPUS.id.label("corpus_id"),
            JUDGE.name,
            JUDGE.kind,
            JUDGE.model,
            JUDGE.family,
            JUDGE.prompt_version,
            JUDGE.rubric_id,
            RUBRIC.name.label("rubric"),
            RUBRIC.version.label("rubric_version"),
            JUDGE.aggregation,
            JUDGE.parser_version,
            JUDGE.fingerprint,
            JUDGE.pairwise,
            JUDGE.simulated,
            CORPUS.name.label("corpus"),
            CORPUS.version.label("corpus_version"),
            func.count(RUN.id).label("runs"),
            func.sum(RUN.revision).label("revision"),
            func.max(RUN.created_at).label("newest_run"),
        )
        .join(Run, RUN.judge_id == JUDGE.id)
        .join(Corpus, CORPUS.id == RUN.corpus_id)
        .join(Rubric, RUBRIC.id == JUDGE.rubric_id)
        .group_by(JUDGE.id, CORPUS.id, RUBRIC.id)
        .order_by(CORPUS.id.desc(), JUDGE.name, JUDGE.id)
    )
    if corpus_id is not None:
        query = query.where(CORPUS.id == corpus_id)
    return _frame(session, query)


def list_criteria(*, session: Session, rubric_id: int) -> tuple[CriterionView, ...]:
    """The criteria of a rubric version, in its order."""
    levels: dict[int, list[tuple[float, str]]] = {}
    rows = session.execute(
        select(col(Level.criterion_id), col(Level.value), col(Level.anchor))
        .join(Criterion, col(Criterion.id) == Level.criterion_id)
        .where(col(Criterion.rubric_id) == rubric_id)
        .order_by(col(Level.position))
    )
    for criterion_id, value, anchor in rows:
        levels.setdefault(criterion_id, []).append((value, anchor))
    criteria = session.scalars(
        select(Criterion).where(col(Criterion.rubric_id) == rubric_id).order_by(col(Criterion.position))
    )
    return tuple(
        CriterionView(
            id=key,
            rubric_id=rubric_id,
            key=row.key,
            question=row.question,
            weight=row.weight,
            gate=row.gate,
            veto=row.veto,
            levels=tuple(value for value, _ in levels.get(key, [])),
            anchors=tuple(anchor for _, anchor in levels.get(key, [])),
        )
        for row in criteria
        if (key := row.id) is not None
    )


def list_runs(*, session: Session, judge_id: int, corpus_id: int) -> pd.DataFrame:
    """The runs of a judge over a corpus, oldest first: id, name, status, revision, simulated, created_at."""
    query = (
        select(RUN.id, RUN.name, RUN.status, RUN.revision, RUN.simulated, RUN.created_at)
        .where(RUN.judge_id == judge_id, RUN.corpus_id == corpus_id)
        .order_by(RUN.created_at, RUN.id)
    )
    return _frame(session, query)


def list_slices(*, session: Session, corpus_id: int) -> dict[str, int]:
    """Items of each slice in a corpus."""
    query = (
        select(ITEM.slice, func.count())
        .join(CorpusItem, MEMBER.item_id == ITEM.id)
        .where(MEMBER.corpus_id == corpus_id)
        .group_by(ITEM.slice)
        .order_by(ITEM.slice)
    )
    return {name: int(items) for name, items in session.execute(query)}


def get_score_matrix(
    *,
    session: Session,
    run_ids: Sequence[int],
    criterion_id: int,
    slot_order: str = Order.SINGLE,
    item_slice: str | None = None,
) -> ScoreMatrix:
    """All outcomes of the runs for one criterion, items as rows, the repetitions of each run as columns.

    Args:
        session: An open session.
        run_ids: Runs in the order of the columns.
        criterion_id: Which criterion.
        slot_order: Which order of a pair; empty for single items.
        item_slice: Only items of this slice.
    """
    parts = [_run_outcomes(session, run_id, criterion_id, slot_order, item_slice) for run_id in run_ids]
    item_ids = np.unique(np.concatenate([ids for ids, _ in parts])) if parts else np.empty(0, np.int64)
    blocks, columns = [], []
    for run_id, (ids, outcomes) in zip(run_ids, parts, strict=True):
        block = np.full((len(item_ids), outcomes.shape[1]), NOT_MADE, np.uint8)
        block[np.searchsorted(item_ids, ids)] = outcomes
        made = np.flatnonzero((block != NOT_MADE).any(axis=0))
        blocks.append(block[:, made])
        columns += [Repetition(run_id, int(place)) for place in made]
    outcomes = np.concatenate(blocks, axis=1) if blocks else np.empty((0, 0), np.uint8)
    return ScoreMatrix(item_ids, outcomes, tuple(columns))


def _run_outcomes(
    session: Session, run_id: int, criterion_id: int, slot_order: str, item_slice: str | None
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Item ids and outcome codes of one run."""
    query = (
        select(VECTOR.item_id, VECTOR.codes)
        .where(VECTOR.run_id == run_id, VECTOR.criterion_id == criterion_id, VECTOR.slot_order == slot_order)
        .order_by(VECTOR.item_id)
    )
    if item_slice is not None:
        query = query.join(Item, ITEM.id == VECTOR.item_id).where(ITEM.slice == item_slice)
    rows = session.execute(query).all()
    ids = np.fromiter((row[0] for row in rows), np.int64, len(rows))
    return ids, unpack([bytes(row[1]) for row in rows])


def get_tallies(
    *, session: Session, run_ids: Sequence[int], criterion_id: int, slot_order: str | None = None
) -> dict[str, int]:
    """Calls by outcome over some runs: "scored", "copied", or an unscored reason."""
    query = (
        select(TALLY.outcome, func.sum(TALLY.calls))
        .where(TALLY.run_id.in_(run_ids), TALLY.criterion_id == criterion_id)
        .group_by(TALLY.outcome)
        .order_by(TALLY.outcome)
    )
    if slot_order is not None:
        query = query.where(TALLY.slot_order == slot_order)
    return {outcome: int(calls) for outcome, calls in session.execute(query)}


def list_items(*, session: Session, item_ids: Sequence[int]) -> pd.DataFrame:
    """Key, slice and system of some items, in the order asked for; texts are not read."""
    query = select(ITEM.id, ITEM.key, ITEM.slice, ITEM.system)
    if len(item_ids) > _MOST_PARAMETERS:
        # The items of one corpus were made together, so their ids are a range with few strangers in it.
        query = query.where(ITEM.id.between(min(item_ids), max(item_ids)))
    else:
        query = query.where(ITEM.id.in_(item_ids))
    found = _frame(session, query)
    return found.set_index("id").reindex(item_ids).reset_index()


def get_item(*, session: Session, item_id: int) -> Item | None:
    """One item with its texts."""
    return session.get(Item, item_id)


def find_item(*, session: Session, corpus_id: int, key: str) -> Item | None:
    """The item of a corpus with this key."""
    query = (
        select(Item)
        .join(CorpusItem, MEMBER.item_id == Item.id)
        .where(MEMBER.corpus_id == corpus_id, col(Item.key) == key)
    )
    return session.scalars(query).first()


def list_calls(*, session: Session, item_id: int, run_ids: Sequence[int], criterion_id: int) -> pd.DataFrame:
    """Every call on an item for one criterion, oldest repetition first, with its words.

    Columns: call_id, run_id, repetition, slot_order, attempt, value, unscored, raw_value, rationale, cited_evidence,
    boundary_reason, confidence, response_id, served_model, stop_reason, repaired, created_at, raw_reply.
    """
    query = (
        select(
            CALL.id.label("call_id"),
            CALL.run_id,
            CALL.repetition,
            CALL.slot_order,
            CALL.attempt,
            SCORE.value,
            SCORE.unscored,
            SCORE.raw_value,
            EVIDENCE.rationale,
            EVIDENCE.cited_evidence,
            EVIDENCE.boundary_reason,
            EVIDENCE.confidence,
            CALL.response_id,
            CALL.served_model,
            CALL.stop_reason,
            CALL.repaired,
            CALL.created_at,
            CALL.raw_reply,
        )
        .join(Score, SCORE.call_id == CALL.id)
        .outerjoin(ScoreEvidence, EVIDENCE.score_id == SCORE.id)
        .where(CALL.run_id.in_(run_ids), CALL.item_id == item_id, SCORE.criterion_id == criterion_id)
        .order_by(CALL.run_id, CALL.repetition, CALL.slot_order, CALL.attempt)
    )
    return _frame(session, query)


def list_rubric_changes(*, session: Session, rubric_id: int) -> pd.DataFrame:
    """The change log of a rubric version: created_at, author, line, reason."""
    change = RubricChange.__table__.c
    query = (
        select(change.created_at, change.author, change.line, change.reason)
        .where(change.rubric_id == rubric_id)
        .order_by(change.id)
    )
    return _frame(session, query)


def find_import(*, session: Session, sha256: str) -> ImportFile | None:
    """The earlier import of a file with this hash."""
    return session.scalars(select(ImportFile).where(col(ImportFile.sha256) == sha256)).first()


def count_shared_replies(*, session: Session, run_ids: Sequence[int]) -> int:
    """Calls of the runs whose response id an earlier call of another judge carries: copied judgements, not new ones."""
    call, earlier = Call.__table__.c, Call.__table__.alias("earlier").c
    run, earlier_run = Run.__table__.alias("own").c, Run.__table__.alias("other").c
    shared = (
        select(earlier.id)
        .join(earlier_run.id.table, earlier_run.id == earlier.run_id)
        .where(earlier.response_id == call.response_id, earlier.id < call.id, earlier_run.judge_id != run.judge_id)
    )
    query = (
        select(func.count())
        .select_from(Call.__table__)
        .join(run.id.table, run.id == call.run_id)
        .where(call.run_id.in_(run_ids), call.response_id.is_not(None), shared.exists())
    )
    return session.scalar(query) or 0


def find_mapping(*, session: Session, shape_sha256: str) -> dict[str, Any] | None:
    """The mapping last confirmed for files with this header."""
    query = (
        select(col(ImportMapping.mapping))
        .where(col(ImportMapping.shape_sha256) == shape_sha256)
        .order_by(col(ImportMapping.id).desc())
    )
    return session.scalars(query).first()


def list_imports(*, session: Session) -> pd.DataFrame:
    """Imported files, newest first: id, name, format, rows, imported, set_aside, sha256, created_at."""
    file = ImportFile.__table__.c
    query = select(
        file.id, file.name, file.format, file.rows, file.imported, file.set_aside, file.sha256, file.created_at
    ).order_by(file.id.desc())
    return _frame(session, query)


def list_set_aside(*, session: Session, import_file_id: int) -> pd.DataFrame:
    """Lines of a file that were not imported: line, column, value, reason."""
    line = SetAsideLine.__table__.c
    query = (
        select(line.line, line.column, line.value, line.reason)
        .where(line.import_file_id == import_file_id)
        .order_by(line.line)
    )
    return _frame(session, query)


def list_rubrics(*, session: Session) -> pd.DataFrame:
    """Every rubric version, newest first: id, name, version, sha256, simulated, created_at."""
    rubric = Rubric.__table__.c
    query = select(rubric.id, rubric.name, rubric.version, rubric.sha256, rubric.simulated, rubric.created_at).order_by(
        rubric.id.desc()
    )
    return _frame(session, query)


def _frame(session: Session, query: Select[Any]) -> pd.DataFrame:
    """A query's rows as a frame whose columns stand even when there are none.

    Handed over by column: pandas takes ten times as long to turn a million rows around.
    """
    result = session.execute(query)
    names = list(result.keys())
    columns = list(zip(*result.all(), strict=True)) or [()] * len(names)
    return pd.DataFrame(dict(zip(names, columns, strict=True)))
