"""Requests that no node could meet, and sums of them that no int64 holds: they concern only their pods and nodes."""

import random

import pytest

from skysail.scheduler.algorithm import diagnose, find_feasible, schedule_pod
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.preemption.budgets import Budgets
from skysail.scheduler.preemption.candidates import find_candidates, potential_rows
from skysail.scheduler.preemption.victims import Search
from skysail.scheduler.scenario import build_framework, build_world, resolve_profiles
from skysail.testing import make_node, make_pod

ABSURD = ("7Ei", "8E", "9223372036854775807", "1e300")
GPU = "example.com/gpu"


def world_of(*pods):
    world = build_world((), {})
    for name in ("n0", "n1"):
        world.cache.add_node(make_node(name, cpu="8", memory="32Gi", capacity={GPU: "8"}))
    for pod in pods:
        world.cache.add_pod(pod)
    world.cache.update_snapshot(world.current)
    return world, build_framework(resolve_profiles(None, world.gates)[0], world)


def pod_of(name, resource, amount, **more):
    amounts = {"cpu": "1", "memory": "1Gi", GPU: "1"} | {resource: amount}
    return make_pod(name, uid=name, requests=amounts, **more)


@pytest.mark.parametrize("amount", ABSURD)
@pytest.mark.parametrize("resource", ["cpu", "memory", GPU])
def test_others_are_scheduled_and_the_node_is_full(resource, amount):
    absurd = [pod_of(f"absurd{number}", resource, amount, node="n0") for number in range(4)]
    world, framework = world_of(*absurd)
    for name, pod in (("plain", pod_of("plain", resource, "1")), ("bare", make_pod("bare", uid="bare"))):
        for incremental in (False, True):
            info = PodInfo(pod)
            found = schedule_pod(framework, world.current, info, random.Random(1), incremental=incremental)
            assert found.status.is_success, (name, found.status)
            assert name == "bare" or found.node_name == "n1"
    for pod in absurd:
        world.cache.remove_pod(pod.uid)
    world.cache.update_snapshot(world.current)
    assert find_feasible(framework, world.current, PodInfo(pod_of("plain", resource, "1"))).feasible == 2


@pytest.mark.parametrize("amount", ABSURD)
@pytest.mark.parametrize("resource", ["cpu", "memory", GPU])
def test_who_asks_for_it_is_refused_in_the_usual_words(resource, amount):
    world, framework = world_of()
    found = schedule_pod(framework, world.current, PodInfo(pod_of("absurd", resource, amount)), random.Random(1))
    assert found.status.message.startswith(f"0/2 nodes are available: 2 Insufficient {resource}.")


@pytest.mark.parametrize("amount", ABSURD)
@pytest.mark.parametrize("resource", ["cpu", "memory", GPU])
def test_nobody_is_evicted_in_vain_beside_them(resource, amount):
    there = [
        pod_of(f"{node}-{priority}", resource, amount if priority in absurd else "4", node=node, priority=priority)
        for node, absurd in (("n0", (8, 9)), ("n1", (1, 2)))
        for priority in (1, 2, 8, 9)
    ]
    world, framework = world_of(*there)
    pod = pod_of("high", resource, "4", priority=5)
    promised = {"n1": [PodInfo(pod_of(f"promised{each}", resource, amount, priority=7)) for each in range(3)]}
    for others in ({}, promised):
        attempt = find_feasible(framework, world.current, PodInfo(pod))
        search = Search(framework, world.current.table, attempt.state, pod, Budgets(()), others)
        rows = potential_rows(search, diagnose(attempt))
        quick, plain = (find_candidates(search, rows, 0, 100, quick=quick) for quick in (True, False))
        assert list(quick.victims.items()) == list(plain.victims.items())
        assert (quick.failures, quick.errors) == (plain.failures, plain.errors)
        assert "n0" not in quick.victims
