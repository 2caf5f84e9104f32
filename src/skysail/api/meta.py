"""What every API object has: the Struct base, object metadata, owner references, label selectors, times."""

from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec


class Struct(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, rename="camel"):
    """A part of an API object: frozen, unknown fields ignored, zero values left out when written."""


class OwnerReference(Struct, frozen=True, gc=False):
    """An object without which this one should not be."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Struct, frozen=True, gc=False):
    """The metadata of every object."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class ApiObject(Struct, frozen=True, gc=False):
    """The base of every kind. `api_version` and `kind` are empty inside lists; the kind descriptor knows them."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()

    @property
    def name(self) -> str:
        """The object's name."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """The object's namespace; empty for cluster-scoped kinds."""
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        """The object's unique id."""
        return self.metadata.uid

    @property
    def key(self) -> str:
        """`namespace/name`, or the bare name for cluster-scoped kinds (client-go's MetaNamespaceKeyFunc)."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


class PartialObjectMetadata(ApiObject, frozen=True, gc=False):
    """Any object, reduced to its metadata (meta.k8s.io/v1)."""


class LabelSelectorRequirement(Struct, frozen=True, gc=False):
    """One test on a label: In, NotIn, Exists or DoesNotExist."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Struct, frozen=True, gc=False):
    """A label query; all parts must hold. Empty matches everything, None (where allowed) nothing."""

    match_labels: Mapping[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class Condition(Struct, frozen=True, gc=False):
    """One condition of a status (metav1.Condition)."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None
    observed_generation: int = 0


def own_raw(struct: msgspec.Struct, field: str) -> None:
    """Replace a Raw view of a decoded message by a copy, so that the message can be freed."""
    value = getattr(struct, field)
    if isinstance(value, msgspec.Raw):
        msgspec.structs.force_setattr(struct, field, value.copy())


def format_time(moment: datetime) -> str:
    """A metav1.Time as written: RFC 3339, UTC, whole seconds."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def format_micro_time(moment: datetime) -> str:
    """A metav1.MicroTime as written: RFC 3339, UTC, always six digits."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def parse_time(text: str) -> datetime:
    """Read a metav1.Time or MicroTime.

    Raises:
        ValueError: The text is no RFC 3339 time.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"time without a zone: {text!r}")
    return moment.astimezone(UTC)
