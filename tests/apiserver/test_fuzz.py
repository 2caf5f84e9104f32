"""Random requests, half sensible: the server never fails of its own, and what it refuses changes nothing.

Seeds: ten by default, more with `SOAK_SEEDS=n`; every seed is 300 requests against one server.
"""

import json
import os
from random import Random
from typing import Any

import pytest

from skysail.api.ports import Request, Response
from skysail.apiserver.authentication import ADMIN
from skysail.apiserver.schema import load
from skysail.apiserver.server import ApiServer
from skysail.simulator.clock import LoopClock, run_virtual

SEEDS = range(int(os.environ.get("SOAK_SEEDS", "10")))
REQUESTS = 300
METHODS = ("GET", "GET", "POST", "POST", "PUT", "PATCH", "PATCH", "DELETE", "HEAD", "OPTIONS", "FROB")
PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
TYPES = ("", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "text/plain", *PATCHES)
ACCEPTS = (
    "application/json",
    "*/*",
    "",
    "application/yaml",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    ";;q=x,/",
    "text/html",
)
QUERIES = {
    "limit": ("1", "0", "-5", "x", "99999999999999999999"),
    "continue": ("nope", "", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0", "####"),
    "resourceVersion": ("0", "1", "abc", "-1", "99999", ""),
    "resourceVersionMatch": ("Exact", "NotOlderThan", "x"),
    "labelSelector": ("a=b", "a in (b,c)", "!a", "a>1", "==", "a=b=c", "(", "a notin ()"),
    "fieldSelector": ("metadata.name=a", "spec.nodeName!=", "status.phase=Running", "x", "a=b,=,", "metadata.name=\\q"),
    "dryRun": ("All", "None", ""),
    "fieldValidation": ("Strict", "Warn", "Ignore", "x"),
    "fieldManager": ("me", "", "x" * 200, "a\x00b"),
    "force": ("true", "x", ""),
    "gracePeriodSeconds": ("0", "-1", "x", "30"),
    "propagationPolicy": ("Orphan", "Foreground", "Background", "x"),
    "orphanDependents": ("true", "0"),
    "pretty": ("true", "x"),
    "includeObject": ("None", "Object", "x"),
    "watch": ("false", "0"),
    "timeoutSeconds": ("1", "x"),
}
SCALARS = (
    None,
    True,
    0,
    -1,
    1,
    2**31,
    2**63,
    1e300,
    0.5,
    "",
    "a",
    "x" * 300,
    "1Gi",
    "abc!",
    "2020-01-01T00:00:00Z",
    "ü\x00",
)


POD: dict[str, Any] = {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]}
TEMPLATE = {"metadata": {"labels": {"app": "x"}}, "spec": POD}
WORKLOAD = {"spec": {"selector": {"matchLabels": {"app": "x"}}, "template": TEMPLATE}}
BASES: dict[str, dict[str, Any]] = {
    "configmaps": {"data": {"k": "v"}},
    "pods": {"spec": POD},
    "services": {"spec": {"ports": [{"port": 80}]}},
    "leases": {"spec": {"holderIdentity": "x"}},
    "deployments": WORKLOAD,
    "replicasets": WORKLOAD,
    "daemonsets": WORKLOAD,
    "statefulsets": {"spec": {"serviceName": "x", **WORKLOAD["spec"]}},
    "jobs": {"spec": {"template": {"spec": {"restartPolicy": "Never", **POD}}}},
    "poddisruptionbudgets": {"spec": {"minAvailable": 1, "selector": {}}},
    "priorityclasses": {"value": 5},
}
FURNITURE = {
    "configmaps": "/api/v1",
    "pods": "/api/v1",
    "services": "/api/v1",
    "deployments": "/apis/apps/v1",
    "leases": "/apis/coordination.k8s.io/v1",
}


def merged(base: Any, over: Any) -> Any:
    """The base with something laid over it."""
    if not (isinstance(base, dict) and isinstance(over, dict)):
        return over
    return {**base, **{key: merged(base.get(key), value) for key, value in over.items()}}


class Fuzzer:
    """Makes requests out of the table of resources."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.schema = load()
        self.resources = self.schema.resources
        self.wild = 0.15

    def request(self) -> Request:
        rng, resource = self.rng, self.rng.choice(self.resources)
        self.wild = rng.choice((0.01, 0.15))
        if rng.random() < 0.6:
            resource = next(
                each
                for each in self.resources
                if (
                    each.resource
                    == rng.choice(
                        ("pods", "configmaps", "deployments", "nodes", "namespaces", "leases", "services", "events")
                    )
                    and each.group != "events.k8s.io"
                )
                or each is resource
            )
        method = rng.choice(METHODS)
        name = rng.choice(("a", "a", "b", "b", "web", "default", "A_", "", "%", ".."))
        path = self.path(resource, method, name)
        query = tuple((key, rng.choice(QUERIES[key])) for key in rng.sample(sorted(QUERIES), rng.choice((0, 0, 1, 2))))
        headers = {
            "accept": rng.choice(ACCEPTS) if rng.random() < 0.2 else "application/json",
            "user-agent": rng.choice(("fuzz/1", "", "curl/8")),
        }
        content_type = rng.choice(PATCHES) if method == "PATCH" else "application/json"
        if rng.random() < 0.1:
            content_type = rng.choice(TYPES)
        if content_type:
            headers["content-type"] = content_type
        return Request(method, path, query, headers, self.body(resource, method, name, content_type))

    def path(self, resource: Any, method: str, name: str) -> str:
        rng = self.rng
        root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
        if rng.random() < 0.03:
            return rng.choice(
                ("/", "/api", "/apis/x", "/api/v9/pods", "//api//v1", "/openapi/v3", "/apis/apps/v1/", "/healthz/x")
            )
        parts = [root]
        if resource.namespaced and rng.random() < 0.95:
            parts += ["namespaces", rng.choice(("default", "default", "shop", "nosuch"))]
        parts.append(resource.resource)
        if method not in ("POST",) or rng.random() < 0.2:
            parts.append(name)
        if resource.subresources and rng.random() < 0.25:
            parts += [name or "a", rng.choice(sorted(resource.subresources))]
        return "/".join(parts)

    def body(self, resource: Any, method: str, name: str, content_type: str) -> bytes:
        rng = self.rng
        if method in ("GET", "HEAD", "OPTIONS") or rng.random() < 0.05:
            return rng.choice(
                (b"", b"{", b"[]", b"null", b"k8s\x00\x0a\xff", b"\xff\xfe", b"[" * 2000, b'{"a":1,"a":2}')
            )
        if content_type == "application/json-patch+json":
            operations = [
                {
                    "op": rng.choice(("add", "remove", "replace", "test", "move", "copy", "x")),
                    "path": rng.choice(
                        ("/metadata/labels/a", "/spec", "", "/metadata", "x", "/spec/containers/0", "/kind")
                    ),
                    "value": self.value(2),
                    "from": "/spec",
                }
                for _ in range(rng.randint(0, 3))
            ]
            return json.dumps(operations).encode()
        info = self.schema.type_of(resource.group, resource.version, resource.kind)
        document = self.object(info, 5) if info else {}
        if rng.random() < 0.7:
            document = merged(BASES.get(resource.resource, {}), document)
        if rng.random() < 0.8:
            document["metadata"] = {"name": name or "a"}
        if rng.random() < 0.5:
            document.update({"apiVersion": resource.api_version, "kind": resource.kind})
        return json.dumps(document).encode()

    def object(self, info: Any, depth: int) -> dict[str, Any]:
        names = list(info.fields)
        chosen = self.rng.sample(names, min(len(names), self.rng.randint(0, 6)))
        return {name: self.field(info.fields[name], info, depth) for name in chosen}

    def field(self, field: Any, info: Any, depth: int) -> Any:
        rng = self.rng
        if depth == 0 or rng.random() < self.wild:
            return self.value(1)
        target = info.target(field)
        if target is not None:
            return self.object(target, depth - 1) if target.fields else rng.choice(SCALARS)
        if field.items is not None:
            return [self.field(field.items, info, depth - 1) for _ in range(rng.randint(0, 2))]
        if field.map is not None:
            return {rng.choice("ab"): self.field(field.map, info, depth - 1)}
        fitting = {"string": "a", "integer": 1, "boolean": True, "number": 1.5}.get(field.type)
        if fitting is None or rng.random() < self.wild:
            return rng.choice(SCALARS)
        return rng.choice([value for value in (*SCALARS, fitting) if type(value) is type(fitting)])

    def value(self, depth: int) -> Any:
        rng = self.rng
        roll = rng.random()
        if depth and roll < 0.2:
            return [self.value(depth - 1) for _ in range(2)]
        if depth and roll < 0.4:
            return {rng.choice(("a", "name", "$patch", "metadata")): self.value(depth - 1)}
        return rng.choice(SCALARS)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_request_makes_the_server_fail_and_a_refused_one_changes_nothing(seed: int) -> None:
    async def main(clock: LoopClock) -> None:
        fuzzer = Fuzzer(seed)
        async with ApiServer(clock=clock, rng=Random(seed)).running() as server:
            await furnish(server)
            for number in range(REQUESTS):
                request = fuzzer.request()
                before = server.store.revision
                response = await server.handle(request, ADMIN)
                about = f"request {number}: {request}\n{response.status} {response.body[:500]!r}"
                assert b"an error of its own" not in response.body, about
                if response.status >= 400:
                    assert server.store.revision == before, about
                if response.stream is not None:
                    await anext(response.stream, None)

    run_virtual(main)


async def furnish(server: ApiServer) -> None:
    """Something of the most common kinds, so that changes and deletions find it."""
    await send(server, "POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
    for plural, path in FURNITURE.items():
        for name in ("a", "b"):
            for namespace in ("default", "shop"):
                body = {"metadata": {"name": name}, **BASES[plural]}
                response = await send(server, "POST", f"{path}/namespaces/{namespace}/{plural}", body)
                assert response.status == 201, response.body
    for name in ("a", "b"):
        await send(server, "POST", "/api/v1/nodes", {"metadata": {"name": name}})


async def send(server: ApiServer, method: str, path: str, body: Any) -> Response:
    return await server.handle(Request(method, path, body=json.dumps(body).encode()), ADMIN)
