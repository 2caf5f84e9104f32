"""Discovery: which groups, versions and resources there are, in the old form and in the aggregated one.

    /api  /apis                    every group: legacy lists, or `APIGroupDiscoveryList` when Accept asks for it
    /apis/<group>                  one group
    /api/v1  /apis/<group>/<v>     the resources of one version

Everything is made from the table of resources, those of CRDs included, kept as bytes, and made anew when the table's
generation moves. The aggregated form carries an ETag, so that kubectl's cache costs a 304.

Source: apiserver/pkg/endpoints/discovery, v1.36.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from skysail.api.errors import NotAcceptable, NotFound, StatusDetails
from skysail.api.ports import Response
from skysail.api.raw import Raw
from skysail.apiserver.contract import ResourceInfo
from skysail.apiserver.schema import Schema, storage_version_hash
from skysail.apiserver.schema.versions import version_order

JSON = "application/json"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
ACCEPTED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"


class Discovery:
    """The discovery documents of one server.

    Args:
        schema: The table; resources may come and go.
        address: `host:port` as clients reach the server, shown in `/api`.
    """

    def __init__(self, schema: Schema, address: str = "127.0.0.1") -> None:
        self._schema = schema
        self.address = address
        self._generation = -1
        self._made: dict[str, bytes] = {}

    def answer(self, path: str, headers: Mapping[str, str]) -> Response | None:
        """The answer to a GET, or None when the path is no discovery path of a known group.

        Args:
            path: As requested; a trailing slash makes no difference.
            headers: With lower-case names; Accept and If-None-Match are looked at.

        Raises:
            NotAcceptable: Accept names nothing that can be given.
            NotFound: The group is known, the version is not.
        """
        if self._generation != self._schema.generation:
            self._made.clear()
            self._generation = self._schema.generation
        parts = path.strip("/").split("/")
        if parts in (["api"], ["apis"]):
            if _wants_aggregated(headers.get("accept", "")):
                return self._aggregated(parts[0], headers.get("if-none-match", ""))
            return self._json(parts[0], lambda: self._versions() if parts == ["api"] else self._groups())
        if len(parts) == 2 and parts[0] == "apis" and parts[1] in self.groups():
            return self._json(f"apis/{parts[1]}", lambda: {**_headed("APIGroup"), **self._group(parts[1])})
        if parts[0] == "api" and len(parts) == 2:
            return self._version("", parts[1])
        if parts[0] == "apis" and len(parts) == 3 and parts[1] in self.groups():
            return self._version(parts[1], parts[2])
        return None

    def groups(self) -> dict[str, list[str]]:
        """The named groups with their versions, preferred first, in the order in which clients see them."""
        found: dict[str, list[str]] = {}
        for group, version in self._schema.builtin_versions:
            if group:
                found.setdefault(group, []).append(version)
        custom: dict[str, set[str]] = {}
        for resource in self._schema.custom:
            custom.setdefault(resource.group, set()).add(resource.version)
        for group in sorted(custom):
            there = found.setdefault(group, [])
            there += sorted(custom[group] - set(there), key=version_order)
        return found

    def _json(self, key: str, make: Callable[[], Raw]) -> Response:
        body = self._made.get(key)
        if body is None:
            body = self._made[key] = msgspec.json.encode(make())
        return Response(200, (("Cache-Control", "no-cache, private"), ("Content-Type", JSON)), body)

    def _aggregated(self, root: str, known: str) -> Response:
        body = self._made.get(f"aggregated {root}")
        if body is None:
            body = self._made[f"aggregated {root}"] = msgspec.json.encode(self._aggregate(root))
        etag = f'"{hashlib.sha512(body).hexdigest().upper()}"'
        headers = (("Cache-Control", "public"), ("ETag", etag), ("Vary", "Accept"))
        if known == etag:
            return Response(304, headers)
        return Response(200, (*headers, ("Content-Type", AGGREGATED)), body)

    def _version(self, group: str, version: str) -> Response:
        if not self._schema.serves(group, version):
            raise NotFound("the server could not find the requested resource", details=StatusDetails())
        return self._json(f"{group}/{version}", lambda: self._resources(group, version))

    def _of(self, group: str, version: str) -> list[ResourceInfo]:
        rows = [row for row in self._schema.resources if (row.group, row.version) == (group, version)]
        return sorted(rows, key=lambda row: row.resource)

    def _versions(self) -> Raw:
        address = {"clientCIDR": "0.0.0.0/0", "serverAddress": self.address}
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]}

    def _groups(self) -> Raw:
        return {**_headed("APIGroupList"), "groups": [self._group(group) for group in self.groups()]}

    def _group(self, group: str) -> Raw:
        versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in self.groups()[group]]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def _resources(self, group: str, version: str) -> Raw:
        api_version = f"{group}/{version}" if group else version
        head: Raw = {"kind": "APIResourceList", "groupVersion": api_version}
        if group:
            head["apiVersion"] = "v1"
        return {**head, "resources": [entry for row in self._of(group, version) for entry in _legacy_entries(row)]}

    def _aggregate(self, root: str) -> Raw:
        groups: Iterable[tuple[str, Sequence[str]]] = [("", ["v1"])] if root == "api" else self.groups().items()
        items = [
            {
                "metadata": {"name": group} if group else {},
                "versions": [
                    {
                        "version": version,
                        "resources": [_aggregated_entry(row) for row in self._of(group, version)],
                        "freshness": "Current",
                    }
                    for version in versions
                ],
            }
            for group, versions in groups
        ]
        return {
            "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
        }  # fmt: skip


def _headed(kind: str) -> Raw:
    return {"kind": kind, "apiVersion": "v1"}


def _legacy_entries(row: ResourceInfo) -> Iterable[Raw]:
    entry: Raw = {
        "name": row.resource, "singularName": row.singular, "namespaced": row.namespaced, "kind": row.kind,
        "verbs": row.verbs,
    }  # fmt: skip
    if row.short_names:
        entry["shortNames"] = row.short_names
    if row.categories:
        entry["categories"] = row.categories
    if digest := storage_version_hash(row):
        entry["storageVersionHash"] = digest
    yield entry
    for name in sorted(row.subresources):
        sub = row.subresources[name]
        elsewhere = (sub.group, sub.version) != (row.group, row.version)
        kind = {"group": sub.group, "version": sub.version} if elsewhere else {}
        yield {
            "name": f"{row.resource}/{name}", "singularName": "", "namespaced": row.namespaced, **kind,
            "kind": sub.kind, "verbs": sub.verbs,
        }  # fmt: skip


def _aggregated_entry(row: ResourceInfo) -> Raw:
    # Upstream leaves group and version of its own kinds empty, but fills them in for custom resources.
    own = (row.group, row.version) if row.custom else ("", "")
    entry: Raw = {
        "resource": row.resource,
        "responseKind": _response_kind(*own, row.kind),
        "scope": "Namespaced" if row.namespaced else "Cluster",
        "singularResource": row.singular,
        "verbs": row.verbs,
    }
    if row.short_names:
        entry["shortNames"] = row.short_names
    if row.categories:
        entry["categories"] = row.categories
    if row.subresources:
        entry["subresources"] = [
            {
                "subresource": name,
                "responseKind": _response_kind(
                    *(own if (sub.group, sub.version) == (row.group, row.version) else (sub.group, sub.version)),
                    sub.kind,
                ),
                "verbs": sub.verbs,
            }
            for name, sub in sorted(row.subresources.items())
        ]
    return entry


def _response_kind(group: str, version: str, kind: str) -> Raw:
    return {"group": group, "version": version, "kind": kind}


def _wants_aggregated(accept: str) -> bool:
    """Whether the first form in Accept that can be given is the aggregated one.

    Raises:
        NotAcceptable: None can.
    """
    if not accept.strip():
        return False
    for clause in accept.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        named = dict(part.partition("=")[::2] for part in parameters)
        if media not in (JSON, "*/*", "application/*", "application/yaml"):
            continue
        if "as" not in named:
            return False
        if (named.get("g"), named.get("v"), named["as"]) == ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList"):
            return True
    raise NotAcceptable(f"only the following media types are accepted: {ACCEPTED}")
