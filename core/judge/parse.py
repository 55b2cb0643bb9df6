"""From a judge's raw reply to scores, or to the precise reason why there are none. Pure, and it never raises.

Strict where a score is concerned, lenient only where nothing about it can change: prose and code fences around the one
object are passed over, comments and raw control characters inside it are repaired and recorded as repaired. A reply
that does not say exactly one thing about every criterion gives no score at all.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum, auto
from typing import NamedTuple

from core.judge.prompt import PLACEHOLDER, RATIONALE, level_text, verdict_values
from core.judge.protocol import Form, storable
from core.store.queries import CriterionView
from core.store.specs import ScoreRow
from core.store.tables import Unscored

PARSER_VERSION = "1"

MOST_CHARACTERS = 200_000
"""Of a reply that is read; the longest honest one is a small part of this."""

MOST_DEPTH = 32
MOST_OPENINGS = 2_000
_MOST_RAW = 200
_LONGEST_NUMBER = 40
_TRUNCATED = frozenset(("max_tokens", "model_context_window_exceeded"))

COMMENT = "comment"
CONTROL_CHARACTER = "control character in a string"
EMPHASIS = "emphasis around the verdict line"
CHANGED = "verdict_changed"
LATE_RATIONALE = "rationale_after_scores"


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a reply says.

    Attributes:
        reason: Why there is no score, or None when every criterion has one.
        detail: The reason in words, naming the criterion and the value.
        values: Level by criterion key; empty unless every criterion has one.
        raw: What was written, by criterion key, where it is not the level's own text.
        repairs: What was repaired, sorted; empty for a reply that is clean by itself.
        flags: What a reader should know although the score stands.
    """

    reason: Unscored | None
    detail: str = ""
    values: tuple[tuple[str, float], ...] = ()
    raw: tuple[tuple[str, str], ...] = ()
    rationale: str | None = None
    repairs: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    @property
    def repaired(self) -> bool:
        """Whether anything was repaired."""
        return bool(self.repairs)

    def rows(self, criteria: Sequence[CriterionView]) -> tuple[ScoreRow, ...]:
        """One row a criterion, as the store takes them; the rationale stands with the first."""
        values, raw = dict(self.values), dict(self.raw)
        reason = self.reason.value if self.reason else None
        return tuple(
            ScoreRow(
                criterion_id=criterion.id,
                value=values.get(criterion.key),
                unscored=reason,
                raw_value=raw.get(criterion.key),
                rationale=self.rationale if place == 0 else None,
            )
            for place, criterion in enumerate(criteria)
        )


def parse(text: str, criteria: Sequence[CriterionView], form: Form, stop_reason: str | None = None) -> Parsed:
    """Read a reply.

    A stop reason wins over the text: a refused or cut reply is never a score, however complete it looks.

    Args:
        text: The reply, of any length and content.
        criteria: What was asked, in rubric order; exactly one for a VERDICT line.
        form: How it was asked.
        stop_reason: In the words of the Messages API.
    """
    if stop_reason == "refusal":
        return Parsed(Unscored.REFUSAL, "the model refused to answer")
    if stop_reason in _TRUNCATED:
        seen = "after" if text.strip() else "before any visible text, after"
        return Parsed(Unscored.TRUNCATED, f"the reply was cut {seen} its last permitted token ({stop_reason})")
    by_line = form in (Form.VERDICT, Form.PAIRWISE)
    missing = Unscored.VERDICT_MISSING if by_line else Unscored.NOT_JSON
    if not text.strip():
        return Parsed(missing, "the reply is empty")
    if len(text) > MOST_CHARACTERS:
        return Parsed(missing, f"the reply has {len(text):,} characters; at most {MOST_CHARACTERS:,} are read")
    return _read_line(text, criteria[0], form) if by_line else _read_object(text, criteria)


_MENTION = re.compile(r"VERDICT[ \t]*:[ \t*_`]*(?P<word>\w+)", re.IGNORECASE)


def _read_line(text: str, criterion: CriterionView, form: Form) -> Parsed:
    """The last line that is nothing but a verdict; lines before it may have said something else."""
    values = verdict_values(criterion, form)
    menu = ", ".join(values)
    lines = text.split("\n")
    found = {place: verdict for place, line in enumerate(lines) if (verdict := _verdict_line(line))}
    if not found:
        return Parsed(Unscored.VERDICT_MISSING, f"no line is nothing but VERDICT: and one of {menu}")
    place = max(found)
    last = found[place]
    raw = ((criterion.key, _shown(last.word)),)
    if last.word not in values:
        return Parsed(Unscored.VERDICT_MISSING, f"{_shown(last.word) or 'nothing'} is not one of {menu}", raw=raw)
    later = {match["word"].casefold() for match in _MENTION.finditer("\n".join(lines[place + 1 :]))}
    if others := (later & set(values)) - {last.word}:
        detail = f"the line says {last.word}, the text behind it says {' and '.join(sorted(others))}"
        return Parsed(Unscored.CONFLICTING_VERDICTS, detail, raw=raw)
    rationale = "\n".join(line for place, line in enumerate(lines) if place not in found).strip()
    if not rationale:
        return Parsed(Unscored.NO_RATIONALE, "nothing but the verdict was written", raw=raw)
    earlier = {verdict.word for verdict in found.values()} & set(values)
    return Parsed(
        None,
        values=((criterion.key, values[last.word]),),
        raw=raw,
        rationale=storable(rationale),
        repairs=(EMPHASIS,) if last.marked else (),
        flags=(CHANGED,) if earlier - {last.word} else (),
    )


class _Verdict(NamedTuple):
    word: str
    marked: bool


def _verdict_line(line: str) -> _Verdict | None:
    """The verdict of a line that begins with VERDICT:, Markdown emphasis around the whole line aside."""
    line = line.strip(" \t\r")
    marked = line.startswith("**")
    bare = line.removeprefix("**").lstrip(" \t")
    if not bare.startswith("VERDICT:"):
        return None
    word = bare.removeprefix("VERDICT:").strip(" \t").casefold()
    if marked:
        word = word[:-2].rstrip(" \t") if word.endswith("**") else f"**{word}"
    return _Verdict(word, marked)


def _read_object(text: str, criteria: Sequence[CriterionView]) -> Parsed:
    """The one JSON object of a reply."""
    keys = tuple(criterion.key for criterion in criteria)
    objects, unclear = _objects(text, keys)
    if unclear:
        return Parsed(Unscored.NOT_JSON, unclear)
    naming = [found for found in objects if found.names_any] or objects[:1]
    if not naming:
        return Parsed(Unscored.NOT_JSON, "no JSON object in the reply")
    found = naming[0]
    raw = tuple((key, _shown(found.tokens[key][0].text)) for key in keys if key in found.tokens)
    problem = _several(naming, keys) or _absent(found, keys) or _beside(found, text, keys)
    if problem:
        return Parsed(*problem, raw=raw)
    levels = [_level(found.tokens[criterion.key][0], criterion) for criterion in criteria]
    rationale = _rationale(found)
    problem = next((level for level in levels if isinstance(level, _Problem)), None) or _unread(found, rationale)
    if problem:
        return Parsed(*problem, raw=raw)
    values = [(key, level) for key, level in zip(keys, levels, strict=True) if isinstance(level, float)]
    exact = dict(values)
    order = list(found.tokens)
    return Parsed(
        None,
        values=tuple(values),
        raw=tuple((key, written) for key, written in raw if written != level_text(exact[key])),
        rationale=rationale,
        repairs=tuple(sorted(found.repairs)),
        flags=(LATE_RATIONALE,) if order.index(RATIONALE) > min(map(order.index, keys)) else (),
    )


class _Problem(NamedTuple):
    reason: Unscored
    detail: str


def _several(naming: list["_Object"], keys: tuple[str, ...]) -> _Problem | None:
    """Why the reply says more than one thing, even where it says the same thing twice."""
    if len(naming) > 1:
        return _Problem(Unscored.CONFLICTING_VERDICTS, f"{len(naming)} objects give scores; one was asked for")
    found = naming[0]
    for key in (*keys, RATIONALE):
        if len(written := found.tokens.get(key, [])) > 1:
            shown = " and ".join(_shown(token.text, 40) for token in written[:3])
            return _Problem(Unscored.CONFLICTING_VERDICTS, f"{key} stands {len(written)} times: {shown}")
    if found.nested and any(key in found.tokens for key in keys):
        return _Problem(Unscored.CONFLICTING_VERDICTS, f"{found.nested} stands once more, deeper in the object")
    return None


def _beside(found: "_Object", text: str, keys: tuple[str, ...]) -> _Problem | None:
    """A score beside the object, in something that is no object by itself, may be the one that was meant."""
    given = re.compile(f'"({"|".join(map(re.escape, keys))})"\\s*+:\\s*+-?[0-9]')
    again = given.search(text, 0, found.start) or given.search(text, found.end)
    return _Problem(Unscored.CONFLICTING_VERDICTS, f"{again[1]} stands once more, beside the object") if again else None


def _absent(found: "_Object", keys: tuple[str, ...]) -> _Problem | None:
    absent = [key for key in keys if key not in found.tokens]
    return _Problem(Unscored.MISSING_CRITERION, f"no score for {', '.join(absent)}") if absent else None


def _unread(found: "_Object", rationale: str | None) -> _Problem | None:
    if found.not_json:
        return _Problem(Unscored.NOT_JSON, f"{found.not_json} is not JSON")
    return None if rationale else _Problem(Unscored.NO_RATIONALE, "the rationale is missing, empty or not a text")


_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORDS = frozenset(("true", "false", "null"))
_NO_JSON = frozenset(("NaN", "Infinity", "-Infinity"))


def _level(token: "_Token", criterion: CriterionView) -> "float | _Problem":
    """The level that a value is, or why it is none."""
    whole = all(level.is_integer() for level in criterion.levels)
    scale, shown = _scale(criterion.levels), _shown(token.text, 40)
    if token.kind is not _Kind.NUMBER or not (_INTEGER if whole else _DECIMAL).fullmatch(token.text):
        needed = f"{'an integer' if whole else 'a plain number'} in {scale} is needed"
        return _Problem(Unscored.WRONG_TYPE, f"{criterion.key} is {shown}, {_what(token)}; {needed}")
    if len(token.text) <= _LONGEST_NUMBER:
        written = Decimal(token.text)
        for level in criterion.levels:
            if Decimal(level_text(level)) == written:
                return level
    return _Problem(Unscored.OUT_OF_RANGE, f"{criterion.key} is {shown}, outside {scale}")


def _what(token: "_Token") -> str:
    """What a value is that is no score."""
    if token.kind is _Kind.WORD:
        return "which is no number" if token.text in _WORDS else "which is not JSON"
    return _WHAT[token.kind]


def _scale(levels: tuple[float, ...]) -> str:
    first, last = levels[0], levels[-1]
    if list(levels) == [first + step for step in range(len(levels))] and first.is_integer():
        return f"{level_text(first)}..{level_text(last)}"
    return ", ".join(map(level_text, levels))


def _rationale(found: "_Object") -> str | None:
    written = found.tokens.get(RATIONALE)
    if not written or written[0].kind is not _Kind.STRING:
        return None
    words = storable(str(json.loads(written[0].text, strict=False)).strip())
    return words if words and words != PLACEHOLDER else None


def _shown(text: str, longest: int = _MOST_RAW) -> str:
    text = storable(text[: longest + 1])
    return text if len(text) <= longest else text[:longest] + "…"


class _Kind(Enum):
    STRING = auto()
    NUMBER = auto()
    WORD = auto()
    OBJECT = auto()
    LIST = auto()
    SIGN = auto()


_WHAT = {
    _Kind.STRING: "a string",
    _Kind.NUMBER: "a number in another notation",
    _Kind.OBJECT: "an object",
    _Kind.LIST: "a list",
}


class _Token(NamedTuple):
    kind: _Kind
    text: str


@dataclass(slots=True)
class _Object:
    """One object or list of the reply.

    Attributes:
        tokens: The values of each key, in the order in which the keys first stand; nested values are not kept.
        nested: A criterion that is named deeper than the first level.
        not_json: The first word that is no JSON, such as NaN.
        broken_at: Where it stopped making sense; -1 for a whole one.
    """

    start: int
    is_list: bool
    end: int = -1
    tokens: dict[str, list[_Token]] = field(default_factory=dict)
    names_any: bool = False
    nested: str = ""
    not_json: str = ""
    repairs: set[str] = field(default_factory=set)
    broken_at: int = -1
    too_deep: bool = False


_LEXEME = re.compile(
    r"""(?P<space>[ \t\r\n]++)
    |(?P<comment>//[^\n]*+)
    |(?P<string>"[^"\\]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\]*+)*+")
    |(?P<word>[^\s"{}\[\],:/]++)
    |(?P<sign>[{}\[\],:])""",
    re.VERBOSE,
)
_CONTROL = re.compile(r"[\x00-\x1f]")
_OPEN = re.compile(r"[{\[]")


def _objects(text: str, keys: tuple[str, ...]) -> tuple[list[_Object], str]:
    """The whole objects of a reply, or why it is unclear what it says.

    Every character is read once: after an object that breaks off, reading goes on where it broke, not where it began,
    so the time grows with the length alone. Prose may open a brace that never closes; that is no object, unless it
    has given a criterion a value by then.
    """
    objects: list[_Object] = []
    place = openings = 0
    last_close = text.rfind("*/")
    while opening := _OPEN.search(text, place):
        openings += 1
        if openings > MOST_OPENINGS:
            return [], f"more than {MOST_OPENINGS:,} objects and lists open"
        found = _Reader(text, opening.start(), frozenset(keys), last_close).read()
        if found.too_deep:
            return [], f"nested deeper than {MOST_DEPTH} levels"
        if found.broken_at >= 0:
            if found.names_any:
                return [], f"an object that gives a score breaks off at character {found.broken_at + 1:,}"
            place = max(found.broken_at, opening.end())
            continue
        if found.is_list and found.names_any:
            return [], "the scores stand in a list; one object was asked for"
        if not found.is_list:
            objects.append(found)
        place = found.end
    return objects, ""


class _State(Enum):
    """What may stand next: a value; the first of a container or its end; a key; a colon; a comma or the end."""

    VALUE = auto()
    FIRST = auto()
    KEY = auto()
    COLON = auto()
    COMMA = auto()


_ENDS = (_State.FIRST, _State.COMMA)
_NESTED = {"{": _Token(_Kind.OBJECT, "{…}"), "[": _Token(_Kind.LIST, "[…]")}
_CLOSING = {"{": "}", "[": "]"}


class _Reader:
    """Reads one object or list without recursion, so that depth costs nothing."""

    def __init__(self, text: str, start: int, keys: frozenset[str], last_close: int) -> None:
        self._text = text
        self._place = start
        self._at = start
        self._keys = keys
        self._last_close = last_close
        self._stack: list[str] = []
        self._key = ""
        self._found = _Object(start, is_list=text[start] == "[")

    def read(self) -> _Object:
        """The object, whole or broken."""
        state: _State | None = _State.VALUE
        while state:
            token = self._next()
            state = self._step(state, token) if token else None
        if self._stack:
            self._found.broken_at = self._at
        self._found.end = self._place
        return self._found

    def _step(self, state: "_State", token: _Token) -> "_State | None":
        """What may follow `token`; None at the end of the object, whole or broken."""
        after: _State | None = None
        if state in _ENDS and token.text == _CLOSING[self._stack[-1]]:
            self._stack.pop()
            after = _State.COMMA if self._stack else None
        elif state is _State.COLON:
            after = _State.VALUE if token.text == ":" else None
        elif state is _State.COMMA:
            after = self._inside() if token.text == "," else None
        elif self._inside() is _State.KEY and state is not _State.VALUE:
            if token.kind is _Kind.STRING:
                self._key = json.loads(token.text, strict=False)
                after = _State.COLON
        elif token.kind is not _Kind.SIGN:
            self._keep(token)
            after = _State.COMMA
        elif token.text in _NESTED:
            self._keep(_NESTED[token.text])
            self._stack.append(token.text)
            self._found.too_deep = len(self._stack) > MOST_DEPTH
            after = None if self._found.too_deep else _State.FIRST
        return after

    def _inside(self) -> "_State":
        """What every part of the open container begins with."""
        return _State.KEY if self._stack and self._stack[-1] == "{" else _State.VALUE

    def _keep(self, token: _Token) -> None:
        """Note a value under its key."""
        if token.text in _NO_JSON and token.kind is _Kind.WORD:
            self._found.not_json = self._found.not_json or token.text
        if not self._stack or self._stack[-1] != "{":
            return
        self._found.names_any |= self._key in self._keys
        if len(self._stack) == 1:
            self._found.tokens.setdefault(self._key, []).append(token)
        elif self._key in self._keys:
            self._found.nested = self._found.nested or self._key

    def _next(self) -> _Token | None:
        """The next token; None at the end of the text or where there is none."""
        while True:
            self._at = self._place
            if self._text.startswith("/*", self._place):
                if self._place + 2 > self._last_close:
                    return None
                self._place = self._text.index("*/", self._place + 2) + 2
                self._found.repairs.add(COMMENT)
                continue
            lexeme = _LEXEME.match(self._text, self._place)
            if lexeme is None:
                return None
            self._place = lexeme.end()
            if lexeme.lastgroup == "comment":
                self._found.repairs.add(COMMENT)
            elif lexeme.lastgroup != "space":
                return self._token(lexeme[0], lexeme.lastgroup or "")

    def _token(self, text: str, group: str) -> _Token | None:
        if group == "string":
            if _CONTROL.search(text):
                self._found.repairs.add(CONTROL_CHARACTER)
            return _Token(_Kind.STRING, text)
        if group == "sign":
            return _Token(_Kind.SIGN, text)
        if _NUMBER.fullmatch(text):
            return _Token(_Kind.NUMBER, text)
        return _Token(_Kind.WORD, text) if text in _WORDS | _NO_JSON else None
