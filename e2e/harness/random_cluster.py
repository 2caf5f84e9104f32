"""Random clusters that use every way of saying what a place is like; a seed repeats them.

Nodes of several sizes, zones, racks, taints and images; namespaces with labels; storage of every kind: local volumes,
volumes of a CSI driver that counts capacity, of one that does not, with zones and limits; priority classes, runtime
classes, services, replica sets, disruption budgets.
"""

from random import Random

from skysail.api.kinds import (
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PRIORITY_CLASSES,
    REPLICASETS,
    SERVICES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    Kind,
)
from skysail.api.raw import Raw

HOST, ZONE, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "example.com/rack"
ZONES, RACKS, DISKS = ("zone-a", "zone-b", "zone-c"), ("r1", "r2", "r3", "r4"), ("ssd", "hdd")
APPS = ("web", "api", "db", "cache", "batch")
NAMESPACED = {"default": {}, "red": {"team": "red", "env": "prod"}, "blue": {"team": "blue", "env": "test"}}
"""The namespaces of pods, with their labels."""
DRIVER, FREE_DRIVER = "csi.test", "free.csi.test"
LOCAL, LATE, FREE, NARROW = "local", "late", "free", "narrow"
"""Storage classes, all bound late: of local volumes; counting capacity; not counting it; only in some zones."""
PRIORITIES = {"low": -10, "middle": 100, "high": 1_000, "meek": 500}
# One size an image: where nodes disagree, kube-scheduler takes the node it happened to hear of first.
IMAGES = {"registry.test/web:1": 90 << 20, "registry.test/api:2": 300 << 20, "registry.test/huge:9": 870 << 20}
RUNTIME_CLASSES: Kind[Raw] = Kind("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", False, dict)

Made = list[tuple[Kind, str, Raw]]
"""Objects to create in order, each with its kind and namespace."""


def random_cluster(rng: Random, nodes: int) -> Made:
    """A whole cluster."""
    made: Made = [(NAMESPACES, "", _named(name, labels=labels)) for name, labels in NAMESPACED.items() if labels]
    made += [(PRIORITY_CLASSES, "", _priority_class(name, value)) for name, value in PRIORITIES.items()]
    overhead = {"podFixed": {"cpu": "150m", "memory": "64Mi"}}
    made.append((RUNTIME_CLASSES, "", _named("boxed") | {"handler": "boxed", "overhead": overhead}))
    for namespace in NAMESPACED:
        made += [(SERVICES, namespace, _service(app)) for app in rng.sample(APPS, 2)]
        made += [(REPLICASETS, namespace, _replica_set(app)) for app in rng.sample(APPS, 2)]
        made += [(POD_DISRUPTION_BUDGETS, namespace, _budget(app)) for app in rng.sample(APPS, 2)]
    zones = {name: node["metadata"]["labels"].get(ZONE, "") for name, node in _nodes(rng, nodes, made)}
    _storage(rng, zones, made)
    return made


def _named(name: str, **metadata: object) -> Raw:
    return {"metadata": {"name": name, **metadata}}


def _priority_class(name: str, value: int) -> Raw:
    return _named(name) | {"value": value, "preemptionPolicy": "Never" if name == "meek" else "PreemptLowerPriority"}


def _service(app: str) -> Raw:
    return _named(app) | {"spec": {"selector": {"app": app}, "ports": [{"port": 80}]}}


def _replica_set(app: str) -> Raw:
    labels = {"app": app, "owner": "rs"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    return _named(app) | {"spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}}


def _budget(app: str) -> Raw:
    return _named(app) | {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}}}


def _nodes(rng: Random, count: int, made: Made) -> list[tuple[str, Raw]]:
    nodes = [(f"n{number:03d}", random_node(rng, number)) for number in range(count)]
    made += [(NODES, "", node) for _, node in nodes]
    return nodes


def random_node(rng: Random, number: int) -> Raw:
    """One node."""
    name = f"n{number:03d}"
    labels = {HOST: name, "disk": rng.choice(DISKS), "size": str(rng.randint(1, 9))}
    if rng.random() < 0.9:
        labels[ZONE] = rng.choice(ZONES)
    if rng.random() < 0.8:
        labels[RACK] = rng.choice(RACKS)
    room = {
        "cpu": rng.choice(("2", "4", "8")),
        "memory": rng.choice(("4Gi", "8Gi", "32Gi")),
        "pods": rng.choice(("8", "20", "110")),
        "ephemeral-storage": rng.choice(("10Gi", "100Gi")),
    }
    if rng.random() < 0.4:
        room["example.com/gpu"] = rng.choice(("1", "4"))
    if rng.random() < 0.2:
        room["hugepages-2Mi"] = "256Mi"
    spec: Raw = {"taints": _taints(rng)} if rng.random() < 0.3 else {}
    if rng.random() < 0.05:
        spec["unschedulable"] = True
    images = [
        {"names": [image, image.replace(":", "@sha256:")], "sizeBytes": size}
        for image, size in IMAGES.items()
        if rng.random() < 0.3
    ]
    conditions = [{"type": "Ready", "status": "True"}]
    status = {"capacity": room, "allocatable": room, "images": images, "conditions": conditions}
    return _named(name, labels=labels) | {"spec": spec, "status": status}


def _taints(rng: Random) -> list[Raw]:
    keys = rng.sample(("team", "dedicated", "spot"), rng.randint(1, 2))
    return [
        {
            "key": key, "value": rng.choice(("x", "y", "")),
            "effect": rng.choice(("NoSchedule", "PreferNoSchedule", "PreferNoSchedule", "NoExecute")),
        }
        for key in keys
    ]  # fmt: skip


def node_patch(rng: Random) -> Raw:
    """A change of a node that scheduling sees."""
    kind = rng.randrange(4)
    if kind == 0:
        return {"metadata": {"labels": {"disk": rng.choice(DISKS), RACK: rng.choice((*RACKS, None))}}}
    if kind == 1:
        return {"spec": {"unschedulable": rng.random() < 0.3 or None}}
    if kind == 2:
        return {"spec": {"taints": _taints(rng) if rng.random() < 0.5 else None}}
    return {"metadata": {"labels": {"size": str(rng.randint(1, 9))}}}


# -- storage ---------------------------------------------------------------------------------------------------------


def _storage(rng: Random, zones: dict[str, str], made: Made) -> None:
    classes = ((LOCAL, "kubernetes.io/no-provisioner"), (LATE, DRIVER), (FREE, FREE_DRIVER), (NARROW, FREE_DRIVER))
    for name, provisioner in classes:
        storage_class = _named(name) | {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
        if name == NARROW:
            values = rng.sample(ZONES, 2)
            storage_class["allowedTopologies"] = [{"matchLabelExpressions": [{"key": ZONE, "values": values}]}]
        made.append((STORAGE_CLASSES, "", storage_class))
    for name, counts in ((DRIVER, True), (FREE_DRIVER, False)):
        made.append((CSI_DRIVERS, "", _named(name) | {"spec": {"storageCapacity": counts, "attachRequired": True}}))
    for node in zones:
        if rng.random() < 0.9:
            made.append((CSI_NODES, "", _csi_node(rng, node)))
    for zone in ZONES:
        made.append((CSI_STORAGE_CAPACITIES, "default", _capacity(rng, zone)))
    made += [(PERSISTENT_VOLUMES, "", local_volume(rng, number, zones)) for number in range(len(zones))]
    for number in range(len(zones) // 4):
        made += _attached(rng, number, rng.choice(sorted(zones)))


def _attached(rng: Random, number: int, node: str) -> Made:
    """A volume that is attached to a node although no pod there uses it."""
    claim = {
        "metadata": {"name": "nobody", "namespace": "gone"},
        "spec": {"resources": {"requests": {"storage": "1Gi"}}},
    }
    claim["spec"]["accessModes"] = ["ReadWriteOnce"]
    volume = driver_volume(rng, f"attached-{number}", claim, "")
    spec = {"attacher": DRIVER, "nodeName": node, "source": {"persistentVolumeName": f"attached-{number}"}}
    return [
        (PERSISTENT_VOLUMES, "", volume),
        (VOLUME_ATTACHMENTS, "", _named(f"attached-{number}") | {"spec": spec}),
    ]


def _csi_node(rng: Random, node: str) -> Raw:
    drivers = [
        {"name": name, "nodeID": node, "topologyKeys": [ZONE], "allocatable": {"count": rng.choice((1, 2, 5))}}
        for name in (DRIVER, FREE_DRIVER)
        if rng.random() < 0.9
    ]
    return _named(node) | {"spec": {"drivers": drivers}}


def _capacity(rng: Random, zone: str) -> Raw:
    capacity: Raw = {"storageClassName": LATE, "nodeTopology": {"matchLabels": {ZONE: zone}}}
    capacity["capacity"] = rng.choice(("2Gi", "6Gi", "100Gi"))
    if rng.random() < 0.3:
        capacity["maximumVolumeSize"] = "3Gi"
    return _named(zone) | capacity


def local_volume(rng: Random, number: int, zones: dict[str, str]) -> Raw:
    """A volume on one node, or in one zone."""
    node = rng.choice(sorted(zones))
    key, value = (ZONE, zones[node]) if zones[node] and rng.random() < 0.3 else (HOST, node)
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    spec = {
        "capacity": {"storage": f"{rng.choice((1, 2, 5, 10))}Gi"},
        "accessModes": rng.sample(("ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany"), rng.randint(1, 2)),
        "storageClassName": LOCAL,
        "persistentVolumeReclaimPolicy": "Retain",
        "local": {"path": f"/mnt/{number}"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    if rng.random() < 0.2:
        spec["volumeMode"] = "Block"
    return _named(f"local-{number}", labels={"speed": rng.choice(("slow", "fast"))}) | {"spec": spec}


def driver_volume(rng: Random, name: str, claim: Raw, zone: str, driver: str = DRIVER) -> Raw:
    """A volume of a CSI driver that belongs to a claim, as large as that asks for."""
    spec: Raw = {
        "capacity": claim["spec"]["resources"]["requests"],
        "accessModes": claim["spec"]["accessModes"],
        "persistentVolumeReclaimPolicy": "Retain",
        **_source(rng, name, driver),
        "claimRef": {"kind": "PersistentVolumeClaim", "apiVersion": "v1", **claim["metadata"]},
    }
    metadata: Raw = {"name": name}
    if zone and (rng.random() < 0.5 or "csi" not in spec):
        metadata["labels"] = {ZONE: f"{zone}__{rng.choice(ZONES)}"}
    if zone:
        term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    return {"metadata": metadata, "spec": spec}


def _source(rng: Random, name: str, driver: str) -> Raw:
    """Where the data is: mostly at the driver's; some volumes are of before there were drivers."""
    if not name.startswith(tuple(NAMESPACED)) or rng.random() < 0.7:
        return {"csi": {"driver": driver, "volumeHandle": name}}
    return rng.choice(({"awsElasticBlockStore": {"volumeID": name}}, {"gcePersistentDisk": {"pdName": name}}))
