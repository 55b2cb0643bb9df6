"""Schema changes, oldest first, run by Alembic from code: there is no configuration file to keep in step."""

from pathlib import Path

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, text

from core.store.locking import WRITING
from core.store.tables import Base

_LOCK = 0x45564E48
"""Key of the PostgreSQL advisory lock: processes that start together migrate one after another."""


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Bring the schema to `revision`; a schema already there is left alone.

    Processes that start together wait for each other. An up-to-date schema is not locked, so that a start need not wait
    for a long import.
    """
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    if revision == "head" and _is_current(engine, config):
        return
    with engine.execution_options(**{WRITING: True}).begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        config.attributes["connection"] = connection
        command.upgrade(config, revision)


def _is_current(engine: Engine, config: Config) -> bool:
    with engine.connect() as connection:
        stored = MigrationContext.configure(connection).get_current_heads()
    return set(stored) == set(ScriptDirectory.from_config(config).get_heads())


def differences(engine: Engine) -> list[object]:
    """What the tables in code have that the schema has not, and the reverse; empty when the migrations are complete."""
    with engine.connect() as connection:
        return list(compare_metadata(MigrationContext.configure(connection), Base.metadata))
