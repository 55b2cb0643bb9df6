"""Reads of plans, their progress, schedules and workers."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

import pandas as pd
from sqlalchemy import Select, and_, exists, func, or_, select
from sqlmodel import Session, col

from core.store.plan_writes import CLOSED, FAILED, STARTED
from core.store.specs import CallRow
from core.store.tables import (
    Call,
    CallAttempt,
    Corpus,
    CorpusItem,
    Criterion,
    Item,
    Judge,
    JudgeKind,
    MessageBatch,
    PlanChunk,
    RedactionPattern,
    Rubric,
    Run,
    RunState,
    RunStatus,
    RunTally,
    Schedule,
    Worker,
    utc_now,
)

RATE_SECONDS = 30
ASKED_KINDS = (JudgeKind.ANTHROPIC, JudgeKind.LOCAL, JudgeKind.REPLAY)
"""Kinds of judges whose calls Evenhand makes itself."""

CALL = Call.__table__.c
CORPUS = Corpus.__table__.c
ITEM = Item.__table__.c
JUDGE = Judge.__table__.c
MEMBER = CorpusItem.__table__.c
RUBRIC = Rubric.__table__.c
RUN = Run.__table__.c
STATE = RunState.__table__.c

_MOST_PARAMETERS = 500


class ActiveRun(NamedTuple):
    """A run that a worker has something to do for."""

    run_id: int
    state: str
    batched: bool


class ItemTexts(NamedTuple):
    """What a judge reads of an item."""

    id: int
    key: str
    request: str | None
    reference: str | None
    candidate: str | None
    candidate_b: str | None


class Failures(NamedTuple):
    """How often attempts failed in one way."""

    status: int | None
    error: str
    attempts: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a planned run is.

    Attributes:
        recorded: Planned calls with a recorded end.
        outcomes: Calls by "scored" or the unscored reason, of the rubric's first criterion.
        attempts: Attempts started.
        failures: Failed attempts by what went wrong, commonest first.
        rate: Calls a second over the last half minute; None when none was recorded in it.
        batches: Message Batches by status.
    """

    run_id: int
    name: str
    state: RunState
    recorded: int
    outcomes: dict[str, int]
    attempts: int
    failures: tuple[Failures, ...]
    rate: float | None
    batches: dict[str, int]

    @property
    def seconds_left(self) -> float | None:
        """By the rate; None while there is none."""
        return (self.state.planned - self.recorded) / self.rate if self.rate else None


def list_active(*, session: Session) -> list[ActiveRun]:
    """Runs to work on: those that run, and cancelled ones of which something is still open."""
    open_chunk = exists().where(col(PlanChunk.run_id) == STATE.run_id, ~col(PlanChunk.done))
    unended = and_(STATE.batched, STATE.worker != CLOSED)
    to_close = and_(STATE.state == RunStatus.CANCELLED, or_(open_chunk, unended))
    rows = session.execute(
        select(STATE.run_id, STATE.state, STATE.batched)
        .where(or_(STATE.state == RunStatus.RUNNING, to_close))
        .order_by(STATE.run_id)
    )
    return [ActiveRun(*row) for row in rows]


def get_state(*, session: Session, run_id: int) -> RunState | None:
    """The run's state, or None when it was not planned."""
    return session.get(RunState, run_id)


def get_judge(*, session: Session, run_id: int) -> Judge:
    """The judge of a run."""
    return session.scalars(select(Judge).join(Run, RUN.judge_id == JUDGE.id).where(RUN.id == run_id)).one()


def get_reply(*, session: Session, run_id: int, item_id: int, repetition: int, slot_order: str) -> CallRow | None:
    """The last attempt with a reply at one call of a run, without its scores."""
    names = CallRow._fields[:-1]
    row = session.execute(
        select(*(CALL[name] for name in names))
        .where(
            CALL.run_id == run_id,
            CALL.item_id == item_id,
            CALL.repetition == repetition,
            CALL.slot_order == slot_order,
            CALL.raw_reply.is_not(None),
        )
        .order_by(CALL.attempt.desc())
    ).first()
    return CallRow(*row) if row else None


def list_criterion_ids(*, session: Session, run_id: int) -> list[int]:
    """The criteria of a run's rubric, in its order."""
    criterion = Criterion.__table__.c
    query = (
        select(criterion.id)
        .join(Judge, JUDGE.rubric_id == criterion.rubric_id)
        .join(Run, RUN.judge_id == JUDGE.id)
        .where(RUN.id == run_id)
        .order_by(criterion.position)
    )
    return list(session.scalars(query))


def get_texts(*, session: Session, item_ids: Sequence[int]) -> dict[int, ItemTexts]:
    """The texts of items by id; those whose text was deleted have none."""
    found: dict[int, ItemTexts] = {}
    for start in range(0, len(item_ids), _MOST_PARAMETERS):
        part = item_ids[start : start + _MOST_PARAMETERS]
        rows = session.execute(
            select(ITEM.id, ITEM.key, ITEM.request, ITEM.reference, ITEM.candidate, ITEM.candidate_b).where(
                ITEM.id.in_(part)
            )
        )
        found |= {row[0]: ItemTexts(*row) for row in rows}
    return found


class ItemChoice(NamedTuple):
    """Items that can be judged, in key order, and how many of the slices cannot."""

    ids: tuple[int, ...]
    without_text: int


def choose_items(*, session: Session, corpus_id: int, slices: Sequence[str] = (), pairs: bool = False) -> ItemChoice:
    """Items of a corpus with a text to judge, of some slices or all; pairs or single ones."""
    has_text = ITEM.candidate.is_not(None)
    query = (
        select(ITEM.id, and_(has_text, ITEM.candidate_b.is_not(None)) if pairs else has_text)
        .join(CorpusItem, MEMBER.item_id == ITEM.id)
        .where(MEMBER.corpus_id == corpus_id, ITEM.pair == pairs)
        .order_by(ITEM.key, ITEM.id)
    )
    if slices:
        query = query.where(ITEM.slice.in_(slices))
    rows = session.execute(query).all()
    return ItemChoice(tuple(row[0] for row in rows if row[1]), sum(not row[1] for row in rows))


def list_judgeable_corpora(*, session: Session) -> list[int]:
    """Ids of the corpora that hold a text to judge, newest first."""
    texts = (
        select(MEMBER.item_id)
        .join(Item, ITEM.id == MEMBER.item_id)
        .where(MEMBER.corpus_id == CORPUS.id, ITEM.candidate.is_not(None))
    )
    newest = select(CORPUS.id).where(texts.exists()).order_by(CORPUS.created_at.desc(), CORPUS.id.desc())
    return [int(corpus_id) for corpus_id in session.scalars(newest)]


def list_askable_judges(*, session: Session) -> pd.DataFrame:
    """Judges that Evenhand asks itself, newest first.

    Columns: id, name, kind, model, prompt_version, rubric_id, rubric, rubric_version, parameters, pairwise,
    fingerprint.
    """
    return _frame(
        session,
        select(
            JUDGE.id,
            JUDGE.name,
            JUDGE.kind,
            JUDGE.model,
            JUDGE.prompt_version,
            JUDGE.rubric_id,
            RUBRIC.name.label("rubric"),
            RUBRIC.version.label("rubric_version"),
            JUDGE.parameters,
            JUDGE.pairwise,
            JUDGE.fingerprint,
        )
        .join(Rubric, RUBRIC.id == JUDGE.rubric_id)
        .where(JUDGE.kind.in_(ASKED_KINDS))
        .order_by(JUDGE.id.desc()),
    )


def list_replayable(*, session: Session) -> pd.DataFrame:
    """Runs with stored replies: id, name, judge, calls, newest first."""
    calls = (
        select(CALL.run_id, func.count().label("calls"))
        .where(CALL.raw_reply.is_not(None))
        .group_by(CALL.run_id)
        .subquery()
    )
    return _frame(
        session,
        select(RUN.id, RUN.name, JUDGE.name.label("judge"), calls.c.calls)
        .join(calls, calls.c.run_id == RUN.id)
        .join(Judge, JUDGE.id == RUN.judge_id)
        .order_by(RUN.id.desc()),
    )


def list_plans(*, session: Session, most: int = 50) -> pd.DataFrame:
    """Planned runs, newest first.

    Columns: run_id, name, judge, fingerprint, pairwise, corpus, corpus_version, state, planned, started_at.
    """
    return _frame(
        session,
        select(
            RUN.id.label("run_id"),
            RUN.name,
            JUDGE.name.label("judge"),
            JUDGE.fingerprint,
            JUDGE.pairwise,
            CORPUS.name.label("corpus"),
            CORPUS.version.label("corpus_version"),
            STATE.state,
            STATE.planned,
            STATE.started_at,
        )
        .join(RunState, STATE.run_id == RUN.id)
        .join(Judge, JUDGE.id == RUN.judge_id)
        .join(Corpus, CORPUS.id == RUN.corpus_id)
        .order_by(RUN.id.desc())
        .limit(most),
    )


def get_progress(*, session: Session, run_id: int) -> Progress | None:
    """How far a run is, or None when it was not planned here."""
    state = session.get(RunState, run_id)
    if state is None:
        return None
    attempt = CallAttempt.__table__.c
    since = utc_now() - timedelta(seconds=RATE_SECONDS)
    recent = session.scalar(
        select(func.count()).select_from(Call).where(CALL.run_id == run_id, CALL.created_at >= since)
    )
    span = min(float(RATE_SECONDS), max(1.0, (utc_now() - state.started_at).total_seconds()))
    failures = session.execute(
        select(attempt.status, attempt.error, func.count())
        .where(attempt.run_id == run_id, attempt.event == FAILED)
        .group_by(attempt.status, attempt.error)
        .order_by(func.count().desc())
        .limit(20)
    )
    run = session.get_one(Run, run_id)
    return Progress(
        run_id=run_id,
        name=run.name,
        state=state,
        recorded=session.scalar(select(func.count()).select_from(Call).where(CALL.run_id == run_id)) or 0,
        outcomes=_outcomes(session, run_id),
        attempts=session.scalar(
            select(func.count()).select_from(CallAttempt).where(attempt.run_id == run_id, attempt.event == STARTED)
        )
        or 0,
        failures=tuple(Failures(status, error or "", count) for status, error, count in failures),
        rate=recent / span if recent and state.state == RunStatus.RUNNING else None,
        batches=dict(
            session.execute(
                select(col(MessageBatch.status), func.count())
                .where(col(MessageBatch.run_id) == run_id)
                .group_by(col(MessageBatch.status))
            ).all()
        ),
    )


def _outcomes(session: Session, run_id: int) -> dict[str, int]:
    tally = RunTally.__table__.c
    first = select(func.min(tally.criterion_id)).where(tally.run_id == run_id).scalar_subquery()
    rows = session.execute(
        select(tally.outcome, func.sum(tally.calls))
        .where(tally.run_id == run_id, tally.criterion_id == first)
        .group_by(tally.outcome)
    )
    return {outcome: int(calls) for outcome, calls in rows}


def list_batches(*, session: Session, run_id: int, status: Sequence[str] = ()) -> list[MessageBatch]:
    """The Message Batches of a run, oldest first."""
    query = select(MessageBatch).where(col(MessageBatch.run_id) == run_id).order_by(col(MessageBatch.id))
    if status:
        query = query.where(col(MessageBatch.status).in_(status))
    return list(session.scalars(query))


def list_batch_calls(*, session: Session, batch_id: int) -> dict[int, int]:
    """The planned calls of a Message Batch with the number of their attempt."""
    attempt = CallAttempt.__table__.c
    rows = session.execute(
        select(attempt.planned_call_id, attempt.attempt).where(
            attempt.message_batch_id == batch_id, attempt.event == STARTED
        )
    )
    return dict(rows.all())


def get_redaction(*, session: Session) -> dict[str, str]:
    """The team's own list of what runs may take out of texts, expressions by name; empty where there is none."""
    pattern = RedactionPattern.__table__.c
    return dict(session.execute(select(pattern.name, pattern.expression).order_by(pattern.place)).all())


def list_schedules(*, session: Session) -> pd.DataFrame:
    """Schedules: id, judge, corpus, corpus_version, repetitions, cron, active, next_at, last_run_id, error."""
    schedule = Schedule.__table__.c
    return _frame(
        session,
        select(
            schedule.id,
            JUDGE.name.label("judge"),
            CORPUS.name.label("corpus"),
            CORPUS.version.label("corpus_version"),
            schedule.repetitions,
            schedule.cron,
            schedule.active,
            schedule.next_at,
            schedule.last_run_id,
            schedule.error,
        )
        .join(Judge, JUDGE.id == schedule.judge_id)
        .join(Corpus, CORPUS.id == schedule.corpus_id)
        .order_by(schedule.id),
    )


def has_due(*, session: Session, now: datetime) -> bool:
    """Whether the time of any schedule has come."""
    query = select(func.count()).select_from(Schedule).where(col(Schedule.active), col(Schedule.next_at) <= now)
    return bool(session.scalar(query))


def list_due(*, session: Session, now: datetime) -> list[Schedule]:
    """Schedules whose time has come; locked where several workers could start them."""
    query = (
        select(Schedule)
        .where(col(Schedule.active), col(Schedule.next_at) <= now)
        .order_by(col(Schedule.id))
        .with_for_update(skip_locked=True)
    )
    return list(session.scalars(query))


def has_schedules(*, session: Session) -> bool:
    """Whether any schedule is on."""
    return bool(session.scalar(select(func.count()).select_from(Schedule).where(col(Schedule.active))))


def list_workers(*, session: Session, since: datetime) -> list[Worker]:
    """Workers seen since then."""
    return list(session.scalars(select(Worker).where(col(Worker.seen_at) >= since).order_by(col(Worker.name))))


def _frame(session: Session, query: Select[tuple[object, ...]]) -> pd.DataFrame:
    result = session.execute(query)
    return pd.DataFrame(result.all(), columns=list(result.keys()))
