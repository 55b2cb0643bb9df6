"""The command line and the pages show the same numbers, and real data keeps its known ones through the store."""

import json
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core import cli
from core.stats.health import judge_health
from core.store import queries
from core.store.engine import DATABASE_PATH, DATABASE_URL, get_engine, reading
from tests.conftest import REALDATA, REPO


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "evenhand.db"
    monkeypatch.delenv(DATABASE_URL, raising=False)
    monkeypatch.setenv(DATABASE_PATH, str(path))
    return path


def test_page_and_command_line_show_the_same_spread(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["demo"])
    capsys.readouterr()
    assert cli.main(["report", "--criterion", "helpfulness"]) == cli.DONE
    page = AppTest.from_file(str(REPO / "pages" / "dispersion.py"), default_timeout=60)
    page.query_params["corpus"] = "support-answers@1"
    page.run()
    block = capsys.readouterr().out.split("careful judge · sim-judge-2026-09-01")[1].split("judge · ")[0]
    said = {metric.label: metric.value for metric in page.metric}
    words = [caption.value for caption in page.main.caption]
    (spread,) = [line for line in block.splitlines() if "within-item SD" in line]
    value, interval = spread.strip().removeprefix("within-item SD ").rstrip(")").split(" (")
    assert said["Within-item SD"] == value
    assert interval in words
    assert f"alpha (ordinal) {said['Alpha (ordinal)']} (" in block


@pytest.mark.skipif(not REALDATA.exists(), reason="the real data stands beside the checkout only")
def test_topicalchat_keeps_its_figures_through_the_store(store: Path) -> None:
    columns = {"item": "item_id", "repetition": "rep", "judge": "prompt"}
    mapping = [f"{role}={columns.get(role, role)}" for role in (*columns, "criterion", "score", "status")]
    scale = ["--levels", "1,2,3", "--levels", "groundedness=0,1", "--gate", "3", "--gate", "groundedness=1"]
    assert cli.main(["import", str(REALDATA / "topicalchat_repeats.csv.gz"), "--yes", *scale, "--map", *mapping]) == 0
    expected = json.loads((REALDATA / "expected.json").read_text())["topicalchat_repeats"]["geval"]["coherence"]
    with reading(get_engine(f"sqlite:///{store}")) as session:
        judges = queries.list_judges(session=session)
        judge = judges[judges["name"] == "geval"].iloc[0]
        runs = queries.list_runs(session=session, judge_id=int(judge.judge_id), corpus_id=int(judge.corpus_id))
        criteria = queries.list_criteria(session=session, rubric_id=int(judge.rubric_id))
        coherence = next(criterion for criterion in criteria if criterion.key == "coherence")
        matrix = queries.get_score_matrix(session=session, run_ids=runs.id.tolist(), criterion_id=coherence.id)
    health = judge_health(matrix.codes, np.array(coherence.levels), 3)
    assert health.items == 359
    assert health.dispersion.mean_sd.value == pytest.approx(expected["per_item_sd_ddof1"]["mean"], abs=1e-6)
    assert health.gate.any_flip.value == pytest.approx(expected["gate_ge_3"]["share"], abs=1e-6)
    assert health.gate.flip_rate.value == pytest.approx(expected["gate_ge_3"]["mean_pair_flip_prob"], abs=1e-6)
    assert health.alpha_interval.value == pytest.approx(expected["kripp_alpha_interval"], abs=1e-6)
