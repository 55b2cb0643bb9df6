"""The one-byte outcome codes of an item's repetitions, and their packing."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

NOT_MADE = 255
UNSCORED = 254
COPIED = 253
"""A reply that carries the response id of another: not independent, so it counts once."""

MOST_LEVELS = 250
MOST_REPETITIONS = 10_000


def unpack(blobs: Sequence[bytes]) -> NDArray[np.uint8]:
    """Vectors of unequal length as a matrix, shape (items, longest), filled with `NOT_MADE`."""
    width = max(map(len, blobs), default=0)
    if all(len(blob) == width for blob in blobs):
        return np.frombuffer(b"".join(blobs), np.uint8).reshape(len(blobs), width)
    filler = bytes([NOT_MADE])
    return np.frombuffer(b"".join(blob.ljust(width, filler) for blob in blobs), np.uint8).reshape(len(blobs), width)


def level_codes(matrix: NDArray[np.uint8]) -> NDArray[np.int16]:
    """Level indices, with -1 where a repetition was not made, was unscored or was copied."""
    codes = matrix.astype(np.int16)
    codes[matrix >= COPIED] = -1
    return codes
