"""The overview's table: one row a judge and corpus."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from core.stats.common import Estimate
from core.store.tables import Order
from core.ui import cached
from core.ui.cached import Selection, Snapshot
from core.ui.page import ROW_OR_CELL, clicked_row, outcome_words
from core.ui.scope import best_first, corpus_key, judge_key, judge_words, run_revisions

FIRST = "first"
"""The criterion choice that takes each rubric's first."""

FIGURES = ("within_item_sd", "flip_rate", "alpha")
SEE_POSITION_BIAS = "see position bias"

_CALLS = ("attempted", "scored", "unscored", "runs", "newest_run", "corpus", "criterion", "source")
COLUMNS = ("judge", *FIGURES[:2], "flip_interval", "alpha", "gate", "items", *_CALLS, "undefined")
PAIR_COLUMNS = ("judge", "undefined", "items", *_CALLS)

_COLUMN = st.column_config
_CONFIG = {
    "judge": _COLUMN.TextColumn(
        "Judge", width=270, help="Its fingerprint in words: name, model snapshot, prompt, rubric version."
    ),
    "within_item_sd": _COLUMN.NumberColumn(
        "Within-item SD",
        format="%.3f",
        width=120,
        help="Spread of repeated scores of one item, in score points: √(Σ squares within items ÷ Σ(n − 1)).",
    ),
    "flip_rate": _COLUMN.NumberColumn(
        "Flip rate",
        format="percent",
        width=100,
        help="Chance that two repetitions of an item fall on different sides of the gate, mean over items.",
    ),
    "flip_interval": _COLUMN.TextColumn(
        "95% interval", width=130, help="Of the flip rate; items are resampled, 2,000 draws."
    ),
    "alpha": _COLUMN.NumberColumn(
        "Alpha",
        format="%.3f",
        width=100,
        help="Krippendorff's alpha (ordinal) of the repetitions with one another: 1 is perfect, 0 is chance.",
    ),
    "gate": _COLUMN.NumberColumn("Gate", format="%g", help="The rubric's: an item passes at and above this score."),
    "items": _COLUMN.NumberColumn("Items", format="localized", help="Items, or pairs, with at least one call."),
    "attempted": _COLUMN.NumberColumn("Attempted", format="localized", help="Calls made."),
    "scored": _COLUMN.NumberColumn("Scored", format="localized", help="Calls with a usable, independent score."),
    "unscored": _COLUMN.TextColumn(
        "Unscored", width="medium", help="Calls without such a score, by reason; they are never counted as scores."
    ),
    "runs": _COLUMN.NumberColumn("Runs", help="Batches of calls."),
    "newest_run": _COLUMN.DatetimeColumn(
        "Newest run (UTC)", format="YYYY-MM-DD HH:mm", timezone="UTC", help="When the newest batch was begun or read."
    ),
    "corpus": _COLUMN.TextColumn("Corpus", width=150, help="The frozen, versioned set of items it was run over."),
    "criterion": _COLUMN.TextColumn("Criterion", help="What was scored."),
    "source": _COLUMN.TextColumn("Source", help="Where the scores came from; simulated ones are made by a program."),
    "undefined": _COLUMN.TextColumn("Why undefined", width="medium", help="Why a figure in this row has no value."),
}


def criterion_keys(at: Snapshot) -> list[str]:
    """Every criterion that some judge scores, in rubric order."""
    rubrics = cached.judges(at).rubric_id.unique()
    keys = [criterion.key for rubric in rubrics for criterion in cached.criteria(at, rubric_id=int(rubric))]
    return list(dict.fromkeys(keys))


def overview(at: Snapshot, criterion: str = FIRST) -> pd.DataFrame:
    """One row for each judge on each corpus that scores the criterion.

    Columns: judge, corpus, criterion, runs, items, attempted, scored, unscored, gate, within_item_sd, flip_rate,
    flip_interval, alpha, undefined (why a figure is missing), newest_run, source; and corpus_key, judge_key and
    pairwise for the way to the next page. A judge of pairs has none of the figures.
    """
    rows = [_row(at, judge, criterion) for _, judge in best_first(at, cached.judges(at)).iterrows()]
    found = pd.DataFrame([row for row in rows if row is not None])
    return found.astype(dict.fromkeys(FIGURES, float))


def show_judges(table: pd.DataFrame, columns: Sequence[str], *, leads_to: str, key: str) -> None:
    """A table of judges; a click on a row opens its judge, corpus and criterion on another page.

    Args:
        table: Rows of `overview`.
        columns: Which of its columns, in order.
        leads_to: The other page.
        key: Key of the table.
    """
    if table.empty:
        st.caption("None scores this criterion.")
        return
    event = st.dataframe(
        table,
        key=key,
        hide_index=True,
        on_select="rerun",
        selection_mode=ROW_OR_CELL,
        placeholder="undefined",
        column_order=columns,
        column_config=_CONFIG | ({"undefined": "Figures"} if table.pairwise.all() else {}),
    )
    clicked = clicked_row(event)
    if clicked is not None:
        row = table.iloc[clicked]
        query = {"corpus": row.corpus_key, "judge": row.judge_key, "criterion": row.criterion}
        st.switch_page(leads_to, query_params=query)


def _row(at: Snapshot, judge: pd.Series, wanted: str) -> dict[str, object] | None:
    criteria = {criterion.key: criterion for criterion in cached.criteria(at, rubric_id=int(judge.rubric_id))}
    criterion = next(iter(criteria.values())) if wanted == FIRST else criteria.get(wanted)
    if criterion is None:
        return None
    runs = cached.runs(at, judge_id=int(judge.judge_id), corpus_id=int(judge.corpus_id))
    selection = Selection(
        at.store,
        run_revisions(runs),
        criterion.id,
        criterion.levels,
    )
    outcomes = cached.tallies(selection)
    row: dict[str, object] = {
        "judge": judge_words(judge),
        "corpus": f"{judge.corpus} v{judge.corpus_version}",
        "criterion": criterion.key,
        "runs": int(judge.runs),
        "items": None,
        "attempted": sum(outcomes.values()),
        "scored": outcomes.get("scored", 0),
        "unscored": _reasons(outcomes),
        "gate": criterion.gate,
        "within_item_sd": None,
        "flip_rate": None,
        "flip_interval": "",
        "alpha": None,
        "undefined": "",
        "newest_run": judge.newest_run,
        "source": "simulated" if judge.simulated else str(judge.kind),
        "corpus_key": corpus_key(judge.corpus, judge.corpus_version),
        "judge_key": judge_key(judge.fingerprint),
        "pairwise": bool(judge.pairwise),
    }
    if judge.pairwise:
        pairs = cached.matrix(selection._replace(slot_order=Order.AB))
        return row | {"items": len(pairs.item_ids), "undefined": SEE_POSITION_BIAS}
    health = cached.health(selection, criterion.gate)
    figures = {
        "within_item_sd": health.dispersion.within_item_sd,
        "flip_rate": health.gate.flip_rate,
        "alpha": health.alpha_ordinal,
    }
    interval = health.gate.flip_rate.interval
    if interval and interval.low is not None and interval.high is not None:
        row["flip_interval"] = f"{interval.low:.1%} to {interval.high:.1%}"
    else:
        row["flip_interval"] = f"none: {interval.reason.words}" if interval and interval.reason else "undefined"
    return (
        row
        | {"items": health.items, "undefined": _why(figures)}
        | {name: estimate.value for name, estimate in figures.items()}
    )


def _reasons(outcomes: dict[str, int]) -> str:
    rest = {reason: calls for reason, calls in outcomes.items() if reason != "scored"}
    detail = ", ".join(f"{calls:,} {outcome_words(reason)}" for reason, calls in sorted(rest.items()))
    return f"{sum(rest.values()):,}" + (f" ({detail})" if detail else "")


def _why(figures: dict[str, Estimate]) -> str:
    reasons = [estimate.reason.words for estimate in figures.values() if estimate.reason]
    return "; ".join(dict.fromkeys(reasons))
