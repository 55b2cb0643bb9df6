"""Published judge data through the importer, checked against figures computed elsewhere."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from core.ingest.load import ImportReport, plan_import, propose_levels, run_import
from core.ingest.rubrics import from_levels
from core.ingest.source import Source
from core.store.engine import get_engine, reading
from core.store.queries import get_score_matrix
from tests.conftest import REALDATA
from tests.ingest.files import count, rows

pytestmark = pytest.mark.skipif(not REALDATA.is_dir(), reason="the published data lies beside the checkout only")


def imported(engine: Engine, name: str, levels: dict[str, tuple[float, ...]], gates: dict[str, float]) -> ImportReport:
    """The import that `python -m core.cli import FILE --yes` makes of a guessed mapping."""
    source = Source.from_path(REALDATA / name)
    mapping = plan_import(engine, source).mapping
    criteria = [proposal.criterion for proposal in propose_levels(source, mapping)]
    return run_import(engine, source, mapping=mapping, rubric=from_levels("r", criteria, levels, gates))


@pytest.fixture(scope="module")
def topicalchat(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engine, ImportReport]]:
    engine = get_engine(f"sqlite:///{tmp_path_factory.mktemp('topicalchat') / 'x.db'}")
    levels = {"": (1.0, 2.0, 3.0), "groundedness": (0.0, 1.0)}
    yield engine, imported(engine, "topicalchat_repeats.csv.gz", levels, {"": 3.0, "groundedness": 1.0})
    engine.dispose()


def test_topicalchat_keeps_its_unscored_replies_apart(topicalchat: tuple[Engine, ImportReport]) -> None:
    engine, report = topicalchat
    assert (report.rows, report.calls, report.scored) == (200_000, 200_000, 199_601)
    assert report.unscored == {"verdict_missing": 381, "out_of_range": 18}
    assert (report.items_new, len(report.judges), report.labels) == (360, 7, 360 * 4)
    assert count(engine, "score") == 200_000


def test_topicalchat_geval_coherence_gives_the_published_figures(topicalchat: tuple[Engine, ImportReport]) -> None:
    engine, report = topicalchat
    run_id = next(judge.run_id for judge in report.judges if judge.name == "geval")
    ((criterion_id,),) = rows(engine, "SELECT id FROM criterion WHERE key = 'coherence'")
    with reading(engine) as session:
        matrix = get_score_matrix(session=session, run_ids=[run_id], criterion_id=criterion_id)
    values = np.where(matrix.codes < 0, np.nan, matrix.codes + 1.0)
    crossing = (np.nanmax(values, axis=1) >= 3) & (np.nanmin(values, axis=1) < 3)
    # the figures: 359 items, 308 cross gate 3 (0.857939), mean item SD with ddof 1 0.421402
    assert (len(values), int(crossing.sum())) == (359, 308)
    assert np.nanstd(values, axis=1, ddof=1).mean() == pytest.approx(0.421402, abs=1e-6)


def test_position_bias_pairs_keep_both_orders_and_their_choices_by_slot(sqlite_engine: Engine) -> None:
    report = imported(sqlite_engine, "positionbias_pairs.csv.gz", {"": (-1.0, 0.0, 1.0)}, {"": 1.0})
    assert (report.rows, report.scored, report.items_new) == (9_072, 9_034, 168)
    assert report.unscored == {"verdict_missing": 30, "conflicting_verdicts": 8}
    # expected.json: MTBench, gpt-4-0613, repetition 1: 85 of 96 pairs consistent, 3 first-slot flips, 3 second-slot
    # flips, 5 where one order is a tie
    found = rows(
        sqlite_engine,
        "SELECT ab.value, ba.value FROM call c1 JOIN score ab ON ab.call_id = c1.id "
        "JOIN call c2 ON c2.run_id = c1.run_id AND c2.item_id = c1.item_id AND c2.repetition = c1.repetition "
        "AND c2.slot_order = 'ba' JOIN score ba ON ba.call_id = c2.id JOIN item ON item.id = c1.item_id "
        "JOIN run ON run.id = c1.run_id JOIN judge ON judge.id = run.judge_id "
        "WHERE c1.slot_order = 'ab' AND c1.repetition = 1 AND item.slice = 'MTBench' AND judge.name = 'gpt-4-0613'",
    )
    kinds = [
        "consistent" if first == -second else "tie" if 0 in (first, second) else "first" if first > 0 else "second"
        for first, second in found
    ]
    assert {kind: kinds.count(kind) for kind in kinds} == {"consistent": 85, "first": 3, "second": 3, "tie": 5}


def test_wildbench_keeps_systems_and_changed_outputs_apart_and_shows_copied_judgements(sqlite_engine: Engine) -> None:
    levels = {"": tuple(map(float, range(1, 11)))}
    report = imported(sqlite_engine, "wildbench_judge_drift.csv.gz", levels, {"": 7.0})
    assert (report.rows, report.scored, len(report.judges)) == (29_653, 29_653, 3)
    expected = _expected()["wildbench"]
    copied = [pair["same_request_id"] for pairs in expected.values() for pair in pairs]
    assert report.shared == sum(copied)
    changed = [pair["common"] - pair["same_output"] for pairs in expected.values() for pair in pairs]
    assert len(report.mutated) == sum(changed)


def test_llmdrift_reads_its_yes_and_no_against_its_gold(sqlite_engine: Engine) -> None:
    report = imported(sqlite_engine, "llmdrift_prime.csv.gz", {"": (0.0, 1.0)}, {"": 1.0})
    status = _expected()["llmdrift_prime"]["status"]
    assert {judge.name: judge.outcomes["scored"] for judge in report.judges} == {
        snapshot: found["ok"] for snapshot, found in status.items()
    }
    assert report.unscored == {
        "verdict_missing": sum(found["unparsed"] for found in status.values()),
        "conflicting_verdicts": sum(found["conflicting"] for found in status.values()),
    }
    assert report.labels == 1_000


def _expected() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(REALDATA / "expected.json").read_text())
    return found
