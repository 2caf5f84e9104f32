"""Namespaces, nodes and volumes: what does not fit into a row of rules.

Source: pkg/registry/core/*/strategy.go, v1.36.
"""

from skysail.api.raw import Raw
from skysail.apiserver.contract import RequestContext
from skysail.apiserver.strategies.generic import GenericStrategy, keep
from skysail.apiserver.validation.field import same

_CLAIM_SOURCES = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))
_METADATA_NAME = "kubernetes.io/metadata.name"


class NamespaceStrategy(GenericStrategy):
    """Lives until its content is gone: `spec.finalizers` holds it."""

    def prepare_create(self, obj: Raw, ctx: RequestContext) -> None:
        """Active, held by the `kubernetes` finalizer."""
        obj["metadata"].pop("generation", None)
        obj["status"] = {"phase": "Active"}
        finalizers = obj["spec"].get("finalizers") or []
        if "kubernetes" not in finalizers:
            finalizers = [*finalizers, "kubernetes"]
        obj["spec"]["finalizers"] = finalizers
        self._label(obj)

    def prepare_update(self, new: Raw, old: Raw, ctx: RequestContext) -> None:
        """Finalizers and status have endpoints of their own."""
        keep(new, old, "status")
        new["spec"] = {**new["spec"]}
        keep(new["spec"], old.get("spec", {}), "finalizers")
        self._label(new)

    def prepare_delete(self, obj: Raw, ctx: RequestContext) -> None:
        """Terminating from the moment it is deleted."""
        obj.setdefault("status", {})["phase"] = "Terminating"

    def may_remove(self, obj: Raw) -> bool:
        """Only once nothing holds it any more."""
        return not (obj.get("spec") or {}).get("finalizers")

    @staticmethod
    def _label(obj: Raw) -> None:
        metadata = obj["metadata"]
        if metadata.get("name"):
            metadata["labels"] = {**(metadata.get("labels") or {}), _METADATA_NAME: metadata["name"]}


class NodeStrategy(GenericStrategy):
    """Brings its status along at creation, and keeps it out of later changes."""

    def prepare_create(self, obj: Raw, ctx: RequestContext) -> None:
        """Everything but the long-gone dynamic configuration is taken."""
        obj["metadata"].pop("generation", None)
        obj["spec"].pop("configSource", None)
        obj["status"].pop("config", None)

    def prepare_update(self, new: Raw, old: Raw, ctx: RequestContext) -> None:
        """Keep the status."""
        keep(new, old, "status")
        if not (old.get("spec") or {}).get("configSource"):
            new["spec"].pop("configSource", None)
        self.count_generation(new, old)


class PersistentVolumeStrategy(GenericStrategy):
    """Notes when its phase changed."""

    def prepare_create(self, obj: Raw, ctx: RequestContext) -> None:
        """Pending from now."""
        super().prepare_create(obj, ctx)
        obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": ctx.now.strftime("%Y-%m-%dT%H:%M:%SZ")}


class EndpointSliceStrategy(GenericStrategy):
    """Counts a generation for anything but metadata, and for labels."""

    def prepare_create(self, obj: Raw, ctx: RequestContext) -> None:
        """Generation 1."""
        obj["metadata"]["generation"] = 1

    def to_storage(self, obj: Raw, group: str, version: str) -> Raw:
        """Storage forgets the difference between an empty list and none."""
        for key in ("endpoints", "ports"):
            if not obj.get(key):
                obj[key] = None
        return obj

    def prepare_update(self, new: Raw, old: Raw, ctx: RequestContext) -> None:
        """One more when content or labels changed."""
        generation = old["metadata"].get("generation") or 0
        keys = (new.keys() | old.keys()) - {"metadata", "apiVersion", "kind"}
        if any(not same(new.get(key), old.get(key)) for key in keys) or not same(
            new["metadata"].get("labels"), old["metadata"].get("labels")
        ):
            generation += 1
        new["metadata"]["generation"] = generation


class PriorityClassStrategy(GenericStrategy):
    """Generation 1 for ever."""

    def prepare_create(self, obj: Raw, ctx: RequestContext) -> None:
        """Generation 1."""
        obj["metadata"]["generation"] = 1


class SigningRequestStrategy(GenericStrategy):
    """Notes who asks; the request itself never changes."""

    def prepare_create(self, obj: Raw, ctx: RequestContext) -> None:
        """Undecided, on behalf of the user who asks."""
        super().prepare_create(obj, ctx)
        spec, user = obj.setdefault("spec", {}), ctx.user
        extra = {key: list(values) for key, values in user.extra.items()}
        for key, value in (("username", user.name), ("uid", user.uid), ("groups", list(user.groups)), ("extra", extra)):
            if value:
                spec[key] = value
            else:
                spec.pop(key, None)

    def prepare_update(self, new: Raw, old: Raw, ctx: RequestContext) -> None:
        """Only metadata may change here."""
        super().prepare_update(new, old, ctx)
        keep(new, old, "spec")


class ClaimStrategy(GenericStrategy):
    """PersistentVolumeClaims: two fields say where a volume's content comes from, and agree."""

    def prepare_create(self, obj: Raw, ctx: RequestContext) -> None:
        """Blank status; sources nobody can use are dropped."""
        super().prepare_create(obj, ctx)
        self._sources(obj["spec"])

    def prepare_update(self, new: Raw, old: Raw, ctx: RequestContext) -> None:
        """Keep the status; fill in the source that was left out."""
        super().prepare_update(new, old, ctx)
        before = old.get("spec") or {}
        self._sources(new["spec"], known=bool(before.get("dataSource") or before.get("dataSourceRef")))

    @staticmethod
    def _sources(spec: Raw, *, known: bool = False) -> None:
        source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
        if source is not None and reference is None:
            kind = (source.get("apiGroup") or "", source.get("kind") or "")
            if known or kind in _CLAIM_SOURCES:
                spec["dataSourceRef"] = dict(source)
            else:
                del spec["dataSource"]
        elif reference is not None and source is None and not reference.get("namespace"):
            spec["dataSource"] = {key: value for key, value in reference.items() if key != "namespace"}
