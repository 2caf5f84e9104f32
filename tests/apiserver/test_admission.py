"""What the default admission plugins do to requests."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from skysail.api.ports import Request, User
from skysail.simulator.clock import LoopClock, run_virtual
from tests.apiserver.calls import PODS, Caller, serving

Raw = dict[str, Any]
NAMESPACES = "/api/v1/namespaces"
CLAIMS = f"{NAMESPACES}/default/persistentvolumeclaims"
QUOTAS = f"{NAMESPACES}/default/resourcequotas"
LIMITS = f"{NAMESPACES}/default/limitranges"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
CLAIM: Raw = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}


def virtual(test: Callable[[Caller], Awaitable[None]], **options: str) -> None:
    async def main(clock: LoopClock) -> None:
        async with serving(clock, options=options) as caller:
            await test(caller)

    run_virtual(main)


def pod(name: str = "p", **spec: Any) -> Raw:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i:1"}], **spec}}


def asking(name: str, **resources: Raw) -> Raw:
    return pod(name, containers=[{"name": "c", "image": "i:1", "resources": resources}])


def test_nothing_is_created_in_a_namespace_that_is_missing_or_going() -> None:
    async def test(caller: Caller) -> None:
        maps = f"{NAMESPACES}/n/configmaps"
        assert await caller.refused("POST", maps, {"metadata": {"name": "m"}}) == (404, 'namespaces "n" not found')
        await caller.post(NAMESPACES, {"metadata": {"name": "n"}})
        await caller.send("DELETE", f"{NAMESPACES}/n")
        status, message = await caller.refused("POST", maps, {"metadata": {"name": "m"}})
        assert (status, message) == (
            403,
            'configmaps "m" is forbidden: unable to create new content in namespace n because it is being terminated',
        )

    virtual(test)


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_the_first_namespaces_cannot_be_deleted(name: str) -> None:
    async def test(caller: Caller) -> None:
        status, message = await caller.refused("DELETE", f"{NAMESPACES}/{name}")
        assert (status, message) == (403, f'namespaces "{name}" is forbidden: this namespace may not be deleted')

    virtual(test)


def test_pods_tolerate_absent_nodes_for_five_minutes_unless_they_say_otherwise() -> None:
    async def test(caller: Caller) -> None:
        made = await caller.post(PODS, pod())
        kinds = {(item["key"], item["tolerationSeconds"]) for item in made["spec"]["tolerations"]}
        assert kinds == {("node.kubernetes.io/not-ready", 300), ("node.kubernetes.io/unreachable", 300)}
        own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
        made = await caller.post(PODS, pod("q", tolerations=[own]))
        assert [item.get("tolerationSeconds") for item in made["spec"]["tolerations"]] == [None, 300]

    virtual(test)


def test_new_nodes_are_not_ready() -> None:
    async def test(caller: Caller) -> None:
        node = await caller.post("/api/v1/nodes", {"metadata": {"name": "n"}})
        assert node["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]

    virtual(test)


def test_priorities_come_from_classes() -> None:
    async def test(caller: Caller) -> None:
        never = {"metadata": {"name": "low"}, "value": -5, "preemptionPolicy": "Never"}
        await caller.post(PRIORITIES, never)
        made = await caller.post(PODS, pod(priorityClassName="low"))
        assert (made["spec"]["priority"], made["spec"]["preemptionPolicy"]) == (-5, "Never")
        await caller.post(PRIORITIES, {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True})
        made = await caller.post(PODS, pod("q"))
        assert (made["spec"]["priorityClassName"], made["spec"]["priority"]) == ("usual", 7)
        status, message = await caller.refused("POST", PODS, pod("r", priorityClassName="none"))
        assert (status, message) == (403, 'pods "r" is forbidden: no PriorityClass with name none was found')
        status, message = await caller.refused("POST", PODS, pod("s", priorityClassName="low", priority=3))
        assert status == 403
        assert "the integer value of priority (3) must not be provided in pod spec" in message
        second = {"metadata": {"name": "other"}, "value": 8, "globalDefault": True}
        status, message = await caller.refused("POST", PRIORITIES, second)
        assert status == 403
        assert "PriorityClass usual is already marked as default" in message

    virtual(test)


def test_claims_get_the_newest_default_class_and_are_kept_while_used() -> None:
    async def test(caller: Caller) -> None:
        mark = {"storageclass.kubernetes.io/is-default-class": "true"}
        await caller.post(CLASSES, {"metadata": {"name": "a", "annotations": mark}, "provisioner": "x/y"})
        made = await caller.post(CLAIMS, {"metadata": {"name": "c"}, **CLAIM})
        assert made["spec"]["storageClassName"] == "a"
        assert made["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
        none = {"metadata": {"name": "d"}, "spec": {**CLAIM["spec"], "storageClassName": ""}}
        assert (await caller.post(CLAIMS, none))["spec"]["storageClassName"] == ""

    virtual(test)


def test_limit_ranges_fill_in_and_bound_what_containers_ask_for() -> None:
    async def test(caller: Caller) -> None:
        limit = {
            "type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "250m"},
            "min": {"cpu": "100m"}, "max": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "4"},
        }  # fmt: skip
        await caller.post(LIMITS, {"metadata": {"name": "l"}, "spec": {"limits": [limit]}})
        made = await caller.post(PODS, pod())
        resources = made["spec"]["containers"][0]["resources"]
        assert resources == {"limits": {"cpu": "500m"}, "requests": {"cpu": "250m"}}
        note = made["metadata"]["annotations"]["kubernetes.io/limit-ranger"]
        assert note == "LimitRanger plugin set: cpu request for container c; cpu limit for container c"
        for asked, words in (
            ({"requests": {"cpu": "50m"}}, "[minimum cpu usage per Container is 100m, but request is 50m, "
             "cpu max limit to request ratio per Container is 4, but provided ratio is 10.000000]"),
            ({"limits": {"cpu": "2"}, "requests": {"cpu": "1"}},
             "maximum cpu usage per Container is 1, but limit is 2"),
        ):  # fmt: skip
            status, message = await caller.refused("POST", PODS, asking("q", **asked))
            assert (status, message) == (403, f'pods "q" is forbidden: {words}')

    virtual(test)


def test_quotas_are_charged_and_refuse_when_used_up() -> None:
    async def test(caller: Caller) -> None:
        hard = {"pods": "2", "requests.cpu": "1"}
        await caller.post(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": hard}})
        status = {"status": {"hard": hard, "used": {"pods": "0", "requests.cpu": "0"}}}
        await caller.merge(f"{QUOTAS}/q/status", status)
        code, message = await caller.refused("POST", PODS, pod())
        assert (code, message) == (403, 'pods "p" is forbidden: failed quota: q: must specify requests.cpu for: c')
        await caller.post(PODS, asking("a", requests={"cpu": "600m"}))
        assert (await caller.get(f"{QUOTAS}/q"))["status"]["used"] == {"pods": "1", "requests.cpu": "600m"}
        code, message = await caller.refused("POST", PODS, asking("b", requests={"cpu": "500m"}))
        assert (code, message) == (
            403,
            'pods "b" is forbidden: exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=600m, '
            "limited: requests.cpu=1",
        )
        await caller.send("POST", PODS, asking("c", requests={"cpu": "1m"}), dryRun="All")
        assert (await caller.refused("POST", PODS, asking("a", requests={"cpu": "1m"})))[0] == 409
        assert (await caller.get(f"{QUOTAS}/q"))["status"]["used"]["pods"] == "1"

    virtual(test)


def test_service_accounts_are_mounted_when_asked_for() -> None:
    async def test(caller: Caller) -> None:
        accounts = f"{NAMESPACES}/default/serviceaccounts"
        status, message = await caller.refused("POST", PODS, pod())
        assert status == 403
        assert 'error looking up service account default/default: serviceaccount "default" not found' in message
        await caller.post(accounts, {"metadata": {"name": "default"}})
        spec = (await caller.post(PODS, pod()))["spec"]
        assert spec["serviceAccountName"] == "default"
        assert spec["containers"][0]["volumeMounts"][0]["mountPath"] == "/var/run/secrets/kubernetes.io/serviceaccount"
        spec = (await caller.post(PODS, pod("q", automountServiceAccountToken=False)))["spec"]
        assert "volumes" not in spec

    virtual(test, **{"enable-service-account-admission": "true"})


def test_nobody_grants_what_they_may_not_do() -> None:
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    roles, bindings = (f"{rbac}/namespaces/default/{kind}" for kind in ("roles", "rolebindings"))
    look = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}
    edit = {"verbs": ["create", "update"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"]}
    alice = User("alice", groups=("devs",))

    async def test(caller: Caller) -> None:
        async def as_alice(path: str, body: Raw) -> tuple[int, str]:
            response = await caller.server.handle(Request("POST", path, (), {}, json.dumps(body).encode()), alice)
            return response.status, json.loads(response.body).get("message", "")

        await caller.post(f"{rbac}/clusterroles", {"metadata": {"name": "author"}, "rules": [look, edit]})
        await caller.post(f"{rbac}/clusterroles", {"metadata": {"name": "all"}, "rules": [{**look, "verbs": ["*"]}]})
        subject = {"kind": "Group", "name": "devs"}
        binding = {"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "author"}}
        await caller.post(bindings, {**binding, "subjects": [subject]})
        assert (await as_alice(roles, {"metadata": {"name": "r"}, "rules": [look]}))[0] == 201
        more = {**look, "verbs": ["get", "watch", "delete"]}
        status, message = await as_alice(roles, {"metadata": {"name": "s"}, "rules": [more]})
        assert (status, message) == (
            403,
            'roles.rbac.authorization.k8s.io "s" is forbidden: user "alice" (groups=["devs"]) is attempting to grant '
            'RBAC permissions not currently held:\n{APIGroups:[""], Resources:["pods"], Verbs:["watch" "delete"]}',
        )
        given = {"metadata": {"name": "c"}, "roleRef": {"kind": "ClusterRole", "name": "all"}}
        assert (await as_alice(bindings, given))[0] == 403
        given["roleRef"] = {"kind": "ClusterRole", "name": "author"}
        assert (await as_alice(bindings, given))[0] == 201
        given = {"metadata": {"name": "d"}, "roleRef": {"kind": "Role", "name": "none"}}
        assert (await as_alice(bindings, given))[0] == 404

    virtual(test, **{"authorization-mode": "RBAC"})
