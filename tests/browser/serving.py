"""Starts the dashboard as a user would."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from playwright.sync_api import Page

from core.store.engine import DATABASE_PATH, DATABASE_URL
from tests.conftest import REPO

PATIENCE = 60
"""Seconds to wait for anything on screen: the machine may be busy."""


@contextmanager
def serve(store: Path, **environment: str) -> Iterator[str]:
    """The address of a dashboard on the SQLite file `store`, stopped at the end of the block."""
    inherited = {name: value for name, value in os.environ.items() if name != DATABASE_URL}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    own = {DATABASE_PATH: str(store), **environment}
    with subprocess.Popen(command, cwd=REPO, env=inherited | own) as server:
        wait_for(f"http://localhost:{port}/_stcore/health")
        yield f"http://localhost:{port}"
        server.terminate()


def wait_for(url: str) -> None:
    """Return when `url` answers; fail the test when it does not."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            urlopen(url).close()
        except URLError:
            time.sleep(0.2)
        else:
            return
    pytest.fail(f"no answer at {url} within {PATIENCE} s")


def go_to(page: Page, section: str, name: str) -> None:
    """Choose a page in the navigation on top."""
    page.get_by_test_id("stTopNavSection").filter(has_text=section).click()
    page.get_by_test_id("stTopNavDropdownLink").filter(has_text=name).click()
