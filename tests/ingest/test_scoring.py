"""What a score text and a status word become."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.ingest.records import LineRefused
from core.ingest.scoring import Criterion, ScoreReader, Spelling, StatusUse
from core.store.specs import ScoreRow
from core.store.tables import Unscored
from tests.ingest.files import mapping

SCALE = Criterion(7, "clarity", frozenset((1.0, 2.0, 3.0, 4.0, 5.0)))


def score(text: str, status: str = "", **words: Any) -> tuple[float | None, str | None, str | None]:
    row = ScoreReader(mapping(**words)).score(SCALE, text, status)
    return row.value, row.unscored, row.raw_value


@pytest.mark.parametrize(
    ("text", "value", "raw"),
    [
        ("4", 4.0, None),
        ("4.0", 4.0, "4.0"),
        (" 4 ", 4.0, " 4 "),
        ("4e0", 4.0, "4e0"),
        ("+4", 4.0, "+4"),
        ("04", 4.0, "04"),
    ],
)
def test_a_level_is_a_score_however_it_is_written(text: str, value: float, raw: str | None) -> None:
    assert score(text) == (value, None, raw)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "verdict_missing"),
        ("  ", "verdict_missing"),
        ("null", "verdict_missing"),
        ("NaN", "wrong_type"),
        ("Infinity", "wrong_type"),
        ("-inf", "wrong_type"),
        ("true", "wrong_type"),
        ("False", "wrong_type"),
        ("4 of 5", "wrong_type"),
        ("1_0", "wrong_type"),
        ("٤", "wrong_type"),
        ("9.2e+124", "out_of_range"),
        ("1e999", "out_of_range"),
        ("0", "out_of_range"),
        ("3.5", "out_of_range"),
        ("4.000000001", "out_of_range"),
        ("-4", "out_of_range"),
    ],
)
def test_anything_else_is_unscored_with_its_reason_and_its_text(text: str, reason: str) -> None:
    assert score(text) == (None, reason, text or None)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ("unparsed", "verdict_missing"),
        ("parse_error", "verdict_missing"),
        ("invalid_json", "not_json"),
        ("Refusal ", "refusal"),
        ("max_tokens", "truncated"),
        ("out_of_range", "out_of_range"),
        ("error", "request_error"),
        ("cancelled", "cancelled"),
        ("conflicting_tags", "conflicting_verdicts"),
    ],
)
def test_a_status_that_is_not_ok_wins_over_a_legal_score(status: str, reason: str) -> None:
    assert score("3", status) == (None, reason, "3")


def test_every_reason_is_known_by_its_own_name() -> None:
    assert [score("", reason.value)[1] for reason in Unscored] == [reason.value for reason in Unscored]


def test_an_unknown_status_is_refused_until_it_is_mapped() -> None:
    with pytest.raises(LineRefused, match="unknown status; say what it means with --status odd=REASON"):
        score("3", "odd")
    assert score("3", "odd", statuses={"Odd": "refusal"}) == (None, "refusal", "3")
    assert score("3", "fine", statuses={"fine": "ok"}) == (3.0, None, None)


def test_spellings_of_one_value_are_mapped_once_and_shown() -> None:
    verdict = Criterion(1, "pass", frozenset((0.0, 1.0)))
    reader = ScoreReader(mapping(values={"pass": 1, "true": 1, "fail": 0}))
    read = [reader.score(verdict, text, "").value for text in ("Pass", "pass ", "True", "1", "FAIL", "pass ")]
    assert read == [1, 1, 1, 1, 0, 1]
    assert reader.spellings() == (
        Spelling("pass", "FAIL", 0.0, 1),
        Spelling("pass", "Pass", 1.0, 1),
        Spelling("pass", "True", 1.0, 1),
        Spelling("pass", "pass ", 1.0, 2),
    )


def test_status_words_are_counted_with_their_meaning() -> None:
    reader = ScoreReader(mapping())
    for status in ("ok", "ok", "unparsed"):
        reader.score(SCALE, "3", status)
    assert reader.statuses() == (StatusUse("ok", "ok", 2), StatusUse("unparsed", "verdict_missing", 1))


def test_a_label_may_lie_between_levels_but_not_outside_them() -> None:
    reader = ScoreReader(mapping(values={"good": 5}))
    assert [reader.label(SCALE, text) for text in ("2.333333", " 4", "Good")] == [2.333333, 4.0, 5.0]
    for text in ("NaN", "six", "5.1", "1e999"):
        with pytest.raises(LineRefused):
            reader.label(SCALE, text)


@settings(max_examples=200)
@given(st.text())
def test_a_text_is_either_a_level_or_unscored_with_a_known_reason(text: str) -> None:
    row: ScoreRow = ScoreReader(mapping()).score(SCALE, text, "")
    assert (row.value is None) != (row.unscored is None)
    assert row.value in SCALE.levels or row.unscored in list(Unscored)
