"""The worker against a loopback endpoint: every error, limits, pauses, and kill -9 at random moments."""

import os
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from threading import Thread

import pytest
from sqlalchemy import Engine, text

from core.judge.protocol import Form
from core.judge.worker import work
from core.store import plan_queries, plan_writes, writes
from core.store.engine import get_engine, open_engine, reading
from core.store.queries import get_score_matrix, get_tallies
from core.store.tables import RunStatus, utc_now
from tests.judge.planning import KEY, Ground, check_exactly_once, lay_ground, nursery, plan, state_of
from tests.judge.server import Answer, Asked, Drop, Failure, Garbage, Loopback, Outcome, grade, loopback

KILLS, CALLS = 4, 300
PATIENCE = 60.0


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    with loopback() as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        yield server


def run_all(engine: Engine) -> None:
    """Work in this process until nothing is left to do."""
    work(engine.url.render_as_string(hide_password=False), once=True, patience=0.02)


def tallies(engine: Engine, run_id: int, ground: Ground) -> dict[str, int]:
    with reading(engine) as session:
        return get_tallies(session=session, run_ids=[run_id], criterion_id=ground.criteria[0])


def failures(engine: Engine, run_id: int) -> Counter[int | None]:
    with reading(engine) as session:
        progress = plan_queries.get_progress(session=session, run_id=run_id)
        assert progress is not None
        found: Counter[int | None] = Counter()
        for failure in progress.failures:
            found[failure.status] += failure.attempts
        return found


@pytest.mark.usefixtures("server")
def test_every_planned_call_is_asked_and_recorded_once(sqlite_engine: Engine) -> None:
    ground = lay_ground(sqlite_engine, items=7)
    run = plan(sqlite_engine, ground, repetitions=3)
    run_all(sqlite_engine)
    assert check_exactly_once(sqlite_engine, run) == {1: 21}
    state = state_of(sqlite_engine, run)
    assert (state.state, state.input_tokens, state.output_tokens) == (RunStatus.DONE, 2_100, 420)
    assert tallies(sqlite_engine, run, ground) == {"scored": 21}
    with reading(sqlite_engine) as session:
        matrix = get_score_matrix(session=session, run_ids=[run], criterion_id=ground.criteria[0])
    assert matrix.codes.shape == (7, 3)
    assert (matrix.codes >= 0).all()


def test_items_take_turns(sqlite_engine: Engine, server: Loopback) -> None:
    ground = lay_ground(sqlite_engine, items=5)
    plan(sqlite_engine, ground, repetitions=2, concurrency=1)
    run_all(sqlite_engine)
    asked = [re.search(r"candidate \d", message.user) for message in server.messages()]
    assert [found and found[0] for found in asked] == [f"candidate {place}" for place in range(5)] * 2


def test_both_orders_of_a_pair_are_asked(sqlite_engine: Engine, server: Loopback) -> None:
    ground = lay_ground(sqlite_engine, items=3, form=Form.PAIRWISE)
    run = plan(sqlite_engine, ground, repetitions=2, orders=("ab", "ba"))
    run_all(sqlite_engine)
    assert check_exactly_once(sqlite_engine, run) == {1: 12}
    first = [asked.user.index("other") < asked.user.index("candidate ") for asked in server.messages()]
    assert sum(first) == 6


TRANSIENT: list[Outcome] = [
    Failure(408),
    Failure(409),
    Failure(429, retry_after=0.05),
    Failure(500),
    Failure(503),
    Failure(529),
    Drop(mid_body=True),
    Drop(mid_body=False),
    Garbage(),
]


def test_transient_errors_are_tried_again_and_every_attempt_is_kept(sqlite_engine: Engine, server: Loopback) -> None:
    ground = lay_ground(sqlite_engine, items=len(TRANSIENT))
    server.next(*TRANSIENT)
    run = plan(sqlite_engine, ground, repetitions=1, concurrency=len(TRANSIENT))
    run_all(sqlite_engine)
    assert check_exactly_once(sqlite_engine, run).total() == len(TRANSIENT)
    assert tallies(sqlite_engine, run, ground) == {"scored": len(TRANSIENT)}
    kept = failures(sqlite_engine, run)
    assert sum(kept.values()) == len(TRANSIENT)
    assert {408, 409, 429, 500, 503, 529} <= kept.keys()


def test_retry_after_is_waited_for(sqlite_engine: Engine, server: Loopback) -> None:
    ground = lay_ground(sqlite_engine, items=1)
    server.next(Failure(429, retry_after=1.0))
    plan(sqlite_engine, ground, repetitions=1)
    run_all(sqlite_engine)
    first, second = server.messages()
    assert second.at - first.at >= 1.0


def test_a_call_that_never_succeeds_is_unscored(sqlite_engine: Engine, server: Loopback) -> None:
    ground = lay_ground(sqlite_engine, items=2)
    server.script = lambda asked: Failure(529) if "candidate 1" in asked.user else grade(asked)
    run = plan(sqlite_engine, ground, repetitions=1)
    run_all(sqlite_engine)
    assert check_exactly_once(sqlite_engine, run) == {1: 1, 6: 1}
    assert tallies(sqlite_engine, run, ground) == {"scored": 1, "request_error": 1}
    assert failures(sqlite_engine, run) == {529: 6}
    assert state_of(sqlite_engine, run).state == RunStatus.DONE


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_fatal_error_stops_the_run_and_it_can_go_on_later(
    sqlite_engine: Engine, server: Loopback, status: int
) -> None:
    ground = lay_ground(sqlite_engine, items=30)
    server.script = lambda _: Failure(status)
    run = plan(sqlite_engine, ground, repetitions=1, concurrency=2)
    run_all(sqlite_engine)
    state = state_of(sqlite_engine, run)
    assert state.state == RunStatus.FAILED
    assert state.error
    assert state.what_to_do
    assert KEY not in state.error + state.what_to_do
    assert len(server.messages()) <= 4
    server.script = grade
    with writes.writing(sqlite_engine) as session:
        assert plan_writes.set_state(session=session, run_id=run, state=RunStatus.RUNNING)
    run_all(sqlite_engine)
    assert check_exactly_once(sqlite_engine, run).total() == 30
    assert state_of(sqlite_engine, run).state == RunStatus.DONE


def test_without_a_key_the_run_says_so(
    sqlite_engine: Engine, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    run = plan(sqlite_engine, lay_ground(sqlite_engine, items=2))
    run_all(sqlite_engine)
    state = state_of(sqlite_engine, run)
    assert state.state == RunStatus.FAILED
    assert "key" in state.error
    assert server.asked == []


@pytest.mark.usefixtures("server")
def test_the_spending_limit_is_never_passed(sqlite_engine: Engine) -> None:
    # A reply costs 100 x $10 + 20 x $50 a million tokens = $0.002; in flight each is held at $0.004.
    ground = lay_ground(sqlite_engine, items=40)
    prices = {"input_price": 10.0, "output_price": 50.0, "call_reserve": 0.004}
    run = plan(sqlite_engine, ground, repetitions=1, concurrency=8, spending_limit=0.03, **prices)
    run_all(sqlite_engine)
    state = state_of(sqlite_engine, run)
    assert state.state == RunStatus.PAUSED
    assert "spending limit" in state.error
    assert 0.0 < state.spent <= 0.03
    with writes.writing(sqlite_engine) as session:
        plan_writes.set_limit(session=session, run_id=run, spending_limit=1.0)
        plan_writes.set_state(session=session, run_id=run, state=RunStatus.RUNNING)
    run_all(sqlite_engine)
    state = state_of(sqlite_engine, run)
    assert (state.state, round(state.spent, 6)) == (RunStatus.DONE, 0.08)
    check_exactly_once(sqlite_engine, run)


def test_a_schedule_that_is_due_is_started_by_the_worker_once(sqlite_engine: Engine, server: Loopback) -> None:
    ground = lay_ground(sqlite_engine, items=3)
    with writes.writing(sqlite_engine) as session:
        plan_writes.add_schedule(
            session=session,
            corpus_id=ground.corpus,
            judge_id=ground.judge,
            repetitions=2,
            cron="0 3 * * *",
            next_at=utc_now() - timedelta(days=5),
            options={},
        )
    run_all(sqlite_engine)
    assert len(server.messages()) == 6  # five days were missed, and one run makes up for them
    run_all(sqlite_engine)
    assert len(server.messages()) == 6
    with reading(sqlite_engine) as session:
        (schedule,) = plan_queries.list_schedules(session=session).itertuples()
    assert schedule.next_at > utc_now()
    assert schedule.error == ""
    assert state_of(sqlite_engine, schedule.last_run_id).state == RunStatus.DONE
    assert tallies(sqlite_engine, schedule.last_run_id, ground) == {"scored": 6}


def test_a_pilot_pauses_the_run(sqlite_engine: Engine, server: Loopback) -> None:
    ground = lay_ground(sqlite_engine, items=10)
    run = plan(sqlite_engine, ground, repetitions=2, pilot=3)
    run_all(sqlite_engine)
    state = state_of(sqlite_engine, run)
    assert (state.state, len(server.messages())) == (RunStatus.PAUSED, 3)
    assert "pilot" in state.error
    with writes.writing(sqlite_engine) as session:
        plan_writes.set_state(session=session, run_id=run, state=RunStatus.RUNNING)
    run_all(sqlite_engine)
    assert check_exactly_once(sqlite_engine, run) == {1: 20}


def test_a_run_pauses_goes_on_and_is_cancelled(sqlite_engine: Engine, server: Loopback) -> None:
    server.latency = 0.1
    ground = lay_ground(sqlite_engine, items=60)
    run = plan(sqlite_engine, ground, repetitions=1, concurrency=2)

    def when(calls: int, state: RunStatus) -> None:
        deadline = time.monotonic() + PATIENCE
        while len(server.messages()) < calls and time.monotonic() < deadline:
            time.sleep(0.02)
        with writes.writing(sqlite_engine) as session:
            plan_writes.set_state(session=session, run_id=run, state=state)

    pausing = Thread(target=when, args=(5, RunStatus.PAUSED))
    pausing.start()
    run_all(sqlite_engine)
    pausing.join(PATIENCE)
    assert state_of(sqlite_engine, run).state == RunStatus.PAUSED
    paused_at = len(server.messages())
    assert 5 <= paused_at < 60
    assert sum(tallies(sqlite_engine, run, ground).values()) == paused_at  # what was in flight was recorded
    with writes.writing(sqlite_engine) as session:
        plan_writes.set_state(session=session, run_id=run, state=RunStatus.RUNNING)
    cancelling = Thread(target=when, args=(paused_at + 4, RunStatus.CANCELLED))
    cancelling.start()
    run_all(sqlite_engine)
    cancelling.join(PATIENCE)
    assert state_of(sqlite_engine, run).state == RunStatus.CANCELLED
    ends = tallies(sqlite_engine, run, ground)
    assert ends == {"scored": len(server.messages()), "cancelled": 60 - len(server.messages())}
    with writes.writing(sqlite_engine) as session:
        assert not plan_writes.set_state(session=session, run_id=run, state=RunStatus.RUNNING)


def test_an_item_without_text_is_unscored_and_never_sent(sqlite_engine: Engine, server: Loopback) -> None:
    ground = lay_ground(sqlite_engine, items=2)
    run = plan(sqlite_engine, ground, repetitions=1)
    with sqlite_engine.begin() as connection:
        connection.execute(text("UPDATE item SET candidate = NULL WHERE key = 'i00001'"))
    run_all(sqlite_engine)
    assert tallies(sqlite_engine, run, ground) == {"scored": 1, "request_error": 1}
    assert len(server.messages()) == 1


def killed_at_random(
    url: str, *, workers: int, kills: int, calls: int, repetitions: int = 5, latency: float = 0.03
) -> None:
    """Run a plan whose workers are killed again and again; nothing is lost or recorded twice."""
    engine = open_engine(url)
    ground = lay_ground(engine, items=calls // repetitions)
    run = plan(engine, ground, repetitions=repetitions, concurrency=8)
    luck = random.Random(7)  # noqa: S311 - no secret
    with loopback(latency=latency) as server, nursery(url, server.url) as nurse:
        alive = [nurse.start() for _ in range(workers)]
        done_before = 0
        for kill in range(kills):
            goal = calls * (kill + luck.random()) / (kills + 1)
            deadline = time.monotonic() + PATIENCE
            while len(server.messages()) < max(goal, done_before) and time.monotonic() < deadline:
                time.sleep(0.005)
            time.sleep(luck.random() * 0.1)
            victim = luck.randrange(workers)
            nurse.kill(alive[victim])
            alive[victim] = nurse.start()
            done_before = len(server.messages())
        assert [nurse.wait(worker) for worker in alive] == [0] * workers
        asked = len(server.messages())
    assert state_of(engine, run).state == RunStatus.DONE
    attempts = check_exactly_once(engine, run)
    assert attempts.total() == calls
    started = sum(number * count for number, count in attempts.items())
    assert calls <= asked <= started  # whatever was asked is an attempt of its own
    assert started - calls <= kills * 2 * 8  # and twice only what was in flight
    engine.dispose()


@pytest.fixture
def migrated_url(database_url: str) -> str:
    get_engine(database_url).dispose()
    return database_url


def test_nothing_is_lost_or_doubled_when_workers_are_killed(migrated_url: str) -> None:
    workers = 1 if migrated_url.startswith("sqlite") else 2
    killed_at_random(migrated_url, workers=workers, kills=KILLS, calls=CALLS)


def test_two_workers_share_a_run_on_postgresql(migrated_url: str) -> None:
    if migrated_url.startswith("sqlite"):
        pytest.skip("a SQLite store has one worker")
    engine = open_engine(migrated_url)
    ground = lay_ground(engine, items=150)
    run = plan(engine, ground, repetitions=2, concurrency=4)
    with loopback(latency=0.05) as server, nursery(migrated_url, server.url) as nurse:
        alive = [nurse.start() for _ in range(2)]
        assert [nurse.wait(worker) for worker in alive] == [0, 0]
    assert check_exactly_once(engine, run) == {1: 300}
    with engine.connect() as connection:
        names = connection.execute(text("SELECT DISTINCT worker FROM call_attempt")).scalars().all()
    assert len(names) == 2
    engine.dispose()


def test_the_key_reaches_neither_store_nor_log(
    sqlite_engine: Engine, server: Loopback, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    ground = lay_ground(sqlite_engine, items=4)
    server.next(Failure(429, f"too many requests with {os.environ['ANTHROPIC_API_KEY']}"), Garbage())
    plan(sqlite_engine, ground, repetitions=1)
    run_all(sqlite_engine)
    server.script = lambda _: Failure(401, f"invalid key {KEY}")
    plan(sqlite_engine, ground, repetitions=1)
    run_all(sqlite_engine)
    with sqlite_engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    for path in tmp_path.iterdir():
        assert KEY.encode() not in path.read_bytes(), path.name
    assert KEY not in caplog.text


def test_the_answers_are_read_strictly(sqlite_engine: Engine, server: Loopback) -> None:
    def answer(asked: Asked) -> Answer:
        if "candidate 0" in asked.user:
            return Answer("I would rather not.", stop_reason="refusal")
        return Answer('{"rationale": "r", "tone": 9, "facts": 1}' if "candidate 1" in asked.user else "no idea")

    ground = lay_ground(sqlite_engine, items=3)
    server.script = answer
    run = plan(sqlite_engine, ground, repetitions=1)
    run_all(sqlite_engine)
    assert tallies(sqlite_engine, run, ground) == {"refusal": 1, "out_of_range": 1, "not_json": 1}
