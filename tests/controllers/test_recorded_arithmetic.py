"""The rollout arithmetic against vectors recorded from kube-controller-manager's own functions."""

import json
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from skysail.api.apps import Deployment, ReplicaSet
from skysail.api.core import Pod
from skysail.api.meta import parse_time
from skysail.controllers.deployment.draft import Draft
from skysail.controllers.deployment.fences import (
    max_surge,
    max_unavailable,
    min_available,
    new_replica_set_size,
    resolve_fenceposts,
    sum_of_wanted,
    wanted_replicas,
)
from skysail.controllers.deployment.scaling import DESIRED_REPLICAS, MAX_REPLICAS, plan_scale
from skysail.controllers.replicaset.ranking import pods_to_delete, rank_for_deletion

VECTORS = Path(__file__).parent.parent / "golden" / "scheduler" / "functions"
T = TypeVar("T")


def vectors(name: str) -> list[dict[str, Any]]:
    return json.loads((VECTORS / f"{name}.json").read_text())


def read(raw: Any, struct: type[T]) -> T:
    return msgspec.json.decode(json.dumps(raw), type=struct)


def test_fence_posts_resolve_as_recorded() -> None:
    for vector in vectors("resolve_fenceposts"):
        given, output = vector["input"], vector["output"]
        try:
            found = resolve_fenceposts(given["MaxSurge"], given["MaxUnavailable"], given["Desired"])
        except ValueError:
            assert "error" in output, vector
        else:
            assert found == (output["surge"], output["unavailable"]), vector


def test_surge_and_unavailable_of_deployments_are_as_recorded() -> None:
    for vector in vectors("deployment_max"):
        deployment = read(vector["input"], Deployment)
        found = {
            "max_surge": max_surge(deployment),
            "max_unavailable": max_unavailable(deployment),
            "min_available": min_available(deployment),
        }
        assert found == vector["output"], vector


def test_the_new_set_grows_as_recorded() -> None:
    for vector in vectors("new_rs_new_replicas"):
        deployment = read(vector["input"]["Deployment"], Deployment)
        new = read(vector["input"]["New"], ReplicaSet)
        everything = [new, *(read(old, ReplicaSet) for old in vector["input"]["Old"])]
        found = new_replica_set_size(deployment, sum_of_wanted(everything), wanted_replicas(new))
        assert found == vector["output"]["replicas"], vector


def test_proportional_scaling_gives_the_recorded_sizes_and_annotations() -> None:
    for vector in vectors("deployment_scale"):
        given, output = vector["input"], vector["output"]
        deployment = read(given["Deployment"], Deployment)
        new = read(given["New"], ReplicaSet) if given["New"] else None
        old = [read(item, ReplicaSet) for item in given["Old"]]
        draft = Draft(deployment, [*old, *([new] if new else [])], None)
        draft.new, draft.old = new, old
        sizes, renew = plan_scale(deployment, new, old)
        by_name = {item.name: item for item in draft.replica_sets}
        for name, size in sizes.items():
            draft.scale(by_name[name], size, renew=renew)
        assert {item.name: wanted_replicas(item) for item in draft.replica_sets} == output["replicas"], vector
        remembered = {
            item.name: {
                key: value
                for key, value in item.metadata.annotations.items()
                if key in (DESIRED_REPLICAS, MAX_REPLICAS)
            }
            for item in draft.replica_sets
        }
        assert remembered == {name: found or {} for name, found in output["annotations"].items()}, vector


def test_pods_are_deleted_in_the_recorded_order() -> None:
    for vector in vectors("pods_to_delete"):
        given, output = vector["input"], vector["output"]
        pods = [read(pod, Pod) for pod in given["Pods"]]
        related = [read(pod, Pod) for pod in given["Related"] or []]
        now = parse_time(given["Now"])
        assert [pod.name for pod in rank_for_deletion(pods, related, now)] == output["order"], vector
        chosen = [pod.name for pod in pods_to_delete(pods, related, given["Diff"], now)]
        assert sorted(chosen) == sorted(output["deleted"]), vector
