"""Every page on an empty store, on the demo history and by a link that names what to show."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.ingest.simulate import ensure_demo
from core.store.engine import DATABASE_PATH, DATABASE_URL, get_engine

PAGES = Path(__file__).parents[2] / "pages"
NAMES = ["overview", "dispersion", "gate_flips"]


def open_app(page: str, **query: str) -> AppTest:
    test = AppTest.from_file(str(PAGES / f"{page}.py"), default_timeout=60)
    for name, value in query.items():
        test.query_params[name] = value
    return test.run()


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DATABASE_URL, raising=False)
    monkeypatch.setenv(DATABASE_PATH, str(tmp_path / "demo.db"))
    ensure_demo(get_engine(f"sqlite:///{tmp_path / 'demo.db'}"))


@pytest.mark.parametrize("page", NAMES)
def test_an_empty_store_says_what_to_do(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DATABASE_URL, raising=False)
    monkeypatch.setenv(DATABASE_PATH, str(tmp_path / "empty.db"))
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
@pytest.mark.parametrize("page", ["dispersion", "gate_flips"])
def test_a_link_names_criterion_and_gate(page: str) -> None:
    test = open_app(page, corpus="support-answers@1", criterion="groundedness", gate="3")
    assert not test.exception
    assert "groundedness · gate 3" in test.main.markdown[0].value


@pytest.mark.usefixtures("demo")
def test_an_unknown_judge_in_a_link_is_said_and_not_an_error() -> None:
    test = open_app("dispersion", judge="nosuchjudge")
    assert not test.exception
    assert "nosuchjudge" in test.sidebar.warning[0].value
