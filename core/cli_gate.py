"""The promotion review for a pipeline: `gate`, the rules it runs under, and the judge card."""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Session

from core.figures.card import CardFacts, judge_card
from core.figures.review import COLUMNS, LINES, review_rows, say_items, say_outcome, say_rule
from core.stats.common import MISSING, Ints
from core.stats.health import SEED, judge_health
from core.stats.promotion import GateOutcome
from core.stats.review import KIND, PromotionRule, Review, people_decisions, promotion_review, promotion_rule, side_of
from core.store import agreement_queries, queries, review_queries, trust_writes, writes
from core.store.engine import database_url, get_engine, reading
from core.store.queries import CriterionView
from core.store.vectors import NOT_MADE, level_codes

PASSED, FAILED, INSUFFICIENT, NOT_MEASURED = 0, 1, 2, 3
_EXITS = {GateOutcome.PASS: PASSED, GateOutcome.FAIL: FAILED, GateOutcome.INSUFFICIENT: INSUFFICIENT}


class NotMeasuredError(ValueError):
    """The review could not be made at all."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One review with what it was made of.

    Attributes:
        candidate: Row of `queries.list_judges`.
        baseline: The same of the baseline.
        criterion: The candidate's criterion.
        gate: The score that passes.
        labels: Label set in words, empty without one.
        rule: The frozen rule's row.
        asked: What it asks.
        review: The outcome.
        keys: Key of each item.
        copied: Replies of the candidate that are the baseline's own.
        outcomes: The candidate's calls by outcome.
        codes: The candidate's level indices, shape (items, repetitions).
    """

    candidate: Any
    baseline: Any
    criterion: CriterionView
    gate: float
    labels: str
    rule: Any
    asked: PromotionRule
    review: Review
    keys: list[str]
    copied: int
    outcomes: dict[str, int]
    codes: Ints


def add_gate(parser: argparse.ArgumentParser) -> None:
    """The arguments of `gate`."""
    add = parser.add_argument
    _add_choices(parser)
    add("--json", action="store_true", help="print the table for a program")
    add("--card", type=Path, metavar="FILE", help="also write the judge card, one HTML file")


def _add_choices(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--candidate", required=True, metavar="JUDGE", help="name, model or fingerprint of the judge under review")
    add("--rule", required=True, metavar="NAME|ID", help="the newest frozen promotion rule of that name, or its number")
    add("--baseline", default="", metavar="JUDGE", help="default: the judge approved last on the rule's corpus")
    add("--labels", default="", metavar="NAME[@VERSION]", help="default: the newest label set of the judge's rubric")
    add("--gate", type=float, metavar="SCORE", help="default: the rubric's")


def add_promotion_rule(parser: argparse.ArgumentParser) -> None:
    """The arguments of `promotion-rule`."""
    for option in ("--name", "--author", "--corpus", "--criterion"):
        parser.add_argument(option, required=True, metavar="NAME")
    for name, words in LINES.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=float, metavar="MARGIN", help=words.help)


def run_promotion_rule(given: argparse.Namespace) -> int:
    """Freeze a promotion rule."""
    rule = PromotionRule(**{name: getattr(given, name) for name in LINES})
    if not rule.asks:
        raise ValueError("the rule asks nothing: give at least one margin")
    with writes.writing(get_engine(database_url())) as session:
        frozen = trust_writes.freeze_trust_rule(
            session=session,
            name=given.name,
            author=given.author,
            thresholds={"kind": KIND, **rule.asks},
            corpus=given.corpus,
            criterion=given.criterion,
        )
        print(f"Frozen as rule {frozen.id}: {say_rule(rule)}")
        print(f"  {frozen.created_at:%Y-%m-%d %H:%M:%S} UTC, {frozen.author}, sha256 {frozen.sha256}")
    return PASSED


def run_gate(given: argparse.Namespace) -> int:
    """Print the review; the exit code is its outcome."""
    try:
        with reading(get_engine(database_url())) as session:
            found = measure(session, given)
            if given.card:
                given.card.write_text(judge_card(_card_facts(session, found)))
    except (ValueError, SQLAlchemyError, OSError) as error:
        why = {"outcome": "could not be measured", "why": str(error)}
        print(json.dumps(why) if given.json else f"could not be measured: {error}")
        return NOT_MEASURED
    print(json.dumps(_as_json(found), indent=2) if given.json else "\n".join(_lines(found)))
    return _EXITS[found.review.outcome]


def measure(session: Session, given: argparse.Namespace) -> Measured:
    """Make the review that the arguments name.

    Raises:
        NotMeasuredError: When a judge, the rule or a common scale is missing, or no item has scores of both.
    """
    rule = _rule(session, given.rule)
    asked = promotion_rule(rule.thresholds)
    corpus, key = rule.thresholds[trust_writes.CORPUS], rule.thresholds[trust_writes.CRITERION]
    candidate, baseline = _judges(session, given, corpus)
    ours, theirs = (_criterion(session, judge, key) for judge in (candidate, baseline))
    if ours.levels != theirs.levels:
        raise NotMeasuredError(f"the judges score {key} on different levels: {ours.levels} and {theirs.levels}")
    gate = ours.gate if given.gate is None else given.gate
    corpus_id, levels = int(candidate.corpus_id), np.array(ours.levels)
    both = review_queries.get_both_sides(
        session=session,
        corpus_id=corpus_id,
        candidate=(int(candidate.judge_id), ours.id),
        baseline=(int(baseline.judge_id), theirs.id),
        tokens=asked.tokens is not None,
    )
    codes, before = level_codes(both.candidate), level_codes(both.baseline)
    if not ((codes != MISSING).any(axis=1) & (before != MISSING).any(axis=1)).any():
        raise NotMeasuredError("no item has a usable score of both judges")
    labels, table = _labels(session, given.labels, candidate, ours)
    human = people_decisions(both.item_ids, table, levels, gate)
    review = promotion_review(
        side_of(codes, (both.candidate != NOT_MADE).sum(axis=1), both.candidate_tokens, len(levels)),
        side_of(before, (both.baseline != NOT_MADE).sum(axis=1), both.baseline_tokens, len(levels)),
        asked,
        levels=levels,
        gate=gate,
        human=human,
        seed=SEED,
    )
    return Measured(
        candidate,
        baseline,
        ours,
        gate,
        labels,
        rule,
        asked,
        review,
        queries.list_items(session=session, item_ids=both.item_ids.tolist()).key.tolist(),
        both.copied,
        queries.get_tallies(session=session, run_ids=both.candidate_runs, criterion_id=ours.id),
        codes.astype(np.int64),
    )


def _rule(session: Session, wanted: str) -> Any:
    rules = agreement_queries.list_trust_rules(session=session, kind=KIND)
    fitting = rules[(rules["name"] == wanted) | (rules["id"].astype(str) == wanted)]
    if fitting.empty:
        known = ", ".join(rules["name"].unique()) or "none; freeze one with `promotion-rule`"
        raise NotMeasuredError(f"there is no frozen promotion rule {wanted}; there are: {known}")
    return fitting.iloc[0]


def _judges(session: Session, given: argparse.Namespace, corpus: str) -> tuple[Any, Any]:
    """Candidate and baseline on the newest version of the corpus that both were run over."""
    judges = queries.list_judges(session=session)
    judges = judges[(judges.corpus == corpus) & ~judges.pairwise.astype(bool)]
    if given.baseline:
        before = judges[fits(judges, given.baseline)]
    else:
        approved = review_queries.find_baseline(session=session, corpus=corpus)
        if approved is None:
            raise NotMeasuredError(f"no judge is approved on {corpus} yet; give --baseline or approve the first one")
        before = judges[judges.judge_id == approved.judge_id]
    after = judges[fits(judges, given.candidate)]
    for words, found in ((f"candidate {given.candidate}", after), (f"baseline {given.baseline}", before)):
        if found.empty:
            raise NotMeasuredError(f"there is no {words.strip()} with scores on {corpus}")
        if found.judge_id.nunique() > 1:
            prints = ", ".join(print_[:12] for print_ in found.fingerprint.unique())
            raise NotMeasuredError(f"several judges fit {words.strip()}: give one fingerprint of {prints}")
    shared = sorted(set(after.corpus_version) & set(before.corpus_version))
    if not shared:
        raise NotMeasuredError(f"candidate and baseline were never run over the same version of {corpus}")
    candidate, baseline = (found[found.corpus_version == shared[-1]].iloc[0] for found in (after, before))
    if candidate.judge_id == baseline.judge_id:
        raise NotMeasuredError("candidate and baseline are the same judge")
    return candidate, baseline


def fits(judges: pd.DataFrame, wanted: str) -> pd.Series:
    """Which rows of `queries.list_judges` a name, a model or the beginning of a fingerprint means."""
    exact = (judges["name"] == wanted) | (judges.model == wanted)
    return exact | judges.fingerprint.str.startswith(wanted)


def _criterion(session: Session, judge: Any, key: str) -> CriterionView:
    criteria = queries.list_criteria(session=session, rubric_id=int(judge.rubric_id))
    for criterion in criteria:
        if criterion.key == key:
            return criterion
    raise NotMeasuredError(f"{judge['name']} does not score {key}; it scores {', '.join(one.key for one in criteria)}")


def _labels(
    session: Session, wanted: str, judge: Any, criterion: CriterionView
) -> tuple[str, agreement_queries.LabelTable | None]:
    """The label set in words, and its labels; none where there is no set and none was asked for."""
    name, _, version = wanted.partition("@")
    corpus_id = int(judge.corpus_id)
    sets = agreement_queries.list_label_sets(session=session, corpus_id=corpus_id, criterion=criterion.key)
    sets = sets[sets.rubric_id == judge.rubric_id]
    if name:
        sets = sets[(sets["name"] == name) & ((sets.version.astype(str) == version) | (not version))]
        if sets.empty:
            raise NotMeasuredError(f"there is no label set {wanted} made under the candidate's rubric version")
    if sets.empty:
        return "", None
    chosen = sets.iloc[0]
    table = agreement_queries.get_labels(
        session=session, label_set_id=int(chosen.id), corpus_id=corpus_id, criterion=criterion.key
    )
    return f"{chosen['name']} v{chosen.version}", table


def _lines(found: Measured) -> list[str]:
    rows = review_rows(found.review, found.asked, found.keys)
    table = pd.DataFrame(rows, columns=list(COLUMNS)).to_string(index=False)
    outcomes = ", ".join(f"{calls:,} {reason}" for reason, calls in found.outcomes.items())
    late = f"; {found.rule.labels_seen:,} labels existed when it was frozen" if found.rule.labels_seen else ""
    return [
        f"candidate {_words(found.candidate)}",
        f"baseline  {_words(found.baseline)}",
        f"{found.candidate.corpus} v{found.candidate.corpus_version} · {found.criterion.key}, gate {found.gate:g} · "
        f"labels: {found.labels or 'none'} ({found.review.labelled:,} items)",
        f"rule {found.rule['name']}: {say_rule(found.asked)}{late}",
        f"calls of the candidate: {outcomes or 'none'}; copied from the baseline: {found.copied:,}",
        "",
        table,
        "",
        say_items(found.review),
        say_outcome(found.review),
    ]


def _words(judge: Any) -> str:
    return f"{judge['name']} · {judge.model or 'model unknown'} · {judge.fingerprint[:12]}"


def _as_json(found: Measured) -> dict[str, Any]:
    return {
        "outcome": str(found.review.outcome),
        "candidate": found.candidate.fingerprint,
        "baseline": found.baseline.fingerprint,
        "corpus": f"{found.candidate.corpus}@{found.candidate.corpus_version}",
        "criterion": found.criterion.key,
        "gate": found.gate,
        "labels": found.labels,
        "labelled_items": found.review.labelled,
        "rule": found.rule["name"],
        "rule_sha256": found.rule.sha256,
        "calls": found.outcomes,
        "copied": found.copied,
        "lines": review_rows(found.review, found.asked, found.keys),
        "items": {
            name: [found.keys[place] for place in np.flatnonzero(getattr(found.review, name)).tolist()]
            for name in ("better", "worse", "fixed", "broken", "within_noise")
        },
    }


def _card_facts(session: Session, found: Measured) -> CardFacts:
    levels = np.array(found.criterion.levels)
    judge_id, corpus_id = int(found.candidate.judge_id), int(found.candidate.corpus_id)
    return CardFacts(
        identity=review_queries.list_identity(session=session, judge_id=judge_id, corpus_id=corpus_id),
        criterion=found.criterion.key,
        levels=levels,
        anchors=found.criterion.anchors,
        gate=found.gate,
        outcomes=found.outcomes,
        codes=found.codes,
        health=judge_health(found.codes, levels, found.gate),
        labels=found.labels,
        rule=f"{found.rule['name']}: {say_rule(found.asked)}",
        rule_sha256=found.rule.sha256,
        baseline=_words(found.baseline),
        review=found.review,
        asked=found.asked,
        keys=found.keys,
        decisions=review_queries.list_decisions(session=session, corpus=found.candidate.corpus),
    )
