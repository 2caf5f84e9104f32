"""What pods say in other systems' words."""

import pytest

from skysail.batch.foreign.pods import MembershipReader, read_any_membership
from skysail.batch.model.specs import ALONE
from skysail.testing.builders import make_pod


def pod(annotations=None, **labels):
    return make_pod("p", uid="u", labels=labels.get("labels", {}), annotations=annotations or {})


@pytest.mark.parametrize(
    "word",
    [
        "scheduling.skysail.io/pod-group",
        "scheduling.k8s.io/group-name",
        "scheduling.volcano.sh/group-name",
        "scheduling.x-k8s.io/pod-group",
        "kueue.x-k8s.io/pod-group-name",
        "pod-group-name",
        "godel.bytedance.com/pod-group-name",
    ],
)
def test_every_systems_word_for_the_gang(word):
    assert read_any_membership(pod({word: "g"})).group == "default/g"
    assert read_any_membership(pod(labels={word: "g"})).group == "default/g"


@pytest.mark.parametrize(
    "word", ["scheduling.volcano.sh/queue-name", "kai.scheduler/queue", "quota.scheduling.koordinator.sh/name"]
)
def test_every_systems_word_for_the_queue(word):
    assert read_any_membership(pod(labels={word: "q"})).queue == "q"


def test_kueues_queue_is_a_line_of_the_namespace():
    found = read_any_membership(pod(labels={"kueue.x-k8s.io/queue-name": "user-queue"}))
    assert (found.job_queue, found.queue) == ("user-queue", "")


def test_our_own_words_come_first():
    found = read_any_membership(
        pod({"scheduling.volcano.sh/group-name": "theirs"}, labels={"scheduling.skysail.io/pod-group": "ours"})
    )
    assert found.group == "default/ours"


@pytest.mark.parametrize(
    ("word", "text", "expected"),
    [
        ("volcano.sh/preemptable", "false", False),
        ("volcano.sh/preemptable", "true", True),
        ("kai.scheduler/preemptibility", "non-preemptible", False),
        ("quota.scheduling.koordinator.sh/preemptible", "false", False),
        ("godel.bytedance.com/can-be-preempted", "true", True),
        ("volcano.sh/preemptable", "perhaps", None),
    ],
)
def test_every_systems_word_for_whether_it_may_be_evicted(word, text, expected):
    assert read_any_membership(pod({word: text})).preemptible is expected


def test_volcanos_task_is_the_role():
    assert read_any_membership(pod({"volcano.sh/task-spec": "worker"})).role == "worker"


def test_koordinators_gang_needs_no_object():
    gang = "gang.scheduling.koordinator.sh/"
    found = read_any_membership(
        pod({
            f"{gang}name": "a", f"{gang}min-available": "2", f"{gang}groups": '["default/a","default/b"]',
            f"{gang}match-policy": "only-waiting",
        })
    )  # fmt: skip
    assert (found.group, found.implicit, found.min_member) == ("default/a", True, 2)
    assert found.bundle == {"default/a", "default/b"}
    assert found.match_policy == "only-waiting"


def test_unreadable_gang_words_make_a_gang_of_one_bundle():
    gang = "gang.scheduling.koordinator.sh/"
    found = read_any_membership(pod({f"{gang}name": "a", f"{gang}min-available": "x", f"{gang}groups": "nonsense"}))
    assert (found.min_member, found.bundle) == (1, {"default/a"})


def test_an_elastic_quota_takes_the_pods_of_its_namespace_that_name_no_queue():
    reader = MembershipReader(namespaces={"default": "default/quota1"})
    assert reader(pod()).queue == "default/quota1"
    assert reader(pod(labels={"kai.scheduler/queue": "q"})).queue == "q"


def test_a_pod_that_says_nothing_stands_alone():
    assert read_any_membership(pod()) is ALONE
