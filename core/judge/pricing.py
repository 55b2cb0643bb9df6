"""What calls cost, by an editable price file with its date. No price is ever guessed."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from core.store.tables import JudgeKind

PRICES_PATH = Path(__file__).parents[2] / "data" / "prices.json"
NO_PRICE = "no price known"

_MILLION = 1_000_000
_SNAPSHOT = re.compile(r"-20\d{6}$")


@dataclass(frozen=True, slots=True)
class Price:
    """Of a million tokens, in the file's currency."""

    input: float
    output: float


@dataclass(frozen=True, slots=True)
class Prices:
    """A price file.

    Attributes:
        batch_share: What a Message Batches request costs, as a share of the same request asked at once.
    """

    date: date
    currency: str
    source: str
    batch_share: float
    by_model: Mapping[str, Price]

    def find(self, model: str) -> Price | None:
        """The price of a model; a dated snapshot costs what its name without the date does."""
        return self.by_model.get(model) or self.by_model.get(_SNAPSHOT.sub("", model))

    def cost(
        self, *, kind: str, model: str, input_tokens: float, output_tokens: float, batch: bool = False
    ) -> float | None:
        """What tokens cost, or None when no price is known. Judges that run here cost nothing."""
        if kind in (JudgeKind.LOCAL, JudgeKind.REPLAY, JudgeKind.PROGRAM):
            return 0.0
        price = self.find(model)
        if price is None:
            return None
        whole = (input_tokens * price.input + output_tokens * price.output) / _MILLION
        return whole * self.batch_share if batch else whole


def load_prices(path: Path = PRICES_PATH) -> Prices:
    """Read the price file.

    Raises:
        ValueError: Names the file and the field that cannot be read.
        OSError: When the file cannot be opened.
    """
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
        return Prices(
            date=date.fromisoformat(str(_field(written, "date"))),
            currency=str(_field(written, "currency")),
            source=str(_field(written, "source")),
            batch_share=_amount(written, "batch_share"),
            by_model={
                model: Price(_amount(price, "input", model), _amount(price, "output", model))
                for model, price in _field(written, "per_million_tokens").items()
            },
        )
    except (ValueError, AttributeError) as error:
        raise ValueError(f"{path.name}: {error}") from error


def _field(written: Any, name: str, where: str = "") -> Any:
    if not isinstance(written, dict) or name not in written:
        raise ValueError(f"{where + ': ' if where else ''}field {name} is missing")
    return written[name]


def _amount(written: Any, name: str, where: str = "") -> float:
    value = _field(written, name, where)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{where + ': ' if where else ''}field {name}: expected an amount, got {json.dumps(value)}")
    return float(value)
