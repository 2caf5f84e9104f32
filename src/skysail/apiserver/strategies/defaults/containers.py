"""Containers: image pull policy, probes, ports, environment.

Source: pkg/apis/core/v1/defaults.go SetDefaults_Container, SetDefaults_Probe ..., v1.36.
"""

from functools import lru_cache

from skysail.api.raw import Raw
from skysail.apiserver.strategies.defaults.quantities import requirements

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


@lru_cache(maxsize=4096)
def pull_policy(image: str) -> str:
    """Always for `:latest` and for no tag at all, else IfNotPresent."""
    name, _, digest = image.partition("@")
    last = name.rpartition("/")[2]
    tag = last.partition(":")[2]
    if not tag and not digest:
        tag = "latest"
    return "Always" if tag == "latest" else "IfNotPresent"


def container(spec: Raw) -> None:
    """Defaults of a container, an init container or an ephemeral one."""
    if not spec.get("imagePullPolicy"):
        spec["imagePullPolicy"] = pull_policy(spec.get("image") or "")
    if not spec.get("terminationMessagePath"):
        spec["terminationMessagePath"] = "/dev/termination-log"
    if not spec.get("terminationMessagePolicy"):
        spec["terminationMessagePolicy"] = "File"
    resources = spec.get("resources")
    if resources is None:
        spec["resources"] = {}
    elif resources:
        requirements(resources)
    for port in spec.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
    for variable in spec.get("env") or ():
        if variable.get("valueFrom"):
            _value_from(variable["valueFrom"])
    for name in _PROBES:
        if spec.get(name) is not None:
            probe(spec[name])
    lifecycle = spec.get("lifecycle")
    if lifecycle:
        for name in ("postStart", "preStop"):
            _http_get((lifecycle.get(name) or {}).get("httpGet"))


def _value_from(source: Raw) -> None:
    if source.get("fieldRef") is not None:
        field_reference(source["fieldRef"])
    file_key = source.get("fileKeyRef")
    if file_key is not None and file_key.get("optional") is None:
        file_key["optional"] = False
    resource = source.get("resourceFieldRef")
    if resource is not None and not resource.get("divisor"):
        resource["divisor"] = "0"


def field_reference(reference: Raw) -> None:
    """A downward reference to a field speaks of v1 unless told otherwise."""
    if not reference.get("apiVersion"):
        reference["apiVersion"] = "v1"


def probe(spec: Raw) -> None:
    """Time-outs and thresholds of a probe, and its handler."""
    for key, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        if not spec.get(key):
            spec[key] = value
    _http_get(spec.get("httpGet"))
    grpc = spec.get("grpc")
    if grpc is not None and grpc.get("service") is None:
        grpc["service"] = ""


def _http_get(action: Raw | None) -> None:
    if action is not None:
        if not action.get("path"):
            action["path"] = "/"
        if not action.get("scheme"):
            action["scheme"] = "HTTP"
