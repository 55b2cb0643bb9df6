"""Runs through Message Batches: the batch's id is stored before it is polled, results are joined by custom_id.

A call whose result is missing, expired, cancelled or a passing error is handed in once more, in another batch.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, runtime_checkable

from sqlalchemy import Engine

from core.judge.asking import Asking
from core.judge.client import BatchResult, BatchState, Ending
from core.judge.making import prepare, stop_run
from core.judge.protocol import CallKey, FatalError, Message, TransientError
from core.store import plan_queries, plan_writes
from core.store.engine import reading
from core.store.plan_writes import CLOSED, FAILED, Pending
from core.store.specs import CallRow
from core.store.tables import MessageBatch, RunStatus, Unscored, utc_now
from core.store.writes import writing

MOST_REQUESTS = 2_000
"""Of one batch; the endpoint takes more, but a lost batch is handed in again whole."""

MOST_SUBMISSIONS = 2
FRESH = timedelta(minutes=2)
_PAGE = 500
_OPEN = ("in_progress",)

log = logging.getLogger(__name__)


@runtime_checkable
class BatchJudge(Protocol):
    """A judge that takes batches."""

    async def create_batch(self, messages: Mapping[str, Message]) -> BatchState:
        """Hand in a batch by custom_id."""

    async def retrieve_batch(self, batch_id: str, *, fresh: bool = False) -> BatchState:
        """How far a batch is."""

    async def cancel_batch(self, batch_id: str) -> BatchState:
        """Ask to stop a batch."""

    def batch_results(self, batch_id: str) -> AsyncIterator[BatchResult]:
        """The results in any order."""

    async def aclose(self) -> None:
        """Give back connections."""


def step_batches(engine: Engine, *, run_id: int, worker: str, lease: timedelta) -> None:
    """Bring a run of Message Batches one step on: read what ended, hand in what is missing.

    A passing error is left to the next step; any other one stops the run.
    """
    with writing(engine) as session:
        if not plan_writes.take_batches(session=session, run_id=run_id, worker=worker, stale=utc_now() - lease):
            return
    try:
        asyncio.run(_step(engine, run_id, worker))
    except TransientError as error:
        log.warning("the Message Batches of run %s wait: %s", run_id, error.words)
    except FatalError as error:
        stop_run(engine, run_id, error)
        _close_cancelled(engine, run_id)


async def _step(engine: Engine, run_id: int, worker: str) -> None:
    judge, asking, _ = prepare(engine, run_id)
    try:
        if not isinstance(judge, BatchJudge):
            raise FatalError("this judge takes no Message Batches", "Launch the run again without them.")
        await _Step(engine, run_id, worker, judge, asking).take()
    finally:
        await judge.aclose()


@dataclass(frozen=True, slots=True)
class _Step:
    """One look at the batches of one run."""

    engine: Engine
    run_id: int
    worker: str
    judge: BatchJudge
    asking: Asking

    async def take(self) -> None:
        with reading(self.engine) as session:
            known = plan_queries.list_batches(session=session, run_id=self.run_id)
            state = plan_queries.get_state(session=session, run_id=self.run_id)
            cancelled = state is not None and state.state == RunStatus.CANCELLED
        for batch in known:
            if batch.status == "creating":
                self._update(batch, "lost", error="the worker ended before the batch's id was known")
        still_open = 0
        for batch in known:
            if batch.status in _OPEN and not await self._read(batch, cancelled=cancelled):
                still_open += 1
        if cancelled:
            if not still_open:
                _close_cancelled(self.engine, self.run_id)
            return
        self._give_up()
        while created := await self._hand_in():
            still_open += created
        self._end(still_open)

    async def _read(self, batch: MessageBatch, *, cancelled: bool) -> bool:
        """Whether the batch has ended and all of its results are recorded."""
        fresh = utc_now() - batch.created_at < FRESH
        try:
            state = await self.judge.retrieve_batch(batch.batch_id, fresh=fresh)
        except TransientError as error:
            log.info("batch %s: %s", batch.batch_id, error.words)
            return False
        if not state.ended:
            if cancelled and not state.cancelling:
                await self.judge.cancel_batch(batch.batch_id)
            return False
        page: list[BatchResult] = []
        async for result in self.judge.batch_results(batch.batch_id):
            page.append(result)
            if len(page) >= _PAGE:
                self._record(batch, page)
                page = []
        self._record(batch, page)
        self._update(batch, "recorded")
        return True

    def _record(self, batch: MessageBatch, results: list[BatchResult]) -> None:
        """Record a page of results; what is recorded already, or not of this batch, is passed over."""
        with writing(self.engine) as session:
            state = plan_writes.lock_state(session=session, run_id=self.run_id)
            pending = {
                custom_id(call): call
                for call in plan_writes.list_pending(session=session, run_id=self.run_id, batch_id=batch.id)
            }
            rows: list[CallRow] = []
            failed: list[tuple[int, int, int | None, str | None]] = []
            for result in results:
                call = pending.pop(result.custom_id, None)
                if call is None:
                    continue
                if result.reply is not None:
                    rows.append(self.asking.row(call, call.attempts, result.reply))
                    continue
                failed.append((call.id, call.attempts, None, _words(result)))
                if result.ending is Ending.ERRORED and not result.transient:
                    rows.append(self._unanswered(call))
            plan_writes.record_calls(session=session, state=state, calls=rows)
            plan_writes.add_attempts(
                session=session, run_id=self.run_id, worker=self.worker, event=FAILED, rows=failed,
                message_batch_id=batch.id,
            )  # fmt: skip

    def _unanswered(self, call: Pending) -> CallRow:
        return plan_writes.unanswered(call, self.asking.criterion_ids, Unscored.REQUEST_ERROR)

    def _give_up(self) -> None:
        """Record calls that were handed in as often as allowed as never answered."""
        while True:
            with writing(self.engine) as session:
                state = plan_writes.lock_state(session=session, run_id=self.run_id)
                spent = plan_writes.list_pending(
                    session=session, run_id=self.run_id, unbatched=True, least=MOST_SUBMISSIONS, most=_PAGE
                )
                rows = [self._unanswered(call) for call in spent]
                plan_writes.record_calls(session=session, state=state, calls=rows)
            if not spent:
                return

    async def _hand_in(self) -> int:
        """Hand in the next batch of what is missing; 1 when there was one."""
        with writing(self.engine) as session:
            state = plan_writes.lock_state(session=session, run_id=self.run_id)
            if state.state != RunStatus.RUNNING:
                return 0
            most = plan_writes.fitting_requests(session=session, state=state, most=MOST_REQUESTS)
            pending = plan_writes.list_pending(session=session, run_id=self.run_id, unbatched=True, most=most)
            if not pending:
                return 0
            texts = plan_queries.get_texts(session=session, item_ids=list({call.item_id for call in pending}))
            messages: dict[str, Message] = {}
            rows: list[CallRow] = []
            for call in pending:
                key = CallKey(call.item_id, call.repetition, call.slot_order)
                try:
                    messages[custom_id(call)] = self.asking.message(texts.get(call.item_id), key)
                except ValueError:
                    rows.append(self._unanswered(call))
            plan_writes.record_calls(session=session, state=state, calls=rows)
            if not messages:
                return 0
            asked = [call for call in pending if custom_id(call) in messages]
            batch = plan_writes.add_batch(session=session, run_id=self.run_id, pending=asked, worker=self.worker)
            batch_key = _key(batch)
        try:
            made = await self.judge.create_batch(messages)
        except (TransientError, FatalError) as error:
            with writing(self.engine) as session:
                plan_writes.update_batch(session=session, batch_id=batch_key, status="lost", error=error.words)
            raise
        with writing(self.engine) as session:
            plan_writes.update_batch(session=session, batch_id=batch_key, status="in_progress", provider_id=made.id)
        return 1

    def _end(self, still_open: int) -> None:
        with writing(self.engine) as session:
            missing = plan_writes.list_pending(session=session, run_id=self.run_id, most=1)
            if not missing:
                plan_writes.set_state(session=session, run_id=self.run_id, state=RunStatus.DONE)
            elif not still_open:
                plan_writes.stop_spending(session=session, run_id=self.run_id)

    def _update(self, batch: MessageBatch, status: str, *, error: str = "") -> None:
        with writing(self.engine) as session:
            plan_writes.update_batch(session=session, batch_id=_key(batch), status=status, error=error)


def _close_cancelled(engine: Engine, run_id: int) -> None:
    """Record what a cancelled run never got."""
    with reading(engine) as session:
        criteria = plan_queries.list_criterion_ids(session=session, run_id=run_id)
    while True:
        with writing(engine) as session:
            state = plan_writes.lock_state(session=session, run_id=run_id)
            if state.state != RunStatus.CANCELLED:
                return
            missing = plan_writes.list_pending(session=session, run_id=run_id, most=_PAGE)
            rows = [plan_writes.unanswered(call, criteria, Unscored.CANCELLED) for call in missing]
            plan_writes.record_calls(session=session, state=state, calls=rows)
            if not missing:
                state.worker = CLOSED
                session.add(state)
                return


def custom_id(call: Pending) -> str:
    """The name of a planned call in its batch."""
    return f"call-{call.id}"


def _key(batch: MessageBatch) -> int:
    if batch.id is None:
        raise ValueError("the batch has not been flushed, so it has no id")
    return batch.id


def _words(result: BatchResult) -> str:
    return result.words or f"the request was {result.ending.value} in its Message Batch"
