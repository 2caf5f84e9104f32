"""Random pods that use every way of saying where a pod may be; a seed repeats them."""

from dataclasses import dataclass, field
from random import Random

from e2e.harness.random_cluster import (
    APPS,
    DISKS,
    FREE,
    HOST,
    IMAGES,
    LATE,
    LOCAL,
    NAMESPACED,
    NARROW,
    PRIORITIES,
    RACK,
    ZONE,
    ZONES,
    Made,
    driver_volume,
)
from skysail.api.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from skysail.api.raw import Raw

_TIERS = ("a", "b")
_IGNORED = "IgnoredDuringExecution"


@dataclass
class Wanted:
    """A pod and what must be there first.

    Attributes:
        namespace: Where.
        pod: The pod.
        before: Objects to create before it.
    """

    namespace: str
    pod: Raw
    before: Made = field(default_factory=list)


def random_pod(rng: Random, number: int, claims: list[tuple[str, str]], owners: dict[tuple[str, str], str]) -> Wanted:
    """One pod with up to everything at once; most have little.

    Args:
        rng: The dice.
        number: Becomes its name.
        claims: Volume claims made so far, namespace and name; added to.
        owners: Uids of replica sets, by namespace and name.
    """
    namespace, app = rng.choice(tuple(NAMESPACED)), rng.choice(APPS)
    labels = {"app": app, "tier": rng.choice(_TIERS), "version": rng.choice(("1", "2"))}
    metadata: Raw = {"name": f"p{number:05d}", "labels": labels}
    if (uid := owners.get((namespace, app))) and rng.random() < 0.3:
        labels["owner"] = "rs"
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": uid, "controller": True}
        metadata["ownerReferences"] = [owner]
    spec: Raw = {"terminationGracePeriodSeconds": 0} | _containers(rng)
    if rng.random() < 0.15:
        spec["nodeSelector"] = {"disk": rng.choice(DISKS)} | ({ZONE: rng.choice(ZONES)} if rng.random() < 0.3 else {})
    if affinity := _affinity(rng, labels):
        spec["affinity"] = affinity
    if rng.random() < 0.3:
        spec["topologySpreadConstraints"] = _spreading(rng, labels)
    if rng.random() < 0.4:
        spec["tolerations"] = [_toleration(rng) for _ in range(rng.randint(1, 2))]
    if rng.random() < 0.35:
        spec["priorityClassName"] = rng.choice(tuple(PRIORITIES))
    if rng.random() < 0.05:
        spec["runtimeClassName"] = "boxed"
    if rng.random() < 0.03:
        spec["hostNetwork"] = True
        for container in spec["containers"]:
            container["ports"] = [{"containerPort": rng.choice((7000, 7001))}]
    if rng.random() < 0.1:
        metadata["finalizers"] = ["example.com/slow"]
    if rng.random() < 0.04:
        spec["schedulingGates"] = [{"name": "example.com/wait"}]
    wanted = Wanted(namespace, {"metadata": metadata, "spec": spec})
    if rng.random() < 0.15:
        _volumes(rng, wanted, number, claims)
    return wanted


# -- what it needs ---------------------------------------------------------------------------------------------------


def _containers(rng: Random) -> Raw:
    big = rng.random() < 0.2
    found: Raw = {"containers": [_container(rng, f"c{index}", big) for index in range(rng.choice((1, 1, 1, 2)))]}
    if rng.random() < 0.25:
        found["initContainers"] = [_container(rng, f"i{index}", big) for index in range(rng.randint(1, 3))]
        for each in found["initContainers"]:
            if rng.random() < 0.4:
                each["restartPolicy"] = "Always"
    if rng.random() < 0.08:
        requests = {"cpu": rng.choice(("1500m", "3")), "memory": rng.choice(("1Gi", "6Gi"))}
        found["resources"] = {"requests": requests if rng.random() < 0.7 else {"cpu": "2"}}
    if rng.random() < 0.02:
        found["containers"][0]["resources"] = {"requests": {"cpu": "64"}}
    return found


def _container(rng: Random, name: str, big: bool) -> Raw:
    cpus, sizes = ((500, 900, 1500), (512, 2048)) if big else ((0, 10, 50, 100, 250), (16, 64, 128))
    requests = {"cpu": f"{rng.choice(cpus)}m", "memory": f"{rng.choice(sizes)}Mi"}
    limits: Raw = {}
    if rng.random() < 0.05:
        requests["example.com/gpu"] = limits["example.com/gpu"] = "1"
    if rng.random() < 0.02:
        requests["hugepages-2Mi"] = limits["hugepages-2Mi"] = "64Mi"
    if rng.random() < 0.05:
        requests["ephemeral-storage"] = rng.choice(("1Gi", "8Gi"))
    if rng.random() < 0.1:
        requests.pop(rng.choice(("cpu", "memory")))
    container: Raw = {"name": name, "image": rng.choice(tuple(IMAGES)), "resources": {"requests": requests}}
    if limits:
        container["resources"]["limits"] = limits
    if rng.random() < 0.1:
        container["resources"] = {}
    if rng.random() < 0.06:
        port: Raw = {"containerPort": 80, "hostPort": rng.choice((8080, 8081)), "protocol": rng.choice(("TCP", "UDP"))}
        if rng.random() < 0.4:
            port["hostIP"] = rng.choice(("10.0.0.1", "10.0.0.2", "0.0.0.0"))
        container["ports"] = [port]
    return container


# -- where it wants to be --------------------------------------------------------------------------------------------


def _toleration(rng: Random) -> Raw:
    found: Raw = {"key": rng.choice(("team", "dedicated", "spot")), "operator": "Exists"}
    if rng.random() < 0.5:
        found |= {"operator": "Equal", "value": rng.choice(("x", "y", ""))}
    if rng.random() < 0.6:
        found["effect"] = rng.choice(("NoSchedule", "PreferNoSchedule", "NoExecute"))
    return {"operator": "Exists"} if rng.random() < 0.1 else found


def _expression(rng: Random) -> Raw:
    return rng.choice(
        (
            {"key": "disk", "operator": "In", "values": [rng.choice(DISKS)]},
            {"key": ZONE, "operator": "NotIn", "values": [rng.choice(ZONES)]},
            {"key": ZONE, "operator": "Exists"},
            {"key": RACK, "operator": "DoesNotExist"},
            {"key": RACK, "operator": "In", "values": ["r1", "r2"]},
            {"key": "size", "operator": rng.choice(("Gt", "Lt")), "values": [str(rng.randint(2, 8))]},
        )
    )


def _node_term(rng: Random) -> Raw:
    if rng.random() < 0.1:
        operator = rng.choice(("In", "NotIn"))
        return {
            "matchFields": [{"key": "metadata.name", "operator": operator, "values": [f"n{rng.randint(0, 9):03d}"]}]
        }
    return {"matchExpressions": [_expression(rng) for _ in range(rng.choice((1, 1, 2)))]}


def _affinity(rng: Random, labels: Raw) -> Raw:
    found: Raw = {}
    if rng.random() < 0.2:
        node: Raw = {}
        if rng.random() < 0.5:
            terms = [_node_term(rng) for _ in range(rng.randint(1, 2))]
            node[f"requiredDuringScheduling{_IGNORED}"] = {"nodeSelectorTerms": terms}
        if rng.random() < 0.7:
            node[f"preferredDuringScheduling{_IGNORED}"] = [
                {"weight": rng.randint(1, 100), "preference": _node_term(rng)} for _ in range(rng.randint(1, 2))
            ]
        found["nodeAffinity"] = node
    for kind, share in (("podAffinity", 0.12), ("podAntiAffinity", 0.15)):
        if rng.random() < share:
            required, preferred = [], []
            for _ in range(rng.choice((1, 1, 2))):
                term = _pod_term(rng, labels)
                if rng.random() < 0.45:
                    required.append(term)
                else:
                    preferred.append({"weight": rng.randint(1, 100), "podAffinityTerm": term})
            found[kind] = {
                f"requiredDuringScheduling{_IGNORED}": required,
                f"preferredDuringScheduling{_IGNORED}": preferred,
            }
    return found


def _selector(rng: Random, labels: Raw) -> Raw:
    app = rng.choice((labels["app"], rng.choice(APPS)))
    return rng.choice(
        (
            {"matchLabels": {"app": app}},
            {"matchLabels": {"app": app}},
            {"matchExpressions": [{"key": "app", "operator": "In", "values": [app, rng.choice(APPS)]}]},
            {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [app]}]},
            {"matchExpressions": [{"key": "owner", "operator": rng.choice(("Exists", "DoesNotExist"))}]},
            {},
        )
    )


def _pod_term(rng: Random, labels: Raw) -> Raw:
    term: Raw = {"topologyKey": rng.choice((HOST, ZONE, RACK)), "labelSelector": _selector(rng, labels)}
    kind = rng.randrange(5)
    if kind == 0:
        term["namespaceSelector"] = rng.choice(({}, {"matchLabels": {"env": "prod"}}))
    elif kind == 1:
        term["namespaces"] = rng.sample(tuple(NAMESPACED), 2)
    elif kind == 2:
        term["namespaces"] = ["red"]
        term["namespaceSelector"] = {"matchExpressions": [{"key": "team", "operator": "In", "values": ["blue"]}]}
    if rng.random() < 0.2:
        term[rng.choice(("matchLabelKeys", "mismatchLabelKeys"))] = [rng.choice(("tier", "version"))]
    return term


def _spreading(rng: Random, labels: Raw) -> list[Raw]:
    keys = rng.sample((HOST, ZONE, RACK), rng.choice((1, 1, 2)))
    return [_constraint(rng, labels, key) for key in keys]


def _constraint(rng: Random, labels: Raw, key: str) -> Raw:
    hard = rng.random() < 0.5
    constraint: Raw = {
        "maxSkew": rng.randint(1, 3),
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        "labelSelector": _selector(rng, labels),
    }
    if hard and rng.random() < 0.3:
        constraint["minDomains"] = rng.randint(1, 5)
    if rng.random() < 0.3:
        constraint["nodeTaintsPolicy"] = rng.choice(("Honor", "Ignore"))
    if rng.random() < 0.3:
        constraint["nodeAffinityPolicy"] = rng.choice(("Honor", "Ignore"))
    if rng.random() < 0.25:
        constraint["matchLabelKeys"] = [rng.choice(("tier", "version", "nobody"))]
    return constraint


# -- its volumes -----------------------------------------------------------------------------------------------------


def _volumes(rng: Random, wanted: Wanted, number: int, claims: list[tuple[str, str]]) -> None:
    volumes: list[Raw] = []
    for index in range(rng.choice((1, 1, 2))):
        known = [name for namespace, name in claims if namespace == wanted.namespace]
        kind = rng.random()
        if kind < 0.15:
            disk = {"pdName": rng.choice(("d1", "d2")), "readOnly": rng.random() < 0.3}
            volumes.append({"name": f"v{index}", "gcePersistentDisk": disk})
            continue
        if kind < 0.17:
            name = "missing"
        elif kind < 0.25:
            body = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            body["storageClassName"] = rng.choice((LOCAL, LATE, FREE))
            volumes.append({"name": f"v{index}", "ephemeral": {"volumeClaimTemplate": {"spec": body}}})
            continue
        elif kind < 0.4 and known:
            name = rng.choice(known)
        else:
            name = f"c{number:05d}-{index}"
            _claim(rng, wanted, name)
            claims.append((wanted.namespace, name))
        volumes.append({"name": f"v{index}", "persistentVolumeClaim": {"claimName": name}})
    wanted.pod["spec"]["volumes"] = volumes


def _claim(rng: Random, wanted: Wanted, name: str) -> None:
    mode = rng.choice(("ReadWriteOnce", "ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"))
    storage_class = rng.choice((LOCAL, LOCAL, LATE, FREE, NARROW, ""))
    spec: Raw = {"accessModes": [mode], "storageClassName": storage_class}
    spec["resources"] = {"requests": {"storage": f"{rng.choice((1, 3, 8))}Gi"}}
    if storage_class == LOCAL:
        spec["accessModes"] = [rng.choice(("ReadWriteOnce", "ReadWriteMany"))]
        if rng.random() < 0.2:
            spec["selector"] = {"matchLabels": {"speed": "fast"}}
        if rng.random() < 0.15:
            spec["volumeMode"] = "Block"
    claim = {"metadata": {"name": name, "namespace": wanted.namespace}, "spec": spec}
    if not storage_class:
        spec["volumeName"] = f"{wanted.namespace}-{name}"
        volume = driver_volume(rng, spec["volumeName"], claim, rng.choice((*ZONES, "")))
        wanted.before.append((PERSISTENT_VOLUMES, "", volume))
    wanted.before.append((PERSISTENT_VOLUME_CLAIMS, wanted.namespace, claim))
