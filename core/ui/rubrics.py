"""Rubrics as pages show them: their levels, their changes, what a linter finds, and bringing one in."""

import pandas as pd
import streamlit as st

from core.judge.lint import as_lines, lint
from core.store import queries
from core.store.engine import reading
from core.store.label_queries import get_rubric_spec
from core.store.specs import RubricSpec
from core.store.writes import add_rubric, writing
from core.ui import cached
from core.ui.cached import FEW, MANY, Snapshot
from core.ui.page import plain

Rubric = RubricSpec
"""For the page, which reads no store."""


@st.cache_data(max_entries=FEW, show_spinner=False)
def stored(at: Snapshot) -> pd.DataFrame:  # noqa: ARG001 - the key
    """`queries.list_rubrics`."""
    with reading(cached.engine()) as session:
        return queries.list_rubrics(session=session)


@st.cache_data(max_entries=MANY, show_spinner=False)
def changes(at: Snapshot, *, rubric_id: int) -> pd.DataFrame:  # noqa: ARG001 - the key
    """`queries.list_rubric_changes`."""
    with reading(cached.engine()) as session:
        return queries.list_rubric_changes(session=session, rubric_id=rubric_id)


@st.cache_data(max_entries=MANY, show_spinner=False)
def spec(at: Snapshot, *, rubric_id: int) -> RubricSpec:  # noqa: ARG001 - the key
    """`label_queries.get_rubric_spec`."""
    with reading(cached.engine()) as session:
        return get_rubric_spec(session=session, rubric_id=rubric_id)


def words(at: Snapshot) -> dict[str, str]:
    """Every rubric version, its id against its name and version."""
    found = stored(at)
    return {
        str(key): f"{name} v{version}"
        for key, name, version in zip(found.id, found["name"], found.version, strict=True)
    }


def show_levels(at: Snapshot, rubric_id: int) -> None:
    """The criteria of a rubric version, a line a level."""
    levels = pd.DataFrame(
        [
            {
                "criterion": criterion.key,
                "question": criterion.question,
                "level": value,
                "anchor": anchor or "no anchor",
                "gate": "passes" if value >= criterion.gate else "fails",
                "weight": criterion.weight,
                "veto": criterion.veto,
            }
            for criterion in cached.criteria(at, rubric_id=rubric_id)
            for value, anchor in zip(criterion.levels, criterion.anchors, strict=True)
        ]
    )
    column = st.column_config
    st.dataframe(
        levels,
        hide_index=True,
        column_config={
            "anchor": column.TextColumn("anchor", width="large", help="What a reader must see to give this level."),
            "gate": column.TextColumn("at the gate", width=100, help="Whether an item with this score passes."),
            "veto": column.CheckboxColumn("veto", help="Failing it fails the item whatever the rest says."),
        },
    )


def show_findings(rubric: RubricSpec, source: str | None = None) -> None:
    """What the linter finds, with the line of each; without a file's text, the lines are shown beside it."""
    found = lint(rubric, source)
    if not found:
        st.caption("The linter finds nothing that two readers would have to guess at.")
        return
    count = "1 place" if len(found) == 1 else f"{len(found)} places"
    with st.expander(f"The linter names {count} in rubric {plain(rubric.name)}", icon=":material/rule:"):
        st.caption("A judge guesses where a rubric is vague, and not the same way twice. Nothing here stops you.")
        table = pd.DataFrame(
            [(one.line or None, one.criterion, one.words, one.rule.value) for one in found],
            columns=["line", "criterion", "what", "rule"],
        )
        st.dataframe(table, hide_index=True)
        if source is None:
            st.code(as_lines(rubric), language=None, line_numbers=True, wrap_lines=True)


def add(rubric: RubricSpec) -> str:
    """Store a rubric; says under which version, and whether it was there already."""
    with writing(cached.engine()) as session:
        before = set(queries.list_rubrics(session=session).id)
        kept = add_rubric(session=session, spec=rubric)
        known = "was stored already, as" if kept.id in before else "is now"
        return f"Rubric {kept.name} {known} version {kept.version}."
