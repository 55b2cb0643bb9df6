"""The item page: every call with its words, figures of the item, pairs, and items that are not there."""

from pathlib import Path

import numpy as np
import pytest
from sqlmodel import Session

from core.judge.worker import work
from core.stats.gate import flip_probability
from core.store.engine import get_engine
from core.store.queries import find_item, list_calls, list_criteria, list_judges, list_runs
from tests.judge.planning import KEY, lay_ground, plan
from tests.judge.server import Answer, loopback
from tests.pages.opening import open_app

LINK = {"corpus": "support-answers@1", "criterion": "helpfulness", "gate": "4"}


def test_figures_and_words_are_those_of_the_calls(demo: Path) -> None:
    with Session(get_engine(f"sqlite:///{demo}")) as session:
        judges = list_judges(session=session)
        judge = judges[judges.model == "sim-judge-2026-09-01"].iloc[0]
        criterion = list_criteria(session=session, rubric_id=int(judge.rubric_id))[0]
        runs = list_runs(session=session, judge_id=int(judge.judge_id), corpus_id=int(judge.corpus_id))
        item = find_item(session=session, corpus_id=int(judge.corpus_id), key="boundary-01")
        assert item is not None
        assert item.id is not None
        calls = list_calls(session=session, item_id=item.id, run_ids=runs.id.tolist(), criterion_id=criterion.id)
    scores = calls.value.dropna()
    test = open_app("item", item="boundary-01", **LINK)
    metrics = {metric.label: metric.value for metric in test.metric}
    passes = int((scores >= 4).sum())
    assert metrics["SD"] == f"{scores.std(ddof=1):.3f}"
    assert metrics["Passes"] == f"{passes} of {len(scores)}"
    assert metrics["Flip probability"] == f"{float(flip_probability(passes, len(scores))):.1%}"
    said = [text.value for text in test.text]
    assert {item.request, item.reference, item.candidate} <= set(said)
    assert [text for text in said if text in set(calls.rationale)] == calls.rationale.dropna().tolist()
    assert set(test.dataframe[-1].value.criterion) == {"helpfulness", "groundedness"}


@pytest.mark.usefixtures("demo")
def test_a_pair_shows_both_candidates_and_the_order_of_each_call() -> None:
    test = open_app("item", corpus="support-pairs@1", item="pair-01")
    assert not test.exception
    captions = " ".join(caption.value for caption in test.caption)
    assert "Candidate A" in captions
    assert "Candidate B" in captions
    assert "A in slot 1" in captions
    assert "B in slot 1" in captions
    assert "Passes" not in {metric.label for metric in test.metric}


@pytest.mark.usefixtures("demo")
def test_an_item_that_the_corpus_has_not_is_said_with_what_to_do() -> None:
    test = open_app("item", item="<b>nobody</b>", **LINK)
    assert not test.exception
    assert "nobody" in test.warning[0].value
    assert "sidebar" in test.warning[0].value
    assert "<b>" not in test.warning[0].value


@pytest.mark.usefixtures("demo")
def test_without_an_item_the_widest_is_shown_and_stands_in_the_url() -> None:
    test = open_app("item", **LINK)
    options = test.selectbox(key="choice_item").options
    assert test.selectbox(key="choice_item").value == options[0] == "production-03"
    assert np.ravel(test.query_params["item"])[0] == "production-03"


@pytest.mark.usefixtures("demo")
def test_calls_without_a_score_can_be_shown_alone_with_their_reason() -> None:
    for key in open_app("item", **LINK).selectbox(key="choice_item").options:
        test = open_app("item", item=key, calls="unscored", **LINK)
        badges = [element.value for element in test.main.markdown if "no score:" in element.value]
        if badges:
            break
    assert badges
    assert not any("**Score" in element.value for element in test.main.markdown)


def test_what_was_wrong_with_a_reply_is_said_in_words(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = get_engine(f"sqlite:///{empty}")
    run = plan(store, lay_ground(store, items=1), repetitions=2)
    with loopback() as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        server.next(Answer('{"rationale": "Fine.", "tone": "4", "facts": 3}'), Answer('{"rationale": "Fine."}'))
        work(str(store.url), once=True)
    page = open_app("item", runs=str(run))
    assert not page.exception
    said = " ".join(caption.value for caption in page.caption).replace("\\", "")
    assert 'Why: tone is "4", a string; an integer in 1..3 is needed.' in said
    assert "Why: no score for tone, facts." in said
