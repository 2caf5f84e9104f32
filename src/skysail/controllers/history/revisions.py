"""A set's history as values: the template of each revision, which one the set asks for, and which may go.

A revision holds `{"spec": {"template": {..., "$patch": "replace"}}}`: a strategic merge patch that would put the set
back. Revisions of equal templates are one: going back to an old template renumbers its revision instead of making one.

Source: pkg/controller/history/controller_history.go, pkg/controller/statefulset/stateful_set_control.go, v1.36.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from skysail.api.apps import ControllerRevision
from skysail.api.meta import OwnerReference
from skysail.api.raw import Raw
from skysail.controllers.templates import fnv32, parse_template, safe_encode, template_hash, whole_template

HASH_LABEL = "controller.kubernetes.io/hash"
REVISION_LABEL = "controller-revision-hash"
_MAX_PARENT = 223
_GO_ESCAPES = {
    b"<": b"\\u003c",
    b">": b"\\u003e",
    b"&": b"\\u0026",
    "\u2028".encode(): b"\\u2028",
    "\u2029".encode(): b"\\u2029",
}


def revision_template(revision: ControllerRevision) -> msgspec.Raw:
    """The pod template a revision remembers; an empty one if it holds none, for the server takes any data."""
    spec = parse_template(revision.data).get("spec")
    template = spec.get("template") if isinstance(spec, dict) else None
    fields = template if isinstance(template, dict) else {}
    return msgspec.Raw(msgspec.json.encode({key: value for key, value in fields.items() if key != "$patch"}))


def revision_data(template: msgspec.Raw) -> msgspec.Raw:
    """What a revision of this template holds, to the byte: by their bytes kube-controller-manager tells them apart."""
    return msgspec.Raw(_as_go_writes(parse_template(template)))


def _as_go_writes(template: Raw) -> bytes:
    text = msgspec.json.encode({"spec": {"template": {**template, "$patch": "replace"}}}, order="sorted")
    for character, escape in _GO_ESCAPES.items():
        text = text.replace(character, escape)
    return text


def revision_hash(template: msgspec.Raw, collision_count: int) -> str:
    """The suffix of a stateful set's revision: over what the revision holds, as Go writes JSON."""
    text = _as_go_writes(msgspec.json.decode(whole_template(template)))
    return safe_encode(str(fnv32(text + str(collision_count).encode())))


def daemon_revision_hash(template: msgspec.Raw, collision_count: int) -> str:
    """The suffix of a daemon set's revision: over the template, as for a replica set."""
    return template_hash(template, collision_count or None)


def in_order(revisions: Iterable[ControllerRevision]) -> list[ControllerRevision]:
    """Oldest number first; equals by creation and name."""
    return sorted(
        revisions,
        key=lambda item: (
            item.revision,
            item.metadata.creation_timestamp.timestamp() if item.metadata.creation_timestamp else 0.0,
            item.name,
        ),
    )


def next_number(revisions: Sequence[ControllerRevision]) -> int:
    """The number after the highest."""
    return max((item.revision for item in revisions), default=0) + 1


@dataclass(frozen=True, slots=True)
class WantedRevision:
    """The revision of the present template.

    Attributes:
        existing: The one that is there, if any.
        number: The number it is to have.
    """

    existing: ControllerRevision | None
    number: int

    @property
    def needs_renumbering(self) -> bool:
        """Whether it is there, under an older number."""
        return self.existing is not None and self.existing.revision != self.number


def wanted_revision(template: msgspec.Raw, revisions: Sequence[ControllerRevision]) -> WantedRevision:
    """Find the revision of a template; of several equal ones the newest.

    Args:
        template: The set's present one.
        revisions: In order.
    """
    wanted = whole_template(template)
    equal = [item for item in revisions if whole_template(revision_template(item)) == wanted]
    if not equal:
        return WantedRevision(None, next_number(revisions))
    newest = equal[-1]
    return WantedRevision(newest, newest.revision if newest is revisions[-1] else next_number(revisions))


def revision_name(parent: str, suffix: str) -> str:
    """The name of a revision."""
    return f"{parent[:_MAX_PARENT]}-{suffix}"


def new_revision(
    parent: str,
    owner: OwnerReference,
    template: msgspec.Raw,
    annotations: Mapping[str, str],
    number: int,
    suffix: str,
    hash_label: str = HASH_LABEL,
) -> Raw:
    """The revision to create.

    Args:
        parent: The set's name.
        owner: The reference to the set.
        template: What to remember.
        annotations: The set's own; they are remembered, too.
        number: Its number.
        suffix: What its name ends in: its hash.
        hash_label: The label that holds the hash.
    """
    labels = {**(parse_template(template).get("metadata", {}).get("labels") or {}), hash_label: suffix}
    metadata: Raw = {
        "name": revision_name(parent, suffix),
        "labels": labels,
        "ownerReferences": [msgspec.to_builtins(owner)],
    }
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": metadata,
        "data": revision_data(template),
        "revision": number,
    }


def superfluous(
    revisions: Sequence[ControllerRevision], in_use: Collection[str], limit: int
) -> list[ControllerRevision]:
    """The oldest revisions beyond the history limit, of those that are not in use (by name).

    A negative limit, which stateful sets may have, keeps all.
    """
    if limit < 0:
        return []
    idle = [item for item in revisions if item.name not in in_use]
    return idle[: max(0, len(idle) - limit)]
