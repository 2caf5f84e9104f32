import asyncio
from datetime import UTC, datetime

import msgspec
import pytest

from skysail.api.core import Pod, PodCondition, PodStatus
from skysail.api.errors import Unreachable
from skysail.api.meta import ObjectMeta
from skysail.scheduler.metrics import SchedulerMetrics
from skysail.scheduler.status_writer import StatusWriter, Verdict, status_patch
from skysail.simulator.clock import run_virtual, settle

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
REFUSED = Verdict("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu.")


def pod(name: str = "web", *conditions: PodCondition, nominated: str = "", generation: int = 1) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", uid=f"uid-{name}", generation=generation),
        status=PodStatus(conditions=conditions, nominated_node_name=nominated),
    )


def test_the_patch_names_only_its_own_condition_and_keeps_the_others_in_place():
    ready = PodCondition(type="Ready", status="False")
    assert status_patch(pod("web", ready), REFUSED, NOW) == {
        "metadata": {"uid": "uid-web"},
        "status": {
            "$setElementOrder/conditions": [{"type": "Ready"}, {"type": "PodScheduled"}],
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": REFUSED.message,
                    "lastProbeTime": None,
                    "lastTransitionTime": "2026-01-02T03:04:05Z",
                    "observedGeneration": 1,
                }
            ],
        },
    }


def test_nothing_is_written_when_the_pod_says_it_already():
    said = PodCondition(
        type="PodScheduled", status="False", reason="Unschedulable", message=REFUSED.message, observed_generation=1
    )
    assert status_patch(pod("web", said), REFUSED, NOW) is None


def test_a_new_message_keeps_the_time_of_the_transition():
    since = datetime(2025, 12, 31, tzinfo=UTC)
    said = PodCondition(type="PodScheduled", status="False", reason="x", message="y", last_transition_time=since)
    patch = status_patch(pod("web", said), REFUSED, NOW)
    assert patch["status"]["conditions"][0]["lastTransitionTime"] == "2025-12-31T00:00:00Z"


def test_a_nomination_is_written_taken_back_or_left_alone():
    assert status_patch(pod(), Verdict(nominated_node="n1"), NOW)["status"] == {"nominatedNodeName": "n1"}
    assert status_patch(pod(nominated="n1"), Verdict(nominated_node=""), NOW)["status"] == {"nominatedNodeName": None}
    assert status_patch(pod(nominated="n1"), Verdict(), NOW) is None
    assert status_patch(pod(nominated="n1"), Verdict(nominated_node="n1"), NOW) is None


class Patches:
    """A client that records, fails, or waits."""

    def __init__(self, fail: int = 0) -> None:
        self.fail, self.written, self.may_go = fail, [], asyncio.Event()
        self.may_go.set()

    async def patch(self, kind, name, namespace, patch, *, patch_type="", subresource=""):
        await self.may_go.wait()
        if self.fail:
            self.fail -= 1
            raise Unreachable("reset")
        self.written.append((name, msgspec.json.encode(patch).decode()))


def write(test):
    async def main(clock):
        await test(clock)

    run_virtual(main)


def test_of_several_verdicts_about_a_pod_the_last_is_written():
    async def body(clock):
        client = Patches()
        writer = StatusWriter(client, clock, SchedulerMetrics())
        writer.submit(pod(), Verdict("Unschedulable", "first"))
        writer.submit(pod(), Verdict("Unschedulable", "second"))
        assert len(writer) == 1
        async with asyncio.TaskGroup() as group:
            task = group.create_task(writer.run())
            await settle()
            task.cancel()
        assert len(client.written) == 1
        assert "second" in client.written[0][1]

    write(body)


def test_no_answer_is_tried_again():
    async def body(clock):
        client = Patches(fail=2)
        writer = StatusWriter(client, clock, SchedulerMetrics())
        writer.submit(pod(), REFUSED)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(writer.run())
            await settle(within=5.0)
            task.cancel()
        assert len(client.written) == 1

    write(body)


def test_beyond_the_bound_the_oldest_is_given_up_and_counted():
    async def body(clock):
        metrics = SchedulerMetrics()
        writer = StatusWriter(Patches(), clock, metrics, max_waiting=2)
        for name in ("a", "b", "c"):
            writer.submit(pod(name), REFUSED)
        assert len(writer) == 2
        assert metrics.counter("dropped_writes_total", "condition") == 1

    write(body)


class SlowFirst(Patches):
    """The first request of a pod arrives last, unless the second waits for it; it may also be lost on the way."""

    def __init__(self, lost: bool) -> None:
        super().__init__()
        self.requests, self.lost = 0, lost

    async def patch(self, kind, name, namespace, patch, *, patch_type="", subresource=""):
        self.requests += 1
        if self.requests == 1:
            await asyncio.sleep(10.0)
            if self.lost:
                raise Unreachable("reset")
        await super().patch(kind, name, namespace, patch)


@pytest.mark.parametrize("lost", [False, True])
def test_the_last_word_about_a_pod_is_written_last(lost):
    async def main(clock):
        client = SlowFirst(lost)
        writer = StatusWriter(client, clock, SchedulerMetrics())
        async with asyncio.TaskGroup() as group:
            task = group.create_task(writer.run())
            for node in ("n1", "n2"):
                writer.submit(pod(), Verdict(nominated_node=node))
                await settle(within=1.0)
            writer.submit(pod("other"), Verdict(nominated_node="n3"))
            await settle(within=1.0)
            assert [name for name, _ in client.written] == ["other"]
            await settle(within=60.0)
            assert '"nominatedNodeName":"n2"' in client.written[-1][1]
            assert len(client.written) == (2 if lost else 3)
            assert len(writer) == 0
            task.cancel()

    run_virtual(main)


def nominations(client: Patches) -> list[str | None]:
    """What was written as nomination, request by request; "-" where a request did not speak of it."""
    return [msgspec.json.decode(body)["status"].get("nominatedNodeName", "-") for _, body in client.written]


@pytest.mark.parametrize("in_flight", [False, True])
def test_a_nomination_is_not_lost_when_the_next_attempt_leaves_it_as_it_is(in_flight):
    async def main(clock):
        client = SlowFirst(lost=True)
        writer = StatusWriter(client, clock, SchedulerMetrics())
        async with asyncio.TaskGroup() as group:
            task = group.create_task(writer.run())
            for verdict in [Verdict("Unschedulable", "first", "n1")] if in_flight else []:
                writer.submit(pod(), verdict)
                await settle(within=1.0)
            writer.submit(pod(), Verdict("Unschedulable", "second", "n2"))
            writer.submit(pod(), Verdict("Unschedulable", "third"))
            await settle(within=60.0)
            assert nominations(client) == ["n2"]
            assert "third" in client.written[-1][1]
            task.cancel()

    run_virtual(main)


def test_a_nomination_that_is_lost_on_the_way_is_written_with_what_there_is_to_say_by_then():
    async def main(clock):
        client = SlowFirst(lost=True)
        writer = StatusWriter(client, clock, SchedulerMetrics())
        async with asyncio.TaskGroup() as group:
            task = group.create_task(writer.run())
            writer.submit(pod(), Verdict("Unschedulable", "first", "n1"))
            await settle(within=1.0)
            writer.submit(pod(), Verdict("Unschedulable", "second"))
            await settle(within=60.0)
            assert nominations(client) == ["n1"]
            assert "second" in client.written[-1][1]
            task.cancel()

    run_virtual(main)


@pytest.mark.parametrize("lost", [False, True])
def test_what_is_said_while_a_write_is_under_way_is_written_also_where_the_pod_seems_to_say_it(lost):
    async def main(clock):
        client = SlowFirst(lost)
        said = PodCondition(
            type="PodScheduled", status="False", reason="Unschedulable", message="old", observed_generation=1
        )
        writer = StatusWriter(client, clock, SchedulerMetrics())
        async with asyncio.TaskGroup() as group:
            task = group.create_task(writer.run())
            writer.submit(pod("web", said), Verdict("Unschedulable", "new", "n1"))
            await settle(within=1.0)
            writer.submit(pod("web", said), Verdict("Unschedulable", "old", ""))
            await settle(within=60.0)
            assert nominations(client) == ([None] if lost else ["n1", None])
            assert '"message":"old"' in client.written[-1][1]
            task.cancel()

    run_virtual(main)


def test_what_is_being_written_is_not_written_twice():
    async def main(clock):
        client = SlowFirst(lost=False)
        writer = StatusWriter(client, clock, SchedulerMetrics())
        async with asyncio.TaskGroup() as group:
            task = group.create_task(writer.run())
            for _ in range(2):
                writer.submit(pod(), Verdict("Unschedulable", "first", "n1"))
                await settle(within=1.0)
            writer.submit(pod(), Verdict("Unschedulable", "first"))
            await settle(within=60.0)
            assert len(client.written) == 1
            task.cancel()

    run_virtual(main)


@pytest.mark.parametrize("lost", [False, True])
def test_nothing_more_is_said_of_a_pod_once_it_is_about_to_be_bound(lost):
    async def main(clock):
        client = SlowFirst(lost)
        writer = StatusWriter(client, clock, SchedulerMetrics())
        async with asyncio.TaskGroup() as group:
            task = group.create_task(writer.run())
            writer.submit(pod(), REFUSED)
            await settle(within=1.0)
            writer.submit(pod(), Verdict("Unschedulable", "another"))
            await writer.end("uid-web")
            done = list(client.written)
            assert [REFUSED.message in text for _, text in done] == ([] if lost else [True])
            await settle(within=60.0)
            assert client.written == done
            assert len(writer) == 0
            task.cancel()

    run_virtual(main)
