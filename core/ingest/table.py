"""Long CSV and TSV files."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass

from core.ingest.mapping import Mapping
from core.ingest.records import ImportRefused, Problem, Record, shorten
from core.ingest.source import Source, undecodable

_DELIMITERS = ",\t;"


@dataclass(frozen=True)
class Table:
    """A delimited file with one header line.

    Attributes:
        source: The file.
        header: Column names; an unnamed column is called "column N".
        delimiter: Comma, tab or semicolon, whichever the header has most of.
    """

    source: Source
    header: tuple[str, ...]
    delimiter: str

    kind = "table"

    @classmethod
    def open(cls, source: Source) -> "Table":
        """Read the header.

        Raises:
            ImportRefused: For an empty file, a header that cannot be read or names that stand twice.
        """
        with source.text() as file:
            try:
                line = file.readline()
            except UnicodeDecodeError as error:
                raise undecodable(source.name, 0, error) from error
        delimiter = max(_DELIMITERS, key=line.count)
        names = next((values for _, values in _rows(source, delimiter) if not isinstance(values, str)), [])
        if not any(name.strip() for name in names):
            raise ImportRefused(f"{source.name} has no header line; its first line must name the columns")
        header = tuple(name.strip() or f"column {place}" for place, name in enumerate(names, start=1))
        twice = sorted({name for name in header if header.count(name) > 1})
        if twice:
            raise ImportRefused(
                f"{source.name}: the header names {', '.join(twice)} more than once; rename the columns"
            )
        return cls(source, header, delimiter)

    def rows(self) -> Iterator[tuple[int, list[str]] | Problem]:
        """Line number and values of every record, in header order; blank lines are passed over.

        Raises:
            ImportRefused: For undecodable bytes or more rows than the limit.
        """
        width = len(self.header)
        rows = _rows(self.source, self.delimiter)
        next(rows)
        for count, (line, values) in enumerate(rows, start=1):
            if count > self.source.limits.rows:
                raise ImportRefused(f"{self.source.name} has more than {self.source.limits.rows:,} rows; split it")
            if isinstance(values, str):
                yield Problem(line, "", "", f"{values}; check the quotes on this line")
            elif len(values) != width:
                found = self.delimiter.join(values)
                yield Problem(line, "", shorten(found), f"{len(values)} values where the header has {width}")
            else:
                yield line, values

    def records(self, mapping: Mapping) -> Iterator[Record | Problem]:
        """Every record by role, or the problem with its line."""
        pick = mapping.picker(self.header)
        make = Record._make
        for row in self.rows():
            yield row if isinstance(row, Problem) else make((row[0], *pick(row[1])))


def _rows(source: Source, delimiter: str) -> Iterator[tuple[int, list[str] | str]]:
    """Line number and values, or what the CSV reader objects to."""
    csv.field_size_limit(source.limits.line)
    with source.text() as file:
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        end = 0
        while True:
            start = end + 1
            try:
                for values in reader:
                    if values:
                        yield start, values
                    start = reader.line_num + 1
            except csv.Error as error:
                end = reader.line_num
                yield start, str(error)
            except UnicodeDecodeError as error:
                raise undecodable(source.name, reader.line_num, error) from error
            else:
                return
