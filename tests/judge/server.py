"""A loopback endpoint that speaks Messages, count_tokens and Message Batches, and misbehaves on request.

    with loopback() as server:
        server.next(Failure(429, retry_after=1), Answer("…"))
        AsyncAnthropic(base_url=server.url, api_key="…")

`server.next` queues what the next Messages requests get; after that `server.script` decides, which grades as asked.
It runs in a thread of its own; `python -m tests.judge.server 8400` serves by hand.
"""

import asyncio
import json
import random
import re
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

_SCORE = re.compile(r'"(\w+)": <one of ([^>]+)>')
_VERDICTS = re.compile(r"one word of this list, with nothing else on that line: ([^.]+)\.")
_REASONS = {
    200: "OK", 400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found",
    408: "Request Timeout", 409: "Conflict", 413: "Too Large", 429: "Too Many Requests", 500: "Server Error",
    503: "Unavailable", 529: "Overloaded",
}  # fmt: skip
_TYPES = {
    400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
    404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 529: "overloaded_error",
}  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """One request as it came in."""

    method: str
    path: str
    body: dict[str, Any]
    headers: dict[str, str] = field(repr=False)
    at: float = field(default_factory=time.monotonic)

    @property
    def system(self) -> str:
        return str(self.body.get("system", ""))

    @property
    def user(self) -> str:
        return "\n".join(str(turn["content"]) for turn in self.body.get("messages", ()))


@dataclass(frozen=True)
class Answer:
    """A message."""

    text: str
    stop_reason: str = "end_turn"
    delay: float = 0.0
    input_tokens: int = 100
    output_tokens: int = 20
    response_id: str | None = None
    model: str | None = None


@dataclass(frozen=True)
class Failure:
    """An error of the API."""

    status: int
    message: str = "something went wrong"
    retry_after: float | None = None
    delay: float = 0.0


@dataclass(frozen=True)
class Drop:
    """The connection breaks: before any byte, or in the middle of the body."""

    mid_body: bool = True
    delay: float = 0.0


@dataclass(frozen=True)
class Garbage:
    """A body that is no message."""

    body: str = "<html>gateway</html>"
    content_type: str = "text/html"
    delay: float = 0.0


Outcome = Answer | Failure | Drop | Garbage


def grade(asked: Asked) -> Answer:
    """Scores as the prompt asks for them, another draw every time."""
    if words := _VERDICTS.search(asked.system):
        return Answer(f"The texts were compared.\nVERDICT: {random.choice(words[1].split(', '))}")  # noqa: S311 - no secret
    scores = {key: json.loads(random.choice(levels.split(", "))) for key, levels in _SCORE.findall(asked.system)}  # noqa: S311 - no secret
    return Answer(json.dumps({"rationale": "The text fits the level."} | scores))


@dataclass
class _Batch:
    id: str
    requests: list[dict[str, Any]]
    retrieved: int = 0
    cancelled: bool = False
    results: list[dict[str, Any]] | None = None


@dataclass
class Loopback:
    """The server's state; everything may be set while it runs.

    Attributes:
        asked: Every request, in order.
        latency: Seconds before every answer to a Messages request.
        structured: Whether output_config is known; otherwise it is refused with 400.
        token_count: What count_tokens says.
        polls: How often a batch is still in progress when it is asked for.
        not_found: How often a fresh batch is not found yet.
        batch_type: The result type of a custom_id: succeeded, errored, canceled or expired.
    """

    script: Callable[[Asked], Outcome] = grade
    latency: float = 0.0
    structured: bool = True
    token_count: int = 321
    polls: int = 1
    not_found: int = 0
    batch_type: Callable[[str], str] = lambda _: "succeeded"
    asked: list[Asked] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    url: str = ""
    _queue: deque[Outcome] = field(default_factory=deque)
    _batches: dict[str, _Batch] = field(default_factory=dict)

    def next(self, *outcomes: Outcome) -> None:
        """What the next Messages requests get."""
        self._queue.extend(outcomes)

    def messages(self) -> list[Asked]:
        """The Messages requests."""
        return [asked for asked in self.asked if asked.path == "/v1/messages"]

    def counts(self) -> Counter[str]:
        """Requests by path."""
        return Counter(asked.path for asked in self.asked)

    def respond(self, asked: Asked) -> Outcome | dict[str, Any] | str:
        """A Messages outcome, a JSON object, or lines."""
        if asked.path == "/v1/messages":
            return self._message(asked)
        if asked.path == "/v1/messages/count_tokens":
            return {"input_tokens": self.token_count}
        if asked.path == "/v1/messages/batches":
            return self._create(asked) if asked.method == "POST" else self._list()
        if match := re.fullmatch(r"/v1/messages/batches/([\w-]+)(/results|/cancel)?", asked.path):
            return self._batch(match[1], match[2] or "")
        return Failure(404, f"no such path: {asked.path}")

    def _message(self, asked: Asked) -> Outcome:
        if "output_config" in asked.body and not self.structured:
            return Failure(400, "output_config: Extra inputs are not permitted")
        return self._queue.popleft() if self._queue else self.script(asked)

    def _create(self, asked: Asked) -> dict[str, Any]:
        batch = _Batch(f"msgbatch_{uuid4().hex}", asked.body["requests"])
        self._batches[batch.id] = batch
        return self._shown(batch)

    def _list(self) -> dict[str, Any]:
        shown = [self._shown(batch) for batch in reversed(self._batches.values())]
        return {"data": shown, "has_more": False, "first_id": None, "last_id": None}

    def _batch(self, name: str, action: str) -> Outcome | dict[str, Any] | str:
        batch = self._batches.get(name)
        if batch is None:
            return Failure(404, f"no batch {name}")
        if action == "/results":
            return "".join(json.dumps(line) + "\n" for line in batch.results or ())
        if action == "/cancel":
            batch.cancelled = True
            return self._shown(batch)
        batch.retrieved += 1
        if batch.retrieved <= self.not_found:
            return Failure(404, f"no batch {name}")
        if batch.results is None and (batch.cancelled or batch.retrieved > self.not_found + self.polls):
            batch.results = [self._result(batch, request) for request in batch.requests]
            random.shuffle(batch.results)
        return self._shown(batch)

    def _result(self, batch: _Batch, request: dict[str, Any]) -> dict[str, Any]:
        kind = "canceled" if batch.cancelled else self.batch_type(request["custom_id"])
        result: dict[str, Any] = {"type": kind}
        if kind == "succeeded":
            asked = Asked("POST", "/v1/messages", request["params"], {})
            outcome = self._message(asked)
            if isinstance(outcome, Answer):
                result["message"] = message(asked, outcome)
            elif isinstance(outcome, Failure):
                result = {"type": "errored", "error": error(outcome)}
        if kind == "errored":
            result["error"] = error(Failure(500))
        return {"custom_id": request["custom_id"], "result": result}

    def _shown(self, batch: _Batch) -> dict[str, Any]:
        ended = batch.results is not None
        kinds = Counter(line["result"]["type"] for line in batch.results or ())
        names = ("succeeded", "errored", "canceled", "expired")
        counts = {name: kinds[name] for name in names} | {"processing": 0 if ended else len(batch.requests)}
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if ended else "canceling" if batch.cancelled else "in_progress",
            "request_counts": counts,
            "created_at": "2026-01-01T00:00:00Z",
            "expires_at": "2026-01-02T00:00:00Z",
            "ended_at": "2026-01-01T01:00:00Z" if ended else None,
            "archived_at": None,
            "cancel_initiated_at": None,
            "results_url": f"{self.url}/v1/messages/batches/{batch.id}/results" if ended else None,
        }


def message(asked: Asked, answer: Answer) -> dict[str, Any]:
    """A message as the API writes it."""
    return {
        "id": answer.response_id or f"msg_{uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": answer.model or asked.body.get("model", ""),
        "content": [{"type": "text", "text": answer.text}] if answer.text else [],
        "stop_reason": answer.stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": answer.input_tokens, "output_tokens": answer.output_tokens},
    }


def error(failure: Failure) -> dict[str, Any]:
    """An error as the API writes it."""
    kind = _TYPES.get(failure.status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": failure.message}, "request_id": None}


class _Wire:
    """HTTP/1.1 with keep-alive, as much of it as the SDK speaks."""

    def __init__(self, server: Loopback) -> None:
        self._server = server

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while asked := await self._read(reader):
                self._server.asked.append(asked)
                if not await self._answer(asked, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client went away, which the tests do on purpose
        finally:
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> Asked | None:
        line = await reader.readline()
        if not line:
            return None
        method, target, _ = line.decode().split(" ", 2)
        headers: dict[str, str] = {}
        while (line := await reader.readline()).strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        return Asked(method, target.partition("?")[0], json.loads(body) if body else {}, headers)

    async def _answer(self, asked: Asked, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection lives on."""
        server = self._server
        server.in_flight += 1
        server.most_in_flight = max(server.most_in_flight, server.in_flight)
        try:
            outcome = server.respond(asked)
            if not isinstance(outcome, dict | str):
                await asyncio.sleep(server.latency + outcome.delay)
        finally:
            server.in_flight -= 1
        if isinstance(outcome, Drop):
            if outcome.mid_body:
                writer.write(self._head(200, "application/json", 5_000, {}) + b'{"id": "msg_1", "type": "mess')
                await writer.drain()
            return False
        writer.write(self._whole(asked, outcome))
        await writer.drain()
        return True

    def _whole(self, asked: Asked, outcome: Answer | Failure | Garbage | dict[str, Any] | str) -> bytes:
        status, kind, headers = 200, "application/json", {"request-id": f"req_{uuid4().hex}"}
        if isinstance(outcome, Garbage):
            body, kind = outcome.body, outcome.content_type
        elif isinstance(outcome, str):
            body, kind = outcome, "application/binary"
        elif isinstance(outcome, Failure):
            body, status = json.dumps(error(outcome)), outcome.status
            if outcome.retry_after is not None:
                headers["retry-after"] = f"{outcome.retry_after:g}"
        else:
            body = json.dumps(message(asked, outcome) if isinstance(outcome, Answer) else outcome)
        data = body.encode()
        return self._head(status, kind, len(data), headers) + data

    @staticmethod
    def _head(status: int, kind: str, length: int, headers: dict[str, str]) -> bytes:
        lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}", f"content-type: {kind}"]
        lines += [f"content-length: {length}", *(f"{name}: {value}" for name, value in headers.items())]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def _run(server: Loopback, port: int, ready: threading.Event, stop: asyncio.Event) -> None:
    listening = await asyncio.start_server(_Wire(server).serve, "127.0.0.1", port, limit=2**24, backlog=512)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    ready.set()
    await stop.wait()
    listening.close()
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()


@contextmanager
def loopback(port: int = 0, **state: Any) -> Iterator[Loopback]:
    """A running server; `state` sets attributes of `Loopback`."""
    server, ready = Loopback(**state), threading.Event()
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(_run(server, port, ready, stop)), daemon=True)
    thread.start()
    if not ready.wait(10):
        raise TimeoutError("the loopback server did not start")
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()


if __name__ == "__main__":
    with loopback(int(sys.argv[1]), latency=float(sys.argv[2]) if len(sys.argv) > 2 else 0.2) as running:
        print(running.url, flush=True)
        threading.Event().wait()
