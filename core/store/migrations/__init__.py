"""Schema changes, oldest first, run by Alembic from code: there is no configuration file to keep in step."""

from pathlib import Path

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Engine, text

from core.store.tables import Base

_LOCK = 0x45564E48
"""Key of the PostgreSQL advisory lock: processes that start together migrate one after another."""


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Bring the schema to `revision`; a schema already there is left alone."""
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent))
        config.attributes["connection"] = connection
        command.upgrade(config, revision)


def differences(engine: Engine) -> list[object]:
    """What the tables in code have that the schema has not, and the reverse; empty when the migrations are complete."""
    with engine.connect() as connection:
        return list(compare_metadata(MigrationContext.configure(connection), Base.metadata))
