"""Events reach the server without holding anybody up."""

import asyncio

import pytest

from skysail.api.apps import ReplicaSet
from skysail.api.cluster import Event
from skysail.api.errors import InternalError, SkysailError
from skysail.api.kinds import EVENTS
from skysail.api.meta import ObjectMeta
from skysail.controller import CoreEventRecorder, NoRecorder, Reference, SeriesEventRecorder, reference_to

WEB = ReplicaSet(metadata=ObjectMeta(name="web", namespace="default", uid="u-web", resource_version="7"))


async def recording(cluster, make=CoreEventRecorder):
    made = []

    async def main(client):
        recorder = make(client, "rs-controller", clock=cluster.clock, rng=cluster.rng, host="h1")
        made.append(recorder)
        await recorder.run()

    component = await cluster.run("recorder", main)
    await cluster.advance(0)
    return made[0], component.faults


async def test_an_event_is_created_then_counted(cluster):
    recorder, _ = await recording(cluster)
    recorder.event(WEB, "Normal", "Made", "a pod", annotations={"a": "b"})
    await cluster.advance(3)
    recorder.event(WEB, "Normal", "Made", "a pod")
    await cluster.advance(3)
    (event,) = await cluster.list(Event)
    assert (event.count, event.reason, event.message) == (2, "Made", "a pod")
    assert event.metadata.annotations == {"a": "b"}
    assert event.involved_object.kind == "ReplicaSet"
    assert event.source.component == event.reporting_component == "rs-controller"
    assert (event.last_timestamp - event.first_timestamp).total_seconds() == 3


async def test_an_event_that_was_deleted_meanwhile_is_written_anew(cluster):
    recorder, _ = await recording(cluster)
    recorder.event(WEB, "Normal", "Made", "a pod")
    await cluster.advance(1)
    (event,) = await cluster.list(Event)
    await cluster.client.delete(EVENTS, event.name, "default")
    recorder.event(WEB, "Normal", "Made", "a pod")
    await cluster.advance(1)
    (event,) = await cluster.list(Event)
    assert event.count == 2


async def test_an_unreachable_server_is_tried_again_and_the_caller_never_waits(cluster):
    recorder, faults = await recording(cluster)
    faults.lose_requests(resource="events", times=5)
    for number in range(3):
        recorder.event(WEB, "Normal", "Made", f"pod {number}")
    assert recorder.pending == 3
    await cluster.advance(200)
    assert len(await cluster.list(Event)) == 3
    await recorder.wait_written()


async def test_after_twelve_tries_an_event_is_given_up(cluster, caplog):
    recorder, faults = await recording(cluster)
    rule = faults.lose_requests(resource="events", times=-1)
    recorder.event(WEB, "Normal", "Made", "lost")
    await cluster.advance(600)
    faults.take_back(rule)
    recorder.event(WEB, "Normal", "Made", "kept")
    await cluster.advance(1)
    assert [event.message for event in await cluster.list(Event)] == ["kept"]
    assert "retry limit exceeded" in caplog.text


async def test_an_event_the_server_refuses_is_dropped(cluster):
    recorder, faults = await recording(cluster)
    faults.fail(InternalError, resource="events", times=20)
    recorder.event(WEB, "Normal", "Made", "refused")
    await cluster.advance(120)
    faults.clear()
    recorder.event(WEB, "Normal", "Made", "fine")
    await cluster.advance(1)
    assert [event.message for event in await cluster.list(Event)] == ["fine"]


@pytest.mark.parametrize("make", [CoreEventRecorder, SeriesEventRecorder])
async def test_a_full_queue_drops_and_counts(cluster, make):
    recorder, faults = await recording(cluster, make)
    faults.lose_requests(resource="events", times=-1)
    for number in range(recorder.max_queued + 100):
        about = Reference("v1", "Pod", "default", f"p{number}", f"u{number}", "")
        recorder.event(about, "Normal", "Made", "a pod")
    assert recorder.dropped == 100


async def test_the_scheduler_writes_several_events_at_a_time_and_a_slow_one_holds_up_no_other(cluster):
    recorder, faults = await recording(cluster, SeriesEventRecorder)
    faults.delay(1.0, resource="events")
    for number in range(40):
        about = Reference("v1", "Pod", "default", f"p{number}", f"u{number}", "")
        recorder.event(about, "Normal", "Scheduled", "a node", action="Binding")
    await cluster.advance(11)
    assert recorder.pending == 0
    assert len(await cluster.list(Event)) == 40


async def test_events_about_cluster_scoped_objects_go_to_the_default_namespace(cluster):
    recorder, _ = await recording(cluster)
    recorder.event(Reference("v1", "Node", "", "n1", "u", ""), "Warning", "Sick", "node is sick")
    await cluster.advance(1)
    assert [event.namespace for event in await cluster.list(Event)] == ["default"]


async def test_a_name_that_makes_no_event_name_is_replaced_by_a_uuid(cluster):
    recorder, _ = await recording(cluster)
    recorder.event(Reference("v1", "Thing", "default", "Not:A_Name", "u", ""), "Normal", "Made", "x")
    await cluster.advance(1)
    (event,) = await cluster.list(Event)
    assert len(event.name) == 36


async def test_the_scheduler_writes_a_series(cluster):
    recorder, _ = await recording(cluster, SeriesEventRecorder)
    node = Reference("v1", "Node", "", "n1", "u-n1", "")
    for _ in range(5):
        recorder.event(WEB, "Warning", "Failed", "no fit", action="Scheduling", related=node)
        await cluster.advance(10)
    (event,) = await cluster.list(Event)
    assert event.series.count == 2
    assert (event.action, event.reporting_component) == ("Scheduling", "rs-controller")
    assert event.related.name == "n1"
    await cluster.advance(1800)
    (event,) = await cluster.list(Event)
    assert event.series.count == 5


def test_a_type_or_an_object_that_cannot_be_reported_is_refused():
    with pytest.raises(SkysailError, match="without a kind"):
        reference_to({"metadata": {"name": "x"}})
    with pytest.raises(SkysailError, match="without a kind"):
        reference_to("nonsense")


async def test_an_unknown_type_is_refused_at_once(cluster):
    recorder, _ = await recording(cluster)
    with pytest.raises(SkysailError, match="unsupported event type 'Error'"):
        recorder.event(WEB, "Error", "X", "y")


def test_dictionaries_and_structs_with_or_without_kind_can_be_reported():
    raw = {"apiVersion": "e.io/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "x", "uid": "u"}}
    assert reference_to(raw) == Reference("e.io/v1", "Widget", "x", "w", "u", "")
    assert reference_to(WEB) == Reference("apps/v1", "ReplicaSet", "default", "web", "u-web", "7")
    named = ReplicaSet(api_version="apps/v9", kind="Other", metadata=WEB.metadata)
    assert reference_to(named).kind == "Other"


async def test_nothing_is_recorded_by_the_recorder_of_dry_runs(cluster):
    NoRecorder().event(WEB, "Normal", "Made", "nothing")
    await asyncio.sleep(1)
    assert await cluster.list(Event) == []
