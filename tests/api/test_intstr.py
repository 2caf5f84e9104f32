import json
import re
from pathlib import Path

import pytest

from skysail.api.intstr import parse_int64, scaled_value

VECTORS = json.loads((Path(__file__).parents[1] / "golden/scheduler/functions/intstr_scaled.json").read_text())


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: "-".join(map(str, v["input"].values())))
def test_scales_as_recorded(vector):
    value, total, up = vector["input"].values()
    if "error" in vector["output"]:
        with pytest.raises(ValueError, match=f"^{re.escape(vector['output']['error'])}$"):
            scaled_value(value, total, up)
    else:
        assert scaled_value(value, total, up) == vector["output"]["value"]


def test_a_percentage_out_of_range_says_so():
    with pytest.raises(ValueError, match="value out of range"):
        scaled_value("9223372036854775808%", 1, round_up=True)


@pytest.mark.parametrize(
    ("text", "number"), [("7", 7), ("+7", 7), ("-0", 0), ("", None), ("1_0", None), ("٣", None), ("1 ", None)]
)
def test_only_plain_decimal_integers_are_integers(text, number):
    assert parse_int64(text) == number
