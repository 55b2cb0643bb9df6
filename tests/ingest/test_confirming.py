"""What a form's texts become: a mapping, a rubric, and an upload that is read but never copied."""

import pytest
from sqlalchemy import Engine

from core.ingest.confirming import (
    Choices,
    Draft,
    Upload,
    read_pairs,
    roles_of,
    rubric_from_texts,
    with_roles,
    write_pairs,
)
from core.ingest.load import plan_import
from core.ingest.mapping import Mapping
from core.ingest.records import MEANINGS, ROLES, AlreadyImported, ImportRefused, MappingRefused
from tests.ingest.files import count, csv, mapping, rubric, run

NO_WORDS = {"values": "", "statuses": "", "orders": ""}


def test_every_role_has_a_meaning_in_words() -> None:
    assert tuple(MEANINGS) == ROLES


def test_an_unchanged_form_gives_the_mapping_it_was_filled_with() -> None:
    held = Mapping(
        {"item": ("id", "system"), "system": ("system",), "score": ("s",)},
        constants={"judge": "j"},
        values={"A": 1.0, "B": -1.0},
        statuses={"late": "request_error"},
        orders={"first": "ab"},
    )
    form = with_roles(
        held,
        {column: roles_of(held, column) for column in ("system", "id", "s")},
        constants=held.constants,
        values=write_pairs(held.values),
        statuses=write_pairs(held.statuses),
        orders=write_pairs(held.orders),
    )
    assert form == held


def test_a_column_wins_over_a_text_for_every_line() -> None:
    form = with_roles(Mapping(), {"j": ["judge"], "i": ["item"]}, constants={"judge": "x", "model": " m "}, **NO_WORDS)
    assert form == Mapping({"item": ("i",), "judge": ("j",)}, {"model": "m"})


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"values": "pass"}, "'pass' should read WORD=MEANING"),
        ({"values": "pass=good"}, "'good' is no number"),
        ({"statuses": "late=whenever"}, "'whenever' is none of ok"),
    ],
)
def test_words_that_mean_nothing_are_refused(parts: dict[str, str], message: str) -> None:
    with pytest.raises(MappingRefused, match=message):
        with_roles(Mapping(), {"i": ["item"]}, constants={}, **(NO_WORDS | parts))


def test_a_role_that_takes_one_column_refuses_two() -> None:
    with pytest.raises(MappingRefused, match="score takes one column, not a, b"):
        with_roles(Mapping(), {"a": ["score"], "b": ["score"]}, constants={}, **NO_WORDS)


def test_a_word_may_hold_an_equals_sign() -> None:
    assert read_pairs(" a=b = ok \n\n") == {"a=b": "ok"}


def test_a_rubric_is_made_of_typed_levels_and_gates() -> None:
    made = rubric_from_texts(" mine ", {"tone": ("3, 1,2", " 2 ")})
    criterion = made.criteria[0]
    assert (made.name, criterion.key, criterion.gate) == ("mine", "tone", 2.0)
    assert [level.value for level in criterion.levels] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("name", "texts", "message"),
    [
        ("", ("1,2", "2"), "needs a name"),
        ("x", (" ", "2"), "criterion tone has no levels"),
        ("x", ("1;2", "2"), "neither numbers"),
        ("x", ("1,2", "high"), "the gate 'high' is no number"),
        ("x", ("1,2", "5"), "gate 5 must lie above 1"),
    ],
)
def test_texts_that_make_no_rubric_are_refused(name: str, texts: tuple[str, str], message: str) -> None:
    with pytest.raises(ImportRefused, match=message):
        rubric_from_texts(name, {"tone": texts})


def test_an_upload_says_how_far_it_has_been_read() -> None:
    upload = Upload("../../folder/history.csv", csv(*["a,0,j,1"] * 100_000))
    assert upload.source.name == "history.csv"
    pieces = upload.source.content()
    next(pieces)
    assert 0 < upload.read() < 1
    assert sum(map(len, pieces)) > 0
    assert upload.read() == 1


def _draft(engine: Engine, data: bytes) -> Draft:
    upload = Upload("history.csv", data)
    draft = Draft(upload, plan_import(engine, upload.source))
    draft.confirm(draft.preview.mapping)
    return draft


def _choices(draft: Draft, *, set_aside: bool = False) -> Choices:
    assert draft.mapping
    return Choices(draft.mapping, rubric(), "", "", "", set_aside)


def test_a_trial_leaves_nothing_and_the_import_reports_the_same(sqlite_engine: Engine) -> None:
    draft = _draft(sqlite_engine, csv("a,0,j,1", "a,x,j,2", "b,0,j,9"))
    refused = draft.carry_out(sqlite_engine, _choices(draft), dry_run=True)
    assert (refused.refused, refused.imported, refused.set_aside) == (True, False, 1)
    trial = draft.carry_out(sqlite_engine, _choices(draft, set_aside=True), dry_run=True)
    assert (trial.refused, trial.imported, count(sqlite_engine, "import_file")) == (False, False, 0)
    done = draft.carry_out(sqlite_engine, _choices(draft, set_aside=True), dry_run=False)
    assert (done.imported, done.scored, done.unscored) == (True, trial.scored, trial.unscored)
    assert (done.scored, done.unscored, count(sqlite_engine, "set_aside_line")) == (1, {"out_of_range": 1}, 1)


def test_a_failed_trial_is_no_trial(sqlite_engine: Engine) -> None:
    data = csv("a,0,j,1")
    draft = _draft(sqlite_engine, data)
    draft.carry_out(sqlite_engine, _choices(draft), dry_run=True)
    run(sqlite_engine, data)
    with pytest.raises(AlreadyImported):
        draft.carry_out(sqlite_engine, _choices(draft), dry_run=True)
    assert draft.tried is None


def test_another_mapping_drops_what_was_found_under_the_first(sqlite_engine: Engine) -> None:
    draft = _draft(sqlite_engine, csv("a,0,j,1"))
    assert draft.read_criteria()[0].values == (1.0,)
    draft.carry_out(sqlite_engine, _choices(draft), dry_run=True)
    draft.confirm(mapping("item,judge,score"))
    assert (draft.proposals, draft.tried, draft.report) == (None, None, None)


def test_an_interrupted_import_writes_nothing(sqlite_engine: Engine) -> None:
    class Left(BaseException):
        """What a page raises when its visitor goes elsewhere."""

    def leave(_rows: int) -> None:
        raise Left

    draft = _draft(sqlite_engine, csv(*[f"i{number},0,j,1" for number in range(10_000)]))
    with pytest.raises(Left):
        draft.carry_out(sqlite_engine, _choices(draft), dry_run=False, on_rows=leave)
    assert [count(sqlite_engine, table) for table in ("import_file", "item", "call", "score")] == [0, 0, 0, 0]
