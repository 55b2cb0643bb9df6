"""The pages over ten million stored scores and a million pairs, each in a process of its own, as in a new server.

Run as `python -m benchmarks.pages PAGE` it opens one page of the store that the environment names.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from streamlit.testing.v1 import AppTest

from benchmarks.measuring import Line, key_of, peak_memory
from core.store import writes
from core.store.engine import DATABASE_PATH, get_engine
from core.store.queries import list_criteria
from core.store.specs import CallRow, CriterionSpec, ItemSpec, JudgeSpec, LevelSpec, RubricSpec, ScoreRow, content_hash
from core.store.tables import Order

ITEMS, REPETITIONS, CRITERION = 500_000, 20, "quality"
PAIRS = 1_000_000
PAGES = ("dispersion", "gate_flips", "drift")
WARM, COLD, MEMORY = 1.0, 10.0, 1024.0
_FOLDER = Path(__file__).parents[1] / "pages"
_AT_ONCE = 20_000


def measure(folder: Path) -> Iterator[Line]:
    """Build the stores, then open each page cold and warm."""
    store = folder / "ten_million.db"
    start = time.perf_counter()
    build(store)
    scores = ITEMS * REPETITIONS
    yield Line(
        f"Writing {scores:,} scores in {ITEMS:,} items into SQLite",
        f"{time.perf_counter() - start:.0f} s, file of {store.stat().st_size / 2**20:,.0f} MB",
    )
    for page in PAGES:
        found = _opened(page, store)
        yield Line(
            f"Page {page}, first look after new data", f"{found['cold']:.1f} s", "under 10 s", found["cold"] < COLD
        )
        yield Line(f"Page {page}, warm", f"{found['warm']:.2f} s", "under 1 s", found["warm"] < WARM)
        yield Line(f"Page {page}, memory", f"{found['memory']:.0f} MB", "under 1 GB", found["memory"] < MEMORY)
    store.unlink()
    store = folder / "million_pairs.db"
    build_pairs(store)
    found = _opened("position_bias", store)
    what = f"Page position_bias over {PAIRS:,} pairs"
    yield Line(f"{what}, first look after new data", f"{found['cold']:.1f} s, {found['memory']:.0f} MB")
    yield Line(f"{what}, warm", f"{found['warm']:.2f} s", "under 1 s", found["warm"] < WARM)


def _opened(page: str, store: Path) -> dict[str, float]:
    """What `_open` measures, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.pages", page],
        env={DATABASE_PATH: str(store), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"the page {page} failed: {done.stderr}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def build(store: Path) -> None:
    """Two judges' scores: ten million of the first, and one repetition of the second to compare it with."""
    levels = tuple(LevelSpec(float(value)) for value in range(1, 6))
    rubric_spec = RubricSpec("benchmark", (CriterionSpec(CRITERION, levels, gate=4.0),))
    engine = get_engine(f"sqlite:///{store}")
    rng = np.random.default_rng(6)
    with writes.writing(engine) as session:
        rubric = writes.add_rubric(session=session, spec=rubric_spec)
        rubric_id = key_of(rubric.id)
        book = writes.ItemBook(session=session, collection="benchmark")
        items = [book.find(ItemSpec(f"item-{item:07}", content_hash(str(item)))) for item in range(ITEMS)]
        book.flush()
        corpus = writes.add_corpus(session=session, name="benchmark", item_ids=items)
        (criterion,) = list_criteria(session=session, rubric_id=rubric_id)
        quality = rng.normal(3.0, 1.0, ITEMS)
        for name, repetitions in (("judge-b", 1), ("judge-a", REPETITIONS)):
            judge = writes.add_judge(
                session=session, spec=JudgeSpec(name, rubric_id, rubric.sha256, model=f"model-{name}")
            )
            run = writes.add_run(session=session, judge_id=key_of(judge.id), corpus_id=key_of(corpus.id))
            recorder = writes.RunRecorder(session=session, run=run)
            for start in range(0, ITEMS, _AT_ONCE):
                block = quality[start : start + _AT_ONCE, None]
                scores = np.clip(np.rint(block + rng.normal(0, 0.7, (len(block), repetitions))), 1, 5)
                recorder.record(
                    CallRow(items[start + row], repetition, scores=(ScoreRow(criterion.id, float(value)),))
                    for row, repeated in enumerate(scores)
                    for repetition, value in enumerate(repeated)
                )
            recorder.finish()
    engine.dispose()


def build_pairs(store: Path) -> None:
    """One judge's verdict on each pair in both orders; it likes the first slot."""
    levels = tuple(LevelSpec(float(value)) for value in (-1, 0, 1))
    rubric_spec = RubricSpec("pairs", (CriterionSpec("preference", levels, gate=1.0),))
    engine = get_engine(f"sqlite:///{store}")
    rng = np.random.default_rng(7)
    with writes.writing(engine) as session:
        rubric = writes.add_rubric(session=session, spec=rubric_spec)
        rubric_id = key_of(rubric.id)
        book = writes.ItemBook(session=session, collection="pairs")
        items = [
            book.find(ItemSpec(f"pair-{item:07}", content_hash(str(item)), system="a", system_b="b", pair=True))
            for item in range(PAIRS)
        ]
        book.flush()
        corpus = writes.add_corpus(session=session, name="pairs", item_ids=items)
        (criterion,) = list_criteria(session=session, rubric_id=rubric_id)
        spec = JudgeSpec("pair judge", rubric_id, rubric.sha256, model="model", pairwise=True)
        judge = writes.add_judge(session=session, spec=spec)
        run = writes.add_run(session=session, judge_id=key_of(judge.id), corpus_id=key_of(corpus.id))
        recorder = writes.RunRecorder(session=session, run=run)
        for order, likes in ((Order.AB, 0.2), (Order.BA, 0.4)):
            verdicts = np.sign(np.rint(rng.normal(likes, 0.8, PAIRS)))
            for start in range(0, PAIRS, _AT_ONCE):
                recorder.record(
                    CallRow(items[start + row], 0, order, scores=(ScoreRow(criterion.id, float(value)),))
                    for row, value in enumerate(verdicts[start : start + _AT_ONCE])
                )
        recorder.finish()
    engine.dispose()


def _open(page: str) -> dict[str, float]:
    """Seconds of a first look and of the quickest later one, in a server that has its libraries loaded."""
    _load_libraries(page)
    test = AppTest.from_file(str(_FOLDER / f"{page}.py"), default_timeout=600)
    took = []
    for _ in range(4):
        start = time.perf_counter()
        test.run()
        took.append(time.perf_counter() - start)
        if test.exception:
            raise SystemExit(str(test.exception))
    return {"cold": took[0], "warm": min(took[1:]), "memory": peak_memory()}


def _load_libraries(page: str) -> None:
    """Open the page on an empty store."""
    store = os.environ[DATABASE_PATH]
    with tempfile.TemporaryDirectory() as folder:
        os.environ[DATABASE_PATH] = str(Path(folder) / "empty.db")
        AppTest.from_file(str(_FOLDER / f"{page}.py"), default_timeout=600).run()
    os.environ[DATABASE_PATH] = store


if __name__ == "__main__":
    print(json.dumps(_open(sys.argv[1])))
