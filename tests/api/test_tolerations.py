import json
from pathlib import Path

import msgspec
import pytest

from skysail.api.core import Toleration
from skysail.api.node import Taint
from skysail.api.tolerations import find_untolerated_taint, tolerates

VECTORS = json.loads((Path(__file__).parents[1] / "golden/scheduler/functions/toleration.json").read_text())


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: json.dumps(v["input"]))
def test_tolerates_as_recorded(vector):
    toleration = msgspec.convert(vector["input"]["Toleration"], Toleration)
    taint = msgspec.convert(vector["input"]["Taint"], Taint)
    assert tolerates(toleration, taint) == vector["output"]["tolerates"]
    assert tolerates(toleration, taint, True) == vector["output"]["tolerates_with_comparison_operators"]


def test_the_first_taint_that_nothing_tolerates_is_found():
    taints = (
        Taint(key="soft", effect="PreferNoSchedule"),
        Taint(key="a", effect="NoSchedule"),
        Taint(key="b", effect="NoExecute"),
        Taint(key="c", effect="NoSchedule"),
    )
    tolerations = (Toleration(key="a", operator="Exists"),)
    assert find_untolerated_taint(taints, tolerations) == taints[2]
    assert find_untolerated_taint(taints, tolerations, lambda taint: taint.effect == "NoSchedule") == taints[3]
    assert find_untolerated_taint(taints, (Toleration(operator="Exists"),)) is None


@pytest.mark.parametrize("value", ["+5", "05", "-0", "", "5.0", "9223372036854775808"])
def test_a_number_must_be_a_plain_integer_to_be_compared(value):
    taint = Taint(key="k", value=value, effect="NoSchedule")
    assert not tolerates(Toleration(key="k", operator="Gt", value="-100"), taint, True)
    assert not tolerates(Toleration(key="k", operator="Lt", value="100"), taint, True)
