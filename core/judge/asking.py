"""A stored judge made ready to be asked: its wording, its messages, and its replies as rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session

from core.judge.parse import PARSER_VERSION, parse
from core.judge.prompt import Prompt, RubricView, Texts, build, render
from core.judge.protocol import CallKey, FatalError, Form, Message, Reply, storable
from core.judge.redact import Pattern, redact
from core.store.plan_queries import ItemTexts
from core.store.plan_writes import Pending
from core.store.queries import CriterionView, list_criteria
from core.store.specs import CallRow, JudgeSpec
from core.store.tables import Judge, JudgeKind, Order, Rubric, utc_now

MAX_TOKENS = 1024
FORM, LENGTH, BODY, SOURCE = "form", "max_tokens", "extra_body", "replayed_run"


@dataclass(frozen=True, slots=True)
class JudgeDraft:
    """A judge that does not exist yet.

    Attributes:
        model: Requested snapshot; the name of the weights for a local judge, nothing for a replay.
        form: How it is asked.
        parameters: Arguments of the request besides model, texts and schema.
        extra_body: Request fields that the SDK has no argument for.
        replayed_run: The run whose stored replies a replay gives.
    """

    name: str
    kind: JudgeKind
    rubric_id: int
    model: str = ""
    form: Form = Form.SINGLE
    max_tokens: int = MAX_TOKENS
    parameters: dict[str, Any] | None = None
    extra_body: dict[str, Any] | None = None
    replayed_run: int | None = None

    def spec(self, *, session: Session) -> JudgeSpec:
        """Every part of the judge.

        Raises:
            ValueError: When the rubric does not fit the form.
        """
        rubric = session.get_one(Rubric, self.rubric_id)
        prompt = build(rubric_view(session=session, rubric=rubric), self.form)
        own: dict[str, Any] = {FORM: self.form.value, LENGTH: self.max_tokens}
        own |= {BODY: self.extra_body} if self.extra_body else {}
        own |= {SOURCE: self.replayed_run} if self.replayed_run is not None else {}
        return JudgeSpec(
            name=self.name,
            rubric_id=self.rubric_id,
            rubric_sha256=rubric.sha256,
            kind=self.kind,
            model=self.model,
            prompt_version=prompt.version,
            prompt=prompt.text,
            output_schema=prompt.schema or {},
            parameters=(self.parameters or {}) | own,
            parser_version=PARSER_VERSION,
            pairwise=self.form is Form.PAIRWISE,
        )


def rubric_view(*, session: Session, rubric: Rubric) -> RubricView:
    """A stored rubric version as a judge sees it."""
    criteria = list_criteria(session=session, rubric_id=_key(rubric))
    return RubricView(rubric.name, criteria, rubric.instructions)


@dataclass(frozen=True, slots=True)
class Asking:
    """What a judge's calls have in common.

    Attributes:
        redaction: What is taken out of every text before it leaves; nothing where empty.
    """

    prompt: Prompt
    criteria: tuple[CriterionView, ...]
    max_tokens: int
    redaction: tuple[Pattern, ...] = ()

    @property
    def criterion_ids(self) -> tuple[int, ...]:
        """Of the rubric, in its order."""
        return tuple(criterion.id for criterion in self.criteria)

    def message(self, texts: ItemTexts | None, call: CallKey) -> Message:
        """What the judge reads for one planned call.

        Raises:
            ValueError: When the item lacks what the form needs.
        """
        if texts is None or texts.candidate is None:
            raise ValueError("the item has no text: it was deleted, or never imported")
        request, reference, first, second = redact(
            (texts.request, texts.reference, texts.candidate, texts.candidate_b), self.redaction
        )
        shown = Texts(first=first or "", second=second, request=request, reference=reference)
        if call.slot_order == Order.BA:
            shown = shown.swapped()
        return render(self.prompt, shown, max_tokens=self.max_tokens).for_call(call)

    def row(self, pending: Pending, attempt: int, reply: Reply) -> CallRow:
        """A reply as the store keeps it, with its scores or the reason why there are none."""
        parsed = parse(reply.text, self.criteria, self.prompt.form, reply.stop_reason)
        return CallRow(
            item_id=pending.item_id,
            repetition=pending.repetition,
            slot_order=pending.slot_order,
            part=pending.part,
            attempt=attempt,
            response_id=reply.response_id,
            request_id=reply.request_id,
            served_model=reply.served_model,
            stop_reason=reply.stop_reason,
            raw_reply=storable(reply.text),
            input_tokens=reply.input_tokens,
            output_tokens=reply.output_tokens,
            latency_ms=reply.latency_ms,
            repaired=parsed.repaired,
            created_at=utc_now(),
            scores=parsed.rows(self.criteria),
        )


def asking_of(*, session: Session, judge: Judge, redaction: tuple[Pattern, ...] = ()) -> Asking:
    """A stored judge made ready.

    Raises:
        FatalError: When this program would ask or read otherwise than the judge's fingerprint says.
    """
    rubric = session.get_one(Rubric, judge.rubric_id)
    try:
        form = Form(judge.parameters.get(FORM, ""))
        prompt = build(rubric_view(session=session, rubric=rubric), form)
    except ValueError as error:
        raise FatalError(f"judge {judge.name} cannot be asked: {error}", "Choose or make another judge.") from error
    if (prompt.version, PARSER_VERSION) != (judge.prompt_version, judge.parser_version):
        raise FatalError(
            f"judge {judge.name} was made with another wording or parser than this version of Evenhand has",
            "Make a new judge with the same model and rubric; its scores are another judge's.",
        )
    return Asking(
        prompt,
        list_criteria(session=session, rubric_id=judge.rubric_id),
        int(judge.parameters.get(LENGTH, MAX_TOKENS)),
        redaction,
    )


def orders(form: Form, *, both: bool) -> Sequence[str]:
    """The orders in which items are asked."""
    if form is not Form.PAIRWISE:
        return (Order.SINGLE,)
    return (Order.AB, Order.BA) if both else (Order.AB,)


def _key(rubric: Rubric) -> int:
    if rubric.id is None:
        raise ValueError("the rubric has not been flushed, so it has no id")
    return rubric.id
