"""A real browser walks from the overview to an item's spread and moves the gate."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from core.ingest.simulate import ensure_demo
from core.store.engine import DATABASE_PATH, DATABASE_URL, get_engine
from tests.chromium import FLAGS, find
from tests.conftest import REPO

PATIENCE = 60


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tmp_path_factory.mktemp("browser") / "demo.db"
    ensure_demo(get_engine(f"sqlite:///{path}"))
    environment = {name: value for name, value in os.environ.items() if name != DATABASE_URL}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    with subprocess.Popen(command, cwd=REPO, env=environment | {DATABASE_PATH: str(path)}) as server:
        wait_for(f"http://localhost:{port}/_stcore/health")
        yield f"http://localhost:{port}"
        server.terminate()


def wait_for(url: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            urlopen(url).close()
        except URLError:
            time.sleep(0.2)
        else:
            return
    pytest.fail(f"no answer at {url} within {PATIENCE} s")


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find(), args=list(FLAGS))
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(PATIENCE * 1000)
        yield page
        page.screenshot(path=tmp_path / "last.png")
        browser.close()


def test_the_overview_leads_on_to_the_other_pages(address: str, page: Page) -> None:
    page.goto(address)
    expect(page.get_by_role("heading", name="Overview")).to_be_visible(timeout=PATIENCE * 1000)
    page.get_by_role("link", name="Gate flips").click()
    expect(page.get_by_role("heading", name="Repetition against repetition")).to_be_visible(timeout=PATIENCE * 1000)
    assert "/gate_flips" in page.url


def test_a_deep_link_opens_the_same_view(address: str, page: Page) -> None:
    page.goto(f"{address}/dispersion?corpus=support-answers@1&criterion=groundedness&gate=3")
    expect(page.get_by_text("groundedness · gate 3")).to_be_visible(timeout=PATIENCE * 1000)
    expect(page.get_by_text("simulated", exact=True).first).to_be_visible()
