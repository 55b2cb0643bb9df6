"""Optional: takes addresses, numbers and keys out of a text before it leaves for a judge, with a preview.

The patterns are a list that a team edits; nothing here promises to find every personal detail.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Pattern:
    """One kind of detail.

    Raises:
        ValueError: When the expression cannot be read or would match an empty text.
    """

    name: str
    expression: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z ]*", self.name):
            raise ValueError(f"pattern {self.name!r}: a name is small letters and spaces")
        try:
            empty = re.compile(self.expression).match("")
        except re.error as error:
            raise ValueError(f"pattern {self.name}: {error}") from error
        if empty:
            raise ValueError(f"pattern {self.name}: it matches an empty text")


PATTERNS = (
    Pattern("email", r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}(?!\w)"),
    Pattern(
        "key",
        r"(?<!\w)(?:sk-[\w-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|xox[abprs]-[\w-]{10,}|AKIA[0-9A-Z]{16}"
        r"|AIza[\w-]{30,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{10,})(?![\w-])",
    ),
    Pattern(
        "phone",
        r"(?<![\w.,-])(?![0-9]+\.[0-9]+(?!\S?[0-9]))"
        r"(?:\+|00)?\(?[0-9]{1,4}\)?(?:[ ./-]?\(?[0-9]{2,5}\)?){2,5}(?![\w-]|[.,][0-9])",
    ),
)
"""What is taken out unless a team says otherwise; the first pattern that matches at a place wins."""

_FEWEST_PHONE_DIGITS = 8


class Finding(NamedTuple):
    """One place that would be replaced: characters `start` to `end` of the text."""

    start: int
    end: int
    name: str
    found: str


class Redacted(NamedTuple):
    """A text without its details, and what was taken out."""

    text: str
    findings: tuple[Finding, ...]


def preview(text: str, patterns: Sequence[Pattern] = PATTERNS) -> tuple[Finding, ...]:
    """What would be replaced where, from left to right and without overlaps."""
    found: list[Finding] = []
    for pattern in patterns:
        for match in re.finditer(pattern.expression, text):
            if pattern.name == "phone" and sum(map(str.isdigit, match[0])) < _FEWEST_PHONE_DIGITS:
                continue
            found.append(Finding(match.start(), match.end(), pattern.name, match[0]))
    order = {pattern.name: place for place, pattern in enumerate(patterns)}
    kept: list[Finding] = []
    for finding in sorted(found, key=lambda one: (one.start, order[one.name])):
        if not kept or finding.start >= kept[-1].end:
            kept.append(finding)
    return tuple(kept)


def redact(text: str, patterns: Sequence[Pattern] = PATTERNS) -> Redacted:
    """The text with each detail replaced by its name and a number; the same detail gets the same number."""
    findings = preview(text, patterns)
    numbers: dict[tuple[str, str], int] = {}
    parts: list[str] = []
    place = 0
    for finding in findings:
        detail = (finding.name, finding.found)
        number = numbers.setdefault(detail, 1 + sum(name == finding.name for name, _ in numbers))
        parts += [text[place : finding.start], f"[{finding.name} {number}]"]
        place = finding.end
    return Redacted("".join([*parts, text[place:]]), findings)


def load_patterns(path: Path) -> tuple[Pattern, ...]:
    """A team's own list: a JSON object of names and expressions.

    Raises:
        ValueError: Names the file and what cannot be read.
        OSError: When the file cannot be opened.
    """
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(written, dict) or not all(isinstance(value, str) for value in written.values()):
            raise ValueError("expected an object of names and expressions")
        return tuple(Pattern(name, expression) for name, expression in written.items())
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from error
