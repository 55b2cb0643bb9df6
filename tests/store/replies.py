"""Stores of replies that people label: small, blind, and with a rubric that may change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Engine

from core.store import label_writes, writes
from core.store.queries import list_criteria
from core.store.specs import CallRow, CriterionSpec, ItemSpec, JudgeSpec, LevelSpec, RubricSpec, ScoreRow, content_hash
from tests.store.builders import add_items, key_of, record

SETS = "reply labels"
READY = "ready when correctness is 2 and no criterion is 0"


@dataclass(frozen=True)
class Replies:
    """Ids of what `store_replies` made."""

    rubric: int
    criteria: tuple[int, ...]
    items: tuple[int, ...]
    corpus: int
    labels: int


def criterion(key: str) -> CriterionSpec:
    return CriterionSpec(
        key=key, levels=tuple(LevelSpec(value, f"{key} at {value:g}") for value in (0.0, 1.0, 2.0)), gate=1.0
    )


def store_replies(
    engine: Engine, *, count: int, criteria: Sequence[str], requests: int | None = None, scores: Sequence[float] = ()
) -> Replies:
    """A label set over `count` replies of two systems, and a judge that gave `scores` on the first criterion."""
    with writes.writing(engine) as session:
        spec = RubricSpec(name="reply", criteria=tuple(map(criterion, criteria)), ready_rule=READY)
        rubric = key_of(writes.add_rubric(session=session, spec=spec))
        specs = [
            ItemSpec(
                key=f"reply-{place:02d}",
                content_sha256=content_hash(f"reply number {place}"),
                system=f"system-{'xy'[place % 2]}",
                request=f"request number {place % (requests or count)}",
                candidate=f"reply number {place}",
            )
            for place in range(count)
        ]
        items = add_items(session, "replies", specs)
        corpus = key_of(writes.add_corpus(session=session, name="replies", item_ids=items))
        ids = tuple(view.id for view in list_criteria(session=session, rubric_id=rubric))
        if scores:
            judge = key_of(
                writes.add_judge(
                    session=session, spec=JudgeSpec(name="hidden-judge", rubric_id=rubric, rubric_sha256=spec.sha256)
                )
            )
            run = key_of(writes.add_run(session=session, judge_id=judge, corpus_id=corpus))
            calls = [
                CallRow(item, 0, scores=(ScoreRow(ids[0], score),)) for item, score in zip(items, scores, strict=True)
            ]
            record(session, run, calls)
        labels = key_of(
            writes.add_label_set(session=session, name=SETS, rubric_id=rubric, policy="Read the request first.")
        )
    return Replies(rubric, ids, items, corpus, labels)


def label_replies(
    engine: Engine, label_set: int, rater: str, rows: Mapping[int, Mapping[int, float]], *, reason: str = ""
) -> None:
    """Labels of one reader: level by criterion id, by item id."""
    with writes.writing(engine) as session:
        for item, values in rows.items():
            label_writes.record_item_labels(
                session=session,
                label_set_id=label_set,
                item_id=item,
                rater=rater,
                values=values,
                reasons=dict.fromkeys(values, reason),
            )
