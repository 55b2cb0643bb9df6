"""The dispersion page: its figures, its filters in the URL and what it says of stability."""

from pathlib import Path

import numpy as np
import pytest
from sqlmodel import Session

from core.stats.common import Floats, Ints
from core.stats.dispersion import dispersion_summary, level_counts
from core.stats.stability import item_stability
from core.store.engine import get_engine
from core.store.queries import get_score_matrix, list_criteria, list_judges, list_runs
from tests.pages.opening import open_app

LINK = {"corpus": "support-answers@1", "criterion": "helpfulness", "gate": "4"}


def newest_counts(path: Path) -> tuple[Ints, Floats]:
    """Counts of the newest careful judge's scores of helpfulness, and the levels."""
    with Session(get_engine(f"sqlite:///{path}")) as session:
        judges = list_judges(session=session)
        judge = judges[judges.model == "sim-judge-2026-09-01"].iloc[0]
        criterion = list_criteria(session=session, rubric_id=int(judge.rubric_id))[0]
        runs = list_runs(session=session, judge_id=int(judge.judge_id), corpus_id=int(judge.corpus_id))
        codes = get_score_matrix(session=session, run_ids=runs.id.tolist(), criterion_id=criterion.id).codes
    return level_counts(codes, len(criterion.levels)), np.array(criterion.levels)


def test_figures_are_those_of_the_stored_scores(demo: Path) -> None:
    counts, levels = newest_counts(demo)
    summary = dispersion_summary(counts, levels)
    metrics = {metric.label: metric.value for metric in open_app("dispersion", **LINK).metric}
    assert metrics["Within-item SD"] == f"{summary.within_item_sd.value:.3f}"
    assert metrics["Repeatability"] == f"{summary.repeatability.value:.3f}"
    assert metrics["Modal share"] == f"{summary.mean_modal_share.value:.3f}"


def test_the_stability_filter_is_in_the_link_and_the_kinds_are_counted(demo: Path) -> None:
    counts, levels = newest_counts(demo)
    kinds = item_stability(counts, levels, 4.0)
    test = open_app("dispersion", stability="unstable", **LINK)
    items = test.dataframe[-1].value
    assert set(items.stability) == {"unstable"}
    assert len(items) == (kinds == "unstable").sum()
    assert items.sd.is_monotonic_decreasing
    said = " ".join(element.value for element in test.main.markdown)
    for kind in ("stable", "borderline", "unstable"):
        assert f"**{kind.capitalize()}**" in said
        assert f"{(kinds == kind).sum()} of {len(kinds)}" in said


@pytest.mark.usefixtures("demo")
def test_a_slice_narrows_items_and_denominators() -> None:
    test = open_app("dispersion", slice="anchor", **LINK)
    items = test.dataframe[-1].value
    assert set(items.slice) == {"anchor"}
    attempted = int(test.caption[1].value.split(" calls")[0])
    scored = int(test.caption[1].value.split("· ")[1].split(" scored")[0])
    assert attempted == 15 * len(items)  # three runs of five repetitions
    assert scored == items.scored.sum()


@pytest.mark.usefixtures("demo")
def test_one_repetition_is_undefined_in_words() -> None:
    test = open_app("dispersion", corpus="labels_r01_r20@1")
    assert not test.exception
    assert not test.metric
    said = " ".join(element.value for element in test.main.markdown)
    assert "undefined: one repetition shows no wobble" in said
