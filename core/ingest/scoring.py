"""From the text in a score and a status column to a level of the rubric, or to the reason there is none."""

import re
from collections import Counter
from collections.abc import Mapping as AnyMapping
from typing import NamedTuple

from core.ingest.mapping import OK, STATUS_WORDS, Mapping
from core.ingest.records import LineRefused
from core.store.specs import CriterionSpec, ScoreRow
from core.store.tables import Unscored

_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_MISSING = frozenset(("", "null", "none"))
_MOST_CACHED = 100_000


class Criterion(NamedTuple):
    """A stored criterion as the reader of scores needs it."""

    id: int
    key: str
    levels: frozenset[float]

    @classmethod
    def of(cls, spec: CriterionSpec, criterion_id: int) -> "Criterion":
        """The criterion `spec`, stored under `criterion_id`."""
        return cls(criterion_id, spec.key, frozenset(level.value for level in spec.levels))


class Spelling(NamedTuple):
    """How one way of writing a value was read."""

    criterion: str
    raw: str
    value: float
    rows: int


class StatusUse(NamedTuple):
    """How one status word was read, and how often."""

    word: str
    meaning: str
    rows: int


def number(text: str) -> float | None:
    """The decimal number that `text` is, spaces around it aside; None for anything else, NaN and Infinity included."""
    stripped = text.strip()
    return float(stripped) if _NUMBER.fullmatch(stripped) else None


def canonical(value: float) -> str:
    """The shortest text of a number: 4 for 4.0."""
    return repr(value).removesuffix(".0")


class ScoreReader:
    """Reads scores and labels under one mapping, and keeps count of how each spelling was read.

    A status that is not ok wins over the score. An empty score, null or none is `verdict_missing`; NaN, Infinity, true,
    false and other words are `wrong_type`; a number that is no level is `out_of_range`. The file's own text is kept
    wherever it is not the value itself.
    """

    def __init__(self, mapping: Mapping) -> None:
        self._values = {_plain(word): value for word, value in mapping.values.items()}
        self._statuses = STATUS_WORDS | {_plain(word): meaning for word, meaning in mapping.statuses.items()}
        self._cache: dict[tuple[int, str, str], ScoreRow] = {}
        self._rows: Counter[tuple[int, str, str]] = Counter()
        self._keys: dict[int, str] = {}
        self._labels: Counter[tuple[str, str, float]] = Counter()

    def score(self, criterion: Criterion, text: str, status: str) -> ScoreRow:
        """The score without its words.

        Raises:
            LineRefused: For a status word whose meaning is unknown.
        """
        key = (criterion.id, text, status)
        row = self._cache.get(key)
        if row is None:
            row = self._read(criterion, text, status)
            if len(self._cache) >= _MOST_CACHED:
                return row
            self._cache[key] = row
            self._keys[criterion.id] = criterion.key
        self._rows[key] += 1
        return row

    def _read(self, criterion: Criterion, text: str, status: str) -> ScoreRow:
        meaning = self._statuses.get(_plain(status))
        if meaning is None:
            raise LineRefused(
                "status", status, f"unknown status; say what it means with --status {status.strip()}=REASON or =ok"
            )
        value, reason = (None, meaning) if meaning != OK else self._value(criterion, text)
        raw = text if value is None or text != canonical(value) else None
        return ScoreRow(criterion.id, value, reason, raw or None)

    def _value(self, criterion: Criterion, text: str) -> tuple[float | None, str | None]:
        value = self._values.get(_plain(text))
        if value is None:
            value = number(text)
        if value is None:
            return None, Unscored.VERDICT_MISSING.value if _plain(text) in _MISSING else Unscored.WRONG_TYPE.value
        return (value, None) if value in criterion.levels else (None, Unscored.OUT_OF_RANGE.value)

    def label(self, criterion: Criterion, text: str) -> float:
        """A person's value. It may lie between two levels: means of several raters are labels too.

        Raises:
            LineRefused: For a text that is neither a number nor mapped to one, or a number outside the levels.
        """
        value = self._values.get(_plain(text))
        if value is None:
            value = number(text)
        if value is None:
            raise LineRefused("label", text, f"is no number; say what it means with --value {text.strip()}=NUMBER")
        if not min(criterion.levels) <= value <= max(criterion.levels):
            raise LineRefused("label", text, f"lies outside the levels of {criterion.key}")
        if text != canonical(value):
            self._labels[f"{criterion.key}, label", text, value] += 1
        return value

    def spellings(self) -> tuple[Spelling, ...]:
        """Every way of writing a score or label that is not the plain number, with the value it was read as."""
        found: Counter[tuple[str, str, float]] = Counter()
        for key, rows in self._rows.items():
            row = self._cache[key]
            if row.value is not None and row.raw_value is not None:
                found[self._keys[key[0]], row.raw_value, row.value] += rows
        found.update(self._labels)
        return tuple(Spelling(*key, rows) for key, rows in sorted(found.items()))

    def statuses(self) -> tuple[StatusUse, ...]:
        """Every status word met, with its meaning."""
        found: Counter[str] = Counter()
        for (_, _, status), rows in self._rows.items():
            found[status] += rows
        return tuple(StatusUse(word, self._statuses[_plain(word)], rows) for word, rows in sorted(found.items()))


def _plain(word: str) -> str:
    return word.strip().casefold()


def known_words(words: AnyMapping[str, str], extra: AnyMapping[str, str]) -> dict[str, str]:
    """The words known anyway with those of a mapping, compared without case and outer spaces."""
    return dict(words) | {_plain(word): meaning for word, meaning in extra.items()}
