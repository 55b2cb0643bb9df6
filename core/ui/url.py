"""Widgets whose value stands in the URL, so that a link opens the same view.

The URL is the truth: a widget writes its choice there, and every rerun reads it back. The last choice is also kept for
the session, because moving to another page clears the URL. Streamlit's own `bind="query-params"` would put the label of
an option there; a link should carry a key that stays the same when the label changes.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Literal, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

Number = TypeVar("Number", int, float)
Default = TypeVar("Default", int, float, None)


def choose(
    place: DeltaGenerator,
    label: str,
    name: str,
    options: Mapping[str, str],
    *,
    default: str | None = None,
    help: str | None = None,
    widget: Literal["selectbox", "select_slider", "segmented_control"] = "selectbox",
) -> str:
    """One of `options`, keys as they stand in the URL against their labels.

    An unknown key in the URL is the default, said once in a warning: the view is not the one that was sent.
    """
    keys = list(options)
    chosen = _read(name)
    if chosen not in options:
        fallback = default if default is not None and default in options else keys[0]
        if name in st.query_params:
            place.warning(f"“{chosen}” is not among the choices for {label.lower()}; showing {options[fallback]}.")
        chosen = fallback
    _set(name, chosen)
    shown = _told_apart(options)
    getattr(place, widget)(
        label,
        keys,
        format_func=lambda key: shown.get(key, key),
        key=_key(name),
        on_change=_publish_one_of,
        args=(name, keys),
        help=help,
    )
    _remember(name, chosen)
    return chosen


def choose_many(
    place: DeltaGenerator,
    label: str,
    name: str,
    options: Mapping[str, str],
    *,
    help: str | None = None,
) -> list[str]:
    """Some of `options`; none chosen means all of them and leaves the URL clean."""
    wanted = [key for key in _read(name).split(",") if key in options]
    _set(name, wanted)
    shown = _told_apart(options)
    place.multiselect(
        label,
        list(options),
        format_func=lambda key: shown.get(key, key),
        key=_key(name),
        on_change=_publish_one_of,
        args=(name, list(options)),
        help=help,
        placeholder="All",
    )
    _remember(name, ",".join(wanted))
    return wanted or list(options)


def ask(place: DeltaGenerator, label: str, name: str, *, help: str | None = None, placeholder: str = "") -> str:
    """One line of text; empty leaves the URL clean."""
    _set(name, _read(name))
    place.text_input(label, key=_key(name), on_change=_publish, args=(name,), help=help, placeholder=placeholder)
    _remember(name, _read(name))
    return _read(name).strip()


def switch(place: DeltaGenerator, label: str, name: str, *, default: bool = False, help: str | None = None) -> bool:
    """On or off, as 1 or 0; the default leaves the URL clean."""
    chosen = {"1": True, "0": False}.get(_read(name), default)
    _set(name, chosen)
    place.toggle(label, key=_key(name), on_change=_publish, args=(name, default), help=help)
    _remember(name, _as_text(chosen, default))
    return chosen


def number(
    place: DeltaGenerator,
    label: str,
    name: str,
    low: Number,
    high: Number | None = None,
    *,
    default: Default,
    help: str | None = None,
    placeholder: str | None = None,
) -> Number | Default:
    """A number from `low` to `high`; the default, which may be no number, leaves the URL clean.

    What is no such number in the URL is the default, said once in a warning.
    """
    chosen: Number | Default = default
    text = _read(name)
    if text:
        try:
            found = type(low)(text)
            inside = low <= found and isfinite(found) and (high is None or found <= high)
        except ValueError:
            inside = False
        if inside:
            chosen = found
        elif name in st.query_params:
            shown = "none" if default is None else f"{default:g}"
            place.warning(f"“{text}” is no choice for {label.lower()}; showing {shown}.")
    _set(name, chosen)
    place.number_input(
        label,
        low,
        high,
        None if default is None else "min",
        key=_key(name),
        on_change=_publish,
        args=(name, default),
        help=help,
        placeholder=placeholder,
    )
    _remember(name, _as_text(chosen, default))
    return chosen


def read(name: str, default: str = "") -> str:
    """A value that no widget shows, straight from the URL or the session's last choice."""
    return _read(name) or default


def publish(**values: str) -> None:
    """Put values into the URL and keep them for the session."""
    for name, value in values.items():
        _remember(name, value)


def _read(name: str) -> str:
    return str(st.query_params.get(name, st.session_state.get(_last(name), "")))


def _set(name: str, value: object) -> None:
    st.session_state[_key(name)] = value


def _told_apart(options: Mapping[str, str]) -> dict[str, str]:
    """Labels that differ: Streamlit finds the option by its label, and would take one of two alike for the other."""
    many = Counter(options.values())
    return {key: label if many[label] == 1 else f"{label} · {key}" for key, label in options.items()}


def _publish_one_of(name: str, keys: Sequence[str]) -> None:
    """Publish a choice among `keys`.

    Where a label changed since it was drawn, as one with a count does, the browser sends the old label back as if it
    were a choice: that is none, and what was chosen stays.
    """
    value = st.session_state[_key(name)]
    if all(part in keys for part in (value if isinstance(value, list) else [value])):
        _publish(name)


def _publish(name: str, default: object = "") -> None:
    _remember(name, _as_text(st.session_state[_key(name)], default))


def _as_text(value: object, default: object) -> str:
    if value == default or value is None:
        return ""
    if isinstance(value, list):
        return ",".join(value)
    return f"{value:d}" if isinstance(value, bool) else str(value)


def _remember(name: str, value: str) -> None:
    st.session_state[_last(name)] = value
    if value and st.query_params.get(name) != value:
        st.query_params[name] = value
    elif not value and name in st.query_params:
        del st.query_params[name]


def _key(name: str) -> str:
    return f"choice_{name}"


def _last(name: str) -> str:
    return f"last_{name}"
