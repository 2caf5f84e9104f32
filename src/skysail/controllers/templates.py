"""Pod templates as raw values: comparing them, hashing them, and making pods of them.

A template travels from Deployment to ReplicaSet to Pod as parsed JSON, never through a slim Struct, so that no field is
lost. Two templates are equal when they mean the same: an absent list equals an empty one, `1000m` equals `1`, and the
hash label that only the replica set's copy carries does not count.

The hash is upstream's, so that a set made here bears the name that kube-controller-manager would give it; yet nothing
depends on it: sets are found by template and owner, never by name.

Source: pkg/controller/deployment/util `EqualIgnoreHash`, pkg/controller `ComputeHash`, `GetPodFromTemplate`, v1.36.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import cast

import msgspec

from skysail.api.meta import ApiObject, OwnerReference
from skysail.api.quantity import parse_quantity
from skysail.api.raw import Raw
from skysail.controllers.go_dump import dump

HASH_LABEL = "pod-template-hash"

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_FNV_OFFSET, _FNV_PRIME, _MASK = 0x811C9DC5, 0x01000193, 0xFFFFFFFF
_QUANTITY_MAPS = frozenset({"limits", "requests", "overhead"})
_STRING_MAPS = frozenset({"labels", "annotations", "nodeSelector", "matchLabels"}) | _QUANTITY_MAPS
_QUANTITIES = frozenset({"sizeLimit", "divisor"})


@lru_cache(maxsize=4096)
def _parse(template: bytes) -> Raw:
    """Parse once; callers never change the result."""
    return cast(Raw, msgspec.json.decode(template)) if template else {}


def parse_template(template: msgspec.Raw) -> Raw:
    """The template as a dictionary. It is shared: read it, never write to it."""
    return _parse(bytes(template))


def template_labels(template: msgspec.Raw) -> dict[str, str]:
    """The labels that pods of this template get."""
    return cast("dict[str, str]", parse_template(template).get("metadata", {}).get("labels") or {})


@lru_cache(maxsize=4096)
def _normal_bytes(template: bytes, *, keeps_hash: bool) -> bytes:
    normal = cast(Raw, _normal(_parse(template), ""))
    metadata = normal.get("metadata")
    if isinstance(metadata, dict):
        labels = metadata.get("labels")
        if isinstance(labels, dict) and not keeps_hash:
            labels.pop(HASH_LABEL, None)
        if not labels:
            metadata.pop("labels", None)
    if not metadata:
        normal.pop("metadata", None)
    return msgspec.json.encode(normal, order="sorted")


def whole_template(template: msgspec.Raw) -> bytes:
    """The canonical bytes of what a template means.

    Anything in the place of a template has some too: a controller revision may hold what its author liked.
    """
    return _normal_bytes(bytes(template), keeps_hash=True)


def template_without_hash(template: msgspec.Raw) -> Raw:
    """The template as a deployment has it: a replica set's copy without the hash label."""
    parsed = parse_template(template)
    metadata = dict(parsed.get("metadata") or {})
    metadata["labels"] = {key: value for key, value in (metadata.get("labels") or {}).items() if key != HASH_LABEL}
    return {**parsed, "metadata": metadata}


def templates_equal(left: msgspec.Raw, right: msgspec.Raw) -> bool:
    """Whether two templates make the same pods (the hash label aside)."""
    one, other = (_normal_bytes(bytes(template), keeps_hash=False) for template in (left, right))
    return one == other


def _normal(value: object, name: str) -> object:
    if isinstance(value, dict):
        if name in _QUANTITY_MAPS:
            return {key: _normal_quantity(item) for key, item in value.items()}
        parts = ((key, _normal(item, key)) for key, item in value.items())
        return {key: item for key, item in parts if not _is_absent(key, item)}
    if isinstance(value, list):
        return [_normal(item, "") for item in value]
    return _normal_quantity(value) if name in _QUANTITIES else value


def _is_absent(key: str, value: object) -> bool:
    return value is None or value == [] or (value == {} and key in _STRING_MAPS)


def _normal_quantity(value: object) -> object:
    try:
        return str(parse_quantity(str(value)))
    except ValueError:
        return value


def fnv32a(data: bytes) -> int:
    """The 32-bit FNV-1a hash."""
    value = _FNV_OFFSET
    for byte in data:
        value = ((value ^ byte) * _FNV_PRIME) & _MASK
    return value


def fnv32(data: bytes) -> int:
    """The 32-bit FNV-1 hash: multiplies first."""
    value = _FNV_OFFSET
    for byte in data:
        value = ((value * _FNV_PRIME) & _MASK) ^ byte
    return value


def safe_encode(text: str) -> str:
    """Write a string in letters and digits that cannot form a word (k8s.io/apimachinery rand.SafeEncodeString)."""
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in text.encode())


def template_hash(template: msgspec.Raw, collision_count: int | None = None) -> str:
    """The suffix that tells the replica sets of one deployment apart.

    Args:
        template: The pod template.
        collision_count: `status.collisionCount`: raised when the name was found taken by something else.
    """
    salt = b"" if collision_count is None else collision_count.to_bytes(4, "little") + bytes(4)
    text = dump("v1.PodTemplateSpec", msgspec.json.decode(whole_template(template)))
    return safe_encode(str(fnv32a(text.encode() + salt)))


def controller_reference(owner: ApiObject, api_version: str, kind: str) -> OwnerReference:
    """The reference by which `owner` controls what it makes."""
    return OwnerReference(
        api_version=api_version,
        kind=kind,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )


def pod_name_prefix(owner_name: str) -> str:
    """What the generated names of an owner's pods begin with."""
    prefix = f"{owner_name}-"
    return prefix if len(prefix) <= 253 else owner_name


def pod_from_template(
    template: msgspec.Raw, owner_name: str, reference: OwnerReference, extra_finalizers: Iterable[str] = ()
) -> Raw:
    """The pod to create: the template's metadata and whole spec, a generated name, and the owner."""
    parsed = parse_template(template)
    metadata: Raw = {"generateName": pod_name_prefix(owner_name), "ownerReferences": [msgspec.to_builtins(reference)]}
    for part in ("labels", "annotations"):
        if given := parsed.get("metadata", {}).get(part):
            metadata[part] = dict(given)
    finalizers = [*(parsed.get("metadata", {}).get("finalizers") or ()), *extra_finalizers]
    if finalizers:
        metadata["finalizers"] = finalizers
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": parsed.get("spec", {})}
