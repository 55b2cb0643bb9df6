"""What a recorder keeps beside the scores always equals a recount of them."""

from collections import Counter
from collections.abc import Sequence
from itertools import count, pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, select
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session

from core.store import writes
from core.store.queries import get_score_matrix, get_tallies
from core.store.specs import CallRow, JudgeSpec, ScoreRow
from core.store.tables import Call, ItemVector, Judge, RunTally, Score, Unscored
from core.store.vectors import COPIED, NOT_MADE, UNSCORED
from tests.store.builders import LEVELS, Ground, call, count_rows, get_run, key_of, lay_ground, record, rows

OUTCOMES = st.sampled_from([*LEVELS, Unscored.REFUSAL, Unscored.NOT_JSON, None])
"""A level, a reason, or a criterion that was not asked for."""

_names = count()


class Plan(NamedTuple):
    """A call in terms of places, before items and criteria have ids."""

    item: int
    repetition: int
    slot_order: str
    response_id: str | None
    outcomes: tuple[float | Unscored | None, float | Unscored | None]


PLANS = st.lists(
    st.builds(
        Plan,
        st.integers(0, 3),
        st.integers(0, 6),
        st.sampled_from(["ab", "ba"]),
        st.sampled_from([None, None, "r1", "r2", "r3"]),
        st.tuples(OUTCOMES, OUTCOMES),
    ),
    max_size=40,
    unique_by=lambda plan: plan[:3],
)


def as_call(plan: Plan, ground: Ground) -> CallRow:
    scores = tuple(
        ScoreRow(criterion, None, outcome) if isinstance(outcome, Unscored) else ScoreRow(criterion, outcome)
        for criterion, outcome in zip(ground.criteria, plan.outcomes, strict=True)
        if outcome is not None
    )
    return CallRow(
        ground.items[plan.item], plan.repetition, plan.slot_order, response_id=plan.response_id, scores=scores
    )


Key = tuple[int, str, int]


def recount(session: Session, run_id: int) -> tuple[dict[Key, list[int]], Counter[tuple[int, str, str]]]:
    """Vectors and tallies out of the score table, straight from their definitions."""
    call_, score = Call.__table__.c, Score.__table__.c
    query = (
        select(
            call_.id,
            call_.item_id,
            call_.repetition,
            call_.slot_order,
            call_.response_id,
            score.criterion_id,
            score.value,
            score.unscored,
        )
        .join(Score, score.call_id == call_.id)
        .where(call_.run_id == run_id)
        .order_by(score.id)
    )
    uses = select(call_.response_id, call_.id).where(call_.run_id == run_id).order_by(call_.id.desc())
    first_use = {response_id: int(call_id) for response_id, call_id in session.execute(uses)}
    vectors: dict[Key, list[int]] = {}
    tallies: Counter[tuple[int, str, str]] = Counter()
    for call_id, item, repetition, order, response_id, criterion, value, unscored in session.execute(query):
        if response_id is not None and first_use[response_id] != call_id:
            code, outcome = COPIED, "copied"
        elif value is None:
            code, outcome = UNSCORED, unscored
        else:
            code, outcome = LEVELS.index(value), "scored"
        vector = vectors.setdefault((criterion, order, item), [])
        vector += [NOT_MADE] * (repetition + 1 - len(vector))
        vector[repetition] = code
        tallies[criterion, order, outcome] += 1
    return vectors, tallies


def kept(session: Session, run_id: int) -> tuple[dict[Key, list[int]], Counter[tuple[int, str, str]]]:
    """Vectors and tallies as stored."""
    vector, tally = ItemVector.__table__.c, RunTally.__table__.c
    vectors = session.execute(
        select(vector.criterion_id, vector.slot_order, vector.item_id, vector.codes).where(vector.run_id == run_id)
    )
    tallies = session.execute(
        select(tally.criterion_id, tally.slot_order, tally.outcome, tally.calls).where(tally.run_id == run_id)
    )
    return (
        {(criterion, order, item): list(codes) for criterion, order, item, codes in vectors},
        Counter({(criterion, order, outcome): calls for criterion, order, outcome, calls in tallies}),
    )


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plans=PLANS, cuts=st.lists(st.integers(0, 40), max_size=3), together=st.booleans())
def test_vectors_and_tallies_equal_a_recount_of_the_scores(
    engine: Engine, plans: list[Plan], cuts: list[int], together: bool
) -> None:
    with writes.writing(engine) as session:
        ground = lay_ground(session, name=f"judge {next(_names)}", items=4)
    edges = [0, *sorted(cuts), len(plans)]
    parts = [[as_call(plan, ground) for plan in plans[start:stop]] for start, stop in pairwise(edges)]
    record_parts(engine, ground.run, parts, together=together)
    with Session(engine) as session:
        assert kept(session, ground.run) == recount(session, ground.run)
        assert get_run(session, ground.run).revision == len(parts)
        check_matrices(session, ground)


def record_parts(engine: Engine, run_id: int, parts: Sequence[Sequence[CallRow]], *, together: bool) -> None:
    """Each part with a recorder of its own, in one transaction or in one each."""
    if together:
        with writes.writing(engine) as session:
            for part in parts:
                record(session, run_id, part)
    else:
        for part in parts:
            with writes.writing(engine) as session:
                record(session, run_id, part)


def check_matrices(session: Session, ground: Ground) -> None:
    """The matrix a page reads holds the recounted outcomes, cell by cell."""
    vectors, tallies = recount(session, ground.run)
    for criterion in ground.criteria:
        for order in ("ab", "ba"):
            matrix = get_score_matrix(session=session, run_ids=[ground.run], criterion_id=criterion, slot_order=order)
            cells = {
                (item, place): code
                for (key, order_, item), vector in vectors.items()
                if (key, order_) == (criterion, order)
                for place, code in enumerate(vector)
                if code != NOT_MADE
            }
            found = {
                (int(matrix.item_ids[row]), matrix.columns[column].repetition): int(matrix.outcomes[row, column])
                for row, column in np.argwhere(matrix.outcomes != NOT_MADE)
            }
            assert found == cells
            assert matrix.scored == tallies[criterion, order, "scored"]
            assert matrix.attempted == matrix.scored + matrix.copied + matrix.unscored


def test_a_reply_carried_by_two_repetitions_counts_once(engine: Engine) -> None:
    with writes.writing(engine) as session:
        ground = lay_ground(session, items=1)
        (item,), criterion = ground.items, ground.criteria[0]
        same = [call(item, repetition, criterion, response_id="r") for repetition in range(3)]
        record(session, ground.run, [*same, call(item, 3, criterion, response_id="other")])
    with Session(engine) as session:
        matrix = get_score_matrix(session=session, run_ids=[ground.run], criterion_id=criterion)
        assert matrix.outcomes.tolist() == [[1, COPIED, COPIED, 1]]
        assert (matrix.attempted, matrix.scored, matrix.copied, matrix.unscored) == (4, 2, 2, 0)
        assert matrix.codes.tolist() == [[1, -1, -1, 1]]
        assert get_tallies(session=session, run_ids=[ground.run], criterion_id=criterion) == {"copied": 2, "scored": 2}
    assert len(rows(engine, Score.__table__)) == 4


def test_a_copy_is_known_across_the_runs_of_a_judge_and_not_across_judges(engine: Engine) -> None:
    with writes.writing(engine) as session:
        ground = lay_ground(session, items=1)
        (item,), criterion = ground.items, ground.criteria[0]
        reply = [call(item, 0, criterion, response_id="r")]
        judge = session.get(Judge, ground.judge)
        assert judge is not None
        other = writes.add_judge(
            session=session, spec=JudgeSpec(name="other", rubric_id=ground.rubric, rubric_sha256="0")
        )
        later, elsewhere = (
            key_of(writes.add_run(session=session, judge_id=owner, corpus_id=ground.corpus))
            for owner in (ground.judge, key_of(other))
        )
        for run in (ground.run, later, elsewhere):
            record(session, run, reply)
        outcomes = [
            get_score_matrix(session=session, run_ids=[run], criterion_id=criterion).outcomes.tolist()
            for run in (ground.run, later, elsewhere)
        ]
    assert outcomes == [[[1]], [[COPIED]], [[1]]]


def test_one_reply_split_into_a_call_for_each_criterion_is_no_copy(engine: Engine) -> None:
    with writes.writing(engine) as session:
        ground = lay_ground(session, items=1)
        record(
            session,
            ground.run,
            [call(ground.items[0], 0, key, response_id="r", part=str(key)) for key in ground.criteria],
        )
        for key in ground.criteria:
            assert get_tallies(session=session, run_ids=[ground.run], criterion_id=key) == {"scored": 1}


def test_a_second_attempt_takes_the_place_of_the_first_and_both_are_tallied(engine: Engine) -> None:
    with writes.writing(engine) as session:
        ground = lay_ground(session, items=1)
        (item,), criterion = ground.items, ground.criteria[0]
        record(session, ground.run, [call(item, 0, criterion, None)])
        record(session, ground.run, [call(item, 0, criterion, 3.0, attempt=2)])
        matrix = get_score_matrix(session=session, run_ids=[ground.run], criterion_id=criterion)
        assert matrix.outcomes.tolist() == [[2]]
        assert get_tallies(session=session, run_ids=[ground.run], criterion_id=criterion) == {"refusal": 1, "scored": 1}


def bad_calls(ground: Ground) -> dict[str, CallRow]:
    item, criterion = ground.items[0], ground.criteria[0]
    return {
        "is no level": call(item, 5, criterion, 2.5),
        "nan is no level": call(item, 5, criterion, float("nan")),
        "is not in the judge's rubric": call(item, 5, 999, None),
        "is no level of criterion 999": call(item, 5, 999),
        "'scored' is no reason": CallRow(item, 5, scores=(ScoreRow(criterion, None, "scored"),)),
        "None is no reason": CallRow(item, 5, scores=(ScoreRow(criterion, None, None),)),
        "repetition 10000 is not between": call(item, 10_000, criterion),
        "repetition -1 is not between": call(item, -1, criterion),
    }


def test_a_call_that_cannot_be_recorded_leaves_nothing_half_written(engine: Engine) -> None:
    with writes.writing(engine) as session:
        ground = lay_ground(session)
    before = count_rows(engine)
    good = call(ground.items[0], 0, ground.criteria[0])
    for message, bad in bad_calls(ground).items():
        with pytest.raises(ValueError, match=message), writes.writing(engine) as session:
            record(session, ground.run, [good, bad])
        assert count_rows(engine) == before, message


def test_a_bad_call_undoes_the_chunks_before_it(sqlite_engine: Engine) -> None:
    with writes.writing(sqlite_engine) as session:
        ground = lay_ground(session)
    before = count_rows(sqlite_engine)
    item, criterion = ground.items[0], ground.criteria[0]
    many = [
        call(item, repetition, criterion, part=str(part))
        for part in range(3)
        for repetition in range(writes.CHUNK // 2)
    ]
    with pytest.raises(ValueError, match="is no level"), writes.writing(sqlite_engine) as session:
        record(session, ground.run, [*many, call(item, 0, criterion, 9.0)])
    assert count_rows(sqlite_engine) == before


@pytest.mark.parametrize("same_recorder", [True, False])
def test_a_call_recorded_twice_is_refused_whole(engine: Engine, same_recorder: bool) -> None:
    with writes.writing(engine) as session:
        ground = lay_ground(session)
    item, criterion = ground.items[0], ground.criteria[0]
    first, again = call(item, 0, criterion, 2.0), call(item, 0, criterion, 3.0)
    if not same_recorder:
        with writes.writing(engine) as session:
            record(session, ground.run, [first])
    before = count_rows(engine)
    stream = [first, again] if same_recorder else [call(item, 1, criterion), again]
    with pytest.raises(IntegrityError), writes.writing(engine) as session:
        record(session, ground.run, stream)
    assert count_rows(engine) == before
    with Session(engine) as session:
        assert kept(session, ground.run) == recount(session, ground.run)
