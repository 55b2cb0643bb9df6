"""May this judge replace the approved one?"""

import numpy as np
import pandas as pd
import streamlit as st

from core.figures.card import CardFacts, judge_card
from core.figures.review import COLUMNS, LINES, review_forest, review_rows, say_items, say_outcome, say_rule
from core.stats.review import PromotionRule
from core.ui import promotion, url
from core.ui.page import download, open_page, plain, say_outcomes, show_figure
from core.ui.promotion import Choice, Evidence
from core.ui.scope import judge_words

LISTS = {
    "better": "better",
    "worse": "worse",
    "fixed": "fixed",
    "broken": "broken",
    "within_noise": "changed within noise",
}
KINDS = {
    "approved": "Approve: it becomes the baseline",
    "rejected": "Reject",
    "more_evidence": "Ask for more repetitions or labels",
}
DEFAULTS = {
    "agreement": 0.05,
    "false_pass_rate": 0.05,
    "item_sd": 0.1,
    "flip_rate": 0.05,
    "location": 0.25,
    "unscored": 0.02,
}


def write_rule(choice: Choice) -> None:
    """Freeze a rule for this corpus and criterion."""
    with st.form("promotion_rule", border=True):
        st.markdown(
            "Write down how much worse the candidate may be **before** you look. A rule cannot be changed afterwards; "
            "an empty field asks nothing."
        )
        left, right = st.columns(2)
        name = left.text_input("Name of the rule", placeholder="release rule")
        author = right.text_input("Who answers for it")
        margins = {}
        places = st.columns(4)
        for number, (field, words) in enumerate(LINES.items()):
            margins[field] = places[number % 4].number_input(
                f"{words.name} ({words.unit})",
                min_value=0.0,
                value=DEFAULTS.get(field),
                format="%.3f",
                help=words.help,
                key=f"margin_{field}",
            )
        if st.form_submit_button("Freeze the rule", icon=":material/lock:"):
            try:
                rule_id = promotion.freeze_rule(choice, name=name, author=author, rule=PromotionRule(**margins))
            except ValueError as error:
                st.error(f"Nothing was frozen: {error}.")
            else:
                url.publish(rule=str(rule_id))
                st.rerun()


def approve_first(choice: Choice) -> None:
    """Name the first baseline explicitly."""
    with st.form("first_baseline", border=True):
        st.markdown(
            f"No judge is approved on {plain(choice.corpus_name)} yet. The first baseline is named explicitly: "
            f"**{plain(judge_words(choice.baseline))}**"
        )
        left, right = st.columns(2)
        author = left.text_input("Your name", key="first_author")
        reason = right.text_input("Reason", key="first_reason")
        if st.form_submit_button("Approve the first baseline", icon=":material/verified:"):
            try:
                promotion.decide(
                    choice, kind="approved", author=author, reason=reason, seen={"first": True}, first=True
                )
            except ValueError as error:
                st.error(f"Nothing was recorded: {error}.")
            else:
                st.rerun()


def show_items_of(choice: Choice, found: Evidence) -> None:
    """The items behind the counts, one list at a time."""
    st.subheader("Items")
    st.caption(f"{say_items(found.review)}.")
    counts = {name: int(getattr(found.review, name).sum()) for name in LISTS}
    labels = {name: f"{words} ({counts[name]:,})" for name, words in LISTS.items()}
    shown = url.choose(st.container(), "Show", "items", labels, widget="segmented_control")
    places = np.flatnonzero(getattr(found.review, shown))
    table = pd.DataFrame(
        {
            "item": found.items.key.iloc[places].to_numpy(),
            "slice": found.items.slice.iloc[places].to_numpy(),
            "passes of the baseline": [found.passed_before[place] for place in places],
            "passes of the candidate": [found.passes[place] for place in places],
            "people": [found.human[place] for place in places],
        }
    )
    if table.empty:
        st.caption("No item is in this list.")
        return
    event = st.dataframe(table, hide_index=True, on_select="rerun", selection_mode="single-row", key=f"items_{shown}")
    download(table, name=f"items_{shown}")
    if event.selection.rows:
        item = str(table.item.iloc[event.selection.rows[0]])
        st.switch_page("pages/item.py", query_params={**choice.address, "item": item})


def record_decision(choice: Choice, found: Evidence, rows: list[dict[str, str]]) -> None:
    """Approve, reject or ask for more, by a named person with a reason."""
    st.subheader("Decision")
    with st.form("decision", border=True):
        kind = st.radio("Decision", list(KINDS), format_func=KINDS.__getitem__, horizontal=True)
        left, right = st.columns([1, 2])
        author = left.text_input("Your name")
        reason = right.text_input("Reason")
        if st.form_submit_button("Record the decision", type="primary", icon=":material/gavel:"):
            seen = {
                "outcome": say_outcome(found.review),
                "criterion": choice.criterion.key,
                "gate": choice.gate,
                "labels": choice.labels,
                "candidate_runs": list(found.both.candidate_runs),
                "baseline_runs": list(found.both.baseline_runs),
                "lines": rows,
            }
            try:
                promotion.decide(choice, kind=kind, author=author, reason=reason, seen=seen)
            except ValueError as error:
                st.error(f"Nothing was recorded: {error}.")
            else:
                st.rerun()


def show_history(choice: Choice) -> None:
    """Every decision on this corpus, newest first."""
    st.subheader("Decisions so far")
    decisions = promotion.decisions(choice.at, choice.corpus_name)
    if decisions.empty:
        st.caption("None is recorded on this corpus.")
        return
    newest = decisions.iloc[0]
    st.markdown(
        f"Newest: **{newest.kind.replace('_', ' ')}** {plain(str(newest.judge))} · {plain(newest.author)}, "
        f"{newest.created_at:%Y-%m-%d %H:%M} UTC: {plain(newest.reason)}"
    )
    table = decisions[["created_at", "kind", "judge", "model", "baseline", "rule", "author", "reason"]]
    table = table.assign(
        kind=table.kind.str.replace("_", " "), outcome=[seen.get("outcome", "") for seen in decisions.evidence]
    )
    st.dataframe(
        table,
        hide_index=True,
        placeholder="",
        column_config={"created_at": st.column_config.DatetimeColumn("Time (UTC)", timezone="UTC")},
    )
    download(table, name="decisions")


def offer_card(choice: Choice, found: Evidence) -> None:
    """The judge card as a download, made when asked for."""

    def card() -> str:
        reviewed, rule = choice.reviewed, choice.rule
        if reviewed is None or rule is None:
            raise ValueError("a judge card of a review needs its rule")
        return judge_card(
            CardFacts(
                identity=promotion.identity(choice.at, int(choice.candidate.judge_id), choice.corpus_id),
                criterion=choice.criterion.key,
                levels=np.array(choice.criterion.levels),
                anchors=choice.criterion.anchors,
                gate=choice.gate,
                outcomes=promotion.outcomes(choice.at, found.both.candidate_runs, choice.criterion.id),
                codes=found.codes,
                health=promotion.candidate_health(choice.at, reviewed),
                labels=choice.labels,
                rule=f"{rule.name}: {say_rule(rule.asks)}",
                rule_sha256=rule.sha256,
                baseline=judge_words(choice.baseline),
                review=found.review,
                asked=rule.asks,
                keys=found.items.key.tolist(),
                decisions=promotion.decisions(choice.at, choice.corpus_name),
            )
        )

    st.download_button(
        "Download the judge card (HTML)",
        data=card,
        file_name="judge_card.html",
        mime="text/html",
        key="judge_card",
        icon=":material/badge:",
        on_click="ignore",
    )


open_page("Promotion", "May this judge replace the approved one?")
choice = promotion.select_review()
badge = " :orange-badge[simulated]" if choice.simulated else ""
standing = "the approved baseline" if choice.approved else "not approved"
st.markdown(
    f"**{plain(judge_words(choice.candidate))}**{badge} against "
    f"**{plain(judge_words(choice.baseline))}** ({standing})  \n"
    f"{plain(choice.corpus)} · {plain(choice.criterion.key)} · gate {choice.gate:g} · "
    f"labels: {plain(choice.labels or 'none')}"
)
if choice.candidate.rubric_id != choice.baseline.rubric_id:
    st.warning("The two judges score under different rubric versions.", icon=":material/compare_arrows:")
if not promotion.baseline_key(choice.at, choice.corpus_name):
    approve_first(choice)
if choice.rule is None or choice.reviewed is None:
    st.info("No promotion rule is frozen for this corpus and criterion. Write one first.", icon=":material/lock_open:")
    write_rule(choice)
    show_history(choice)
    st.stop()

rule = choice.rule
st.caption(
    f"Rule “{plain(rule.name)}”, frozen {rule.created_at:%Y-%m-%d %H:%M} UTC by {plain(rule.author)}, sha256 "
    f"{rule.sha256[:12]}: {plain(say_rule(rule.asks))}."
)
if rule.labels_seen:
    st.caption(f"{rule.labels_seen:,} labels existed when this rule was frozen.")
found = promotion.evidence(choice.at, choice.reviewed)
say_outcomes(promotion.outcomes(choice.at, found.both.candidate_runs, choice.criterion.id))
if found.both.copied:
    st.warning(f"{found.both.copied:,} replies of the candidate are copies of the baseline's and were left out.")
missing = promotion.missing_items(found)
if len(missing):
    st.warning(f"{len(missing):,} items have no usable score of the candidate; a missing item is not a pass.")

st.subheader("Review")
icons = {"pass": st.success, "fail": st.error}
icons.get(str(found.review.outcome), st.warning)(plain(say_outcome(found.review).capitalize()))
rows = review_rows(found.review, rule.asks, found.items.key.tolist())
table = pd.DataFrame(rows, columns=list(COLUMNS))
columns = {
    "line": st.column_config.TextColumn("Line"),
    "candidate": st.column_config.TextColumn("Candidate"),
    "baseline": st.column_config.TextColumn("Baseline"),
    "difference": st.column_config.TextColumn("Difference", help="Candidate minus baseline, mean over shared items."),
    "interval_90": st.column_config.TextColumn(
        "Interval", help="Two-sided 90%: its worse end is the one-sided 95% limit. Items are resampled."
    ),
    "margin": st.column_config.TextColumn("Margin", help="How much worse the candidate may be."),
    "items": st.column_config.TextColumn("Items", help="Items the line rests on."),
    "outcome": st.column_config.TextColumn("Outcome", width=150),
    "why": st.column_config.TextColumn("What would decide it", width="large"),
}
st.dataframe(table, hide_index=True, column_config=columns)
show_figure(review_forest(found.review), table, name="promotion_review")
show_items_of(choice, found)
record_decision(choice, found, rows)
offer_card(choice, found)
show_history(choice)
with st.expander("Freeze another rule"):
    write_rule(choice)
