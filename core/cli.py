"""The work that needs no browser: `python -m core.cli COMMAND`."""

import argparse
import csv
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from sqlalchemy import Engine

from core.cli_agreement import add_agreement, add_trust, run_agreement, run_trust
from core.cli_export import add_export, run_export
from core.cli_gate import NOT_MEASURED, add_gate, add_promotion_rule, run_gate, run_promotion_rule
from core.cli_rubric import add_rubric_command, run_rubric
from core.cli_worker import add_worker, run_worker
from core.figures.words import say_estimate
from core.ingest.load import ImportReport, Preview, list_criteria, plan_import, propose_levels, run_import
from core.ingest.mapping import Mapping
from core.ingest.records import CriterionMissed, ImportRefused, MappingRefused, Problem
from core.ingest.rubric_file import load_rubric
from core.ingest.rubrics import DEFAULT_CRITERION, from_levels, get_rubric, parse_levels
from core.ingest.scoring import number
from core.ingest.simulate import ensure_demo
from core.ingest.source import Limits, Source
from core.ingest.wording import problem_lines, refusal_line, report_lines
from core.stats.health import JudgeHealth, judge_health
from core.store import queries
from core.store.contents import defused
from core.store.engine import database_url, get_engine, reading
from core.store.specs import RubricSpec

DONE, REFUSED, USAGE = 0, 1, 2

LIMITS = Limits()

_SHOWN = 20
_FIRST_ROWS = 5_000


class UsageError(Exception):
    """The command cannot be carried out as it was given."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0 when done, 1 when the data stood in the way, 2 when the command did."""
    given = _parse(sys.argv[1:] if arguments is None else arguments)
    try:
        return COMMANDS[given.command](given)
    except UsageError as error:
        print(f"evenhand {given.command}: {error}", file=sys.stderr)
        return USAGE


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The arguments; `gate` cannot exit with 2 for a wrong one, since that says insufficient evidence."""
    try:
        return _parser().parse_args(arguments)
    except SystemExit as stop:
        if stop.code == USAGE and arguments[:1] == ["gate"]:
            raise SystemExit(NOT_MEASURED) from stop
        raise


def migrate(_given: argparse.Namespace) -> int:
    """Bring the store's schema up to date."""
    get_engine(database_url())
    print("The schema is up to date.")
    return DONE


def demo(_given: argparse.Namespace) -> int:
    """Load the demo history and the published tables, once."""
    loaded = ensure_demo(get_engine(database_url()))
    print("The demo history was loaded." if loaded else "The demo history is there already.")
    return DONE


def import_file(given: argparse.Namespace) -> int:
    """Import one file of judge history."""
    engine = get_engine(database_url())
    limits = Limits(size=given.max_bytes, rows=given.max_rows)
    try:
        source = Source.from_path(given.file, limits)
        preview = plan_import(engine, source, mapping=_mapping(given))
    except MappingRefused as error:
        raise UsageError(str(error)) from error
    except ImportRefused as refusal:
        print(f"Nothing was imported: {refusal}", file=sys.stderr)
        return REFUSED
    mapping = _with_options(preview.mapping, given)
    _show_mapping(preview, mapping)
    _confirm(preview, given)
    try:
        report = _carry_out(engine, source, mapping, given)
    except MappingRefused as error:
        raise UsageError(str(error)) from error
    except ImportRefused as refusal:
        print(f"Nothing was imported: {refusal}", file=sys.stderr)
        return REFUSED
    for line in _refusal_lines(report) if report.refused else report_lines(report, dry_run=given.dry_run):
        print(line)
    return REFUSED if report.refused else DONE


def _carry_out(engine: Engine, source: Source, mapping: Mapping, given: argparse.Namespace) -> ImportReport:
    """The import. Where levels hold for all criteria, the first rows are taken to name them: a file is read once.

    Should a later row name another one, the import begins again with the criteria of the whole file.
    """

    def attempt(rubric: RubricSpec | None, *, all_criteria: bool) -> ImportReport:
        with _rejects(given.rejects) as on_problem:
            return run_import(
                engine,
                source,
                mapping=mapping,
                rubric=rubric,
                corpus=given.corpus,
                label_set=given.label_set,
                policy=given.policy,
                set_aside=given.set_aside,
                dry_run=given.dry_run,
                all_criteria=all_criteria,
                on_problem=on_problem,
            )

    first = _FIRST_ROWS if _levels_for_all(mapping, given) else None
    try:
        return attempt(_rubric(engine, source, mapping, given, first), all_criteria=first is None)
    except CriterionMissed:
        return attempt(_rubric(engine, source, mapping, given, None), all_criteria=True)


def report(given: argparse.Namespace) -> int:
    """Print every judge's wobble on a criterion, one line a judge and corpus."""
    with reading(get_engine(database_url())) as session:
        judges = queries.list_judges(session=session)
        for judge in judges[~judges.pairwise.astype(bool)].itertuples():
            runs = queries.list_runs(session=session, judge_id=judge.judge_id, corpus_id=judge.corpus_id)
            for criterion in queries.list_criteria(session=session, rubric_id=judge.rubric_id):
                if given.criterion in ("", criterion.key):
                    matrix = queries.get_score_matrix(
                        session=session, run_ids=runs.id.tolist(), criterion_id=criterion.id
                    )
                    health = judge_health(matrix.codes, np.array(criterion.levels), criterion.gate)
                    print(f"{judge.name} · {judge.model or 'model unknown'} · {judge.corpus} · {criterion.key}")
                    for line in _health_lines(health):
                        print(f"  {line}")
    return DONE


def _health_lines(health: JudgeHealth) -> list[str]:
    return [
        f"within-item SD {say_estimate(health.dispersion.within_item_sd)}",
        f"flip rate at gate {health.gate.gate:g} {say_estimate(health.gate.flip_rate)}",
        f"alpha (ordinal) {say_estimate(health.alpha_ordinal)}",
    ]


def agreement(given: argparse.Namespace) -> int:
    """Print judges against people's labels."""
    return _or_usage_error(run_agreement, given)


def trust(given: argparse.Namespace) -> int:
    """Freeze, list or evaluate trust rules."""
    return _or_usage_error(run_trust, given)


def _or_usage_error(run: Callable[[argparse.Namespace], int], given: argparse.Namespace) -> int:
    try:
        return run(given)
    except ValueError as error:
        raise UsageError(str(error)) from error


def freeze_promotion_rule(given: argparse.Namespace) -> int:
    """Freeze a promotion rule."""
    return _or_usage_error(run_promotion_rule, given)


def export(given: argparse.Namespace) -> int:
    """Write a judge's scores as CSV."""
    try:
        return _or_usage_error(run_export, given)
    except OSError as error:
        raise UsageError(f"{given.out}: {error.strerror or error}") from error


def rubric(given: argparse.Namespace) -> int:
    """Lint and store a rubric file."""
    try:
        return _or_usage_error(run_rubric, given)
    except OSError as error:
        raise UsageError(f"{given.file}: {error.strerror or error}") from error


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "agreement": agreement,
    "demo": demo,
    "export": export,
    "gate": run_gate,
    "import": import_file,
    "migrate": migrate,
    "promotion-rule": freeze_promotion_rule,
    "report": report,
    "rubric": rubric,
    "worker": run_worker,
    "trust": trust,
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m core.cli", description="Evenhand without a browser.")
    parser.add_argument("--version", action="version", version=f"evenhand {_version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("demo", help="load the simulated demo history and two published tables, once")
    commands.add_parser("migrate", help="bring the store's schema up to date")
    add_agreement(commands.add_parser("agreement", help="print judges against people's labels"))
    add_trust(commands.add_parser("trust", help="freeze a trust rule, list rules, or evaluate one"))
    figures = commands.add_parser("report", help="print how much every judge wobbles")
    figures.add_argument("--criterion", default="", metavar="KEY", help="only this criterion")
    add_gate(commands.add_parser("gate", help="hold a candidate judge against the baseline; the exit code decides"))
    add_promotion_rule(commands.add_parser("promotion-rule", help="freeze how much worse a candidate may be"))
    add_export(commands.add_parser("export", help="write a judge's scores as CSV"))
    add_rubric_command(commands.add_parser("rubric", help="lint a rubric file and store it, for runs that judge by it"))
    add_worker(commands.add_parser("worker", help="make planned calls, and start what is scheduled"))
    _add_import(commands.add_parser("import", help="import one file of judge history or labels"))
    return parser


def _add_import(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", type=Path, help="CSV, TSV or JSON Lines, plain or .gz")
    add(
        "--map", nargs="+", action="extend", default=[], metavar="ROLE=COLUMN", help="the whole mapping; ROLE=A,B joins"
    )
    add("--judge", default="", metavar="NAME", help="the judge of every line")
    add("--model", default="", metavar="NAME", help="the model snapshot of every line")
    add("--criterion", default="", metavar="KEY", help="the criterion of every line")
    add("--value", action="append", default=[], metavar="WORD=NUMBER", help="what a word in the score column is worth")
    add("--status", action="append", default=[], metavar="WORD=REASON", help="what a status means: ok or a reason")
    add("--order", action="append", default=[], metavar="WORD=ab|ba", help="what an order word means")
    add("--by-candidate", action="store_true", help="verdicts on pairs name candidate A or B, not the slot")
    add("--rubric", default="", metavar="FILE.json|NAME", help="a rubric file, or the name of a stored rubric")
    add("--levels", action="append", default=[], metavar="[CRITERION=]1,2,3", help="or LOW:HIGH:STEP; --levels=-1,0,1")
    add("--gate", action="append", default=[], metavar="[CRITERION=]VALUE", help="the score that passes")
    add("--corpus", default="", metavar="NAME", help="default: the file's name without its ending")
    add("--label-set", default="", metavar="NAME", help="default: the file's name without its ending")
    add("--policy", default="", help="the written policy that the labels were made under")
    add("--set-aside", action="store_true", help="import the good lines and keep the bad ones apart")
    add("--rejects", type=Path, metavar="OUT.csv", help="write the bad lines to this file")
    add("--dry-run", action="store_true", help="report what an import would do, and do nothing")
    add("--yes", action="store_true", help="use a guessed mapping without asking")
    add("--max-bytes", type=int, default=LIMITS.size, help="largest size after decompression (default %(default)s)")
    add("--max-rows", type=int, default=LIMITS.rows, help="most rows (default %(default)s)")


def _version() -> str:
    try:
        return version("evenhand")
    except PackageNotFoundError:
        return "(not installed)"


def _mapping(given: argparse.Namespace) -> Mapping | None:
    """The mapping given by --map; None to use the stored one, or to guess."""
    if not given.map:
        return None
    columns = {role: tuple(names.split(",")) for role, names in (_pair("--map", text) for text in given.map)}
    try:
        return Mapping(columns)
    except MappingRefused as error:
        raise UsageError(str(error)) from error


def _with_options(mapping: Mapping, given: argparse.Namespace) -> Mapping:
    """The mapping with the constants and words of the command line; a constant replaces the column of its role."""
    constants = {role: text for role in ("judge", "model", "criterion") if (text := getattr(given, role))}
    values = {word: _number("--value", text) for word, text in (_word("--value", text) for text in given.value)}
    try:
        return replace(
            mapping,
            columns={role: names for role, names in mapping.columns.items() if role not in constants},
            constants={**mapping.constants, **constants},
            values={**mapping.values, **values},
            statuses={**mapping.statuses, **dict(_pair("--status", text) for text in given.status)},
            orders={**mapping.orders, **dict(_pair("--order", text) for text in given.order)},
            by_candidate=mapping.by_candidate or given.by_candidate,
        )
    except MappingRefused as error:
        raise UsageError(str(error)) from error


def _show_mapping(preview: Preview, mapping: Mapping) -> None:
    print("Mapping" if preview.confirmed else "Mapping, guessed from the column names")
    for line in mapping.lines():
        print(f"  {line}")


def _confirm(preview: Preview, given: argparse.Namespace) -> None:
    if preview.confirmed or given.yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("the mapping is a guess; confirm it with --yes, or give --map ROLE=COLUMN …")
    if input("Import with this mapping? [y/N] ").strip().lower() not in ("y", "yes"):
        raise UsageError("not confirmed; nothing was written")


def _levels_for_all(mapping: Mapping, given: argparse.Namespace) -> bool:
    """Whether levels are given once for all the criteria of a column."""
    return "criterion" in mapping.columns and any(not key for key, _ in map(_by_criterion, given.levels))


def _rubric(
    engine: Engine, source: Source, mapping: Mapping, given: argparse.Namespace, first: int | None
) -> RubricSpec | None:
    """The rubric of the file's scores and labels, by its first rows or all; None for a file of texts alone."""
    if mapping.texts_only:
        if given.rubric or given.levels or given.gate:
            raise UsageError(
                "a rubric was given, and no column is mapped to score or label; give --map item=COLUMN score=COLUMN …, "
                "or leave the rubric out to import texts alone"
            )
        return None
    if given.rubric:
        if given.levels or given.gate:
            raise UsageError("--rubric already holds levels and gates; leave out --levels and --gate")
        return _named_rubric(engine, given.rubric)
    levels = {key: _levels(text) for key, text in map(_by_criterion, given.levels)}
    gates = {key: _number("--gate", text) for key, text in map(_by_criterion, given.gate)}
    if not levels:
        raise UsageError(_no_rubric(source, mapping))
    try:
        return from_levels(given.corpus or source.stem, _criteria(source, mapping, levels, first), levels, gates)
    except ImportRefused as error:
        raise UsageError(str(error)) from error


def _named_rubric(engine: Engine, name: str) -> RubricSpec:
    path = Path(name)
    if path.suffix == ".json":
        try:
            return load_rubric(path)
        except (OSError, ValueError) as error:
            raise UsageError(f"--rubric: {error}") from error
    with reading(engine) as session:
        stored = get_rubric(session=session, name=name)
    if stored is None:
        raise UsageError(f"--rubric {name}: no rubric of this name is stored; a file must end in .json")
    return stored


def _criteria(source: Source, mapping: Mapping, levels: dict[str, tuple[float, ...]], first: int | None) -> list[str]:
    """The criteria of the rubric: those named, and those of the file where levels are given for all."""
    named = [key for key in levels if key]
    if mapping.constants.get("criterion"):
        return [mapping.constants["criterion"]]
    if "criterion" not in mapping.columns:
        return named or [DEFAULT_CRITERION]
    if "" not in levels:
        return named
    return list(list_criteria(source, mapping, first))


def _no_rubric(source: Source, mapping: Mapping) -> str:
    """What is missing, with what the file's own values would need."""
    try:
        proposals = propose_levels(source, mapping)
    except ImportRefused as refusal:
        return str(refusal)
    words = sorted({word for proposal in proposals for word in proposal.words})
    lines = ["no rubric; levels come from the rubric, not from the data. The values in this file would need:"]
    lines += [f"  {proposal.options()}" for proposal in proposals]
    if words:
        lines.append(f"  and --value WORD=NUMBER for: {', '.join(words[:_SHOWN])}")
    return "\n".join([*lines, "Check them against the rubric that the judge was given, and give --levels and --gate."])


def _pair(option: str, text: str) -> tuple[str, str]:
    left, equals, right = text.partition("=")
    if not equals or not left.strip() or not right.strip():
        raise UsageError(f"{option} {text}: expected LEFT=RIGHT")
    return left.strip(), right.strip()


def _word(option: str, text: str) -> tuple[str, str]:
    """A word and its number; the word may hold an equals sign, as A=B for a tie does."""
    left, equals, right = text.rpartition("=")
    whole = equals and left.strip() and right.strip()
    return (left.strip(), right.strip()) if whole else _pair(option, text)


def _by_criterion(text: str) -> tuple[str, str]:
    left, equals, right = text.rpartition("=")
    return (left.strip(), right) if equals else ("", text)


def _levels(text: str) -> tuple[float, ...]:
    try:
        return parse_levels(text)
    except ImportRefused as error:
        raise UsageError(str(error)) from error


def _number(option: str, text: str) -> float:
    value = number(text)
    if value is None:
        raise UsageError(f"{option}: {text!r} is no number")
    return value


@contextmanager
def _rejects(path: Path | None) -> Iterator[Callable[[Problem], None] | None]:
    """A receiver of bad lines that writes them to `path`."""
    if path is None:
        yield None
        return
    try:
        file = path.open("w", newline="", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--rejects: {error}") from error
    with file:
        writer = csv.writer(file)
        writer.writerow(["line", "column", "value", "reason"])
        yield lambda bad: writer.writerow([bad.line, *map(defused, (bad.column, bad.value, bad.reason))])


def _refusal_lines(report: ImportReport) -> Iterator[str]:
    yield refusal_line(report)
    yield from problem_lines(report)
    yield "Correct them, or import the others with --set-aside; --rejects OUT.csv writes all bad lines to a file."


if __name__ == "__main__":
    sys.exit(main())
