"""Replaying recorded transcripts of a real kube-apiserver: placeholders, comparison, steps.

A recording's volatile values are placeholders (`<uid:1>`, `<rv:3>`, `<time>`); one `Placeholders` binds them at first
sight and checks them ever after. `differences` compares what was recorded with what came. `Replay` runs the steps of a
scenario against a server in virtual time, so a recorded minute costs nothing.
"""

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

TOKEN = re.compile(r"<(uid|rv|gen|continue|clusterIP|nodePort|jwt):(\d+|\*)>|<(time|microtime|age|server)>")
PATTERNS = {
    "uid": r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    "rv": r"\d+",
    "gen": r"[a-z0-9]{5}",
    "continue": r'[^\s"]+',
    "clusterIP": r"[\d.]+",
    "nodePort": r"\d+",
    "jwt": r"\S+",
    "time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
    "microtime": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z",
    "age": r"(?:(?:\d+[smhdy])+|<invalid>|<unknown>)",
    "server": r"[\w.\-:]+",
}
ANY_TIME = {"<time>": "2025-01-01T00:00:00Z", "<microtime>": "2025-01-01T00:00:00.000000Z"}
DEPENDING_ON_THE_BUILD = ("storageVersionHash",)
Difference = tuple[str, Any, Any]


class Placeholders:
    """What each placeholder of one recording stands for."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self._seen: dict[str, dict[str, Any]] = {}

    def remember(self, obj: Any) -> None:
        """Note the times of an object, to send them back when a request repeats it."""
        if isinstance(obj, dict):
            metadata = obj.get("metadata")
            if isinstance(metadata, dict) and metadata.get("uid"):
                self._seen[metadata["uid"]] = metadata
            for value in obj.values():
                self.remember(value)
        elif isinstance(obj, list):
            for value in obj:
                self.remember(value)

    def fill(self, value: Any) -> Any:
        """A recorded request with its placeholders filled in."""
        if isinstance(value, str):
            return TOKEN.sub(lambda match: self._value(match[0]), value)
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        if not isinstance(value, dict):
            return value
        filled = {self.fill(key): self.fill(item) for key, item in value.items()}
        metadata = value.get("metadata")
        if isinstance(metadata, dict):
            self._restore_times(metadata, filled["metadata"])
        return filled

    def _value(self, token: str) -> str:
        return self.values.get(token) or ANY_TIME.get(token, token)

    def _restore_times(self, recorded: dict[str, Any], filled: dict[str, Any]) -> None:
        known = self._seen.get(filled.get("uid", ""))
        if known is None:
            return
        for field in ("creationTimestamp", "deletionTimestamp", "managedFields"):
            if "<time>" in json.dumps(recorded.get(field) or "") and known.get(field):
                filled[field] = known[field]

    def matches(self, expected: str, actual: str, *, loose_version: bool) -> bool:
        """Whether a text fits a recorded one, binding placeholders that are new."""
        pattern, position, names = "", 0, []
        for match in TOKEN.finditer(expected):
            pattern += re.escape(expected[position : match.start()])
            pattern += f"({PATTERNS[match[1] or match[3]]})"
            names.append(match[0])
            position = match.end()
        found = re.fullmatch(pattern + re.escape(expected[position:]), actual, re.DOTALL)
        if found is None:
            return False
        return all(self._bind(name, text, loose_version) for name, text in zip(names, found.groups(), strict=True))

    def _bind(self, name: str, text: str, loose_version: bool) -> bool:
        if ":" not in name or name.endswith("*>"):
            return True
        if self.values.setdefault(name, text) == text:
            return True
        return loose_version and name.startswith("<rv:")


def differences(
    places: Placeholders, expected: Any, actual: Any, path: str = "", *, loose: bool = False
) -> list[Difference]:
    """Where an answer differs from the recorded one.

    Args:
        places: Bound on the way.
        loose: A resourceVersion here may be larger than recorded: that of a list or bookmark.
    """
    if isinstance(expected, str) and TOKEN.search(expected):
        text = str(actual) if isinstance(actual, str | int) and not isinstance(actual, bool) else None
        fits = text is not None and places.matches(expected, text, loose_version=loose)
        return [] if fits else [(path, expected, actual)]
    if isinstance(expected, dict) and isinstance(actual, dict):
        return list(_object_differences(places, expected, actual, path, loose))
    if isinstance(expected, list) and isinstance(actual, list):
        return list(_list_differences(places, expected, actual, path))
    if expected == actual and type(expected) is type(actual):
        return []
    return [(path, expected, actual)]


def _object_differences(
    places: Placeholders, expected: dict[str, Any], actual: dict[str, Any], path: str, loose: bool
) -> Iterator[Difference]:
    metadata = expected.get("metadata")
    listing = (
        str(expected.get("kind", "")).endswith(("List", "Table"))
        or (isinstance(metadata, dict) and "continue" in metadata)
        or path.endswith("BOOKMARK")
    )
    used = set(DEPENDING_ON_THE_BUILD)
    for key, value in expected.items():
        if key in DEPENDING_ON_THE_BUILD:
            continue
        name = next((other for other in actual if _key_fits(places, key, other)), key)
        used.add(name)
        if name not in actual:
            yield (f"{path}.{key}", value, "<absent>")
            continue
        inner = listing if key == "metadata" else loose and key == "resourceVersion"
        yield from differences(places, value, actual[name], f"{path}.{key}", loose=inner)
    for key in actual:
        if key not in used:
            yield (f"{path}.{key}", "<absent>", actual[key])


def _key_fits(places: Placeholders, expected: str, actual: str) -> bool:
    if expected == actual:
        return True
    return bool(TOKEN.search(expected)) and places.matches(expected, actual, loose_version=False)


def _owner(entry: Any) -> tuple[str, ...]:
    return tuple(str(entry.get(key)) for key in ("manager", "operation", "subresource", "apiVersion"))


def _list_differences(places: Placeholders, expected: list[Any], actual: list[Any], path: str) -> Iterator[Difference]:
    if path.endswith("managedFields"):
        expected, actual = sorted(expected, key=_owner), sorted(actual, key=_owner)
    if len(expected) != len(actual):
        yield (f"{path}.length", len(expected), len(actual))
    for index, (one, other) in enumerate(zip(expected, actual, strict=False)):
        if path.endswith("columnDefinitions"):
            one = {key: value for key, value in one.items() if key != "description"}
            other = {key: value for key, value in other.items() if key != "description"}
        yield from differences(places, one, other, f"{path}[{index}]")


def split_path(path: str) -> str:
    """A recorded path as a handler sees it: decoded."""
    return unquote(path)


async def read_lines(stream: Any, lines: "asyncio.Queue[bytes | None]") -> None:
    """Pump a watch's lines into a queue; None marks the end."""
    async for chunk in stream:
        for line in chunk.splitlines():
            lines.put_nowait(line)
    lines.put_nowait(None)
