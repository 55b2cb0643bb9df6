"""The import: what is stored, what is refused, and that a refusal leaves no trace."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine
from sqlmodel import col, select

from core.ingest.load import propose_levels, run_import
from core.ingest.mapping import Mapping, guess
from core.ingest.records import AlreadyImported, ImportRefused, Problem
from core.ingest.rubrics import from_levels, get_rubric, parse_levels
from core.ingest.source import Source
from core.store.engine import get_engine, reading
from core.store.queries import get_score_matrix, list_imports, list_set_aside
from core.store.specs import content_hash
from core.store.tables import Call
from tests.ingest.files import count, csv, mapping, rows, rubric, run

TABLES = ("call", "score", "score_evidence", "item", "corpus", "judge", "run", "label", "import_file", "set_aside_line")


def jsonl(*objects: dict[str, Any]) -> bytes:
    return "\n".join(map(json.dumps, objects)).encode()


def reply(**parts: Any) -> dict[str, Any]:
    return {"item_id": "a", "run_index": 0, "model": "m", "score": 3} | parts


def run_jsonl(engine: Engine, *objects: dict[str, Any], **options: Any) -> Any:
    data = jsonl(*objects)
    header = list(dict.fromkeys(key for part in objects for key in part))
    return run(engine, data, name="replies.jsonl", **({"mapping": guess(header)} | options))


def outcomes(engine: Engine) -> list[tuple[Any, ...]]:
    return rows(
        engine,
        "SELECT item.key, call.repetition, score.value, score.unscored, score.raw_value FROM score "
        "JOIN call ON call.id = score.call_id JOIN item ON item.id = call.item_id ORDER BY score.id",
    )


def test_scores_land_with_their_call_item_judge_and_vector(engine: Engine) -> None:
    report = run(engine, csv("a,0,j,3", "a,1,j,4.0", "b,1,j,9.2e+124", "b,0,k,"))
    assert (report.imported, report.rows, report.calls, report.scored) == (True, 4, 4, 2)
    assert report.unscored == {"out_of_range": 1, "verdict_missing": 1}
    assert (report.items_new, report.items_known, report.corpus) == (2, 0, ("history", 1))
    assert [(judge.name, judge.outcomes) for judge in report.judges] == [
        ("j", {"scored": 2, "out_of_range": 1}),
        ("k", {"verdict_missing": 1}),
    ]
    assert sorted(outcomes(engine), key=str) == [
        ("a", 0, 3.0, None, None),
        ("a", 1, 4.0, None, "4.0"),
        ("b", 0, None, "verdict_missing", None),
        ("b", 1, None, "out_of_range", "9.2e+124"),
    ]
    with reading(engine) as session:
        matrix = get_score_matrix(session=session, run_ids=[report.judges[0].run_id], criterion_id=1)
    assert matrix.codes.tolist() == [[2, 3], [-1, -1]]
    assert (matrix.scored, matrix.unscored) == (2, 1)
    (file,) = rows(engine, "SELECT name, rows, imported, set_aside FROM import_file")
    assert file == ("history.csv", 4, 4, 0)


def test_a_collectors_reply_is_kept_whole(engine: Engine) -> None:
    report = run_jsonl(
        engine,
        reply(
            content_sha256="ab12",
            response_id="msg_1",
            cited_evidence="the words",
            boundary_reason="3 or 4",
            confidence=0.75,
            candidate="text",
            request="ask",
            reference="ideal",
            prompt_version="p2",
            rubric_version="r1",
            created_at="2026-03-01T13:00:00+01:00",
        ),
    )
    assert report.judges[0].name == "m · p2 · r1"
    assert rows(engine, "SELECT key, content_sha256, request, reference, candidate FROM item") == [
        ("a", "ab12", "ask", "ideal", "text")
    ]
    assert rows(engine, "SELECT rationale, cited_evidence, boundary_reason, confidence FROM score_evidence") == [
        (None, "the words", "3 or 4", 0.75)
    ]
    assert rows(engine, "SELECT name, model, prompt_version FROM judge") == [("m · p2 · r1", "m", "p2")]
    assert rows(engine, "SELECT response_id FROM call") == [("msg_1",)]


def test_times_are_utc_and_zoneless_ones_are_counted(engine: Engine) -> None:
    report = run_jsonl(
        engine,
        reply(created_at="2026-03-01T13:00:00+01:00"),
        reply(run_index=1, created_at="2026-03-01 12:00:00"),
        reply(run_index=2),
    )
    assert report.zoneless == 1
    with reading(engine) as session:
        times = session.scalars(select(Call.created_at).order_by(col(Call.repetition))).all()
    assert times == [datetime(2026, 3, 1, 12, tzinfo=UTC), datetime(2026, 3, 1, 12, tzinfo=UTC), None]


TWICE = "item a, repetition 0, overall: stands on line 2 too"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (
            csv("a,0,j,3", "a,0,j,4"),
            Problem(3, "repetition", "0", "item a, repetition 0, overall: stands on line 2 too"),
        ),
        (
            csv("a,0,j,3", "a,00,j,3"),
            Problem(3, "repetition", "00", "item a, repetition 0, overall: stands on line 2 too"),
        ),
        (csv("a,0,j,3", "b,,j,3"), Problem(3, "repetition", "", "is no whole number from 0 to 9999")),
        (csv("a,0,j,3", "b,-1,j,3"), Problem(3, "repetition", "-1", "is no whole number from 0 to 9999")),
        (csv("a,0,j,3", "b,1.5,j,3"), Problem(3, "repetition", "1.5", "is no whole number from 0 to 9999")),
        (csv("a,0,j,3", "b,1e9,j,3"), Problem(3, "repetition", "1e9", "is no whole number from 0 to 9999")),
        (csv("a,0,j,3", " ,0,j,3"), Problem(3, "item", " ", "is empty: every line needs its item")),
        (csv("a,0,j,3", "b,0, ,3"), Problem(3, "judge", "", "is empty: every score needs its judge")),
        (csv("a,0,j,3", "b,0"), Problem(3, "", "b,0", "2 values where the header has 4")),
        (
            csv("a,j,3,ok", "b,j,3,weird", header="item,judge,score,status"),
            Problem(3, "status", "weird", "unknown status; say what it means with --status weird=REASON or =ok"),
        ),
        (
            csv("a,j,3,overall", "b,j,3,style", header="item,judge,score,criterion"),
            Problem(3, "criterion", "style", "is no criterion of the rubric, which has overall"),
        ),
        (
            csv("a,j,3,ab", "b,j,3,first", header="item,judge,score,order"),
            Problem(3, "order", "first", "unknown order; say what it means with --order first=ab or =ba"),
        ),
        (
            csv("a,j,3,2026-01-01", "b,j,3,yesterday", header="item,judge,score,created_at"),
            Problem(3, "created_at", "yesterday", "is no time like 2026-03-01T12:00:00Z"),
        ),
        (
            csv("a,j,3,0.5", "b,j,3,high", header="item,judge,score,confidence"),
            Problem(3, "confidence", "high", "is no number"),
        ),
        (
            csv("a,j,3,s1", "a,j,4,s2", header="item,judge,score,system"),
            Problem(
                3,
                "system",
                "s2",
                "item a belongs to s1 on line 2; texts of two systems are two items: --map item=ITEM,SYSTEM",
            ),
        ),
        (
            csv("a,j,3,anchor", "a,j,4,boundary", header="item,judge,score,slice"),
            Problem(3, "slice", "boundary", "item a is in 'anchor' on line 2"),
        ),
        (
            csv("a,j,3,4", "a,j,3,5", header="item,judge,score,label"),
            Problem(3, "label", "5", "contradicts 4 on line 2, same item and rater"),
        ),
        (
            csv("a,j,3,4", "b,j,3,6", header="item,judge,score,label"),
            Problem(3, "label", "6", "lies outside the levels of overall"),
        ),
    ],
)
def test_a_bad_line_imports_nothing_unless_set_aside(engine: Engine, data: bytes, problem: Problem) -> None:
    report = run(engine, data)
    assert (report.imported, report.problems, report.rows) == (False, (problem,), 2)
    assert {table: count(engine, table) for table in TABLES} == dict.fromkeys(TABLES, 0)

    report = run(engine, data, set_aside=True)
    assert (report.imported, report.problems, report.set_aside, report.scored) == (True, (problem,), 1, 1)
    assert (count(engine, "item"), count(engine, "run"), count(engine, "score")) == (1, 1, 1)
    with reading(engine) as session:
        (file_id,) = list_imports(session=session)["id"]
        kept = list_set_aside(session=session, import_file_id=int(file_id))
    assert [tuple(row) for row in kept.itertuples(index=False)] == [
        (problem.line, problem.column, problem.value, problem.reason)
    ]


@pytest.mark.parametrize("text", ["1772366400", "1772366400.0", "1772366400000"], ids=["s", "decimal", "ms"])
def test_a_time_may_be_seconds_or_milliseconds_since_1970(sqlite_engine: Engine, text: str) -> None:
    run(sqlite_engine, csv(f"a,j,3,{text}", header="item,judge,score,created_at"))
    with reading(sqlite_engine) as session:
        # 2026-03-01 is day 20,513 since 1970: 20,513 * 86,400 + 12 * 3,600 = 1,772,366,400
        assert session.scalars(select(Call.created_at)).all() == [datetime(2026, 3, 1, 12, tzinfo=UTC)]


def test_every_bad_line_is_listed_with_the_columns_own_name_and_handed_on(sqlite_engine: Engine) -> None:
    heard: list[Problem] = []
    report = run_import(
        sqlite_engine,
        Source.from_bytes("f.csv", csv(*(f"{k},x,j,3" for k in range(30_000)), header="who,rep,judge,mark")),
        mapping=Mapping({"item": ("who",), "repetition": ("rep",), "judge": ("judge",), "score": ("mark",)}),
        rubric=rubric(),
        on_problem=heard.append,
    )
    assert (report.set_aside, len(report.problems), len(heard)) == (30_000, 10_000, 30_000)
    assert report.problems[0] == Problem(2, "rep", "x", "is no whole number from 0 to 9999")


def test_a_file_of_only_bad_lines_is_not_imported_even_when_set_aside(engine: Engine) -> None:
    assert not run(engine, csv("a,x,j,3"), set_aside=True).imported
    assert count(engine, "import_file") == 0


def test_the_same_content_is_refused_with_its_first_date_and_nothing_is_written(engine: Engine) -> None:
    run(engine, csv("a,0,j,3"))
    with pytest.raises(AlreadyImported, match=r"other.csv was imported before, as history.csv on \d{4}-\d\d-\d\d at"):
        run(engine, csv("a,0,j,3"), name="other.csv", corpus="elsewhere")
    assert (count(engine, "score"), count(engine, "import_file"), count(engine, "corpus")) == (1, 1, 1)


def test_a_dry_run_reports_all_and_stores_nothing(engine: Engine) -> None:
    report = run(engine, csv("a,0,j,3", "b,0,j,"), dry_run=True)
    assert (report.imported, report.scored, report.unscored) == (False, 1, {"verdict_missing": 1})
    assert {table: count(engine, table) for table in TABLES} == dict.fromkeys(TABLES, 0)
    assert run(engine, csv("a,0,j,3", "b,0,j,")).imported


def test_rows_are_numbered_in_order_where_the_file_has_no_repetition(engine: Engine) -> None:
    header = "item,judge,criterion,score"
    data = csv("a,j,x,1", "a,j,y,2", "b,j,x,3", "a,j,x,4", "a,k,x,5", "a,j,y,1", header=header)
    run(engine, data, rubric=rubric("x", "y"))
    found = rows(
        engine,
        "SELECT item.key, call.part, call.repetition, score.value FROM score JOIN call ON call.id = score.call_id "
        "JOIN item ON item.id = call.item_id JOIN run ON run.id = call.run_id ORDER BY run.id, score.id",
    )
    assert found == [
        ("a", "x", 0, 1.0),
        ("a", "y", 0, 2.0),
        ("b", "x", 0, 3.0),
        ("a", "x", 1, 4.0),
        ("a", "y", 1, 1.0),
        ("a", "x", 0, 5.0),
    ]


def test_rows_of_one_reply_are_one_call(engine: Engine) -> None:
    replies = [("r1", 0, "x"), ("r1", 0, "y"), ("r2", 1, "x"), ("r3", 1, "y"), (None, 2, "x"), (None, 2, "y")]
    report = run_jsonl(
        engine,
        *(reply(response_id=name, run_index=k, criterion=key) for name, k, key in replies),
        rubric=rubric("x", "y"),
    )
    assert (report.calls, report.scored, report.copied) == (5, 6, 0)
    assert rows(engine, "SELECT response_id, repetition, part FROM call ORDER BY id") == [
        ("r1", 0, ""),
        ("r2", 1, "x"),
        ("r3", 1, "y"),
        (None, 2, "x"),
        (None, 2, "y"),
    ]


def test_a_copied_reply_is_stored_and_counts_once(engine: Engine) -> None:
    report = run_jsonl(
        engine, reply(response_id="r"), reply(response_id="r", run_index=1), reply(response_id="s", run_index=2)
    )
    assert (report.calls, report.scored, report.copied, report.shared) == (3, 2, 1, 0)
    assert count(engine, "call") == 3


def test_a_reply_shared_by_two_judges_is_reported(engine: Engine) -> None:
    report = run_jsonl(engine, reply(response_id="r"), reply(response_id="r", model="other"))
    assert (report.scored, report.copied, report.shared) == (2, 0, 1)


def test_a_text_changed_under_the_same_key_is_another_item(engine: Engine) -> None:
    run_jsonl(engine, reply(candidate="old"), reply(candidate="old", run_index=1), corpus="c")
    report = run_jsonl(engine, reply(candidate="new"), reply(item_id="b", candidate="b"), corpus="c")
    assert (report.mutated, report.items_new, report.corpus) == (("a",), 2, ("c", 2))
    assert rows(engine, "SELECT key, content_sha256 FROM item ORDER BY id") == [
        ("a", content_hash("old")),
        ("a", content_hash("new")),
        ("b", content_hash("b")),
    ]
    assert rows(engine, "SELECT run.id, call.item_id FROM call JOIN run ON run.id = call.run_id ORDER BY call.id") == [
        (1, 1),
        (1, 1),
        (2, 2),
        (2, 3),
    ]


def test_a_text_changed_inside_one_file_makes_no_repetition_of_it(engine: Engine) -> None:
    report = run(
        engine,
        csv("a,j,3,h1", "a,j,4,h1", "a,j,5,h2", header="item,judge,score,content_sha256"),
    )
    assert report.mutated == ("a",)
    assert rows(engine, "SELECT item_id, repetition FROM call ORDER BY id") == [(1, 0), (1, 1), (2, 0)]


def test_known_items_keep_their_corpus_version_and_the_run_hangs_on_it(engine: Engine) -> None:
    run(engine, csv("a,0,j,3", "b,0,j,3"), corpus="c")
    report = run(engine, csv("b,0,k,3"), corpus="c")
    assert (report.items_new, report.items_known, report.corpus) == (0, 1, ("c", 1))
    wider = run(engine, csv("z,0,k,3"), corpus="c")
    assert (wider.items_new, wider.corpus) == (1, ("c", 2))
    assert rows(engine, "SELECT corpus.version FROM run JOIN corpus ON corpus.id = run.corpus_id ORDER BY run.id") == [
        (1,),
        (1,),
        (2,),
    ]
    assert count(engine, "corpus_item") == 2 + 3


def test_names_that_differ_by_spaces_are_one_judge_and_others_stay_apart_under_one_model(engine: Engine) -> None:
    whole = mapping(constants={"model": "gpt"})
    report = run(engine, csv("a,0,j,3", "a,1,j ,3", "a,0,k,3"), mapping=whole)
    assert [judge.name for judge in report.judges] == ["j", "k"]
    assert len({judge.judge_id for judge in report.judges}) == 2
    assert run(engine, csv("b,0,j,3"), mapping=whole).judges[0].judge_id == report.judges[0].judge_id


def test_pairs_keep_order_systems_and_mapped_choices(engine: Engine) -> None:
    header = "item,judge,order,score,system,system_b"
    words = {"orders": {"1": "ab", "2": "ba"}, "values": {"A": 1.0, "B": -1.0, "tie": 0.0}}
    data = csv("p,j,1,A,x,y", "p,j,2,b,x,y", "p,j,2,Tie ,x,y", header=header)
    run(engine, data, mapping=mapping(header, **words), rubric=rubric(levels=(-1, 0, 1), gate=1))
    assert rows(engine, "SELECT slot_order, repetition FROM call ORDER BY id") == [("ab", 0), ("ba", 0), ("ba", 1)]
    assert [row[2:] for row in outcomes(engine)] == [(1.0, None, "A"), (-1.0, None, "b"), (0.0, None, "Tie ")]
    (item,) = rows(engine, "SELECT system, system_b FROM item WHERE pair")
    assert item == ("x", "y")


def test_labels_collapse_when_they_repeat_and_stay_apart_by_rater(engine: Engine) -> None:
    header = "item,judge,score,label,rater"
    data = csv("a,j,3,2.5,ann", "a,j,4,2.5,ann", "a,j,3,4,bob", "b,j,1,,ann", header=header)
    report = run(engine, data, policy="Score what is written.")
    assert (report.labels, report.label_set) == (2, ("history", 1))
    assert rows(engine, "SELECT rater, value, raw_value FROM label ORDER BY id") == [
        ("ann", 2.5, None),
        ("bob", 4.0, None),
    ]
    assert rows(engine, "SELECT name, version, policy FROM label_set") == [("history", 1, "Score what is written.")]


def test_a_file_of_labels_only_makes_no_run(engine: Engine) -> None:
    run(engine, csv("a,0,j,3"), corpus="c")
    data = csv("a,ann,Pass", "a,bob,pass ", "b,ann,1", "b,bob,True", header="item,rater,label")
    words = mapping("item,rater,label", values={"pass": 5.0, "true": 5.0})
    report = run(engine, data, mapping=words, corpus="c", label_set="people")
    assert (report.calls, report.judges, report.labels, report.label_set) == (0, (), 4, ("people", 1))
    assert rows(engine, "SELECT value, raw_value FROM label ORDER BY id") == [
        (5.0, "Pass"),
        (5.0, "pass "),
        (1.0, None),
        (5.0, "True"),
    ]
    assert count(engine, "run") == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"item,repetition,judge,score\n", "has a header and no rows"),
        (b"item,repetition,judge,score\n\n\n", "has a header and no rows"),
    ],
)
def test_an_empty_file_is_refused(engine: Engine, data: bytes, message: str) -> None:
    with pytest.raises(ImportRefused, match=message):
        run(engine, data, mapping=mapping())
    assert count(engine, "import_file") == 0


def test_scores_without_a_judge_are_refused_before_reading(engine: Engine) -> None:
    with pytest.raises(ImportRefused, match="nothing names the judge"):
        run(engine, csv("a,3", header="item,score"))
    named = mapping("item,score", constants={"judge": "j"})
    assert run(engine, csv("a,3", header="item,score"), mapping=named).imported


def test_levels_are_proposed_from_ok_values_only_and_never_used_by_themselves() -> None:
    data = csv(
        "a,x,3,ok", "b,x,1.0,ok", "c,x,8,out_of_range", "d,y,good,ok", "e,y,,ok", header="item,criterion,score,status"
    )
    x, y = propose_levels(Source.from_bytes("f.csv", data), mapping("item,criterion,score,status"))
    assert (x.criterion, x.values, x.rows, x.words) == ("x", (1.0, 3.0), (1, 1), ())
    assert x.options() == "--levels x=1,3 --gate x=3"
    assert (y.criterion, y.values, y.words) == ("y", (), ("good",))


@pytest.mark.parametrize(
    ("text", "values"),
    [("1,2,3", (1, 2, 3)), (" 3, 1", (1, 3)), ("0:1:0.25", (0, 0.25, 0.5, 0.75, 1)), ("1:10:1", tuple(range(1, 11)))],
)
def test_levels_are_given_as_a_list_or_a_range(text: str, values: tuple[float, ...]) -> None:
    assert parse_levels(text) == values


def test_a_range_in_hundredths_has_the_numbers_people_write() -> None:
    assert parse_levels("0:1:0.01") == tuple(float(f"{k / 100:.2f}") for k in range(101))


@pytest.mark.parametrize("text", ["", "1,b", "0:1", "0:1:0", "0:1:-1", "0:1000:1", "NaN,1", "0:Infinity:1", "1:2:3:4"])
def test_levels_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ImportRefused, match="levels"):
        parse_levels(text)


@pytest.mark.parametrize(
    ("levels", "gates", "message"),
    [
        ({"x": (1.0, 2.0)}, {"": 2.0}, "criterion y has no levels; give --levels y=1,2,3"),
        ({"": (1.0, 2.0)}, {"x": 2.0}, "criterion y has no gate; give --gate y=2"),
        ({"": (1.0, 2.0)}, {"": 1.0}, "criterion x: gate 1 must lie above 1"),
        ({"": (1.0, 1.0)}, {"": 1.0}, "level values must ascend and differ"),
    ],
)
def test_a_rubric_that_cannot_be_is_refused(levels: Any, gates: Any, message: str) -> None:
    with pytest.raises(ImportRefused, match=message):
        from_levels("r", ["x", "y"], levels, gates)


def test_a_stored_rubric_comes_back_as_the_same_version(engine: Engine) -> None:
    spec = rubric("x", "y")
    run(engine, csv("a,j,x,3", header="item,judge,criterion,score"), rubric=spec)
    with reading(engine) as session:
        stored = get_rubric(session=session, name="test")
        assert get_rubric(session=session, name="test", version=2) is None
    assert stored is not None
    assert stored.sha256 == spec.sha256
    run(engine, csv("b,j,x,3", header="item,judge,criterion,score"), rubric=stored)
    assert count(engine, "rubric") == 1


CELL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=6))
def test_every_row_is_scored_unscored_or_a_problem(tmp_path: Any, cells: list[tuple[str, str, str]]) -> None:
    engine = get_engine(f"sqlite:///{tmp_path}/{abs(hash(tuple(cells)))}.db")
    objects = [{"item": item, "judge": judge, "score": score, "rationale": score} for item, judge, score in cells]
    report = run(engine, jsonl(*objects), mapping=mapping("item,judge,score,rationale"), set_aside=True, dry_run=True)
    assert report.rows == len(cells)
    assert report.scored + sum(report.unscored.values()) + report.set_aside == len(cells)
    engine.dispose()
