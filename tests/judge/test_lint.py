"""The rules a rubric is held to; each finding names its line."""

from pathlib import Path

import pytest

from core.ingest.rubric_file import load_rubric
from core.judge.lint import Rule, as_lines, lint
from core.store.specs import CriterionSpec, LevelSpec, RubricSpec

RUBRICS = Path(__file__).parents[2] / "data" / "rubrics"
GOOD_ANCHORS = ("A needed step is missing.", "Every needed step is there.")
QUESTION = "Does the answer hold every needed step?"


def rubric(question: str = QUESTION, anchors: tuple[str, ...] = GOOD_ANCHORS, more: str = "") -> RubricSpec:
    def one(key: str, asked: str) -> CriterionSpec:
        levels = tuple(LevelSpec(float(place), anchor) for place, anchor in enumerate(anchors))
        return CriterionSpec(key, levels, float(len(anchors) - 1), asked)

    return RubricSpec("r", (one("steps", question), *((one("other", more),) if more else ())))


def rules(found: RubricSpec) -> list[Rule]:
    return [finding.rule for finding in lint(found)]


def test_a_good_criterion_has_no_findings() -> None:
    assert lint(rubric()) == ()


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Does the answer hold every needed step", [Rule.QUESTION_MARK]),
        ("Whether the answer holds every step?", [Rule.QUESTION_OPENING]),
        ("Is it short?", [Rule.TOO_SHORT]),
        ("", [Rule.TOO_SHORT, Rule.QUESTION_MARK, Rule.QUESTION_OPENING]),
        ("Is the answer accurate and complete throughout?", [Rule.ONE_PROPERTY]),
        ("Is the answer polite, and does it name a step?", [Rule.ONE_PROPERTY]),
        ("Does it name a step? Is it polite?", [Rule.ONE_PROPERTY]),
        ("Does the answer name the time and the place of the meeting?", []),
    ],
)
def test_questions(question: str, expected: list[Rule]) -> None:
    assert rules(rubric(question)) == expected


@pytest.mark.parametrize("opening", ["Does", "Is", "Are", "Did", "Do", "Has", "Have", "Can", "Will"])
def test_every_opening_of_a_yes_no_question_is_known(opening: str) -> None:
    assert rules(rubric(f"{opening} the answer and steps agree here?")) == []


@pytest.mark.parametrize(
    ("anchors", "expected"),
    [
        (("", "Every needed step is there."), [Rule.ANCHOR_MISSING]),
        (("bad", "very good"), [Rule.BARE_ADJECTIVE, Rule.BARE_ADJECTIVE]),
        (("The answer is poor.", "Every needed step is there."), [Rule.BARE_ADJECTIVE]),
        (("The same words.", "the same words"), [Rule.SAME_ANCHOR]),
    ],
)
def test_anchors(anchors: tuple[str, ...], expected: list[Rule]) -> None:
    assert rules(rubric(anchors=anchors)) == expected


def test_longer_scales_need_no_yes_no_question() -> None:
    anchors = ("No step is there.", "One step is there.", "Every step is there.")
    assert rules(rubric("How many needed steps are there", anchors)) == []


def test_two_criteria_may_not_ask_the_same() -> None:
    found = lint(rubric(more=QUESTION.upper()))
    assert [(finding.criterion, finding.rule) for finding in found] == [("other", Rule.DUPLICATE)]


def test_a_finding_names_its_line() -> None:
    broken = rubric(anchors=("A needed step is missing.", "good"))
    (finding,) = lint(broken)
    assert finding.line == 1 + as_lines(broken).splitlines().index("  1 = good")
    assert str(finding).startswith("line 3, criterion steps: level 1 is only “good” (rule: an anchor says what")


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    text = (RUBRICS / "support-answer.json").read_text().replace("Every statement of fact is in the reference.", "Good")
    path.write_text(text)
    (finding,) = lint(load_rubric(path), text)
    assert '"Good"' in text.splitlines()[finding.line - 1]


@pytest.mark.parametrize("path", sorted(RUBRICS.glob("*.json")), ids=lambda path: str(path.stem))
def test_shipped_rubrics_have_anchors_and_one_property(path: Path) -> None:
    found = lint(load_rubric(path), path.read_text())
    assert {finding.rule for finding in found} <= {Rule.TOO_SHORT}, list(map(str, found))
