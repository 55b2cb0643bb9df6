"""The judge card: one self-contained HTML file that opens offline and prints."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.offline import get_plotlyjs

from core.figures.agreement import estimate_row, forest
from core.figures.gate import gate_curve
from core.figures.levels import level_bars
from core.figures.review import COLUMNS, review_forest, review_rows, say_items, say_outcome
from core.figures.words import say_estimate
from core.stats.common import Estimate, Floats, Interval
from core.stats.dispersion import level_counts
from core.stats.gate import flip_curve
from core.stats.health import SEED, JudgeHealth
from core.stats.review import PromotionRule, Review

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1b1f24; }
h1 { margin-bottom: 0; } h2 { margin-top: 2rem; border-bottom: 1px solid #d0d7de; }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #d0d7de; vertical-align: top; }
td { overflow-wrap: anywhere; } .outcome { font-size: 1.2rem; font-weight: 600; } .note { color: #57606a; }
@media print { body { max-width: none; margin: 0; } h2 { break-after: avoid; } figure, table { break-inside: avoid; } }
"""


@dataclass(frozen=True, slots=True)
class CardFacts:
    """Everything the card says.

    Attributes:
        identity: Parts of judge, rubric and corpus with their hashes, as (name, value).
        criterion: What is scored.
        levels: Level values, shape (L,).
        anchors: What a reader must see to give each level.
        gate: The score at and above which an item passes.
        outcomes: Calls by outcome.
        codes: Level indices, shape (items, repetitions), MISSING where there is no usable score.
        health: The judge's wobble.
        labels: Label set in words, empty without one.
        rule: The promotion rule in words, empty when no review was made.
        rule_sha256: Hash of the frozen rule.
        baseline: The baseline in words.
        review: The review; None when there was none.
        asked: What the rule asks.
        keys: Key of each item of the review.
        decisions: Recorded decisions, newest first: created_at, kind, judge, baseline, rule, author, reason.
    """

    identity: Sequence[tuple[str, str]]
    criterion: str
    levels: Floats
    anchors: Sequence[str]
    gate: float
    outcomes: Mapping[str, int]
    codes: NDArray[np.integer]
    health: JudgeHealth
    labels: str
    rule: str
    rule_sha256: str
    baseline: str
    review: Review | None
    asked: PromotionRule
    keys: list[str]
    decisions: pd.DataFrame


def judge_card(facts: CardFacts) -> str:
    """The card as HTML; text from outside is escaped, and no resource is fetched."""
    name = facts.identity[0][1] if facts.identity else "judge"
    sections = [
        f"<h1>{escape(name)}</h1><p class='note'>Judge card · criterion {escape(facts.criterion)}, gate {facts.gate:g}"
        " · a score is an observation, so every figure stands with what it rests on.</p>",
        *_decided(facts),
        "<h2>What was measured</h2>",
        _table(("Part", "Value"), facts.identity),
        _table(
            ("Level", "What a reader must see"),
            [(f"{v:g}", a) for v, a in zip(facts.levels, facts.anchors, strict=True)],
        ),
        "<h2>Calls</h2>",
        _outcomes(facts.outcomes),
        "<h2>Wobble</h2>",
        _table(("Figure", "Value, 95% interval, n", "Method"), _wobble(facts.health)),
        *_wobble_figures(facts),
        "<h2>Decisions so far</h2>",
        _decisions(facts.decisions),
    ]
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        f"<title>Judge card: {escape(name)}</title><style>{_STYLE}</style>"
        f"<script>{get_plotlyjs()}</script></head><body>{''.join(sections)}</body></html>"
    )


def _levels(facts: CardFacts) -> list[tuple[str, str]]:
    return [(f"{value:g}", anchor) for value, anchor in zip(facts.levels, facts.anchors, strict=True)]


def _decided(facts: CardFacts) -> Iterable[str]:
    if facts.review is None:
        return
    rows = review_rows(facts.review, facts.asked, facts.keys)
    labels = f"{facts.labels}, {facts.review.labelled:,} items" if facts.labels else "none"
    yield "<h2>Promotion review</h2>"
    yield f"<p class='outcome'>{escape(say_outcome(facts.review))}</p>"
    yield f"<p>Against {escape(facts.baseline)}. Labels: {escape(labels)}. {escape(say_items(facts.review))}.</p>"
    yield f"<p>Rule {escape(facts.rule)}<br><span class='note'>sha256 {escape(facts.rule_sha256)}</span></p>"
    yield _table(COLUMNS, [[row[column] for column in COLUMNS] for row in rows])
    yield _figure(review_forest(facts.review))


def _wobble(health: JudgeHealth) -> list[tuple[str, str, str]]:
    figures = [
        ("Within-item SD", health.dispersion.within_item_sd),
        ("Repeatability", health.dispersion.repeatability),
        ("Flip rate at the gate", health.gate.flip_rate),
        ("Items seen to flip", health.gate.any_flip),
        ("Alpha, nominal", health.alpha_nominal),
        ("Alpha, ordinal", health.alpha_ordinal),
        ("Alpha, interval", health.alpha_interval),
        ("ICC(1,1)", health.icc.single),
        ("ICC(1,k)", health.icc.average),
    ]
    return [(name, say_estimate(found), _method(found)) for name, found in figures]


def _method(found: Estimate) -> str:
    interval: Interval | None = found.interval
    return "; ".join([interval.method if interval else "no interval", *found.notes])


def _wobble_figures(facts: CardFacts) -> Iterable[str]:
    counts = level_counts(facts.codes, len(facts.levels))
    yield _figure(level_bars(counts.sum(axis=0)[None, :], facts.levels, [facts.criterion], gate=facts.gate))
    points = flip_curve(counts, facts.levels, rng=np.random.default_rng(SEED))
    yield _figure(gate_curve(points, gate=facts.gate))
    health = facts.health
    rows = [
        estimate_row("Alpha, ordinal", health.alpha_ordinal, unit="agreement"),
        estimate_row("ICC(1,1)", health.icc.single, unit="agreement"),
        estimate_row("Flip rate", health.gate.flip_rate, unit="share"),
    ]
    yield _figure(forest(rows))


def _outcomes(outcomes: Mapping[str, int]) -> str:
    attempted = sum(outcomes.values())
    rows = [("attempted", f"{attempted:,}"), *((name, f"{calls:,}") for name, calls in outcomes.items())]
    return _table(("Outcome", "Calls"), rows)


def _decisions(decisions: pd.DataFrame) -> str:
    if decisions.empty:
        return "<p>None is recorded.</p>"
    columns = ("created_at", "kind", "judge", "baseline", "rule", "author", "reason")
    rows = [
        [f"{row.created_at:%Y-%m-%d %H:%M} UTC", *(str(getattr(row, name) or "") for name in columns[1:])]
        for row in decisions.itertuples()
    ]
    return _table(columns, rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    heads = "".join(f"<th>{escape(cell.replace('_', ' '))}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def _figure(figure: go.Figure) -> str:
    html: str = figure.to_html(full_html=False, include_plotlyjs=False, config={"displaylogo": False})
    return f"<figure>{html}</figure>"
