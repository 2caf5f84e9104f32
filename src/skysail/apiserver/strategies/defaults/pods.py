"""Pods, and the pod templates inside of other kinds.

Source: pkg/apis/core/v1/defaults.go SetDefaults_Pod, SetDefaults_PodSpec, v1.36.
"""

from skysail.api.raw import Raw
from skysail.apiserver.strategies.defaults.containers import container
from skysail.apiserver.strategies.defaults.quantities import requirements, resource_list
from skysail.apiserver.strategies.defaults.volumes import volume
from skysail.apiserver.validation.amounts import aggregate


def pod(obj: Raw) -> None:
    """Defaults of a Pod: those of its spec, and those that a template does not get."""
    spec = obj.get("spec")
    if spec is None:
        spec = obj["spec"] = {}
    containers, init_containers = spec.get("containers") or (), spec.get("initContainers") or ()
    for item in (*containers, *init_containers):
        _requests_from_limits(item)
    if spec.get("resources"):
        _pod_level(spec)
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    if spec.get("hostNetwork"):
        for item in (*containers, *init_containers):
            for port in item.get("ports") or ():
                if not port.get("hostPort") and port.get("containerPort"):
                    port["hostPort"] = port["containerPort"]
    pod_spec(spec)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    status = obj.get("status")
    if status is None:
        obj["status"] = {}
    elif status:
        pod_status(status)


def pod_status(status: Raw) -> None:
    """Amounts in a reported status get their stored form; the one address and the list of them agree."""
    ip, ips = status.get("podIP"), status.get("podIPs")
    if ip and (not ips or ips[0].get("ip") != ip):
        status["podIPs"] = [{"ip": ip}]
    elif ips:
        status["podIP"] = ips[0].get("ip") or ""
    for key in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for item in status.get(key) or ():
            resource_list(item.get("allocatedResources"))
            if item.get("resources"):
                requirements(item["resources"])
    resource_list(status.get("allocatedResources"))
    if status.get("resources"):
        requirements(status["resources"])


def pod_template(holder: Raw, key: str = "template") -> None:
    """Defaults of a pod template standing at `holder[key]`; an absent one is made."""
    template = holder.get(key)
    if template is None:
        template = holder[key] = {}
    if template.get("metadata") is None:
        template["metadata"] = {}
    if template.get("spec") is None:
        template["spec"] = {"containers": None}
    pod_spec(template["spec"])


def pod_spec(spec: Raw) -> None:
    """Defaults that a pod and a pod template share."""
    if not spec.get("restartPolicy"):
        spec["restartPolicy"] = "Always"
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = 30
    if not spec.get("dnsPolicy"):
        spec["dnsPolicy"] = "ClusterFirst"
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    if not spec.get("schedulerName"):
        spec["schedulerName"] = "default-scheduler"
    _service_account(spec)
    for item in spec.get("volumes") or ():
        volume(item)
    for item in spec.get("initContainers") or ():
        container(item)
    for item in spec.get("containers") or ():
        container(item)
    for item in spec.get("ephemeralContainers") or ():
        container(item)
    resource_list(spec.get("overhead"))
    if spec.get("resources"):
        requirements(spec["resources"])


def _service_account(spec: Raw) -> None:
    """The deprecated twin `serviceAccount` follows `serviceAccountName`."""
    name = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if name:
        spec["serviceAccountName"] = spec["serviceAccount"] = name


def _requests_from_limits(item: Raw) -> None:
    resources = item.get("resources")
    if not resources or not resources.get("limits"):
        return
    requests = resources.get("requests")
    if requests is None:
        requests = resources["requests"] = {}
    for name, amount in resources["limits"].items():
        if name not in requests:
            requests[name] = amount


def _pod_level(spec: Raw) -> None:
    """Limits and requests at the pod's own level, from those of its containers."""
    resources = spec["resources"]
    limits, requests = dict(resources.get("limits") or {}), dict(resources.get("requests") or {})
    if not limits and not requests:
        return
    for name, amount in aggregate(spec, "limits").items():
        if name.startswith("hugepages-") and name not in requests and name not in limits:
            limits[name] = str(amount)
    if limits:
        resources["limits"] = limits
        for name, amount in aggregate(spec, "requests").items():
            if name not in requests and name in ("cpu", "memory"):
                requests[name] = str(amount)
        for name, text in limits.items():
            if name not in requests and (name in ("cpu", "memory") or name.startswith("hugepages-")):
                requests[name] = text
        if requests:
            resources["requests"] = requests
