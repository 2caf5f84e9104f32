"""Complaints about state that is not true: phantom use, wrong nodes, stale caches, charges of the dead, crashes."""

import random
from itertools import count

import msgspec
import pytest

from skysail.batch import audit
from skysail.batch.copying import copy_world
from skysail.batch.cycle import run_once
from skysail.batch.ledger import Column
from skysail.batch.model.job import TaskState
from skysail.batch.operations import Allocate, Evict, Operation
from tests.batch.lab import ANY, GPU, SEEDS, START, Figures, Lab, figures


class Fault(RuntimeError):
    """Injected."""


def two_teams():
    """A world in which one cycle allocates, reclaims, preempts and backfills."""
    lab = Lab()
    lab.nodes(3, gpus=4)
    lab.queue("a", figures=figures(deserved=6))
    lab.queue("b", figures=figures(deserved=3))
    lab.queue("spot", type="Spot")
    for number in range(2):
        lab.gang(f"low{number}", 4, queue="b", gpus=1)
    lab.cycle()
    for number in range(2):
        lab.pod(f"spot-{number}", queue="spot", gpus=1)
    lab.cycle()
    lab.gang("new", 1, queue="a", gpus=2)
    lab.gang("large", 4, queue="a", gpus=1)
    lab.gang("urgent", 2, queue="b", gpus=1, priority=10)
    lab.pod("spot-late", queue="spot", cpu="1")
    return lab


def decisions(session):
    return session.digest


@pytest.mark.parametrize("method", ["apply", "undo", "commit"])
@pytest.mark.parametrize("kind", [Allocate, Evict])
def test_c06_a_fault_at_any_operation_leaves_nothing_behind(monkeypatch, method, kind):
    clean = decisions(run_once(copy_world(two_teams().world), two_teams().configuration))
    original = getattr(kind, method)
    for index in count():
        lab = two_teams()
        calls = count()

        def faulty(self, *arguments, calls=calls, index=index):
            if next(calls) == index:
                if method == "undo":
                    original(self, *arguments)
                raise Fault
            return original(self, *arguments)

        monkeypatch.setattr(kind, method, faulty)
        session = run_once(lab.world, lab.configuration)
        monkeypatch.setattr(kind, method, original)
        assert lab.world.problems() == []
        if not session.faults:
            assert decisions(session) == clean
            break
        assert index < 200
        lab.play(session.effects)
        lab.world.now += 2.0
        fresh = copy_world(lab.world)
        assert decisions(run_once(fresh, lab.configuration)) == decisions(run_once(lab.world, lab.configuration))


def test_c08_a_node_taken_by_another_scheduler_is_replaced_and_not_retried():
    lab = Lab()
    lab.nodes(2, gpus=8)
    lab.pod("job", gpus=8)
    session = run_once(lab.world, lab.configuration)
    (batch,) = session.effects.binds
    (task,) = batch.tasks
    lab.run(lab.pod("foreign", scheduler="default-scheduler", gpus=8), task.node)
    assert not lab.world.may_still_bind(task)
    taken = task.node
    lab.world.bind_failed(task, "the node was taken")
    lab.cycle()
    assert lab.count("job") == 1
    assert lab.node_of("job") != taken


def test_c08_a_refused_bind_is_tried_on_that_node_again_only_when_the_node_changed():
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.pod("job", gpus=8)
    for _ in range(5):
        for batch in run_once(lab.world, lab.configuration).effects.binds:
            for task in batch.tasks:
                lab.world.bind_failed(task, "OutOfcpu")
        lab.world.now += 1
    assert lab.job("job").attempts == 2
    assert lab.code("job") == "NoNode"
    lab.nodes(1, gpus=8, labels={"changed": "yes"})
    lab.cycle()
    assert lab.count("job") == 1


def test_c08_a_refused_bind_is_tried_once_more_on_a_node_that_does_not_change():
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.pod("job", gpus=8)
    tries = []
    for second in range(400):
        for batch in run_once(lab.world, lab.configuration).effects.binds:
            tries.append(second)
            for task in batch.tasks:
                lab.world.bind_failed(task, "refused")
        lab.world.now += 1
    assert tries == [0, 10]
    lab.nodes(1, gpus=8, labels={"changed": "yes"})
    lab.cycle()
    assert lab.count("job") == 1


def test_c08_a_gang_refused_by_every_node_once_runs_in_the_end():
    lab = Lab()
    lab.nodes(4, gpus=8)
    lab.gang("gang", 4, gpus=8)
    for batch in run_once(lab.world, lab.configuration).effects.binds:
        for task in batch.tasks:
            lab.world.bind_failed(task, "refused")
    lab.cycle(70)
    assert lab.count("gang") == 4


def test_c08_a_failing_server_is_no_fault_of_the_node():
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.pod("job", gpus=8)
    for batch in run_once(lab.world, lab.configuration).effects.binds:
        for task in batch.tasks:
            lab.world.bind_failed(task, "no answer", blames_node=False)
    lab.cycle()
    assert lab.count("job") == 1


def test_c08_room_of_a_leaving_pod_is_free_only_when_it_is_gone():
    lab = Lab()
    lab.leaves_at_once = False
    lab.nodes(1, gpus=8)
    lab.pod("low", gpus=8)
    lab.cycle()
    lab.pod("high", gpus=8, priority=10)
    lab.cycle(30)
    assert lab.code("high") == "WaitingVictims"
    assert [name for name, _ in lab.bound] == ["low"]
    lab.finish_leaving()
    lab.cycle()
    assert lab.count("high") == 1


def test_c08_a_job_whose_bindings_keep_failing_rests_ever_longer():
    lab = Lab()
    lab.nodes(20, gpus=8)
    lab.pod("job", gpus=8)
    tries = []
    for second in range(100):
        for batch in run_once(lab.world, lab.configuration).effects.binds:
            tries.append(second)
            for task in batch.tasks:
                lab.world.bind_failed(task, "forbidden")
        lab.world.now += 1
    assert tries == [0, 1, 2, 3, 5, 9, 17, 33, 65]
    assert lab.code("job") == "BindFailed"


def test_c07_a_victim_whose_eviction_was_refused_is_left_alone_for_a_while():
    lab = Lab()
    lab.nodes(2, gpus=1)
    for number in range(2):
        lab.pod(f"low-{number}", gpus=1)
    lab.cycle()
    lab.pod("high", gpus=1, priority=10)
    asked = []
    for _ in range(40):
        for eviction in run_once(lab.world, lab.configuration).effects.evictions:
            asked.append((eviction.task.pod.name, int(lab.world.now - START)))
            lab.world.eviction_failed(eviction.task)
        lab.world.now += 1
    assert [name for name, _ in asked] == ["low-1", "low-0", "low-1", "low-0"]
    assert asked[2][1] - asked[0][1] >= 30


def versioned(each, version):
    return msgspec.structs.replace(each, metadata=msgspec.structs.replace(each.metadata, resource_version=version))


@pytest.mark.parametrize("corruption", ["lost delete", "lost node", "lost update", "doubled add"])
def test_c09_a_picture_that_is_not_true_is_found_and_set_right(corruption):
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.gang("old", 1, gpus=8)
    lab.cycle()
    lab.gang("new", 1, gpus=8)
    lab.cycle()
    truth = [versioned(task.pod, "1") for task in lab.world.tasks.values()]
    nodes = [versioned(node, "1") for node in lab.world.nodes()]
    audit.repair(lab.world, nodes, truth)
    assert audit.differences(lab.world, nodes, truth) == []
    if corruption == "lost delete":
        truth = [pod for pod in truth if pod.name != "old-0"]
    elif corruption == "lost node":
        extra = Lab()
        extra.nodes(1, prefix="more", gpus=8)
        nodes += [versioned(node, "1") for node in extra.world.nodes()]
    elif corruption == "lost update":
        ended = msgspec.structs.replace(truth[0], status=msgspec.structs.replace(truth[0].status, phase="Failed"))
        truth = [versioned(ended, "2"), *truth[1:]]
    else:
        lab.run(lab.pod("ghost", scheduler="default-scheduler", gpus=8), "n000")
        truth = [pod for pod in truth if pod.name != "old-0"]
    assert audit.differences(lab.world, nodes, truth)
    audit.repair(lab.world, nodes, truth)
    assert audit.differences(lab.world, nodes, truth) == []
    lab.cycle()
    assert lab.count("new") == 1


@pytest.mark.parametrize("guarantee", [None, 4000])
@pytest.mark.parametrize("deserved", [None, 8000])
@pytest.mark.parametrize("capability", [None, 8000])
def test_c13_an_absent_figure_is_neither_zero_nor_infinite_by_accident(guarantee, deserved, capability):
    lab = Lab()
    lab.nodes(1, gpus=8, cpu="16")
    lab.queue("q", figures={(ANY, "cpu"): Figures(guarantee, deserved, capability)})
    lab.queue("other")
    lab.gang("job", 8, 1, queue="q", gpus=1, cpu="2")
    lab.cycle()
    assert lab.count("job") == (8 if capability is None else 4)
    lab.gang("rival", 8, 1, queue="other", gpus=1)
    entitlements = lab.cycle().entitlements
    queue = lab.world.tree["q"]
    assert entitlements.claim(queue, (ANY, "cpu")) is not None
    by_weight = deserved is None
    assert (entitlements.claim(queue, (ANY, GPU)) == 0) is not by_weight


@pytest.mark.parametrize("seed", SEEDS)
def test_c14_no_queue_at_any_level_ever_holds_more_than_its_limit(seed):
    rng = random.Random(seed)
    lab = Lab()
    lab.recreate = True
    lab.leaves_at_once = rng.random() < 0.5
    lab.nodes(6, gpus=8)
    names = []
    for number in range(rng.randint(2, 7)):
        limit = rng.choice([None, 4, 8, 16, 24])
        deserved = rng.choice([None, 0, 4])
        lab.queue(
            f"q{number}", parent=rng.choice(["root", *names]) if names else "root",
            figures=figures(deserved=min(deserved, limit or 4) if deserved else deserved, capability=limit),
        )  # fmt: skip
        names.append(f"q{number}")
    for number in range(30):
        size = rng.randint(1, 5)
        lab.gang(f"j{number}", size, rng.randint(1, size), rng.choice(names), gpus=rng.choice([1, 2]))
        session = run_once(lab.world, lab.configuration)
        check_limits(lab)
        for batch in list(session.effects.binds):
            for task in list(batch.tasks):
                if rng.random() < 0.1:
                    batch.tasks.remove(task)
                    lab.world.bind_failed(task, "refused")
        lab.play(session.effects)
        check_limits(lab)
        if rng.random() < 0.3 and lab.world.tasks:
            lab.world.remove_pod(rng.choice(sorted(lab.world.tasks)))
        lab.finish_leaving()
        lab.world.now += 1
    assert copy_world(lab.world).ledger == lab.world.ledger


def check_limits(lab):
    ledger = lab.world.ledger
    for queue in lab.world.tree.values():
        limit = queue.limit((ANY, GPU))
        assert limit is None or ledger.used(queue.name, (ANY, GPU)) <= limit
    assert lab.world.problems() == []


def test_c14_a_lowered_limit_evicts_nobody_is_reported_and_blocks_what_is_new():
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.queue("q", figures=figures(capability=8))
    lab.gang("job", 6, queue="q", gpus=1)
    lab.cycle()
    lab.queue("q", figures=figures(capability=4))
    lab.gang("more", 1, queue="q", gpus=1)
    lab.cycle(3)
    assert (lab.count("job"), lab.code("more")) == (6, "QuotaExceeded")
    assert lab.world.ledger.over_limits(lab.world.tree.values())["q"].used == 6


@pytest.mark.parametrize("phase", ["before bind", "binding", "bound", "evicting", "claimed", "ended"])
def test_c15_the_dead_are_not_charged(phase):
    lab = Lab()
    lab.leaves_at_once = False
    lab.nodes(1, gpus=8)
    lab.queue("q", figures=figures(capability=8))
    lab.gang("job", 4, queue="q", gpus=2, priority=0)
    if phase == "binding":
        run_once(lab.world, lab.configuration)
    elif phase != "before bind":
        lab.cycle()
    if phase in ("evicting", "claimed"):
        lab.gang("high", 4, queue="q", gpus=2, priority=5)
        lab.cycle()
    victims = "high" if phase == "claimed" else "job"
    for number in range(4):
        if phase == "ended":
            lab.finish(f"{victims}-{number}")
        else:
            lab.delete(f"{victims}-{number}")
    lab.world.remove_group(f"default/{victims}")
    lab.cycle(2)
    held = lab.world.ledger.vector("q", Column.HELD).amount((ANY, GPU))
    existing = [task for task in lab.world.tasks.values() if task.state is TaskState.BOUND]
    assert held == 2 * len(existing)
    claimed = lab.world.ledger.vector("q", Column.CLAIMED).amount((ANY, GPU))
    assert claimed == 2 * len([task for task in lab.world.tasks.values() if task.state is TaskState.CLAIMED])


@pytest.mark.parametrize("seed", SEEDS)
def test_c20_no_missing_object_stops_the_loop_or_the_others(seed):
    rng = random.Random(seed)
    lab = Lab()
    lab.recreate = True
    lab.nodes(4, gpus=8)
    for name in "abc":
        lab.queue(name, figures=figures(deserved=8), parent="c" if name != "c" else "root")
    for step in range(25):
        lab.gang(f"j{step}", 3, 2, rng.choice("abc"), gpus=1)
        choice = rng.randrange(5)
        if choice == 0:
            lab.world.remove_queue(rng.choice("abc"))
        elif choice == 1:
            lab.world.remove_group(f"default/j{rng.randrange(step + 1)}")
        elif choice == 2:
            lab.world.remove_node(f"n00{rng.randrange(4)}")
        elif choice == 3:
            lab.nodes(4, gpus=8)
        elif lab.world.tasks:
            lab.world.remove_pod(rng.choice(sorted(lab.world.tasks)))
        session = lab.cycle()
        assert session.faults == []
    for name in "abc":
        lab.queue(name, figures=figures(deserved=8), parent="c" if name != "c" else "root")
    lab.nodes(8, gpus=64)
    lab.cycle(3)
    groups = [job for job in lab.world.jobs.values() if job.spec is not None and len(job.tasks) >= 2]
    assert groups
    assert all(job.counts().total >= 2 for job in groups)


def test_c20_a_node_that_helps_nobody_writes_next_to_nothing():
    lab = Lab()
    lab.nodes(1)
    for number in range(800):
        lab.pod(f"p{number}", cpu="100")
    lab.cycle()
    lab.nodes(1, prefix="more", cpu="1")
    writes = len(lab.cycle().outcomes)
    writes += sum(len(lab.cycle().outcomes) for _ in range(5))
    assert writes <= 8


def test_c20_a_fault_in_one_job_costs_only_that_job(monkeypatch):
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.gang("bad", 1, gpus=1)
    lab.gang("good", 1, gpus=1)
    original = Operation.apply
    apply = Allocate.apply

    def faulty(self, scope):
        if self.job.spec.name == "bad":
            raise Fault("broken")
        return apply(self, scope)

    monkeypatch.setattr(Allocate, "apply", faulty)
    session = lab.cycle()
    assert (lab.count("good"), lab.code("bad")) == (1, "InternalError")
    assert len(session.faults) == 1
    monkeypatch.setattr(Allocate, "apply", apply)
    lab.cycle(3)
    assert lab.count("bad") == 1
    assert original
    assert START
