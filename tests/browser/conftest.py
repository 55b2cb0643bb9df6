"""A running dashboard on a store of its own and a real Chromium to look at it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from core.ingest.simulate import ensure_demo
from core.store.engine import get_engine
from tests.browser.serving import PATIENCE, serve
from tests.chromium import FLAGS, find


@pytest.fixture(scope="module")
def demo_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A demo history of the module's own."""
    path = tmp_path_factory.mktemp("browser") / "demo.db"
    ensure_demo(get_engine(f"sqlite:///{path}"))
    return path


@pytest.fixture(scope="module")
def address(demo_path: Path) -> Iterator[str]:
    """The dashboard on the demo history."""
    with serve(demo_path) as address:
        yield address


@pytest.fixture
def browser() -> Iterator[Browser]:
    """A Chromium; several pages in contexts of their own are several people."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find(), args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """A window of 1280 x 900; what it last showed is kept beside the test's files."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(PATIENCE * 1000)
    yield page
    page.screenshot(path=tmp_path / "last.png")
