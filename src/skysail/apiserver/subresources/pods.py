"""`pods/NAME/ephemeralcontainers` and `pods/NAME/resize`.

Source: pkg/registry/core/pod/strategy.go podEphemeralContainersStrategy, podResizeStrategy, v1.36.
"""

from collections.abc import Callable, Sequence

from skysail.api.raw import Raw
from skysail.apiserver.contract import FieldError, RequestContext
from skysail.apiserver.strategies.defaults.pods import pod as default_pod
from skysail.apiserver.strategies.generic import keep
from skysail.apiserver.strategies.pods import count_generation
from skysail.apiserver.subresources.status import READ_WRITE
from skysail.apiserver.validation.field import Errors


class _PodPartView:
    """A part of a pod's spec with an endpoint of its own.

    Args:
        check: Checks the new pod against the old one.
    """

    body_kind: tuple[str, str, str] | None = None
    verbs = READ_WRITE

    def __init__(self, check: Callable[[Raw, Raw], Errors]) -> None:
        self._check = check

    def read(self, parent: Raw, ctx: RequestContext) -> Raw:
        """The whole pod."""
        return parent

    def write(self, body: Raw, parent: Raw, ctx: RequestContext) -> Raw:
        """The stored pod with the part taken from the body."""
        default_pod(body)
        new = self.take(body, parent)
        new["metadata"] = dict(new["metadata"])
        count_generation(new, parent)
        return new

    def take(self, body: Raw, parent: Raw) -> Raw:
        """A new pod: the stored one, with the part."""
        raise AssertionError("a part says what it takes")

    def validate(self, body: Raw, new: Raw, old: Raw, ctx: RequestContext) -> Sequence[FieldError]:
        """What the part's own check says."""
        return self._check(new, old)


class EphemeralContainersView(_PodPartView):
    """Containers added to a running pod for debugging; never removed."""

    def take(self, body: Raw, parent: Raw) -> Raw:
        """All of the stored pod but its ephemeral containers."""
        spec = dict(parent["spec"])
        keep(spec, body["spec"], "ephemeralContainers")
        return _with_spec(body, parent, spec)


class ResizeView(_PodPartView):
    """Requests and limits of running containers."""

    def take(self, body: Raw, parent: Raw) -> Raw:
        """Resources and resize policies from the body, as long as the containers are the same."""
        new, old = body["spec"], parent["spec"]
        parts: dict[str, list[Raw]] = {}
        for key in ("containers", "initContainers"):
            wanted, known = new.get(key) or [], old.get(key) or []
            if len(wanted) != len(known):
                return body
            parts[key] = _resized(wanted, known)
        spec = dict(old)
        keep(spec, new, "resources")
        for key, containers in parts.items():
            if containers:
                spec[key] = containers
        return _with_spec(body, parent, spec)


def _resized(wanted: list[Raw], known: list[Raw]) -> list[Raw]:
    if any(new.get("name") != old.get("name") for new, old in zip(wanted, known, strict=True)):
        return wanted
    merged = []
    for new, old in zip(wanted, known, strict=True):
        container = dict(old)
        for key in ("resources", "resizePolicy"):
            keep(container, new, key)
        merged.append(container)
    return merged


def _with_spec(body: Raw, parent: Raw, spec: Raw) -> Raw:
    new = {**parent, "metadata": dict(parent["metadata"]), "spec": spec}
    if "managedFields" in body.get("metadata", {}):
        new["metadata"]["managedFields"] = body["metadata"]["managedFields"]
    if (body.get("metadata") or {}).get("resourceVersion"):
        new["metadata"]["resourceVersion"] = body["metadata"]["resourceVersion"]
    return new
