"""Makes planned calls and records what comes back; the only part that runs for hours.

The store says what is to do: a call is pending while it is planned and not recorded. DBOS queues chunks of a run's
plan; a chunk that was queued again belongs to its newest generation only, so that two workers never record the same
call. Before a call is asked a row says so, hence a call whose reply was lost with its worker is seen as asked twice.
"""

import asyncio
import logging
import os
import random
import signal
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from dbos import DBOS, DBOSConfig, SetWorkflowID
from dbos import error as dbos_error
from sqlalchemy import Engine

from core.judge.asking import Asking
from core.judge.batches import step_batches
from core.judge.making import prepare, stop_run
from core.judge.protocol import CallKey, FatalError, Judge, Reply, TransientError
from core.judge.schedule import start_due
from core.store import plan_queries, plan_writes
from core.store.engine import get_engine, reading
from core.store.plan_queries import ItemTexts
from core.store.plan_writes import Failure, Finish, Ledger, Pending, Start, Taken
from core.store.tables import RunStatus, Unscored, utc_now
from core.store.writes import writing

LEASE = timedelta(seconds=15)
"""A worker not seen for so long has lost its chunks."""

MOST_TRIES = 6
FIRST_WAIT, MOST_WAIT = 0.5, 60.0
CHUNKS_AT_ONCE = 4
QUEUE = "chunks"
PAUSE = 0.25
BATCH_PAUSE = 5.0
GATHER = 0.05
"""Seconds between two transactions of a run's ledger: one for ten entries costs hardly more than one for one."""

OWN_ERROR = FatalError(
    "the worker met an error of its own", "See the worker's log, then resume; nothing recorded is lost."
)

log = logging.getLogger(__name__)
T = TypeVar("T")
Entry = Start | Failure | Finish


class OnlyOneError(Exception):
    """Another worker is at work on this SQLite file."""


class RunAtWork:
    """One run in this worker: its judge, its slots, and the ledger that writes for all of its calls together.

    Args:
        engine: The store.
        run_id: The run.
        worker: This worker's name.
        judge: Who is asked.
        asking: How.
        concurrency: Most calls in flight.
        patience: Multiplies the waits between tries.
    """

    def __init__(
        self,
        *,
        engine: Engine,
        run_id: int,
        worker: str,
        judge: Judge,
        asking: Asking,
        concurrency: int,
        patience: float = 1.0,
    ) -> None:
        self._engine = engine
        self._run_id = run_id
        self._worker = worker
        self._judge = judge
        self._asking = asking
        self._patience = patience
        self._slots = asyncio.Semaphore(concurrency)
        # More than the slots, so that a call whose start is written waits for its slot and not the slot for the ledger.
        self._entries = asyncio.Semaphore(concurrency + (concurrency + 1) // 2)
        self._not_before = 0.0
        self._queue: asyncio.Queue[tuple[Entry, asyncio.Future[bool]]] = asyncio.Queue(maxsize=4_000)
        self._writer = asyncio.create_task(self._write_all())
        self.stopped = asyncio.Event()
        self.chunks = 0

    async def close(self) -> None:
        """End the ledger and give the judge's connections back."""
        self._writer.cancel()
        with suppress(asyncio.CancelledError):
            await self._writer
        await self._judge.aclose()

    async def work(self, chunk: Taken, pending: Sequence[Pending], texts: dict[int, ItemTexts]) -> None:
        """Ask the pending calls of a chunk and record them."""
        async with asyncio.TaskGroup() as group:
            for call in pending:
                group.create_task(self._make(chunk, call, texts.get(call.item_id)))

    async def _make(self, chunk: Taken, pending: Pending, texts: ItemTexts | None) -> None:
        """One planned call to its recorded end, or until the run stops."""
        attempt = pending.attempts
        try:
            message = self._asking.message(texts, CallKey(pending.item_id, pending.repetition, pending.slot_order))
        except ValueError as error:
            await self._give_up(chunk, pending, Failure(chunk, pending.id, attempt + 1, None, str(error)))
            return
        for tries in range(1, MOST_TRIES + 1):
            async with self._entries:
                await self._wait_turn()
                if self.stopped.is_set() or not await self._write(Start(chunk, pending.id, attempt + 1)):
                    return
                attempt += 1
                failure: Failure | None = None
                try:
                    async with self._slots:
                        reply = await self._judge.ask(message)
                except TransientError as error:
                    failure = Failure(chunk, pending.id, attempt, error.status, error.words)
                    wait = self._wait_after(tries, error)
                except FatalError as error:
                    failure = Failure(chunk, pending.id, attempt, error.status, error.words)
                    if error.only_this_request:
                        await self._give_up(chunk, pending, failure)
                    else:
                        await self._write(failure)
                        await self.fail(error)
                    return
            if failure is None:
                await self._record(chunk, pending, attempt, reply)
                return
            if tries == MOST_TRIES:
                await self._give_up(chunk, pending, failure)
                return
            await self._write(failure)
            await self._sleep(wait)

    async def _record(self, chunk: Taken, pending: Pending, attempt: int, reply: Reply) -> None:
        await self._write(Finish(chunk, pending.id, self._asking.row(pending, attempt, reply)))

    async def _give_up(self, chunk: Taken, pending: Pending, failure: Failure) -> None:
        """Record that a call was never answered."""
        row = plan_writes.unanswered(
            pending, self._asking.criterion_ids, Unscored.REQUEST_ERROR, attempt=failure.attempt
        )
        await self._write(Finish(chunk, pending.id, row, failure))

    async def fail(self, error: FatalError) -> None:
        """Stop the run with what happened and what to do."""
        self.stopped.set()
        await asyncio.to_thread(stop_run, self._engine, self._run_id, error)

    def _wait_after(self, tries: int, error: TransientError) -> float:
        """Seconds to the next try: what the endpoint asked for, else doubling, with jitter against marching in step."""
        if error.retry_after is not None:
            self._not_before = max(self._not_before, time.monotonic() + error.retry_after)
            return error.retry_after
        wait = min(MOST_WAIT, FIRST_WAIT * 2.0 ** (tries - 1))
        return self._patience * wait * random.uniform(0.5, 1.0)  # noqa: S311 - no secret

    async def _wait_turn(self) -> None:
        """Wait until the endpoint takes requests again."""
        while (wait := self._not_before - time.monotonic()) > 0 and not self.stopped.is_set():
            await self._sleep(wait)

    async def _sleep(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self.stopped.wait(), seconds)

    async def _write(self, entry: Entry) -> bool:
        """Have the ledger write an entry; whether the call may be asked."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        await self._queue.put((entry, future))
        return await future

    async def _write_all(self) -> None:
        """Write what has gathered since the transaction before."""
        while True:
            entries = [await self._queue.get()]
            while not self._queue.empty() and len(entries) < 1_000:
                entries.append(self._queue.get_nowait())
            try:
                answers, running = await asyncio.to_thread(self._commit, [entry for entry, _ in entries])
            except Exception as error:
                for _, future in entries:
                    if not future.done():
                        future.set_exception(error)
                continue
            if not running:
                self.stopped.set()
            for (_, future), answer in zip(entries, answers, strict=True):
                if not future.done():
                    future.set_result(answer)
            await asyncio.sleep(GATHER)

    def _commit(self, entries: Sequence[Entry]) -> tuple[list[bool], bool]:
        with writing(self._engine) as session:
            ledger = Ledger(session=session, run_id=self._run_id, worker=self._worker)
            ledger.finish([entry for entry in entries if isinstance(entry, Finish)])
            ledger.fail([entry for entry in entries if isinstance(entry, Failure)])
            started = iter(ledger.start([entry for entry in entries if isinstance(entry, Start)]))
            ledger.close()
            return [next(started) if isinstance(entry, Start) else True for entry in entries], ledger.running


@dataclass
class RunWorker:
    """This process's work on a store.

    Attributes:
        engine: The store.
        name: Unique among workers.
        lease: A worker not seen for so long has lost its chunks.
        patience: Multiplies the waits between tries.
    """

    engine: Engine
    name: str = field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}")
    lease: timedelta = LEASE
    patience: float = 1.0
    _runs: dict[int, RunAtWork] = field(default_factory=dict, init=False)
    _opening: dict[int, asyncio.Lock] = field(default_factory=dict, init=False)
    _seen: set[int] = field(default_factory=set, init=False)
    _stop: threading.Event = field(default_factory=threading.Event, init=False)
    _loop: asyncio.AbstractEventLoop | None = field(default=None, init=False)
    _batching: threading.Thread | None = field(default=None, init=False)
    _busy_at: float = field(default_factory=time.monotonic, init=False)

    def run(self, *, once: bool = False, idle_seconds: float | None = None) -> None:
        """Work until stopped.

        Args:
            once: End when no run is left to work on.
            idle_seconds: End when there was nothing to do for so long and no schedule is on.
        """
        beating = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._say_alive()
        beating.start()
        try:
            while not self._stop.is_set():
                active = self._tick()
                if active:
                    self._busy_at = time.monotonic()
                elif once or self._is_idle(idle_seconds):
                    break
                self._stop.wait(PAUSE)
        finally:
            self._stop.set()
            self._halt()
            beating.join()
            with writing(self.engine) as session:
                plan_writes.retire(session=session, name=self.name)

    def stop(self) -> None:
        """End after the calls in flight."""
        self._stop.set()

    def _is_idle(self, seconds: float | None) -> bool:
        if seconds is None or time.monotonic() - self._busy_at < seconds:
            return False
        with reading(self.engine) as session:
            return not plan_queries.has_schedules(session=session)

    def _tick(self) -> bool:
        """Start what is due and queue what is open; whether there is anything to work on."""
        start_due(self.engine)
        with reading(self.engine) as session:
            active = plan_queries.list_active(session=session)
        running = {run.run_id for run in active if run.state == RunStatus.RUNNING}
        self._tell_stopped(running)
        for run in active:
            if not run.batched:
                self._queue_chunks(run.run_id)
        batched = [run.run_id for run in active if run.batched]
        if batched and not (self._batching and self._batching.is_alive()):
            self._batching = threading.Thread(target=self._step_batches, args=(batched,), name="batches", daemon=True)
            self._batching.start()
        return bool(active)

    def _step_batches(self, run_ids: Sequence[int]) -> None:
        for run_id in run_ids:
            try:
                step_batches(self.engine, run_id=run_id, worker=self.name, lease=self.lease)
            except Exception:
                log.exception("the Message Batches of run %s failed", run_id)
                stop_run(self.engine, run_id, OWN_ERROR)
        self._stop.wait(BATCH_PAUSE * self.patience)

    def _tell_stopped(self, running: set[int]) -> None:
        for run_id, run in list(self._runs.items()):
            if run_id not in running and self._loop is not None:
                self._loop.call_soon_threadsafe(run.stopped.set)

    def _queue_chunks(self, run_id: int) -> None:
        stale = utc_now() - self.lease
        alone = self.engine.dialect.name == "sqlite" and run_id not in self._seen
        self._seen.add(run_id)
        with reading(self.engine) as session:
            workers = max(1, len(plan_queries.list_workers(session=session, since=stale)))
        with writing(self.engine) as session:
            chunks = plan_writes.queue_chunks(
                session=session, run_id=run_id, most=CHUNKS_AT_ONCE * workers, stale=stale, alone=alone
            )
        for chunk in chunks:
            if chunk.generation > 1 and self.engine.dialect.name != "sqlite":
                # The worker of the generation before is dead, and its queued job is recovered under its name only.
                with suppress(dbos_error.DBOSException):
                    DBOS.cancel_workflow(_workflow_id(chunk, chunk.generation - 1))
            with SetWorkflowID(_workflow_id(chunk, chunk.generation)):
                DBOS.enqueue_workflow(QUEUE, judge_chunk, *chunk)

    async def judge(self, chunk: Taken) -> int:
        """Take a queued chunk and work on it; returns how many calls were pending."""
        self._loop = asyncio.get_running_loop()
        if self._stop.is_set() or not await self._in_store(plan_writes.take_chunk, chunk=chunk, worker=self.name):
            return 0
        run: RunAtWork | None = None
        pending: list[Pending] = []
        try:
            pending, texts, state = await asyncio.to_thread(self._read, chunk)
            if state == RunStatus.RUNNING:
                run = await self._open(chunk.run_id)
                run.chunks += 1
                await run.work(chunk, pending, texts)
            elif state == RunStatus.CANCELLED:
                await self._cancel(chunk)
        except FatalError as error:
            await asyncio.to_thread(stop_run, self.engine, chunk.run_id, error)
        except Exception:
            log.exception("chunk %s of run %s failed", chunk.number, chunk.run_id)
            await asyncio.to_thread(stop_run, self.engine, chunk.run_id, OWN_ERROR)
        finally:
            if run is not None:
                run.chunks -= 1
            await self._in_store(plan_writes.give_back, chunk=chunk)
        return len(pending)

    async def _open(self, run_id: int) -> RunAtWork:
        """The run at work; a run that was stopped is read anew."""
        async with self._opening.setdefault(run_id, asyncio.Lock()):
            run = self._runs.get(run_id)
            if run is not None and (run.chunks or not run.stopped.is_set()):
                if not self._stop.is_set():
                    run.stopped.clear()
                return run
            if run is not None:
                await run.close()
                del self._runs[run_id]
            judge, asking, concurrency = await asyncio.to_thread(prepare, self.engine, run_id)
            self._runs[run_id] = RunAtWork(
                engine=self.engine,
                run_id=run_id,
                worker=self.name,
                judge=judge,
                asking=asking,
                concurrency=concurrency,
                patience=self.patience,
            )
            return self._runs[run_id]

    def _read(self, chunk: Taken) -> tuple[list[Pending], dict[int, ItemTexts], str]:
        with reading(self.engine) as session:
            state = plan_queries.get_state(session=session, run_id=chunk.run_id)
            pending = plan_writes.list_pending(session=session, run_id=chunk.run_id, chunk=chunk.number)
            texts = plan_queries.get_texts(session=session, item_ids=list({call.item_id for call in pending}))
            return pending, texts, state.state if state else RunStatus.FAILED

    async def _cancel(self, chunk: Taken) -> None:
        """Record what a cancelled run never asked."""

        def cancel() -> int:
            with reading(self.engine) as session:
                criteria = plan_queries.list_criterion_ids(session=session, run_id=chunk.run_id)
            with writing(self.engine) as session:
                return plan_writes.cancel_pending(session=session, chunk=chunk, criteria=criteria)

        while await asyncio.to_thread(cancel):
            pass

    async def _in_store(self, write: Callable[..., T], **arguments: Any) -> T:
        def act() -> T:
            with writing(self.engine) as session:
                return write(session=session, **arguments)

        return await asyncio.to_thread(act)

    def _beat(self) -> None:
        """Say every few seconds that this worker lives, however long a transaction takes."""
        while not self._stop.wait(self.lease.total_seconds() / 5):
            try:
                self._say_alive()
            except Exception:
                log.exception("the heartbeat could not be written")

    def _say_alive(self) -> None:
        with writing(self.engine) as session:
            plan_writes.beat(session=session, name=self.name, process=os.getpid())

    def _halt(self) -> None:
        """Let the calls in flight end and be recorded."""
        if self._loop is None:
            return
        for run in self._runs.values():
            self._loop.call_soon_threadsafe(run.stopped.set)
        deadline = time.monotonic() + 20
        while any(run.chunks for run in self._runs.values()) and time.monotonic() < deadline:
            time.sleep(0.05)
        closing: list[Awaitable[None]] = [run.close() for run in self._runs.values()]
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(_all(closing), self._loop).result(5)


async def _all(closing: Sequence[Awaitable[None]]) -> None:
    await asyncio.gather(*closing)


_current: list[RunWorker] = []


@DBOS.workflow()
async def judge_chunk(run_id: int, number: int, generation: int) -> int:
    """Work on one queued chunk, in whichever worker takes it from the queue."""
    return await _current[0].judge(Taken(run_id, number, generation)) if _current else 0


def _workflow_id(chunk: Taken, generation: int) -> str:
    return f"run-{chunk.run_id}-chunk-{chunk.number}-{generation}"


def work(
    url: str,
    *,
    once: bool = False,
    idle_seconds: float | None = None,
    lease: timedelta = LEASE,
    patience: float = 1.0,
) -> None:
    """Run a worker on the store at `url` until it is stopped.

    Raises:
        OnlyOneError: When another one is at work on the same SQLite file.
    """
    engine = get_engine(url)
    with _alone(engine), _queue(engine) as name:
        worker = RunWorker(engine, name, lease=lease, patience=patience)
        _current[:] = [worker]
        if threading.current_thread() is threading.main_thread():
            for sign in (signal.SIGTERM, signal.SIGINT):
                signal.signal(sign, lambda *_: worker.stop())
        worker.run(once=once, idle_seconds=idle_seconds)


@contextmanager
def _queue(engine: Engine) -> Iterator[str]:
    """DBOS with its queue of chunks: beside a SQLite store, in a schema of its own on PostgreSQL."""
    sqlite = engine.dialect.name == "sqlite"
    url = engine.url.set(database=f"{engine.url.database}.queue") if sqlite else engine.url
    name = "local" if sqlite else f"{socket.gethostname()}-{os.getpid()}"
    config: DBOSConfig = {
        "name": "evenhand",
        "system_database_url": url.render_as_string(hide_password=False),
        "application_version": "1",
        "executor_id": name,
        "enable_otlp": False,
        "log_level": "WARNING",
    }
    DBOS(config=config)
    try:
        DBOS.launch()
        DBOS.register_queue(
            QUEUE, worker_concurrency=CHUNKS_AT_ONCE, polling_interval_sec=0.2, on_conflict="always_update"
        )
        yield name
    finally:
        DBOS.destroy(workflow_completion_timeout_sec=5)


@contextmanager
def _alone(engine: Engine) -> Iterator[None]:
    """The lock that lets one worker at a SQLite file; PostgreSQL takes any number."""
    if engine.dialect.name != "sqlite" or not engine.url.database:
        yield
        return
    import fcntl  # noqa: PLC0415 - not there on every system, and only a SQLite store needs it

    with Path(f"{engine.url.database}.worker").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OnlyOneError("a worker is at work on this store already") from error
        yield
