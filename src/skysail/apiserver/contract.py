"""The seams of the API server: what a kind, a subresource and the registry promise one another.

Everything below `server.py` is synchronous: one request runs from its first read to its last write without another
request coming between. So there is no retry loop anywhere; `Registry.update` reads, alters and writes in one step. Only
the shell waits, for the commit of what the request wrote.

Objects are `Raw` dictionaries in the *storage* version, freshly decoded and owned by whoever holds them: methods that
return None alter their argument in place. What `Reader` and `Registry` hand out may be altered; it never aliases the
store.

The parts and the names under which the registry finds them:

    schema.load() -> Schema                              .resources, .resource(group, version, plural), .type_of(...)
    decoding.decode_body(body, content_type, type_info, field_validation) -> (Raw, warnings)
    patching.json_patch / merge_patch / strategic_patch  .apply(...)
    patching.managed_fields                              `UpdateManagedFields`, `ApplyManagedFields` below
    strategies.for_resource(group, resource) -> Strategy
    admission.admit(operation, resource, obj, old, ctx) -> None
    subresources.view_for(group, resource, subresource) -> View | None
    subresources.action_for(group, resource, subresource) -> Action | None     (subresource "" = a virtual resource,
                                                                                e.g. selfsubjectaccessreviews)
    tables.as_table(resource, objects, include_object, now)
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Literal, NamedTuple, Protocol

import msgspec

from skysail.api.ports import User
from skysail.api.raw import Raw

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
FieldErrorType = Literal[
    "Invalid", "Required", "Forbidden", "NotSupported", "Duplicate", "NotFound", "TooLong", "TooMany", "TooFew",
    "TooShort", "TypeInvalid", "Internal",
]  # fmt: skip


class GroupResource(NamedTuple):
    """A kind of thing whatever its version: ("apps", "deployments"). The core group is ""."""

    group: str
    resource: str

    def __str__(self) -> str:
        """As upstream prints it: `deployments.apps`, `pods`."""
        return f"{self.resource}.{self.group}" if self.group else self.resource


@dataclass(frozen=True, slots=True)
class SubresourceInfo:
    """One row of the table: a subresource, the kind of its body, its verbs in discovery's words."""

    name: str
    group: str
    version: str
    kind: str
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """A column that a CRD adds to the Table of its resource.

    Attributes:
        type: string, integer, number, boolean or date.
        path: JSONPath of the value: `.spec.replicas`.
        priority: 0 always shown, others only in wide output.
    """

    name: str
    type: str
    path: str
    format: str = ""
    description: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class ResourceInfo:
    """One row of the table: a resource in one of its versions, built in or defined by a CRD.

    Attributes:
        verbs: In discovery's words: create delete deletecollection get list patch update watch.
        subresources: By name.
        custom: Defined by a CRD: no strategic merge, PUT needs a resourceVersion.
        printer_columns: Of a custom resource; empty means Age alone.
    """

    group: str
    version: str
    resource: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...] = ()
    subresources: Mapping[str, SubresourceInfo] = field(default_factory=dict)
    short_names: tuple[str, ...] = ()
    singular: str = ""
    categories: tuple[str, ...] = ()
    custom: bool = False
    printer_columns: tuple[PrinterColumn, ...] = ()

    @property
    def api_version(self) -> str:
        """`v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_resource(self) -> GroupResource:
        """Without the version."""
        return GroupResource(self.group, self.resource)


_ERROR_WORDS: Mapping[str, str] = {
    "Invalid": "Invalid value", "TypeInvalid": "Invalid value", "Required": "Required value",
    "Forbidden": "Forbidden", "NotSupported": "Unsupported value", "Duplicate": "Duplicate value",
    "NotFound": "Not found", "TooLong": "Too long", "TooMany": "Too many", "TooFew": "Too few",
    "TooShort": "Too short", "Internal": "Internal error",
}  # fmt: skip
OMITTED = object()
"""The value of a FieldError whose message does not show it: upstream's `field.OmitValueType`."""
_WITHOUT_VALUE = frozenset({"Required", "Forbidden", "TooLong", "TooShort", "Internal"})
_ESCAPES: Mapping[str, str] = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def quote(text: str) -> str:
    """A string as Go's `%q` prints it."""
    return '"' + "".join(_ESCAPES.get(c, c if c.isprintable() else f"\\u{ord(c):04x}") for c in text) + '"'


@dataclass(frozen=True, slots=True)
class FieldError:
    """One broken rule: which field, what kind of mistake, what stood there.

    Attributes:
        field: Path as upstream prints it: `spec.containers[0].name`, `metadata.labels`.
        value: What stood there; a string, number, bool, None, list or dict; not printed for Required, TooLong ...
        detail: Upstream's words after the value; may be empty.

    Source: apimachinery/pkg/util/validation/field/errors.go, v1.36.
    """

    field: str
    type: FieldErrorType
    value: object = ""
    detail: str = ""

    @property
    def reason(self) -> str:
        """The cause's reason in a Status: `FieldValueInvalid`."""
        return "InternalError" if self.type == "Internal" else f"FieldValue{self.type}"

    @property
    def body(self) -> str:
        """The message without the field: `Invalid value: "x": must be ...`."""
        text = _ERROR_WORDS[self.type]
        if self.type not in _WITHOUT_VALUE and self.value is not OMITTED:
            text += ": " + (
                quote(self.value) if isinstance(self.value, str) else msgspec.json.encode(self.value).decode()
            )
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        """The message with its field: `spec.replicas: Invalid value: -1: must be ...`."""
        return f"{self.field}: {self.body}"


def invalid(path: str, value: object, detail: str) -> FieldError:
    """A value that breaks a rule."""
    return FieldError(path, "Invalid", value, detail)


def required(path: str, detail: str = "") -> FieldError:
    """A value that must be there."""
    return FieldError(path, "Required", "", detail)


def forbidden(path: str, detail: str) -> FieldError:
    """A value that must not be there, or may not change."""
    return FieldError(path, "Forbidden", "", detail)


def not_supported(path: str, value: object, supported: Iterable[str]) -> FieldError:
    """A value outside its enumeration; `supported` is printed in the order given."""
    words = ", ".join(quote(word) for word in supported)
    return FieldError(path, "NotSupported", value, f"supported values: {words}" if words else "")


def duplicate(path: str, value: object) -> FieldError:
    """A second value where one may be."""
    return FieldError(path, "Duplicate", value)


def not_found(path: str, value: object) -> FieldError:
    """A reference to something that is not there."""
    return FieldError(path, "NotFound", value)


def too_long(path: str, limit: int) -> FieldError:
    """A string or map over its size in bytes."""
    return FieldError(path, "TooLong", "", f"may not be more than {limit} bytes")


class Reader(Protocol):
    """Reads of the current state, this request's own writes included."""

    def get(self, resource: GroupResource, namespace: str, name: str) -> Raw | None:
        """The object, or None."""
        ...

    def list(self, resource: GroupResource, namespace: str = "") -> Sequence[Raw]:
        """All objects of a resource (in one namespace, or everywhere), in key order."""
        ...


@dataclass(frozen=True, slots=True)
class AccessQuestion:
    """May somebody do this? Either about a resource, or about a `path` that is none."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    namespace: str = ""
    path: str = ""


class Access(Protocol):
    """Who may do what, and who a token stands for: asked by the reviews of access and tokens."""

    def allows(self, user: User, question: AccessQuestion) -> bool:
        """Whether the user may."""
        ...

    def reason(self, user: User, question: AccessQuestion) -> str:
        """Why the user may, in RBAC's words; "" when there is nothing to say."""
        ...

    def rules(self, user: User, namespace: str) -> Sequence[Raw]:
        """The PolicyRules that hold for a user in a namespace, as RBAC writes them."""
        ...

    def user_of(self, token: str) -> User | None:
        """The user of a bearer token, or None when it is not known."""
        ...


@dataclass(slots=True)
class DeleteOptions:
    """What a DELETE asked for, body and query merged.

    Attributes:
        grace_period_seconds: None when the request did not say.
        propagation: "", Foreground, Background or Orphan (`orphanDependents` is folded in).
    """

    grace_period_seconds: int | None = None
    propagation: str = ""
    uid: str = ""
    resource_version: str = ""


@dataclass(slots=True)
class RequestContext:
    """Who asks, when, and how; handed to every hook of one request.

    Attributes:
        now: The request's one time, UTC, whole seconds are written into objects.
        rng: For uids, names, ports.
        reader: Other objects (namespaces, priority classes, ...).
        warnings: Texts for `Warning` headers; hooks append.
        verb: create, update, patch, delete, deletecollection, get, list, watch.
        patch_type: The Content-Type of a PATCH, else "".
        options: The server's own switches, e.g. "service-cidr".
        access: For reviews; None where nobody is asked (the server's own writes).
    """

    user: User
    now: datetime
    rng: Random
    reader: Reader
    resource: ResourceInfo
    verb: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = "Warn"
    patch_type: str = ""
    user_agent: str = ""
    warnings: list[str] = field(default_factory=list)
    options: Mapping[str, str] = field(default_factory=dict)
    access: Access | None = None


class Strategy(Protocol):
    """What a kind adds to the generic life of an object. `strategies` has a default for every kind.

    The registry itself does: uid, creationTimestamp, resourceVersion, generateName, name and namespace against the URL,
    preconditions, finalizers, deletion by propagation, no-op detection, managed fields, and validation of `metadata`
    (names by `name_errors`, labels, annotations, ownerReferences, finalizers, immutability).

    Order of a create: default, admission.admit, prepare_create, metadata, validate_create, warnings, store.
    Order of an update: default(new), admission.admit, prepare_update, metadata, validate_update, warnings, store.
    """

    allow_create_on_update: bool
    """PUT of an absent object creates it (leases, events, ...)."""
    allow_unconditional_update: bool
    """PUT without a resourceVersion is taken."""
    returns_deleted: bool
    """DELETE that removes at once answers with the object instead of a Status."""

    def default(self, obj: Raw) -> None:
        """Fill in what the API's defaulting fills in, `metadata` included where it does (namespace label)."""
        ...

    def prepare_create(self, obj: Raw, ctx: RequestContext) -> None:
        """Drop what a client may not set (`status`), set generation 1 where tracked, first status."""
        ...

    def validate_create(self, obj: Raw) -> Sequence[FieldError]:
        """All broken rules of a new object, `metadata` aside."""
        ...

    def name_errors(self, name: str, prefix: bool) -> Sequence[str]:
        """Why a name is none, in upstream's words; `prefix` for a generateName."""
        ...

    def prepare_update(self, new: Raw, old: Raw, ctx: RequestContext) -> None:
        """Take over from `old` what this endpoint may not change (`status`), bump generation where due."""
        ...

    def validate_update(self, new: Raw, old: Raw) -> Sequence[FieldError]:
        """All broken rules of a change, `metadata` aside."""
        ...

    def warnings(self, new: Raw, old: Raw | None, ctx: RequestContext) -> Sequence[str]:
        """Texts for `Warning` headers of a create (`old` is None) or an update."""
        ...

    def grace_period(self, obj: Raw, options: DeleteOptions, ctx: RequestContext) -> int | None:
        """Seconds a deletion waits: None when the kind knows no graceful deletion, 0 for at once."""
        ...

    def default_propagation(self, ctx: RequestContext) -> str:
        """What a DELETE that names no policy means: "", "Orphan" (may append a warning)."""
        ...

    def prepare_delete(self, obj: Raw, ctx: RequestContext) -> None:
        """Last touch when deletionTimestamp is first set (Namespace: phase Terminating)."""
        ...

    def may_remove(self, obj: Raw) -> bool:
        """Whether an object without metadata.finalizers may leave (a Namespace with spec.finalizers may not)."""
        ...

    def selectable_fields(self, obj: Raw) -> Mapping[str, str]:
        """Values for field selectors beyond metadata.name and metadata.namespace; every supported key is present."""
        ...

    def to_storage(self, obj: Raw, group: str, version: str) -> Raw:
        """From the version of the URL to the storage form (same group store: events; usually only apiVersion)."""
        ...

    def from_storage(self, obj: Raw, group: str, version: str) -> Raw:
        """From the storage form to the version of the URL."""
        ...


class Registry(Reader, Protocol):
    """Writes with all rules applied, for subresources and admission. One atomic step each; errors raise `ApiError`."""

    def create(self, resource: GroupResource, namespace: str, obj: Raw, ctx: RequestContext) -> Raw:
        """Create and return as stored."""
        ...

    def update(
        self,
        resource: GroupResource,
        namespace: str,
        name: str,
        mutate: Callable[[Raw], Raw | None],
        ctx: RequestContext,
        *,
        validate: bool = True,
        manager: str = "",
        subresource: str = "",
    ) -> Raw:
        """Alter one object and return it as stored.

        `mutate` gets its own copy and either alters it in place (returning None) or returns the new object; what it
        raises ends the request. The strategy's validate_update runs unless `validate` is False; prepare_update does
        not. Managed fields are only tracked when a `manager` is named, as if it wrote through `subresource`. Nothing is
        written when nothing changed, or on a dry run.

        Raises:
            NotFound: There is no such object.
        """
        ...

    def delete(
        self, resource: GroupResource, namespace: str, name: str, options: DeleteOptions, ctx: RequestContext
    ) -> Raw:
        """Delete as the DELETE verb does (grace, finalizers) and return the last state."""
        ...


class View(Protocol):
    """A subresource that is read, put and patched: status, scale, resize, ephemeralcontainers, finalize, approval.

    The registry reads the parent, shows `read(parent)`, applies the body or patch to that, calls `write`, and stores.
    """

    body_kind: tuple[str, str, str] | None
    """(group, version, kind) of the body; None when it is the parent's own kind."""
    verbs: frozenset[str]
    """Of get, update, patch."""

    def read(self, parent: Raw, ctx: RequestContext) -> Raw:
        """What GET answers."""
        ...

    def write(self, body: Raw, parent: Raw, ctx: RequestContext) -> Raw:
        """The whole new parent: the stored one with what this subresource may change taken from the body.

        `parent` is a copy that may be altered and returned. Bumps generation where due.
        """
        ...

    def validate(self, body: Raw, new: Raw, old: Raw, ctx: RequestContext) -> Sequence[FieldError]:
        """All broken rules: of the body, and of the parent's change."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """What an Action answers: an HTTP status and the object for the body."""

    status: int
    body: Raw


class Action(Protocol):
    """A subresource or virtual resource that is only POSTed to: binding, eviction, token, reviews."""

    body_kind: tuple[str, str, str]
    """(group, version, kind) of the body."""
    tracked: bool
    """Whether managed fields are noted in the body before `create` sees it: the answer is made of it."""

    def default(self, body: Raw) -> None:
        """Fill in what the body left out."""
        ...

    def create(self, body: Raw, registry: Registry, ctx: RequestContext) -> Answer:
        """Do it. `ctx.namespace` and `ctx.name` say to whom."""
        ...


class UpdateManagedFields(Protocol):
    """`managed_fields.update`: bring `new`'s metadata.managedFields up to date after any write but an apply."""

    def __call__(
        self,
        live: Raw | None,
        new: Raw,
        *,
        manager: str,
        api_version: str,
        subresource: str,
        now: datetime,
        type_info: object,
    ) -> None:
        """Alter `new` in place; `live` is the stored object before (None on create)."""
        ...


class ApplyManagedFields(Protocol):
    """`managed_fields.apply`: server-side apply."""

    def __call__(
        self,
        live: Raw | None,
        applied: Raw,
        *,
        manager: str,
        force: bool,
        subresource: str,
        now: datetime,
        type_info: object,
    ) -> Raw:
        """The merged object with its managedFields.

        Raises:
            Conflict: Others own fields that would change, and `force` is off.
        """
        ...
