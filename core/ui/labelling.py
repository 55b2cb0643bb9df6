"""The reader's desk: which items, in which order, what was said of them, and what the keys do.

What is saved lives in the store, and where a reader is follows from it. What was pressed and not yet saved stands in
the URL. So a closed window loses nothing, and a callback never trusts the screen it was drawn on: it looks again.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from core.stats.against_people import modal_codes
from core.stats.common import MISSING
from core.stats.decision import PairOrder, order_pairs
from core.stats.queue import DOUBLE_SHARE, NO_BAND, Choice, Pool, build_queue
from core.store import label_queries, label_writes, queries, writes
from core.store.engine import reading
from core.store.label_queries import Queue
from core.store.queries import CriterionView
from core.store.tables import Item
from core.store.vectors import level_codes
from core.ui import cached, url
from core.ui.cached import Selection, Snapshot
from core.ui.page import plain
from core.ui.scope import corpus_key, judge_words, level_words

QUEUE, CORPUS = "queue", "corpus"
FEWEST_CANDIDATES, MOST_CANDIDATES = 2, 6
LETTERS = "ABCDEF"

_DRAFTS, _DRAFT_REASONS = "draft_scores", "draft_reasons"


@dataclass(frozen=True, slots=True)
class SetView:
    """One label set.

    Attributes:
        name: Name and version in words.
        rubric: Rubric and version in words.
        rubric_name: Its name alone, the same in every version.
    """

    id: int
    key: str
    name: str
    policy: str
    rubric_id: int
    rubric: str
    rubric_name: str
    rubric_version: int
    simulated: bool
    labels: int
    readers: int


@dataclass(frozen=True, slots=True)
class Desk:
    """One reader in front of one label set.

    Attributes:
        rater: Who reads; empty before a name is given.
        criteria: What is scored.
        order: Item ids in this reader's own random order.
        own: What this reader said, by item and criterion: value and reason.
        queue: The queue it comes from; None for all items of a corpus.
    """

    at: Snapshot
    labels: SetView
    corpus_id: int
    rater: str
    criteria: tuple[CriterionView, ...]
    order: tuple[int, ...]
    own: dict[tuple[int, int], tuple[float, str]]
    queue: Queue | None

    @property
    def done(self) -> list[bool]:
        """For each item of the order, whether this reader labelled every criterion."""
        return [all((item, criterion.id) in self.own for criterion in self.criteria) for item in self.order]

    @property
    def place(self) -> int:
        """Where the reader is: the URL's place, else the first item that is not done, else the last."""
        wanted = url.read("at")
        if wanted.isdecimal() and 1 <= int(wanted) <= len(self.order):
            return int(wanted) - 1
        done = self.done
        return done.index(False) if False in done else len(self.order) - 1

    @property
    def item_id(self) -> int:
        """The item in front of the reader."""
        return self.order[self.place]

    @property
    def values(self) -> dict[int, float]:
        """What stands on the screen for the item, by criterion: what was pressed, else what was saved."""
        saved = {criterion: value for (item, criterion), (value, _) in self.own.items() if item == self.item_id}
        return saved | self.draft

    @property
    def draft(self) -> dict[int, float]:
        """What was pressed and not yet saved for the item in front of the reader, out of the URL."""
        criteria = {criterion.key: criterion for criterion in self.criteria}
        found: dict[int, float] = {}
        item, _, parts = url.read("draft").partition("~")
        if item != str(self.item_id):
            return found
        for part in parts.split(","):
            key, _, place = part.rpartition(":")
            if key in criteria and place.isdecimal() and int(place) < len(criteria[key].levels):
                found[criteria[key].id] = criteria[key].levels[int(place)]
        return found

    @property
    def active(self) -> CriterionView:
        """The criterion that the digits score: the chosen one, else the first without a value."""
        values, wanted = self.values, url.read("on")
        chosen = [criterion for criterion in self.criteria if criterion.key == wanted]
        left = [criterion for criterion in self.criteria if criterion.id not in values]
        return (chosen or left or list(self.criteria))[0]

    def reason(self, criterion_id: int) -> str:
        """What was written for the item and criterion: unsaved words first."""
        drafts: dict[tuple[int, int], str] = st.session_state.get(_DRAFT_REASONS, {})
        return drafts.get((self.item_id, criterion_id), self.own.get((self.item_id, criterion_id), (0.0, ""))[1])


@dataclass(frozen=True, slots=True)
class Ballot:
    """The candidates for one request, as a reader ranks them.

    Attributes:
        request_sha256: Hash of the request.
        request: Its text.
        item_ids: Candidates in the order of their letters, which is this reader's own.
        candidates: Their texts.
        ranks: The reader's saved ranks in the same order; None before saving.
    """

    request_sha256: str
    request: str
    item_ids: tuple[int, ...]
    candidates: tuple[str, ...]
    ranks: tuple[int, ...] | None


@st.cache_data(max_entries=cached.FEW, show_spinner=False)
def list_sets(at: Snapshot) -> pd.DataFrame:  # noqa: ARG001 - the key
    """`label_queries.list_sets`."""
    with reading(cached.engine()) as session:
        return label_queries.list_sets(session=session)


@st.cache_data(max_entries=cached.FEW, show_spinner=False)
def list_rubrics(at: Snapshot) -> pd.DataFrame:  # noqa: ARG001 - the key
    """`label_queries.list_rubrics`."""
    with reading(cached.engine()) as session:
        return label_queries.list_rubrics(session=session)


@st.cache_data(max_entries=cached.FEW, show_spinner=False)
def list_labels(at: Snapshot, label_set_id: int) -> pd.DataFrame:  # noqa: ARG001 - the key
    """`label_queries.list_labels`."""
    with reading(cached.engine()) as session:
        return label_queries.list_labels(session=session, label_set_id=label_set_id)


@st.cache_data(max_entries=cached.FEW, show_spinner=False)
def corpus_items(at: Snapshot, corpus_id: int) -> pd.DataFrame:  # noqa: ARG001 - the key
    """`label_queries.list_corpus_items`."""
    with reading(cached.engine()) as session:
        return label_queries.list_corpus_items(session=session, corpus_id=corpus_id)


def get_item(item_id: int) -> Item:
    """One item with its texts."""
    with reading(cached.engine()) as session:
        item = queries.get_item(session=session, item_id=item_id)
    if item is None:
        raise ValueError(f"there is no item {item_id}")
    return item


def select_label_set(at: Snapshot, *, readers: int = 0) -> SetView | None:
    """Draw the choice of a label set, by default the newest with as many readers; None when there is none yet."""
    views = {view.key: view for view in _set_views(at)}
    if not views:
        return None
    key = url.choose(
        st.sidebar,
        "Label set",
        "labels",
        {key: f"{view.name} ({view.labels:,} labels)" for key, view in views.items()},
        default=next((key for key, view in views.items() if view.readers >= readers), None),
        help="Labels made under one written policy. Two sets are never mixed.",
    )
    return views[key]


def show_new_label_set(at: Snapshot, *, expanded: bool) -> None:
    """A form that opens a new label set under a written policy."""
    rubrics = {
        int(row.id): f"{row.rubric} v{row.version}"
        for row in list_rubrics(at).rename(columns={"name": "rubric"}).itertuples()
    }
    with st.expander("New label set", expanded=expanded), st.form("new_label_set"):
        name = st.text_input("Name", key="set_name")
        policy = st.text_area(
            "Written policy",
            key="set_policy",
            help="How readers decide. It is kept with the labels and is not changed.",
        )
        rubric_id = st.selectbox("Rubric", list(rubrics), format_func=lambda key: rubrics[key])
        if st.form_submit_button("Open the label set"):
            if not name.strip() or not policy.strip() or rubric_id is None:
                st.error("A label set needs a name, a rubric and a written policy.", icon=":material/error:")
                return
            with writes.writing(cached.engine()) as session:
                made = writes.add_label_set(
                    session=session, name=name.strip(), rubric_id=rubric_id, policy=policy.strip()
                )
                key = corpus_key(made.name, made.version)
            url.publish(labels=key, at="", draft="", on="", source="")
            st.rerun()


def select_corpus(at: Snapshot, labels: SetView) -> int | None:
    """Draw the choice of the corpus whose items are labelled; None when there is no corpus of single items."""
    with reading(cached.engine()) as session:
        first = label_queries.list_set_corpora(session=session, label_set_id=labels.id)
    corpora = cached.corpora(at)
    keys = {corpus_key(row.name_, row.version): row for row in corpora.rename(columns={"name": "name_"}).itertuples()}
    if not keys:
        return None
    likely = [key for corpus_id in first for key, row in keys.items() if row.id == corpus_id]
    options = {key: f"{row.name_} v{row.version} ({row.items:,} items)" for key, row in keys.items()}
    return int(keys[url.choose(st.sidebar, "Corpus", "corpus", options, default=next(iter(likely), None))].id)


def open_desk(at: Snapshot, labels: SetView, corpus_id: int) -> Desk:
    """The desk of the reader whom the URL names, as the store has it now."""
    with reading(cached.engine()) as session:
        queue = label_queries.get_queue(session=session, label_set_id=labels.id)
    rater = url.read("rater").strip()
    if queue is not None and url.read("source", QUEUE) == QUEUE:
        items = _queue_items(queue, rater)
    else:
        queue, items = None, [int(item) for item in corpus_items(at, corpus_id).item_id]
    own = {}
    if rater:
        mine = list_labels(at, labels.id)
        for row in mine[mine.rater == rater].itertuples():
            own[int(row.item_id), int(row.criterion_id)] = (float(row.value), str(row.reason))
    order = _rng(labels.key, rater).permutation(sorted(items)).tolist()
    return Desk(at, labels, corpus_id, rater, cached.criteria(at, rubric_id=labels.rubric_id), tuple(order), own, queue)


def current_desk() -> Desk | None:
    """The desk that the URL describes, read again from the store: for what a key does."""
    at = cached.snapshot()
    labels = next((view for view in _set_views(at) if view.key == url.read("labels")), None)
    corpora = cached.corpora(at).rename(columns={"name": "name_"})
    corpus = [row.id for row in corpora.itertuples() if corpus_key(row.name_, row.version) == url.read("corpus")]
    if labels is None or not corpus:
        return None
    desk = open_desk(at, labels, int(corpus[0]))
    return desk if desk.order and desk.rater else None


def press(place: int) -> None:
    """Score the active criterion with its level at `place`, and go on to the next one without a value."""
    desk = current_desk()
    if desk is None or place >= len(desk.active.levels):
        return
    values = desk.draft | {desk.active.id: desk.active.levels[place]}
    keys = {criterion.id: criterion for criterion in desk.criteria}
    draft = ",".join(f"{keys[key].key}:{keys[key].levels.index(value)}" for key, value in values.items())
    left = [criterion.key for criterion in desk.criteria if criterion.id not in desk.values | values]
    draft = f"{desk.item_id}~{draft}"
    st.session_state.setdefault(_DRAFTS, {})[desk.item_id] = draft
    url.publish(at=str(desk.place + 1), draft=draft, on=left[0] if left else desk.active.key)


def move_item(step: int) -> None:
    """Go to another item; what was pressed and not saved is there again on the way back."""
    desk = current_desk()
    if desk is not None:
        place = min(max(desk.place + step, 0), len(desk.order) - 1)
        drafts: dict[int, str] = st.session_state.get(_DRAFTS, {})
        if place != desk.place:
            url.publish(at=str(place + 1), draft=drafts.get(desk.order[place], ""), on="")


def move_criterion(step: int) -> None:
    """Make another criterion the one that the digits score."""
    desk = current_desk()
    if desk is not None:
        keys = [criterion.key for criterion in desk.criteria]
        url.publish(on=keys[(keys.index(desk.active.key) + step) % len(keys)])


def save() -> None:
    """Append what was pressed or written as rows of their own; go on when every criterion has a value."""
    desk = current_desk()
    if desk is None:
        return
    item, changed, reasons = desk.item_id, {}, {}
    for criterion_id, value in desk.values.items():
        reason = desk.reason(criterion_id)
        if desk.own.get((item, criterion_id)) != (value, reason):
            changed[criterion_id], reasons[criterion_id] = value, reason
    if changed:
        with writes.writing(cached.engine()) as session:
            label_writes.record_item_labels(
                session=session,
                label_set_id=desk.labels.id,
                item_id=item,
                rater=desk.rater,
                values=changed,
                reasons=reasons,
            )
    st.session_state.get(_DRAFTS, {}).pop(item, None)
    if len(desk.values) < len(desk.criteria):
        url.publish(at=str(desk.place + 1), draft="", on="")
        return
    place, done = desk.place, desk.done
    later = [*range(place + 1, len(done)), *range(place)]
    open_places = [at for at in later if not done[at]]
    url.publish(at=str((open_places[0] if open_places else place) + 1), draft="", on="")


def keep_reason(item_id: int, criterion_id: int, key: str) -> None:
    """Remember what was written for a criterion until it is saved."""
    drafts = st.session_state.setdefault(_DRAFT_REASONS, {})
    drafts[item_id, criterion_id] = str(st.session_state[key]).strip()


def digits(criterion: CriterionView) -> list[str]:
    """The key of each level: the level itself where all are whole and below 10, else its place from 1."""
    if all(level == int(level) and 0 <= level <= 9 for level in criterion.levels):
        return [level_words(level) for level in criterion.levels]
    return [str(place + 1) if place < 9 else "" for place in range(len(criterion.levels))]


def judge_scores(desk: Desk) -> pd.DataFrame:
    """What every judge of single answers most often gave the item: judge, criterion, most often."""
    at, corpus_id, item_id = desk.at, desk.corpus_id, desk.item_id
    rows = []
    judges = cached.judges(at)
    judges = judges[(judges.corpus_id == corpus_id) & ~judges.pairwise.astype(bool)]
    for _, judge in judges.iterrows():
        criteria = cached.criteria(at, rubric_id=int(judge.rubric_id))
        runs = cached.runs(at, judge_id=int(judge.judge_id), corpus_id=corpus_id)
        found = cached.repetitions(
            at,
            item_id=item_id,
            runs=tuple(int(run) for run in runs.id),
            criteria=tuple(criterion.id for criterion in criteria),
        )
        for criterion in criteria:
            codes = [level_codes(own.outcomes) for (key, _), own in found.items() if key == criterion.id]
            modal = modal_codes(np.concatenate(codes)[None, :], len(criterion.levels))[0] if codes else MISSING
            score = "unscored" if modal == MISSING else level_words(criterion.levels[modal])
            rows.append({"judge": judge_words(judge), "criterion": criterion.key, "most often": score})
    return pd.DataFrame(rows, columns=["judge", "criterion", "most often"])


def make_pool(at: Snapshot, corpus_id: int, judge: pd.Series | None) -> tuple[pd.DataFrame, Pool]:
    """The items of a corpus with the judge's typical score of its first criterion and the flip rate at its gate.

    Returns:
        The items, with columns `typical` and `flip_rate`, and the pool for `build_queue`.
    """
    items = corpus_items(at, corpus_id)
    bands, flips = np.full(len(items), NO_BAND), np.full(len(items), np.nan)
    levels: tuple[float, ...] = ()
    if judge is not None:
        criterion = cached.criteria(at, rubric_id=int(judge.rubric_id))[0]
        levels = criterion.levels
        runs = cached.runs(at, judge_id=int(judge.judge_id), corpus_id=corpus_id)
        revisions = tuple((int(run.id), int(run.revision)) for run in runs.itertuples())
        selection = Selection(at.store, revisions, criterion.id, levels)
        matrix = cached.matrix(selection)
        rows = pd.Index(matrix.item_ids).get_indexer(items.item_id)
        known = rows >= 0
        bands[known] = modal_codes(matrix.codes, len(levels))[rows[known]]
        flips[known] = cached.verdicts(selection, criterion.gate).flip_probability[rows[known]]
    typical = [level_words(levels[band]) if band != NO_BAND else "no score" for band in bands]
    return items.assign(typical=typical, flip_rate=flips), Pool(items.slice.tolist(), bands, flips)


def why_chosen(row: pd.Series, choice: Choice) -> str:
    """Why an item is in a queue, in words."""
    parts = [f"slice {row.slice}"]
    if choice.steady is not None:
        parts += [f"typical score {row.typical}", f"flip rate {row.flip_rate:.2f}: {_kind(choice)}"]
    return ", ".join(parts + (["labelled twice"] if choice.second_slot is not None else []))


def show_queue_builder(at: Snapshot, labels: SetView, corpus_id: int) -> None:
    """Choose a queue, show what it took and why, and keep it when told to."""
    judges = cached.judges(at)
    judges = judges[(judges.corpus_id == corpus_id) & ~judges.pairwise.astype(bool)]
    by_key = {row.fingerprint[:12]: row for _, row in judges.iterrows()}
    options = {"none": "No judge: balance slices only"} | {key: judge_words(row) for key, row in by_key.items()}
    left, right = st.columns(2)
    judge = by_key.get(
        url.choose(
            left,
            "Score bands and flips of",
            "queue_judge",
            options,
            default=next(iter(by_key), "none"),
            help="Its first criterion decides. Readers do not see these scores.",
        )
    )
    raters = [
        name.strip()
        for name in url.ask(right, "Readers, separated by commas", "readers", placeholder="rater-1, rater-2").split(",")
        if name.strip()
    ]
    size_place, share_place, seed_place = st.columns(3)
    size = int(size_place.number_input("Items", 1, 5_000, 50))
    share = float(share_place.number_input("Share labelled twice", 0.0, 1.0, DOUBLE_SHARE, step=0.05))
    seed = int(seed_place.number_input("Seed", 0, 1_000_000, 0))
    items, pool = make_pool(at, corpus_id, judge)
    if items.empty:
        st.info("The corpus has no single items: people label answers, not pairs.", icon=":material/info:")
        return
    choices = build_queue(
        pool, size=size, readers=max(len(raters), 1), double_share=share, rng=np.random.default_rng(seed)
    )
    names = raters or ["reader"]
    rows = [items.iloc[choice.item] for choice in choices]
    table = pd.DataFrame(
        {
            "item": [row.key for row in rows],
            "slice": [row.slice for row in rows],
            "typical score": [row.typical for row in rows],
            "kind": [_kind(choice) for choice in choices],
            "reader": [names[choice.slot] for choice in choices],
            "second reader": [
                names[choice.second_slot] if choice.second_slot is not None else "" for choice in choices
            ],
            "why": [why_chosen(row, choice) for row, choice in zip(rows, choices, strict=True)],
        }
    )
    doubles = int((table["second reader"] != "").sum())
    st.caption(
        f"{len(table):,} of {len(items):,} items · "
        + " · ".join(f"{plain(str(name))} {count:,}" for name, count in table.slice.value_counts().items())
        + f" · {doubles:,} labelled twice · "
        + " · ".join(f"{count:,} {name}" for name, count in table.kind.value_counts().items())
    )
    st.dataframe(table, hide_index=True)
    if st.button("Keep this queue", type="primary", disabled=not raters, help="Name the readers first."):
        with writes.writing(cached.engine()) as session:
            label_writes.record_queue(
                session=session,
                label_set_id=labels.id,
                raters=raters,
                items=[
                    (int(row.item_id), choice.slot, choice.second_slot, why)
                    for row, choice, why in zip(rows, choices, table.why, strict=True)
                ],
                seed=seed,
                double_share=share,
                note=options[url.read("queue_judge", "none")],
            )
        url.publish(source="", at="", draft="", on="")
        st.success("Kept. It is now the queue of this label set.", icon=":material/check:")


def ballots(desk: Desk) -> list[tuple[int, ...]]:
    """Candidates of each request with two or more, at most six of them, in letters of this reader's own."""
    items = corpus_items(desk.at, desk.corpus_id)
    groups = []
    for _, own in items[items.request_group > 0].groupby("request_group", sort=True):
        if len(own) >= FEWEST_CANDIDATES:
            drawn = _rng(desk.labels.key, desk.rater, str(own.item_id.min())).permutation(own.item_id.to_numpy())
            groups.append(tuple(int(item) for item in drawn[:MOST_CANDIDATES]))
    return groups


def get_ballot(desk: Desk, item_ids: tuple[int, ...]) -> Ballot:
    """The candidates of one request, with the reader's saved ranks."""
    items = [get_item(item_id) for item_id in item_ids]
    request = items[0].request or ""
    digest = hashlib.sha256(request.encode()).hexdigest()
    with reading(cached.engine()) as session:
        saved = label_queries.list_rankings(session=session, label_set_id=desk.labels.id)
    saved = saved[(saved.rater == desk.rater) & (saved.request_sha256 == digest)]
    ranks = None
    if len(saved):
        known = dict(zip(saved.item_ids.iloc[-1], saved.ranks.iloc[-1], strict=True))
        if set(known) == set(item_ids):
            ranks = tuple(int(known[item]) for item in item_ids)
    return Ballot(digest, request, item_ids, tuple(item.candidate or "" for item in items), ranks)


def save_ranking(desk: Desk, ballot: Ballot, ranks: list[int]) -> None:
    """Append the reader's order."""
    with writes.writing(cached.engine()) as session:
        label_writes.record_ranking(
            session=session,
            label_set_id=desk.labels.id,
            rater=desk.rater,
            request_sha256=ballot.request_sha256,
            ranks=dict(zip(ballot.item_ids, ranks, strict=True)),
        )


def reveal_ranking(ballot: Ballot, totals: dict[int, float]) -> tuple[pd.DataFrame, PairOrder]:
    """Systems and rubric totals of a saved ballot, and how many pairs stand in the same order."""
    ranks = ballot.ranks or ()
    found = np.array([totals.get(item, np.nan) for item in ballot.item_ids])
    table = pd.DataFrame(
        {
            "letter": list(LETTERS[: len(ranks)]),
            "rank": list(ranks),
            "system": [get_item(item).system or "not named" for item in ballot.item_ids],
            "rubric total": ["no total" if np.isnan(total) else level_words(total) for total in found],
        }
    )
    return table.sort_values("rank", kind="stable"), order_pairs(ranks, found)


def _set_views(at: Snapshot) -> list[SetView]:
    return [
        SetView(
            id=int(row.id),
            key=corpus_key(row.set_name, row.version),
            name=f"{row.set_name} v{row.version}",
            policy=str(row.policy or ""),
            rubric_id=int(row.rubric_id),
            rubric=f"{row.rubric} v{row.rubric_version}",
            rubric_name=str(row.rubric),
            rubric_version=int(row.rubric_version),
            simulated=bool(row.simulated),
            labels=int(row.labels),
            readers=int(row.raters),
        )
        for row in list_sets(at).rename(columns={"name": "set_name"}).itertuples()
    ]


def _queue_items(queue: Queue, rater: str) -> list[int]:
    """The items a reader was asked for; a reader whom the queue does not name is asked for all of them."""
    items = queue.items
    if rater in queue.raters:
        slot = queue.raters.index(rater)
        items = items[(items.slot == slot) | (items.second_slot == slot)]
    return [int(item) for item in items.item_id]


def _rng(*parts: str) -> np.random.Generator:
    """A generator of the reader's own: the same after a reload, another for everyone else."""
    return np.random.default_rng(list(hashlib.sha256("\x00".join(parts).encode()).digest()))


def _kind(choice: Choice) -> str:
    return "not known" if choice.steady is None else "steady" if choice.steady else "unsteady"
