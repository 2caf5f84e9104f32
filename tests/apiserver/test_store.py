"""The store against a naive model, and its promises one by one."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from skysail.api.raw import Raw
from skysail.apiserver.contract import GroupResource
from skysail.apiserver.store import Change, Record, Store

PODS, MAPS = GroupResource("", "pods"), GroupResource("", "configmaps")
KINDS = {PODS: "Pod", MAPS: "ConfigMap"}


def document(resource: GroupResource, namespace: str, name: str, value: int = 0) -> Raw:
    return {
        "kind": KINDS[resource],
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": namespace, "labels": {"v": str(value)}},
        "value": value,
    }


def put(store: Store, resource: GroupResource, namespace: str, name: str, value: int = 0) -> Record:
    return store.put(resource, document(resource, namespace, name, value), {"value": str(value)})


def values(records: object) -> dict[str, int]:
    return {record.key: json.loads(record.body)["value"] for record in records}  # type: ignore[attr-defined]


class Collector:
    def __init__(self) -> None:
        self.changes: list[Change] = []

    def offer(self, change: Change) -> None:
        self.changes.append(change)


class Holding:
    """A journal that keeps writes back."""

    def __init__(self, store: Store) -> None:
        self.waiting: list[Change] = []
        store.journal = self

    def append(self, change: Change) -> None:
        self.waiting.append(change)


def test_one_counter_runs_over_all_kinds() -> None:
    store = Store(revision=40)
    revisions = [put(store, PODS, "a", "x").revision, put(store, MAPS, "a", "x").revision]
    assert [*revisions, store.delete(PODS, "a", "x").revision] == [41, 42, 43]
    assert store.visible == 43


def test_the_resource_version_in_the_body_is_the_revision_of_the_write() -> None:
    store = Store()
    record = put(store, PODS, "a", "x")
    assert json.loads(record.body)["metadata"]["resourceVersion"] == str(record.revision)


def test_another_resource_version_can_be_put_into_a_body() -> None:
    record = put(Store(revision=8), PODS, "a", "x", value=3)
    shown = json.loads(record.at_revision(12345))
    assert shown["metadata"]["resourceVersion"] == "12345"
    assert shown["value"] == 3


def test_a_list_item_is_the_object_without_kind_and_version() -> None:
    item = json.loads(put(Store(), PODS, "a", "x").item)
    assert "kind" not in item
    assert "apiVersion" not in item
    assert item["metadata"]["name"] == "x"


def test_lists_are_in_key_order_and_may_begin_anywhere() -> None:
    store = Store()
    for namespace, name in (("b", "x"), ("a", "z"), ("a-b", "q"), ("a", "c")):
        put(store, PODS, namespace, name)
    assert [record.key for record in store.list(PODS)] == ["a-b/q", "a/c", "a/z", "b/x"]
    assert [record.key for record in store.list(PODS, "a")] == ["a/c", "a/z"]
    assert [record.key for record in store.list(PODS, "a", after="a/c\0")] == ["a/z"]


def test_an_old_list_shows_what_was_there_then() -> None:
    store = Store()
    first = put(store, PODS, "a", "x", 1).revision
    put(store, PODS, "a", "x", 2)
    put(store, PODS, "a", "y", 3)
    store.delete(PODS, "a", "x")
    assert values(store.list(PODS, at=first)) == {"a/x": 1}
    assert values(store.list(PODS, at=first + 2)) == {"a/x": 2, "a/y": 3}
    assert values(store.list(PODS)) == {"a/y": 3}


def test_a_compacted_version_is_expired_and_a_later_one_is_not() -> None:
    store = Store()
    for value in range(4):
        put(store, PODS, "a", "x", value)
    store.compact(2)
    assert [store.when(PODS, revision) for revision in (1, 2, 4, 5)] == ["expired", "visible", "visible", "future"]
    assert not store.is_watchable(PODS, 1)
    assert store.is_watchable(PODS, 2)


def test_a_quiet_kind_stays_watchable_when_others_are_forgotten() -> None:
    store = Store()
    put(store, MAPS, "a", "x")
    for value in range(4):
        put(store, PODS, "a", "x", value)
    store.compact(5)
    assert store.is_watchable(GroupResource("", "nodes"), 1)


def test_only_so_many_changes_are_remembered() -> None:
    store = Store(history_limit=3)
    for value in range(5):
        put(store, PODS, "a", "x", value)
    assert [change.revision for change in store.changes_after(PODS, 2)] == [3, 4, 5]
    assert not store.is_watchable(PODS, 1)


def test_an_accepted_write_binds_writers_but_is_seen_by_nobody_else() -> None:
    store, seen = Store(), Collector()
    journal = Holding(store)
    store.subscribe(PODS, seen)
    put(store, PODS, "a", "x", 1)
    assert store.latest(PODS, "a", "x") is not None
    assert [record.key for record in store.latest_all(PODS, "a")] == ["a/x"]
    assert store.get(PODS, "a", "x") is None
    assert (store.visible, seen.changes) == (0, [])
    store.publish(journal.waiting[-1].revision)
    assert store.get(PODS, "a", "x") is not None
    assert [change.revision for change in seen.changes] == [1]


def test_a_rolled_back_write_never_was_and_its_revision_is_not_given_again() -> None:
    store = Store()
    put(store, PODS, "a", "x", 1)
    Holding(store)
    put(store, PODS, "a", "x", 2)
    put(store, PODS, "a", "y", 2)
    store.roll_back()
    assert values(store.latest_all(PODS)) == {"a/x": 1}
    store.journal = None
    assert put(store, PODS, "a", "y", 3).revision == 4


def test_a_cancelled_subscription_hears_nothing_more() -> None:
    store, seen = Store(), Collector()
    cancel = store.subscribe(PODS, seen)
    put(store, PODS, "a", "x")
    cancel()
    cancel()
    put(store, PODS, "a", "x", 2)
    assert len(seen.changes) == 1


NAMES, SPACES = st.sampled_from("xyz"), st.sampled_from(("a", "a-b", "b"))


class StoreAgainstModel(RuleBasedStateMachine):
    """The model keeps a whole copy of the world after every write."""

    def __init__(self) -> None:
        super().__init__()
        self.store = Store(revision=10, history_limit=12)
        self.worlds: dict[int, Mapping[tuple[GroupResource, str], int]] = {10: {}}
        self.seen = {resource: Collector() for resource in KINDS}

    @initialize()
    def watch(self) -> None:
        for resource, collector in self.seen.items():
            self.store.subscribe(resource, collector)

    @property
    def world(self) -> Mapping[tuple[GroupResource, str], int]:
        return self.worlds[max(self.worlds)]

    @rule(resource=st.sampled_from(list(KINDS)), namespace=SPACES, name=NAMES, value=st.integers(0, 99))
    def write(self, resource: GroupResource, namespace: str, name: str, value: int) -> None:
        record = put(self.store, resource, namespace, name, value)
        assert record.revision > max(self.worlds)
        self.worlds[record.revision] = {**self.world, (resource, record.key): value}

    @rule(resource=st.sampled_from(list(KINDS)), namespace=SPACES, name=NAMES)
    def remove(self, resource: GroupResource, namespace: str, name: str) -> None:
        key = (resource, f"{namespace}/{name}")
        if key in self.world:
            change = self.store.delete(resource, namespace, name)
            self.worlds[change.revision] = {other: value for other, value in self.world.items() if other != key}

    @rule(back=st.integers(0, 6))
    def compact(self, back: int) -> None:
        self.store.compact(max(self.worlds) - back)

    @rule(resource=st.sampled_from(list(KINDS)), namespace=st.one_of(st.just(""), SPACES), back=st.integers(0, 14))
    def list_then(self, resource: GroupResource, namespace: str, back: int) -> None:
        revision = max(self.worlds) - back
        if revision not in self.worlds or self.store.when(resource, revision) == "expired":
            return
        expected = {
            key: value
            for (kind, key), value in sorted(self.worlds[revision].items())
            if kind == resource and (not namespace or key.startswith(f"{namespace}/"))
        }
        found = values(self.store.list(resource, namespace, at=revision))
        assert found == expected
        assert list(found) == sorted(found)

    @rule(resource=st.sampled_from(list(KINDS)), back=st.integers(0, 14))
    def replay(self, resource: GroupResource, back: int) -> None:
        revision = max(self.worlds) - back
        if revision not in self.worlds or not self.store.is_watchable(resource, revision):
            return
        state = {key: value for (kind, key), value in self.worlds[revision].items() if kind == resource}
        for change in self.store.changes_after(resource, revision):
            if change.new is None:
                del state[change.key]
            else:
                state[change.key] = json.loads(change.new.body)["value"]
        assert state == {key: value for (kind, key), value in self.world.items() if kind == resource}

    @invariant()
    def listeners_saw_every_change_once_and_in_order(self) -> None:
        heard = [change.revision for seen in self.seen.values() for change in seen.changes]
        assert sorted(heard) == sorted(revision for revision in self.worlds if revision > 10)
        for seen in self.seen.values():
            revisions = [change.revision for change in seen.changes]
            assert revisions == sorted(set(revisions))


StoreAgainstModel.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestStoreAgainstModel = StoreAgainstModel.TestCase


@given(st.lists(st.tuples(SPACES, NAMES, st.booleans()), max_size=20), st.integers(0, 20))
def test_published_and_accepted_agree_once_everything_is_published(
    writes: list[tuple[str, str, bool]], upto: int
) -> None:
    store = Store()
    journal = Holding(store)
    for namespace, name, keep in writes:
        if keep or store.latest(PODS, namespace, name) is None:
            put(store, PODS, namespace, name, len(journal.waiting))
        else:
            store.delete(PODS, namespace, name)
    store.publish(min(upto, store.revision))
    assert store.visible <= store.revision
    store.publish(store.revision)
    assert values(store.list(PODS)) == values(store.latest_all(PODS))


def test_memory_beyond_the_bytes_of_an_object_is_small() -> None:
    import tracemalloc

    store, count = Store(history_limit=0), 2000
    documents = [document(PODS, "a", f"pod-{index}", index) for index in range(count)]
    tracemalloc.start()
    size = sum(
        len(store.put(PODS, each, {"spec.nodeName": f"node-{index}"}).body) for index, each in enumerate(documents)
    )
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (held - size) / count < 8000


@pytest.mark.parametrize("limit", [0, 1])
def test_a_store_without_history_still_serves_the_present(limit: int) -> None:
    store = Store(history_limit=limit)
    put(store, PODS, "a", "x", 1)
    assert values(store.list(PODS)) == {"a/x": 1}
    assert store.is_watchable(PODS, store.visible)
