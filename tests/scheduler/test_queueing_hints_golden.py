"""Every recorded change is translated to the recorded cluster events, and every built plugin hints as recorded."""

import gzip
import json
from pathlib import Path

import pytest

from skysail.scheduler.config.resolve import load_configuration
from skysail.scheduler.framework.changes import node_scheduling_properties_change, pod_scheduling_properties_change
from skysail.scheduler.framework.events import (
    ASSIGNED_POD,
    UNSCHEDULABLE_POD,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
)
from skysail.scheduler.framework.feature_gates import DEFAULT_GATES
from skysail.scheduler.profiles import extension_points, make_profile
from skysail.scheduler.registry import REGISTRY
from skysail.scheduler.scenario import build_world, decode_object

FUNCTIONS = Path(__file__).parents[1] / "golden/scheduler/functions"
SCENARIOS = json.loads(gzip.decompress((FUNCTIONS / "queueing_hints.json.gz").read_bytes()))
BUILT = load_configuration(None, DEFAULT_GATES, extension_points(REGISTRY)).profiles[0]
SLICE = 10


def decoded(raw):
    found = decode_object(raw) if raw is not None else None
    return found[1] if found is not None else raw


def cluster_events(resource, old, new) -> list[ClusterEvent]:
    if old is not None and new is not None and resource == "Node":
        return list(node_scheduling_properties_change(old, new))
    if old is not None and new is not None and resource == "Pod":
        return list(pod_scheduling_properties_change(old, new))
    action = ActionType.ADD if old is None else ActionType.DELETE if new is None else ActionType.UPDATE
    if resource == "Pod":
        resource = ASSIGNED_POD if (new or old).spec.node_name else UNSCHEDULABLE_POD
    return [ClusterEvent(resource, action)]


def answer(rows: list[ClusterEventWithHint], pod, event, old, new) -> str | None:
    matching = [row for row in rows if row.event.matches(event)]
    if not matching:
        return None
    if all(row.hint is None for row in matching):
        return "Queue (no hint function)"
    hints = [QueueingHint.QUEUE if row.hint is None else row.hint(pod, old, new) for row in matching]
    return (QueueingHint.QUEUE if QueueingHint.QUEUE in hints else QueueingHint.SKIP).value


@pytest.mark.parametrize("part", range(SLICE))
def test_events_and_hints_are_as_recorded(part):
    for scenario in SCENARIOS[part::SLICE]:
        world = build_world(scenario["objects"], {})
        profile = make_profile(BUILT, REGISTRY, world)
        pod = decoded(scenario["pod"])
        for change, expected in zip(scenario["events"], scenario["expected"], strict=True):
            old, new = decoded(change.get("old")), decoded(change.get("new"))
            events = cluster_events(change["resource"], old, new)
            assert [event.label for event in events] == expected["cluster_events"], (scenario["id"], change)
            given = {
                name: {
                    event.label: hint for event in events if (hint := answer(rows, pod, event, old, new)) is not None
                }
                for name, rows in profile.registrations.items()
            }
            recorded = {name: hints for name, hints in expected["hints"].items() if name in REGISTRY}
            assert {name: hints for name, hints in given.items() if hints} == recorded, (scenario["id"], change)


def test_built_plugins_register_for_the_recorded_events():
    recorded = json.loads((FUNCTIONS / "queueing_events.json").read_text())
    profile = make_profile(BUILT, REGISTRY, build_world([], {}))
    for row in recorded:
        if row["plugin"] not in profile.registrations:
            assert row["plugin"] not in REGISTRY, row["plugin"]
            continue
        given = [
            {
                "actions": sorted(_names(entry.event.action)),
                "has_hint": entry.hint is not None,
                "resource": entry.event.resource,
            }
            for entry in profile.registrations[row["plugin"]]
        ]
        wanted = [{**entry, "actions": sorted(entry["actions"])} for entry in row["events"]]
        assert sorted(given, key=str) == sorted(wanted, key=str), row["plugin"]


def _names(action: ActionType) -> list[str]:
    if action & ActionType.UPDATE == ActionType.UPDATE:
        rest = [ClusterEvent("", part).label for part in action & ~ActionType.UPDATE]
        return [*rest, "Update"]
    return [ClusterEvent("", part).label for part in action]
