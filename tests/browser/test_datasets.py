"""A real browser brings a file into an empty store: the mapping is confirmed, the report shown, the spread linked."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.serving import PATIENCE, serve
from tests.conftest import REALDATA
from tests.ingest.files import csv

TOPICALCHAT = REALDATA / "topicalchat_repeats.csv.gz"
LONG = 5 * PATIENCE * 1000


@pytest.fixture
def nothing(tmp_path: Path) -> Iterator[str]:
    """The dashboard on an empty store."""
    with serve(tmp_path / "empty.db") as address:
        yield address


def await_sight(place: Locator) -> None:
    """Wait until it is on screen: a big file takes its time on a busy machine."""
    expect(place).to_be_visible(timeout=LONG)


def open_page(page: Page, address: str) -> None:
    """The datasets page, by way of the empty overview."""
    page.goto(address)
    page.get_by_role("link", name="Bring in a file").click()
    await_sight(page.get_by_role("heading", name="Datasets"))


def confirm(page: Page) -> None:
    """Accept the guessed mapping and the proposed levels."""
    page.get_by_role("button", name="Use this mapping").click()
    page.get_by_text("Levels for each criterion").click()
    await_sight(page.get_by_label("Name of the rubric"))
    page.get_by_text("I have checked the levels").click()


def test_a_bad_line_is_shown_set_aside_and_listed(nothing: str, page: Page) -> None:
    open_page(page, nothing)
    data = csv("a,0,j,1", "a,1,j,2", "b,zero,j,3", header="item,rep,judge,score")
    page.locator("input[type=file]").first.set_input_files(
        {"name": "small.csv", "mimeType": "text/csv", "buffer": data}
    )
    confirm(page)
    page.get_by_role("button", name="Try it without writing").click()
    await_sight(page.get_by_text("1 of 3 lines are bad"))
    expect(page.get_by_role("button", name="Import", exact=True)).to_be_disabled(timeout=LONG)
    page.get_by_text("Set the bad lines aside").click()
    page.get_by_role("button", name="Try it without writing").click()
    await_sight(page.get_by_text("Dry run, nothing was written: small.csv"))
    page.get_by_role("button", name="Import", exact=True).click()
    await_sight(page.get_by_text("The file was imported."))
    await_sight(page.get_by_text("line 4, rep: 'zero'").first)
    await_sight(page.get_by_text("Lines set aside from"))
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").first.click()
    assert "4,rep,zero,is no whole number" in Path(download.value.path()).read_text()


@pytest.mark.skipif(not TOPICALCHAT.exists(), reason="needs the published data")
def test_the_published_repeats_are_imported_with_their_unscored_replies_apart(nothing: str, page: Page) -> None:
    open_page(page, nothing)
    page.locator("input[type=file]").first.set_input_files(TOPICALCHAT)
    confirm(page)
    page.get_by_role("button", name="Try it without writing").click()
    await_sight(page.get_by_text("Dry run, nothing was written"))
    page.get_by_role("button", name="Import", exact=True).click()
    await_sight(page.get_by_text("The file was imported."))
    expect(page.get_by_text("Dry run, nothing was written")).to_have_count(0, timeout=LONG)
    # the source's README: 200,000 rows, of which 381 could not be parsed and 18 lay outside the scale
    await_sight(page.get_by_text("rows 200,000, calls 200,000, scored 199,601"))
    await_sight(page.get_by_text("unscored 399: verdict_missing 381, out_of_range 18"))
    page.get_by_role("link", name="Dispersion of geval", exact=True).click()
    await_sight(page.get_by_role("heading", name="Dispersion", exact=True))
    await_sight(page.get_by_text("geval · topicalchat_repeats v1").first)
