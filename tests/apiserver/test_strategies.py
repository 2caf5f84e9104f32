"""The life of an object of each kind: addresses, generations, conversions, warnings."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from skysail.apiserver.strategies import for_resource
from skysail.apiserver.strategies.pod_warnings import pod_warnings
from skysail.simulator.clock import LoopClock, run_virtual
from tests.apiserver.calls import PODS, Caller, serving

Raw = dict[str, Any]
SERVICES = "/api/v1/namespaces/default/services"
APPS = "/apis/apps/v1/namespaces/default"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
EVENTS, NEW_EVENTS = "/api/v1/namespaces/default/events", "/apis/events.k8s.io/v1/namespaces/default/events"
SCALERS = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"
TEMPLATE: Raw = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}


def virtual(test: Callable[[Caller], Awaitable[None]], **options: Any) -> None:
    async def main(clock: LoopClock) -> None:
        async with serving(clock, **options) as caller:
            await test(caller)

    run_virtual(main)


def service(name: str, **spec: Any) -> Raw:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


def test_services_get_addresses_nobody_else_has() -> None:
    async def test(caller: Caller) -> None:
        seen = [(await caller.post(SERVICES, service(f"s{n}")))["spec"]["clusterIP"] for n in range(5)]
        assert len(set(seen)) == 5
        status, message = await caller.refused("POST", SERVICES, service("s5"))
        assert (status, "range is full" in message) == (500, True)
        await caller.send("DELETE", f"{SERVICES}/s0")
        assert (await caller.post(SERVICES, service("s5")))["spec"]["clusterIP"] == seen[0]
        assert (await caller.post(SERVICES, service("h", clusterIP="None")))["spec"]["clusterIPs"] == ["None"]

    virtual(test, options={"service-cidr": "10.0.0.0/29"})


def test_named_addresses_and_ports_must_be_free_and_in_range() -> None:
    async def test(caller: Caller) -> None:
        await caller.post(SERVICES, service("a", clusterIP="10.0.0.9", type="NodePort", ports=[
            {"port": 80, "nodePort": 30080},
        ]))  # fmt: skip
        for change, words in (
            ({"clusterIP": "10.0.0.9"}, "failed to allocate IP 10.0.0.9: provided IP is already allocated"),
            ({"clusterIP": "10.1.0.9"}, "the provided network does not match the current range"),
            ({"clusterIP": "10.0.0.0"}, "the provided IP (10.0.0.0) is not in the valid range"),
            ({"ipFamilyPolicy": "RequireDualStack"}, "this cluster is not configured for dual-stack services"),
            ({"ipFamilies": ["IPv6"]}, 'spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster'),
            (
                {"type": "NodePort", "ports": [{"port": 1, "nodePort": 30080, "protocol": "UDP"}]},
                "provided port is already allocated",
            ),
            ({"type": "NodePort", "ports": [{"port": 1, "nodePort": 80}]}, "provided port is not in the valid range"),
        ):
            status, message = await caller.refused("POST", SERVICES, service("b", **change))
            assert (status, words in message) == (422, True), message

    virtual(test)


def test_what_belonged_to_the_old_type_of_a_service_goes() -> None:
    async def test(caller: Caller) -> None:
        made = await caller.post(SERVICES, service("a", type="NodePort"))
        assert made["spec"]["ports"][0]["nodePort"] >= 30000
        made["spec"]["type"] = "ClusterIP"
        made = json.loads((await caller.send("PUT", f"{SERVICES}/a", made)).body)
        assert "nodePort" not in made["spec"]["ports"][0]
        assert "externalTrafficPolicy" not in made["spec"]
        kept = made["spec"]["clusterIP"]
        status, message = await caller.refused("PATCH", f"{SERVICES}/a", {"spec": {"clusterIP": "10.0.0.77"}})
        assert (status, message.split(": ", 1)[1]) == (
            422,
            'spec.clusterIPs[0]: Invalid value: ["10.0.0.77"]: may not change once set',
        )
        replaced = service("a")
        replaced["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"]
        made = json.loads((await caller.send("PUT", f"{SERVICES}/a", replaced)).body)
        assert made["spec"]["clusterIP"] == kept
        made = await caller.merge(f"{SERVICES}/a", {"spec": {"type": "ExternalName", "externalName": "a.b"}})
        assert not made["spec"].keys() & {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"}
        made = await caller.merge(f"{SERVICES}/a", {"spec": {"type": "LoadBalancer", "externalName": None}})
        assert made["spec"]["clusterIPs"] == [made["spec"]["clusterIP"]]
        ingress = {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}
        made = await caller.merge(f"{SERVICES}/a/status", ingress)
        assert made["status"]["loadBalancer"]["ingress"][0]["ipMode"] == "VIP"
        made = await caller.merge(f"{SERVICES}/a", {"spec": {"externalTrafficPolicy": "Local"}})
        assert made["spec"]["healthCheckNodePort"] >= 30000
        made = await caller.merge(f"{SERVICES}/a", {"spec": {"type": "ClusterIP"}})
        assert made["status"] == {"loadBalancer": {}}
        assert not made["spec"].keys() & {"healthCheckNodePort", "externalTrafficPolicy"}

    virtual(test)


@pytest.mark.parametrize(
    ("change", "generation"),
    [
        ({"spec": {"replicas": 3}}, 2),
        ({"metadata": {"annotations": {"x": "y"}}}, 2),
        ({"metadata": {"labels": {"x": "y"}}}, 1),
        ({"status": {"replicas": 7}}, 1),
    ],
)
def test_what_counts_as_a_new_generation_of_a_deployment(change: Raw, generation: int) -> None:
    async def test(caller: Caller) -> None:
        body = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}}
        await caller.post(f"{APPS}/deployments", body)
        made = await caller.merge(f"{APPS}/deployments/d", change)
        assert made["metadata"]["generation"] == generation
        assert made["status"] == {}

    virtual(test)


def test_a_daemon_set_counts_its_templates_in_an_annotation() -> None:
    async def test(caller: Caller) -> None:
        key = "deprecated.daemonset.template.generation"
        body = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}}
        made = await caller.post(f"{APPS}/daemonsets", body)
        assert made["metadata"]["annotations"] == {key: "1"}
        made = await caller.merge(f"{APPS}/daemonsets/d", {"spec": {"minReadySeconds": 3}})
        assert made["metadata"]["annotations"] == {key: "1"}
        template = {"spec": {"template": {"metadata": {"labels": {"x": "y"}}}}}
        made = await caller.merge(f"{APPS}/daemonsets/d", template)
        assert (made["metadata"]["annotations"], made["metadata"]["generation"]) == ({key: "2"}, 3)

    virtual(test)


def test_a_job_makes_its_selector_of_its_uid() -> None:
    async def test(caller: Caller) -> None:
        template = {"spec": {"restartPolicy": "Never", **TEMPLATE["spec"]}}
        made = await caller.post(JOBS, {"metadata": {"name": "j"}, "spec": {"template": template}})
        uid = made["metadata"]["uid"]
        assert made["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
        assert made["spec"]["template"]["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "j"
        response = await caller.send("DELETE", f"{JOBS}/j")
        assert "child pods are preserved by default" in (response.header("Warning") or "")

    virtual(test)


def test_events_are_one_store_under_two_names() -> None:
    async def test(caller: Caller) -> None:
        about = {"kind": "Pod", "name": "p", "namespace": "default"}
        new = {
            "metadata": {"name": "e"}, "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "c",
            "reportingInstance": "i", "action": "a", "reason": "r", "regarding": about, "note": "n", "type": "Normal",
        }  # fmt: skip
        await caller.post(NEW_EVENTS, new)
        core = await caller.get(f"{EVENTS}/e")
        assert (core["involvedObject"], core["message"], core["reportingComponent"]) == (about, "n", "c")
        assert (await caller.get(f"{NEW_EVENTS}/e"))["note"] == "n"
        found = await caller.get(EVENTS, fieldSelector="involvedObject.name=p")
        assert len(found["items"]) == 1
        old = {"metadata": {"name": "f"}, "involvedObject": about, "message": "m", "source": {"component": "s"}}
        await caller.post(EVENTS, old)
        shown = await caller.get(f"{NEW_EVENTS}/f")
        assert (shown["regarding"], shown["deprecatedSource"]) == (about, {"component": "s"})
        code, message = await caller.refused("POST", NEW_EVENTS, {"metadata": {"name": "g"}, "regarding": about})
        assert code == 422
        assert "eventTime: Required value" in message

    virtual(test)


def test_an_autoscaler_of_the_first_version_is_one_of_the_second() -> None:
    async def test(caller: Caller) -> None:
        spec = {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}
        old = {"metadata": {"name": "h"}, "spec": {**spec, "targetCPUUtilizationPercentage": 60}}
        await caller.post(SCALERS.format("v1"), old)
        made = await caller.get(f"{SCALERS.format('v2')}/h")
        target = {"type": "Utilization", "averageUtilization": 60}
        assert made["spec"]["metrics"] == [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
        external = {"metric": {"name": "m"}, "target": {"type": "Value", "value": "3"}}
        made["spec"]["metrics"].append({"type": "External", "external": external})
        assert (await caller.send("PUT", f"{SCALERS.format('v2')}/h", made)).status == 200
        shown = await caller.get(f"{SCALERS.format('v1')}/h")
        assert shown["spec"]["targetCPUUtilizationPercentage"] == 60
        shown["spec"]["targetCPUUtilizationPercentage"] = 70
        assert (await caller.send("PUT", f"{SCALERS.format('v1')}/h", shown)).status == 200
        kept = (await caller.get(f"{SCALERS.format('v2')}/h"))["spec"]["metrics"]
        assert {metric["type"] for metric in kept} == {"External", "Resource"}

    virtual(test)


def test_a_pods_generation_follows_its_spec_alone() -> None:
    async def test(caller: Caller) -> None:
        await caller.post(PODS, {"metadata": {"name": "p"}, "spec": TEMPLATE["spec"]})
        assert (await caller.merge(f"{PODS}/p", {"metadata": {"labels": {"x": "y"}}}))["metadata"]["generation"] == 1
        assert (await caller.merge(f"{PODS}/p/status", {"status": {"phase": "Running"}}))["metadata"]["generation"] == 1
        assert (await caller.merge(f"{PODS}/p", {"spec": {"activeDeadlineSeconds": 5}}))["metadata"]["generation"] == 2

    virtual(test)


@pytest.mark.parametrize(
    ("spec", "warning"),
    [
        (
            {"nodeSelector": {"beta.kubernetes.io/os": "linux"}},
            'spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead',
        ),
        (
            {"topologySpreadConstraints": [{"topologyKey": "z"}]},
            "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
        ),
        (
            {"containers": [{"env": [{"name": "A", "value": "x"}, {"name": "A", "value": "y"}]}]},
            'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply',
        ),
        (
            {"containers": [{"resources": {"limits": {"memory": "1500m"}}}]},
            'spec.containers[0].resources.limits[memory]: fractional byte value "1500m" is invalid, must be an integer',
        ),
        (
            {"containers": [{"ports": [{"containerPort": 1}]}, {"ports": [{"containerPort": 1}]}]},
            "spec.containers[1].ports[0]: duplicate port definition with spec.containers[0].ports[0]",
        ),
        ({"containers": [{"env": [{"name": "A", "value": "x"}, {"name": "A", "value": "$(A):y"}]}]}, ""),
    ],
)
def test_odd_pods_are_warned_of(spec: Raw, warning: str) -> None:
    assert pod_warnings({"spec": spec}) == ([warning] if warning else [])


def test_kinds_that_go_away_say_so() -> None:
    async def test(caller: Caller) -> None:
        response = await caller.send("GET", "/api/v1/namespaces/default/endpoints")
        words = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
        assert response.header("Warning") == f'299 - "{words}"'

    virtual(test)


def test_a_kind_without_a_row_has_a_strategy_too() -> None:
    strategy = for_resource("example.com", "things")
    assert strategy.allow_unconditional_update
    assert not strategy.validate_create({"metadata": {}})
