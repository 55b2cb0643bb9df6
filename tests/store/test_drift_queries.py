"""Which items are the same text on both sides, and which replies are copies of the other side's."""

import numpy as np
import pytest
from sqlalchemy import Engine

from core.store import writes
from core.store.drift_queries import (
    align_items,
    get_judge_parts,
    list_copied_replies,
    list_item_slices,
    list_label_sets,
)
from core.store.engine import reading
from core.store.specs import ItemSpec, JudgeSpec
from tests.store.builders import add_items, call, item_spec, key_of, lay_ground, record


def ids(*values: int) -> np.ndarray:
    return np.array(sorted(values), np.int64)


def test_items_pair_by_key_and_only_where_the_text_is_the_same(engine: Engine) -> None:
    with writes.writing(engine) as session:
        same, old, alone = add_items(session, "c", [item_spec("same"), item_spec("moved", "old"), item_spec("alone")])
        (new,) = add_items(session, "c", [item_spec("moved", "new")])
    with reading(engine) as session:
        found = align_items(session=session, ids_a=ids(same, old, alone), ids_b=ids(same, new))
    assert (ids(same, old, alone)[found.rows_a].tolist(), ids(same, new)[found.rows_b].tolist()) == ([same], [same])
    assert found.changed[["key", "item_a", "item_b"]].to_numpy().tolist() == [["moved", old, new]]
    assert (found.only_a, found.only_b, found.unchecked, found.unknown) == (1, 0, 0, 0)


def test_two_collections_pair_by_key_and_hash(engine: Engine) -> None:
    with writes.writing(engine) as session:
        here = add_items(session, "c", [item_spec("k1"), item_spec("k2", "one"), ItemSpec("k3")])
        there = add_items(session, "d", [item_spec("k2", "two"), item_spec("k1"), ItemSpec("k3")])
    with reading(engine) as session:
        found = align_items(session=session, ids_a=ids(*here), ids_b=ids(*there))
    assert (ids(*here)[found.rows_a].tolist(), ids(*there)[found.rows_b].tolist()) == ([here[0]], [there[1]])
    assert found.changed.key.tolist() == ["k2"]
    assert (found.unknown, found.unchecked, found.only_a, found.only_b) == (1, 0, 0, 0)


def test_an_item_without_text_is_paired_and_counted_as_unchecked(engine: Engine) -> None:
    with writes.writing(engine) as session:
        items = add_items(session, "c", [ItemSpec("bare"), item_spec("whole")])
    with reading(engine) as session:
        found = align_items(session=session, ids_a=ids(*items), ids_b=ids(*items))
    assert (len(found.rows_a), found.unchecked, len(found.changed)) == (2, 1, 0)


def test_nothing_in_common_is_an_empty_pairing(engine: Engine) -> None:
    with writes.writing(engine) as session:
        one, two = add_items(session, "c", [item_spec("one"), item_spec("two")])
    with reading(engine) as session:
        found = align_items(session=session, ids_a=ids(one), ids_b=ids(two))
    assert (found.rows_a.tolist(), found.rows_b.tolist(), found.only_a, found.only_b) == ([], [], 1, 1)


def test_a_reply_with_the_other_sides_response_id_is_a_copy(engine: Engine) -> None:
    with writes.writing(engine) as session:
        ground = lay_ground(session)
        spec = JudgeSpec(name="later", rubric_id=ground.rubric, rubric_sha256="x", model="later")
        judge = key_of(writes.add_judge(session=session, spec=spec))
        run = key_of(writes.add_run(session=session, judge_id=judge, corpus_id=ground.corpus))
        one, two, three = ground.items
        criterion = ground.criteria[0]
        record(session, ground.run, [call(one, 0, criterion, response_id="r1"), call(two, 0, criterion)])
        record(
            session,
            run,
            [
                call(one, 0, criterion, response_id="r1"),
                call(one, 1, criterion, response_id="r2"),
                call(two, 0, criterion),
                call(three, 0, criterion, response_id="r3"),
            ],
        )
    with reading(engine) as session:
        copies = list_copied_replies(session=session, before=[ground.run], after=[run])
        back = list_copied_replies(session=session, before=[run], after=[ground.run])
        itself = list_copied_replies(session=session, before=[run], after=[run])
    assert copies.to_numpy().tolist() == [[run, one, 0]]
    assert back.to_numpy().tolist() == [[ground.run, one, 0]]
    assert itself.empty


def test_a_store_without_response_ids_has_no_copies(engine: Engine) -> None:
    with writes.writing(engine) as session:
        ground = lay_ground(session)
        record(session, ground.run, [call(ground.items[0], 0, ground.criteria[0])])
    with reading(engine) as session:
        assert list_copied_replies(session=session, before=[ground.run], after=[ground.run]).empty


def test_every_judged_item_has_its_slice(engine: Engine) -> None:
    with writes.writing(engine) as session:
        ground = lay_ground(session)
        specs = [item_spec("a", slice="anchor"), item_spec("b", slice="boundary"), item_spec("c")]
        anchor, boundary, _ = add_items(session, "slices", specs)
        record(session, ground.run, [call(item, 0, ground.criteria[0]) for item in (anchor, boundary)])
    with reading(engine) as session:
        members = list_item_slices(session=session, run_ids=[ground.run], criterion_id=ground.criteria[0])
    assert members.item_ids.tolist() == [anchor, boundary]
    assert [members.names[place] for place in members.places] == ["anchor", "boundary"]


def test_the_name_in_a_file_stands_for_an_unnamed_snapshot(engine: Engine) -> None:
    with writes.writing(engine) as session:
        ground = lay_ground(session)
        spec = JudgeSpec(
            name="gpt · v2",
            rubric_id=ground.rubric,
            rubric_sha256="x",
            prompt_version="v2",
            parameters={"judge": "gpt", "temperature": 0},
        )
        judge = key_of(writes.add_judge(session=session, spec=spec))
        writes.add_label_set(session=session, name="labels", rubric_id=ground.rubric)
    with reading(engine) as session:
        parts = get_judge_parts(session=session, judge_id=judge)
        labels = list_label_sets(session=session, rubric_ids=[ground.rubric])
        with pytest.raises(ValueError, match="no judge 99"):
            get_judge_parts(session=session, judge_id=99)
    assert (parts.snapshot, parts.prompt_version, parts.rubric) == ("gpt", "v2", "rubric v1")
    assert parts.parameters == {"temperature": 0}
    assert labels.name.tolist() == ["labels"]
