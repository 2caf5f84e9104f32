"""What a head of a line is promised by simulation: it leaves nothing behind in what runs or is about to."""

import pytest

from skysail.batch.model.job import TaskState
from skysail.batch.model.specs import QuotaSpec
from tests.batch.lab import Lab


@pytest.mark.parametrize("backfill", ["EASY", "None"])
def test_a_job_being_bound_is_bound_though_another_asks_when_it_will_end(backfill):
    lab = Lab()
    lab.nodes(2, cpu="8")
    lab.queue("line", backfill=backfill, dequeue="fifo")
    lab.gang("first", 2, queue="line", requests={"cpu": "8"}, group={"maximum_execution_seconds": 600.0})
    lab.gang("second", 2, queue="line", requests={"cpu": "8"}, group={"maximum_execution_seconds": 600.0})
    lab.gang("third", 1, queue="line", requests={"cpu": "8"}, group={"maximum_execution_seconds": 600.0})
    states = []
    lab.play = lambda effects: states.extend(task.state for batch in effects.binds for task in batch.tasks)
    lab.cycle()
    assert states == [TaskState.BINDING, TaskState.BINDING]


def test_slots_go_on_to_another_node_where_one_is_full_of_pods():
    lab = Lab()
    lab.nodes(2, pods="10")
    lab.queue("q")
    spec = QuotaSpec("default", "many", uid="many", queue="q", resources={"cpu": 100}, count=16)
    lab.world.set_quota(spec)
    lab.cycle()
    assert sorted(slot.node for slot in lab.world.slots.values()) == ["n000"] * 10 + ["n001"] * 6
