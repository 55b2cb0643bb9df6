"""Writes for judges of pairs: the families that people name."""

from collections.abc import Mapping
from enum import StrEnum

from sqlmodel import Session

from core.store.tables import Family


class Named(StrEnum):
    """What a family is named for."""

    JUDGE = "judge"
    SYSTEM = "system"


def save_families(*, session: Session, families: Mapping[tuple[str, str], str]) -> None:
    """Set the family of judges and systems, by (kind, name); an empty family takes the entry away.

    Raises:
        ValueError: For a kind that is neither "judge" nor "system".
    """
    for (kind, name), family in families.items():
        known = session.get(Family, (Named(kind).value, name))
        if not family.strip():
            if known:
                session.delete(known)
        elif known:
            known.family = family.strip()
            session.add(known)
        else:
            session.add(Family(kind=Named(kind).value, name=name, family=family.strip()))
    session.flush()
