"""Entry point: `streamlit run app.py`. It only navigates."""

import streamlit as st

from core.ui.page import run

PAGES = {
    "Judge health": [
        st.Page("pages/overview.py", title="Overview", icon=":material/monitoring:", default=True),
        st.Page("pages/dispersion.py", title="Dispersion", icon=":material/scatter_plot:"),
        st.Page("pages/gate_flips.py", title="Gate flips", icon=":material/swap_vert:"),
        st.Page("pages/item.py", title="Item", icon=":material/manage_search:"),
    ],
    "People": [
        st.Page("pages/human_agreement.py", title="Judge against people", icon=":material/groups:"),
        st.Page("pages/label.py", title="Label", icon=":material/edit_note:"),
        st.Page("pages/readers.py", title="Readers", icon=":material/diversity_3:"),
        st.Page("pages/decisions.py", title="Decisions", icon=":material/rule:"),
        st.Page("pages/rubric_changes.py", title="Rubric changes", icon=":material/history_edu:"),
    ],
    "Change": [
        st.Page("pages/drift.py", title="Drift", icon=":material/trending_down:"),
        st.Page("pages/promotion.py", title="Promotion", icon=":material/verified:"),
    ],
    "Pairs": [
        st.Page("pages/position_bias.py", title="Position bias", icon=":material/swap_horiz:"),
    ],
    "Data": [
        st.Page("pages/datasets.py", title="Datasets", icon=":material/database:"),
        st.Page("pages/launch.py", title="Launch", icon=":material/rocket_launch:"),
    ],
}

st.set_page_config(page_title="Evenhand", page_icon="⚖️", layout="wide")
run(st.navigation(PAGES, position="top"))  # the sidebar belongs to what is looked at
