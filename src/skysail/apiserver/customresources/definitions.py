"""CustomResourceDefinitions themselves: defaults, validation, and a deletion that waits for the instances to go.

Source: apiextensions-apiserver/pkg/registry/customresourcedefinition, pkg/apis/apiextensions, v1.36.
"""

from collections.abc import Iterator, Sequence

from skysail.api.raw import Raw
from skysail.apiserver.contract import FieldError, RequestContext, forbidden, invalid, not_supported, required
from skysail.apiserver.customresources.structural_checks import check_schema
from skysail.apiserver.lifecycle import timestamp
from skysail.apiserver.strategies.generic import GenericStrategy, Rules
from skysail.apiserver.validation.names import dns_label_1035, dns_subdomain

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")


class DefinitionStrategy(GenericStrategy):
    """What only definitions do."""

    def __init__(self) -> None:
        super().__init__(Rules(status=True, generation=("spec",), returns_deleted=True))

    def default(self, obj: Raw) -> None:
        """Names that follow from others, no conversion."""
        spec = obj.setdefault("spec", {})
        names = spec.setdefault("names", {})
        kind = names.get("kind") or ""
        if kind and not names.get("singular"):
            names["singular"] = kind.lower()
        if kind and not names.get("listKind"):
            names["listKind"] = f"{kind}List"
        spec.setdefault("conversion", {}).setdefault("strategy", "None")

    def prepare_create(self, obj: Raw, ctx: RequestContext) -> None:
        """A blank status that knows the storage version."""
        obj["metadata"]["generation"] = 1
        obj["status"] = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": []}
        _note_storage(obj)

    def prepare_update(self, new: Raw, old: Raw, ctx: RequestContext) -> None:
        """Keep the status, but for a new storage version."""
        super().prepare_update(new, old, ctx)
        if "status" in new:
            stored = new["status"].get("storedVersions") or []
            new["status"] = {**new["status"], "storedVersions": list(stored)}
            _note_storage(new)

    def validate_create(self, obj: Raw) -> Sequence[FieldError]:
        """All broken rules of a definition."""
        spec = obj["spec"]
        errors = list(_name_errors(obj["metadata"].get("name") or "", spec))
        return errors or [*_spec_errors(spec), *_version_errors(spec)]

    def validate_update(self, new: Raw, old: Raw) -> Sequence[FieldError]:
        """The new state, and what may not change once names are accepted."""
        spec, before = new["spec"], old["spec"]
        errors = [*_spec_errors(spec), *_version_errors(spec)]
        for key in ("group", "scope"):
            if spec.get(key) != before.get(key):
                errors.append(invalid(f"spec.{key}", spec.get(key), "field is immutable"))
        for key in ("kind", "plural"):
            value = spec["names"].get(key)
            if value != before["names"].get(key):
                errors.append(invalid(f"spec.names.{key}", value, "field is immutable"))
        known = [version.get("name") for version in spec.get("versions") or ()]
        for index, stored in enumerate((new.get("status") or {}).get("storedVersions") or ()):
            if stored not in known:
                errors.append(
                    invalid(
                        f"status.storedVersions[{index}]",
                        stored,
                        f"missing from spec.versions; {stored} was previously a storage version, and must remain in "
                        "spec.versions until a storage migration ensures no data remains persisted in "
                        f"{stored} and removes {stored} from status.storedVersions",
                    )
                )
        return errors

    def prepare_delete(self, obj: Raw, ctx: RequestContext) -> None:
        """Stay until all instances are gone."""
        status = obj.setdefault("status", {})
        conditions = list(status.get("conditions") or ())
        conditions.append(
            {
                "type": "Terminating",
                "status": "True",
                "lastTransitionTime": timestamp(ctx.now),
                "reason": "InstanceDeletionPending",
                "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
            }
        )
        status["conditions"] = conditions
        finalizers = obj["metadata"].setdefault("finalizers", [])
        if CLEANUP not in finalizers:
            finalizers.append(CLEANUP)

    def may_remove(self, obj: Raw) -> bool:
        """Once it is under deletion and cleaned up."""
        metadata = obj["metadata"]
        return bool(metadata.get("deletionTimestamp")) and not metadata.get("finalizers")


def _note_storage(obj: Raw) -> None:
    stored = obj["status"]["storedVersions"]
    for version in obj["spec"].get("versions") or ():
        if version.get("storage") and version["name"] not in stored:
            stored.append(version["name"])
            break


def _name_errors(name: str, spec: Raw) -> Iterator[FieldError]:
    plural, group = spec["names"].get("plural") or "", spec.get("group") or ""
    if name != f"{plural}.{group}":
        yield invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')


def _spec_errors(spec: Raw) -> Iterator[FieldError]:
    group, scope = spec.get("group") or "", spec.get("scope") or ""
    if not group:
        yield required("spec.group")
    elif messages := dns_subdomain(group):
        yield invalid("spec.group", group, ",".join(messages))
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")
    if not scope:
        yield required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield not_supported("spec.scope", scope, ("Cluster", "Namespaced"))
    if spec.get("preserveUnknownFields"):
        yield invalid(
            "spec.preserveUnknownFields",
            True,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        )
    if (spec.get("conversion") or {}).get("strategy") == "Webhook":
        yield forbidden("spec.conversion.strategy", "this server converts only by None: it calls no webhooks")
    yield from _names_errors(spec["names"])


def _names_errors(names: Raw) -> Iterator[FieldError]:
    for key in ("plural", "singular", "kind", "listKind"):
        value = names.get(key) or ""
        if not value:
            yield required(f"spec.names.{key}")
            continue
        mixed = key in ("kind", "listKind")
        messages = dns_label_1035(value.lower() if mixed else value)
        if messages:
            prefix = "may have mixed case, but should otherwise match: " if mixed else ""
            yield invalid(f"spec.names.{key}", value, prefix + ",".join(messages))
    for key in ("shortNames", "categories"):
        for index, value in enumerate(names.get(key) or ()):
            if messages := dns_label_1035(value):
                yield invalid(f"spec.names.{key}[{index}]", value, ",".join(messages))
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")


def _version_errors(spec: Raw) -> Iterator[FieldError]:
    versions = spec.get("versions") or []
    for index, version in enumerate(versions):
        here = f"spec.versions[{index}]"
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            yield required(f"{here}.schema.openAPIV3Schema")
    for index, version in enumerate(versions):
        here = f"spec.versions[{index}]"
        if messages := dns_label_1035(version.get("name") or ""):
            yield invalid(f"{here}.name", version.get("name") or "", ",".join(messages))
        raw = (version.get("schema") or {}).get("openAPIV3Schema")
        if raw:
            yield from check_schema(raw, f"{here}.schema.openAPIV3Schema")
        yield from _column_errors(version.get("additionalPrinterColumns") or (), f"{here}.additionalPrinterColumns")
        yield from _scale_errors((version.get("subresources") or {}).get("scale"), f"{here}.subresources.scale")
    names = [version.get("name") for version in versions]
    if len(set(names)) != len(names):
        yield invalid("spec.versions", versions, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield invalid("spec.versions", versions, "must have exactly one version marked as storage version")


def _column_errors(columns: Sequence[Raw], path: str) -> Iterator[FieldError]:
    for index, column in enumerate(columns):
        here = f"{path}[{index}]"
        if not column.get("name"):
            yield required(f"{here}.name")
        if not column.get("type"):
            yield required(f"{here}.type", f"must be one of {','.join(_COLUMN_TYPES)}")
        elif column["type"] not in _COLUMN_TYPES:
            yield invalid(f"{here}.type", column["type"], f"must be one of {','.join(_COLUMN_TYPES)}")
        if not column.get("jsonPath"):
            yield required(f"{here}.JSONPath")


def _scale_errors(scale: Raw | None, path: str) -> Iterator[FieldError]:
    if scale is None:
        return
    for key, root in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        value = scale.get(key) or ""
        if not value:
            yield required(f"{path}.{key}")
        elif not value.startswith(root):
            yield invalid(f"{path}.{key}", value, f"should be a json path under {root[:-1]}")
    selector = scale.get("labelSelectorPath") or ""
    if selector and not selector.startswith((".spec.", ".status.")):
        yield invalid(f"{path}.labelSelectorPath", selector, "should be a json path under either .spec or .status")
