"""Which judges are there, and how much does each one wobble?"""

import streamlit as st

from core.ui import cached, url
from core.ui.overview import COLUMNS, FIRST, PAIR_COLUMNS, criterion_keys, overview, show_judges
from core.ui.page import download, open_page
from core.ui.scope import say_empty

open_page("Overview", "Which judges are there, and how much does each one wobble?")
at = cached.snapshot()
if cached.judges(at).empty:
    say_empty("judge")

choices = {FIRST: "Each rubric's first criterion"} | {key: key for key in criterion_keys(at)}
criterion = url.choose(st.sidebar, "Criterion", "overview", choices, help="Every figure below is for this criterion.")
table = overview(at, criterion)
pairwise = table.pairwise.astype(bool)

st.subheader("Judges of single answers", anchor=False)
st.markdown("A click on a row opens its dispersion; a click on a column's title sorts by it.")
show_judges(table[~pairwise], COLUMNS, leads_to="pages/dispersion.py", key="overview_table")
if pairwise.any():
    st.subheader("Judges of pairs", anchor=False)
    st.markdown("They say which of two answers is better, so their figures are others: a click opens position bias.")
    show_judges(table[pairwise], PAIR_COLUMNS, leads_to="pages/position_bias.py", key="overview_pairs")
download(table, name="overview")
