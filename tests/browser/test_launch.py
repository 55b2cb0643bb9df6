"""A real browser launches a run against a loopback endpoint, watches it to its end and opens its dispersion."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.store import plan_queries
from core.store.engine import get_engine, reading
from core.store.tables import utc_now
from core.ui.launch import FRESH
from tests.browser.serving import PATIENCE, serve
from tests.judge.planning import KEY, lay_ground
from tests.judge.server import Loopback, loopback

MOST = 2 * PATIENCE * 1000


@pytest.fixture
def server() -> Iterator[Loopback]:
    with loopback(latency=0.05) as server:
        yield server


@pytest.fixture
def dashboard(tmp_path: Path, server: Loopback) -> Iterator[str]:
    """A dashboard on a store with a judge to ask; the worker that it starts is ended with it."""
    path = tmp_path / "launch.db"
    engine = get_engine(f"sqlite:///{path}")
    lay_ground(engine, items=20)
    with serve(path, ANTHROPIC_BASE_URL=server.url, ANTHROPIC_API_KEY=KEY) as address:
        yield address
    with reading(engine) as session:
        workers = [worker.process for worker in plan_queries.list_workers(session=session, since=utc_now() - FRESH)]
    for process in workers:
        os.kill(process, signal.SIGTERM)


def test_a_run_of_twenty_items_goes_to_its_end(dashboard: str, page: Page, server: Loopback) -> None:
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
