"""The overview: a row a judge, figures equal to the statistics of the stored scores, the order of the rows."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sqlmodel import Session

from core.stats.dispersion import dispersion_summary, level_counts
from core.stats.gate import gate_flips
from core.store.engine import get_engine
from core.store.queries import get_score_matrix, list_criteria, list_judges, list_runs
from tests.pages.opening import open_app


def test_figures_are_those_of_the_stored_scores(demo: Path) -> None:
    shown = open_app("overview").dataframe[0].value
    with Session(get_engine(f"sqlite:///{demo}")) as session:
        judges = list_judges(session=session)
        hasty = judges[judges.name == "hasty judge"].iloc[0]
        criterion = list_criteria(session=session, rubric_id=int(hasty.rubric_id))[0]
        runs = list_runs(session=session, judge_id=int(hasty.judge_id), corpus_id=int(hasty.corpus_id))
        codes = get_score_matrix(session=session, run_ids=runs.id.tolist(), criterion_id=criterion.id).codes
    levels = np.array(criterion.levels)
    counts = level_counts(codes, len(levels))
    row = shown[shown.judge.str.startswith("hasty judge")].iloc[0]
    assert row.within_item_sd == pytest.approx(dispersion_summary(counts, levels).within_item_sd.value)
    assert row.flip_rate == pytest.approx(gate_flips(counts, levels, criterion.gate).flip_rate.value)
    assert row.attempted == row.scored + int(row.unscored.split(" ")[0])


@pytest.mark.usefixtures("demo")
def test_judges_with_repetitions_stand_first_and_one_repetition_is_undefined_with_its_reason() -> None:
    shown = open_app("overview").dataframe[0].value
    assert shown.corpus.iloc[0] == "support-answers v1"
    single = shown[shown.corpus.str.startswith("labels_r01_r20")].iloc[0]
    assert pd.isna(single.within_item_sd)
    assert pd.isna(single.flip_rate)
    assert "one repetition shows no wobble" in single.undefined


@pytest.mark.usefixtures("demo")
def test_judges_of_pairs_have_a_table_of_their_own_that_points_on() -> None:
    pairs = open_app("overview").dataframe[1].value
    assert set(pairs.undefined) == {"see position bias"}
    assert pairs.set_index("corpus")["items"].to_dict() == {"support-pairs v1": 40, "pairs_p01_p12 v1": 12}


@pytest.mark.usefixtures("demo")
def test_a_criterion_in_the_link_leaves_out_judges_that_do_not_score_it() -> None:
    test = open_app("overview", overview="groundedness")
    assert set(test.dataframe[0].value.criterion) == {"groundedness"}
    assert len(test.dataframe) == 1
