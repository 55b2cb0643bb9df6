"""Labelling in the store: every row stays, the newest counts, and a changed anchor makes what it touches stale."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Engine

from core.store import label_queries, label_writes, writes
from core.store.engine import reading
from core.store.queries import list_criteria
from core.store.tables import Label
from tests.store.builders import Ground, add_items, call, item_spec, key_of, lay_ground, record, rows


@pytest.fixture
def ground(engine: Engine) -> Ground:
    with writes.writing(engine) as session:
        return lay_ground(session, items=4)


def open_set(engine: Engine, ground: Ground, name: str = "labels") -> int:
    with writes.writing(engine) as session:
        return key_of(
            writes.add_label_set(session=session, name=name, rubric_id=ground.rubric, policy="read it all first")
        )


def label(engine: Engine, label_set: int, item: int, rater: str, values: dict[int, float], *, why: str = "") -> None:
    with writes.writing(engine) as session:
        label_writes.record_item_labels(
            session=session,
            label_set_id=label_set,
            item_id=item,
            rater=rater,
            values=values,
            reasons=dict.fromkeys(values, why),
        )


def test_a_changed_label_is_a_new_row_and_the_newest_of_a_reader_counts(engine: Engine, ground: Ground) -> None:
    labels, (tone, facts), item = open_set(engine, ground), ground.criteria, ground.items[0]
    label(engine, labels, item, "rater-1", {tone: 1.0, facts: 2.0}, why="too curt")
    label(engine, labels, item, "rater-2", {tone: 3.0})
    label(engine, labels, item, "rater-1", {tone: 2.0}, why="read again")
    assert len(rows(engine, Label.__table__)) == 4
    with reading(engine) as session:
        found = label_queries.list_labels(session=session, label_set_id=labels)
        sets = label_queries.list_sets(session=session)
    kept = {(row.criterion_id, row.rater): (row.value, row.reason) for row in found.itertuples()}
    assert kept == {
        (tone, "rater-1"): (2.0, "read again"),
        (facts, "rater-1"): (2.0, "too curt"),
        (tone, "rater-2"): (3.0, ""),
    }
    assert sets.loc[0, ["labels", "items", "raters", "rubric_version"]].tolist() == [4, 1, 2, 1]


def test_two_readers_at_once_lose_nothing(engine: Engine, ground: Ground) -> None:
    labels, tone = open_set(engine, ground), ground.criteria[0]
    work = [(item, rater) for item in ground.items for rater in ("rater-1", "rater-2")]
    with ThreadPoolExecutor(len(work)) as pool:
        list(pool.map(lambda job: label(engine, labels, job[0], job[1], {tone: 2.0}), work))
    assert len(rows(engine, Label.__table__)) == len(work)


@pytest.mark.parametrize(("rater", "value", "why"), [(" ", 2.0, "name of its reader"), ("rater-1", 9.0, "no level")])
def test_a_label_without_a_name_or_off_the_scale_is_refused(
    engine: Engine, ground: Ground, rater: str, value: float, why: str
) -> None:
    labels = open_set(engine, ground)
    with pytest.raises(ValueError, match=why):
        label(engine, labels, ground.items[0], rater, {ground.criteria[0]: value})
    assert rows(engine, Label.__table__) == []


def test_a_queue_is_kept_with_its_reasons_and_the_newest_is_the_sets(engine: Engine, ground: Ground) -> None:
    labels = open_set(engine, ground)
    first, second, *_ = ground.items
    with writes.writing(engine) as session:
        assert label_queries.get_queue(session=session, label_set_id=labels) is None
        for note, items in (("old", [(first, 0, None, "anchor")]), ("new", [(second, 1, 0, "boundary, unsteady")])):
            label_writes.record_queue(
                session=session,
                label_set_id=labels,
                raters=["rater-1", "rater-2"],
                items=items,
                seed=7,
                double_share=0.2,
                note=note,
            )
    with reading(engine) as session:
        queue = label_queries.get_queue(session=session, label_set_id=labels)
        corpora = label_queries.list_set_corpora(session=session, label_set_id=labels)
    assert queue is not None
    assert (queue.note, queue.raters, queue.seed, queue.double_share) == ("new", ("rater-1", "rater-2"), 7, 0.2)
    assert queue.items[["item_id", "slot", "second_slot", "why"]].to_numpy().tolist() == [
        [second, 1, 0, "boundary, unsteady"]
    ]
    assert corpora == [ground.corpus]


@pytest.mark.parametrize("raters", [[], ["rater-1", "rater-1"], ["rater-1", " "]])
def test_a_queue_without_readers_that_differ_is_refused(engine: Engine, ground: Ground, raters: list[str]) -> None:
    labels = open_set(engine, ground)
    with pytest.raises(ValueError, match="names differ"), writes.writing(engine) as session:
        label_writes.record_queue(
            session=session,
            label_set_id=labels,
            raters=raters,
            items=[(ground.items[0], 0, None, "")],
            seed=0,
            double_share=0,
        )


def test_an_adjudication_leaves_both_labels_as_they_were(engine: Engine, ground: Ground) -> None:
    labels, tone, item = open_set(engine, ground), ground.criteria[0], ground.items[0]
    label(engine, labels, item, "rater-1", {tone: 1.0})
    label(engine, labels, item, "rater-2", {tone: 3.0})
    before = rows(engine, Label.__table__)
    with writes.writing(engine) as session:
        for value, note in ((2.0, "both were half right"), (3.0, "the policy says so")):
            label_writes.record_adjudication(
                session=session,
                label_set_id=labels,
                item_id=item,
                criterion_id=tone,
                value=value,
                author="rater-1 and rater-2",
                note=note,
            )
    assert rows(engine, Label.__table__) == before
    with reading(engine) as session:
        found = label_queries.list_adjudications(session=session, label_set_id=labels)
    assert found[["value", "note"]].to_numpy().tolist() == [[2.0, "both were half right"], [3.0, "the policy says so"]]


@pytest.mark.parametrize(
    ("change", "why"), [({"author": " "}, "author"), ({"note": ""}, "note"), ({"value": 2.5}, "no level")]
)
def test_an_adjudication_says_who_why_and_what(
    engine: Engine, ground: Ground, change: dict[str, object], why: str
) -> None:
    fields = {"item_id": ground.items[0], "criterion_id": ground.criteria[0], "value": 2.0, "author": "a", "note": "n"}
    labels = open_set(engine, ground)
    with pytest.raises(ValueError, match=why), writes.writing(engine) as session:
        label_writes.record_adjudication(session=session, label_set_id=labels, **(fields | change))  # type: ignore[arg-type]


def test_a_ranking_is_kept_as_it_was_given(engine: Engine, ground: Ground) -> None:
    labels, (first, second, *_) = open_set(engine, ground), ground.items
    with writes.writing(engine) as session:
        label_writes.record_ranking(
            session=session, label_set_id=labels, rater="rater-1", request_sha256="ab", ranks={second: 1, first: 1}
        )
        with pytest.raises(ValueError, match="two to six"):
            label_writes.record_ranking(
                session=session, label_set_id=labels, rater="rater-1", request_sha256="ab", ranks={first: 1}
            )
    with reading(engine) as session:
        found = label_queries.list_rankings(session=session, label_set_id=labels)
    assert found[["item_ids", "ranks"]].to_numpy().tolist() == [[[second, first], [1, 1]]]


def test_items_with_one_request_are_a_group(engine: Engine) -> None:
    with writes.writing(engine) as session:
        specs = [
            item_spec("a", "one", request="How?", system="x"),
            item_spec("b", "two", request="How?", system="y"),
            item_spec("c", "three", request="When?"),
            item_spec("d", "four"),
            item_spec("e", "five"),
        ]
        corpus = key_of(writes.add_corpus(session=session, name="corpus", item_ids=add_items(session, "corpus", specs)))
    with reading(engine) as session:
        items = label_queries.list_corpus_items(session=session, corpus_id=corpus).set_index("key")
    assert items.request_group["a"] == items.request_group["b"] != items.request_group["c"]
    assert items.request_group[["d", "e"]].tolist() == [0, 0]


def change(engine: Engine, ground: Ground, **fields: object) -> int:
    given = {
        "criterion": "tone",
        "level": 2.0,
        "anchor": "polite, or plain",
        "author": "rater-1",
        "reason": "plain is fine",
    }
    with writes.writing(engine) as session:
        return label_writes.change_anchor(session=session, rubric_id=ground.rubric, **(given | fields))  # type: ignore[arg-type]


def test_a_changed_anchor_is_a_version_with_a_dated_line_and_makes_its_criterion_stale(
    engine: Engine, ground: Ground
) -> None:
    labels, (tone, facts) = open_set(engine, ground), ground.criteria
    first, second, third, _ = ground.items
    label(engine, labels, first, "rater-1", {tone: 1.0, facts: 2.0})
    label(engine, labels, first, "rater-2", {tone: 1.0})
    label(engine, labels, second, "rater-2", {tone: 3.0})
    label(engine, labels, third, "rater-2", {facts: 3.0})
    with writes.writing(engine) as session:
        record(session, ground.run, [call(first, 0, tone), call(second, 0, tone, None), call(first, 1, facts)])
    new = change(engine, ground)
    with reading(engine) as session:
        log = label_queries.list_change_log(session=session, name="rubric")
        stale = label_queries.list_stale_labels(session=session, rubric_id=new)
        scores = label_queries.list_stale_scores(session=session, rubric_id=new)
        none = label_queries.list_stale_labels(session=session, rubric_id=ground.rubric)
        after = list_criteria(session=session, rubric_id=new)
    line = "tone, level 2: “anchor 2” became “polite, or plain”"
    assert log.loc[0, ["version", "author", "line", "reason"]].tolist() == [2, "rater-1", line, "plain is fine"]
    assert log.created_at[0] is not None
    assert after[0].anchors == ("anchor 1", "polite, or plain", "anchor 3")
    assert stale[["criterion", "labels", "items"]].to_numpy().tolist() == [["tone", 3, 2]]
    assert "polite, or plain" in stale.why[0]
    assert scores[["criterion", "scores", "items"]].to_numpy().tolist() == [["tone", 1, 1]]
    assert none.empty


def test_stale_labels_are_queued_for_the_readers_who_made_them(engine: Engine, ground: Ground) -> None:
    labels, tone, facts = open_set(engine, ground), *ground.criteria
    first, second, third, _ = ground.items
    label(engine, labels, first, "rater-1", {tone: 1.0})
    label(engine, labels, first, "rater-2", {tone: 1.0})
    label(engine, labels, second, "rater-2", {tone: 3.0})
    label(engine, labels, third, "rater-2", {facts: 3.0})
    new = change(engine, ground)
    with writes.writing(engine) as session:
        again = label_writes.open_rescoring(session=session, label_set_id=labels, rubric_id=new)
    with reading(engine) as session:
        queue = label_queries.get_queue(session=session, label_set_id=again)
        sets = label_queries.list_sets(session=session)
        old = label_queries.list_labels(session=session, label_set_id=labels)
    assert queue is not None
    assert queue.raters == ("rater-1", "rater-2")
    assert queue.items.item_id.tolist() == [first, second]
    assert queue.items.slot.tolist() == [0, 1]
    assert "tone: level 2" in queue.items.why[0]
    assert sets[["version", "rubric_version", "labels"]].to_numpy().tolist() == [[2, 2, 0], [1, 1, 4]]
    assert len(old) == 4
    with pytest.raises(ValueError, match="no label"), writes.writing(engine) as session:
        label_writes.open_rescoring(session=session, label_set_id=labels, rubric_id=ground.rubric)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"author": ""}, "author"),
        ({"reason": " "}, "reason"),
        ({"anchor": "anchor 2"}, "version 1"),
        ({"level": 7.0}, "no level 7"),
        ({"criterion": "style"}, "criterion style"),
    ],
)
def test_a_change_without_a_change_or_a_reason_is_refused(
    engine: Engine, ground: Ground, fields: dict[str, object], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        change(engine, ground, **fields)


def test_another_ready_rule_is_a_version_that_makes_nothing_stale(engine: Engine, ground: Ground) -> None:
    labels = open_set(engine, ground)
    label(engine, labels, ground.items[0], "rater-1", {ground.criteria[0]: 1.0})
    with writes.writing(engine) as session:
        new = label_writes.change_ready_rule(
            session=session, rubric_id=ground.rubric, ready_rule="tone is 3", author="rater-1", reason="stricter"
        )
    with reading(engine) as session:
        assert label_queries.get_rubric_spec(session=session, rubric_id=new).ready_rule == "tone is 3"
        assert label_queries.list_stale_labels(session=session, rubric_id=new).empty
        line = label_queries.list_change_log(session=session, name="rubric").line[0]
    assert line == "ready rule: “every gate” became “tone is 3”"


def test_words_are_found_in_reasons_candidates_and_rationales_as_they_stand(engine: Engine, ground: Ground) -> None:
    labels, tone = open_set(engine, ground), ground.criteria[0]
    first, second, *_ = ground.items
    label(engine, labels, first, "rater-1", {tone: 1.0}, why="a Code Fence stands around it")
    label(engine, labels, second, "rater-1", {tone: 1.0}, why="curt")
    with reading(engine) as session:
        find = label_queries.find_label_text
        assert find(session=session, label_set_id=labels, criterion_id=tone, words="code fence") == {first}
        assert find(session=session, label_set_id=labels, criterion_id=tone, words="%") == set()
        assert find(session=session, label_set_id=labels, criterion_id=tone, words="TEXT") == {first, second}
