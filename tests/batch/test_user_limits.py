"""Limits of users and groups within a queue, queues that choose namespaces, and how many jobs may run."""

import random

import pytest

from skysail.api.labels import NOTHING, Selector
from skysail.api.meta import LabelSelector
from skysail.batch.copying import copy_world
from skysail.batch.foreign.pods import read_any_membership
from skysail.batch.kinds.queue import Queue, QueueLimit, QueueSpec
from skysail.batch.kinds.reading import Notes, read_queue
from skysail.batch.model.specs import UserLimit
from skysail.testing.builders import make_pod
from tests.batch.lab import ANY, GPU, SEEDS, Lab, figures

USER = "scheduling.skysail.io/user"
GROUPS = "scheduling.skysail.io/user-groups"


def lab_with(*limits, **queue):
    lab = Lab()
    lab.nodes(4, gpus=8)
    lab.queue("team", limits=limits, **queue)
    return lab


def submit(lab, name, user, gpus=1, size=1, groups=""):
    return lab.gang(name, size, queue="team", gpus=gpus, labels={USER: user}, annotations={GROUPS: groups})


def test_a_user_uses_no_more_than_their_limit_and_others_are_not_held_up():
    lab = lab_with(UserLimit("ann", amounts={GPU: 4}))
    submit(lab, "one", "ann", size=3)
    submit(lab, "two", "ann", size=2)
    submit(lab, "bob", "bob", size=8)
    lab.cycle()
    assert [lab.count(name) for name in ("one", "two", "bob")] == [3, 0, 8]
    assert lab.code("two") == "QuotaExceeded"
    assert lab.numbers("two") == {"queue": "team (user ann)", "resource": GPU, "ask": 2, "used": 3, "limit": 4}
    lab.delete("one-0")
    lab.cycle(2)
    assert lab.count("two") == 2


def test_what_exceeds_a_users_limit_by_itself_is_said_never_to_fit():
    lab = lab_with(UserLimit("ann", amounts={GPU: 4}))
    submit(lab, "big", "ann", size=5)
    lab.cycle()
    assert lab.code("big") == "ExceedsMax"


def test_a_star_is_everybody_without_a_limit_of_their_own_each_by_themselves():
    lab = lab_with(UserLimit("ann", amounts={GPU: 4}), UserLimit("*", amounts={GPU: 2}))
    for user in ("ann", "bob", "eve"):
        for number in range(6):
            submit(lab, f"{user}{number}", user)
    lab.cycle()
    assert [sum(lab.count(f"{user}{n}") for n in range(6)) for user in ("ann", "bob", "eve")] == [4, 2, 2]


def test_a_groups_users_share_its_limit():
    lab = lab_with(UserLimit(group="ml", amounts={GPU: 5}))
    for user in ("ann", "bob"):
        for number in range(4):
            submit(lab, f"{user}{number}", user, groups="staff, ml")
    lab.cycle()
    assert sum(lab.count(f"{user}{n}") for user in ("ann", "bob") for n in range(4)) == 5


def test_a_limit_of_a_queue_above_holds_below():
    lab = lab_with()
    lab.queue("org", limits=(UserLimit("ann", amounts={GPU: 2}),))
    lab.queue("team", parent="org")
    submit(lab, "job", "ann", size=3)
    lab.cycle()
    assert lab.code("job") == "ExceedsMax"


def test_nobody_is_evicted_for_a_user_at_their_limit():
    lab = lab_with(UserLimit("ann", amounts={GPU: 4}))
    lab.queue("other", figures=figures(deserved=0))
    submit(lab, "mine", "ann", size=4)
    lab.cycle()
    lab.gang("rest", 28, queue="other", gpus=1)
    lab.cycle()
    submit(lab, "more", "ann", size=2)
    lab.cycle(3)
    assert lab.evicted == []
    assert lab.code("more") == "QuotaExceeded"


@pytest.mark.parametrize("seed", SEEDS)
def test_no_user_ever_uses_more_whatever_happens(seed):
    rng = random.Random(seed)
    limits = {user: rng.randint(1, 6) for user in "abc"}
    lab = lab_with(*(UserLimit(user, amounts={GPU: limit}) for user, limit in limits.items()))
    lab.leaves_at_once, lab.recreate = False, True
    for number in range(25):
        user, size = rng.choice("abc"), rng.randint(1, 4)
        submit(lab, f"j{number}", user, gpus=rng.choice([1, 2]), size=size)
        if rng.random() < 0.4 and lab.world.tasks:
            lab.world.remove_pod(rng.choice(sorted(lab.world.tasks)))
        if rng.random() < 0.2:
            lab.queue("team", limits=tuple(UserLimit(user, amounts={GPU: limit}) for user, limit in limits.items()),
                      weight=rng.randint(1, 9))  # fmt: skip
        lab.cycle()
        for user, limit in limits.items():
            assert lab.world.ledger.occupied(f"team (user {user})", (ANY, GPU)) <= limit
    assert copy_world(lab.world).ledger == lab.world.ledger


@pytest.mark.parametrize("limit", [{"max_jobs": 2}, {"limits": (UserLimit("*", max_jobs=2),)}])
def test_no_more_jobs_start_in_one_cycle_than_may_run(limit):
    lab = Lab()
    lab.nodes(4, gpus=8)
    lab.queue("team", **limit)
    for number in range(5):
        submit(lab, f"j{number}", "ann")
    lab.cycle(3)
    assert [lab.count(f"j{number}") for number in range(5)] == [1, 1, 0, 0, 0]
    assert {lab.code(f"j{number}") for number in range(2, 5)} == {"QuotaExceeded"}
    lab.finish("j0-0")
    lab.cycle(2)
    assert [lab.count(f"j{number}") for number in range(1, 5)] == [1, 1, 0, 0]


def test_a_queue_takes_jobs_of_the_namespaces_it_chooses_only():
    lab = Lab()
    lab.nodes(1, gpus=8)
    lab.queue("team", namespaces=Selector.parse("team=ml"))
    lab.gang("job", 1, queue="team")
    lab.cycle()
    assert (lab.code("job"), lab.numbers("job")) == ("QueueClosed", {"queue": "team", "namespace": "default"})
    lab.world.set_namespace("default", {"team": "ml"})
    lab.cycle()
    assert lab.count("job") == 1


def test_a_queue_that_chooses_no_namespace_takes_nobodys_jobs():
    lab = Lab()
    lab.nodes(1)
    lab.queue("team", namespaces=NOTHING)
    lab.pod("job", queue="team")
    lab.cycle()
    assert lab.code("job") == "QueueClosed"


def test_limits_and_namespaces_are_read_from_the_object():
    notes = Notes("Queue team")
    spec = QueueSpec(
        limits=(QueueLimit(user="ann", resource={"cpu": "2"}, max_jobs=3), QueueLimit(user="x", group="y")),
        namespace_selector=LabelSelector(match_labels={"team": "ml"}),
    )
    read = read_queue(Queue(spec=spec), notes)
    assert read.limits[0] == UserLimit("ann", amounts={"cpu": 2000}, max_jobs=3)
    assert read.namespaces is not None
    assert read.namespaces.matches({"team": "ml"})
    assert [problem.message for problem in notes.problems] == ["limits[1]: names a user or a group, one of the two"]


@pytest.mark.parametrize(
    ("labels", "annotations", "expected"),
    [
        ({USER: "ann"}, {GROUPS: "a,b"}, ("ann", ("a", "b"))),
        ({"yunikorn.apache.org/username": "bob"}, {}, ("bob", ())),
        ({}, {"yunikorn.apache.org/user.info": '{"user":"eve","groups":["x"]}'}, ("eve", ("x",))),
        ({}, {"yunikorn.apache.org/user.info": "nonsense"}, ("", ())),
    ],
)
def test_who_submitted_a_pod_is_read_in_everybodys_words(labels, annotations, expected):
    found = read_any_membership(make_pod("p", labels=labels, annotations=annotations))
    assert (found.user, found.user_groups) == expected
