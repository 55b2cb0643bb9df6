"""Fast inserts of many narrow rows: the driver's executemany on SQLite, COPY on PostgreSQL."""

from collections.abc import Sequence
from datetime import datetime
from itertools import chain
from typing import Any

import psycopg
from sqlalchemy import Dialect, Table
from sqlalchemy.exc import DBAPIError
from sqlmodel import Session

from core.store.tables import UtcDateTime

_UTC = UtcDateTime()
_TOGETHER = 50
"""Rows of one SQLite statement: each statement costs about as much as half a row."""


def bulk_insert(session: Session, table: Table, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert `rows`, tuples in the order of `columns`, inside the session's transaction.

    SQLAlchemy turns every row into a dictionary and back, which costs more than the insert itself. Columns that are not
    named must have a default in the database.

    Raises:
        DBAPIError: As SQLAlchemy would raise it, on both backends.
    """
    if not rows:
        return
    connection = session.connection()
    quote = connection.dialect.identifier_preparer.quote
    names = ", ".join(quote(column) for column in columns)
    if connection.dialect.name == "sqlite":
        insert = f"INSERT INTO {quote(table.name)} ({names}) VALUES "  # noqa: S608 - our own names
        places = f"({', '.join('?' * len(columns))})"
        whole = len(rows) - len(rows) % _TOGETHER
        if whole:
            groups = [tuple(chain.from_iterable(rows[at : at + _TOGETHER])) for at in range(0, whole, _TOGETHER)]
            connection.exec_driver_sql(insert + ", ".join([places] * _TOGETHER), groups)
        if whole < len(rows):
            connection.exec_driver_sql(insert + places, list(rows[whole:]))
        return
    statement = f"COPY {quote(table.name)} ({names}) FROM STDIN"
    try:
        with connection.connection.cursor().copy(statement) as copy:
            for row in rows:
                copy.write_row(row)
    except psycopg.Error as error:
        raise DBAPIError.instance(statement, None, error, psycopg.Error, dialect=connection.dialect) from error


def bulk_upsert(
    session: Session, table: Table, columns: Sequence[str], rows: Sequence[tuple[Any, ...]], *, update: str
) -> None:
    """Insert `rows`, or where the primary key is taken change the row by `update`, an SQL assignment."""
    if not rows:
        return
    connection = session.connection()
    quote = connection.dialect.identifier_preparer.quote
    names = ", ".join(quote(column) for column in columns)
    places = ", ".join(["?" if connection.dialect.name == "sqlite" else "%s"] * len(columns))
    key = ", ".join(quote(column.name) for column in table.primary_key)
    connection.exec_driver_sql(
        f"INSERT INTO {quote(table.name)} ({names}) VALUES ({places}) ON CONFLICT ({key}) DO UPDATE SET {update}",  # noqa: S608 - our own names
        list(rows),
    )


def stored_time(value: datetime | None, dialect: Dialect) -> datetime | str | None:
    """A time as the driver takes it: in SQLite the text that SQLAlchemy would write. A time without zone is refused."""
    moment = _UTC.process_bind_param(value, dialect)
    if moment is None or dialect.name != "sqlite":
        return moment
    return moment.replace(tzinfo=None).isoformat(" ", "microseconds")
