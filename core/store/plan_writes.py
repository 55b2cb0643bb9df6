"""Writes of a run's plan and of what became of it. Every function takes an open write session."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import delete, func, select, update
from sqlmodel import Session, col

from core.store.bulk import bulk_insert, stored_time
from core.store.specs import CallRow, ScoreRow
from core.store.tables import (
    Call,
    CallAttempt,
    MessageBatch,
    Order,
    PlanChunk,
    PlannedCall,
    RedactionPattern,
    Run,
    RunState,
    RunStatus,
    Schedule,
    Unscored,
    Worker,
    utc_now,
)
from core.store.writes import RunRecorder, add_run

STARTED, FAILED = "started", "failed"
OPEN_BATCHES = ("creating", "in_progress")
CLOSED = "closed"
"""Who holds the Message Batches of a cancelled run when none of them is left."""

RESUMABLE = (RunStatus.PAUSED, RunStatus.FAILED)

_PLANNED = PlannedCall.__table__.c
_ATTEMPT = CallAttempt.__table__.c
_CHUNK = PlanChunk.__table__.c
_STATE = RunState.__table__.c
_PLAN_COLUMNS = ("run_id", "sequence", "chunk", "item_id", "repetition", "slot_order", "part")
_ATTEMPT_COLUMNS = (
    "run_id",
    "planned_call_id",
    "attempt",
    "event",
    "worker",
    "message_batch_id",
    "status",
    "error",
    "created_at",
)
_ROWS = 5_000


class RunLostError(Exception):
    """A planned run's rows are not there."""


@dataclass(frozen=True, slots=True)
class PlanSpec:
    """A run to be made.

    Attributes:
        item_ids: In the order in which they are asked.
        orders: `Order.SINGLE` alone, or the orders of a pair.
        concurrency: Most calls in flight in one worker.
        pilot: Items of a first chunk after which the run pauses; 0 for none.
        spending_limit: US dollars; needs prices.
        input_price: US dollars a million tokens, as `output_price`; None where no price is known.
        call_reserve: US dollars set aside for each call in flight.
        batched: Whether calls go through Message Batches.
        redaction: Expressions of what is taken out of texts before they leave, by name; empty for nothing.
    """

    judge_id: int
    corpus_id: int
    item_ids: tuple[int, ...]
    repetitions: int
    orders: tuple[str, ...] = (Order.SINGLE,)
    concurrency: int = 4
    pilot: int = 0
    spending_limit: float | None = None
    input_price: float | None = None
    output_price: float | None = None
    price_date: str = ""
    call_reserve: float = 0.0
    batched: bool = False
    redaction: Mapping[str, str] = field(default_factory=dict)
    name: str = ""

    @property
    def calls(self) -> int:
        """How many calls the run makes."""
        return len(self.item_ids) * len(self.orders) * self.repetitions

    @property
    def chunk_size(self) -> int:
        """Planned calls that a worker takes at once: enough to keep its calls in flight, few enough to share."""
        return min(400, max(20, 4 * self.concurrency))


class Pending(NamedTuple):
    """A planned call that has no recorded reply yet, and how often it was started."""

    id: int
    chunk: int
    item_id: int
    repetition: int
    slot_order: str
    part: str
    attempts: int


class Taken(NamedTuple):
    """A chunk in a worker's hands; another generation means it was lost."""

    run_id: int
    number: int
    generation: int


class Start(NamedTuple):
    """An attempt about to be made."""

    chunk: Taken
    planned_id: int
    attempt: int


class Failure(NamedTuple):
    """An attempt that failed and will be made again."""

    chunk: Taken
    planned_id: int
    attempt: int
    status: int | None
    error: str


class Finish(NamedTuple):
    """A planned call's recorded end: a reply, or why there is none."""

    chunk: Taken
    planned_id: int
    call: CallRow
    failure: Failure | None = None


def add_plan(*, session: Session, spec: PlanSpec) -> Run:
    """A run with every call of it planned: all items once, in each order, then again.

    Raises:
        ValueError: For an empty plan, or a spending limit without prices.
    """
    if not spec.calls:
        raise ValueError("the plan holds no call: choose items and at least one repetition")
    if spec.spending_limit is not None and spec.input_price is None:
        raise ValueError("a spending limit needs a price; add the model to the price file or leave the limit empty")
    run = add_run(
        session=session, judge_id=spec.judge_id, corpus_id=spec.corpus_id, name=spec.name, status=RunStatus.RUNNING
    )
    run_id = _key(run)
    pilot = min(spec.pilot, len(spec.item_ids)) * len(spec.orders) if spec.pilot else 0
    state = RunState(
        run_id=run_id,
        concurrency=spec.concurrency,
        planned=spec.calls,
        pilot=0 < pilot < spec.calls,
        spending_limit=spec.spending_limit,
        input_price=spec.input_price,
        output_price=spec.output_price,
        price_date=spec.price_date,
        call_reserve=spec.call_reserve,
        batched=spec.batched,
        redaction=dict(spec.redaction),
    )
    session.add(state)
    session.flush()
    rows = _sequence(run_id, spec, pilot)
    chunks: dict[int, None] = {}
    while part := list(islice(rows, _ROWS)):
        bulk_insert(session, PlannedCall.__table__, _PLAN_COLUMNS, part)
        chunks |= dict.fromkeys(row[2] for row in part)
    if not spec.batched:
        fresh = [(run_id, number, 0, "", 0, False) for number in chunks]
        columns = ("run_id", "number", "generation", "worker", "in_flight", "done")
        bulk_insert(session, PlanChunk.__table__, columns, fresh)
    return run


def _sequence(run_id: int, spec: PlanSpec, pilot: int) -> Iterator[tuple[Any, ...]]:
    """The plan's rows in the order in which they are asked; a pilot's calls come first, as a chunk of their own."""
    calls = [(order, item) for order in spec.orders for item in spec.item_ids]
    if pilot:
        first = set(spec.item_ids[: spec.pilot])
        calls = [call for call in calls if call[1] in first] + [call for call in calls if call[1] not in first]
    place = 0
    for repetition in range(spec.repetitions):
        for order, item in calls:
            chunk = 0 if place < pilot else (place - pilot) // spec.chunk_size + (1 if pilot else 0)
            yield run_id, place, chunk, item, repetition, order, ""
            place += 1
        if repetition == 0:
            calls = [(order, item) for order in spec.orders for item in spec.item_ids]


def set_state(*, session: Session, run_id: int, state: RunStatus, error: str = "", what_to_do: str = "") -> bool:
    """Move a run on; a run that has ended stays as it is. Returns whether it moved.

    A resumed run is past its pilot.
    """
    row = lock_state(session=session, run_id=run_id)
    allowed = {
        RunStatus.RUNNING: RESUMABLE,
        RunStatus.PAUSED: (RunStatus.RUNNING,),
        RunStatus.FAILED: (RunStatus.RUNNING,),
        RunStatus.CANCELLED: (RunStatus.RUNNING, *RESUMABLE),
        RunStatus.DONE: (RunStatus.RUNNING,),
    }
    if row.state not in allowed[state]:
        return False
    if state is RunStatus.RUNNING and row.state == RunStatus.PAUSED and row.pilot:
        first = session.get(PlanChunk, (run_id, 0))
        row.pilot = first is not None and not first.done
    row.state, row.error, row.what_to_do = state, error, what_to_do
    row.ended_at = utc_now() if state in (RunStatus.DONE, RunStatus.CANCELLED) else None
    run = session.get_one(Run, run_id)
    run.status = state
    session.add_all([row, run])
    session.flush()
    return True


def set_limit(*, session: Session, run_id: int, spending_limit: float | None) -> None:
    """Another spending limit for a run."""
    row = lock_state(session=session, run_id=run_id)
    row.spending_limit = spending_limit
    session.add(row)


def save_redaction(*, session: Session, expressions: Mapping[str, str]) -> None:
    """Replace the list of what runs may take out of texts; runs that were planned keep theirs."""
    session.execute(delete(RedactionPattern))
    session.add_all(
        RedactionPattern(name=name, place=place, expression=expression)
        for place, (name, expression) in enumerate(expressions.items())
    )
    session.flush()


def lock_state(*, session: Session, run_id: int) -> RunState:
    """The run's state, locked until the transaction ends.

    Raises:
        RunLostError: When the run was not planned here.
    """
    session.flush()
    row = session.get(RunState, run_id, with_for_update=True, populate_existing=True)
    if row is None:
        raise RunLostError(f"run {run_id} has no plan")
    return row


def queue_chunks(*, session: Session, run_id: int, most: int, stale: datetime, alone: bool = False) -> list[Taken]:
    """Chunks to put into the queue: open ones that nobody has, and those of workers not seen since `stale`.

    A run that is waiting for its pilot gives its first chunk only.

    Args:
        session: An open write session.
        run_id: The run.
        most: Chunks of the run that may be in the queue or in hands at once.
        stale: Who was last seen before has lost its chunks.
        alone: Whether the caller is the only worker and has just started: all chunks in hands are lost.
    """
    state = lock_state(session=session, run_id=run_id)
    if state.state not in (RunStatus.RUNNING, RunStatus.CANCELLED):
        return []
    live = set() if alone else set(session.scalars(select(col(Worker.name)).where(col(Worker.seen_at) >= stale)))
    query = (
        select(PlanChunk)
        .where(col(PlanChunk.run_id) == run_id, ~col(PlanChunk.done))
        .order_by(col(PlanChunk.queued_at).is_(None), col(PlanChunk.number))
    )
    if state.pilot and state.state == RunStatus.RUNNING:
        query = query.where(col(PlanChunk.number) == 0)
    chosen: list[Taken] = []
    held = 0
    for chunk in session.scalars(query.limit(4 * most)):
        if held + len(chosen) >= most:
            break
        if _is_held(chunk, live, stale):
            held += 1
            continue
        chunk.generation += 1
        chunk.worker, chunk.queued_at, chunk.in_flight = "", utc_now(), 0
        session.add(chunk)
        chosen.append(Taken(run_id, chunk.number, chunk.generation))
    session.flush()
    return chosen


def _is_held(chunk: PlanChunk, live: set[str], stale: datetime) -> bool:
    if chunk.queued_at is None:
        return False
    return chunk.worker in live if chunk.worker else bool(live) and chunk.queued_at >= stale


def take_chunk(*, session: Session, chunk: Taken, worker: str) -> bool:
    """Take a queued chunk; False when another generation of it was queued or somebody has it."""
    taken = session.execute(
        update(PlanChunk)
        .where(
            _CHUNK.run_id == chunk.run_id,
            _CHUNK.number == chunk.number,
            _CHUNK.generation == chunk.generation,
            _CHUNK.worker == "",
            ~_CHUNK.done,
        )
        .values(worker=worker)
    )
    return bool(taken.rowcount)  # type: ignore[attr-defined]


def give_back(*, session: Session, chunk: Taken) -> None:
    """Give a chunk back: done when every planned call of it is recorded. The last one ends the run."""
    state = lock_state(session=session, run_id=chunk.run_id)
    row = _owned(session, chunk)
    if row is None:
        return
    row.done = not list_pending(session=session, run_id=chunk.run_id, chunk=chunk.number, most=1)
    row.worker, row.queued_at, row.in_flight = "", None, 0
    session.add(row)
    session.flush()
    if row.done and state.state == RunStatus.RUNNING:
        end_run(session=session, state=state)


def end_run(*, session: Session, state: RunState) -> None:
    """Move a running run on: done when no chunk is open, paused when its pilot is over."""
    open_chunks = session.scalar(
        select(func.count()).where(_CHUNK.run_id == state.run_id, ~_CHUNK.done).select_from(PlanChunk)
    )
    if not open_chunks:
        set_state(session=session, run_id=state.run_id, state=RunStatus.DONE)
    elif state.pilot and session.get_one(PlanChunk, (state.run_id, 0)).done:
        set_state(
            session=session,
            run_id=state.run_id,
            state=RunStatus.PAUSED,
            error="The pilot is over.",
            what_to_do="Look at its replies, then resume for the rest or cancel.",
        )


def _owned(session: Session, chunk: Taken) -> PlanChunk | None:
    """The chunk's row while this generation of it is in hands."""
    session.flush()
    row = session.get(PlanChunk, (chunk.run_id, chunk.number), populate_existing=True, with_for_update=True)
    return row if row and row.generation == chunk.generation and row.worker and not row.done else None


def list_pending(
    *,
    session: Session,
    run_id: int,
    chunk: int | None = None,
    batch_id: int | None = None,
    unbatched: bool = False,
    least: int = 0,
    most: int | None = None,
) -> list[Pending]:
    """Planned calls without a recorded end, in the order in which they are asked.

    Args:
        session: A session.
        run_id: The run.
        chunk: Only of this chunk.
        batch_id: Only of this Message Batch.
        unbatched: Only those that no open Message Batch holds.
        least: Only those started at least so often.
        most: No more than so many.
    """
    call = Call.__table__.c
    recorded = (
        select(call.id)
        .where(
            call.run_id == _PLANNED.run_id,
            call.item_id == _PLANNED.item_id,
            call.repetition == _PLANNED.repetition,
            call.slot_order == _PLANNED.slot_order,
            call.part == _PLANNED.part,
        )
        .exists()
    )
    attempts = (
        select(func.count())
        .where(_ATTEMPT.planned_call_id == _PLANNED.id, _ATTEMPT.event == STARTED)
        .correlate(PlannedCall.__table__)
        .scalar_subquery()
    )
    query = (
        select(
            _PLANNED.id,
            _PLANNED.chunk,
            _PLANNED.item_id,
            _PLANNED.repetition,
            _PLANNED.slot_order,
            _PLANNED.part,
            attempts,
        )
        .where(_PLANNED.run_id == run_id, ~recorded)
        .order_by(_PLANNED.sequence)
        .limit(most)
    )
    if chunk is not None:
        query = query.where(_PLANNED.chunk == chunk)
    if batch_id is not None:
        held = select(_ATTEMPT.planned_call_id).where(_ATTEMPT.message_batch_id == batch_id, _ATTEMPT.event == STARTED)
        query = query.where(_PLANNED.id.in_(held))
    if unbatched:
        waiting = (
            select(_ATTEMPT.planned_call_id)
            .join(MessageBatch, col(MessageBatch.id) == _ATTEMPT.message_batch_id)
            .where(col(MessageBatch.run_id) == run_id, col(MessageBatch.status).in_(OPEN_BATCHES))
        )
        query = query.where(_PLANNED.id.not_in(waiting))
    if least:
        query = query.where(attempts >= least)
    return [Pending(*row) for row in session.execute(query)]


class Ledger:
    """What one transaction writes about the calls of one run: their ends first, then failures, then starts.

    Entries of a chunk that was lost are dropped: whoever has it now asks again.

    Args:
        session: An open write session.
        run_id: The run; its state stays locked until the transaction ends.
        worker: Who writes.
    """

    def __init__(self, *, session: Session, run_id: int, worker: str) -> None:
        self.state = lock_state(session=session, run_id=run_id)
        self._session = session
        self._worker = worker
        self._chunks: dict[Taken, PlanChunk | None] = {}

    @property
    def running(self) -> bool:
        """Whether further calls may start."""
        return self.state.state == RunStatus.RUNNING

    def _chunk(self, chunk: Taken) -> PlanChunk | None:
        if chunk not in self._chunks:
            self._chunks[chunk] = _owned(self._session, chunk)
        return self._chunks[chunk]

    def finish(self, finishes: Sequence[Finish]) -> None:
        """Record the ends of calls, and count their tokens."""
        kept = [end for end in finishes if self._chunk(end.chunk)]
        for end in kept:
            self._land(end.chunk)
        self.fail([end.failure for end in kept if end.failure], landed=True)
        record_calls(session=self._session, state=self.state, calls=[end.call for end in kept])

    def fail(self, failures: Sequence[Failure], *, landed: bool = False) -> None:
        """Keep failed attempts."""
        kept = [failure for failure in failures if self._chunk(failure.chunk)]
        if not landed:
            for failure in kept:
                self._land(failure.chunk)
        add_attempts(
            session=self._session,
            run_id=self.state.run_id,
            worker=self._worker,
            event=FAILED,
            rows=[(one.planned_id, one.attempt, one.status, one.error) for one in kept],
        )

    def start(self, starts: Sequence[Start]) -> list[bool]:
        """Write that calls are about to be asked; False for those that must not be.

        That is when the run no longer runs, the chunk was lost, or the calls in flight and this one could spend more
        than the limit. The limit pauses the run once nothing is in flight that could still fit.
        """
        answers = []
        kept = []
        flying = self._in_flight()
        for start in starts:
            chunk = self._chunk(start.chunk)
            fits = self._fits(flying + 1)
            allowed = self.running and chunk is not None and fits
            if allowed and chunk is not None:
                chunk.in_flight += 1
                flying += 1
                kept.append((start.planned_id, start.attempt, None, None))
            elif not fits and self.running:
                stop_spending(session=self._session, run_id=self.state.run_id)
            answers.append(allowed)
        add_attempts(session=self._session, run_id=self.state.run_id, worker=self._worker, event=STARTED, rows=kept)
        return answers

    def close(self) -> None:
        """Write the counters."""
        self._session.add_all([chunk for chunk in self._chunks.values() if chunk])
        self._session.add(self.state)
        self._session.flush()

    def _land(self, chunk: Taken) -> None:
        row = self._chunk(chunk)
        if row is not None:
            row.in_flight = max(0, row.in_flight - 1)

    def _in_flight(self) -> int:
        self._session.flush()
        return self._session.scalar(select(func.sum(_CHUNK.in_flight)).where(_CHUNK.run_id == self.state.run_id)) or 0

    def _fits(self, flying: int) -> bool:
        limit = self.state.spending_limit
        return limit is None or self.state.spent + flying * self.state.call_reserve <= limit


def stop_spending(*, session: Session, run_id: int) -> None:
    """Pause a run that could otherwise spend more than its limit."""
    state = lock_state(session=session, run_id=run_id)
    set_state(
        session=session,
        run_id=run_id,
        state=RunStatus.PAUSED,
        error=f"The spending limit of ${state.spending_limit or 0:,.2f} is reached: ${state.spent:,.4f} are spent, "
        "and another call could go beyond it.",
        what_to_do="Raise the limit and resume, or cancel the rest.",
    )


def fitting_requests(*, session: Session, state: RunState, most: int) -> int:
    """How many more requests may be handed in without going beyond the limit, at most `most`."""
    if state.spending_limit is None or not state.call_reserve:
        return most
    waiting = session.scalar(
        select(func.sum(col(MessageBatch.requests))).where(
            col(MessageBatch.run_id) == state.run_id, col(MessageBatch.status).in_(OPEN_BATCHES)
        )
    )
    left = (state.spending_limit - state.spent) / state.call_reserve - (waiting or 0)
    return max(0, min(most, int(left)))


def add_attempts(
    *,
    session: Session,
    run_id: int,
    worker: str,
    event: str,
    rows: Iterable[tuple[int, int, int | None, str | None]],
    message_batch_id: int | None = None,
) -> None:
    """Append attempts, given as (planned call, attempt, status, error)."""
    now = stored_time(utc_now(), session.get_bind().dialect)
    bulk_insert(
        session,
        CallAttempt.__table__,
        _ATTEMPT_COLUMNS,
        [
            (run_id, planned_id, attempt, event, worker, message_batch_id, status, error, now)
            for planned_id, attempt, status, error in rows
        ],
    )


def record_calls(*, session: Session, state: RunState, calls: Sequence[CallRow]) -> None:
    """Record calls of a run and count what they cost by their tokens."""
    if not calls:
        return
    recorder = RunRecorder(session=session, run=session.get_one(Run, state.run_id))
    recorder.record(calls)
    recorder.finish()
    read, written = sum(call.input_tokens or 0 for call in calls), sum(call.output_tokens or 0 for call in calls)
    state.input_tokens += read
    state.output_tokens += written
    if state.input_price is not None and state.output_price is not None:
        state.spent += (read * state.input_price + written * state.output_price) / 1e6
    session.add(state)
    session.flush()


def cancel_pending(*, session: Session, chunk: Taken, criteria: Sequence[int], most: int = 500) -> int:
    """Record calls of a cancelled run that were never answered as unscored: cancelled. Returns how many."""
    state = lock_state(session=session, run_id=chunk.run_id)
    if _owned(session, chunk) is None:
        return 0
    pending = list_pending(session=session, run_id=chunk.run_id, chunk=chunk.number, most=most)
    record_calls(
        session=session, state=state, calls=[unanswered(call, criteria, Unscored.CANCELLED) for call in pending]
    )
    return len(pending)


def unanswered(pending: Pending, criteria: Sequence[int], reason: Unscored, *, attempt: int | None = None) -> CallRow:
    """The recorded end of a planned call without a reply."""
    return CallRow(
        pending.item_id,
        pending.repetition,
        pending.slot_order,
        pending.part,
        attempt=pending.attempts or 1 if attempt is None else attempt,
        created_at=utc_now(),
        scores=tuple(ScoreRow(criterion, None, reason) for criterion in criteria),
    )


def beat(*, session: Session, name: str, process: int) -> None:
    """Say that a worker lives."""
    row = session.get(Worker, name) or Worker(name=name, process=process)
    row.seen_at = utc_now()
    session.add(row)


def retire(*, session: Session, name: str) -> None:
    """Say that a worker ended: nobody waits for it."""
    row = session.get(Worker, name)
    if row is not None:
        row.seen_at = utc_now() - timedelta(hours=1)
        session.add(row)


def add_batch(*, session: Session, run_id: int, pending: Sequence[Pending], worker: str) -> MessageBatch:
    """A Message Batch about to be created, with an attempt started for each of its calls."""
    batch = MessageBatch(run_id=run_id, requests=len(pending))
    session.add(batch)
    session.flush()
    add_attempts(
        session=session,
        run_id=run_id,
        worker=worker,
        event=STARTED,
        rows=[(call.id, call.attempts + 1, None, None) for call in pending],
        message_batch_id=batch.id,
    )
    return batch


def update_batch(
    *, session: Session, batch_id: int, status: str, provider_id: str | None = None, error: str = ""
) -> None:
    """Move a Message Batch on."""
    batch = session.get_one(MessageBatch, batch_id)
    batch.status, batch.error = status, error
    batch.batch_id = provider_id if provider_id is not None else batch.batch_id
    batch.ended_at = utc_now() if status in ("recorded", "lost") else None
    session.add(batch)


def take_batches(*, session: Session, run_id: int, worker: str, stale: datetime) -> bool:
    """Make this worker the one that sends and reads the run's Message Batches, unless another live one is."""
    state = lock_state(session=session, run_id=run_id)
    holder = session.get(Worker, state.worker) if state.worker not in ("", worker) else None
    if holder is not None and holder.seen_at >= stale:
        return False
    state.worker = worker
    session.add(state)
    return True


def add_schedule(
    *,
    session: Session,
    corpus_id: int,
    judge_id: int,
    repetitions: int,
    cron: str,
    next_at: datetime,
    options: dict[str, Any],
) -> Schedule:
    """A corpus to be scored again and again."""
    row = Schedule(
        corpus_id=corpus_id, judge_id=judge_id, repetitions=repetitions, cron=cron, next_at=next_at, options=options
    )
    session.add(row)
    session.flush()
    return row


def move_schedule(
    *, session: Session, schedule_id: int, next_at: datetime, run_id: int | None = None, error: str = ""
) -> None:
    """The next time of a schedule, and what came of this one."""
    row = session.get_one(Schedule, schedule_id)
    row.next_at, row.error = next_at, error
    row.last_run_id = run_id if run_id is not None else row.last_run_id
    session.add(row)


def switch_schedule(*, session: Session, schedule_id: int, active: bool, next_at: datetime) -> None:
    """Turn a schedule on or off."""
    row = session.get_one(Schedule, schedule_id)
    row.active, row.next_at = active, next_at
    session.add(row)


def _key(run: Run) -> int:
    if run.id is None:
        raise ValueError("the run has not been flushed, so it has no id")
    return run.id
