"""Columns to roles: guessed, checked, remembered."""

import pytest
from sqlalchemy import Engine

from core.ingest.load import plan_import
from core.ingest.mapping import Mapping, guess, shape
from core.ingest.records import ROLES, ImportRefused
from core.ingest.source import Source
from tests.ingest.files import csv, mapping, run

COLLECTOR = [
    *("item_id", "content_sha256", "run_index", "model", "response_id", "score", "cited_evidence", "boundary_reason"),
    *("confidence", "criterion", "candidate", "request", "reference", "rubric_version", "prompt_version", "created_at"),
]


def test_a_collectors_fields_need_no_asking_to_be_understood() -> None:
    own_names = {name: (name,) for name in COLLECTOR if name not in ("item_id", "run_index")}
    assert guess(COLLECTOR).columns == {"item": ("item_id",), "repetition": ("run_index",)} | own_names


def test_names_are_compared_without_case_and_spaces() -> None:
    assert guess(["Item ID", " Score", "Human-Score"]).columns == {
        "item": ("Item ID",),
        "score": (" Score",),
        "label": ("Human-Score",),
    }


def test_a_model_beside_a_judge_is_the_judged_system_and_part_of_the_item_where_items_repeat() -> None:
    header = ["session_id", "model", "judge", "score"]
    assert guess(header, [["s1", "a", "j", "1"], ["s2", "b", "j", "1"]]).columns["item"] == ("session_id",)
    repeated = guess(header, [["s1", "a", "j", "1"], ["s1", "b", "j", "1"]])
    assert repeated.columns["item"] == ("session_id", "model")
    assert repeated.columns["system"] == ("model",)


def test_two_opposite_words_are_proposed_as_one_and_nought() -> None:
    assert guess(["item", "score"], [["a", "Pass"], ["b", "fail "]]).values == {"pass": 1.0, "fail": 0.0}
    assert guess(["item", "score"], [["a", "Pass"], ["b", "3"]]).values == {}


def test_several_columns_are_joined_and_constants_stand_on_every_line() -> None:
    pick = Mapping({"item": ("a",), "judge": ("b", "c")}, {"model": "m"}).picker(["c", "b", "a"])
    record = dict(zip(ROLES, pick(["z", "y", "x"]), strict=True))
    assert {role: text for role, text in record.items() if text} == {"item": "x", "judge": "y · z", "model": "m"}


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"columns": {"items": ("a",)}}, "items is no role"),
        ({"columns": {"score": ("a", "b")}}, "score takes one column, not a, b"),
        ({"statuses": {"odd": "weird"}}, "status odd=weird: 'weird' is none of ok, refusal"),
        ({"orders": {"x": "first"}}, "order x=first: 'first' is none of ab, ba"),
    ],
)
def test_a_mapping_that_means_nothing_is_refused(parts: dict[str, dict[str, str]], message: str) -> None:
    with pytest.raises(ImportRefused, match=message):
        Mapping(**parts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"item": ("x",)}, "item: there is no column x; the columns are a, b"),
        ({"score": ("a",)}, "no column is mapped to item"),
        ({"item": ("a",)}, "no column is mapped to score or label"),
    ],
)
def test_a_mapping_that_does_not_fit_the_file_is_refused(columns: dict[str, tuple[str, ...]], message: str) -> None:
    with pytest.raises(ImportRefused, match=message):
        Mapping(columns).check(["a", "b"])


def test_a_mapping_comes_back_from_json_as_it_was() -> None:
    whole = mapping(constants={"model": "m"}, values={"A": 1.0}, statuses={"x": "ok"}, orders={"1": "ab"})
    assert Mapping.from_json(whole.to_json()) == whole


def test_the_shape_is_told_by_names_and_their_order() -> None:
    assert len({shape(["a", "b"]), shape(["b", "a"]), shape(["a,b"]), shape(["a", "b", ""])}) == 4


def test_a_confirmed_mapping_is_used_for_the_next_file_of_the_same_shape(engine: Engine) -> None:
    header = "q,k,who,mark"
    wanted = Mapping({"item": ("q",), "repetition": ("k",), "judge": ("who",), "score": ("mark",)})
    first = Source.from_bytes("one.csv", csv("a,0,j,3", header=header))
    assert not plan_import(engine, first).confirmed
    run(engine, csv("a,0,j,3", header=header), mapping=wanted)
    preview = plan_import(engine, Source.from_bytes("two.csv", csv("b,0,j,3", header=header)))
    assert (preview.confirmed, preview.mapping, preview.rows) == (True, wanted, (("b", "0", "j", "3"),))
    assert plan_import(engine, first).earlier is not None


def test_a_dry_run_or_a_refused_file_teaches_no_mapping(engine: Engine) -> None:
    data = csv("a,0,j,3", "a,0,j,3")
    run(engine, csv("a,0,j,3"), dry_run=True)
    run(engine, data)
    assert not plan_import(engine, Source.from_bytes("f.csv", data)).confirmed
