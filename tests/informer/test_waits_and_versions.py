"""The small deciders: backoff, versions, resync schedules, the watchdog."""

import asyncio
import random

import pytest

from skysail.api.errors import Unreachable
from skysail.informer.backoff import Backoff, BackoffSettings
from skysail.informer.resync import ResyncSchedule, effective_period
from skysail.informer.versions import VersionTracker, is_too_large, version_number
from skysail.informer.watchdog import Watchdog
from skysail.simulator.clock import run_virtual


def test_waits_double_from_800_ms_to_30_s():
    backoff = Backoff(BackoffSettings(jitter=0), random.Random(1))
    assert [backoff.next_seconds(0) for _ in range(8)] == pytest.approx([0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30])
    backoff.reset()
    assert backoff.next_seconds(0) == 0.8


def test_jitter_stretches_a_wait_by_up_to_its_length():
    waits = [Backoff(BackoffSettings(), random.Random(seed)).next_seconds(0) for seed in range(200)]
    assert 0.8 <= min(waits) < 0.9
    assert 1.5 < max(waits) < 1.6


def test_two_minutes_without_a_wait_start_over():
    backoff = Backoff(BackoffSettings(jitter=0), random.Random(1))
    backoff.next_seconds(0)
    backoff.next_seconds(1)
    assert backoff.next_seconds(121) == pytest.approx(3.2)
    assert backoff.next_seconds(242) == pytest.approx(0.8)


def test_the_first_list_asks_for_anything_later_ones_for_the_last_version_and_none_when_that_is_gone():
    versions = VersionTracker()
    assert (versions.list_version(), versions.watch_list_version()) == ("0", "")
    versions.synced("10")
    assert (versions.list_version(), versions.watch_list_version()) == ("10", "10")
    versions.advance("12")
    versions.advance("")
    assert versions.list_version() == "12"
    versions.mark_unavailable()
    assert (versions.list_version(), versions.watch_list_version()) == ("", "")
    versions.synced("20")
    assert versions.list_version() == "20"


def test_a_version_ahead_of_the_server_is_recognised_by_cause_or_by_words():
    assert is_too_large("anything", ("ResourceVersionTooLarge",))
    assert is_too_large("Too large resource version: 5, current: 3", ())
    assert not is_too_large("timed out", ("Other",))


def test_versions_compare_as_numbers():
    assert version_number("10") > version_number("9")
    assert version_number("") == version_number("abc") == 0


@pytest.mark.parametrize(
    ("requested", "check", "period"), [(0, 30, 0), (30, 0, 0), (10, 30, 30), (60, 30, 60), (30, 30, 30)]
)
def test_a_listener_resyncs_no_more_often_than_the_informer_looks(requested, check, period):
    assert effective_period(requested, check) == period


def test_a_schedule_is_due_once_a_period():
    schedule = ResyncSchedule.plan(10, 10, now=100)
    assert not schedule.check(109.9)
    assert schedule.check(110)
    assert schedule.is_due
    assert not schedule.check(115)
    assert schedule.check(120)
    schedule.check_period_changed(0)
    assert not schedule.check(1000)


def test_a_listener_that_asked_for_nothing_is_never_due():
    schedule = ResyncSchedule.plan(0, 10, now=0)
    assert not schedule.is_due
    assert not schedule.check(1e9)


async def _live(seconds_between, count):
    for _ in range(count):
        await asyncio.sleep(seconds_between)
        yield


def _watched(silence, total, between, count):
    async def main(clock):
        try:
            async with Watchdog(silence, total) as watchdog:
                async for _ in _live(between, count):
                    watchdog.heard()
        except Unreachable as error:
            return str(error), clock.monotonic()
        return "lived", clock.monotonic()

    return run_virtual(main)


def test_signs_of_life_keep_the_watchdog_quiet():
    assert _watched(silence=10, total=1000, between=9, count=20) == ("lived", 180)


def test_silence_is_noticed_within_a_quarter_of_itself():
    reason, at = _watched(silence=10, total=1000, between=100, count=1)
    assert reason == "nothing heard for 10 s"
    assert 10 <= at <= 12.5


def test_a_stream_that_outlives_its_time_is_ended_however_lively():
    reason, at = _watched(silence=10, total=60, between=1, count=1000)
    assert reason == "the watch outlived its time-out"
    assert at == pytest.approx(60)


def test_a_cancellation_from_outside_passes_through_the_watchdog():
    async def main(clock):
        async def watch():
            async with Watchdog(10, 100) as watchdog:
                watchdog.heard()
                await asyncio.sleep(1000)

        async with asyncio.TaskGroup() as group:
            task = group.create_task(watch())
            await asyncio.sleep(1)
            task.cancel()
        assert task.cancelled()

    run_virtual(main)
