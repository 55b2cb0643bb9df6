"""Stores with a judge that can be asked and a planned run, and a worker process to kill."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, func, select

from core.judge.asking import JudgeDraft
from core.judge.protocol import Form
from core.store import plan_queries, plan_writes, writes
from core.store.engine import reading
from core.store.plan_writes import PlanSpec
from core.store.queries import list_criteria
from core.store.specs import ItemSpec, LevelSpec, RubricSpec, content_hash
from core.store.tables import Call, CallAttempt, JudgeKind, PlannedCall, RunState
from tests.conftest import REPO
from tests.processes import running
from tests.store.builders import add_items, criterion_spec, key_of

KEY = "sk-ant-loopback-0123456789abcdef"

_NURSERY = """
import os, sys
from datetime import timedelta
from core.judge.worker import work
url, lease, patience = sys.argv[1], timedelta(seconds=float(sys.argv[2])), float(sys.argv[3])
for line in sys.stdin:
    if line.strip() == "start":
        child = os.fork()
        if child == 0:
            work(url, once=True, lease=lease, patience=patience)
            os._exit(0)
        print(child, flush=True)
    else:
        print(os.waitpid(int(line), 0)[1], flush=True)
"""
"""Starts workers from a process that has imported everything, which takes longer than to start one."""


@dataclass(frozen=True)
class Ground:
    """Ids of a judge and a corpus to plan runs with."""

    judge: int
    corpus: int
    items: tuple[int, ...]
    criteria: tuple[int, ...]


def lay_ground(
    engine: Engine, *, items: int, form: Form = Form.SINGLE, kind: JudgeKind = JudgeKind.ANTHROPIC
) -> Ground:
    """A judge and a corpus of `items` texts."""
    pairs = form is Form.PAIRWISE
    spec = RubricSpec("rubric", (criterion_spec("tone"), criterion_spec("facts"))) if not pairs else _pair_rubric()
    with writes.writing(engine) as session:
        rubric = key_of(writes.add_rubric(session=session, spec=spec))
        draft = JudgeDraft(name="loopback", kind=kind, rubric_id=rubric, model="claude-test", form=form)
        judge = key_of(writes.add_judge(session=session, spec=draft.spec(session=session)))
        texts = [f"candidate {place}, write to ann{place}@example.org" for place in range(items)]
        ids = add_items(
            session,
            "corpus",
            [
                ItemSpec(
                    f"i{place:05}",
                    content_hash(text, "other" if pairs else None),
                    candidate=text,
                    candidate_b="other" if pairs else None,
                    request=f"request {place}",
                    pair=pairs,
                )
                for place, text in enumerate(texts)
            ],
        )
        corpus = key_of(writes.add_corpus(session=session, name="corpus", item_ids=ids))
        criteria = tuple(view.id for view in list_criteria(session=session, rubric_id=rubric))
    return Ground(judge, corpus, ids, criteria)


def _pair_rubric() -> RubricSpec:
    levels = (LevelSpec(-1, "slot second"), LevelSpec(0, "neither"), LevelSpec(1, "slot first"))
    return RubricSpec("pairs", (criterion_spec("preference", levels=levels, gate=1.0),))


def plan(engine: Engine, ground: Ground, **changes: Any) -> int:
    """A planned run of every item twice."""
    usual: dict[str, Any] = {"judge_id": ground.judge, "corpus_id": ground.corpus, "item_ids": ground.items}
    spec = PlanSpec(**(usual | {"repetitions": 2} | changes))
    with writes.writing(engine) as session:
        return key_of(plan_writes.add_plan(session=session, spec=spec))


class Nursery:
    """Starts worker processes, which end when nothing is left to do, and buries them."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def start(self) -> int:
        return self._ask("start")

    def wait(self, worker: int) -> int:
        return self._ask(str(worker))

    def kill(self, worker: int) -> None:
        os.kill(worker, signal.SIGKILL)
        self.wait(worker)

    def _ask(self, line: str) -> int:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@contextmanager
def nursery(url: str, server: str, *, lease: float = 2.0, patience: float = 0.05) -> Iterator[Nursery]:
    """Worker processes for a store and an endpoint."""
    environment = os.environ | {"ANTHROPIC_BASE_URL": server, "ANTHROPIC_API_KEY": KEY}
    command = [sys.executable, "-c", _NURSERY, url, str(lease), str(patience)]
    with running(command, cwd=REPO, env=environment, piped=True) as process:
        yield Nursery(process)


def state_of(engine: Engine, run_id: int) -> RunState:
    with reading(engine) as session:
        state = plan_queries.get_state(session=session, run_id=run_id)
        assert state is not None
        return state


def check_exactly_once(engine: Engine, run_id: int) -> Counter[int]:
    """Every planned call has one recorded end, made by its last attempt; returns calls by number of attempts."""
    call, planned, attempt = Call.__table__.c, PlannedCall.__table__.c, CallAttempt.__table__.c
    key = ("item_id", "repetition", "slot_order", "part")
    with engine.connect() as connection:
        recorded = connection.execute(
            select(*(call[name] for name in key), call.attempt).where(call.run_id == run_id)
        ).all()
        wanted = connection.execute(
            select(*(planned[name] for name in key), planned.id).where(planned.run_id == run_id)
        ).all()
        started: dict[int, int] = dict(
            connection.execute(
                select(attempt.planned_call_id, func.count())
                .where(attempt.run_id == run_id, attempt.event == "started")
                .group_by(attempt.planned_call_id)
            ).all()
        )
    assert sorted(row[:4] for row in recorded) == sorted(row[:4] for row in wanted)
    attempts = {row[:4]: row[4] for row in recorded}
    assert {row[:4]: started[row[4]] for row in wanted} == attempts
    return Counter(attempts.values())
