"""`python -m core.cli worker`: makes the planned calls of a store, on any machine that reaches it."""

import argparse
import logging
import sys

from core.judge.worker import OnlyOneError, work
from core.store.engine import database_url

DONE, REFUSED = 0, 1


def add_worker(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("--once", action="store_true", help="end when no run is left to work on")
    parser.add_argument(
        "--idle-seconds",
        type=float,
        metavar="N",
        help="end when there was nothing to do for N seconds and no schedule is on",
    )


def run_worker(given: argparse.Namespace) -> int:
    """Make planned calls, read Message Batches and start what is scheduled, until stopped."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s", stream=sys.stderr)
    try:
        work(database_url(), once=given.once, idle_seconds=given.idle_seconds)
    except OnlyOneError as error:
        print(f"evenhand worker: {error}", file=sys.stderr)
        return REFUSED
    return DONE
