"""The recorded share vectors, each in the mode of the system it comes from."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from skysail.batch.compatibility import (
    CohortNode,
    CohortTree,
    ElasticQuotaRow,
    KaiQueue,
    ProportionQueue,
    kai_fair_share,
    koordinator_runtime,
    proportion_deserved,
)

VECTORS = json.loads((Path(__file__).parents[1] / "golden/batch/vectors.json").read_text())


def of(system):
    return pytest.mark.parametrize("vector", VECTORS[system], ids=lambda vector: vector["id"])


@of("koordinator")
def test_koordinator_runtime_equals_the_recorded_one(vector):
    rows = {
        name: ElasticQuotaRow(row["weight"], row["limitedRequest"], row["min"], row["guarantee"], row["lend"])
        for name, row in vector["rows"].items()
    }
    assert koordinator_runtime(vector["pool"], rows) == vector["runtime"]


@of("kai")
def test_kai_fair_share_equals_the_recorded_one(vector):
    queues = {
        name: KaiQueue(**{key: Fraction(str(value)) if key != "priority" else value for key, value in row.items()})
        for name, row in vector["queues"].items()
    }
    share = kai_fair_share(vector["total"], queues, Fraction(str(vector["k"])))
    assert share == {name: Fraction(str(value)) for name, value in vector["fairShare"].items()}


@of("proportion")
def test_proportion_deserved_equals_the_recorded_one(vector):
    for resource, total in vector["total"].items():
        queues = {
            name: ProportionQueue(
                queue["request"].get(resource, 0),
                queue["weight"],
                queue.get("guarantee", {}).get(resource, 0),
                queue.get("capability", {}).get(resource),
            )
            for name, queue in vector["queues"].items()
        }
        expected = {name: Fraction(each[resource]) for name, each in vector["deserved"].items()}
        assert proportion_deserved(total, queues) == expected


@of("kueue")
def test_kueue_cohort_arithmetic_equals_the_recorded_one(vector):
    nodes = {
        name: CohortNode(
            parent=node.get("parent", ""),
            nominal=node.get("nominal", 0),
            lending_limit=node.get("lendingLimit"),
            borrowing_limit=node.get("borrowingLimit"),
            usage=node.get("usage", 0),
            is_cohort=node.get("cohort", False),
        )
        for name, node in vector["nodes"].items()
    }
    tree, expect = CohortTree(nodes), vector["expect"]
    assert {name: tree.subtree(name) for name in expect.get("subtree", {})} == expect.get("subtree", {})
    assert {name: tree.available(name) for name in expect.get("avail", {})} == expect.get("avail", {})
    for name, share in expect["drs"].items():
        assert float(tree.dominant_share(name)) == pytest.approx(share, abs=0.005)
    if "a_plus_50" in expect:
        assert tree.dominant_share("a", 50) == expect["a_plus_50"]
