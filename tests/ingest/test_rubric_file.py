"""Rubric files: what is read, and what each mistake is told."""

import json
from pathlib import Path
from typing import Any

import pytest

from core.ingest.rubric_file import load_rubric, parse_rubric
from core.store.specs import LevelSpec
from tests.conftest import REPO


def rubric(**changes: Any) -> dict[str, Any]:
    levels = [{"value": 0, "anchor": "no step"}, {"value": 1, "anchor": "one step"}]
    return {"name": "r", "criteria": [{"key": "steps", "gate": 1, "levels": levels}]} | changes


def criterion(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = rubric()["criteria"][0]
    return rubric(criteria=[base | changes])


def parse(value: Any) -> Any:
    return parse_rubric(json.dumps(value), source="r.json")


def test_a_file_is_read_with_its_defaults(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("\ufeff" + json.dumps(rubric(instructions="Score it.")), encoding="utf-8")
    spec = load_rubric(path)
    (steps,) = spec.criteria
    assert (spec.name, spec.instructions, spec.ready_rule, spec.simulated) == ("r", "Score it.", "", False)
    assert (steps.key, steps.gate, steps.weight, steps.veto, steps.question) == ("steps", 1.0, 1.0, False, "")
    assert steps.levels == (LevelSpec(0.0, "no step"), LevelSpec(1.0, "one step"))


@pytest.mark.parametrize("path", sorted((REPO / "data" / "rubrics").glob("*.json")), ids=lambda path: path.stem)
def test_every_rubric_that_ships_is_read_and_has_an_anchor_for_each_level(path: Path) -> None:
    spec = load_rubric(path)
    assert spec.name == path.stem
    assert all(len(level.anchor.split()) > 5 for part in spec.criteria for level in part.levels)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], r"r\.json: expected an object with name, .*, got \[\]"),
        (rubric(name=" "), r"r\.json, field name: must not be empty"),
        (rubric(name=7), r"r\.json, field name: expected a text, got 7"),
        (rubric(criteria={}), r"r\.json, field criteria: expected a list, got \{\}"),
        (rubric(criteria=[]), r"r\.json: rubric r: it needs at least one criterion"),
        (rubric(criteria=["x"]), r"r\.json, criterion 1: expected an object with key, .*, got \"x\""),
        (rubric(simulated="no"), r"r\.json, field simulated: expected true or false, got \"no\""),
        (rubric(criterion=[]), r"r\.json: unknown field 'criterion'; known are name"),
        (criterion(gate="1"), r"r\.json, criterion 1 \(steps\), field gate: expected a finite number, got \"1\""),
        (criterion(gate=True), r"criterion 1 \(steps\), field gate: expected a finite number, got true"),
        (criterion(gate=0), r"criterion 1 \(steps\): criterion steps: gate 0 must lie above 0"),
        (criterion(veto=1), r"criterion 1 \(steps\), field veto: expected true or false, got 1"),
        (criterion(treshold=1), r"criterion 1 \(steps\): unknown field 'treshold'"),
        (criterion(levels=[{"value": 1}]), r"criterion 1 \(steps\): criterion steps: 1 levels"),
        (criterion(levels=[{}]), r"criterion 1 \(steps\), level 1: field value is missing"),
        (criterion(levels=[{"value": 1}, {"value": 0}]), r"criterion 1 \(steps\): .*must ascend"),
        (criterion(levels=[{"value": 1, "anchor": None}]), r"level 1, field anchor: expected a text, got null"),
        (rubric(criteria=rubric()["criteria"] * 2), r"r\.json: rubric r: criterion keys must differ"),
    ],
)
def test_a_mistake_names_file_criterion_and_field(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"name": "r",\n "criteria": [}', r"r\.json, line 2, column 15: not JSON"),
        ("", r"r\.json, line 1, column 1: not JSON"),
        ('{"name": "a", "name": "b", "criteria": []}', r"r\.json: field name stands twice"),
        ('{"name": "r", "criteria": [{"key": "k", "gate": NaN, "levels": []}]}', r"gate: expected a finite number"),
        ("[" * 100_000, r"r\.json: nested too deeply"),
    ],
)
def test_text_that_is_no_sound_json_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_rubric(text, source="r.json")


def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(b'{"name": "\xff"}')
    with pytest.raises(ValueError, match=r"r\.json: not UTF-8 text"):
        load_rubric(path)
