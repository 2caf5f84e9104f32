"""How objects are written out: as they are, as metadata alone, or as rows of a Table; as JSON or YAML.

A `Form` turns stored bodies into what one client asked for, in lists and in watch events. The plain form copies bytes;
the others decode. Forms with the same `key` write the same bytes, so watchers share one encoding of an event.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Protocol

import msgspec
import yaml

from skysail.api.raw import Raw
from skysail.apiserver.catalogue import Handle
from skysail.apiserver.contract import quote
from skysail.apiserver.requests import META_GROUP, Accepted
from skysail.apiserver.status import bad_request
from skysail.apiserver.tables import as_table

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class _MetadataOnly(msgspec.Struct):
    metadata: msgspec.Raw


_decode_metadata = msgspec.json.Decoder(_MetadataOnly).decode


class Form(Protocol):
    """One representation of the objects of one resource.

    Attributes:
        key: Equal keys, equal bytes.
        stable: Every object is written the same way, however many came before.
    """

    key: object
    stable: bool

    def object(self, body: bytes) -> bytes:
        """One stored object, by itself or in a watch event."""
        ...

    def collection(self, metadata: Raw, bodies: Iterable[bytes]) -> bytes:
        """A list of stored objects."""
        ...

    def bookmark(self, revision: int, annotations: Raw | None) -> bytes:
        """The object of a BOOKMARK event."""
        ...


def _bookmark_metadata(revision: int, annotations: Raw | None) -> Raw:
    metadata: Raw = {"resourceVersion": str(revision)}
    if annotations:
        metadata["annotations"] = annotations
    return metadata


class PlainForm:
    """Objects in the version of the URL."""

    stable = True

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self.key: object = handle.head

    def object(self, body: bytes) -> bytes:
        """As stored, or converted."""
        return self._handle.shown(body)

    def collection(self, metadata: Raw, bodies: Iterable[bytes]) -> bytes:
        """Items carry neither kind nor apiVersion, but for custom resources."""
        resource, shown, skip = self._handle.resource, self._handle.shown, len(self._handle.head)
        head = f'{{"kind":"{resource.kind}List","apiVersion":"{resource.api_version}","metadata":'.encode()
        if resource.custom:
            metadata = {"continue": "", **metadata}
            items = b",".join([shown(body) for body in bodies])
        else:
            items = b",".join([b"{" + shown(body)[skip:] for body in bodies])
        return b"".join((head, _encode(metadata), b',"items":[', items, b"]}"))

    def bookmark(self, revision: int, annotations: Raw | None) -> bytes:
        """An object of the kind with nothing but its version."""
        resource = self._handle.resource
        return _encode(
            {
                "kind": resource.kind,
                "apiVersion": resource.api_version,
                "metadata": _bookmark_metadata(revision, annotations),
            }
        )


class MetadataForm:
    """PartialObjectMetadata: what the garbage collector and metadata informers read."""

    stable = True

    def __init__(self, version: str) -> None:
        self.key: object = ("metadata", version)
        self._version = version
        self._head = f'{{"kind":"PartialObjectMetadata","apiVersion":"{META_GROUP}/{version}","metadata":'.encode()

    def object(self, body: bytes) -> bytes:
        """Metadata is cut out, not decoded."""
        return b"".join((self._head, _decode_metadata(body).metadata, b"}"))

    def collection(self, metadata: Raw, bodies: Iterable[bytes]) -> bytes:
        """An empty list has null items, as upstream's has."""
        head = f'{{"kind":"PartialObjectMetadataList","apiVersion":"{META_GROUP}/{self._version}","metadata":'
        items = b",".join([self.object(body) for body in bodies])
        return b"".join((head.encode(), _encode(metadata), b',"items":', b"[%b]" % items if items else b"null", b"}"))

    def bookmark(self, revision: int, annotations: Raw | None) -> bytes:
        """Metadata with nothing but its version."""
        return b"".join((self._head, _encode(_bookmark_metadata(revision, annotations)), b"}"))


class TableForm:
    """Rows for people. In a watch only the first event carries the columns' definitions.

    Args:
        handle: The resource.
        version: Of meta.k8s.io.
        include_object: None, Metadata or Object.
        now: For ages.
    """

    stable = False

    def __init__(self, handle: Handle, version: str, include_object: str, now: Callable[[], datetime]) -> None:
        self.key: object = object()
        self._handle, self._version, self._include, self._now = handle, version, include_object, now
        self._columns_sent = False

    def _table(self, documents: Sequence[Raw], metadata: Raw) -> Raw:
        table = as_table(self._handle.resource, documents, self._include, self._now(), self._version)
        table["metadata"] = metadata
        return table

    def object(self, body: bytes) -> bytes:
        """A Table of one row; without columns after the first."""
        document = self._handle.as_document(body)
        return self._event(document, {"resourceVersion": document["metadata"]["resourceVersion"]})

    def _event(self, document: Raw, metadata: Raw) -> bytes:
        table = self._table([document], metadata)
        if self._columns_sent:
            table["columnDefinitions"] = None
        self._columns_sent = True
        return _encode(table)

    def collection(self, metadata: Raw, bodies: Iterable[bytes]) -> bytes:
        """One Table of all rows."""
        return _encode(self._table([self._handle.as_document(body) for body in bodies], metadata))

    def bookmark(self, revision: int, annotations: Raw | None) -> bytes:
        """A Table of one empty row."""
        resource = self._handle.resource
        document: Raw = {
            "kind": resource.kind,
            "apiVersion": resource.api_version,
            "metadata": _bookmark_metadata(revision, annotations),
        }
        return self._event(document, {"resourceVersion": str(revision)})


def check_include(include_object: str) -> None:
    """Check what the rows of a Table are to carry.

    Raises:
        BadRequest: None of the known words.
    """
    if include_object not in ("", "None", "Metadata", "Object"):
        raise bad_request(
            f"Unable to convert to Table as requested: includeObject: Invalid value: {quote(include_object)}: "
            "must be 'Metadata', 'Object', 'None', or empty"
        )


def form_for(handle: Handle, accepted: Accepted, include_object: str, now: Callable[[], datetime]) -> Form:
    """The form a request asked for."""
    if accepted.convert == "Table":
        return TableForm(handle, accepted.version, include_object or "Metadata", now)
    return MetadataForm(accepted.version) if accepted.convert else PlainForm(handle)


class _YamlDumper(yaml.CSafeDumper):
    """YAML as the Go server writes it: double quotes where quotes are needed, literal blocks for several lines."""


_TEXT = "tag:yaml.org,2002:str"
_resolver = yaml.resolver.Resolver()


def _represent_text(dumper: _YamlDumper, text: str) -> yaml.ScalarNode:
    style = None
    if "\n" in text:
        style = "|"
    elif not text or _resolver.resolve(yaml.ScalarNode, text, (True, False)) != _TEXT:  # type: ignore[no-untyped-call]
        style = '"'
    return dumper.represent_scalar(_TEXT, text, style=style)


_YamlDumper.add_representer(str, _represent_text)


def as_yaml(body: bytes) -> bytes:
    """A JSON document as YAML, keys sorted."""
    text: str = yaml.dump(_decode(body), Dumper=_YamlDumper, sort_keys=True, default_flow_style=False, width=10_000)
    return text.encode()


def indented(body: bytes) -> bytes:
    """A JSON document for people."""
    return msgspec.json.format(body, indent=2)
