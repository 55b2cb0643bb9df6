"""A real browser goes from the overview to the verdict of two judges."""

from playwright.sync_api import Locator, Page, expect

from tests.browser.serving import PATIENCE, choose, go_to


def see(thing: Locator) -> None:
    expect(thing).to_be_visible(timeout=PATIENCE * 1000)


def test_two_judges_are_chosen_and_the_verdict_is_said(address: str, page: Page) -> None:
    page.goto(address)
    see(page.get_by_role("heading", name="Overview"))
    go_to(page, "Change", "Drift")
    see(page.get_by_role("heading", name="Verdict", exact=True))
    see(page.get_by_text("Drift: the mean fell from 3.295 to 2.830"))
    choose(page, "Candidate judges", "hasty judge")
    see(page.get_by_text("Another judge, not drift"))
    assert "after=" in page.url
    link = page.url
    page.goto("about:blank")
    page.goto(link)
    see(page.get_by_text("Another judge, not drift"))
    see(page.get_by_role("heading", name="Why did it move"))
