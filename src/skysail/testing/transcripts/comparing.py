"""Where a replay differs from a recording, and what may differ.

Objects must be equal to what was recorded, or to one of the other states seen in other recordings of that step. Events
must be the same, up to how a scaling was split and how similar events were combined.

What no recording fixes is forgiven: in a step in which a deployment makes a replica set, its Progressing condition may
already speak of progress, or not yet; and the pods of one owner that tie in every rank are interchangeable.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from skysail.api.raw import Raw

_SCALED = re.compile(r"Scaled (?:up|down) replica set (\S+) from (\d+) to (\d+)")
_COMBINED = "(combined from similar events): "
_ROLLING_REASONS = ("NewReplicaSetCreated", "ReplicaSetUpdated")

EventKey = tuple[str, str, str, str]


def compare(recorded: Iterable[Raw], seen: Iterable[Raw]) -> Iterator[str]:
    """Every difference, in words, step by step."""
    for wanted, found in zip(recorded, seen, strict=True):
        yield from compare_step(wanted, found)


def compare_step(wanted: Raw, found: Raw) -> Iterator[str]:
    """The differences of one step."""
    step = wanted["step"]
    if wanted.get("result") != found.get("result") and "result" not in wanted.get("differs", ()):
        yield f"step {step}: result is {found.get('result')}, recorded {wanted.get('result')}"
    choices = [wanted["state"]["objects"], *wanted.get("also_seen_objects", ())]
    differences = [list(_differences(choice, found["state"]["objects"], "")) for choice in choices]
    if all(differences):
        for difference in min(differences, key=len):
            yield f"step {step}: {difference}"
    events = [wanted["state"]["events"], *wanted.get("also_seen_events", ())]
    lists = [list(_event_differences(choice, found["state"]["events"])) for choice in events]
    if all(lists):
        for difference in min(lists, key=len):
            yield f"step {step}: {difference}"


def _differences(wanted: Any, found: Any, path: str) -> Iterator[str]:
    if path.endswith(".conditions"):
        wanted, found = _lenient(wanted), _lenient(found)
    if path.endswith("pods") and isinstance(wanted, list) and isinstance(found, list):
        yield from _pod_differences(wanted, found, path)
    elif isinstance(wanted, dict) and isinstance(found, dict):
        for key in [*wanted, *(key for key in found if key not in wanted)]:
            if key not in found:
                yield f"{path}.{key} is missing, recorded {wanted[key]!r}"
            elif key not in wanted:
                yield f"{path}.{key} is {found[key]!r}, recorded nothing"
            else:
                yield from _differences(wanted[key], found[key], f"{path}.{key}")
    elif wanted != found:
        yield f"{path} is {found!r}, recorded {wanted!r}"


def _lenient(conditions: Any) -> Any:
    """Conditions with the two words for a roll-out under way made one."""
    if not isinstance(conditions, list):
        return conditions
    return [
        [item[0], item[1], "rolling"] if item[0] == "Progressing" and item[2] in _ROLLING_REASONS else item
        for item in conditions
    ]


def _pod_differences(wanted: list[Raw], found: list[Raw], path: str) -> Iterator[str]:
    for words, left, right in (("is missing", wanted, found), ("is not in the recording", found, wanted)):
        rest = _counted(right)
        for pod, count in _counted(left).items():
            if count > rest.get(pod, 0):
                yield f"{path}: {count - rest.get(pod, 0)} x {dict(_thaw(pod))} {words}"


def _counted(pods: list[Raw]) -> dict[Any, int]:
    counts: dict[Any, int] = {}
    for pod in pods:
        key = _freeze({name: value for name, value in pod.items() if name != "count"})
        counts[key] = counts.get(key, 0) + int(pod["count"])
    return counts


def _freeze(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(sorted((key, _freeze(item)) for key, item in value.items()))
    if isinstance(value, list):
        return ("list", *(_freeze(item) for item in value))
    return value


def _thaw(frozen: Any) -> Mapping[str, Any]:
    return dict(frozen)


def _event_differences(wanted: list[Raw], found: list[Raw]) -> Iterator[str]:
    combined = _combined(wanted) | _combined(found)
    recorded, ours = _totals(wanted, combined), _totals(found, combined)
    for key in sorted({*recorded, *ours}):
        if recorded.get(key) != ours.get(key):
            yield f"events {key}: {ours.get(key)}, recorded {recorded.get(key)}"


def _combined(events: list[Raw]) -> set[tuple[str, str]]:
    """Objects of whose scalings some were combined: they no longer tell from what to what."""
    return {
        (event["kind"], event["name"])
        for event in events
        if event["message"].startswith(_COMBINED) and _SCALED.search(event["message"])
    }


def _totals(events: list[Raw], combined: set[tuple[str, str]]) -> dict[EventKey, Any]:
    """Events in a form that does not depend on how they were split or combined, nor on how often a retry failed."""
    totals: dict[EventKey, Any] = {}
    for event in events:
        message = event["message"].removeprefix(_COMBINED)
        scaled = _SCALED.fullmatch(message)
        if scaled is None:
            key = (event["kind"], event["name"], event["reason"], message)
            count = 1 if event["reason"].startswith("Failed") else totals.get(key, 0) + event["count"]
            totals[key] = count
        elif (event["kind"], event["name"]) not in combined:
            key = (event["kind"], event["name"], event["reason"], f"scaled {scaled[1]}")
            totals[key] = totals.get(key, 0) + int(scaled[3]) - int(scaled[2])
    return {key: total for key, total in totals.items() if total}
