"""Rubrics and messages the tests of judges share."""

from core.judge.prompt import RubricView, Texts, build, render
from core.judge.protocol import Form, Message
from core.store.queries import CriterionView


def criterion(key: str, levels: tuple[float, ...] = (1.0, 2.0, 3.0), question: str = "") -> CriterionView:
    anchors = tuple(f"The text shows the {value:g}th sign of {key}." for value in levels)
    return CriterionView(
        1, 1, key, question or f"Does the text show {key} at all?", 1.0, levels[-1], False, levels, anchors
    )


SCALE = tuple(map(criterion, ("correctness", "groundedness", "helpfulness")))
PASS_FAIL = (criterion("verdict", (0.0, 1.0)),)
PREFERENCE = (criterion("preference", (-1.0, 0.0, 1.0)),)


def message(form: Form = Form.SINGLE, candidate: str = "Press the reset button for ten seconds.") -> Message:
    criteria = {Form.VERDICT: PASS_FAIL, Form.PAIRWISE: PREFERENCE}.get(form, SCALE)
    texts = Texts(candidate, second="Call us.", request="How do I reset it?", reference="Hold reset for ten seconds.")
    return render(build(RubricView("sample", criteria), form), texts)
