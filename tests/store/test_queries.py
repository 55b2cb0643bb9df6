"""Reads return the documented columns, and matrices whose rows are items whatever the runs hold."""

import inspect
import re
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import Engine
from sqlmodel import Session

from core.store import queries, writes
from core.store.queries import Repetition, get_score_matrix, list_items, list_judges, list_runs, list_slices
from core.store.specs import JudgeSpec
from core.store.tables import Slice
from core.store.vectors import NOT_MADE, UNSCORED
from tests.store.builders import add_items, call, item_spec, key_of, lay_ground, record

EMPTY: dict[str, Callable[[Session], pd.DataFrame]] = {
    "list_corpora": lambda session: queries.list_corpora(session=session),
    "list_judges": lambda session: queries.list_judges(session=session),
    "list_runs": lambda session: queries.list_runs(session=session, judge_id=1, corpus_id=1),
    "list_items": lambda session: queries.list_items(session=session, item_ids=[]),
    "list_calls": lambda session: queries.list_calls(session=session, item_id=1, run_ids=[1], criterion_id=1),
    "list_rubric_changes": lambda session: queries.list_rubric_changes(session=session, rubric_id=1),
    "list_imports": lambda session: queries.list_imports(session=session),
    "list_set_aside": lambda session: queries.list_set_aside(session=session, import_file_id=1),
    "list_rubrics": lambda session: queries.list_rubrics(session=session),
}


def documented(name: str) -> list[str]:
    """The columns that a query's docstring promises: the last list of names after a colon."""
    text = re.sub(r"\([^)]*\)", "", inspect.getdoc(getattr(queries, name)) or "")
    listed = text.split("Columns:")[-1] if "Columns:" in text else text.rsplit(":", 1)[-1]
    return re.findall(r"\w+", listed.split(".")[0])


@pytest.mark.parametrize("name", [name for name in EMPTY if name != "list_items"])
def test_an_empty_store_gives_the_documented_columns(engine: Engine, name: str) -> None:
    with Session(engine) as session:
        frame = EMPTY[name](session)
    assert list(frame.columns) == documented(name)
    assert frame.empty


def test_no_items_give_the_columns_of_items(engine: Engine) -> None:
    with Session(engine) as session:
        assert list(EMPTY["list_items"](session).columns) == ["id", "key", "slice", "system"]


def test_an_empty_store_has_no_matrix_no_tally_and_no_slice(engine: Engine) -> None:
    with Session(engine) as session:
        for runs in ([], [1]):
            matrix = get_score_matrix(session=session, run_ids=runs, criterion_id=1)
            assert matrix.outcomes.shape == (0, 0)
            assert (matrix.attempted, matrix.scored, matrix.columns) == (0, 0, ())
            assert queries.get_tallies(session=session, run_ids=runs, criterion_id=1) == {}
        assert list_slices(session=session, corpus_id=1) == {}
        assert queries.get_revision(session=session) == 0


def test_runs_over_different_items_are_aligned_by_item(engine: Engine) -> None:
    with writes.writing(engine) as session:
        ground = lay_ground(session, items=4)
        a, b, c, d = ground.items
        tone, facts = ground.criteria
        later = key_of(writes.add_run(session=session, judge_id=ground.judge, corpus_id=ground.corpus))
        first = [call(c, 0, tone, 3.0), call(a, 0, tone, 1.0), call(a, 2, tone, 2.0), call(d, 0, facts, 3.0)]
        record(session, ground.run, first)
        record(session, later, [call(b, 1, tone, None), call(c, 0, tone, 1.0)])
        matrix = get_score_matrix(session=session, run_ids=[later, ground.run], criterion_id=tone)
    assert matrix.item_ids.tolist() == [a, b, c]
    # Repetition 1 of the first run was never made, so it is no column.
    assert matrix.columns == (
        Repetition(later, 0),
        Repetition(later, 1),
        Repetition(ground.run, 0),
        Repetition(ground.run, 2),
    )
    none = NOT_MADE
    assert matrix.outcomes.tolist() == [[none, none, 0, 1], [none, UNSCORED, none, none], [0, none, 2, none]]
    assert (matrix.attempted, matrix.scored, matrix.unscored, matrix.copied) == (5, 4, 1, 0)
    assert matrix.codes.tolist() == [[-1, -1, 0, 1], [-1, -1, -1, -1], [0, -1, 2, -1]]
    assert np.all(matrix.item_ids[:-1] < matrix.item_ids[1:])


def test_a_slice_and_an_order_choose_their_rows(engine: Engine) -> None:
    with writes.writing(engine) as session:
        ground = lay_ground(session, items=1)
        (anchor,) = add_items(session, "corpus", [item_spec("anchor", slice=Slice.ANCHOR)])
        tone = ground.criteria[0]
        record(
            session,
            ground.run,
            [
                call(anchor, 0, tone, 1.0, slot_order="ab"),
                call(anchor, 0, tone, 3.0, slot_order="ba"),
                call(ground.items[0], 0, tone, 2.0, slot_order="ab"),
            ],
        )
        found = {
            (order, part): get_score_matrix(
                session=session, run_ids=[ground.run], criterion_id=tone, slot_order=order, item_slice=part
            ).outcomes.tolist()
            for order in ("ab", "ba", "")
            for part in (None, "anchor")
        }
        corpus = writes.add_corpus(session=session, name="corpus", item_ids=[anchor])
        assert list_slices(session=session, corpus_id=key_of(corpus)) == {"anchor": 1, "production": 1}
    assert found == {
        ("ab", None): [[1], [0]],
        ("ab", "anchor"): [[0]],
        ("ba", None): [[2]],
        ("ba", "anchor"): [[2]],
        ("", None): [],
        ("", "anchor"): [],
    }


def test_judges_are_listed_once_a_corpus_with_their_runs(engine: Engine) -> None:
    with writes.writing(engine) as session:
        ground = lay_ground(session)
        run = key_of(writes.add_run(session=session, judge_id=ground.judge, corpus_id=ground.corpus))
        for _ in range(2):
            record(session, run, [])
        other = JudgeSpec(name="never ran", rubric_id=ground.rubric, rubric_sha256="0")
        writes.add_judge(session=session, spec=other)
    with Session(engine) as session:
        judges = list_judges(session=session)
        runs = list_runs(session=session, judge_id=ground.judge, corpus_id=ground.corpus)
        assert list_judges(session=session, corpus_id=ground.corpus + 1).empty
    assert judges[["judge_id", "name", "corpus", "runs", "revision"]].values.tolist() == [
        [ground.judge, "judge", "corpus", 2, 2]
    ]
    assert runs.id.tolist() == [ground.run, run]
    assert judges.newest_run[0] == runs.created_at.max()
    assert judges.newest_run[0].utcoffset().total_seconds() == 0


def test_items_come_in_the_order_asked_for_however_many(engine: Engine) -> None:
    with writes.writing(engine) as session:
        ids = add_items(session, "corpus", [item_spec(f"k{place}", system="s") for place in range(2_000)])
        wanted = list(reversed(ids))
        items = list_items(session=session, item_ids=wanted)
    assert items.id.tolist() == wanted
    assert items.key.tolist() == [f"k{place}" for place in reversed(range(2_000))]
