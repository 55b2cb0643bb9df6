"""`python -m core.cli export`: every score with its reason, and a clear word where none is meant."""

import csv
from io import StringIO
from pathlib import Path

import pytest

from core import cli
from core.store.engine import DATABASE_PATH, DATABASE_URL, get_engine
from tests.ingest.files import rows

HISTORY = "item_id,rep,judge,score,status\n=a,0,j,3,ok\n=a,1,j,2,ok\nb,0,j,,unparsed\nb,0,k,1,ok\n"


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv(DATABASE_URL, raising=False)
    monkeypatch.setenv(DATABASE_PATH, str(tmp_path / "evenhand.db"))
    for name in ("first", "second"):
        path = tmp_path / f"{name}.csv"
        path.write_text(HISTORY.replace("b,", f"{name},"))
        assert cli.main(["import", str(path), "--yes", "--levels", "1,2,3", "--gate", "3"]) == cli.DONE
    return f"sqlite:///{tmp_path / 'evenhand.db'}"


def test_scores_are_written_with_reasons_and_no_formula(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert cli.main(["export", "--judge", "j", "--corpus", "first"]) == cli.DONE
    printed = capsys.readouterr().out
    found = list(csv.DictReader(StringIO(printed)))
    assert [(row["item"], row["repetition"], row["value"], row["unscored"]) for row in found] == [
        ("'=a", "0", "3.0", ""),
        ("'=a", "1", "2.0", ""),
        ("first", "0", "", "verdict_missing"),
    ]
    out = tmp_path / "out.csv"
    assert cli.main(["export", "--judge", "j", "--corpus", "first", "--out", str(out)]) == cli.DONE
    assert out.read_text() == printed
    assert cli.main(["export", "--judge", "j", "--corpus", "first", "--most", "2"]) == cli.DONE
    cut = capsys.readouterr()
    assert cut.out.count("\n") == 3
    assert "the first 2 scores" in cut.err


def test_a_judge_is_found_by_its_fingerprint(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    (fingerprint,) = (row[0] for row in rows(get_engine(store), "SELECT fingerprint FROM judge WHERE name = 'k'"))
    assert cli.main(["export", "--judge", fingerprint[:12], "--corpus", "second"]) == cli.DONE
    assert ",k," in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--judge", "nobody"], "there is no judge nobody; there are: "),
        (["--judge", "j", "--corpus", "third"], "there is no judge j with scores on third"),
        (["--judge", "j"], "give --corpus, one of "),
        (["--judge", "j", "--corpus", "first", "--out", "/nowhere/x.csv"], "No such file or directory"),
    ],
)
def test_what_is_not_clear_is_said(options: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["export", *options]) == cli.USAGE
    assert words in capsys.readouterr().err
