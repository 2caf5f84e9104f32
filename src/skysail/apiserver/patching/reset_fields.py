"""Fields that an endpoint ignores, so that nobody can own them through it: an object's `status`, its status' `spec`.

Source: pkg/registry/*/strategy.go `GetResetFields`, v1.36.
"""

from collections.abc import Iterable, Mapping

from skysail.apiserver.patching.field_set import FieldSet, Path, Tree
from skysail.apiserver.schema import TypeInfo

_METADATA, _SPEC, _STATUS = ("f:metadata",), ("f:spec",), ("f:status",)

# Kinds whose status endpoint ignores more, or whose own endpoint does.
_STATUS_IGNORES: Mapping[str, tuple[Path, ...]] = {
    "Deployment": (("f:metadata", "f:labels"), _SPEC),
    "Pod": (("f:metadata", "f:deletionTimestamp"), ("f:metadata", "f:ownerReferences"), _SPEC),
    "CertificateSigningRequest": (_SPEC, ("f:status", "f:conditions")),
} | dict.fromkeys(
    (
        "ValidatingAdmissionPolicy", "StorageVersion", "FlowSchema", "PriorityLevelConfiguration", "ServiceCIDR",
        "DeviceTaintRule", "ResourceClaim", "ResourcePoolStatusRequest", "PodGroup", "VolumeAttachment",
        "StorageVersionMigration", "CustomResourceDefinition",
    ),
    (_METADATA, _SPEC),
)  # fmt: skip
_OBJECT_IGNORES: Mapping[str, tuple[Path, ...]] = {"CertificateSigningRequest": (_SPEC, _STATUS)}


def ignored_paths(info: TypeInfo, subresource: str) -> tuple[Path, ...]:
    """What an endpoint of a kind ignores, each with everything below it."""
    kind = info.gvk[0][2]
    if subresource == "status":
        return (_METADATA, _SPEC) if info.custom else _STATUS_IGNORES.get(kind, (_SPEC,))
    if subresource == "approval":
        return (_SPEC, ("f:status", "f:certificate"))
    if subresource or not info.status_apart:
        return ()
    return _OBJECT_IGNORES.get(kind, (_STATUS,))


def without(paths: FieldSet, ignored: Iterable[Path]) -> FieldSet:
    """The set without some paths and all that lies below them."""
    tree = paths.tree
    for path in ignored:
        tree = _cut(tree, path)
    return FieldSet(tree)


def _cut(tree: Tree, path: Path) -> Tree:
    head, *rest = path
    if head not in tree:
        return tree
    out = dict(tree)
    below = _cut(tree[head], tuple(rest)) if rest else {}
    if below or (rest and not tree[head]):
        out[head] = below
    else:
        del out[head]
    return out
