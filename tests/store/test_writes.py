"""Writes are idempotent by content, versioned by difference, and whole or not at all."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from sqlalchemy import Engine, func, select
from sqlalchemy.exc import StatementError
from sqlmodel import Session, col

from core.store import writes
from core.store.queries import find_item, get_revision, list_calls, list_criteria, list_rubric_changes
from core.store.specs import ItemSpec, JudgeSpec, LabelRow, LevelSpec, RubricSpec
from core.store.tables import Corpus, CorpusItem, Item, Judge, Label, LabelSet, Rubric, Run
from tests.store.builders import (
    add_items,
    call,
    count_rows,
    criterion_spec,
    get_run,
    item_spec,
    key_of,
    lay_ground,
    record,
    rows,
    rubric_spec,
)


def other_anchor(spec: RubricSpec, anchor: str = "another anchor") -> RubricSpec:
    levels = (LevelSpec(1.0, anchor), *spec.criteria[0].levels[1:])
    return replace(spec, criteria=(replace(spec.criteria[0], levels=levels), *spec.criteria[1:]))


def test_the_same_rubric_is_stored_once(engine: Engine) -> None:
    for _ in range(2):
        with writes.writing(engine) as session:
            rubric = writes.add_rubric(session=session, spec=rubric_spec())
            assert (rubric.id, rubric.version) == (1, 1)
    with Session(engine) as session:
        views = list_criteria(session=session, rubric_id=1)
        assert [view.key for view in views] == ["tone", "facts"]
        assert views[0].levels == (1.0, 2.0, 3.0)
        assert views[0].anchors == ("anchor 1", "anchor 2", "anchor 3")
        assert len(list_rubric_changes(session=session, rubric_id=1)) == 1


def test_a_changed_anchor_is_a_new_version_with_its_line_in_the_log(engine: Engine) -> None:
    changed = other_anchor(rubric_spec())
    with writes.writing(engine) as session:
        writes.add_rubric(session=session, spec=rubric_spec())
        newer = key_of(writes.add_rubric(session=session, spec=changed, author="ann", reason="too vague"))
        third = replace(other_anchor(changed, "a third anchor"), name="elsewhere")
        assert writes.add_rubric(session=session, spec=third).version == 1
        # one that reads the same under another name is the same rubric, unless one of the two is simulated
        assert writes.add_rubric(session=session, spec=replace(changed, name="elsewhere")).id == newer
        assert writes.add_rubric(session=session, spec=replace(changed, simulated=True)).id != newer
    with Session(engine) as session:
        log = list_rubric_changes(session=session, rubric_id=newer)
        assert log[["author", "line", "reason"]].values.tolist() == [["ann", "version 2", "too vague"]]
        old, new = (list_criteria(session=session, rubric_id=version)[0].anchors for version in (1, newer))
        assert (old[0], new[0]) == ("anchor 1", "another anchor")


def test_going_back_to_an_older_rubric_finds_the_older_version(engine: Engine) -> None:
    with writes.writing(engine) as session:
        first = writes.add_rubric(session=session, spec=rubric_spec()).id
        writes.add_rubric(session=session, spec=other_anchor(rubric_spec()))
        assert writes.add_rubric(session=session, spec=rubric_spec()).id == first
        assert session.scalar(select(func.count()).select_from(Rubric)) == 2


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("model", "m-2"),
        ("prompt", "Be strict."),
        ("prompt_version", "p2"),
        ("output_schema", {"type": "object"}),
        ("parameters", {"max_tokens": 9}),
        ("parser_version", "2"),
        ("aggregation", "median of 3"),
        ("rubric_sha256", "other"),
        ("pairwise", True),
    ],
)
def test_any_other_part_is_another_judge(sqlite_engine: Engine, part: str, value: Any) -> None:
    with writes.writing(sqlite_engine) as session:
        rubric = key_of(writes.add_rubric(session=session, spec=rubric_spec()))
        spec = JudgeSpec(name="judge", rubric_id=rubric, rubric_sha256=rubric_spec().sha256, model="m-1")
        first = key_of(writes.add_judge(session=session, spec=spec))
        assert key_of(writes.add_judge(session=session, spec=replace(spec, **{part: value}))) != first


def test_a_judge_is_known_by_its_parts_and_not_by_its_name(engine: Engine) -> None:
    for name in ("first name", "second name"):
        with writes.writing(engine) as session:
            rubric = key_of(writes.add_rubric(session=session, spec=rubric_spec()))
            spec = JudgeSpec(name=name, rubric_id=rubric, rubric_sha256=rubric_spec().sha256, model="m-1")
            assert writes.add_judge(session=session, spec=spec).name == "first name"
    assert len(rows(engine, Judge.__table__)) == 1


def test_imported_judges_that_say_nothing_else_are_told_apart_by_name(sqlite_engine: Engine) -> None:
    with writes.writing(sqlite_engine) as session:
        rubric = key_of(writes.add_rubric(session=session, spec=rubric_spec()))
        one, two = (
            key_of(writes.add_judge(session=session, spec=JudgeSpec(name=name, rubric_id=rubric, rubric_sha256="0")))
            for name in ("one", "two")
        )
        assert one != two


def test_a_text_changed_under_a_key_is_another_item_and_reported(engine: Engine) -> None:
    with writes.writing(engine) as session:
        (old,) = add_items(session, "corpus", [item_spec("a", "before")])
    with writes.writing(engine) as session:
        book = writes.ItemBook(session=session, collection="corpus")
        assert book.find(item_spec("a", "before")) == old
        assert book.mutated == {}
        new = book.find(item_spec("a", "after"))
        assert new != old
        assert list(book.mutated) == ["a"]
        assert book.find(item_spec("a", "after")) == new
        assert list(book.used) == [old, new]
        assert book.made == 1
        book.flush()
    assert [row[-2] for row in rows(engine, Item.__table__)] == [False, False]
    assert len(rows(engine, Item.__table__)) == 2


def test_an_item_given_without_text_is_the_newest_known_under_its_key(engine: Engine) -> None:
    with writes.writing(engine) as session:
        first, second = add_items(session, "corpus", [item_spec("a", "before"), item_spec("a", "after")])
        book = writes.ItemBook(session=session, collection="corpus")
        assert book.find(ItemSpec("a")) == second
        assert book.find(ItemSpec("b")) not in (first, second)
        assert book.mutated == {}
        book.flush()


def test_keys_of_two_collections_do_not_meet(engine: Engine) -> None:
    with writes.writing(engine) as session:
        one = add_items(session, "one", [item_spec("a", "text of one")])
        book = writes.ItemBook(session=session, collection="two")
        assert book.find(item_spec("a", "text of two")) not in one
        assert book.mutated == {}


def test_ids_go_on_after_items_were_inserted_in_bulk(engine: Engine) -> None:
    with writes.writing(engine) as session:
        ids = add_items(session, "corpus", [item_spec("a"), item_spec("b")])
        session.add(Item(collection="corpus", key="c"))
        session.flush()
        assert len({*ids, *session.scalars(select(col(Item.id)))}) == 3


def members(session: Session, corpus: Corpus) -> set[int]:
    query = select(col(CorpusItem.item_id)).where(col(CorpusItem.corpus_id) == corpus.id)
    return set(session.scalars(query))


def test_a_corpus_is_frozen_and_grows_by_versions(engine: Engine) -> None:
    with writes.writing(engine) as session:
        a, b, c = add_items(session, "corpus", [item_spec(key) for key in "abc"])
        first = writes.add_corpus(session=session, name="corpus", item_ids=[a, b])
        assert writes.add_corpus(session=session, name="corpus", item_ids=[b]) is first
        second = writes.add_corpus(session=session, name="corpus", item_ids=[c])
        assert (first.version, second.version) == (1, 2)
        assert members(session, first) == {a, b}
        assert members(session, second) == {a, b, c}
        assert first.sha256 != second.sha256


def test_in_a_new_version_a_changed_text_replaces_the_one_before(engine: Engine) -> None:
    with writes.writing(engine) as session:
        old, kept = add_items(session, "corpus", [item_spec("a", "before"), item_spec("b")])
        first = writes.add_corpus(session=session, name="corpus", item_ids=[old, kept])
        (new,) = add_items(session, "corpus", [item_spec("a", "after")])
        second = writes.add_corpus(session=session, name="corpus", item_ids=[new])
        assert members(session, first) == {old, kept}
        assert members(session, second) == {new, kept}
        found = find_item(session=session, corpus_id=key_of(second), key="a")
        assert found is not None
        assert found.candidate == "after"


def test_two_texts_under_one_key_in_one_file_do_not_make_versions_for_ever(engine: Engine) -> None:
    for _ in range(2):
        with writes.writing(engine) as session:
            ids = add_items(session, "corpus", [item_spec("a", "before"), item_spec("a", "after")])
            assert writes.add_corpus(session=session, name="corpus", item_ids=ids).version == 1


def test_a_corpus_hash_depends_on_its_texts_only(sqlite_engine: Engine) -> None:
    def made(name: str, *specs: ItemSpec) -> str:
        with writes.writing(sqlite_engine) as session:
            return writes.add_corpus(session=session, name=name, item_ids=add_items(session, name, specs)).sha256

    assert made("one", item_spec("a"), item_spec("b")) == made("two", item_spec("b"), item_spec("a"))
    assert made("three", item_spec("a"), item_spec("b", "other")) != made("four", item_spec("a"), item_spec("b"))


def test_aware_times_come_back_in_utc(engine: Engine) -> None:
    summer = datetime(2026, 7, 1, 14, 30, 0, 123456, tzinfo=timezone(timedelta(hours=2)))
    with writes.writing(engine) as session:
        ground = lay_ground(session)
        record(session, ground.run, [call(ground.items[0], 0, ground.criteria[0], created_at=summer)])
        get_run(session, ground.run).created_at = summer
    with Session(engine) as session:
        for stored in (get_run(session, ground.run).created_at, session.scalars(select(col(Run.created_at))).one()):
            assert stored == datetime(2026, 7, 1, 12, 30, 0, 123456, tzinfo=UTC)
            assert stored.tzinfo is UTC
        calls = list_calls(
            session=session, item_id=ground.items[0], run_ids=[ground.run], criterion_id=ground.criteria[0]
        )
        assert calls.created_at.tolist() == [datetime(2026, 7, 1, 12, 30, 0, 123456, tzinfo=UTC)]


def test_times_without_a_zone_are_refused(engine: Engine) -> None:
    naive = datetime(2026, 7, 1, 14, 30)
    with writes.writing(engine) as session:
        ground = lay_ground(session)
    before = count_rows(engine)
    bad = call(ground.items[0], 0, ground.criteria[0], created_at=naive)
    with pytest.raises(ValueError, match="has no zone"), writes.writing(engine) as session:
        record(session, ground.run, [bad])
    with pytest.raises(StatementError, match="has no zone"), writes.writing(engine) as session:
        session.add(Corpus(name="other", sha256="0", created_at=naive))
    assert count_rows(engine) == before


def test_labels_are_appended_to_versioned_sets(engine: Engine) -> None:
    with writes.writing(engine) as session:
        ground = lay_ground(session)
        item, criterion = ground.items[0], ground.criteria[0]
        one, two = (
            writes.add_label_set(session=session, name="labels", rubric_id=ground.rubric, policy=policy)
            for policy in ("strict", "lenient")
        )
        assert (one.version, two.version) == (1, 2)
        first = [LabelRow(item, criterion, 2.0, "ann", "pass", "clear"), LabelRow(item, criterion, 1.0, "bob")]
        writes.record_labels(session=session, label_set=one, rows=first)
        writes.record_labels(session=session, label_set=one, rows=[LabelRow(item, criterion, 3.0, "ann")])
    with Session(engine) as session:
        stored = session.scalars(select(Label).order_by(col(Label.id))).all()
        assert [(label.rater, label.value, label.raw_value, label.reason) for label in stored] == [
            ("ann", 2.0, "pass", "clear"),
            ("bob", 1.0, None, None),
            ("ann", 3.0, None, None),
        ]


@pytest.mark.parametrize("value", [0.0, 2.5, float("nan")])
def test_a_label_that_is_no_level_refuses_all(engine: Engine, value: float) -> None:
    with writes.writing(engine) as session:
        ground = lay_ground(session)
        labels = writes.add_label_set(session=session, name="labels", rubric_id=ground.rubric)
        labels_id = labels.id
    bad = [LabelRow(ground.items[0], ground.criteria[0], chosen) for chosen in (2.0, value)]
    with pytest.raises(ValueError, match="is no level of criterion"), writes.writing(engine) as session:
        writes.record_labels(session=session, label_set=session.get_one(LabelSet, labels_id), rows=bad)
    assert rows(engine, Label.__table__) == []


def fail_after_a_write(session: Session) -> None:
    session.add(Corpus(name="lost", sha256="0"))
    session.flush()
    labels = writes.add_label_set(session=session, name="labels", rubric_id=1)
    writes.record_labels(session=session, label_set=labels, rows=[LabelRow(1, 1, 9.0)])


def test_each_write_transaction_raises_the_revision_once_and_a_failed_one_does_not(engine: Engine) -> None:
    with writes.writing(engine) as session:
        lay_ground(session)
    with pytest.raises(ValueError, match="no level"), writes.writing(engine) as session:
        fail_after_a_write(session)
    with Session(engine) as session:
        assert get_revision(session=session) == 1
        assert session.scalars(select(col(Corpus.name))).all() == ["corpus"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gate": 1.0}, "gate 1 must lie above 1"),
        ({"gate": 3.5}, "not above 3"),
        ({"levels": (LevelSpec(1.0),)}, "1 levels"),
        ({"levels": (LevelSpec(2.0), LevelSpec(1.0))}, "must ascend and differ"),
        ({"levels": (LevelSpec(1.0), LevelSpec(1.0))}, "must ascend and differ"),
    ],
)
def test_a_criterion_that_cannot_decide_anything_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        criterion_spec(**changes)
