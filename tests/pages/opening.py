"""Opens a page as Streamlit's own test runner does, by the link a user would send."""

from pathlib import Path

from streamlit.testing.v1 import AppTest

PAGES = Path(__file__).parents[2] / "pages"


def open_app(page: str, **query: str) -> AppTest:
    """The page after its first run, with `query` in its URL."""
    test = AppTest.from_file(str(PAGES / f"{page}.py"), default_timeout=60)
    for name, value in query.items():
        test.query_params[name] = value
    return test.run()
