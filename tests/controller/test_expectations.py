"""What a controller has done and not seen yet."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from skysail.controller import Expectations, UIDTrackingExpectations
from tests.workqueue.clocks import ManualClock


def test_a_controller_that_expects_nothing_may_act():
    assert Expectations(ManualClock()).satisfied("web")


def test_creations_and_deletions_are_awaited_until_all_are_seen():
    expectations = Expectations(ManualClock())
    expectations.expect("web", creations=2, deletions=1)
    for observe in (expectations.creation_observed, expectations.creation_observed, expectations.deletion_observed):
        assert not expectations.satisfied("web")
        observe("web")
    assert expectations.satisfied("web")
    assert expectations.satisfied("other")


def test_a_failed_creation_is_no_longer_awaited():
    expectations = Expectations(ManualClock())
    expectations.expect_creations("web", 3)
    expectations.lower_expected("web", creations=3)
    assert expectations.satisfied("web")


def test_more_can_be_awaited_but_only_of_what_was_awaited_at_all():
    expectations = Expectations(ManualClock())
    expectations.raise_expected("web", creations=1)
    assert expectations.satisfied("web")
    expectations.expect_deletions("web", 0)
    expectations.raise_expected("web", deletions=1)
    assert not expectations.satisfied("web")
    assert expectations.get("web").deletions == 1


def test_an_event_seen_before_it_was_expected_counts():
    expectations = Expectations(ManualClock())
    expectations.expect_creations("web", 1)
    expectations.creation_observed("web")
    expectations.creation_observed("web")
    expectations.raise_expected("web", creations=1)
    assert expectations.satisfied("web")


def test_setting_expectations_forgets_older_ones():
    expectations = Expectations(ManualClock())
    expectations.expect_creations("web", 5)
    expectations.expect_deletions("web", 1)
    expectations.deletion_observed("web")
    assert expectations.satisfied("web")


def test_after_five_minutes_a_controller_may_act_whatever_it_awaits():
    clock = ManualClock()
    expectations = Expectations(clock)
    expectations.expect_creations("web", 1)
    clock.advance(300)
    assert not expectations.satisfied("web")
    clock.advance(0.1)
    assert expectations.satisfied("web")


def test_forgetting_leaves_nothing_behind():
    expectations = UIDTrackingExpectations(ManualClock())
    expectations.expect_deletions_of("web", ["u1"])
    expectations.forget("web")
    assert len(expectations) == 0
    assert expectations.awaited_uids("web") == frozenset()
    assert expectations.satisfied("web")


def test_the_deletion_of_one_object_counts_once_however_often_it_is_seen():
    expectations = UIDTrackingExpectations(ManualClock())
    expectations.expect_deletions_of("web", ["u1", "u2", "u1"])
    for _ in range(3):
        expectations.deletion_of_observed("web", "u1")
    assert not expectations.satisfied("web")
    expectations.deletion_of_observed("web", "u3")
    assert expectations.awaited_uids("web") == {"u2"}
    expectations.deletion_of_observed("web", "u2")
    assert expectations.satisfied("web")


@pytest.mark.parametrize("late", [False, True])
def test_creations_and_tracked_deletions_may_be_awaited_side_by_side(late):
    expectations = UIDTrackingExpectations(ManualClock())
    expectations.expect_deletions_of("web", ["u1"])
    expectations.raise_expected("web", creations=1)
    steps = [lambda: expectations.deletion_of_observed("web", "u1"), lambda: expectations.creation_observed("web")]
    for step in reversed(steps) if late else steps:
        assert not expectations.satisfied("web")
        step()
    assert expectations.satisfied("web")


class ExpectationsMachine(RuleBasedStateMachine):
    """A controller that acts only when satisfied never has more than it wants in flight."""

    def __init__(self):
        super().__init__()
        self.clock = ManualClock()
        self.expectations = UIDTrackingExpectations(self.clock)
        self.creating = 0
        self.deleting: set[str] = set()
        self.since = None
        self.made = 0

    @precondition(lambda self: self.expectations.satisfied("k"))
    @rule(creations=st.integers(0, 3))
    def create(self, creations):
        self.expectations.expect_creations("k", creations)
        self.creating, self.deleting, self.since = creations, set(), self.clock.seconds

    @precondition(lambda self: self.expectations.satisfied("k"))
    @rule(count=st.integers(0, 3))
    def delete(self, count):
        uids = [f"u{self.made + number}" for number in range(count)]
        self.made += count
        self.expectations.expect_deletions_of("k", uids)
        self.creating, self.deleting, self.since = 0, set(uids), self.clock.seconds

    @precondition(lambda self: self.creating > 0)
    @rule(failed=st.booleans())
    def one_created(self, failed):
        self.creating -= 1
        if failed:
            self.expectations.lower_expected("k", creations=1)
        else:
            self.expectations.creation_observed("k")

    @precondition(lambda self: self.deleting)
    @rule(times=st.integers(1, 3), data=st.data())
    def one_deleted(self, times, data):
        uid = data.draw(st.sampled_from(sorted(self.deleting)))
        self.deleting.discard(uid)
        for _ in range(times):
            self.expectations.deletion_of_observed("k", uid)

    @rule(seconds=st.sampled_from([1, 100, 301]))
    def pass_time(self, seconds):
        self.clock.advance(seconds)

    @invariant()
    def satisfied_exactly_when_nothing_is_in_flight_or_it_took_too_long(self):
        in_flight = self.creating > 0 or bool(self.deleting)
        timed_out = self.since is not None and self.clock.seconds - self.since > 300
        assert self.expectations.satisfied("k") == (not in_flight or timed_out)


ExpectationsMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestExpectationsMachine = ExpectationsMachine.TestCase
