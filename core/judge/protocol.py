"""What every judge takes and gives, and the two ways in which asking one can fail.

JudgeError
├── TransientError   the same request may succeed later: try again
└── FatalError       no request of this run can succeed: stop and say what to do
"""

import hashlib
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from core.store.tables import JudgeKind, Order


class Form(StrEnum):
    """What is put before the judge and how it has to answer."""

    REFERENCE = "reference"
    """One candidate beside its reference; one JSON object."""
    SINGLE = "single"
    """One candidate alone; one JSON object."""
    VERDICT = "verdict"
    """One candidate, one yes/no criterion; a final VERDICT line, pass or fail."""
    PAIRWISE = "pairwise"
    """Two candidates in slots; a final VERDICT line, first, second or tie."""


class CallKey(NamedTuple):
    """Which planned call a message belongs to."""

    item_id: int
    repetition: int
    slot_order: str = Order.SINGLE


@dataclass(frozen=True, slots=True)
class Message:
    """Exactly what a judge reads, and how it may answer.

    Attributes:
        system: Rubric and rules; the same for all items of a judge.
        user: The untrusted texts between their boundaries.
        schema: JSON schema of the reply where the form asks for an object.
        verdicts: The words a final VERDICT line may hold where the form asks for one.
        call: Which planned call this is; only `replay` needs it.
    """

    system: str
    user: str
    schema: dict[str, Any] | None = None
    verdicts: tuple[str, ...] = ()
    max_tokens: int = 1024
    call: CallKey | None = None

    @property
    def prompt_sha256(self) -> str:
        """Hash over the two texts."""
        return hashlib.sha256(f"{self.system}\x00{self.user}".encode(errors="surrogatepass")).hexdigest()

    def for_call(self, call: CallKey) -> "Message":
        """The same words for one planned call."""
        return replace(self, call=call)


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back, unread.

    Attributes:
        stop_reason: In the words of the Messages API: end_turn, max_tokens, refusal, ...
        latency_ms: From sending the request to the whole reply; None where nothing was waited for.
        structured: Whether the endpoint took the schema; None where none was sent.
    """

    text: str
    stop_reason: str | None = None
    response_id: str | None = None
    request_id: str | None = None
    served_model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    latency_ms: int | None = None
    structured: bool | None = None


class Judge(Protocol):
    """Something that answers messages. One instance serves many calls at once."""

    @property
    def kind(self) -> JudgeKind:
        """Which of the judges this is."""

    async def ask(self, message: Message) -> Reply:
        """Ask once.

        Raises:
            TransientError: The same request may succeed later.
            FatalError: No request of this run can succeed.
        """

    async def count_tokens(self, message: Message) -> int | None:
        """Input tokens of a message, or None where the judge cannot tell.

        Raises:
            TransientError: As `ask`.
            FatalError: As `ask`.
        """

    async def aclose(self) -> None:
        """Give back connections and memory."""


class JudgeError(Exception):
    """Asking failed. The words never hold a key.

    Attributes:
        words: What happened.
        status: HTTP status, or None when none came back.
        request_id: The endpoint's own name for the request, for its support desk.
    """

    def __init__(self, words: str, *, status: int | None = None, request_id: str | None = None) -> None:
        super().__init__(words)
        self.words = words
        self.status = status
        self.request_id = request_id


class TransientError(JudgeError):
    """The same request may succeed later: 408, 409, 429, 5xx, 529, a time-out, a dropped connection.

    Attributes:
        retry_after: Seconds the endpoint asks to wait, or None when it did not say.
    """

    def __init__(
        self,
        words: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(words, status=status, request_id=request_id)
        self.retry_after = retry_after


class FatalError(JudgeError):
    """No request of this run can succeed: a wrong key, no permission, no such model, a request the endpoint refuses.

    Attributes:
        what_to_do: The next step for the person at the screen.
        only_this_request: Whether other items may still be asked: this one is too long. Then the call is unscored
            as a request error, and the run goes on.
    """

    def __init__(
        self,
        words: str,
        what_to_do: str,
        *,
        status: int | None = None,
        request_id: str | None = None,
        only_this_request: bool = False,
    ) -> None:
        super().__init__(words, status=status, request_id=request_id)
        self.what_to_do = what_to_do
        self.only_this_request = only_this_request


def storable(text: str) -> str:
    """The text with what databases refuse replaced by U+FFFD: NUL and lone surrogates."""
    if text.isascii() and "\x00" not in text:
        return text
    return "".join("\ufffd" if "\ud800" <= sign <= "\udfff" or sign == "\x00" else sign for sign in text)
