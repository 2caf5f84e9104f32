"""Random devices, classes and claims that use every way of offering and asking for devices; a seed repeats them.

Every node may have GPUs, whole or partitioned, and network cards that share their bandwidth; some devices are attached
to a zone, or to all nodes. Some are tainted. Claims ask for counts, for all, for alternatives, with selectors,
constraints, tolerations, capacity and configuration; they come directly, from templates, or by an extended resource.
"""

from random import Random

from e2e.harness.random_cluster import ZONE, ZONES, Made
from e2e.harness.random_pods import Wanted
from skysail.api.kinds import DEVICE_CLASSES, NAMESPACES, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, RESOURCE_SLICES
from skysail.api.raw import Raw

GPU, NIC, NET = "gpu.test", "nic.test", "net.test"
DEVICE_NAMESPACES = ("default", "admin")
_CLASSES = ("gpu", "big-gpu", "partition", "nic", "net", "anything")
_MODELS = ("a100", "h100")


def device_cluster(rng: Random, nodes: list[str]) -> Made:
    """Classes and slices for these nodes, templates to make claims of."""
    made: Made = [(NAMESPACES, "", {"metadata": {"name": "admin", "labels": _ADMIN}})]
    made += [(DEVICE_CLASSES, "", each) for each in _classes()]
    for node in nodes:
        if rng.random() < 0.7:
            made += _slices(node, GPU, [_gpus(rng)], {"nodeName": node})
        if rng.random() < 0.3:
            made += _slices(f"{node}-parts", GPU, _partitioned(rng), {"nodeName": node})
        if rng.random() < 0.6:
            made += _slices(node, NIC, [{"devices": _cards(rng)}], {"nodeName": node})
    for zone in ZONES[:2]:
        term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
        where = {"nodeSelector": {"nodeSelectorTerms": [term]}}
        made += _slices(zone, NET, [{"devices": [_plain(f"net-{index}", rng) for index in range(3)]}], where)
    made += _slices(
        "everywhere", NET, [{"devices": [_plain(f"any-{index}", rng) for index in range(2)]}], {"allNodes": True}
    )
    for namespace in DEVICE_NAMESPACES:
        for number in range(4):
            body = {"metadata": {"name": f"template-{number}"}, "spec": {"spec": _claim_spec(rng, namespace)}}
            made.append((RESOURCE_CLAIM_TEMPLATES, namespace, body))
    return made


def device_pod(rng: Random, number: int, claims: list[tuple[str, str]]) -> Wanted:
    """One pod with one to three claims.

    Args:
        rng: The dice.
        number: Becomes its name.
        claims: Claims made so far, namespace and name; added to.
    """
    namespace = rng.choice(("default", "default", "default", "admin"))
    requests = {"cpu": f"{rng.choice((10, 100, 250))}m", "memory": "32Mi"}
    container: Raw = {"name": "main", "image": "x", "resources": {"requests": requests}}
    spec: Raw = {"terminationGracePeriodSeconds": 0, "containers": [container]}
    if rng.random() < 0.4:
        spec["tolerations"] = [{"operator": "Exists"}]
    if rng.random() < 0.3:
        spec["priorityClassName"] = rng.choice(("low", "high", "meek"))
    wanted = Wanted(namespace, {"metadata": {"name": f"d{number:05d}", "labels": {"app": "devices"}}, "spec": spec})
    if rng.random() < 0.12:
        requests["example.com/xgpu"] = str(rng.randint(1, 2))
        container["resources"]["limits"] = {"example.com/xgpu": requests["example.com/xgpu"]}
        return wanted
    spec["resourceClaims"] = [
        _pod_claim(rng, wanted, f"{number}-{index}", index, claims) for index in range(rng.choice((1, 1, 2, 3)))
    ]
    names = {each.get("resourceClaimName") for each in spec["resourceClaims"]}
    if len(names - {None}) < sum("resourceClaimName" in each for each in spec["resourceClaims"]):
        spec["resourceClaims"] = spec["resourceClaims"][:1]
    container["resources"]["claims"] = [{"name": each["name"]} for each in spec["resourceClaims"]]
    return wanted


def _pod_claim(rng: Random, wanted: Wanted, name: str, index: int, claims: list[tuple[str, str]]) -> Raw:
    kind = rng.random()
    known = [claim for namespace, claim in claims if namespace == wanted.namespace]
    if kind < 0.25:
        return {"name": f"r{index}", "resourceClaimTemplateName": f"template-{rng.randrange(4)}"}
    if kind < 0.4 and known:
        return {"name": f"r{index}", "resourceClaimName": rng.choice(known)}
    if kind < 0.43:
        return {"name": f"r{index}", "resourceClaimName": "missing"}
    body = {"metadata": {"name": f"claim-{name}"}, "spec": _claim_spec(rng, wanted.namespace)}
    wanted.before.append((RESOURCE_CLAIMS, wanted.namespace, body))
    claims.append((wanted.namespace, f"claim-{name}"))
    return {"name": f"r{index}", "resourceClaimName": f"claim-{name}"}


# -- what there is ---------------------------------------------------------------------------------------------------

_ADMIN = {"resource.kubernetes.io/admin-access": "true"}


def _classes() -> list[Raw]:
    def of(name: str, expression: str, **spec: object) -> Raw:
        return {"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": expression}}], **spec}}

    parameters = {"driver": GPU, "parameters": {"apiVersion": "gpu.test/v1", "kind": "Options", "value": 1}}
    enough = f'device.capacity["{GPU}"].memory.compareTo(quantity("40Gi")) >= 0'
    return [
        of("gpu", f'device.driver == "{GPU}" && !("parent" in device.attributes["{GPU}"])'),
        of(
            "big-gpu",
            f'device.driver == "{GPU}" && !("parent" in device.attributes["{GPU}"]) && {enough}',
            config=[{"opaque": parameters}],
        ),
        of("partition", f'device.driver == "{GPU}" && "parent" in device.attributes["{GPU}"]'),
        of("nic", f'device.driver == "{NIC}"'),
        of("net", f'device.driver == "{NET}"'),
        {"metadata": {"name": "anything"}, "spec": {}},
        of("xgpu", f'device.driver == "{GPU}"', extendedResourceName="example.com/xgpu"),
    ]


def _slices(pool: str, driver: str, parts: list[Raw], where: Raw) -> Made:
    about = {"name": pool, "generation": 1, "resourceSliceCount": len(parts)}
    name = f"{pool}-{driver.replace('.', '-')}"
    return [
        (
            RESOURCE_SLICES,
            "",
            {"metadata": {"name": f"{name}-{index}"}, "spec": {"driver": driver, "pool": about, **where, **part}},
        )
        for index, part in enumerate(parts)
    ]


def _gpus(rng: Random) -> Raw:
    return {"devices": [_gpu(rng, index) for index in range(rng.choice((1, 2, 4)))]}


def _gpu(rng: Random, index: int) -> Raw:
    attributes: Raw = {
        "model": {"string": rng.choice(_MODELS)}, "index": {"int": index}, "healthy": {"bool": rng.random() < 0.9},
        "driverVersion": {"version": rng.choice(("1.2.0", "1.10.3", "2.0.0-beta.1"))},
        "topology.test/numa": {"int": index % 2},
    }  # fmt: skip
    device: Raw = {"name": f"gpu-{index}", "attributes": attributes}
    device["capacity"] = {"memory": {"value": rng.choice(("16Gi", "40Gi", "80Gi"))}}
    if rng.random() < 0.15:
        effect = rng.choice(("NoSchedule", "NoExecute", "None"))
        device["taints"] = [{"key": "gpu.test/sick", "value": rng.choice(("hot", "cold")), "effect": effect}]
    return device


def _partitioned(rng: Random) -> list[Raw]:
    counters = {"memory": {"value": "40Gi"}, "slices": {"value": "4"}}
    devices = []
    for index in range(4):
        size = rng.choice((1, 2, 4))
        used = {"memory": {"value": f"{10 * size}Gi"}, "slices": {"value": str(size)}}
        attributes = {"parent": {"int": 0}, "profile": {"string": f"{size}g"}, "topology.test/numa": {"int": 0}}
        devices.append(
            {
                "name": f"part-{index}", "attributes": attributes, "capacity": {"memory": used["memory"]},
                "consumesCounters": [{"counterSet": "whole", "counters": used}],
            }
        )  # fmt: skip
    return [{"sharedCounters": [{"name": "whole", "counters": counters}]}, {"devices": devices}]


def _cards(rng: Random) -> list[Raw]:
    cards = []
    for index in range(rng.randint(1, 3)):
        card = _plain(f"nic-{index}", rng)
        card["attributes"] |= {"rdma": {"bool": rng.random() < 0.5}, "topology.test/numa": {"int": index % 2}}
        card["capacity"] = {"bandwidth": {"value": "100"}}
        if rng.random() < 0.5:
            policy = rng.choice(
                (
                    {"default": "10", "validRange": {"min": "10", "max": "60", "step": "10"}},
                    {"default": "25", "validValues": ["25", "50"]},
                )
            )
            card["allowMultipleAllocations"] = True
            card["capacity"]["bandwidth"]["requestPolicy"] = policy
        cards.append(card)
    return cards


def _plain(name: str, rng: Random) -> Raw:
    return {"name": name, "attributes": {"kind": {"string": name[:3]}, "speed": {"int": rng.choice((10, 100))}}}


# -- what is asked for -----------------------------------------------------------------------------------------------


def _claim_spec(rng: Random, namespace: str) -> Raw:
    requests = [_request(rng, f"q{index}", namespace) for index in range(rng.choice((1, 1, 2, 3)))]
    devices: Raw = {"requests": requests}
    if rng.random() < 0.35:
        constraint: Raw = {"matchAttribute": rng.choice(("topology.test/numa", f"{GPU}/model"))}
        if rng.random() < 0.15:
            constraint = {"distinctAttribute": f"{GPU}/index"}
        if len(requests) > 1 and rng.random() < 0.5:
            constraint["requests"] = [each["name"] for each in requests[:2]]
        devices["constraints"] = [constraint]
    if rng.random() < 0.15:
        parameters = {"apiVersion": "x.test/v1", "kind": "Options", "value": 2}
        devices["config"] = [{"opaque": {"driver": rng.choice((GPU, NIC)), "parameters": parameters}}]
    return {"devices": devices}


def _request(rng: Random, name: str, namespace: str) -> Raw:
    if rng.random() < 0.25:
        choices = [{"name": f"s{index}"} | _device_request(rng) for index in range(rng.randint(1, 3))]
        return {"name": name, "firstAvailable": choices}
    exactly = _device_request(rng)
    if namespace == "admin" and rng.random() < 0.3:
        exactly["adminAccess"] = True
    return {"name": name, "exactly": exactly}


def _device_request(rng: Random) -> Raw:
    name = rng.choice(_CLASSES)
    found: Raw = {"deviceClassName": name}
    if rng.random() < 0.12:
        found["allocationMode"] = "All"
    else:
        found["count"] = rng.choice((1, 1, 1, 2))
    if rng.random() < 0.3:
        found["selectors"] = [{"cel": {"expression": _expression(rng, name)}}]
    if rng.random() < 0.2:
        found["tolerations"] = [rng.choice(({"operator": "Exists"}, {"key": "gpu.test/sick", "value": "hot"}))]
    if name == "nic" and rng.random() < 0.4:
        found["capacity"] = {"requests": {"bandwidth": rng.choice(("5", "20", "25", "60"))}}
    return found


def _expression(rng: Random, name: str) -> str:
    gpu = f'device.attributes["{GPU}"]'
    if name in ("gpu", "big-gpu"):
        return rng.choice(
            (
                f'{gpu}.model == "{rng.choice(_MODELS)}"',
                f"{gpu}.healthy && {gpu}.index < 2",
                f'has({gpu}.driverVersion) && {gpu}.driverVersion.compareTo(semver("1.5.0")) >= 0',
                f'device.capacity["{GPU}"].memory.isGreaterThan(quantity("20Gi"))',
            )
        )
    if name == "partition":
        return f'{gpu}.profile in ["1g", "2g"]'
    if name == "nic":
        return f'device.attributes["{NIC}"].rdma || device.attributes["{NIC}"].speed > 50'
    return rng.choice(('device.driver.endsWith(".test")', f'device.driver == "{NET}"'))
