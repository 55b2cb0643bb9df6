"""Starts the dashboard as a user would."""

import os
import re
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from playwright.sync_api import Error, Locator, Page, expect

from core.store.engine import DATABASE_PATH, DATABASE_URL
from tests.conftest import REPO
from tests.processes import running

PATIENCE = 60
"""Seconds to wait for anything on screen: the machine may be busy."""
AT_ONCE = 5_000
"""Milliseconds for one click among several tries."""
STILL = 4
"""So many looks in a row must find a page of the same height."""

_TO_THE_MIDDLE = """part => document.querySelector("[data-testid=stMain]").scrollBy(
    0, part.getBoundingClientRect().top - innerHeight / 2)"""
"""Not every Chromium scrolls to a part of a drawing by itself."""


@contextmanager
def serve(store: Path, **environment: str) -> Iterator[str]:
    """The address of a dashboard on the SQLite file `store`, stopped at the end of the block."""
    inherited = {name: value for name, value in os.environ.items() if name != DATABASE_URL}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    own = {DATABASE_PATH: str(store), **environment}
    with running(command, cwd=REPO, env=inherited | own):
        wait_for(f"http://localhost:{port}/_stcore/health")
        yield f"http://localhost:{port}"


def wait_for(url: str) -> None:
    """Return when `url` answers; fail the test when it does not."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            urlopen(url).close()
        except URLError:
            time.sleep(0.2)
        else:
            return
    pytest.fail(f"no answer at {url} within {PATIENCE} s")


def go_to(page: Page, section: str, name: str) -> None:
    """Choose a page in the navigation on top."""
    page.get_by_test_id("stTopNavSection").filter(has_text=section).click()
    page.get_by_test_id("stTopNavDropdownLink").filter(has_text=name).click()


def rest(page: Page) -> None:
    """Return when the page's script has ended and what it drew has stopped growing: a moving target swallows clicks."""
    deadline = time.monotonic() + PATIENCE
    seen: list[int] = []
    while time.monotonic() < deadline:
        expect(page.locator("[data-test-script-state=notRunning]")).to_be_visible(timeout=PATIENCE * 1000)
        seen.append(page.get_by_test_id("stMain").evaluate("main => main.scrollHeight"))
        if len(seen) > STILL and len(set(seen[-STILL:])) == 1:
            return
        page.wait_for_timeout(150)
    pytest.fail(f"the page still moved after {PATIENCE} s")


def insist(page: Page, act: Callable[[], object], goal: Callable[[], bool]) -> None:
    """Do `act` again until `goal` holds, as a reader does whose click came while the page was being redrawn."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        rest(page)
        with suppress(Error):
            act()
        for _ in range(20):
            if goal():
                return
            page.wait_for_timeout(150)
    pytest.fail(f"clicking had no effect within {PATIENCE} s")


def choose(page: Page, box: str, option: str) -> None:
    """Choose in a select box by its label."""
    combobox = page.get_by_role("combobox", name=re.compile(re.escape(box)))

    def act() -> None:
        page.keyboard.press("Escape")
        combobox.click(timeout=AT_ONCE)
        page.get_by_role("option", name=option).click(timeout=AT_ONCE)

    def chosen() -> bool:
        shown = combobox.locator("xpath=ancestor::*[@data-testid='stSelectbox' or @data-testid='stMultiSelect']")
        return option in shown.inner_text() or option in combobox.input_value()

    insist(page, act, chosen)


def click_drawn(page: Page, place: Locator, goal: Callable[[], bool], *, above: float = 0.0) -> None:
    """Click in the middle of `place`, `above` pixels higher, in a chart; it hears a click only where it was hovered."""

    def act() -> None:
        place.evaluate(_TO_THE_MIDDLE, timeout=AT_ONCE)
        box = place.bounding_box(timeout=AT_ONCE)
        assert box is not None
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2 - above
        page.mouse.move(x - 3, y - 3)
        page.mouse.move(x, y, steps=3)
        page.wait_for_timeout(300)
        page.mouse.click(x, y)

    insist(page, act, goal)
