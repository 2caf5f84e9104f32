"""What kinds of objects a server has, custom ones included, and where they live.

Source: k8s.io/client-go/discovery `ServerPreferredResources`, v1.36.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from skysail.api.errors import ApiError, Unreachable
from skysail.api.kinds import KINDS, Kind
from skysail.api.meta import PartialObjectMetadata
from skysail.api.raw import Raw
from skysail.client.api_client import ApiClient

MetadataKind = Kind[PartialObjectMetadata]

_TYPED: Mapping[tuple[str, str, str], Kind[Any]] = {(kind.group, kind.version, kind.plural): kind for kind in KINDS}


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource of a server.

    Attributes:
        kind: Reads its objects' metadata only.
        verbs: What can be done with it.
    """

    kind: MetadataKind
    verbs: frozenset[str]

    @property
    def shared_kind(self) -> Kind[Any]:
        """The kind that others watch, too, if there is one: its objects carry metadata as well."""
        kind = self.kind
        return _TYPED.get((kind.group, kind.version, kind.plural), kind)


@dataclass(frozen=True, slots=True)
class Discovery:
    """What a server has.

    Attributes:
        resources: Every resource in its preferred version, in the server's order.
        by_name: Every kind in every version, by `(apiVersion, kind)`.
        failed: Group versions that could not be asked, with what the server said.
    """

    resources: tuple[Resource, ...] = ()
    by_name: Mapping[tuple[str, str], MetadataKind] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)

    def supporting(self, *verbs: str) -> tuple[Resource, ...]:
        """The resources that know all of these verbs."""
        return tuple(resource for resource in self.resources if resource.verbs.issuperset(verbs))


async def discover(client: ApiClient) -> Discovery:
    """Ask a server for everything it has. A group that does not answer is left out and named.

    Raises:
        ApiError: The server does not say what groups there are.
        Unreachable: Likewise.
    """
    groups = msgspec.json.decode(await client.read_path("/apis"), type=dict[str, Any])["groups"]
    found: dict[tuple[str, str], Resource] = {}
    by_name: dict[tuple[str, str], MetadataKind] = {}
    failed: dict[str, str] = {}
    for path, group, version in (("/api/v1", "", "v1"), *_versions(groups)):
        try:
            listed = msgspec.json.decode(await client.read_path(path), type=dict[str, Any])["resources"]
        except (ApiError, Unreachable) as error:
            failed[f"{group}/{version}"] = error.status.message if isinstance(error, ApiError) else str(error)
            continue
        for resource in _resources(group, version, listed):
            found.setdefault((group, resource.kind.plural), resource)
            by_name[resource.kind.api_version, resource.kind.name] = resource.kind
    return Discovery(tuple(found.values()), by_name, failed)


def _versions(groups: Iterable[Raw]) -> Iterable[tuple[str, str, str]]:
    """All group versions, the preferred one of each group first."""
    for group in groups:
        preferred = group.get("preferredVersion", {}).get("version")
        versions = [item["version"] for item in group["versions"]]
        for version in sorted(versions, key=lambda item: item != preferred):
            yield f"/apis/{group['name']}/{version}", group["name"], version


def _resources(group: str, version: str, listed: Iterable[Raw]) -> Iterable[Resource]:
    for item in listed:
        if "/" in item["name"]:
            continue
        kind = Kind(group, version, item["kind"], item["name"], bool(item["namespaced"]), PartialObjectMetadata)
        yield Resource(kind, frozenset(item.get("verbs") or ()))
