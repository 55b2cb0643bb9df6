"""Two people label the same ten replies with the keyboard, one window is killed, and nothing is lost."""

import re
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from core.store.engine import get_engine
from core.store.tables import Label
from tests.browser.serving import PATIENCE, serve
from tests.store.builders import rows
from tests.store.replies import SETS, store_replies

TIMEOUT = PATIENCE * 1000
COUNT = 10
DISPUTED = 0
LINK = f"labels={SETS}@1&corpus=replies@1"


def open_desk(browser: Browser, address: str, rater: str) -> Page:
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.set_default_timeout(TIMEOUT)
    page.goto(f"{address}/label?{LINK}&rater={rater}")
    return page


def wait_for(page: Page, rater: str, done: int) -> None:
    expect(page.get_by_text(f"{done} of {COUNT} items labelled by {rater}")).to_be_visible(timeout=TIMEOUT)


def press(page: Page, rater: str) -> None:
    """Score the item in front of the reader: even replies are good, and rater-2 doubts one of them."""
    expect(page.get_by_text("not labelled yet")).to_be_visible(timeout=TIMEOUT)
    expect(page.get_by_text("Running", exact=False)).to_have_count(0)
    number = int(re.sub(r"\D", "", page.get_by_text(re.compile(r"^reply number \d+$")).inner_text()))
    doubted = number == DISPUTED and rater == "rater-2"
    expect(page.get_by_role("button", name="correctness at 0")).to_be_visible(timeout=TIMEOUT)
    page.keyboard.press("1" if doubted else "2" if number % 2 == 0 else "0")
    expect(page.get_by_text("not saved yet: Enter saves")).to_be_visible(timeout=TIMEOUT)


def label(page: Page, rater: str, done: int) -> None:
    press(page, rater)
    page.keyboard.press("Enter")
    wait_for(page, rater, done + 1)


def test_two_sessions_label_with_the_keyboard_and_one_is_killed(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "labels.db"
    engine = get_engine(f"sqlite:///{path}")
    store_replies(engine, count=COUNT, criteria=("correctness",), scores=[2, 0] * 5)
    with serve(path) as address:
        first, second = (open_desk(browser, address, rater) for rater in ("rater-1", "rater-2"))
        for done in range(4):
            label(first, "rater-1", done)
            label(second, "rater-2", done)
        press(first, "rater-1")
        first.context.close()
        first = open_desk(browser, address, "rater-1")
        wait_for(first, "rater-1", 4)
        for done in range(4, COUNT):
            label(first, "rater-1", done)
            label(second, "rater-2", done)
        assert len(rows(engine, Label.__table__)) == 2 * COUNT

        second.goto(f"{address}/readers?{LINK}&first=rater-1&second=rater-2")
        expect(second.get_by_text("Differences: 1, of which 1 are open")).to_be_visible(timeout=TIMEOUT)
        second.get_by_role("radio", name="2").check(force=True)
        second.get_by_role("textbox", name="Author or authors").fill("rater-1 and rater-2")
        second.get_by_role("textbox", name="Why").fill("The policy does not ask for more.")
        second.get_by_role("button", name="Record the final label").click()
        expect(second.get_by_text("Differences: 1, of which 0 are open")).to_be_visible(timeout=TIMEOUT)

        second.goto(f"{address}/human_agreement?{LINK}&criterion=correctness")
        expect(second.get_by_role("heading", name="Judge against people")).to_be_visible(timeout=TIMEOUT)
        counts = f"{COUNT} items with a label and a score · left out: 0 scored without a label"
        expect(second.get_by_text(counts)).to_be_visible(timeout=TIMEOUT)
        expect(second.get_by_text("0 without a majority")).to_be_visible(timeout=TIMEOUT)
        expect(second.get_by_text("False passes: 0 items")).to_be_visible(timeout=TIMEOUT)
