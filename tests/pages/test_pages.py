"""Every page on an empty store, on the demo history and by a link that names what to show."""

import pytest

from tests.pages.opening import open_app

NAMES = ["overview", "dispersion", "gate_flips", "item"]


@pytest.mark.usefixtures("empty")
@pytest.mark.parametrize("page", NAMES)
def test_an_empty_store_says_what_to_do(page: str) -> None:
    test = open_app(page)
    assert not test.exception
    assert "make demo" in test.info[0].value


@pytest.mark.usefixtures("demo")
@pytest.mark.parametrize("page", NAMES)
def test_the_demo_history_shows_without_an_error(page: str) -> None:
    test = open_app(page)
    assert not test.exception
    assert not test.error


@pytest.mark.usefixtures("demo")
@pytest.mark.parametrize("page", ["dispersion", "gate_flips", "item"])
def test_a_link_names_criterion_and_gate(page: str) -> None:
    test = open_app(page, corpus="support-answers@1", criterion="groundedness", gate="3")
    assert not test.exception
    assert "groundedness · gate 3" in test.main.markdown[0].value


@pytest.mark.usefixtures("demo")
def test_an_unknown_judge_in_a_link_is_said_and_not_an_error() -> None:
    test = open_app("dispersion", judge="nosuchjudge")
    assert not test.exception
    assert "nosuchjudge" in test.sidebar.warning[0].value
