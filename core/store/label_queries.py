"""Reads for labelling: what people were asked, what they said, and which of it an older rubric version made stale."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd
from sqlalchemy import Select, func, or_, select, union
from sqlmodel import Session, col

from core.store.queries import CriterionView, list_criteria
from core.store.specs import CriterionSpec, LevelSpec, RubricSpec
from core.store.tables import (
    Adjudication,
    BlindRanking,
    Call,
    CorpusItem,
    Criterion,
    Item,
    Judge,
    Label,
    LabelQueue,
    LabelSet,
    QueueItem,
    Rubric,
    RubricChange,
    Run,
    Score,
    ScoreEvidence,
)

ADJUDICATION = Adjudication.__table__.c
CALL = Call.__table__.c
CHANGE = RubricChange.__table__.c
CRITERION = Criterion.__table__.c
EVIDENCE = ScoreEvidence.__table__.c
ITEM = Item.__table__.c
JUDGE = Judge.__table__.c
LABEL = Label.__table__.c
MEMBER = CorpusItem.__table__.c
QUEUE = LabelQueue.__table__.c
QUEUED = QueueItem.__table__.c
RANKING = BlindRanking.__table__.c
RUBRIC = Rubric.__table__.c
RUN = Run.__table__.c
SCORE = Score.__table__.c
SET = LabelSet.__table__.c


@dataclass(frozen=True, slots=True)
class Queue:
    """What a label set's readers were asked to label.

    Attributes:
        raters: Names; a queue item's slot is a place among them.
        double_share: Share of the items that two readers label.
        note: What it was built from.
        items: One row an item in the order chosen: item_id, key, slice, slot, second_slot, why.
    """

    id: int
    raters: tuple[str, ...]
    seed: int
    double_share: float
    note: str
    items: pd.DataFrame


def list_sets(*, session: Session) -> pd.DataFrame:
    """Every label set, also those without labels, newest first.

    Columns: id, name, version, policy, rubric_id, rubric, rubric_version, simulated, created_at, labels, items, raters.
    """
    query = (
        select(
            SET.id,
            SET.name,
            SET.version,
            SET.policy,
            SET.rubric_id,
            RUBRIC.name.label("rubric"),
            RUBRIC.version.label("rubric_version"),
            SET.simulated,
            SET.created_at,
            func.count(LABEL.id).label("labels"),
            func.count(LABEL.item_id.distinct()).label("items"),
            func.count(LABEL.rater.distinct()).label("raters"),
        )
        .join(Rubric, RUBRIC.id == SET.rubric_id)
        .outerjoin(Label, LABEL.label_set_id == SET.id)
        .group_by(SET.id, RUBRIC.id)
        .order_by(SET.id.desc())
    )
    return _frame(session, query)


def list_labels(*, session: Session, label_set_id: int) -> pd.DataFrame:
    """The labels that count: of each rater the newest for an item and criterion.

    Columns: item_id, key, system, criterion_id, rater, value, reason (empty where none was given), created_at.
    """
    newest = (
        select(func.max(LABEL.id))
        .where(LABEL.label_set_id == label_set_id)
        .group_by(LABEL.item_id, LABEL.criterion_id, LABEL.rater)
    )
    query = (
        select(
            LABEL.item_id,
            ITEM.key,
            ITEM.system,
            LABEL.criterion_id,
            LABEL.rater,
            LABEL.value,
            func.coalesce(LABEL.reason, "").label("reason"),
            LABEL.created_at,
        )
        .join(Item, ITEM.id == LABEL.item_id)
        .where(LABEL.id.in_(newest))
        .order_by(LABEL.item_id, LABEL.criterion_id, LABEL.rater)
    )
    return _frame(session, query)


def list_adjudications(*, session: Session, label_set_id: int) -> pd.DataFrame:
    """Every recorded resolution, oldest first; the newest for an item and criterion counts.

    Columns: item_id, criterion_id, value, author, note, created_at.
    """
    query = (
        select(
            ADJUDICATION.item_id,
            ADJUDICATION.criterion_id,
            ADJUDICATION.value,
            ADJUDICATION.author,
            ADJUDICATION.note,
            ADJUDICATION.created_at,
        )
        .where(ADJUDICATION.label_set_id == label_set_id)
        .order_by(ADJUDICATION.id)
    )
    return _frame(session, query)


def get_queue(*, session: Session, label_set_id: int) -> Queue | None:
    """The newest queue of a label set."""
    queue = session.scalars(
        select(LabelQueue).where(col(LabelQueue.label_set_id) == label_set_id).order_by(col(LabelQueue.id).desc())
    ).first()
    if queue is None or queue.id is None:
        return None
    query = (
        select(QUEUED.item_id, ITEM.key, ITEM.slice, QUEUED.slot, QUEUED.second_slot, QUEUED.why)
        .join(Item, ITEM.id == QUEUED.item_id)
        .where(QUEUED.queue_id == queue.id)
        .order_by(QUEUED.position)
    )
    return Queue(queue.id, tuple(queue.raters), queue.seed, queue.double_share, queue.note, _frame(session, query))


def list_corpus_items(*, session: Session, corpus_id: int) -> pd.DataFrame:
    """Single items of a corpus in the order of their keys, without texts.

    Columns: item_id, key, slice, system, request_group (equal for items with the same request; 0 without one).
    """
    group = func.dense_rank().over(order_by=ITEM.request)
    query = (
        select(
            ITEM.id.label("item_id"),
            ITEM.key,
            ITEM.slice,
            ITEM.system,
            group.label("request_group"),
            ITEM.request.is_(None).label("no_request"),
        )
        .join(CorpusItem, MEMBER.item_id == ITEM.id)
        .where(MEMBER.corpus_id == corpus_id, ITEM.pair.is_(False))
        .order_by(ITEM.key, ITEM.id)
    )
    items = _frame(session, query)
    items["request_group"] = items.request_group.where(~items.no_request.astype(bool), 0)
    return items.drop(columns="no_request")


def list_set_corpora(*, session: Session, label_set_id: int) -> list[int]:
    """Corpora that hold items the label set asks for or has labels of, the one with most of them first."""
    wanted = union(
        select(LABEL.item_id).where(LABEL.label_set_id == label_set_id),
        select(QUEUED.item_id).join(LabelQueue, QUEUE.id == QUEUED.queue_id).where(QUEUE.label_set_id == label_set_id),
    ).subquery()
    query = (
        select(MEMBER.corpus_id)
        .join(wanted, wanted.c.item_id == MEMBER.item_id)
        .group_by(MEMBER.corpus_id)
        .order_by(func.count().desc(), MEMBER.corpus_id.desc())
    )
    return list(session.scalars(query))


def list_rankings(*, session: Session, label_set_id: int) -> pd.DataFrame:
    """Blind rankings, oldest first; the newest of a rater for a request counts.

    Columns: rater, request_sha256, item_ids, ranks, reason, created_at.
    """
    query = (
        select(
            RANKING.rater,
            RANKING.request_sha256,
            RANKING.item_ids,
            RANKING.ranks,
            RANKING.reason,
            RANKING.created_at,
        )
        .where(RANKING.label_set_id == label_set_id)
        .order_by(RANKING.id)
    )
    return _frame(session, query)


def list_rubrics(*, session: Session) -> pd.DataFrame:
    """Every rubric version, newest first: id, name, version, ready_rule, created_at."""
    query = select(RUBRIC.id, RUBRIC.name, RUBRIC.version, RUBRIC.ready_rule, RUBRIC.created_at).order_by(
        RUBRIC.name, RUBRIC.version.desc()
    )
    return _frame(session, query)


def get_rubric_spec(*, session: Session, rubric_id: int) -> RubricSpec:
    """A rubric version as a caller would hand it in, to be changed into the next one.

    Raises:
        ValueError: When there is no such rubric.
    """
    rubric = session.get(Rubric, rubric_id)
    if rubric is None:
        raise ValueError(f"there is no rubric {rubric_id}")
    criteria = list_criteria(session=session, rubric_id=rubric_id)
    return RubricSpec(
        name=rubric.name,
        criteria=tuple(
            CriterionSpec(
                key=view.key,
                levels=tuple(LevelSpec(*level) for level in zip(view.levels, view.anchors, strict=True)),
                gate=view.gate,
                question=view.question,
                weight=view.weight,
                veto=view.veto,
            )
            for view in criteria
        ),
        instructions=rubric.instructions,
        ready_rule=rubric.ready_rule,
        simulated=rubric.simulated,
    )


def list_change_log(*, session: Session, name: str) -> pd.DataFrame:
    """The change log of all versions of a rubric, newest first: version, created_at, author, line, reason."""
    query = (
        select(RUBRIC.version, CHANGE.created_at, CHANGE.author, CHANGE.line, CHANGE.reason)
        .join(Rubric, RUBRIC.id == CHANGE.rubric_id)
        .where(RUBRIC.name == name)
        .order_by(RUBRIC.version.desc(), CHANGE.id.desc())
    )
    return _frame(session, query)


def touched_criteria(before: tuple[CriterionView, ...], after: tuple[CriterionView, ...]) -> dict[str, str]:
    """Criteria whose scores a newer version makes stale, and what changed: question, levels, anchors, or all of it.

    Weight, gate and veto decide what a score leads to, not what it should have been, so they make nothing stale.
    """
    newer = {view.key: view for view in after}
    touched = {}
    for old in before:
        new = newer.get(old.key)
        if new is None:
            touched[old.key] = "the criterion is gone"
        elif old.levels != new.levels:
            touched[old.key] = f"the levels are {_levels(new)} instead of {_levels(old)}"
        elif old.anchors != new.anchors:
            places = [place for place, anchor in enumerate(old.anchors) if anchor != new.anchors[place]]
            touched[old.key] = "; ".join(
                f"level {old.levels[place]:g}: “{old.anchors[place]}” became “{new.anchors[place]}”" for place in places
            )
        elif old.question != new.question:
            touched[old.key] = f"the question “{old.question}” became “{new.question}”"
    return touched


def list_stale_labels(*, session: Session, rubric_id: int) -> pd.DataFrame:
    """Labels that count and that a newer version of their rubric touches, one row a label set and criterion.

    Columns: label_set_id, label_set, version, criterion, labels, items, why.
    """
    return _stale(session, rubric_id, _label_counts)


def list_stale_scores(*, session: Session, rubric_id: int) -> pd.DataFrame:
    """Scores of judges that a newer version of their rubric touches, one row a judge and criterion.

    Columns: judge_id, judge, model, criterion, scores, items, why.
    """
    return _stale(session, rubric_id, _score_counts)


def list_stale_items(*, session: Session, label_set_id: int, rubric_id: int) -> pd.DataFrame:
    """Items of a label set with a label that the rubric version touches: item_id, raters and why."""
    label_set = session.get(LabelSet, label_set_id)
    if label_set is None:
        raise ValueError(f"there is no label set {label_set_id}")
    before = list_criteria(session=session, rubric_id=label_set.rubric_id)
    touched = touched_criteria(before, list_criteria(session=session, rubric_id=rubric_id))
    keys = {view.id: view.key for view in before if view.key in touched}
    labels = list_labels(session=session, label_set_id=label_set_id)
    stale = labels[labels.criterion_id.isin(keys)]
    rows = [
        {
            "item_id": int(item_id),
            "raters": sorted(set(own.rater)),
            "why": "label made under an older rubric version: "
            + "; ".join(f"{keys[criterion]}: {touched[keys[criterion]]}" for criterion in own.criterion_id.unique()),
        }
        for item_id, own in stale.groupby("item_id")
    ]
    return pd.DataFrame(rows, columns=["item_id", "raters", "why"])


def find_label_text(*, session: Session, label_set_id: int, criterion_id: int, words: str) -> set[int]:
    """Items whose candidate, or whose label's reason on the criterion, holds the words; case does not matter."""
    query = (
        select(LABEL.item_id)
        .join(Item, ITEM.id == LABEL.item_id)
        .where(
            LABEL.label_set_id == label_set_id,
            LABEL.criterion_id == criterion_id,
            or_(
                ITEM.candidate.icontains(words, autoescape=True),
                LABEL.reason.icontains(words, autoescape=True),
            ),
        )
    )
    return set(session.scalars(query))


def find_score_text(*, session: Session, run_ids: list[int], criterion_id: int, words: str) -> set[int]:
    """Items whose candidate, or one of whose rationales on the criterion, holds the words; case does not matter."""
    query = (
        select(CALL.item_id)
        .distinct()
        .join(Item, ITEM.id == CALL.item_id)
        .join(Score, SCORE.call_id == CALL.id)
        .outerjoin(ScoreEvidence, EVIDENCE.score_id == SCORE.id)
        .where(
            CALL.run_id.in_(run_ids),
            SCORE.criterion_id == criterion_id,
            or_(
                ITEM.candidate.icontains(words, autoescape=True),
                EVIDENCE.rationale.icontains(words, autoescape=True),
            ),
        )
    )
    return set(session.scalars(query))


def _stale(session: Session, rubric_id: int, counts: Callable[[Session, CriterionView], pd.DataFrame]) -> pd.DataFrame:
    """Count what every older version of the rubric holds of the criteria that this version touches."""
    rubric = session.get(Rubric, rubric_id)
    if rubric is None:
        raise ValueError(f"there is no rubric {rubric_id}")
    after = list_criteria(session=session, rubric_id=rubric_id)
    older = session.scalars(
        select(RUBRIC.id).where(RUBRIC.name == rubric.name, RUBRIC.version < rubric.version).order_by(RUBRIC.id)
    ).all()
    frames = []
    for older_id in older:
        before = list_criteria(session=session, rubric_id=older_id)
        touched = touched_criteria(before, after)
        for view in before:
            if view.key in touched:
                frames.append(counts(session, view).assign(why=touched[view.key]))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _label_counts(session: Session, criterion: CriterionView) -> pd.DataFrame:
    query = (
        select(
            SET.id.label("label_set_id"),
            SET.name.label("label_set"),
            SET.version,
            CRITERION.key.label("criterion"),
            func.count().label("labels"),
            func.count(LABEL.item_id.distinct()).label("items"),
        )
        .select_from(Label.__table__)
        .join(LabelSet.__table__, SET.id == LABEL.label_set_id)
        .join(Criterion.__table__, CRITERION.id == LABEL.criterion_id)
        .where(LABEL.criterion_id == criterion.id)
        .group_by(SET.id, CRITERION.id)
        .order_by(SET.id)
    )
    return _frame(session, query)


def _score_counts(session: Session, criterion: CriterionView) -> pd.DataFrame:
    query = (
        select(
            JUDGE.id.label("judge_id"),
            JUDGE.name.label("judge"),
            JUDGE.model,
            CRITERION.key.label("criterion"),
            func.count().label("scores"),
            func.count(CALL.item_id.distinct()).label("items"),
        )
        .select_from(Score.__table__)
        .join(Call.__table__, CALL.id == SCORE.call_id)
        .join(Run.__table__, RUN.id == CALL.run_id)
        .join(Judge.__table__, JUDGE.id == RUN.judge_id)
        .join(Criterion.__table__, CRITERION.id == SCORE.criterion_id)
        .where(SCORE.criterion_id == criterion.id, SCORE.value.is_not(None))
        .group_by(JUDGE.id, CRITERION.id)
        .order_by(JUDGE.id)
    )
    return _frame(session, query)


def _levels(view: CriterionView) -> str:
    return ", ".join(f"{level:g}" for level in view.levels)


def _frame(session: Session, query: Select[Any]) -> pd.DataFrame:
    result = session.execute(query)
    return pd.DataFrame(result.all(), columns=list(result.keys()))
