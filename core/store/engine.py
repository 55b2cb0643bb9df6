"""Opening the store: SQLite under data/ by default, PostgreSQL or another file by EVENHAND_DATABASE_URL."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from sqlalchemy import Connection, Engine, event, make_url
from sqlmodel import Session, create_engine

from core.store import migrations
from core.store.locking import WRITING

DATABASE_URL = "EVENHAND_DATABASE_URL"
DATABASE_PATH = "EVENHAND_DATABASE_PATH"
DEFAULT_PATH = Path(__file__).parents[2] / "data" / "evenhand.db"

_BUSY_SECONDS = 30


def database_url() -> str:
    """The store's address: EVENHAND_DATABASE_URL, else the file EVENHAND_DATABASE_PATH, else data/evenhand.db."""
    url = os.environ.get(DATABASE_URL)
    if url:
        return _with_driver(url)
    return f"sqlite:///{os.environ.get(DATABASE_PATH) or DEFAULT_PATH}"


def _with_driver(url: str) -> str:
    """Name the PostgreSQL driver that is installed where the address names none."""
    for scheme in ("postgresql://", "postgres://"):
        if url.startswith(scheme):
            return "postgresql+psycopg://" + url.removeprefix(scheme)
    return url


def open_engine(url: str) -> Engine:
    """An engine for `url`, ready to read and write; the schema is not touched.

    SQLite is opened with a write-ahead log, foreign keys and a busy timeout of 30 s, and begins a writing transaction
    with the write lock, so that two writers wait for each other rather than fail half-way.
    """
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        return create_engine(url, pool_pre_ping=True)
    if parsed.database:
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(url, connect_args={"timeout": _BUSY_SECONDS, "check_same_thread": False})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # the driver's own transactions begin too late to hold a snapshot
    _switch_to_wal(connection)
    for pragma in ("foreign_keys=ON", "synchronous=NORMAL", "cache_size=-65536"):
        connection.execute(f"PRAGMA {pragma}")


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Try until nobody is in the way: SQLite's own timeout does not cover the switch of a new file."""
    deadline = monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or monotonic() > deadline:
                raise
            sleep(0.02)
        else:
            return


def _begin_sqlite(connection: Connection) -> None:
    writing = connection.get_execution_options().get(WRITING, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


@cache
def get_engine(url: str | None = None) -> Engine:
    """The process's engine for `url` (default `database_url()`), with the schema brought up to date once."""
    engine = open_engine(url or database_url())
    migrations.upgrade(engine)
    return engine


@contextmanager
def reading(engine: Engine) -> Iterator[Session]:
    """A session for queries; nothing is committed."""
    with Session(engine) as session:
        yield session
