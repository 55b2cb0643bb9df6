"""From records to rows of the store, inside one open transaction."""

from array import array
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from math import isinf
from typing import NamedTuple

from sqlmodel import Session

from core.ingest.mapping import JOINER, LABEL_JOINER, ORDER_WORDS, Mapping
from core.ingest.records import CriterionMissed, ImportRefused, LineRefused, Problem, Record, shorten
from core.ingest.rubrics import DEFAULT_CRITERION
from core.ingest.scoring import Criterion, ScoreReader, known_words, number
from core.store import writes
from core.store.specs import CallRow, ItemSpec, JudgeSpec, LabelRow, ScoreRow, content_hash
from core.store.tables import Corpus, ImportFile, LabelSet, Order, Rubric, Run, Slice, Unscored
from core.store.vectors import MOST_REPETITIONS

KEPT_PROBLEMS = 10_000
"""Bad lines kept in memory; all are counted, and all reach the store or the caller."""

_BUFFERED = 20_000
_ITEM_BITS = 40
_MOST_CONFIDENCES = 100_000
_EPOCH_SECONDS = 10**8
_EPOCH_MILLISECONDS = 10**11
"""From where on a number as a time is seconds since 1970, and milliseconds; a date like 20260301 is less."""


class Problems:
    """The bad lines of a file: the first are kept, all are counted and handed on.

    Args:
        columns: Role to the columns that feed it, so that a line names what its reader sees in the file.
        hand_on: Called with every bad line.
    """

    def __init__(self, mapping: Mapping, hand_on: Iterable[Callable[[Problem], None]]) -> None:
        self._columns = {role: JOINER.join(names) for role, names in mapping.columns.items()}
        self._hand_on = tuple(hand_on)
        self.kept: list[Problem] = []
        self.count = 0

    def add(self, problem: Problem) -> None:
        """Count a bad line."""
        self.count += 1
        if len(self.kept) < KEPT_PROBLEMS:
            self.kept.append(problem)
        for receive in self._hand_on:
            receive(problem)

    def add_refusal(self, line: int, refusal: LineRefused) -> None:
        """Count a line that the importer refused."""
        column = self._columns.get(refusal.column, refusal.column)
        self.add(Problem(line, column, shorten(refusal.value), refusal.reason))


class SetAsideBook:
    """Keeps bad lines in the store, some thousands at a time."""

    def __init__(self, session: Session, file: ImportFile) -> None:
        self._session = session
        self._file = file
        self._waiting: list[tuple[int, str, str, str]] = []

    def add(self, problem: Problem) -> None:
        """Keep one line."""
        self._waiting.append((problem.line, problem.column, problem.value, problem.reason))
        if len(self._waiting) >= KEPT_PROBLEMS:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        writes.record_set_aside(session=self._session, file=self._file, lines=self._waiting)
        self._waiting = []


class JudgeRun:
    """One judge of the file with its run: calls wait here until enough are together."""

    def __init__(self, *, session: Session, name: str, run: Run, number: int, criteria: int) -> None:
        self.name = name
        self.run = run
        self.id = run.id or 0
        self.judge_id = run.judge_id
        self.number = number
        self._recorder = writes.RunRecorder(session=session, run=run)
        self._criteria = criteria
        self._waiting: list[CallRow] = []
        self.calls = 0

    def join(self, call: CallRow) -> bool:
        """Whether `call` is a further criterion of the reply just before it; if so it has joined that call."""
        last = self._waiting[-1] if self._waiting else None
        if last is None or last.response_id != call.response_id or last[:3] != call[:3]:
            return False
        self._waiting[-1] = self._joined(last, call)
        return True

    def add(self, call: CallRow) -> None:
        """Take a call."""
        self._waiting.append(call)
        self.calls += 1

    def _joined(self, last: CallRow, call: CallRow) -> CallRow:
        """One call with the scores of both; a call with every criterion of the rubric is no part."""
        scores = last.scores + call.scores
        part = "" if len(scores) == self._criteria else f"{last.part}+{call.part}"
        return last._replace(scores=scores, part=part)

    def flush(self) -> None:
        """Record what waits."""
        self._recorder.record(self._waiting)
        self._waiting = []

    def discard(self) -> None:
        """Drop what waits."""
        self._waiting = []

    def finish(self) -> None:
        """Record the rest and close the run."""
        self.flush()
        self._recorder.finish()


class _KnownItem(NamedTuple):
    id: int
    line: int
    system: str
    system_b: str
    slice: str


class _KnownLabel(NamedTuple):
    value: float
    line: int


class _ReadLabel(NamedTuple):
    rater: str
    text: str
    value: float
    column: str


class Importer:
    """Takes records one at a time and stores them.

    A refused line leaves no trace: everything on it is checked before anything of it is kept.

    Args:
        session: An open write session.
        mapping: The confirmed mapping.
        file: The row of the file.
        rubric: The stored rubric; None for a file of texts alone.
        criteria: Its criteria by key.
        collection: Name of the corpus.
        simulated: Whether the file is generated.
        all_criteria: Whether a line with another criterion is bad; otherwise it raises `CriterionMissed`.
    """

    def __init__(
        self,
        *,
        session: Session,
        mapping: Mapping,
        file: ImportFile,
        rubric: Rubric | None,
        criteria: dict[str, Criterion],
        collection: str,
        simulated: bool,
        all_criteria: bool = True,
    ) -> None:
        self._session = session
        self._mapping = mapping
        self._file = file
        self._rubric = rubric
        self._simulated = simulated
        self.criterion_ids = [criterion.id for criterion in criteria.values()]
        self._by_text = dict(criteria)
        self._criteria = len(criteria)
        self._single = next(iter(criteria.values())) if len(criteria) == 1 else criteria.get(DEFAULT_CRITERION)
        self._parted = mapping.has("criterion") and len(criteria) > 1
        self._has_scores = mapping.has("score")
        self._raters = mapping.raters
        self._all_criteria = all_criteria
        self._counted = "repetition" not in mapping.columns
        self._pair = any(map(mapping.has, ("order", "system_b", "candidate_b")))
        self._orders = known_words(ORDER_WORDS, mapping.orders)
        self._repetitions: dict[str, int] = {}
        self._confidences: dict[str, float | None] = {"": None}
        self._items: dict[tuple[str, str], _KnownItem] = {}
        self._lines: dict[int, array[int]] = {}
        self._labels: dict[tuple[int, int, str], _KnownLabel] = {}
        self._judges: dict[tuple[str, ...], JudgeRun] = {}
        self._waiting = 0
        self._storing = True
        self._collection = collection
        self._corpus = writes.open_corpus(session=session, name=collection)
        self.scores = ScoreReader(mapping)
        self.book = writes.ItemBook(session=session, collection=collection)
        self.label_rows: list[LabelRow] = []
        self.runs: list[JudgeRun] = []
        self.zoneless = 0
        self.has_response_ids = mapping.has("response_id")

    def take(self, record: Record) -> None:
        """Store one record.

        Raises:
            LineRefused: Says what is wrong with it.
        """
        criterion = self._by_text.get(record.criterion) or self._criterion(record.criterion)
        labels = self._read_labels(record, criterion) if record.label.strip() else ()
        if not self._has_scores:
            if not labels:
                raise LineRefused("label", "", "is empty")
            item_id = self._item(record).id
            self._refuse_contradiction(labels, item_id, criterion)
            self._keep_labels(labels, record, item_id, criterion)
            return
        order = self._order(record.order)
        repetition = None if self._counted else self._repetition(record.repetition)
        score = self._score(record, criterion, order)
        created_at = self._time(record.created_at) if record.created_at else None
        run = self._judges.get(record[4:8])
        if run is None:
            self._refuse_nameless(record)
        item_id = self._item(record).id
        self._refuse_contradiction(labels, item_id, criterion)
        if run is None:
            run = self._open_run(record)
        group = self._group(run, criterion, order, item_id)
        repetition = self._place(group, criterion, repetition, record)
        self._keep_labels(labels, record, item_id, criterion)
        call = CallRow(
            item_id,
            repetition,
            order,
            criterion.key if self._parted else "",
            response_id=record.response_id.strip() or None,
            created_at=created_at,
            scores=(score,),
        )
        if call.response_id is None or not run.join(call):
            self._add(run, call)

    def take_text(self, record: Record) -> None:
        """Store the text of a record that holds neither score nor label.

        Raises:
            LineRefused: Says what is wrong with it.
        """
        for role in ("candidate", "candidate_b") if self._pair else ("candidate",):
            if not getattr(record, role).strip():
                raise LineRefused(role, "", "is empty: there is no text to judge")
        self._item(record)

    def _add(self, run: JudgeRun, call: CallRow) -> None:
        if self._waiting >= _BUFFERED:
            self.flush()
        run.add(call)
        self._waiting += 1

    def flush(self) -> None:
        """Record everything that waits."""
        if self._storing:
            self.book.flush()
        for run in self.runs:
            if self._storing:
                run.flush()
            else:
                run.discard()
        self._waiting = 0

    def only_check(self) -> None:
        """From here on store nothing: the file is going to be refused, and its other lines are only checked."""
        self._storing = False

    def finish(self) -> Corpus:
        """Close the runs and hang them on the corpus version that holds their items."""
        self.flush()
        if not self._storing:
            return self._corpus
        for run in self.runs:
            run.finish()
        corpus = writes.add_corpus(
            session=self._session, name=self._collection, item_ids=self.book.used, simulated=self._simulated
        )
        for run in self.runs:
            writes.move_run(session=self._session, run=run.run, corpus=corpus)
        return corpus

    def record_labels(self, *, name: str, policy: str) -> LabelSet | None:
        """Store the labels as a new version of the set `name`; None when there are none."""
        if not self.label_rows or not self._storing:
            return None
        label_set = writes.add_label_set(
            session=self._session,
            name=name,
            rubric_id=self._known_rubric().id or 0,
            policy=policy,
            import_file_id=self._file.id,
            simulated=self._simulated,
        )
        writes.record_labels(session=self._session, label_set=label_set, rows=self.label_rows, between_levels=True)
        return label_set

    def _criterion(self, text: str) -> Criterion:
        key = text.strip()
        criterion = self._by_text.get(key) if key else self._single
        if not self._all_criteria and (key or DEFAULT_CRITERION) not in self._by_text:
            raise CriterionMissed(f"criterion {key or DEFAULT_CRITERION} was not among the first rows")
        if criterion is None:
            known = ", ".join(sorted({known.key for known in self._by_text.values()}))
            raise LineRefused("criterion", text, f"is no criterion of the rubric, which has {known}")
        self._by_text[text] = criterion
        return criterion

    def _order(self, text: str) -> str:
        order = self._orders.get(text)
        if order is None:
            order = self._orders.get(text.strip().casefold())
        if order is None:
            raise LineRefused("order", text, f"unknown order; say what it means with --order {text.strip()}=ab or =ba")
        return order

    def _repetition(self, text: str) -> int:
        found = self._repetitions.get(text)
        if found is not None:
            return found
        value = number(text)
        if value is None or not value.is_integer() or not 0 <= value < MOST_REPETITIONS:
            raise LineRefused("repetition", text, f"is no whole number from 0 to {MOST_REPETITIONS - 1}")
        self._repetitions[text] = int(value)
        return int(value)

    def _score(self, record: Record, criterion: Criterion, order: str) -> ScoreRow:
        score = self.scores.score(criterion, record.score, record.status)
        if self._mapping.by_candidate and order == Order.BA:
            score = _seen_from_slot(score, criterion, record.score)
        if not (record.rationale or record.cited_evidence or record.boundary_reason or record.confidence):
            return score
        return ScoreRow(
            *score[:4],
            record.rationale or None,
            record.cited_evidence or None,
            record.boundary_reason or None,
            self._confidence(record.confidence),
        )

    def _confidence(self, text: str) -> float | None:
        if text in self._confidences:
            return self._confidences[text]
        value = number(text)
        if text.strip() and (value is None or isinf(value)):
            raise LineRefused("confidence", text, "is no number")
        if len(self._confidences) < _MOST_CONFIDENCES:
            self._confidences[text] = value
        return value

    def _time(self, text: str) -> datetime | None:
        if not text.strip():
            return None
        epoch = number(text)
        if epoch is not None and _EPOCH_SECONDS <= epoch < _EPOCH_MILLISECONDS * 1_000:
            return datetime.fromtimestamp(epoch if epoch < _EPOCH_MILLISECONDS else epoch / 1_000, UTC)
        try:
            time = datetime.fromisoformat(text.strip())
            if time.tzinfo is not None:
                return time if time.tzinfo is UTC else time.astimezone(UTC)
        except (ValueError, OverflowError):
            raise LineRefused("created_at", text, "is no time like 2026-03-01T12:00:00Z") from None
        self.zoneless += 1
        return time.replace(tzinfo=UTC)

    def _item(self, record: Record) -> _KnownItem:
        digest = record.content_sha256.strip()
        if not digest and (record.candidate or record.candidate_b):
            texts = (record.candidate, record.candidate_b) if self._pair else (record.candidate,)
            digest = content_hash(*texts)
        known = self._items.get((record.item, digest)) or self._new_item(record, digest)
        if record.system != known.system or record.system_b != known.system_b:
            raise LineRefused(
                "system",
                record.system,
                f"item {record.item} belongs to {known.system or 'no system'} on line "
                f"{known.line}; texts of two systems are two items: --map item=ITEM,SYSTEM",
            )
        if record.slice != known.slice:
            raise LineRefused("slice", record.slice, f"item {record.item} is in {known.slice!r} on line {known.line}")
        return known

    def _new_item(self, record: Record, digest: str) -> _KnownItem:
        key = record.item.strip()
        if not key.strip(JOINER):
            raise LineRefused("item", record.item, "is empty: every line needs its item")
        item_id = self.book.find(
            ItemSpec(
                key,
                digest,
                record.slice.strip() or Slice.PRODUCTION.value,
                record.system.strip(),
                record.request or None,
                record.reference or None,
                record.candidate or None,
                record.candidate_b or None,
                record.system_b.strip(),
                self._pair,
            )
        )
        known = _KnownItem(item_id, record.line, record.system, record.system_b, record.slice)
        self._items[record.item, digest] = known
        return known

    def _group(self, run: JudgeRun, criterion: Criterion, order: str, item_id: int) -> int:
        """Judge, criterion, order and item as one number, which takes a third of a tuple's memory."""
        place = (run.number << 20 | criterion.id) << 2 | len(order) + (order == "ba")
        return place << _ITEM_BITS | item_id

    def _place(self, group: int, criterion: Criterion, repetition: int | None, record: Record) -> int:
        """Take the repetition's place, or the next one where the file does not number them."""
        lines = self._lines.get(group)
        if lines is None:
            lines = self._lines[group] = array("I")
        if repetition is None:
            repetition = len(lines)
            if repetition >= MOST_REPETITIONS:
                raise LineRefused("item", record.item, f"has more than {MOST_REPETITIONS} rows of one kind")
        elif repetition < len(lines) and lines[repetition]:
            raise LineRefused(
                "repetition",
                record.repetition,
                f"item {record.item}, repetition {repetition}, {criterion.key}: stands on line {lines[repetition]} too",
            )
        if repetition >= len(lines):
            lines.frombytes(bytes(lines.itemsize * (repetition + 1 - len(lines))))
        lines[repetition] = record.line
        return repetition

    def _read_labels(self, record: Record, criterion: Criterion) -> tuple["_ReadLabel", ...]:
        if not self._raters:
            value = self.scores.label(criterion, record.label)
            return (_ReadLabel(record.rater.strip(), record.label, value, "label"),)
        found = []
        for column, text in zip(self._raters, record.label.split(LABEL_JOINER), strict=True):
            if text:
                try:
                    found.append(_ReadLabel(column, text, self.scores.label(criterion, text), column))
                except LineRefused as refusal:
                    raise LineRefused(column, text, refusal.reason) from refusal
        return tuple(found)

    def _refuse_contradiction(self, labels: Iterable["_ReadLabel"], item_id: int, criterion: Criterion) -> None:
        for label in labels:
            known = self._labels.get((item_id, criterion.id, label.rater))
            if known is not None and known.value != label.value:
                raise LineRefused(
                    label.column, label.text, f"contradicts {known.value:g} on line {known.line}, same item and rater"
                )

    def _keep_labels(self, labels: Iterable["_ReadLabel"], record: Record, item_id: int, criterion: Criterion) -> None:
        for label in labels:
            key = (item_id, criterion.id, label.rater)
            if key not in self._labels:
                self._labels[key] = _KnownLabel(label.value, record.line)
                raw = label.text if number(label.text) is None else None
                self.label_rows.append(LabelRow(*key[:2], label.value, label.rater, raw, record.label_reason or None))

    def _refuse_nameless(self, record: Record) -> None:
        if not record.judge.strip() and not record.model.strip():
            raise LineRefused("judge", "", "is empty: every score needs its judge")

    def _known_rubric(self) -> Rubric:
        if self._rubric is None:
            raise ValueError("a file of texts alone has neither judges nor labels")
        return self._rubric

    def _open_run(self, record: Record) -> JudgeRun:
        named = tuple(text.strip() for text in record[4:8])
        opened = self._judges.get(named) or self._new_run(*named)
        self._judges[named] = self._judges[record[4:8]] = opened
        return opened

    def _new_run(self, judge: str, model: str, prompt: str, rubric_version: str) -> JudgeRun:
        parameters = {"judge": judge} if judge and (model or prompt) else {}
        if rubric_version:
            parameters["rubric_version"] = rubric_version
        name = JOINER.join(part for part in (judge or model, prompt, rubric_version) if part)
        rubric = self._known_rubric()
        stored = writes.add_judge(
            session=self._session,
            spec=JudgeSpec(
                name,
                rubric.id or 0,
                rubric.sha256,
                model=model,
                prompt_version=prompt,
                parameters=parameters,
                pairwise=self._pair,
                simulated=self._simulated,
            ),
        )
        if stored.rubric_id != rubric.id:
            known = self._session.get_one(Rubric, stored.rubric_id)
            raise ImportRefused(
                f"judge {name} is stored under rubric {known.name} version {known.version}, which reads the same as "
                f"{rubric.name}; import with that rubric"
            )
        run = writes.add_run(
            session=self._session,
            judge_id=stored.id or 0,
            corpus_id=self._corpus.id or 0,
            name=self._file.name,
            import_file_id=self._file.id,
            simulated=self._simulated,
        )
        self.runs.append(
            JudgeRun(session=self._session, name=name, run=run, number=len(self.runs), criteria=self._criteria)
        )
        return self.runs[-1]


def _seen_from_slot(score: ScoreRow, criterion: Criterion, text: str) -> ScoreRow:
    """A verdict for a candidate as one for its slot, where candidate B stands in slot 1."""
    if not score.value:
        return score
    if -score.value not in criterion.levels:
        return score._replace(value=None, unscored=Unscored.OUT_OF_RANGE.value, raw_value=text)
    return score._replace(value=-score.value, raw_value=text)
