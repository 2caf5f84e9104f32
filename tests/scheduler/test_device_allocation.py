"""The search for devices, by itself: what it takes first, what it takes back, what it refuses."""

import itertools
import random

import pytest

from skysail.api.meta import ObjectMeta
from skysail.api.node import Node
from skysail.api.resource import (
    CapacityRequirements,
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClaim,
    DeviceClass,
    DeviceConstraint,
    DeviceCounterConsumption,
    DeviceRequest,
    DeviceSubRequest,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from skysail.scheduler.devices.allocation import AllocationError, NodeUnsuitable, Situation, allocate
from skysail.scheduler.devices.features import Features
from skysail.scheduler.devices.pools import SliceIndex, gather_pools
from skysail.scheduler.devices.selectors import Selectors
from skysail.scheduler.devices.taken import Taken

NODE = Node(metadata=ObjectMeta(name="n"))
ANY = DeviceClass(metadata=ObjectMeta(name="any"))


class OneClass:
    def get(self, namespace, name):
        return ANY if name == "any" else None


def exactly(name="r", count=1, mode="ExactCount", **more) -> DeviceRequest:
    body = ExactDeviceRequest(device_class_name="any", allocation_mode=mode, count=count, **more)
    return DeviceRequest(name=name, exactly=body)


def first_of(name, *counts) -> DeviceRequest:
    alternatives = tuple(
        DeviceSubRequest(name=f"s{count}", device_class_name="any", allocation_mode="ExactCount", count=count)
        for count in counts
    )
    return DeviceRequest(name=name, first_available=alternatives)


def claim(*requests, name="c", constraints=()) -> ResourceClaim:
    devices = DeviceClaim(requests=requests, constraints=constraints)
    return ResourceClaim(metadata=ObjectMeta(name=name, namespace="d"), spec=ResourceClaimSpec(devices=devices))


def offer(*devices, name="s", pool="p", generation=1, count=1, counters=()) -> ResourceSlice:
    spec = ResourceSliceSpec(
        driver="d", pool=ResourcePool(name=pool, generation=generation, resource_slice_count=count),
        all_nodes=True, devices=devices, shared_counters=counters,
    )  # fmt: skip
    return ResourceSlice(metadata=ObjectMeta(name=name), spec=spec)


def search(slices, *claims, taken=None, features=None):
    features = features or Features()
    pools = gather_pools(SliceIndex(slices), NODE, features)
    situation = Situation(features, taken or Taken(), OneClass(), Selectors(), lambda: "share")
    found = allocate(situation, NODE, pools, claims)
    if found is None:
        return None
    return [[(each.request, each.device) for each in result.devices.results] for result in found]


def plain(*names):
    return [Device(name=name) for name in names]


def with_attribute(**values):
    return [Device(name=name, attributes={"k": DeviceAttribute(int_value=value)}) for name, value in values.items()]


def test_devices_are_taken_in_the_order_in_which_they_are_offered():
    assert search([offer(*plain("b", "a", "c"))], claim(exactly(count=2))) == [[("r", "b"), ("r", "a")]]


def test_slices_are_tried_by_name_and_pools_by_name():
    slices = [
        offer(*plain("x"), pool="q"),
        offer(*plain("y"), name="z", count=2),
        offer(*plain("w"), name="a", count=2),
    ]
    assert search(slices, claim(exactly(count=3))) == [[("r", "w"), ("r", "y"), ("r", "x")]]


def test_claims_of_one_pod_never_share_a_device():
    found = search([offer(*plain("a", "b"))], claim(exactly()), claim(exactly(), name="c2"))
    assert found == [[("r", "a")], [("r", "b")]]
    assert search([offer(*plain("a"))], claim(exactly()), claim(exactly(), name="c2")) is None


def test_taken_devices_are_left_alone_but_for_admin_access():
    taken = Taken(devices={("d", "p", "a"): 1})
    assert search([offer(*plain("a"))], claim(exactly()), taken=taken) is None
    assert search([offer(*plain("a"))], claim(exactly(admin_access=True)), taken=taken) == [[("r", "a")]]


def test_an_earlier_choice_is_taken_back_when_a_constraint_fails_later():
    devices = with_attribute(a=1, b=2, c=2)
    together = DeviceConstraint(match_attribute="d/k")
    found = search([offer(*devices)], claim(exactly("x"), exactly("y"), constraints=(together,)))
    assert found == [[("x", "b"), ("y", "c")]]
    apart = DeviceConstraint(distinct_attribute="d/k")
    found = search([offer(*devices)], claim(exactly("x"), exactly("y"), constraints=(apart,)))
    assert found == [[("x", "a"), ("y", "b")]]


def test_the_first_alternative_that_leads_to_a_solution_is_taken():
    request = first_of("r", 3, 2, 1)
    assert search([offer(*plain("a", "b"))], claim(request)) == [[("r/s2", "a"), ("r/s2", "b")]]
    assert search([offer(*plain("a", "b"))], claim(request, exactly("x"))) == [[("r/s1", "a"), ("x", "b")]]


def test_all_devices_means_all_and_at_least_one():
    assert search([offer(*plain("a", "b"))], claim(exactly(mode="All"))) == [[("r", "a"), ("r", "b")]]
    assert search([], claim(exactly(mode="All"))) is None
    taken = Taken(devices={("d", "p", "a"): 1})
    assert search([offer(*plain("a", "b"))], claim(exactly(mode="All")), taken=taken) is None


def test_partitions_share_what_the_card_has():
    def part(name, memory):
        takes = DeviceCounterConsumption(counter_set="card", counters={"memory": Counter(value=memory)})
        return Device(name=name, consumes_counters=(takes,))

    card = offer(
        name="counters", count=2, counters=(CounterSet(name="card", counters={"memory": Counter(value="40Gi")}),)
    )
    parts = offer(part("whole", "40Gi"), part("half", "20Gi"), part("other-half", "20Gi"), name="parts", count=2)
    assert search([card, parts], claim(exactly(count=2))) == [[("r", "half"), ("r", "other-half")]]
    taken = Taken(devices={("d", "p", "half"): 1})
    assert search([card, parts], claim(exactly()), taken=taken) == [[("r", "other-half")]]


def test_a_device_is_shared_until_its_capacity_is_used_up():
    shared = Device(name="a", allow_multiple_allocations=True, capacity={"memory": DeviceCapacity(value="40Gi")})

    def wants(amount):
        return exactly(capacity=CapacityRequirements(requests={"memory": amount}))

    both = search([offer(shared)], claim(wants("20Gi")), claim(wants("20Gi"), name="c2"))
    assert both == [[("r", "a")], [("r", "a")]]
    assert search([offer(shared)], claim(wants("20Gi")), claim(wants("21Gi"), name="c2")) is None


def test_taints_keep_requests_away_that_do_not_tolerate_them():
    tainted = Device(name="a", taints=(DeviceTaint(key="k", value="v", effect="NoSchedule"),))
    assert search([offer(tainted)], claim(exactly())) is None
    tolerant = exactly(tolerations=(DeviceToleration(key="k", operator="Exists"),))
    assert search([offer(tainted)], claim(tolerant)) == [[("r", "a")]]


def test_a_pool_that_is_being_replaced_or_incomplete_is_not_used():
    assert search([offer(*plain("a"), count=2)], claim(exactly())) is None
    newer = offer(*plain("b"), name="new", generation=2)
    assert search([offer(*plain("a")), newer], claim(exactly())) == [[("r", "b")]]


def test_an_invalid_pool_is_named_when_nothing_else_helps():
    broken = offer(*plain("a", "a"), pool="q")
    with pytest.raises(NodeUnsuitable, match="invalid resource pools"):
        search([broken], claim(exactly()))
    assert search([broken, offer(*plain("b"))], claim(exactly())) == [[("r", "b")]]


def test_claims_that_no_status_could_hold_are_errors():
    with pytest.raises(AllocationError, match="exceeds the claim limit of 32"):
        search([offer(*plain("a"))], claim(exactly(count=33)))


@pytest.mark.parametrize("seed", range(10))
def test_a_solution_is_found_exactly_when_there_is_one(seed):
    dice = random.Random(seed)
    for _ in range(30):
        values = [dice.randrange(3) for _ in range(dice.randint(1, 5))]
        devices = [
            Device(name=f"d{place}", attributes={"k": DeviceAttribute(int_value=value)})
            for place, value in enumerate(values)
        ]
        counts = [dice.randint(1, 2) for _ in range(dice.randint(1, 3))]
        kind = dice.choice(["match_attribute", "none"])
        constraints = (DeviceConstraint(**{kind: "d/k"}),) if kind != "none" else ()
        requests = [exactly(f"r{place}", count) for place, count in enumerate(counts)]
        found = search([offer(*devices)], claim(*requests, constraints=constraints))
        wanted = sum(counts)
        exists = any(
            not constraints or len({values[place] for place in chosen}) == 1
            for chosen in itertools.combinations(range(len(values)), wanted)
        )
        assert (found is not None) == exists
        if found is not None:
            names = [device for _, device in found[0]]
            assert len(set(names)) == len(names) == wanted
