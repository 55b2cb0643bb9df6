"""What would it take to ask a judge again, and how far is it?"""

import pandas as pd
import streamlit as st

from core.judge.asking import MAX_TOKENS, JudgeDraft
from core.judge.client import KEY_NAME
from core.judge.local import INSTALL
from core.judge.local import MODEL as LOCAL_MODEL
from core.judge.local import WARNING as LOCAL_WARNING
from core.judge.local import missing as missing_local
from core.judge.protocol import FatalError, Form
from core.judge.schedule import DAILY, WEEKLY
from core.ui import cached, launch, rubrics, url
from core.ui.launch import Kind, Outlook, Plan, Status
from core.ui.links import link
from core.ui.page import OUTCOME_WORDS, open_page, plain
from core.ui.scope import corpus_key, judge_key, judge_words, say_empty

NEW = "new"
EVERY = 2.0
KIND_WORDS = {
    Kind.ANTHROPIC.value: "a model behind the Messages API",
    Kind.LOCAL.value: "the small model on this computer (a real model, and a bad judge)",
    Kind.REPLAY.value: "stored replies of an earlier run",
}
FORM_WORDS = {
    Form.SINGLE: "one answer, scores as JSON",
    Form.REFERENCE: "one answer beside its reference, scores as JSON",
    Form.VERDICT: "one answer, a pass or fail line",
    Form.PAIRWISE: "two answers, a first, second or tie line",
}
STATE_WORDS = {
    Status.RUNNING.value: ":blue-badge[running]",
    Status.PAUSED.value: ":orange-badge[paused]",
    Status.CANCELLED.value: ":gray-badge[cancelled]",
    Status.DONE.value: ":green-badge[done]",
    Status.FAILED.value: ":red-badge[stopped by an error]",
}


def choose_plan() -> Plan:
    """Every choice of a new run."""
    at = cached.snapshot()
    corpora = cached.corpora(at)
    if corpora.empty:
        say_empty("corpus")
    left, right = st.columns(2)
    keys = {corpus_key(row.name_, row.version): row for row in corpora.rename(columns={"name": "name_"}).itertuples()}
    holding = launch.judgeable_corpora(at)
    if not holding:
        st.info(
            "No corpus holds a text to judge; its scores came without their texts. Bring in a file of texts first.",
            icon=":material/info:",
        )
        link("datasets", "Bring in texts", icon=":material/database:")
        st.stop()
    usual = next(key for key, row in keys.items() if row.id == holding[0])
    names = {key: f"{row.name_} v{row.version}" for key, row in keys.items()}
    chosen = keys[url.choose(left, "Corpus", "corpus", names, default=usual)]
    slices = cached.slices(at, corpus_id=int(chosen.id))
    wanted = url.choose_many(left, "Slices", "slices", {name: f"{name} ({count:,})" for name, count in slices.items()})
    judges = launch.judges(at)
    by_key = {judge_key(row.fingerprint): row for _, row in judges.iterrows()}
    options = {key: judge_words(row) for key, row in by_key.items()} | {NEW: "A new judge"}
    picked = url.choose(right, "Judge", "asked", options, help="Imported judges cannot be asked again.")
    draft = choose_draft(int(chosen.id)) if picked == NEW else None
    judge = None if picked == NEW else by_key[picked]
    form = draft.form if draft else (Form(judge.parameters["form"]) if judge is not None else Form.SINGLE)
    columns = st.columns(4, vertical_alignment="bottom")
    repetitions = url.number(
        columns[0], "Repetitions", "repetitions", 1, 100, default=5, help="Independent calls on the same item."
    )
    concurrency = url.number(
        columns[1], "Calls in flight", "flight", 1, 200, default=4, help="At once, in each worker."
    )
    limit = url.number(
        columns[2],
        "Spending limit, $",
        "spend",
        0.01,
        default=None,
        placeholder="none",
        help="The run pauses before it.",
    )
    pilot = url.number(
        columns[3], "Pilot items", "pilot", 0, 1000, default=0, help="The run pauses after these; 0 for no pilot."
    )
    switches = st.columns(3)
    both = (
        url.switch(switches[1], "Both orders", "both", default=True, help="Each pair twice, the candidates swapped.")
        if form is Form.PAIRWISE
        else False
    )
    redact = url.switch(
        switches[0], "Redact", "redact", help="Takes e-mail addresses, phone numbers and keys out before texts leave."
    )
    kind = draft.kind if draft else Kind(judge.kind if judge is not None else "")
    batched = kind == Kind.ANTHROPIC and url.switch(
        switches[2], "Message Batches", "batched", help="Cheaper, and done within a day rather than now."
    )
    return Plan(
        corpus_id=int(chosen.id),
        slices=() if len(wanted) == len(slices) else tuple(wanted),
        judge_id=None if judge is None else int(judge.id),
        draft=draft,
        repetitions=repetitions,
        both_orders=both,
        concurrency=concurrency,
        limit=limit,
        pilot=pilot,
        batched=batched,
        redact=redact,
    )


def choose_draft(corpus_id: int) -> JudgeDraft:
    """A judge that does not exist yet, for a corpus."""
    at = cached.snapshot()
    stored = rubrics.stored(at)
    if stored.empty:
        say_empty("rubric")
    with st.container(border=True):
        left, right = st.columns(2)
        kind = Kind(url.choose(left, "Kind", "kind", KIND_WORDS))
        rubric = int(
            url.choose(right, "Rubric", "rubric", rubrics.words(at), default=launch.usual_rubric(at, corpus_id))
        )
        forms = {form.value: FORM_WORDS[form] for form in launch.forms_for(at, rubric)}
        form = Form(url.choose(right, "Prompt", "form", forms))
        source = None
        model = ""
        if kind == Kind.REPLAY:
            runs = launch.replayable(at)
            if runs.empty:
                say_empty("run with stored replies")
            shown = {str(row.id): f"run {row.id} · {row.judge} · {row.calls:,} replies" for row in runs.itertuples()}
            source = int(url.choose(left, "Replies of", "replayed", shown))
        elif kind == Kind.ANTHROPIC:
            model = url.ask(
                left, "Model", "model", placeholder="its full snapshot name", help="As the endpoint names it."
            )
        else:
            model = LOCAL_MODEL
            left.caption(LOCAL_WARNING)
        name = url.ask(left, "Name", "name", placeholder=model or kind.value)
        tokens = url.number(right, "Longest reply, tokens", "longest", 64, 32_000, default=MAX_TOKENS)
    return JudgeDraft(
        name=name or model or kind.value,
        kind=kind,
        rubric_id=rubric,
        model=model,
        form=form,
        max_tokens=tokens,
        replayed_run=source,
    )


def show_outlook(outlook: Outlook) -> None:
    """Calls, tokens and cost, and exactly what the judge reads."""
    if outlook.without_text:
        st.warning(f"{outlook.without_text:,} items of these slices have no text and are left out.")
    if outlook.problem:
        st.error(plain(outlook.problem), icon=":material/block:")
        return
    columns = st.columns(4)
    columns[0].metric("Calls", f"{outlook.calls:,}", help="Items x orders x repetitions.")
    columns[1].metric("Items", f"{outlook.items:,}")
    columns[2].metric(
        "Input tokens", "unknown" if outlook.tokens is None else f"{outlook.tokens * outlook.calls:,.0f}",
        help=outlook.tokens_words,
    )  # fmt: skip
    columns[3].metric(
        "Cost at most", "unknown" if outlook.most_cost is None else f"${outlook.most_cost:,.2f}",
        help="If every reply were as long as allowed; most are much shorter. " + outlook.price_words,
    )  # fmt: skip
    batch = (
        "" if outlook.most_batch_cost is None else f" Through Message Batches at most ${outlook.most_batch_cost:,.2f}."
    )
    st.caption(plain(f"{outlook.tokens_words} {outlook.price_words}{batch}"))
    with st.expander("What the judge reads of the first item"):
        if outlook.first is not None:
            st.code(outlook.first.system, language=None, wrap_lines=True)
            st.code(outlook.first.user, language=None, wrap_lines=True)


def show_redaction(findings: tuple[tuple[str, str], ...]) -> None:
    """What is taken out of the first item's texts, and the list that says what to take out."""
    count = "1 place" if len(findings) == 1 else f"{len(findings)} places"
    with st.expander(f"Redaction: {count} in the first item's texts", icon=":material/visibility_off:"):
        if findings:
            st.dataframe(pd.DataFrame(findings, columns=["kind", "taken out"]), hide_index=True)
        st.caption(
            "What is taken out, for every run that redacts: a name in small letters, and a regular expression as "
            "Python reads it. The first that matches at a place wins. A run keeps the list that it was launched with. "
            "With no line left, the list that Evenhand comes with is back."
        )
        kept = launch.redaction(cached.snapshot())
        edited = st.data_editor(kept, key="redaction", hide_index=True, num_rows="dynamic")
        if st.button("Save the list", icon=":material/save:", disabled=edited.equals(kept)):
            try:
                launch.save_redaction(edited)
            except ValueError as error:
                st.error(plain(f"Nothing was saved: {error}"))
            else:
                st.rerun()


def missing(plan: Plan) -> str:
    """What must be put right before a start, in words."""
    if plan.draft and plan.draft.kind == Kind.ANTHROPIC and not plan.draft.model:
        return "Name the model first."
    judges = launch.judges(cached.snapshot())
    kind = plan.draft.kind if plan.draft else judges.kind[judges.id == plan.judge_id].iloc[0]
    if kind == Kind.ANTHROPIC and not launch.use_secrets():
        return (
            f"There is no API key: set {KEY_NAME} in the environment or in .streamlit/secrets.toml and start the "
            "dashboard again, or choose another kind of judge."
        )
    if kind == Kind.LOCAL and (absent := missing_local()):
        return f"{absent[:1].upper()}{absent[1:]}. {INSTALL}"
    return ""


def show_new() -> None:
    """The form of a new run."""
    plan = choose_plan()
    if problem := missing(plan):
        st.warning(problem, icon=":material/info:")
        if plan.draft and not plan.draft.model and plan.draft.kind == Kind.ANTHROPIC:
            return
    outlook = launch.look_ahead(plan)
    show_outlook(outlook)
    rubrics.show_findings(rubrics.spec(cached.snapshot(), rubric_id=launch.rubric_of(plan)))
    if plan.redact:
        show_redaction(outlook.findings)
    blocked = bool(problem or outlook.problem)
    left, right = st.columns(2)
    if left.button("Start", type="primary", icon=":material/play_arrow:", disabled=blocked):
        try:
            run_id = launch.launch(plan, tokens=outlook.tokens)
        except (ValueError, FatalError) as error:
            st.error(plain(str(error)))
            return
        url.publish(view="runs", run=str(run_id))
        st.rerun()
    with right.popover("Repeat on a schedule", icon=":material/event_repeat:", disabled=blocked):
        often = st.radio("How often", ["Daily at 03:00 UTC", "Mondays at 03:00 UTC", "Cron line"])
        line = st.text_input("Minute, hour, day, month, weekday (UTC)", DAILY) if often == "Cron line" else ""
        if st.button("Schedule"):
            cron = line or (DAILY if often.startswith("Daily") else WEEKLY)
            try:
                launch.schedule(plan, cron=cron, tokens=outlook.tokens)
            except (ValueError, FatalError) as error:
                st.error(plain(str(error)))
            else:
                url.publish(view="schedules")
                st.rerun()


def show_runs() -> None:
    """One launched run, as it goes on."""
    plans = launch.plans(cached.snapshot())
    if plans.empty:
        st.info("Nothing was launched yet. Choose “New run” above.", icon=":material/info:")
        return
    labels = {
        str(row.run_id): f"run {row.run_id} · {row.judge} · {row.corpus} v{row.corpus_version}"
        for row in plans.itertuples()
    }
    run_id = int(url.choose(st.container(), "Run", "run", labels))
    going = plans.state[plans.run_id == run_id].iloc[0] == Status.RUNNING
    if going:
        launch.ensure_worker()
    st.fragment(show_progress, run_every=EVERY if going else None)(run_id, going)
    if not going:
        run = plans[plans.run_id == run_id].iloc[0]
        page = "position_bias" if run.pairwise else "dispersion"
        where = {"corpus": corpus_key(run.corpus, run.corpus_version), "judge": judge_key(run.fingerprint)}
        link(page, "What its scores say", icon=":material/scatter_plot:", **where, runs=str(run_id))


def show_progress(run_id: int, going: bool) -> None:
    """How far a run is, and what can be done about it."""
    progress = launch.progress(run_id)
    if progress is None:
        st.error("This run was not planned here.")
        return
    state = progress.state
    if going and state.state != Status.RUNNING:
        st.rerun()
    st.markdown(STATE_WORDS[state.state])
    st.progress(progress.recorded / state.planned, text=f"{progress.recorded:,} of {state.planned:,} calls recorded")
    columns = st.columns(4)
    columns[0].metric("Scored", f"{progress.outcomes.get('scored', 0):,}")
    columns[1].metric("Unscored", f"{sum(progress.outcomes.values()) - progress.outcomes.get('scored', 0):,}")
    spent = "unknown" if state.input_price is None else f"${state.spent:,.4f}"
    limit = "no limit" if state.spending_limit is None else f"limit ${state.spending_limit:,.2f}"
    columns[2].metric("Spent", spent, help=f"By the tokens of the replies; {limit}.")
    rate = "–" if progress.rate is None else f"{progress.rate:,.1f}/s"
    columns[3].metric("Rate", rate, help="Calls a second over the last half minute.")
    unscored = {reason: calls for reason, calls in progress.outcomes.items() if reason != "scored"}
    rest = ", ".join(f"{calls:,} {OUTCOME_WORDS.get(reason, reason)}" for reason, calls in unscored.items())
    words = [rest or "none unscored", f"{progress.attempts:,} attempts", limit]
    if progress.seconds_left:
        words.append(f"about {time_words(progress.seconds_left)} left")
    if progress.batches:
        words.append("Message Batches: " + ", ".join(f"{count} {name}" for name, count in progress.batches.items()))
    st.caption(plain(" · ".join(words)))
    if state.error:
        say = st.warning if state.state == Status.PAUSED else st.error
        say(plain(f"{state.error.rstrip('.')}. {state.what_to_do}"), icon=":material/report:")
    show_controls(run_id, state.state, state.spending_limit)
    if going and not launch.has_worker():
        st.info(
            "Waiting for a worker. For a SQLite store it starts by itself; for PostgreSQL run "
            "`python -m core.cli worker` on any machine that reaches it."
        )
    if progress.failures:
        with st.expander(f"Attempts that failed: {sum(failure.attempts for failure in progress.failures):,}"):
            failures = pd.DataFrame(progress.failures, columns=["HTTP status", "what happened", "attempts"])
            st.dataframe(failures, hide_index=True)
            st.caption(
                "Errors that may pass are tried again with growing waits, six times in all; after that the call is "
                "unscored: request failed."
            )


def show_controls(run_id: int, state: str, limit: float | None) -> None:
    """Pause, resume and cancel."""
    columns = st.columns([1, 1, 2, 2], vertical_alignment="bottom")
    if state == Status.RUNNING and columns[0].button("Pause", icon=":material/pause:"):
        launch.move(run_id, Status.PAUSED)
        st.rerun()
    if state in (Status.PAUSED, Status.FAILED):
        raised = limit
        if limit is not None:
            raised = columns[2].number_input("Spending limit, $", min_value=0.01, value=limit)
        if columns[0].button("Resume", icon=":material/play_arrow:", type="primary"):
            if raised != limit:
                launch.set_limit(run_id, raised)
            launch.move(run_id, Status.RUNNING)
            st.rerun()
    if state in (Status.RUNNING, Status.PAUSED, Status.FAILED) and columns[1].button(
        "Cancel", icon=":material/stop:", help="What is in flight is recorded, the rest counts as cancelled."
    ):
        launch.move(run_id, Status.CANCELLED)
        launch.ensure_worker()
        st.rerun()


def show_schedules() -> None:
    """Runs that start by themselves."""
    table = launch.schedules(cached.snapshot())
    if table.empty:
        st.info("Nothing is scheduled. Choose a new run and “Repeat on a schedule”.", icon=":material/info:")
        return
    st.dataframe(
        table.drop(columns="corpus_version").assign(corpus=table.corpus + " v" + table.corpus_version.astype(str)),
        hide_index=True,
        column_config={"next_at": st.column_config.DatetimeColumn("next at", timezone="UTC")},
    )
    launch.ensure_worker()
    shown = {str(row.id): f"schedule {row.id}: {row.cron} · {row.judge}" for row in table.itertuples()}
    chosen = int(url.choose(st.container(), "Schedule", "schedule", shown))
    row = table[table.id == chosen].iloc[0]
    if st.button("Turn off" if row.active else "Turn on"):
        launch.switch_schedule(chosen, str(row.cron), active=not row.active)
        st.rerun()
    st.caption("The worker starts them, so one must run: for a SQLite store it does while a schedule is on.")


def time_words(seconds: float) -> str:
    """A span as a reader would say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


VIEWS = {"new": ("New run", show_new), "runs": ("Runs", show_runs), "schedules": ("Schedules", show_schedules)}

open_page("Launch", "What would it take to ask a judge again, and how far is it?")
view = url.choose(
    st.container(), "View", "view", {key: words for key, (words, _) in VIEWS.items()}, widget="segmented_control"
)
VIEWS[view][1]()
