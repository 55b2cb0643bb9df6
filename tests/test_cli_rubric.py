"""`python -m core.cli rubric`: what a vague rubric is told, and what is stored."""

from pathlib import Path

import pytest

from core import cli
from core.store.engine import get_engine, reading
from core.store.queries import list_rubrics
from tests.conftest import REPO

VAGUE = """{"name": "tone", "criteria": [
{"key": "tone", "question": "Is the answer polite and clear?", "gate": 1, "levels": [
{"value": 0}, {"value": 1, "anchor": "It greets the reader by name."}]}]}"""


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    address = f"sqlite:///{tmp_path / 'evenhand.db'}"
    monkeypatch.setenv("EVENHAND_DATABASE_URL", address)
    return address


def test_findings_name_file_line_criterion_and_rule(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tone.json"
    path.write_text(VAGUE)
    assert cli.main(["rubric", str(path), "--check"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "tone.json, line 2, criterion tone: “polite and clear” joins two properties; make two criteria of them (rule: "
        "one criterion asks for one property)",
        "tone.json, line 2, criterion tone: level 0 has no anchor (rule: every level has an anchor)",
        "Findings: 2",
    ]
    with reading(get_engine(url)) as session:
        assert list_rubrics(session=session).empty


def test_a_rubric_is_stored_once_and_a_changed_one_as_the_next_version(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = REPO / "data" / "rubrics" / "pass-fail.json"
    assert cli.main(["rubric", str(path)]) == 0
    assert cli.main(["rubric", str(path)]) == 0
    changed = tmp_path / "changed.json"
    changed.write_text(path.read_text().replace('"gate": 1', '"gate": 1, "weight": 2'))
    assert cli.main(["rubric", str(changed)]) == 0
    said = [line for line in capsys.readouterr().out.splitlines() if "stored" in line]
    assert [line.rsplit(maxsplit=1)[1] for line in said] == ["1.", "1.", "2."]
    with reading(get_engine(url)) as session:
        assert sorted(list_rubrics(session=session).version) == [1, 2]


@pytest.mark.usefixtures("url")
def test_a_file_that_is_no_rubric_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rubric", str(tmp_path / "none.json")]) == 2
    assert "No such file" in capsys.readouterr().err
    path = tmp_path / "broken.json"
    path.write_text("[]")
    assert cli.main(["rubric", str(path), "--check"]) == 2
    assert "broken.json" in capsys.readouterr().err
