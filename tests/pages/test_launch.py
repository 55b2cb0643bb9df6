"""The launch page: what stands before a start, and a run's progress in words."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from sqlalchemy import Engine
from streamlit.testing.v1 import AppTest

from core.judge.worker import work
from core.store import plan_writes, writes
from core.store.engine import get_engine, reading
from core.store.plan_queries import list_plans, list_schedules
from core.store.specs import ItemSpec, content_hash
from core.store.tables import RunStatus
from core.ui.launch import save_redaction
from tests.judge.planning import KEY, lay_ground, plan
from tests.judge.server import Failure, Loopback, loopback
from tests.pages.opening import open_app
from tests.store.builders import add_items


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    monkeypatch.setattr("core.ui.launch.ensure_worker", lambda: None)
    with loopback() as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        yield server


@pytest.fixture
def store(empty: Path) -> Engine:
    return get_engine(f"sqlite:///{empty}")


def shown(page: AppTest) -> str:
    """Every text on the page."""
    parts = [*page.markdown, *page.caption, *page.error, *page.warning, *page.info, *page.code, *page.metric]
    return "\n".join(f"{getattr(part, 'label', '')} {part.value}" for part in parts)


def taken_out(page: AppTest) -> list[list[str]]:
    """What the preview of the redaction says."""
    (found,) = [table.value for table in page.dataframe if "taken out" in table.value]
    return [[str(cell) for cell in row] for row in found.to_numpy()]


def button(page: AppTest, label: str) -> AppTest:
    (found,) = [button for button in page.button if button.label == label]
    return found.click().run()


@pytest.mark.usefixtures("empty")
def test_an_empty_store_says_what_to_do() -> None:
    page = open_app("launch")
    assert not page.exception
    assert "corpus" in page.info[0].value
    for view in ("runs", "schedules"):
        page = open_app("launch", view=view)
        assert not page.exception
        assert page.info


def test_before_a_start_calls_tokens_and_the_prompt_are_shown(store: Engine, server: Loopback) -> None:
    lay_ground(store, items=20)
    page = open_app("launch")
    assert not page.exception
    metrics = {metric.label: metric.value for metric in page.metric}
    # 20 items x 5 repetitions; the endpoint counts 321 tokens a message
    assert metrics["Calls"] == "100"
    assert metrics["Input tokens"] == "32,100"
    assert metrics["Cost at most"] == "unknown"
    assert "No price known" in shown(page)
    assert server.counts() == {"/v1/messages/count_tokens": 5}
    assert "candidate 0, write to ann0@example.org" in page.code[1].value
    assert KEY not in shown(page)


@pytest.mark.usefixtures("server")
def test_redaction_is_previewed(store: Engine) -> None:
    lay_ground(store, items=2)
    page = open_app("launch")
    page.toggle[0].set_value(True).run()
    assert not page.exception
    assert "ann0@example.org" not in page.code[1].value
    assert taken_out(page) == [["email", "ann0@example.org"]]


def test_a_team_edits_what_is_taken_out_and_a_run_keeps_it(store: Engine, server: Loopback) -> None:
    lay_ground(store, items=2)
    with writes.writing(store) as session:
        plan_writes.save_redaction(session=session, expressions={"number": r"candidate \d+"})
    page = open_app("launch", redact="1", repetitions="1")
    assert not page.exception
    assert taken_out(page) == [["number", "candidate 0"]]
    button(page, "Start")
    with writes.writing(store) as session:
        plan_writes.save_redaction(session=session, expressions={})
    work(str(store.url), once=True)
    sent = [message.user for message in server.messages()]
    assert len(sent) == 2
    assert all("[number 1], write to ann" in text and "candidate 0" not in text for text in sent)
    # With no list of the team's own the shipped one is back.
    page = open_app("launch", redact="1")
    assert taken_out(page) == [["email", "ann0@example.org"]]


def test_a_list_that_cannot_be_read_is_refused() -> None:
    for rows, words in (
        ([("broken", "(")], "pattern broken"),
        ([("empty", "x*")], "matches an empty text"),
        ([("one", "a"), ("one", "b")], "same name"),
        ([("", "a")], "small letters"),
    ):
        with pytest.raises(ValueError, match=words):
            save_redaction(pd.DataFrame(rows, columns=["name", "expression"]))


@pytest.mark.usefixtures("server")
def test_a_missing_key_is_said_before_the_start(store: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    lay_ground(store, items=2)
    page = open_app("launch")
    assert not page.exception
    assert "no API key" in page.warning[0].value
    assert all(found.disabled for found in page.button if found.label == "Start")


@pytest.mark.usefixtures("server")
def test_a_run_is_launched_worked_on_and_its_end_is_shown(store: Engine) -> None:
    lay_ground(store, items=3)
    page = button(open_app("launch"), "Start")
    assert not page.exception
    assert ":blue-badge[running]" in shown(page)
    work(str(store.url), once=True)
    page = open_app("launch", view="runs")
    assert not page.exception
    assert {metric.label: metric.value for metric in page.metric}["Scored"] == "15"
    assert ":green-badge[done]" in shown(page)


def test_an_error_is_shown_in_words_with_what_to_do(store: Engine, server: Loopback) -> None:
    run = plan(store, lay_ground(store, items=3))
    server.script = lambda _: Failure(401, f"bad key {KEY}")
    work(str(store.url), once=True)
    page = open_app("launch", view="runs", run=str(run))
    assert not page.exception
    assert "ANTHROPIC" in page.error[0].value
    assert KEY not in shown(page)
    page = button(page, "Resume")
    assert not page.exception
    assert ":blue-badge[running]" in shown(page)
    page = button(page, "Pause")
    assert ":orange-badge[paused]" in shown(page)
    page = button(page, "Cancel")
    assert ":gray-badge[cancelled]" in shown(page)


@pytest.mark.usefixtures("server")
def test_a_spending_limit_that_was_reached_can_be_raised(store: Engine) -> None:
    prices = {"input_price": 1.0, "output_price": 1.0, "call_reserve": 1.0, "spending_limit": 0.5}
    run = plan(store, lay_ground(store, items=3), **prices)
    work(str(store.url), once=True)
    page = open_app("launch", view="runs", run=str(run))
    assert "spending limit" in page.warning[0].value
    page.number_input[0].set_value(5.0).run()
    page = button(page, "Resume")
    with reading(store) as session:
        assert list_plans(session=session).state.tolist() == [RunStatus.RUNNING]


@pytest.mark.usefixtures("server")
def test_schedules_are_listed_and_switched_off(store: Engine) -> None:
    lay_ground(store, items=2)
    page = button(open_app("launch"), "Schedule")
    assert not page.exception
    page = button(page, "Turn off")
    assert not page.exception
    with reading(store) as session:
        assert list_schedules(session=session).active.tolist() == [False]


@pytest.mark.usefixtures("server")
def test_an_unknown_run_in_the_link_is_said(store: Engine) -> None:
    plan(store, lay_ground(store, items=2))
    page = open_app("launch", view="runs", run="99")
    assert not page.exception
    assert page.warning


def test_a_finished_run_cannot_be_moved(store: Engine) -> None:
    run = plan(store, lay_ground(store, items=1))
    with writes.writing(store) as session:
        assert plan_writes.set_state(session=session, run_id=run, state=RunStatus.CANCELLED)
        assert not plan_writes.set_state(session=session, run_id=run, state=RunStatus.RUNNING)


@pytest.mark.usefixtures("server")
def test_a_link_opens_the_same_plan(store: Engine) -> None:
    lay_ground(store, items=4)
    page = open_app("launch", repetitions="7", flight="2", pilot="3", redact="1", spend="2.5")
    assert not page.exception
    values = {field.label: field.value for field in page.number_input}
    assert values == {"Repetitions": 7, "Calls in flight": 2, "Spending limit, $": 2.5, "Pilot items": 3}
    assert {metric.label: metric.value for metric in page.metric}["Calls"] == "28"  # 4 items x 7 repetitions
    assert page.toggle[0].value
    next(field for field in page.number_input if field.label == "Repetitions").set_value(9).run()
    assert page.query_params["repetitions"] == "9"
    page.toggle[0].set_value(False).run()
    assert "redact" not in page.query_params
    assert {metric.label: metric.value for metric in page.metric}["Calls"] == "36"


@pytest.mark.usefixtures("server")
def test_a_number_in_the_link_that_cannot_be_is_said(store: Engine) -> None:
    lay_ground(store, items=2)
    for text in ("0", "many", "101", "nan"):
        page = open_app("launch", repetitions=text)
        assert not page.exception
        assert page.warning[0].value == f"“{text}” is no choice for repetitions; showing 5."
        assert {metric.label: metric.value for metric in page.metric}["Calls"] == "10"
    for text in ("nan", "inf", "-1"):
        page = open_app("launch", spend=text)
        assert page.warning[0].value == f"“{text}” is no choice for spending limit, $; showing none."


@pytest.mark.usefixtures("server")
def test_what_the_linter_finds_is_shown_for_a_new_judge(store: Engine) -> None:
    lay_ground(store, items=2)
    page = open_app("launch", asked="new", model="claude-test")
    assert not page.exception
    assert any("The linter names" in expander.label for expander in page.expander)


@pytest.mark.usefixtures("server")
def test_a_corpus_with_texts_comes_first_and_none_with_texts_is_said(store: Engine) -> None:
    with writes.writing(store) as session:
        ids = add_items(session, "bare", [ItemSpec("i1", content_hash("x"))])
        writes.add_corpus(session=session, name="bare", item_ids=ids)
    page = open_app("launch")
    assert not page.exception
    assert "No corpus holds a text to judge" in page.info[0].value
    lay_ground(store, items=2)
    with writes.writing(store) as session:
        ids = add_items(session, "later", [ItemSpec("i1", content_hash("y"))])
        writes.add_corpus(session=session, name="later", item_ids=ids)
    page = open_app("launch")
    assert page.selectbox[0].value == "corpus@1"
    assert {metric.label: metric.value for metric in page.metric}["Items"] == "2"
