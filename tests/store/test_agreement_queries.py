"""A judge against people through the store: which label counts, what is left out, and that two sets never mix."""

from collections.abc import Sequence
from datetime import timedelta

import numpy as np
import pytest
from sqlalchemy import Engine
from sqlalchemy.exc import DatabaseError
from sqlmodel import Session

from core.judge.program import NothingToSearchError, WordSearch, record_word_search
from core.stats.against_people import ADJUDICATED, CALLS, MAJORITY, MODAL, Assessment, assess, compare
from core.stats.common import Undefined
from core.store import agreement_queries, queries, trust_writes, writes
from core.store.engine import reading
from core.store.specs import CriterionSpec, JudgeSpec, LabelRow, LevelSpec, RubricSpec
from core.store.tables import Adjudication, Judge, LabelSet, TrustRule, utc_now
from tests.store.builders import Ground, add_items, call, count_rows, item_spec, key_of, record, rows

LEVELS = (LevelSpec(0.0, "fails"), LevelSpec(1.0, "passes"))
RUBRIC = RubricSpec("rubric", (CriterionSpec("verdict", LEVELS, 1.0),))


def lay(session: Session, scores: Sequence[Sequence[float | None]], *, texts: Sequence[str] = ()) -> Ground:
    """A pass/fail judge with these scores, one row an item, one column a repetition; None is unscored."""
    rubric = key_of(writes.add_rubric(session=session, spec=RUBRIC))
    judge = key_of(writes.add_judge(session=session, spec=JudgeSpec("judge", rubric, RUBRIC.sha256)))
    specs = [item_spec(f"i{place:03}", texts[place] if texts else f"text {place}") for place in range(len(scores))]
    items = add_items(session, "corpus", specs)
    corpus = key_of(writes.add_corpus(session=session, name="corpus", item_ids=items))
    run = key_of(writes.add_run(session=session, judge_id=judge, corpus_id=corpus))
    criteria = tuple(view.id for view in queries.list_criteria(session=session, rubric_id=rubric))
    record(
        session,
        run,
        [
            call(item, repetition, criteria[0], value)
            for item, row in zip(items, scores, strict=True)
            for repetition, value in enumerate(row)
        ],
    )
    return Ground(rubric, criteria, judge, items, corpus, run)


def label(
    session: Session, ground: Ground, values: Sequence[float | None], *, name: str = "set", rater: str = "a"
) -> int:
    """A new label set with one label an item; None leaves the item unlabelled. Returns its key."""
    made = writes.add_label_set(session=session, name=name, rubric_id=ground.rubric, policy="as it stands")
    add_labels(session, ground, key_of(made), values, rater=rater)
    return key_of(made)


def add_labels(session: Session, ground: Ground, label_set: int, values: Sequence[float | None], *, rater: str) -> None:
    found = session.get(LabelSet, label_set)
    assert found is not None
    given = [
        LabelRow(item, ground.criteria[0], value, rater)
        for item, value in zip(ground.items, values, strict=False)
        if value is not None
    ]
    writes.record_labels(session=session, label_set=found, rows=given, between_levels=True)


def measure(
    engine: Engine, ground: Ground, label_set: int, *, reference: str = MAJORITY, unit: str = "call:0"
) -> Assessment:
    with reading(engine) as session:
        matrix = queries.get_score_matrix(session=session, run_ids=[ground.run], criterion_id=ground.criteria[0])
        table = agreement_queries.get_labels(
            session=session, label_set_id=label_set, corpus_id=ground.corpus, criterion="verdict"
        )
        compared = compare(
            item_ids=matrix.item_ids,
            codes=matrix.codes.astype(np.int64),
            labelled_ids=table.item_ids,
            raters=table.raters,
            labels=table.values,
            adjudicated=table.adjudicated,
            levels=np.array([0.0, 1.0]),
        )
        slices = queries.list_items(session=session, item_ids=compared.item_ids.tolist()).slice
    return assess(compared, slices.tolist(), reference=reference, unit=unit, levels=np.array([0.0, 1.0]), gate=1.0)


def test_a_judge_that_always_passes_agrees_without_beating_chance(engine: Engine) -> None:
    with writes.writing(engine) as session:
        ground = lay(session, [[1.0]] * 20)
        labels = label(session, ground, [0.0, 0.0, *[1.0] * 18])
    measured = measure(engine, ground, labels).measured
    assert measured.rates.agreement.value == pytest.approx(0.9)  # 18 of 20
    assert measured.decision_kappa.value == 0.0
    assert "one rater constant: kappa is 0 whatever the agreement" in measured.decision_kappa.notes


def test_two_constant_sides_leave_kappa_undefined_with_words(engine: Engine) -> None:
    with writes.writing(engine) as session:
        ground = lay(session, [[1.0]] * 12)
        labels = label(session, ground, [1.0] * 12)
    kappa = measure(engine, ground, labels).measured.decision_kappa
    assert kappa.value is None
    assert kappa.reason is Undefined.NO_VARIATION
    assert "cannot be told from habit" in kappa.reason.words


def test_a_missing_score_in_the_middle_shifts_nothing(engine: Engine) -> None:
    people = [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0]
    scores: list[list[float | None]] = [[value] for value in people]
    scores[5] = [None]
    with writes.writing(engine) as session:
        ground = lay(session, scores)
        labels = label(session, ground, people)
    found = measure(engine, ground, labels)
    assert (found.measured.confusion.tp, found.measured.confusion.tn) == (7, 4)
    assert (found.measured.confusion.fp, found.measured.confusion.fn) == (0, 0)
    assert found.left_out.no_score == 1


def test_of_two_labels_of_a_rater_the_newest_counts_and_pairs_never_exceed_items(engine: Engine) -> None:
    with writes.writing(engine) as session:
        ground = lay(session, [[1.0], [0.0], [1.0]])
        labels = label(session, ground, [0.0, 0.0, 1.0])
        add_labels(session, ground, labels, [1.0, 0.0], rater="a")
    with reading(engine) as session:
        table = agreement_queries.get_labels(
            session=session, label_set_id=labels, corpus_id=ground.corpus, criterion="verdict"
        )
    assert table.values.tolist() == [[1.0, 0.0, 1.0]]
    assert (table.labels, table.superseded) == (3, 2)
    measured = measure(engine, ground, labels).measured
    assert measured.items == measured.confusion.n == 3
    assert measured.rates.agreement.value == 1.0


def test_two_label_sets_over_the_same_items_are_never_mixed(engine: Engine) -> None:
    """200 items, the judge passes 101.

    Loose people: both pass 62, both fail 61, so po = 123/200; they pass 100, so pe = 1/2 and kappa = 0.23.
    Strict people: both pass 85, both fail 83, so po = 168/200; they pass 101, so pe = (101^2 + 99^2) / 200^2 and
    kappa = 0.67997.
    """
    judge = [1.0] * 101 + [0.0] * 99
    loose = [1.0] * 62 + [0.0] * 39 + [1.0] * 38 + [0.0] * 61
    strict = [1.0] * 85 + [0.0] * 16 + [1.0] * 16 + [0.0] * 83
    with writes.writing(engine) as session:
        ground = lay(session, [[value] for value in judge])
        first = label(session, ground, loose, name="loose")
        second = label(session, ground, strict, name="strict")
    for key, kappa, agreement in ((first, 0.23, 0.615), (second, 0.67997, 0.84)):
        measured = measure(engine, ground, key).measured
        assert measured.items == 200
        assert measured.decision_kappa.value == pytest.approx(kappa, abs=1e-5)
        assert measured.rates.agreement.value == pytest.approx(agreement)
    with reading(engine) as session:
        sets = agreement_queries.list_label_sets(session=session, corpus_id=ground.corpus, criterion="verdict")
    assert sets[["name", "items", "labels", "raters"]].to_numpy().tolist() == [
        ["strict", 200, 200, 1],
        ["loose", 200, 200, 1],
    ]


def test_the_reference_is_the_majority_one_rater_or_the_adjudicated_label(engine: Engine) -> None:
    with writes.writing(engine) as session:
        ground = lay(session, [[1.0]] * 4)
        labels = label(session, ground, [1.0, 1.0, 0.0, 1.0], rater="a")
        add_labels(session, ground, labels, [1.0, 0.0, 1.0, None], rater="b")
        session.add(
            Adjudication(
                label_set_id=labels, item_id=ground.items[1], criterion_id=ground.criteria[0], value=0.0, author="c"
            )
        )
    majority = measure(engine, ground, labels)
    assert majority.reference.tolist() == [1, 0, -1, 1]
    assert majority.left_out.tied == 1
    assert measure(engine, ground, labels, reference="rater:b").reference.tolist() == [1, 0, 1, -1]
    only = measure(engine, ground, labels, reference=ADJUDICATED)
    assert only.reference.tolist() == [-1, 0, -1, -1]
    assert only.left_out.no_label == 3
    with pytest.raises(ValueError, match="the raters are a, b"):
        measure(engine, ground, labels, reference="rater:nobody")


def test_repetitions_count_as_calls_as_the_modal_score_or_one_by_one(engine: Engine) -> None:
    with writes.writing(engine) as session:
        ground = lay(session, [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, None, 0.0]])
        labels = label(session, ground, [1.0, 0.0, 0.0])
    assert measure(engine, ground, labels, unit=CALLS).measured.calls == 8
    assert measure(engine, ground, labels, unit=MODAL).judge.tolist() == [1, 0, 0]  # the tie of the third item fails
    assert measure(engine, ground, labels, unit="call:1").judge.tolist() == [1, 0, -1]
    with pytest.raises(ValueError, match="call:0 to call:2"):
        measure(engine, ground, labels, unit="call:3")


def test_a_label_between_two_levels_belongs_to_none_and_is_counted(engine: Engine) -> None:
    with writes.writing(engine) as session:
        ground = lay(session, [[1.0], [0.0]])
        labels = label(session, ground, [0.5, 0.0])
    found = measure(engine, ground, labels)
    assert (found.measured.items, found.between) == (1, 1)


def test_the_unlabelled_rest_is_corrected_only_where_the_judge_beats_chance(engine: Engine) -> None:
    with writes.writing(engine) as session:
        # 20 labelled items on which the judge says the opposite, 10 unlabelled ones that it passes
        ground = lay(session, [[1.0]] * 10 + [[0.0]] * 10 + [[1.0]] * 10)
        labels = label(session, ground, [0.0] * 10 + [1.0] * 10)
    corrected = measure(engine, ground, labels).corrected
    assert (corrected.rest, corrected.rest_passes, corrected.rehearsal) == (10, 10, False)
    assert corrected.rate.estimate.value is None
    assert "no better than chance" in corrected.rate.estimate.notes[0]


def test_a_frozen_rule_keeps_its_time_author_hash_and_the_labels_seen(engine: Engine) -> None:
    with writes.writing(engine) as session:
        ground = lay(session, [[1.0]] * 3)
        early = trust_writes.freeze_trust_rule(
            session=session,
            name="early",
            author="B",
            thresholds={"min_kappa": 0.6},
            corpus="corpus",
            criterion="verdict",
        )
        assert early.labels_seen == 0
    with writes.writing(engine) as session:
        labels = label(session, ground, [1.0, 0.0, 1.0])
        late = trust_writes.freeze_trust_rule(
            session=session,
            name="late",
            author="B",
            thresholds={"min_kappa": 0.6},
            corpus="corpus",
            criterion="verdict",
        )
        assert late.labels_seen == 3
    with reading(engine) as session:
        rules = agreement_queries.list_trust_rules(session=session)
        assert rules["name"].tolist() == ["late", "early"]
        for _, rule in rules.iterrows():
            assert rule.sha256 == trust_writes.rule_hash(rule["name"], rule.thresholds)
        moment = rules.created_at.iloc[1]
        seen = [
            agreement_queries.count_labels(
                session=session, collection="corpus", criterion="verdict", label_set_id=labels, before=before
            )
            for before in (moment, utc_now() + timedelta(seconds=1))
        ]
    assert seen == [0, 3]
    with pytest.raises(DatabaseError, match="append-only"), writes.writing(engine) as session:
        session.execute(TrustRule.__table__.update().values(labels_seen=0))


def test_a_rule_without_author_or_threshold_is_not_frozen(engine: Engine) -> None:
    with pytest.raises(ValueError, match="author"), writes.writing(engine) as session:
        trust_writes.freeze_trust_rule(
            session=session, name="x", author=" ", thresholds={"min_kappa": 0.6}, corpus="c", criterion="v"
        )
    with pytest.raises(ValueError, match="threshold"), writes.writing(engine) as session:
        trust_writes.freeze_trust_rule(session=session, name="x", author="B", thresholds={}, corpus="c", criterion="v")
    assert count_rows(engine)["trust_rule"] == 0


def test_a_word_search_is_recorded_as_a_judge_of_its_own_kind_and_only_once(engine: Engine) -> None:
    texts = ("within 30 days", "Within 30\nDAYS of it", "soon", "30 day")
    search = WordSearch(("30 days",))
    with writes.writing(engine) as session:
        ground = lay(session, [[1.0]] * 4, texts=texts)
        labels = label(session, ground, [1.0, 0.0, 1.0, 0.0])
        (criterion,) = queries.list_criteria(session=session, rubric_id=ground.rubric)
    for _ in range(2):
        judge = record_word_search(
            engine, search, corpus_id=ground.corpus, rubric_id=ground.rubric, criterion=criterion
        )
    with reading(engine) as session:
        judges = queries.list_judges(session=session)
        kind = judges.loc[judges.judge_id == judge, "kind"].tolist()
        run = agreement_queries.find_run(session=session, judge_id=judge, corpus_id=ground.corpus)
        assert run is not None
        said = agreement_queries.list_rationales(
            session=session, run_ids=[run], criterion_id=criterion.id, item_ids=ground.items
        )
    assert kind == ["program"]
    assert said.value.tolist() == [1.0, 1.0, 0.0, 0.0]
    assert said.rationale.tolist()[0] == "found “30 days”"
    own = Ground(ground.rubric, ground.criteria, judge, ground.items, ground.corpus, run)
    found = measure(engine, own, labels)
    assert found.measured.false_passes.tolist() == [1]
    assert found.measured.false_fails.tolist() == [2]


def test_a_word_search_needs_words_and_texts(engine: Engine) -> None:
    with pytest.raises(NothingToSearchError, match="at least one word"):
        WordSearch(())
    with writes.writing(engine) as session:
        rubric = key_of(writes.add_rubric(session=session, spec=RUBRIC))
        items = add_items(session, "corpus", [item_spec("a")._replace(candidate=None)])
        corpus = key_of(writes.add_corpus(session=session, name="corpus", item_ids=items))
        (criterion,) = queries.list_criteria(session=session, rubric_id=rubric)
    with pytest.raises(NothingToSearchError, match="no texts"):
        record_word_search(engine, WordSearch(("x",)), corpus_id=corpus, rubric_id=rubric, criterion=criterion)
    assert not rows(engine, Judge.__table__)
