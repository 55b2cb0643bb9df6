"""Which column of a file means what: guessed from names, confirmed by a person, remembered by the header's shape."""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Mapping as AnyMapping
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

from sqlmodel import Session

from core.ingest.records import ROLES, MappingRefused
from core.store.queries import find_mapping
from core.store.tables import Order, Unscored

OK = "ok"
"""What a status word means when the call gave a usable score."""

JOINER = " · "
"""Stands between the values of several columns that feed one role."""

LABEL_JOINER = "\x1f"
"""Stands between the labels of several columns, each of which is a rater."""

JOINABLE = ("item", "judge", "prompt_version", "criterion", "slice", "system", "system_b")
"""Roles that several columns may feed together; of `label` each column is a rater of its own."""

_OF_SCORES = ("judge", "model", "criterion", "repetition", "status", "rationale")
"""Roles that mean nothing in a file of texts alone: with them, a score column was probably missed."""

STATUS_WORDS: dict[str, str] = {
    "": OK,
    "ok": OK,
    "scored": OK,
    "success": OK,
    "succeeded": OK,
    "parsed": OK,
    "unparsed": Unscored.VERDICT_MISSING,
    "unparsable": Unscored.VERDICT_MISSING,
    "parse_error": Unscored.VERDICT_MISSING,
    "no_verdict": Unscored.VERDICT_MISSING,
    "invalid_json": Unscored.NOT_JSON,
    "json_error": Unscored.NOT_JSON,
    "refused": Unscored.REFUSAL,
    "max_tokens": Unscored.TRUNCATED,
    "length": Unscored.TRUNCATED,
    "error": Unscored.REQUEST_ERROR,
    "errored": Unscored.REQUEST_ERROR,
    "failed": Unscored.REQUEST_ERROR,
    "timeout": Unscored.REQUEST_ERROR,
    "canceled": Unscored.CANCELLED,
    "conflicting": Unscored.CONFLICTING_VERDICTS,
    "conflicting_tags": Unscored.CONFLICTING_VERDICTS,
    **{reason.value: reason.value for reason in Unscored},
}
"""Status words known without asking. A reply that could not be parsed lacks a verdict; that it was to be JSON, only
the words that say so tell."""

ORDER_WORDS: dict[str, str] = {
    "": Order.SINGLE,
    "single": Order.SINGLE,
    **dict.fromkeys(("ab", "a_first", "original", "a/b"), Order.AB),
    **dict.fromkeys(("ba", "b_first", "swapped", "reversed", "b/a"), Order.BA),
}
"""Order words known without asking: in ab the first candidate of the pair stands in slot 1."""

_OPPOSITES = (("pass", "fail"), ("yes", "no"), ("true", "false"))

_SLOT_WORDS = {"first": 1.0, "tie": 0.0, "second": -1.0}
_STEPS = {"A>>B": 2.0, "A>B": 1.0, "A=B": 0.0, "B>A": -1.0, "B>>A": -2.0}
"""Words of the five-step scale; A is the first slot unless the mapping says that verdicts name candidates."""

_NAMES: dict[str, tuple[str, ...]] = {
    "item": (
        "item_id",
        "item",
        "pair_id",
        "example_id",
        "instance_id",
        "question_id",
        "sample_id",
        "session_id",
        "id",
        "number",
    ),
    "repetition": ("run_index", "repetition", "rep", "run", "repeat", "trial", "sample_index", "iteration"),
    "criterion": ("criterion", "criteria", "dimension", "aspect", "metric"),
    "judge": ("judge", "judge_name", "judge_id", "prompt", "snapshot"),
    "model": ("model", "judge_model", "model_id"),
    "prompt_version": ("prompt_version", "prompt_hash", "release"),
    "rubric_version": ("rubric_version",),
    "score": ("score", "rating", "choice", "verdict", "judge_score", "value", "grade", "first_tag"),
    "status": ("status", "outcome", "parse_status"),
    "rationale": ("rationale", "explanation", "reasoning", "raw_reply", "raw_if_odd", "raw_tail_if_odd", "comment"),
    "cited_evidence": ("cited_evidence", "evidence", "quote"),
    "boundary_reason": ("boundary_reason",),
    "confidence": ("confidence",),
    "label": ("label", "human_label", "human", "human_score", "human_mean", "gold", "gold_label"),
    "label_reason": ("label_reason", "human_reason"),
    "rater": ("rater", "annotator", "rater_id", "annotator_id", "labeller"),
    "order": ("order", "slot_order", "presentation_order"),
    "slice": ("slice", "subset", "bench", "category", "kind"),
    "system": ("system", "system_id", "system_a"),
    "system_b": ("system_b",),
    "candidate": ("candidate", "response", "answer", "output", "candidate_a", "response_a"),
    "candidate_b": ("candidate_b", "response_b", "answer_b"),
    "request": ("request", "question", "instruction", "input", "user_request"),
    "reference": ("reference", "reference_answer"),
    "content_sha256": ("content_sha256", "content_hash", "output_sha256", "output_md5", "text_sha256"),
    "response_id": ("response_id", "request_id", "completion_id"),
    "created_at": ("created_at", "timestamp", "created", "judged_at"),
}

_RATER_COLUMN = re.compile(r"(human|annotator|rater|labell?er|expert|grader|label)_?([0-9]+|[a-e])")


@dataclass(frozen=True)
class Mapping:
    """How to read the columns of one file.

    Attributes:
        columns: Role to the columns that feed it; several are joined with " · ".
        constants: Role to a text that stands for every line, for a role that no column feeds.
        values: Text in the score or label column to its number ("A" to 1). Compared without case and outer spaces.
        statuses: Status word to "ok" or an unscored reason, beside the words known anyway.
        orders: Order word to "ab" or "ba", beside the words known anyway.
        by_candidate: Whether the verdict on a pair names a candidate (1 for A, -1 for B, whatever the order) rather
            than a slot (1 for the first, -1 for the second).

    Raises:
        MappingRefused: For a role or a meaning that does not exist, or several columns for a role that takes one.
    """

    columns: AnyMapping[str, tuple[str, ...]] = field(default_factory=dict)
    constants: AnyMapping[str, str] = field(default_factory=dict)
    values: AnyMapping[str, float] = field(default_factory=dict)
    statuses: AnyMapping[str, str] = field(default_factory=dict)
    orders: AnyMapping[str, str] = field(default_factory=dict)
    by_candidate: bool = False

    def __post_init__(self) -> None:
        for role in (*self.columns, *self.constants):
            if role not in ROLES:
                raise MappingRefused(f"{role} is no role; the roles are {', '.join(ROLES)}")
        for role, names in self.columns.items():
            if len(names) > 1 and role not in (*JOINABLE, "label"):
                raise MappingRefused(f"{role} takes one column, not {', '.join(names)}")
        if self.raters and (self.has("rater") or self.has("label_reason")):
            raise MappingRefused(
                f"each of {', '.join(self.raters)} is a rater, so no column can say rater or label_reason"
            )
        _check_meanings("status", self.statuses, (OK, *Unscored))
        _check_meanings("order", self.orders, (Order.AB, Order.BA))

    def check(self, header: Sequence[str]) -> None:
        """Refuse columns that the file has not, and a mapping that misses what every import needs."""
        for role, names in self.columns.items():
            for name in names:
                if name not in header:
                    raise MappingRefused(f"{role}: there is no column {name}; the columns are {', '.join(header)}")
        if "item" not in self.columns:
            raise MappingRefused(f"no column is mapped to item; the columns are {', '.join(header)}")
        if not {"score", "label", "candidate"} & self.columns.keys():
            raise MappingRefused(
                "no column is mapped to score or label, nor to candidate for a file of texts; the columns are "
                f"{', '.join(header)}"
            )
        for role in _OF_SCORES if self.texts_only else ():
            if self.has(role):
                raise MappingRefused(
                    f"{role} is said, and no column is mapped to score or label; map one, or leave {role} out to "
                    "import texts alone"
                )

    def has(self, role: str) -> bool:
        """Whether a column or a constant feeds the role."""
        return bool(self.columns.get(role) or self.constants.get(role))

    @property
    def raters(self) -> tuple[str, ...]:
        """The columns that each hold the labels of one rater; empty where one column holds all labels."""
        names = self.columns.get("label", ())
        return names if len(names) > 1 else ()

    @property
    def texts_only(self) -> bool:
        """Whether the file brings texts to judge, and neither scores nor labels."""
        return not (self.has("score") or self.has("label"))

    def picker(self, header: Sequence[str]) -> Callable[[list[str]], tuple[str, ...]]:
        """A function from the values of one line, in header order, to the values of all roles in `ROLES` order.

        The list handed to it is extended in place.
        """
        place = {name: position for position, name in enumerate(header)}
        extras = ["", *self.constants.values()]
        joins: list[tuple[Callable[[Iterable[str]], str], tuple[int, ...]]] = []
        wanted: list[int] = []
        for role in ROLES:
            names = self.columns.get(role, ())
            if len(names) == 1:
                wanted.append(place[names[0]])
            elif names:
                wanted.append(len(header) + len(extras) + len(joins))
                join = _join_labels if role == "label" else _join_parts
                joins.append((join, tuple(place[name] for name in names)))
            elif role in self.constants:
                wanted.append(len(header) + 1 + list(self.constants).index(role))
            else:
                wanted.append(len(header))
        pick: Callable[[list[str]], tuple[str, ...]] = itemgetter(*wanted)

        def joined(values: list[str]) -> tuple[str, ...]:
            values += extras
            values += [join(values[position] for position in parts) for join, parts in joins]
            return pick(values)

        def single(values: list[str]) -> tuple[str, ...]:
            values += extras
            return pick(values)

        return joined if joins else single

    def lines(self) -> list[str]:
        """The mapping in words, one line a role, for a person to confirm."""
        shown = [
            f"{role} = {', '.join(names)}, each a rater"
            if role == "label" and self.raters
            else f"{role} = {JOINER.join(names)}"
            for role, names in self.columns.items()
        ]
        shown += [f"{role} = {text!r} on every line" for role, text in self.constants.items()]
        shown += [f"value {word!r} = {number:g}" for word, number in self.values.items()]
        shown += [f"status {word!r} = {meaning}" for word, meaning in self.statuses.items()]
        shown += [f"order {word!r} = {meaning}" for word, meaning in self.orders.items()]
        named = (
            "candidate: 1 is A, -1 is B, in both orders" if self.by_candidate else "slot: 1 is the first, -1 the second"
        )
        if self.texts_only:
            return [*shown, "texts only: no column holds scores or labels"]
        return [*shown, f"verdicts name the {named}"] if self.has("order") and self.has("score") else shown

    def to_json(self) -> dict[str, Any]:
        """Plain values for the store."""
        return {
            "columns": {role: list(names) for role, names in self.columns.items()},
            "constants": dict(self.constants),
            "values": dict(self.values),
            "statuses": dict(self.statuses),
            "orders": dict(self.orders),
            "by_candidate": self.by_candidate,
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "Mapping":
        """The mapping that `to_json` wrote."""
        columns = {role: tuple(names) for role, names in stored.get("columns", {}).items()}
        parts = ("constants", "values", "statuses", "orders")
        constants, values, statuses, orders = (dict(stored.get(part, {})) for part in parts)
        return cls(columns, constants, values, statuses, orders, bool(stored.get("by_candidate", False)))


def _join_parts(texts: Iterable[str]) -> str:
    return JOINER.join(text.strip() for text in texts)


def _join_labels(texts: Iterable[str]) -> str:
    """Labels of several columns; what stands between them is white space, so that no label can hold it."""
    return LABEL_JOINER.join(" ".join(text.split()) for text in texts)


def _check_meanings(kind: str, words: AnyMapping[str, str], allowed: Sequence[str]) -> None:
    for word, meaning in words.items():
        if meaning not in allowed:
            raise MappingRefused(f"{kind} {word}={meaning}: {meaning!r} is none of {', '.join(map(str, allowed))}")


def guess(header: Sequence[str], sample: Sequence[Sequence[str]] = ()) -> Mapping:
    """A mapping proposed from column names and the first rows; a person confirms it.

    A `model` beside a `judge` column, or in a file without scores and labels, is taken for the system whose text is
    judged. Where one item shows several systems, the system becomes part of the item: texts of two systems are two
    items.
    """
    free = {_plain(name): name for name in reversed(header)}
    columns: dict[str, tuple[str, ...]] = {}
    for role, names in _NAMES.items():
        found = next((free.pop(name) for name in names if name in free), None)
        if found:
            columns[role] = (found,)
    raters = tuple(name for name in header if _RATER_COLUMN.fullmatch(_plain(name)))
    if len(raters) > 1 and not {"label", "rater", "label_reason"} & columns.keys():
        columns["label"] = raters
    mapping = Mapping(columns)
    mapping = _systems_of_a_pair(mapping, header, sample)
    mapping = _words_for_two(mapping, header, sample)
    mapping = _judged_model(mapping)
    return _items_by_system(mapping, header, sample)


def _plain(name: str) -> str:
    return name.strip().lower().replace(" ", "_").replace("-", "_")


def _judged_model(mapping: Mapping) -> Mapping:
    columns = dict(mapping.columns)
    if ("judge" in columns or mapping.texts_only) and "model" in columns and "system" not in columns:
        columns["system"] = columns.pop("model")
    return replace(mapping, columns=columns)


def _systems_of_a_pair(mapping: Mapping, header: Sequence[str], sample: Sequence[Sequence[str]]) -> Mapping:
    """Orders told by where the reference stood: reference and candidate name the two systems of the pair."""
    columns = dict(mapping.columns)
    seen = {value.strip().lower() for value in _values(columns.get("order"), header, sample)}
    if not seen or not seen <= {"ref_first", "ref_second"} or not {"reference", "candidate"} <= columns.keys():
        return mapping
    columns["system"], columns["system_b"] = columns.pop("reference"), columns.pop("candidate")
    choices = {value.strip().lower() for value in _values(columns.get("score"), header, sample)}
    values = {"A": 1.0, "B": -1.0, "C": 0.0} if choices <= {"a", "b", "c", ""} else {}
    return replace(mapping, columns=columns, values=values, orders={"ref_first": Order.AB, "ref_second": Order.BA})


def _words_for_two(mapping: Mapping, header: Sequence[str], sample: Sequence[Sequence[str]]) -> Mapping:
    """Values where score and label hold nothing but two opposite words, or verdicts on pairs in words."""
    seen = {
        value.strip().casefold()
        for role in ("score", "label")
        for value in _values(mapping.columns.get(role), header, sample)
    }
    for words in (_SLOT_WORDS, _STEPS):
        if "order" in mapping.columns and seen - {""} and seen <= {*map(str.casefold, words), ""}:
            return replace(mapping, values=words)
    for good, bad in _OPPOSITES:
        if seen & {good, bad} and seen <= {good, bad, ""}:
            return replace(mapping, values={good: 1.0, bad: 0.0})
    return mapping


def _items_by_system(mapping: Mapping, header: Sequence[str], sample: Sequence[Sequence[str]]) -> Mapping:
    if not {"item", "system"} <= mapping.columns.keys() or "system_b" in mapping.columns:
        return mapping
    systems: dict[str, set[str]] = defaultdict(set)
    for item, system in zip(
        _values(mapping.columns["item"], header, sample),
        _values(mapping.columns["system"], header, sample),
        strict=True,
    ):
        systems[item].add(system)
    if all(len(names) == 1 for names in systems.values()):
        return mapping
    columns = dict(mapping.columns)
    columns["item"] = (*columns["item"], *columns["system"])
    return replace(mapping, columns=columns)


def _values(names: Sequence[str] | None, header: Sequence[str], sample: Sequence[Sequence[str]]) -> list[str]:
    if not names:
        return []
    place = list(header).index(names[0])
    return [row[place] for row in sample]


def shape(header: Sequence[str]) -> str:
    """Hash of the column names: files of one shape share a mapping."""
    return hashlib.sha256(json.dumps(list(header)).encode()).hexdigest()


def get_mapping(*, session: Session, header: Sequence[str]) -> Mapping | None:
    """The mapping last confirmed for files with this header."""
    stored = find_mapping(session=session, shape_sha256=shape(header))
    return Mapping.from_json(stored) if stored else None
