"""What is compared: two judges, or one judge over time, chosen in the sidebar and kept in the URL."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, cast

import pandas as pd
import streamlit as st

from core.stats.multiplicity import Adjustment
from core.store.queries import CriterionView
from core.ui import cached, url
from core.ui.cached import Selection, Snapshot
from core.ui.scope import (
    choose_gate,
    choose_slice,
    corpus_key,
    judge_key,
    judge_words,
    level_words,
    say_empty,
)


class Side(NamedTuple):
    """One side of a comparison: some runs of a judge over a corpus."""

    judge_id: int
    corpus_id: int
    rubric_id: int
    selection: Selection


class Comparison(NamedTuple):
    """The baseline's scores against the candidate's."""

    before: Side
    after: Side


class FamilyTest(NamedTuple):
    """One row of the family of tests: a candidate, a criterion and a slice (None for all)."""

    candidate: str
    criterion: str
    comparison: Comparison
    gate: float
    item_slice: str | None


@dataclass(frozen=True, slots=True)
class Choice:
    """What the sidebar says.

    Attributes:
        at: The store's state.
        before: The baseline in words.
        after: The candidate looked at, in words.
        corpus: Name and version in words.
        comparison: The baseline against the candidate looked at.
        family: Every test of the family that is adjusted together.
        criterion: What was scored.
        gate: The score at and above which an item passes.
        item_slice: Only items of this slice, or all.
        method: How the family is adjusted.
        marked: What is compared across versions, in words.
        simulated: Whether a side comes from a simulator.
        address: Query of the page of one item.
    """

    at: Snapshot
    before: str
    after: str
    corpus: str
    comparison: Comparison
    family: tuple[FamilyTest, ...]
    criterion: CriterionView
    gate: float
    item_slice: str | None
    method: Adjustment
    marked: tuple[str, ...]
    simulated: bool
    address: dict[str, str]


def select_comparison() -> Choice:
    """Draw the sidebar's choices; what cannot be compared ends the page with what to do."""
    at, side = cached.snapshot(), st.sidebar
    judges = cached.judges(at)
    judges = judges[~judges.pairwise.astype(bool)]
    if judges.empty:
        say_empty("judge")
    corpora = {corpus_key(row.corpus, row.corpus_version): _corpus_words(row) for row in judges.itertuples()}
    most = max(corpora, key=lambda key: min(len(_by_key(judges, key)), 2))
    corpus = url.choose(side, "Corpus", "corpus", corpora, default=most, help="A frozen, versioned set of items.")
    here = _by_key(judges, corpus)
    oldest = min(here, key=lambda key: (here[key].newest_run, here[key].judge_id))
    before_key = url.choose(
        side,
        "Baseline judge",
        "before",
        {key: judge_words(row) for key, row in here.items()},
        default=oldest,
        help="Its scores are the first of every pair.",
    )
    before = here[before_key]
    criteria = {view.key: view for view in cached.criteria(at, rubric_id=int(before.rubric_id))}
    criterion = criteria[url.choose(side, "Criterion", "criterion", {key: key for key in criteria})]
    gate = choose_gate(criterion)
    mode = url.choose(
        side,
        "Compare",
        "compare",
        {"judges": "the baseline with other judges", "time": "one judge over time"},
        help="Over time: the judge's earlier runs against its later ones.",
    )
    marked: tuple[str, ...] = ()
    if mode == "time":
        rivals, looked = {"later": before}, "later"
        labels, sides = _split_in_time(at, before)
        words = (f"{judge_words(before)}, {labels[0]}", f"{judge_words(before)}, {labels[1]}")
    else:
        rivals, looked, marked = _choose_rivals(at, judges, corpus, before, criterion)
        sides = (_all_runs(at, before), _all_runs(at, rivals[looked]))
        words = (judge_words(before), judge_words(rivals[looked]))
    item_slice = choose_slice(at, int(before.corpus_id))
    method = url.choose(
        side,
        "Family correction",
        "correction",
        {"holm": "Holm (for decisions)", "bh": "Benjamini-Hochberg (to explore)"},
        help="Choose before looking: it adjusts every p-value of the table by slice and criterion together.",
    )
    family = tuple(
        FamilyTest(judge_words(rival), view.key, made, gate if view.key == criterion.key else view.gate, name)
        for key, rival in rivals.items()
        for view in criteria.values()
        if (made := _compare(at, before, rival, view, (sides[0], sides[1] if mode == "time" else _all_runs(at, rival))))
        for name in _slice_names(at, int(before.corpus_id))
    )
    comparison = _compare(at, before, rivals[looked], criterion, sides)
    if comparison is None:
        _stop("The two rubrics have other levels for this criterion, so their scores have no common scale.")
    return Choice(
        at,
        *words,
        _corpus_words(before),
        comparison,
        family,
        criterion,
        gate,
        item_slice,
        cast("Adjustment", method),
        marked,
        bool(before.simulated) or bool(rivals[looked].simulated),
        {"corpus": corpus, "judge": before_key, "criterion": criterion.key, "gate": level_words(gate)},
    )


def _choose_rivals(
    at: Snapshot, judges: pd.DataFrame, corpus: str, before: pd.Series, criterion: CriterionView
) -> tuple[dict[str, pd.Series], str, tuple[str, ...]]:
    """The candidates, the one looked at, and what is compared across versions."""
    side, before_key = st.sidebar, judge_key(before.fingerprint)
    corpora = {
        corpus_key(row.corpus, row.corpus_version): _corpus_words(row)
        for _, row in judges.iterrows()
        if _view(at, row, criterion)
    }
    there = corpus
    if len(corpora) > 1:
        there = url.choose(
            side,
            "Candidate's corpus",
            "after_corpus",
            corpora,
            default=corpus,
            help="Items of two corpora are joined by their key, and only the same text counts.",
        )
    able = {key: row for key, row in _by_key(judges, there).items() if _view(at, row, criterion)}
    others = {key: row for key, row in able.items() if there != corpus or key != before_key}
    across = "no"
    if any(row.rubric_id != before.rubric_id for row in others.values()):
        across = url.choose(
            side,
            "Rubric versions",
            "across",
            {"no": "the same version only", "yes": "other versions too, marked"},
            help="Scores under two versions of a rubric answer two questions: compare them only knowingly.",
        )
    offered = {key: row for key, row in others.items() if across == "yes" or row.rubric_id == before.rubric_id}
    if before_key in able and there == corpus:
        offered = {**offered, before_key: before}
    if not offered or (list(offered) == [before_key] and there == corpus):
        _stop(
            "There is no second judge to compare with on this corpus, under this rubric version. Import or run another "
            "judge over the same items, or choose “one judge over time” in the sidebar."
        )
    labels = {
        key: judge_words(row) + (" (the baseline)" if key == before_key and there == corpus else "")
        for key, row in offered.items()
    }
    wanted = url.choose_many(side, "Candidate judges", "after", labels, help="None chosen means all the others.")
    rivals = {key: offered[key] for key in wanted if there != corpus or key != before_key}
    if not rivals:
        _stop(
            "The same judge stands on both sides. Choose another candidate, or “one judge over time” in the sidebar to "
            "compare its earlier runs with its later ones."
        )
    looked = _nearest(before, rivals)
    if len(rivals) > 1:
        looked = url.choose(side, "Look at", "look", {key: labels[key] for key in rivals}, default=looked)
    marked = []
    if there != corpus:
        marked.append(f"corpus {_corpus_words(before)} against {_corpus_words(rivals[looked])}")
    if rivals[looked].rubric_id != before.rubric_id:
        names = [f"{row.rubric} v{row.rubric_version}" for row in (before, rivals[looked])]
        marked.append(f"rubric {names[0]} against {names[1]}")
    return rivals, looked, tuple(marked)


def _nearest(before: pd.Series, rivals: Mapping[str, pd.Series]) -> str:
    """The candidate that differs least: the same name first, then the same prompt, then the newest runs."""

    def likeness(key: str) -> tuple[bool, bool, Any]:
        rival = rivals[key]
        return rival["name"] == before["name"], rival.prompt_version == before.prompt_version, rival.newest_run

    return max(rivals, key=likeness)


def _split_in_time(
    at: Snapshot, judge: pd.Series
) -> tuple[tuple[str, str], tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]]:
    """Earlier and later runs of one judge, and what they are called."""
    runs = cached.runs(at, judge_id=int(judge.judge_id), corpus_id=int(judge.corpus_id))
    if len(runs) < 2:
        _stop("This judge has one run on this corpus: its change over time needs a second one.")
    starts = {str(row.id): f"run {row.id} · {row.created_at:%Y-%m-%d} UTC" for row in runs.iloc[1:].itertuples()}
    since = url.choose(
        st.sidebar,
        "Later runs begin with",
        "since",
        starts,
        default=str(runs.id.iloc[(len(runs) + 1) // 2]),
        help="The runs before it are the baseline.",
    )
    place = runs.id.astype(str).tolist().index(since)
    pairs = tuple((int(row.id), int(row.revision)) for row in runs.itertuples())
    label = starts[since].partition(" · ")[2]
    return (f"runs before {label}", f"runs from {label}"), (pairs[:place], pairs[place:])


def _slice_names(at: Snapshot, corpus_id: int) -> list[str | None]:
    slices = cached.slices(at, corpus_id=corpus_id)
    return [None, *slices] if len(slices) > 1 else [None]


def _by_key(judges: pd.DataFrame, corpus: str) -> dict[str, pd.Series]:
    return {
        judge_key(row.fingerprint): row
        for _, row in judges.iterrows()
        if corpus_key(row.corpus, row.corpus_version) == corpus
    }


def _corpus_words(row: Any) -> str:
    return f"{row.corpus} v{row.corpus_version}"


def _all_runs(at: Snapshot, judge: pd.Series) -> tuple[tuple[int, int], ...]:
    runs = cached.runs(at, judge_id=int(judge.judge_id), corpus_id=int(judge.corpus_id))
    return tuple((int(row.id), int(row.revision)) for row in runs.itertuples())


def _view(at: Snapshot, judge: pd.Series, criterion: CriterionView) -> CriterionView | None:
    """The judge's own version of a criterion, when it has one on the same levels."""
    views = cached.criteria(at, rubric_id=int(judge.rubric_id))
    return next((view for view in views if view.key == criterion.key and view.levels == criterion.levels), None)


def _compare(
    at: Snapshot,
    before: pd.Series,
    after: pd.Series,
    criterion: CriterionView,
    runs: Sequence[tuple[tuple[int, int], ...]],
) -> Comparison | None:
    other = _view(at, after, criterion)
    if other is None:
        return None
    return Comparison(
        *(
            Side(
                int(judge.judge_id),
                int(judge.corpus_id),
                int(judge.rubric_id),
                Selection(at.store, chosen, view.id, view.levels),
            )
            for judge, view, chosen in ((before, criterion, runs[0]), (after, other, runs[1]))
        )
    )


def _stop(words: str) -> NoReturn:
    st.info(words, icon=":material/info:")
    st.stop()
