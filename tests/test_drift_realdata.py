"""Published judge data through the command line and the drift page's own functions, against figures made elsewhere."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.cli import main
from core.stats.drift import DriftOutcome, gate_change
from core.stats.pairwise import UNSCORED, Outcome, position_outcomes
from core.store import queries
from core.store.engine import DATABASE_PATH, DATABASE_URL, get_engine, reading
from core.store.tables import Order
from core.ui import cached, drift
from core.ui.cached import Selection
from core.ui.comparing import Comparison, Side
from tests.conftest import REALDATA
from tests.pages.opening import open_app

pytestmark = pytest.mark.skipif(not REALDATA.is_dir(), reason="the published data lies beside the checkout only")

TURBO, FIRST, AGAIN = (
    "gpt-4-turbo-2024-04-09 · v2.0522",
    "gpt-4o-2024-05-13 · v2.0522",
    "gpt-4o-2024-05-13 · v2.0625",
)


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((REALDATA / "expected.json").read_text())
    return found


@pytest.fixture(scope="module")
def wildbench_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wildbench") / "wildbench.db"
    with pytest.MonkeyPatch.context() as patch:
        point_at(path, patch)
        name = "wildbench_judge_drift.csv.gz"
        assert main(["import", str(REALDATA / name), "--yes", "--levels", "1:10:1", "--gate", "7"]) == 0
    return path


@pytest.fixture
def wildbench(wildbench_file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    point_at(wildbench_file, monkeypatch)
    return wildbench_file


def point_at(path: Path, patch: pytest.MonkeyPatch) -> None:
    patch.delenv(DATABASE_URL, raising=False)
    patch.setenv(DATABASE_PATH, str(path))


def compare(before: str, after: str) -> Comparison:
    """All runs of one judge against all runs of another, on their rubric's first criterion."""
    at = cached.snapshot()
    judges = cached.judges(at).set_index("name")
    sides = []
    for name in (before, after):
        judge = judges.loc[name]
        runs = cached.runs(at, judge_id=int(judge.judge_id), corpus_id=int(judge.corpus_id))
        criterion = cached.criteria(at, rubric_id=int(judge.rubric_id))[0]
        chosen = tuple((int(run.id), int(run.revision)) for run in runs.itertuples())
        selection = Selection(at.store, chosen, criterion.id, criterion.levels)
        sides.append(Side(int(judge.judge_id), int(judge.corpus_id), int(judge.rubric_id), selection))
    return Comparison(*sides)


@pytest.mark.usefixtures("wildbench")
def test_the_pooled_comparison_of_identical_texts(told: dict[str, Any]) -> None:
    comparison = compare(TURBO, FIRST)
    found = drift.moved(comparison, 7.0)
    expected = told["wildbench_pooled_turbo_to_4o_same_output"]
    assert (found.change.change.n, found.change.raised, found.change.lowered) == (6_133, 501, 3_059)
    assert (len(found.gates.lost), len(found.gates.gained)) == (898, 99)
    assert found.change.mean_a.value == pytest.approx(6.786238, abs=1e-6)
    assert found.change.mean_b.value == pytest.approx(6.167129, abs=1e-6)
    assert found.kappa.value == pytest.approx(0.813709, abs=1e-6)
    assert found.rank.value == pytest.approx(0.838187, abs=1e-6)
    assert found.gates.pass_rate.test.p == pytest.approx(expected["mcnemar_exact_p"], rel=1e-6)
    assert found.floor.shown is None
    why = drift.reasons(cached.snapshot(), comparison)
    assert (why.parts, why.copied, len(why.changed)) == (("snapshot",), 0, 0)
    assert found.verdict.outcome is DriftOutcome.DRIFT


@pytest.mark.usefixtures("wildbench")
def test_a_copied_release_is_no_agreement(told: dict[str, Any]) -> None:
    comparison = compare(FIRST, AGAIN)
    why = drift.reasons(cached.snapshot(), comparison)
    pooled = told["wildbench_pooled_4o_rerun"]
    assert (why.copied, why.replies) == (7_548, 8_181) == (pooled["copied_same_request"], pooled["all_common"])
    # 633 fresh judgements, of which 557 saw the same text: 76 keys changed their text
    assert len(why.changed) == pooled["rejudged"] - pooled["rejudged_same_output"] == 76
    found = drift.moved(comparison, 7.0)
    assert (found.change.change.n, found.change.unchanged) == (557, pooled["same_score"])
    assert np.abs(found.change.differences).mean() == pytest.approx(pooled["mean_abs_diff"])
    assert len(found.gates.gained) + len(found.gates.lost) == pooled["gate7_flips"]
    assert found.kappa.value == pytest.approx(pooled["qwk"], abs=1e-9)


@pytest.mark.usefixtures("wildbench")
def test_the_page_says_what_was_copied_and_what_was_changed() -> None:
    judges = cached.judges(cached.snapshot()).set_index("name").fingerprint.str[:12]
    test = open_app("drift", before=judges[FIRST], after=judges[AGAIN])
    assert not test.exception
    said = " ".join(warning.value for warning in test.warning)
    assert "7,548 of 8,181 (92.3%) replies" in said
    assert "76 items were judged with another text" in said
    assert "557 items" in test.main.markdown[1].value


@pytest.mark.parametrize(
    ("column", "names"),
    [("correct_strict", ("accuracy_first_tag", "")), ("correct_lenient", ("accuracy_lenient", " lenient"))],
)
def test_both_parsers_of_llmdrift(
    column: str, names: tuple[str, str], told: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accuracy, suffix = names
    point_at(tmp_path / "llmdrift.db", monkeypatch)
    options = ["--map", "item=number", "judge=snapshot", f"score={column}", "--levels", "0,1", "--gate", "1", "--yes"]
    assert main(["import", str(REALDATA / "llmdrift_prime.csv.gz"), *options]) == 0
    expected = told["llmdrift_prime"]
    for before, after in (("gpt-4-0314", "gpt-4-0613"), ("gpt-3.5-turbo-0301", "gpt-3.5-turbo-0613")):
        found = drift.moved(compare(before, after), 1.0)
        figures = expected[f"{before}->{after}{suffix}"]
        assert (len(found.gates.lost), len(found.gates.gained)) == (
            figures["right_to_wrong"],
            figures["wrong_to_right"],
        )
        assert found.gates.pass_rate.test.p == pytest.approx(figures["mcnemar_exact_p"], rel=1e-6)
        assert found.change.mean_a.value == pytest.approx(expected[accuracy][before])
        assert found.change.mean_b.value == pytest.approx(expected[accuracy][after])
        assert drift.paired(compare(before, after)).alignment.unchecked == 1_000


def test_devbench_lost_its_consistency_between_snapshots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    point_at(tmp_path / "pairs.db", monkeypatch)
    name = "positionbias_pairs.csv.gz"
    assert main(["import", str(REALDATA / name), "--yes", "--levels=-1,0,1", "--gate", "1"]) == 0
    engine = get_engine(f"sqlite:///{tmp_path / 'pairs.db'}")
    old, new = (_consistent(engine, judge) for judge in ("gpt-4-1106-preview", "gpt-4-0125-preview"))
    pairs = sorted(old.keys() & new.keys())
    change = gate_change(np.array([old[pair] for pair in pairs]), np.array([new[pair] for pair in pairs]))
    assert (len(change.lost), len(change.gained)) == (18, 1)
    # exact: twice the two ends of Binomial(19, 1/2), (1 + 19) of 2^19 each
    assert change.pass_rate.test.p == pytest.approx(7.63e-5, rel=1e-3)


def _consistent(engine: Any, name: str) -> dict[int, bool]:
    """Whether the first repetition of each DevBench pair names the same winner in both orders, where both say one."""
    with reading(engine) as session:
        judges = queries.list_judges(session=session).set_index("name")
        judge = judges.loc[name]
        runs = queries.list_runs(session=session, judge_id=int(judge.judge_id), corpus_id=int(judge.corpus_id))
        (criterion,) = queries.list_criteria(session=session, rubric_id=int(judge.rubric_id))
        orders = []
        for order in (Order.AB, Order.BA):
            matrix = queries.get_score_matrix(
                session=session,
                run_ids=runs.id.tolist(),
                criterion_id=criterion.id,
                slot_order=order,
                item_slice="DevBench",
            )
            codes = matrix.codes[:, 0]
            verdicts = np.where(codes < 0, UNSCORED, np.array(criterion.levels, np.int8)[codes])
            orders.append(dict(zip(matrix.item_ids.tolist(), verdicts.tolist(), strict=True)))
    shared = sorted(orders[0].keys() & orders[1].keys())
    ab, ba = (np.array([order[item] for item in shared], np.int8) for order in orders)
    outcomes = position_outcomes(ab, ba)
    agreeing = np.isin(outcomes.codes, (Outcome.CONSISTENT, Outcome.CONSISTENT_TIE))
    complete = outcomes.codes != Outcome.INCOMPLETE
    return {item: bool(agreeing[i]) for i, item in enumerate(shared) if complete[i]}
