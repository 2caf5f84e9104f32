import json
import re
from pathlib import Path

import msgspec
import pytest

from skysail.api.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)
from skysail.api.core import Pod, PodSpec
from skysail.api.nodeselector import (
    compile_node_selector,
    compile_preferred_terms,
    matches_node_selector,
    matches_required_node_affinity,
)

VECTORS = json.loads((Path(__file__).parents[1] / "golden/scheduler/functions/node_selector.json").read_text())


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: json.dumps(v["input"]["Selector"])[:60])
def test_matches_as_recorded(vector):
    selector = msgspec.convert(vector["input"]["Selector"], NodeSelector)
    want = vector["output"]
    errors = compile_node_selector(selector).errors
    assert bool(errors) == (want["parse_error"] is not None)
    for node, result in zip(vector["input"]["Nodes"], want["results"], strict=True):
        if error := result.get("error"):
            with pytest.raises(ValueError, match=f"^{re.escape(error)}$"):
                matches_node_selector(selector, node["Name"], node["Labels"])
            assert error == want["parse_error"]
        else:
            assert matches_node_selector(selector, node["Name"], node["Labels"]) == result["match"]


def expression(key, operator, *values):
    return NodeSelectorRequirement(key=key, operator=operator, values=values)


def term(*expressions, fields=()):
    return NodeSelectorTerm(match_expressions=expressions, match_fields=fields)


def test_an_unknown_operator_names_those_that_exist():
    selector = compile_node_selector(NodeSelector(node_selector_terms=(term(expression("a", "Is")),)), "spec")
    assert selector.errors == (
        'spec.nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "Is": '
        'supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"',
    )


def test_a_node_name_field_admits_that_node_only():
    selector = NodeSelector(node_selector_terms=(term(fields=(expression("metadata.name", "In", "n1"),)),))
    assert matches_node_selector(selector, "n1", {})
    assert not matches_node_selector(selector, "n2", {})


def test_a_pod_needs_both_its_selector_and_its_affinity():
    required = NodeSelector(node_selector_terms=(term(expression("zone", "In", "a")),))
    affinity = Affinity(node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=required))
    pod = Pod(spec=PodSpec(node_selector={"disk": "ssd"}, affinity=affinity))
    assert matches_required_node_affinity(pod, "n", {"disk": "ssd", "zone": "a"})
    assert not matches_required_node_affinity(pod, "n", {"disk": "ssd"})
    assert not matches_required_node_affinity(pod, "n", {"zone": "a"})
    assert matches_required_node_affinity(Pod(), "n", {})


def test_preferred_terms_without_weight_or_content_are_left_out_and_bad_ones_all_named():
    def preferred(weight, *expressions):
        return PreferredSchedulingTerm(weight=weight, preference=term(*expressions))

    compiled = compile_preferred_terms(
        (preferred(0, expression("a", "Bad")), preferred(3), preferred(5, expression("a", "Exists")))
    )
    assert [(weight, each.matches("n", {"a": ""})) for weight, each in compiled] == [(5, True)]
    with pytest.raises(
        ValueError, match=r"^\[\[0\]\.matchExpressions\[0\]\.values: .*, \[1\]\.matchExpressions\[0\]\.op"
    ):
        compile_preferred_terms((preferred(1, expression("a", "In")), preferred(1, expression("a", "Bad"))))
