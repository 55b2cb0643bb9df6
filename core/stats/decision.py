"""Decision rules: a small language that says when an answer is ready, and what it gives over many items.

A rule reads like "ready when correctness is 2 and no criterion is 0". Grammar, lowest binding first:

    rule      = ["ready" "when"] either
    either    = both {"or" both}
    both      = one {"and" one}
    one       = "not" one | "(" either ")" | test
    test      = ("no" | "any" | "all") "criterion" compare NUMBER
              | "count" "of" "criteria" ("at" NUMBER | compare NUMBER) compare NUMBER
              | (CRITERION | "total" | "score") compare NUMBER
    compare   = "is" ["not"] | "=" | "!=" | ">=" | ">" | "<=" | "<" | "at least" | "at most" | "above" | "below"

`total` is the weighted sum of the scores, `score` the same out of 10. A criterion whose name is a word of the language
or holds other signs is written in double quotes. A test of a missing score is neither true nor false; it leaves the
whole rule undefined unless the other tests decide it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from core.stats.common import Bools, Floats

Compare = Literal["is", "is not", ">=", ">", "<=", "<"]
Quantifier = Literal["no", "any", "all"]

LONGEST_RULE = 1_000
DEEPEST_RULE = 40
OUT_OF = 10.0
"""Best value of a score that is comparable between rubrics."""

_QUANTIFIERS: dict[str, Quantifier] = {"no": "no", "any": "any", "all": "all", "every": "all"}
_SIGNS: dict[str, Compare] = {
    "=": "is",
    "==": "is",
    "!=": "is not",
    ">=": ">=",
    "≥": ">=",
    ">": ">",
    "above": ">",
    "<=": "<=",
    "≤": "<=",
    "<": "<",
    "below": "<",
}
_TOKEN = re.compile(
    r'\s*(?:(?P<number>-?\d+(?:\.\d+)?)|(?P<sign>[<>!=]=|[<>=≥≤()])|"(?P<quoted>[^"]*)"|(?P<word>\w+(?:-\w+)*))'
)
_NUMBER, _SIGN, _QUOTED, _WORD, _END = "number", "sign", "quoted", "word", "end"


class RuleError(ValueError):
    """A rule that cannot be read: where, what was expected there and what stands there instead.

    Attributes:
        position: Place of the first character that does not fit, from 1.
    """

    def __init__(self, position: int, expected: str, found: str) -> None:
        super().__init__(f"at character {position}: expected {expected}, found {found}")
        self.position = position


@dataclass(frozen=True, slots=True)
class Scale:
    """What a rule needs to know of a criterion.

    Attributes:
        key: Its name in the rule.
        levels: Level values, ascending.
        gate: The score at and above which it passes.
        weight: Its share in the total.
        veto: Whether failing it fails the item whatever the rest says.
    """

    key: str
    levels: tuple[float, ...]
    gate: float
    weight: float = 1.0
    veto: bool = False


class Answers(NamedTuple):
    """What is known of a test for each item: surely true, surely false, or neither.

    Attributes:
        yes: Shape (items,).
        no: Shape (items,).
    """

    yes: Bools
    no: Bools

    @property
    def undefined(self) -> Bools:
        """Items for which a missing score could turn the answer either way."""
        return np.asarray(~self.yes & ~self.no)


class Bounds(NamedTuple):
    """The least and the greatest value a number can have for each item; they differ where a score is missing."""

    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True)
class Table:
    """Scores of items on every criterion of a rubric.

    Attributes:
        scales: The criteria, in the order of the columns.
        scores: Shape (items, criteria), nan where there is no score.
    """

    scales: tuple[Scale, ...]
    scores: Floats


Test = Callable[[Table], Answers]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that was read.

    Attributes:
        text: As it was written; empty for "every criterion at its gate".
        test: What it asks of a table of scores.
    """

    text: str
    test: Test

    def decide(self, table: Table) -> Answers:
        """Which items are ready: those that meet the rule and fail no veto criterion."""
        return _all([self.test(table), *(_at_gate(place, table) for place in _vetoes(table.scales))])


@dataclass(frozen=True, slots=True)
class SystemDecisions:
    """What a rule makes of one system's answers.

    Attributes:
        system: Its name.
        items: Answers of the system.
        ready: Those that are ready.
        not_ready: Those that are not.
        undefined: Those of which a missing score leaves it open.
        score: Mean score out of 10 over the items with every score; None without any.
        scored: Items with every score.
        lowest: For each criterion, items at its lowest level, shape (criteria,).
    """

    system: str
    items: int
    ready: int
    not_ready: int
    undefined: int
    score: float | None
    scored: int
    lowest: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A level that counts as another one, where it applies.

    Attributes:
        criterion: Key of the criterion.
        before: The level that was given.
        after: The level it counts as.
    """

    criterion: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Moves:
    """How totals and decisions differ between two tables of the same items.

    Attributes:
        items: Items compared.
        risen: Items whose total is higher in the second.
        fallen: Items whose total is lower.
        same: Items with the same total.
        open: Items without a total in one of the two.
        by: How often each difference of totals occurs, ascending by difference.
        ready_before: Ready items in the first.
        ready_after: Ready items in the second.
        became_ready: Shape (items,).
        lost_ready: Shape (items,).
    """

    items: int
    risen: int
    fallen: int
    same: int
    open: int
    by: tuple[tuple[float, int], ...]
    ready_before: int
    ready_after: int
    became_ready: Bools
    lost_ready: Bools


@dataclass(frozen=True, slots=True)
class PairOrder:
    """Pairs of candidates in two orders.

    Attributes:
        pairs: All pairs.
        same: Pairs in the same order in both.
        opposite: Pairs in opposite order.
        tied: Pairs that one of the two does not separate.
        undefined: Pairs of which one has no total.
    """

    pairs: int
    same: int
    opposite: int
    tied: int
    undefined: int


def parse_rule(text: str, scales: Sequence[Scale]) -> Rule:
    """Read a rule; an empty one is "every criterion at its gate".

    Args:
        text: The rule.
        scales: The criteria it may name.

    Raises:
        RuleError: With the position and what was expected there.

    >>> scales = (Scale("correctness", (0, 1, 2), gate=2), Scale("format", (0, 1, 2), gate=1))
    >>> rule = parse_rule("ready when correctness is 2 and no criterion is 0", scales)
    >>> rule.decide(Table(scales, np.array([[2, 1], [2, 0], [np.nan, 0], [np.nan, 2]]))).yes.tolist()
    [True, False, False, False]
    >>> parse_rule("correctness is", scales)
    Traceback (most recent call last):
        ...
    core.stats.decision.RuleError: at character 15: expected a number, found the end
    """
    if not text.strip():
        return Rule("", _every_gate)
    if len(text) > LONGEST_RULE:
        raise RuleError(LONGEST_RULE + 1, f"a rule of at most {LONGEST_RULE:,} characters", f"{len(text):,} characters")
    return Rule(text.strip(), _Parser(text, scales).rule())


def totals(table: Table) -> Floats:
    """Weighted sum of each item's scores, shape (items,); nan where a score is missing."""
    return np.asarray(table.scores @ _weights(table.scales))


def scores_out_of_ten(table: Table) -> Floats:
    """Totals moved to 0 for the lowest level everywhere and 10 for the highest; nan where a score is missing."""
    weights = _weights(table.scales)
    lowest = float(weights @ [scale.levels[0] for scale in table.scales])
    highest = float(weights @ [scale.levels[-1] for scale in table.scales])
    if highest == lowest:  # every weight is 0
        return np.full(len(table.scores), np.nan)
    return np.asarray(OUT_OF * (totals(table) - lowest) / (highest - lowest))


def summarise_systems(table: Table, rule: Rule, systems: Sequence[str]) -> tuple[SystemDecisions, ...]:
    """What the rule makes of each system's answers, systems in alphabetical order."""
    names = np.asarray(systems, dtype=object)
    answers, scores = rule.decide(table), scores_out_of_ten(table)
    at_lowest = table.scores == [scale.levels[0] for scale in table.scales]
    found = []
    for name in sorted(set(systems)):
        own = names == name
        known = scores[own & np.isfinite(scores)]
        found.append(
            SystemDecisions(
                system=name,
                items=int(own.sum()),
                ready=int(answers.yes[own].sum()),
                not_ready=int(answers.no[own].sum()),
                undefined=int(answers.undefined[own].sum()),
                score=float(known.mean()) if len(known) else None,
                scored=len(known),
                lowest=tuple(int(count) for count in at_lowest[own].sum(axis=0)),
            )
        )
    return tuple(found)


def apply_what_if(table: Table, change: WhatIf, where: Bools | None = None) -> Table:
    """The table in which one level counts as another.

    Args:
        table: Scores.
        change: Which level of which criterion.
        where: Only these items, shape (items,); all of them when None.

    Raises:
        ValueError: For a criterion that the table has not.
    """
    column = _column(change.criterion, table.scales)
    moved = table.scores[:, column] == change.before
    if where is not None:
        moved &= where
    scores = table.scores.copy()
    scores[moved, column] = change.after
    return replace(table, scores=scores)


def compare_decisions(before: Table, after: Table, rule: Rule) -> Moves:
    """How totals and ready items move between two tables of the same items."""
    difference = np.round(totals(after) - totals(before), 9)
    known = difference[np.isfinite(difference)]
    values, counts = np.unique(known, return_counts=True)
    first, second = rule.decide(before).yes, rule.decide(after).yes
    return Moves(
        items=len(difference),
        risen=int((known > 0).sum()),
        fallen=int((known < 0).sum()),
        same=int((known == 0).sum()),
        open=len(difference) - len(known),
        by=tuple((float(value), int(count)) for value, count in zip(values, counts, strict=True)),
        ready_before=int(first.sum()),
        ready_after=int(second.sum()),
        became_ready=~first & second,
        lost_ready=first & ~second,
    )


def order_pairs(ranks: Sequence[float], values: Floats) -> PairOrder:
    """Compare a reader's ranks (1 is best) with totals (more is better), over all pairs of candidates."""
    first, second = np.triu_indices(len(ranks), k=1)
    reader = -np.sign(np.asarray(ranks, float)[first] - np.asarray(ranks, float)[second])
    rubric = np.sign(values[first] - values[second])
    known = np.isfinite(rubric)
    product = (reader * np.nan_to_num(rubric))[known]
    return PairOrder(
        pairs=len(first),
        same=int((product > 0).sum()),
        opposite=int((product < 0).sum()),
        tied=int((product == 0).sum()),
        undefined=int((~known).sum()),
    )


class _Token(NamedTuple):
    kind: str
    text: str
    position: int

    @property
    def words(self) -> str:
        return "the end" if self.kind == _END else f"“{self.text}”"


class _Parser:
    """Reads a rule from left to right, one method a line of the grammar."""

    def __init__(self, text: str, scales: Sequence[Scale]) -> None:
        self._tokens = _tokenize(text)
        self._scales = {scale.key: scale for scale in scales}
        self._folded = {scale.key.casefold(): scale.key for scale in scales}
        self._place = 0
        self._depth = 0

    def rule(self) -> Test:
        if self._at("ready"):
            self._next()
            if not self._take("when"):
                raise self._error("“when”")
        test = self._either()
        if self._now.kind != _END:
            raise self._error("“and”, “or” or the end of the rule")
        return test

    def _either(self) -> Test:
        tests = [self._both()]
        while self._take("or"):
            tests.append(self._both())
        return tests[0] if len(tests) == 1 else lambda table: _any([test(table) for test in tests])

    def _both(self) -> Test:
        tests = [self._one()]
        while self._take("and"):
            tests.append(self._one())
        return tests[0] if len(tests) == 1 else lambda table: _all([test(table) for test in tests])

    def _one(self) -> Test:
        self._depth += 1
        if self._depth > DEEPEST_RULE:
            raise self._error(f"at most {DEEPEST_RULE} levels of “not” and parentheses")
        test = self._nested()
        self._depth -= 1
        return test

    def _nested(self) -> Test:
        if self._take("not"):
            inner = self._one()
            return lambda table: _not(inner(table))
        if self._take("("):
            test = self._either()
            if not self._take(")"):
                raise self._error("“)”")
            return test
        return self._test()

    def _test(self) -> Test:
        token = self._now
        word = token.text.casefold() if token.kind == _WORD else ""
        if word in _QUANTIFIERS:
            self._next()
            return self._quantified(_QUANTIFIERS[word])
        if word == "count":
            self._next()
            return self._counted()
        if word in _NUMBERS:
            self._next()
            return self._compared(_NUMBERS[word])
        return self._criterion()

    def _quantified(self, quantifier: Quantifier) -> Test:
        self._criterion_word()
        compare, number = self._comparison()

        def test(table: Table) -> Answers:
            each = [_compare(_score_bounds(table, place), compare, number) for place in range(len(table.scales))]
            return _all(each) if quantifier == "all" else _any(each) if quantifier == "any" else _not(_any(each))

        return test

    def _counted(self) -> Test:
        if not self._take("of"):
            raise self._error("“of”")
        self._criterion_word()
        compare: Compare = "is"
        if self._at("at") and self._tokens[self._place + 1].kind == _NUMBER:
            self._next()
            number = self._number()
        else:
            compare, number = self._comparison()

        def count(table: Table) -> Bounds:
            each = [_compare(_score_bounds(table, place), compare, number) for place in range(len(table.scales))]
            sure = np.sum([answers.yes for answers in each], axis=0)
            return Bounds(sure, sure + np.sum([answers.undefined for answers in each], axis=0))

        return self._compared(count)

    def _criterion(self) -> Test:
        token = self._now
        if token.kind not in (_WORD, _QUOTED):
            raise self._error("a criterion, “total”, “score”, “no”, “any”, “all”, “count”, “not” or “(”")
        key = self._folded.get(token.text.casefold(), token.text)
        if key not in self._scales:
            raise self._error(f"a criterion ({', '.join(self._scales)}), “total” or “score”")
        self._next()
        place = list(self._scales).index(key)
        start = self._place
        compare, number = self._comparison()
        if compare in ("is", "is not") and number not in self._scales[key].levels:
            levels = ", ".join(f"{level:g}" for level in self._scales[key].levels)
            self._place = max(start, self._place - 1)
            raise self._error(f"a level of {key} ({levels})")
        return lambda table: _compare(_score_bounds(table, place), compare, number)

    def _compared(self, of: Callable[[Table], Bounds]) -> Test:
        compare, number = self._comparison()
        return lambda table: _compare(of(table), compare, number)

    def _comparison(self) -> tuple[Compare, float]:
        return self._compare(), self._number()

    def _compare(self) -> Compare:
        if self._take("is"):
            if self._take("not"):
                return "is not"
            return self._longer_compare() or "is"
        found = self._longer_compare()
        if found is None:
            raise self._error("a comparison (is, is not, >=, >, <=, <, at least, at most, above, below)")
        return found

    def _longer_compare(self) -> Compare | None:
        if self._at("at"):
            self._next()
            if self._take("least"):
                return ">="
            if self._take("most"):
                return "<="
            raise self._error("“least” or “most”")
        found = _SIGNS.get(self._now.text.casefold()) if self._now.kind in (_SIGN, _WORD) else None
        if found:
            self._next()
        return found

    def _number(self) -> float:
        if self._now.kind != _NUMBER:
            raise self._error("a number")
        return float(self._next().text)

    def _criterion_word(self) -> None:
        if not (self._take("criterion") or self._take("criteria")):
            raise self._error("“criterion” or “criteria”")

    @property
    def _now(self) -> _Token:
        return self._tokens[self._place]

    def _at(self, word: str) -> bool:
        return self._now.kind in (_WORD, _SIGN) and self._now.text.casefold() == word

    def _take(self, word: str) -> bool:
        found = self._at(word)
        self._place += found
        return found

    def _next(self) -> _Token:
        self._place += 1
        return self._tokens[self._place - 1]

    def _error(self, expected: str) -> RuleError:
        return RuleError(self._now.position, expected, self._now.words)


def _tokenize(text: str) -> list[_Token]:
    tokens, at = [], 0
    end = len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            raise RuleError(at + 1, "a word, a number, a comparison or a closed quotation", f"“{text[at]}”")
        kind = str(match.lastgroup)
        start = match.start(kind) - (kind == _QUOTED)
        tokens.append(_Token(kind, match[kind], start + 1))
        at = match.end()
    return [*tokens, _Token(_END, "", end + 1)]


def _compare(bounds: Bounds, compare: Compare, number: float) -> Answers:
    low, high = bounds
    if compare in ("is", "is not"):
        same = Answers((low == number) & (high == number), (high < number) | (low > number))
        return same if compare == "is" else _not(same)
    if compare in (">=", "<"):
        reached = Answers(low >= number, high < number)
        return reached if compare == ">=" else _not(reached)
    above = Answers(low > number, high <= number)
    return above if compare == ">" else _not(above)


def _all(tests: Sequence[Answers]) -> Answers:
    return Answers(
        np.logical_and.reduce([test.yes for test in tests]), np.logical_or.reduce([test.no for test in tests])
    )


def _any(tests: Sequence[Answers]) -> Answers:
    return _not(_all([_not(test) for test in tests]))


def _not(test: Answers) -> Answers:
    return Answers(test.no, test.yes)


def _every_gate(table: Table) -> Answers:
    return _all([_at_gate(place, table) for place in range(len(table.scales))])


def _at_gate(place: int, table: Table) -> Answers:
    return _compare(_score_bounds(table, place), ">=", table.scales[place].gate)


def _vetoes(scales: Sequence[Scale]) -> list[int]:
    return [place for place, scale in enumerate(scales) if scale.veto]


def _score_bounds(table: Table, place: int) -> Bounds:
    return _bounds(table.scores[:, place])


def _bounds(values: Floats) -> Bounds:
    """What is not known may be anything."""
    known = np.isfinite(values)
    return Bounds(np.where(known, values, -np.inf), np.where(known, values, np.inf))


def _total_bounds(table: Table) -> Bounds:
    return _bounds(totals(table))


def _score_out_of_ten_bounds(table: Table) -> Bounds:
    return _bounds(scores_out_of_ten(table))


_NUMBERS: Mapping[str, Callable[[Table], Bounds]] = {"total": _total_bounds, "score": _score_out_of_ten_bounds}


def _weights(scales: Sequence[Scale]) -> Floats:
    return np.array([scale.weight for scale in scales])


def _column(key: str, scales: Sequence[Scale]) -> int:
    for place, scale in enumerate(scales):
        if scale.key == key:
            return place
    raise ValueError(f"there is no criterion {key}; there are {', '.join(scale.key for scale in scales)}")
