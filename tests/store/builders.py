"""Small stores for the tests: a rubric, a judge, items, a corpus and a run."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, Table, select
from sqlmodel import Session

from core.store import writes
from core.store.queries import list_criteria
from core.store.specs import CallRow, CriterionSpec, ItemSpec, JudgeSpec, LevelSpec, RubricSpec, ScoreRow, content_hash
from core.store.tables import Base, Item, Run

LEVELS = (1.0, 2.0, 3.0)


def criterion_spec(key: str = "tone", **changes: Any) -> CriterionSpec:
    fields: dict[str, Any] = {"levels": tuple(LevelSpec(value, f"anchor {value:g}") for value in LEVELS), "gate": 2.0}
    return CriterionSpec(key=key, **(fields | changes))


def rubric_spec(name: str = "rubric", criteria: Iterable[str] = ("tone", "facts"), **changes: Any) -> RubricSpec:
    return RubricSpec(name=name, criteria=tuple(map(criterion_spec, criteria)), **changes)


def item_spec(key: str, text: str = "text", **changes: Any) -> ItemSpec:
    return ItemSpec(key=key, content_sha256=content_hash(text), candidate=text, **changes)


@dataclass(frozen=True)
class Ground:
    """Ids of what `lay_ground` made."""

    rubric: int
    criteria: tuple[int, ...]
    judge: int
    items: tuple[int, ...]
    corpus: int
    run: int


def key_of(row: Base) -> int:
    key = row.id  # type: ignore[attr-defined]
    assert isinstance(key, int)
    return key


def add_items(session: Session, collection: str, specs: Iterable[ItemSpec]) -> tuple[int, ...]:
    book = writes.ItemBook(session=session, collection=collection)
    ids = tuple(book.find(spec) for spec in specs)
    book.flush()
    return ids


def lay_ground(session: Session, *, name: str = "judge", items: int = 3) -> Ground:
    """A judge with two criteria of three levels, `items` items and an empty run."""
    spec = rubric_spec()
    rubric = key_of(writes.add_rubric(session=session, spec=spec))
    judge = key_of(
        writes.add_judge(session=session, spec=JudgeSpec(name=name, rubric_id=rubric, rubric_sha256=spec.sha256))
    )
    ids = add_items(session, "corpus", [item_spec(f"i{place}") for place in range(items)])
    corpus = key_of(writes.add_corpus(session=session, name="corpus", item_ids=ids))
    run = key_of(writes.add_run(session=session, judge_id=judge, corpus_id=corpus))
    criteria = tuple(view.id for view in list_criteria(session=session, rubric_id=rubric))
    return Ground(rubric, criteria, judge, ids, corpus, run)


def get_run(session: Session, run_id: int) -> Run:
    run = session.get(Run, run_id)
    assert run is not None
    return run


def record(session: Session, run_id: int, calls: Iterable[CallRow]) -> None:
    """Record calls with a recorder of their own."""
    recorder = writes.RunRecorder(session=session, run=get_run(session, run_id))
    recorder.record(calls)
    recorder.finish()


def call(item: int, repetition: int, criterion: int, value: float | None = 2.0, **changes: Any) -> CallRow:
    """A call with one score, or with the reason `refusal` where `value` is None."""
    score = ScoreRow(criterion, value, None if value is not None else "refusal")
    return CallRow(item, repetition, scores=(score,), **changes)


def rows(engine: Engine, table: Table) -> list[tuple[Any, ...]]:
    """All rows of a table, in the order of its primary key."""
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key))]


def count_rows(engine: Engine) -> dict[str, int]:
    """Rows of every table."""
    return {table.name: len(rows(engine, table)) for table in Base.metadata.sorted_tables}


def item_texts(engine: Engine) -> list[tuple[Any, ...]]:
    return rows(engine, Item.__table__)
