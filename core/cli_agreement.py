"""Judges against people from the command line: the page's table, trust rules, and word searches."""

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlmodel import Session

from core.figures.agreement_words import (
    LATE,
    SPLIT,
    agreement_lines,
    ceiling_lines,
    corrected_lines,
    say_false_fails,
    say_false_passes,
    say_left_out,
    say_line,
    say_reference,
    say_rule,
    say_trust,
    say_unit,
)
from core.figures.words import say_estimate
from core.stats.against_people import (
    CALLS,
    COLUMN,
    MAJORITY,
    Assessment,
    assess,
    compare,
    kept_thresholds,
    rule_from,
    rule_timing,
)
from core.stats.common import Estimate, Ints
from core.stats.trust import Outcome, TrustRule, evaluate_trust, trust_figures
from core.store import agreement_queries, queries, trust_writes, writes
from core.store.engine import database_url, get_engine, reading
from core.store.queries import CriterionView

DONE, REFUSED = 0, 1


class NothingChosenError(ValueError):
    """What the command names is not in the store."""


@dataclass(frozen=True, slots=True)
class Found:
    """One judge against one label set on one criterion.

    Attributes:
        judge: Name and model.
        corpus: Name of the corpus.
        corpus_version: Its version.
        criterion: The criterion.
        gate: The score that passes.
        labels: Label set, name and version.
        label_set_id: Its key.
        other_version: Whether it was made under another rubric version than the judge's.
        reference: What the judge is held against.
        unit: What counts as one judgement.
        columns: Names of the judge's calls.
        outcomes: Calls by outcome.
        keys: Key of each item.
        assessment: The figures.
    """

    judge: str
    corpus: str
    corpus_version: int
    criterion: CriterionView
    gate: float
    labels: str
    label_set_id: int
    other_version: bool
    reference: str
    unit: str
    columns: list[str]
    outcomes: dict[str, int]
    keys: list[str]
    assessment: Assessment


def add_agreement(parser: argparse.ArgumentParser) -> None:
    """The arguments of `agreement`."""
    _add_choices(parser)
    parser.add_argument("--json", action="store_true", help="print the figures for a program")


def add_trust(parser: argparse.ArgumentParser) -> None:
    """The arguments of `trust`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    freeze = actions.add_parser("freeze", help="write a rule down, before the measurement and for ever")
    for option in ("--name", "--author", "--corpus", "--criterion"):
        freeze.add_argument(option, required=True, metavar="NAME")
    freeze.add_argument("--min-agreement", type=float, metavar="SHARE")
    freeze.add_argument("--min-kappa", type=float, metavar="KAPPA")
    freeze.add_argument("--max-false-passes", type=int, metavar="COUNT")
    freeze.add_argument("--max-false-pass-rate", type=float, metavar="SHARE", help="of the fails by people")
    freeze.add_argument("--min-labels", type=int, metavar="COUNT")
    freeze.add_argument("--on", choices=("decision", "level"), default="decision", help="default: %(default)s")
    actions.add_parser("list", help="print the frozen rules")
    evaluate = actions.add_parser("evaluate", help="hold judges against a frozen rule; exit code 1 unless all pass")
    evaluate.add_argument("--rule", required=True, metavar="NAME|ID", help="the newest of that name, or its number")
    _add_choices(evaluate)


def _add_choices(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--corpus", default="", metavar="NAME[@VERSION]", help="default: every corpus with labels, newest version")
    add("--judge", default="", metavar="NAME", help="default: every judge")
    add("--criterion", default="", metavar="KEY", help="default: every criterion with labels")
    add("--gate", type=float, metavar="SCORE", help="default: the rubric's")
    add("--labels", default="", metavar="NAME[@VERSION]", help="default: every label set, each by itself")
    add("--any-version", action="store_true", help="also labels made under another rubric version")
    add("--reference", default=MAJORITY, metavar="WHO", help="majority, adjudicated or rater:NAME")
    add("--unit", default="", metavar="UNIT", help="calls, modal or call:N; default: calls where there are repetitions")
    add("--slice", default="", metavar="NAME", help="only items of this slice")


def run_agreement(given: argparse.Namespace) -> int:
    """Print every figure of the chosen judges against people."""
    found = _find(given)
    if given.json:
        print(json.dumps([_as_json(one) for one in found], indent=2))
    else:
        for one in found:
            print(f"{_heading(one)}")
            for line in _lines(one):
                print(f"  {line}")
    return DONE


def run_trust(given: argparse.Namespace) -> int:
    """Freeze, list or evaluate trust rules."""
    return {"freeze": _freeze, "list": _list, "evaluate": _evaluate}[given.action](given)


def _freeze(given: argparse.Namespace) -> int:
    rule = TrustRule(
        given.min_agreement,
        given.min_kappa,
        given.max_false_passes,
        given.max_false_pass_rate,
        given.min_labels,
        given.on,
        "nominal" if given.on == "decision" else "quadratic",
    )
    thresholds = kept_thresholds(rule)
    rule_from(thresholds)
    with writes.writing(get_engine(database_url())) as session:
        frozen = trust_writes.freeze_trust_rule(
            session=session,
            name=given.name,
            author=given.author,
            thresholds=thresholds,
            corpus=given.corpus,
            criterion=given.criterion,
        )
        late = f"; {frozen.labels_seen:,} labels existed: {LATE}" if frozen.labels_seen else ""
        print(f"Frozen as rule {frozen.id}: {say_rule(rule)}")
        print(f"  {frozen.created_at:%Y-%m-%d %H:%M:%S} UTC, {frozen.author}, sha256 {frozen.sha256}{late}")
    return DONE


def _list(_given: argparse.Namespace) -> int:
    with reading(get_engine(database_url())) as session:
        rules = agreement_queries.list_trust_rules(session=session)
    for row in rules.rename(columns={"name": "name_"}).itertuples():
        late = f"; {row.labels_seen:,} labels existed: {LATE}" if row.labels_seen else ""
        print(f"{row.id} {row.name_}: {say_rule(rule_from(row.thresholds))}")
        print(f"  {row.created_at:%Y-%m-%d %H:%M:%S} UTC, {row.author}, sha256 {row.sha256}{late}")
    if rules.empty:
        print("No rule is frozen.")
    return DONE


def _evaluate(given: argparse.Namespace) -> int:
    with reading(get_engine(database_url())) as session:
        rules = agreement_queries.list_trust_rules(session=session)
        chosen = rules[(rules["name"] == given.rule) | (rules["id"].astype(str) == given.rule)]
        if chosen.empty:
            raise NothingChosenError(f"there is no frozen rule {given.rule}; `trust list` prints them")
        stored = chosen.iloc[0]
    rule = rule_from(stored.thresholds)
    trusted = True
    for one in _find(given):
        decision = evaluate_trust(rule, trust_figures(one.assessment.measured, rule))
        trusted = trusted and decision.outcome is Outcome.TRUSTED
        print(f"{_heading(one)}")
        print(f"  rule {stored['name']}: {say_trust(decision)}")
        for line in decision.lines:
            print(f"    {say_line(line)}")
        for mark in _marks(one, stored):
            print(f"    {mark}")
    return DONE if trusted else REFUSED


def _marks(one: Found, stored: Any) -> Iterator[str]:
    """What a reader must know of the rule."""
    with reading(get_engine(database_url())) as session:
        earlier = agreement_queries.count_labels(
            session=session,
            collection=one.corpus,
            criterion=one.criterion.key,
            label_set_id=one.label_set_id,
            before=stored.created_at,
        )
    if rule_timing(int(stored.labels_seen), earlier) == "after":
        yield f"this rule was {LATE}"
    wanted = (stored.thresholds.get(trust_writes.CORPUS), stored.thresholds.get(trust_writes.CRITERION))
    if wanted != (one.corpus, one.criterion.key):
        yield f"this rule was written for {wanted[1]} on {wanted[0]}"
    if stored.sha256 != trust_writes.rule_hash(stored["name"], stored.thresholds):
        yield "the stored rule does not match its hash: it was changed outside the program"


def _find(given: argparse.Namespace) -> list[Found]:
    """Every chosen judge with every chosen label set, each by itself."""
    with reading(get_engine(database_url())) as session:
        judges = queries.list_judges(session=session)
        judges = judges[~judges.pairwise.astype(bool)]
        name, _, version = given.corpus.partition("@")
        if name:
            judges = judges[(judges.corpus == name) & ((judges.corpus_version.astype(str) == version) | (not version))]
        if not version:
            judges = judges[judges.corpus_version == judges.groupby("corpus").corpus_version.transform("max")]
        if given.judge:
            judges = judges[judges["name"] == given.judge]
        found = [one for _, judge in judges.iterrows() for one in _of_judge(session, judge, given)]
    if not found:
        raise NothingChosenError(
            "no judge with scores and labels fits the choice; --any-version compares across rubrics"
        )
    return found


def _of_judge(session: Session, judge: Any, given: argparse.Namespace) -> Iterator[Found]:
    corpus_id = int(judge.corpus_id)
    name, _, version = given.labels.partition("@")
    for criterion in queries.list_criteria(session=session, rubric_id=int(judge.rubric_id)):
        if given.criterion not in ("", criterion.key):
            continue
        sets = agreement_queries.list_label_sets(session=session, corpus_id=corpus_id, criterion=criterion.key)
        for _, labels in sets.iterrows():
            fits = name in ("", labels["name"]) and version in ("", str(labels.version))
            if fits and (given.any_version or labels.rubric_id == judge.rubric_id):
                one = _one(session, judge, criterion, labels, given)
                if one is not None:
                    yield one


def _one(
    session: Session, judge: Any, criterion: CriterionView, labels: Any, given: argparse.Namespace
) -> Found | None:
    """None when the judge has no call on the criterion."""
    corpus_id, item_slice = int(judge.corpus_id), given.slice or None
    runs = queries.list_runs(session=session, judge_id=int(judge.judge_id), corpus_id=corpus_id).id.tolist()
    matrix = queries.get_score_matrix(session=session, run_ids=runs, criterion_id=criterion.id, item_slice=item_slice)
    if not matrix.columns:
        return None
    table = agreement_queries.get_labels(
        session=session,
        label_set_id=int(labels.id),
        corpus_id=corpus_id,
        criterion=criterion.key,
        item_slice=item_slice,
    )
    levels = np.array(criterion.levels)
    compared = compare(
        item_ids=matrix.item_ids,
        codes=matrix.codes.astype(np.int64),
        labelled_ids=table.item_ids,
        raters=table.raters,
        labels=table.values,
        adjudicated=table.adjudicated,
        levels=levels,
    )
    items = queries.list_items(session=session, item_ids=compared.item_ids.tolist())
    unit = given.unit or (CALLS if len(matrix.columns) > 1 else f"{COLUMN}0")
    gate = criterion.gate if given.gate is None else given.gate
    return Found(
        judge=" · ".join(dict.fromkeys(part for part in (judge["name"], judge.model, judge.prompt_version) if part)),
        corpus=judge.corpus,
        corpus_version=int(judge.corpus_version),
        criterion=criterion,
        gate=gate,
        labels=f"{labels['name']} v{labels.version}",
        label_set_id=int(labels.id),
        other_version=int(labels.rubric_id) != int(judge.rubric_id),
        reference=given.reference,
        unit=unit,
        columns=[f"run {column.run_id} · {column.repetition}" for column in matrix.columns],
        outcomes=queries.get_tallies(session=session, run_ids=runs, criterion_id=criterion.id),
        keys=items.key.tolist(),
        assessment=assess(
            compared, items.slice.tolist(), reference=given.reference, unit=unit, levels=levels, gate=gate
        ),
    )


def _heading(one: Found) -> str:
    version = ", labels of another rubric version" if one.other_version else ""
    return (
        f"{one.judge} · {one.corpus} v{one.corpus_version} · {one.criterion.key}, gate {one.gate:g} · "
        f"{one.labels}{version}"
    )


def _lines(one: Found) -> Iterator[str]:
    found, measured = one.assessment, one.assessment.measured
    calls = measured.calls > measured.items
    rest = ", ".join(f"{calls} {reason}" for reason, calls in sorted(one.outcomes.items()) if reason != "scored")
    yield f"people: {say_reference(one.reference)}; judgement: {say_unit(one.unit, one.columns)}"
    yield (
        f"{sum(one.outcomes.values()):,} calls attempted, {one.outcomes.get('scored', 0):,} scored, "
        f"unscored or not counted: {rest or 'none'}"
    )
    yield say_left_out(found)
    if found.left_out.tied:
        yield SPLIT
    yield f"false passes {_keys(one, measured.false_passes)}: {say_false_passes(measured.confusion, calls=calls)}"
    yield f"false fails {_keys(one, measured.false_fails)}: {say_false_fails(measured.confusion, calls=calls)}"
    for line in agreement_lines(measured):
        yield f"{line.name} {line.words}"
    for part in found.slices:
        yield f"slice {part.name}: agreement {say_estimate(part.agreement)}; {say_false_passes(part.confusion)}"
    for name, people, judge in ceiling_lines(found):
        yield f"{name}: between people {say_estimate(people)}, judge and people {say_estimate(judge)}"
    yield from corrected_lines(found)


def _keys(one: Found, positions: Ints) -> str:
    return ", ".join(one.keys[position] for position in positions) or "none"


def _as_json(one: Found) -> dict[str, Any]:
    found, measured = one.assessment, one.assessment.measured
    confusion = measured.confusion
    return {
        "judge": one.judge,
        "corpus": one.corpus,
        "corpus_version": one.corpus_version,
        "criterion": one.criterion.key,
        "gate": one.gate,
        "labels": one.labels,
        "other_rubric_version": one.other_version,
        "reference": one.reference,
        "unit": one.unit,
        "outcomes": one.outcomes,
        "items": measured.items,
        "calls": measured.calls,
        "left_out": {
            "no_label": found.left_out.no_label,
            "no_score": found.left_out.no_score,
            "no_majority": found.left_out.tied,
            "labels_between_levels": found.between,
        },
        "confusion": {"tp": confusion.tp, "fp": confusion.fp, "fn": confusion.fn, "tn": confusion.tn},
        "levels": list(one.criterion.levels),
        "table": measured.table.tolist(),
        "false_passes": [one.keys[position] for position in measured.false_passes],
        "false_fails": [one.keys[position] for position in measured.false_fails],
        "figures": {line.name: _estimate_json(line.estimate) for line in agreement_lines(measured)},
        "corrected_pass_rate": _estimate_json(found.corrected.rate.estimate)
        | {"unlabelled": found.corrected.rest, "rehearsal_on_labelled_items": found.corrected.rehearsal},
    }


def _estimate_json(found: Estimate) -> dict[str, Any]:
    interval = found.interval
    return {
        "value": found.value,
        "n": found.n,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "method": interval.method if interval else None,
        "undefined": found.reason.words if found.reason else None,
        "notes": list(found.notes),
    }
