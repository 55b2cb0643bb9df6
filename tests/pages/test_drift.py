"""The drift page in each of its states."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.store import writes
from core.store.engine import get_engine
from core.store.queries import list_criteria
from core.store.specs import CallRow, CriterionSpec, ItemSpec, JudgeSpec, LevelSpec, RubricSpec, ScoreRow, content_hash
from tests.pages.opening import open_app
from tests.store.builders import add_items, key_of

FIVE = tuple(LevelSpec(float(value)) for value in range(1, 6))
DEMO = "support-answers@1"


class Ground:
    """A store with one rubric and as many judges, items and corpora as a test asks for."""

    def __init__(self, path: Path) -> None:
        self.engine = get_engine(f"sqlite:///{path}")
        self.keys: dict[str, str] = {}
        self.spec = RubricSpec("rubric", (CriterionSpec("tone", FIVE, gate=4.0),))
        with writes.writing(self.engine) as session:
            self.rubric = key_of(writes.add_rubric(session=session, spec=self.spec))

    def items(self, corpus: str, specs: Iterable[ItemSpec]) -> tuple[int, tuple[int, ...]]:
        with writes.writing(self.engine) as session:
            ids = add_items(session, corpus, specs)
            return key_of(writes.add_corpus(session=session, name=corpus, item_ids=ids)), ids

    def judge(
        self,
        model: str,
        corpus: int,
        scores: Mapping[int, Sequence[float | None]],
        *,
        response_ids: str = "",
        rubric: RubricSpec | None = None,
        prompt_version: str = "p1",
        created_at: datetime | None = None,
    ) -> str:
        """Record a run and return the judge's key in a link; `None` is an unscored call."""
        with writes.writing(self.engine) as session:
            spec = rubric or self.spec
            rubric_id = key_of(writes.add_rubric(session=session, spec=spec))
            made = JudgeSpec("judge", rubric_id, spec.sha256, model=model, prompt_version=prompt_version)
            judge = writes.add_judge(session=session, spec=made)
            run = writes.add_run(session=session, judge_id=key_of(judge), corpus_id=corpus)
            run.created_at = created_at or run.created_at
            criterion = list_criteria(session=session, rubric_id=rubric_id)[0].id
            recorder = writes.RunRecorder(session=session, run=run)
            recorder.record(_calls(scores, criterion, response_ids))
            recorder.finish()
            return made.fingerprint[:12]


def _calls(scores: Mapping[int, Sequence[float | None]], criterion: int, response_ids: str) -> list[CallRow]:
    return [
        CallRow(
            item,
            repetition,
            response_id=f"{response_ids}-{item}-{repetition}" if response_ids else None,
            scores=(ScoreRow(criterion, value, None if value is not None else "refusal"),),
        )
        for item, values in scores.items()
        for repetition, value in enumerate(values)
    ]


def texts(n: int, word: str = "text") -> list[ItemSpec]:
    return [ItemSpec(f"i{i}", content_hash(f"{word} {i}")) for i in range(n)]


def noisy(ids: Sequence[int], *, seed: int, shift: float = 0.0, repetitions: int = 5) -> dict[int, list[float | None]]:
    rng = np.random.default_rng(seed)
    true = np.linspace(1.5, 4.5, len(ids))[:, None] + shift
    scores = np.clip(np.rint(true + rng.normal(0, 0.6, (len(ids), repetitions))), 1, 5)
    return dict(zip(ids, scores.tolist(), strict=True))


def verdict(test: AppTest) -> str:
    """The sentence below the heading, without the escaping."""
    return str(test.main.markdown[1].value).replace("\\", "")


def captions(test: AppTest) -> str:
    return " ".join(str(caption.value) for caption in test.main.caption)


@pytest.fixture
def ground(empty: Path) -> Ground:
    return Ground(empty)


@pytest.mark.usefixtures("empty")
def test_an_empty_store_says_what_to_do() -> None:
    test = open_app("drift")
    assert not test.exception
    assert "make demo" in test.info[0].value


@pytest.mark.usefixtures("demo")
def test_the_drifted_snapshot_of_the_demo_is_found() -> None:
    test = open_app("drift")
    assert not test.exception
    assert not test.error
    assert verdict(test).startswith("Drift: the mean fell from 3.295 to 2.830")
    assert "every other part of the judge is the same" in test.main.markdown[2].value
    assert "noise floor" in captions(test)
    assert "Holm over 56 tests" in captions(test)


@pytest.mark.usefixtures("demo")
def test_another_prompt_is_another_judge_and_not_drift() -> None:
    judges = open_app("drift").sidebar.multiselect[0].options
    assert len(judges) == 3
    test = open_app("drift", corpus=DEMO, before="4b96a86fcbf1", after="d179d8f05aa4", correction="bh")
    assert verdict(test).startswith("Another judge, not drift")
    assert "prompt version" in verdict(test)
    assert "Benjamini-Hochberg over 28 tests" in captions(test)


@pytest.mark.usefixtures("demo")
def test_one_judge_over_time_raises_no_alarm_when_nothing_changed() -> None:
    test = open_app("drift", corpus=DEMO, before="4b96a86fcbf1", compare="time")
    assert not test.exception
    assert verdict(test).startswith("No alarm")
    assert "how it was served, and chance" in test.main.markdown[2].value
    assert "runs before 2026\\-03\\-23 UTC" in test.main.markdown[0].value


@pytest.mark.usefixtures("demo")
def test_a_slice_of_few_items_is_not_measurable() -> None:
    test = open_app("drift", corpus=DEMO, slice="contrast")
    assert verdict(test).startswith("Not measurable: 8 items")


def test_one_judge_alone_has_nothing_to_be_compared_with(ground: Ground) -> None:
    corpus, ids = ground.items("c", texts(12))
    key = ground.judge("old", corpus, noisy(ids, seed=1))
    assert "no second judge" in open_app("drift").info[0].value
    assert "needs a second one" in open_app("drift", before=key, compare="time").info[0].value


def test_the_same_judge_on_both_sides_is_said(ground: Ground) -> None:
    corpus, ids = ground.items("c", texts(12))
    key = ground.judge("old", corpus, noisy(ids, seed=1))
    ground.judge("new", corpus, noisy(ids, seed=2))
    test = open_app("drift", before=key, after=key)
    assert not test.exception
    assert "same judge stands on both sides" in test.info[0].value


def test_one_repetition_leaves_the_floor_unknown(ground: Ground) -> None:
    corpus, ids = ground.items("c", texts(30))
    ground.judge("old", corpus, noisy(ids, seed=1, repetitions=1))
    ground.judge("new", corpus, noisy(ids, seed=2, repetitions=1))
    test = open_app("drift")
    assert "Floor unknown" in verdict(test)
    assert "Noise floor unknown" in captions(test)


def test_a_change_is_not_called_drift_when_every_text_differs(ground: Ground) -> None:
    first, old = ground.items("c", texts(20))
    second, new = ground.items("c", texts(20, "rewritten"))
    before = ground.judge("old", first, noisy(old, seed=1))
    ground.judge("new", second, noisy(new, seed=1, shift=-1.0))
    test = open_app("drift", corpus="c@1", before=before, after_corpus="c@2")
    assert not test.exception
    assert verdict(test).startswith("Refused: the judged text differs on all 20 items")
    assert "20 items were judged with another text" in test.warning[1].value


def test_corpora_are_joined_by_key_and_only_the_same_text_counts(ground: Ground) -> None:
    old, ids = ground.items("c", texts(20))
    with writes.writing(ground.engine) as session:
        changed = add_items(session, "c", texts(5, "rewritten"))
        kept = (*ids[5:], *changed)
        new = key_of(writes.add_corpus(session=session, name="c", item_ids=kept))
    before = ground.judge("old", old, noisy(ids, seed=1))
    after = ground.judge("new", new, noisy(kept, seed=2))
    test = open_app("drift", corpus="c@1", before=before, after_corpus="c@2", after=after)
    assert not test.exception
    assert "corpus c v1 against c v2" in test.warning[0].value
    assert "n = 15 items" in verdict(test)
    assert "5 items whose text differs are left out" in verdict(test)


def test_copied_replies_are_no_agreement(ground: Ground) -> None:
    corpus, ids = ground.items("c", texts(20))
    scores = noisy(ids, seed=1, repetitions=1)
    before = ground.judge("old", corpus, scores, response_ids="r")
    ground.judge("new", corpus, scores, response_ids="r")
    test = open_app("drift", before=before)
    assert not test.exception
    assert verdict(test).startswith("Not measurable: 0 items")
    assert "20 of 20 (100.0%) replies of the candidate" in test.warning[0].value


def test_another_rubric_version_is_compared_only_when_asked_and_then_marked(ground: Ground) -> None:
    corpus, ids = ground.items("c", texts(20))
    before = ground.judge("old", corpus, noisy(ids, seed=1))
    reworded = RubricSpec("rubric", (CriterionSpec("tone", FIVE, gate=4.0, question="Is it kind?"),))
    ground.judge("new", corpus, noisy(ids, seed=2), rubric=reworded)
    assert "no second judge" in open_app("drift", before=before).info[0].value
    test = open_app("drift", before=before, across="yes")
    assert not test.exception
    assert "rubric rubric v1 against rubric v2" in test.warning[0].value.replace("\\", "")


def test_unscored_calls_are_counted_by_reason_and_are_no_scores(ground: Ground) -> None:
    corpus, ids = ground.items("c", texts(20))
    before = ground.judge("old", corpus, noisy(ids, seed=1))
    ground.judge("new", corpus, noisy(ids, seed=1) | {ids[0]: [None] * 5})
    test = open_app("drift", before=before)
    assert "n = 19 items" in verdict(test)
    causes = next(table.value for table in test.main.dataframe if "cause" in table.value)
    assert causes.set_index("cause").loc["refusal", ["before", "after"]].tolist() == ["0", "5"]


def test_twenty_runs_leave_the_learning_state(ground: Ground) -> None:
    corpus, ids = ground.items("c", texts(10))
    for week in range(21):
        shift = -1.5 if week == 20 else 0.0
        ground.judge(
            "old", corpus, noisy(ids, seed=week, shift=shift), created_at=datetime(2026, 1, 1 + week, tzinfo=UTC)
        )
    test = open_app("drift", compare="time", since="21")
    assert not test.exception
    assert "out of control" in str(test.main.get("plotly_chart")[-1].proto)


def test_names_are_shown_as_they_are_and_never_as_markdown(ground: Ground) -> None:
    corpus, ids = ground.items("c", texts(12))
    ground.judge("old", corpus, noisy(ids, seed=1))
    ground.judge("[x](http://evil) <b>", corpus, noisy(ids, seed=2))
    test = open_app("drift")
    assert "\\[x\\]\\(http" in test.main.markdown[0].value
