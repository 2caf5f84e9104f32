"""Faults other batch schedulers are known for, as scenarios: none of them is ours."""

from pathlib import Path

from tests.batch.replay.played import SCENARIOS, Played


def test_a_gang_that_lost_a_member_gets_the_room_that_comes_back():
    played = Played("k01")
    assert [node for at, _, node in played.binds("gang") if at > 10] == ["node-9"]
    assert played.binds("stranger") == []


def test_a_job_that_can_never_run_does_not_keep_the_next_from_taking_back():
    played = Played("k02")
    assert len(played.binds("fits")) == 2
    assert len(played.evictions("borrower")) == 2


def test_a_borrowing_job_preempts_older_work_of_low_priority_behind_an_inadmissible_head():
    played = Played("k03")
    assert len(played.binds("fits")) == 3
    assert len(played.evictions("old-low")) == 3
    assert played.codes(29)["job-never"] == "ExceedsMax"


def test_room_goes_to_the_workload_within_its_nominal_quota():
    played = Played("k04")
    assert len(played.binds("within")) == 2
    assert played.binds("above") == []
    assert {who for _, _, who in played.evictions()} == {"default/job-within"}


def test_a_pool_two_cohorts_up_is_used():
    played = Played("k05")
    assert [node for _, _, node in played.binds("wants")] == ["b0"]
    assert played.evictions() == []


def test_nobody_in_a_slot_is_evicted_for_a_pod_that_may_not_use_it():
    played = Played("k06")
    assert played.evictions() == []
    assert played.codes(29) == {"outside": "NoNode"}


def test_an_elastic_quota_lets_pods_in_up_to_its_maximum():
    played = Played("k07")
    assert played.held("test-quota") == 40000
    assert list(played.codes(19).values()) == ["QuotaExceeded"]


def test_nobody_is_evicted_while_there_is_room():
    played = Played("k08")
    assert played.evictions() == []
    assert played.final["pods"] == {"Running": 2}


def test_a_gang_above_its_queues_limit_holds_nothing_and_runs_once_it_may():
    played = Played("k09")
    assert (played.codes(5)["gang"], played.codes(15)["gang"]) == ("ExceedsMax", "ScheduleTimeout")
    assert len(played.binds("other")) == 2
    assert {at >= 20 for at, _, _ in played.binds("gang")} == {True}


def test_what_a_smaller_job_gives_back_is_used():
    played = Played("k10")
    ((at, _, _),) = played.binds("waits")
    assert 10 <= at < 12
    assert played.codes(59) == {"job-elastic": "QuotaExceeded"}


def test_leaves_without_figures_share_by_those_above_them():
    played = Played("k11")
    assert len(played.evictions("executors")) == 1
    assert len(played.binds("driver-2")) == 1


def test_a_queue_above_its_share_moves_nobody_below_theirs():
    played = Played("k12")
    assert played.evictions("under") == []
    assert len(played.binds("under")) == 4
    assert [at < 4 for at, _, _ in played.evictions("fed")] == [True] * 4


def test_a_gang_that_only_borrows_gives_way_to_the_owner_of_the_room():
    played = Played("k13")
    assert len(played.evictions("gang")) == 8
    assert max(at for at, _, _ in played.evictions("gang")) < 10
    assert len(played.binds("small")) == 8
    assert (played.held("vision"), played.held("speech")) == (0, 64000)
    assert len(played.evictions()) == 8


def test_devices_that_vanish_keep_their_node_in_the_account():
    played = Played("s01")
    assert [node for _, _, node in played.binds("plain")] == ["n0"]
    assert played.codes(9) == {"job-waits": "NoNode"}
    assert len(played.binds("waits")) == 1


def test_slow_victims_are_not_joined_by_more_than_are_needed():
    played = Played("s02")
    assert len(played.evictions("low")) == 3
    assert {at >= 20 for at, _, _ in (*played.binds("first"), *played.binds("other"))} == {True}


def test_a_free_node_is_used_before_anybody_is_evicted():
    played = Played("s03")
    assert len(played.evictions("low")) == 1
    assert len(played.binds("gang")) == 2


def test_a_deployment_that_is_a_gang_is_rolled():
    played = Played("s04")
    assert played.final["pods"] == {"Running": 3}
    assert len(played.binds("web")) == 6


def test_shares_of_a_device_are_summed_on_the_device():
    played = Played("s05")
    assert played.final["pods"]["Running"] in (22, 23)


def test_a_member_on_a_silent_node_is_replaced():
    played = Played("s06")
    assert [node for at, _, node in played.binds("gang") if at > 10] == ["node-3"]


def test_crash_after_crash_binds_nobody_twice():
    played = Played("s07")
    pods = [pod for _, pod, _ in played.binds("owner")]
    assert sorted(pods) == sorted(set(pods))
    assert len({pod for _, pod, _ in played.evictions("borrower")}) == 2
    assert played.final["queues"]["b"]["claimed"] == {}
    assert played.held("b") == 16000


def test_what_is_heard_of_late_waits_with_a_reason():
    played = Played("s08")
    assert [played.codes(at)["g"] for at in (3, 7)] == ["PodGroupMissing", "QueueMissing"]
    assert len(played.binds("g")) == 2


def test_a_gang_whose_bindings_fail_once_runs_on_the_same_nodes():
    played = Played("s09")
    assert played.final["pods"] == {"Running": 4}
    assert max(at for at, _, _ in played.binds("gang")) < 30


def test_a_held_queue_keeps_what_runs_and_takes_nobody():
    played = Played("s10")
    assert played.codes(15)["job-a-late"] == "QueueClosed"
    assert played.codes(30)["job-a-late"] == "QuotaExceeded"
    assert len(played.evictions("b-fill")) == 1


def test_every_scenario_is_played_here():
    played = Path(__file__).read_text()
    assert [file.name for file in SCENARIOS.glob("[ks]*.yaml") if f'"{file.name[:3]}"' not in played] == []


def test_the_running_engine_keeps_gangs_in_zones_and_says_where_there_is_none():
    played = Played("t01")
    assert played.codes(5) == {"pair": "NoTopology", "racked": "NoTopology", "wide": "NoTopology"}
    assert played.numbers(5, "wide") == {"level": "zone", "best_fit": 2, "need": 3}
    assert played.numbers(5, "racked") == {"level": "rack", "best_fit": 0, "need": 2}
    assert [node for at, _, node in played.binds("racked") if at >= 20] == ["y0", "y0"]
    assert {node[0] for _, _, node in played.binds("hard")} == {"x"}
    assert len(played.binds("soft")) == 2


def test_a_running_gang_whose_minimum_is_lowered_gives_what_is_above_it():
    played = Played("t02")
    assert played.codes(10)["own"] == "NotEnough"
    assert len(played.evictions("borrower")) == 4
    assert len(played.binds("own")) == 4


def test_a_stream_of_lower_jobs_does_not_keep_a_gang_of_high_priority_from_starting():
    played = Played("t03")
    assert {at for at, _, _ in played.binds("high")} <= {at for at, _, _ in played.binds() if at < 5}
    assert len(played.binds("high")) == 4
