"""A real browser reads a flipped pair: the list, then both orders side by side."""

from playwright.sync_api import Page, expect

from tests.browser.serving import AT_ONCE, PATIENCE, insist

WAIT = PATIENCE * 1000
FIRST_WAIT = 3 * WAIT
"""The first page of a new server also loads the statistics libraries."""


def test_a_flipped_pair_opens_from_the_list_with_both_rationales(address: str, page: Page) -> None:
    page.goto(f"{address}/position_bias?corpus=support-pairs@1&list=first")
    expect(page.get_by_role("heading", name="Flipped pairs")).to_be_visible(timeout=FIRST_WAIT)
    # a deep link is what this dashboard was asked first, and its navigation is there all the same
    expect(page.get_by_test_id("stTopNavSection").first).to_be_visible()
    table = page.locator(".st-key-flipped_table")
    expect(table.locator("canvas").first).to_be_visible(timeout=WAIT)
    # The rows are drawn on a canvas: a click on the box in front of the first row selects it.
    opened = page.get_by_text("A in slot 1, B in slot 2")
    insist(page, lambda: table.click(position={"x": 17, "y": 52}, timeout=AT_ONCE), opened.is_visible)
    expect(page.get_by_text("B in slot 1, A in slot 2")).to_be_visible()
    assert "pair=pair-" in page.url
    rationales = page.get_by_text("gives a step that the")
    expect(rationales.first).to_be_visible()
    assert rationales.count() >= 2
