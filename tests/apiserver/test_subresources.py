"""Scale, resize, ephemeral containers, finalize, binding, eviction, tokens and reviews."""

import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from skysail.api.ports import Request, User
from skysail.simulator.clock import LoopClock, run_virtual
from tests.apiserver.calls import PODS, Caller, serving

Raw = dict[str, Any]
APPS = "/apis/apps/v1/namespaces/default"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
AUTHORIZATION, AUTHENTICATION = "/apis/authorization.k8s.io/v1", "/apis/authentication.k8s.io/v1"
CONTAINER = {"name": "c", "image": "i:1"}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}


def virtual(test: Callable[[Caller], Awaitable[None]], **options: Any) -> None:
    async def main(clock: LoopClock) -> None:
        async with serving(clock, **options) as caller:
            await test(caller)

    run_virtual(main)


def pod(name: str, **metadata: Any) -> Raw:
    return {"metadata": {"name": name, **metadata}, "spec": {"containers": [CONTAINER]}}


@pytest.mark.parametrize("kind", ["deployments", "replicasets", "statefulsets"])
def test_a_scale_shows_and_sets_the_replicas(kind: str) -> None:
    async def test(caller: Caller) -> None:
        spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
        await caller.post(f"{APPS}/{kind}", {"metadata": {"name": "w"}, "spec": spec})
        scale = await caller.get(f"{APPS}/{kind}/w/scale")
        assert (scale["kind"], scale["spec"]) == ("Scale", {"replicas": 2})
        assert scale["status"] == {"replicas": 0, "selector": "a=b"}
        scale["spec"]["replicas"] = 5
        assert (await caller.send("PUT", f"{APPS}/{kind}/w/scale", scale)).status == 200
        workload = await caller.get(f"{APPS}/{kind}/w")
        assert (workload["spec"]["replicas"], workload["metadata"]["generation"]) == (5, 2)
        status, message = await caller.refused("PATCH", f"{APPS}/{kind}/w/scale", {"spec": {"replicas": -1}})
        assert status == 422
        assert "spec.replicas: Invalid value: -1: must be greater than or equal to 0" in message

    virtual(test)


def test_a_resize_changes_resources_and_nothing_else() -> None:
    async def test(caller: Caller) -> None:
        resources = {"requests": {"cpu": "100m"}, "limits": {"cpu": "200m"}}
        spec = {"containers": [{**CONTAINER, "resources": resources}]}
        await caller.post(PODS, {"metadata": {"name": "p"}, "spec": spec})
        body: Raw = {
            "spec": {"containers": [{"name": "c", "image": "other:1", "resources": {"requests": {"cpu": "150m"}}}]}
        }
        strategic = {"content-type": "application/strategic-merge-patch+json"}
        response = await caller.send("PATCH", f"{PODS}/p/resize", body, headers=strategic)
        assert response.status == 200, response.body
        made = json.loads(response.body)
        container = made["spec"]["containers"][0]
        assert (container["image"], container["resources"]["requests"]) == ("i:1", {"cpu": "150m"})
        assert made["metadata"]["generation"] == 2
        body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "300m"}}
        response = await caller.send("PATCH", f"{PODS}/p/resize", body, headers=strategic)
        assert response.status == 422

    virtual(test)


def test_ephemeral_containers_come_and_stay() -> None:
    async def test(caller: Caller) -> None:
        await caller.post(PODS, pod("p"))
        made = await caller.get(f"{PODS}/p")
        made["spec"]["ephemeralContainers"] = [{"name": "debug", "image": "b:1"}]
        assert (await caller.send("PUT", f"{PODS}/p/ephemeralcontainers", made)).status == 200
        made = await caller.get(f"{PODS}/p")
        assert [item["name"] for item in made["spec"]["ephemeralContainers"]] == ["debug"]
        made["spec"]["ephemeralContainers"] = []
        status, message = await caller.refused("PUT", f"{PODS}/p/ephemeralcontainers", made)
        assert status == 422
        assert 'existing ephemeral containers "debug" may not be removed' in message

    virtual(test)


def test_a_namespace_goes_when_its_own_finalizer_is_taken_off() -> None:
    async def test(caller: Caller) -> None:
        path = "/api/v1/namespaces/n"
        made = await caller.post("/api/v1/namespaces", {"metadata": {"name": "n"}})
        assert made["spec"]["finalizers"] == ["kubernetes"]
        await caller.send("DELETE", path)
        going = await caller.get(path)
        assert going["status"]["phase"] == "Terminating"
        going["spec"]["finalizers"] = []
        assert (await caller.send("PUT", path, going)).status == 200
        assert (await caller.get(path))["spec"]["finalizers"] == ["kubernetes"]
        going = await caller.get(path)
        going["spec"]["finalizers"] = []
        assert (await caller.send("PUT", f"{path}/finalize", going)).status == 200
        assert (await caller.send("GET", path)).status == 404

    virtual(test)


def test_a_binding_of_the_old_kind_works_too() -> None:
    async def test(caller: Caller) -> None:
        await caller.post(PODS, pod("p"))
        body: Raw = {"metadata": {"name": "p", "labels": {"x": "y"}}, "target": {"kind": "Node", "name": "n"}}
        await caller.post("/api/v1/namespaces/default/bindings", body)
        bound = await caller.get(f"{PODS}/p")
        assert (bound["spec"]["nodeName"], bound["metadata"]["labels"]) == ("n", {"x": "y"})
        assert bound["status"]["conditions"][0]["type"] == "PodScheduled"
        body["metadata"]["namespace"] = "other"
        status, _ = await caller.refused("POST", f"{PODS}/p/binding", body)
        assert status == 400

    virtual(test)


async def evict(caller: Caller, name: str) -> tuple[int, Raw]:
    response = await caller.send("POST", f"{PODS}/{name}/eviction", {"metadata": {"name": name}})
    return response.status, json.loads(response.body)


async def running(caller: Caller, name: str, *, ready: bool) -> None:
    await caller.post(PODS, pod(name, labels={"a": "b"}))
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    await caller.merge(f"{PODS}/{name}/status", {"status": {"phase": "Running", "conditions": conditions}})


async def budget(caller: Caller, allowed: int, *, policy: str = "", **status: int) -> None:
    spec: Raw = {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}
    if policy:
        spec["unhealthyPodEvictionPolicy"] = policy
    await caller.post(BUDGETS, {"metadata": {"name": "b"}, "spec": spec})
    known = {"observedGeneration": 1, "disruptionsAllowed": allowed, **status}
    await caller.merge(f"{BUDGETS}/b/status", {"status": known})


def test_an_eviction_takes_one_of_the_allowed_disruptions() -> None:
    async def test(caller: Caller) -> None:
        await running(caller, "p", ready=True)
        await running(caller, "q", ready=True)
        await budget(caller, 1)
        assert (await evict(caller, "p"))[0] == 201
        status = (await caller.get(f"{BUDGETS}/b"))["status"]
        assert (status["disruptionsAllowed"], list(status["disruptedPods"])) == (0, ["p"])
        code, answer = await evict(caller, "q")
        assert (code, answer["reason"]) == (429, "TooManyRequests")
        assert answer["details"]["causes"][0]["reason"] == "DisruptionBudget"

    virtual(test)


@pytest.mark.parametrize(
    ("policy", "healthy", "code"),
    [("", 1, 201), ("", 0, 429), ("IfHealthyBudget", 0, 429), ("AlwaysAllow", 0, 201)],
)
def test_pods_that_are_not_ready_go_when_the_budget_is_healthy_or_says_so(policy: str, healthy: int, code: int) -> None:
    async def test(caller: Caller) -> None:
        await running(caller, "p", ready=False)
        await budget(caller, 0, policy=policy, currentHealthy=healthy, desiredHealthy=1)
        assert (await evict(caller, "p"))[0] == code

    virtual(test)


def test_a_token_names_its_account() -> None:
    async def test(caller: Caller) -> None:
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        account = await caller.post(accounts, {"metadata": {"name": "s"}})
        answer = await caller.post(f"{accounts}/s/token", {"spec": {"audiences": ["me"]}})
        payload = answer["status"]["token"].split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        assert (claims["sub"], claims["aud"]) == ("system:serviceaccount:default:s", ["me"])
        assert claims["kubernetes.io"]["serviceaccount"] == {"name": "s", "uid": account["metadata"]["uid"]}
        assert claims["exp"] - claims["iat"] == 3600
        code, message = await caller.refused("POST", f"{accounts}/s/token", {"spec": {"expirationSeconds": 5}})
        assert (code, message.split(": ", 1)[1]) == (
            422,
            "spec.expirationSeconds: Invalid value: 5: may not specify a duration less than 10 minutes",
        )
        assert (await caller.refused("POST", f"{accounts}/none/token", {}))[0] == 404

    virtual(test)


def test_a_review_says_which_binding_allows() -> None:
    async def test(caller: Caller) -> None:
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        rules = [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["web"]}]
        await caller.post(f"{rbac}/clusterroles", {"metadata": {"name": "look"}, "rules": rules})
        role = {"kind": "ClusterRole", "name": "look"}
        subjects = [{"kind": "User", "name": "bob"}]
        body = {"metadata": {"name": "bob-looks"}, "roleRef": role, "subjects": subjects}
        await caller.post(f"{rbac}/namespaces/default/rolebindings", body)

        async def status(user: str, **attributes: str) -> Raw:
            asked = {"namespace": "default", "verb": "get", "resource": "pods", "name": "web", **attributes}
            spec = {"user": user, "resourceAttributes": asked}
            answer: Raw = (await caller.post(f"{AUTHORIZATION}/subjectaccessreviews", {"spec": spec}))["status"]
            return answer

        words = 'RBAC: allowed by RoleBinding "bob-looks/default" of ClusterRole "look" to User "bob"'
        assert await status("bob") == {"allowed": True, "reason": words}
        assert await status("bob", name="other") == {"allowed": False}
        assert await status("bob", namespace="kube-system") == {"allowed": False}
        assert await status("alice") == {"allowed": False}
        query = {"spec": {"namespace": "default"}}
        request = Request("POST", f"{AUTHORIZATION}/selfsubjectrulesreviews", (), {}, json.dumps(query).encode())
        bob = User("bob", groups=("system:authenticated",))
        answer = json.loads((await caller.server.handle(request, bob)).body)
        assert rules[0] in answer["status"]["resourceRules"]

    virtual(test, options={"authorization-mode": "RBAC"})


def test_a_token_review_knows_the_servers_tokens_only() -> None:
    async def test(caller: Caller) -> None:
        reviews = f"{AUTHENTICATION}/tokenreviews"
        answer = (await caller.post(reviews, {"spec": {"token": "t"}}))["status"]
        assert answer["user"] == {"username": "bob", "groups": ["g"]}
        answer = (await caller.post(reviews, {"spec": {"token": "t", "audiences": ["others"]}}))["status"]
        assert answer == {"user": {}, "error": "invalid bearer token"}
        assert (await caller.refused("POST", reviews, {"spec": {}}))[0] == 400

    virtual(test, tokens={"t": User("bob", groups=("g",))})


def test_a_certificate_is_asked_for_approved_and_signed() -> None:
    async def test(caller: Caller) -> None:
        requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

        def pem(kind: str) -> str:
            return base64.b64encode(f"-----BEGIN {kind}-----\nAAAA\n-----END {kind}-----\n".encode()).decode()

        spec = {"request": pem("CERTIFICATE REQUEST"), "signerName": "a.b/c", "usages": ["client auth"]}
        made = await caller.post(requests, {"metadata": {"name": "r"}, "spec": {**spec, "username": "forged"}})
        assert made["spec"]["username"] == "admin"
        approved = {"type": "Approved", "status": "True", "reason": "r", "message": "m"}
        status, message = await caller.refused("PATCH", f"{requests}/r/status", {"status": {"conditions": [approved]}})
        assert (status, 'updates may not add a condition of type "Approved"' in message) == (422, True)
        await caller.merge(f"{requests}/r/approval", {"status": {"conditions": [approved]}})
        made = await caller.merge(f"{requests}/r/status", {"status": {"certificate": pem("CERTIFICATE")}})
        assert made["status"]["conditions"][0]["lastUpdateTime"]
        status, message = await caller.refused("PATCH", f"{requests}/r/approval", {"status": {"conditions": None}})
        assert (status, 'updates may not remove a condition of type "Approved"' in message) == (422, True)
        bad = {"metadata": {"name": "s"}, "spec": {**spec, "request": pem("CERTIFICATE"), "signerName": "x"}}
        status, message = await caller.refused("POST", requests, bad)
        assert status == 422
        assert "PEM block type must be CERTIFICATE REQUEST" in message
        assert "must be a fully qualified domain and path of the form 'example.com/signer-name'" in message

    virtual(test)
