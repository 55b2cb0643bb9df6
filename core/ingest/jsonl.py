"""JSON Lines as a collector of judge replies writes them: one object a line."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from core.ingest.mapping import Mapping
from core.ingest.records import ImportRefused, LineRefused, Problem, Record, shorten
from core.ingest.source import Source, undecodable

_HEADER_LINES = 1_000
_SPACE = " \t\r\n"


@dataclass(frozen=True)
class JsonLines:
    """A file with one JSON object a line.

    Attributes:
        source: The file.
        header: The keys of the first thousand objects, in order of first appearance.
    """

    source: Source
    header: tuple[str, ...]

    kind = "jsonl"

    @classmethod
    def open(cls, source: Source) -> "JsonLines":
        """Collect the keys.

        Raises:
            ImportRefused: When no line holds an object.
        """
        keys: dict[str, None] = {}
        for count, (_, found) in enumerate(_objects(source)):
            if count >= _HEADER_LINES:
                break
            if isinstance(found, dict):
                keys.update(dict.fromkeys(found))
        if not keys:
            raise ImportRefused(f'{source.name} holds no JSON object; every line must be one, like {{"item_id": …}}')
        return cls(source, tuple(keys))

    def rows(self) -> Iterator[tuple[int, list[str]] | Problem]:
        """Line number and values of every object, in header order, as text; a key left out is empty.

        Numbers keep the text that the file has, so that no precision is lost and 9.2e+124 stays readable.
        """
        for count, (line, found) in enumerate(_objects(self.source), start=1):
            if count > self.source.limits.rows:
                raise ImportRefused(f"{self.source.name} has more than {self.source.limits.rows:,} rows; split it")
            if isinstance(found, Problem):
                yield found
            else:
                yield line, [value if type(value) is str else _text(value) for value in map(found.get, self.header)]

    def records(self, mapping: Mapping) -> Iterator[Record | Problem]:
        """Every record by role, or the problem with its line."""
        pick = mapping.picker(self.header)
        for row in self.rows():
            yield row if isinstance(row, Problem) else Record._make((row[0], *pick(row[1])))


def _objects(source: Source) -> Iterator[tuple[int, dict[str, Any] | Problem]]:
    decoder = json.JSONDecoder(
        object_pairs_hook=_unique, parse_float=str, parse_int=str, parse_constant=str, strict=True
    )
    decode = decoder.raw_decode  # most lines are an object and no more, and need no further look
    line = 0
    with source.text() as file:
        try:
            for line, text in enumerate(file, start=1):
                if text[:1] == "{" and text[-2:] == "}\n" and "\\u" not in text:
                    try:
                        found, end = decode(text)
                    except (ValueError, RecursionError):
                        end = 0
                    if end == len(text) - 1:
                        yield line, found
                        continue
                if not text.isspace():
                    yield line, _object(decoder, line, text)
        except UnicodeDecodeError as error:
            raise undecodable(source.name, line, error) from error


def _object(decoder: json.JSONDecoder, line: int, text: str) -> dict[str, Any] | Problem:
    try:
        found, end = decoder.raw_decode(text.lstrip(_SPACE))
        if end < len(text) and (rest := text.lstrip(_SPACE)[end:].strip(_SPACE)):
            return Problem(line, "", shorten(rest), "more text after the object; every line must hold one object")
        if "\\u" in text:
            _storable(found)
    except json.JSONDecodeError as error:
        return Problem(line, "", shorten(text.strip()), f"not JSON: {error.msg} at character {error.pos + 1}")
    except RecursionError:
        return Problem(line, "", shorten(text.strip()), "nested too deeply")
    except LineRefused as refusal:
        return Problem(line, shorten(refusal.column), shorten(refusal.value), refusal.reason)
    if not isinstance(found, dict):
        return Problem(line, "", shorten(text.strip()), "not a JSON object; every line must be one")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise LineRefused(twice, "", f"the key {twice} stands twice in the object")
    return found


def _storable(found: Any) -> None:
    """Refuse what JSON can escape and no database can keep: NUL characters and halves of surrogate pairs."""
    if isinstance(found, str):
        if "\0" in found:
            raise LineRefused("", found, "holds an escaped NUL character, which is no text")
        if found.encode(errors="replace").decode() != found:
            raise LineRefused("", found, "holds half of a surrogate pair (\\ud800 to \\udfff), which is no text")
    elif isinstance(found, list):
        for part in found:
            _storable(part)
    elif isinstance(found, dict):
        _storable([*found, *found.values()])


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False)
