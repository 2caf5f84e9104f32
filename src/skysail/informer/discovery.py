"""Kinds known only at run time: their descriptors from the server's discovery, their objects as dictionaries.

widgets = await discover_kind(client, "example.com/v1", "Widget")
informer = informers.informer(widgets)               # of dictionaries
metadata = metadata_only(widgets)                    # the same kind, of which only metadata is kept
"""

from typing import Any, Protocol

import msgspec

from skysail.api.errors import NotFound
from skysail.api.kinds import Kind
from skysail.api.meta import PartialObjectMetadata
from skysail.api.raw import Raw


class PathReader(Protocol):
    """The part of `skysail.client.api_client.ApiClient` that discovery uses."""

    async def read_path(self, path: str) -> bytes:
        """The body found at a path."""
        ...


class _Resource(msgspec.Struct, frozen=True):
    name: str
    kind: str
    namespaced: bool = False


class _ResourceList(msgspec.Struct, frozen=True):
    resources: tuple[_Resource, ...] = ()


async def discover_kind(client: PathReader, api_version: str, name: str) -> Kind[Raw]:
    """The descriptor of a kind the server knows; its objects are dictionaries.

    Args:
        client: Asks the server.
        api_version: `v1`, or `group/version`.
        name: The kind (`Widget`) or the resource (`widgets`).

    Raises:
        NotFound: The server does not know the group and version, or the kind in it.
    """
    for kind in await discover_kinds(client, api_version):
        if name in (kind.name, kind.plural):
            return kind
    raise NotFound(f"the server has no {name!r} in {api_version}")


async def discover_kinds(client: PathReader, api_version: str) -> tuple[Kind[Raw], ...]:
    """The descriptors of all kinds of a group and version.

    Raises:
        NotFound: The server does not know the group and version.
    """
    group, _, version = api_version.rpartition("/")
    body = await client.read_path(f"/apis/{api_version}" if group else f"/api/{version}")
    found = msgspec.json.decode(body, type=_ResourceList).resources
    below: dict[str, list[str]] = {}
    for resource in found:
        plural, slash, subresource = resource.name.partition("/")
        if slash:
            below.setdefault(plural, []).append(subresource)
    return tuple(
        Kind(group, version, each.kind, each.name, each.namespaced, dict, tuple(below.get(each.name, ())))
        for each in found
        if "/" not in each.name
    )


def metadata_only(kind: Kind[Any]) -> Kind[PartialObjectMetadata]:
    """The same kind, of whose objects only the metadata is read and cached."""
    struct = PartialObjectMetadata
    return Kind(kind.group, kind.version, kind.name, kind.plural, kind.namespaced, struct, kind.subresources)
