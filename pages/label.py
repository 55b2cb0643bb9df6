"""What do people say, before they see what the judge said?"""

import streamlit as st

from core.ui import cached, deciding, labelling, url
from core.ui.labelling import Desk
from core.ui.page import open_page, plain, show_text

SCORE, RANK, BUILD = "score", "rank", "build"
MODES = {SCORE: "Score items", RANK: "Rank candidates", BUILD: "Build the queue"}


def show_scoring(desk: Desk) -> None:
    """One item with the rubric's anchors beside it."""
    done = desk.done
    st.progress(sum(done) / len(done), text=f"{sum(done)} of {len(done)} items labelled by {plain(desk.rater)}")
    state = "saved" if done[desk.place] else "not labelled yet"
    if desk.draft:
        state = "not saved yet: Enter saves"
    st.caption(f"Item {desk.place + 1} of {len(done)} in your order · {state}")
    if desk.queue is not None and desk.rater not in desk.queue.raters:
        st.caption("The queue does not name you as a reader, so all of its items are shown.")
    item = labelling.get_item(desk.item_id)
    texts, anchors = st.columns([3, 2])
    with texts:
        show_text("Request", item.request)
        reference, candidate = st.columns(2)
        with reference:
            show_text("Reference", item.reference)
        with candidate:
            show_text("Candidate", item.candidate)
    with anchors:
        show_criteria(desk)
        show_keys()
    if done[desk.place] and not desk.draft:
        show_reveal(desk, item.system)


def show_criteria(desk: Desk) -> None:
    """Every criterion; the active one with its levels and the place for a reason."""
    values, active = desk.values, desk.active
    for criterion in desk.criteria:
        value = values.get(criterion.id)
        said = "no score yet" if value is None else f"{value:g}"
        if criterion != active:
            st.button(
                f"{plain(criterion.key)}: {said}",
                key=f"activate_{criterion.key}",
                on_click=url.publish,
                kwargs={"on": criterion.key},
                type="tertiary",
            )
            continue
        with st.container(border=True):
            st.markdown(f"**{plain(criterion.key)}**: {said}  \n{plain(criterion.question)}")
            digits = labelling.digits(criterion)
            for place in reversed(range(len(criterion.levels))):
                st.button(
                    f"**{criterion.levels[place]:g}** {plain(criterion.anchors[place])}",
                    key=f"level_{place}",
                    on_click=labelling.press,
                    args=(place,),
                    type="primary" if criterion.levels[place] == value else "secondary",
                    shortcut=digits[place] or None,
                    width="stretch",
                    wrap=True,
                )
            key = f"reason_{desk.item_id}_{criterion.id}"
            st.text_input(
                "Reason (kept with the label)",
                value=desk.reason(criterion.id),
                key=key,
                on_change=labelling.keep_reason,
                args=(desk.item_id, criterion.id, key),
            )


def show_keys() -> None:
    """The keys that move and save."""
    with st.container(horizontal=True):
        st.button("Item", key="back", on_click=labelling.move_item, args=(-1,), shortcut="Left")
        st.button("Item", key="forward", on_click=labelling.move_item, args=(1,), shortcut="Right")
        st.button("Criterion", key="up", on_click=labelling.move_criterion, args=(-1,), shortcut="Up")
        st.button("Criterion", key="down", on_click=labelling.move_criterion, args=(1,), shortcut="Down")
        st.button("Save", key="save", on_click=labelling.save, shortcut="Enter", type="primary")


def show_reveal(desk: Desk, system: str) -> None:
    """What the judges said of a saved item, for whoever asks."""
    shown = url.choose(
        st.container(),
        "After saving",
        "reveal",
        {"no": "Keep the judge hidden", "yes": "Show system and judge"},
        widget="segmented_control",
    )
    if shown == "yes":
        st.text(f"System: {system or 'not named'}")
        st.dataframe(labelling.judge_scores(desk), hide_index=True)
        st.caption("A label changed from here on is no longer blind.")


def show_ranking(desk: Desk) -> None:
    """The candidates for one request by letter; systems and totals only after saving."""
    groups = labelling.ballots(desk)
    if not groups:
        st.info(
            "No request in this corpus has two or more candidates, so there is nothing to rank.", icon=":material/info:"
        )
        return
    options = {str(place + 1): f"Request {place + 1} of {len(groups)}" for place in range(len(groups))}
    ballot = labelling.get_ballot(desk, groups[int(url.choose(st.container(), "Request", "ballot", options)) - 1])
    show_text("Request", ballot.request)
    ranks = []
    places = [str(place + 1) for place in range(len(ballot.item_ids))]
    for place, column in enumerate(st.columns(len(ballot.item_ids))):
        with column:
            show_text(f"Candidate {labelling.LETTERS[place]}", ballot.candidates[place])
            rank = st.radio(
                f"Rank of {labelling.LETTERS[place]} (1 is best)",
                places,
                index=ballot.ranks[place] - 1 if ballot.ranks else None,
                key=f"rank_{ballot.request_sha256[:12]}_{desk.rater}_{place}",
                horizontal=True,
            )
            ranks.append(int(rank) if rank else 0)
    if st.button("Save the order", type="primary", shortcut="Enter", disabled=0 in ranks or 1 not in ranks):
        labelling.save_ranking(desk, ballot, ranks)
        st.rerun()
    if ballot.ranks:
        table, order = labelling.reveal_ranking(ballot, deciding.totals_of_set(desk.at, desk.labels))
        st.dataframe(table, hide_index=True)
        st.caption(
            f"{order.same} of {order.pairs} pairs in the same order as the rubric · {order.opposite} opposite · "
            f"{order.tied} tied · {order.undefined} without a total"
        )


open_page("Label", "What do people say, before they see what the judge said?")
at = cached.snapshot()
if labelling.list_rubrics(at).empty:
    st.info(
        "There is nothing to label yet. Import a file with `python -m core.cli import FILE`, or run `make demo`.",
        icon=":material/info:",
    )
    st.stop()
labels = labelling.select_label_set(at)
if labels is None:
    labelling.show_new_label_set(at, expanded=True)
    st.info("Open a label set above: a name, the rubric and the policy that readers follow.", icon=":material/info:")
    st.stop()
corpus_id = labelling.select_corpus(at, labels)
if corpus_id is None:
    st.info("There is no corpus to label. Import a file with items first.", icon=":material/info:")
    st.stop()
rater = url.ask(st.sidebar, "Your name", "rater", help="Kept with every label.", placeholder="rater-1")
mode = url.choose(st.sidebar, "Work", "mode", MODES)
st.text(f"{labels.name} under {labels.rubric}")
with st.expander("Policy"):
    st.text(labels.policy or "No policy was written down.")
if mode == BUILD:
    labelling.show_queue_builder(at, labels, corpus_id)
    st.stop()
url.choose(
    st.sidebar, "Items", "source", {labelling.QUEUE: "The set's queue", labelling.CORPUS: "Every item of the corpus"}
)
desk = labelling.open_desk(at, labels, corpus_id)
if not rater:
    st.info("Enter your name in the sidebar: it gives you an order of your own.", icon=":material/person:")
elif mode == RANK:
    show_ranking(desk)
elif not desk.order:
    st.info("There is nothing to label for you here. Choose another corpus or queue.", icon=":material/info:")
else:
    show_scoring(desk)
labelling.show_new_label_set(at, expanded=False)
