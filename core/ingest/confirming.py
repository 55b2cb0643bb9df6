"""What a person confirms before an import, from the texts of a form: the mapping and the rubric."""

from collections.abc import Callable, Sequence
from collections.abc import Mapping as AnyMapping
from dataclasses import dataclass, replace
from io import BytesIO

from sqlalchemy import Engine

from core.ingest.load import ImportReport, Preview, propose_levels, require_judge, run_import
from core.ingest.mapping import Mapping
from core.ingest.records import ROLES, ImportRefused, MappingRefused
from core.ingest.rubrics import Proposal, from_levels, parse_levels
from core.ingest.scoring import number
from core.ingest.source import Source
from core.store.specs import RubricSpec


class Upload:
    """An uploaded file as a source that knows how far it has been read; its bytes are never copied.

    Args:
        name: The file's name; a folder in front of it is dropped.
        data: The stored bytes, packed or not.
    """

    def __init__(self, name: str, data: bytes) -> None:
        self._data = data
        self._file = BytesIO()
        self.source = replace(Source.from_bytes(name, data), open=self._open)

    def _open(self) -> BytesIO:
        self._file = BytesIO(self._data)
        return self._file

    def read(self) -> float:
        """Share of the stored bytes that the latest reading has taken, 0 to 1."""
        return 1.0 if self._file.closed or not self._data else self._file.tell() / len(self._data)


@dataclass(frozen=True)
class Choices:
    """Everything that an import is made with, beside the file; the rubric is None for a file of texts alone."""

    mapping: Mapping
    rubric: RubricSpec | None
    corpus: str
    label_set: str
    policy: str
    set_aside: bool


@dataclass
class Draft:
    """An upload on its way into the store; nothing of it is written before the end.

    Attributes:
        upload: The file.
        preview: Its first rows and the mapping to confirm.
        mapping: The confirmed mapping, None before.
        proposals: The criteria of the file under the confirmed mapping, None before they are read.
        tried: What the latest trial was made with; another choice needs another trial.
        report: What the latest trial or import said.
    """

    upload: Upload
    preview: Preview
    mapping: Mapping | None = None
    proposals: tuple[Proposal, ...] | None = None
    tried: Choices | None = None
    report: ImportReport | None = None

    def confirm(self, mapping: Mapping) -> None:
        """Take the mapping; what was found out under another one is dropped.

        Raises:
            MappingRefused: When it does not fit the file's columns, or nothing names the judge.
        """
        mapping.check(self.preview.header)
        require_judge(mapping)
        if mapping != self.mapping:
            self.mapping, self.proposals, self.tried, self.report = mapping, None, None, None

    def read_criteria(self) -> tuple[Proposal, ...]:
        """The criteria of the whole file under the confirmed mapping; read once."""
        if self.proposals is None:
            self.proposals = propose_levels(self.upload.source, self.mapping or self.preview.mapping)
        return self.proposals

    def carry_out(
        self, engine: Engine, choices: Choices, *, dry_run: bool, on_rows: Callable[[int], None] | None = None
    ) -> ImportReport:
        """Try the import, or do it; the arguments and errors are those of `run_import`."""
        self.tried = self.report = None
        self.report = run_import(
            engine,
            self.upload.source,
            mapping=choices.mapping,
            rubric=choices.rubric,
            corpus=choices.corpus,
            label_set=choices.label_set,
            policy=choices.policy,
            set_aside=choices.set_aside,
            dry_run=dry_run,
            on_rows=on_rows,
        )
        self.tried = choices
        return self.report


def roles_of(mapping: Mapping, column: str) -> list[str]:
    """The roles that a column feeds."""
    return [role for role in ROLES if column in mapping.columns.get(role, ())]


def with_roles(
    mapping: Mapping,
    roles: AnyMapping[str, Sequence[str]],
    *,
    constants: AnyMapping[str, str],
    values: str,
    statuses: str,
    orders: str,
) -> Mapping:
    """The mapping that a form describes.

    Args:
        mapping: What the form was filled with; a role fed by the same columns keeps their order.
        roles: Roles of every column, in header order.
        constants: Text of every line for a role, empty for none; it counts where no column feeds the role.
        values: What words in the score and label columns are worth, a line WORD=NUMBER each.
        statuses: What status words mean, a line WORD=REASON or WORD=ok each.
        orders: What order words mean, a line WORD=ab or WORD=ba each.

    Raises:
        MappingRefused: For a text that cannot be read so, or columns that do not go together.
    """
    columns: dict[str, tuple[str, ...]] = {}
    for role in ROLES:
        names = tuple(column for column, wanted in roles.items() if role in wanted)
        known = mapping.columns.get(role, ())
        if names:
            columns[role] = known if set(known) == set(names) else names
    return replace(
        mapping,
        columns=columns,
        constants={role: text.strip() for role, text in constants.items() if text.strip() and role not in columns},
        values={word: _number(word, text) for word, text in read_pairs(values).items()},
        statuses=read_pairs(statuses),
        orders=read_pairs(orders),
    )


def read_pairs(text: str) -> dict[str, str]:
    """WORD=MEANING lines as a dictionary.

    Raises:
        MappingRefused: For a line that is no such pair.
    """
    pairs: dict[str, str] = {}
    for line in filter(str.strip, text.splitlines()):
        word, equals, meaning = line.rpartition("=")
        if not equals or not word.strip() or not meaning.strip():
            raise MappingRefused(f"{line.strip()!r} should read WORD=MEANING, a line each")
        pairs[word.strip()] = meaning.strip()
    return pairs


def write_pairs(pairs: AnyMapping[str, object]) -> str:
    """A dictionary as the lines that `read_pairs` reads."""
    return "\n".join(
        f"{word}={meaning:g}" if isinstance(meaning, float) else f"{word}={meaning}" for word, meaning in pairs.items()
    )


def rubric_from_texts(name: str, criteria: AnyMapping[str, tuple[str, str]]) -> RubricSpec:
    """A rubric from the levels and the gate that were typed for each criterion.

    Raises:
        ImportRefused: For texts that are no levels or no gate, or that no rubric can have.
    """
    if not name.strip():
        raise ImportRefused("the rubric needs a name")
    levels, gates = {}, {}
    for key, (scale, gate) in criteria.items():
        if not scale.strip():
            raise ImportRefused(f"criterion {key} has no levels; write them like 1,2,3 or 0:1:0.01")
        levels[key] = parse_levels(scale)
        value = number(gate)
        if value is None:
            raise ImportRefused(f"criterion {key}: the gate {gate!r} is no number")
        gates[key] = value
    return from_levels(name.strip(), list(criteria), levels, gates)


def _number(word: str, text: str) -> float:
    value = number(text)
    if value is None:
        raise MappingRefused(f"{word}={text}: {text!r} is no number")
    return value
