"""An import's report in words, the same on the command line and in the browser."""

from collections.abc import Iterator

from core.ingest.load import ImportReport
from core.ingest.records import Problem
from core.ingest.scoring import canonical

SHOWN = 20
"""Bad lines and keys named one by one; the others are counted."""


def report_lines(report: ImportReport, *, dry_run: bool) -> Iterator[str]:
    """What an import did, or would have done, a line of text each."""
    yield f"{'Dry run, nothing was written' if dry_run else 'Imported'}: {report.file}"
    name, version = report.corpus
    yield f"  corpus {name} version {version}: {report.items_new:,} new items, {report.items_known:,} known"
    if report.rubric:
        yield f"  rubric {report.rubric[0]} version {report.rubric[1]}"
    texts_only = report.mapping.texts_only
    found = "texts only" if texts_only else f"calls {report.calls:,}, scored {report.scored:,}"
    yield f"  rows {report.rows:,}, {found}"
    if report.unscored:
        reasons = ", ".join(f"{reason} {rows:,}" for reason, rows in report.unscored.items())
        yield f"  unscored {sum(report.unscored.values()):,}: {reasons}"
    if report.copied:
        yield f"  copied replies {report.copied:,}: they repeat an earlier response id and count once"
    if report.shared:
        yield f"  replies shared between judges {report.shared:,}: they carry a response id of another judge's reply"
    for judge in report.judges:
        yield f"  judge {judge.name}: {', '.join(f'{word} {rows:,}' for word, rows in judge.outcomes.items())}"
    if report.label_set:
        yield f"  labels {report.labels:,} in set {report.label_set[0]} version {report.label_set[1]}"
    for use in report.statuses:
        if use.word:
            yield f"  status {use.word!r} read as {use.meaning}: {use.rows:,} rows"
    for spelling in report.spellings:
        yield f"  {spelling.criterion} {spelling.raw!r} read as {canonical(spelling.value)}: {spelling.rows:,} rows"
    if report.zoneless:
        yield f"  times without a zone, taken for UTC: {report.zoneless:,}"
    if report.mutated:
        yield f"  text changed under the same key, kept as other items: {len(report.mutated):,}"
        yield f"    {', '.join(report.mutated[:SHOWN])}{', …' if len(report.mutated) > SHOWN else ''}"
    if report.set_aside:
        yield f"  set aside {report.set_aside:,} bad lines:"
        yield from problem_lines(report)
    yield f"  {report.seconds:.1f} s"


def refusal_line(report: ImportReport) -> str:
    """That a file was refused for its bad lines, and how many they are."""
    return f"{report.file} was not imported: {report.set_aside:,} of {report.rows:,} lines are bad."


def problem_lines(report: ImportReport) -> Iterator[str]:
    """The first bad lines, and how many more there are."""
    yield from map(_problem_line, report.problems[:SHOWN])
    if report.set_aside > SHOWN:
        yield f"  … and {report.set_aside - SHOWN:,} more"


def _problem_line(bad: Problem) -> str:
    column = f", {bad.column}" if bad.column else ""
    value = f" {bad.value!r}:" if bad.value else ""
    return f"  line {bad.line}{column}:{value} {bad.reason}"
