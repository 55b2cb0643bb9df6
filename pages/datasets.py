"""What is in the store, and how do I bring in more?"""

import pandas as pd
import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from core.ingest.confirming import Choices, Draft, Upload, roles_of, rubric_from_texts, with_roles, write_pairs
from core.ingest.load import ImportReport, plan_import
from core.ingest.mapping import Mapping
from core.ingest.records import MEANINGS, ROLES, ImportRefused
from core.ingest.rubric_file import decode, parse_rubric
from core.ingest.scoring import canonical
from core.ingest.wording import refusal_line, report_lines
from core.ui import cached, datasets, rubrics
from core.ui.links import link
from core.ui.page import download, open_page, plain
from core.ui.rubrics import Rubric
from core.ui.scope import corpus_key, judge_key

DRAFT = "import_draft"
KINDS = ["csv", "tsv", "jsonl", "ndjson", "gz"]
EVERY_LINE = ("judge", "model", "criterion")
PROPOSED = "Levels for each criterion, proposed from the file's values"
STORED = "A rubric of the store"
FROM_FILE = "A rubric file (JSON)"
REFUSE = "Import nothing, so that the file can be corrected"
SET_ASIDE = "Set the bad lines aside and import the others"
SHOWN_JUDGES = 12


def draft_of(upload: UploadedFile) -> Draft | None:
    """The upload's draft: read once, then kept for the session; None when it cannot be read, which is said."""
    kept = st.session_state.get(DRAFT)
    if kept and kept[0] == upload.file_id:
        draft: Draft = kept[1]
        return draft
    try:
        file = Upload(upload.name, upload.getvalue())
        with st.spinner("Reading the file…"):
            preview = plan_import(cached.engine(), file.source)
    except ImportRefused as refusal:
        st.error(plain(f"Nothing was imported: {refusal}"))
        return None
    draft = Draft(file, preview, mapping=preview.mapping if preview.confirmed else None)
    st.session_state[DRAFT] = (upload.file_id, draft)
    return draft


def show_preview(draft: Draft) -> None:
    """The first rows, as the file has them."""
    st.subheader("1 · The first rows")
    rows = [[text[:500] for text in row] for row in draft.preview.rows]
    st.dataframe(pd.DataFrame(rows, columns=draft.preview.header), hide_index=True)


def choose_mapping(draft: Draft, key: str) -> None:
    """Roles of the columns, as guessed or as stored, to be changed and confirmed."""
    preview = draft.preview
    st.subheader("2 · What the columns mean")
    if preview.confirmed:
        st.success(
            "A file with these columns was imported before; its mapping is used again. Change it if it is wrong."
        )
    else:
        st.info("This mapping is a guess from the column names and the first rows. Check it, then confirm it.")
    with st.form(f"mapping_{key}"):
        roles = {}
        for place, column in enumerate(preview.header):
            name, example, choice = st.columns([2, 3, 4], vertical_alignment="center")
            name.text(column)
            seen = dict.fromkeys(row[place] for row in preview.rows if row[place].strip())
            example.text(", ".join(text[:40] for text in list(seen)[:3]) or "(empty)")
            roles[column] = choice.multiselect(
                f"Roles of {column}",
                ROLES,
                default=roles_of(preview.mapping, column),
                format_func=lambda role: f"{role}: {MEANINGS[role]}",
                placeholder="not imported",
                label_visibility="collapsed",
                key=f"role_{key}_{place}",
            )
        st.caption("Where no column says it, the same for every line:")
        constants = {
            role: place.text_input(
                role.capitalize(), preview.mapping.constants.get(role, ""), key=f"every_{key}_{role}"
            )
            for place, role in zip(st.columns(len(EVERY_LINE)), EVERY_LINE, strict=True)
        }
        with st.expander("Words in the score, status and order columns"):
            values, statuses, orders = (
                st.text_area(label, write_pairs(pairs), help=hint, key=f"{label}_{key}")
                for label, pairs, hint in (
                    ("Values", preview.mapping.values, "A line each, like pass=1: what a word is worth."),
                    ("Statuses", preview.mapping.statuses, "A line each, like timed out=request_error, or fine=ok."),
                    ("Orders", preview.mapping.orders, "A line each, like first=ab: which candidate stood in slot 1."),
                )
            )
        if st.form_submit_button("Use this mapping", type="primary"):
            try:
                draft.mapping = None
                draft.confirm(
                    with_roles(
                        preview.mapping, roles, constants=constants, values=values, statuses=statuses, orders=orders
                    )
                )
            except ImportRefused as refusal:
                st.error(plain(str(refusal)))
    if draft.mapping:
        st.code("\n".join(draft.mapping.lines()), language=None)


def choose_rubric(draft: Draft, mapping: Mapping, key: str) -> Choices | None:
    """Rubric, corpus, labels and what to do with bad lines; None while something is missing, which is said."""
    st.subheader("3 · Names" if mapping.texts_only else "3 · Rubric and names")
    if mapping.texts_only:
        st.info(
            "No column holds scores or labels: the texts become a corpus, for the Launch page to judge. If the file "
            "does hold scores, give their column its role above."
        )
    else:
        kind = st.radio(
            "Where the levels and gates come from",
            [PROPOSED, STORED, FROM_FILE],
            index=None,
            help="Levels come from the rubric that the judge was given, never by themselves from the data.",
            key=f"rubric_{key}",
        )
    corpus = st.text_input(
        "Corpus", draft.upload.source.stem, help="Items are told apart within it.", key=f"corpus_{key}"
    )
    label_set = policy = ""
    if mapping.has("label"):
        label_set = st.text_input("Label set", draft.upload.source.stem, key=f"labels_{key}")
        policy = st.text_area("Policy that the labels were made under", key=f"policy_{key}")
    bad = st.radio("If some lines are bad", [REFUSE, SET_ASIDE], key=f"bad_{key}")
    rubric = None
    if not mapping.texts_only:
        try:
            rubric = read_rubric(draft, kind, key)
        except ValueError as error:
            st.error(plain(str(error)))
        if rubric is None:
            return None
    return Choices(mapping, rubric, corpus.strip(), label_set.strip(), policy.strip(), bad == SET_ASIDE)


def read_rubric(draft: Draft, kind: str | None, key: str) -> Rubric | None:
    """The rubric that an import goes by; None while something is missing, which is said.

    Raises:
        ValueError: For a rubric that cannot be read.
    """
    if kind == STORED:
        known = rubrics.words(cached.snapshot())
        if not known:
            st.caption("No rubric is stored yet; choose one of the other two ways.")
            return None
        chosen = st.selectbox("Rubric", list(known), format_func=known.__getitem__, key=f"stored_{key}")
        rubrics.show_levels(cached.snapshot(), int(chosen))
        return rubrics.spec(cached.snapshot(), rubric_id=int(chosen))
    if kind == FROM_FILE:
        file = st.file_uploader("Rubric file", type=["json"], key=f"rubric_file_{key}")
        return parse_rubric(decode(file.getvalue(), source=file.name), source=file.name) if file else None
    if kind == PROPOSED:
        name, texts, sure = propose_texts(draft, key)
        rubric = rubric_from_texts(name, texts)
        return rubric if sure else None
    st.caption("Choose where the levels come from to go on.")
    return None


def propose_texts(draft: Draft, key: str) -> tuple[str, dict[str, tuple[str, str]], bool]:
    """Name of a new rubric, levels and gate of each criterion, and whether they have been checked."""
    with st.spinner("Reading the values of the file…"):
        proposals = draft.read_criteria()
    name = st.text_input("Name of the rubric", draft.upload.source.stem, key=f"rubric_name_{key}")
    texts = {}
    for place, proposal in enumerate(proposals):
        with st.container(border=True):
            st.text(proposal.criterion)
            found = ", ".join(
                f"{canonical(value)} ({rows:,}x)" for value, rows in zip(proposal.values, proposal.rows, strict=True)
            )
            st.caption(f"In the file: {found or 'too many different values to be levels, or none'}")
            if proposal.words:
                st.text(f"Words without a number: {', '.join(word[:40] for word in proposal.words)}")
                st.caption("Give them one above, under Values, or they will be unscored.")
            levels, gate = st.columns(2)
            texts[proposal.criterion] = (
                levels.text_input(
                    "Levels",
                    ",".join(map(canonical, proposal.values)),
                    help="Every value the rubric allows, like 1,2,3,4,5 or 0:1:0.01 for a range with its step.",
                    key=f"levels_{key}_{place}",
                ),
                gate.text_input(
                    "Gate",
                    canonical(proposal.values[-1]) if proposal.values else "",
                    help="An item passes at and above this score.",
                    key=f"gate_{key}_{place}",
                ),
            )
    sure = st.checkbox(
        "I have checked the levels and gates against the rubric that the judge was given", key=f"sure_{key}"
    )
    return name, texts, sure


def carry_out(draft: Draft, choices: Choices, *, dry_run: bool) -> None:
    """Try the import or do it, with its progress; the draft keeps the report. Errors are said in words."""
    bar = st.progress(0.0, text="Reading the file…")

    def tell(rows: int) -> None:
        bar.progress(min(draft.upload.read(), 1.0), text=f"{rows:,} rows read")

    try:
        draft.carry_out(cached.engine(), choices, dry_run=dry_run, on_rows=tell)
    except ImportRefused as refusal:
        st.error(plain(f"Nothing was imported: {refusal}"))
    bar.empty()


def show_report(draft: Draft, report: ImportReport) -> None:
    """What the import did or would do, in the words of the command line, and the bad lines."""
    if report.refused:
        st.error(plain(refusal_line(report)) + " Correct them, or choose to set them aside.")
    elif report.imported:
        st.success("The file was imported.")
    else:
        st.info("This is what an import would do; nothing has been written yet.")
    if not report.refused:
        st.code("\n".join(report_lines(report, dry_run=not report.imported)), language=None, wrap_lines=True)
    if report.problems:
        lines = pd.DataFrame(report.problems)
        st.dataframe(lines, hide_index=True)
        download(lines, name=f"bad_lines_{draft.upload.source.stem}")
        if report.set_aside > len(lines):
            st.caption(
                f"The first {len(lines):,} of {report.set_aside:,}; once set aside, all stand under Imports below."
            )
    if report.imported:
        show_way_on(report)


def show_way_on(report: ImportReport) -> None:
    """Links to the spread of the judges that the file brought."""
    name, version = report.corpus
    if report.mapping.texts_only:
        link(
            "launch",
            f"Judge the texts of {plain(name)}",
            icon=":material/rocket_launch:",
            corpus=corpus_key(name, version),
        )
    stored = cached.judges(cached.snapshot())
    new = stored[stored.judge_id.isin([judge.judge_id for judge in report.judges])]
    new = new[(new.corpus == name) & (new.corpus_version == version) & ~new.pairwise.astype(bool)]
    for row in new.head(SHOWN_JUDGES).rename(columns={"name": "judge"}).itertuples():
        link(
            "dispersion",
            plain(f"Dispersion of {row.judge}"),
            icon=":material/scatter_plot:",
            corpus=corpus_key(name, version),
            judge=judge_key(row.fingerprint),
        )


def bring_rubric() -> None:
    """A rubric file on its own, for runs that judge by it: linted, then stored."""
    with st.expander("A rubric to judge by", icon=":material/rule:"):
        file = st.file_uploader("A rubric file (JSON); data/rubrics has examples", type=["json"], key="rubric_alone")
        if file is None:
            return
        try:
            source = decode(file.getvalue(), source=file.name)
            rubric = parse_rubric(source, source=file.name)
        except ValueError as error:
            st.error(plain(str(error)))
            return
        rubrics.show_findings(rubric, source)
        if st.button("Store this rubric", type="primary"):
            st.success(plain(rubrics.add(rubric)))


open_page("Datasets", "What is in the store, and how do I bring in more?")
uploaded = st.file_uploader(
    "A file of judge history, labels or texts: CSV, TSV or JSON Lines, plain or .gz",
    type=KINDS,
    help="Nothing is written before you have seen what an import would do. Larger files: python -m core.cli import.",
)
if not uploaded:
    st.session_state.pop(DRAFT, None)
draft = draft_of(uploaded) if uploaded else None
if uploaded and draft:
    imported = draft.report and draft.report.imported
    if draft.preview.earlier:
        earlier = draft.preview.earlier
        when = f"{earlier.created_at:%Y-%m-%d at %H:%M} UTC"
        st.warning(plain(f"{uploaded.name} was imported before, as {earlier.name} on {when}. Nothing needs doing."))
    elif not imported:
        show_preview(draft)
        choose_mapping(draft, uploaded.file_id)
        choices = choose_rubric(draft, draft.mapping, uploaded.file_id) if draft.mapping else None
        if choices:
            st.subheader("4 · Try it, then import")
            trial, real = st.columns(2)
            if trial.button("Try it without writing", type="primary", key="import_trial"):
                carry_out(draft, choices, dry_run=True)
            ready = draft.tried == choices and draft.report is not None and not draft.report.refused
            if real.button(
                "Import",
                key="import_for_good",
                disabled=not ready,
                help="Try it first." if not ready else "One transaction: all of it is stored, or nothing.",
            ):
                carry_out(draft, choices, dry_run=False)
                if draft.report and draft.report.imported:
                    st.rerun()
            st.caption("Stay on this page while the file is read: leaving stops it, and nothing is written.")
            if draft.report and draft.tried == choices and not draft.report.imported:
                show_report(draft, draft.report)
    if draft.report and draft.report.imported:
        show_report(draft, draft.report)
bring_rubric()
st.divider()
datasets.show_store(cached.snapshot())
