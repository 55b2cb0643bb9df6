"""The page about position bias in each of its states."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
import pytest
from sqlmodel import Session
from streamlit.testing.v1 import AppTest

from core.store import writes
from core.store.engine import get_engine
from core.store.queries import list_criteria
from core.store.specs import CallRow, CriterionSpec, ItemSpec, JudgeSpec, LevelSpec, RubricSpec, ScoreRow
from core.ui import position
from tests.pages.opening import open_app
from tests.store.builders import add_items, key_of, record

PUBLISHED = "pairs_p01_p12@1"
DEMO = "support-pairs@1"


def words(test: AppTest) -> str:
    """Everything the main part says."""
    parts = [test.main.markdown, test.main.caption, test.main.info, test.main.warning, test.main.error, test.main.code]
    return "\n".join(str(element.value) for part in parts for element in part)


def metric(test: AppTest, label: str) -> str:
    return str(next(found.value for found in test.metric if found.label == label))


Verdicts = Sequence[Mapping[str, float | None]]
"""For each pair its verdict by order, None where it is unscored."""


def store_pairs(
    path: Path,
    verdicts: Verdicts,
    *,
    reference: Verdicts = (),
    systems: tuple[str, str] = ("", ""),
    single_scores: Sequence[tuple[float, float]] = (),
) -> None:
    """A judge of pairs without labels.

    With `reference` a second judge gave its verdicts on the same pairs; with `single_scores` a judge of single answers
    scored both candidates of each pair.
    """
    spec = RubricSpec("pairs", (CriterionSpec("preference", tuple(map(LevelSpec, (-1.0, 0.0, 1.0))), gate=1.0),))
    engine = get_engine(f"sqlite:///{path}")
    with writes.writing(engine) as session:
        rubric = key_of(writes.add_rubric(session=session, spec=spec))
        items = add_items(
            session,
            "pairs",
            [
                ItemSpec(
                    f"p{place}",
                    f"{place}",
                    system=systems[0],
                    candidate=f"text {place} a" if single_scores else None,
                    candidate_b=f"text {place} b" if single_scores else None,
                    system_b=systems[1],
                    pair=True,
                )
                for place in range(len(verdicts))
            ],
        )
        corpus = key_of(writes.add_corpus(session=session, name="pairs", item_ids=items))
        (criterion,) = list_criteria(session=session, rubric_id=rubric)
        for name, found in (("judge", verdicts), ("reference", reference)):
            if found:
                judge = JudgeSpec(name, rubric, spec.sha256, pairwise=True)
                run = _add_run(session, judge, corpus)
                calls = [
                    CallRow(item, 0, order, scores=(_score(criterion.id, value),))
                    for item, orders in zip(items, found, strict=True)
                    for order, value in orders.items()
                ]
                record(session, run, calls)
        if single_scores:
            _store_singles(session, single_scores)
    engine.dispose()


def _store_singles(session: Session, scores: Sequence[tuple[float, float]]) -> None:
    spec = RubricSpec("singles", (CriterionSpec("quality", tuple(map(LevelSpec, map(float, range(1, 6)))), gate=4.0),))
    rubric = key_of(writes.add_rubric(session=session, spec=spec))
    (criterion,) = list_criteria(session=session, rubric_id=rubric)
    texts = [f"text {place} {side}" for place in range(len(scores)) for side in "ab"]
    items = add_items(session, "singles", [ItemSpec(text, text, candidate=text) for text in texts])
    corpus = key_of(writes.add_corpus(session=session, name="singles", item_ids=items))
    run = _add_run(session, JudgeSpec("scorer", rubric, spec.sha256), corpus)
    values = [value for pair in scores for value in pair]
    record(
        session,
        run,
        [CallRow(item, 0, scores=(_score(criterion.id, value),)) for item, value in zip(items, values, strict=True)],
    )


def _add_run(session: Session, judge: JudgeSpec, corpus: int) -> int:
    judge_id = key_of(writes.add_judge(session=session, spec=judge))
    return key_of(writes.add_run(session=session, judge_id=judge_id, corpus_id=corpus))


def _score(criterion: int, value: float | None) -> ScoreRow:
    return ScoreRow(criterion, value, None if value is not None else "refusal")


@pytest.mark.usefixtures("demo")
def test_the_twelve_published_pairs() -> None:
    test = open_app("position_bias", corpus=PUBLISHED)
    assert not test.exception
    said = words(test)
    assert "**8 consistent** · 4 first-slot flips · 0 second-slot flips · 0 tie shifts, of 12 complete pairs" in said
    assert "**Unreliable**: flip rate 0.333 against a limit of 0.20" in said
    assert "4 of 4 (100.0%) to the first slot, exact p = 0.125. Six one-way flips are needed for p < .05." in said
    assert "95% 0.398 to 1.000, n = 4 flips" in said
    assert metric(test, "Flip rate") == "0.333"
    box = next(found for found in test.selectbox if found.label == "Pair to read")
    assert box.options == ["none", "p03", "p05", "p08", "p11"]


@pytest.mark.usefixtures("demo")
def test_the_rule_s_limit_stands_in_the_link() -> None:
    # 4 of 12: Wilson's upper limit is 0.609, so a limit of 0.40 leaves the judge inconclusive.
    test = open_app("position_bias", corpus=PUBLISHED, limit="0.40")
    assert "**Inconclusive**: flip rate 0.333 against a limit of 0.40" in words(test)
    assert "The limit was moved from 20%." in words(test)


@pytest.mark.usefixtures("demo")
def test_a_link_opens_a_pair_with_both_rationales() -> None:
    test = open_app("position_bias", corpus=DEMO, pair="pair-03", repetition="10.1")
    assert not test.exception
    said = words(test)
    assert "##### Pair pair\\-03" in said
    assert "**A in slot 1, B in slot 2**" in said
    assert "**B in slot 1, A in slot 2**" in said
    assert said.count("run 10 · repetition 1: **") == 2
    assert any("answer" in str(block.value) for block in test.main.code)


@pytest.mark.usefixtures("demo")
def test_an_unknown_pair_in_a_link_is_said_and_not_an_error() -> None:
    test = open_app("position_bias", corpus=DEMO, pair="no-such-pair")
    assert not test.exception
    assert any("no-such-pair" in warning.value for warning in test.warning)


@pytest.mark.usefixtures("demo")
@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("winners", "ties by disagreement"),
        ("breakdown", "No single scores exist for the candidates"),
        ("ranking", "with the slot as intercept"),
        ("length", "An association, not a cause"),
        ("families", "None is guessed from a name"),
    ],
)
def test_every_part_opens_by_its_link(part: str, said: str) -> None:
    test = open_app("position_bias", corpus=DEMO, part=part)
    assert not test.exception
    assert not test.error
    assert said in words(test)


@pytest.mark.usefixtures("empty")
def test_an_empty_store_says_what_to_do() -> None:
    test = open_app("position_bias")
    assert not test.exception
    assert "make demo" in test.info[0].value


def test_a_judge_without_a_single_verdict_has_no_figure_at_all(empty: Path) -> None:
    store_pairs(empty, [{"ab": None, "ba": None}] * 3)
    test = open_app("position_bias")
    assert not test.exception
    assert "No pair has a usable verdict in both orders" in test.warning[0].value
    assert "6 calls attempted · 0 scored · unscored or not counted: 6 refused" in words(test)
    assert not test.metric
    assert not test.get("plotly_chart")


def test_one_order_only_says_that_bias_cannot_be_measured(empty: Path) -> None:
    store_pairs(empty, [{"ab": 1.0}, {"ab": -1.0}])
    test = open_app("position_bias")
    assert not test.exception
    assert "No pair was shown to this judge in both orders" in words(test)
    assert "2 pairs shown in one order only, not used" in words(test)
    assert not test.metric


def test_an_unscored_order_is_counted_apart_and_the_other_rule_is_named(empty: Path) -> None:
    store_pairs(empty, [{"ab": 1.0, "ba": -1.0}, {"ab": 1.0, "ba": 1.0}, {"ab": 1.0, "ba": None}])
    said = words(open_app("position_bias"))
    assert "**1 consistent** · 1 first-slot flips · 0 second-slot flips · 0 tie shifts, of 2 complete pairs" in said
    assert "1 incomplete, counted apart" in said
    # (2 x 1 consistent pair + 1 verdict without mate) / 5 verdicts
    assert "that gives 60.0% of 5 verdicts; here 50.0% of 2 complete pairs" in said


def test_a_judge_that_alternates_first_and_tie_is_not_flip_free(empty: Path) -> None:
    store_pairs(empty, [{"ab": 1.0, "ba": 0.0}] * 12)
    test = open_app("position_bias")
    assert "0 consistent" in words(test)
    assert "12 tie shifts, of 12 complete pairs" in words(test)


def test_always_the_second_slot_is_a_full_flip(empty: Path) -> None:
    store_pairs(empty, [{"ab": -1.0, "ba": -1.0}] * 12)
    test = open_app("position_bias")
    assert metric(test, "Flip rate") == "1.000"
    assert metric(test, "First-slot share of flips") == "0.000"


def test_without_labels_agreement_says_so(empty: Path) -> None:
    store_pairs(empty, [{"ab": 1.0, "ba": -1.0}])
    test = open_app("position_bias", part="winners")
    assert not test.exception
    assert "No label set names winners for this corpus" in words(test)


def test_items_without_systems_or_texts_have_no_ranking_and_no_lengths(empty: Path) -> None:
    store_pairs(empty, [{"ab": 1.0, "ba": -1.0}])
    assert "No ranking: these pairs do not name two systems" in words(open_app("position_bias", part="ranking"))
    assert "No pair has both texts in the store" in words(open_app("position_bias", part="length"))


@pytest.mark.usefixtures("demo")
def test_a_shared_family_is_warned_of_once_people_entered_it() -> None:
    test = open_app("position_bias", corpus=DEMO)
    assert not any("of one family" in warning.value for warning in test.warning)
    table = pd.DataFrame({"kind": ["system"], "name": ["assistant-a"], "family": ["sim-judge"]})
    position.store_families(table)
    test = open_app("position_bias", corpus=DEMO)
    assert any("assistant\\-a are of one family, sim\\-judge" in warning.value for warning in test.warning)


A_WINS, B_WINS, FIRST_SLOT = {"ab": 1.0, "ba": -1.0}, {"ab": -1.0, "ba": 1.0}, {"ab": 1.0, "ba": 1.0}


def table_of(test: AppTest, column: str) -> pd.DataFrame:
    return next(found.value for found in test.dataframe if column in found.value)


def test_flips_are_told_apart_by_the_gap_of_single_scores(empty: Path) -> None:
    verdicts = [FIRST_SLOT, FIRST_SLOT, A_WINS, FIRST_SLOT, B_WINS, A_WINS]
    gaps = [(3.0, 3.0), (5.0, 5.0), (2.0, 2.0), (4.0, 3.0), (2.0, 3.0), (5.0, 1.0)]
    store_pairs(empty, verdicts, single_scores=gaps)
    test = open_app("position_bias", part="breakdown")
    assert not test.exception
    table = table_of(test, "gap in score points").set_index("gap in score points")
    # gap 0: two of three flip; gap 1: one of two; gap 4: none of one
    assert table["complete pairs"].tolist() == [3, 0, 2, 1]
    assert table["first-slot flips"].tolist() == [2, 0, 1, 0]
    assert [words.split()[0] for words in table["flip rate"]] == ["0.667", "undefined:", "0.500", "0.000"]


def test_self_preference_is_the_difference_to_a_reference(empty: Path) -> None:
    # The own system wins 1, 1, 1/2, 0 here: 0.625 against 0.375. Under the reference 1, 1/2, 0, 0: 0.375 against 0.625.
    store_pairs(
        empty,
        [A_WINS, A_WINS, FIRST_SLOT, B_WINS],
        reference=[A_WINS, FIRST_SLOT, B_WINS, B_WINS],
        systems=("ours", "theirs"),
    )
    kinds, names = ["judge", "system", "system"], ["judge", "ours", "theirs"]
    position.store_families(pd.DataFrame({"kind": kinds, "name": names, "family": ["red", "red", "blue"]}))
    test = open_app("position_bias", part="families")
    assert not test.exception
    assert metric(test, "Difference in differences") == "0.500"
    wins = table_of(test, "share won against other families")
    shares = wins[wins["judge family"] == "red"].set_index("candidate family")["share won against other families"]
    assert shares.to_dict() == {"red": 0.625, "blue": 0.375}
