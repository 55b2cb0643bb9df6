"""All tables. Calls, scores and labels are append-only; `migrations` adds the triggers that enforce it."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, ClassVar

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
)
from sqlalchemy import UniqueConstraint as Unique
from sqlalchemy.orm import registry
from sqlalchemy.types import TypeDecorator
from sqlmodel import Field, SQLModel

BIG_ID = BigInteger().with_variant(Integer, "sqlite")
"""A 64-bit key; SQLite counts up by itself only for a column named INTEGER."""


class Slice(StrEnum):
    """Why an item is in its corpus."""

    ANCHOR = "anchor"
    BOUNDARY = "boundary"
    NUISANCE = "nuisance"
    ADVERSARIAL = "adversarial"
    CONTRAST = "contrast"
    PRODUCTION = "production"


class Unscored(StrEnum):
    """Why a call gave no usable score. An unscored call is never a score."""

    REFUSAL = "refusal"
    TRUNCATED = "truncated"
    NOT_JSON = "not_json"
    MISSING_CRITERION = "missing_criterion"
    OUT_OF_RANGE = "out_of_range"
    WRONG_TYPE = "wrong_type"
    NO_RATIONALE = "no_rationale"
    REQUEST_ERROR = "request_error"
    VERDICT_MISSING = "verdict_missing"
    CONFLICTING_VERDICTS = "conflicting_verdicts"
    CANCELLED = "cancelled"


class Order(StrEnum):
    """Which candidate stood in slot 1; single items have no order."""

    SINGLE = ""
    AB = "ab"
    BA = "ba"


class JudgeKind(StrEnum):
    """Where a judge's calls come from."""

    IMPORTED = "imported"
    ANTHROPIC = "anthropic"
    LOCAL = "local"
    REPLAY = "replay"
    PROGRAM = "program"


class RunStatus(StrEnum):
    """Where a run stands; what was imported is done."""

    RUNNING = "running"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    DONE = "done"
    FAILED = "failed"


class DecisionKind(StrEnum):
    """What a promotion review ended in."""

    APPROVED = "approved"
    REJECTED = "rejected"
    MORE_EVIDENCE = "more_evidence"


class UtcDateTime(TypeDecorator[datetime]):
    """An aware UTC time: SQLite keeps no zone, so it is put back on reading."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - signature of SQLAlchemy
        """Refuse a time without a zone: it could mean any hour."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"the time {value.isoformat()} has no zone; give an aware datetime")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - signature of SQLAlchemy
        """Return the stored time as UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def utc_now() -> datetime:
    """The current time, aware."""
    return datetime.now(UTC)


class Base(SQLModel, registry=registry()):
    """Root of Evenhand's tables: a registry of their own survives Streamlit's hot reload."""

    __table__: ClassVar[Table]


def _created_at() -> Any:
    return Field(default_factory=utc_now, sa_type=UtcDateTime, nullable=False)


def _json(default: Any) -> Any:
    return Field(default_factory=default, sa_type=JSON, nullable=False)


def _key() -> Any:
    return Field(default=None, sa_column=Column(BIG_ID, primary_key=True, autoincrement=True))


class Corpus(Base, table=True):
    """A versioned, frozen set of items."""

    __table_args__ = (Unique("name", "version"),)

    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(index=True)
    version: int = 1
    sha256: str = Field(default="", description="Hash over its items' keys and content hashes")
    simulated: bool = False
    note: str = ""
    created_at: datetime = _created_at()


class Item(Base, table=True):
    """What is judged: one candidate, or two for a pair. Immutable: another text is another item."""

    __table_args__ = (Unique("collection", "key", "content_sha256"),)

    id: int | None = _key()
    collection: str = Field(description="Name of the corpus in which the key is unique")
    key: str
    content_sha256: str = Field(default="", description="SHA-256 of the judged text; empty when the source gave none")
    slice: str = Slice.PRODUCTION
    system: str = ""
    request: str | None = None
    reference: str | None = None
    candidate: str | None = None
    candidate_b: str | None = Field(default=None, description="The second candidate of a pair")
    system_b: str = ""
    pair: bool = False
    created_at: datetime = _created_at()


class CorpusItem(Base, table=True):
    """Membership of an item in a corpus version."""

    __tablename__ = "corpus_item"

    corpus_id: int = Field(foreign_key="corpus.id", primary_key=True)
    item_id: int = Field(sa_column=Column(BIG_ID, ForeignKey("item.id"), primary_key=True, index=True))


class Rubric(Base, table=True):
    """Criteria with their levels; a change is a new version."""

    __table_args__ = (Unique("name", "version"),)

    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(index=True)
    version: int = 1
    sha256: str = Field(index=True)
    instructions: str = ""
    ready_rule: str = Field(default="", description="When an answer is ready, in the rule language; empty: every gate")
    simulated: bool = False
    created_at: datetime = _created_at()


class Criterion(Base, table=True):
    """One property that a rubric scores."""

    __table_args__ = (Unique("rubric_id", "key"),)

    id: int | None = Field(default=None, primary_key=True)
    rubric_id: int = Field(foreign_key="rubric.id", index=True)
    key: str
    question: str = ""
    position: int = 0
    weight: float = 1.0
    gate: float = Field(description="The score at and above which an item passes")
    veto: bool = False


class Level(Base, table=True):
    """One value a criterion can take, with its observable anchor."""

    __table_args__ = (Unique("criterion_id", "value"),)

    id: int | None = Field(default=None, primary_key=True)
    criterion_id: int = Field(foreign_key="criterion.id", index=True)
    position: int
    value: float
    anchor: str = ""


class RubricChange(Base, table=True):
    """One dated line of a rubric's change log."""

    __tablename__ = "rubric_change"

    id: int | None = Field(default=None, primary_key=True)
    rubric_id: int = Field(foreign_key="rubric.id", index=True)
    author: str = ""
    line: str
    reason: str = ""
    created_at: datetime = _created_at()


class Judge(Base, table=True):
    """An immutable fingerprint: any difference in its parts is another judge."""

    id: int | None = Field(default=None, primary_key=True)
    fingerprint: str = Field(unique=True, description="SHA-256 over every part below but the name")
    name: str = Field(index=True)
    kind: str = JudgeKind.IMPORTED
    model: str = Field(default="", description="Requested model snapshot")
    family: str = Field(default="", description="Model family, for self-preference")
    prompt_version: str = ""
    prompt: str | None = None
    rubric_id: int = Field(foreign_key="rubric.id", index=True)
    output_schema: dict[str, Any] = _json(dict)
    parameters: dict[str, Any] = _json(dict)
    parser_version: str = ""
    aggregation: str = "per criterion"
    pairwise: bool = False
    simulated: bool = False
    created_at: datetime = _created_at()


class ImportFile(Base, table=True):
    """A file that was read, known again by its hash."""

    __tablename__ = "import_file"

    id: int | None = Field(default=None, primary_key=True)
    sha256: str = Field(index=True)
    name: str
    format: str
    mapping: dict[str, Any] = _json(dict)
    rows: int = 0
    imported: int = 0
    set_aside: int = 0
    created_at: datetime = _created_at()


class SetAsideLine(Base, table=True):
    """A line that was not imported, and why."""

    __tablename__ = "set_aside_line"

    id: int | None = _key()
    import_file_id: int = Field(foreign_key="import_file.id", index=True)
    line: int
    column: str = ""
    value: str = ""
    reason: str


class ImportMapping(Base, table=True):
    """The confirmed mapping of columns to roles for files of one shape."""

    __tablename__ = "import_mapping"

    id: int | None = Field(default=None, primary_key=True)
    shape_sha256: str = Field(index=True, description="Hash of the header")
    mapping: dict[str, Any] = _json(dict)
    created_at: datetime = _created_at()


class Run(Base, table=True):
    """One batch of calls of one judge over one corpus."""

    id: int | None = Field(default=None, primary_key=True)
    judge_id: int = Field(foreign_key="judge.id", index=True)
    corpus_id: int = Field(foreign_key="corpus.id", index=True)
    import_file_id: int | None = Field(default=None, foreign_key="import_file.id")
    name: str = ""
    status: str = "done"
    revision: int = Field(default=0, description="Goes up with every write to the run: the key of everything cached")
    simulated: bool = False
    created_at: datetime = _created_at()


class Call(Base, table=True):
    """One request and its raw reply. Append-only."""

    __table_args__ = (
        Unique("run_id", "item_id", "repetition", "slot_order", "part", "attempt"),
        Index("ix_call_response_id", "response_id", sqlite_where=Column("response_id").is_not(None)),
    )

    id: int | None = _key()
    run_id: int = Field(foreign_key="run.id")
    item_id: int = Field(sa_type=BIG_ID, foreign_key="item.id")
    repetition: int
    slot_order: str = Order.SINGLE
    part: str = Field(default="", description="The criterion asked for, where each criterion is a request of its own")
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
    created_at: datetime | None = Field(default=None, sa_type=UtcDateTime, description="When the judge answered")


class Score(Base, table=True):
    """One criterion's value out of a call, or why there is none. Append-only."""

    __table_args__ = (
        CheckConstraint("(value IS NULL) <> (unscored IS NULL)", name="scored_or_unscored"),
        Unique("call_id", "criterion_id"),
    )

    id: int | None = _key()
    call_id: int = Field(sa_type=BIG_ID, foreign_key="call.id")
    criterion_id: int = Field(foreign_key="criterion.id")
    value: float | None = None
    unscored: str | None = None
    raw_value: str | None = Field(default=None, description="What the source wrote, where it is not the value itself")


class ScoreEvidence(Base, table=True):
    """The words behind a score, apart from it so that charts never read text. Append-only."""

    __tablename__ = "score_evidence"

    score_id: int = Field(sa_column=Column(BIG_ID, ForeignKey("score.id"), primary_key=True, autoincrement=False))
    rationale: str | None = None
    cited_evidence: str | None = None
    boundary_reason: str | None = None
    confidence: float | None = None


class ItemVector(Base, table=True):
    """All outcomes of an item in a run for one criterion and order: one byte a repetition.

    Kept by `writes` beside the scores, from which it can be rebuilt, so that a chart of ten million scores reads half a
    million short rows. Codes are in `core.store.vectors`.
    """

    __tablename__ = "item_vector"
    __table_args__ = ({"sqlite_with_rowid": False},)

    run_id: int = Field(foreign_key="run.id", primary_key=True)
    criterion_id: int = Field(foreign_key="criterion.id", primary_key=True)
    slot_order: str = Field(default=Order.SINGLE, primary_key=True)
    item_id: int = Field(sa_column=Column(BIG_ID, ForeignKey("item.id"), primary_key=True))
    codes: bytes = Field(sa_type=LargeBinary)


class RunTally(Base, table=True):
    """How many calls of a run ended in each outcome, for one criterion and order: "scored" or an unscored reason."""

    __tablename__ = "run_tally"

    run_id: int = Field(foreign_key="run.id", primary_key=True)
    criterion_id: int = Field(foreign_key="criterion.id", primary_key=True)
    slot_order: str = Field(default=Order.SINGLE, primary_key=True)
    outcome: str = Field(primary_key=True)
    calls: int = 0


class LabelSet(Base, table=True):
    """Labels made under one written policy."""

    __tablename__ = "label_set"
    __table_args__ = (Unique("name", "version"),)

    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(index=True)
    version: int = 1
    policy: str = ""
    rubric_id: int = Field(foreign_key="rubric.id", index=True)
    import_file_id: int | None = Field(default=None, foreign_key="import_file.id")
    simulated: bool = False
    created_at: datetime = _created_at()


class Label(Base, table=True):
    """A person's score of one item on one criterion. Append-only: the newest of a rater counts."""

    id: int | None = _key()
    label_set_id: int = Field(foreign_key="label_set.id", index=True)
    item_id: int = Field(sa_type=BIG_ID, foreign_key="item.id", index=True)
    criterion_id: int = Field(foreign_key="criterion.id")
    rater: str = ""
    value: float
    raw_value: str | None = None
    reason: str | None = None
    created_at: datetime = _created_at()


class Adjudication(Base, table=True):
    """The recorded resolution of labels that differ; the originals stay. Append-only."""

    id: int | None = _key()
    label_set_id: int = Field(foreign_key="label_set.id", index=True)
    item_id: int = Field(sa_type=BIG_ID, foreign_key="item.id", index=True)
    criterion_id: int = Field(foreign_key="criterion.id")
    value: float
    author: str
    note: str = ""
    created_at: datetime = _created_at()


class LabelQueue(Base, table=True):
    """What a label set's readers were asked to label, and how it was chosen. Append-only: the newest one counts."""

    __tablename__ = "label_queue"

    id: int | None = Field(default=None, primary_key=True)
    label_set_id: int = Field(foreign_key="label_set.id", index=True)
    raters: list[str] = _json(list)
    seed: int = 0
    double_share: float = Field(description="Share of the items that two readers label")
    note: str = Field(default="", description="What it was built from, in words")
    created_at: datetime = _created_at()


class QueueItem(Base, table=True):
    """One item of a labelling queue. Append-only."""

    __tablename__ = "queue_item"
    __table_args__ = (Unique("queue_id", "item_id"),)

    id: int | None = _key()
    queue_id: int = Field(foreign_key="label_queue.id")
    item_id: int = Field(sa_type=BIG_ID, foreign_key="item.id", index=True)
    position: int
    slot: int = Field(description="Place of its reader among the queue's raters")
    second_slot: int | None = Field(default=None, description="Place of its second reader, where two label it")
    why: str = ""


class BlindRanking(Base, table=True):
    """One reader's order of the candidates for one request, seen by letter only. Append-only: the newest one counts."""

    __tablename__ = "blind_ranking"

    id: int | None = _key()
    label_set_id: int = Field(foreign_key="label_set.id", index=True)
    rater: str
    request_sha256: str = Field(description="Which request: the hash of its text")
    item_ids: list[int] = _json(list)
    ranks: list[int] = _json(list)
    reason: str = ""
    created_at: datetime = _created_at()


class TrustRule(Base, table=True):
    """Thresholds frozen before the measurement. Append-only."""

    __tablename__ = "trust_rule"

    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(index=True)
    author: str
    thresholds: dict[str, Any] = _json(dict)
    sha256: str
    labels_seen: int = Field(
        default=0, description="Labels that existed when the rule was frozen; above 0 it came late"
    )
    created_at: datetime = _created_at()


class Decision(Base, table=True):
    """The recorded end of a promotion review. Append-only; the newest approval names the baseline."""

    id: int | None = Field(default=None, primary_key=True)
    kind: str
    judge_id: int = Field(foreign_key="judge.id", index=True)
    corpus_id: int = Field(foreign_key="corpus.id", index=True)
    baseline_judge_id: int | None = Field(default=None, foreign_key="judge.id")
    trust_rule_id: int | None = Field(default=None, foreign_key="trust_rule.id")
    author: str
    reason: str
    evidence: dict[str, Any] = _json(dict)
    created_at: datetime = _created_at()


class Family(Base, table=True):
    """The model family of a judge or of a system whose candidates are judged, as a person entered it."""

    kind: str = Field(primary_key=True, description="What is named: judge or system")
    name: str = Field(primary_key=True)
    family: str
    created_at: datetime = _created_at()


class PlannedCall(Base, table=True):
    """One call that a run intends to make, written before the first request. Append-only."""

    __tablename__ = "planned_call"
    __table_args__ = (
        Unique("run_id", "sequence"),
        Unique("run_id", "item_id", "repetition", "slot_order", "part"),
        Index("ix_planned_call_chunk", "run_id", "chunk"),
    )

    id: int | None = _key()
    run_id: int = Field(foreign_key="run.id")
    sequence: int = Field(description="Place in the run: all items once, then again")
    chunk: int = Field(description="Number of the chunk that a worker takes at once")
    item_id: int = Field(sa_type=BIG_ID, foreign_key="item.id")
    repetition: int
    slot_order: str = Order.SINGLE
    part: str = ""


class CallAttempt(Base, table=True):
    """An attempt at a planned call: one row before it is asked, and one if it failed. Append-only.

    An attempt that was answered ends in its call; one whose worker died ends in nothing.
    """

    __tablename__ = "call_attempt"
    __table_args__ = (Unique("planned_call_id", "attempt", "event"), Index("ix_call_attempt_run", "run_id", "event"))

    id: int | None = _key()
    run_id: int = Field(foreign_key="run.id")
    planned_call_id: int = Field(sa_type=BIG_ID, foreign_key="planned_call.id")
    attempt: int
    event: str = Field(description="started or failed")
    worker: str = ""
    message_batch_id: int | None = Field(default=None, foreign_key="message_batch.id", index=True)
    status: int | None = Field(default=None, description="HTTP status of the failure")
    error: str | None = None
    created_at: datetime = _created_at()


class RunState(Base, table=True):
    """How a planned run stands, what it may spend and what it has spent."""

    __tablename__ = "run_state"

    run_id: int = Field(foreign_key="run.id", primary_key=True)
    state: str = Field(default=RunStatus.RUNNING, index=True)
    batched: bool = Field(default=False, description="Whether calls go through Message Batches")
    redaction: dict[str, str] = _json(dict)
    concurrency: int = Field(default=4, description="Most calls in flight in one worker")
    planned: int = Field(default=0, description="Planned calls")
    pilot: bool = Field(default=False, description="Whether the run pauses once its first chunk is done")
    spending_limit: float | None = Field(default=None, description="US dollars")
    input_price: float | None = Field(default=None, description="US dollars a million tokens; none: no price known")
    output_price: float | None = None
    price_date: str = ""
    call_reserve: float = Field(default=0.0, description="US dollars set aside for each call in flight")
    spent: float = Field(default=0.0, description="US dollars by the tokens of the replies")
    input_tokens: int = Field(default=0, sa_type=BIG_ID)
    output_tokens: int = Field(default=0, sa_type=BIG_ID)
    error: str = Field(default="", description="Why it stopped")
    what_to_do: str = ""
    worker: str = Field(default="", description="Who sends and reads the run's Message Batches")
    started_at: datetime = _created_at()
    ended_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class PlanChunk(Base, table=True):
    """Planned calls that one worker takes at once."""

    __tablename__ = "plan_chunk"

    run_id: int = Field(foreign_key="run.id", primary_key=True)
    number: int = Field(primary_key=True)
    generation: int = Field(default=0, description="Goes up whenever the chunk is queued; who has an older one lost it")
    worker: str = Field(default="", description="Who has it; empty: nobody yet")
    queued_at: datetime | None = Field(default=None, sa_type=UtcDateTime, description="Empty: not in the queue")
    in_flight: int = 0
    done: bool = False


class MessageBatch(Base, table=True):
    """A Message Batch: its provider's id is stored before it is polled."""

    __tablename__ = "message_batch"

    id: int | None = Field(default=None, primary_key=True)
    run_id: int = Field(foreign_key="run.id", index=True)
    batch_id: str = Field(default="", description="The provider's id; empty until it answered")
    status: str = Field(default="creating", description="creating, in_progress, recorded or lost")
    requests: int = 0
    error: str = ""
    created_at: datetime = _created_at()
    ended_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class Schedule(Base, table=True):
    """A corpus that a judge scores again and again."""

    id: int | None = Field(default=None, primary_key=True)
    corpus_id: int = Field(foreign_key="corpus.id")
    judge_id: int = Field(foreign_key="judge.id")
    repetitions: int = 1
    options: dict[str, Any] = _json(dict)
    cron: str = Field(description="Minute, hour, day, month and weekday, in UTC")
    active: bool = True
    next_at: datetime = Field(sa_type=UtcDateTime, nullable=False)
    last_run_id: int | None = Field(default=None, foreign_key="run.id")
    error: str = ""
    created_at: datetime = _created_at()


class Worker(Base, table=True):
    """A process that makes calls, and when it was last seen."""

    name: str = Field(primary_key=True)
    process: int = Field(default=0, description="Its process id on its machine")
    started_at: datetime = _created_at()
    seen_at: datetime = _created_at()


class RedactionPattern(Base, table=True):
    """One kind of detail that is taken out of texts before they leave, where a run asks for it."""

    __tablename__ = "redaction_pattern"

    name: str = Field(primary_key=True)
    place: int = Field(description="The first pattern that matches at a place of a text wins")
    expression: str


class StoreRevision(Base, table=True):
    """One row that goes up with every write transaction."""

    __tablename__ = "store_revision"

    id: int = Field(default=1, primary_key=True)
    revision: int = 0


APPEND_ONLY = (
    "call",
    "score",
    "score_evidence",
    "label",
    "adjudication",
    "trust_rule",
    "decision",
    "label_queue",
    "queue_item",
    "blind_ranking",
    "planned_call",
    "call_attempt",
)
"""Tables whose rows no one may change or delete."""
