"""The two small published tables that ship with the project, through the importer that every file goes through."""

from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Engine

from core.ingest.load import run_import
from core.ingest.mapping import Mapping
from core.ingest.records import AlreadyImported
from core.ingest.rubric_file import load_rubric
from core.ingest.source import Source

DATA = Path(__file__).parents[2] / "data"
PUBLISHED = DATA / "published"


class Table(NamedTuple):
    """A file with the mapping and the rubric that it is read with."""

    file: str
    rubric: str
    mapping: Mapping
    label_set: str = ""
    policy: str = ""


TABLES = (
    Table(
        file="labels_r01_r20.csv",
        rubric="pass-fail.json",
        mapping=Mapping(
            columns={"item": ("item_id",), "judge": ("judge",), "score": ("verdict",), "label": ("human_label",)},
            constants={"criterion": "verdict", "rater": "reader"},
            values={"pass": 1.0, "fail": 0.0},
        ),
        label_set="published labels",
        policy="Not published with the table.",
    ),
    Table(
        file="pairs_p01_p12.csv",
        rubric="slot-preference.json",
        mapping=Mapping(
            columns={"item": ("pair_id",), "judge": ("judge",), "order": ("order",), "score": ("verdict",)},
            constants={"criterion": "preference"},
            values={"first": 1.0, "second": -1.0},
        ),
    ),
)


def ensure_published(engine: Engine) -> int:
    """Import the published tables that the store does not have yet; says how many."""
    return sum(_import(engine, table) for table in TABLES)


def _import(engine: Engine, table: Table) -> bool:
    try:
        report = run_import(
            engine,
            Source.from_path(PUBLISHED / table.file),
            mapping=table.mapping,
            rubric=load_rubric(DATA / "rubrics" / table.rubric),
            label_set=table.label_set,
            policy=table.policy,
        )
    except AlreadyImported:
        return False
    if not report.imported:
        raise ValueError(f"{table.file} does not import: {report.problems[:3]}")
    return True
