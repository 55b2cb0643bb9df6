"""Pairs judged in both orders: what the page about position bias reads, cached by selection and repetition."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from core.stats.bradley_terry import BradleyTerry, bradley_terry
from core.stats.common import Bools, Estimate, Floats, Ints
from core.stats.health import SEED
from core.stats.noise import NoiseFloor
from core.stats.pairwise import (
    UNSCORED,
    OrderAgreement,
    Outcome,
    PositionBias,
    Verdicts,
    WinRates,
    majority_verdicts,
    orphans_as_consistent,
    position_bias,
    position_noise,
    slot_table,
    win_rates,
    winner_agreement,
)
from core.stats.preference import (
    LengthEffect,
    length_effect,
    length_matched,
    longer_wins_share,
    self_preference_did,
    standardised_log_ratio,
)
from core.store import pair_queries, queries
from core.store.engine import reading
from core.store.pair_queries import PairGroups, PairWinners
from core.store.pair_writes import Named, save_families
from core.store.queries import Repetition
from core.store.tables import Item, Order
from core.store.vectors import COPIED, NOT_MADE
from core.store.writes import writing
from core.ui import cached
from core.ui.cached import FEW, MANY, Selection, Snapshot
from core.ui.scope import judge_key, judge_words

ALL = "all"
"""The repetition choice that takes the majority verdict of each order."""

GAPS = (0.5, 1.0, 2.0)
"""Limits of the groups by score gap, in score points."""


class PairView(NamedTuple):
    """Which verdicts are looked at.

    Attributes:
        selection: Which scores; its `slot_order` is not used.
        repetition: "run.repetition" of one, or `ALL`.
    """

    selection: Selection
    repetition: str = ALL


class LabelChoice(NamedTuple):
    """A label set and the criterion its winners are stored under."""

    label_set_id: int
    criterion_id: int


@dataclass(frozen=True, slots=True)
class PairMatrix:
    """Every verdict on pairs by slot.

    Attributes:
        item_ids: Shape (pairs,), ascending.
        order_ab: Verdicts with candidate A in slot 1, shape (pairs, repetitions), UNSCORED where there is none.
        order_ba: Verdicts with candidate A in slot 2, same shape.
        made_ab: Whether the call was made at all.
        made_ba: The same for the other order.
        columns: Which run and repetition each column is.
    """

    item_ids: Ints
    order_ab: Verdicts
    order_ba: Verdicts
    made_ab: Bools
    made_ba: Bools
    columns: tuple[Repetition, ...]


@dataclass(frozen=True, slots=True)
class PairVerdicts:
    """One verdict a pair and order.

    Attributes:
        item_ids: Pairs shown in both orders, shape (pairs,), ascending.
        order_ab: Verdicts by slot with candidate A in slot 1.
        order_ba: Verdicts by slot with candidate A in slot 2.
        one_order: Pairs shown in one order only: not among the pairs above.
        split: Pairs with verdicts in both orders of which one order has no majority: incomplete here.
    """

    item_ids: Ints
    order_ab: Verdicts
    order_ba: Verdicts
    one_order: int
    split: int


@dataclass(frozen=True, slots=True)
class LengthFigures:
    """How verdicts go with length.

    Attributes:
        difference: Standardised log length of slot 1 minus slot 2, shape (rows,): order AB, then order BA.
        verdicts: Verdict of each row by slot.
        longer_wins: Share of agreed verdicts for the longer candidate.
        effect: Slope and slot effect.
        with_people: The same with the known winner as covariate; None without labels.
        matched: Position bias over the pairs of nearly equal length.
        without_text: Pairs that lack a text.
    """

    difference: Floats
    verdicts: Verdicts
    longer_wins: Estimate
    effect: LengthEffect
    with_people: LengthEffect | None
    matched: PositionBias
    without_text: int


def slot_scale(levels: tuple[float, ...]) -> bool:
    """Whether a criterion's levels are verdicts by slot: 1 and -1, perhaps 0 and the strong 2 and -2."""
    return set(levels) <= {-2.0, -1.0, 0.0, 1.0, 2.0} and min(levels) < 0 < max(levels)


def repetition_key(column: Repetition) -> str:
    """A repetition as it stands in the URL."""
    return f"{column.run_id}.{column.repetition}"


@st.cache_resource(max_entries=FEW, show_spinner="Reading both orders…")
def pair_matrix(selection: Selection) -> PairMatrix:
    """Both orders side by side."""
    ab = cached.matrix(selection._replace(slot_order=Order.AB))
    ba = cached.matrix(selection._replace(slot_order=Order.BA))
    item_ids = np.union1d(ab.item_ids, ba.item_ids)
    columns = tuple(sorted({*ab.columns, *ba.columns}))
    verdict_of = np.full(256, UNSCORED, np.int8)
    verdict_of[: len(selection.levels)] = np.array(selection.levels, np.int8)
    verdict_of[COPIED:] = UNSCORED
    first, second = (_aligned(part, item_ids, columns) for part in (ab, ba))
    return PairMatrix(item_ids, verdict_of[first], verdict_of[second], first != NOT_MADE, second != NOT_MADE, columns)


def _aligned(part: queries.ScoreMatrix, item_ids: Ints, columns: tuple[Repetition, ...]) -> NDArray[np.uint8]:
    """One order's outcomes on the rows and columns of both."""
    if len(part.item_ids) == len(item_ids) and part.columns == columns:
        return part.outcomes
    whole = np.full((len(item_ids), len(columns)), NOT_MADE, np.uint8)
    rows = np.searchsorted(item_ids, part.item_ids)
    for place, column in enumerate(part.columns):
        whole[rows, columns.index(column)] = part.outcomes[:, place]
    return whole


def repetitions(selection: Selection) -> dict[str, str]:
    """What can be chosen, keys against labels; a single repetition is all there is."""
    columns = pair_matrix(selection).columns
    one = {repetition_key(column): f"run {column.run_id} · repetition {column.repetition}" for column in columns}
    if len(one) < 2:
        return {ALL: next(iter(one.values()), "no repetition")}
    return {ALL: f"All {len(one)}: the majority verdict of each order"} | one


@st.cache_resource(max_entries=FEW, show_spinner="Comparing the orders…")
def pair_verdicts(view: PairView) -> PairVerdicts:
    """The verdicts of the chosen repetition, or of the majority, on the pairs shown in both orders."""
    found = pair_matrix(view.selection)
    keys = [repetition_key(column) for column in found.columns]
    chosen = [keys.index(view.repetition)] if view.repetition in keys else list(range(len(keys)))
    made_ab, made_ba = found.made_ab[:, chosen].any(axis=1), found.made_ba[:, chosen].any(axis=1)
    both = made_ab & made_ba
    ab, ba = found.order_ab[both][:, chosen], found.order_ba[both][:, chosen]
    one_order = int((made_ab ^ made_ba).sum())
    if len(chosen) == 1:
        return PairVerdicts(found.item_ids[both], ab[:, 0], ba[:, 0], one_order, 0)
    order_ab, order_ba = majority_verdicts(ab), majority_verdicts(ba)
    scored = (ab != UNSCORED).any(axis=1) & (ba != UNSCORED).any(axis=1)
    split = int((scored & ((order_ab == UNSCORED) | (order_ba == UNSCORED))).sum())
    return PairVerdicts(found.item_ids[both], order_ab, order_ba, one_order, split)


@st.cache_resource(max_entries=MANY, show_spinner=False)
def bias(view: PairView) -> PositionBias:
    """`position_bias` of the view."""
    found = pair_verdicts(view)
    return position_bias(found.order_ab, found.order_ba)


@st.cache_resource(max_entries=MANY, show_spinner=False)
def lenient(view: PairView) -> Estimate:
    """`orphans_as_consistent` of the view."""
    found = pair_verdicts(view)
    return orphans_as_consistent(found.order_ab, found.order_ba)


@st.cache_resource(max_entries=MANY, show_spinner="Comparing repetitions…")
def noise(selection: Selection) -> NoiseFloor:
    """`position_noise` over every repetition."""
    found = pair_matrix(selection)
    both = found.made_ab.any(axis=1) & found.made_ba.any(axis=1)
    return position_noise(found.order_ab[both], found.order_ba[both], rng=np.random.default_rng(SEED))


@st.cache_resource(max_entries=MANY, show_spinner=False)
def slots(view: PairView) -> Ints:
    """`slot_table` of the view; five steps where the scale has strong verdicts."""
    found = pair_verdicts(view)
    return slot_table(found.order_ab, found.order_ba, steps=5 if max(view.selection.levels) > 1 else 3)


@st.cache_resource(max_entries=MANY, show_spinner=False)
def wins(view: PairView) -> WinRates:
    """`win_rates` of the view."""
    found = pair_verdicts(view)
    return win_rates(found.order_ab, found.order_ba)


@st.cache_resource(max_entries=FEW, show_spinner="Reading pairs…")
def groups(selection: Selection) -> PairGroups:
    """`pair_queries.get_pair_groups` of the selection's runs, all slices."""
    with reading(cached.engine()) as session:
        return pair_queries.get_pair_groups(
            session=session, run_ids=_run_ids(selection), criterion_id=selection.criterion_id
        )


def group_codes(view: PairView) -> Ints:
    """The group of each pair of the view, as its place in `groups`."""
    found = groups(view.selection._replace(item_slice=None))
    return found.codes[np.searchsorted(found.item_ids, pair_verdicts(view).item_ids)]


@st.cache_resource(max_entries=MANY, show_spinner=False)
def by_slice(view: PairView) -> dict[str, PositionBias]:
    """Position bias of each slice, in alphabetical order."""
    names = np.array([group.slice for group in groups(view.selection._replace(item_slice=None)).groups])
    found, codes = pair_verdicts(view), group_codes(view)
    return {
        str(name): position_bias(found.order_ab[inside], found.order_ba[inside])
        for name in np.unique(names)
        if (inside := np.isin(codes, np.flatnonzero(names == name))).any()
    }


@st.cache_data(max_entries=MANY, show_spinner=False)
def winner_sets(at: Snapshot, *, corpus_id: int, criterion_key: str) -> pd.DataFrame:  # noqa: ARG001 - the key
    """`pair_queries.list_winner_sets`."""
    with reading(cached.engine()) as session:
        return pair_queries.list_winner_sets(session=session, corpus_id=corpus_id, criterion_key=criterion_key)


def winner_choices(at: Snapshot, *, corpus_id: int, criterion_key: str, rubric_id: int) -> dict[str, str]:
    """Label sets to choose from, by their key in the URL; those of another rubric version say so and stand last."""
    sets = winner_sets(at, corpus_id=corpus_id, criterion_key=criterion_key)
    rows = sorted(sets.itertuples(), key=lambda row: row.rubric_id != rubric_id)
    return {
        f"{row.label_set_id}.{row.criterion_id}": f"{row.name} v{row.version} · {row.pairs:,} pairs"
        + ("" if row.rubric_id == rubric_id else " · another rubric version")
        + (" · simulated" if row.simulated else "")
        for row in rows
    }


def label_choice(key: str) -> LabelChoice | None:
    """The label set behind a key of `winner_choices`."""
    if not key:
        return None
    label_set_id, criterion_id = key.split(".")
    return LabelChoice(int(label_set_id), int(criterion_id))


@st.cache_resource(max_entries=MANY, show_spinner="Reading labels…")
def winners(at: Snapshot, labels: LabelChoice) -> PairWinners:  # noqa: ARG001 - the key
    """`pair_queries.get_pair_winners`."""
    with reading(cached.engine()) as session:
        return pair_queries.get_pair_winners(session=session, **labels._asdict())


def known_winners(at: Snapshot, view: PairView, labels: LabelChoice) -> Verdicts:
    """The known winner of each pair of the view: +1 A, 0 tie, -1 B, UNSCORED where unknown."""
    found, item_ids = winners(at, labels), pair_verdicts(view).item_ids
    known = np.full(len(item_ids), UNSCORED, np.int8)
    _, here, there = np.intersect1d(item_ids, found.item_ids, assume_unique=True, return_indices=True)
    known[here] = found.winners[there]
    return known


@st.cache_resource(max_entries=MANY, show_spinner=False)
def agreement(at: Snapshot, view: PairView, labels: LabelChoice) -> OrderAgreement:
    """`winner_agreement` with the winners of a label set."""
    found = pair_verdicts(view)
    return winner_agreement(found.order_ab, found.order_ba, known_winners(at, view, labels))


@st.cache_resource(max_entries=MANY, show_spinner="Ranking the systems…")
def ranking(view: PairView) -> tuple[tuple[str, ...], BradleyTerry] | None:
    """The systems and their Bradley-Terry model with slot effect; None where items do not name two systems."""
    found, at = pair_verdicts(view), groups(view.selection._replace(item_slice=None))
    names = sorted({name for group in at.groups for name in (group.system, group.system_b) if name})
    if len(names) < 2:
        return None
    place = {name: number for number, name in enumerate(names)} | {"": -1}
    codes = group_codes(view)
    a = np.array([place[group.system] for group in at.groups], np.int64)[codes]
    b = np.array([place[group.system_b] for group in at.groups], np.int64)[codes]
    first, second = np.concatenate([a, b]), np.concatenate([b, a])
    verdicts = np.concatenate([found.order_ab, found.order_ba])
    used = (first >= 0) & (second >= 0) & (first != second) & (verdicts != UNSCORED) & (verdicts != 0)
    if not used.any():
        return None
    first_wins = (verdicts[used] > 0).astype(np.int64)
    return tuple(names), bradley_terry(
        first[used],
        second[used],
        first_wins,
        1 - first_wins,
        candidates=len(names),
        clusters=np.tile(np.arange(len(codes)), 2)[used],
    )


@st.cache_resource(max_entries=MANY, show_spinner="Measuring lengths…")
def lengths(at: Snapshot, view: PairView, labels: LabelChoice | None) -> LengthFigures | None:
    """How verdicts go with length; None where no pair has both texts."""
    found, selection = pair_verdicts(view), view.selection
    with reading(cached.engine()) as session:
        sizes = pair_queries.get_pair_lengths(
            session=session, run_ids=_run_ids(selection), criterion_id=selection.criterion_id
        )
    rows = np.searchsorted(sizes.item_ids, found.item_ids)
    a, b = sizes.candidate[rows].astype(float), sizes.candidate_b[rows].astype(float)
    with_text = (a > 0) & (b > 0)
    if not with_text.any():
        return None
    a, b, ab, ba = a[with_text], b[with_text], found.order_ab[with_text], found.order_ba[with_text]
    ratio = standardised_log_ratio(np.concatenate([a, b]), np.concatenate([b, a]))
    verdicts, clusters = np.concatenate([ab, ba]), np.tile(np.arange(len(a)), 2)
    known = None if labels is None else known_winners(at, view, labels)[with_text]
    by_slot = None if known is None else np.concatenate([known, np.where(known == UNSCORED, UNSCORED, -known)])
    outcomes = bias(view).outcomes.codes[with_text]
    matched = length_matched(a, b)
    return LengthFigures(
        ratio,
        verdicts,
        longer_wins_share(a - b, np.where(outcomes == Outcome.CONSISTENT, ab, UNSCORED).astype(np.int8)),
        length_effect(ratio, verdicts, clusters=clusters),
        None if by_slot is None else length_effect(ratio, verdicts, human=by_slot, clusters=clusters),
        position_bias(ab[matched], ba[matched]),
        int((~with_text).sum()),
    )


@st.cache_data(max_entries=MANY, show_spinner="Looking for the candidates among single items…")
def twins(selection: Selection) -> pd.DataFrame:
    """`pair_queries.list_single_twins`."""
    with reading(cached.engine()) as session:
        return pair_queries.list_single_twins(
            session=session, run_ids=_run_ids(selection), criterion_id=selection.criterion_id
        )


@st.cache_data(max_entries=MANY, show_spinner=False)
def single_judges(at: Snapshot, selection: Selection) -> pd.DataFrame:  # noqa: ARG001 - the key
    """Judges and criteria that scored the candidates one by one."""
    found = twins(selection)
    with reading(cached.engine()) as session:
        return pair_queries.list_single_judges(session=session, item_ids=found.twin.tolist() + found.twin_b.tolist())


@st.cache_resource(max_entries=MANY, show_spinner=False)
def by_score_gap(at: Snapshot, view: PairView, judge_id: int, criterion_id: int) -> dict[str, PositionBias]:
    """Position bias by how far apart the single scores of the two candidates are, in score points."""
    with reading(cached.engine()) as session:
        runs = pair_queries.list_judge_runs(session=session, judge_id=judge_id)
        scores = queries.get_score_matrix(session=session, run_ids=runs, criterion_id=criterion_id)
    levels = np.array(_levels_of(at, judge_id, criterion_id))
    scored = scores.codes >= 0
    means = np.where(scored, levels[np.maximum(scores.codes, 0)], 0).sum(axis=1) / np.maximum(scored.sum(axis=1), 1)
    mean_of = dict(zip(scores.item_ids[scored.any(axis=1)].tolist(), means[scored.any(axis=1)].tolist(), strict=True))
    found, pairs = pair_verdicts(view), twins(view.selection)
    gap = (pairs.twin.map(mean_of) - pairs.twin_b.map(mean_of)).abs().to_numpy(float)
    _, here, there = np.intersect1d(found.item_ids, pairs.item_id.to_numpy(np.int64), return_indices=True)
    here, gap = here[~np.isnan(gap[there])], gap[there][~np.isnan(gap[there])]
    band = np.searchsorted(GAPS, gap, side="right")
    ends = [0.0, *GAPS, None]
    return {
        _gap_words(ends[place], ends[place + 1]): position_bias(
            found.order_ab[here[band == place]], found.order_ba[here[band == place]]
        )
        for place in range(len(GAPS) + 1)
    }


def _gap_words(low: float | None, high: float | None) -> str:
    return f"{low:g} and more" if high is None else f"{low:g} to under {high:g}"


def _levels_of(at: Snapshot, judge_id: int, criterion_id: int) -> tuple[float, ...]:
    judges = cached.judges(at)
    rubric_id = int(judges[judges.judge_id == judge_id].rubric_id.iloc[0])
    return next(row.levels for row in cached.criteria(at, rubric_id=rubric_id) if row.id == criterion_id)


@st.cache_data(max_entries=MANY, show_spinner=False)
def listed_pairs(view: PairView, outcomes: tuple[int, ...], most: int) -> pd.DataFrame:
    """The first `most` pairs with these outcomes: what they are and what was said in each order."""
    found, codes = pair_verdicts(view), bias(view).outcomes.codes
    rows = np.flatnonzero(np.isin(codes, outcomes))[:most]
    at = groups(view.selection._replace(item_slice=None))
    named = [at.groups[code] for code in group_codes(view)[rows]]
    with reading(cached.engine()) as session:
        items = queries.list_items(session=session, item_ids=found.item_ids[rows].tolist())
    return pd.DataFrame(
        {
            "item_id": found.item_ids[rows],
            "pair": items.key.to_numpy(),
            "slice": [group.slice for group in named],
            "candidate A": [group.system for group in named],
            "candidate B": [group.system_b for group in named],
            "outcome": [OUTCOME_WORDS[Outcome(code)] for code in codes[rows]],
            "A in slot 1": [verdict_words(verdict, "A", "B") for verdict in found.order_ab[rows].tolist()],
            "A in slot 2": [verdict_words(verdict, "B", "A") for verdict in found.order_ba[rows].tolist()],
        }
    )


OUTCOME_WORDS = {
    Outcome.CONSISTENT: "consistent",
    Outcome.CONSISTENT_TIE: "tie twice",
    Outcome.FIRST_SLOT_FLIP: "first-slot flip",
    Outcome.SECOND_SLOT_FLIP: "second-slot flip",
    Outcome.TIE_SHIFT: "tie shift",
    Outcome.INCOMPLETE: "incomplete",
}


def verdict_words(verdict: float | None, first: str, second: str) -> str:
    """A verdict by slot in words: which candidate won, and from which slot."""
    if verdict is None or verdict == UNSCORED:
        return "no verdict"
    if verdict == 0:
        return "tie"
    clearly = ", clearly" if abs(verdict) > 1 else ""
    return f"{first} wins (slot 1){clearly}" if verdict > 0 else f"{second} wins (slot 2){clearly}"


def find_pair(corpus_id: int, key: str) -> Item | None:
    """The pair of a corpus with this key, with its texts."""
    with reading(cached.engine()) as session:
        item = queries.find_item(session=session, corpus_id=corpus_id, key=key)
    return item if item is not None and item.pair else None


def pair_calls(view: PairView, item_id: int) -> pd.DataFrame:
    """`queries.list_calls` of a pair, of the chosen repetition only unless all are."""
    with reading(cached.engine()) as session:
        calls = queries.list_calls(
            session=session,
            item_id=item_id,
            run_ids=_run_ids(view.selection),
            criterion_id=view.selection.criterion_id,
        )
    if view.repetition == ALL:
        return calls
    keys = calls.run_id.astype(str) + "." + calls.repetition.astype(str)
    return calls[keys == view.repetition]


def _run_ids(selection: Selection) -> list[int]:
    return [run for run, _ in selection.runs]


@st.cache_data(max_entries=MANY, show_spinner=False)
def entered_families(at: Snapshot) -> dict[tuple[str, str], str]:  # noqa: ARG001 - the key
    """Families as people entered them, by (kind, name)."""
    with reading(cached.engine()) as session:
        found = pair_queries.list_families(session=session)
    return {(row.kind, row.name): row.family for row in found.itertuples(index=False)}


def judge_name(judge: pd.Series) -> str:
    """What a judge's family is named for: its model, or its own name where the model is unknown."""
    return str(judge.model or judge["name"])


def pair_judges(at: Snapshot, corpus_id: int) -> pd.DataFrame:
    """Judges of pairs on a corpus, as `queries.list_judges`."""
    judges = cached.judges(at)
    return judges[judges.pairwise.astype(bool) & (judges.corpus_id == corpus_id)]


def family_table(at: Snapshot, view: PairView, corpus_id: int) -> pd.DataFrame:
    """Judges and systems of the corpus with their families: kind, name, family.

    A family is what a person entered, else what the judge was recorded with, else empty: none is guessed from a name.
    """
    entered = entered_families(at)
    recorded = {judge_name(judge): str(judge.family) for _, judge in pair_judges(at, corpus_id).iterrows()}
    pairs = groups(view.selection._replace(item_slice=None)).groups
    systems = sorted({name for group in pairs for name in (group.system, group.system_b) if name})
    rows = [(Named.JUDGE.value, name, family) for name, family in sorted(recorded.items())]
    rows += [(Named.SYSTEM.value, name, "") for name in systems]
    return pd.DataFrame(
        [(kind, name, entered.get((kind, name), family)) for kind, name, family in rows],
        columns=["kind", "name", "family"],
    )


def store_families(table: pd.DataFrame) -> None:
    """Keep the families of an edited `family_table`."""
    rows: Mapping[tuple[str, str], str] = {
        (str(row.kind), str(row.name_)): "" if pd.isna(row.family) else str(row.family)
        for row in table.rename(columns={"name": "name_"}).itertuples(index=False)
    }
    with writing(cached.engine()) as session:
        save_families(session=session, families=rows)


def win_shares(verdicts: PairVerdicts) -> Floats:
    """How much of each pair candidate A won over both orders, 0 to 1, a tie half; nan where incomplete."""
    complete = (verdicts.order_ab != UNSCORED) & (verdicts.order_ba != UNSCORED)
    shares = 0.5 + (np.sign(verdicts.order_ab) - np.sign(verdicts.order_ba).astype(np.int16)) / 4
    return np.where(complete, shares, np.nan)


def reference_choices(at: Snapshot, corpus_id: int, judge_id: int, labels: Mapping[str, str]) -> dict[str, str]:
    """What a judge can be compared with: the other judges of the corpus's pairs, and label sets."""
    judges = pair_judges(at, corpus_id)
    others = judges[judges.judge_id != judge_id]
    choices = {f"judge-{judge_key(judge.fingerprint)}": judge_words(judge) for _, judge in others.iterrows()}
    return choices | {f"people-{key}": f"people: {words}" for key, words in labels.items()}


def judge_view(at: Snapshot, corpus_id: int, judge: pd.Series, criterion_key: str, item_slice: str | None) -> PairView:
    """The majority verdicts of another judge on the same pairs."""
    criteria = cached.criteria(at, rubric_id=int(judge.rubric_id))
    criterion = next((row for row in criteria if row.key == criterion_key), criteria[0])
    runs = cached.runs(at, judge_id=int(judge.judge_id), corpus_id=corpus_id)
    chosen = tuple((int(run.id), int(run.revision)) for run in runs.itertuples())
    return PairView(Selection(at.store, chosen, criterion.id, criterion.levels, item_slice))


def family_codes(view: PairView, families: Mapping[str, str], item_ids: Ints) -> tuple[list[str], Ints, Ints]:
    """The families, and the family of candidates A and B of each pair as a place among them, -1 where unknown."""
    at = groups(view.selection._replace(item_slice=None))
    names = sorted({families.get(name, "") for group in at.groups for name in (group.system, group.system_b)} - {""})
    place = {name: number for number, name in enumerate(names)}
    codes = at.codes[np.searchsorted(at.item_ids, item_ids)]
    a = np.array([place.get(families.get(group.system, ""), -1) for group in at.groups], np.int64)[codes]
    b = np.array([place.get(families.get(group.system_b, ""), -1) for group in at.groups], np.int64)[codes]
    return names, a, b


def family_wins(view: PairView, families: Mapping[str, str]) -> dict[str, tuple[float, int]]:
    """Mean share that candidates of each family won against other families, with the number of pairs."""
    verdicts = pair_verdicts(view)
    shares = win_shares(verdicts)
    names, a, b = family_codes(view, families, verdicts.item_ids)
    across = (a != b) & (a >= 0) & (b >= 0) & ~np.isnan(shares)
    found = {}
    for number, name in enumerate(names):
        own = np.concatenate([shares[across & (a == number)], 1 - shares[across & (b == number)]])
        if len(own):
            found[name] = (float(own.mean()), len(own))
    return found


def self_preference(
    view: PairView, families: Mapping[str, str], own: str, reference_ids: Ints, reference: Floats
) -> Estimate:
    """`self_preference_did` over the pairs that set the judge's family against another, both sides of each as rows.

    Args:
        view: The judge under suspicion.
        families: Family by system.
        own: The judge's family.
        reference_ids: Pairs that the reference judged, ascending.
        reference: How much of each candidate A won there, nan where unknown.
    """
    verdicts = pair_verdicts(view)
    item_ids, here, there = np.intersect1d(verdicts.item_ids, reference_ids, return_indices=True)
    names, a, b = family_codes(view, families, item_ids)
    mine, theirs = win_shares(verdicts)[here], reference[there]
    number = names.index(own) if own in names else -2
    used = ((a == number) != (b == number)) & (a >= 0) & (b >= 0) & ~np.isnan(mine) & ~np.isnan(theirs)
    mine, theirs, own_a, ids = mine[used], theirs[used], a[used] == number, item_ids[used]
    n = len(ids)
    return self_preference_did(
        np.concatenate([mine, 1 - mine, theirs, 1 - theirs]),
        np.repeat([True, False], 2 * n),
        np.concatenate([own_a, ~own_a, own_a, ~own_a]),
        clusters=np.tile(ids, 4),
    )


def own_family(at: Snapshot, judge_id: int, table: pd.DataFrame) -> str:
    """The family of a judge in a `family_table`, empty where unknown."""
    judges = cached.judges(at)
    name = judge_name(judges[judges.judge_id == judge_id].iloc[0])
    return str(next(iter(table[(table["kind"] == Named.JUDGE.value) & (table["name"] == name)].family), ""))


def all_family_wins(
    at: Snapshot, view: PairView, corpus_id: int, criterion_key: str, families: Mapping[str, str]
) -> list[dict[str, object]]:
    """For every judge of the corpus's pairs, what candidates of each known family won: one row a judge and family."""
    rows: list[dict[str, object]] = []
    table = family_table(at, view, corpus_id)
    for _, judge in pair_judges(at, corpus_id).iterrows():
        other = judge_view(at, corpus_id, judge, criterion_key, view.selection.item_slice)
        for family, (share, pairs) in family_wins(other, families).items():
            rows.append(
                {
                    "judge": judge_words(judge),
                    "judge family": own_family(at, int(judge.judge_id), table) or "unknown",
                    "candidate family": family,
                    "share won against other families": share,
                    "pairs": pairs,
                }
            )
    return rows


def reference_shares(
    at: Snapshot, view: PairView, corpus_id: int, criterion_key: str, chosen: str
) -> tuple[Ints, Floats]:
    """Pairs of the reference and how much of each candidate A won there; `chosen` is a key of `reference_choices`."""
    kind, _, key = chosen.partition("-")
    if kind == "people":
        labels = label_choice(key)
        known = winners(at, labels) if labels else PairWinners(np.empty(0, np.int64), np.empty(0, np.int8))
        return known.item_ids, np.where(known.winners == UNSCORED, np.nan, (known.winners + 1.0) / 2)
    judges = pair_judges(at, corpus_id)
    judge = judges[[judge_key(row.fingerprint) == key for row in judges.itertuples()]].iloc[0]
    other = judge_view(at, corpus_id, judge, criterion_key, view.selection.item_slice)
    verdicts = pair_verdicts(other)
    return verdicts.item_ids, win_shares(verdicts)
