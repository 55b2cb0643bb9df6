"""The demo history: statistics recover the truth that they were fed, and loading it twice changes nothing."""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from sqlalchemy import Engine, select
from sqlmodel import Session, col

from core.cli import main
from core.ingest import latent
from core.ingest.latent import AUTUMN, JUDGES, LEVELS, PAIR_JUDGE, SCALES, Draws, History, JudgeTruth, draw_history
from core.ingest.published import ensure_published
from core.ingest.rubric_file import load_rubric
from core.ingest.simulate import CORPUS, LABEL_SET, PAIR_CORPUS, RUBRICS, SEED, answer_items, ensure_demo, simulate
from core.stats.dispersion import dispersion_summary, level_counts
from core.stats.drift import DriftOutcome, drift_verdict, paired_change
from core.stats.gate import gate_flips, item_verdicts
from core.stats.noise import noise_floor
from core.stats.pairwise import UNSCORED, position_bias, position_noise
from core.stats.two_raters import cohens_kappa, cross_tab
from core.store.engine import get_engine, open_engine
from core.store.queries import find_item, get_score_matrix, get_tallies, list_corpora, list_criteria, list_judges
from core.store.tables import Base, Call, Item, Label, LabelSet, Run, Score, Slice, Unscored
from tests.conftest import REPO
from tests.store.builders import count_rows, rows

GATES = (4.0, 2.0)
RUN = Run.__table__.c
CAREFUL, HASTY, DRIFTED = range(3)

Floats = NDArray[np.float64]


@pytest.fixture(scope="module")
def history() -> History:
    return draw_history(SEED)


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def counts_of(draws: Draws, criterion: int) -> NDArray[np.int64]:
    """Scores of each item at each level, as the store would count them."""
    usable = (draws.reasons[..., criterion] == "") & ~draws.copied
    return level_counts(np.where(usable, draws.levels[..., criterion], -1), len(LEVELS[criterion]))


def chances(history: History, judge: JudgeTruth, criterion: int) -> Floats:
    """Probability of each level on each item, shape (items, levels): the normal distribution between thresholds."""
    adversarial = np.array([name == Slice.ADVERSARIAL for name in history.items.slices])
    centre = history.items.levels[:, criterion] + SCALES[criterion] * (judge.shift + judge.flattery * adversarial)
    width = SCALES[criterion] * judge.noise * history.items.noisiness
    thresholds = np.array([-np.inf, *(LEVELS[criterion][:-1] + 0.5), np.inf])
    return np.diff(stats.norm.cdf((thresholds - centre[:, None]) / width[:, None]), axis=1)


def expected_sd(history: History, judge: JudgeTruth, criterion: int) -> float:
    """Root of the mean over items of the variance of a score after rounding."""
    p, levels = chances(history, judge, criterion), LEVELS[criterion]
    return float(np.sqrt((p @ levels**2 - (p @ levels) ** 2).mean()))


def expected_flip_rate(history: History, judge: JudgeTruth, criterion: int) -> float:
    """Mean over items of 2 p (1 - p), p being the probability to pass."""
    p = chances(history, judge, criterion)[:, LEVELS[criterion] >= GATES[criterion]].sum(axis=1)
    return float((2 * p * (1 - p)).mean())


@pytest.mark.parametrize("criterion", [0, 1])
@pytest.mark.parametrize("place", [CAREFUL, HASTY, DRIFTED])
def test_pooled_sd_and_flip_rate_find_the_noise_that_was_put_in(place: int, criterion: int) -> None:
    judge, found = JUDGES[place], []
    for seed in range(20):
        drawn = draw_history(seed)
        counts = counts_of(drawn.judges[place][1], criterion)
        summary = dispersion_summary(counts, LEVELS[criterion])
        flips = gate_flips(counts, LEVELS[criterion], GATES[criterion])
        assert summary.within_item_sd.value is not None
        assert flips.flip_rate.value is not None
        found.append(
            (
                summary.within_item_sd.value - expected_sd(drawn, judge, criterion),
                flips.flip_rate.value - expected_flip_rate(drawn, judge, criterion),
            )
        )
    # Twenty histories of 60 items x 12 or 15 calls: the mean error is a few thousandths.
    assert np.abs(np.mean(found, axis=0)).max() < 0.01
    assert np.abs(found).max() < 0.08


def test_the_careful_judge_wobbles_less_than_the_hasty_one(history: History) -> None:
    careful, hasty = (
        dispersion_summary(counts_of(history.judges[place][1], 0), LEVELS[0], rng=rng()).within_item_sd.interval
        for place in (CAREFUL, HASTY)
    )
    assert careful is not None
    assert hasty is not None
    assert careful.high is not None
    assert hasty.low is not None
    assert careful.high < hasty.low


def test_boundary_items_straddle_the_gate_and_anchors_do_not(history: History) -> None:
    verdicts = item_verdicts(counts_of(history.judges[CAREFUL][1], 0), LEVELS[0], GATES[0])
    by_slice = {
        name: np.mean([flag for flag, own in zip(verdicts.straddles, history.items.slices, strict=True) if own == name])
        for name in (Slice.BOUNDARY, Slice.ANCHOR)
    }
    assert by_slice == {Slice.BOUNDARY: 1.0, Slice.ANCHOR: 0.0}


def test_drift_is_found_with_its_size(history: History) -> None:
    before, after = (counts_of(history.judges[place][1], 0) for place in (CAREFUL, DRIFTED))
    change = paired_change(before, after, LEVELS[0], rng=rng()).change
    expected = float(((chances(history, JUDGES[DRIFTED], 0) - chances(history, JUDGES[CAREFUL], 0)) @ LEVELS[0]).mean())
    assert -0.55 < expected < -0.4  # half a level, less what the lowest level holds back
    assert change.interval is not None
    assert change.interval.low is not None
    assert change.interval.high is not None
    assert change.interval.low < expected < change.interval.high < 0
    assert drift_verdict(before, after, LEVELS[0], GATES[0], rng=rng()).outcome is DriftOutcome.DRIFT
    floor = noise_floor(before, after, rng=rng())
    assert floor.excess.interval is not None
    assert floor.excess.interval.low is not None
    assert floor.excess.interval.low > 0


def test_two_runs_of_one_snapshot_raise_no_alarm(history: History) -> None:
    judge, draws = history.judges[CAREFUL]
    first, last = (
        counts_of(draws.part(slice(start, start + judge.repetitions)), 0) for start in (0, 2 * judge.repetitions)
    )
    assert drift_verdict(first, last, LEVELS[0], GATES[0], rng=rng()).outcome is DriftOutcome.NO_ALARM


def test_flattery_moves_the_hasty_judge_on_adversarial_items_only(history: History) -> None:
    careful, hasty = (counts_of(history.judges[place][1], 0) @ LEVELS[0] for place in (CAREFUL, HASTY))
    n_careful, n_hasty = (counts_of(history.judges[place][1], 0).sum(axis=1) for place in (CAREFUL, HASTY))
    difference = hasty / n_hasty - careful / n_careful
    adversarial = np.array([name == Slice.ADVERSARIAL for name in history.items.slices])
    # 0.2 + 0.8 on adversarial items and 0.2 elsewhere, before rounding.
    assert 0.7 < difference[adversarial].mean() < 1.2
    assert 0.0 < difference[~adversarial].mean() < 0.35


def verdicts(history: History) -> NDArray[np.int8]:
    """Verdicts by slot, shape (pairs, orders, repetitions)."""
    return np.where(history.pairs.reasons == "", history.pairs.levels - 1, UNSCORED).astype(np.int8)


def test_position_bias_is_found_and_told_from_noise(history: History) -> None:
    drawn = verdicts(history)
    bias = position_bias(drawn[:, 0, 0], drawn[:, 1, 0])
    assert bias.preference.first_share.value is not None
    assert bias.preference.first_share.value > 0.5
    assert bias.preference.p < 0.05
    noise = position_noise(drawn[:, 0], drawn[:, 1], rng=rng())
    assert noise.excess.interval is not None
    assert noise.excess.interval.low is not None
    assert noise.excess.interval.low > 0


def test_an_unbiased_pair_judge_shows_no_slot_preference() -> None:
    fair, p_values = replace(PAIR_JUDGE, slot_bias=0.0, unscored=0), []
    for seed in range(20):
        generator = np.random.default_rng(seed)
        drawn = latent.draw_verdicts(generator, generator.normal(0, 0.5, 200), fair).levels[..., 0] - 1
        p_values.append(position_bias(drawn[:, 0], drawn[:, 1]).preference.p)
    # Twenty exact tests at 5%: more than three below it has a probability under 2%, and the seeds are fixed.
    assert sum(p < 0.05 for p in p_values) <= 3


def test_first_slot_wins_as_often_as_the_bias_says() -> None:
    found, differences = [], np.random.default_rng(3).normal(0.2, 1.1, 400)
    for seed in range(10):
        drawn = latent.draw_verdicts(np.random.default_rng(seed), differences, PAIR_JUDGE).levels
        found.append((drawn == 2).mean())
    quality = np.concatenate([differences, -differences]) + PAIR_JUDGE.slot_bias
    expected = stats.norm.sf((PAIR_JUDGE.tie_band - quality) / PAIR_JUDGE.noise).mean()
    # 24,000 draws: a standard error of about 0.003.
    assert np.mean(found) == pytest.approx(expected, abs=0.01)


def test_raters_agree_with_each_other_and_more_with_the_careful_judge(history: History) -> None:
    n = len(LEVELS[0])
    first, second = history.labels[:, :, 0]
    between = cohens_kappa(cross_tab(first, second, n), LEVELS[0], weights="quadratic").estimate.value
    with_judges = []
    for place in (CAREFUL, HASTY):
        first_call = history.judges[place][1].levels[history.labelled, 0, 0]
        table = cross_tab(first, first_call, n)
        with_judges.append(cohens_kappa(table, LEVELS[0], weights="quadratic").estimate.value)
    careful, hasty = with_judges
    assert between is not None
    assert careful is not None
    assert hasty is not None
    assert min(between, careful) > hasty


def as_plain(history: History) -> str:
    def plain(value: Any) -> Any:
        return value.tolist() if isinstance(value, np.ndarray) else repr(value)

    parts: list[Any] = [history.items.levels, history.labels, history.labelled, history.differences, history.winners]
    parts += [history.pairs.levels, history.pairs.reasons]
    parts += [part for _, draws in history.judges for part in (draws.levels, draws.confidence, draws.reasons)]
    return json.dumps([plain(part) for part in parts])


def test_a_seed_names_one_history() -> None:
    assert as_plain(draw_history(3)) == as_plain(draw_history(3))
    assert as_plain(draw_history(3)) != as_plain(draw_history(4))


def test_the_model_and_the_shipped_rubric_have_the_same_criteria() -> None:
    spec = load_rubric(RUBRICS / "support-answer.json")
    assert tuple(part.key for part in spec.criteria) == latent.CRITERIA
    assert tuple(part.gate for part in spec.criteria) == GATES
    for part, levels in zip(spec.criteria, LEVELS, strict=True):
        assert [level.value for level in part.levels] == levels.tolist()


def test_sixty_items_in_six_slices_with_texts_of_their_own(history: History) -> None:
    items = answer_items(history.items)
    assert Counter(item.slice for item in items) == Counter(history.items.slices)
    assert set(history.items.slices) == set(Slice)
    assert len({item.key for item in items}) == len({item.candidate for item in items}) == len(items) == 60
    contrast = [item for item in items if item.slice == Slice.CONTRAST]
    for good, bad in zip(contrast[::2], contrast[1::2], strict=True):
        assert good.request == bad.request
        assert good.candidate != bad.candidate


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """A SQLite store with the demo history."""
    engine = get_engine(f"sqlite:///{tmp_path_factory.mktemp('demo') / 'evenhand.db'}")
    assert ensure_demo(engine)
    return engine


def judge_runs(session: Session, judge: JudgeTruth) -> list[int]:
    found = list_judges(session=session)
    judge_id = found.loc[(found.name == judge.name) & (found.model == judge.model), "judge_id"].item()
    query = select(RUN.id).where(RUN.judge_id == int(judge_id)).order_by(RUN.created_at)
    return [int(run) for run in session.scalars(query)]


@pytest.mark.parametrize("place", [CAREFUL, HASTY, DRIFTED])
def test_the_store_holds_exactly_what_was_drawn(demo: Engine, history: History, place: int) -> None:
    judge, draws = history.judges[place]
    with Session(demo) as session:
        runs = judge_runs(session, judge)
        rubric_id = list_judges(session=session).query("corpus == @CORPUS").rubric_id.iloc[0]
        for number, view in enumerate(list_criteria(session=session, rubric_id=int(rubric_id))):
            matrix = get_score_matrix(session=session, run_ids=runs, criterion_id=view.id)
            assert level_counts(matrix.codes, len(view.levels)).tolist() == counts_of(draws, number).tolist()
            tallies = get_tallies(session=session, run_ids=runs, criterion_id=view.id)
            reasons = Counter(draws.reasons[..., number].ravel().tolist())
            assert {key: calls for key, calls in tallies.items() if key in set(Unscored)} == {
                key: calls for key, calls in reasons.items() if key
            }
            assert tallies["copied"] == matrix.copied == judge.copied
            assert matrix.attempted == 60 * judge.calls_per_item
        call_, score = Call.__table__.c, Score.__table__.c
        failed = (
            select(call_.id).join(Score, score.call_id == call_.id).where(call_.run_id.in_(runs), score.value.is_(None))
        )
        assert len(session.execute(failed.distinct()).all()) == judge.unscored
    assert 0.01 <= judge.unscored / (60 * judge.calls_per_item) <= 0.03


def test_the_store_holds_the_pairs_as_they_were_drawn(demo: Engine, history: History) -> None:
    with Session(demo) as session:
        judges = list_judges(session=session)
        judge = judges[judges.corpus == PAIR_CORPUS].iloc[0]
        (run,) = session.scalars(select(RUN.id).where(RUN.judge_id == int(judge.judge_id)))
        (preference,) = list_criteria(session=session, rubric_id=int(judge.rubric_id))
        assert preference.levels == (-1.0, 0.0, 1.0)
        for place, order in enumerate(("ab", "ba")):
            matrix = get_score_matrix(session=session, run_ids=[run], criterion_id=preference.id, slot_order=order)
            drawn = np.where(history.pairs.reasons[:, place] == "", history.pairs.levels[:, place], -1)
            assert matrix.codes.tolist() == drawn.tolist()
        tallies = get_tallies(session=session, run_ids=[run], criterion_id=preference.id)
    assert tallies == {
        "conflicting_verdicts": PAIR_JUDGE.unscored // 2,
        "scored": 240 - PAIR_JUDGE.unscored,
        "verdict_missing": PAIR_JUDGE.unscored // 2,
    }
    assert judge.pairwise


def test_labels_are_levels_of_two_raters_under_a_written_policy(demo: Engine, history: History) -> None:
    with Session(demo) as session:
        label_set = session.scalars(select(LabelSet).where(col(LabelSet.name) == LABEL_SET)).one()
        labels = session.scalars(select(Label).where(col(Label.label_set_id) == label_set.id)).all()
    assert len(label_set.policy.split()) > 20
    assert Counter(label.rater for label in labels) == {"rater-1": 80, "rater-2": 80}
    assert len({label.item_id for label in labels}) == len(history.labelled) == 40


def test_all_but_the_published_tables_is_marked_simulated(demo: Engine) -> None:
    with Session(demo) as session:
        corpora = list_corpora(session=session)
    assert dict(zip(corpora.name, corpora.simulated, strict=True)) == {
        CORPUS: True,
        PAIR_CORPUS: True,
        "labels_r01_r20": False,
        "pairs_p01_p12": False,
    }
    made = {"rubric": (2, 2), "judge": (4, 2), "run": (10, 2), "label_set": (2, 1)}
    for name, expected in made.items():
        table = Base.metadata.tables[name]
        with demo.connect() as connection:
            marks = Counter(connection.execute(select(table.c.simulated)).scalars())
        assert (marks[True], marks[False]) == expected


def test_calls_lie_on_the_days_of_their_runs_and_carry_their_words(demo: Engine) -> None:
    with Session(demo) as session:
        for judge in JUDGES:
            started = [session.get_one(Run, run).created_at for run in judge_runs(session, judge)]
            assert started == list(judge.starts)
        drifted = session.scalars(select(Call).where(col(Call.served_model) == AUTUMN)).all()
        for call in drifted:
            assert call.created_at is not None
            assert (call.created_at.year, call.created_at.month) == (2026, 9)
    words = rows(demo, Base.metadata.tables["score_evidence"])
    assert all(all(isinstance(word, str) and word for word in row[1:4]) for row in words if row[4] is not None)
    assert sum(row[4] is not None for row in words) > 4_900


def test_a_failed_reply_is_kept_as_it_came(demo: Engine) -> None:
    with Session(demo) as session:
        query = select(Call, Score).join(Score, col(Score.call_id) == Call.id).where(col(Score.unscored).is_not(None))
        failed = session.execute(query).all()
    seen = {score.unscored for _, score in failed}
    assert seen == {*latent.WHOLE_REASONS, *latent.PART_REASONS, *latent.PAIR_REASONS}
    for call, score in failed:
        if score.unscored == Unscored.REQUEST_ERROR:
            assert (call.raw_reply, call.response_id, call.stop_reason) == (None, None, None)
        elif score.unscored in (*latent.PART_REASONS, *latent.PAIR_REASONS):
            assert call.stop_reason == "end_turn"
            assert call.raw_reply
        elif score.unscored in (Unscored.TRUNCATED, Unscored.NOT_JSON):
            with pytest.raises(json.JSONDecodeError):
                json.loads(call.raw_reply)


def published(demo: Engine, corpus: str) -> tuple[Any, int, int]:
    with Session(demo) as session:
        judges = list_judges(session=session)
        judge = judges[judges.corpus == corpus].iloc[0]
        (run,) = session.scalars(select(RUN.id).where(RUN.judge_id == int(judge.judge_id)))
        (criterion,) = list_criteria(session=session, rubric_id=int(judge.rubric_id))
    return judge, int(run), criterion.id


def reference(vector_id: str) -> dict[str, Any]:
    vectors = json.loads((REPO / "tests" / "stats" / "vectors.json").read_text())
    found: dict[str, Any] = next(vector for vector in vectors if vector["id"] == vector_id)
    return found


def test_the_twenty_published_labels_are_those_of_the_reference(demo: Engine) -> None:
    given = reference("seed20-counts")
    judge, run, criterion = published(demo, "labels_r01_r20")
    with Session(demo) as session:
        matrix = get_score_matrix(session=session, run_ids=[run], criterion_id=criterion)
        labels = dict(
            session.execute(
                select(col(Label.item_id), col(Label.value)).where(col(Label.criterion_id) == criterion)
            ).all()
        )
        keys = [session.get_one(Item, int(item)).key for item in matrix.item_ids]
    human = [labels[int(item)] for item in matrix.item_ids]
    assert keys == [f"r{number:02}" for number in range(1, 21)]
    assert matrix.codes[:, 0].tolist() == [int(verdict == "pass") for verdict in given["input"]["judge"]]
    assert human == [float(verdict == "pass") for verdict in given["input"]["human"]]
    # false passes: r03, r09, r15
    false_passes = [key for key, code, value in zip(keys, matrix.codes[:, 0], human, strict=True) if code > value]
    assert false_passes == ["r03", "r09", "r15"]
    assert not judge.simulated


def test_the_twelve_published_pairs_give_the_reference_counts(demo: Engine) -> None:
    _, run, criterion = published(demo, "pairs_p01_p12")
    with Session(demo) as session:
        ab, ba = (
            get_score_matrix(session=session, run_ids=[run], criterion_id=criterion, slot_order=order).codes[:, 0] - 1
            for order in ("ab", "ba")
        )
        corpora = list_corpora(session=session)
        corpus_id = int(corpora.loc[corpora.name == "pairs_p01_p12", "id"].item())
        item = find_item(session=session, corpus_id=corpus_id, key="p03")
        assert item is not None
        assert item.pair
    bias = position_bias(ab.astype(np.int8), ba.astype(np.int8))
    flips = bias.outcomes.flips
    first = bias.preference.first_share.value
    assert first == 1.0
    assert [bias.outcomes.pairs, bias.outcomes.agreeing, flips, flips, 0] == reference("seed12-counts")["expected"]


def test_loading_twice_changes_nothing(engine: Engine) -> None:
    assert ensure_demo(engine)
    before = count_rows(engine)
    assert before["item"] == 60 + 40 + 20 + 12
    assert not ensure_demo(engine)
    assert simulate(engine) is None
    assert ensure_published(engine) == 0
    assert count_rows(engine) == before


def test_writers_that_load_at_once_load_it_once(engine: Engine) -> None:
    address = engine.url.render_as_string(hide_password=False)
    engines = [open_engine(address) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        made = [history is not None for history in pool.map(simulate, engines)]
    assert sorted(made) == [False, False, True]
    with Session(engine) as session:
        assert list_corpora(session=session).version.tolist() == [1, 1]
        assert len(list_judges(session=session)) == 4
    for other in engines:
        other.dispose()


def test_both_backends_hold_the_same_history(engine: Engine, demo: Engine) -> None:
    simulate(engine)
    for name in ("item_vector", "run_tally", "score_evidence"):
        table = Base.metadata.tables[name]
        own = rows(engine, table)
        assert own == rows(demo, table)[: len(own)]


def test_the_command_loads_the_history_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], database_url: str
) -> None:
    monkeypatch.setenv("EVENHAND_DATABASE_URL", database_url)
    assert main(["demo"]) == 0
    assert capsys.readouterr().out == "The demo history was loaded.\n"
    assert main(["demo"]) == 0
    assert capsys.readouterr().out == "The demo history is there already.\n"
