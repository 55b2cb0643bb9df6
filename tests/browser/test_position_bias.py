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


def test_families_are_entered_saved_and_warned_of(address: str, page: Page) -> None:
    page.goto(f"{address}/position_bias?corpus=support-pairs@1&part=families")
    expect(page.get_by_role("heading", name="Model families")).to_be_visible(timeout=FIRST_WAIT)
    save = page.get_by_role("button", name="Save families")
    expect(save).to_be_disabled()
    table = page.locator(".st-key-families").or_(page.get_by_test_id("stDataFrame").first).first

    def enter() -> None:
        box = table.bounding_box(timeout=AT_ONCE)
        assert box is not None
        # third column, second row below the titles: the family of the first system
        table.dblclick(position={"x": box["width"] - 60, "y": 87}, timeout=AT_ONCE)
        page.keyboard.press("ControlOrMeta+A")
        page.keyboard.type("sim-judge")
        page.keyboard.press("Enter")

    insist(page, enter, save.is_enabled)
    save.click()
    expect(page.get_by_text("assistant-a are of one family, sim-judge")).to_be_visible(timeout=WAIT)
    expect(save).to_be_disabled()
