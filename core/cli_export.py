"""`python -m core.cli export`: a judge's scores as CSV, as the Datasets page hands them out."""

import argparse
import sys
from pathlib import Path
from typing import Any

from sqlmodel import Session

from core.cli_gate import fits
from core.store import contents, queries
from core.store.engine import database_url, get_engine, reading

DONE = 0


def add_export(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    add = parser.add_argument
    add("--judge", required=True, metavar="JUDGE", help="its name, model or fingerprint")
    add("--corpus", default="", metavar="NAME", help="needed where the judge scored several; its newest version")
    add("--out", type=Path, metavar="FILE.csv", help="default: print it")
    add("--most", type=int, default=contents.MOST_EXPORTED, metavar="N", help="scores at most (default %(default)s)")


def run_export(given: argparse.Namespace) -> int:
    """Write one row a score, unscored ones with their reason, and no texts.

    Raises:
        ValueError: When no judge or several fit; names them.
        OSError: When the file cannot be written.
    """
    with reading(get_engine(database_url())) as session:
        judge = _find(session, given)
        scores = contents.list_scores(
            session=session, judge_id=int(judge.judge_id), corpus_id=int(judge.corpus_id), most=given.most
        )
    text = contents.to_csv(scores)
    if given.out:
        given.out.write_text(text, encoding="utf-8", newline="")
    else:
        print(text, end="")
    if len(scores) == given.most:
        print(f"evenhand export: the first {given.most:,} scores; give --most for more", file=sys.stderr)
    return DONE


def _find(session: Session, given: argparse.Namespace) -> Any:
    """The row of `queries.list_judges` that is meant."""
    judges = queries.list_judges(session=session)
    found = judges[fits(judges, given.judge) & ((judges.corpus == given.corpus) | (not given.corpus))]
    on = f" with scores on {given.corpus}" if given.corpus else ""
    if found.empty:
        known = ", ".join(judges["name"].unique()) or "none"
        raise ValueError(f"there is no judge {given.judge}{on}; there are: {known}")
    if found.judge_id.nunique() > 1:
        prints = ", ".join(print_[:12] for print_ in found.fingerprint.unique())
        raise ValueError(f"several judges fit {given.judge}: give one fingerprint of {prints}")
    if found.corpus.nunique() > 1:
        raise ValueError(
            f"{given.judge} scored several corpora: give --corpus, one of {', '.join(found.corpus.unique())}"
        )
    return found.loc[found.corpus_version.idxmax()]
