"""The queue of deltas: a history for each key, without contradictions."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from skysail.api.errors import InvariantBroken
from skysail.informer import (
    DeletedFinalStateUnknown,
    Delta,
    DeltaFIFO,
    DeltaType,
    Indexer,
    Key,
    Requeue,
    key_of,
    version_of,
)
from tests.informer.collection import pod

ADDED, UPDATED, DELETED, REPLACED, SYNC = DeltaType
A = Key("default", "a")


def drained(fifo):
    """Everything queued, as (name, [types], initial)."""
    told = []
    while fifo.pop(lambda key, deltas, initial: told.append((key.name, [d.type for d in deltas], initial))):
        fifo.validate()
    return told


def types_of(fifo, name):
    return [delta.type for delta in fifo.get(Key("default", name))]


def test_deltas_of_a_key_stay_together_in_order_and_keys_come_in_order_of_their_first():
    fifo = DeltaFIFO()
    fifo.add(pod("a"))
    fifo.add(pod("b"))
    fifo.update(pod("a", "2"))
    fifo.delete(pod("a", "3"))
    assert drained(fifo) == [("a", [ADDED, UPDATED, DELETED], False), ("b", [ADDED], False)]
    assert not fifo.pop(lambda *_: pytest.fail("nothing was queued"))


@pytest.mark.parametrize("known", [None, Indexer()])
def test_deleting_what_nobody_knows_is_ignored(known):
    fifo = DeltaFIFO(known)
    fifo.delete(pod("a"))
    assert len(fifo) == 0


def test_deleting_what_only_the_consumer_knows_is_told():
    known = Indexer()
    known.put(pod("a"))
    fifo = DeltaFIFO(known)
    fifo.delete(pod("a", "2"))
    assert types_of(fifo, "a") == [DELETED]


def test_of_two_deletions_in_a_row_the_one_that_knows_more_is_kept():
    known = Indexer()
    known.put(pod("a"))
    last = pod("a", "2")
    tombstone = DeletedFinalStateUnknown(Key("default", "a"), pod("a"))

    fifo = DeltaFIFO(known)
    fifo.replace(())
    assert fifo.get(Key("default", "a"))[0].object == tombstone
    fifo.delete(last)
    assert [delta.object for delta in fifo.get(Key("default", "a"))] == [last]

    fifo = DeltaFIFO(known)
    fifo.delete(last)
    fifo.replace(())
    assert [delta.object for delta in fifo.get(Key("default", "a"))] == [last]


def test_replace_tells_of_every_object_and_buries_what_is_gone_from_queue_and_cache():
    known = Indexer()
    known.put(pod("cached"))
    known.put(pod("both"))
    fifo = DeltaFIFO(known)
    fifo.add(pod("queued"))
    fifo.update(pod("both", "2"))
    fifo.replace((pod("listed", "3"),))
    assert types_of(fifo, "listed") == [REPLACED]
    assert types_of(fifo, "queued") == [ADDED, DELETED]
    assert types_of(fifo, "both") == [UPDATED, DELETED]
    assert types_of(fifo, "cached") == [DELETED]
    assert fifo.get(Key("default", "both"))[-1].object == DeletedFinalStateUnknown(
        Key("default", "both"), pod("both", "2")
    )
    assert fifo.get(Key("default", "cached"))[-1].object == DeletedFinalStateUnknown(
        Key("default", "cached"), pod("cached")
    )


def test_a_tombstone_of_a_tombstone_holds_the_object_itself():
    known = Indexer()
    known.put(pod("a"))
    fifo = DeltaFIFO(known)
    fifo.replace(())
    fifo.add(pod("a", "5"))
    fifo.replace(())
    assert [d.type for d in fifo.get(Key("default", "a"))] == [DELETED, ADDED, DELETED]
    fifo.replace(())
    last = fifo.get(Key("default", "a"))[-1].object
    assert last == DeletedFinalStateUnknown(Key("default", "a"), pod("a", "5"))


def test_replace_says_sync_to_consumers_that_do_not_understand_replaced():
    fifo = DeltaFIFO(emit_replaced=False)
    fifo.replace((pod("a"),))
    assert types_of(fifo, "a") == [SYNC]


def test_resync_repeats_what_is_known_but_not_what_has_news_waiting():
    known = Indexer()
    known.put(pod("quiet"))
    known.put(pod("busy"))
    fifo = DeltaFIFO(known)
    fifo.update(pod("busy", "2"))
    fifo.resync()
    assert types_of(fifo, "quiet") == [SYNC]
    assert types_of(fifo, "busy") == [UPDATED]
    DeltaFIFO().resync()


def test_synced_only_once_everything_of_the_first_list_is_popped():
    fifo = DeltaFIFO()
    assert not fifo.has_synced
    fifo.replace((pod("a"), pod("b")))
    fifo.add(pod("c"))
    assert drained_one(fifo) == ("a", True)
    assert not fifo.has_synced
    assert drained_one(fifo) == ("b", True)
    assert fifo.has_synced
    assert drained_one(fifo) == ("c", False)


def drained_one(fifo):
    told = []
    fifo.pop(lambda key, deltas, initial: told.append((key.name, initial)))
    return told[0]


def test_an_empty_first_list_is_synced_at_once():
    fifo = DeltaFIFO()
    fifo.replace(())
    assert fifo.has_synced


def test_a_change_before_any_list_counts_as_synced():
    fifo = DeltaFIFO()
    fifo.add(pod("a"))
    assert fifo.has_synced


def test_a_consumer_that_cannot_process_now_gets_the_deltas_again_at_the_end():
    fifo = DeltaFIFO()
    fifo.replace((pod("a"), pod("b")))

    def refuse(key, deltas, initial):
        fifo.update(pod("a", "2"))
        raise Requeue

    assert fifo.pop(refuse)
    fifo.validate()
    assert not fifo.has_synced
    assert drained(fifo) == [("b", [REPLACED], True), ("a", [REPLACED, UPDATED], True)]
    assert fifo.has_synced


def test_the_shell_is_woken_by_new_keys_lists_and_bookmarks():
    woken = []
    fifo = DeltaFIFO(on_ready=lambda: woken.append(len(fifo)))
    fifo.add(pod("a"))
    fifo.update(pod("a", "2"))
    fifo.replace(())
    fifo.bookmark("9")
    assert woken == [1, 1, 1]


@pytest.mark.parametrize(
    ("break_it", "why"),
    [
        (lambda fifo: fifo._queue.clear(), "queued keys and keys with deltas differ"),
        (lambda fifo: fifo._items[Key("default", "a")].clear(), "queued without deltas"),
        (
            lambda fifo: fifo._items[Key("default", "a")].extend([Delta(DELETED, pod("a"))] * 2),
            "two deletions in a row",
        ),
    ],
)
def test_validate_names_what_is_broken(break_it, why):
    fifo = DeltaFIFO()
    fifo.add(pod("a"))
    break_it(fifo)
    with pytest.raises(InvariantBroken, match=why):
        fifo.validate()


class FifoMachine(RuleBasedStateMachine):
    """A server, a FIFO, a cache fed from it: the cache ends up equal to the server, and every history makes sense."""

    def __init__(self):
        super().__init__()
        self.server = {}
        self.version = 0
        self.cache = Indexer()
        self.fifo = DeltaFIFO(self.cache)
        self.heard = True  # whether the watch is connected

    names = st.sampled_from(["a", "b", "c"])

    @rule(name=names)
    def put(self, name):
        self.version += 1
        obj = pod(name, self.version)
        known = key_of(obj) in self.server
        self.server[key_of(obj)] = obj
        if self.heard:
            self.fifo.update(obj) if known else self.fifo.add(obj)

    @rule(name=names)
    def delete(self, name):
        self.version += 1
        if self.server.pop(Key("default", name), None) is not None and self.heard:
            self.fifo.delete(pod(name, self.version))

    @rule()
    def disconnect(self):
        self.heard = False

    @rule()
    def relist(self):
        self.fifo.replace(tuple(self.server.values()))
        self.heard = True

    @rule()
    def resync(self):
        self.fifo.resync()

    @rule(count=st.integers(1, 4))
    def pop(self, count):
        for _ in range(count):
            self.fifo.pop(self.process)

    def process(self, key, deltas, initial):
        for delta in deltas:
            if delta.type is DELETED:
                self.cache.remove(key)
                continue
            old = self.cache.put(delta.object)
            if old is not None:
                assert int(version_of(old)) <= int(version_of(delta.object)), "the cache went back in time"

    @invariant()
    def consistent(self):
        self.fifo.validate()
        self.cache.validate()

    def teardown(self):
        self.relist()
        while self.fifo.pop(self.process):
            pass
        assert {key_of(obj): obj for obj in self.cache} == self.server


FifoMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestFifoMachine = FifoMachine.TestCase
