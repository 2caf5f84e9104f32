"""Who leads, and what happens when the leader does not."""

import asyncio
from datetime import timedelta
from itertools import pairwise

import pytest

from skysail.api.coordination import Lease
from skysail.api.errors import ConfigError
from skysail.api.kinds import LEASES
from skysail.controller import LeaderElection, LeaderElector, LeadershipLost
from skysail.controller.lease import LeaseRecord, LeaseView

ELECTION = LeaderElection("test", namespace="default")


class SkewedClock:
    """Another machine's clock: its time of day is off, its seconds are the same."""

    def __init__(self, clock, hours):
        self._clock, self._hours = clock, hours

    def monotonic(self):
        return self._clock.monotonic() + self._hours * 1000

    def now(self):
        return self._clock.now() + timedelta(hours=self._hours)


class Candidate:
    """A component that wants to lead, and notes when it does."""

    def __init__(self, cluster, name, *, skew_hours=0, election=ELECTION, lead=None):
        self.cluster, self.name, self.election = cluster, name, election
        self.clock = SkewedClock(cluster.clock, skew_hours)
        self.terms: list[list[float]] = []
        self.ended: object = None
        self.seen: list[str] = []
        self._lead = lead

    async def start(self):
        self.component = await self.cluster.run(self.name, self._main)
        return self

    async def _main(self, client):
        self.elector = LeaderElector(
            client, self.election, self.name, clock=self.clock, rng=self.cluster.rng, on_new_leader=self.seen.append
        )
        try:
            await self.elector.run(self._term)
        except (LeadershipLost, ValueError) as error:
            self.ended = error

    async def _term(self):
        now = self.cluster.clock.monotonic
        term = [now(), float("inf")]
        self.terms.append(term)
        try:
            if self._lead is not None:
                await self._lead()
            else:
                await asyncio.get_running_loop().create_future()
        finally:
            term[1] = now()


async def lease(cluster):
    return (await cluster.get(Lease, "test")).spec


async def test_the_first_candidate_leads_and_renews_every_two_seconds(cluster):
    a = await Candidate(cluster, "a").start()
    await cluster.advance(1)
    assert a.elector.is_leader
    first = await lease(cluster)
    assert (first.holder_identity, first.lease_duration_seconds, first.lease_transitions) == ("a", 15, 0)
    await cluster.advance(60)
    later = await lease(cluster)
    assert later.acquire_time == first.acquire_time
    assert later.renew_time > first.renew_time
    assert later.lease_transitions == 0
    assert 25 <= a.elector._client.statistics().requests <= 35


async def test_a_second_candidate_waits_and_knows_who_leads(cluster):
    await Candidate(cluster, "a").start()
    await cluster.advance(1)
    b = await Candidate(cluster, "b").start()
    await cluster.advance(120)
    assert b.terms == []
    assert b.elector.leader == "a"
    assert b.seen == ["a"]


async def test_when_the_leader_is_killed_another_leads_after_the_lease_ran_out(cluster):
    a = await Candidate(cluster, "a").start()
    await cluster.advance(1)
    b = await Candidate(cluster, "b").start()
    await cluster.advance(60)
    cluster.kill("a")
    killed = cluster.clock.monotonic()
    await cluster.advance(30)
    assert 13 <= b.terms[0][0] - killed <= 15 + 2 * 2.2
    assert (await lease(cluster)).lease_transitions == 1
    assert a.terms[0][1] <= killed + 1
    assert b.seen == ["a", "b"]


async def test_a_leader_that_stops_gives_the_lease_back_and_another_leads_at_once(cluster):
    a = await Candidate(cluster, "a").start()
    await cluster.advance(1)
    b = await Candidate(cluster, "b").start()
    await cluster.advance(60)
    stopped = cluster.clock.monotonic()
    await a.component.stop()
    released = await lease(cluster)
    assert (released.holder_identity, released.lease_duration_seconds) == ("", 1)
    await cluster.advance(10)
    assert b.terms[0][0] - stopped <= 2 * 2.2 + 1


async def test_a_leader_cut_off_stops_before_another_starts(cluster):
    a = await Candidate(cluster, "a").start()
    await cluster.advance(1)
    b = await Candidate(cluster, "b").start()
    await cluster.advance(60)
    a.component.faults.lose_requests(times=-1)
    await cluster.advance(60)
    assert isinstance(a.ended, LeadershipLost)
    assert "default/test was not renewed in time" in str(a.ended)
    assert a.terms[0][1] < b.terms[0][0]


@pytest.mark.parametrize("hours", [-30, 30])
async def test_clocks_that_disagree_by_hours_do_not_matter(cluster, hours):
    a = await Candidate(cluster, "a").start()
    await cluster.advance(1)
    b = await Candidate(cluster, "b", skew_hours=hours).start()
    await cluster.advance(600)
    assert b.terms == []
    cluster.kill("a")
    await cluster.advance(30)
    assert len(b.terms) == 1
    assert a.terms[0][1] < b.terms[0][0]


async def test_a_leader_whose_work_dies_gives_the_lease_up_and_says_why(cluster):
    async def die():
        await asyncio.sleep(10)
        raise ValueError("work died")

    a = await Candidate(cluster, "a", lead=die).start()
    await cluster.advance(20)
    assert str(a.ended) == "work died"
    assert (await lease(cluster)).holder_identity == ""


async def test_a_leader_whose_work_is_done_gives_the_lease_up(cluster):
    async def finish():
        await asyncio.sleep(10)

    a = await Candidate(cluster, "a", lead=finish).start()
    await cluster.advance(20)
    assert a.ended is None
    assert (await lease(cluster)).holder_identity == ""


async def test_a_lease_that_is_not_released_on_stop_stays_held(cluster):
    election = LeaderElection("test", namespace="default", release_on_stop=False)
    a = await Candidate(cluster, "a", election=election).start()
    await cluster.advance(5)
    await a.component.stop()
    assert (await lease(cluster)).holder_identity == "a"


async def test_a_short_outage_does_not_cost_the_lead(cluster):
    a = await Candidate(cluster, "a").start()
    await cluster.advance(5)
    cluster.stop_apiserver()
    await cluster.advance(6)
    cluster.start_apiserver()
    await cluster.advance(60)
    assert a.elector.is_leader
    assert len(a.terms) == 1


async def test_a_lease_deleted_under_the_leader_is_made_again(cluster):
    a = await Candidate(cluster, "a").start()
    await cluster.advance(5)
    await cluster.client.delete(LEASES, "test", "default")
    await cluster.advance(5)
    assert a.elector.is_leader
    assert (await lease(cluster)).holder_identity == "a"


async def test_a_lease_somebody_else_wrote_to_is_read_again_and_what_they_wrote_is_kept(cluster):
    a = await Candidate(cluster, "a").start()
    await cluster.advance(5)
    await cluster.client.patch(LEASES, "test", "default", {"metadata": {"labels": {"touched": "yes"}}})
    await cluster.advance(10)
    assert a.elector.is_leader
    assert len(a.terms) == 1
    assert (await cluster.get(Lease, "test")).metadata.labels == {"touched": "yes"}


async def test_five_candidates_never_lead_together_whatever_dies(cluster):
    candidates = [await Candidate(cluster, name).start() for name in "abcde"]
    for _ in range(6):
        await cluster.advance(40)
        (leader,) = [each for each in candidates if each.elector.is_leader and each.component.is_running]
        others = sum(each.component.is_running for each in candidates)
        if others > 1:
            cluster.kill(leader.name)
    terms = sorted(term for each in candidates for term in each.terms)
    assert len(terms) == 5
    for (_, end), (start, _) in pairwise(terms):
        assert end < start


async def test_a_stuck_leader_is_unhealthy(cluster):
    a = await Candidate(cluster, "a").start()
    await cluster.advance(5)
    assert a.elector.health() == ""
    cluster.kill("a")
    await cluster.advance(0)
    a.elector._leading = True
    await cluster.advance(30)
    assert a.elector.health() == ""
    await cluster.advance(10)
    assert a.elector.health() == "failed election to renew leadership on lease test"


@pytest.mark.parametrize(
    ("times", "field"),
    [
        ({"lease_seconds": 10.0}, "lease_seconds"),
        ({"renew_deadline_seconds": 2.4}, "renew_deadline_seconds"),
        ({"retry_seconds": 0.0}, "retry_seconds"),
    ],
)
def test_times_that_cannot_work_are_refused(times, field):
    with pytest.raises(ConfigError) as caught:
        LeaderElection("x", **times)
    assert caught.value.path == field


def test_a_candidate_trusts_what_it_saw_and_not_what_was_written():
    view = LeaseView("b", 15)
    old = LeaseRecord("a", 15, 3, "2020-01-01T00:00:00.000000Z", "2020-01-01T00:00:00.000000Z")
    view.observe(old, now=100)
    assert not view.may_take(114.9)
    view.observe(old, now=110)
    assert view.may_take(115.1)
    view.observe(LeaseRecord("", 1, 3), now=200)
    assert view.may_take(200)


def test_reading_a_lease_gives_a_record():
    record = LeaseRecord.of(Lease().spec)
    assert record == LeaseRecord()
