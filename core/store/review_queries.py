"""Reads for the promotion review: both judges on the same items, the approved baseline, the decisions so far."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sqlalchemy import func, select
from sqlmodel import Session

from core.store.drift_queries import leave_out_copies, list_copied_replies
from core.store.queries import get_score_matrix, list_runs
from core.store.tables import Call, Corpus, CorpusItem, Decision, DecisionKind, Judge, Rubric, TrustRule
from core.store.vectors import NOT_MADE

CALL = Call.__table__.c
CORPUS = Corpus.__table__.c
DECISION = Decision.__table__.c
JUDGE = Judge.__table__.c


@dataclass(frozen=True, slots=True)
class BothSides:
    """The outcomes of two judges, a row an item in the same order; an item only one judged has no call of the other.

    Attributes:
        item_ids: Items that either judged, ascending, shape (items,).
        candidate: Outcome codes of `core.store.vectors`, shape (items, repetitions).
        baseline: The same of the baseline.
        candidate_tokens: Mean tokens of a call on each item, nan where the source gave none or none were asked for.
        baseline_tokens: The same of the baseline.
        copied: Scores of the candidate that carry a response id of the baseline: taken out, since they are its own.
        candidate_runs: The runs behind it.
        baseline_runs: The same of the baseline.
    """

    item_ids: NDArray[np.int64]
    candidate: NDArray[np.uint8]
    baseline: NDArray[np.uint8]
    candidate_tokens: NDArray[np.float64]
    baseline_tokens: NDArray[np.float64]
    copied: int
    candidate_runs: tuple[int, ...]
    baseline_runs: tuple[int, ...]


def get_both_sides(
    *,
    session: Session,
    corpus_id: int,
    candidate: tuple[int, int],
    baseline: tuple[int, int],
    tokens: bool = False,
) -> BothSides:
    """Every outcome of two judges over one corpus version.

    Args:
        session: An open session.
        corpus_id: The frozen corpus both ran over.
        candidate: Judge id and criterion id.
        baseline: The same; the criterion may belong to another rubric version with the same levels.
        tokens: Whether to read what the calls cost, which reads every call.
    """
    runs = [
        list_runs(session=session, judge_id=judge_id, corpus_id=corpus_id).id.tolist()
        for judge_id, _ in (candidate, baseline)
    ]
    ours, theirs = (
        get_score_matrix(session=session, run_ids=run_ids, criterion_id=criterion_id)
        for run_ids, (_, criterion_id) in zip(runs, (candidate, baseline), strict=True)
    )
    copies = list_copied_replies(session=session, before=runs[1], after=runs[0])
    outcomes, copied = leave_out_copies(ours, copies)
    item_ids = np.union1d(ours.item_ids, theirs.item_ids).astype(np.int64)
    costs = [_tokens(session, run_ids, item_ids) if tokens else np.full(len(item_ids), np.nan) for run_ids in runs]
    return BothSides(
        item_ids,
        _on_items(item_ids, ours.item_ids, outcomes),
        _on_items(item_ids, theirs.item_ids, theirs.outcomes),
        costs[0],
        costs[1],
        copied,
        tuple(runs[0]),
        tuple(runs[1]),
    )


def find_baseline(*, session: Session, corpus: str) -> Decision | None:
    """The newest approval on any version of a corpus: its judge is the baseline."""
    query = (
        select(Decision)
        .join(Corpus, CORPUS.id == DECISION.corpus_id)
        .where(CORPUS.name == corpus, DECISION.kind == DecisionKind.APPROVED)
        .order_by(DECISION.id.desc())
    )
    return session.scalars(query).first()


def list_decisions(*, session: Session, corpus: str | None = None) -> pd.DataFrame:
    """Every recorded decision, newest first.

    Columns: id, created_at, kind, judge, model, judge_id, fingerprint, corpus, corpus_version, corpus_id, baseline,
    rule, author, reason, evidence.
    """
    before = Judge.__table__.alias("before").c
    rule = TrustRule.__table__.c
    query = (
        select(
            DECISION.id,
            DECISION.created_at,
            DECISION.kind,
            JUDGE.name.label("judge"),
            JUDGE.model,
            DECISION.judge_id,
            JUDGE.fingerprint,
            CORPUS.name.label("corpus"),
            CORPUS.version.label("corpus_version"),
            DECISION.corpus_id,
            before.name.label("baseline"),
            rule.name.label("rule"),
            DECISION.author,
            DECISION.reason,
            DECISION.evidence,
        )
        .select_from(Decision.__table__)
        .join(Judge.__table__, JUDGE.id == DECISION.judge_id)
        .join(Corpus.__table__, CORPUS.id == DECISION.corpus_id)
        .outerjoin(before.id.table, before.id == DECISION.baseline_judge_id)
        .outerjoin(TrustRule.__table__, rule.id == DECISION.trust_rule_id)
        .order_by(DECISION.id.desc())
    )
    if corpus is not None:
        query = query.where(CORPUS.name == corpus)
    result = session.execute(query)
    return pd.DataFrame(result.all(), columns=list(result.keys()))


def list_identity(*, session: Session, judge_id: int, corpus_id: int) -> list[tuple[str, str]]:
    """Every part of a judge and its corpus that a reader needs to make the same judge again, with hashes.

    Raises:
        ValueError: When there is no such judge or corpus.
    """
    judge, corpus = session.get(Judge, judge_id), session.get(Corpus, corpus_id)
    rubric = session.get(Rubric, judge.rubric_id) if judge else None
    if judge is None or corpus is None or rubric is None:
        raise ValueError(f"there is no judge {judge_id} or no corpus {corpus_id}")
    items = session.scalar(select(func.count()).where(CorpusItem.__table__.c.corpus_id == corpus_id))
    return [
        ("Judge", judge.name),
        ("Fingerprint", judge.fingerprint),
        ("Requested model", judge.model or "not recorded"),
        ("Prompt version", judge.prompt_version or "not recorded"),
        ("Prompt SHA-256", hashlib.sha256(judge.prompt.encode()).hexdigest() if judge.prompt else "not recorded"),
        ("Rubric", f"{rubric.name} v{rubric.version}"),
        ("Rubric SHA-256", rubric.sha256),
        ("Output schema", json.dumps(judge.output_schema, sort_keys=True) if judge.output_schema else "not recorded"),
        ("Request parameters", json.dumps(judge.parameters, sort_keys=True) if judge.parameters else "not recorded"),
        ("Parser version", judge.parser_version or "not recorded"),
        ("Aggregation", judge.aggregation),
        ("Source", "simulated" if judge.simulated else judge.kind),
        ("Corpus", f"{corpus.name} v{corpus.version}, {items:,} items"),
        ("Corpus SHA-256", corpus.sha256),
    ]


def _on_items(item_ids: NDArray[np.int64], own: NDArray[np.int64], outcomes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    spread = np.full((len(item_ids), outcomes.shape[1]), NOT_MADE, np.uint8)
    spread[np.searchsorted(item_ids, own)] = outcomes
    return spread


def _tokens(session: Session, run_ids: Sequence[int], item_ids: NDArray[np.int64]) -> NDArray[np.float64]:
    spent = func.avg(func.coalesce(CALL.input_tokens, 0) + func.coalesce(CALL.output_tokens, 0))
    query = (
        select(CALL.item_id, spent)
        .where(CALL.run_id.in_(run_ids), CALL.output_tokens.is_not(None))
        .group_by(CALL.item_id)
    )
    means = dict(session.execute(query).all())
    return np.array([float(means.get(item, np.nan)) for item in item_ids.tolist()])
