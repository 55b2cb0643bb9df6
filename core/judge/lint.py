"""Whether a rubric is written so that two readers would give the same score. Every message names line and rule."""

import json
import re
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from core.store.specs import CriterionSpec, RubricSpec

FEWEST_WORDS = 5
YES_NO_OPENINGS = ("does", "is", "are", "did", "do", "has", "have", "can", "will")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DEGREES = _words(
    "very quite rather mostly fairly somewhat slightly extremely highly barely not at all completely fully partly"
    " partially really the a an it answer text reply candidate is was and or of"
)
_ADJECTIVES = _words(
    "bad poor weak low wrong incorrect unacceptable inadequate insufficient lacking terrible awful mediocre average"
    " medium moderate fair ok okay acceptable adequate sufficient satisfactory decent good better strong high right"
    " correct great excellent outstanding perfect best worst superb clear unclear helpful unhelpful relevant irrelevant"
    " accurate inaccurate complete incomplete coherent incoherent fluent safe unsafe true false yes no pass fail"
    " passes fails none some all polite rude concise brief short long formal informal friendly honest harmful harmless"
)
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_JOINED = re.compile(r"\b(and|or|as well as)\b|&|/", re.IGNORECASE)
_TWO_QUESTIONS = re.compile(r"\?.*\S.*\?", re.DOTALL)


class Rule(StrEnum):
    """What a rubric must keep to."""

    ANCHOR_MISSING = "every level has an anchor"
    BARE_ADJECTIVE = "an anchor says what can be seen, not only how good it is"
    SAME_ANCHOR = "two levels have different anchors"
    QUESTION_MARK = "a yes/no criterion ends in a question mark"
    QUESTION_OPENING = f"a yes/no criterion begins with {', '.join(YES_NO_OPENINGS[:-1])} or {YES_NO_OPENINGS[-1]}"
    TOO_SHORT = f"a criterion's question has at least {FEWEST_WORDS} words"
    DUPLICATE = "no two criteria ask the same"
    ONE_PROPERTY = "one criterion asks for one property"


class Finding(NamedTuple):
    """A line of the rubric that breaks a rule; the line is 0 where the rubric has no text lines."""

    line: int
    criterion: str
    rule: Rule
    words: str

    def __str__(self) -> str:
        where = f"line {self.line}, " if self.line else ""
        return f"{where}criterion {self.criterion}: {self.words} (rule: {self.rule.value})"


def lint(rubric: RubricSpec, source: str | None = None) -> tuple[Finding, ...]:
    """Everything in a rubric that a reader would have to guess at, in the rubric's order.

    Args:
        rubric: The rubric.
        source: The text of its file, to name lines in it; without it lines are those of `as_lines`.
    """
    lines = _Lines(source if source is not None else as_lines(rubric))
    findings: list[Finding] = []
    asked: dict[str, str] = {}
    for criterion in rubric.criteria:
        start = lines.of_criterion(criterion.key)
        findings += _question(criterion, lines.after(criterion.question, start) if criterion.question else start, asked)
        findings += _anchors(criterion, lines, start)
    return tuple(findings)


def as_lines(rubric: RubricSpec) -> str:
    """A rubric as numbered lines for the page: one a criterion, one a level."""
    lines: list[str] = []
    for criterion in rubric.criteria:
        lines.append(f"{criterion.key}: {criterion.question}")
        lines += [f"  {level.value:g} = {level.anchor}" for level in criterion.levels]
    return "\n".join(lines)


def _question(criterion: CriterionSpec, line: int, asked: dict[str, str]) -> list[Finding]:
    question, found = criterion.question.strip(), []
    words = _WORD.findall(question)

    def add(rule: Rule, text: str) -> None:
        found.append(Finding(line, criterion.key, rule, text))

    if len(words) < FEWEST_WORDS:
        add(Rule.TOO_SHORT, f"the question has {len(words)} {'word' if len(words) == 1 else 'words'}")
    if len(criterion.levels) == 2:
        if not question.endswith("?"):
            add(Rule.QUESTION_MARK, "the question has two levels and does not end in ?")
        if not words or words[0].casefold() not in YES_NO_OPENINGS:
            add(Rule.QUESTION_OPENING, f"the question begins with {words[0] if words else 'nothing'}")
    plain = " ".join(words).casefold()
    if plain and plain in asked:
        add(Rule.DUPLICATE, f"it asks the same as criterion {asked[plain]}")
    asked.setdefault(plain, criterion.key)
    if _TWO_QUESTIONS.search(question):
        add(Rule.ONE_PROPERTY, "it asks two questions")
    elif joined := _two_properties(question):
        add(Rule.ONE_PROPERTY, f"“{joined}” joins two properties; make two criteria of them")
    return found


def _two_properties(question: str) -> str:
    """The words around an "and" or "or" that joins two single adjectives or two verbs of asking."""
    for match in _JOINED.finditer(question):
        before, behind = _WORD.findall(question[: match.start()]), _WORD.findall(question[match.end() :])
        if not before or not behind:
            continue
        left, right = before[-1].casefold(), behind[0].casefold()
        if (left in _ADJECTIVES and right in _ADJECTIVES) or right in YES_NO_OPENINGS:
            return f"{before[-1]} {match[0]} {behind[0]}"
    return ""


def _anchors(criterion: CriterionSpec, lines: "_Lines", start: int) -> list[Finding]:
    found: list[Finding] = []
    seen: dict[str, float] = {}
    for level in criterion.levels:
        words = [word.casefold() for word in _WORD.findall(level.anchor)]
        line = lines.after(level.anchor, start) if words else start
        plain = " ".join(words)
        if not words:
            text = f"level {level.value:g} has no anchor"
            found.append(Finding(line, criterion.key, Rule.ANCHOR_MISSING, text))
        elif set(words) <= _ADJECTIVES | _DEGREES:
            text = f"level {level.value:g} is only “{level.anchor.strip()}”"
            found.append(Finding(line, criterion.key, Rule.BARE_ADJECTIVE, text))
        if plain and plain in seen:
            text = f"levels {seen[plain]:g} and {level.value:g} have the same anchor"
            found.append(Finding(line, criterion.key, Rule.SAME_ANCHOR, text))
        seen.setdefault(plain, level.value)
    return found


class _Lines:
    """Finds texts in a file; they stand there as JSON strings or plainly."""

    def __init__(self, source: str) -> None:
        self._lines: Sequence[str] = source.splitlines()

    def of_criterion(self, key: str) -> int:
        """The line on which a criterion begins; its key alone may stand anywhere, in the rubric's name too."""
        begins = re.compile(rf'"key"\s*:\s*{re.escape(json.dumps(key))}|^{re.escape(key)}: ')
        found = (place for place, line in enumerate(self._lines, 1) if begins.search(line))
        return next(found, 0) or self.after(key)

    def after(self, text: str, start: int = 1) -> int:
        """The first line from `start` on that holds the text; `start` when none does."""
        plain = text.strip()
        forms = {plain, json.dumps(plain)[1:-1], json.dumps(plain, ensure_ascii=False)[1:-1]}
        for place in range(max(start, 1), len(self._lines) + 1):
            if any(form and form in self._lines[place - 1] for form in forms):
                return place
        return start
