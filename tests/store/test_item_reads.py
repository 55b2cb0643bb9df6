"""Reads of one item: texts by key, repetitions over runs, unscored calls of a slice."""

from sqlalchemy import Engine
from sqlmodel import Session

from core.store import writes
from core.store.item_reads import count_unscored, get_item_texts, get_repetitions
from core.store.vectors import UNSCORED
from tests.store.builders import call, key_of, lay_ground, record


def test_texts_by_key_and_none_for_a_stranger(engine: Engine) -> None:
    with Session(engine) as session:
        ground = lay_ground(session)
        found = get_item_texts(session=session, corpus_id=ground.corpus, key="i1")
        assert found is not None
        assert (found.id, found.key, found.candidate, found.candidate_b) == (ground.items[1], "i1", "text", None)
        assert get_item_texts(session=session, corpus_id=ground.corpus, key="nobody") is None


def test_repetitions_follow_the_order_of_the_runs_and_keep_their_numbers(engine: Engine) -> None:
    with Session(engine) as session:
        ground = lay_ground(session)
        item, tone = ground.items[0], ground.criteria[0]
        later = key_of(writes.add_run(session=session, judge_id=ground.judge, corpus_id=ground.corpus))
        record(
            session, ground.run, [call(item, 0, tone, 1.0), call(item, 2, tone, None), call(ground.items[1], 0, tone)]
        )
        record(session, later, [call(item, 0, tone, 3.0)])
        found = get_repetitions(
            session=session, item_id=item, run_ids=[later, ground.run], criterion_ids=ground.criteria
        )
    assert list(found) == [(tone, "")]
    vector = found[tone, ""]
    assert vector.run_ids.tolist() == [later, ground.run, ground.run]
    assert vector.repetitions.tolist() == [0, 0, 2]
    assert vector.outcomes.tolist() == [2, 0, UNSCORED]


def test_unscored_calls_are_counted_in_their_slice_only(engine: Engine) -> None:
    with Session(engine) as session:
        ground = lay_ground(session)
        tone = ground.criteria[0]
        record(
            session, ground.run, [call(item, 0, tone, None) for item in ground.items] + [call(ground.items[0], 1, tone)]
        )
        found = {
            name: count_unscored(session=session, run_ids=[ground.run], criterion_id=tone, item_slice=name)
            for name in ("production", "anchor")
        }
    assert found == {"production": {"refusal": 3}, "anchor": {}}
