"""Finds a Chromium for the browser tests, and fetches one where the machine has none.

Run as `python -m tests.chromium` before the tests: Debian's package when apt and root are there, else playwright's own.
"""

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find() -> str | None:
    """The path of an installed Chromium; None leaves the choice to playwright."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def fetch() -> None:
    """Install a Chromium where there is none."""
    if find():
        return
    if shutil.which("apt-get") and os.geteuid() == 0:
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update", "-qq"], check=True, env=environment)
        subprocess.run(
            ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium", "fonts-dejavu-core"],
            check=True,
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        return
    subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=True)


if __name__ == "__main__":
    fetch()
