"""Figures in words, so that pages, command line and reports print the same text."""

import math

from core.stats.common import Estimate, Interval, Undefined

UNDEFINED = "undefined"


def say_count(value: int) -> str:
    """A count with thousands separators.

    >>> say_count(12500)
    '12,500'
    """
    return f"{value:,}"


def say_number(value: float | None, digits: int = 3) -> str:
    """A figure with a fixed number of decimals; what is not zero never reads as zero.

    Args:
        value: The figure; None and nan, which arrays hold for it, are undefined.
        digits: Decimals.

    >>> say_number(0.4204), say_number(0.00004), say_number(None)
    ('0.420', '<0.001', 'undefined')
    """
    if value is None or not math.isfinite(value):
        return UNDEFINED
    smallest = 10.0**-digits
    if 0 < abs(value) < smallest / 2:
        return f"<{smallest:.{digits}f}" if value > 0 else f">-{smallest:.{digits}f}"
    return f"{value:,.{digits}f}"


def say_share(value: float | None, digits: int = 1) -> str:
    """A share as a percentage; only nothing reads as 0% and only everything as 100%.

    >>> say_share(308 / 359), say_share(0.9999), say_share(0.0001), say_share(1)
    ('85.8%', '>99.9%', '<0.1%', '100.0%')
    """
    if value is None or not math.isfinite(value):
        return UNDEFINED
    half = 10.0**-digits / 2
    if 0 < 100 - 100 * value < half:
        return f">{100 - 2 * half:.{digits}f}%"
    return f"{say_number(100 * value, digits)}%"


def say_part(count: int, n: int, digits: int = 1) -> str:
    """A count out of its denominator, with the share.

    >>> say_part(308, 359), say_part(0, 0)
    ('308 of 359 (85.8%)', '0 of 0 (undefined)')
    """
    return f"{say_count(count)} of {say_count(n)} ({say_share(count / n if n else None, digits)})"


def say_reason(reason: Undefined | None) -> str:
    """Why a figure has no value.

    >>> say_reason(Undefined.NO_DATA)
    'undefined: nothing was scored'
    """
    return UNDEFINED if reason is None else f"{UNDEFINED}: {reason.words}"


def say_interval(interval: Interval | None, digits: int = 3, *, share: bool = False) -> str:
    """An interval with its coverage, or why there is none; empty when none was asked for.

    Args:
        interval: The interval.
        digits: Decimals of the limits.
        share: Print percentages.

    >>> say_interval(Interval(0.3915, 0.4488, "Wilson"))
    '95% 0.392 to 0.449'
    """
    if interval is None:
        return ""
    if interval.low is None or interval.high is None:
        return "no interval" if interval.reason is None else f"no interval: {interval.reason.words}"
    say = say_share if share else say_number
    return f"{100 * interval.level:g}% {say(interval.low, digits)} to {say(interval.high, digits)}"


def say_estimate(estimate: Estimate, digits: int = 3, *, unit: str = "items", share: bool = False) -> str:
    """An estimate with its interval and what it rests on.

    Args:
        estimate: The estimate.
        digits: Decimals of the value and of the limits.
        unit: What `n` counts.
        share: Print percentages.

    >>> say_estimate(Estimate(0.4204, 359, interval=Interval(0.39, 0.45, "Wilson")))
    '0.420 (95% 0.390 to 0.450, n = 359 items)'
    """
    say = say_share if share else say_number
    value = say_reason(estimate.reason) if estimate.value is None else say(estimate.value, digits)
    left_out = f"{say_count(estimate.left_out)} left out" if estimate.left_out else ""
    parts = [say_interval(estimate.interval, digits, share=share), f"n = {say_count(estimate.n)} {unit}", left_out]
    return f"{value} ({', '.join(part for part in parts if part)})"


def say_p(p: float | None, reason: Undefined | None = None) -> str:
    """A p-value; below 0.001 only that.

    >>> say_p(0.125), say_p(7.63e-05)
    ('p = 0.125', 'p < 0.001')
    """
    if p is None:
        return f"p {say_reason(reason)}"
    return "p < 0.001" if p < 0.001 else f"p = {say_number(p)}"
