"""What callers hand to `writes`: plain values, without ids of their own."""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from core.store.tables import JudgeKind, Order, Slice
from core.store.vectors import MOST_LEVELS


@dataclass(frozen=True, slots=True)
class LevelSpec:
    """One value of a criterion and what a reader must see to give it."""

    value: float
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class CriterionSpec:
    """One property to score.

    Attributes:
        key: Short name, unique in the rubric.
        levels: In rubric order, at least two, values ascending.
        gate: The score at and above which an item passes.
        question: What the judge is asked.
        weight: Share in the total.
        veto: Whether failing it fails the item whatever the rest says.

    Raises:
        ValueError: When the levels do not ascend, are fewer than two or too many, or the gate lies outside them.
    """

    key: str
    levels: tuple[LevelSpec, ...]
    gate: float
    question: str = ""
    weight: float = 1.0
    veto: bool = False

    def __post_init__(self) -> None:
        values = [level.value for level in self.levels]
        if not 2 <= len(values) <= MOST_LEVELS:
            raise ValueError(f"criterion {self.key}: {len(values)} levels; a criterion has 2 to {MOST_LEVELS}")
        if values != sorted(set(values)):
            raise ValueError(f"criterion {self.key}: level values must ascend and differ, got {values}")
        if not values[0] < self.gate <= values[-1]:
            raise ValueError(
                f"criterion {self.key}: gate {self.gate:g} must lie above {values[0]:g} (or everything passes) "
                f"and not above {values[-1]:g} (or nothing does)"
            )


@dataclass(frozen=True, slots=True)
class RubricSpec:
    """Criteria under one name; `sha256` tells two versions apart."""

    name: str
    criteria: tuple[CriterionSpec, ...]
    instructions: str = ""
    ready_rule: str = ""
    simulated: bool = False

    def __post_init__(self) -> None:
        keys = [criterion.key for criterion in self.criteria]
        if not keys:
            raise ValueError(f"rubric {self.name}: it needs at least one criterion")
        if len(set(keys)) < len(keys):
            raise ValueError(f"rubric {self.name}: criterion keys must differ, got {keys}")

    @property
    def sha256(self) -> str:
        """Hash over everything that a judge or a reader sees of the rubric."""
        return _digest(asdict(self) | {"name": None, "simulated": None})


@dataclass(frozen=True, slots=True)
class JudgeSpec:
    """The parts of a judge; any difference but the name is another judge."""

    name: str
    rubric_id: int
    rubric_sha256: str
    kind: JudgeKind = JudgeKind.IMPORTED
    model: str = ""
    family: str = ""
    prompt_version: str = ""
    prompt: str | None = None
    output_schema: dict[str, Any] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    parser_version: str = ""
    aggregation: str = "per criterion"
    pairwise: bool = False
    simulated: bool = False

    @property
    def fingerprint(self) -> str:
        """SHA-256 over every part; an imported judge that names no model or prompt is told apart by its name."""
        parts = asdict(self) | {"rubric_id": None, "family": None}
        if self.model or self.prompt_version or self.prompt:
            parts["name"] = None
        return _digest(parts)


class ItemSpec(NamedTuple):
    """What is judged; `content_sha256` is the hash of the judged text, empty when the source holds neither."""

    key: str
    content_sha256: str = ""
    slice: str = Slice.PRODUCTION
    system: str = ""
    request: str | None = None
    reference: str | None = None
    candidate: str | None = None
    candidate_b: str | None = None
    system_b: str = ""
    pair: bool = False


class ScoreRow(NamedTuple):
    """One criterion's outcome: a value that is a level of the rubric, or the reason there is none."""

    criterion_id: int
    value: float | None
    unscored: str | None = None
    raw_value: str | None = None
    rationale: str | None = None
    cited_evidence: str | None = None
    boundary_reason: str | None = None
    confidence: float | None = None


class CallRow(NamedTuple):
    """One request and its reply, with the scores read out of it."""

    item_id: int
    repetition: int
    slot_order: str = Order.SINGLE
    part: str = ""
    attempt: int = 1
    response_id: str | None = None
    request_id: str | None = None
    served_model: str | None = None
    stop_reason: str | None = None
    raw_reply: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    latency_ms: int | None = None
    repaired: bool = False
    created_at: datetime | None = None
    scores: tuple[ScoreRow, ...] = ()


class LabelRow(NamedTuple):
    """One person's score of one item."""

    item_id: int
    criterion_id: int
    value: float
    rater: str = ""
    raw_value: str | None = None
    reason: str | None = None


def content_hash(*texts: str | None) -> str:
    """SHA-256 of the judged text; of a pair, over both candidates with a separator no text contains."""
    return hashlib.sha256("\x00".join(text or "" for text in texts).encode()).hexdigest()


def _digest(parts: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()
