"""A label column for each rater: every column is a rater of its own, with or without scores beside them."""

import pytest
from sqlalchemy import Engine

from core.ingest.load import ImportReport, plan_import, propose_levels, run_import
from core.ingest.mapping import Mapping
from core.ingest.records import MappingRefused
from core.ingest.rubrics import from_levels
from core.ingest.source import Source
from tests.ingest.files import rows

LABELS = "item,annotator_1,annotator_2,annotator_3\na,1,2,\nb,3,yes,3\n"
SCORED = "item,judge,rep,score,human 1,human 2\na,j,0,2,1,2\na,j,1,3,1,2\nb,j,0,1,,1\n"


def bring(engine: Engine, text: str, **changes: float) -> ImportReport:
    source = Source.from_bytes("labels.csv", text.encode())
    mapping = plan_import(engine, source).mapping
    mapping = Mapping(mapping.columns, mapping.constants, changes)
    rubric = from_levels("r", ["overall"], {"": (1.0, 2.0, 3.0)}, {"": 2.0})
    return run_import(engine, source, mapping=mapping, rubric=rubric)


def labels(engine: Engine) -> list[tuple[str, float, str | None]]:
    return sorted(rows(engine, "SELECT rater, value, raw_value FROM label"))


def test_each_column_is_a_rater(engine: Engine) -> None:
    report = bring(engine, LABELS, yes=3.0)
    assert report.imported
    assert "label = annotator_1, annotator_2, annotator_3, each a rater" in report.mapping.lines()
    assert labels(engine) == [
        ("annotator_1", 1.0, None),
        ("annotator_1", 3.0, None),
        ("annotator_2", 2.0, None),
        ("annotator_2", 3.0, "yes"),
        ("annotator_3", 3.0, None),
    ]


def test_labels_stand_on_every_line_of_an_item_and_count_once(engine: Engine) -> None:
    report = bring(engine, SCORED)
    assert (report.imported, report.calls, report.labels) == (True, 3, 3)
    assert labels(engine) == [("human 1", 1.0, None), ("human 2", 1.0, None), ("human 2", 2.0, None)]


def test_a_label_that_cannot_be_read_or_contradicts_names_its_column(engine: Engine) -> None:
    report = bring(engine, LABELS)
    assert [(bad.line, bad.column, bad.value) for bad in report.problems] == [(3, "annotator_2", "yes")]
    report = bring(engine, SCORED.replace("a,j,1,3,1,2", "a,j,1,3,1,3"))
    assert [(bad.line, bad.column) for bad in report.problems] == [(3, "human 2")]
    assert "contradicts 2 on line 2" in report.problems[0].reason


def test_a_label_cannot_hold_what_stands_between_labels(engine: Engine) -> None:
    report = bring(engine, LABELS.replace("yes", '"2\x1f"'))
    assert report.imported
    assert ("annotator_2", 2.0, None) in labels(engine)


def test_levels_are_proposed_from_all_the_columns(engine: Engine) -> None:
    source = Source.from_bytes("labels.csv", LABELS.encode())
    (proposal,) = propose_levels(source, plan_import(engine, source).mapping)
    assert (proposal.values, proposal.rows, proposal.words) == ((1.0, 2.0, 3.0), (1, 1, 2), ("yes",))


def test_a_rater_column_beside_several_labels_is_refused() -> None:
    with pytest.raises(MappingRefused, match="each of x, y is a rater"):
        Mapping({"item": ("i",), "label": ("x", "y"), "rater": ("r",)})
