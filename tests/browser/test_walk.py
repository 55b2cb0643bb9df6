"""A real browser walks from a judge to its items and to what was said of each, and chooses two repetitions."""

import re

from playwright.sync_api import Page, Position, expect

from tests.browser.serving import AT_ONCE, PATIENCE, choose, click_drawn, insist, rest

SOON = PATIENCE * 1000
FIRST_ROW: Position = {"x": 120, "y": 55}
"""Within a table, which is a drawing: below the titles, in the column after the boxes."""


def click_first_row(page: Page, *, goal: str) -> None:
    """Click in the first table's first row until the heading `goal` is there."""
    heading = page.get_by_role("heading", name=goal)
    table = page.get_by_test_id("stDataFrame").filter(visible=True).first
    insist(page, lambda: table.click(position=FIRST_ROW, timeout=AT_ONCE), heading.is_visible)
    expect(heading).to_be_visible()


def test_a_judge_leads_to_its_items_and_an_item_to_every_call(address: str, page: Page) -> None:
    page.goto(address)
    expect(page.get_by_role("heading", name="Judges of single answers")).to_be_visible(timeout=SOON)
    click_first_row(page, goal="Dispersion")
    expect(page).to_have_url(re.compile(r"/dispersion\?.*corpus=support-answers"))
    expect(page.get_by_role("heading", name="Which items wobble")).to_be_visible(timeout=SOON)
    click_first_row(page, goal="Every call, side by side")
    expect(page).to_have_url(re.compile(r"/item\?.*item=production-03"))
    expect(page.get_by_text("Rationale", exact=True).first).to_be_visible()
    page.get_by_text("Raw reply").first.click()
    expect(page.get_by_text('"helpfulness"').first).to_be_visible(timeout=SOON)


def test_two_repetitions_in_a_link_show_the_items_whose_verdict_moved(address: str, page: Page) -> None:
    page.goto(f"{address}/gate_flips?corpus=support-answers@1&criterion=helpfulness&gate=4")
    expect(page.get_by_role("heading", name="One pair of repetitions")).to_be_visible(timeout=SOON)
    expect(page.get_by_text(re.compile(r"^\d+ items passed in"))).to_be_visible(timeout=SOON)
    first = page.url
    choose(page, "Second repetition", "run 7 · repetition 2")
    expect(page).not_to_have_url(first, timeout=SOON)
    expect(page.get_by_text(re.compile(r"^\d+ items failed in"))).to_be_visible(timeout=SOON)


def test_a_deep_link_opens_the_same_view(address: str, page: Page) -> None:
    page.goto(f"{address}/dispersion?corpus=support-answers@1&criterion=groundedness&gate=3")
    expect(page.get_by_text("groundedness · gate 3")).to_be_visible(timeout=SOON)
    expect(page.get_by_text("simulated", exact=True).first).to_be_visible()


def test_a_click_on_a_cell_or_a_dot_chooses_the_two_repetitions(address: str, page: Page) -> None:
    page.goto(f"{address}/gate_flips?corpus=support-answers@1&criterion=helpfulness&gate=4")
    expect(page.get_by_role("heading", name="One pair of repetitions")).to_be_visible(timeout=SOON)
    rest(page)
    charts = page.get_by_test_id("stPlotlyChart")
    for place in (charts.nth(1).get_by_text("26", exact=True).first, charts.nth(2).locator(".point").first):
        before = page.url
        click_drawn(page, place, lambda before=before: page.url != before)  # type: ignore[misc]
        expect(page.get_by_text(re.compile(r"^\d+ items failed in"))).to_be_visible(timeout=SOON)
        assert re.search(r"[?&]a=", page.url)
        assert re.search(r"[?&]b=", page.url)


def test_a_click_on_a_dot_of_the_strip_opens_the_item(address: str, page: Page) -> None:
    page.goto(f"{address}/dispersion?corpus=support-answers@1&criterion=helpfulness&gate=4")
    expect(page.get_by_role("heading", name="Which items wobble")).to_be_visible(timeout=SOON)
    rest(page)
    dot = page.get_by_test_id("stPlotlyChart").nth(1).locator(".point").first
    click_drawn(page, dot, lambda: "/item?" in page.url)
    expect(page.get_by_role("heading", name="Every call, side by side")).to_be_visible(timeout=SOON)
