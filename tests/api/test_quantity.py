import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skysail.api.quantity import Format, Quantity, parse_quantity

GOLDEN = Path(__file__).parents[1] / "golden/scheduler/functions"
INT64 = 1 << 63


def vectors(name):
    return json.loads((GOLDEN / f"{name}.json").read_text())


@pytest.mark.parametrize("vector", vectors("quantity_parse"), ids=lambda v: v["input"] or "empty")
def test_parses_as_recorded(vector):
    want = vector["output"]
    if "error" in want:
        with pytest.raises(ValueError, match=re.escape(want["error"])):
            Quantity.parse(vector["input"])
        return
    got = Quantity.parse(vector["input"])
    assert (str(got), got.format.value, got.sign) == (want["canonical"], want["format"], want["sign"])
    for scale, value, key in ((10**9, got.value(), "value"), (10**6, got.milli_value(), "milli_value")):
        if not wraps_round_in_the_original(got, scale):
            assert value == want[key], key


def wraps_round_in_the_original(quantity, scale):
    """Whether the recorded number is an int64 overflow: of the result, or of the nano-units of a negative decimal."""
    return abs(quantity.nano) >= INT64 * scale or (quantity._decimal and quantity.nano < -INT64)


@pytest.mark.parametrize("vector", vectors("quantity_arith"), ids=lambda v: "_".join(v["input"]))
def test_calculates_as_recorded(vector):
    a, b = map(Quantity.parse, vector["input"])
    want = vector["output"]
    assert ((a > b) - (a < b), a == b) == (want["cmp"], want["equal"])
    assert (str(a + b), str(a - b)) == (want["sum"], want["sub"])
    if not wraps_round_in_the_original(a + b, 10**9):
        assert (a + b).value() == want["sum_value"]
    if not wraps_round_in_the_original(a - b, 10**6):
        assert (a - b).milli_value() == want["sub_milli_value"]


@given(st.integers(-(10**30), 10**30), st.sampled_from(list(Format)))
def test_printing_and_reading_again_keeps_the_amount(nano, format):
    quantity = Quantity(nano, format)
    if format is not Format.BINARY_SI or abs(nano) < INT64:
        assert Quantity.parse(str(quantity)) == quantity


@given(st.integers(0, INT64 - 1), st.sampled_from(["", "Ki", "Mi", "Gi", "m", "k", "M", "e3"]))
def test_printing_is_a_fixed_point(number, suffix):
    canonical = str(Quantity(Quantity.parse(f"{number}{suffix}").nano, Quantity.parse(f"{number}{suffix}").format))
    again = Quantity.parse(canonical)
    assert str(Quantity(again.nano, again.format)) == canonical or again.nano >= (INT64 - 1) * 10**9


def test_equal_amounts_are_equal_whatever_their_suffix():
    assert Quantity.parse("1Gi") == Quantity.parse("1024Mi") == Quantity.parse("1073741824")
    assert hash(Quantity.parse("0.5")) == hash(Quantity.parse("500m"))


def test_no_number_before_a_suffix_is_refused_where_the_original_refuses_it():
    with pytest.raises(ValueError, match="numeric part"):
        Quantity.parse("e-20")
    assert Quantity.parse("000e-20") == Quantity(0)


def test_an_absurd_exponent_is_refused_at_once():
    with pytest.raises(ValueError, match="suffix"):
        Quantity.parse("1e999999999")


def test_values_stop_at_the_bounds_of_int64():
    assert Quantity.parse("10E").value() == INT64 - 1
    assert Quantity.parse("-10E").milli_value() == -INT64


def test_zero_takes_on_the_format_of_what_is_added():
    assert str(Quantity(0) + Quantity.parse("2048Ki")) == "2Mi"
    assert str(Quantity.of(3) - Quantity.of(3)) == "0"
    assert str(-Quantity.of_milli(1500)) == "-1500m"


def test_equal_texts_share_one_parsed_quantity():
    assert parse_quantity("137m") is parse_quantity("137m")
