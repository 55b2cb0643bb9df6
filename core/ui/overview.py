"""The overview's table: one row a judge and corpus."""

import pandas as pd

from core.stats.common import Estimate
from core.ui import cached
from core.ui.cached import Selection, Snapshot
from core.ui.scope import corpus_key, judge_key, judge_words, run_revisions

FIRST = "first"
"""The criterion choice that takes each rubric's first."""


def criterion_keys(at: Snapshot) -> list[str]:
    """Every criterion that some judge scores, in rubric order."""
    rubrics = cached.judges(at).rubric_id.unique()
    keys = [criterion.key for rubric in rubrics for criterion in cached.criteria(at, rubric_id=int(rubric))]
    return list(dict.fromkeys(keys))


def overview(at: Snapshot, criterion: str = FIRST) -> pd.DataFrame:
    """One row for each judge on each corpus that scores the criterion.

    Columns: judge, corpus, criterion, runs, items, attempted, scored, unscored, within_item_sd, flip_rate,
    flip_interval, alpha, undefined (why a figure is missing), newest_run, source; and corpus_key, judge_key and
    pairwise for the way to the next page.
    """
    rows = [_row(at, judge, criterion) for _, judge in cached.judges(at).iterrows()]
    return pd.DataFrame([row for row in rows if row is not None])


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
        return row | {"undefined": "compares pairs: see its position bias"}
    health = cached.health(selection, criterion.gate)
    figures = {
        "within_item_sd": health.dispersion.within_item_sd,
        "flip_rate": health.gate.flip_rate,
        "alpha": health.alpha_ordinal,
    }
    interval = health.gate.flip_rate.interval
    if interval and interval.low is not None and interval.high is not None:
        row["flip_interval"] = f"{interval.low:.1%} to {interval.high:.1%}"
    return (
        row
        | {"items": health.items, "undefined": _why(figures)}
        | {name: estimate.value for name, estimate in figures.items()}
    )


def _reasons(outcomes: dict[str, int]) -> str:
    rest = {reason: calls for reason, calls in outcomes.items() if reason != "scored"}
    detail = ", ".join(f"{reason} {calls:,}" for reason, calls in sorted(rest.items()))
    return f"{sum(rest.values()):,}" + (f" ({detail})" if detail else "")


def _why(figures: dict[str, Estimate]) -> str:
    reasons = [estimate.reason.words for estimate in figures.values() if estimate.reason]
    return "; ".join(dict.fromkeys(reasons))
