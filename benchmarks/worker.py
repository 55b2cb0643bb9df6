"""The worker against a loopback endpoint that answers after 200 ms, with 50 calls in flight.

Run as `python -m benchmarks.worker` it makes the planned calls of the store that the environment names.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import func, select

from benchmarks.measuring import Line, key_of, peak_memory
from core.judge.asking import JudgeDraft
from core.judge.protocol import Form
from core.judge.worker import work
from core.store import plan_writes, writes
from core.store.engine import DATABASE_PATH, database_url, get_engine, reading
from core.store.plan_writes import PlanSpec
from core.store.specs import CriterionSpec, ItemSpec, LevelSpec, RubricSpec, content_hash
from core.store.tables import Call, CallAttempt, JudgeKind
from tests.processes import running

LATENCY, IN_FLIGHT = 0.2, 50
IDEAL = IN_FLIGHT / LATENCY
CALLS, FEW = 20_000, 2_000
_REPETITIONS = 20


def measure(folder: Path) -> Iterator[Line]:
    """The rate of a long run, and whether its memory is that of a short one."""
    with _endpoint() as url:
        short = _run(folder / "short.db", FEW, url)
        long = _run(folder / "long.db", CALLS, url)
    rate = long["rate"]
    yield Line(
        f"Worker, {CALLS:,} calls, {IN_FLIGHT} in flight, {LATENCY * 1000:.0f} ms each",
        f"{rate:.0f} calls a second, {rate / IDEAL:.0%} of the ideal {IDEAL:.0f}",
        "at least 90%",
        rate >= 0.9 * IDEAL,
    )
    yield Line(
        f"Worker, memory of {CALLS:,} calls beside {FEW:,}",
        f"{long['memory']:.0f} MB beside {short['memory']:.0f} MB",
        "at most a quarter more",
        long["memory"] <= 1.25 * short["memory"],
    )


def _run(store: Path, calls: int, url: str) -> dict[str, float]:
    _plan(store, calls)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.worker"],
        env={**os.environ, DATABASE_PATH: str(store), "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"the worker failed: {done.stderr}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _plan(store: Path, calls: int) -> None:
    levels = tuple(LevelSpec(float(value), f"level {value}") for value in range(1, 6))
    rubric_spec = RubricSpec("benchmark", (CriterionSpec("quality", levels, gate=4.0),))
    texts = [f"answer {place}" for place in range(calls // _REPETITIONS)]
    engine = get_engine(f"sqlite:///{store}")
    with writes.writing(engine) as session:
        rubric = writes.add_rubric(session=session, spec=rubric_spec)
        draft = JudgeDraft(
            name="benchmark", kind=JudgeKind.ANTHROPIC, rubric_id=key_of(rubric.id), model="loopback", form=Form.SINGLE
        )
        judge = writes.add_judge(session=session, spec=draft.spec(session=session))
        book = writes.ItemBook(session=session, collection="benchmark")
        items = [
            book.find(ItemSpec(f"item-{place:05}", content_hash(text), request="question", candidate=text))
            for place, text in enumerate(texts)
        ]
        book.flush()
        corpus = writes.add_corpus(session=session, name="benchmark", item_ids=items)
        plan_writes.add_plan(
            session=session,
            spec=PlanSpec(
                judge_id=key_of(judge.id),
                corpus_id=key_of(corpus.id),
                item_ids=tuple(items),
                repetitions=_REPETITIONS,
                concurrency=IN_FLIGHT,
            ),
        )
    engine.dispose()


@contextmanager
def _endpoint() -> Iterator[str]:
    """The address of a loopback endpoint in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tests.judge.server", str(port), str(LATENCY)]
    with running(command, piped=True) as server:
        if server.stdout is None or not (url := server.stdout.readline().strip()):
            raise SystemExit("the loopback endpoint did not start")
        yield url


def _work() -> dict[str, float]:
    """Make every planned call; the rate is taken from the first request to the last."""
    work(database_url(), once=True)
    attempt = CallAttempt.__table__.c
    with reading(get_engine(database_url())) as session:
        calls = session.scalar(select(func.count()).select_from(Call.__table__)) or 0
        first, last = session.execute(select(func.min(attempt.created_at), func.max(attempt.created_at))).one()
    return {"rate": calls / ((last - first).total_seconds() + LATENCY), "memory": peak_memory()}


if __name__ == "__main__":
    print(json.dumps(_work()))
