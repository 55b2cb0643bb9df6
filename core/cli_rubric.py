"""`python -m core.cli rubric`: lint a rubric file and store it."""

import argparse
from pathlib import Path

from core.ingest.rubric_file import parse_rubric, read_text
from core.judge.lint import lint
from core.store.engine import database_url, get_engine
from core.store.writes import add_rubric, writing

DONE, REFUSED = 0, 1


def add_rubric_command(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("file", type=Path, help="a rubric as JSON")
    parser.add_argument("--check", action="store_true", help="only lint it; the exit code is 1 where it is vague")


def run_rubric(given: argparse.Namespace) -> int:
    """Name every place of a rubric that a reader would have to guess at, and store it unless only checked.

    Raises:
        ValueError: When the file is no rubric; names the criterion and the field.
        OSError: When it cannot be opened.
    """
    source = read_text(given.file)
    rubric = parse_rubric(source, source=given.file.name)
    findings = lint(rubric, source)
    for finding in findings:
        print(f"{given.file.name}, {finding}")
    if given.check:
        print(f"Findings: {len(findings) or 'none'}")
        return REFUSED if findings else DONE
    with writing(get_engine(database_url())) as session:
        stored = add_rubric(session=session, spec=rubric)
        print(f"Rubric {stored.name} is stored as version {stored.version}.")
    return DONE
