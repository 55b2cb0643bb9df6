"""Repetitions as a page names them, and the choice of two in the URL."""

from collections.abc import Callable

import numpy as np
import streamlit as st

from core.stats.common import Floats
from core.stats.pairs import RunPairs
from core.ui import cached, url
from core.ui.scope import Scope

FIRST, SECOND = "a", "b"


def repetition_names(scope: Scope) -> list[str]:
    """Name of each column of the scope's score matrix, "7·0": run and repetition."""
    return [f"{column.run_id}·{column.repetition}" for column in cached.matrix(scope.selection).columns]


def choose_pair(scope: Scope, pairs: RunPairs, shares: Floats) -> tuple[int, int]:
    """Draw the choice of two repetitions and return their columns; the pair that flips most is the default.

    Args:
        scope: What is looked at.
        pairs: Every two repetitions.
        shares: Flip share of each, shape (P,), nan where undefined.
    """
    columns = cached.matrix(scope.selection).columns
    keys = _keys(scope)
    options = {
        key: f"run {column.run_id} · repetition {column.repetition}" for key, column in zip(keys, columns, strict=True)
    }
    most = int(np.argmax(np.nan_to_num(shares, nan=-1.0)))
    chosen = [
        keys.index(url.choose(place, label, name, options, default=keys[end[most]]))
        for place, label, name, end in zip(
            st.columns(2),
            ("First repetition", "Second repetition"),
            (FIRST, SECOND),
            (pairs.first, pairs.second),
            strict=True,
        )
    ]
    return chosen[0], chosen[1]


def pick_pair(scope: Scope) -> Callable[[tuple[int, ...]], None]:
    """What a click on a pair of columns does: it becomes the chosen pair."""
    keys = _keys(scope)

    def pick(pair: tuple[int, ...]) -> None:
        first, second = pair
        if first != second:
            url.publish(**{FIRST: keys[first], SECOND: keys[second]})

    return pick


def _keys(scope: Scope) -> list[str]:
    return [f"{column.run_id}.{column.repetition}" for column in cached.matrix(scope.selection).columns]
