"""How far two sets of runs over the same items lie apart, and what may have moved them. Cached like `cached`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from core.stats.common import Bools, Estimate, Floats, Ints
from core.stats.control import ControlChart, control_chart
from core.stats.dispersion import level_counts
from core.stats.distribution import Distances, distances
from core.stats.drift import (
    DriftVerdict,
    GateChange,
    PairedChange,
    drift_verdict,
    gate_change,
    gate_noise_floor,
    item_means,
    majority_verdicts,
    paired_change,
    rank_correlation,
    snapshot_kappa,
    wilcoxon_exact,
)
from core.stats.gate import item_verdicts
from core.stats.health import SEED
from core.stats.multiplicity import Adjustment, adjust_p
from core.stats.noise import NoiseFloor
from core.store import drift_queries, queries
from core.store.drift_queries import Alignment, JudgeParts, SliceMembers
from core.store.engine import reading
from core.store.vectors import level_codes
from core.ui import cached
from core.ui.cached import FEW, MANY, Selection, Snapshot
from core.ui.comparing import Comparison, FamilyTest, Side
from core.ui.scope import ALL_SLICES, judge_words

MOST_ITEMS = 500
"""Rows of the table of items whose verdict changed; the counts above it are of all."""

_LONGEST = 60

_PARTS = {
    "snapshot": "snapshot",
    "prompt_version": "prompt version",
    "prompt": "prompt text",
    "rubric": "rubric version",
    "output_schema": "output schema",
    "parameters": "request parameters",
    "parser_version": "parser version",
    "aggregation": "aggregation rule",
}


@dataclass(frozen=True, slots=True)
class Paired:
    """Scores of the items that both sides judged as the same text.

    Attributes:
        item_ids: The baseline's items, shape (n,).
        counts_a: Scores at each level, shape (n, L).
        counts_b: The same for the candidate, without replies copied from the baseline.
        alignment: How the items were paired.
        copied: Replies of the candidate that carry a response id of the baseline.
        copied_items: Paired items that have no score of the candidate left without them.
    """

    item_ids: NDArray[np.int64]
    counts_a: Ints
    counts_b: Ints
    alignment: Alignment
    copied: int
    copied_items: int


@dataclass(frozen=True, slots=True)
class Moved:
    """Every figure of one comparison at one gate.

    Attributes:
        item_ids: The items it rests on, shape (n,).
        means_a: Mean of each item before, nan without a score.
        means_b: The same after.
        scores: Scores at each level, before and after, shape (2, L).
        change: Paired change of the item means.
        gates: Change of the majority verdicts.
        verdict: Whether this is drift.
        floor: Disagreement at the gate, split into noise and the rest.
        kappa: Quadratic kappa between the sides.
        rank: Spearman's correlation of the item means.
        apart: Distances of the two distributions.
    """

    item_ids: NDArray[np.int64]
    means_a: Floats
    means_b: Floats
    scores: Ints
    change: PairedChange
    gates: GateChange
    verdict: DriftVerdict
    floor: NoiseFloor
    kappa: Estimate
    rank: Estimate
    apart: Distances


@dataclass(frozen=True, slots=True)
class Reasons:
    """What else differs between the sides.

    Attributes:
        table: One row a possible cause: cause, before, after, reading.
        parts: Parts of the fingerprint that differ.
        left: What is left to explain a change, in words.
        changed: Keys whose judged text differs.
        copied: Replies of the candidate that are the baseline's own.
        replies: Scored replies of the candidate.
    """

    table: pd.DataFrame
    parts: tuple[str, ...]
    left: str
    changed: pd.DataFrame
    copied: int
    replies: int


class PastMark(NamedTuple):
    """A change between two runs: when, what kind, and in words."""

    time: datetime
    kind: str
    words: str


@dataclass(frozen=True, slots=True)
class Past:
    """The runs of the compared judges in order of time.

    Attributes:
        table: One row a run: time, run, judge, items, mean (of its item means).
        chart: Control chart of the means.
        marks: Changes of snapshot, prompt or rubric.
    """

    table: pd.DataFrame
    chart: ControlChart
    marks: tuple[PastMark, ...]


@st.cache_resource(max_entries=FEW, show_spinner="Pairing items…")
def paired(comparison: Comparison) -> Paired:
    """Pair the items of both sides and leave out what is no judgement of its own."""
    before, after = comparison
    a, b = cached.matrix(before.selection), cached.matrix(after.selection)
    levels = len(before.selection.levels)
    with reading(cached.engine()) as session:
        alignment = drift_queries.align_items(session=session, ids_a=a.item_ids, ids_b=b.item_ids)
        copies = drift_queries.list_copied_replies(
            session=session, before=_run_ids(before.selection), after=_run_ids(after.selection)
        )
    outcomes, copied = drift_queries.leave_out_copies(b, copies)
    counts_a = level_counts(level_codes(a.outcomes[alignment.rows_a]), levels)
    counts_b = level_counts(level_codes(outcomes[alignment.rows_b]), levels)
    emptied = (counts_b.sum(axis=1) == 0) & (outcomes != b.outcomes)[alignment.rows_b].any(axis=1)
    return Paired(a.item_ids[alignment.rows_a], counts_a, counts_b, alignment, copied, int(emptied.sum()))


@st.cache_resource(max_entries=MANY, show_spinner="Comparing snapshots…")
def moved(comparison: Comparison, gate: float, item_slice: str | None = None) -> Moved:
    """Every figure of a comparison, on the items of a slice or on all."""
    item_ids, a, b = _of_slice(comparison, item_slice)
    levels = np.array(comparison.before.selection.levels)
    scores = np.stack([a[_scored(a, b)].sum(axis=0), b[_scored(a, b)].sum(axis=0)])

    def rng() -> np.random.Generator:
        return np.random.default_rng(SEED)

    return Moved(
        item_ids=item_ids,
        means_a=item_means(a, levels),
        means_b=item_means(b, levels),
        scores=scores,
        change=paired_change(a, b, levels, rng=rng()),
        gates=gate_change(majority_verdicts(a, levels, gate), majority_verdicts(b, levels, gate)),
        verdict=drift_verdict(a, b, levels, gate, rng=rng()),
        floor=gate_noise_floor(a, b, levels, gate, rng=rng()),
        kappa=snapshot_kappa(a, b, levels, rng=rng()),
        rank=rank_correlation(a, b, levels),
        apart=distances(scores[0], scores[1], levels),
    )


@st.cache_resource(max_entries=MANY, show_spinner="Comparing slices and criteria…")
def family_table(family: tuple[FamilyTest, ...], method: Adjustment) -> pd.DataFrame:
    """One row a test, all p-values adjusted together.

    Columns: candidate, criterion, slice, items, change, low, high, raised, lowered, gained, lost, p_mean,
    adjusted_mean, p_gate, adjusted_gate.
    """
    rows = [_test_row(test) for test in family]
    table = pd.DataFrame(rows)
    p = adjust_p([*(row["p_mean"] for row in rows), *(row["p_gate"] for row in rows)], method=method)
    table.insert(table.columns.get_loc("p_mean") + 1, "adjusted_mean", pd.Series(p[: len(rows)], dtype=float))
    return table.assign(adjusted_gate=pd.Series(p[len(rows) :], dtype=float))


@st.cache_resource(max_entries=MANY, show_spinner=False)
def changed_items(comparison: Comparison, gate: float, item_slice: str | None = None) -> pd.DataFrame:
    """Items whose majority verdict changed, the largest change first, at most `MOST_ITEMS`.

    Columns: item, slice, verdict, before, after, change, passes_before, passes_after.
    """
    _, a, b = _of_slice(comparison, item_slice)
    levels = np.array(comparison.before.selection.levels)
    found = moved(comparison, gate, item_slice)
    places = np.concatenate([found.gates.lost, found.gates.gained])
    gained = np.arange(len(places)) >= len(found.gates.lost)
    change = found.means_b[places] - found.means_a[places]
    order = np.argsort(-np.abs(change), kind="stable")[:MOST_ITEMS]
    places, gained, change = places[order], gained[order], change[order]
    with reading(cached.engine()) as session:
        items = queries.list_items(session=session, item_ids=found.item_ids[places].tolist())
    return pd.DataFrame(
        {
            "item": items.key,
            "slice": items.slice,
            "verdict": np.where(gained, "fail → pass", "pass → fail"),
            "before": found.means_a[places],
            "after": found.means_b[places],
            "change": change,
            "passes_before": _passes(a[places], levels, gate),
            "passes_after": _passes(b[places], levels, gate),
        }
    )


@st.cache_resource(max_entries=MANY, show_spinner=False)
def reasons(at: Snapshot, comparison: Comparison) -> Reasons:
    """Everything but the judge's mind that may have moved the scores, with counts."""
    before, after = comparison
    found = paired(comparison)
    with reading(cached.engine()) as session:
        one, two = (drift_queries.get_judge_parts(session=session, judge_id=side.judge_id) for side in comparison)
        labels = drift_queries.list_label_sets(session=session, rubric_ids=[before.rubric_id, after.rubric_id])
    parts = tuple(words for name, words in _PARTS.items() if getattr(one, name) != getattr(two, name))
    rows = [
        *_outcome_rows(cached.tallies(before.selection), cached.tallies(after.selection)),
        *_copy_rows(found, comparison),
        *_item_rows(found),
        _corpus_row(at, comparison),
        ("label sets of the rubric", *(_label_words(labels, side.rubric_id) for side in comparison), "not in a score"),
        *_part_rows(one, two),
    ]
    table = pd.DataFrame(rows, columns=["cause", "before", "after", "reading"]).astype(str)
    replies = cached.matrix(after.selection).scored
    return Reasons(table, parts, _left(parts), found.alignment.changed, found.copied, replies)


@st.cache_resource(max_entries=FEW, show_spinner="Reading the history…")
def past(at: Snapshot, comparison: Comparison) -> Past:
    """The runs of both judges over the baseline's corpus with their control chart."""
    sides = list({(side.judge_id, side.corpus_id): side for side in comparison}.values())
    rows = [row for side in sides for row in _run_rows(at, side)]
    table = pd.DataFrame(rows, columns=["time", "run", "judge", "items", "mean", "judge_id"])
    table = table.sort_values(["time", "run"], kind="stable").reset_index(drop=True)
    with reading(cached.engine()) as session:
        parts = {
            side.judge_id: drift_queries.get_judge_parts(session=session, judge_id=side.judge_id) for side in sides
        }
        logs = [
            queries.list_rubric_changes(session=session, rubric_id=rubric)
            for rubric in dict.fromkeys(side.rubric_id for side in sides)
        ]
    marks = [*_judge_marks(table, parts)]
    marks += [PastMark(row.created_at, "rubric changed", row.line) for log in logs for row in log.itertuples()]
    return Past(table.drop(columns="judge_id"), control_chart(table["mean"].to_numpy(float)), tuple(marks))


@st.cache_resource(max_entries=FEW, show_spinner=False)
def _members(selection: Selection) -> SliceMembers:
    with reading(cached.engine()) as session:
        return drift_queries.list_item_slices(
            session=session, run_ids=_run_ids(selection), criterion_id=selection.criterion_id
        )


@st.cache_resource(max_entries=FEW, show_spinner=False)
def _run_means(selection: Selection) -> dict[int, tuple[int, float]]:
    """Items and mean of the item means of each run."""
    matrix = cached.matrix(selection)
    levels = np.array(selection.levels)
    found = {}
    for run_id in _run_ids(selection):
        columns = [place for place, column in enumerate(matrix.columns) if column.run_id == run_id]
        means = item_means(level_counts(level_codes(matrix.outcomes[:, columns]), len(levels)), levels)
        known = means[np.isfinite(means)]
        if len(known):
            found[run_id] = (len(known), float(known.mean()))
    return found


def _run_ids(selection: Selection) -> list[int]:
    return [run for run, _ in selection.runs]


def _scored(a: Ints, b: Ints) -> Bools:
    return np.asarray((a.sum(axis=1) > 0) & (b.sum(axis=1) > 0))


def _of_slice(comparison: Comparison, item_slice: str | None) -> tuple[NDArray[np.int64], Ints, Ints]:
    found = paired(comparison)
    if item_slice is None:
        return found.item_ids, found.counts_a, found.counts_b
    members = _members(comparison.before.selection)
    if item_slice not in members.names:
        return found.item_ids[:0], found.counts_a[:0], found.counts_b[:0]
    wanted = members.item_ids[members.places == members.names.index(item_slice)]
    chosen = np.isin(found.item_ids, wanted)
    return found.item_ids[chosen], found.counts_a[chosen], found.counts_b[chosen]


def _test_row(test: FamilyTest) -> dict[str, Any]:
    _, a, b = _of_slice(test.comparison, test.item_slice)
    levels = np.array(test.comparison.before.selection.levels)
    change = paired_change(a, b, levels, rng=np.random.default_rng(SEED))
    gates = gate_change(majority_verdicts(a, levels, test.gate), majority_verdicts(b, levels, test.gate))
    interval = change.change.interval
    return {
        "candidate": test.candidate,
        "criterion": test.criterion,
        "slice": test.item_slice or ALL_SLICES,
        "items": change.change.n,
        "change": change.change.value,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "raised": change.raised,
        "lowered": change.lowered,
        "gained": len(gates.gained),
        "lost": len(gates.lost),
        "p_mean": wilcoxon_exact(change.differences).p,
        "p_gate": gates.pass_rate.test.p,
    }


def _passes(counts: Ints, levels: Floats, gate: float) -> list[str]:
    verdicts = item_verdicts(counts, levels, gate)
    return [f"{k} of {n}" for k, n in zip(verdicts.passes.tolist(), verdicts.n.tolist(), strict=True)]


def _outcome_rows(before: Mapping[str, int], after: Mapping[str, int]) -> list[tuple[str, str, str, str]]:
    """Attempted, scored and unscored by reason."""
    names = ["scored", *sorted(({*before} | {*after}) - {"scored"})]
    rows = [("calls attempted", sum(before.values()), sum(after.values()), "the denominator of what follows")]
    for name in names:
        a, b = before.get(name, 0), after.get(name, 0)
        reading = {
            "scored": "usable, independent scores",
            "copied": "repeats an earlier reply of the same judge: counts once",
            "request_error": "the request failed: no score, not a low one",
        }.get(name, "unscored: no score, not a low one")
        rows.append((name.replace("_", " "), a, b, reading))
    return [(cause, f"{a:,}", f"{b:,}", reading) for cause, a, b, reading in rows]


def _copy_rows(found: Paired, comparison: Comparison) -> list[tuple[str, str, str, str]]:
    reading = "none" if not found.copied else "same response id: the baseline's judgements, left out, no agreement"
    effective = [int(counts.sum()) for counts in (found.counts_a, found.counts_b)]
    scored = cached.matrix(comparison.after.selection).scored
    return [
        ("copied from the baseline", "", f"{found.copied:,} of {scored:,}", reading),
        ("items with copied replies only", "", f"{found.copied_items:,}", "left out of the comparison"),
        ("independent scores, same text", f"{effective[0]:,}", f"{effective[1]:,}", "effective n"),
    ]


def _item_rows(found: Paired) -> list[tuple[str, str, str, str]]:
    aligned = found.alignment
    same, compared = len(aligned.rows_a), int(_scored(found.counts_a, found.counts_b).sum())
    return [
        ("items with the same text", f"{same:,}", f"{same:,}", "same key, same hash"),
        ("of these compared", f"{compared:,}", f"{compared:,}", "with an independent score on both sides"),
        (
            "items whose text differs",
            f"{len(aligned.changed):,}",
            f"{len(aligned.changed):,}",
            "left out: a change of text is not drift" if len(aligned.changed) else "none",
        ),
        ("items on one side only", f"{aligned.only_a:,}", f"{aligned.only_b:,}", "left out"),
        (
            "items without a text or a hash",
            f"{aligned.unchecked:,}",
            f"{aligned.unchecked:,}",
            "taken for the same by their key: the source cannot show it" if aligned.unchecked else "none",
        ),
        *(
            [("keys of two corpora without a hash", f"{aligned.unknown:,}", f"{aligned.unknown:,}", "left out")]
            if aligned.unknown
            else []
        ),
    ]


def _corpus_row(at: Snapshot, comparison: Comparison) -> tuple[str, str, str, str]:
    corpora = cached.corpora(at).set_index("id")
    rows = [corpora.loc[side.corpus_id] for side in comparison]
    words = [f"{row['name']} v{row.version} ({row.sha256[:8]})" for row in rows]
    same = comparison.before.corpus_id == comparison.after.corpus_id
    return ("corpus version (hash)", *words, "the same" if same else "differs: joined by key, same text only")  # type: ignore[return-value]


def _label_words(labels: pd.DataFrame, rubric_id: int) -> str:
    own = labels[labels.rubric_id == rubric_id]
    return ", ".join(f"{row['name']} v{row.version}" for _, row in own.iterrows()) or "none"


def _part_rows(one: JudgeParts, two: JudgeParts) -> list[tuple[str, str, str, str]]:
    rows = []
    for name, words in _PARTS.items():
        a, b = getattr(one, name), getattr(two, name)
        rows.append((words, _short(a), _short(b), "the same" if a == b else "differs"))
    return rows


def _short(part: object) -> str:
    text = str(part or "not recorded")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text):,} characters)"


def _left(parts: Sequence[str]) -> str:
    if not parts:
        return "Every part of the judge is the same: what is left is how it was served, and chance."
    if list(parts) == ["snapshot"]:
        return "What is left is the snapshot: every other part of the judge is the same."
    if len(parts) == 1:
        return f"The {parts[0]} differs and the snapshot does not: this is a change of judge, not drift."
    return f"{', '.join(parts)} differ together: these scores cannot tell their effects apart."


def _run_rows(at: Snapshot, side: Side) -> list[tuple[datetime, str, str, int, float, int]]:
    runs = cached.runs(at, judge_id=side.judge_id, corpus_id=side.corpus_id)
    judges = cached.judges(at)
    judge = judge_words(judges[judges.judge_id == side.judge_id].iloc[0])
    every = tuple((int(row.id), int(row.revision)) for row in runs.itertuples())
    means = _run_means(side.selection._replace(runs=every))
    return [
        (row.created_at, f"run {row.id}", judge, *means[int(row.id)], side.judge_id)
        for row in runs.itertuples()
        if int(row.id) in means
    ]


def _judge_marks(table: pd.DataFrame, parts: Mapping[int, JudgeParts]) -> list[PastMark]:
    """A mark where a judge with other parts first runs."""
    firsts = table.drop_duplicates("judge_id")
    marks = []
    for (_, one), (_, two) in zip(firsts.iloc[:-1].iterrows(), firsts.iloc[1:].iterrows(), strict=True):
        for name, words in _PARTS.items():
            a, b = getattr(parts[one.judge_id], name), getattr(parts[two.judge_id], name)
            if a != b:
                marks.append(PastMark(two.time, f"{words} changed", f"{_short(a)} → {_short(b)}"))
    return marks
