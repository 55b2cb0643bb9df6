"""Runs every benchmark, prints its figures and writes docs/benchmarks.md. Exits with 1 when a bar is missed."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import importing, pages, statistics, worker
from benchmarks.measuring import Line, machine

TARGET = Path(__file__).parents[1] / "docs" / "benchmarks.md"
_OPENING = """# Benchmarks

Made by `make bench`; other libraries are measured in the same run, in the same process where they can be. The quickest
of a few runs counts, since whatever else a machine does only ever adds time.
"""


def main() -> int:
    """Measure and report."""
    lines = []
    for line in _measure():
        print(f"{line.what}: {line.figure}{_against(line)}", flush=True)
        lines.append(line)
    TARGET.write_text(report(lines))
    missed = [line.what for line in lines if line.met is False]
    for what in missed:
        print(f"missed: {what}", file=sys.stderr)
    return 1 if missed else 0


def report(lines: list[Line]) -> str:
    """The page of figures."""
    rows = "\n".join(f"| {line.what} | {line.figure} | {line.bar} | {_verdict(line)} |" for line in lines)
    facts = "\n".join(f"- {fact}" for fact in machine())
    return f"{_OPENING}\n| What | Measured | Bar | Met |\n|---|---|---|---|\n{rows}\n\nMachine:\n\n{facts}\n"


def _measure() -> Iterator[Line]:
    yield from statistics.measure()
    with tempfile.TemporaryDirectory() as folder:
        yield from importing.measure(Path(folder))
        yield from worker.measure(Path(folder))
        yield from pages.measure(Path(folder))


def _verdict(line: Line) -> str:
    return "" if line.met is None else ("yes" if line.met else "no")


def _against(line: Line) -> str:
    return f" (bar: {line.bar}; {'met' if line.met else 'missed'})" if line.bar else ""


if __name__ == "__main__":
    sys.exit(main())
