"""Reads of what a store holds besides judges: label sets and the scores behind a judge, for lists and exports."""

import pandas as pd
from sqlalchemy import func, select
from sqlmodel import Session

from core.store.tables import (
    Call,
    Criterion,
    ImportFile,
    Item,
    Judge,
    Label,
    LabelSet,
    Rubric,
    Run,
    Score,
)

MOST_EXPORTED = 1_000_000
"""Scores in one export: what a spreadsheet takes, and memory."""


FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def defused(value: object) -> object:
    """A cell that no spreadsheet takes for a formula: an apostrophe before a text's leading = + - @ tab or CR."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value


def to_csv(table: pd.DataFrame) -> str:
    """A table as CSV in which no cell of untrusted text can start a spreadsheet formula."""
    text = table.select_dtypes(include=["object", "string"]).columns
    safe = table.assign(**{column: [defused(value) for value in table[column]] for column in text})
    csv: str = safe.to_csv(index=False)
    return csv


def list_label_sets(*, session: Session) -> pd.DataFrame:
    """Every label set, newest first.

    Columns: id, name, version, rubric, rubric_version, labels, items, raters, policy, file, simulated, created_at.
    """
    held, rubric, file = LabelSet.__table__.c, Rubric.__table__.c, ImportFile.__table__.c
    label = Label.__table__.c
    counts = (
        select(
            label.label_set_id,
            func.count().label("labels"),
            func.count(label.item_id.distinct()).label("items"),
            func.count(label.rater.distinct()).label("raters"),
        )
        .group_by(label.label_set_id)
        .subquery()
    )
    query = (
        select(
            held.id,
            held.name,
            held.version,
            rubric.name.label("rubric"),
            rubric.version.label("rubric_version"),
            func.coalesce(counts.c.labels, 0).label("labels"),
            func.coalesce(counts.c["items"], 0).label("items"),
            func.coalesce(counts.c.raters, 0).label("raters"),
            held.policy,
            file.name.label("file"),
            held.simulated,
            held.created_at,
        )
        .join(Rubric.__table__, rubric.id == held.rubric_id)
        .outerjoin(counts, counts.c.label_set_id == held.id)
        .outerjoin(ImportFile.__table__, file.id == held.import_file_id)
        .order_by(held.id.desc())
    )
    result = session.execute(query)
    return pd.DataFrame(result.all(), columns=list(result.keys()))


def list_scores(*, session: Session, judge_id: int, corpus_id: int, most: int = MOST_EXPORTED) -> pd.DataFrame:
    """The scores of a judge on a corpus in the order of their calls, `most` of them at most.

    Columns: item, content_sha256, slice, system, judge, run_id, repetition, order, criterion, value, unscored,
    raw_value, response_id, created_at. Texts are left out.
    """
    item, call, score = Item.__table__.c, Call.__table__.c, Score.__table__.c
    judge, criterion, run = Judge.__table__.c, Criterion.__table__.c, Run.__table__.c
    query = (
        select(
            item.key.label("item"),
            item.content_sha256,
            item.slice,
            item.system,
            judge.name.label("judge"),
            call.run_id,
            call.repetition,
            call.slot_order.label("order"),
            criterion.key.label("criterion"),
            score.value,
            score.unscored,
            score.raw_value,
            call.response_id,
            call.created_at,
        )
        .select_from(Run.__table__)
        .join(Judge.__table__, judge.id == run.judge_id)
        .join(Call.__table__, call.run_id == run.id)
        .join(Item.__table__, item.id == call.item_id)
        .join(Score.__table__, score.call_id == call.id)
        .join(Criterion.__table__, criterion.id == score.criterion_id)
        .where(run.judge_id == judge_id, run.corpus_id == corpus_id)
        .order_by(call.id, score.id)
        .limit(most)
    )
    result = session.execute(query)
    return pd.DataFrame(result.all(), columns=list(result.keys()))
