"""Observations cannot be changed or deleted: tested by trying."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Engine, Table, text
from sqlalchemy.exc import DBAPIError
from sqlmodel import Session

from core.store import writes
from core.store.specs import CallRow, LabelRow, ScoreRow
from core.store.tables import (
    APPEND_ONLY,
    Adjudication,
    Base,
    BlindRanking,
    CallAttempt,
    Decision,
    DecisionKind,
    Item,
    Label,
    LabelQueue,
    PlannedCall,
    QueueItem,
    TrustRule,
)
from tests.store.builders import add_items, item_spec, key_of, lay_ground, record, rows

WORDS = {
    "call": "raw_reply",
    "score": "raw_value",
    "score_evidence": "rationale",
    "label": "reason",
    "adjudication": "note",
    "trust_rule": "author",
    "decision": "reason",
    "label_queue": "note",
    "queue_item": "why",
    "blind_ranking": "reason",
    "planned_call": "part",
    "call_attempt": "error",
}
"""A text column of each protected table, to be forged."""

UNIQUE_KEYS = {
    "call": "run_id, item_id, repetition, slot_order, part, attempt",
    "score": "call_id, criterion_id",
    "queue_item": "queue_id, item_id",
    "planned_call": "run_id, item_id, repetition, slot_order, part",
    "call_attempt": "planned_call_id, attempt, event",
}

REFUSED = "is append-only: record a new row instead"


def fill(engine: Engine) -> None:
    """One row in every protected table."""
    with writes.writing(engine) as session:
        ground = lay_ground(session, items=1)
        (item,), criterion = ground.items, ground.criteria[0]
        score = ScoreRow(criterion, 2.0, raw_value="2", rationale="because")
        record(session, ground.run, [CallRow(item, 0, raw_reply="{}", scores=(score,))])
        labels = writes.add_label_set(session=session, name="labels", rubric_id=ground.rubric)
        writes.record_labels(session=session, label_set=labels, rows=[LabelRow(item, criterion, 2.0, "r", reason="so")])
        session.add(
            Adjudication(
                label_set_id=key_of(labels), item_id=item, criterion_id=criterion, value=2.0, author="a", note="n"
            )
        )
        queue = LabelQueue(label_set_id=key_of(labels), raters=["r"], double_share=0.0, note="n")
        session.add(queue)
        session.flush()
        session.add(QueueItem(queue_id=key_of(queue), item_id=item, position=0, slot=0, why="w"))
        session.add(BlindRanking(label_set_id=key_of(labels), rater="r", request_sha256="0", reason="so"))
        planned = PlannedCall(run_id=ground.run, sequence=0, chunk=0, item_id=item, repetition=0, part="p")
        session.add(planned)
        session.flush()
        session.add(
            CallAttempt(run_id=ground.run, planned_call_id=key_of(planned), attempt=1, event="failed", error="e")
        )
        session.add(TrustRule(name="rule", author="a", sha256="0"))
        session.add(
            Decision(
                kind=DecisionKind.APPROVED, judge_id=ground.judge, corpus_id=ground.corpus, author="a", reason="good"
            )
        )


@pytest.fixture
def filled(engine: Engine) -> Engine:
    fill(engine)
    return engine


@pytest.fixture
def filled_sqlite(sqlite_engine: Engine) -> Engine:
    fill(sqlite_engine)
    return sqlite_engine


def table_of(name: str) -> Table:
    return Base.metadata.tables[name]


def test_every_protected_table_is_attacked() -> None:
    assert set(WORDS) == set(APPEND_ONLY)


@pytest.mark.parametrize("name", APPEND_ONLY)
def test_update_and_delete_are_refused(filled: Engine, name: str) -> None:
    before = rows(filled, table_of(name))
    assert len(before) == 1
    for attack in (f"UPDATE {name} SET {WORDS[name]} = 'forged'", f"DELETE FROM {name}"):  # noqa: S608 - our own names
        with pytest.raises(DBAPIError, match=REFUSED), writes.writing(filled) as session:
            session.execute(text(attack))
    assert rows(filled, table_of(name)) == before


def sqlite_attacks() -> Iterator[tuple[str, str]]:
    for name in APPEND_ONLY:
        table, word = table_of(name), WORDS[name]
        columns = [column.name for column in table.columns]
        forged = [f"'forged' AS {word}" if column == word else column for column in columns]
        copy = f"({', '.join(columns)}) SELECT {', '.join(forged)} FROM {name}"  # noqa: S608 - our own names
        yield name, f"INSERT OR REPLACE INTO {name} {copy}"
        yield name, f"REPLACE INTO {name} {copy}"
        key = table.primary_key.columns[0].name
        yield name, f"INSERT INTO {name} {copy} WHERE true ON CONFLICT ({key}) DO UPDATE SET {word} = 'forged'"
        for policy in ("REPLACE", "IGNORE"):
            yield name, f"UPDATE OR {policy} {name} SET {word} = 'forged'"  # noqa: S608 - our own names
        if name in UNIQUE_KEYS:
            rest = ", ".join(column for column in columns if column != "id")
            values = ", ".join(value for value in forged if value != "id")
            yield name, f"INSERT OR REPLACE INTO {name} ({rest}) SELECT {values} FROM {name}"  # noqa: S608 - our own names


@pytest.mark.parametrize(("name", "attack"), list(sqlite_attacks()))
def test_a_plain_sqlite_connection_can_replace_nothing(filled_sqlite: Engine, name: str, attack: str) -> None:
    before = rows(filled_sqlite, table_of(name))
    path = filled_sqlite.url.database
    assert path is not None
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as connection,
        pytest.raises(sqlite3.IntegrityError, match=REFUSED),
    ):
        connection.execute(attack)
    assert rows(filled_sqlite, table_of(name)) == before


@pytest.mark.parametrize("name", APPEND_ONLY)
def test_postgresql_refuses_truncation_and_upserts(filled: Engine, name: str) -> None:
    if filled.dialect.name == "sqlite":
        pytest.skip("SQLite has no TRUNCATE; its upserts are tried on a plain connection")
    table = table_of(name)
    before = rows(filled, table)
    key, word = table.primary_key.columns[0].name, WORDS[name]
    attacks = [
        f"TRUNCATE {name} CASCADE",
        f"INSERT INTO {name} SELECT * FROM {name} ON CONFLICT ({key}) DO UPDATE SET {word} = 'forged'",  # noqa: S608 - our own names
        f"MERGE INTO {name} old USING {name} new ON old.{key} = new.{key} WHEN MATCHED THEN DELETE",
    ]
    for attack in attacks:
        with pytest.raises(DBAPIError, match=REFUSED), writes.writing(filled) as session:
            session.execute(text(attack))
    assert rows(filled, table) == before


def test_postgresql_refuses_to_truncate_what_calls_hang_on(filled: Engine) -> None:
    if filled.dialect.name == "sqlite":
        pytest.skip("SQLite has no TRUNCATE")
    before = rows(filled, table_of("call"))
    with pytest.raises(DBAPIError, match=REFUSED), writes.writing(filled) as session:
        session.execute(text("TRUNCATE run CASCADE"))
    assert rows(filled, table_of("call")) == before


def test_an_object_that_was_read_cannot_be_saved_changed_or_deleted(filled: Engine) -> None:
    def change(session: Session) -> None:
        session.get_one(Label, 1).value = 3.0
        session.flush()

    def delete(session: Session) -> None:
        session.delete(session.get_one(Label, 1))
        session.flush()

    before = rows(filled, table_of("label"))
    for attack in (change, delete):
        with pytest.raises(DBAPIError, match=REFUSED), writes.writing(filled) as session:
            attack(session)
    assert rows(filled, table_of("label")) == before


FORGED_ITEMS = [
    "UPDATE item SET candidate = 'another text'",
    "UPDATE item SET content_sha256 = 'another hash'",
    "UPDATE item SET key = 'another key'",
    "UPDATE item SET slice = 'anchor'",
    "UPDATE item SET id = id + 1",
    "DELETE FROM item",
]


@pytest.mark.parametrize("attack", FORGED_ITEMS)
def test_an_item_does_not_change(engine: Engine, attack: str) -> None:
    with writes.writing(engine) as session:
        add_items(session, "corpus", [item_spec("a", request="r")])
    before = rows(engine, table_of("item"))
    with pytest.raises(DBAPIError, match=r"immutable|append-only"), writes.writing(engine) as session:
        session.execute(text(attack))
    assert rows(engine, table_of("item")) == before


def test_an_item_may_lose_its_texts_and_not_get_them_back(engine: Engine) -> None:
    with writes.writing(engine) as session:
        (item_id,) = add_items(session, "corpus", [item_spec("a", "a text", request="r", reference="f")])
    with writes.writing(engine) as session:
        session.execute(text("UPDATE item SET request = NULL, candidate = NULL"))
    with Session(engine) as session:
        item = session.get(Item, item_id)
        assert item is not None
        assert (item.request, item.candidate, item.reference, item.key) == (None, None, "f", "a")
        assert len(item.content_sha256) == 64
    with pytest.raises(DBAPIError, match=r"immutable|append-only"), writes.writing(engine) as session:
        session.execute(text("UPDATE item SET candidate = 'a text'"))


@pytest.mark.parametrize("keep_id", [True, False])
def test_a_plain_sqlite_connection_cannot_replace_an_item(sqlite_engine: Engine, keep_id: bool) -> None:
    with writes.writing(sqlite_engine) as session:
        add_items(session, "corpus", [item_spec("a", "a text")])
    table = table_of("item")
    before = rows(sqlite_engine, table)
    columns = [column.name for column in table.columns if keep_id or column.name != "id"]
    forged = ["'forged'" if column == "candidate" else column for column in columns]
    path = Path(str(sqlite_engine.url.database))
    attack = f"REPLACE INTO item ({', '.join(columns)}) SELECT {', '.join(forged)} FROM item"  # noqa: S608 - our own names
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as connection,
        pytest.raises(sqlite3.IntegrityError, match="immutable"),
    ):
        connection.execute(attack)
    assert rows(sqlite_engine, table) == before
