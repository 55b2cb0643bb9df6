"""The judge behind the Messages API, with the real SDK against a loopback endpoint."""

import asyncio
import traceback
from collections import Counter
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

import pytest

from core.judge.client import AnthropicJudge, BatchResult, Ending
from core.judge.parse import parse
from core.judge.protocol import FatalError, Form, Message, Reply, TransientError
from core.store.tables import JudgeKind, Unscored
from tests.judge.samples import SCALE, message
from tests.judge.server import Answer, Drop, Failure, Garbage, Loopback, loopback

KEY = "sk-ant-secret-0123456789"
T = TypeVar("T")


@pytest.fixture
def server() -> Iterator[Loopback]:
    with loopback() as running:
        yield running


def judge(server: Loopback, **changes: Any) -> AnthropicJudge:
    return AnthropicJudge("claude-test", key=KEY, base_url=server.url, **changes)


def run(asking: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asking)


def ask(server: Loopback, sent: Message | None = None, **changes: Any) -> Reply:
    async def once() -> Reply:
        asked = judge(server, **changes)
        try:
            return await asked.ask(sent or message())
        finally:
            await asked.aclose()

    return run(once())


def test_a_reply_keeps_its_text_ids_model_tokens_and_time(server: Loopback) -> None:
    server.next(Answer("hello", input_tokens=7, output_tokens=3, response_id="msg_9", model="served", delay=0.05))
    reply = ask(server)
    assert (reply.text, reply.response_id, reply.served_model) == ("hello", "msg_9", "served")
    assert (reply.input_tokens, reply.output_tokens, reply.stop_reason) == (7, 3, "end_turn")
    assert reply.request_id is not None
    assert reply.request_id.startswith("req_")
    assert reply.latency_ms is not None
    assert reply.latency_ms >= 50


def test_the_endpoint_reads_exactly_the_message(server: Loopback) -> None:
    sent = message()
    ask(server, sent, extra_body={"temperature": 0.3}, parameters={"stop_sequences": ["END"]})
    body = server.messages()[0].body
    assert (body["system"], body["messages"]) == (sent.system, [{"role": "user", "content": sent.user}])
    assert body["output_config"]["format"] == {"type": "json_schema", "schema": sent.schema}
    assert (body["temperature"], body["stop_sequences"], body["max_tokens"]) == (0.3, ["END"], sent.max_tokens)


def test_a_refused_schema_is_left_out_from_then_on(server: Loopback) -> None:
    server.structured = False

    async def twice() -> list[Reply]:
        asked = judge(server)
        return [await asked.ask(message()), await asked.ask(message())]

    replies = run(twice())
    assert ["output_config" in asked.body for asked in server.messages()] == [True, False, False]
    assert [reply.structured for reply in replies] == [False, False]
    assert all(parse(reply.text, SCALE, Form.SINGLE, reply.stop_reason).reason is None for reply in replies)


def test_a_parameter_the_sdk_lacks_is_refused_by_name(server: Loopback) -> None:
    with pytest.raises(ValueError, match=r"no parameter temperature; .* extra_body"):
        judge(server, parameters={"temperature": 0.0})


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer("", stop_reason="refusal"), Unscored.REFUSAL),
        (Answer('{"rationale": "The an', stop_reason="max_tokens"), Unscored.TRUNCATED),
        (Answer("", stop_reason="max_tokens"), Unscored.TRUNCATED),
    ],
)
def test_refusals_and_cut_replies_are_unscored(server: Loopback, answer: Answer, reason: Unscored) -> None:
    server.next(answer)
    reply = ask(server)
    assert parse(reply.text, SCALE, Form.SINGLE, reply.stop_reason).reason is reason


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_passing_troubles_are_transient_and_never_retried_by_the_sdk(server: Loopback, status: int) -> None:
    server.next(Failure(status, "busy", retry_after=1.5))
    with pytest.raises(TransientError, match=f"{status}: busy") as caught:
        ask(server)
    assert (caught.value.status, caught.value.retry_after) == (status, 1.5)
    assert len(server.messages()) == 1


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (400, "check the model, its parameters"),
        (401, "Check ANTHROPIC_API_KEY"),
        (402, "billing and credit"),
        (403, "ask for the permission"),
        (404, "Check the model's name"),
    ],
)
def test_lasting_troubles_are_fatal_and_say_what_to_do(server: Loopback, status: int, advice: str) -> None:
    server.next(Failure(status, "no"))
    with pytest.raises(FatalError, match=f"{status}: no") as caught:
        ask(server)
    assert advice in caught.value.what_to_do
    assert not caught.value.only_this_request


def test_a_prompt_that_is_too_long_concerns_its_item_alone(server: Loopback) -> None:
    server.next(Failure(400, "prompt is too long: 300000 tokens > 200000 maximum"))
    with pytest.raises(FatalError) as caught:
        ask(server)
    assert caught.value.only_this_request


def test_a_credit_that_is_used_up_speaks_of_billing(server: Loopback) -> None:
    server.next(Failure(400, "Your credit balance is too low"))
    with pytest.raises(FatalError) as caught:
        ask(server)
    assert "billing" in caught.value.what_to_do


@pytest.mark.parametrize("outcome", [Drop(mid_body=True), Drop(mid_body=False)])
def test_a_dropped_connection_is_transient(server: Loopback, outcome: Drop) -> None:
    server.next(outcome)
    with pytest.raises(TransientError, match="connection failed or broke off"):
        ask(server)


def test_a_late_reply_is_transient(server: Loopback) -> None:
    server.next(Answer("late", delay=2))
    with pytest.raises(TransientError, match=r"within 0\.2 seconds"):
        ask(server, timeout=0.2)


@pytest.mark.parametrize(
    "garbage",
    [
        Garbage(),
        Garbage("{}", "application/json"),
        Garbage("[1]", "application/json"),
        Garbage('{"id":', "application/json"),
        Garbage("", "application/json"),
    ],
)
def test_a_body_that_is_no_message_is_transient(server: Loopback, garbage: Garbage) -> None:
    server.next(garbage)
    with pytest.raises(TransientError, match="no message"):
        ask(server)


def test_no_endpoint_at_all_is_transient() -> None:
    asked = AnthropicJudge("claude-test", key=KEY, base_url="http://127.0.0.1:9")
    with pytest.raises(TransientError, match="connection failed"):
        run(asked.ask(message()))


def test_without_a_key_it_says_where_to_put_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(FatalError, match="no API key") as caught:
        AnthropicJudge("claude-test")
    assert "ANTHROPIC_API_KEY" in caught.value.what_to_do


def test_the_key_stands_in_no_repr_message_or_traceback(server: Loopback) -> None:
    asked = judge(server)
    assert KEY not in repr(asked)
    server.next(Failure(401, f"invalid x-api-key {KEY}"))
    with pytest.raises(FatalError) as caught:
        run(asked.ask(message()))
    whole = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    words = "".join(whole.format())
    assert "invalid x-api-key (the key)" in str(caught.value)
    assert KEY not in words + repr(caught.value)
    assert caught.value.__context__ is None
    assert any(KEY in value for value in server.asked[0].headers.values())


def test_tokens_are_counted_by_the_endpoint(server: Loopback) -> None:
    server.token_count = 77
    assert run(judge(server).count_tokens(message())) == 77


def test_fifty_slow_requests_run_at_once(server: Loopback) -> None:
    server.latency = 0.2

    async def many() -> list[Reply]:
        asked = judge(server)
        return await asyncio.gather(*(asked.ask(message()) for _ in range(50)))

    assert len({reply.response_id for reply in run(many())}) == 50
    assert server.most_in_flight == 50


def test_batch_results_of_all_four_types_come_back_by_custom_id(server: Loopback) -> None:
    kinds = ["succeeded", "errored", "canceled", "expired"] * 5
    server.batch_type = lambda custom_id: kinds[int(custom_id.removeprefix("call-"))]
    server.polls, server.not_found = 2, 1

    async def whole() -> list[BatchResult]:
        asked = judge(server)
        made = await asked.create_batch({f"call-{place}": message() for place in range(20)})
        assert (made.ended, made.processing) == (False, 20)
        with pytest.raises(TransientError, match="not found yet"):
            await asked.retrieve_batch(made.id, fresh=True)
        states = [await asked.retrieve_batch(made.id) for _ in range(3)]
        assert [state.ended for state in states] == [False, False, True]
        assert states[-1][3:8] == (0, 5, 5, 5, 5)
        return [result async for result in asked.batch_results(made.id)]

    results = run(whole())
    assert {result.custom_id: result.ending.value for result in results} == {
        f"call-{place}": kind for place, kind in enumerate(kinds)
    }
    assert Counter(result.ending for result in results if result.reply) == {Ending.SUCCEEDED: 5}
    assert Counter(result.ending for result in results if result.transient) == {Ending.ERRORED: 5, Ending.EXPIRED: 5}


def test_a_cancelled_batch_ends_with_what_it_has(server: Loopback) -> None:
    server.polls = 100

    async def whole() -> tuple[bool, list[BatchResult]]:
        asked = judge(server)
        made = await asked.create_batch({"call-1": message()})
        cancelling = await asked.cancel_batch(made.id)
        await asked.retrieve_batch(made.id)
        return cancelling.cancelling, [result async for result in asked.batch_results(made.id)]

    cancelling, results = run(whole())
    assert cancelling
    assert [result.ending for result in results] == [Ending.CANCELLED]


def test_an_unknown_batch_is_fatal(server: Loopback) -> None:
    with pytest.raises(FatalError, match="404"):
        run(judge(server).retrieve_batch("msgbatch_none"))


def test_it_says_what_kind_it_is(server: Loopback) -> None:
    assert judge(server).kind is JudgeKind.ANTHROPIC
