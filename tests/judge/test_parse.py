"""Reading replies: every documented case, and a strict reader that no fuzzed reply may outwit."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from core.judge.parse import (
    CHANGED,
    COMMENT,
    CONTROL_CHARACTER,
    EMPHASIS,
    LATE_RATIONALE,
    MOST_CHARACTERS,
    Parsed,
    parse,
)
from core.judge.prompt import RubricView, build
from core.judge.protocol import Form
from core.store.tables import Unscored
from tests.judge.samples import PASS_FAIL, PREFERENCE, SCALE, criterion

CASES = json.loads((Path(__file__).parent / "judge_replies.json").read_text())["cases"]
GOOD = '{"rationale": "Fine.", "correctness": 3, "groundedness": 2, "helpfulness": 1}'
SCORES = {"correctness": 3.0, "groundedness": 2.0, "helpfulness": 1.0}


def read(text: str, stop_reason: str | None = None) -> Parsed:
    return parse(text, SCALE, Form.REFERENCE, stop_reason)


def read_line(text: str, stop_reason: str | None = None) -> Parsed:
    return parse(text, PASS_FAIL, Form.VERDICT, stop_reason)


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_documented_replies_get_their_status(case: dict[str, Any]) -> None:
    reader = read_line if case.get("form") == "verdict" else read
    found = reader(case["raw"], case.get("stop_reason"))
    assert (found.reason.value if found.reason else "ok") == case["status"]
    assert found.repaired == case.get("repaired", False)
    if "scores" in case:
        assert dict(found.values) == case["scores"]
    if "verdict" in case:
        assert dict(found.values) == {"verdict": float(case["verdict"] == "pass")}
    assert (CHANGED in found.flags) == (case.get("flag") == CHANGED)


@pytest.mark.parametrize(
    ("raw", "detail"),
    [
        ('{"rationale": "Fine.", "correctness": 3, "groundedness": 3}', "no score for helpfulness"),
        (GOOD.replace("3", "5"), "correctness is 5, outside 1..3"),
        (GOOD.replace("3", '"3"'), 'correctness is "3", a string; an integer in 1..3 is needed'),
        (GOOD.replace("3", "true"), "correctness is true, which is no number; an integer in 1..3 is needed"),
        (GOOD.replace("3", "NaN"), "correctness is NaN, which is not JSON; an integer in 1..3 is needed"),
        (GOOD.replace("3", "[3]"), "correctness is […], a list; an integer in 1..3 is needed"),
    ],
)
def test_the_reason_names_the_criterion_the_value_and_the_scale(raw: str, detail: str) -> None:
    assert read(raw).detail == detail


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("", Unscored.NOT_JSON),
        (" \n", Unscored.NOT_JSON),
        ("[" + GOOD + "]", Unscored.NOT_JSON),
        ('["x", ' + GOOD + " oops", Unscored.NOT_JSON),
        (GOOD[:-1], Unscored.NOT_JSON),
        (GOOD[:-1] + ",}", Unscored.NOT_JSON),
        (GOOD.replace('"', "'"), Unscored.NOT_JSON),
        (json.dumps(GOOD), Unscored.NOT_JSON),
        (GOOD.replace("3", "03"), Unscored.NOT_JSON),
        (GOOD.replace('"Fine."', '"Fine.", "x": NaN'), Unscored.NOT_JSON),
        (GOOD + GOOD, Unscored.CONFLICTING_VERDICTS),
        (GOOD + '{"' + GOOD, Unscored.CONFLICTING_VERDICTS),
        ('{"rationale": "a", "correctness": 1, oops} ' + GOOD, Unscored.NOT_JSON),
        (GOOD.replace('"rationale"', '"x": {"correctness": 1}, "rationale"'), Unscored.CONFLICTING_VERDICTS),
        ('{"scores": ' + GOOD + "}", Unscored.MISSING_CRITERION),
        (GOOD.replace('"rationale": "Fine."', '"rationale": "a", "rationale": "b"'), Unscored.CONFLICTING_VERDICTS),
        (GOOD.replace("3,", "3, \\u0022"), Unscored.NOT_JSON),
        (GOOD.replace("3,", '3, "\\u0063orrectness": 1,'), Unscored.CONFLICTING_VERDICTS),
        (GOOD.replace('"Fine."', '"  "'), Unscored.NO_RATIONALE),
        (GOOD.replace('"Fine."', "7"), Unscored.NO_RATIONALE),
        (GOOD.replace('"Fine."', '"<why, quoting the words it rests on>"'), Unscored.NO_RATIONALE),
        (GOOD.replace("3", "null"), Unscored.WRONG_TYPE),
        (GOOD.replace("3", "3e0"), Unscored.WRONG_TYPE),
        (GOOD.replace("3", "9" * 5000), Unscored.OUT_OF_RANGE),
        (GOOD.replace("3", "-3"), Unscored.OUT_OF_RANGE),
        (GOOD.replace("correctness", "Correctness"), Unscored.MISSING_CRITERION),
        ('{"a":' * 5000 + GOOD + "}" * 5000, Unscored.NOT_JSON),
    ],
)
def test_what_a_strict_reader_refuses_gives_no_score(raw: str, reason: Unscored) -> None:
    found = read(raw)
    assert found.reason is reason
    assert found.detail
    assert found.values == ()
    assert all(row.value is None and row.unscored == reason.value for row in found.rows(SCALE))


@pytest.mark.parametrize(
    ("raw", "repairs"),
    [
        (GOOD, ()),
        (f"Braces {{as here}} and [1] mean nothing. {GOOD} So {{}} there.", ()),
        (f"```json\n{GOOD}\n```", ()),
        ("\ufeff" + GOOD, ()),
        (GOOD.replace("3", "3 /* top */"), (COMMENT,)),
        (GOOD.replace('"Fine."', '"See http://a // b"'), ()),
        (GOOD.replace("Fine.", "a\tb"), (CONTROL_CHARACTER,)),
        (GOOD.replace("Fine.", "a\nb").replace("3", "3 // x\n"), (COMMENT, CONTROL_CHARACTER)),
    ],
)
def test_what_changes_no_score_is_passed_over_or_repaired(raw: str, repairs: tuple[str, ...]) -> None:
    found = read(raw)
    assert (found.reason, dict(found.values), found.repairs) == (None, SCORES, repairs)


def test_a_rationale_behind_the_scores_is_flagged() -> None:
    late = '{"correctness": 3, "groundedness": 2, "helpfulness": 1, "rationale": "Fine."}'
    assert read(late).flags == (LATE_RATIONALE,)
    assert read(GOOD).flags == ()


def test_a_copied_template_is_no_score() -> None:
    rubric = RubricView("r", SCALE)
    assert read(build(rubric, Form.REFERENCE).system).reason is Unscored.NOT_JSON
    assert read(build(rubric, Form.REFERENCE).system + "\n" + GOOD).reason is None
    pair = build(RubricView("p", PREFERENCE), Form.PAIRWISE).system
    assert parse(pair, PREFERENCE, Form.PAIRWISE).reason is Unscored.VERDICT_MISSING


def test_levels_with_fractions_are_read_as_written() -> None:
    half = (criterion("tone", (0.0, 0.5, 1.0)),)
    values = {
        written: parse(f'{{"rationale": "a", "tone": {written}}}', half, Form.SINGLE)
        for written in ("0.5", "1", "0.50", "5e-1", "0.7")
    }
    assert [dict(found.values).get("tone") for found in values.values()] == [0.5, 1.0, 0.5, None, None]
    assert dict(values["0.50"].raw) == {"tone": "0.50"}
    assert values["0.7"].detail == "tone is 0.7, outside 0, 0.5, 1"


@pytest.mark.parametrize("stop_reason", ["max_tokens", "model_context_window_exceeded"])
def test_a_cut_reply_is_no_score_even_when_it_looks_whole(stop_reason: str) -> None:
    assert read(GOOD, stop_reason).reason is Unscored.TRUNCATED
    assert read_line("Fine.\nVERDICT: pass", stop_reason).reason is Unscored.TRUNCATED
    assert read(GOOD, "refusal").reason is Unscored.REFUSAL


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("", Unscored.VERDICT_MISSING),
        ("VERDICT: pass", Unscored.NO_RATIONALE),
        ("a\nVERDICT: pass\nVERDICT: maybe", Unscored.VERDICT_MISSING),
        ("a\nVERDICT: pass or fail", Unscored.VERDICT_MISSING),
        ("a\nVERDICT: <pass or fail>", Unscored.VERDICT_MISSING),
        ("a\n> VERDICT: pass", Unscored.VERDICT_MISSING),
        ("a\nVERDICT: pass.", Unscored.VERDICT_MISSING),
        ("a\nverdict: pass", Unscored.VERDICT_MISSING),
        ("a\nVERDICT: pass\nNo, the verdict: fail it is", Unscored.CONFLICTING_VERDICTS),
        ("a\nVERDICT: pass\nsorry, VERDICT: **fail**", Unscored.CONFLICTING_VERDICTS),
    ],
)
def test_a_line_that_is_no_plain_verdict_gives_none(raw: str, reason: Unscored) -> None:
    assert read_line(raw).reason is reason


def test_the_last_line_counts_and_emphasis_is_repaired() -> None:
    found = read_line("Good.\n**VERDICT: Pass**\r\nHope that helps.")
    assert (dict(found.values), found.repairs) == ({"verdict": 1.0}, (EMPHASIS,))
    assert found.rationale == "Good.\nHope that helps."


@pytest.mark.parametrize(("word", "value"), [("first", 1.0), ("second", -1.0), ("tie", 0.0)])
def test_a_pair_is_read_by_slot(word: str, value: float) -> None:
    found = parse(f"Both were read.\nVERDICT: {word}", PREFERENCE, Form.PAIRWISE)
    assert found.rows(PREFERENCE)[0][:3] == (1, value, None)


def test_what_databases_refuse_is_replaced() -> None:
    found = read(GOOD.replace("Fine.", "a\\u0000b\\ud800c"))
    assert found.rationale == "a\ufffdb\ufffdc"


HOSTILE = {
    "ten megabytes": "x" * 10_000_000,
    "braces": "{" * MOST_CHARACTERS,
    "lists": "[" * MOST_CHARACTERS,
    "line comments": "{//" * (MOST_CHARACTERS // 3),
    "open comments": "{/*" * (MOST_CHARACTERS // 3),
    "closed comments": "{/*/*/" * (MOST_CHARACTERS // 6),
    "quotes": '{"' * (MOST_CHARACTERS // 2),
    "escapes": '{"\\"' * (MOST_CHARACTERS // 4),
    "keys": '{"a":' * (MOST_CHARACTERS // 5),
    "objects": "{}" * (MOST_CHARACTERS // 2),
    "numbers": "[" + "1," * (MOST_CHARACTERS // 2 - 1),
    "verdicts": "VERDICT: pass\n" * (MOST_CHARACTERS // 14),
    "spaces": "VERDICT:" + " " * (MOST_CHARACTERS - 9) + "x",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_replies_cost_little_time(text: str) -> None:
    started = time.process_time()
    assert read(text).reason
    assert read_line(text).reason
    assert time.process_time() - started < 3


def strict(text: str) -> dict[str, float] | None:
    """Scores as an independent reader gives them who takes the standard library's word for what JSON is.

    He looks at every place where an object could begin and wants exactly one outermost object that names a criterion.
    """
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=list)
    found, place = [], 0
    while (place := text.find("{", place)) >= 0:
        try:
            pairs, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            place += 1
            continue
        found.append(pairs)
        place = end
    naming = [pairs for pairs in found if {key for key, _ in pairs} & set(SCORES)]
    if len(naming) != 1:
        return None
    pairs = naming[0]
    wanted = [*SCORES, "rationale"]
    if sorted(key for key, _ in pairs if key in wanted) != sorted(wanted):
        return None
    values = dict(pairs)
    rationale = values.pop("rationale")
    if not isinstance(rationale, str) or not rationale.strip():
        return None
    scores = {key: values[key] for key in SCORES}
    return scores if all(type(value) is int and value in (1, 2, 3) for value in scores.values()) else None


PIECES = st.sampled_from(
    [
        *'{}[],:"\\\n 1234-é', "/*", "*/", "//", "```json\n", "```", "3.0", "1e0", "true", "null", "NaN", "\x00",
        '"correctness"', '"groundedness"', '"helpfulness"', '"rationale"', '"Fine."', '"correctness": 3',
        '"groundedness": 2', '"helpfulness": 1', '"rationale": "Fine."', GOOD, GOOD[:-1], GOOD[1:], "VERDICT:", "pass",
        "VERDICT: pass", "VERDICT: fail", "\nVERDICT: pass\n", "\nVERDICT: fail\n", "fail", "**", "\ud800",
    ]
)  # fmt: skip
FUZZ = settings(max_examples=2_500, deadline=None, suppress_health_check=list(HealthCheck), database=None)


def check(text: str) -> None:
    """No reply raises, and what is scored is what the strict reader scores, comments aside."""
    found = read(text)
    if found.reason is None and COMMENT not in found.repairs:
        assert strict(text) == dict(found.values)
    line = read_line(text)
    if line.reason is None:
        verdicts = [match[2] for match in re.finditer(r"(?im)^[ \t]*(\*\*)?[ \t]*VERDICT:(.*)$", text)]
        assert dict(line.values) == {"verdict": {"pass": 1.0, "fail": 0.0}[verdicts[-1].strip(" *\t\r").casefold()]}


@FUZZ
@given(st.lists(PIECES, max_size=25).map("".join))
def test_replies_of_likely_pieces_never_outwit_the_strict_reader(text: str) -> None:
    check(text)


@FUZZ
@given(st.text(max_size=200))
@example("{" * 200)
def test_any_text_never_outwits_the_strict_reader(text: str) -> None:
    check(text)


@FUZZ
@given(st.data())
def test_damaged_good_replies_never_outwit_the_strict_reader(data: st.DataObject) -> None:
    text = GOOD
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(text)))
        width = data.draw(st.integers(0, 3))
        text = text[:place] + data.draw(PIECES) + text[place + width :]
    check(text)


VALUES = st.sampled_from(
    ["", "1", "2", "3", "4", "0", "3.0", "1e400", "true", "null", "NaN", '"3"', "[1]", "{}", '"why"']
)


@FUZZ
@given(st.lists(VALUES, min_size=5, max_size=5), st.sampled_from(["", "Here: ", "```json\n", GOOD]), PIECES)
def test_objects_of_any_values_never_outwit_the_strict_reader(values: list[str], before: str, behind: str) -> None:
    keys = ("rationale", "extra", *SCORES)
    pairs = (f'"{key}": {value}' for key, value in zip(keys, values, strict=True) if value)
    check(before + "{" + ", ".join(pairs) + "}" + behind)
