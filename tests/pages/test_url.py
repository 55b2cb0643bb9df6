"""Choices in the URL: what a browser with an older page sends back, labels that are alike, and bad links."""

from streamlit.testing.v1 import AppTest


def counting() -> None:
    import streamlit as st  # noqa: PLC0415 - AppTest runs the function as a script

    from core.ui import url  # noqa: PLC0415

    st.session_state.setdefault("labels", 0)
    options = {"a@1": f"a ({st.session_state.labels} labels)", "b@1": "b"}
    url.choose(st.container(), "Set", "set", options)
    url.choose_many(st.container(), "Sets", "sets", options)


def twins() -> None:
    import streamlit as st  # noqa: PLC0415 - AppTest runs the function as a script

    from core.ui import url  # noqa: PLC0415

    st.write(url.choose(st.container(), "Judge", "judge", {"1": "same words", "2": "same words", "3": "other"}))


def test_a_label_that_changed_since_it_was_drawn_is_no_choice() -> None:
    page = AppTest.from_function(counting).run()
    page.multiselect[0].set_value(["a@1"]).run()
    assert (page.query_params["set"], page.query_params["sets"]) == ("a@1", "a@1")
    page.session_state["labels"] = 1
    page.run()
    # A browser that has not drawn that run yet sends the old labels with its next click, whatever it is on.
    page.selectbox[0].options = ["a (0 labels)", "b"]
    page.selectbox[0].set_value("a (0 labels)")
    page.multiselect[0].set_value(["a (0 labels)"])
    page.run()
    assert not page.warning
    assert (page.query_params["set"], page.query_params["sets"]) == ("a@1", "a@1")
    assert page.selectbox[0].value == "a@1"
    assert page.multiselect[0].value == ["a@1"]


def test_options_with_the_same_label_are_told_apart() -> None:
    page = AppTest.from_function(twins).run()
    assert page.selectbox[0].options == ["same words · 1", "same words · 2", "other"]
    page.selectbox[0].select("same words · 1").run()
    page.selectbox[0].select("same words · 2").run()
    assert page.markdown[0].value == "2"
    assert page.query_params["judge"] == "2"
