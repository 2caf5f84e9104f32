"""The smaller plugins, slots of Quotas, past use, and demand for more nodes: each by what it changes."""

import pytest
from prometheus_client import CollectorRegistry

from skysail.batch.config import load_configuration
from skysail.batch.demand import scale_up_demand
from skysail.batch.devices import Share, share_of
from skysail.batch.engine import Engine
from skysail.batch.metrics import BatchCollector
from skysail.batch.model.specs import QuotaSpec, SubGroupSpec, ZoneWish
from tests.batch.lab import ANY, GPU, START, Lab, figures


def test_a_critical_pod_is_nobodys_victim():
    lab = Lab()
    lab.nodes(1, gpus=1)
    lab.pod("critical", gpus=1, priority_class="system-cluster-critical")
    lab.cycle()
    lab.pod("high", gpus=1, priority=10)
    lab.cycle(3)
    assert lab.evicted == []


def test_a_job_overdue_by_its_agreement_goes_first():
    lab = Lab()
    lab.nodes(1, gpus=1)
    lab.gang("busy", 1, gpus=1, priority=100)
    lab.cycle()
    lab.gang("patient", 1, gpus=1, group={"sla_waiting_seconds": 10.0})
    lab.cycle(seconds=20.0)
    lab.gang("important", 1, gpus=1, priority=50)
    lab.finish("busy-0")
    lab.cycle()
    assert (lab.count("patient"), lab.count("important")) == (1, 0)


@pytest.mark.parametrize(
    ("annotations", "share"),
    [
        ({"gpu-fraction": "0.5"}, Share(thousandths=500)),
        ({"gpu-fraction": ".25"}, Share(thousandths=250)),
        ({"gpu-memory": "2000"}, Share(mebibytes=2000)),
        ({"gpu-fraction": "1.5"}, None),
        ({"gpu-fraction": "half"}, None),
        ({"gpu-memory": "-1"}, None),
        ({}, None),
    ],
)
def test_shares_of_a_device_are_read(annotations, share):
    assert share_of(Lab().pod("p", annotations=annotations)) == share


def test_shares_are_summed_on_each_device_and_not_over_the_node():
    lab = Lab()
    lab.nodes(1, gpus=2)
    for number in range(3):
        lab.pod(f"share-{number}", annotations={"gpu-fraction": "0.6"})
    lab.cycle()
    assert sum(lab.count(f"share-{number}") for number in range(3)) == 2
    lab.pod("rest", annotations={"gpu-fraction": "0.4"})
    lab.pod("whole", gpus=1)
    lab.cycle()
    assert (lab.count("rest"), lab.count("whole")) == (1, 0)


def test_memory_of_a_device_bounds_its_sharers():
    lab = Lab()
    lab.nodes(1, gpus=1, labels={"nvidia.com/gpu.memory": "46068"})
    for number in range(24):
        lab.pod(f"p{number}", annotations={"gpu-memory": "2000"})
    lab.cycle()
    assert sum(lab.count(f"p{number}") for number in range(24)) == 22


def fragmented(configuration):
    lab = Lab()
    lab.configuration = load_configuration(configuration)
    lab.nodes(2, gpus=4)
    for number in range(2):
        lab.run(lab.pod(f"small-{number}", gpus=2), f"n00{number}")
    lab.pod("large", gpus=4)
    lab.cycle(2)
    return lab


PLUGINS = "plugins: [gang, conformance, {name: rescheduling, arguments: {maxMoves: %d}}, predicates, binpack]"


def test_a_pod_is_moved_to_make_one_large_hole():
    lab = fragmented(PLUGINS % 1)
    assert [beneficiary for _, beneficiary in lab.evicted] == ["pod:default/large"]
    assert lab.count("large") == 1


def test_nobody_is_moved_unless_that_is_configured():
    assert fragmented(PLUGINS % 0).evicted == []


def test_tasks_sit_in_slots_where_quotas_are_defined():
    lab = Lab()
    lab.nodes(2, gpus=8)
    lab.queue("q", figures=figures(capability=8))
    lab.world.set_quota(QuotaSpec("default", "pair", "q", {GPU: 2, "cpu": 4000}, count=2))
    lab.cycle()
    assert {slot.phase for slot in lab.world.slots.values()} == {"Bound"}
    assert lab.world.ledger.amount("q", 0, (ANY, GPU)) == 4
    lab.gang("job", 4, queue="q", gpus=1)
    lab.cycle()
    assert lab.count("job") == 4
    assert lab.world.ledger.amount("q", 0, (ANY, GPU)) == 4
    lab.gang("more", 1, queue="q", gpus=1)
    lab.cycle()
    assert (lab.code("more"), lab.numbers("more")["have"]) == ("NoQuotaSlot", 0)
    lab.finish("job-0")
    lab.cycle()
    assert lab.count("more") == 1


def test_an_idle_slot_is_given_back_after_its_time():
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.queue("q")
    spec = QuotaSpec("default", "slot", "q", {GPU: 8}, release="Idle", release_after_seconds=10.0)
    lab.world.set_quota(spec)
    lab.cycle(5)
    assert lab.world.ledger.amount("q", 0, (ANY, GPU)) == 8
    engine = Engine(lab.world, lab.configuration, check=True)
    engine.run_once(lab.world.now)
    assert engine.run_once(lab.world.now + 20.0).effects.released
    assert lab.world.ledger.entries() == {}


def test_past_use_decays_and_lowers_the_share():
    lab = Lab()
    lab.nodes(1, gpus=16)
    for name in "ab":
        lab.queue(name, usage_half_life_seconds=100.0, usage_weight=500)
    lab.gang("a", 16, 1, "a", gpus=1)
    engine = Engine(lab.world, lab.configuration)
    lab.play(engine.run_once(START).effects)
    engine.run_once(START + 100.0)
    assert lab.world.usage.millionths == {"a": 500_000, "b": 0}
    lab.gang("b", 16, 1, "b", gpus=1)
    engine.run_once(START + 100.0)
    shares = engine.last_session.entitlements.shares
    assert shares["a"][ANY, GPU] < shares["b"][ANY, GPU]


def test_c18_demand_for_nodes_counts_each_gang_once_and_only_within_its_quota():
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.queue("q", figures=figures(capability=24))
    for name, gpus in (("fits", 8), ("one", 8), ("two", 8), ("three", 8), ("never", 32)):
        lab.gang(name, 1, queue="q", gpus=gpus)
        lab.cycle()
    assert [(demand.job, demand.request[GPU]) for demand in scale_up_demand(lab.world)] == [
        ("default/one", 8), ("default/two", 8),
    ]  # fmt: skip
    lab.nodes(1, prefix="more", gpus=8)
    lab.cycle()
    assert [demand.job for demand in scale_up_demand(lab.world)] == ["default/two"]


def test_a_gang_stays_within_one_zone_when_it_must():
    lab = Lab()
    lab.nodes(2, prefix="a", gpus=4, labels={"zone": "a"})
    lab.nodes(3, prefix="b", gpus=4, labels={"zone": "b"})
    lab.gang("job", 8, gpus=1, group={"zone": ZoneWish(required=True)})
    lab.gang("wide", 12, gpus=1, group={"zone": ZoneWish(required=True)})
    lab.cycle()
    assert {lab.node_of(name)[0] for name in lab.running("job")} == {"a"}
    assert {lab.node_of(name)[0] for name in lab.running("wide")} == {"b"}


def test_a_tree_of_sub_groups_needs_as_many_as_it_says():
    lab = Lab()
    lab.nodes(1, gpus=4)
    tree = (
        SubGroupSpec("workers", parent="", min_sub_groups=1),
        SubGroupSpec("x", 3, parent="workers"),
        SubGroupSpec("y", 9, parent="workers"),
    )
    lab.group("job", 3, sub_groups=tree)
    for part, size in (("y", 9), ("x", 3)):
        for number in range(size):
            lab.pod(f"{part}-{number}", "job", 1, labels={"scheduling.skysail.io/sub-group": part})
    lab.cycle()
    assert sorted(name for name in lab.running("job") if name.startswith("x")) == ["x-0", "x-1", "x-2"]


def test_competing_parts_of_a_gang_are_placed_by_another_order_when_the_first_fails():
    lab = Lab()
    lab.nodes(1, prefix="any", gpus=1)
    lab.nodes(1, prefix="only", gpus=1, labels={"kind": "x"})
    lab.group("job", 2, min_task_member={"free": 1, "bound": 1})
    lab.pod("job-free", "job", 1, role="free")
    lab.pod("job-bound", "job", 1, role="bound", node_selector={"kind": "x"})
    lab.cycle()
    assert lab.count("job") == 2


def test_a_gang_that_lost_a_member_needs_only_that_one_again():
    lab = Lab()
    lab.nodes(1, gpus=4)
    lab.gang("job", 4, gpus=1)
    lab.cycle()
    lab.delete("job-0")
    lab.cycle()
    assert lab.count("job") == 3
    lab.pod("job-new", "job", 1)
    lab.cycle()
    assert lab.count("job") == 4


def test_a_job_that_waits_too_long_says_so():
    lab = Lab()
    lab.nodes(1, gpus=1)
    lab.gang("job", 2, gpus=1, group={"schedule_timeout_seconds": 30.0})
    lab.cycle()
    assert lab.code("job") == "NotEnough"
    lab.cycle(seconds=40.0)
    lab.cycle()
    assert (lab.code("job"), lab.numbers("job")["code"]) == ("ScheduleTimeout", "NotEnough")


def test_metrics_tell_what_queues_use_and_who_waits_for_what():
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.queue("q", figures=figures(deserved=4, capability=6))
    engine = Engine(lab.world, lab.configuration)
    registry = CollectorRegistry()
    registry.register(BatchCollector(engine))
    lab.gang("job", 4, queue="q", gpus=1)
    lab.gang("more", 4, queue="q", gpus=1)
    lab.play(engine.run_once(START + 5).effects)
    value = registry.get_sample_value
    gpu = {"queue": "q", "flavor": ANY, "resource": GPU}
    assert value("skysail_batch_queue_amount", gpu | {"column": "held"}) == 4
    assert value("skysail_batch_queue_entitlement", gpu) == 6
    assert value("skysail_batch_jobs_waiting", {"queue": "q", "code": "QuotaExceeded"}) == 1
    assert value("skysail_batch_binds_total") == 4


def test_a_job_whose_slots_find_no_node_waits_for_them_to_be_bound():
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.queue("q")
    lab.world.set_quota(QuotaSpec("default", "wide", "q", {GPU: 6, "cpu": 4000}, count=2))
    lab.gang("job", 2, queue="q", gpus=6)
    lab.gang("too-many", 3, queue="q", gpus=6)
    lab.cycle()
    assert (lab.code("job"), lab.numbers("job")["have"]) == ("WaitingQuotaBind", 1)
    assert lab.code("too-many") == "NoQuotaSlot"
    lab.nodes(1, "more", gpus=8)
    lab.cycle(2)
    assert lab.count("job") == 2
