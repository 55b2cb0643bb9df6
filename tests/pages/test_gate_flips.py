"""The gate flip page: its figures, the pair in the URL and the items behind each direction."""

from pathlib import Path

import numpy as np
import pytest
from sqlmodel import Session

from core.stats.dispersion import level_counts
from core.stats.gate import gate_flips
from core.stats.pairs import pair_kappas, run_pairs, spread, transitions
from core.store.engine import get_engine
from core.store.queries import (
    CriterionView,
    ScoreMatrix,
    get_score_matrix,
    list_criteria,
    list_items,
    list_judges,
    list_runs,
)
from tests.pages.opening import open_app

LINK = {"corpus": "support-answers@1", "criterion": "helpfulness", "gate": "3"}


def newest_scores(path: Path) -> tuple[ScoreMatrix, CriterionView, list[str]]:
    """Scores of the newest careful judge, the criterion and the keys of the items."""
    with Session(get_engine(f"sqlite:///{path}")) as session:
        judges = list_judges(session=session)
        judge = judges[judges.model == "sim-judge-2026-09-01"].iloc[0]
        criterion = list_criteria(session=session, rubric_id=int(judge.rubric_id))[0]
        runs = list_runs(session=session, judge_id=int(judge.judge_id), corpus_id=int(judge.corpus_id))
        matrix = get_score_matrix(session=session, run_ids=runs.id.tolist(), criterion_id=criterion.id)
        keys = list_items(session=session, item_ids=matrix.item_ids.tolist()).key.tolist()
    return matrix, criterion, keys


def test_figures_are_those_of_the_stored_scores_at_the_gate_of_the_link(demo: Path) -> None:
    matrix, criterion, _ = newest_scores(demo)
    levels = np.array(criterion.levels)
    flips = gate_flips(level_counts(matrix.codes, len(levels)), levels, 3.0)
    kappas = spread(pair_kappas(run_pairs(matrix.codes, len(levels)), levels).values)
    metrics = {metric.label: metric.value for metric in open_app("gate_flips", **LINK).metric}
    assert metrics["Flip rate"] == f"{flips.flip_rate.value:.1%}"
    assert metrics["Items seen to flip"] == f"{flips.any_flip.value:.1%}"
    shown = [metrics["Lowest"], metrics["Mean"], metrics["Highest"]]
    assert shown == [f"{figure:.3f}" for figure in (kappas.minimum, kappas.mean, kappas.maximum)]


def test_a_pair_in_the_link_shows_the_items_whose_verdict_moved(demo: Path) -> None:
    matrix, criterion, keys = newest_scores(demo)
    changes = transitions(matrix.codes, 0, 7, np.array(criterion.levels), 3.0)
    a, b = (f"{matrix.columns[column].run_id}.{matrix.columns[column].repetition}" for column in (0, 7))
    test = open_app("gate_flips", a=a, b=b, **LINK)
    assert not test.exception
    tables = [table.value for table in test.dataframe if "first" in table.value and "item" in table.value]
    shown = [key for table in tables for key in table.item]
    assert shown == [keys[row] for row in [*changes.lost, *changes.gained]]
    assert f"{changes.n} items were scored in both" in " ".join(caption.value for caption in test.caption)


@pytest.mark.usefixtures("demo")
def test_the_same_repetition_twice_is_no_pair() -> None:
    test = open_app("gate_flips", **LINK)
    same = test.selectbox(key="choice_a").value
    test.selectbox(key="choice_b").set_value(same).run()
    assert not test.exception
    assert "two different repetitions" in test.info[-1].value
    assert np.ravel(test.query_params["b"])[0] == same


@pytest.mark.usefixtures("demo")
def test_one_repetition_says_that_it_shows_no_flips() -> None:
    test = open_app("gate_flips", corpus="labels_r01_r20@1")
    assert not test.exception
    assert "at least two are needed" in test.info[-1].value
