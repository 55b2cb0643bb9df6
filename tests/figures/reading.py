"""Reads figures back, so that tests see what a browser is sent."""

import json
from typing import Any

import plotly.graph_objects as go


def sent(figure: go.Figure) -> str:
    """The figure as the browser gets it, without the plain-text description, which is never plotly text."""
    spec = json.loads(figure.to_json())
    del spec["layout"]["meta"], spec["layout"]["template"]
    return json.dumps(spec)


def words(figure: go.Figure) -> str:
    """What the annotations say, line breaks as spaces."""
    return " | ".join(str(annotation.text).replace("<br>", " ") for annotation in figure.layout.annotations)


def trace(figure: go.Figure, name: str) -> Any:
    """The one trace whose name starts with `name`."""
    found = [trace for trace in figure.data if str(trace.name).startswith(name)]
    assert len(found) == 1, [trace.name for trace in figure.data]
    return found[0]
