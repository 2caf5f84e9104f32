"""What pods say in other systems' words."""

import json
import re
from pathlib import Path

import pytest

from skysail.batch.foreign.pods import WITHOUT_EFFECT, MembershipReader, read_any_membership
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


@pytest.mark.parametrize(
    ("word", "text", "seconds"),
    [
        ("volcano.sh/cooldown-time", "10m", 600.0),
        ("godel.bytedance.com/protection-duration-from-preemption", "90", 90.0),
        ("scheduling.skysail.io/protected-for", "1h", 3600.0),
        ("volcano.sh/cooldown-time", "soon", 0.0),
    ],
)
def test_every_systems_word_for_how_long_a_pod_is_left_alone(word, text, seconds):
    assert read_any_membership(pod({word: text})).protected_seconds == seconds


def test_volcanos_word_for_how_long_a_pod_should_wait():
    assert read_any_membership(pod({"volcano.sh/sla-waiting-time": "1h30m"})).sla_waiting_seconds == 5400.0


@pytest.mark.parametrize(
    ("strategies", "wish"),
    [
        ([("spineLayer", "PreferGather"), ("blockLayer", "MustGather")], (True, False, "blockLayer")),
        ([("spineLayer", "PreferGather")], (False, True, "spineLayer")),
        ([], (False, False, "")),
    ],
)
def test_koordinators_wish_for_topology_and_its_time_to_wait(strategies, wish):
    gang = "gang.scheduling.koordinator.sh/"
    layers = [{"layer": layer, "strategy": strategy} for layer, strategy in strategies]
    text = json.dumps({"gatherStrategy": layers})
    found = read_any_membership(
        pod({f"{gang}name": "a", f"{gang}network-topology-spec": text, f"{gang}waiting-time": "30s"})
    )
    assert (found.zone.required, found.zone.preferred, found.zone.level) == wish
    assert found.schedule_timeout_seconds == 30.0


WORDS = re.findall(
    r"\S+",
    """
scheduling.k8s.io/group-name scheduling.volcano.sh/group-name scheduling.volcano.sh/queue-name
scheduling.volcano.sh/group-min-member volcano.sh/task-spec volcano.sh/preemptable volcano.sh/cooldown-time
volcano.sh/sla-waiting-time volcano.sh/network-topology-mode volcano.sh/network-topology-highest-tier
scheduling.x-k8s.io/pod-group kueue.x-k8s.io/queue-name kueue.x-k8s.io/priority-class kueue.x-k8s.io/pod-group-name
kueue.x-k8s.io/podset-required-topology kueue.x-k8s.io/podset-preferred-topology
kueue.x-k8s.io/podset-unconstrained-topology kueue.x-k8s.io/podset-slice-required-topology
kueue.x-k8s.io/podset-slice-size kueue.x-k8s.io/podset-group-name gang.scheduling.koordinator.sh/name
gang.scheduling.koordinator.sh/min-available gang.scheduling.koordinator.sh/mode gang.scheduling.koordinator.sh/groups
gang.scheduling.koordinator.sh/match-policy gang.scheduling.koordinator.sh/waiting-time
gang.scheduling.koordinator.sh/total-number gang.scheduling.koordinator.sh/network-topology-spec
gang.scheduling.koordinator.sh/network-topology-index quota.scheduling.koordinator.sh/name
quota.scheduling.koordinator.sh/preemptible quota.scheduling.koordinator.sh/tree-id kai.scheduler/queue
kai.scheduler/preemptibility kai.scheduler/topology kai.scheduler/topology-required-placement
kai.scheduler/topology-preferred-placement godel.bytedance.com/pod-group-name godel.bytedance.com/can-be-preempted
godel.bytedance.com/protection-duration-from-preemption
""",
)


@pytest.mark.parametrize("word", WORDS)
def test_every_word_that_is_honoured_is_written_in_the_documents(word):
    text = (Path(__file__).parents[3] / "docs" / "batch.md").read_text()
    assert f"`{word}`" in text


def test_a_word_that_changes_nothing_says_why():
    assert {word for word in WITHOUT_EFFECT if len(WITHOUT_EFFECT[word]) < 20} == set()
    assert set(WITHOUT_EFFECT) <= set(WORDS)
