"""Small files and imports for the tests of core.ingest."""

from typing import Any

from sqlalchemy import Engine, text

from core.ingest.load import ImportReport, run_import
from core.ingest.mapping import Mapping
from core.ingest.rubrics import from_levels
from core.ingest.source import Source
from core.store.specs import RubricSpec

HEADER = "item,repetition,judge,score"


def csv(*rows: str, header: str = HEADER) -> bytes:
    """A CSV file of these lines."""
    return "\n".join([header, *rows, ""]).encode()


def mapping(header: str = HEADER, **parts: Any) -> Mapping:
    """Every column under the role of its own name."""
    return Mapping({role: (role,) for role in header.split(",")}, **parts)


def rubric(*criteria: str, levels: tuple[float, ...] = (1, 2, 3, 4, 5), gate: float = 3) -> RubricSpec:
    """The same levels for every criterion."""
    return from_levels("test", criteria or ("overall",), {"": tuple(map(float, levels))}, {"": float(gate)})


def run(engine: Engine, data: bytes, *, name: str = "history.csv", **options: Any) -> ImportReport:
    """Import `data`, by default with every column under the role of its own name."""
    options = {"rubric": rubric()} | options
    if "mapping" not in options:
        options["mapping"] = mapping(data.split(b"\n", 1)[0].decode())
    return run_import(engine, Source.from_bytes(name, data), **options)


def rows(engine: Engine, statement: str) -> list[tuple[Any, ...]]:
    """What the store answers to a statement."""
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(statement))]


def count(engine: Engine, table: str) -> int:
    """How many rows a table holds."""
    return int(rows(engine, f'SELECT count(*) FROM "{table}"')[0][0])  # noqa: S608 - a table name of this suite
