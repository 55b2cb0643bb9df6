"""Processes of a test end with it, whatever happens in between."""

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

GRACE = 10
"""Seconds between asking a process to end and ending it."""


@contextmanager
def running(
    command: Sequence[str], *, cwd: Path | None = None, env: dict[str, str] | None = None, piped: bool = False
) -> Iterator[subprocess.Popen[str]]:
    """The process of `command` within the block; it and its children are ended afterwards, even when the block fails.

    With `piped` its standard input and output belong to the block.
    """
    pipe = subprocess.PIPE if piped else None
    process = subprocess.Popen(command, cwd=cwd, env=env, stdin=pipe, stdout=pipe, text=True, process_group=0)
    try:
        yield process
    finally:
        _end(process, signal.SIGTERM)
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            _end(process, signal.SIGKILL)
            process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


def _end(process: subprocess.Popen[str], how: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, how)
