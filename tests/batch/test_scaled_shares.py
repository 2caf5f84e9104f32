"""EntitlementScaled is said where shares above the cluster are the reason why a job waits, and nowhere else."""

import pytest

from tests.batch.lab import Lab, figures


def two_queues(nodes=2):
    """Two queues that state 6 GPUs each, on four GPUs a node."""
    lab = Lab()
    lab.nodes(nodes, gpus=4)
    for name in "ab":
        lab.queue(name, figures=figures(deserved=6))
    return lab


def full(lab):
    for number in range(8):
        lab.pod(f"a-{number}", queue="a", gpus=1)
    lab.cycle()
    for number in range(8):
        lab.pod(f"b-{number}", queue="b", gpus=1)
    lab.cycle(10)


def test_a_job_within_what_its_queue_states_waits_because_that_is_scaled():
    lab = two_queues()
    full(lab)
    lab.pod("more", queue="b", gpus=1)
    lab.cycle(3)
    assert lab.code("more") == "EntitlementScaled"


@pytest.mark.parametrize(
    ("size", "spec", "code"),
    [
        (1, {"requests": {"cpu": "1" + "0" * 26}, "gpus": 1}, "NoNode"),
        (1, {"gpus": 5}, "NoNode"),
        (1, {"gpus": 1, "node_selector": {"no": "where"}}, "NoNode"),
        (9, {"gpus": 1}, "NotEnough"),
        (3, {"gpus": 3}, "NotEnough"),
        (2, {"gpus": 5}, "NoNode"),
    ],
)
@pytest.mark.parametrize("is_full", [True, False])
def test_what_the_nodes_never_hold_waits_for_nodes(size, spec, code, is_full):
    lab = two_queues()
    if is_full:
        full(lab)
    gpus, rest = spec["gpus"], {key: value for key, value in spec.items() if key != "gpus"}
    requests = rest.pop("requests", {}) | {"nvidia.com/gpu": str(gpus)}
    lab.gang("big", size, queue="b", requests=requests, **rest)
    lab.cycle(3)
    assert lab.code("big") == code


def test_a_job_above_what_its_queue_states_waits_for_room():
    lab = two_queues()
    full(lab)
    lab.gang("big", 7, queue="b", gpus=1)
    lab.cycle(3)
    assert lab.code("big") == "NotEnough"
