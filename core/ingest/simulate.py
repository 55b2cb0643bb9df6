"""The demo history in the store: draws of the latent model with words around them, all marked simulated."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from sqlalchemy import Engine
from sqlmodel import Session, col, select

from core.ingest import demo_texts as texts
from core.ingest import latent
from core.ingest.published import DATA, ensure_published
from core.ingest.rubric_file import load_rubric
from core.store import writes
from core.store.queries import CriterionView, list_criteria
from core.store.specs import CallRow, ItemSpec, JudgeSpec, LabelRow, RubricSpec, ScoreRow, content_hash
from core.store.tables import Corpus, Judge, Order, Rubric, Run, Slice, Unscored

SEED = 20260301
CORPUS = "support-answers"
PAIR_CORPUS = "support-pairs"
LABEL_SET = "support-answer labels"
PAIR_LABEL_SET = "support-pair labels"
RUBRICS = DATA / "rubrics"

_AUTHOR = "demo history"
_SYSTEMS = ("assistant-a", "assistant-b")
_FAMILY = "sim-judge"
_NOTE = "Simulated: made by a seeded generator, no customer wrote it."
_POLICY = (
    "Read the request, the reference and the answer; you are not told which assistant wrote it. Give each criterion "
    "the level whose description fits. When two fit, take the lower one. Label alone; do not talk about single items."
)
_PAIR_POLICY = (
    "Answer A stands in slot 1. Give 1 when the customer can act on A sooner and with fewer mistakes, -1 when on B, "
    "and 0 when you would not mind which one is sent. Length is no merit."
)
_SECONDS_A_CALL = 1.5


@dataclass(frozen=True, slots=True)
class _Stage:
    """A judge with what its runs need.

    Attributes:
        criteria: The rubric's criteria, in its order.
        items: Item ids, in the order of the draws.
        answers: What was judged, in the same order.
    """

    session: Session
    judge: Judge
    corpus: Corpus
    criteria: tuple[CriterionView, ...]
    items: tuple[int, ...]
    answers: tuple[str, ...]
    rng: np.random.Generator


def ensure_demo(engine: Engine, *, seed: int = SEED) -> bool:
    """Load the demo history and the published tables that the store has not yet; says whether there were any."""
    with Session(engine) as session:
        known = _has_demo(session)
    simulated = not known and simulate(engine, seed=seed) is not None
    return bool(ensure_published(engine)) or simulated


def simulate(engine: Engine, *, seed: int = SEED) -> latent.History | None:
    """Draw the demo history and store it in one transaction.

    Returns:
        The history with the truth behind it; None when the store has a demo history already.
    """
    history = latent.draw_history(seed)
    with writes.writing(engine) as session:
        # Opening the book locks the items, so that of two processes that start together one sees the other's history.
        book = writes.ItemBook(session=session, collection=CORPUS)
        if _has_demo(session):
            return None
        rng = np.random.default_rng([seed, 1])
        _store_answers(session, book, history, rng)
        _store_pairs(session, history, rng)
    return history


def _has_demo(session: Session) -> bool:
    query = select(Corpus).where(col(Corpus.name) == CORPUS, col(Corpus.simulated).is_(True))
    return session.scalars(query).first() is not None


def _store_answers(session: Session, book: writes.ItemBook, history: latent.History, rng: np.random.Generator) -> None:
    specs = answer_items(history.items)
    items = tuple(book.find(spec) for spec in specs)
    book.flush()
    corpus = writes.add_corpus(session=session, name=CORPUS, item_ids=items, simulated=True, note=_NOTE)
    spec = load_rubric(RUBRICS / "support-answer.json")
    rubric, criteria = _add_rubric(session, spec)
    answers = tuple(item.candidate or "" for item in specs)
    for truth, draws in history.judges:
        judge = _add_judge(session, truth, rubric)
        stage = _Stage(session, judge, corpus, criteria, items, answers, rng)
        for number, start in enumerate(truth.starts):
            calls = slice(number * truth.repetitions, (number + 1) * truth.repetitions)
            _record(stage, start, _answer_calls(stage, draws.part(calls), start))
    _store_labels(session, rubric, criteria, history, items)


def answer_items(truth: latent.ItemTruth) -> list[ItemSpec]:
    """The sixty items, in the order of the draws; the two of a contrast answer the same request."""
    specs = []
    numbers = dict.fromkeys(Slice, 0)
    for place, (name, levels) in enumerate(zip(truth.slices, truth.levels, strict=True)):
        numbers[name] += 1
        shared = (numbers[name] - 1) // 2 if name == Slice.CONTRAST else place
        topic = texts.TOPICS[shared % len(texts.TOPICS)]
        answer = texts.write_answer(
            topic,
            elsewhere=texts.TOPICS[(shared + 4) % len(texts.TOPICS)],
            helpfulness=levels[0],
            groundedness=levels[1],
            variant=place,
        )
        if name == Slice.NUISANCE:
            answer = texts.disturb(answer, place)
        elif name == Slice.ADVERSARIAL:
            answer = f"{answer} {texts.FLATTERY}"
        specs.append(
            ItemSpec(
                key=f"{name}-{numbers[name]:02}",
                content_sha256=content_hash(answer),
                slice=name,
                system=_SYSTEMS[place % 2],
                request=texts.write_request(topic, shared // len(texts.TOPICS) + shared),
                reference=topic.reference,
                candidate=answer,
            )
        )
    return specs


def pair_items(differences: latent.Floats) -> list[ItemSpec]:
    """The pairs, in the order of the draws: the better candidate gives more of the steps."""
    specs = []
    for place, difference in enumerate(differences):
        topic = texts.TOPICS[place % len(texts.TOPICS)]
        elsewhere = texts.TOPICS[(place + 7) % len(texts.TOPICS)]
        first, second = (
            texts.write_answer(topic, elsewhere=elsewhere, helpfulness=level, groundedness=3.0, variant=place + side)
            for side, level in enumerate((3.6 + difference / 2, 3.6 - difference / 2))
        )
        near = abs(difference) < latent.PAIR_JUDGE.slot_bias
        specs.append(
            ItemSpec(
                key=f"pair-{place + 1:02}",
                content_sha256=content_hash(first, second),
                slice=Slice.BOUNDARY if near else Slice.PRODUCTION,
                system=_SYSTEMS[0],
                system_b=_SYSTEMS[1],
                request=texts.write_request(topic, place + place // len(texts.TOPICS)),
                reference=topic.reference,
                candidate=first,
                candidate_b=second,
                pair=True,
            )
        )
    return specs


def _add_rubric(session: Session, spec: RubricSpec) -> tuple[Rubric, tuple[CriterionView, ...]]:
    rubric = writes.add_rubric(session=session, spec=spec, author=_AUTHOR, reason=_NOTE)
    return rubric, list_criteria(session=session, rubric_id=_key(rubric))


def _add_judge(session: Session, truth: latent.JudgeTruth | latent.PairJudgeTruth, rubric: Rubric) -> Judge:
    spec = JudgeSpec(
        name=truth.name,
        rubric_id=_key(rubric),
        rubric_sha256=rubric.sha256,
        model=truth.model,
        family=_FAMILY,
        prompt_version=truth.prompt_version,
        prompt=truth.prompt,
        parameters={"max_tokens": 1024},
        parser_version="simulated",
        pairwise=isinstance(truth, latent.PairJudgeTruth),
        simulated=True,
    )
    return writes.add_judge(session=session, spec=spec)


def _record(stage: _Stage, start: datetime, calls: Iterator[CallRow]) -> None:
    run = writes.add_run(
        session=stage.session,
        judge_id=_key(stage.judge),
        corpus_id=_key(stage.corpus),
        name=_run_name(stage.judge, start),
        simulated=True,
    )
    run.created_at = start
    stage.session.flush()
    recorder = writes.RunRecorder(session=stage.session, run=run)
    recorder.record(calls)
    recorder.finish()


def _run_name(judge: Judge, start: datetime) -> str:
    return f"{judge.name} {start:%Y-%m-%d}"


def _answer_calls(stage: _Stage, draws: latent.Draws, start: datetime) -> Iterator[CallRow]:
    """The calls of one run, round-robin over the items."""
    items, repetitions, _ = draws.levels.shape
    for number in range(items * repetitions):
        repetition, item = divmod(number, items)
        # A copy carries the response id of the call before it on the same item.
        source = number - items if draws.copied[item, repetition] else number
        reply, scores = _answer(stage, draws, item, repetition)
        call = CallRow(
            item_id=stage.items[item],
            repetition=repetition,
            response_id=_response_id(stage.judge, start, source),
            created_at=start + timedelta(seconds=_SECONDS_A_CALL * number),
            scores=scores,
        )
        yield _with_reply(stage, call, reply)


def _answer(stage: _Stage, draws: latent.Draws, item: int, repetition: int) -> tuple[texts.Reply, tuple[ScoreRow, ...]]:
    """The judge's reply on one item and the scores read out of it."""
    keys = [view.key for view in stage.criteria]
    levels, reasons = draws.levels[item, repetition], draws.reasons[item, repetition]
    values = {view.key: view.levels[level] for view, level in zip(stage.criteria, levels, strict=True)}
    rationales = {key: texts.RATIONALES[key][level] for key, level in zip(keys, levels, strict=True)}
    reply = texts.Reply(texts.write_reply(values, rationales), "end_turn")
    failed = np.flatnonzero(reasons)
    if len(failed):
        reply = texts.write_failed_reply(
            Unscored(reasons[failed[0]]), criterion=keys[failed[0]], scores=values, rationales=rationales
        )
    scores = tuple(
        ScoreRow(view.id, None, str(reason), raw_value=reply.raw_value)
        if reason
        else ScoreRow(
            view.id,
            values[view.key],
            rationale=rationales[view.key],
            cited_evidence=texts.quote(stage.answers[item], int(level)),
            boundary_reason=texts.BOUNDARIES[view.key][level],
            confidence=round(float(confidence), 2),
        )
        for view, level, reason, confidence in zip(
            stage.criteria, levels, reasons, draws.confidence[item, repetition], strict=True
        )
    )
    return reply, scores


def _with_reply(stage: _Stage, call: CallRow, reply: texts.Reply) -> CallRow:
    """The call with what came back; a request that failed has no reply to count tokens of."""
    latency = int(stage.rng.integers(600, 2_400))
    if reply.text is None:
        return call._replace(response_id=None, latency_ms=latency)
    return call._replace(
        served_model=stage.judge.model,
        stop_reason=reply.stop_reason,
        raw_reply=reply.text,
        input_tokens=int(stage.rng.integers(500, 700)),
        output_tokens=len(reply.text.split()) * 4 // 3,
        latency_ms=latency,
    )


def _response_id(judge: Judge, start: datetime, number: int) -> str:
    return f"sim-{judge.prompt_version}-{start:%Y%m%d}-{number:04}"


def _store_labels(
    session: Session,
    rubric: Rubric,
    criteria: tuple[CriterionView, ...],
    history: latent.History,
    items: tuple[int, ...],
) -> None:
    label_set = writes.add_label_set(
        session=session, name=LABEL_SET, rubric_id=_key(rubric), policy=_POLICY, simulated=True
    )
    rows = [
        LabelRow(items[item], view.id, view.levels[level], rater.name, reason=texts.BOUNDARIES[view.key][level])
        for rater, labels in zip(latent.RATERS, history.labels, strict=True)
        for item, levels in zip(history.labelled, labels, strict=True)
        for view, level in zip(criteria, levels, strict=True)
    ]
    writes.record_labels(session=session, label_set=label_set, rows=rows)


def _store_pairs(session: Session, history: latent.History, rng: np.random.Generator) -> None:
    book = writes.ItemBook(session=session, collection=PAIR_CORPUS)
    items = tuple(book.find(spec) for spec in pair_items(history.differences))
    book.flush()
    corpus = writes.add_corpus(session=session, name=PAIR_CORPUS, item_ids=items, simulated=True, note=_NOTE)
    rubric, criteria = _add_rubric(session, load_rubric(RUBRICS / "pair-preference.json"))
    truth = latent.PAIR_JUDGE
    stage = _Stage(session, _add_judge(session, truth, rubric), corpus, criteria, items, (), rng)
    _record(stage, truth.start, _pair_calls(stage, history.pairs, truth.start))
    label_set = writes.add_label_set(
        session=session, name=PAIR_LABEL_SET, rubric_id=_key(rubric), policy=_PAIR_POLICY, simulated=True
    )
    (preference,) = criteria
    rows = [
        LabelRow(item, preference.id, preference.levels[winner], latent.RATERS[0].name)
        for item, winner in zip(items, history.winners, strict=True)
    ]
    writes.record_labels(session=session, label_set=label_set, rows=rows)


def _pair_calls(stage: _Stage, draws: latent.PairDraws, start: datetime) -> Iterator[CallRow]:
    """The calls of the pair judge, round-robin over pairs and orders."""
    (preference,) = stage.criteria
    places = np.ndindex(draws.levels.shape[2], draws.levels.shape[1], draws.levels.shape[0])
    for number, (repetition, order, pair) in enumerate(places):
        level = int(draws.levels[pair, order, repetition])
        reason = str(draws.reasons[pair, order, repetition])
        score = ScoreRow(preference.id, preference.levels[level], rationale=texts.PAIR_RATIONALES[level])
        call = CallRow(
            item_id=stage.items[pair],
            repetition=repetition,
            slot_order=(Order.AB, Order.BA)[order],
            response_id=_response_id(stage.judge, start, number),
            created_at=start + timedelta(seconds=_SECONDS_A_CALL * number),
            scores=(ScoreRow(preference.id, None, reason) if reason else score,),
        )
        yield _with_reply(stage, call, texts.Reply(texts.write_pair_reply(level, reason), "end_turn"))


def _key(row: Corpus | Judge | Rubric | Run) -> int:
    """The id of a stored row."""
    if row.id is None:
        raise ValueError(f"{type(row).__name__} has not been stored, so it has no id")
    return row.id
