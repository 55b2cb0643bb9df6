"""Launching runs: what can be asked, what it would cost, the local worker, and how far a run is."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st
from sqlmodel import Session
from streamlit.errors import StreamlitSecretNotFoundError

from core.judge.asking import FORM, LENGTH, Asking, JudgeDraft, asking_of
from core.judge.asking import orders as orders_of
from core.judge.client import KEY_NAME
from core.judge.making import make_judge
from core.judge.pricing import Prices, load_prices
from core.judge.protocol import CallKey, Form, JudgeError, Message
from core.judge.redact import PATTERNS, Pattern, as_expressions, as_patterns, preview
from core.judge.schedule import next_time
from core.store import plan_queries, plan_writes
from core.store.engine import database_url, reading
from core.store.plan_queries import ItemChoice, Progress
from core.store.plan_writes import PlanSpec
from core.store.tables import Judge, JudgeKind, RunStatus, utc_now
from core.store.writes import add_judge, writing
from core.ui import cached
from core.ui.cached import FEW, Snapshot

Kind = JudgeKind
Status = RunStatus
"""For the page, which reads no store."""

FRESH = timedelta(seconds=20)
SAMPLE = 5
IDLE_SECONDS = 600
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Plan:
    """What the launch page was asked for.

    Attributes:
        judge_id: A stored judge, or None for the draft.
        draft: A judge that is made at the start.
        limit: US dollars, or None.
    """

    corpus_id: int
    slices: tuple[str, ...]
    judge_id: int | None
    draft: JudgeDraft | None
    repetitions: int = 1
    both_orders: bool = False
    concurrency: int = 4
    limit: float | None = None
    pilot: int = 0
    batched: bool = False
    redact: bool = False


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a plan means before anything is asked.

    Attributes:
        items: Items with a text to judge.
        without_text: Items of the slices that have none.
        calls: Items x orders x repetitions.
        first: Exactly what the judge reads of the first item; None with `problem`.
        findings: What redaction would take out of the first item's texts.
        tokens: Mean input tokens of a call, counted by the endpoint on a sample.
        tokens_words: Where that number comes from, or why there is none.
        most_cost: US dollars if every reply were as long as allowed; None: no price known, or tokens unknown.
        most_batch_cost: The same through Message Batches.
        price_words: Which price, with its date.
        problem: Why this plan cannot be launched.
    """

    items: int = 0
    without_text: int = 0
    calls: int = 0
    first: Message | None = None
    findings: tuple[tuple[str, str], ...] = ()
    tokens: float | None = None
    tokens_words: str = ""
    most_cost: float | None = None
    most_batch_cost: float | None = None
    price_words: str = ""
    problem: str = ""


def use_secrets() -> bool:
    """Put the key of the secrets file into the environment, where judges and the worker look; whether there is one."""
    if not os.environ.get(KEY_NAME):
        try:
            secret = st.secrets.get(KEY_NAME)
        except StreamlitSecretNotFoundError:
            secret = None
        if secret:
            os.environ[KEY_NAME] = str(secret)
    return bool(os.environ.get(KEY_NAME))


@st.cache_data(max_entries=FEW, show_spinner=False)
def judges(at: Snapshot) -> pd.DataFrame:  # noqa: ARG001 - the key
    """`plan_queries.list_askable_judges`."""
    with reading(cached.engine()) as session:
        return plan_queries.list_askable_judges(session=session)


@st.cache_data(max_entries=FEW, show_spinner=False)
def judgeable_corpora(at: Snapshot) -> list[int]:  # noqa: ARG001 - the key
    """`plan_queries.list_judgeable_corpora`."""
    with reading(cached.engine()) as session:
        return plan_queries.list_judgeable_corpora(session=session)


def usual_rubric(at: Snapshot, corpus_id: int) -> str | None:
    """The rubric that the newest judge of a corpus goes by, which a new judge of it will mostly go by too."""
    known = cached.judges(at)
    known = known[known.corpus_id == corpus_id].sort_values("newest_run")
    return None if known.empty else str(known.rubric_id.iloc[-1])


@st.cache_data(max_entries=FEW, show_spinner=False)
def replayable(at: Snapshot) -> pd.DataFrame:  # noqa: ARG001 - the key
    """`plan_queries.list_replayable`."""
    with reading(cached.engine()) as session:
        return plan_queries.list_replayable(session=session)


@st.cache_data(max_entries=FEW, show_spinner=False)
def plans(at: Snapshot) -> pd.DataFrame:  # noqa: ARG001 - the key
    """`plan_queries.list_plans`."""
    with reading(cached.engine()) as session:
        return plan_queries.list_plans(session=session)


@st.cache_data(max_entries=FEW, show_spinner=False)
def schedules(at: Snapshot) -> pd.DataFrame:  # noqa: ARG001 - the key
    """`plan_queries.list_schedules`."""
    with reading(cached.engine()) as session:
        return plan_queries.list_schedules(session=session)


def rubric_of(plan: Plan) -> int:
    """The rubric that a plan's judge goes by."""
    if plan.draft:
        return plan.draft.rubric_id
    stored = judges(cached.snapshot())
    return int(stored.rubric_id[stored.id == plan.judge_id].iloc[0])


def forms_for(at: Snapshot, rubric_id: int) -> list[Form]:
    """The forms that a rubric fits."""
    view = cached.criteria(at, rubric_id=rubric_id)
    if len(view) != 1:
        return [Form.SINGLE, Form.REFERENCE]
    low, high = view[0].levels[0], view[0].levels[-1]
    if low < 0 < high and set(view[0].levels) <= {low, 0.0, high}:
        return [Form.PAIRWISE, Form.SINGLE, Form.REFERENCE]
    return [Form.SINGLE, Form.REFERENCE] + ([Form.VERDICT] if len(view[0].levels) == 2 else [])


def look_ahead(plan: Plan) -> Outlook:
    """Calls, tokens and cost of a plan, and the first message, before anything is stored."""
    with reading(cached.engine()) as session:
        try:
            stored, asking = _judge(session, plan)
        except (ValueError, JudgeError) as error:
            return Outlook(problem=_words(error))
        chosen = _items(session, plan, asking.prompt.form)
        calls = len(chosen.ids) * len(orders_of(asking.prompt.form, both=plan.both_orders)) * plan.repetitions
        if not chosen.ids:
            what = "pairs" if asking.prompt.form is Form.PAIRWISE else "single answers"
            return Outlook(
                without_text=chosen.without_text, problem=f"These slices hold no {what} with a text to judge."
            )
        sample = plan_queries.get_texts(session=session, item_ids=chosen.ids[:SAMPLE])
    order = orders_of(asking.prompt.form, both=False)[0]
    try:
        messages = tuple(
            asking.message(sample[item], CallKey(item, 0, order)) for item in chosen.ids[:SAMPLE] if item in sample
        )
    except ValueError as error:
        return Outlook(items=len(chosen.ids), without_text=chosen.without_text, problem=_words(error))
    first = sample[chosen.ids[0]]
    texts = (first.request, first.reference, first.candidate, first.candidate_b)
    tokens, tokens_words = _count(stored, messages)
    cost, batch_cost, price_words = _cost(stored, asking, calls, tokens)
    return Outlook(
        items=len(chosen.ids),
        without_text=chosen.without_text,
        calls=calls,
        first=messages[0],
        findings=tuple(
            (found.name, found.found) for text in texts if text for found in preview(text, asking.redaction)
        ),
        tokens=tokens,
        tokens_words=tokens_words,
        most_cost=cost,
        most_batch_cost=batch_cost,
        price_words=price_words,
    )


def _judge(session: Session, plan: Plan) -> tuple[Judge, Asking]:
    """The judge of a plan, which is not stored yet where it is a draft, and how it is asked."""
    if plan.judge_id is not None:
        stored = session.get_one(Judge, plan.judge_id)
    elif plan.draft is not None:
        spec = plan.draft.spec(session=session)
        stored = Judge(
            fingerprint="",
            name=spec.name,
            kind=spec.kind,
            model=spec.model,
            prompt_version=spec.prompt_version,
            rubric_id=spec.rubric_id,
            parameters=spec.parameters,
            parser_version=spec.parser_version,
        )
    else:
        raise ValueError("choose a judge")
    return stored, asking_of(session=session, judge=stored, redaction=_redaction(session, plan))


def _redaction(session: Session, plan: Plan) -> tuple[Pattern, ...]:
    """What a plan takes out of texts: the list of the store, or the shipped one where the store has none."""
    if not plan.redact:
        return ()
    return as_patterns(plan_queries.get_redaction(session=session)) or PATTERNS


def _items(session: Session, plan: Plan, form: Form) -> ItemChoice:
    return plan_queries.choose_items(
        session=session, corpus_id=plan.corpus_id, slices=plan.slices, pairs=form is Form.PAIRWISE
    )


def _count(stored: Judge, messages: tuple[Message, ...]) -> tuple[float | None, str]:
    kept = st.session_state.setdefault("launch_tokens", {})
    key = (stored.kind, stored.model, tuple(message.prompt_sha256 for message in messages))
    if key not in kept:
        kept.clear()
        kept[key] = _count_now(stored, messages)
    found: tuple[float | None, str] = kept[key]
    return found


def _count_now(stored: Judge, messages: Sequence[Message]) -> tuple[float | None, str]:
    async def count() -> list[int | None]:
        judge = make_judge(stored, engine=cached.engine())
        try:
            return [await judge.count_tokens(message) for message in messages]
        finally:
            await judge.aclose()

    try:
        counted = [tokens for tokens in asyncio.run(count()) if tokens is not None]
    except JudgeError as error:
        return None, f"Tokens could not be counted: {error.words}."
    if not counted:
        return None, "Tokens are not known: this judge does not count them."
    return sum(counted) / len(counted), f"Input tokens counted by the judge's endpoint on {len(counted)} items."


def _cost(stored: Judge, asking: Asking, calls: int, tokens: float | None) -> tuple[float | None, float | None, str]:
    try:
        prices = load_prices()
    except (OSError, ValueError) as error:
        return None, None, f"No price known: the price file cannot be read ({error})."
    if stored.kind != JudgeKind.ANTHROPIC:
        return 0.0, None, "Costs nothing: it runs here."
    price = prices.find(stored.model)
    if price is None:
        return None, None, f"No price known for {stored.model or 'this model'} in the price file of {prices.date}."
    words = f"${price.input:g} in and ${price.output:g} out a million tokens, price file of {prices.date}."
    if tokens is None:
        return None, None, words
    whole = prices.cost(
        kind=stored.kind,
        model=stored.model,
        input_tokens=tokens * calls,
        output_tokens=float(asking.max_tokens * calls),
    )
    return whole, None if whole is None else whole * prices.batch_share, words


def _priced(stored: Judge, plan: Plan, tokens: float | None, prices: Prices | None) -> dict[str, Any]:
    """The prices that a run keeps, and what each call in flight holds back of the limit."""
    if stored.kind != JudgeKind.ANTHROPIC:
        return {"input_price": 0.0, "output_price": 0.0}
    price = prices.find(stored.model) if prices else None
    if price is None or prices is None:
        return {}
    share = prices.batch_share if plan.batched else 1.0
    longest = int(stored.parameters.get(LENGTH, 0))
    return {
        "input_price": price.input * share,
        "output_price": price.output * share,
        "price_date": str(prices.date),
        "call_reserve": ((tokens or 0) * 1.5 * price.input + longest * price.output) * share / 1e6,
    }


def _options(session: Session, plan: Plan, judge: Judge, tokens: float | None) -> tuple[dict[str, Any], Form]:
    try:
        prices: Prices | None = load_prices()
    except (OSError, ValueError):
        prices = None
    options = {
        "concurrency": plan.concurrency,
        "spending_limit": plan.limit,
        "batched": plan.batched,
        "redaction": as_expressions(_redaction(session, plan)),
    }
    if judge.kind == JudgeKind.ANTHROPIC and plan.limit is not None and tokens is None:
        raise ValueError("a spending limit needs the tokens of a call, and they could not be counted")
    form = Form(judge.parameters.get(FORM, Form.SINGLE))
    asking_of(session=session, judge=judge)
    return options | _priced(judge, plan, tokens, prices), form


def launch(plan: Plan, *, tokens: float | None) -> int:
    """Store the plan; returns the run.

    Raises:
        ValueError: When it cannot be launched, with the reason.
    """
    with writing(cached.engine()) as session:
        judge = _stored_judge(session, plan)
        options, form = _options(session, plan, judge, tokens)
        chosen = _items(session, plan, form)
        run = plan_writes.add_plan(
            session=session,
            spec=PlanSpec(
                judge_id=_key(judge),
                corpus_id=plan.corpus_id,
                item_ids=chosen.ids,
                repetitions=plan.repetitions,
                orders=tuple(orders_of(form, both=plan.both_orders)),
                pilot=plan.pilot,
                **options,
            ),
        )
        return _key(run)


def schedule(plan: Plan, *, cron: str, tokens: float | None) -> None:
    """Store the plan to be launched again and again.

    Raises:
        ValueError: When it cannot, with the reason.
    """
    following = next_time(cron, utc_now())
    with writing(cached.engine()) as session:
        judge = _stored_judge(session, plan)
        options, _ = _options(session, plan, judge, tokens)
        plan_writes.add_schedule(
            session=session,
            corpus_id=plan.corpus_id,
            judge_id=_key(judge),
            repetitions=plan.repetitions,
            cron=cron,
            next_at=following,
            options=options | {"slices": list(plan.slices), "both_orders": plan.both_orders},
        )


def switch_schedule(schedule_id: int, cron: str, *, active: bool) -> None:
    """Turn a schedule on or off; what it missed while off is not made up for."""
    with writing(cached.engine()) as session:
        plan_writes.switch_schedule(
            session=session, schedule_id=schedule_id, active=active, next_at=next_time(cron, utc_now())
        )


def _stored_judge(session: Session, plan: Plan) -> Judge:
    if plan.judge_id is not None:
        return session.get_one(Judge, plan.judge_id)
    if plan.draft is None:
        raise ValueError("choose a judge")
    return add_judge(session=session, spec=plan.draft.spec(session=session))


@st.cache_data(max_entries=FEW, show_spinner=False)
def redaction(at: Snapshot) -> pd.DataFrame:  # noqa: ARG001 - the key
    """What is taken out of texts where a run asks for it: name, expression."""
    with reading(cached.engine()) as session:
        found = plan_queries.get_redaction(session=session) or as_expressions(PATTERNS)
    return pd.DataFrame(found.items(), columns=["name", "expression"])


def save_redaction(table: pd.DataFrame) -> None:
    """Keep an edited `redaction` table; an empty one brings back the shipped list.

    Raises:
        ValueError: Names the pattern that cannot be read, or that is there twice.
    """
    rows = [(str(row["name"]).strip(), str(row.expression)) for _, row in table.fillna("").iterrows()]
    rows = [row for row in rows if any(row)]
    expressions = dict(rows)
    if len(expressions) < len(rows):
        raise ValueError("two patterns have the same name")
    as_patterns(expressions)
    with writing(cached.engine()) as session:
        plan_writes.save_redaction(session=session, expressions=expressions)


def move(run_id: int, state: RunStatus) -> None:
    """Pause, cancel or resume a run."""
    with writing(cached.engine()) as session:
        plan_writes.set_state(session=session, run_id=run_id, state=state)


def set_limit(run_id: int, limit: float | None) -> None:
    """Another spending limit."""
    with writing(cached.engine()) as session:
        plan_writes.set_limit(session=session, run_id=run_id, spending_limit=limit)


def progress(run_id: int) -> Progress | None:
    """`plan_queries.get_progress`, read anew every time."""
    with reading(cached.engine()) as session:
        return plan_queries.get_progress(session=session, run_id=run_id)


def has_worker() -> bool:
    """Whether a worker was seen lately."""
    with reading(cached.engine()) as session:
        return bool(plan_queries.list_workers(session=session, since=utc_now() - FRESH))


def ensure_worker() -> None:
    """Start a worker of this computer's own where the store is a SQLite file and none is at work.

    It is a process of its own, so that it goes on when the page or the dashboard is closed, and ends when there was
    nothing to do for ten minutes. A second one would see that the first has the store's lock, and end.
    """
    if not database_url().startswith("sqlite") or has_worker():
        return
    started = st.session_state.get("launch_worker")
    if started is not None and started.poll() is None:
        return
    use_secrets()
    log = Path(f"{cached.engine().url.database}.worker.log")
    with log.open("ab") as output:
        st.session_state["launch_worker"] = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-m", "core.cli", "worker", "--idle-seconds", str(IDLE_SECONDS)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def _words(error: Exception) -> str:
    words = str(error)
    return f"{words[:1].upper()}{words[1:].rstrip('.')}."


def _key(row: Any) -> int:
    return int(row.id)
