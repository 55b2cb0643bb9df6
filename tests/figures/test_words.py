import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.figures.words import say_estimate, say_interval, say_number, say_p, say_part, say_reason, say_share
from core.stats.common import Estimate, Interval, Undefined, undefined


def test_an_estimate_prints_value_interval_and_n():
    found = Estimate(0.42040, 359, interval=Interval(0.3916, 0.4488, "item bootstrap"))
    assert say_estimate(found) == "0.420 (95% 0.392 to 0.449, n = 359 items)"


def test_an_estimate_as_a_share_names_its_unit_and_what_was_left_out():
    found = Estimate(1 / 3, 12, left_out=1200, interval=Interval(0.138, 0.609, "Wilson", 0.9))
    expected = "33.3% (90% 13.8% to 60.9%, n = 12 pairs, 1,200 left out)"
    assert say_estimate(found, 1, unit="pairs", share=True) == expected


@pytest.mark.parametrize("reason", list(Undefined))
def test_an_undefined_estimate_prints_its_reason_and_no_figure(reason):
    said = say_estimate(undefined(reason, n=20))
    assert said == f"undefined: {reason.words} (n = 20 items)"
    assert "nan" not in said
    assert say_reason(reason).endswith(reason.words)


def test_an_interval_without_limits_says_why():
    assert say_interval(Interval(None, None, "x", reason=Undefined.TOO_FEW_ITEMS)) == (
        "no interval: too few items for an interval"
    )
    assert say_interval(None) == ""
    few = Estimate(0.5, 4, interval=Interval(None, None, "x", reason=Undefined.TOO_FEW_ITEMS))
    assert say_estimate(few) == "0.500 (no interval: too few items for an interval, n = 4 items)"


def test_nan_and_infinity_are_undefined():
    assert {say_number(value) for value in (math.nan, math.inf, -math.inf, None)} == {"undefined"}
    assert say_share(math.nan) == "undefined"


def test_thousands_are_separated():
    assert say_number(1234567.5, 1) == "1,234,567.5"
    assert say_part(12_000, 500_000) == "12,000 of 500,000 (2.4%)"


def test_a_small_change_downwards_is_not_zero():
    assert say_number(-0.00004) == ">-0.001"


def test_p_values():
    assert say_p(0.0009) == "p < 0.001"
    assert say_p(1.0) == "p = 1.000"
    assert say_p(None, Undefined.SINGULAR) == f"p undefined: {Undefined.SINGULAR.words}"


@settings(max_examples=50)
@given(st.integers(0, 10**7), st.integers(1, 10**7))
def test_only_nothing_reads_as_nothing_and_only_all_as_all(count, more):
    n = count + more
    said = say_share(count / n)
    assert (said == "0.0%") == (count == 0)
    assert said != "100.0%"
    assert say_share(1.0) == "100.0%"
