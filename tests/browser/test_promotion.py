"""From the overview to a recorded promotion decision and its judge card, which opens without a network."""

from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.browser.serving import PATIENCE, go_to

WAIT = PATIENCE * 1000
CLICKS = 20


def test_a_promotion_is_decided_in_under_twenty_clicks(
    address: str, page: Page, browser: Browser, tmp_path: Path
) -> None:
    clicks = 0

    def click(role: str, name: str, *, last: bool = False) -> None:
        nonlocal clicks
        found = page.get_by_role(role, name=name, exact=True)  # type: ignore[arg-type]
        (found.last if last else found.first).click()
        clicks += 1

    def write(label: str, words: str, *, last: bool = False) -> None:
        nonlocal clicks
        found = page.get_by_label(label, exact=True)
        (found.last if last else found.first).fill(words)
        clicks += 1

    page.goto(address)
    expect(page.get_by_role("heading", name="Overview")).to_be_visible(timeout=WAIT)
    go_to(page, "Change", "Promotion")
    clicks += 2
    write("Your name", "lead")
    write("Reason", "in use since spring")
    click("button", "Approve the first baseline")
    expect(page.get_by_text("(the approved baseline)")).to_be_visible(timeout=WAIT)
    write("Name of the rule", "release rule")
    write("Who answers for it", "lead")
    click("button", "Freeze the rule")
    expect(page.get_by_role("heading", name="Review")).to_be_visible(timeout=WAIT)
    verdict = page.get_by_test_id("stAlertContentError")
    expect(verdict).to_be_visible(timeout=WAIT)
    write("Your name", "lead")
    write("Reason", "it scores lower")
    page.get_by_text("Reject", exact=True).click()
    clicks += 1
    click("button", "Record the decision")
    expect(page.get_by_text("Newest: rejected")).to_be_visible(timeout=WAIT)
    expect(page.locator("[data-test-script-state=notRunning]")).to_be_visible(timeout=WAIT)
    with page.expect_download(timeout=WAIT) as download:
        click("button", "Download the judge card (HTML)")
    card = tmp_path / "card.html"
    download.value.save_as(card)
    assert clicks < CLICKS

    said = verdict.inner_text().strip()
    offline = browser.new_context(offline=True)
    reader = offline.new_page()
    asked: list[str] = []
    reader.on("request", lambda request: asked.append(request.url))
    reader.goto(card.as_uri())
    expect(reader.get_by_role("heading", name="Promotion review")).to_be_visible(timeout=WAIT)
    expect(reader.get_by_text(said.removeprefix("Fail: "))).to_be_visible()
    expect(reader.get_by_text("it scores lower")).to_be_visible()
    expect(reader.locator(".js-plotly-plot .main-svg").first).to_be_visible(timeout=WAIT)
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    offline.close()
