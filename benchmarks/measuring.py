"""What every benchmark hands back, and how time and memory are taken."""

import gc
import os
import platform
import resource
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

LIBRARIES = ("numpy", "scipy", "scikit-learn", "krippendorff", "pandas", "sqlmodel", "streamlit", "anthropic", "dbos")


class Line(NamedTuple):
    """One measured figure.

    Attributes:
        what: What was measured.
        figure: The result in words, with its unit.
        bar: What it should be, empty where there is no bar.
        met: Whether it is; None without a bar.
    """

    what: str
    figure: str
    bar: str = ""
    met: bool | None = None


def best_of(times: int, work: Callable[[], Any]) -> float:
    """The quickest of some runs in seconds: whatever else the machine did only ever adds to it."""
    taken = []
    for _ in range(times):
        gc.collect()
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


def peak_memory() -> float:
    """The most memory this program ever held, in MB.

    From /proc where there is one: getrusage also counts the process that started this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        return float(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def key_of(stored: int | None) -> int:
    """The id of a row that was flushed."""
    if stored is None:
        raise ValueError("a row of the benchmark has no id")
    return stored


def machine() -> list[str]:
    """The machine and the versions the figures come from, one fact a line."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return [
        f"{_processor()}, {os.cpu_count()} cores, {memory:.0f} GB, {platform.system()} {platform.machine()}",
        f"Python {platform.python_version()}, {libraries}",
    ]


def _processor() -> str:
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text().splitlines() if facts.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown processor"
