"""Verdicts on pairs: by slot, by candidate, and in words of five steps."""

from pathlib import Path

import pytest
from sqlalchemy import Engine

from core.cli import main
from core.ingest.mapping import Mapping, guess
from core.ingest.rubrics import from_levels
from core.store.engine import DATABASE_URL
from tests.ingest.files import csv, mapping, rows, run

HEADER = "item,judge,order,score"
FIVE = from_levels("pairs", ["preference"], {"": (-2.0, -1.0, 0.0, 1.0, 2.0)}, {"": 1.0})
LINES = ("p1,j,ab,A>>B", "p1,j,ba,A>>B", "p2,j,ab,A=B", "p2,j,ba,B>A")
VERDICTS = (
    "SELECT i.key, c.slot_order, s.value, s.raw_value FROM score s JOIN call c ON c.id = s.call_id "
    "JOIN item i ON i.id = c.item_id ORDER BY i.key, c.slot_order"
)


def test_words_of_five_steps_are_guessed_for_pairs_and_shown_with_what_they_name() -> None:
    found = guess(HEADER.split(","), [line.split(",") for line in LINES])
    assert found.values == {"A>>B": 2.0, "A>B": 1.0, "A=B": 0.0, "B>A": -1.0, "B>>A": -2.0}
    assert found.lines()[-1] == "verdicts name the slot: 1 is the first, -1 the second"


def test_a_verdict_by_slot_is_kept_as_it_is(sqlite_engine: Engine) -> None:
    words = guess(HEADER.split(","), [line.split(",") for line in LINES]).values
    run(sqlite_engine, csv(*LINES, header=HEADER), mapping=mapping(HEADER, values=words), rubric=FIVE)
    assert [row[2] for row in rows(sqlite_engine, VERDICTS)] == [2.0, 2.0, 0.0, -1.0]


def test_a_verdict_by_candidate_is_turned_where_b_stands_in_slot_1(sqlite_engine: Engine) -> None:
    words = guess(HEADER.split(","), [line.split(",") for line in LINES]).values
    by_candidate = mapping(HEADER, values=words, by_candidate=True)
    run(sqlite_engine, csv(*LINES, header=HEADER), mapping=by_candidate, rubric=FIVE)
    # p1: candidate A wins clearly in both orders, from slot 1 and from slot 2; p2: a tie, then B from slot 1.
    assert rows(sqlite_engine, VERDICTS) == [
        ("p1", "ab", 2.0, "A>>B"),
        ("p1", "ba", -2.0, "A>>B"),
        ("p2", "ab", 0.0, "A=B"),
        ("p2", "ba", 1.0, "B>A"),
    ]


def test_what_verdicts_name_is_kept_with_the_mapping() -> None:
    assert Mapping.from_json(Mapping(by_candidate=True).to_json()).by_candidate
    assert not Mapping.from_json({"columns": {}}).by_candidate


def test_the_command_takes_verdicts_by_candidate_and_asks_before_it_guesses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "pairs.csv"
    file.write_bytes(csv("p1,j,ab,A", "p1,j,ba,A", "p2,j,ab,A=B", "p2,j,ba,B", header=HEADER))
    monkeypatch.setenv(DATABASE_URL, f"sqlite:///{tmp_path / 'x.db'}")
    words = ["--value", "A=1", "--value", "A=B=0", "--value", "B=-1", "--levels=-1,0,1", "--gate", "1"]
    assert main(["import", str(file), *words, "--by-candidate"]) == 2
    assert "confirm it with --yes" in capsys.readouterr().err
    assert main(["import", str(file), *words, "--by-candidate", "--yes"]) == 0
    assert "verdicts name the candidate" in capsys.readouterr().out
