"""Division of a pool: the worked examples, and what holds for every division."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from skysail.batch.entitlement import Claimant, divide

AMOUNTS = st.integers(0, 60)


@st.composite
def siblings(draw):
    found = []
    for number in range(draw(st.integers(1, 5))):
        guarantee = draw(st.sampled_from([0, 0, 0, 3, 8]))
        deserved = draw(st.none() | st.integers(guarantee, 40))
        low = max(guarantee, deserved or 0)
        found.append(
            Claimant(
                f"q{number}",
                draw(AMOUNTS),
                guarantee,
                deserved,
                draw(st.none() | st.integers(low, 80)),
                draw(st.integers(0, 5)),
                draw(st.integers(0, 1)),
                draw(st.integers(0, 1_000_000)),
                draw(st.sampled_from([0, 500, 2000])),
            )
        )
    return found


def shares(pool, *claimants):
    return tuple(divide(pool, claimants).shares.values())


def test_deserved_comes_before_surplus():
    assert shares(10, Claimant("a", 10, deserved=2), Claimant("b", 10, deserved=4)) == (4, 6)


def test_surplus_goes_to_the_higher_priority_first():
    hi, lo = Claimant("hi", 6, deserved=2, priority=200), Claimant("lo", 10, deserved=2, priority=100, weight=9)
    assert shares(10, hi, lo) == (6, 4)


def test_a_guarantee_is_kept_though_nobody_asks():
    assert shares(10, Claimant("a", 0, guarantee=4), Claimant("b", 20)) == (4, 6)


def test_ties_go_to_the_oldest():
    young, old = Claimant("a", 10, created=2.0), Claimant("b", 10, created=1.0)
    assert shares(5, young, old) == (2, 3)


def test_past_use_lowers_the_share():
    a = Claimant("a", 16, usage=800_000, usage_weight=500)
    assert shares(16, a, replace(a, name="b", usage=200_000)) == (6, 10)


def test_deserved_beyond_the_pool_is_scaled_and_said_so():
    division = divide(7, [Claimant("a", 6, deserved=6), Claimant("b", 4, deserved=4)])
    assert division.scaled
    assert dict(division.shares) == {"a": 4, "b": 3}


def test_c13_capabilities_bound_shares_by_resource():
    for capabilities, expected in (((80, 20), (80, 20)), ((40, 60), (40, 60))):
        a, b = (Claimant(name, 1000, capability=limit) for name, limit in zip("ab", capabilities, strict=True))
        assert shares(100, a, b) == expected


def test_large_amounts_are_exact():
    pool = 1 << 40
    assert shares(pool, Claimant("a", pool, weight=3), Claimant("b", pool, weight=4)) == (471219269047, 628292358729)


@given(AMOUNTS, siblings())
def test_shares_never_exceed_the_pool(pool, claimants):
    assert sum(divide(pool, claimants).shares.values()) <= pool


@given(AMOUNTS, siblings())
def test_nobody_gets_more_than_it_asks_for_but_its_guarantee(pool, claimants):
    for each in claimants:
        assert 0 <= divide(pool, claimants).shares[each.name] <= max(each.wanted, each.guarantee)


@given(AMOUNTS, siblings())
def test_a_larger_pool_takes_from_nobody(pool, claimants):
    less, more = divide(pool, claimants).shares, divide(pool + 1, claimants).shares
    assert all(more[name] >= less[name] for name in less)


@given(AMOUNTS, siblings(), st.randoms())
def test_the_order_of_queues_does_not_matter(pool, claimants, random):
    shuffled = claimants.copy()
    random.shuffle(shuffled)
    assert divide(pool, shuffled).shares == divide(pool, claimants).shares


@given(AMOUNTS, siblings())
def test_a_queue_that_wants_nothing_changes_nothing(pool, claimants):
    shares = divide(pool, claimants).shares
    more = divide(pool, [*claimants, Claimant("z", 0, deserved=10, weight=3)]).shares
    assert {name: more[name] for name in shares} == dict(shares)


@given(AMOUNTS, siblings())
def test_nothing_is_left_over_while_somebody_with_weight_is_hungry(pool, claimants):
    shares = divide(pool, claimants).shares
    hungry = [each for each in claimants if each.weight and shares[each.name] < each.wanted]
    assert not hungry or sum(shares.values()) == pool
