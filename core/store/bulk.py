"""Fast inserts of many narrow rows: the driver's executemany on SQLite, COPY on PostgreSQL."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Table
from sqlmodel import Session


def bulk_insert(session: Session, table: Table, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert `rows`, tuples in the order of `columns`, inside the session's transaction.

    SQLAlchemy turns every row into a dictionary and back, which costs more than the insert itself. Columns that are not
    named must have a default in the database.
    """
    if not rows:
        return
    connection = session.connection()
    quote = connection.dialect.identifier_preparer.quote
    names = ", ".join(quote(column) for column in columns)
    if connection.dialect.name == "sqlite":
        places = ", ".join("?" * len(columns))
        connection.exec_driver_sql(f"INSERT INTO {quote(table.name)} ({names}) VALUES ({places})", list(rows))  # noqa: S608 - our own names
        return
    cursor = connection.connection.cursor()
    with cursor.copy(f"COPY {quote(table.name)} ({names}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def sqlite_time(value: datetime | None) -> str | None:
    """A time as SQLAlchemy writes it into SQLite, which the driver would not do."""
    return None if value is None else value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
