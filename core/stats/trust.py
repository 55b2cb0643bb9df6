"""A trust rule, written before the measurement, against the measured agreement with people."""

from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from typing import Literal

from core.stats.calibration import JudgeAgreement
from core.stats.common import Estimate, Interval
from core.stats.planning import fewest, wilson_lower, wilson_upper
from core.stats.two_raters import Weights


class Outcome(StrEnum):
    """What a trust rule says of a judge."""

    TRUSTED = "trusted"
    NOT_TRUSTED = "not trusted"
    INCONCLUSIVE = "inconclusive"


class LineVerdict(StrEnum):
    """What one line of the rule says."""

    PASSES = "passes"
    FAILS = "fails"
    UNDECIDED = "undecided"
    UNDEFINED = "undefined"


@dataclass(frozen=True, slots=True)
class TrustRule:
    """Thresholds frozen before the measurement; a line that is None is not asked for.

    Attributes:
        min_agreement: Least share of items with the same decision or level.
        min_kappa: Least kappa.
        max_false_passes: Most false passes among the labelled items, as a count.
        max_false_pass_rate: Most false passes as a share of the human fails.
        min_labels: Fewest labelled items.
        on: Agreement and kappa of the pass/fail decisions or of the levels.
        kappa_weights: Weights of kappa over levels.
    """

    min_agreement: float | None = None
    min_kappa: float | None = None
    max_false_passes: int | None = None
    max_false_pass_rate: float | None = None
    min_labels: int | None = None
    on: Literal["decision", "level"] = "decision"
    kappa_weights: Weights = "nominal"


@dataclass(frozen=True, slots=True)
class TrustFigures:
    """The figures a rule is held against.

    Attributes:
        agreement: Share of items with the same decision or level.
        kappa: Kappa of the same.
        false_passes: Items people fail and the judge passes.
        false_pass_rate: False passes as a share of the human fails.
        labels: Items with a human label and a judge score.
    """

    agreement: Estimate
    kappa: Estimate
    false_passes: int
    false_pass_rate: Estimate
    labels: int


@dataclass(frozen=True, slots=True)
class TrustLine:
    """One line of a rule against its figure.

    Attributes:
        name: Which threshold, as `TrustRule` names it.
        value: The figure; None when undefined.
        interval: Its confidence interval, where it has one.
        threshold: What the rule asks.
        verdict: What the line says.
        labels_needed: Labelled items that would settle an undecided line if the figure stayed as it is; None when it
            is settled, or when no number would.
    """

    name: str
    value: float | None
    interval: Interval | None
    threshold: float
    verdict: LineVerdict
    labels_needed: int | None = None


@dataclass(frozen=True, slots=True)
class TrustDecision:
    """What a trust rule says of a judge, line by line.

    Attributes:
        outcome: Not trusted when any line fails; trusted when all pass; otherwise inconclusive.
        lines: The lines the rule asks for.
        labels_needed: Labelled items that would settle every undecided line; None when none is undecided, or when one
            cannot be settled by labels.
    """

    outcome: Outcome
    lines: tuple[TrustLine, ...]
    labels_needed: int | None


def trust_figures(measured: JudgeAgreement, rule: TrustRule) -> TrustFigures:
    """Pick the figures a rule speaks of: decisions or levels, and the weights of kappa."""
    decisions = rule.on == "decision"
    return TrustFigures(
        measured.rates.agreement if decisions else measured.agreement,
        measured.decision_kappa if decisions else getattr(measured.kappas, rule.kappa_weights),
        len(measured.false_passes),
        measured.rates.false_passes_of_human_fails,
        measured.items,
    )


def evaluate_trust(rule: TrustRule, figures: TrustFigures) -> TrustDecision:
    """Hold the measured figures against a rule.

    A line fails when its point misses the threshold, passes when the limit on the worse side reaches it too, and is
    undecided in between. Too few labels are undecided, a count of false passes is settled by the count, and an
    undefined figure passes nothing.

    Raises:
        ValueError: The rule asks for nothing.
    """
    lines = tuple(line for line in _lines(rule, figures) if line is not None)
    if not lines:
        raise ValueError("a trust rule needs at least one threshold")
    verdicts = {line.verdict for line in lines}
    if LineVerdict.FAILS in verdicts:
        outcome = Outcome.NOT_TRUSTED
    else:
        outcome = Outcome.TRUSTED if verdicts == {LineVerdict.PASSES} else Outcome.INCONCLUSIVE
    undecided = [line.labels_needed for line in lines if line.verdict is LineVerdict.UNDECIDED]
    needed = [labels for labels in undecided if labels is not None]
    settles = needed and len(needed) == len(undecided) and outcome is Outcome.INCONCLUSIVE
    return TrustDecision(outcome, lines, max(needed) if settles else None)


def _lines(rule: TrustRule, figures: TrustFigures) -> tuple[TrustLine | None, ...]:
    return (
        _agreement_line(rule.min_agreement, figures),
        _kappa_line(rule.min_kappa, figures),
        _false_passes_line(rule.max_false_passes, figures),
        _false_pass_rate_line(rule.max_false_pass_rate, figures),
        _labels_line(rule.min_labels, figures),
    )


def _agreement_line(least: float | None, figures: TrustFigures) -> TrustLine | None:
    if least is None:
        return None
    share, n = figures.agreement, figures.agreement.n
    verdict = _at_least(share, least)
    needed = None
    if verdict is LineVerdict.UNDECIDED and share.value is not None and share.value > least:
        value = share.value
        needed = fewest(lambda labels: labels > n and wilson_lower(value, labels) >= least)
    return TrustLine("min_agreement", share.value, share.interval, least, verdict, needed)


def _kappa_line(least: float | None, figures: TrustFigures) -> TrustLine | None:
    if least is None:
        return None
    kappa = figures.kappa
    verdict = _at_least(kappa, least)
    needed = _by_width(kappa, least, figures.labels) if verdict is LineVerdict.UNDECIDED else None
    return TrustLine("min_kappa", kappa.value, kappa.interval, least, verdict, needed)


def _false_passes_line(most: int | None, figures: TrustFigures) -> TrustLine | None:
    if most is None:
        return None
    count = figures.false_passes
    if figures.labels == 0:
        return TrustLine("max_false_passes", None, None, most, LineVerdict.UNDEFINED)
    verdict = LineVerdict.PASSES if count <= most else LineVerdict.FAILS
    return TrustLine("max_false_passes", count, None, most, verdict)


def _false_pass_rate_line(most: float | None, figures: TrustFigures) -> TrustLine | None:
    if most is None:
        return None
    rate = figures.false_pass_rate
    verdict = _at_most(rate, most)
    needed = None
    if verdict is LineVerdict.UNDECIDED and rate.value is not None and rate.value < most:
        value, fails = rate.value, rate.n
        human_fails = fewest(lambda count: count > fails and wilson_upper(value, count) <= most)
        # As many labels per human fail as there are now.
        needed = None if human_fails is None else ceil(human_fails * figures.labels / fails)
    return TrustLine("max_false_pass_rate", rate.value, rate.interval, most, verdict, needed)


def _labels_line(least: int | None, figures: TrustFigures) -> TrustLine | None:
    if least is None:
        return None
    enough = figures.labels >= least
    verdict = LineVerdict.PASSES if enough else LineVerdict.UNDECIDED
    return TrustLine("min_labels", figures.labels, None, least, verdict, None if enough else least)


def _at_least(figure: Estimate, least: float) -> LineVerdict:
    if figure.value is None:
        return LineVerdict.UNDEFINED
    if figure.value < least:
        return LineVerdict.FAILS
    low = None if figure.interval is None else figure.interval.low
    return LineVerdict.PASSES if low is not None and low >= least else LineVerdict.UNDECIDED


def _at_most(figure: Estimate, most: float) -> LineVerdict:
    if figure.value is None:
        return LineVerdict.UNDEFINED
    if figure.value > most:
        return LineVerdict.FAILS
    high = None if figure.interval is None else figure.interval.high
    return LineVerdict.PASSES if high is not None and high <= most else LineVerdict.UNDECIDED


def _by_width(figure: Estimate, least: float, n: int) -> int | None:
    """Labels at which the lower limit would reach the threshold, the width shrinking as 1 / sqrt(n)."""
    low = None if figure.interval is None else figure.interval.low
    if figure.value is None or low is None or figure.value <= least:
        return None
    return max(n + 1, ceil(n * ((figure.value - low) / (figure.value - least)) ** 2))
