"""Stores a page test can open: an empty one and one with the demo history."""

import shutil
from pathlib import Path

import pytest

from core.ingest.simulate import ensure_demo
from core.store.engine import DATABASE_PATH, DATABASE_URL, get_engine


@pytest.fixture(scope="session")
def demo_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo history, made once for all tests of a process; copy it, do not write into it."""
    path = tmp_path_factory.mktemp("demo") / "demo.db"
    engine = get_engine(f"sqlite:///{path}")
    ensure_demo(engine)
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    engine.dispose()
    return path


@pytest.fixture
def demo(demo_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A demo history of the test's own, which the pages read; returns its path."""
    shutil.copy(demo_file, tmp_path / "demo.db")
    return _point_at(tmp_path / "demo.db", monkeypatch)


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store that does not exist yet, which the pages read; returns its path."""
    return _point_at(tmp_path / "empty.db", monkeypatch)


def _point_at(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(DATABASE_URL, raising=False)
    monkeypatch.setenv(DATABASE_PATH, str(path))
    return path
