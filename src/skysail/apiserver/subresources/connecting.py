"""Subresources that lead to a container or a port: exec, attach, port-forward, log and proxy.

kube-apiserver hands such a request on to a kubelet or an endpoint. Here nothing runs behind a pod or a node, and the
answer says so, as kube-apiserver's does when the kubelet does not listen; the parent object is never touched.
"""

from skysail.api.errors import ApiError, BadRequest
from skysail.api.raw import Raw
from skysail.apiserver.status import internal_error

_CONNECTIONS = frozenset(
    {
        ("", "pods", "attach"),
        ("", "pods", "exec"),
        ("", "pods", "log"),
        ("", "pods", "portforward"),
        ("", "pods", "proxy"),
        ("", "services", "proxy"),
        ("", "nodes", "proxy"),
    }
)


def is_connection(group: str, resource: str, subresource: str) -> bool:
    """Whether a subresource leads out of the API server."""
    return (group, resource, subresource) in _CONNECTIONS


def parent_name(name: str, subresource: str) -> str:
    """The object a connection goes to: a proxied name may be `name:port` or `scheme:name:port`."""
    if subresource != "proxy":
        return name
    parts = name.split(":")
    return parts[1] if len(parts) == 3 else parts[0]


def has_no_log_yet(parent: Raw, subresource: str) -> bool:
    """Whether a log is asked for of a pod that no node runs: it is empty."""
    return subresource == "log" and not _node(parent)


def refuse_connection(parent: Raw, resource: str, subresource: str) -> ApiError:
    """Why the connection cannot be made.

    Differs: upstream says which address refused it.
    """
    name = parent["metadata"]["name"]
    if resource == "services":
        return internal_error(f"error trying to reach service {name}: nothing runs behind it, its pods are hollow")
    node = name if resource == "nodes" else _node(parent)
    if not node:
        return BadRequest(f"pod {name} does not have a host assigned")
    return internal_error(f"error dialing backend: no kubelet on node {node}, which is hollow: nothing runs there")


def _node(pod: Raw) -> str:
    return str((pod.get("spec") or {}).get("nodeName") or "")
