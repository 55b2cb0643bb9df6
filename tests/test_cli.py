"""`python -m core.cli import`: what it prints, what it returns, what it leaves in the store."""

import csv
import json
import re
from pathlib import Path

import pytest

from core import cli
from core.store.contents import defused
from core.store.engine import DATABASE_PATH, DATABASE_URL, get_engine
from tests.ingest.files import count, rows

HISTORY = "item_id,rep,judge,score,status\na,0,j,3,ok\na,1,j,2,ok\nb,0,j,,unparsed\n"
SCALE = ("--levels", "1,2,3", "--gate", "3")


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv(DATABASE_URL, raising=False)
    monkeypatch.setenv(DATABASE_PATH, str(tmp_path / "evenhand.db"))
    return f"sqlite:///{tmp_path / 'evenhand.db'}"


@pytest.fixture
def history(tmp_path: Path) -> Path:
    path = tmp_path / "history.csv"
    path.write_text(HISTORY)
    return path


def test_a_guessed_mapping_is_shown_and_used_only_when_confirmed(
    history: Path, store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["import", str(history), *SCALE]) == cli.USAGE
    shown = capsys.readouterr()
    assert "Mapping, guessed from the column names" in shown.out
    assert "  item = item_id\n  repetition = rep\n" in shown.out
    assert "the mapping is a guess; confirm it with --yes" in shown.err
    assert count(get_engine(store), "score") == 0

    assert cli.main(["import", str(history), *SCALE, "--yes"]) == cli.DONE
    shown = capsys.readouterr()
    assert "corpus history version 1: 2 new items, 0 known" in shown.out
    assert "rows 3, calls 3, scored 2" in shown.out
    assert "unscored 1: verdict_missing 1" in shown.out
    assert "status 'unparsed' read as verdict_missing: 1 rows" in shown.out
    assert count(get_engine(store), "score") == 3


def test_the_next_file_of_the_same_shape_needs_no_asking(
    history: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main(["import", str(history), *SCALE, "--yes"])
    second = tmp_path / "second.csv"
    second.write_text(HISTORY.replace(",j,", ",k,"))
    capsys.readouterr()
    assert cli.main(["import", str(second), "--rubric", "history", "--corpus", "history"]) == cli.DONE
    assert capsys.readouterr().out.startswith("Mapping\n  item = item_id\n")


def test_the_same_file_twice_is_refused(history: Path, store: str, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["import", str(history), *SCALE, "--yes"])
    assert cli.main(["import", str(history), *SCALE]) == cli.REFUSED
    assert "Nothing was imported: history.csv was imported before" in capsys.readouterr().err
    assert count(get_engine(store), "score") == 3


def test_without_a_rubric_the_levels_are_proposed_and_nothing_is_imported(
    history: Path, store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["import", str(history), "--yes"]) == cli.USAGE
    assert "--levels overall=2,3 --gate overall=3" in capsys.readouterr().err
    assert count(get_engine(store), "score") == 0


def test_a_rubric_file_is_used(history: Path, tmp_path: Path, store: str) -> None:
    levels = [{"value": value, "anchor": f"like {value}"} for value in (1, 2, 3)]
    rubric = tmp_path / "rubric.json"
    rubric.write_text(json.dumps({"name": "house", "criteria": [{"key": "clarity", "gate": 2, "levels": levels}]}))
    assert cli.main(["import", str(history), "--yes", "--rubric", str(rubric), "--criterion", "clarity"]) == cli.DONE
    assert rows(get_engine(store), "SELECT name, key, gate FROM rubric JOIN criterion ON rubric_id = rubric.id") == [
        ("house", "clarity", 2.0)
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--map", "item=nope", "score=score", "--judge", "j"], "item: there is no column nope"),
        (["--map", "item"], "--map item: expected LEFT=RIGHT"),
        (["--map", "thing=item_id"], "thing is no role"),
        (["--map", "item=item_id", "score=score"], "nothing names the judge"),
        (["--yes", "--status", "odd=weird"], "'weird' is none of ok, refusal"),
        (["--yes", "--value", "A=x"], "--value: 'x' is no number"),
        (["--yes", "--rubric", "nobody"], "no rubric of this name is stored"),
        (["--yes", "--rubric", "missing.json"], "--rubric: "),
    ],
)
def test_a_command_that_cannot_be_carried_out_says_why(
    history: Path, store: str, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    scale = [] if "--rubric" in options else SCALE
    assert cli.main(["import", str(history), *options, *scale]) == cli.USAGE
    assert message in capsys.readouterr().err
    assert count(get_engine(store), "import_file") == 0


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        (["--levels", "1,2,x", "--gate", "2"], "levels '1,2,x' are neither numbers"),
        (["--levels", "1,2,3"], "criterion overall has no gate; give --gate overall=3"),
        (["--levels", "1,2,3", "--gate", "1"], "gate 1 must lie above 1"),
        (["--levels", "1,2", "--gate", "2", "--rubric", "r"], "leave out --levels and --gate"),
    ],
)
def test_levels_and_gate_must_make_a_rubric(
    history: Path, scale: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["import", str(history), "--yes", *scale]) == cli.USAGE
    assert message in capsys.readouterr().err


def test_bad_lines_refuse_the_file_are_listed_and_can_be_set_aside(
    tmp_path: Path, store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path, rejects = tmp_path / "odd.csv", tmp_path / "rejects.csv"
    path.write_text(HISTORY + 'a,0,j,3,ok\nc,0,j,3,"=cmd()"\nd,0\n')
    assert cli.main(["import", str(path), *SCALE, "--yes", "--rejects", str(rejects)]) == cli.REFUSED
    shown = capsys.readouterr().out
    assert "odd.csv was not imported: 3 of 6 lines are bad." in shown
    assert "line 5, rep: '0': item a, repetition 0, overall: stands on line 2 too" in shown
    assert count(get_engine(store), "call") == 0
    with rejects.open(newline="", encoding="utf-8") as file:
        found = list(csv.reader(file))
    assert found[0] == ["line", "column", "value", "reason"]
    assert [row[:3] for row in found[1:]] == [["5", "rep", "0"], ["6", "status", "'=cmd()"], ["7", "", "d,0"]]

    assert cli.main(["import", str(path), *SCALE, "--yes", "--set-aside"]) == cli.DONE
    assert "set aside 3 bad lines:" in capsys.readouterr().out
    assert (count(get_engine(store), "call"), count(get_engine(store), "set_aside_line")) == (3, 3)


def test_a_dry_run_writes_nothing(history: Path, store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["import", str(history), *SCALE, "--yes", "--dry-run"]) == cli.DONE
    assert "Dry run, nothing was written: history.csv" in capsys.readouterr().out
    assert (count(get_engine(store), "call"), count(get_engine(store), "import_mapping")) == (0, 0)


def test_pairs_with_words_for_choices_and_orders(
    tmp_path: Path, store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("pair_id,judge,order,choice\np,j,straight,left\np,j,turned,Right \n")
    words = ["--value", "left=1", "--value", "right=-1", "--order", "straight=ab", "--order", "turned=ba"]
    assert cli.main(["import", str(path), "--yes", "--levels=-1,0,1", "--gate", "1", *words]) == cli.DONE
    assert "overall 'Right ' read as -1: 1 rows" in capsys.readouterr().out
    found = rows(
        get_engine(store), "SELECT slot_order, value FROM score JOIN call ON call.id = call_id ORDER BY call.id"
    )
    assert found == [("ab", 1.0), ("ba", -1.0)]


def test_limits_are_options(history: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["import", str(history), *SCALE, "--yes", "--max-bytes", "20"]) == cli.REFUSED
    assert "more than 20 bytes after decompression" in capsys.readouterr().err
    assert cli.main(["import", str(history), *SCALE, "--yes", "--max-rows", "2"]) == cli.REFUSED
    assert "more than 2 rows" in capsys.readouterr().err


def test_a_missing_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["import", str(tmp_path / "no.csv")]) == cli.REFUSED
    assert "is no file; check the name" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@a", "\ta", "\ra"])
def test_cells_that_a_spreadsheet_would_run_are_escaped(text: str) -> None:
    assert defused(text) == "'" + text
    assert defused("a" + text) == "a" + text


def test_migrate_and_version(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["migrate"]) == cli.DONE
    assert count(get_engine(store), "store_revision") == 1
    with pytest.raises(SystemExit) as stop:
        cli.main(["--version"])
    assert stop.value.code == 0
    assert re.search(r"evenhand \S+", capsys.readouterr().out)


@pytest.mark.parametrize(("late", "expected"), [("facts", ["facts", "tone"]), ("", ["overall", "tone"])])
def test_a_criterion_that_only_a_late_row_names_is_a_criterion(
    late: str, expected: list[str], tmp_path: Path, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "_FIRST_ROWS", 3)
    path = tmp_path / "long.csv"
    lines = [f"i{place},tone,j,3" for place in range(5)] + [f"i0,{late},j,1", "i1,tone,k,9"]
    path.write_text("item_id,criterion,judge,score\n" + "\n".join(lines) + "\n")
    rejects = tmp_path / "rejects.csv"
    assert cli.main(["import", str(path), *SCALE, "--yes", "--rejects", str(rejects)]) == cli.DONE
    engine = get_engine(store)
    assert [key for (key,) in rows(engine, "SELECT key FROM criterion ORDER BY key")] == expected
    assert (count(engine, "rubric"), count(engine, "score"), count(engine, "import_file")) == (1, 7, 1)


def test_one_judge_in_two_files_stands_under_one_rubric(
    history: Path, tmp_path: Path, store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    second = tmp_path / "second.csv"
    second.write_text(HISTORY.replace("a,", "c,"))
    for path in (history, second):
        assert cli.main(["import", str(path), *SCALE, "--yes"]) == cli.DONE
        assert "  rubric history version 1\n" in capsys.readouterr().out
    engine = get_engine(store)
    assert (count(engine, "judge"), count(engine, "rubric"), count(engine, "run")) == (1, 1, 2)
    assert rows(engine, "SELECT DISTINCT criterion_id FROM score") == [(1,)]
