"""The judge that needs no key and no network: a small language model in this process, through llama.cpp.

It is a real model and a bad judge: its replies have the right shape because a grammar forces them to, and its scores
are mostly noise. That makes it good for trying the dashboard, and for nothing else.
"""

import asyncio
import importlib.util
import time
from pathlib import Path
from typing import Any

from core.judge.protocol import FatalError, Message, Reply, TransientError
from core.store.tables import JudgeKind

MODEL = "SmolLM2-135M-Instruct"
WEIGHTS = Path(__file__).parents[2] / "data" / "models" / f"{MODEL}.Q4_1.gguf"
WARNING = (
    f"{MODEL} is a real model and a bad judge: the shape of its replies is forced, its scores are mostly noise."
    " Use it to try Evenhand without a key, not to judge anything."
)
INSTALL = "Run `make local-judge` once, then start again."
MOST_TOKENS = 200
LONGEST_RATIONALE = 160
_CONTEXT = 4096
_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens"}


def missing() -> str:
    """What is not installed, in words; empty when the local judge can run."""
    if importlib.util.find_spec("xllamacpp") is None:
        return "the local judge's library is not installed"
    return "" if WEIGHTS.exists() else "the local judge's weights are not downloaded"


class LocalJudge:
    """Asks the small model, one message after the other.

    Args:
        temperature: How much its draws differ.

    Raises:
        FatalError: When the library or the weights are missing; it says how to get them.
    """

    def __init__(self, *, temperature: float = 0.8, weights: Path = WEIGHTS) -> None:
        if problem := missing() if weights == WEIGHTS else "":
            raise FatalError(problem, INSTALL)
        self._temperature = temperature
        self._weights = weights
        self._server: Any = None
        self._turn = asyncio.Lock()

    @property
    def kind(self) -> JudgeKind:
        """Which of the judges this is."""
        return JudgeKind.LOCAL

    async def ask(self, message: Message) -> Reply:
        """Ask once; the model is loaded with the first question.

        Raises:
            TransientError: When the model gives nothing that is a reply.
            FatalError: When the prompt does not fit the model. It concerns this item alone.
        """
        async with self._turn:
            started = time.perf_counter()
            answered = await asyncio.to_thread(self._complete, message)
        return _reply(answered, round(1000 * (time.perf_counter() - started)))

    async def count_tokens(self, message: Message) -> int | None:  # noqa: ARG002 - nothing is paid by the token here
        """None: nothing is paid by the token here."""
        return None

    async def aclose(self) -> None:
        """Give the model's memory back."""
        self._server = None

    def _complete(self, message: Message) -> dict[str, Any]:
        if self._server is None:
            self._server = _load(self._weights)
        request: dict[str, Any] = {
            "messages": [
                {"role": "system", "content": message.system},
                {"role": "user", "content": message.user},
            ],
            "max_tokens": min(message.max_tokens, MOST_TOKENS),
            "temperature": self._temperature,
        }
        if message.schema is not None:
            request["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "reply", "schema": bounded(message.schema), "strict": True},
            }
        elif message.verdicts:
            request["grammar"] = verdict_grammar(message.verdicts)
        try:
            answered = self._server.handle_chat_completions(request)
        except RuntimeError as error:
            answered = {"error": {"message": str(error)}}
        return answered if isinstance(answered, dict) else {}


def bounded(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with short texts: a small model does not stop by itself."""
    properties = {
        name: value | {"maxLength": LONGEST_RATIONALE} if value.get("type") == "string" else value
        for name, value in schema["properties"].items()
    }
    return schema | {"properties": properties}


def verdict_grammar(verdicts: tuple[str, ...]) -> str:
    """A grammar of one short line of reasons and a final VERDICT line."""
    words = " | ".join(f'"{word}"' for word in verdicts)
    return f'root ::= [A-Z] [^\\n]{{20,{LONGEST_RATIONALE}}} "\\nVERDICT: " word\nword ::= {words}'


def _load(weights: Path) -> Any:
    import xllamacpp  # noqa: PLC0415 - an optional extra

    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.n_ctx = _CONTEXT
    params.n_parallel = 1
    # More threads wait for each other in a spin: on two busy cores one thread was ten times faster than two.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.warmup = False
    params.verbosity = 0
    return xllamacpp.Server(params)


def _reply(answered: dict[str, Any], latency_ms: int) -> Reply:
    if error := answered.get("error"):
        words = str(error.get("message", error) if isinstance(error, dict) else error)
        if "context" in words:
            raise FatalError(
                f"the text does not fit the local model: {words[:200]}",
                "Leave the longest items out, or use another judge.",
                only_this_request=True,
            )
        raise TransientError(f"the local model failed: {words[:200]}")
    choices = answered.get("choices")
    if not choices:
        raise TransientError("the local model gave nothing that is a reply")
    usage = answered.get("usage", {})
    return Reply(
        text=choices[0]["message"]["content"] or "",
        stop_reason=_STOP_REASONS.get(choices[0]["finish_reason"], choices[0]["finish_reason"]),
        response_id=answered.get("id"),
        served_model=MODEL,
        input_tokens=usage.get("prompt_tokens"),
        output_tokens=usage.get("completion_tokens"),
        latency_ms=latency_ms,
        structured=True,
    )
