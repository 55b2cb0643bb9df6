"""The agreement page: the twenty published labels, other label sets and rubric versions, trust rules, word searches."""

from pathlib import Path

import pytest
from sqlmodel import Session
from streamlit.testing.v1 import AppTest

from core.ingest.published import DATA
from core.ingest.rubric_file import load_rubric
from core.store import queries, writes
from core.store.engine import get_engine
from core.store.specs import LabelRow
from tests.pages.opening import open_app

PAGE = "human_agreement"
PUBLISHED = "labels_r01_r20@1"
ANSWERS = "support-answers@1"


def said(test: AppTest) -> str:
    """Everything the page says in text."""
    kinds = ("markdown", "caption", "text", "info", "warning", "error", "success", "subheader")
    return "\n".join(str(element.value) for kind in kinds for element in getattr(test.main, kind))


def table_with(test: AppTest, column: str) -> list[dict[str, object]]:
    """The rows of the first table with this column."""
    found = next(frame.value for frame in test.main.dataframe if column in frame.value.columns)
    return [{str(name): value for name, value in row.items()} for row in found.to_dict("records")]


def freeze(test: AppTest, **numbers: float) -> AppTest:
    """Fill the form of a trust rule and freeze it."""
    by_label = {field.label: field for field in (*test.main.text_input, *test.main.number_input)}
    by_label["Name"].input("strict")
    by_label["Author"].input("Reader")
    for label, value in numbers.items():
        by_label[label].set_value(value)
    next(button for button in test.main.button if button.label == "Freeze the rule").click()
    return test.run()


@pytest.mark.usefixtures("empty")
def test_an_empty_store_says_what_to_do() -> None:
    test = open_app(PAGE)
    assert not test.exception
    assert "make demo" in test.info[0].value


@pytest.mark.usefixtures("demo")
def test_the_twenty_labels_show_their_published_figures() -> None:
    test = open_app(PAGE, corpus=PUBLISHED)
    assert not test.exception
    metrics = {metric.label: metric.value for metric in test.main.metric}
    assert metrics == {"Agreement": "0.750", "Kappa": "0.490", "Sensitivity": "0.818", "Specificity": "0.667"}
    words = said(test)
    assert "95% 0.531 to 0.888, n = 20 items" in words
    assert "False passes: 3 items" in words
    assert "3 of 9 fails by people (33.3%), 3 of 12 passes by the judge (25.0%)" in words
    assert [row["item"] for row in table_with(test, "rationale")] == ["r03", "r09", "r15"]
    assert "20 labels cannot calibrate a judge" in words
    assert "Only one person labelled these items" in words


@pytest.mark.usefixtures("demo")
def test_a_rule_frozen_after_the_labels_says_do_not_trust_and_stays_marked() -> None:
    test = freeze(open_app(PAGE, corpus=PUBLISHED))
    assert not test.exception
    assert "do not trust" in said(test)
    again = open_app(PAGE, corpus=PUBLISHED)
    assert "**strict**: do not trust" in said(again)
    assert "made after the labels were seen: 20 labels existed" in said(again)
    assert [row["line"] for row in table_with(again, "line")] == [
        "agreement 0.750 (95% 0.531 to 0.888), asked ≥ 0.8: fails",
        "kappa 0.490 (95% 0.062 to 0.802), asked ≥ 0.6: fails",
    ]


@pytest.mark.usefixtures("demo")
def test_an_undecided_rule_says_how_many_labels_would_decide_it() -> None:
    test = freeze(open_app(PAGE, corpus=PUBLISHED), **{"Agreement at least": 0.7, "Kappa at least": 0.4})
    assert "inconclusive" in said(test)
    assert "labels would decide it" in said(test)


@pytest.mark.usefixtures("demo")
def test_a_rule_without_an_author_is_not_frozen() -> None:
    test = open_app(PAGE, corpus=PUBLISHED)
    next(button for button in test.main.button if button.label == "Freeze the rule").click()
    test.run()
    assert "Nothing was frozen" in test.main.error[0].value
    assert "No rule is frozen yet" in said(test)


@pytest.mark.usefixtures("demo")
def test_a_link_opens_the_same_cell_unit_and_reference() -> None:
    test = open_app(
        PAGE, corpus=PUBLISHED, labels="published labels@1", reference="rater:reader", matrix="level", cell="1-0"
    )
    assert not test.exception
    assert "labels of reader" in said(test)
    cell = next(box for box in test.main.selectbox if box.label == "Items of the cell")
    assert cell.value == "1-0"
    items = [frame.value for frame in test.main.dataframe if "rationale" in frame.value.columns][-1]
    assert items["item"].tolist() == ["r06", "r20"]


@pytest.mark.usefixtures("demo")
@pytest.mark.parametrize("unit", ["calls", "modal", "call:0"])
def test_the_unit_of_judgement_is_named(unit: str) -> None:
    test = open_app(PAGE, corpus=ANSWERS, unit=unit)
    assert not test.exception
    assert not test.error
    name = {"calls": "all calls, clustered by item", "modal": "most frequent score of each item", "call:0": "one call"}
    assert name[unit] in said(test)
    assert ("counted in calls" in said(test)) == (unit == "calls")
    assert "900 calls attempted" in said(test)
    assert [row["figure"] for row in table_with(test, "between people")][:2] == [
        "agreement, decisions",
        "kappa, decisions",
    ]


@pytest.mark.usefixtures("demo")
def test_an_unknown_label_set_in_a_link_is_said() -> None:
    test = open_app(PAGE, corpus=PUBLISHED, labels="nosuch@3")
    assert not test.exception
    assert any("nosuch@3" in warning.value for warning in test.sidebar.warning)


def test_labels_of_another_rubric_version_need_a_choice_and_are_marked(demo: Path) -> None:
    _label_under_another_version(demo)
    test = open_app(PAGE, corpus=PUBLISHED)
    sets = next(box for box in test.sidebar.selectbox if box.label == "Label set")
    assert [option.split(" (")[0] for option in sets.options] == ["published labels v1"]
    test = open_app(PAGE, corpus=PUBLISHED, versions="any", labels="<b>late</b> labels@1")
    assert not test.exception
    assert "Across rubric versions" in said(test)
    assert "2 items with a label and a score · left out: 18 scored without a label" in said(test)
    assert "\\<b\\>late" in said(test)


@pytest.mark.usefixtures("demo")
def test_a_word_search_errs_in_both_directions_and_is_saved_as_a_judge() -> None:
    test = open_app(PAGE, corpus=ANSWERS)
    test.main.text_area[0].input("minutes\nhours")
    next(button for button in test.main.button if button.label == "Save it as a judge").click()
    test.run()
    assert not test.exception
    assert not test.error
    words = said(test)
    assert "contains “minutes” or “hours”: agreement" in words
    assert "**Passes what people fail**" in words
    assert "**Fails what people pass**" in words
    assert "Saved as a judge" in words
    judges = next(box for box in open_app(PAGE, corpus=ANSWERS).sidebar.selectbox if box.label == "Judge")
    assert any(option.startswith("contains “minutes” or “hours”") for option in judges.options)


@pytest.mark.usefixtures("demo")
def test_a_word_search_without_texts_says_so() -> None:
    test = open_app(PAGE, corpus=PUBLISHED, words="30 days")
    assert not test.exception
    assert "holds no texts" in test.main.error[0].value


def _label_under_another_version(path: Path) -> None:
    with writes.writing(get_engine(f"sqlite:///{path}")) as session:
        rubric = _next_version(session)
        (criterion,) = queries.list_criteria(session=session, rubric_id=rubric)
        corpora = queries.list_corpora(session=session)
        corpus = int(corpora.loc[corpora["name"] == "labels_r01_r20", "id"].iloc[0])
        items = [queries.find_item(session=session, corpus_id=corpus, key=key) for key in ("r01", "r02")]
        made = writes.add_label_set(session=session, name="<b>late</b> labels", rubric_id=rubric)
        given = [LabelRow(item.id, criterion.id, 1.0, "x") for item in items if item and item.id]
        writes.record_labels(session=session, label_set=made, rows=given)


def _next_version(session: Session) -> int:
    spec = load_rubric(DATA / "rubrics" / "pass-fail.json")
    changed = type(spec)(spec.name, spec.criteria, instructions="another wording")
    rubric = writes.add_rubric(session=session, spec=changed, reason="a test")
    assert rubric.version == 2
    assert rubric.id
    return rubric.id
