"""Random KubeSchedulerConfigurations: other arguments, weights and plugins than the default profile's."""

from random import Random

from e2e.harness.random_cluster import HOST, RACK, ZONE, ZONES
from skysail.api.raw import Raw

_RESOURCES = ("cpu", "memory", "example.com/gpu", "ephemeral-storage")
_SCORERS = (
    "NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality", "TaintToleration", "NodeAffinity",
    "InterPodAffinity", "PodTopologySpread", "VolumeBinding",
)  # fmt: skip


def random_config(rng: Random) -> Raw:
    """A configuration with one profile, `default-scheduler`."""
    arguments = {
        "NodeResourcesFit": _fit(rng),
        "NodeResourcesBalancedAllocation": {"resources": _resources(rng, weighted=False)},
        "InterPodAffinity": {
            "hardPodAffinityWeight": rng.choice((0, 1, 50, 100)),
            "ignorePreferredTermsOfExistingPods": rng.random() < 0.5,
        },
        "PodTopologySpread": _spread(rng),
        "NodeAffinity": {"addedAffinity": _added(rng)} if rng.random() < 0.5 else {},
        "VolumeBinding": {"bindTimeoutSeconds": 60},
    }
    chosen = [{"name": name, "args": args} for name, args in arguments.items() if args and rng.random() < 0.6]
    profile: Raw = {"schedulerName": "default-scheduler", "pluginConfig": chosen}
    if rng.random() < 0.7:
        names = rng.sample(_SCORERS, rng.randint(1, 4))
        weights = [{"name": name, "weight": rng.choice((1, 3, 7, 50))} for name in names]
        profile["plugins"] = {
            "score": {"disabled": [{"name": name} for name in names], "enabled": weights[:-1] or weights}
        }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }


def _resources(rng: Random, *, weighted: bool = True) -> list[Raw]:
    names = rng.sample(_RESOURCES, rng.randint(1, 3))
    return [{"name": name, "weight": rng.choice((1, 3, 10)) if weighted else 1} for name in names]


def _fit(rng: Random) -> Raw:
    kind = rng.choice(("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"))
    strategy: Raw = {"type": kind, "resources": _resources(rng)}
    if kind == "RequestedToCapacityRatio":
        shape = rng.choice(
            (
                [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}],
                [{"utilization": 0, "score": 0}, {"utilization": 40, "score": 9}, {"utilization": 80, "score": 2}],
            )
        )
        strategy["requestedToCapacityRatio"] = {"shape": shape}
    ignored = {"ignoredResources": ["example.com/gpu"]} if rng.random() < 0.2 else {}
    return {"scoringStrategy": strategy, **ignored}


def _spread(rng: Random) -> Raw:
    keys = rng.sample((HOST, ZONE, RACK), rng.randint(1, 2))
    constraints = [
        {
            "maxSkew": rng.randint(1, 2),
            "topologyKey": key,
            "whenUnsatisfiable": rng.choice(("ScheduleAnyway", "DoNotSchedule")),
        }
        for key in keys
    ]
    return {"defaultingType": "List", "defaultConstraints": constraints}


def _added(rng: Random) -> Raw:
    term = {"matchExpressions": [{"key": ZONE, "operator": "NotIn", "values": [rng.choice(ZONES)]}]}
    found: Raw = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 30, "preference": term}]}
    if rng.random() < 0.4:
        found["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [term]}
    return found
