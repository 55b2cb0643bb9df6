"""Message Batches against a loopback endpoint: any order, every result type, and what a kill leaves."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import Engine

from core.judge.batches import step_batches
from core.store import plan_queries, plan_writes, writes
from core.store.engine import reading
from core.store.queries import get_tallies
from core.store.tables import RunStatus
from tests.judge.planning import KEY, Ground, check_exactly_once, lay_ground, plan, state_of
from tests.judge.server import Loopback, loopback


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    with loopback() as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        yield server


def step(engine: Engine, run_id: int, times: int = 1) -> None:
    for _ in range(times):
        step_batches(engine, run_id=run_id, worker="w", lease=timedelta(seconds=15))


def batched(engine: Engine, ground: Ground, **changes: object) -> int:
    return plan(engine, ground, batched=True, **changes)


def tallies(engine: Engine, run_id: int, ground: Ground) -> dict[str, int]:
    with reading(engine) as session:
        return get_tallies(session=session, run_ids=[run_id], criterion_id=ground.criteria[0])


def statuses(engine: Engine, run_id: int) -> Counter[str]:
    with reading(engine) as session:
        return Counter(batch.status for batch in plan_queries.list_batches(session=session, run_id=run_id))


def test_a_batch_is_stored_polled_and_recorded_whatever_the_order(sqlite_engine: Engine, server: Loopback) -> None:
    server.not_found, server.polls = 1, 1
    ground = lay_ground(sqlite_engine, items=6)
    run = batched(sqlite_engine, ground)
    step(sqlite_engine, run)
    with reading(sqlite_engine) as session:
        (batch,) = plan_queries.list_batches(session=session, run_id=run)
    assert batch.batch_id.startswith("msgbatch_")
    step(sqlite_engine, run, 2)  # not found yet, then in progress
    assert state_of(sqlite_engine, run).state == RunStatus.RUNNING
    step(sqlite_engine, run)
    assert state_of(sqlite_engine, run).state == RunStatus.DONE
    assert check_exactly_once(sqlite_engine, run) == {1: 12}
    assert tallies(sqlite_engine, run, ground) == {"scored": 12}


@pytest.mark.parametrize("kind", ["errored", "expired", "canceled"])
def test_what_is_missing_is_handed_in_once_more(sqlite_engine: Engine, server: Loopback, kind: str) -> None:
    server.polls = 0
    seen: Counter[str] = Counter()

    def first_time(custom_id: str) -> str:
        seen[custom_id] += 1
        return kind if custom_id.endswith(("1", "4")) and seen[custom_id] == 1 else "succeeded"

    server.batch_type = first_time
    ground = lay_ground(sqlite_engine, items=5)
    run = batched(sqlite_engine, ground, repetitions=1)
    step(sqlite_engine, run, 3)
    assert state_of(sqlite_engine, run).state == RunStatus.DONE
    assert check_exactly_once(sqlite_engine, run) == {1: 3, 2: 2}
    assert sorted(seen.values()) == [1, 1, 1, 2, 2]


def test_it_is_not_handed_in_a_third_time(sqlite_engine: Engine, server: Loopback) -> None:
    server.polls = 0
    server.batch_type = lambda custom_id: "expired" if custom_id.endswith("2") else "succeeded"
    ground = lay_ground(sqlite_engine, items=3)
    run = batched(sqlite_engine, ground, repetitions=1)
    step(sqlite_engine, run, 4)
    assert state_of(sqlite_engine, run).state == RunStatus.DONE
    assert check_exactly_once(sqlite_engine, run) == {1: 2, 2: 1}
    assert tallies(sqlite_engine, run, ground) == {"scored": 2, "request_error": 1}
    assert statuses(sqlite_engine, run) == {"recorded": 2}


def test_a_batch_whose_id_was_never_stored_is_lost_and_its_calls_asked_again(
    sqlite_engine: Engine, server: Loopback
) -> None:
    server.polls = 0
    ground = lay_ground(sqlite_engine, items=3)
    run = batched(sqlite_engine, ground, repetitions=1)
    with writes.writing(sqlite_engine) as session:
        pending = plan_writes.list_pending(session=session, run_id=run)
        plan_writes.add_batch(session=session, run_id=run, pending=pending, worker="killed")
    step(sqlite_engine, run, 2)
    assert statuses(sqlite_engine, run) == {"lost": 1, "recorded": 1}
    assert check_exactly_once(sqlite_engine, run) == {2: 3}


def test_results_that_were_half_recorded_are_not_recorded_twice(
    sqlite_engine: Engine, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.polls = 0
    monkeypatch.setattr("core.judge.batches._PAGE", 2)
    ground = lay_ground(sqlite_engine, items=5)
    run = batched(sqlite_engine, ground, repetitions=1)
    step(sqlite_engine, run)
    record, calls = plan_writes.record_calls, 0

    def stop_half_way(**arguments: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        record(**arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(plan_writes, "record_calls", stop_half_way)
    with pytest.raises(KeyboardInterrupt):
        step(sqlite_engine, run)
    assert sum(tallies(sqlite_engine, run, ground).values()) == 4
    monkeypatch.setattr(plan_writes, "record_calls", record)
    step(sqlite_engine, run)
    assert check_exactly_once(sqlite_engine, run) == {1: 5}


def test_a_cancelled_run_cancels_its_batch_and_counts_the_rest(sqlite_engine: Engine, server: Loopback) -> None:
    server.polls = 99
    ground = lay_ground(sqlite_engine, items=4)
    run = batched(sqlite_engine, ground, repetitions=1)
    step(sqlite_engine, run)
    with writes.writing(sqlite_engine) as session:
        plan_writes.set_state(session=session, run_id=run, state=RunStatus.CANCELLED)
    step(sqlite_engine, run, 2)
    assert tallies(sqlite_engine, run, ground) == {"cancelled": 4}
    with reading(sqlite_engine) as session:
        assert plan_queries.list_active(session=session) == []


def test_the_limit_holds_for_what_is_handed_in(sqlite_engine: Engine, server: Loopback) -> None:
    # Each reply costs 100 x $10 + 20 x $50 a million tokens = $0.002 and is held at $0.004: 2 of 5 fit into $0.01.
    server.polls = 0
    ground = lay_ground(sqlite_engine, items=5)
    prices = {"input_price": 10.0, "output_price": 50.0, "call_reserve": 0.004, "spending_limit": 0.01}
    run = batched(sqlite_engine, ground, repetitions=1, **prices)
    step(sqlite_engine, run, 6)
    state = state_of(sqlite_engine, run)
    assert state.state == RunStatus.PAUSED
    assert 0.0 < state.spent <= 0.01
