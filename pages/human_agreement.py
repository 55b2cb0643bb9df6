"""Does the judge decide as people do, and where does it let through what they would not?"""

import numpy as np
import pandas as pd
import streamlit as st

from core.figures.agreement import confusion_matrix, forest, slice_bars, trust_rows
from core.figures.agreement_words import (
    LATE,
    SPLIT,
    agreement_lines,
    ceiling_lines,
    corrected_lines,
    say_false_fails,
    say_false_passes,
    say_left_out,
    say_line,
    say_reference,
    say_replacement,
    say_rule,
    say_trust,
    say_unit,
)
from core.figures.words import say_estimate
from core.stats.against_people import cell_positions
from core.stats.corrected import cannot_calibrate
from core.stats.gate import passes
from core.stats.trust import Outcome, TrustRule, evaluate_trust, trust_figures
from core.ui import agreement, cached, url
from core.ui.agreement import Comparison, FrozenRule
from core.ui.links import link
from core.ui.page import download, open_page, plain, say_outcomes, say_scope, show_figure, show_metric
from core.ui.scope import select_scope

QUESTION = "Does the judge decide as people do, and where does it pass what they would fail?"
OUTCOME_BOXES = {Outcome.TRUSTED: st.success, Outcome.NOT_TRUSTED: st.error, Outcome.INCONCLUSIVE: st.warning}


def show_basis(shown: Comparison) -> None:
    """What the figures below rest on: label set, reference, unit, and what is left out."""
    labels = shown.labels
    badge = " :orange-badge[simulated labels]" if labels.simulated else ""
    st.markdown(
        f"Label set **{plain(labels.name)}**{badge} · {plain(say_reference(shown.reference))}  \n"
        f"Judgement: {plain(say_unit(shown.unit, shown.columns))}"
    )
    if labels.other_version:
        st.warning(
            f"Across rubric versions: the labels were made under {plain(labels.rubric)}, the judge scores under "
            "another version. Their levels are matched by value and may mean different things.",
            icon=":material/compare_arrows:",
        )
    superseded = f" · {shown.superseded:,} older labels of the same rater do not count" if shown.superseded else ""
    st.caption(say_left_out(shown.found) + superseded)
    if shown.found.left_out.tied:
        st.caption(SPLIT)
    with st.expander("Policy of the label set"):
        st.text(labels.policy or "No policy was written down.")


def show_errors(shown: Comparison) -> None:
    """False passes first, then false fails, each with both denominators."""
    measured = shown.found.measured
    pooled = measured.calls > measured.items
    passing = passes(np.array(shown.scope.criterion.levels), shown.scope.gate)
    st.subheader(f"False passes: {len(measured.false_passes):,} items")
    st.markdown(say_false_passes(measured.confusion, calls=pooled))
    if pooled:
        st.caption("An item is listed when at least one of its calls passes although people fail it.")
    show_items(shown, agreement.error_table(shown, measured.false_passes, said_at=passing), "false_passes")
    with st.expander(f"False fails: {len(measured.false_fails):,} items"):
        st.markdown(say_false_fails(measured.confusion, calls=pooled))
        show_items(shown, agreement.error_table(shown, measured.false_fails, said_at=~passing), "false_fails")


def show_items(shown: Comparison, table: pd.DataFrame, name: str) -> None:
    """A table of items with its download and the way to one of them; texts stay plain."""
    if table.empty:
        st.caption("None.")
        return
    wide = st.column_config.TextColumn(width="large")
    event = st.dataframe(
        table,
        hide_index=True,
        key=f"table_{name}",
        on_select="rerun",
        selection_mode="single-row",
        column_config={"rationale": wide, "text": wide},
    )
    for row in event.selection.rows:
        key = str(table["item"].iloc[row])
        link("item", f"Open {plain(key)}", icon=":material/manage_search:", **shown.scope.address(item=key))
    download(table, name=name)


def show_figures(shown: Comparison) -> None:
    """The headline figures, and all of them in a table."""
    measured = shown.found.measured
    rates, kappa = measured.rates, measured.decision_kappa
    headline = {
        "Agreement": (rates.agreement, "Share with the same pass/fail decision as people."),
        "Kappa": (kappa, "Cohen's kappa of the decisions: 1 is perfect, 0 is what chance would give."),
        "Sensitivity": (rates.sensitivity, "Of what people pass, how much the judge passes."),
        "Specificity": (rates.specificity, "Of what people fail, how much the judge fails."),
    }
    st.subheader("Agreement")
    for place, (label, (found, meaning)) in zip(st.columns(4), headline.items(), strict=True):
        with place:
            show_metric(label, found, say_estimate(found), help=meaning)
    table = pd.DataFrame(
        [{"figure": line.name, "value": line.words, "meaning": line.meaning} for line in agreement_lines(measured)]
    )
    with st.expander("All figures"):
        st.dataframe(
            table,
            hide_index=True,
            height="content",
            column_config={"value": st.column_config.TextColumn(width="large")},
        )
        download(table, name="agreement_figures")


def show_matrix(shown: Comparison) -> None:
    """The confusion matrix over levels or decisions, and the items of one cell."""
    st.subheader("Where they differ")
    levels = np.array(shown.scope.criterion.levels)
    left, right = st.columns(2)
    views = {"decision": "pass and fail", "level": "levels"}
    view = url.choose(left, "Matrix of", "matrix", views)
    shares = url.choose(right, "Shares of", "shares", {"row": "the row: people", "column": "the column: judge"})
    measured, confusion = shown.found.measured, shown.found.measured.confusion
    if view == "decision":
        table = np.array([[confusion.tn, confusion.fp], [confusion.fn, confusion.tp]])
        passing = passes(levels, shown.scope.gate)
        names, members = ["fail", "pass"], [~passing, passing]
    else:
        table, names = measured.table, [f"{level:g}" for level in levels]
        members = list(np.eye(len(levels), dtype=bool))
    figure = confusion_matrix(table, names, shares="row" if shares == "row" else "column")
    if measured.calls > measured.items:
        st.caption(f"Counts are calls: {measured.calls:,} on {measured.items:,} items.")
    flat = pd.DataFrame(table, columns=[f"judge {name}" for name in names])
    flat.insert(0, "people", names)
    show_figure(figure, flat, name="confusion_matrix", on_click=lambda cell: url.publish(cell="{}-{}".format(*cell)))
    cells = {
        f"{row}-{column}": f"people {names[row]}, judge {names[column]}: {table[row, column]:,}"
        for row in range(len(names))
        for column in range(len(names))
    }
    cell = url.choose(st.container(), "Items of the cell", "cell", cells, default="0-1", help="Or click a cell.")
    row, column = map(int, cell.split("-"))
    positions = cell_positions(shown.found, members[row], members[column])
    show_items(shown, agreement.error_table(shown, positions, said_at=members[column]), "cell_items")


def show_parts(shown: Comparison) -> None:
    """Agreement in each slice and on each criterion."""
    st.subheader("By slice and criterion")
    parts = shown.found.slices
    table = pd.DataFrame(
        [
            {
                "slice": part.name,
                "agreement": say_estimate(part.agreement),
                "kappa": say_estimate(part.kappa),
                "false passes": say_false_passes(part.confusion),
            }
            for part in parts
        ],
        columns=["slice", "agreement", "kappa", "false passes"],
    )
    figure = slice_bars(
        [part.name for part in parts],
        [part.agreement for part in parts],
        title="Agreement with people",
        overall=shown.found.measured.rates.agreement,
    )
    show_figure(figure, table, name="agreement_by_slice")
    criteria = pd.DataFrame(
        [
            {
                "criterion": key,
                "agreement": say_estimate(found.measured.rates.agreement),
                "kappa": say_estimate(found.measured.decision_kappa),
                "quadratic kappa of levels": say_estimate(found.measured.kappas.quadratic),
                "false passes": say_false_passes(found.measured.confusion),
            }
            for key, found in agreement.criterion_assessments(shown)
        ]
    )
    if len(criteria) > 1:
        st.markdown("Each criterion of the rubric, at its gate:")
        st.dataframe(criteria, hide_index=True)


def show_people(shown: Comparison) -> None:
    """How far people agree with each other on the same items."""
    st.subheader("How far people agree with each other")
    lines = ceiling_lines(shown.found)
    if not lines:
        st.info(
            "Only one person labelled these items, so nobody knows how far people would agree with each other. A "
            "second label on part of them would tell.",
            icon=":material/info:",
        )
        return
    table = pd.DataFrame(
        [
            {
                "figure": name,
                "between people": say_estimate(people),
                "judge and people": "; ".join((say_estimate(judge), *judge.notes)),
            }
            for name, people, judge in lines
        ]
    )
    st.caption(
        f"Mean over pairs of {len(shown.raters)} people, on items that the judge scored and at least two labelled; "
        "where the judge's calls are pooled it speaks with its most frequent score."
    )
    st.dataframe(table, hide_index=True)
    st.caption(say_replacement(shown.found))


def show_corrected(shown: Comparison) -> None:
    """The pass rate that people would give the items nobody labelled."""
    st.subheader("Corrected pass rate of the unlabelled rest")
    first, figure, *notes = corrected_lines(shown.found)
    st.text(first)
    corrected = shown.found.corrected.rate.estimate
    if corrected.value is None:
        st.warning("; ".join((figure, *notes)), icon=":material/block:")
        return
    st.text(figure)
    warnings = [note for note in notes if note == cannot_calibrate(shown.found.corrected.rate.labels)]
    for note in warnings:
        st.warning(note, icon=":material/straighten:")
    for note in notes:
        if note not in warnings:
            st.caption(note)


def show_trust(shown: Comparison) -> None:
    """Frozen rules, the one that is held against the figures, and the form for a new one."""
    st.subheader("Trust rule")
    rules = agreement.trust_rules(shown.scope.at)
    if rules:
        evaluate(shown, rules)
    else:
        st.info(
            "No rule is frozen yet. Write one before looking at the figures: a rule made after the labels were seen is "
            "marked so.",
            icon=":material/info:",
        )
    with st.expander("Write and freeze a rule", expanded=not rules):
        write_rule(shown)


def evaluate(shown: Comparison, rules: list[FrozenRule]) -> None:
    """The list of rules, and what the chosen one says."""
    names = {
        str(rule.id): f"{rule.name} · {rule.author} · {rule.created_at:%Y-%m-%d %H:%M} UTC · {rule.sha256[:12]}"
        for rule in rules
    }
    fits = [rule for rule in rules if (rule.corpus, rule.criterion) == _written_for(shown)]
    chosen = url.choose(
        st.container(), "Rule", "rule", names, default=str(fits[0].id) if fits else None, help="Frozen for ever."
    )
    rule = next(rule for rule in rules if str(rule.id) == chosen)
    decision = evaluate_trust(rule.rule, trust_figures(shown.found.measured, rule.rule))
    OUTCOME_BOXES[decision.outcome](f"**{plain(rule.name)}**: {say_trust(decision)}")
    if agreement.timing(shown, rule) == "after":
        seen = f": {rule.labels_seen:,} labels existed" if rule.labels_seen else ""
        st.warning(f"This rule was {LATE}{seen}. The mark stays for ever.", icon=":material/history:")
    if (rule.corpus, rule.criterion) != _written_for(shown):
        st.warning(
            f"This rule was written for {plain(rule.criterion)} on {plain(rule.corpus)}, not for what is shown here.",
            icon=":material/compare_arrows:",
        )
    if not rule.intact:
        st.error("The stored rule does not match the hash it was frozen with: it was changed outside the program.")
    table = pd.DataFrame([{"line": say_line(line)} for line in decision.lines])
    st.dataframe(table, hide_index=True)
    show_figure(forest(trust_rows(decision)), table, name="trust_rule")
    frozen = pd.DataFrame(
        [
            {
                "rule": rule.name,
                "asks": say_rule(rule.rule),
                "written for": f"{rule.criterion} on {rule.corpus}",
                "author": rule.author,
                "frozen (UTC)": f"{rule.created_at:%Y-%m-%d %H:%M:%S}",
                "hash": rule.sha256[:12],
                "labels seen": f"{rule.labels_seen:,}: {LATE}" if rule.labels_seen else "none",
            }
            for rule in rules
        ]
    )
    with st.expander(f"Frozen rules: {len(rules)}"):
        st.dataframe(frozen, hide_index=True)
        download(frozen, name="trust_rules")


def write_rule(shown: Comparison) -> None:
    """The form of a new rule. Empty lines are not asked for."""
    corpus, criterion = _written_for(shown)
    with st.form("trust_form", border=False):
        st.text(f"For {criterion} on {corpus}. Leave a line empty not to ask for it. A frozen rule cannot be changed.")
        name, author = (place.text_input(label) for place, label in zip(st.columns(2), ("Name", "Author"), strict=True))
        first, second, third, fourth, fifth = st.columns(5)
        least_agreement = first.number_input("Agreement at least", 0.0, 1.0, 0.8, 0.05)
        least_kappa = second.number_input("Kappa at least", -1.0, 1.0, 0.6, 0.05)
        most = third.number_input("False passes at most", 0, None, None)
        most_rate = fourth.number_input("Share of human fails passed at most", 0.0, 1.0, None, 0.05)
        least_labels = fifth.number_input("Labels at least", 0, None, None)
        on = st.selectbox("Agreement and kappa of", ["decision", "level"], format_func=lambda on: f"{on}s")
        if not st.form_submit_button("Freeze the rule"):
            return
    rule = TrustRule(
        min_agreement=least_agreement,
        min_kappa=least_kappa,
        max_false_passes=most,
        max_false_pass_rate=most_rate,
        min_labels=least_labels,
        on="decision" if on == "decision" else "level",
        kappa_weights="nominal" if on == "decision" else "quadratic",
    )
    try:
        frozen = agreement.freeze_rule(shown.scope, name=name, author=author, rule=rule)
    except ValueError as error:
        st.error(f"Nothing was frozen: {error}.")
        return
    url.publish(rule=str(frozen))
    st.rerun()


def _written_for(shown: Comparison) -> tuple[str, str]:
    return agreement.corpus_name(shown.scope), shown.scope.criterion.key


def show_search(shown: Comparison) -> None:
    """A program's word search as a judge of its own kind."""
    st.subheader("Try a word search")
    st.caption("A program that only looks for words is the judge to beat: it costs nothing and never wobbles.")
    with st.form("search_form", border=False):
        words = st.text_area(
            "An answer passes when it contains (one phrase a line)",
            value=url.read("words"),
            placeholder="30 days",
            height=90,
        )
        left, right = st.columns(2, vertical_alignment="bottom")
        match = left.selectbox("How many of them", ["any", "all"], index=int(url.read("match") == "all"))
        case = right.checkbox("Capitals matter", value=url.read("case") == "yes")
        tried, saved = st.form_submit_button("Try it"), st.form_submit_button("Save it as a judge")
    if tried or saved:
        url.publish(words=words, match=match, case="yes" if case else "")
    elif not url.read("words"):
        return
    try:
        search = agreement.word_search_of(words, match=match, case=case)
        found = agreement.word_search(shown, search)
        if saved:
            key = agreement.save_word_search(shown.scope, search)
            st.success(f"Saved as a judge: {plain(search.name)}.", icon=":material/check:")
            link("human_agreement", "Open it", **shown.scope.address(judge=key))
    except ValueError as error:
        st.error(f"{plain(str(error)[:1].upper() + str(error)[1:])}.")
        return
    measured = found.measured
    st.text(f"{search.name}: agreement {say_estimate(measured.rates.agreement)}")
    st.text(f"kappa {say_estimate(measured.decision_kappa)}; {say_left_out(found)}")
    st.markdown(f"**Passes what people fail**: {say_false_passes(measured.confusion)}")
    show_items(shown, agreement.search_errors(shown.scope, found, measured.false_passes), "search_false_passes")
    st.markdown(f"**Fails what people pass**: {say_false_fails(measured.confusion)}")
    show_items(shown, agreement.search_errors(shown.scope, found, measured.false_fails), "search_false_fails")


open_page("Judge against people", QUESTION)
scope = select_scope()
say_scope(scope)
say_outcomes(cached.tallies(scope.selection))
label_set = agreement.select_labels(scope)
if label_set is None:
    st.stop()
comparison = agreement.select_comparison(scope, label_set)
show_basis(comparison)
if comparison.found.measured.items == 0:
    st.info("No item has both a label and a score in this choice; widen the slice, the runs or the labels.")
    st.stop()
show_errors(comparison)
show_figures(comparison)
show_matrix(comparison)
show_parts(comparison)
show_people(comparison)
show_corrected(comparison)
show_trust(comparison)
show_search(comparison)
