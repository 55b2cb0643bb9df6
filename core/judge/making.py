"""From a stored judge to one that can be asked."""

from collections.abc import Callable

from sqlalchemy import Engine

from core.judge.asking import BODY, FORM, LENGTH, SOURCE, Asking, asking_of
from core.judge.client import AnthropicJudge
from core.judge.local import LocalJudge
from core.judge.protocol import CallKey, FatalError, Judge, Reply
from core.judge.redact import as_patterns
from core.judge.replay import ReplayJudge, replies
from core.store import plan_queries, plan_writes
from core.store.engine import reading
from core.store.tables import Judge as StoredJudge
from core.store.tables import JudgeKind, RunStatus
from core.store.writes import writing

_OWN = (BODY, FORM, LENGTH, SOURCE)


def make_judge(stored: StoredJudge, *, engine: Engine) -> Judge:
    """The judge that a stored one describes.

    Raises:
        FatalError: When it cannot be asked here: no key, no weights, or a kind that is only imported.
    """
    make = _MAKERS.get(JudgeKind(stored.kind))
    if make is None:
        raise FatalError(f"judge {stored.name} was imported and cannot be asked", "Choose or make another judge.")
    try:
        return make(stored, engine)
    except ValueError as error:
        raise FatalError(str(error), "Make a new judge with other parameters.") from error


def _anthropic(stored: StoredJudge, _engine: Engine) -> Judge:
    own = {name: value for name, value in stored.parameters.items() if name not in _OWN}
    return AnthropicJudge(stored.model, parameters=own, extra_body=stored.parameters.get(BODY))


def _local(stored: StoredJudge, _engine: Engine) -> Judge:
    temperature = stored.parameters.get("temperature")
    return LocalJudge() if temperature is None else LocalJudge(temperature=float(temperature))


def _replay(stored: StoredJudge, engine: Engine) -> Judge:
    source = int(stored.parameters[SOURCE])

    def find(call: CallKey) -> Reply | None:
        with reading(engine) as session:
            row = plan_queries.get_reply(
                session=session,
                run_id=source,
                item_id=call.item_id,
                repetition=call.repetition,
                slot_order=call.slot_order,
            )
        return replies([row]).get(call) if row else None

    return ReplayJudge(find)


_MAKERS: dict[JudgeKind, Callable[[StoredJudge, Engine], Judge]] = {
    JudgeKind.ANTHROPIC: _anthropic,
    JudgeKind.LOCAL: _local,
    JudgeKind.REPLAY: _replay,
}


def prepare(engine: Engine, run_id: int) -> tuple[Judge, Asking, int]:
    """A run's judge, how it is asked, and how many calls may be in flight.

    Raises:
        FatalError: When the run cannot go on.
    """
    with reading(engine) as session:
        state = plan_queries.get_state(session=session, run_id=run_id)
        if state is None:
            raise FatalError(f"run {run_id} has no plan", "Launch it again.")
        stored = plan_queries.get_judge(session=session, run_id=run_id)
        asking = asking_of(session=session, judge=stored, redaction=as_patterns(state.redaction))
        concurrency = state.concurrency
    return make_judge(stored, engine=engine), asking, concurrency


def stop_run(engine: Engine, run_id: int, error: FatalError) -> None:
    """Mark a run as failed, with what happened and what to do."""
    with writing(engine) as session:
        plan_writes.set_state(
            session=session,
            run_id=run_id,
            state=RunStatus.FAILED,
            error=f"{error.words[:1].upper()}{error.words[1:]}",
            what_to_do=error.what_to_do,
        )
