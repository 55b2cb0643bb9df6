"""Labelling, readers, decisions and rubric changes, on pages opened by their links."""

from pathlib import Path

import pytest
from sqlalchemy import Engine
from streamlit.testing.v1 import AppTest

from core.store import label_queries, label_writes, writes
from core.store.engine import get_engine, reading
from core.store.queries import list_criteria
from core.store.tables import Label
from tests.pages.opening import open_app
from tests.store.builders import key_of, rows
from tests.store.replies import SETS, Replies, label_replies, store_replies

NAMES = ["label", "readers", "decisions", "rubric_changes"]
KEY = f"{SETS}@1"


@pytest.fixture
def engine(empty: Path) -> Engine:
    return get_engine(f"sqlite:///{empty}")


def shown(test: AppTest) -> str:
    """Everything a reader sees on the page and in the sidebar."""
    kinds = ("markdown", "caption", "text", "info", "warning", "error", "success", "subheader")
    elements = [str(getattr(element, "value", "")) for kind in kinds for element in test.get(kind)]
    return "\n".join([*elements, *(button.label for button in test.button)])


@pytest.mark.usefixtures("empty")
@pytest.mark.parametrize("page", NAMES)
def test_an_empty_store_says_what_to_do(page: str) -> None:
    test = open_app(page)
    assert not test.exception
    assert "make demo" in test.info[0].value


@pytest.mark.usefixtures("demo")
@pytest.mark.parametrize("page", NAMES)
@pytest.mark.parametrize("mode", ["score", "rank", "build"])
def test_the_demo_history_shows_without_an_error(page: str, mode: str) -> None:
    if page != "label" and mode != "score":
        pytest.skip("only the label page has modes")
    test = open_app(page, rater="rater-1", mode=mode, readers="rater-1, rater-2")
    assert not test.exception
    assert not test.error


def press(test: AppTest, key: str) -> None:
    test.button(key=key).click().run()
    assert not test.exception


def test_labels_are_rows_and_a_reader_comes_back_to_where_the_store_says(engine: Engine) -> None:
    ground = store_replies(engine, count=3, criteria=("correctness", "tone"), scores=(2, 1, 0))
    link = {"labels": KEY, "rater": "rater-1"}
    test = open_app("label", **link)
    assert "0 of 3 items labelled by rater\\-1" in test.get("progress")[0].proto.text
    press(test, "level_2")
    assert "not saved yet" in shown(test)
    press(test, "level_1")
    press(test, "save")
    saved = rows(engine, Label.__table__)
    assert sorted((row[3], row[5]) for row in saved) == sorted(zip(ground.criteria, (2.0, 1.0), strict=True))
    again = open_app("label", **link)
    assert "1 of 3 items" in again.get("progress")[0].proto.text
    assert "Item" in shown(again)
    other = open_app("label", labels=KEY, rater="rater-2")
    assert "0 of 3 items" in other.get("progress")[0].proto.text


def test_a_half_labelled_item_is_kept_and_stays_in_front(engine: Engine) -> None:
    store_replies(engine, count=2, criteria=("correctness", "tone"))
    test = open_app("label", labels=KEY, rater="rater-1")
    press(test, "level_2")
    press(test, "save")
    assert len(rows(engine, Label.__table__)) == 1
    assert "correctness: 2" in shown(test)
    assert "Item 1 of 2" in shown(test)
    press(test, "forward")
    assert "Item 2 of 2" in shown(test)
    press(test, "back")
    assert "Item 1 of 2" in shown(test)


def test_nothing_of_system_or_judge_is_seen_before_the_label_is_saved(engine: Engine) -> None:
    store_replies(engine, count=1, criteria=("correctness",), scores=(1,))
    test = open_app("label", labels=KEY, rater="rater-1", reveal="yes")
    before = shown(test)
    assert "system-" not in before
    assert "hidden-judge" not in before
    assert "reply-00" not in before
    assert not test.dataframe
    press(test, "level_2")
    press(test, "save")
    assert "System: system-x" in shown(test)
    assert test.dataframe[0].value["most often"].tolist() == ["1"]
    assert "system-x" not in shown(open_app("label", labels=KEY, rater="rater-2", reveal="yes"))


def test_the_builder_says_why_and_keeps_the_queue(engine: Engine) -> None:
    ground = store_replies(engine, count=10, criteria=("correctness",), scores=[0, 1, 2, 2, 2, 2, 2, 2, 2, 2])
    test = open_app("label", labels=KEY, mode="build", readers="rater-1, rater-2")
    table = test.dataframe[0].value
    assert (table["second reader"] != "").sum() == 2
    assert table.why.str.contains("slice production").all()
    next(button for button in test.button if button.label == "Keep this queue").click().run()
    assert not test.exception
    with reading(engine) as session:
        queue = label_queries.get_queue(session=session, label_set_id=ground.labels)
    assert queue is not None
    assert len(queue.items) == 10
    mine = ((queue.items.slot == 0) | (queue.items.second_slot == 0)).sum()
    assert f"0 of {mine} items" in open_app("label", labels=KEY, rater="rater-1").get("progress")[0].proto.text


def test_a_new_label_set_needs_a_policy(engine: Engine) -> None:
    store_replies(engine, count=1, criteria=("correctness",))
    test = open_app("label", labels=KEY)
    test.text_input(key="set_name").input("second look")
    submit = next(button for button in test.button if button.label == "Open the label set")
    submit.click().run()
    assert "written policy" in test.error[0].value
    test.text_input(key="set_name").input("second look")
    test.text_area(key="set_policy").input("Ignore the length.")
    next(button for button in test.button if button.label == "Open the label set").click().run()
    assert not test.exception
    assert "second look v1 under reply v1" in shown(test)


def test_ranking_reveals_systems_and_pairs_only_after_saving(engine: Engine) -> None:
    ground = store_replies(engine, count=2, criteria=("correctness",), requests=1)
    first, second = ground.items
    key = ground.criteria[0]
    label_replies(engine, ground.labels, "rater-2", {first: {key: 2.0}, second: {key: 1.0}})
    test = open_app("label", labels=KEY, rater="rater-1", mode="rank")
    assert "system-" not in shown(test)
    assert not test.dataframe
    letters = [text.value for text in test.text if text.value.startswith("reply number")]
    best = letters.index("reply number 0")
    for place, rank in enumerate(test.radio):
        rank.set_value("1" if place == best else "2")
    test.run()
    next(button for button in test.button if button.label == "Save the order").click().run()
    assert not test.exception
    assert "1 of 1 pairs in the same order as the rubric" in shown(test)
    assert test.dataframe[0].value.system.tolist() == ["system-x", "system-y"]


def disagree(engine: Engine) -> Replies:
    """Twelve replies, the two readers apart on one of them."""
    ground = store_replies(engine, count=12, criteria=("correctness", "tone"))
    same = {item: dict.fromkeys(ground.criteria, 2.0) for item in ground.items}
    same |= {item: dict.fromkeys(ground.criteria, 0.0) for item in ground.items[:6]}
    label_replies(engine, ground.labels, "rater-1", same, reason="as asked")
    label_replies(engine, ground.labels, "rater-2", same)
    label_replies(engine, ground.labels, "rater-2", {ground.items[-1]: {ground.criteria[0]: 1.0}}, reason="too short")
    return ground


def test_readers_are_compared_on_criteria_and_the_decision_and_settled(engine: Engine) -> None:
    disagree(engine)
    test = open_app("readers", labels=KEY, first="rater-1", second="rater-2")
    table = test.dataframe[0].value.set_index("criterion")
    # 11 of 12 agree on correctness; chance is (6*6 + 0*1 + 6*5)/144 = 66/144, so kappa = (132 - 66)/(144 - 66) = 0.846.
    assert table["same label"].tolist() == ["11 of 12 (91.7%)", "12 of 12 (100.0%)", "11 of 12 (91.7%)"]
    assert table.kappa["correctness"].startswith("0.846")
    # The decision: 6 ready against 5, chance (6*7 + 6*5)/144 = 1/2, so kappa = (11/12 - 1/2)/(1/2) = 0.833.
    assert table.kappa["decision"].startswith("0.833")
    differences = test.dataframe[1].value
    assert differences[["first", "first_reason", "second", "second_reason", "final"]].to_numpy().tolist() == [
        ["2", "as asked", "1", "too short", "open"]
    ]
    test.radio[0].set_value("2")
    test.text_input(key="author").input("rater-1 and rater-2")
    test.text_area(key="note").input("The policy does not ask for length.")
    next(button for button in test.button if button.label == "Record the final label").click().run()
    assert not test.exception
    assert "of which 0 are open" in shown(test)
    assert test.dataframe[1].value.final.tolist() == ["2"]
    assert len(rows(engine, Label.__table__)) == 49


def test_an_adjudication_without_a_note_is_refused_in_words(engine: Engine) -> None:
    disagree(engine)
    test = open_app("readers", labels=KEY, first="rater-1", second="rater-2")
    test.radio[0].set_value("2")
    next(button for button in test.button if button.label == "Record the final label").click().run()
    assert "author" in test.error[0].value


def test_a_stored_rule_that_cannot_be_read_is_said_and_not_an_error(engine: Engine) -> None:
    ground = disagree(engine)
    with writes.writing(engine) as session:
        rubric = label_writes.change_ready_rule(
            session=session, rubric_id=ground.rubric, ready_rule="always", author="rater-1", reason="to see"
        )
        labels = key_of(writes.add_label_set(session=session, name="later", rubric_id=rubric))
        criteria = [view.id for view in list_criteria(session=session, rubric_id=rubric)]
    for rater in ("rater-1", "rater-2"):
        label_replies(engine, labels, rater, {ground.items[0]: {criteria[0]: 2.0}})
    test = open_app("readers", labels="later@1")
    assert not test.exception
    assert "cannot be read" in test.warning[0].value
    assert "at character 1" in open_app("decisions", decide="labels:later@1").error[0].value


def code_fences(engine: Engine) -> Replies:
    """24 replies; 19 got format 1 for a code fence, the other five format 2."""
    ground = store_replies(engine, count=24, criteria=("correctness", "tone", "format"))
    values = [(2.0, 2.0, 1.0)] * 11 + [(1.0, 2.0, 1.0)] * 6 + [(2.0, 0.0, 1.0)] * 2 + [(2.0, 1.0, 2.0)] * 5
    for item, given in zip(ground.items, values, strict=True):
        reason = "a code fence around the reply" if given[2] == 1.0 else ""
        row = {item: dict(zip(ground.criteria, given, strict=True))}
        label_replies(engine, ground.labels, "rater-1", row, reason=reason)
    return ground


MOVED = "**19 of 24 totals rise, 0 fall, 5 stay**. Ready: **16** before, **16** after."


def test_the_code_fence_story_as_a_what_if_saves_nothing(engine: Engine) -> None:
    code_fences(engine)
    before = rows(engine, Label.__table__)
    change = {"if_criterion": "format", "if_from": "1", "if_to": "2", "if_words": "code fence"}
    test = open_app("decisions", decide=f"labels:{KEY}", **change)
    assert not test.exception
    assert MOVED in shown(test)
    assert "19 of 24 totals move by +1" in shown(test)
    assert "**0 of 24 totals rise" in shown(
        open_app("decisions", decide=f"labels:{KEY}", **change | {"if_words": "zz"})
    )
    assert rows(engine, Label.__table__) == before


def test_the_code_fence_story_as_a_new_version_of_the_rubric(engine: Engine) -> None:
    ground = code_fences(engine)
    with writes.writing(engine) as session:
        rubric = label_writes.change_anchor(
            session=session,
            rubric_id=ground.rubric,
            criterion="format",
            level=2.0,
            anchor="plain, or in a code fence",
            author="rater-1",
            reason="a code fence is no longer a breach",
        )
    page = open_app("rubric_changes", rubric="reply")
    assert "a code fence is no longer a breach" in page.dataframe[0].value.reason.tolist()
    assert page.dataframe[1].value[["criterion", "labels", "items"]].to_numpy().tolist() == [["format", 24, 24]]
    next(button for button in page.button if button.label.startswith("Queue its stale")).click().run()
    assert not page.exception
    with reading(engine) as session:
        again = int(label_queries.list_sets(session=session).id[0])
        queue = label_queries.get_queue(session=session, label_set_id=again)
        new = {view.key: view.id for view in list_criteria(session=session, rubric_id=rubric)}
        old = label_queries.list_labels(session=session, label_set_id=ground.labels)
    assert queue is not None
    assert set(queue.items.item_id) == set(ground.items)
    keys = dict(zip(ground.criteria, ("correctness", "tone", "format"), strict=True))
    for item, own in old.groupby("item_id"):
        values = {new[keys[row.criterion_id]]: row.value for row in own.itertuples()} | {new["format"]: 2.0}
        label_replies(engine, again, "rater-1", {int(item): values})
    link = {"decide": f"labels:{SETS}@2", "against": f"labels:{KEY}"}
    asked = open_app("decisions", **link)
    assert "totals rise, 0 fall, 24 stay" not in shown(asked).partition("Against other scores")[2]
    assert MOVED not in shown(asked)
    test = open_app("decisions", **link, across="yes")
    assert MOVED in shown(test)
    assert "Compared across rubric versions." in shown(test)
    assert "stale" in shown(open_app("rubric_changes", rubric="reply")).lower()


def test_systems_have_ready_counts_scores_and_zeros(engine: Engine) -> None:
    code_fences(engine)
    table = open_app("decisions", decide=f"labels:{KEY}").dataframe[0].value.set_index("system")
    # Even places are system-x: 6 of 0..10, then 17 and 19 of the last five wait at 19..23: 20, 22 are x.
    assert table.ready["system-x"] == "8 of 12 (66.7%)"
    assert table["tone at 0"].tolist() == [1, 1]
    # Totals of system-x: 6 x 5, 3 x 4, 1 x 3, 2 x 5 = 55 of 12 x 6, so 7.64 of 10.
    assert table["score out of 10"]["system-x"] == "7.64"


def test_a_rule_that_cannot_be_read_says_where(engine: Engine) -> None:
    code_fences(engine)
    test = open_app("decisions", decide=f"labels:{KEY}", rule="correctness is 2 and and")
    assert not test.exception
    assert "at character 22" in test.error[0].value
    assert test.code[0].value.endswith("\n" + " " * 21 + "^")


def test_an_anchor_is_changed_on_the_page_with_a_reason(engine: Engine) -> None:
    ground = store_replies(engine, count=1, criteria=("tone",))
    test = open_app("rubric_changes", rubric="reply")
    test.text_area[0].input("warm or plain")
    test.button[0].click().run()
    assert "author and a reason" in test.error[0].value
    test.text_area[0].input("warm or plain")
    test.text_input(key="anchor_author").input("rater-1")
    test.text_input(key="anchor_reason").input("plain is fine")
    test.button[0].click().run()
    assert not test.exception
    assert "reply v2" in shown(test)
    with reading(engine) as session:
        assert label_queries.get_rubric_spec(session=session, rubric_id=ground.rubric + 1).criteria[0].levels[
            0
        ].anchor == ("warm or plain")
