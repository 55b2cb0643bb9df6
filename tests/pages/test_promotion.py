"""From no baseline to a recorded decision, as a user would click."""

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.cli import main
from tests.pages.opening import open_app

RULE = ["promotion-rule", "--name", "release", "--author", "lead", "--corpus", "support-answers", "--criterion"]


def click(test: AppTest, label: str) -> AppTest:
    (button,) = [button for button in test.button if button.label == label]
    return button.click().run()


def write(test: AppTest, label: str, words: str, place: int = 0) -> None:
    [field for field in test.text_input if field.label == label][place].set_value(words)


@pytest.mark.usefixtures("empty")
def test_an_empty_store_says_what_to_do() -> None:
    test = open_app("promotion")
    assert not test.exception
    assert "make demo" in test.info[0].value


@pytest.mark.usefixtures("demo")
def test_baseline_rule_and_decision_are_recorded_one_after_the_other() -> None:
    test = open_app("promotion", corpus="support-answers@1", criterion="helpfulness")
    assert not test.exception
    assert "No promotion rule is frozen" in test.info[0].value

    write(test, "Your name", "lead")
    write(test, "Reason", "in use since spring")
    test = click(test, "Approve the first baseline")
    assert not test.exception
    assert "the approved baseline" in test.main.markdown[0].value

    test = click(test, "Freeze the rule")
    assert "needs a name and an author" in test.error[0].value
    write(test, "Name of the rule", "release rule")
    write(test, "Who answers for it", "lead")
    test = click(test, "Freeze the rule")
    assert not test.exception
    assert "release rule" in test.sidebar.selectbox[-1].options[0]
    # the candidate of the demo history is the drifted snapshot: it scores about half a level lower
    assert "score location" in test.error[0].value

    test = click(test, "Record the decision")
    assert "needs a name and a reason" in test.error[-1].value
    test.radio[0].set_value("rejected")
    write(test, "Your name", "lead")
    write(test, "Reason", "it scores lower")
    test = click(test, "Record the decision")
    assert not test.exception
    history = test.dataframe[-1].value
    assert history.kind.tolist() == ["rejected", "approved"]
    assert history.reason.tolist() == ["it scores lower", "in use since spring"]


@pytest.mark.usefixtures("demo")
def test_page_and_command_line_print_the_same_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RULE, "helpfulness", "--agreement", "0.05", "--flip-rate", "0.05", "--location", "0.3"]) == 0
    capsys.readouterr()
    test = open_app("promotion", corpus="support-answers@1", criterion="helpfulness")
    shown = test.dataframe[0].value
    chosen = {box.label: str(box.value) for box in test.sidebar.selectbox}
    rivals = ["--candidate", chosen["Candidate judge"], "--baseline", chosen["Baseline judge"]]
    exit_code = main(["gate", *rivals, "--rule", "release", "--json"])
    printed = json.loads(capsys.readouterr().out)
    assert printed["lines"] == shown.to_dict("records")
    assert printed["outcome"] == "fail"
    assert exit_code == 1


@pytest.mark.usefixtures("demo")
def test_what_cannot_be_measured_exits_with_three(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gate", "--candidate", "careful judge", "--rule", "none"]) == 3
    assert "no frozen promotion rule none" in capsys.readouterr().out
    main([*RULE, "helpfulness", "--agreement", "0.05"])
    assert main(["gate", "--candidate", "hasty judge", "--rule", "release"]) == 3
    assert "no judge is approved" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        main(["gate"])
    assert stop.value.code == 3


@pytest.mark.usefixtures("demo")
def test_the_card_fetches_nothing_and_shows_the_printed_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([*RULE, "helpfulness", "--flip-rate", "0.05"])
    card = tmp_path / "card.html"
    rivals = ["--candidate", "hasty judge", "--baseline", "sim-judge-2026-09-01", "--rule", "release"]
    capsys.readouterr()
    main(["gate", *rivals, "--card", str(card), "--json"])
    printed = json.loads(capsys.readouterr().out)
    html = card.read_text()
    body = html[html.index("<body>") :]
    for cell in printed["lines"][0].values():
        assert f"<td>{cell}</td>" in body
    assert printed["candidate"] in body
    assert printed["rule_sha256"] in body
    assert "src=" not in html[: html.index("<script>")]
    assert "<link" not in body
