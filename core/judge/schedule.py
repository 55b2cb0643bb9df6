"""Runs that start by themselves: a corpus scored again daily, weekly, or by a cron line."""

from datetime import UTC, datetime
from typing import Any

from croniter import CroniterError, croniter
from sqlalchemy import Engine
from sqlmodel import Session

from core.judge.asking import FORM, orders
from core.judge.protocol import Form
from core.store import plan_queries, plan_writes
from core.store.engine import reading
from core.store.plan_writes import PlanSpec
from core.store.tables import Judge, Schedule, utc_now
from core.store.writes import writing

DAILY, WEEKLY = "0 3 * * *", "0 3 * * 1"


def next_time(cron: str, after: datetime) -> datetime:
    """The first time of a cron line after `after`, in UTC.

    Raises:
        ValueError: When it is no cron line of five fields, or one whose time never comes.

    >>> next_time("0 3 * * *", datetime(2026, 1, 1, 12, tzinfo=UTC)).isoformat()
    '2026-01-02T03:00:00+00:00'
    """
    problem = f"{cron!r} is no cron line; it has five fields: minute, hour, day, month, weekday, as in {DAILY!r}"
    if len(cron.split()) != 5:
        raise ValueError(problem)
    try:
        found: datetime = croniter(cron, after.astimezone(UTC)).get_next(datetime)
    except (CroniterError, ValueError) as error:
        raise ValueError(problem) from error
    return found


def start_due(engine: Engine) -> list[int]:
    """Launch the runs whose time has come, once each although several workers look; returns their ids.

    Times that were missed while no worker ran are one run, not many.
    """
    now = utc_now()
    with reading(engine) as session:
        if not plan_queries.has_due(session=session, now=now):
            return []
    started = []
    with writing(engine) as session:
        for schedule in plan_queries.list_due(session=session, now=now):
            following = next_time(schedule.cron, now)
            try:
                run_id = _start(session, schedule)
            except ValueError as error:
                plan_writes.move_schedule(
                    session=session, schedule_id=_key(schedule), next_at=following, error=str(error)
                )
            else:
                plan_writes.move_schedule(session=session, schedule_id=_key(schedule), next_at=following, run_id=run_id)
                started.append(run_id)
    return started


def _start(session: Session, schedule: Schedule) -> int:
    judge = session.get_one(Judge, schedule.judge_id)
    options: dict[str, Any] = dict(schedule.options)
    form = Form(judge.parameters.get(FORM, Form.SINGLE))
    chosen = plan_queries.choose_items(
        session=session,
        corpus_id=schedule.corpus_id,
        slices=options.pop("slices", ()),
        pairs=form is Form.PAIRWISE,
    )
    run = plan_writes.add_plan(
        session=session,
        spec=PlanSpec(
            judge_id=schedule.judge_id,
            corpus_id=schedule.corpus_id,
            item_ids=chosen.ids,
            repetitions=schedule.repetitions,
            orders=tuple(orders(form, both=options.pop("both_orders", False))),
            name=f"schedule {schedule.id}",
            **options,
        ),
    )
    if run.id is None:
        raise ValueError("the run has no id")
    return run.id


def _key(schedule: Schedule) -> int:
    if schedule.id is None:
        raise ValueError("the schedule has no id")
    return schedule.id
