"""The datasets page: from an upload to the report, the refusals on the way, and the lists."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.store.engine import get_engine
from tests.ingest.files import count, csv, run
from tests.pages.opening import open_app

GOOD = csv("a,0,j,1", "a,1,j,2", "b,0,j,5", "b,1,j,3", header="item,rep,judge,score")


def upload(test: AppTest, data: bytes, name: str = "history.csv") -> AppTest:
    """Hand a file to the page."""
    return test.file_uploader[0].set_value((name, data, "text/csv")).run()


def click(test: AppTest, label: str) -> AppTest:
    """Press a button."""
    return next(button for button in test.button if button.label == label).click().run()


def fill(test: AppTest, label: str, text: str) -> None:
    """Write into a field."""
    next(field for field in test.text_input if field.label == label).set_value(text)


def confirmed(test: AppTest, data: bytes, *, levels: str = "1,2,3,4,5", gate: str = "3") -> AppTest:
    """The page after the mapping and the rubric of an upload were confirmed."""
    upload(test, data)
    click(test, "Use this mapping")
    test.radio[0].set_value(test.radio[0].options[0]).run()
    fill(test, "Levels", levels)
    fill(test, "Gate", gate)
    return test.checkbox[0].check().run()


def said(test: AppTest) -> str:
    """Everything that the page says in code blocks and messages."""
    parts = [*test.code, *test.info, *test.error, *test.warning, *test.success, *test.caption]
    return "\n".join(str(part.value) for part in parts)


def stored(path: Path, table: str) -> int:
    """Rows of a table."""
    return count(get_engine(f"sqlite:///{path}"), table)


@pytest.mark.usefixtures("empty")
def test_an_empty_store_says_what_to_do() -> None:
    test = open_app("datasets")
    assert not test.exception
    assert "Bring in a file above, or run `make demo`" in test.info[0].value


@pytest.mark.usefixtures("demo")
def test_the_demo_history_is_listed() -> None:
    test = open_app("datasets")
    assert not test.exception
    assert not test.error
    titles = [heading.value for heading in test.subheader]
    assert titles == ["Corpora", "Rubrics", "Imports", "Label sets", "Scores to take away"]


@pytest.mark.usefixtures("demo")
def test_a_link_names_the_rubric_to_show() -> None:
    test = open_app("datasets", rubric="1")
    assert next(box for box in test.selectbox if box.label == "Levels and change log of").value == "1"


def test_a_file_is_tried_first_and_then_imported(empty: Path) -> None:
    test = confirmed(open_app("datasets"), GOOD)
    assert next(button for button in test.button if button.label == "Import").disabled
    click(test, "Try it without writing")
    assert not test.exception
    assert "Dry run, nothing was written: history.csv" in said(test)
    assert stored(empty, "import_file") == 0
    click(test, "Import")
    assert not test.exception
    assert "rows 4, calls 4, scored 4" in said(test)
    assert (stored(empty, "import_file"), stored(empty, "score")) == (1, 4)


def test_no_rubric_is_taken_without_being_chosen_and_checked(empty: Path) -> None:
    test = click(upload(open_app("datasets"), GOOD), "Use this mapping")
    assert test.radio[0].value is None
    assert "Try it without writing" not in [button.label for button in test.button]
    test.radio[0].set_value(test.radio[0].options[0]).run()
    assert [field.value for field in test.text_input if field.label == "Levels"] == ["1,2,3,5"]
    assert "Try it without writing" not in [button.label for button in test.button]
    assert stored(empty, "rubric") == 0


def test_a_changed_choice_needs_another_trial(empty: Path) -> None:
    test = click(confirmed(open_app("datasets"), GOOD), "Try it without writing")
    fill(test, "Gate", "4")
    test.run()
    assert next(button for button in test.button if button.label == "Import").disabled
    assert stored(empty, "import_file") == 0


def test_a_bad_line_is_shown_and_refused_until_it_is_set_aside(empty: Path) -> None:
    data = csv("a,0,j,1", "b,zero,j,2", header="item,rep,judge,score")
    test = click(confirmed(open_app("datasets"), data), "Try it without writing")
    assert "1 of 2 lines are bad" in said(test).replace("\\", "")
    bad = test.dataframe[1].value.iloc[0]
    assert (bad.line, bad["column"], bad.value) == (3, "rep", "zero")
    assert "is no whole number" in bad.reason
    test.radio[1].set_value(test.radio[1].options[1]).run()
    click(test, "Try it without writing")
    click(test, "Import")
    assert "set aside 1 bad lines" in said(test)
    assert (stored(empty, "score"), stored(empty, "set_aside_line")) == (1, 1)


@pytest.mark.usefixtures("empty")
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "history.csv is empty"),
        (b"item,score\n", "has a header and no good row"),
        (b"item\0,score\na,1\n", "NUL byte in line 1"),
        (b"\x1f\x8b\x08nothing", "broken gzip data"),
        (b'[{"item": 1}]', "is a JSON array"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_in_words(data: bytes, message: str) -> None:
    test = upload(open_app("datasets"), data)
    assert not test.exception
    assert message in test.error[0].value.replace("\\", "")


@pytest.mark.usefixtures("empty")
def test_columns_that_say_nothing_need_a_mapping() -> None:
    test = click(upload(open_app("datasets"), b"foo,bar\na,1\n"), "Use this mapping")
    assert "no column is mapped to item; the columns are foo, bar" in test.error[0].value.replace("\\", "")
    test.multiselect[0].set_value(["item"])
    test.multiselect[1].set_value(["score"])
    click(test, "Use this mapping")
    assert "nothing names the judge" in test.error[0].value
    fill(test, "Judge", "me")
    click(test, "Use this mapping")
    assert not test.error
    assert "judge = 'me' on every line" in said(test)


def test_a_file_imported_before_is_recognised_under_another_name(empty: Path) -> None:
    run(get_engine(f"sqlite:///{empty}"), csv("z,0,j,1"))
    test = upload(open_app("datasets"), csv("z,0,j,1"), name="renamed.csv")
    assert "renamed.csv was imported before, as history.csv" in test.warning[0].value.replace("\\", "")
    assert not test.button


def test_a_file_of_a_known_shape_needs_no_confirmation(empty: Path) -> None:
    run(get_engine(f"sqlite:///{empty}"), csv("z,0,j,1"))
    test = upload(open_app("datasets"), csv("y,0,j,1"))
    assert "its mapping is used again" in test.success[0].value
    assert test.radio[0].options  # the rubric is asked for at once
    test.radio[0].set_value(test.radio[0].options[1]).run()
    click(test, "Try it without writing")
    click(test, "Import")
    assert not test.exception
    assert (stored(empty, "import_file"), stored(empty, "rubric")) == (2, 1)


@pytest.mark.usefixtures("empty")
def test_names_from_a_file_are_plain_text() -> None:
    name = "**bold**<b>.csv"
    test = upload(open_app("datasets"), b"", name=name)
    assert "**bold**" not in test.error[0].value


def test_texts_alone_become_a_corpus_without_a_rubric(empty: Path) -> None:
    test = open_app("datasets")
    upload(test, b"item_id,question,answer\nq1,Why?,Because.\nq2,How?,So.\n", "texts.csv")
    click(test, "Use this mapping")
    assert "the texts become a corpus" in said(test)
    assert not test.radio[0].label.startswith("Where the levels")
    click(test, "Try it without writing")
    assert "rows 2, texts only" in said(test)
    click(test, "Import")
    assert not test.exception
    assert "The file was imported." in said(test)
    assert (stored(empty, "item"), stored(empty, "corpus_item"), stored(empty, "judge")) == (2, 2, 0)


def test_a_rubric_is_linted_with_its_lines_and_stored_once(empty: Path) -> None:
    lines = ['{"name": "short", "criteria": [', '{"key": "tone", "question": "Polite?", "gate": 1, "levels": [']
    lines += ['{"value": 0, "anchor": "bad"},', '{"value": 1, "anchor": "It greets the reader by name."}]}]}']
    file = ("short.json", "\n".join(lines).encode(), "application/json")
    test = open_app("datasets")
    test.file_uploader(key="rubric_alone").set_value(file).run()
    assert not test.exception
    found = test.dataframe[0].value
    assert [*zip(found.line, found.what, strict=True)] == [
        (2, "the question has 1 word"),
        (2, "the question begins with Polite"),
        (3, "level 0 is only “bad”"),
    ]
    click(test, "Store this rubric")
    assert test.success[0].value == "Rubric short is now version 1\\."
    click(test, "Store this rubric")
    assert test.success[0].value == "Rubric short was stored already, as version 1\\."
    assert stored(empty, "rubric") == 1


@pytest.mark.usefixtures("empty")
def test_a_file_that_is_no_rubric_is_refused_in_words() -> None:
    test = open_app("datasets")
    for data, words in ((b"\xff\xfe", "no.json: not UTF-8 text"), (b"{", "no.json"), (b'{"name": "r"}', "criteria")):
        test.file_uploader(key="rubric_alone").set_value(("no.json", data, "application/json")).run()
        assert not test.exception
        assert words in test.error[0].value.replace("\\", "")
