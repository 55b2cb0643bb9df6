"""Optional: takes addresses, numbers and keys out of texts before they leave for a judge, with a preview.

The patterns are a list that a team edits; nothing here promises to find every personal detail.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
        r"(?<![\w.,-])(?![0-9]+\.[0-9]+(?!\S?[0-9]))(?=(?:[+() ./-]{0,3}[0-9]){8})"
        r"(?:\+|00)?\(?[0-9]{1,4}\)?(?:[ ./-]?\(?[0-9]{2,5}\)?){2,5}(?![\w-]|[.,][0-9])",
    ),
)
"""What is taken out unless a team says otherwise; the first pattern that matches at a place wins."""


class Finding(NamedTuple):
    """One place that would be replaced: characters `start` to `end` of the text."""

    start: int
    end: int
    name: str
    found: str


def preview(text: str, patterns: Sequence[Pattern] = PATTERNS) -> tuple[Finding, ...]:
    """What would be replaced where, from left to right and without overlaps."""
    found = [
        Finding(match.start(), match.end(), pattern.name, match[0])
        for pattern in patterns
        for match in re.finditer(pattern.expression, text)
    ]
    order = {pattern.name: place for place, pattern in enumerate(patterns)}
    kept: list[Finding] = []
    for finding in sorted(found, key=lambda one: (one.start, order[one.name])):
        if finding.found and (not kept or finding.start >= kept[-1].end):
            kept.append(finding)
    return tuple(kept)


def redact(texts: Sequence[str | None], patterns: Sequence[Pattern] = PATTERNS) -> tuple[str | None, ...]:
    """The texts with each detail replaced by its name and a number.

    The same detail has the same number in all the texts and no other detail has it: a judge still sees whether a
    candidate gives the address that the reference gives.
    """
    numbers: dict[tuple[str, str], int] = {}
    return tuple(None if text is None else _redacted(text, patterns, numbers) for text in texts)


def _redacted(text: str, patterns: Sequence[Pattern], numbers: dict[tuple[str, str], int]) -> str:
    parts: list[str] = []
    place = 0
    for finding in preview(text, patterns):
        detail = (finding.name, finding.found)
        number = numbers.setdefault(detail, 1 + sum(name == finding.name for name, _ in numbers))
        parts += [text[place : finding.start], f"[{finding.name} {number}]"]
        place = finding.end
    return "".join([*parts, text[place:]])


def as_patterns(expressions: Mapping[str, str]) -> tuple[Pattern, ...]:
    """A list of names and expressions as a store keeps it.

    Raises:
        ValueError: Names the pattern that cannot be read.
    """
    return tuple(Pattern(name, expression) for name, expression in expressions.items())


def as_expressions(patterns: Sequence[Pattern]) -> dict[str, str]:
    """The list that `as_patterns` reads."""
    return {pattern.name: pattern.expression for pattern in patterns}
