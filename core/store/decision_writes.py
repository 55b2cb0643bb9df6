"""Recording the end of a promotion review. Decisions are append-only; the newest approval names the baseline."""

from collections.abc import Mapping
from typing import Any

from sqlmodel import Session

from core.store.tables import Decision, DecisionKind


def record_decision(
    *,
    session: Session,
    kind: DecisionKind,
    judge_id: int,
    corpus_id: int,
    baseline_judge_id: int | None,
    rule_id: int | None,
    author: str,
    reason: str,
    evidence: Mapping[str, Any],
) -> Decision:
    """Append a decision.

    Args:
        session: An open write session.
        kind: Approved, rejected, or more evidence asked for.
        judge_id: The candidate.
        corpus_id: The corpus version the evidence comes from.
        baseline_judge_id: The judge it was held against; None for the first baseline.
        rule_id: The frozen rule; None for the first baseline.
        author: Who decided.
        reason: Why, in their words.
        evidence: What was on screen, as numbers.

    Raises:
        ValueError: Without an author or a reason.
    """
    if not author.strip() or not reason.strip():
        raise ValueError("a decision needs a name and a reason")
    decision = Decision(
        kind=kind,
        judge_id=judge_id,
        corpus_id=corpus_id,
        baseline_judge_id=baseline_judge_id,
        trust_rule_id=rule_id,
        author=author.strip(),
        reason=reason.strip(),
        evidence=dict(evidence),
    )
    session.add(decision)
    session.flush()
    return decision
