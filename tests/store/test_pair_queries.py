"""What pairs are made of, who is known to have won them, and the families that people enter."""

from dataclasses import dataclass

import numpy as np
import pytest
from sqlalchemy import Engine
from sqlmodel import Session

from core.store import pair_queries, writes
from core.store.engine import reading
from core.store.pair_writes import save_families
from core.store.queries import list_criteria
from core.store.specs import CallRow, CriterionSpec, ItemSpec, JudgeSpec, LabelRow, LevelSpec, RubricSpec, ScoreRow
from core.store.tables import Adjudication, LabelSet
from tests.store.builders import add_items, item_spec, key_of, record

SLOTS = CriterionSpec("preference", tuple(LevelSpec(value) for value in (-1.0, 0.0, 1.0)), gate=1.0)


@dataclass(frozen=True)
class Pairs:
    rubric: int
    run: int
    criterion: int
    corpus: int
    items: tuple[int, ...]


def pair(key: str, one: str | None, two: str | None, **changes: str) -> ItemSpec:
    systems = {"system": "alpha", "system_b": "beta"} | changes
    return ItemSpec(key, key, candidate=one, candidate_b=two, pair=True, **systems)


def lay_pairs(session: Session) -> Pairs:
    spec = RubricSpec("pairs", (SLOTS,))
    rubric = key_of(writes.add_rubric(session=session, spec=spec))
    (criterion,) = list_criteria(session=session, rubric_id=rubric)
    judge = key_of(writes.add_judge(session=session, spec=JudgeSpec("judge", rubric, spec.sha256, pairwise=True)))
    items = add_items(
        session,
        "pairs",
        [
            pair("p1", "short", "a longer one"),
            pair("p2", "text", None, slice="boundary"),
            pair("p3", "text", "short", system_b="gamma"),
            pair("never judged", "x", "y"),
        ],
    )
    corpus = key_of(writes.add_corpus(session=session, name="pairs", item_ids=items))
    run = key_of(writes.add_run(session=session, judge_id=judge, corpus_id=corpus))
    score = (ScoreRow(criterion.id, 1.0),)
    record(session, run, [CallRow(item, 0, order, scores=score) for item in items[:3] for order in ("ab", "ba")])
    return Pairs(rubric, run, criterion.id, corpus, items)


def add_labels(session: Session, pairs: Pairs, labels: list[tuple[int, str, float]]) -> LabelSet:
    label_set = writes.add_label_set(session=session, name="winners", rubric_id=pairs.rubric)
    rows = [LabelRow(pairs.items[place], pairs.criterion, value, rater) for place, rater, value in labels]
    writes.record_labels(session=session, label_set=label_set, rows=rows)
    return label_set


def test_groups_hold_slice_and_systems_of_the_judged_pairs_only(engine: Engine) -> None:
    with writes.writing(engine) as session:
        pairs = lay_pairs(session)
    with reading(engine) as session:
        found = pair_queries.get_pair_groups(session=session, run_ids=[pairs.run], criterion_id=pairs.criterion)
    assert found.item_ids.tolist() == list(pairs.items[:3])
    assert [found.groups[code] for code in found.codes] == [
        ("production", "alpha", "beta"),
        ("boundary", "alpha", "beta"),
        ("production", "alpha", "gamma"),
    ]


def test_lengths_are_characters_and_0_without_a_text(engine: Engine) -> None:
    with writes.writing(engine) as session:
        pairs = lay_pairs(session)
    with reading(engine) as session:
        found = pair_queries.get_pair_lengths(session=session, run_ids=[pairs.run], criterion_id=pairs.criterion)
    assert found.candidate.tolist() == [5, 4, 4]
    assert found.candidate_b.tolist() == [12, 0, 5]


def test_the_winner_is_what_most_raters_said_last(engine: Engine) -> None:
    with writes.writing(engine) as session:
        pairs = lay_pairs(session)
        labels = add_labels(
            session,
            pairs,
            [(0, "r1", -1), (0, "r1", 1), (0, "r2", 1), (0, "r3", 0), (1, "r1", 1), (1, "r2", -1), (2, "r1", 0)],
        )
        set_id = key_of(labels)
    with reading(engine) as session:
        found = pair_queries.get_pair_winners(session=session, label_set_id=set_id, criterion_id=pairs.criterion)
        sets = pair_queries.list_winner_sets(session=session, corpus_id=pairs.corpus, criterion_key="preference")
    # p1: A twice and one tie (the first label of r1 was corrected); p2: split evenly; p3: a tie.
    assert found.item_ids.tolist() == list(pairs.items[:3])
    assert found.winners.tolist() == [1, pair_queries.UNKNOWN, 0]
    assert sets[["label_set_id", "name", "pairs"]].to_numpy().tolist() == [[set_id, "winners", 3]]


def test_an_adjudication_takes_the_place_of_labels_that_differ(engine: Engine) -> None:
    with writes.writing(engine) as session:
        pairs = lay_pairs(session)
        set_id = key_of(add_labels(session, pairs, [(1, "r1", 1), (1, "r2", -1)]))
        session.add(
            Adjudication(
                label_set_id=set_id, item_id=pairs.items[1], criterion_id=pairs.criterion, value=-1, author="lead"
            )
        )
    with reading(engine) as session:
        found = pair_queries.get_pair_winners(session=session, label_set_id=set_id, criterion_id=pairs.criterion)
    assert (found.item_ids.tolist(), found.winners.tolist()) == ([pairs.items[1]], [-1])


def test_no_labels_are_no_winners(engine: Engine) -> None:
    with reading(engine) as session:
        found = pair_queries.get_pair_winners(session=session, label_set_id=1, criterion_id=1)
    assert len(found.item_ids) == len(found.winners) == 0
    assert found.winners.dtype == np.int8


def test_candidates_are_found_among_single_items_word_for_word(engine: Engine) -> None:
    with writes.writing(engine) as session:
        pairs = lay_pairs(session)
    with reading(engine) as session:
        assert pair_queries.list_single_twins(session=session, run_ids=[pairs.run], criterion_id=pairs.criterion).empty
    with writes.writing(engine) as session:
        text, short = add_items(session, "single", [item_spec("s1", "text"), item_spec("s2", "short")])
    with reading(engine) as session:
        found = pair_queries.list_single_twins(session=session, run_ids=[pairs.run], criterion_id=pairs.criterion)
    assert found.to_numpy().tolist() == [[pairs.items[2], text, short]]


def test_a_family_is_kept_changed_and_taken_away(engine: Engine) -> None:
    with writes.writing(engine) as session:
        save_families(session=session, families={("judge", "m"): " one ", ("system", "m"): "two", ("system", "n"): ""})
    with writes.writing(engine) as session:
        save_families(session=session, families={("judge", "m"): "three", ("system", "m"): ""})
    with reading(engine) as session:
        assert pair_queries.list_families(session=session).to_numpy().tolist() == [["judge", "m", "three"]]


def test_a_family_of_something_else_is_refused(engine: Engine) -> None:
    with pytest.raises(ValueError, match="person"), writes.writing(engine) as session:
        save_families(session=session, families={("person", "m"): "one"})
