"""What is served beside objects: version, health, discovery and OpenAPI.

Source: apiserver/pkg/server/{healthz,routes}, v1.36.
"""

import msgspec

from skysail.api.ports import Request, Response
from skysail.apiserver.discovery import Discovery
from skysail.apiserver.openapi import OpenAPI
from skysail.apiserver.requests import Query
from skysail.apiserver.schema import Schema
from skysail.apiserver.status import JSON_HEADERS, method_not_allowed

VERSION = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.2",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "",
}
_TEXT = (
    ("Cache-Control", "no-cache, private"),
    ("Content-Type", "text/plain; charset=utf-8"),
    ("X-Content-Type-Options", "nosniff"),
)
_HEALTH = ("healthz", "livez", "readyz")
_CHECKS = ("ping", "log", "storage")


class Documents:
    """Everything under a path that is no resource."""

    def __init__(self, schema: Schema) -> None:
        self.discovery = Discovery(schema)
        self.openapi = OpenAPI(schema)

    def find(self, request: Request) -> Response | None:
        """The document a path names, or None when it names none.

        Raises:
            MethodNotAllowed: It is there, but only to be read.
        """
        parts = request.path.strip("/").split("/")
        if parts == ["version"]:
            if request.method != "GET":
                raise method_not_allowed()
            return Response(200, JSON_HEADERS, msgspec.json.encode(VERSION))
        if parts[0] in _HEALTH and len(parts) <= 2:
            return self._health(parts, Query(request.query))
        if parts[0] == "openapi":
            return self.openapi.answer(request.path, dict(request.query), request.headers)
        if len(parts) > 3:
            return None
        document = self._root() if parts == [""] else self.discovery.answer(request.path, request.headers)
        if document is not None and request.method != "GET":
            raise method_not_allowed()
        return document

    def _root(self) -> Response:
        paths = ["/api", "/api/v1", "/apis"]
        for group, versions in self.discovery.groups().items():
            paths += [f"/apis/{group}", *(f"/apis/{group}/{version}" for version in versions)]
        paths += [f"/{name}" for name in _HEALTH] + ["/openapi/v3", "/version"]
        return Response(200, JSON_HEADERS, msgspec.json.encode({"paths": sorted(paths)}))

    @staticmethod
    def _health(parts: list[str], query: Query) -> Response | None:
        if len(parts) == 2:
            return Response(200, _TEXT, b"ok") if parts[1] in _CHECKS else None
        if "verbose" not in query:
            return Response(200, _TEXT, b"ok")
        lines = [f"[+]{check} ok" for check in _CHECKS if check not in query.all("exclude")]
        return Response(200, _TEXT, "\n".join([*lines, f"{parts[0]} check passed", ""]).encode())
