"""A real browser launches a run against a loopback endpoint, watches it to its end and opens its dispersion."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import Engine

from core.store import plan_queries
from core.store.engine import get_engine, reading
from core.store.tables import utc_now
from core.ui.launch import FRESH
from tests.browser.serving import PATIENCE, insist, rest, serve
from tests.conftest import REPO
from tests.judge.planning import KEY, lay_ground
from tests.judge.server import Failure, Loopback, loopback

MOST = 2 * PATIENCE * 1000


@pytest.fixture
def server() -> Iterator[Loopback]:
    with loopback(latency=0.05) as server:
        yield server


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return get_engine(f"sqlite:///{tmp_path / 'launch.db'}")


@pytest.fixture
def dashboard(engine: Engine, server: Loopback) -> Iterator[str]:
    """A dashboard on an empty store; the worker that it starts is ended with it."""
    with serve(Path(str(engine.url.database)), ANTHROPIC_BASE_URL=server.url, ANTHROPIC_API_KEY=KEY) as address:
        yield address
    with reading(engine) as session:
        workers = [worker.process for worker in plan_queries.list_workers(session=session, since=utc_now() - FRESH)]
    for process in workers:
        os.kill(process, signal.SIGTERM)


def test_a_run_of_twenty_items_goes_to_its_end(engine: Engine, dashboard: str, page: Page, server: Loopback) -> None:
    lay_ground(engine, items=20)
    page.goto(f"{dashboard}/launch")
    expect(page.get_by_test_id("stMetricValue").first).to_have_text("100", timeout=MOST)
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text(re.compile(r"of 100 calls recorded"))).to_be_visible(timeout=MOST)
    expect(page.get_by_text("100 of 100 calls recorded")).to_be_visible(timeout=MOST)
    expect(page.get_by_text("done", exact=True)).to_be_visible(timeout=MOST)
    assert len(server.messages()) == 100
    assert KEY not in page.content()
    page.get_by_role("link", name="What its scores say").click()
    expect(page.get_by_text("100 calls attempted").first).to_be_visible(timeout=MOST)
    assert "/dispersion" in page.url


def test_the_key_stands_in_no_file_page_or_export(
    engine: Engine, dashboard: str, page: Page, server: Loopback, tmp_path: Path
) -> None:
    lay_ground(engine, items=3)
    server.next(Failure(429, f"slow down, {KEY}"))
    page.goto(f"{dashboard}/launch")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text("15 of 15 calls recorded")).to_be_visible(timeout=MOST)
    page.get_by_text("Attempts that failed: 1").click()
    expect(page.get_by_text("Errors that may pass")).to_be_visible(timeout=MOST)
    assert KEY not in page.content()
    page.goto(f"{dashboard}/datasets")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download scores as CSV").click(timeout=MOST)
    exported = Path(download.value.path()).read_text()
    assert exported.count("\n") == 31  # a header, and 15 calls with two criteria each
    assert KEY not in exported
    assert any(KEY in value for value in server.messages()[0].headers.values())
    files = [path for path in tmp_path.rglob("launch.db*") if path.is_file()]
    assert {"launch.db", "launch.db.worker.log"} <= {path.name for path in files}
    assert not [path.name for path in files if KEY.encode() in path.read_bytes()]


def test_own_texts_are_judged_by_an_own_rubric(dashboard: str, page: Page, server: Loopback) -> None:
    page.goto(f"{dashboard}/datasets")
    texts = b"item_id,question,answer\nq1,Why is it slow?,Because.\nq2,How do I stop it?,Press stop.\nq3,When?,Now.\n"
    files = page.locator("input[type=file]")
    files.first.set_input_files({"name": "own.csv", "mimeType": "text/csv", "buffer": texts})
    page.get_by_role("button", name="Use this mapping").click()
    page.get_by_role("button", name="Try it without writing").click()
    page.get_by_role("button", name="Import", exact=True).click(timeout=MOST)
    expect(page.get_by_text("The file was imported.")).to_be_visible(timeout=MOST)
    opened = page.get_by_role("button", name="Upload").last
    insist(page, page.get_by_text("A rubric to judge by").click, opened.is_visible)
    files.last.set_input_files(REPO / "data" / "rubrics" / "support-answer.json")
    page.get_by_role("button", name="Store this rubric").click(timeout=MOST)
    expect(page.get_by_text("Rubric support-answer is now version 1.")).to_be_visible(timeout=MOST)
    page.get_by_role("link", name="Judge the texts of own").click()
    expect(page.get_by_text("Name the model first.")).to_be_visible(timeout=MOST)
    page.get_by_label("Model", exact=True).fill("claude-test")
    page.get_by_label("Model", exact=True).press("Enter")
    expect(page.get_by_test_id("stMetricValue").first).to_have_text("15", timeout=MOST)  # 3 texts x 5 repetitions
    rest(page)
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text("15 of 15 calls recorded")).to_be_visible(timeout=MOST)
    assert sum("Press stop." in asked.user for asked in server.messages()) == 5
    page.get_by_role("link", name="What its scores say").click()
    expect(page.get_by_text("15 calls attempted").first).to_be_visible(timeout=MOST)
