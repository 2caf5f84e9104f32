"""The bodies of requests: objects, patches, delete options; each with the checks that belong to reading it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import msgspec

from skysail.api.raw import Raw
from skysail.apiserver.contract import DeleteOptions, invalid
from skysail.apiserver.customresources.bodies import shape
from skysail.apiserver.customresources.kinds import CustomKind
from skysail.apiserver.decoding import decode_body
from skysail.apiserver.decoding.body import SCHEME
from skysail.apiserver.decoding.patches import (
    check_patched,
    read_apply_patch,
    read_json_patch,
    read_merge_patch,
    read_strategic_patch,
    show_patched,
)
from skysail.apiserver.patching import json_patch, merge_patch, strategic_patch
from skysail.apiserver.requests import META_GROUP, Query, WriteOptions, delete_options_errors
from skysail.apiserver.schema import Schema, TypeInfo
from skysail.apiserver.status import invalid_object, unsupported_patch_type

JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
_DELETE_OPTIONS = ("", "v1", "DeleteOptions")
_DELETE_OPTIONS_TYPE = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"


def decode_object(
    body: bytes, content_type: str, type_info: TypeInfo, options: WriteOptions, warnings: list[str]
) -> Raw:
    """The object in a body, in normal form.

    Raises:
        BadRequest: It cannot be read, or is something else.
        UnsupportedMediaType: Its content type is unknown.
    """
    obj, found = decode_body(body, content_type, type_info, options.field_validation)
    warnings.extend(found)
    return obj


@dataclass(slots=True)
class Patch:
    """A patch that has been read, and how to apply it.

    Attributes:
        content: A list of operations for a JSON patch, else an object.
        findings: Repeated keys and the like, to be warned of or refused with the outcome.
    """

    media_type: str
    content: Raw | Sequence[Raw]
    findings: list[str]
    field_validation: str
    force: bool
    warnings: list[str] = field(default_factory=list)

    def apply(self, document: Raw, type_info: TypeInfo, custom: CustomKind | None = None) -> Raw:
        """The document after the patch, in normal form.

        Args:
            document: As a GET shows it.
            type_info: Its type.
            custom: What serves it, when it is a custom object.

        Raises:
            Invalid: It does not apply, or makes something unreadable of the document.
        """
        strategic = None
        if isinstance(self.content, dict):
            if self.media_type == MERGE:
                patched = merge_patch.apply(document, self.content)
            else:
                strategic = self.content
                patched = strategic_patch.apply(document, strategic, type_info)
        else:
            patched = json_patch.apply(document, self.content)
        if custom is not None:
            return self._shape_custom(patched, type_info, custom)
        touched = self._touched()
        if strategic is None:
            _check_kind(patched, document, type_info, touched)
        normal, strict = check_patched(
            patched,
            type_info,
            self.field_validation,
            findings=self.findings,
            strategic_patch=strategic,
            touched=touched,
        )
        if self.field_validation == "Warn":
            self.warnings.extend(strict)
        result: Raw = {"kind": document["kind"], "apiVersion": document["apiVersion"]}
        result.update(normal)
        return result

    def _touched(self) -> Raw:
        """Which objects the patch goes through, as nested keys."""
        if isinstance(self.content, dict):
            return self.content
        touched: Raw = {}
        for operation in self.content:
            place = touched
            for part in str(operation.get("path") or "").split("/")[1:-1]:
                place = place.setdefault(part, {})
        return touched

    def _shape_custom(self, patched: Raw, type_info: TypeInfo, custom: CustomKind) -> Raw:
        shown = msgspec.json.encode(patched).decode()
        validation = "Ignore" if self.field_validation == "Ignore" else "Warn"
        obj, found = shape(patched, custom.resource, custom.schema, type_info, self.findings, validation)
        if found and self.field_validation == "Strict":
            problem = f"strict decoding error: {', '.join(found)}"
            raise invalid_object("", "", "", [invalid("patch", shown, problem)])
        self.warnings.extend(found)
        return obj

    @property
    def configuration(self) -> Raw:
        """What a server-side apply wants."""
        return dict(self.content) if isinstance(self.content, dict) else {}


def _check_kind(patched: Raw, document: Raw, type_info: TypeInfo, touched: Raw) -> None:
    kind, version = patched.get("kind"), patched.get("apiVersion")
    if kind == document["kind"] and version == document["apiVersion"]:
        return
    shown = show_patched(patched, type_info, touched)
    problem = f'no kind "{kind}" is registered for version "{version}" in scheme {SCHEME}'
    if not kind or not version:
        problem = f"Object '{'apiVersion' if kind else 'Kind'}' is missing in '{shown}'"
    raise invalid_object("", "", "", [invalid("patch", shown, problem)])


def patch_media_type(content_type: str, *, custom: bool) -> str:
    """What kind of patch a body is.

    Raises:
        UnsupportedMediaType: None that this resource takes.
    """
    found = content_type.partition(";")[0].strip()
    allowed = (JSON_PATCH, MERGE, APPLY) if custom else (JSON_PATCH, MERGE, STRATEGIC, APPLY)
    if found not in allowed:
        raise unsupported_patch_type(allowed if custom else ())
    return found


def decode_patch(body: bytes, patch_type: str, options: WriteOptions, warnings: list[str]) -> Patch:
    """Read a patch.

    Raises:
        BadRequest: It cannot be read.
    """
    content: Raw | Sequence[Raw]
    if patch_type == JSON_PATCH:
        content, findings = read_json_patch(body, options.field_validation)
    elif patch_type == MERGE:
        content, findings = read_merge_patch(body, options.field_validation)
    elif patch_type == STRATEGIC:
        content, findings = read_strategic_patch(body, options.field_validation)
    else:
        content, findings = read_apply_patch(body, options.field_validation)
        warnings.extend(findings)
    return Patch(patch_type, content, findings, options.field_validation, options.force, warnings)


@dataclass(slots=True)
class DeleteRequest:
    """What a DELETE asked for.

    Attributes:
        cascades_at_once: `orphanDependents: false` was given, so an object that stays is answered with 202.
    """

    options: DeleteOptions
    dry_run: bool = False
    cascades_at_once: bool = False

    def fresh_options(self) -> DeleteOptions:
        """A copy for one of several objects."""
        return replace(self.options)


def decode_delete_options(body: bytes, content_type: str, query: Query, schema: Schema) -> DeleteRequest:
    """Read delete options from the body, or from the query when there is none.

    Raises:
        BadRequest: The body cannot be read.
        Invalid: Options that are unknown or contradict.
    """
    raw = _from_body(body, content_type, schema) if body else _from_query(query)
    propagation, orphan = raw.get("propagationPolicy"), raw.get("orphanDependents")
    dry_run = raw.get("dryRun") or []
    errors = delete_options_errors(propagation, orphan, dry_run)
    if errors:
        raise invalid_object(META_GROUP, "DeleteOptions", "", errors)
    if orphan is not None:
        propagation = "Orphan" if orphan else "Background"
    grace = raw.get("gracePeriodSeconds")
    preconditions = raw.get("preconditions") or {}
    options = DeleteOptions(
        grace_period_seconds=1 if grace is not None and grace < 0 else grace,
        propagation=propagation or "",
        uid=preconditions.get("uid") or "",
        resource_version=preconditions.get("resourceVersion") or "",
    )
    return DeleteRequest(options, dry_run=bool(dry_run), cascades_at_once=orphan is False)


def _from_body(body: bytes, content_type: str, schema: Schema) -> Raw:
    type_info = schema.types[_DELETE_OPTIONS_TYPE]
    raw, _ = decode_body(body, content_type, type_info, "Ignore", kind=_DELETE_OPTIONS)
    return raw


def _from_query(query: Query) -> Raw:
    raw: Raw = {"dryRun": list(query.all("dryRun"))}
    grace = query.integer("gracePeriodSeconds")
    if grace is not None:
        raw["gracePeriodSeconds"] = grace
    if "propagationPolicy" in query:
        raw["propagationPolicy"] = query.text("propagationPolicy")
    if "orphanDependents" in query:
        raw["orphanDependents"] = query.flag("orphanDependents")
    return raw
