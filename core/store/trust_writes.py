"""Freezing a trust rule: its time, its author, the hash of what it says, and how many labels existed by then."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from sqlmodel import Session

from core.store.agreement_queries import count_labels
from core.store.tables import TrustRule

CORPUS = "corpus"
CRITERION = "criterion"
"""Entries of `thresholds` that say what the rule was written for."""


def freeze_trust_rule(
    *, session: Session, name: str, author: str, thresholds: Mapping[str, Any], corpus: str, criterion: str
) -> TrustRule:
    """Append a rule, which nobody can change afterwards.

    The labels of the criterion on the corpus that exist now are counted in the same transaction, whatever their set: a
    rule with any is marked as made after the labels were seen, for ever.

    Args:
        session: An open write session.
        name: What the rule is called.
        author: Who answers for it.
        thresholds: What it asks for.
        corpus: Name of the corpus it is written for.
        criterion: Key of the criterion it is written for.

    Raises:
        ValueError: Without a name, an author or a threshold.
    """
    if not name.strip() or not author.strip():
        raise ValueError("a trust rule needs a name and an author who answers for it")
    if not thresholds:
        raise ValueError("a trust rule needs at least one threshold")
    content = {**thresholds, CORPUS: corpus, CRITERION: criterion}
    rule = TrustRule(
        name=name.strip(),
        author=author.strip(),
        thresholds=content,
        sha256=rule_hash(name.strip(), content),
        labels_seen=count_labels(session=session, collection=corpus, criterion=criterion),
    )
    session.add(rule)
    session.flush()
    return rule


def rule_hash(name: str, thresholds: Mapping[str, Any]) -> str:
    """SHA-256 over the name and everything the rule asks for."""
    return hashlib.sha256(json.dumps({"name": name, "asks": dict(thresholds)}, sort_keys=True).encode()).hexdigest()
