"""The judge behind the Messages API, the only importer of `anthropic`.

ANTHROPIC_BASE_URL reaches any compatible endpoint. The SDK's own retries are off: the worker retries, so that every
attempt is a row.
"""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Coroutine, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

import anthropic
import httpx2
from anthropic import AsyncAnthropic
from anthropic.types.message import Message as ApiMessage
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from anthropic.types.messages import MessageBatch, MessageBatchIndividualResponse

from core.judge.protocol import FatalError, JudgeError, Message, Reply, TransientError, storable
from core.store.tables import JudgeKind

KEY_NAME = "ANTHROPIC_API_KEY"
BASE_URL_NAME = "ANTHROPIC_BASE_URL"
TIMEOUT = 120.0
"""Seconds for a whole reply; the SDK's own default is ten minutes."""

MOST_CONNECTIONS = 200

PARAMETERS = frozenset(MessageCreateParamsNonStreaming.__annotations__) - {
    "max_tokens",
    "messages",
    "model",
    "stream",
    "system",
}
"""Request parameters the SDK offers for a judge to set; anything else goes through `extra_body`."""

T = TypeVar("T")

_MOST_WORDS = 300
_TRANSIENT = frozenset((408, 409, 429))
_PASSING_TYPES = frozenset(("rate_limit_error", "overloaded_error", "api_error", "timeout_error"))
_SCHEMA_WORDS = ("output_config", "output_format", "json_schema", "structured output", "schema")
_TOO_LONG = ("too long", "context window", "context length", "too many tokens", "request_too_large")
_MONEY = ("credit", "billing", "payment", "quota")
_WHAT_TO_DO = {
    401: f"Check {KEY_NAME}: it is mistyped, revoked or for another endpoint. Then resume the run.",
    402: "Check the account's billing and credit, then resume the run.",
    403: "The key may not use this model or endpoint: ask for the permission or choose another model.",
    404: f"Check the model's name and {BASE_URL_NAME}: nothing is served under that name.",
    413: "This item's text is larger than the endpoint takes; leave it out or shorten it.",
}
_REFUSED = "The endpoint refuses such requests: check the model, its parameters and the token limit."


class Ending(StrEnum):
    """How one request of a batch ended."""

    SUCCEEDED = "succeeded"
    ERRORED = "errored"
    CANCELLED = "canceled"
    EXPIRED = "expired"


class BatchState(NamedTuple):
    """A batch as the endpoint reports it; every count but `processing` is 0 until it has ended."""

    id: str
    ended: bool
    cancelling: bool
    processing: int
    succeeded: int
    errored: int
    cancelled: int
    expired: int
    expires_at: datetime


class BatchResult(NamedTuple):
    """One line of a batch's results, which come in any order.

    `reply` is there where it succeeded, `words` where it errored; `transient` says that asking again may help.
    """

    custom_id: str
    ending: Ending
    reply: Reply | None = None
    words: str = ""
    transient: bool = False


class AnthropicJudge:
    """Asks one model.

    Args:
        model: The requested snapshot.
        parameters: Of `PARAMETERS`, such as `thinking` or `output_config` with an effort.
        extra_body: Request fields that the SDK has no argument for, for endpoints that take them.
        key: From the environment unless given; it is in no message, repr or traceback of ours.
        base_url: From the environment unless given.
        timeout: Seconds for one whole reply.

    Raises:
        ValueError: For a parameter the SDK does not offer.
        FatalError: When there is no key.
    """

    def __init__(
        self,
        model: str,
        *,
        parameters: Mapping[str, Any] | None = None,
        extra_body: Mapping[str, Any] | None = None,
        key: str | None = None,
        base_url: str | None = None,
        timeout: float = TIMEOUT,
    ) -> None:
        unknown = sorted(set(parameters or ()) - PARAMETERS)
        if unknown:
            raise ValueError(
                f"the SDK has no parameter {', '.join(unknown)}; an endpoint that takes it needs extra_body"
            )
        key = key or os.environ.get(KEY_NAME)
        if not key:
            raise FatalError(
                "there is no API key",
                f"Set {KEY_NAME} in the environment or in the secrets file and start again, or use the local judge.",
            )
        self.model = model
        self._parameters = dict(parameters or {})
        self._extra_body = dict(extra_body or {})
        self._timeout = timeout
        self._takes_schema = True
        limits = httpx2.Limits(max_connections=MOST_CONNECTIONS, max_keepalive_connections=MOST_CONNECTIONS)
        self._client = AsyncAnthropic(
            api_key=key,
            base_url=base_url or os.environ.get(BASE_URL_NAME) or None,
            max_retries=0,
            timeout=httpx2.Timeout(timeout, connect=min(10.0, timeout), pool=None),
            http_client=anthropic.DefaultAioHttpClient(limits=limits),
        )

    def __repr__(self) -> str:
        return f"AnthropicJudge({self.model!r})"

    @property
    def kind(self) -> JudgeKind:
        """Which of the judges this is."""
        return JudgeKind.ANTHROPIC

    async def ask(self, message: Message) -> Reply:
        """Ask once; when the endpoint refuses the schema it is left out from then on, and the reply is parsed as ever.

        Raises:
            TransientError: 408, 409, 429, 5xx, 529, a time-out, a dropped connection, a body that is no message.
            FatalError: Anything else the endpoint refuses.
        """
        structured = self._takes_schema and message.schema is not None
        try:
            return await self._ask(message, structured=structured)
        except FatalError as error:
            if not (structured and error.status in (400, 422) and _names_schema(error.words)):
                raise
        self._takes_schema = False
        return await self._ask(message, structured=False)

    async def _ask(self, message: Message, *, structured: bool) -> Reply:
        params: Any = self._params(message, structured=structured)
        started = time.perf_counter()
        received = await self._guard(self._client.messages.create(**params, extra_body=self._extra_body or None))
        latency = round(1000 * (time.perf_counter() - started))
        if not _is_message(received):
            raise TransientError("the endpoint answered with something that is no message")
        used = structured if message.schema is not None else None
        return _reply(received, received._request_id, latency, structured=used)

    async def count_tokens(self, message: Message) -> int | None:
        """Input tokens of a message as the endpoint counts them; None where it does not offer that.

        Raises:
            TransientError: As `ask`.
            FatalError: As `ask`, but for a path that is not found.
        """
        counting = self._client.messages.count_tokens(
            model=self.model, system=message.system, messages=[{"role": "user", "content": message.user}]
        )
        try:
            counted = await self._guard(counting)
        except FatalError as error:
            if error.status in (404, 405):
                return None
            raise
        tokens = getattr(counted, "input_tokens", None)
        return tokens if isinstance(tokens, int) else None

    async def create_batch(self, messages: Mapping[str, Message]) -> BatchState:
        """Hand in a batch, by custom_id (1 to 64 letters, digits, _ and -). Store its id before anything else.

        Raises:
            TransientError: As `ask`; whether the batch was made is then unknown.
            FatalError: As `ask`.
        """
        requests: Any = [
            {
                "custom_id": custom_id,
                "params": self._params(message, structured=self._takes_schema and message.schema is not None)
                | self._extra_body,
            }
            for custom_id, message in messages.items()
        ]
        return _state(await self._guard(self._client.messages.batches.create(requests=requests)))

    async def retrieve_batch(self, batch_id: str, *, fresh: bool = False) -> BatchState:
        """How far a batch is.

        Args:
            batch_id: The stored id.
            fresh: Whether it was made moments ago, when the endpoint may not find it yet: then that is transient.

        Raises:
            TransientError: As `ask`, and for a fresh batch that is not found.
            FatalError: As `ask`.
        """
        try:
            return _state(await self._guard(self._client.messages.batches.retrieve(batch_id)))
        except FatalError as error:
            if not (fresh and error.status == 404):
                raise
            words = "the new batch is not found yet"
        raise TransientError(words, status=404)

    async def cancel_batch(self, batch_id: str) -> BatchState:
        """Ask the endpoint to stop a batch; what is answered by then stays.

        Raises:
            TransientError: As `ask`.
            FatalError: As `ask`.
        """
        return _state(await self._guard(self._client.messages.batches.cancel(batch_id)))

    async def batch_results(self, batch_id: str) -> AsyncIterator[BatchResult]:
        """The results of an ended batch one by one, in any order.

        Raises:
            TransientError: As `ask`, also half-way.
            FatalError: As `ask`.
        """
        lines = await self._guard(self._client.messages.batches.results(batch_id))
        iterator = aiter(lines)
        try:
            while (line := await self._guard(_following(iterator))) is not None:
                yield self._result(line)
        finally:
            await lines.close()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _params(self, message: Message, *, structured: bool) -> dict[str, Any]:
        params: dict[str, Any] = {
            "model": self.model,
            "max_tokens": message.max_tokens,
            "system": message.system,
            "messages": [{"role": "user", "content": message.user}],
        } | self._parameters
        if structured:
            format_ = {"type": "json_schema", "schema": message.schema}
            params["output_config"] = {**params.get("output_config", {}), "format": format_}
        return params

    def _result(self, line: MessageBatchIndividualResponse) -> BatchResult:
        result = line.result
        if result.type == "succeeded":
            reply = _reply(result.message, None, None, structured=None)
            return BatchResult(line.custom_id, Ending.SUCCEEDED, reply)
        if result.type == "errored":
            error = result.error.error
            words = self._clean(f"{error.type}: {error.message}")
            refused_schema = self._takes_schema and error.type == "invalid_request_error" and _names_schema(words)
            if refused_schema:
                self._takes_schema = False
            return BatchResult(
                line.custom_id,
                Ending.ERRORED,
                words=words,
                transient=refused_schema or error.type in _PASSING_TYPES,
            )
        return BatchResult(line.custom_id, Ending(result.type), transient=result.type == "expired")

    async def _guard(self, asking: Coroutine[Any, Any, T]) -> T:
        """Turn the SDK's errors into ours.

        Ours are raised after the handler, so that they carry no error of the SDK, whose request holds the key.
        """
        try:
            async with asyncio.timeout(self._timeout):
                return await asking
        except (anthropic.APIError, httpx2.HTTPError, TimeoutError, ValueError) as error:
            ours = self._ours(error)
        raise ours

    def _ours(self, error: Exception) -> JudgeError:
        if isinstance(error, anthropic.APIStatusError):
            return self._by_status(error)
        if isinstance(error, anthropic.APITimeoutError | httpx2.TimeoutException | TimeoutError):
            return TransientError(f"no whole reply within {self._timeout:g} seconds")
        if isinstance(error, anthropic.APIConnectionError | httpx2.HTTPError):
            return TransientError("the connection failed or broke off before the whole reply")
        if isinstance(error, anthropic.APIError | UnicodeError | json.JSONDecodeError):
            return TransientError("the endpoint answered with something that is no message")
        return FatalError(self._clean(str(error)), _REFUSED)

    def _by_status(self, error: anthropic.APIStatusError) -> JudgeError:
        status, request_id = error.status_code, error.request_id
        said = self._clean(error.api_message or "")
        words = f"the endpoint answered {status}" + (f": {said}" if said else "")
        if status in _TRANSIENT or status >= 500:
            wait = _retry_after(error.response.headers)
            return TransientError(words, status=status, retry_after=wait, request_id=request_id)
        lower = said.casefold()
        too_long = status == 413 or (status in (400, 422) and any(hint in lower for hint in _TOO_LONG))
        billing = status == 400 and any(hint in lower for hint in _MONEY)
        what_to_do = _WHAT_TO_DO.get(413 if too_long else 402 if billing else status, _REFUSED)
        return FatalError(words, what_to_do, status=status, request_id=request_id, only_this_request=too_long)

    def _clean(self, words: str) -> str:
        """Words of the endpoint without the key, on one line and not too long."""
        key = self._client.api_key
        if key:
            words = words.replace(key, "(the key)")
        words = " ".join(storable(words).split())
        return words if len(words) <= _MOST_WORDS else words[:_MOST_WORDS] + "…"


async def _following(
    iterator: AsyncIterator[MessageBatchIndividualResponse],
) -> MessageBatchIndividualResponse | None:
    return await anext(iterator, None)


def _is_message(received: object) -> bool:
    return isinstance(received, ApiMessage) and isinstance(getattr(received, "content", None), list)


def _reply(received: ApiMessage, request_id: str | None, latency_ms: int | None, *, structured: bool | None) -> Reply:
    usage = getattr(received, "usage", None)
    return Reply(
        text="".join(block.text for block in received.content if block.type == "text"),
        stop_reason=received.stop_reason,
        response_id=received.id,
        request_id=request_id,
        served_model=received.model,
        input_tokens=getattr(usage, "input_tokens", None),
        output_tokens=getattr(usage, "output_tokens", None),
        latency_ms=latency_ms,
        structured=structured,
    )


def _state(batch: MessageBatch) -> BatchState:
    counts = batch.request_counts
    return BatchState(
        id=batch.id,
        ended=batch.processing_status == "ended",
        cancelling=batch.processing_status == "canceling",
        processing=counts.processing,
        succeeded=counts.succeeded,
        errored=counts.errored,
        cancelled=counts.canceled,
        expired=counts.expired,
        expires_at=batch.expires_at,
    )


def _names_schema(words: str) -> bool:
    lower = words.casefold()
    return any(hint in lower for hint in _SCHEMA_WORDS)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait: milliseconds, seconds or a date, as endpoints write it."""
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return max(0.0, float(milliseconds) / 1000)
        written = headers.get("retry-after", "")
        if written.replace(".", "", 1).isdigit():
            return float(written)
        return max(0.0, (parsedate_to_datetime(written) - datetime.now(UTC)).total_seconds()) if written else None
    except (ValueError, TypeError):
        return None
