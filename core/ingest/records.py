"""What every reader yields: one record a line, as the file wrote it, or the problem with the line."""

from dataclasses import dataclass
from typing import NamedTuple


class ImportRefused(ValueError):  # noqa: N818 - it is the file that is refused, with a reason for its owner
    """A file that cannot be imported as it is; the message says what was found and what to do."""


class AlreadyImported(ImportRefused):
    """The same bytes were imported before."""


class CriterionMissed(ImportRefused):
    """A criterion that the first rows did not name, met while the rubric was made of those: begin again."""


class MappingRefused(ImportRefused):
    """A mapping that means nothing or does not fit the file's columns."""


class LineRefused(ValueError):  # noqa: N818 - becomes a `Problem` and is never shown as an error
    """One line that cannot be imported; `load` turns it into a `Problem`."""

    def __init__(self, column: str, value: str, reason: str) -> None:
        super().__init__(reason)
        self.column = column
        self.value = value
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Problem:
    """A line that cannot be imported: where, what stands there and why not.

    Attributes:
        line: Physical line of the file on which the record begins, from 1.
        column: Name of the column, empty when the whole line is meant.
        value: The text found, shortened.
        reason: Why it is no good, for a reader who has the file open.
    """

    line: int
    column: str
    value: str
    reason: str


class Record(NamedTuple):
    """One line of judge history: every field is the file's own text, empty where the file has nothing.

    The fields after `line` are the roles a column can be mapped to.
    """

    line: int
    item: str = ""
    repetition: str = ""
    criterion: str = ""
    judge: str = ""
    model: str = ""
    prompt_version: str = ""
    rubric_version: str = ""
    score: str = ""
    status: str = ""
    rationale: str = ""
    cited_evidence: str = ""
    boundary_reason: str = ""
    confidence: str = ""
    label: str = ""
    label_reason: str = ""
    rater: str = ""
    order: str = ""
    slice: str = ""
    system: str = ""
    system_b: str = ""
    candidate: str = ""
    candidate_b: str = ""
    request: str = ""
    reference: str = ""
    content_sha256: str = ""
    response_id: str = ""
    created_at: str = ""


ROLES = Record._fields[1:]
"""What a column can mean."""

MEANINGS: dict[str, str] = {
    "item": "what is judged",
    "repetition": "number of the independent call on the item",
    "criterion": "what is scored",
    "judge": "name of the judge",
    "model": "model snapshot of the judge",
    "prompt_version": "version of the judge's prompt",
    "rubric_version": "version of the judge's rubric",
    "score": "what the judge gave",
    "status": "ok, or why there is no score",
    "rationale": "the judge's reasons",
    "cited_evidence": "what the judge quoted",
    "boundary_reason": "why not one level higher or lower",
    "confidence": "the judge's own confidence",
    "label": "what a person gave",
    "label_reason": "the person's reasons",
    "rater": "who gave the label",
    "order": "which candidate stood in slot 1",
    "slice": "why the item is in its corpus",
    "system": "what wrote the candidate",
    "system_b": "what wrote the second candidate",
    "candidate": "the judged text",
    "candidate_b": "the second judged text of a pair",
    "request": "what the candidate answers",
    "reference": "a reference answer",
    "content_sha256": "hash of the judged text",
    "response_id": "id of the judge's reply",
    "created_at": "when the judge answered",
}
"""What each role stands for, in words for the person who maps columns to roles."""

SHOWN = 200
"""Characters of a bad value that are kept."""


def shorten(value: str) -> str:
    """The first characters of a value as a text that every database can keep, for a table of bad lines."""
    shown = value[:SHOWN].replace("\0", "�").encode(errors="replace").decode()
    return shown if len(value) <= SHOWN else f"{shown}… ({len(value):,} characters)"
