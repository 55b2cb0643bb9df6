"""`python -m core.cli agreement` and `trust`, and labels in every spelling through `import`."""

import json
from pathlib import Path

import pytest

from core import cli
from core.store.engine import DATABASE_PATH, DATABASE_URL

PUBLISHED = ("--corpus", "labels_r01_r20")
FREEZE = ("trust", "freeze", "--author", "Reader", *PUBLISHED, "--criterion", "verdict")

SPELLED = """item,judge,score,label,rater
a,j,Pass,True,ann
b,j,pass ,1,ann
c,j,1,fail,ann
d,j,True,pass ,ann
d,j,True,Pass,bea
e,j,0,fail,ann
"""
WORDS = ("--value", "pass=1", "--value", "true=1", "--value", "fail=0")


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DATABASE_URL, raising=False)
    monkeypatch.setenv(DATABASE_PATH, str(tmp_path / "evenhand.db"))


@pytest.fixture
def published(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["demo"])
    capsys.readouterr()


@pytest.mark.usefixtures("published")
def test_the_twenty_labels_print_their_published_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["agreement", *PUBLISHED]) == cli.DONE
    said = capsys.readouterr().out
    assert "agreement 0.750 (95% 0.531 to 0.888, n = 20 items)" in said
    assert "kappa 0.490 (" in said
    assert "false passes r03, r09, r15: 3 of 9 fails by people (33.3%), 3 of 12 passes by the judge (25.0%)\n" in said
    assert "20 labels cannot calibrate a judge" in said


@pytest.mark.usefixtures("published")
def test_a_program_reads_the_same_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["agreement", *PUBLISHED, "--json"]) == cli.DONE
    (found,) = json.loads(capsys.readouterr().out)
    assert found["false_passes"] == ["r03", "r09", "r15"]
    assert found["confusion"] == {"tp": 9, "fp": 3, "fn": 2, "tn": 6}
    assert found["figures"]["kappa"]["value"] == pytest.approx(24 / 49)
    assert found["left_out"] == {"no_label": 0, "no_score": 0, "no_majority": 0, "labels_between_levels": 0}


@pytest.mark.usefixtures("published")
def test_a_frozen_rule_says_do_not_trust_and_that_it_came_late(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*FREEZE, "--name", "strict", "--min-agreement", "0.8", "--min-kappa", "0.6"]) == cli.DONE
    assert "20 labels existed: made after the labels were seen" in capsys.readouterr().out
    assert cli.main(["trust", "evaluate", "--rule", "strict", *PUBLISHED]) == cli.REFUSED
    said = capsys.readouterr().out
    assert "rule strict: do not trust" in said
    assert "agreement 0.750 (95% 0.531 to 0.888), asked ≥ 0.8: fails" in said
    assert "this rule was made after the labels were seen" in said
    assert cli.main(["trust", "list"]) == cli.DONE
    assert "strict: agreement ≥ 0.8, kappa ≥ 0.6; on decisions" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([*FREEZE, "--name", "empty"], "at least one threshold"),
        ([*FREEZE, "--name", "percent", "--min-agreement", "80"], "is no share"),
        (["trust", "evaluate", "--rule", "nosuch"], "no frozen rule nosuch"),
        (["agreement", "--judge", "nosuch"], "no judge with scores and labels fits the choice"),
    ],
)
def test_what_cannot_be_done_is_said(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == cli.USAGE
    assert words in capsys.readouterr().err


def test_a_rule_frozen_before_the_labels_is_not_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    freeze = ["trust", "freeze", "--author", "Reader", "--corpus", "spelled", "--criterion", "overall"]
    assert cli.main([*freeze, "--name", "early", "--max-false-passes", "1"]) == cli.DONE
    _import(tmp_path)
    capsys.readouterr()
    assert cli.main(["trust", "evaluate", "--rule", "early"]) == cli.DONE
    said = capsys.readouterr().out
    assert "rule early: trusted" in said
    assert "false passes 1, asked ≤ 1: passes" in said
    assert "after the labels" not in said


def test_every_spelling_of_a_label_is_mapped_once_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """a, b, d, e agree and c is a false pass; the second label of d comes from another rater and is no second item."""
    _import(tmp_path)
    said = capsys.readouterr().out
    assert "labels 6 in set people version 1" in said
    for spelling in ("'Pass' read as 1: 1 rows", "'pass ' read as 1: 1 rows", "'True' read as 1: 1 rows"):
        assert f"overall, label {spelling}" in said
    assert cli.main(["agreement", "--unit", "call:0", "--json"]) == cli.DONE
    (found,) = json.loads(capsys.readouterr().out)
    assert found["items"] == 5
    assert found["confusion"] == {"tp": 3, "fp": 1, "fn": 0, "tn": 1}


def test_an_unmapped_spelling_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _import(tmp_path, words=("--value", "pass=1", "--value", "fail=0")) == cli.REFUSED
    assert "say what it means with --value True=NUMBER" in capsys.readouterr().out


def _import(tmp_path: Path, *, words: tuple[str, ...] = WORDS) -> int:
    path = tmp_path / "spelled.csv"
    path.write_text(SPELLED)
    columns = [f"{role}={role}" for role in ("item", "judge", "score", "label", "rater")]
    scale = ("--levels", "0,1", "--gate", "1", "--label-set", "people", "--policy", "Pass what you would send.")
    return cli.main(["import", str(path), "--map", *columns, *scale, *words])
