"""Writes of labelling: queues, labels, rankings, adjudications and new rubric versions. All of them append."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy import select
from sqlmodel import Session, col

from core.store import writes
from core.store.label_queries import get_rubric_spec, list_stale_items
from core.store.queries import list_criteria
from core.store.specs import LabelRow, RubricSpec
from core.store.tables import (
    Adjudication,
    BlindRanking,
    LabelQueue,
    LabelSet,
    QueueItem,
    Rubric,
    RubricChange,
)


def record_queue(
    *,
    session: Session,
    label_set_id: int,
    raters: Sequence[str],
    items: Sequence[tuple[int, int, int | None, str]],
    seed: int,
    double_share: float,
    note: str = "",
) -> int:
    """Store a queue, which from now on is the label set's, and return its id.

    Args:
        session: An open write session.
        label_set_id: Whose queue.
        raters: Names of the readers.
        items: Item id, place of its reader, place of its second reader, and why it was chosen; in the order chosen.
        seed: What the choice was drawn with.
        double_share: Share of the items that two readers label.
        note: What it was built from.

    Raises:
        ValueError: Without items or readers, or with a reader twice.
    """
    names = [name.strip() for name in raters]
    if not items or not all(names) or not names or len(set(names)) < len(names):
        raise ValueError("a queue needs at least one item, and readers whose names differ")
    queue = LabelQueue(label_set_id=label_set_id, raters=names, seed=seed, double_share=double_share, note=note)
    session.add(queue)
    session.flush()
    queue_id = _id(queue)
    session.add_all(
        QueueItem(queue_id=queue_id, item_id=item_id, position=position, slot=slot, second_slot=second, why=why)
        for position, (item_id, slot, second, why) in enumerate(items)
    )
    session.flush()
    return queue_id


def record_item_labels(
    *,
    session: Session,
    label_set_id: int,
    item_id: int,
    rater: str,
    values: Mapping[int, float],
    reasons: Mapping[int, str],
) -> None:
    """Append one reader's labels of one item, one row a criterion.

    Args:
        session: An open write session.
        label_set_id: Under which policy.
        item_id: What was read.
        rater: Who read it.
        values: Level by criterion id.
        reasons: Why, by criterion id; may be left out.

    Raises:
        ValueError: Without a name, or for a value that is no level of its criterion.
    """
    name = rater.strip()
    if not name:
        raise ValueError("a label needs the name of its reader")
    rows = [
        LabelRow(item_id, criterion_id, value, name, reason=reasons.get(criterion_id, "").strip() or None)
        for criterion_id, value in values.items()
    ]
    writes.record_labels(session=session, label_set=_label_set(session, label_set_id), rows=rows)


def record_ranking(
    *,
    session: Session,
    label_set_id: int,
    rater: str,
    request_sha256: str,
    ranks: Mapping[int, int],
    reason: str = "",
) -> None:
    """Append one reader's blind order of the candidates for a request.

    Args:
        session: An open write session.
        label_set_id: Under which policy.
        rater: Who ranked.
        request_sha256: Which request.
        ranks: Rank by item id, 1 is best; ties are allowed.
        reason: Why, may be empty.

    Raises:
        ValueError: Without a name, for fewer than two or more than six candidates, or for ranks that do not start at 1.
    """
    if not rater.strip():
        raise ValueError("a ranking needs the name of its reader")
    if not 2 <= len(ranks) <= 6 or min(ranks.values()) != 1 or max(ranks.values()) > len(ranks):
        raise ValueError(f"a ranking orders two to six candidates from 1 on, got ranks {list(ranks.values())}")
    session.add(
        BlindRanking(
            label_set_id=label_set_id,
            rater=rater.strip(),
            request_sha256=request_sha256,
            item_ids=list(ranks),
            ranks=list(ranks.values()),
            reason=reason.strip(),
        )
    )
    session.flush()


def record_adjudication(
    *, session: Session, label_set_id: int, item_id: int, criterion_id: int, value: float, author: str, note: str
) -> None:
    """Append the resolution of two labels that differ; both labels stay as they are.

    Raises:
        ValueError: Without an author or a note, or for a value that is no level of the criterion.
    """
    if not author.strip() or not note.strip():
        raise ValueError("an adjudication needs its author or authors, and a note that says why")
    label_set = _label_set(session, label_set_id)
    levels = {view.id: view.levels for view in list_criteria(session=session, rubric_id=label_set.rubric_id)}
    if value not in levels.get(criterion_id, ()):
        raise ValueError(f"{value:g} is no level of criterion {criterion_id} in the label set's rubric")
    session.add(
        Adjudication(
            label_set_id=label_set_id,
            item_id=item_id,
            criterion_id=criterion_id,
            value=value,
            author=author.strip(),
            note=note.strip(),
        )
    )
    session.flush()


def change_anchor(
    *, session: Session, rubric_id: int, criterion: str, level: float, anchor: str, author: str, reason: str
) -> int:
    """Make the next version of a rubric, in which one anchor reads differently, and return its id.

    The change log gets a dated line with author and reason. Labels and scores of the criterion made under an older
    version are stale from now on, because `label_queries` compares the versions.

    Raises:
        ValueError: For a criterion or level the rubric has not, a change that changes nothing or goes back to an older
            version, or without author or reason.
    """
    spec = get_rubric_spec(session=session, rubric_id=rubric_id)
    part = next((part for part in spec.criteria if part.key == criterion), None)
    if part is None or level not in [known.value for known in part.levels]:
        raise ValueError(f"the rubric {spec.name} has no level {level:g} of a criterion {criterion}")
    old = next(known.anchor for known in part.levels if known.value == level)
    levels = tuple(replace(known, anchor=anchor.strip()) if known.value == level else known for known in part.levels)
    criteria = tuple(replace(part, levels=levels) if known.key == criterion else known for known in spec.criteria)
    line = f"{criterion}, level {level:g}: “{old}” became “{anchor.strip()}”"
    return _next_version(session, replace(spec, criteria=criteria), author=author, line=line, reason=reason)


def change_ready_rule(*, session: Session, rubric_id: int, ready_rule: str, author: str, reason: str) -> int:
    """Make the next version of a rubric with another rule for what is ready, and return its id; no score gets stale.

    Raises:
        ValueError: For a rule that the rubric has or had, or without author or reason.
    """
    spec = get_rubric_spec(session=session, rubric_id=rubric_id)
    rule = ready_rule.strip()
    line = f"ready rule: “{spec.ready_rule or 'every gate'}” became “{rule or 'every gate'}”"
    return _next_version(session, replace(spec, ready_rule=rule), author=author, line=line, reason=reason)


def open_rescoring(*, session: Session, label_set_id: int, rubric_id: int) -> int:
    """A new version of a label set under a newer rubric, with a queue of the items it made stale; returns its id.

    Every reader is asked for the items that he or she labelled before, up to two readers an item.

    Raises:
        ValueError: When the version makes no label of the set stale.
    """
    old = _label_set(session, label_set_id)
    stale = list_stale_items(session=session, label_set_id=label_set_id, rubric_id=rubric_id)
    if stale.empty:
        raise ValueError(f"no label of {old.name} v{old.version} is stale under this rubric version")
    new = writes.add_label_set(
        session=session, name=old.name, rubric_id=rubric_id, policy=old.policy, simulated=old.simulated
    )
    raters = sorted({rater or "reader" for names in stale.raters for rater in names})
    places = {rater: place for place, rater in enumerate(raters)}
    items = []
    for row in stale.itertuples():
        slots = [places[rater or "reader"] for rater in row.raters]
        items.append((int(row.item_id), slots[0], slots[1] if len(slots) > 1 else None, str(row.why)))
    doubles = sum(second is not None for _, _, second, _ in items)
    record_queue(
        session=session,
        label_set_id=_id(new),
        raters=raters,
        items=items,
        seed=0,
        double_share=doubles / len(items),
        note=f"stale labels of {old.name} v{old.version}",
    )
    return _id(new)


def _next_version(session: Session, spec: RubricSpec, *, author: str, line: str, reason: str) -> int:
    if not author.strip() or not reason.strip():
        raise ValueError("a change of a rubric needs its author and a reason")
    known = session.scalars(
        select(Rubric).where(col(Rubric.name) == spec.name, col(Rubric.sha256) == spec.sha256)
    ).first()
    if known:
        raise ValueError(f"this is how version {known.version} of {spec.name} reads already")
    rubric = writes.add_rubric(session=session, spec=spec, author=author.strip(), reason=reason.strip())
    session.add(RubricChange(rubric_id=_id(rubric), author=author.strip(), line=line, reason=reason.strip()))
    session.flush()
    return _id(rubric)


def _label_set(session: Session, label_set_id: int) -> LabelSet:
    label_set = session.get(LabelSet, label_set_id)
    if label_set is None:
        raise ValueError(f"there is no label set {label_set_id}")
    return label_set


def _id(row: LabelQueue | LabelSet | Rubric) -> int:
    if row.id is None:
        raise ValueError(f"{type(row).__name__} has not been flushed, so it has no id")
    return row.id
