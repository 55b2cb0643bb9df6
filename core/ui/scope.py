"""What is looked at: corpus, judge, criterion, gate, slice and runs, chosen in the sidebar and kept in the URL."""

from dataclasses import dataclass
from typing import NoReturn

import pandas as pd
import streamlit as st

from core.store.queries import CriterionView
from core.ui import cached, url
from core.ui.cached import Selection, Snapshot
from core.ui.links import link

ALL_SLICES = "all"

_REPEATED = 1.5
"""Calls an item from which a judge counts as repeated: a second repetition has begun on half of the items."""


@dataclass(frozen=True, slots=True)
class Scope:
    """One judge on one corpus and criterion.

    Attributes:
        at: The store's state.
        corpus_id: Corpus version.
        corpus: Its name and version in words.
        judge_id: Judge.
        judge: The judge in words.
        criterion: What was scored, with its levels.
        gate: The score at and above which an item passes; the rubric's unless moved.
        selection: Which scores.
        simulated: Whether the scores come from a simulator.
        pairwise: Whether the judge judges pairs, which have no gate.
    """

    at: Snapshot
    corpus_id: int
    corpus: str
    judge_id: int
    judge: str
    criterion: CriterionView
    gate: float
    selection: Selection
    simulated: bool
    pairwise: bool = False

    def address(self, **more: str) -> dict[str, str]:
        """The query string of this scope, for a link to another page."""
        kept = ("corpus", "judge", "criterion", "gate", "slice", "runs")
        return {name: url.read(name) for name in kept if url.read(name)} | more


def judge_words(judge: pd.Series) -> str:
    """A judge's fingerprint in words: name, model, prompt and rubric version."""
    prompt = f"prompt {judge.prompt_version}" if judge.prompt_version else ""
    parts = [judge["name"], judge.model, prompt, f"{judge.rubric} v{judge.rubric_version}"]
    return " · ".join(dict.fromkeys(part for part in parts if part))


def corpus_key(name: str, version: int) -> str:
    """A corpus version as it stands in the URL."""
    return f"{name}@{version}"


def judge_key(fingerprint: str) -> str:
    """A judge as it stands in the URL."""
    return fingerprint[:12]


def level_words(value: float) -> str:
    """A level's value without trailing zeros."""
    return f"{value:g}"


def select_scope(*, pairwise: bool | None = False, sliced: bool = True) -> Scope:
    """Draw the sidebar's choices and return them; an empty store ends the page with what to do.

    Args:
        pairwise: Choose among judges of pairs rather than of single answers; None takes both.
        sliced: Offer a choice of slice; without it the scope has every item.
    """
    at = cached.snapshot()
    judges = cached.judges(at)
    if pairwise is not None:
        judges = judges[judges.pairwise.astype(bool) == pairwise]
    if judges.empty:
        say_empty("judge of pairs" if pairwise else "judge")
    judges = best_first(at, judges)
    side = st.sidebar
    corpora = judges.drop_duplicates("corpus_id")
    corpus = url.choose(
        side,
        "Corpus",
        "corpus",
        {
            corpus_key(row.corpus, row.corpus_version): f"{row.corpus} v{row.corpus_version}"
            for row in corpora.itertuples()
        },
        help="A frozen, versioned set of items.",
    )
    judges = judges[[corpus_key(row.corpus, row.corpus_version) == corpus for row in judges.itertuples()]]
    by_key = {judge_key(row.fingerprint): row for _, row in judges.iterrows()}
    chosen = by_key[
        url.choose(
            side,
            "Judge",
            "judge",
            {key: judge_words(row) for key, row in by_key.items()},
            help="An immutable fingerprint of model snapshot, prompt, rubric version, schema, parameters and parser.",
        )
    ]
    criteria = {criterion.key: criterion for criterion in cached.criteria(at, rubric_id=int(chosen.rubric_id))}
    criterion = criteria[url.choose(side, "Criterion", "criterion", {key: key for key in criteria})]
    gate = criterion.gate if chosen.pairwise else choose_gate(criterion, slider=True)
    runs = cached.runs(at, judge_id=int(chosen.judge_id), corpus_id=int(chosen.corpus_id))
    return Scope(
        at=at,
        corpus_id=int(chosen.corpus_id),
        corpus=f"{chosen.corpus} v{chosen.corpus_version}",
        judge_id=int(chosen.judge_id),
        judge=judge_words(chosen),
        criterion=criterion,
        gate=gate,
        selection=Selection(
            at.store,
            _choose_runs(runs),
            criterion.id,
            criterion.levels,
            choose_slice(at, int(chosen.corpus_id)) if sliced else None,
        ),
        simulated=bool(chosen.simulated),
        pairwise=bool(chosen.pairwise),
    )


def run_revisions(runs: pd.DataFrame) -> tuple[tuple[int, int], ...]:
    """(run id, revision) of each run, as a selection names them."""
    return tuple(zip(runs.id.astype(int).tolist(), runs.revision.astype(int).tolist(), strict=True))


def best_first(at: Snapshot, judges: pd.DataFrame) -> pd.DataFrame:
    """Judges by how much their repetitions have to show: repeated ones first, own data before simulated, the newest.

    Without repetitions the one with most calls comes first.
    """
    sizes = dict(zip(cached.corpora(at).id, cached.corpora(at)["items"], strict=True))

    def rank(judge: pd.Series) -> tuple[bool, bool, float, int]:
        criterion = cached.criteria(at, rubric_id=int(judge.rubric_id))[0]
        runs = cached.runs(at, judge_id=int(judge.judge_id), corpus_id=int(judge.corpus_id))
        calls = sum(cached.tallies(Selection(at.store, run_revisions(runs), criterion.id, criterion.levels)).values())
        orders = 2 if judge.pairwise else 1
        repeated = calls >= _REPEATED * orders * int(sizes[judge.corpus_id])
        return repeated, repeated and not judge.simulated, judge.newest_run.timestamp() if repeated else 0.0, calls

    ranks = [rank(judge) for _, judge in judges.iterrows()]
    return judges.iloc[sorted(range(len(ranks)), key=ranks.__getitem__, reverse=True)]


def choose_gate(criterion: CriterionView, *, slider: bool = False) -> float:
    """The score at and above which an item passes; the rubric's unless moved."""
    gates = {level_words(level): level_words(level) for level in criterion.levels[1:]}
    chosen = url.choose(
        st.sidebar,
        "Gate",
        "gate",
        gates,
        default=level_words(criterion.gate),
        help=f"An item passes at and above this score. The rubric's gate is {criterion.gate:g}.",
        widget="select_slider" if slider and len(gates) > 1 else "selectbox",
    )
    return float(chosen)


def choose_slice(at: Snapshot, corpus_id: int) -> str | None:
    """One slice of a corpus; None for all of them."""
    slices = cached.slices(at, corpus_id=corpus_id)
    options = {ALL_SLICES: f"All slices ({sum(slices.values()):,} items)"}
    options |= {name: f"{name} ({count:,})" for name, count in slices.items()}
    chosen = url.choose(st.sidebar, "Slice", "slice", options, help="Why an item is in its corpus.")
    return None if chosen == ALL_SLICES else chosen


def _choose_runs(runs: pd.DataFrame) -> tuple[tuple[int, int], ...]:
    labels = {
        str(row.id): f"run {row.id}" + (f" · {row.name_}" if row.name_ else "") + f" · {row.created_at:%Y-%m-%d}"
        for row in runs.rename(columns={"name": "name_"}).itertuples()
    }
    wanted = url.choose_many(st.sidebar, "Runs", "runs", labels, help="One batch of calls each; none chosen means all.")
    revisions = dict(zip(runs.id.astype(str), runs.revision, strict=True))
    return tuple((int(run), int(revisions[run])) for run in wanted)


def say_empty(what: str) -> NoReturn:
    """End the page: there is no `what` yet, and how to get one."""
    st.info(
        f"No {what} has any scores yet. Bring in a file on the Datasets page or with `python -m core.cli import FILE`, "
        "or run `make demo` to load the simulated history.",
        icon=":material/info:",
    )
    link("datasets", "Bring in a file", icon=":material/database:")
    st.stop()
