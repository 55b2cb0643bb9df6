"""A judge against people in words: the same lines on the page and from the command line."""

from typing import NamedTuple

from core.figures.words import say_count, say_estimate, say_interval, say_part
from core.stats.against_people import ADJUDICATED, CALLS, COLUMN, MAJORITY, MODAL, RATER, Assessment
from core.stats.calibration import Confusion, JudgeAgreement
from core.stats.common import Estimate, Undefined
from core.stats.people import FEWEST_ITEMS_EACH, FEWEST_PEOPLE
from core.stats.trust import LineVerdict, Outcome, TrustDecision, TrustLine, TrustRule

SPLIT = (
    "People split on some items, which are left out. They are the harder ones, so the figures flatter the judge: "
    "adjudicate them, or compare with one rater."
)

LATE = "made after the labels were seen"
"""Said of a trust rule, for ever."""

OUTCOMES = {
    Outcome.TRUSTED: "trusted",
    Outcome.NOT_TRUSTED: "do not trust",
    Outcome.INCONCLUSIVE: "inconclusive",
}


class Line(NamedTuple):
    """One figure with its name, what it means, and its words."""

    name: str
    meaning: str
    estimate: Estimate
    words: str


def agreement_lines(measured: JudgeAgreement) -> list[Line]:
    """Every figure of a judge against people, in the order of the page."""
    rates, kappas = measured.rates, measured.kappas

    def line(name: str, meaning: str, found: Estimate) -> Line:
        return Line(name, meaning, found, _with_notes(say_estimate(found), found))

    return [
        line("agreement", "same decision, of all", rates.agreement),
        line("kappa", "decisions beyond chance", measured.decision_kappa),
        line("pass rate of people", "base rate", rates.human_pass_rate),
        line("pass rate of the judge", "base rate", rates.judge_pass_rate),
        line("sensitivity", "judge passes, of the passes by people", rates.sensitivity),
        line("specificity", "judge fails, of the fails by people", rates.specificity),
        line("false passes of human fails", "how many fails slip through", rates.false_passes_of_human_fails),
        line("false passes of judge passes", "how many passes are wrong", rates.false_passes_of_judge_passes),
        line("false fails of human passes", "how many passes are held back", rates.false_fails_of_human_passes),
        line("agreement on levels", "same level, of all", measured.agreement),
        line("kappa, nominal", "levels: equal or not", kappas.nominal),
        line("kappa, linear", "levels: by distance", kappas.linear),
        line("kappa, quadratic", "levels: by squared distance", kappas.quadratic),
        line("Gwet AC1", "levels; moves with their number", measured.ac1),
        line("PABAK", "levels; moves with their number", measured.pabak),
    ]


def say_false_passes(confusion: Confusion, *, calls: bool = False) -> str:
    """False passes with both denominators.

    >>> say_false_passes(Confusion(tp=9, fp=3, fn=2, tn=6))
    '3 of 9 fails by people (33.3%), 3 of 12 passes by the judge (25.0%)'
    """
    of_fails = _of(confusion.fp, confusion.human_fails, "fails by people")
    of_passes = _of(confusion.fp, confusion.judge_passes, "passes by the judge")
    return f"{of_fails}, {of_passes}" + (", counted in calls" if calls else "")


def say_false_fails(confusion: Confusion, *, calls: bool = False) -> str:
    """False fails with both denominators.

    >>> say_false_fails(Confusion(tp=9, fp=3, fn=2, tn=6))
    '2 of 11 passes by people (18.2%), 2 of 8 fails by the judge (25.0%)'
    """
    of_passes = _of(confusion.fn, confusion.human_passes, "passes by people")
    of_fails = _of(confusion.fn, confusion.fn + confusion.tn, "fails by the judge")
    return f"{of_passes}, {of_fails}" + (", counted in calls" if calls else "")


def say_left_out(found: Assessment) -> str:
    """Items that are in no figure, and why; and labels that belong to no level."""
    out, used = found.left_out, found.measured.items
    parts = [
        f"{say_count(used)} items with a label and a score",
        f"left out: {say_count(out.no_label)} scored without a label, {say_count(out.no_score)} labelled without a "
        f"score, {say_count(out.tied)} without a majority",
    ]
    if found.between:
        parts.append(f"{say_count(found.between)} labels lie between two levels and belong to none")
    return " · ".join(parts)


def say_reference(reference: str) -> str:
    """What the judge is held against."""
    if reference == MAJORITY:
        return "majority of the raters, the adjudicated label where there is one"
    if reference == ADJUDICATED:
        return "adjudicated labels only"
    return f"labels of {reference.removeprefix(RATER) or 'one rater without a name'}"


def say_unit(unit: str, columns: list[str]) -> str:
    """What counts as one judgement.

    Args:
        unit: As the statistics take it.
        columns: Names of the score matrix's columns.
    """
    if unit == CALLS:
        return "all calls, clustered by item"
    if unit == MODAL:
        return "most frequent score of each item; a tie takes the lower level"
    return f"one call an item: {columns[int(unit.removeprefix(COLUMN))]}"


def corrected_lines(found: Assessment) -> list[str]:
    """The corrected pass rate of the unlabelled rest, or why there is none."""
    corrected = found.corrected
    estimate = corrected.rate.estimate
    if corrected.rehearsal:
        lines = [
            "No scored item is unlabelled, so there is no rest to correct. On the labelled items themselves the "
            "correction shows how far so many labels carry:"
        ]
    else:
        lines = [f"The judge passes {say_part(corrected.rest_passes, corrected.rest)} unlabelled items."]
    words = say_estimate(estimate, 1, share=True)
    if estimate.reason is Undefined.NO_DENOMINATOR:
        words = "undefined: the labels hold no pass or no fail by people, so the judge's errors are unknown"
    elif estimate.reason is Undefined.SINGULAR:
        words = "refused"
    lines.append(f"corrected pass rate (Rogan-Gladen, Lee et al.) {words}")
    lines += estimate.notes
    if not corrected.rehearsal:
        lines.append(f"prediction-powered inference {say_estimate(corrected.ppi.estimate, 1, share=True)}")
        lines += corrected.ppi.estimate.notes
    return lines


def ceiling_lines(found: Assessment) -> list[tuple[str, Estimate, Estimate]]:
    """What is measured, between people, and between the judge and people; empty below two raters."""
    lines = []
    for word, ceiling in (("decisions", found.decisions), ("levels", found.levels)):
        if ceiling is not None:
            lines.append((f"agreement, {word}", ceiling.human_agreement, ceiling.judge_agreement))
            lines.append((f"kappa, {word}", ceiling.human_kappa, ceiling.judge_kappa))
    return lines


def say_replacement(found: Assessment) -> str:
    """What the alternative annotator test says."""
    test = found.replacement
    if test is None or test.winning_rate.value is None:
        return (
            "Whether the judge could replace one of the people is not tested: that needs at least "
            f"{FEWEST_PEOPLE} people with {FEWEST_ITEMS_EACH} items each that another labelled too."
        )
    may = "may" if test.passes else "may not"
    return (
        f"Alternative annotator test: the judge {may} replace a person (winning rate {test.winning_rate.value:.2f} of "
        f"{test.winning_rate.n} people, asked 0.50, tolerance {test.epsilon:g}; Calderon et al. 2025)."
    )


def say_rule(rule: TrustRule) -> str:
    """What a rule asks for.

    >>> say_rule(TrustRule(min_agreement=0.8, min_kappa=0.6, max_false_passes=2, min_labels=50))
    'agreement ≥ 0.8, kappa ≥ 0.6, false passes ≤ 2, labels ≥ 50; on decisions'
    """
    asked = {
        "agreement ≥": rule.min_agreement,
        "kappa ≥": rule.min_kappa,
        "false passes ≤": rule.max_false_passes,
        "false passes of human fails ≤": rule.max_false_pass_rate,
        "labels ≥": rule.min_labels,
    }
    lines = ", ".join(f"{name} {value:g}" for name, value in asked.items() if value is not None)
    on = "decisions" if rule.on == "decision" else f"levels, {rule.kappa_weights} kappa"
    return f"{lines}; on {on}"


def say_trust(decision: TrustDecision) -> str:
    """The outcome of a rule, with the labels that would decide it."""
    words = OUTCOMES[decision.outcome]
    if decision.outcome is not Outcome.INCONCLUSIVE:
        return words
    if decision.labels_needed is None:
        return f"{words}: no number of further labels would settle every line at the present figures"
    return f"{words}: {say_count(decision.labels_needed)} labels would decide it if the figures stay as they are"


LINE_NAMES = {
    "min_agreement": "agreement",
    "min_kappa": "kappa",
    "max_false_passes": "false passes",
    "max_false_pass_rate": "false passes of human fails",
    "min_labels": "labels",
}


def say_line(line: TrustLine) -> str:
    """One line of a rule against its figure."""
    sign = "≤" if line.name.startswith("max") else "≥"
    undefined = line.value is None or line.verdict is LineVerdict.UNDEFINED
    value = "undefined" if undefined else f"{line.value:.3f}".removesuffix(".000")
    interval = say_interval(line.interval) if not undefined else ""
    needed = f"{say_count(line.labels_needed)} labels would settle it" if line.labels_needed else ""
    said = ", ".join(part for part in (f"asked {sign} {line.threshold:g}: {line.verdict}", needed) if part)
    return f"{LINE_NAMES[line.name]} {value}{f' ({interval})' if interval else ''}, {said}"


def _of(count: int, n: int, what: str) -> str:
    if n == 0:
        return f"{say_count(count)} of 0 {what}"
    return f"{say_count(count)} of {say_count(n)} {what} ({100 * count / n:.1f}%)"


def _with_notes(words: str, found: Estimate) -> str:
    return "; ".join((words, *found.notes))
