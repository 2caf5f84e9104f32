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
    assert played.codes(29) == {"outside": "NoQuotaSlot"}


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


def test_every_scenario_is_played_here():
    played = Path(__file__).read_text()
    assert [file.name for file in SCENARIOS.glob("k*.yaml") if f'"{file.name[:3]}"' not in played] == []
