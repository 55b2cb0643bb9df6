"""The only place that commits. `add_` is idempotent by content; `record_` appends observations."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sqlalchemy import Engine, Table, and_, exists, func, insert, select, text, update
from sqlmodel import Session, col

from core.store.bulk import bulk_insert, bulk_upsert, stored_time
from core.store.locking import WRITING
from core.store.specs import CallRow, ItemSpec, JudgeSpec, LabelRow, RubricSpec, ScoreRow
from core.store.tables import (
    Base,
    Call,
    Corpus,
    CorpusItem,
    Criterion,
    ImportFile,
    ImportMapping,
    Item,
    ItemVector,
    Judge,
    Label,
    LabelSet,
    Level,
    Rubric,
    RubricChange,
    Run,
    RunTally,
    Score,
    ScoreEvidence,
    SetAsideLine,
    StoreRevision,
    Unscored,
)
from core.store.vectors import COPIED, MOST_REPETITIONS, NOT_MADE, UNSCORED

SCORED = "scored"
COPIED_OUTCOME = "copied"
CHUNK = 20_000

ITEM = Item.__table__.c
VECTOR = ItemVector.__table__.c
_CALL_COLUMNS = ("id", "run_id", *CallRow._fields[:-1])
_SCORE_COLUMNS = ("id", "call_id", *ScoreRow._fields[:4])
_EVIDENCE_COLUMNS = ("score_id", *ScoreRow._fields[4:])
_NO_WORDS = (None,) * (len(ScoreRow._fields) - 4)
_VECTOR_COLUMNS = ("run_id", "criterion_id", "slot_order", "item_id", "codes")
_TALLY_COLUMNS = ("run_id", "criterion_id", "slot_order", "outcome", "calls")
_REASONS = frozenset(Unscored)
_MOST_PARAMETERS = 500
"""Items asked for in one statement: SQLite builds differ in what they take, none takes fewer than 999 values."""


@contextmanager
def writing(engine: Engine) -> Iterator[Session]:
    """One write transaction: committed at the end of the block with the store's revision raised, undone on an error.

    On SQLite it waits at the top of the block until no other writer is at work.
    """
    with Session(engine.execution_options(**{WRITING: True})) as session, session.begin():
        session.connection()
        yield session
        session.execute(update(StoreRevision).values(revision=StoreRevision.revision + 1))


def add_rubric(*, session: Session, spec: RubricSpec, author: str = "", reason: str = "") -> Rubric:
    """The rubric of this content: the stored one, or a new version of its name with a line in the change log.

    A rubric that reads the same under another name is the same rubric, since judges are told apart by what they read:
    one judge's scores of two files must stand under the same criteria.
    """
    same = select(Rubric).where(col(Rubric.sha256) == spec.sha256, col(Rubric.simulated) == spec.simulated)
    found = session.scalars(same.order_by(col(Rubric.name) != spec.name, col(Rubric.id))).first()
    if found:
        return found
    newest = session.scalar(select(func.max(Rubric.version)).where(col(Rubric.name) == spec.name)) or 0
    rubric = Rubric(
        name=spec.name,
        version=newest + 1,
        sha256=spec.sha256,
        instructions=spec.instructions,
        ready_rule=spec.ready_rule,
        simulated=spec.simulated,
    )
    session.add(rubric)
    session.flush()
    for position, part in enumerate(spec.criteria):
        criterion = Criterion(
            rubric_id=_id(rubric),
            key=part.key,
            question=part.question,
            position=position,
            weight=part.weight,
            gate=part.gate,
            veto=part.veto,
        )
        session.add(criterion)
        session.flush()
        session.add_all(
            Level(criterion_id=_id(criterion), position=place, value=level.value, anchor=level.anchor)
            for place, level in enumerate(part.levels)
        )
    line = "first version" if newest == 0 else f"version {newest + 1}"
    session.add(RubricChange(rubric_id=_id(rubric), author=author, line=line, reason=reason))
    session.flush()
    return rubric


def add_judge(*, session: Session, spec: JudgeSpec) -> Judge:
    """The judge with this fingerprint, made when it is new."""
    found = session.scalars(select(Judge).where(col(Judge.fingerprint) == spec.fingerprint)).first()
    if found:
        return found
    judge = Judge(
        fingerprint=spec.fingerprint,
        name=spec.name,
        kind=spec.kind,
        model=spec.model,
        family=spec.family,
        prompt_version=spec.prompt_version,
        prompt=spec.prompt,
        rubric_id=spec.rubric_id,
        output_schema=spec.output_schema,
        parameters=spec.parameters,
        parser_version=spec.parser_version,
        aggregation=spec.aggregation,
        pairwise=spec.pairwise,
        simulated=spec.simulated,
    )
    session.add(judge)
    session.flush()
    return judge


class ItemBook:
    """Finds or makes the items of one collection by key and content hash.

    An item whose text changed under the same key is another item: the changed keys are kept in `mutated`, so that a
    difference of texts is never taken for noise of a judge.

    Args:
        session: An open write session.
        collection: Name of the corpus in which keys are unique.
    """

    def __init__(self, *, session: Session, collection: str) -> None:
        self._session = session
        self._collection = collection
        rows = session.execute(
            select(ITEM.key, ITEM.content_sha256, ITEM.id).where(ITEM.collection == collection).order_by(ITEM.id)
        )
        self._ids: dict[tuple[str, str], int] = {}
        self._newest: dict[str, str] = {}
        for key, content_sha256, item_id in rows:
            self._ids[key, content_sha256] = item_id
            self._newest[key] = content_sha256
        self._pending: list[dict[str, Any]] = []
        self._next = _next_id(session, Item.__table__)
        self.used: dict[int, None] = {}
        self.mutated: dict[str, None] = {}
        self.made = 0

    def find(self, spec: ItemSpec) -> int:
        """The id of the item; a new one is inserted with the next `flush`.

        An item given without any hash is the newest text known under its key.
        """
        content_sha256 = spec.content_sha256 or self._newest.get(spec.key, "")
        known = self._ids.get((spec.key, content_sha256))
        if known is None:
            known = self._make(spec, content_sha256)
        self.used[known] = None
        return known

    def _make(self, spec: ItemSpec, content_sha256: str) -> int:
        if self._newest.get(spec.key, content_sha256) != content_sha256:
            self.mutated[spec.key] = None
        self._next += 1
        self.made += 1
        self._ids[spec.key, content_sha256] = self._next
        self._newest[spec.key] = content_sha256
        self._pending.append(
            spec._asdict() | {"id": self._next, "collection": self._collection, "content_sha256": content_sha256}
        )
        return self._next

    def flush(self) -> None:
        """Insert the items made since the last flush."""
        if self._pending:
            _insert(self._session, Item.__table__, self._pending)
            _set_sequence(self._session, Item.__table__, self._next)
            self._pending = []


def add_corpus(
    *, session: Session, name: str, item_ids: Iterable[int], simulated: bool = False, note: str = ""
) -> Corpus:
    """The corpus version that holds these items.

    A corpus is frozen. When the newest version holds all the items it is returned; otherwise a new version is made of
    the newest version's items and these, in which a changed text replaces the text before it. Of two wanted texts under
    one key the later one is the member. A newest version without items, as `open_corpus` makes it, is filled.
    """
    wanted = set(item_ids)
    newest = session.scalars(
        select(Corpus).where(col(Corpus.name) == name).order_by(col(Corpus.version).desc())
    ).first()
    held: set[int] = set()
    if newest:
        held = set(session.scalars(select(col(CorpusItem.item_id)).where(col(CorpusItem.corpus_id) == newest.id)))
        if wanted <= held:
            return newest
    members = _newest_texts(session, name, held, wanted)
    if newest and held == {item_id for _, _, item_id in members}:
        return newest
    if newest and not held:
        corpus = newest
        corpus.simulated, corpus.note = simulated, note
    else:
        corpus = Corpus(name=name, version=newest.version + 1 if newest else 1, simulated=simulated, note=note)
    corpus.sha256 = hashlib.sha256("\n".join(f"{key} {digest}" for key, digest, _ in members).encode()).hexdigest()
    session.add(corpus)
    session.flush()
    _insert(session, CorpusItem.__table__, [{"corpus_id": corpus.id, "item_id": item} for _, _, item in members])
    return corpus


def open_corpus(*, session: Session, name: str) -> Corpus:
    """The newest version of a corpus, or an empty first one to hang runs on until `add_corpus` knows all the items."""
    newest = session.scalars(
        select(Corpus).where(col(Corpus.name) == name).order_by(col(Corpus.version).desc())
    ).first()
    if newest:
        return newest
    corpus = Corpus(name=name)
    session.add(corpus)
    session.flush()
    return corpus


def move_run(*, session: Session, run: Run, corpus: Corpus) -> None:
    """Hang a run on the corpus version that holds its items."""
    run.corpus_id = _id(corpus)
    session.add(run)
    session.flush()


def _newest_texts(session: Session, name: str, held: set[int], wanted: set[int]) -> list[tuple[str, str, int]]:
    """Key, hash and id of the items of both sets, one text a key: the wanted one where both have the key."""
    rows = session.execute(
        select(ITEM.key, ITEM.content_sha256, ITEM.id).where(ITEM.collection == name).order_by(ITEM.id)
    )
    chosen: dict[str, tuple[str, str, int]] = {}
    for key, digest, item_id in rows:
        if item_id in wanted or (item_id in held and key not in chosen):
            chosen[key] = (key, digest, item_id)
    return sorted(chosen.values())


def add_run(
    *,
    session: Session,
    judge_id: int,
    corpus_id: int,
    name: str = "",
    status: str = "done",
    import_file_id: int | None = None,
    simulated: bool = False,
) -> Run:
    """A new run."""
    run = Run(
        judge_id=judge_id,
        corpus_id=corpus_id,
        name=name,
        status=status,
        import_file_id=import_file_id,
        simulated=simulated,
    )
    session.add(run)
    session.flush()
    return run


class RunRecorder:
    """Appends calls and scores to a run and keeps its item vectors and tallies in step.

    `finish` must be called before the transaction ends. Several recorders may follow one another on the same run, and
    recorders of different runs may take turns.

    Args:
        session: An open write session.
        run: The run, already flushed.
    """

    def __init__(self, *, session: Session, run: Run) -> None:
        self._session = session
        self._dialect = session.get_bind().dialect
        self._run = run
        self._run_id = _id(run)
        self._calls = _ids(session, Call.__table__)
        self._scores = _ids(session, Score.__table__)
        session.refresh(run)  # another writer may have raised its revision while this one waited for the lock
        self._fresh = run.revision == 0
        self._levels = _level_indices(session, _get_judge(session, run).rubric_id)
        self._vectors: dict[tuple[int, str, int], bytearray] = {}
        self._tallies: Counter[tuple[int, str, str]] = Counter()

    def record(self, calls: Iterable[CallRow]) -> None:
        """Append `calls`; a call key that the run already has, or a value that is no level, refuses the whole.

        The error must leave the transaction, which undoes the chunks before it.

        Raises:
            ValueError: For a value that is not a level of its criterion, a criterion of another rubric, an unknown
                unscored reason, a repetition out of bounds, or a time without a zone.
            IntegrityError: For a call that is already recorded.
        """
        source = iter(calls)
        while chunk := list(islice(source, CHUNK)):
            self._record_chunk(chunk)

    def _record_chunk(self, chunk: Sequence[CallRow]) -> None:
        first = self._calls.last + 1
        score_id = self._scores.last
        calls: list[tuple[Any, ...]] = []
        scores: list[tuple[Any, ...]] = []
        evidence: list[tuple[Any, ...]] = []
        for call_id, call in enumerate(chunk, start=first):
            self._check(call)
            calls.append((call_id, self._run_id, *call[:-2], stored_time(call.created_at, self._dialect)))
            for score in call.scores:
                score_id += 1
                scores.append((score_id, call_id, *score[:4]))
                words = score[4:]
                if words != _NO_WORDS:
                    evidence.append((score_id, *words))
        self._calls.last += len(chunk)
        self._scores.last = score_id
        bulk_insert(self._session, Call.__table__, _CALL_COLUMNS, calls)
        bulk_insert(self._session, Score.__table__, _SCORE_COLUMNS, scores)
        bulk_insert(self._session, ScoreEvidence.__table__, _EVIDENCE_COLUMNS, evidence)
        copied = self._copied_calls(first) if any(call.response_id for call in chunk) else set()
        self._load_vectors(chunk)
        for call_id, call in enumerate(chunk, start=first):
            self._count(call, copied=call_id in copied)

    def _copied_calls(self, first: int) -> set[int]:
        """Calls from id `first` on whose response id an earlier call of the same judge already carried."""
        call, earlier = Call.__table__.c, Call.__table__.alias("earlier").c
        siblings = select(col(Run.id)).where(col(Run.judge_id) == self._run.judge_id)
        same_request = and_(
            earlier.run_id == call.run_id,
            earlier.item_id == call.item_id,
            earlier.repetition == call.repetition,
            earlier.slot_order == call.slot_order,
            earlier.attempt == call.attempt,
        )
        repeated = exists().where(
            earlier.response_id == call.response_id,
            earlier.id < call.id,
            earlier.run_id.in_(siblings),
            ~same_request,
        )
        return set(
            self._session.scalars(select(call.id).where(call.id >= first, call.response_id.is_not(None), repeated))
        )

    def _check(self, call: CallRow) -> None:
        if not 0 <= call.repetition < MOST_REPETITIONS:
            raise ValueError(f"repetition {call.repetition} is not between 0 and {MOST_REPETITIONS - 1}")
        for score in call.scores:
            if score.value is not None:
                _check_level(self._levels, score.criterion_id, score.value)
            elif score.criterion_id not in self._levels:
                raise ValueError(f"criterion {score.criterion_id} is not in the judge's rubric")
            elif score.unscored not in _REASONS:
                raise ValueError(f"{score.unscored!r} is no reason; reasons are {', '.join(Unscored)}")

    def _load_vectors(self, chunk: Sequence[CallRow]) -> None:
        """Fetch what the run already holds of the chunk's items."""
        if self._fresh:
            return
        keys = {(score.criterion_id, call.slot_order, call.item_id) for call in chunk for score in call.scores}
        missing = keys - self._vectors.keys()
        criteria, orders = {key[0] for key in missing}, {key[1] for key in missing}
        items = sorted({key[2] for key in missing})
        for start in range(0, len(items), _MOST_PARAMETERS):
            query = select(VECTOR.criterion_id, VECTOR.slot_order, VECTOR.item_id, VECTOR.codes).where(
                VECTOR.run_id == self._run_id,
                VECTOR.criterion_id.in_(criteria),
                VECTOR.slot_order.in_(orders),
                VECTOR.item_id.in_(items[start : start + _MOST_PARAMETERS]),
            )
            for *key, codes in self._session.execute(query):
                self._vectors.setdefault((key[0], key[1], key[2]), bytearray(codes))

    def _count(self, call: CallRow, *, copied: bool) -> None:
        for score in call.scores:
            if copied:
                code, outcome = COPIED, COPIED_OUTCOME
            elif score.value is None:
                code, outcome = UNSCORED, str(score.unscored)
            else:
                code, outcome = self._levels[score.criterion_id][score.value], SCORED
            vector = self._vectors.setdefault((score.criterion_id, call.slot_order, call.item_id), bytearray())
            if len(vector) <= call.repetition:
                vector.extend([NOT_MADE] * (call.repetition + 1 - len(vector)))
            vector[call.repetition] = code
            self._tallies[score.criterion_id, call.slot_order, outcome] += 1

    def finish(self) -> None:
        """Write the vectors and tallies and raise the run's revision."""
        vectors = [(self._run_id, *key, bytes(codes)) for key, codes in sorted(self._vectors.items())]
        tallies = [(self._run_id, *key, calls) for key, calls in sorted(self._tallies.items())]
        session = self._session
        if self._fresh:
            bulk_insert(session, ItemVector.__table__, _VECTOR_COLUMNS, vectors)
        else:
            bulk_upsert(session, ItemVector.__table__, _VECTOR_COLUMNS, vectors, update="codes = excluded.codes")
        added = "calls = run_tally.calls + excluded.calls"
        bulk_upsert(session, RunTally.__table__, _TALLY_COLUMNS, tallies, update=added)
        _set_sequence(self._session, Call.__table__, self._calls.last)
        _set_sequence(self._session, Score.__table__, self._scores.last)
        self._run.revision += 1
        self._session.add(self._run)
        self._session.flush()
        self._fresh = False
        self._vectors = {}
        self._tallies = Counter()


def _get_judge(session: Session, run: Run) -> Judge:
    judge = session.get(Judge, run.judge_id)
    if judge is None:
        raise ValueError(f"run {run.id} names judge {run.judge_id}, which does not exist")
    return judge


def _level_indices(session: Session, rubric_id: int) -> dict[int, dict[float, int]]:
    """For each criterion of the rubric, level value to place."""
    rows = session.execute(
        select(col(Level.criterion_id), col(Level.value), col(Level.position))
        .join(Criterion, col(Criterion.id) == Level.criterion_id)
        .where(col(Criterion.rubric_id) == rubric_id)
    )
    indices: defaultdict[int, dict[float, int]] = defaultdict(dict)
    for criterion_id, value, position in rows:
        indices[criterion_id][value] = position
    return dict(indices)


def _check_level(levels: dict[int, dict[float, int]], criterion_id: int, value: float) -> None:
    if value not in levels.get(criterion_id, ()):
        raise ValueError(
            f"{value!r} is no level of criterion {criterion_id} in the rubric; "
            f"levels are {sorted(levels.get(criterion_id, ()))}"
        )


def add_label_set(
    *,
    session: Session,
    name: str,
    rubric_id: int,
    policy: str = "",
    import_file_id: int | None = None,
    simulated: bool = False,
) -> LabelSet:
    """A new version of the label set `name`."""
    newest = session.scalar(select(func.max(LabelSet.version)).where(col(LabelSet.name) == name)) or 0
    label_set = LabelSet(
        name=name,
        version=newest + 1,
        policy=policy,
        rubric_id=rubric_id,
        import_file_id=import_file_id,
        simulated=simulated,
    )
    session.add(label_set)
    session.flush()
    return label_set


def record_labels(
    *, session: Session, label_set: LabelSet, rows: Sequence[LabelRow], between_levels: bool = False
) -> None:
    """Append labels to a set.

    Args:
        session: An open write session.
        label_set: The set, already flushed.
        rows: The labels.
        between_levels: Whether a value may lie between two levels, as the mean of several raters does.

    Raises:
        ValueError: For a value that is not a level of its criterion in the set's rubric, or not between two.
    """
    levels = _level_indices(session, label_set.rubric_id)
    for row in rows:
        scale = levels.get(row.criterion_id)
        if not (between_levels and scale and min(scale) <= row.value <= max(scale)):
            _check_level(levels, row.criterion_id, row.value)
    session.add_all(Label(label_set_id=_id(label_set), **row._asdict()) for row in rows)
    session.flush()


def add_import_file(
    *, session: Session, sha256: str, name: str, file_format: str, mapping: dict[str, Any]
) -> ImportFile:
    """A row for a file about to be imported."""
    file = ImportFile(sha256=sha256, name=name, format=file_format, mapping=mapping)
    session.add(file)
    session.flush()
    return file


def record_set_aside(*, session: Session, file: ImportFile, lines: Iterable[tuple[int, str, str, str]]) -> None:
    """Keep the lines of a file that were not imported, as (line, column, value, reason)."""
    rows = [
        {"import_file_id": file.id, "line": line, "column": column, "value": value, "reason": reason}
        for line, column, value, reason in lines
    ]
    if rows:
        _insert(session, SetAsideLine.__table__, rows)


def save_mapping(*, session: Session, shape_sha256: str, mapping: dict[str, Any]) -> None:
    """Remember the confirmed mapping for files with this header."""
    session.add(ImportMapping(shape_sha256=shape_sha256, mapping=mapping))
    session.flush()


def _insert(session: Session, table: Table, rows: list[dict[str, Any]]) -> None:
    if rows:
        session.connection().execute(insert(table), rows)


@dataclass(slots=True)
class _Ids:
    """The highest id handed out in a table."""

    last: int


def _ids(session: Session, table: Table) -> _Ids:
    """The ids of a table in this transaction, shared by all who hand them out."""
    ids: _Ids = session.info.get(table.name) or _Ids(_next_id(session, table))
    session.info[table.name] = ids
    return ids


def _next_id(session: Session, table: Table) -> int:
    """The highest id in use. PostgreSQL locks the table against other writers first: ids are handed out here."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text(f'LOCK TABLE "{table.name}" IN SHARE ROW EXCLUSIVE MODE'))
    return session.scalar(select(func.max(table.c.id))) or 0


def _set_sequence(session: Session, table: Table, last: int) -> None:
    """Tell PostgreSQL which ids were used."""
    if session.get_bind().dialect.name == "postgresql" and last:
        session.execute(
            text("SELECT setval(pg_get_serial_sequence(:name, 'id'), :last)"), {"name": table.name, "last": last}
        )


def _id(row: Base) -> int:
    """The key of a flushed row."""
    key: int | None = row.id  # type: ignore[attr-defined]
    if key is None:
        raise ValueError(f"{type(row).__name__} has not been flushed, so it has no id")
    return key
