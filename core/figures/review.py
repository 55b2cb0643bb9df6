"""The promotion review in words and as a forest: one table for page, command line and judge card."""

from dataclasses import replace
from typing import NamedTuple

import plotly.graph_objects as go

from core.figures.agreement import forest, promotion_row
from core.figures.words import say_interval, say_number, say_reason, say_share
from core.stats.common import Estimate
from core.stats.promotion import GateOutcome
from core.stats.review import PromotionRule, Review, ReviewLine


class LineWords(NamedTuple):
    """What one line of a rule measures.

    Attributes:
        name: On screen.
        unit: Of its margin.
        help: How it is computed.
        share: Whether its values are shares, printed as per cent.
    """

    name: str
    unit: str
    help: str
    share: bool


LINES = {
    "agreement": LineWords(
        "Agreement with people",
        "share of labelled items",
        "Share of an item's scored calls that decide at the gate as people do, mean over labelled items.",
        True,
    ),
    "false_pass_rate": LineWords(
        "False passes",
        "share of the human fails",
        "Share of the calls that pass, mean over the items people fail.",
        True,
    ),
    "item_sd": LineWords(
        "Spread within items",
        "score points",
        "Sample SD of an item's repetitions, mean over items with at least two.",
        False,
    ),
    "flip_rate": LineWords(
        "Flip rate at the gate",
        "share",
        "Chance that two repetitions of an item disagree at the gate, mean over items.",
        True,
    ),
    "location": LineWords(
        "Score location",
        "score points, either way",
        "Mean score of an item, mean over items; a shift either way counts.",
        False,
    ),
    "unscored": LineWords(
        "Unscored calls", "share of calls", "Share of an item's calls without a usable score, mean over items.", True
    ),
    "tokens": LineWords("Tokens", "tokens a call", "Mean tokens of a call, request and reply, mean over items.", False),
    "item_pass_share": LineWords(
        "Every item by itself",
        "pass share of each item",
        "Each item of the candidate needs this pass share; an item without a score is not a pass.",
        True,
    ),
}

COLUMNS = ("line", "candidate", "baseline", "difference", "interval_90", "margin", "items", "outcome", "why")


def say_rule(rule: PromotionRule) -> str:
    """Everything the rule asks, in one sentence."""
    parts = [
        f"pass share of every item at least {_value(name, margin)}"
        if name == "item_pass_share"
        else f"{LINES[name].name.lower()} worse by less than {_value(name, margin)}"
        for name, margin in rule.asks.items()
    ]
    return "; ".join(parts) or "nothing"


def review_rows(review: Review, rule: PromotionRule, keys: list[str]) -> list[dict[str, str]]:
    """One row a line, every cell in words, columns as in `COLUMNS`.

    Args:
        review: The review.
        rule: The rule it was made under.
        keys: Key of each item, to name the items that fail by themselves.
    """
    return [_row(line, rule.asks[line.name], keys) for line in review.lines]


def review_forest(review: Review) -> go.Figure:
    """Every difference with its 90% interval against its margin; a location has a margin on each side."""
    rows = []
    for line in review.lines:
        if line.result is None:
            continue
        name, unit = LINES[line.name].name, LINES[line.name].unit
        rows.append(promotion_row(name, line.result, unit=unit))
        if line.name == "location":
            rows[-1] = replace(rows[-1], name=f"{name}, not higher")
            below = promotion_row(f"{name}, not lower", replace(line.result, higher_is_better=True), unit=unit)
            rows.append(below)
    return forest(rows, zero=True, threshold_word="margin")


def say_outcome(review: Review) -> str:
    """The review's end in one sentence."""
    undecided = [LINES[line.name].name.lower() for line in review.lines if line.outcome is GateOutcome.INSUFFICIENT]
    failed = [LINES[line.name].name.lower() for line in review.lines if line.outcome is GateOutcome.FAIL]
    if review.outcome is GateOutcome.FAIL:
        return f"fail: {', '.join(failed)}"
    if review.outcome is GateOutcome.PASS:
        return f"pass: all {len(review.lines)} lines"
    return f"insufficient evidence: {', '.join(undecided) or 'the rule asks nothing'}"


def say_items(review: Review) -> str:
    """Counts of the items that changed."""
    by = "nearer to people" if review.labelled else "more passes"
    return (
        f"{int(review.better.sum()):,} items better ({by}), {int(review.worse.sum()):,} worse; "
        f"{int(review.fixed.sum()):,} fixed, {int(review.broken.sum()):,} broken, "
        f"{int(review.within_noise.sum()):,} changed within noise"
    )


def say_needed(line: ReviewLine) -> str:
    """What would decide an undecided line, and where it is undecided why."""
    if line.items is not None:
        missing = len(line.items.missing)
        return f"{missing:,} items have no score" if line.outcome is GateOutcome.INSUFFICIENT else ""
    result = line.result
    if result is None or line.outcome is not GateOutcome.INSUFFICIENT:
        return ""
    if result.difference.value is None:
        return say_reason(result.difference.reason)
    if result.items_needed is None:
        return "more items would not decide it at the present difference"
    return f"about {result.items_needed:,} items would decide it at the present difference"


def _row(line: ReviewLine, margin: float, keys: list[str]) -> dict[str, str]:
    result = line.result
    difference = result.difference if result else None
    share = LINES[line.name].share
    return {
        "line": LINES[line.name].name,
        "candidate": _mean(line.candidate, share=share),
        "baseline": _mean(line.baseline, share=share),
        "difference": _mean(difference, share=share, signed=True) if difference else "",
        "interval_90": say_interval(difference.interval, 1 if share else 3, share=share)
        if difference and difference.interval
        else "",
        "margin": _value(line.name, margin),
        "items": f"{difference.n if difference else line.candidate.n:,}",
        "outcome": str(line.outcome),
        "why": _failed_items(line, keys) or say_needed(line),
    }


def _failed_items(line: ReviewLine, keys: list[str]) -> str:
    if line.items is None or not len(line.items.failed):
        return ""
    names = [keys[place] for place in line.items.failed.tolist()]
    shown = ", ".join(names[:10]) + (f" and {len(names) - 10:,} more" if len(names) > 10 else "")
    return f"below by themselves: {shown}"


def _mean(estimate: Estimate, *, share: bool, signed: bool = False) -> str:
    if estimate.value is None:
        return say_reason(estimate.reason)
    words = say_share(estimate.value) if share else say_number(estimate.value)
    return f"+{words}" if signed and words[0].isdigit() and estimate.value > 0 else words


def _value(name: str, value: float) -> str:
    return say_share(value) if LINES[name].share else f"{value:g} {LINES[name].unit}"
