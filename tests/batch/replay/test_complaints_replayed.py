"""Every complaint as a scenario, played through `skysail batch replay`."""

from pathlib import Path

import pytest

from tests.batch.replay.played import SCENARIOS, Played

GPU = "nvidia.com/gpu"


def test_c01_every_waiting_unit_says_why_and_runs_when_the_cause_is_gone():
    played = Played("c01")
    codes = played.codes(4)
    assert sorted((codes.pop("fills", ""), codes.pop("over", ""))) == ["", "QuotaExceeded"]
    assert codes == {
        "later": "PodGroupMissing", "three-of-four": "MembersMissing", "closed": "QueueClosed", "never": "ExceedsMax",
        "nowhere": "NoNode", "gated": "WaitingGate", "lost": "QueueMissing", "large": "NotEnough",
    }  # fmt: skip
    assert played.numbers(4, "three-of-four") == {"have": 3, "need": 4}
    assert played.numbers(4, "large") == {"have": 2, "need": 4}
    assert played.numbers(4, "never") == {"queue": "tiny", "resource": "cpu", "ask": 2000, "limit": 1000}
    assert played.codes(99) == {}
    assert played.final["pods"] == {"Running": 16}


def test_c02_what_is_said_to_fit_fits_and_one_more_does_not():
    played = Played("c02")
    assert played.numbers(4, "job-nine") == {"have": 8, "need": 9}
    assert len(played.binds("nine")) == 0
    assert len(played.binds("eight")) == 8


@pytest.mark.parametrize("seed", range(1, 6))
def test_c03_never_do_two_gangs_hold_half_each(seed):
    played = Played("c03", seed)
    assert {len(played.binds("one")), len(played.binds("two"))} == {0, 100}
    (code,) = played.codes(99).values()
    assert code == "NotEnough"
    assert played.final["pods"] == {"Pending": 100, "Running": 100}


def test_c04_one_bundle_runs_and_the_other_holds_nothing():
    played = Played("c04-bundles")
    counts = {name: len(played.binds(name)) for name in "abcd"}
    assert counts in ({"a": 10, "b": 10, "c": 0, "d": 0}, {"a": 0, "b": 0, "c": 10, "d": 10})


def test_c04_what_cannot_start_holds_nothing_from_others():
    played = Played("c04-an")
    assert len(played.binds("single")) == 10
    assert max(at for at, _, _ in played.binds("single")) < 3
    assert played.final["queues"]["default"]["claimed"] == {}


def test_c05_roles_are_counted_apart_and_a_new_one_runs_at_once():
    played = Played("c05")
    assert (len(played.binds("t1")), len(played.binds("t2"))) == (2, 2)
    ((at, _, node),) = played.binds("third")
    assert (5 <= at < 6, node) == (True, "more")


def test_c06_failed_bindings_leave_nothing_behind():
    played = Played("c06")
    assert played.final["pods"] == {"Running": 6}
    assert played.held("default") == 48000


def test_c07_nobody_is_evicted_for_a_gang_that_fits_nowhere():
    played = Played("c07")
    assert played.evictions() == []
    assert set(played.codes(99)) == {"owner"}


def test_c08_room_is_taken_when_its_pod_is_gone():
    played = Played("c08-a-victim")
    assert len(played.evictions("slow")) == 1
    ((at, _, _),) = played.binds("next")
    assert at >= 30


def test_c08_a_refused_pod_goes_elsewhere():
    played = Played("c08-another")
    nodes = [node for _, _, node in played.binds("ours")]
    assert len(nodes) == 2
    assert len(set(nodes)) == 2
    assert "n0" not in nodes
    assert played.final["pods"] == {"Running": 2}


def test_c09_late_news_need_no_restart():
    played = Played("c09")
    assert played.final["pods"] == {"Running": 1}
    assert len(played.binds("new")) == 1


def test_c10_elastic_jobs_do_not_take_from_each_other():
    played = Played("c10")
    assert len(played.evictions()) <= 5
    assert [each for each in played.evictions() if each[0] > 100] == []
    assert played.writes(after=100) == 0


def test_c11_nobody_is_evicted_twice():
    played = Played("c11")
    assert len(played.evictions()) <= 1
    assert played.writes(after=20) == 0


def test_c12_a_head_that_never_fits_stops_nobody():
    played = Played("c12")
    assert played.codes(99) == {"job-first": "ExceedsMax"}
    assert {at < 3 for at, _, _ in played.binds("second")} == {True}
    assert played.writes(after=10) == 0


def test_c13_a_resource_nobody_named_is_not_forbidden():
    played = Played("c13")
    assert played.held("cpu-only", GPU) == 5
    assert played.codes(99) == {"job-over": "ExceedsMax"}


@pytest.mark.parametrize("seed", range(1, 6))
def test_c14_limits_of_all_levels_hold(seed):
    played = Played("c14", seed)
    assert played.held("org") == 3000 * played.final["pods"].get("Running", 0)
    assert played.held("org") == played.held("x") + played.held("y")
    assert [at for at, _, _ in played.binds() if at > 4] == []
    assert played.held("org") <= 16000
    assert played.evictions() == []


@pytest.mark.parametrize("seed", range(1, 4))
def test_c15_a_queue_is_charged_for_pods_that_exist(seed):
    played = Played("c15", seed)
    assert played.final["pods"] == {"Running": 2}
    assert (played.held("q"), played.held("q", "pods")) == (8000, 2)


def test_c16_shares_are_scaled_to_the_cluster_and_it_is_said():
    played = Played("c16-shares")
    assert (played.held("a"), played.held("b")) in ((4000, 3000), (5000, 2000))
    entitlement = {name: played.final["queues"][name]["entitlement"]["cpu"] for name in "ab"}
    assert sum(entitlement.values()) <= 7000
    assert set(played.codes(99).values()) == {"EntitlementScaled"}
    assert [each for each in played.evictions() if each[0] > 30] == []


def test_c16_a_protected_queue_stops_no_reclaim_from_another():
    played = Played("c16-a")
    assert {pod.rpartition("-")[0] for _, pod, _ in played.evictions()} == {"default/borrower"}
    assert played.held("right") == 3000


def test_c17_a_large_job_starts_when_it_could():
    played = Played("c17")
    starts = {at for at, _, _ in played.binds("large")}
    assert len(played.binds("large")) == 8
    assert max(starts) < 602
    assert min(at for at, _, _ in played.binds("later")) > 659


def test_c18_reclaim_begins_in_the_first_cycle():
    played = Played("c18")
    assert {5 <= at < 5.1 for at, _, _ in played.evictions()} == {True}
    assert len(played.evictions()) == 20
    assert (played.held("a", GPU), played.held("b", GPU)) == (160, 160)


def test_c19_scattered_room_is_no_room():
    played = Played("c19-room")
    assert [(pod[:11], who) for _, pod, who in played.evictions()] == [("default/low", "default/one")]
    assert played.codes(99) == {"whole-node": "NoNode"}
    assert len(played.binds("one")) == 1


def test_c19_an_elastic_job_shrinks_to_its_minimum():
    played = Played("c19-elastic")
    assert len(played.evictions("elastic")) == 4
    assert played.final["pods"]["Running"] == 8


def test_c20_missing_objects_stop_nobody_and_idle_cycles_write_nothing():
    played = Played("c20")
    assert len(played.binds("late")) == 2
    assert played.writes(after=200) == 0


def test_every_scenario_is_played_here():
    played = Path(__file__).read_text()
    for file in SCENARIOS.glob("c*.yaml"):
        assert any(f'"{file.name[:length]}"' in played for length in range(3, len(file.name)))
