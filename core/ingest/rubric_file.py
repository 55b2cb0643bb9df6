"""Rubrics as JSON files that people write by hand, so every error names the file, the criterion and the field."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from core.store.specs import CriterionSpec, LevelSpec, RubricSpec

_REQUIRED: Any = object()
_RUBRIC_FIELDS = ("name", "instructions", "ready_rule", "simulated", "criteria")
_CRITERION_FIELDS = ("key", "question", "weight", "gate", "veto", "levels")
_LEVEL_FIELDS = ("value", "anchor")


def load_rubric(path: Path) -> RubricSpec:
    """Read a rubric from a JSON file.

    The file holds an object with `name` and `criteria`, optionally `instructions`, `ready_rule` and `simulated`. A
    criterion has `key`, `gate` and `levels`, optionally `question`, `weight` (1 by default) and `veto`. A level has
    `value` and optionally `anchor`. Unknown and repeated fields are refused, since they are usually misspelt.

    Raises:
        ValueError: Names the file, the criterion and the field that cannot be read.
        OSError: When the file cannot be opened.
    """
    return parse_rubric(read_text(path), source=path.name)


def read_text(path: Path) -> str:
    """The text of a rubric file.

    Raises:
        ValueError: Names the file when it is not UTF-8.
        OSError: When the file cannot be opened.
    """
    return decode(path.read_bytes(), source=path.name)


def decode(data: bytes, *, source: str) -> str:
    """The text of a rubric file's bytes; `source` stands in the message.

    Raises:
        ValueError: When they are not UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{source}: not UTF-8 text ({error.reason} at byte {error.start})") from error


def parse_rubric(text: str, *, source: str) -> RubricSpec:
    """Read a rubric from JSON text; `source` stands in the messages.

    Raises:
        ValueError: As `load_rubric`.
    """
    rubric = _Fields(source, _decoded(text, source), _RUBRIC_FIELDS)
    criteria = tuple(
        _criterion(value, f"{source}, criterion {place}") for place, value in enumerate(rubric.listed("criteria"), 1)
    )
    try:
        return RubricSpec(
            name=rubric.text("name"),
            criteria=criteria,
            instructions=rubric.text("instructions", ""),
            ready_rule=rubric.text("ready_rule", ""),
            simulated=rubric.flag("simulated", default=False),
        )
    except ValueError as error:
        raise ValueError(_prefixed(source, error)) from error


def _criterion(value: Any, where: str) -> CriterionSpec:
    if isinstance(value, Mapping) and isinstance(value.get("key"), str):
        where += f" ({value['key']})"
    fields = _Fields(where, value, _CRITERION_FIELDS)
    levels = tuple(
        _level(level, f"{where}, level {place}") for place, level in enumerate(fields.listed("levels"), start=1)
    )
    try:
        return CriterionSpec(
            key=fields.text("key"),
            levels=levels,
            gate=fields.number("gate"),
            question=fields.text("question", ""),
            weight=fields.number("weight", 1.0),
            veto=fields.flag("veto", default=False),
        )
    except ValueError as error:
        raise ValueError(_prefixed(where, error)) from error


def _level(value: Any, where: str) -> LevelSpec:
    fields = _Fields(where, value, _LEVEL_FIELDS)
    return LevelSpec(value=fields.number("value"), anchor=fields.text("anchor", ""))


def _prefixed(where: str, error: ValueError) -> str:
    """The error's words behind the place, unless they begin with it already."""
    words = str(error)
    return words if words.startswith(where) else f"{where}: {words}"


@dataclass(frozen=True, slots=True)
class _Fields:
    """The fields of one JSON object, read with their types checked."""

    where: str
    values: Any
    known: Sequence[str]

    def __post_init__(self) -> None:
        if not isinstance(self.values, Mapping):
            raise ValueError(
                f"{self.where}: expected an object with {', '.join(self.known)}, got {_shown(self.values)}"
            )
        unknown = [name for name in self.values if name not in self.known]
        if unknown:
            raise ValueError(
                f"{self.where}: unknown field {', '.join(map(repr, unknown))}; known are {', '.join(self.known)}"
            )

    def text(self, name: str, default: str = _REQUIRED) -> str:
        value = self._get(name, default)
        if not isinstance(value, str):
            self._refuse(name, "a text", value)
        if default is _REQUIRED and not value.strip():
            raise ValueError(f"{self.where}, field {name}: must not be empty")
        return value

    def number(self, name: str, default: float = _REQUIRED) -> float:
        value = self._get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            self._refuse(name, "a finite number", value)
        return float(value)

    def flag(self, name: str, *, default: bool) -> bool:
        value = self._get(name, default)
        if not isinstance(value, bool):
            self._refuse(name, "true or false", value)
        return value

    def listed(self, name: str) -> list[Any]:
        value = self._get(name, _REQUIRED)
        if not isinstance(value, list):
            self._refuse(name, "a list", value)
        return value

    def _get(self, name: str, default: Any) -> Any:
        value = self.values.get(name, default)
        if value is _REQUIRED:
            raise ValueError(f"{self.where}: field {name} is missing")
        return value

    def _refuse(self, name: str, wanted: str, value: Any) -> NoReturn:
        raise ValueError(f"{self.where}, field {name}: expected {wanted}, got {_shown(value)}")


def _decoded(text: str, source: str) -> Any:
    def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        repeated = {name for name in names if names.count(name) > 1}
        if repeated:
            raise ValueError(f"{source}: field {', '.join(sorted(repeated))} stands twice in one object")
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=without_repeats)
    except json.JSONDecodeError as error:
        raise ValueError(f"{source}, line {error.lineno}, column {error.colno}: not JSON ({error.msg})") from error
    except RecursionError as error:
        raise ValueError(f"{source}: nested too deeply") from error


def _shown(value: Any) -> str:
    """A value as JSON, cut short."""
    words = json.dumps(value)
    return words if len(words) <= 40 else words[:40] + "…"
