"""The rubric of an import: given as levels and gates or by name, and proposed from what the file holds.

A proposal is never used by itself: levels come from a rubric, not from data.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Mapping as AnyMapping
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite

from sqlmodel import Session, col, select

from core.ingest.mapping import LABEL_JOINER, OK, STATUS_WORDS, Mapping
from core.ingest.records import ImportRefused, Problem, Record
from core.ingest.scoring import canonical, known_words, number
from core.store.label_queries import get_rubric_spec
from core.store.specs import CriterionSpec, LevelSpec, RubricSpec
from core.store.tables import Rubric
from core.store.vectors import MOST_LEVELS

DEFAULT_CRITERION = "overall"
"""Key of the criterion where the file names none."""

_MOST_VALUES = 20
_MOST_CRITERIA = 200


@dataclass(frozen=True)
class Proposal:
    """What one criterion's levels might be, for a person to confirm.

    Attributes:
        criterion: Its key.
        values: Distinct numbers with an ok status, ascending; empty when there are too many to be levels.
        rows: How often each stands in the file, in the order of `values`.
        words: Texts with an ok status that are neither numbers nor mapped to one, the most frequent first.
    """

    criterion: str
    values: tuple[float, ...]
    rows: tuple[int, ...]
    words: tuple[str, ...]

    def options(self) -> str:
        """Command-line options that would accept the proposal, with the highest level as gate."""
        levels = ",".join(map(canonical, self.values)) or "LOW:HIGH:STEP"
        gate = canonical(self.values[-1]) if self.values else "VALUE"
        return f"--levels {self.criterion}={levels} --gate {self.criterion}={gate}"


def propose(records: Iterable[Record | Problem], mapping: Mapping) -> tuple[Proposal, ...]:
    """Criteria of a file and the values under them, in order of first appearance.

    Only values with an ok status count. Labels are looked at where the file has no scores.
    """
    statuses = known_words(STATUS_WORDS, mapping.statuses)
    scored = mapping.has("score")
    counts: Counter[tuple[str, str, str]] = Counter()
    for record in records:
        if isinstance(record, Record):
            key = (record.criterion, record.score if scored else record.label, record.status)
            if key in counts or len(counts) < _MOST_VALUES * _MOST_CRITERIA * 50:
                counts[key] += 1
    criteria: dict[str, Counter[str]] = {}
    for (criterion, text, status), rows in counts.items():
        values = criteria.setdefault(criterion.strip() or DEFAULT_CRITERION, Counter())
        if statuses.get(status.strip().casefold()) == OK:
            for part in [text] if scored else text.split(LABEL_JOINER):
                if part.strip():
                    values[part.strip()] += rows
    return tuple(_proposal(key, values, mapping) for key, values in criteria.items())


def _proposal(key: str, texts: Counter[str], mapping: Mapping) -> Proposal:
    aliases = {word.strip().casefold(): value for word, value in mapping.values.items()}
    numbers: Counter[float] = Counter()
    words: Counter[str] = Counter()
    for text, rows in texts.items():
        value = aliases.get(text.casefold(), number(text))
        if value is None:
            words[text] += rows
        else:
            numbers[value] += rows
    values = sorted(numbers) if len(numbers) <= _MOST_VALUES else []
    unknown = tuple(word for word, _ in words.most_common(_MOST_VALUES))
    return Proposal(key, tuple(values), tuple(numbers[value] for value in values), unknown)


def parse_levels(text: str) -> tuple[float, ...]:
    """Level values from "1,2,3" or a range "0:1:0.01", both ends included.

    Raises:
        ImportRefused: For a text that is neither, or too many levels.
    """
    try:
        if ":" not in text:
            return _finite(float(Decimal(part.strip())) for part in text.split(","))
        low, high, step = (Decimal(part.strip()) for part in text.split(":"))
        if step <= 0 or (high - low) / step >= MOST_LEVELS:
            raise ImportRefused(f"levels {text}: the step must be above 0 and give at most {MOST_LEVELS} levels")
        return _finite(float(low + step * place) for place in range(int((high - low) / step) + 1))
    except ImportRefused:
        raise
    except (ArithmeticError, ValueError) as error:
        raise ImportRefused(f"levels {text!r} are neither numbers like 1,2,3 nor a range like 0:1:0.01") from error


def _finite(values: Iterable[float]) -> tuple[float, ...]:
    found = tuple(sorted(values))
    if not all(map(isfinite, found)):
        raise ValueError(found)
    return found


def from_levels(
    name: str, criteria: Sequence[str], levels: AnyMapping[str, tuple[float, ...]], gates: AnyMapping[str, float]
) -> RubricSpec:
    """A rubric without anchors.

    Args:
        name: Its name.
        criteria: The keys of its criteria.
        levels: Values by criterion; the key "" stands for every criterion not named.
        gates: Gate by criterion; the key "" likewise.

    Raises:
        ImportRefused: For a criterion without levels or gate, or levels no rubric can have.
    """
    parts = []
    for key in criteria:
        values, gate = levels.get(key, levels.get("")), gates.get(key, gates.get(""))
        if values is None:
            raise ImportRefused(f"criterion {key} has no levels; give --levels {key}=1,2,3")
        if gate is None:
            raise ImportRefused(f"criterion {key} has no gate; give --gate {key}={canonical(values[-1])}")
        parts.append((key, values, gate))
    try:
        return RubricSpec(
            name, tuple(CriterionSpec(key, tuple(map(LevelSpec, values)), gate) for key, values, gate in parts)
        )
    except ValueError as error:
        raise ImportRefused(str(error)) from error


def get_rubric(*, session: Session, name: str, version: int | None = None) -> RubricSpec | None:
    """The stored rubric of this name, its newest version unless one is given."""
    wanted = select(Rubric.id).where(col(Rubric.name) == name).order_by(col(Rubric.version).desc())
    if version is not None:
        wanted = wanted.where(col(Rubric.version) == version)
    rubric_id = session.scalars(wanted).first()
    return None if rubric_id is None else get_rubric_spec(session=session, rubric_id=rubric_id)
