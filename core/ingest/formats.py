"""Choosing the reader: a file whose first character is a brace holds JSON Lines, any other is a table."""

from itertools import islice

from core.ingest.jsonl import JsonLines
from core.ingest.records import ImportRefused, Problem
from core.ingest.source import Source, undecodable
from core.ingest.table import Table

Reader = JsonLines | Table

_JSON_ENDINGS = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")


def open_reader(source: Source) -> Reader:
    """The reader for this file.

    Raises:
        ImportRefused: For an empty file, a JSON document that is not JSON Lines, or a header that cannot be read.
    """
    first = _first_character(source)
    if not first:
        raise ImportRefused(f"{source.name} is empty")
    if first == "[":
        raise ImportRefused(f"{source.name} is a JSON array; write one object a line (JSON Lines) instead")
    if first == "{" or source.name.lower().endswith(_JSON_ENDINGS):
        return JsonLines.open(source)
    return Table.open(source)


def sample(reader: Reader, rows: int) -> list[list[str]]:
    """The first good rows, for a preview and for guessing."""
    good = (row[1] for row in reader.rows() if not isinstance(row, Problem))
    return list(islice(good, rows))


def _first_character(source: Source) -> str:
    with source.text() as file:
        try:
            for piece in iter(lambda: file.read(4096), ""):
                if stripped := piece.lstrip():
                    return stripped[0]
        except UnicodeDecodeError as error:
            raise undecodable(source.name, 0, error) from error
    return ""
