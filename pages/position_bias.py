"""Does the order of the two candidates change the verdict?"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from core.figures.agreement import slice_bars
from core.figures.position import abilities, length_preference, outcome_bars, slot_map
from core.figures.words import say_count, say_estimate, say_number, say_p, say_part, say_reason, say_share
from core.stats.common import Estimate, Undefined
from core.stats.pairwise import (
    FLIP_LIMIT,
    Outcome,
    PositionBias,
    PositionVerdict,
    flips_needed,
    position_verdict,
)
from core.ui import cached, position, url
from core.ui.page import download, open_page, plain, say_outcomes, say_scope, show_figure, show_metric, show_table
from core.ui.position import LabelChoice, PairView
from core.ui.scope import Scope, select_scope

MOST_LISTED = 500
LIMITS = {f"{limit / 100:.2f}": f"{limit}%" for limit in (1, 2, 5, 10, 15, 20, 25, 30, 40, 50)}
LISTS = {
    "flips": ("All flips", (Outcome.FIRST_SLOT_FLIP, Outcome.SECOND_SLOT_FLIP)),
    "first": ("First-slot flips", (Outcome.FIRST_SLOT_FLIP,)),
    "second": ("Second-slot flips", (Outcome.SECOND_SLOT_FLIP,)),
    "ties": ("Tie shifts", (Outcome.TIE_SHIFT,)),
    "incomplete": ("Incomplete", (Outcome.INCOMPLETE,)),
}
COUNT_WORDS = {6: "six"}
VERDICT_ICONS = {
    PositionVerdict.RELIABLE: ":material/check_circle:",
    PositionVerdict.UNRELIABLE: ":material/cancel:",
    PositionVerdict.INCONCLUSIVE: ":material/help:",
}


@dataclass(frozen=True, slots=True)
class Looking:
    """What every part of the page is about."""

    scope: Scope
    view: PairView
    labels: LabelChoice | None
    label_words: Mapping[str, str]
    limit: float


def show_position(at: Looking) -> None:
    """Outcomes, flip rate against the rule, slot preference beside noise, slot map, and the flipped pairs."""
    found = position.bias(at.view)
    outcomes, preference = found.outcomes, found.preference
    verdict = position_verdict(found.flip_rate, limit=at.limit)
    st.markdown(
        f"**{say_count(outcomes.agreeing)} consistent** · {say_count(outcomes.count(Outcome.FIRST_SLOT_FLIP))} "
        f"first-slot flips · {say_count(outcomes.count(Outcome.SECOND_SLOT_FLIP))} second-slot flips · "
        f"{say_count(outcomes.count(Outcome.TIE_SHIFT))} tie shifts, of {say_count(outcomes.complete)} complete "
        f"pairs · {say_count(outcomes.count(Outcome.INCOMPLETE))} incomplete, counted apart"
    )
    noise = position.noise(at.view.selection)
    figures = {
        "Flip rate": (
            found.flip_rate,
            "Pairs on which the same slot won in both orders, over complete pairs.",
            "pairs",
        ),
        "First-slot share of flips": (
            preference.first_share,
            "Of the flips, how many went to the first slot: 0.5 without a preference. Clopper-Pearson interval.",
            "flips",
        ),
        "Disagreement between orders": (
            noise.cross,
            "Chance that a verdict of one order and one of the other name different winners, over all repetitions.",
            "pairs",
        ),
        "Same-order flip rate": (
            _same_order(noise.floor, noise.within_a),
            "Chance that two repetitions in the same order disagree: what noise alone makes, over all repetitions.",
            "pairs",
        ),
        "Due to position": (
            noise.excess,
            "Disagreement between orders minus the same-order flip rate; noise can make it negative.",
            "pairs",
        ),
    }
    show_figures(figures)
    moved = "" if at.limit == FLIP_LIMIT else f" The limit was moved from {say_share(FLIP_LIMIT, 0)}."
    st.info(
        f"**{verdict.value.capitalize()}**: flip rate {say_number(found.flip_rate.value)} against a limit of "
        f"{at.limit:.2f}. Reliable only when the whole interval is at or below the limit, unreliable when the rate is "
        f"above it.{moved}",
        icon=VERDICT_ICONS[verdict],
    )
    needed = flips_needed()
    st.markdown(
        f"Slot preference among the flips: {_slot_words(found)} "
        f"{COUNT_WORDS.get(needed, str(needed)).capitalize()} one-way flips are needed for p < .05."
    )
    _say_orphans(at.view, found)
    _show_outcomes(at, found)
    st.subheader("Verdict by verdict")
    table = position.slots(at.view)
    steps = ["second slot, clearly", "second slot", "tie", "first slot", "first slot, clearly"]
    names = steps if len(table) == 5 else steps[1:4]
    flat = pd.DataFrame(table, columns=[f"A in slot 2: {name}" for name in names])
    flat.insert(0, "A in slot 1", names)
    show_figure(slot_map(table), flat, name="slot_map")
    show_flipped(at)


def show_figures(figures: Mapping[str, tuple[Estimate, str, str]]) -> None:
    """Figures in rows of three, each with its help and the unit of its n; more in a row would cut their names."""
    for number, (label, (estimate, help_text, unit)) in enumerate(figures.items()):
        if number % 3 == 0:
            row = st.columns(3)
        with row[number % 3]:
            show_metric(label, estimate, say_estimate(estimate, unit=unit), help=help_text)


def _same_order(floor: Estimate, within: Estimate) -> Estimate:
    """The floor of the pairs repeated in both orders, else what one order shows."""
    return floor if floor.value is not None else within


def _slot_words(found: PositionBias) -> str:
    first, second = (found.outcomes.count(code) for code in (Outcome.FIRST_SLOT_FLIP, Outcome.SECOND_SLOT_FLIP))
    if not first + second:
        return "undefined, there are no flips."
    return f"{say_part(first, first + second)} to the first slot, exact {say_p(found.preference.p)}."


def _say_orphans(view: PairView, found: PositionBias) -> None:
    """What a rule that counts a verdict without its mate as consistent would say, where that occurs."""
    lenient = position.lenient(view)
    if not position.pair_verdicts(view).split and lenient.left_out and found.consistency.value is not None:
        st.caption(
            f"{say_count(lenient.left_out)} verdicts have no usable mate in the other order: their pairs are "
            "incomplete and in no rate. Some published logs count them as consistent: that gives "
            f"{say_share(lenient.value)} of {say_count(lenient.n)} verdicts; here "
            f"{say_share(found.consistency.value)} of {say_count(found.outcomes.complete)} complete pairs are "
            "consistent."
        )


def _show_outcomes(at: Looking, found: PositionBias) -> None:
    st.subheader("Outcomes of judging both orders")
    choices = position.repetitions(at.view.selection)
    single = [key for key in choices if key != position.ALL] if at.view.repetition == position.ALL else []
    names = [choices[at.view.repetition]] + [choices[key] for key in single]
    each = [found] + [position.bias(at.view._replace(repetition=key)) for key in single]
    table = pd.DataFrame(
        {
            "verdicts": names,
            "pairs": [one.outcomes.pairs for one in each],
            "consistent": [one.outcomes.agreeing for one in each],
            "of these tie twice": [one.outcomes.count(Outcome.CONSISTENT_TIE) for one in each],
            "first-slot flips": [one.outcomes.count(Outcome.FIRST_SLOT_FLIP) for one in each],
            "second-slot flips": [one.outcomes.count(Outcome.SECOND_SLOT_FLIP) for one in each],
            "tie shifts": [one.outcomes.count(Outcome.TIE_SHIFT) for one in each],
            "incomplete": [one.outcomes.count(Outcome.INCOMPLETE) for one in each],
            "flip rate": [say_estimate(one.flip_rate, unit="pairs") for one in each],
            "against the limit": [position_verdict(one.flip_rate, limit=at.limit).value for one in each],
        }
    )
    show_figure(outcome_bars([one.outcomes for one in each], names), table, name="position_outcomes")


def show_flipped(at: Looking) -> None:
    """Pairs by outcome; a row or the box below it opens the texts."""
    st.subheader("Flipped pairs")
    box = st.container()
    chosen = url.choose(box, "Show", "list", {key: words for key, (words, _) in LISTS.items()})
    codes = tuple(int(code) for code in LISTS[chosen][1])
    total = position.bias(at.view).outcomes.count(*LISTS[chosen][1])
    table = position.listed_pairs(at.view, codes, MOST_LISTED)
    st.caption(f"{say_count(total)} pairs" + (f", the first {MOST_LISTED} are listed." if total > MOST_LISTED else "."))
    keys = table.pair.astype(str).tolist()
    if keys:
        st.dataframe(
            table.drop(columns="item_id"),
            key="flipped_table",
            hide_index=True,
            on_select=lambda: _open_row(keys),
            selection_mode="single-row",
        )
        download(table.drop(columns="item_id"), name=f"pairs_{chosen}")
    linked = url.read("pair")
    options = {"": "none"} | {key: key for key in keys}
    if linked and linked not in options and position.find_pair(at.scope.corpus_id, linked) is not None:
        options[linked] = f"{linked} (not in the list)"
    key = url.choose(box, "Pair to read", "pair", options)
    if key:
        show_pair(at, key)


def _open_row(keys: list[str]) -> None:
    rows = st.session_state["flipped_table"].selection.rows
    if rows:
        url.publish(pair=keys[rows[0]])


def show_pair(at: Looking, key: str) -> None:
    """Both candidates, and what the judge said in each order side by side; all as plain text."""
    item = position.find_pair(at.scope.corpus_id, key)
    if item is None or item.id is None:
        st.warning("This pair is not in the corpus.", icon=":material/search_off:")
        return
    st.markdown(f"##### Pair {plain(key)}")
    if item.request:
        st.caption("Request")
        st.code(item.request, language=None, wrap_lines=True)
    texts = (("A", item.system, item.candidate), ("B", item.system_b, item.candidate_b))
    for place, (name, system, text) in zip(st.columns(2), texts, strict=True):
        with place:
            st.caption(f"Candidate {name}" + (f" · {plain(system)}" if system else ""))
            st.code(text or "The text is not in the store.", language=None, wrap_lines=True)
    calls = position.pair_calls(at.view, item.id)
    for place, (order, first, second) in zip(st.columns(2), (("ab", "A", "B"), ("ba", "B", "A")), strict=True):
        with place:
            st.markdown(f"**{first} in slot 1, {second} in slot 2**")
            for call in calls[calls.slot_order == order].itertuples():
                value = None if pd.isna(call.value) else float(call.value)
                said = position.verdict_words(value, first, second)
                why = f" ({str(call.unscored).replace('_', ' ')})" if value is None else ""
                st.caption(f"run {call.run_id} · repetition {call.repetition}: **{said}**{why}")
                st.code(call.rationale or "No rationale was kept.", language=None, wrap_lines=True)


def show_winners(at: Looking) -> None:
    """Win rates where the orders agree, and agreement with known winners."""
    won = position.wins(at.view)
    st.subheader("Win rate of candidate A")
    for place, (label, estimate, help_text) in zip(
        st.columns(2),
        (
            (
                "Where both orders agree",
                won.consistent_only,
                "Only pairs on which both orders chose the same candidate.",
            ),
            ("Disagreement as a tie", won.flips_as_ties, "Wins plus half of all ties, over complete pairs."),
        ),
        strict=True,
    ):
        with place:
            show_metric(label, estimate, say_estimate(estimate, unit="pairs"), help=help_text)
    st.markdown(
        f"A wins {say_count(won.wins_a)}, B wins {say_count(won.wins_b)}, real ties {say_count(won.ties)} (both orders "
        f"said tie), ties by disagreement {say_count(won.ties_by_disagreement)} (the orders differ)."
    )
    st.subheader("Agreement with known winners")
    if at.labels is None:
        st.info(
            "No label set names winners for this corpus. Import labels of the pairs to see agreement.",
            icon=":material/info:",
        )
        return
    found = position.agreement(at.scope.at, at.view, at.labels)
    rows = {
        "A in slot 1": found.order_ab,
        "A in slot 2": found.order_ba,
        "where both orders agree": found.consistent,
    }
    table = pd.DataFrame(
        {
            "verdicts": list(rows),
            "agreement": [say_estimate(row.agreement, unit="pairs") for row in rows.values()],
            "Cohen's kappa": [say_estimate(row.kappa.estimate, unit="pairs") for row in rows.values()],
            "notes": ["; ".join(row.kappa.estimate.notes) for row in rows.values()],
        }
    )
    title = "Agreement with known winners"
    bars = slice_bars(list(rows), [row.agreement for row in rows.values()], title=title, rows="Verdicts")
    show_figure(bars, table, name="winner_agreement")
    show_table(table)
    st.caption("Winner A, tie or B; kappa is unweighted. Pairs without a known winner are left out.")


def show_breakdown(at: Looking) -> None:
    """Flip rate by slice and by the gap of single scores."""
    st.subheader("By slice")
    _show_groups(position.by_slice(at.view), "flips_by_slice", "slice", position.bias(at.view).flip_rate)
    st.subheader("By score gap")
    twins = position.twins(at.view.selection)
    if twins.empty:
        st.info(
            "No single scores exist for the candidates: no single item holds the same text as a candidate of a pair.",
            icon=":material/info:",
        )
        return
    judges = position.single_judges(at.scope.at, at.view.selection)
    if judges.empty:
        st.info("The candidates are single items too, but nobody scored them.", icon=":material/info:")
        return
    options = {
        f"{row.judge_id}.{row.criterion_id}": " · ".join(part for part in (row.name_, row.model, row.criterion) if part)
        for row in judges.rename(columns={"name": "name_"}).itertuples()
    }
    judge_id, criterion_id = url.choose(st.container(), "Single scores by", "gap", options).split(".")
    found = position.by_score_gap(at.scope.at, at.view, int(judge_id), int(criterion_id))
    st.caption(f"{say_count(len(twins))} pairs whose two candidates were scored one by one; gap of the mean scores.")
    _show_groups(found, "flips_by_gap", "gap in score points", position.bias(at.view).flip_rate)


def _show_groups(found: Mapping[str, PositionBias], name: str, what: str, overall: Estimate) -> None:
    table = pd.DataFrame(
        {
            what: list(found),
            "complete pairs": [one.outcomes.complete for one in found.values()],
            "incomplete": [one.outcomes.count(Outcome.INCOMPLETE) for one in found.values()],
            "flip rate": [say_estimate(one.flip_rate, unit="pairs") for one in found.values()],
            "first-slot flips": [one.outcomes.count(Outcome.FIRST_SLOT_FLIP) for one in found.values()],
            "second-slot flips": [one.outcomes.count(Outcome.SECOND_SLOT_FLIP) for one in found.values()],
            "tie shifts": [one.outcomes.count(Outcome.TIE_SHIFT) for one in found.values()],
        }
    )
    bars = slice_bars(
        list(found),
        [one.flip_rate for one in found.values()],
        title="Flip rate",
        overall=overall,
        rows=what.capitalize(),
    )
    show_figure(bars, table, name=name)


def show_ranking(at: Looking) -> None:
    """Bradley-Terry abilities with the slot effect as intercept."""
    st.subheader("Ranking of systems")
    ranked = position.ranking(at.view)
    if ranked is None:
        st.info("No ranking: these pairs do not name two systems with decided verdicts.", icon=":material/info:")
        return
    names, fit = ranked
    table = pd.DataFrame(
        {
            "system": [*names, "first slot"],
            "log-odds": [say_estimate(one, unit="verdicts") for one in (*fit.abilities, fit.slot) if one is not None],
        }
    )
    show_figure(abilities(fit, names), table, name="ranking")
    if fit.slot_test is not None:
        p = say_p(fit.slot_test.p, fit.slot_test.reason)
        st.markdown(f"Slot effect: {p} (Wald, cluster-robust by pair).")
    st.markdown(f"Plain share of verdicts that the first slot won: {say_estimate(fit.first_share, unit='verdicts')}.")
    st.caption(
        f"Bradley-Terry model of every decided verdict, both orders, with the slot as intercept; {plain(names[0])} is "
        "the reference. Ties and unscored verdicts are left out."
    )


def show_length(at: Looking) -> None:
    """How verdicts go with the length of the candidates."""
    st.subheader("Length")
    found = position.lengths(at.scope.at, at.view, at.labels)
    if found is None:
        st.info("No pair has both texts in the store, so lengths are unknown.", icon=":material/info:")
        return
    st.caption(
        "An association, not a cause: longer candidates may also be better ones. Length in characters."
        + (f" {say_count(found.without_text)} pairs without both texts are left out." if found.without_text else "")
    )
    figures = {
        "Longer candidate wins": (found.longer_wins, "Of the pairs both orders decided alike.", "pairs"),
        "Slope of length": (found.effect.slope, "Log-odds of slot 1 per standard deviation of log length.", "verdicts"),
        "Slot effect": (found.effect.slot, "Log-odds that slot 1 wins at equal length.", "verdicts"),
    }
    if found.with_people is not None:
        figures["Slope, winner known"] = (
            found.with_people.slope,
            "The same with the known winner as covariate: quality that people see is taken out.",
            "verdicts",
        )
    figures["Flip rate, equal length"] = (
        found.matched.flip_rate,
        "Pairs whose longer candidate is at most 10% longer.",
        "pairs",
    )
    show_figures(figures)
    if found.with_people is None:
        st.caption("No known winners: the slope mixes quality and preference for length.")
    table = pd.DataFrame(
        {
            "figure": list(figures),
            "value": [say_estimate(estimate, unit=unit) for estimate, _, unit in figures.values()],
        }
    )
    unit = "standard deviations of log length"
    figure = length_preference(found.difference, found.verdicts, unit=unit, effect=found.effect)
    show_figure(figure, table, name="length")


def show_families(at: Looking) -> None:
    """Families, entered by people, and whether the judge prefers its own."""
    st.subheader("Model families")
    st.caption("Enter a family for each judge and system. None is guessed from a name; empty means unknown.")
    table = position.family_table(at.scope.at, at.view, at.scope.corpus_id)
    edited = st.data_editor(
        table, key="families", hide_index=True, disabled=["kind", "name"], column_config={"family": "Family"}
    )
    if st.button("Save families", icon=":material/save:", disabled=edited.equals(table)):
        position.store_families(edited)
        st.rerun()
    systems = table[table["kind"] == "system"]
    families = dict(zip(systems["name"], systems["family"], strict=True))
    rows = position.all_family_wins(at.scope.at, at.view, at.scope.corpus_id, at.scope.criterion.key, families)
    st.subheader("Who wins with whom")
    if rows:
        show_table(pd.DataFrame(rows))
    else:
        st.info("Undefined: no pair sets candidates of two known families against each other.", icon=":material/info:")
    st.subheader("Self-preference")
    own = position.own_family(at.scope.at, at.scope.judge_id, table)
    choices = position.reference_choices(at.scope.at, at.scope.corpus_id, at.scope.judge_id, at.label_words)
    if not own or not choices:
        missing = (
            "the judge's family is unknown" if not own else "there is no other judge and no label set to compare with"
        )
        st.info(f"Undefined: {missing}.", icon=":material/info:")
        return
    reference = url.choose(st.container(), "Compare with", "reference", choices)
    ids, shares = position.reference_shares(at.scope.at, at.view, at.scope.corpus_id, at.scope.criterion.key, reference)
    did = position.self_preference(at.view, families, own, ids, shares)
    words = "Own family minus others under this judge, minus the same under the reference, on the same pairs."
    show_metric("Difference in differences", did, say_estimate(did, unit="rows"), help=words)
    st.caption(f"{words} A tie counts half. Above 0: the judge favours {plain(own)} more than the reference does.")


def say_shared_family(at: Looking) -> None:
    """Warn when judge and candidates share a family."""
    table = position.family_table(at.scope.at, at.view, at.scope.corpus_id)
    own = position.own_family(at.scope.at, at.scope.judge_id, table)
    same = table[(table["kind"] == "system") & (table["family"] == own)]["name"].tolist() if own else []
    if same:
        st.warning(
            f"The judge and {', '.join(plain(str(name)) for name in same)} are of one family, {plain(own)}: see "
            "Self-preference.",
            icon=":material/family_restroom:",
        )


VIEWS: dict[str, tuple[str, Callable[[Looking], None]]] = {
    "position": ("Position", show_position),
    "winners": ("Winners", show_winners),
    "breakdown": ("Breakdown", show_breakdown),
    "ranking": ("Ranking", show_ranking),
    "length": ("Length", show_length),
    "families": ("Self-preference", show_families),
}

open_page("Position bias", "Does the order of the two candidates change the verdict?")
scope = select_scope(pairwise=True)
if not position.slot_scale(scope.criterion.levels):
    st.error(
        f"The levels of {plain(scope.criterion.key)} are no verdicts by slot. A judge of pairs needs 1 (first slot), "
        "-1 (second slot) and perhaps 0 (tie), 2 and -2 (clearly): import it with such levels.",
        icon=":material/error:",
    )
    st.stop()
choices = position.repetitions(scope.selection)
repetition = url.choose(
    st.sidebar,
    "Repetition",
    "repetition",
    choices,
    help="Each repetition alone, or for each order the verdict that most of its repetitions gave.",
)
limit = float(
    url.choose(
        st.sidebar,
        "Limit of the flip rate",
        "limit",
        LIMITS,
        default=f"{FLIP_LIMIT:.2f}",
        help="Frozen before the measurement; 20% unless your rule says otherwise.",
        widget="select_slider",
    )
)
winner_sets = position.winner_choices(
    scope.at, corpus_id=scope.corpus_id, criterion_key=scope.criterion.key, rubric_id=scope.criterion.rubric_id
)
labels = url.choose(st.sidebar, "Known winners", "winners", winner_sets) if winner_sets else ""
looking = Looking(scope, PairView(scope.selection, repetition), position.label_choice(labels), winner_sets, limit)
say_scope(scope)
say_outcomes(cached.tallies(scope.selection))
pairs = position.pair_verdicts(looking.view)
st.caption(
    f"{say_count(len(pairs.item_ids))} pairs shown in both orders · {choices.get(repetition, '')}"
    + (f" · {say_count(pairs.one_order)} pairs shown in one order only, not used" if pairs.one_order else "")
    + (
        f" · {say_count(pairs.split)} incomplete because the repetitions of an order have no majority"
        if pairs.split
        else ""
    )
)
if not len(pairs.item_ids):
    st.info(
        "No pair was shown to this judge in both orders, so position bias cannot be measured. Judge every pair twice, "
        "with the candidates swapped.",
        icon=":material/info:",
    )
    st.stop()
if not position.bias(looking.view).outcomes.complete:
    st.warning(
        f"No pair has a usable verdict in both orders: position bias is {say_reason(Undefined.NO_DATA)}.",
        icon=":material/warning:",
    )
    st.stop()
say_shared_family(looking)
part = url.choose(
    st.container(),
    "Part",
    "part",
    {key: words for key, (words, _) in VIEWS.items()},
    widget="segmented_control",
)
VIEWS[part][1](looking)
