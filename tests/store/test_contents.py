"""Lists of what a store holds, on both databases."""

from sqlalchemy import Engine

from core.store.contents import list_label_sets, list_scores
from core.store.engine import reading
from tests.ingest.files import csv, run

HEADER = "item,repetition,judge,score,label,rater"


def test_label_sets_count_labels_items_and_raters(engine: Engine) -> None:
    run(engine, csv("a,0,j,1,2,ann", "b,0,j,2,3,ann", "a,1,j,1,4,bo", header=HEADER), policy="as written")
    with reading(engine) as session:
        held = list_label_sets(session=session)
    row = held.iloc[0]
    assert (row["name"], row.version, row.rubric, row.policy, row.file) == (
        "history",
        1,
        "test",
        "as written",
        "history.csv",
    )
    # the labels a: 2 by ann and 4 by bo, b: 3 by ann
    assert (row.labels, row["items"], row.raters) == (3, 2, 2)


def test_scores_of_a_judge_keep_unscored_ones_and_stop_at_the_limit(engine: Engine) -> None:
    report = run(engine, csv("a,0,j,1", "a,1,j,9", "b,0,k,2"))
    judge = report.judges[0]
    with reading(engine) as session:
        scores = list_scores(session=session, judge_id=judge.judge_id, corpus_id=1)
        first = list_scores(session=session, judge_id=judge.judge_id, corpus_id=1, most=1)
    assert scores["item"].tolist() == ["a", "a"]
    assert scores.unscored.fillna("").tolist() == ["", "out_of_range"]
    assert scores.raw_value.fillna("").tolist() == ["", "9"]
    assert len(first) == 1
