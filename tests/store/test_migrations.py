"""Migrations make exactly the tables in code, once, whoever runs them."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import Engine, column, insert, select, table, text

from core.judge.redact import PATTERNS, as_expressions
from core.store import migrations, writes
from core.store.engine import open_engine, reading
from core.store.queries import get_revision, list_corpora
from core.store.tables import Corpus, RunState, Schedule, utc_now
from tests.conftest import REPO
from tests.judge.planning import lay_ground
from tests.store.builders import key_of

_STATE = {
    "state": "paused",
    "batched": False,
    "concurrency": 4,
    "planned": 1,
    "pilot": False,
    "price_date": "",
    "call_reserve": 0.0,
    "spent": 0.0,
    "input_tokens": 0,
    "output_tokens": 0,
    "error": "",
    "what_to_do": "",
    "worker": "",
}
"""A row of `run_state` as the schema before the list of redaction has it."""


def test_a_fresh_schema_has_the_tables_in_code(engine: Engine) -> None:
    assert migrations.differences(engine) == []


def test_differences_names_what_is_missing(database_url: str) -> None:
    engine = open_engine(database_url)
    assert "call" in str(migrations.differences(engine))
    engine.dispose()


def test_another_upgrade_changes_nothing(engine: Engine) -> None:
    with writes.writing(engine) as session:
        session.add(Corpus(name="kept", sha256="0"))
    migrations.upgrade(engine)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT name FROM corpus")).scalars().all() == ["kept"]
    assert migrations.differences(engine) == []


def test_threads_that_upgrade_at_once_wait_for_each_other(database_url: str) -> None:
    engines = [open_engine(database_url) for _ in range(8)]
    with ThreadPoolExecutor(len(engines)) as pool:
        list(pool.map(migrations.upgrade, engines))
    for engine in engines:
        assert migrations.differences(engine) == []
        engine.dispose()


def test_processes_that_start_at_once_wait_for_each_other(database_url: str) -> None:
    script = "import sys; from core.store.engine import get_engine; get_engine(sys.argv[1])"
    started = [
        subprocess.Popen([sys.executable, "-c", script, database_url], cwd=REPO, stderr=subprocess.PIPE, text=True)  # noqa: S603 - our own script
        for _ in range(3)
    ]
    ends = [process.communicate(timeout=120)[1] for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], ends
    engine = open_engine(database_url)
    assert migrations.differences(engine) == []
    engine.dispose()


def test_an_up_to_date_schema_is_not_locked_by_a_long_import(engine: Engine) -> None:
    # The upgrade would wait 30 s for the lock and then fail.
    with writes.writing(engine) as session:
        session.add(Corpus(name="half-way", sha256="0"))
        session.flush()
        migrations.upgrade(open_engine(engine.url.render_as_string(hide_password=False)))
        assert list_corpora(session=session).empty  # it has no items yet
    with writes.writing(engine) as session:
        assert get_revision(session=session) == 1


def test_runs_planned_before_the_list_of_redaction_keep_what_they_take_out(database_url: str) -> None:
    engine = open_engine(database_url)
    migrations.upgrade(engine, "0004")
    ground = lay_ground(engine, items=1)
    with writes.writing(engine) as session:
        runs = [key_of(writes.add_run(session=session, judge_id=ground.judge, corpus_id=ground.corpus)) for _ in "ab"]
        state = table("run_state", *map(column, ("run_id", "redacted", "started_at", *_STATE)))
        for run, redacted in zip(runs, (True, False), strict=True):
            session.execute(insert(state).values(run_id=run, redacted=redacted, started_at=utc_now(), **_STATE))
        schedule = Schedule(
            corpus_id=ground.corpus,
            judge_id=ground.judge,
            cron="0 3 * * *",
            next_at=utc_now(),
            options={"concurrency": 2, "redacted": True},
        )
        session.add(schedule)
    migrations.upgrade(engine)
    assert migrations.differences(engine) == []
    with reading(engine) as session:
        kept = {run: session.get_one(RunState, run).redaction for run in runs}
        assert kept == {runs[0]: as_expressions(PATTERNS), runs[1]: {}}
        assert session.get_one(RunState, runs[0]).concurrency == 4
        options = session.scalars(select(Schedule)).one().options
        assert options == {"concurrency": 2, "redaction": as_expressions(PATTERNS)}
    engine.dispose()
