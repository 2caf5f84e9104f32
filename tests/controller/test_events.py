"""Which Events are written: counted, combined, filtered; and series."""

from datetime import UTC, datetime, timedelta

from skysail.controller.events import CoreEvent, EventCorrelator, Reference
from skysail.controller.series import SeriesCache, SeriesEvent
from tests.workqueue.clocks import ManualClock

START = datetime(2026, 1, 1, tzinfo=UTC)
WEB = Reference("apps/v1", "ReplicaSet", "default", "web", "u-web", "7")


def event(message="Created pod", *, reason="SuccessfulCreate", about=WEB, type="Normal", number=0, component="rs"):
    seen = START + timedelta(seconds=number)
    return CoreEvent(
        name=f"web.{number}", namespace="default", regarding=about, type=type, reason=reason, message=message,
        component=component, host="", first_seen=seen, last_seen=seen,
    )  # fmt: skip


def test_the_same_event_again_is_counted_on_the_first_one():
    correlator = EventCorrelator(ManualClock())
    first = correlator.correlate(event(number=0))
    again = correlator.correlate(event(number=5))
    assert not first.again
    assert again.again
    assert (again.event.name, again.event.count) == ("web.0", 2)
    assert again.event.first_seen == START
    assert again.event.as_patch() == {
        "count": 2, "lastTimestamp": "2026-01-01T00:00:05Z", "message": "Created pod",
    }  # fmt: skip


def test_events_that_differ_in_anything_are_written_side_by_side():
    correlator = EventCorrelator(ManualClock())
    other = WEB._replace(name="db", uid="u-db")
    for each in (event(), event("other"), event(reason="X"), event(type="Warning"), event(about=other)):
        assert not correlator.correlate(each).again


def test_from_the_tenth_different_message_on_events_are_combined():
    correlator = EventCorrelator(ManualClock())
    written = [correlator.correlate(event(f"Created pod: web-{n}", number=n)) for n in range(12)]
    assert [each.event.message for each in written[:9]] == [f"Created pod: web-{n}" for n in range(9)]
    assert [each.event.message for each in written[9:]] == [
        f"(combined from similar events): Created pod: web-{n}" for n in range(9, 12)
    ]
    assert [each.event.count for each in written[9:]] == [1, 2, 3]
    assert [each.again for each in written[9:]] == [False, True, True]


def test_ten_quiet_minutes_end_the_combining():
    clock = ManualClock()
    correlator = EventCorrelator(clock)
    for n in range(12):
        correlator.correlate(event(f"m{n}", number=n))
    clock.advance(601)
    assert correlator.correlate(event("m99", number=99)).event.message == "m99"


def test_a_flood_about_one_object_is_cut_at_25_and_then_one_every_five_minutes():
    clock = ManualClock()
    correlator = EventCorrelator(clock)
    passed = sum(correlator.correlate(event(number=n)) is not None for n in range(100))
    assert passed == 25
    clock.advance(299)
    assert correlator.correlate(event()) is None
    clock.advance(2)
    assert correlator.correlate(event()) is not None
    assert correlator.correlate(event()) is None


def test_a_flood_does_not_silence_warnings_or_other_objects():
    correlator = EventCorrelator(ManualClock())
    for n in range(100):
        correlator.correlate(event(number=n))
    assert correlator.correlate(event(type="Warning")) is not None
    assert correlator.correlate(event(about=WEB._replace(uid="u-2"))) is not None
    assert correlator.correlate(event(component="other")) is not None


def test_a_core_event_is_written_as_client_go_writes_it():
    assert event().as_raw() == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "web.0", "namespace": "default"},
        "involvedObject": {
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "namespace": "default", "name": "web", "uid": "u-web",
            "resourceVersion": "7",
        },
        "reason": "SuccessfulCreate",
        "message": "Created pod",
        "source": {"component": "rs"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 1,
        "type": "Normal",
        "reportingComponent": "rs",
        "reportingInstance": "",
    }  # fmt: skip


def series_event(number=0, note="no fit"):
    return SeriesEvent(
        name=f"web.{number}", namespace="default", regarding=WEB, related=None, type="Warning", reason="Failed",
        action="Scheduling", note=note, controller="default-scheduler", instance="default-scheduler-h", seen=START,
    )  # fmt: skip


def test_the_second_event_of_a_kind_starts_a_series_and_further_ones_are_not_written():
    cache = SeriesCache()
    assert cache.observe(series_event(0), START) == series_event(0)
    second = cache.observe(series_event(1, "another note"), START + timedelta(seconds=9))
    assert (second.name, second.note, second.count) == ("web.0", "no fit", 2)
    assert second.as_patch() == {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:09.000000Z"}}
    assert cache.observe(series_event(2), START + timedelta(seconds=20)) is None
    assert [each.count for each in cache.to_refresh()] == [3]


def test_single_events_are_forgotten_and_series_written_a_last_time_after_six_quiet_minutes():
    cache = SeriesCache()
    cache.observe(series_event(0), START)
    assert cache.finish(START + timedelta(seconds=361)) == ()
    assert len(cache) == 0
    cache.observe(series_event(0), START)
    cache.observe(series_event(0), START + timedelta(seconds=300))
    assert cache.finish(START + timedelta(seconds=361)) == ()
    (last,) = cache.finish(START + timedelta(seconds=700))
    assert last.count == 2
    assert len(cache) == 0


def test_a_series_event_is_written_as_client_go_writes_it():
    related = Reference("v1", "Node", "", "n1", "u-n1", "")
    raw = SeriesEvent(**{**_fields(series_event()), "related": related}).as_raw()
    assert raw == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "web.0", "namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-h",
        "action": "Scheduling",
        "reason": "Failed",
        "regarding": WEB.as_raw(),
        "related": {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u-n1"},
        "note": "no fit",
        "type": "Warning",
    }


def _fields(event):
    return {name: getattr(event, name) for name in event.__slots__}
