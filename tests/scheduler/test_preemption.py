"""Preemption: the choice among candidates as recorded, and who is more important than whom."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from skysail.api.core import Pod, PodSpec, PodStatus
from skysail.api.meta import ObjectMeta
from skysail.scheduler.cache.pod_info import PodInfo, importance_of
from skysail.scheduler.preemption.picking import best_nodes
from skysail.scheduler.preemption.victims import Victims

FUNCTIONS = Path(__file__).parents[1] / "golden/scheduler/functions"
START = datetime(2026, 1, 1, tzinfo=UTC)


def victim(raw: dict[str, object]) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=str(raw["Name"])),
        spec=PodSpec(priority=raw["Priority"]),  # type: ignore[arg-type]
        status=PodStatus(start_time=datetime.fromisoformat(str(raw["Start"]))),
    )


def test_the_best_nodes_are_the_recorded_ones() -> None:
    for vector in json.loads((FUNCTIONS / "pick_one_node.json").read_text()):
        candidates = {
            name: Victims(tuple(PodInfo(victim(pod)) for pod in entry["Pods"]), entry["PDB"])
            for name, entry in vector["input"].items()
        }
        assert sorted(best_nodes(candidates)) == vector["output"]["best"]


def test_priority_comes_before_start_and_a_pod_that_has_not_started_comes_last_of_its_equals() -> None:
    starts = [START, START + timedelta(seconds=1), datetime(2105, 12, 31, tzinfo=UTC), None]
    priorities = [2**31 - 1, 2_000_001_000, 1, 0, -1, -(2**31) + 1, -(2**31)]
    numbers = [importance_of(priority, start) for priority in priorities for start in starts]
    assert numbers == sorted(numbers)
    assert len(set(numbers)) == len(numbers)
    assert [~(number >> 32) for number in numbers] == [each for each in priorities for _ in starts]
    assert all(-(2**63) <= number < 2**63 for number in numbers)
