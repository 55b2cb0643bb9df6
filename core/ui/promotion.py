"""The promotion review's choices, its cached reads, and what it writes down."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from core.stats.common import MISSING, Ints
from core.stats.health import SEED, JudgeHealth, judge_health
from core.stats.review import KIND, PromotionRule, Review, people_decisions, promotion_review, promotion_rule, side_of
from core.store import agreement_queries, decision_writes, queries, review_queries, trust_writes, writes
from core.store.engine import reading
from core.store.queries import CriterionView
from core.store.review_queries import BothSides
from core.store.tables import DecisionKind
from core.store.vectors import NOT_MADE, level_codes
from core.ui import cached, url
from core.ui.cached import FEW, MANY, Snapshot
from core.ui.scope import choose_gate, corpus_key, judge_key, judge_words, level_words, say_empty

NO_LABELS = "none"


class FrozenRule(NamedTuple):
    """A promotion rule as it was frozen."""

    id: int
    name: str
    author: str
    created_at: datetime
    sha256: str
    labels_seen: int
    asks: PromotionRule


class Reviewed(NamedTuple):
    """The key of a review: which runs, up to which revision, under what rule, against which labels."""

    corpus_id: int
    candidate: tuple[int, int]
    baseline: tuple[int, int]
    levels: tuple[float, ...]
    gate: float
    label_set_id: int | None
    criterion: str
    rule: PromotionRule


@dataclass(frozen=True, slots=True)
class Choice:
    """What the sidebar says.

    Attributes:
        at: The store's state.
        corpus_id: Corpus version.
        corpus: Its name and version in words.
        corpus_name: Its name.
        candidate: Row of `cached.judges`.
        baseline: The same of the judge it is held against.
        approved: Whether the baseline is the approved one.
        criterion: What was scored.
        gate: The score at and above which an item passes.
        labels: Label set in words, empty without one.
        rule: The frozen rule; None while there is none.
        reviewed: Key of the review; None without a rule.
        address: Query of the page of one item.
    """

    at: Snapshot
    corpus_id: int
    corpus: str
    corpus_name: str
    candidate: pd.Series
    baseline: pd.Series
    approved: bool
    criterion: CriterionView
    gate: float
    labels: str
    rule: FrozenRule | None
    reviewed: Reviewed | None
    address: dict[str, str]

    @property
    def simulated(self) -> bool:
        """Whether a side comes from a simulator."""
        return bool(self.candidate.simulated) or bool(self.baseline.simulated)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A review with what its card and its lists of items need.

    Attributes:
        review: The review.
        both: Outcomes of both sides.
        codes: The candidate's level indices, shape (items, repetitions).
        items: Key, slice and id of each item.
        passes: Passes of n of the candidate on each item, in words.
        passed_before: The same of the baseline.
        human: People's decision on each item, in words.
    """

    review: Review
    both: BothSides
    codes: NDArray[np.int16]
    items: pd.DataFrame
    passes: list[str]
    passed_before: list[str]
    human: list[str]


def select_review() -> Choice:
    """Draw the sidebar's choices; what cannot be reviewed ends the page with what to do."""
    at, side = cached.snapshot(), st.sidebar
    judges = cached.judges(at)
    judges = judges[~judges.pairwise.astype(bool)]
    if judges.empty:
        say_empty("judge")
    keys = [corpus_key(row.corpus, row.corpus_version) for row in judges.itertuples()]
    crowded = max(dict.fromkeys(keys), key=lambda key: min(keys.count(key), 2))
    corpora = {
        key: f"{name} v{version}" for key, name, version in zip(keys, judges.corpus, judges.corpus_version, strict=True)
    }
    corpus = url.choose(side, "Corpus", "corpus", corpora, default=crowded, help="A frozen, versioned set of items.")
    here = judges[[key == corpus for key in keys]]
    by_key = {judge_key(row.fingerprint): row for _, row in here.iterrows()}
    if len(by_key) < 2:
        _stop("A review needs two judges on the same corpus. Import or run a second judge over the same items.")
    corpus_name = str(here.corpus.iloc[0])
    approved = baseline_key(at, corpus_name)
    labels = {key: judge_words(row) + (" (approved)" if key == approved else "") for key, row in by_key.items()}
    oldest = min(by_key, key=lambda key: (by_key[key].newest_run, by_key[key].judge_id))
    before = url.choose(
        side,
        "Baseline judge",
        "baseline",
        labels,
        default=approved if approved in by_key else oldest,
        help="The judge approved last on this corpus, unless you choose another.",
    )
    rivals = {key: words for key, words in labels.items() if key != before}
    after = url.choose(
        side,
        "Candidate judge",
        "candidate",
        rivals,
        default=max(rivals, key=lambda key: by_key[key].newest_run),
        help="The judge that may replace it.",
    )
    candidate, baseline = by_key[after], by_key[before]
    ours = {view.key: view for view in cached.criteria(at, rubric_id=int(candidate.rubric_id))}
    theirs = {view.key: view for view in cached.criteria(at, rubric_id=int(baseline.rubric_id))}
    shared = [key for key in ours if key in theirs and ours[key].levels == theirs[key].levels]
    if not shared:
        _stop("The two rubrics share no criterion with the same levels, so their scores have no common scale.")
    criterion = ours[url.choose(side, "Criterion", "criterion", {key: key for key in shared})]
    gate = choose_gate(criterion)
    corpus_id = int(candidate.corpus_id)
    label_set, label_words = _choose_labels(at, corpus_id, criterion.key, int(candidate.rubric_id))
    rule = _choose_rule(at, corpus_name, criterion.key)
    reviewed = None
    if rule is not None:
        reviewed = Reviewed(
            corpus_id,
            (int(candidate.judge_id), criterion.id),
            (int(baseline.judge_id), theirs[criterion.key].id),
            criterion.levels,
            gate,
            label_set,
            criterion.key,
            rule.asks,
        )
    return Choice(
        at,
        corpus_id,
        corpora[corpus],
        corpus_name,
        candidate,
        baseline,
        before == approved,
        criterion,
        gate,
        label_words,
        rule,
        reviewed,
        {"corpus": corpus, "judge": after, "criterion": criterion.key, "gate": level_words(gate)},
    )


@st.cache_data(max_entries=MANY, show_spinner=False)
def baseline_key(at: Snapshot, corpus_name: str) -> str:  # noqa: ARG001 - the key
    """URL key of the judge approved last on a corpus; empty while none is."""
    with reading(cached.engine()) as session:
        decisions = review_queries.list_decisions(session=session, corpus=corpus_name)
    approved = decisions[decisions.kind == DecisionKind.APPROVED]
    return "" if approved.empty else judge_key(str(approved.fingerprint.iloc[0]))


@st.cache_data(max_entries=MANY, show_spinner=False)
def decisions(at: Snapshot, corpus_name: str) -> pd.DataFrame:  # noqa: ARG001 - the key
    """`review_queries.list_decisions` of a corpus."""
    with reading(cached.engine()) as session:
        return review_queries.list_decisions(session=session, corpus=corpus_name)


@st.cache_resource(max_entries=MANY, show_spinner=False)
def rules(at: Snapshot, corpus_name: str, criterion: str) -> tuple[FrozenRule, ...]:  # noqa: ARG001 - the key
    """Promotion rules frozen for a corpus and criterion, newest first."""
    with reading(cached.engine()) as session:
        stored = agreement_queries.list_trust_rules(session=session, kind=KIND)
    wanted = (corpus_name, criterion)
    return tuple(
        FrozenRule(
            int(row.id),
            str(row.name_),
            str(row.author),
            row.created_at,
            str(row.sha256),
            int(row.labels_seen),
            promotion_rule(row.thresholds),
        )
        for row in stored.rename(columns={"name": "name_"}).itertuples()
        if (row.thresholds.get(trust_writes.CORPUS), row.thresholds.get(trust_writes.CRITERION)) == wanted
    )


@st.cache_resource(max_entries=FEW, show_spinner="Holding the candidate against the baseline…")
def evidence(at: Snapshot, reviewed: Reviewed) -> Evidence:  # noqa: ARG001 - part of the key
    """The review and what it was made of."""
    levels = np.array(reviewed.levels)
    with reading(cached.engine()) as session:
        both = review_queries.get_both_sides(
            session=session,
            corpus_id=reviewed.corpus_id,
            candidate=reviewed.candidate,
            baseline=reviewed.baseline,
            tokens=reviewed.rule.tokens is not None,
        )
        items = queries.list_items(session=session, item_ids=both.item_ids.tolist())
        table = (
            None
            if reviewed.label_set_id is None
            else agreement_queries.get_labels(
                session=session,
                label_set_id=reviewed.label_set_id,
                corpus_id=reviewed.corpus_id,
                criterion=reviewed.criterion,
            )
        )
    human = people_decisions(both.item_ids, table, levels, reviewed.gate)
    codes, before = level_codes(both.candidate), level_codes(both.baseline)
    review = promotion_review(
        side_of(codes, (both.candidate != NOT_MADE).sum(axis=1), both.candidate_tokens, len(levels)),
        side_of(before, (both.baseline != NOT_MADE).sum(axis=1), both.baseline_tokens, len(levels)),
        reviewed.rule,
        levels=levels,
        gate=reviewed.gate,
        human=human,
        seed=SEED,
    )
    return Evidence(
        review,
        both,
        codes,
        items,
        _pass_words(codes, levels, reviewed.gate),
        _pass_words(before, levels, reviewed.gate),
        [{1: "pass", 0: "fail"}.get(int(said), "no label") for said in human],
    )


@st.cache_resource(max_entries=FEW, show_spinner=False)
def candidate_health(at: Snapshot, reviewed: Reviewed) -> JudgeHealth:
    """The candidate's wobble on the reviewed items."""
    return judge_health(evidence(at, reviewed).codes, np.array(reviewed.levels), reviewed.gate)


@st.cache_data(max_entries=MANY, show_spinner=False)
def identity(at: Snapshot, judge_id: int, corpus_id: int) -> list[tuple[str, str]]:  # noqa: ARG001 - the key
    """`review_queries.list_identity`."""
    with reading(cached.engine()) as session:
        return review_queries.list_identity(session=session, judge_id=judge_id, corpus_id=corpus_id)


@st.cache_data(max_entries=MANY, show_spinner=False)
def outcomes(at: Snapshot, run_ids: tuple[int, ...], criterion_id: int) -> dict[str, int]:  # noqa: ARG001 - the key
    """`queries.get_tallies`."""
    with reading(cached.engine()) as session:
        return queries.get_tallies(session=session, run_ids=run_ids, criterion_id=criterion_id)


def freeze_rule(choice: Choice, *, name: str, author: str, rule: PromotionRule) -> int:
    """Freeze a rule for the chosen corpus and criterion, and return its id.

    Raises:
        ValueError: Without a name, an author or a margin.
    """
    if not rule.asks:
        raise ValueError("a promotion rule needs at least one margin")
    with writes.writing(cached.engine()) as session:
        frozen = trust_writes.freeze_trust_rule(
            session=session,
            name=name,
            author=author,
            thresholds={"kind": KIND, **rule.asks},
            corpus=choice.corpus_name,
            criterion=choice.criterion.key,
        )
        return int(frozen.id or 0)


def decide(
    choice: Choice, *, kind: str, author: str, reason: str, seen: Mapping[str, Any], first: bool = False
) -> None:
    """Record a decision, append-only.

    Args:
        choice: What was reviewed.
        kind: A value of `DecisionKind`.
        author: Who decided.
        reason: Why.
        seen: The figures that were on screen.
        first: The baseline itself is approved, without a review.

    Raises:
        ValueError: Without an author or a reason, or for an unknown kind.
    """
    judge = choice.baseline if first else choice.candidate
    with writes.writing(cached.engine()) as session:
        decision_writes.record_decision(
            session=session,
            kind=DecisionKind(kind),
            judge_id=int(judge.judge_id),
            corpus_id=choice.corpus_id,
            baseline_judge_id=None if first else int(choice.baseline.judge_id),
            rule_id=None if first or choice.rule is None else choice.rule.id,
            author=author,
            reason=reason,
            evidence=seen,
        )


def _choose_labels(at: Snapshot, corpus_id: int, criterion: str, rubric_id: int) -> tuple[int | None, str]:
    sets = _label_sets(at, corpus_id, criterion)
    sets = sets[sets.rubric_id == rubric_id]
    options = {f"{row.id}": f"{row.name_} v{row.version} ({row.items:,} items)" for row in sets.itertuples()}
    chosen = url.choose(
        st.sidebar,
        "Labels",
        "label_set",
        options | {NO_LABELS: "no labels"},
        help="What people said, under the candidate's rubric version; one label set, never a mixture.",
    )
    return (None, "") if chosen == NO_LABELS else (int(chosen), options[chosen])


@st.cache_data(max_entries=MANY, show_spinner=False)
def _label_sets(at: Snapshot, corpus_id: int, criterion: str) -> pd.DataFrame:  # noqa: ARG001 - the key
    with reading(cached.engine()) as session:
        sets = agreement_queries.list_label_sets(session=session, corpus_id=corpus_id, criterion=criterion)
    return sets.rename(columns={"name": "name_"})


def _choose_rule(at: Snapshot, corpus_name: str, criterion: str) -> FrozenRule | None:
    frozen = {str(rule.id): rule for rule in rules(at, corpus_name, criterion)}
    if not frozen:
        return None
    labels = {key: f"{rule.name} · {rule.created_at:%Y-%m-%d %H:%M} UTC" for key, rule in frozen.items()}
    chosen = url.choose(st.sidebar, "Promotion rule", "rule", labels, help="Frozen beforehand; it cannot be changed.")
    return frozen[chosen]


def _pass_words(codes: NDArray[np.int16], levels: Any, gate: float) -> list[str]:
    scored = (codes != MISSING).sum(axis=1)
    passes = ((codes != MISSING) & (levels[codes] >= gate)).sum(axis=1)
    return [f"{k} of {n}" for k, n in zip(passes.tolist(), scored.tolist(), strict=True)]


def missing_items(evidence: Evidence) -> Ints:
    """Places of the items without a usable score of the candidate."""
    return np.flatnonzero((evidence.codes == MISSING).all(axis=1))


def _stop(words: str) -> NoReturn:
    st.info(words, icon=":material/info:")
    st.stop()
