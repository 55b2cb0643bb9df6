"""Entry point: `streamlit run app.py`. It only navigates."""

import streamlit as st

PAGES = [
    st.Page("pages/overview.py", title="Overview", icon=":material/monitoring:", default=True),
]

st.set_page_config(page_title="Evenhand", page_icon="⚖️", layout="wide")
st.navigation(PAGES).run()
