"""The import itself: a preview to confirm, then one transaction a file."""

import gc
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from operator import itemgetter
from time import perf_counter

from sqlalchemy import Engine
from sqlmodel import Session

from core.ingest.formats import Reader, open_reader, sample
from core.ingest.mapping import JOINER, Mapping, get_mapping, guess, shape
from core.ingest.recording import Importer, JudgeRun, Problems, SetAsideBook
from core.ingest.records import AlreadyImported, ImportRefused, LineRefused, MappingRefused, Problem
from core.ingest.rubrics import DEFAULT_CRITERION, Proposal, propose
from core.ingest.scoring import Criterion, Spelling, StatusUse
from core.ingest.source import Source
from core.store import queries, writes
from core.store.engine import reading
from core.store.specs import RubricSpec
from core.store.tables import ImportFile, Rubric

_SAMPLE = 5_000
_COLLECT_AFTER = 500_000
_TOLD_EVERY = 10_000


@dataclass(frozen=True)
class Preview:
    """What a person confirms before an import.

    Attributes:
        header: Column names.
        rows: The first rows, in header order.
        mapping: The mapping to use: given, stored for this shape, or guessed.
        confirmed: Whether the mapping was given or confirmed before, so that nothing needs asking.
        earlier: The import of the same content, if there was one.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    mapping: Mapping
    confirmed: bool
    earlier: ImportFile | None


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """One judge of the file and what became of its calls, by criterion summed: "scored", "copied" or a reason."""

    name: str
    judge_id: int
    run_id: int
    outcomes: dict[str, int]


@dataclass(frozen=True)
class ImportReport:
    """What an import did, or would have done.

    Attributes:
        imported: Whether the store was changed.
        refused: Whether bad lines stood in the way.
        file: Name of the file.
        sha256: Hash of its content.
        mapping: The mapping that was used.
        rows: Records in the file, bad ones included.
        calls: Calls stored.
        scored: Scores with a value, copies included.
        unscored: Scores without a value, by reason.
        copied: Scores whose response id an earlier call of the judge carried; they count once.
        shared: Calls whose response id an earlier call of another judge carried: the judgement was copied.
        set_aside: Bad lines.
        problems: The first of them.
        items_new: Items not known before.
        items_known: Items of the file that the corpus already had.
        mutated: Keys of items whose text differs from the one known under the key.
        judges: One entry a judge.
        corpus: Name and version.
        rubric: Name and version, None for texts alone; another name than asked for where that one reads the same.
        label_set: Name and version, None when the file has no labels.
        labels: Labels stored.
        statuses: How every status word was read.
        spellings: How every way of writing a value was read.
        zoneless: Times without a zone, taken for UTC.
        seconds: Duration.
    """

    imported: bool
    refused: bool
    file: str
    sha256: str
    mapping: Mapping
    rows: int
    calls: int
    scored: int
    unscored: dict[str, int]
    copied: int
    shared: int
    set_aside: int
    problems: tuple[Problem, ...]
    items_new: int
    items_known: int
    mutated: tuple[str, ...]
    judges: tuple[JudgeReport, ...]
    corpus: tuple[str, int]
    rubric: tuple[str, int] | None
    label_set: tuple[str, int] | None
    labels: int
    statuses: tuple[StatusUse, ...]
    spellings: tuple[Spelling, ...]
    zoneless: int
    seconds: float


class _Undone(Exception):  # noqa: N818 - carries a result out of a transaction, is no error
    """Ends the transaction without a trace and carries the report out of it."""

    def __init__(self, report: ImportReport) -> None:
        super().__init__()
        self.report = report


def plan_import(engine: Engine, source: Source, *, mapping: Mapping | None = None, shown: int = 10) -> Preview:
    """Read the header and the first rows, and choose the mapping to confirm.

    Raises:
        ImportRefused: When the file cannot be read at all, holds no row, or the mapping does not fit.
    """
    reader = open_reader(source)
    first = sample(reader, _SAMPLE)
    if not first:
        raise ImportRefused(f"{source.name} has a header and no good row; there is nothing to import")
    with reading(engine) as session:
        stored = None if mapping else get_mapping(session=session, header=reader.header)
        earlier = queries.find_import(session=session, sha256=source.sha256())
        session.expunge_all()
    chosen = mapping or stored or guess(reader.header, first)
    if mapping or stored:
        chosen.check(reader.header)
    rows = tuple(tuple(values) for values in first[:shown])
    return Preview(reader.header, rows, chosen, bool(mapping or stored), earlier)


def propose_levels(source: Source, mapping: Mapping) -> tuple[Proposal, ...]:
    """The criteria of the whole file, each with the levels that its ok values would need."""
    reader = open_reader(source)
    mapping.check(reader.header)
    return propose(reader.records(mapping), mapping)


def list_criteria(source: Source, mapping: Mapping, first: int | None = None) -> tuple[str, ...]:
    """Keys of the criteria that the file, or its first rows, names, in order of first appearance.

    Raises:
        ImportRefused: When the file cannot be read, or the mapping does not fit.
    """
    reader = open_reader(source)
    mapping.check(reader.header)
    places = [reader.header.index(name) for name in mapping.columns["criterion"]]
    pick = itemgetter(*places)
    found = dict.fromkeys(pick(row[1]) for row in islice(reader.rows(), first) if type(row) is tuple)
    keys = (key.strip() if isinstance(key, str) else JOINER.join(map(str.strip, key)) for key in found)
    return tuple(dict.fromkeys(key or DEFAULT_CRITERION for key in keys))


def run_import(
    engine: Engine,
    source: Source,
    *,
    mapping: Mapping,
    rubric: RubricSpec | None,
    corpus: str = "",
    label_set: str = "",
    policy: str = "",
    set_aside: bool = False,
    dry_run: bool = False,
    simulated: bool = False,
    all_criteria: bool = True,
    on_problem: Callable[[Problem], None] | None = None,
    on_rows: Callable[[int], None] | None = None,
) -> ImportReport:
    """Import a file in one transaction.

    A bad line means that nothing is stored (`imported` is False, `problems` lists the lines), unless `set_aside` is
    given: then the bad lines are kept apart, in the store too, and the others imported.

    Args:
        engine: The store.
        source: The file.
        mapping: The confirmed mapping; it is remembered for files of the same shape.
        rubric: Criteria and levels of the judges in the file; None for a file of texts alone.
        corpus: Name of the corpus, by default the file's name without its ending.
        label_set: Name of the label set, by default likewise.
        policy: The written policy that the labels were made under.
        set_aside: Whether bad lines may be left out.
        dry_run: Do everything, then undo it.
        simulated: Whether the file is generated; marked so wherever it shows.
        all_criteria: Whether the rubric has all the criteria there are; otherwise another one undoes the import.
        on_problem: Called with every bad line.
        on_rows: Called now and then with the number of records read so far; what it raises undoes the import.

    Raises:
        AlreadyImported: When the same content was imported before.
        MappingRefused: When the mapping does not fit the columns, or nothing names the judge.
        CriterionMissed: Without `all_criteria`, when the file names a criterion that the rubric has not.
        ImportRefused: When the file as a whole cannot be imported, or its scores or labels have no rubric.
    """
    began = perf_counter()
    reader = open_reader(source)
    mapping.check(reader.header)
    require_judge(mapping)
    if rubric is None and not mapping.texts_only:
        raise ImportRefused("scores and labels need the rubric that they were given by")
    sha256 = source.sha256()
    try:
        with _rare_collection(), writes.writing(engine) as session:
            _refuse_known(session, source, sha256)
            stored = writes.add_rubric(session=session, spec=rubric) if rubric else None
            file = writes.add_import_file(
                session=session, sha256=sha256, name=source.name, file_format=reader.kind, mapping=mapping.to_json()
            )
            importer = Importer(
                session=session,
                mapping=mapping,
                file=file,
                rubric=stored,
                criteria=_criteria(session, rubric, stored) if rubric and stored else {},
                collection=corpus or source.stem,
                simulated=simulated,
                all_criteria=all_criteria,
            )
            book = SetAsideBook(session, file) if set_aside else None
            problems = Problems(mapping, [call for call in (on_problem, book and book.add) if call])
            rows = _read(reader, mapping, importer, problems, set_aside=set_aside, on_rows=on_rows)
            if book:
                book.flush()
            imported = not problems.count or (set_aside and problems.count < rows)
            file.rows, file.set_aside, file.imported = rows, problems.count, rows - problems.count
            corpus_version = importer.finish()
            labels = importer.record_labels(name=label_set or source.stem, policy=policy)
            report = replace(
                _report(session, importer, file, problems),
                imported=imported and not dry_run,
                refused=not imported,
                mapping=mapping,
                corpus=(corpus_version.name, corpus_version.version),
                rubric=(stored.name, stored.version) if stored else None,
                label_set=(labels.name, labels.version) if labels else None,
                seconds=perf_counter() - began,
            )
            if not report.imported:
                raise _Undone(report)
            _remember(session, reader.header, mapping)
    except _Undone as undone:
        return undone.report
    return report


def require_judge(mapping: Mapping) -> None:
    """Refuse scores that nobody gave.

    Raises:
        MappingRefused: When the file holds scores and nothing names their judge.
    """
    if mapping.has("score") and not (mapping.has("judge") or mapping.has("model")):
        raise MappingRefused("nothing names the judge; map a column to judge or model, or give --judge NAME")


@contextmanager
def _rare_collection() -> Iterator[None]:
    """Let the garbage collector look less often: rows make no cycles, and walking them takes a fifth of the time."""
    usual = gc.get_threshold()
    gc.set_threshold(_COLLECT_AFTER, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def _refuse_known(session: Session, source: Source, sha256: str) -> None:
    earlier = queries.find_import(session=session, sha256=sha256)
    if earlier:
        raise AlreadyImported(
            f"{source.name} was imported before, as {earlier.name} on {earlier.created_at:%Y-%m-%d at %H:%M} UTC; "
            "nothing was written"
        )


def _criteria(session: Session, rubric: RubricSpec, stored: Rubric) -> dict[str, Criterion]:
    """The rubric's criteria by key, with the ids under which they are stored."""
    views = queries.list_criteria(session=session, rubric_id=stored.id or 0)
    ids = {view.key: view.id for view in views}
    return {spec.key: Criterion.of(spec, ids[spec.key]) for spec in rubric.criteria}


def _read(
    reader: Reader,
    mapping: Mapping,
    importer: Importer,
    problems: Problems,
    *,
    set_aside: bool,
    on_rows: Callable[[int], None] | None,
) -> int:
    """Take every record; the number of them."""
    take = importer.take_text if mapping.texts_only else importer.take
    rows = 0
    for record in reader.records(mapping):
        rows += 1
        if on_rows and rows % _TOLD_EVERY == 0:
            on_rows(rows)
        if isinstance(record, Problem):
            problems.add(record)
        else:
            try:
                take(record)
                continue
            except LineRefused as refusal:
                problems.add_refusal(record.line, refusal)
        if not set_aside:
            importer.only_check()
    if not rows:
        raise ImportRefused("the file has a header and no rows; there is nothing to import")
    return rows


def _report(session: Session, importer: Importer, file: ImportFile, problems: Problems) -> ImportReport:
    """What happened, as far as the store and the importer know it."""
    judges = tuple(_judge_report(session, run, importer.criterion_ids) for run in importer.runs)
    outcomes = sum((Counter(judge.outcomes) for judge in judges), Counter[str]())
    return ImportReport(
        imported=False,
        refused=False,
        file=file.name,
        sha256=file.sha256,
        mapping=Mapping(),
        rows=file.rows,
        calls=sum(run.calls for run in importer.runs),
        scored=outcomes.pop(writes.SCORED, 0),
        copied=outcomes.pop(writes.COPIED_OUTCOME, 0),
        unscored=dict(outcomes.most_common()),
        shared=_shared(session, importer),
        set_aside=problems.count,
        problems=tuple(problems.kept),
        items_new=importer.book.made,
        items_known=len(importer.book.used) - importer.book.made,
        mutated=tuple(importer.book.mutated),
        judges=judges,
        corpus=("", 0),
        rubric=None,
        label_set=None,
        labels=len(importer.label_rows),
        statuses=importer.scores.statuses(),
        spellings=importer.scores.spellings(),
        zoneless=importer.zoneless,
        seconds=0.0,
    )


def _shared(session: Session, importer: Importer) -> int:
    """Replies that one judge of the file took over from another."""
    if not importer.has_response_ids:
        return 0
    return queries.count_shared_replies(session=session, run_ids=[run.id for run in importer.runs])


def _judge_report(session: Session, run: JudgeRun, criterion_ids: Sequence[int]) -> JudgeReport:
    outcomes: Counter[str] = Counter()
    for criterion_id in criterion_ids:
        outcomes.update(queries.get_tallies(session=session, run_ids=[run.id], criterion_id=criterion_id))
    return JudgeReport(run.name, run.judge_id, run.id, dict(outcomes.most_common()))


def _remember(session: Session, header: Sequence[str], mapping: Mapping) -> None:
    if get_mapping(session=session, header=header) != mapping:
        writes.save_mapping(session=session, shape_sha256=shape(header), mapping=mapping.to_json())
