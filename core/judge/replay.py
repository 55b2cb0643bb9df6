"""The judge that answers from stored calls: for tests, and for reading old replies with another parser."""

from collections.abc import Callable, Iterable, Mapping

from core.judge.protocol import CallKey, FatalError, Message, Reply
from core.store.specs import CallRow
from core.store.tables import JudgeKind

Lookup = Callable[[CallKey], Reply | None]


class ReplayJudge:
    """Answers each planned call with the stored reply of the same item, repetition and order.

    Args:
        find: The stored reply of a call, such as `replies(rows).get`.
    """

    def __init__(self, find: Lookup) -> None:
        self._find = find

    @property
    def kind(self) -> JudgeKind:
        """Which of the judges this is."""
        return JudgeKind.REPLAY

    async def ask(self, message: Message) -> Reply:
        """The stored reply.

        Raises:
            FatalError: When there is none. It concerns this call alone.
        """
        if message.call is None:
            raise FatalError("the message names no call", "Replay needs planned calls; use another judge.")
        reply = self._find(message.call)
        if reply is None:
            item_id, repetition, order = message.call
            words = f"no stored reply for item {item_id}, repetition {repetition}" + (
                f", order {order}" if order else ""
            )
            advice = "Replay at most what the stored run asked, or use another judge."
            raise FatalError(words, advice, only_this_request=True)
        return reply

    async def count_tokens(self, message: Message) -> int | None:
        """What the stored call read."""
        reply = self._find(message.call) if message.call else None
        return reply.input_tokens if reply else None

    async def aclose(self) -> None:
        """Nothing is held."""


def replies(rows: Iterable[CallRow]) -> Mapping[CallKey, Reply]:
    """The raw replies of stored calls; of several attempts the last with a reply counts."""
    found: dict[CallKey, tuple[int, Reply]] = {}
    for row in rows:
        key = CallKey(row.item_id, row.repetition, row.slot_order)
        if row.raw_reply is not None and row.attempt >= found.get(key, (0,))[0]:
            reply = Reply(
                row.raw_reply,
                stop_reason=row.stop_reason,
                response_id=row.response_id,
                request_id=row.request_id,
                served_model=row.served_model,
                input_tokens=row.input_tokens,
                output_tokens=row.output_tokens,
            )
            found[key] = (row.attempt, reply)
    return {key: reply for key, (_, reply) in found.items()}
