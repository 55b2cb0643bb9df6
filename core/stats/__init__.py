"""Statistics of judge reliability: arrays in, frozen dataclasses out.

Nothing here reads a database or draws a picture, and nothing rounds. A figure that cannot be computed is None with an
`Undefined` reason.
"""
