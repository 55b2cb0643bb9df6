"""Import into a new SQLite file, in scores a second, the file's reading and checking included."""

import csv
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.measuring import Line
from core.store.engine import DATABASE_PATH

ITEMS, REPETITIONS, CRITERIA = 10_000, 20, ("helpfulness", "groundedness")
RICH_ITEMS = 2_500
BAR = 30_000
_RATIONALE = "The answer gives the date that the policy names and says what to do next, but leaves out the fee. "


def measure(folder: Path) -> Iterator[Line]:
    """A plain CSV, and JSON Lines in which each score comes with its words."""
    for name, write in (("CSV", _write_csv), ("JSON Lines with rationales and raw replies", _write_jsonl)):
        path = folder / ("scores.csv" if write is _write_csv else "scores.jsonl")
        scores = write(path)
        seconds = _import(path, folder / f"{path.name}.db")
        rate = scores / seconds
        yield Line(
            f"Import of {scores:,} scores, {name}, into SQLite",
            f"{seconds:.1f} s: {rate:,.0f} scores a second",
            f"at least {BAR:,} a second",
            rate >= BAR,
        )


def _import(path: Path, store: Path) -> float:
    """Seconds in a process of its own, its start left out: it says itself how long the import took."""
    code = (
        "import sys, time\nfrom core.cli import main\nfrom core.store.engine import database_url, get_engine\n"
        "get_engine(database_url())\nstart = time.perf_counter()\n"
        "done = main(sys.argv[1:])\nprint(time.perf_counter() - start, file=sys.stderr)\nsys.exit(done)"
    )
    options = ["--yes", "--judge", "benchmark", "--levels", "1,2,3,4,5", "--gate", "4"]
    done = subprocess.run(
        [sys.executable, "-c", code, "import", str(path), *options],
        env={DATABASE_PATH: str(store), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"the import failed: {done.stdout}{done.stderr}")
    return float(done.stderr.strip().splitlines()[-1])


def _write_csv(path: Path) -> int:
    scores = np.random.default_rng(4).integers(1, 6, (ITEMS, REPETITIONS, len(CRITERIA)))
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item", "repetition", "criterion", "score"])
        for item in range(ITEMS):
            for repetition in range(REPETITIONS):
                for place, criterion in enumerate(CRITERIA):
                    writer.writerow([f"item-{item:06}", repetition + 1, criterion, scores[item, repetition, place]])
    return int(scores.size)


def _write_jsonl(path: Path) -> int:
    scores = np.random.default_rng(5).integers(1, 6, (RICH_ITEMS, REPETITIONS, len(CRITERIA)))
    with path.open("w") as file:
        for item in range(RICH_ITEMS):
            for repetition in range(REPETITIONS):
                for place, criterion in enumerate(CRITERIA):
                    score = int(scores[item, repetition, place])
                    row = {
                        "item": f"item-{item:06}",
                        "repetition": repetition + 1,
                        "criterion": criterion,
                        "score": score,
                        "rationale": _RATIONALE,
                        "raw_reply": json.dumps({"rationale": _RATIONALE, "score": score}),
                    }
                    file.write(json.dumps(row) + "\n")
    return int(scores.size)
