"""A real browser walks from the overview to an item's spread and moves the gate."""

from playwright.sync_api import Page, expect

from tests.browser.serving import PATIENCE


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
