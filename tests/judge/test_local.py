"""The offline judge, where its extra is installed."""

import asyncio

import pytest

from core.judge import local
from core.judge.local import LocalJudge
from core.judge.parse import parse
from core.judge.protocol import FatalError, Form
from core.store.tables import JudgeKind
from tests.judge.samples import PREFERENCE, SCALE, message

installed = pytest.mark.skipif(bool(local.missing()), reason="needs `make local-judge`")


def test_without_its_extra_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "missing", lambda: "the local judge's weights are not downloaded")
    with pytest.raises(FatalError, match="not downloaded") as caught:
        LocalJudge()
    assert "make local-judge" in caught.value.what_to_do


@installed
def test_it_answers_in_the_forms_asked_for() -> None:
    async def both() -> None:
        judge = LocalJudge()
        assert judge.kind is JudgeKind.LOCAL
        scored = await judge.ask(message(Form.SINGLE))
        found = parse(scored.text, SCALE, Form.SINGLE, scored.stop_reason)
        assert found.reason is None, (scored, found)
        assert scored.served_model == local.MODEL
        assert scored.response_id
        assert scored.input_tokens
        compared = await judge.ask(message(Form.PAIRWISE))
        verdict = parse(compared.text, PREFERENCE, Form.PAIRWISE, compared.stop_reason)
        assert verdict.reason is None, (compared, verdict)
        with pytest.raises(FatalError, match="does not fit") as caught:
            await judge.ask(message(Form.SINGLE, candidate="word " * 9000))
        assert caught.value.only_this_request
        await judge.aclose()

    asyncio.run(both())
