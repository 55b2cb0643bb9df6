"""Links between pages."""

from urllib.parse import urlencode

import streamlit as st
from streamlit.errors import StreamlitPageNotFoundError


def link(page: str, label: str, *, icon: str | None = None, **query: str) -> None:
    """A link to `pages/<page>.py` with `query` in its URL.

    The first request after a start, if it is a deep link, runs a page without app.py: then no page knows another, and
    the link is an ordinary one.
    """
    try:
        st.page_link(f"pages/{page}.py", label=label, icon=icon, query_params=query)
    except StreamlitPageNotFoundError:
        st.link_button(label, f"{page}?{urlencode(query)}" if query else page, icon=icon)
