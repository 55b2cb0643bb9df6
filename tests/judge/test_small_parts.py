"""Redaction, prices and replay."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from core.judge.pricing import load_prices
from core.judge.protocol import CallKey, FatalError
from core.judge.redact import PATTERNS, Pattern, as_expressions, as_patterns, preview, redact
from core.judge.replay import ReplayJudge, replies
from core.store.specs import CallRow
from core.store.tables import JudgeKind
from tests.judge.samples import message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Write to anna.b+c@mail.example.org today.", "Write to [email 1] today."),
        ("a@b.de, c@d.de, a@b.de", "[email 1], [email 2], [email 1]"),
        ("Call +49 (30) 1234-5678.", "Call [phone 1]."),
        ("Call 030 1234567 or 0049 30 1234567", "Call [phone 1] or [phone 2]"),
        ("Key sk-ant-api03-abcdefghijklmnop!", "Key [key 1]!"),
        ("AKIAABCDEFGHIJKLMNOP ghp_abcdefghijklmnopqrstuvwx", "[key 1] [key 2]"),
        ("In 2024 it was 3.14159265 of 1,234,567 users.", "In 2024 it was 3.14159265 of 1,234,567 users."),
        ("Nothing here @ all, v1.2.3", "Nothing here @ all, v1.2.3"),
    ],
)
def test_details_are_replaced_by_name_and_number(text: str, expected: str) -> None:
    assert redact([text]) == (expected,)


def test_a_preview_says_what_would_be_replaced_where() -> None:
    text = "Mail x@y.org or call +49 30 1234567."
    found = preview(text)
    assert [(one.name, one.found, text[one.start : one.end]) for one in found] == [
        ("email", "x@y.org", "x@y.org"),
        ("phone", "+49 30 1234567", "+49 30 1234567"),
    ]


def test_hostile_texts_cost_little_time() -> None:
    for text in ("a" * 200_000, "a." * 100_000 + "@", "1 " * 100_000, "sk-" * 70_000, "x@" + "a." * 100_000):
        assert len(redact([text])) == 1


def test_a_detail_has_one_number_in_all_the_texts_of_a_call() -> None:
    # A candidate that gives another address than the reference must not look as if it gave the same.
    texts = ("Reach us at a@b.de.", None, "It is c@d.de.", "It is a@b.de.")
    assert redact(texts) == ("Reach us at [email 1].", None, "It is [email 2].", "It is [email 1].")


def test_a_team_keeps_its_own_list() -> None:
    own = as_patterns({"order number": r"\bORD-\d{6}\b"})
    assert redact(["See ORD-123456 or x@y.org."], own) == ("See [order number 1] or x@y.org.",)
    assert as_patterns(as_expressions(PATTERNS)) == PATTERNS
    with pytest.raises(ValueError, match="pattern order number"):
        as_patterns({"order number": "("})
    with pytest.raises(ValueError, match="small letters"):
        as_patterns({"Order no. 1": "x"})
    with pytest.raises(ValueError, match="matches an empty text"):
        Pattern("nothing", "x*")


def test_the_shipped_prices_are_dated_and_never_guessed() -> None:
    prices = load_prices()
    # 1,000,000 x $3 + 200,000 x $15 a million = $6; half of it in a batch.
    asked: dict[str, Any] = {"kind": "anthropic", "input_tokens": 1_000_000, "output_tokens": 200_000}
    assert prices.cost(model="claude-sonnet-4-5-20250929", **asked) == pytest.approx(6)
    assert prices.cost(model="claude-sonnet-4-5", batch=True, **asked) == pytest.approx(3)
    assert prices.cost(model="another-model", **asked) is None
    assert prices.cost(model="SmolLM2", kind=JudgeKind.LOCAL, input_tokens=9, output_tokens=9) == 0
    assert prices.date.year >= 2026
    assert prices.source


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"date": "soon"}, "soon"),
        ({"batch_share": -1}, "batch_share"),
        ({"per_million_tokens": {"m": {"input": 1}}}, "m: "),
    ],
)
def test_a_broken_price_file_is_named(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    path = tmp_path / "prices.json"
    whole = {"date": "2026-01-01", "currency": "USD", "source": "s", "batch_share": 0.5, "per_million_tokens": {}}
    path.write_text(json.dumps(whole | change))
    with pytest.raises(ValueError, match=rf"prices\.json: .*{words}"):
        load_prices(path)


def test_replay_answers_by_item_repetition_and_order() -> None:
    rows = [
        CallRow(1, 0, raw_reply="a", response_id="r1"),
        CallRow(1, 1, "ab", raw_reply="b", stop_reason="end_turn"),
        CallRow(1, 1, "ba", attempt=1),
        CallRow(1, 1, "ba", attempt=2, raw_reply="c"),
    ]
    judge = ReplayJudge(replies(rows).get)
    keys = [CallKey(1, 0), CallKey(1, 1, "ab"), CallKey(1, 1, "ba")]
    found = [asyncio.run(judge.ask(message().for_call(key))) for key in keys]
    assert [reply.text for reply in found] == ["a", "b", "c"]
    assert found[0].response_id == "r1"
    with pytest.raises(FatalError, match="no stored reply for item 2, repetition 0") as caught:
        asyncio.run(judge.ask(message().for_call(CallKey(2, 0))))
    assert caught.value.only_this_request
