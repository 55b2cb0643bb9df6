"""Writers wait for each other, and one that dies leaves nothing behind."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import Engine
from sqlmodel import Session

from core.store import writes
from core.store.engine import open_engine
from core.store.queries import get_revision, get_score_matrix, get_tallies
from core.store.tables import Corpus
from tests.conftest import REPO
from tests.store.builders import call, count_rows, get_run, lay_ground, record

ROUNDS = 8
PATIENCE = 60

CRASH = """
import os, sys
from core.store import writes
from core.store.engine import open_engine
from tests.store.builders import call, get_run

run_id, item, criterion = map(int, sys.argv[2:])
with writes.writing(open_engine(sys.argv[1])) as session:
    recorder = writes.RunRecorder(session=session, run=get_run(session, run_id))
    recorder.record([call(item, repetition, criterion) for repetition in range(50)])
    recorder.finish()
    print("recorded", flush=True)
    os._exit(9)
"""


def address(engine: Engine) -> str:
    return engine.url.render_as_string(hide_password=False)


def test_two_writers_on_one_run_lose_no_call_and_no_revision(engine: Engine) -> None:
    with writes.writing(engine) as session:
        ground = lay_ground(session, items=1)
    (item,), criterion = ground.items, ground.criteria[0]
    together = threading.Barrier(2)

    def write(part: int) -> None:
        own = open_engine(address(engine))
        together.wait(PATIENCE)
        for place in range(ROUNDS):
            with writes.writing(own) as session:
                record(session, ground.run, [call(item, 2 * place + part, criterion)])
        own.dispose()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, range(2)))
    with Session(engine) as session:
        matrix = get_score_matrix(session=session, run_ids=[ground.run], criterion_id=criterion)
        assert matrix.outcomes.tolist() == [[1] * 2 * ROUNDS]
        assert get_tallies(session=session, run_ids=[ground.run], criterion_id=criterion) == {"scored": 2 * ROUNDS}
        assert get_run(session, ground.run).revision == 2 * ROUNDS
        assert get_revision(session=session) == 2 * ROUNDS + 1


def test_on_sqlite_the_second_writer_begins_when_the_first_has_ended(sqlite_engine: Engine) -> None:
    began = threading.Event()
    steps: list[str] = []

    def second() -> None:
        assert began.wait(PATIENCE)
        with writes.writing(sqlite_engine) as session:
            steps.append("second")
            session.add(Corpus(name="second", sha256="0"))

    thread = threading.Thread(target=second)
    thread.start()
    with writes.writing(sqlite_engine) as session:
        session.add(Corpus(name="first", sha256="0"))
        session.flush()
        began.set()
        thread.join(timeout=0.5)
        assert thread.is_alive()
        steps.append("first")
    thread.join(PATIENCE)
    assert steps == ["first", "second"]


def test_readers_do_not_wait_for_a_writer_and_see_no_half_of_it(engine: Engine) -> None:
    with writes.writing(engine) as writer:
        lay_ground(writer)
        writer.flush()
        with Session(engine) as reader:
            assert get_revision(session=reader) == 0
            assert count_rows(engine)["item"] == 0
    assert count_rows(engine)["item"] == 3


def test_a_process_that_dies_while_writing_leaves_nothing(engine: Engine) -> None:
    with writes.writing(engine) as session:
        ground = lay_ground(session, items=1)
    (item,), criterion = ground.items, ground.criteria[0]
    before = count_rows(engine)
    arguments = [address(engine), *map(str, (ground.run, item, criterion))]
    died = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, "-c", CRASH, *arguments], cwd=REPO, capture_output=True, text=True, timeout=120, check=False
    )
    assert (died.returncode, died.stdout) == (9, "recorded\n"), died.stderr
    assert count_rows(engine) == before
    with writes.writing(engine) as session:
        assert get_run(session, ground.run).revision == 0
        record(session, ground.run, [call(item, 0, criterion)])
    assert count_rows(engine)["call"] == 1
