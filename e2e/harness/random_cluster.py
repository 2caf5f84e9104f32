"""Random clusters and streams of pods that use every way of saying where a pod may be; a seed repeats them."""

from random import Random

from skysail.api.raw import Raw

_ZONES = ("zone-a", "zone-b", "zone-c")
_DISKS = ("ssd", "hdd")
_APPS = ("web", "api", "db", "cache", "batch")
# One size an image: where nodes disagree, kube-scheduler takes the node it happened to hear of first.
_IMAGES = {"registry.test/web:1": 90 << 20, "registry.test/api:2": 300 << 20, "registry.test/huge:9": 870 << 20}
_HOST, _ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def random_nodes(rng: Random, count: int) -> list[Raw]:
    """Nodes of several sizes, zones, disks and taints, with images on some."""
    return [_node(rng, number) for number in range(count)]


def _node(rng: Random, number: int) -> Raw:
    name = f"n{number:03d}"
    labels = {_HOST: name, "disk": rng.choice(_DISKS), "size": str(rng.randint(1, 9))}
    if rng.random() < 0.9:
        labels[_ZONE] = rng.choice(_ZONES)
    room = {
        "cpu": rng.choice(("4", "8", "16")),
        "memory": rng.choice(("8Gi", "32Gi")),
        "pods": rng.choice(("20", "110")),
    }
    if rng.random() < 0.3:
        room["example.com/gpu"] = rng.choice(("1", "4"))
    spec: Raw = {}
    if rng.random() < 0.25:
        effect = rng.choice(("NoSchedule", "PreferNoSchedule", "NoExecute"))
        spec["taints"] = [{"key": "team", "value": rng.choice(("x", "y")), "effect": effect}]
    if rng.random() < 0.05:
        spec["unschedulable"] = True
    images = [{"names": [name], "sizeBytes": size} for name, size in _IMAGES.items() if rng.random() < 0.3]
    conditions = [{"type": "Ready", "status": "True"}]
    status = {"capacity": room, "allocatable": room, "images": images, "conditions": conditions}
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": spec,
        "status": status,
    }  # fmt: skip


def services() -> list[Raw]:
    """A service for some of the apps, so that default spreading has something to count."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": app},
            "spec": {"selector": {"app": app}, "ports": [{"port": 80}]},
        }
        for app in _APPS[:3]
    ]


def random_pod(rng: Random, number: int) -> Raw:
    """A pod of one app, with up to all of: selectors, affinities, spreading, tolerations, ports, priorities alike."""
    app = rng.choice(_APPS)
    spec: Raw = {"containers": [_container(rng)], "terminationGracePeriodSeconds": 0}
    if rng.random() < 0.2:
        spec["initContainers"] = [{**_container(rng), "name": "init"}]
    if rng.random() < 0.15:
        spec["nodeSelector"] = {"disk": rng.choice(_DISKS)}
    affinity = _affinity(rng, app)
    if affinity:
        spec["affinity"] = affinity
    if rng.random() < 0.3:
        spec["topologySpreadConstraints"] = _spreading(rng, app)
    if rng.random() < 0.4:
        spec["tolerations"] = [_toleration(rng)]
    if rng.random() < 0.02:
        spec["containers"][0]["resources"] = {"requests": {"cpu": "64"}}
    labels = {"app": app, "tier": rng.choice(("a", "b"))}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{number:05d}", "labels": labels}, "spec": spec}


def _container(rng: Random) -> Raw:
    requests = {"cpu": f"{rng.choice((0, 10, 50, 100, 250))}m", "memory": f"{rng.choice((16, 64, 128))}Mi"}
    limits = {}
    if rng.random() < 0.03:
        requests["example.com/gpu"] = limits["example.com/gpu"] = "1"
    container: Raw = {"name": "main", "image": rng.choice(tuple(_IMAGES)), "resources": {"requests": requests}}
    if limits:
        container["resources"]["limits"] = limits
    if rng.random() < 0.1:
        container["resources"] = {}
    if rng.random() < 0.04:
        container["ports"] = [{"containerPort": 80, "hostPort": rng.choice((8080, 8081)), "protocol": "TCP"}]
    return container


def _toleration(rng: Random) -> Raw:
    if rng.random() < 0.5:
        return {"key": "team", "operator": "Exists"}
    return {"key": "team", "value": rng.choice(("x", "y")), "effect": "NoSchedule"}


def _expression(rng: Random) -> Raw:
    return rng.choice(
        (
            {"key": "disk", "operator": "In", "values": [rng.choice(_DISKS)]},
            {"key": _ZONE, "operator": "NotIn", "values": [rng.choice(_ZONES)]},
            {"key": _ZONE, "operator": "Exists"},
            {"key": "size", "operator": rng.choice(("Gt", "Lt")), "values": [str(rng.randint(2, 8))]},
        )
    )


def _affinity(rng: Random, app: str) -> Raw:
    found: Raw = {}
    if rng.random() < 0.2:
        node: Raw = {}
        if rng.random() < 0.5:
            terms = [{"matchExpressions": [_expression(rng)]} for _ in range(rng.randint(1, 2))]
            node["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
        if rng.random() < 0.7:
            preferred = {"weight": rng.randint(1, 100), "preference": {"matchExpressions": [_expression(rng)]}}
            node["preferredDuringSchedulingIgnoredDuringExecution"] = [preferred]
        found["nodeAffinity"] = node
    for kind, share in (("podAffinity", 0.1), ("podAntiAffinity", 0.12)):
        if rng.random() < share:
            other = rng.choice((app, rng.choice(_APPS)))
            term = {
                "topologyKey": rng.choice((_HOST, _ZONE)),
                "labelSelector": {"matchLabels": {"app": other, "tier": rng.choice(("a", "b"))}},
            }
            if rng.random() < 0.4:
                found[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            else:
                weighted = {"weight": rng.randint(1, 100), "podAffinityTerm": term}
                found[kind] = {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}
    return found


def _spreading(rng: Random, app: str) -> list[Raw]:
    hard = rng.random() < 0.5
    constraint: Raw = {
        "maxSkew": rng.randint(1, 3),
        "topologyKey": rng.choice((_HOST, _ZONE)),
        "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": app}},
    }
    if hard and rng.random() < 0.3:
        constraint["minDomains"] = rng.randint(1, 4)
    if rng.random() < 0.3:
        constraint["nodeTaintsPolicy"] = rng.choice(("Honor", "Ignore"))
    if rng.random() < 0.2:
        constraint["nodeAffinityPolicy"] = rng.choice(("Honor", "Ignore"))
    return [constraint]
