"""A real browser: the false passes of the twenty labels, a cell of the matrix, a trust rule frozen and evaluated."""

from playwright.sync_api import Page, expect

from tests.browser.serving import PATIENCE, click_drawn

WAIT = PATIENCE * 1000


def test_a_reader_sees_the_false_passes_clicks_a_cell_and_freezes_a_rule(address: str, page: Page) -> None:
    page.goto(f"{address}/human_agreement?corpus=labels_r01_r20@1&cell=0-0")
    expect(page.get_by_role("heading", name="False passes: 3 items")).to_be_visible(timeout=WAIT)
    expect(page.get_by_text("3 of 9 fails by people (33.3%), 3 of 12 passes by the judge (25.0%)")).to_be_visible()
    expect(page.get_by_text("20 labels cannot calibrate a judge")).to_be_visible(timeout=WAIT)

    expect(page.get_by_role("button", name="Save it as a judge")).to_be_visible(timeout=WAIT)
    third = page.get_by_test_id("stPlotlyChart").first.get_by_text("33%", exact=True)  # 3 of the 9 fails by people
    click_drawn(page, third, lambda: "cell=0-1" in page.url, above=10)

    page.get_by_label("Name", exact=True).fill("strict")
    page.get_by_label("Author", exact=True).fill("Reader")
    page.get_by_role("button", name="Freeze the rule").click()
    expect(page.get_by_text("do not trust")).to_be_visible(timeout=WAIT)
    expect(page.get_by_text("made after the labels were seen").first).to_be_visible()
    assert "rule=" in page.url
